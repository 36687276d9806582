"""Forward and inverse dynamics and the forces in joints, by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
from numpy import empty

from bunraku.algorithms.connection_equations import DYNAMICS
from bunraku.checks import as_array, as_count, as_floats, hint
from bunraku.entries import closed_solution as closed
from bunraku.entries import forward_entries as forward
from bunraku.entries import inverse_entries as inverse
from bunraku.entries import reference
from bunraku.entries.forward_entries import forward_one
from bunraku.entries.loop_entries import closed_plain
from bunraku.entries.part_entries import lanes_of_state, lanes_one
from bunraku.entries.wrench_entries import joint_wrenches, wrenches_one
from bunraku.errors import ModelError, NamingError, ShapeError
from bunraku.evaluate.closed_chain import against_friction, closed_inverse_dynamics
from bunraku.evaluate.contacts import Contacts, with_contacts, without_contact
from bunraku.evaluate.dynamics_results import (
    Dynamics,
    Report,
    link_wrenches,
    report_of,
    with_connection_forces,
)
from bunraku.evaluate.kinematics import Kinematics, kinematics
from bunraku.evaluate.schedules import Schedule
from bunraku.evaluate.team import accelerations, team_for
from bunraku.jit import ArrayMismatch
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.mechanism.named import Named, NamedRows
from bunraku.plan.loop_plan import reschedule, with_connections

METHODS = ("auto", "aba", "ada", "unit_vector")


def forward_dynamics(mechanism: Mechanism, q, v, tau=None, *, external: Mapping | None = None,
                     prescribed: Mapping | None = None, passive: bool = True, method: str = "auto",
                     workers: int | None = None, schedule: Schedule | None = None) -> np.ndarray:
    """Accelerations: the time derivative of v's components, of one state or a batch.

    tau         nv torques; with connections, nv + nc where their drives follow (`Mechanism.drive_slice`)
    external    {link: (fx, fy, fz, mx, my, mz)} at the link frame's origin in world axes, (6,) or (B, 6)
    prescribed  {joint or connection: acceleration} in place of its torque
    passive     springs, dampers, limits, armature, contact, and friction and hard limits of joints act
    method      "auto": articulated bodies, and with connections assembly and disassembly, O(N); "aba": trees only;
                "ada": assembly and disassembly; "unit_vector": the O(N^3) reference
    workers     threads: for a batch by default as many as there are cores; for one state at most so many, with a part
                of the mechanism each (`bk.schedule`). By default one, which computes like chunks of a large mechanism
                in lanes; workers=1: one after the other
    schedule    who computes which part of the mechanism, from `bk.schedule` or `bk.Schedule`; or the order of assembly
                for "ada". By default tips to root by one worker
    """
    if external is None and prescribed is None and passive and method != "unit_vector" and (
            workers is None or (type(workers) is int and workers == 1)):
        try:
            plan = mechanism.free_plan
        except AttributeError:
            as_mechanism(mechanism)
            raise
        if plan is None:
            if mechanism.needs_contact():
                a = None
                if method == "auto" and schedule is None and not mechanism.constrained and _are_vectors(q, v, tau):
                    a = _with_contact()(mechanism, q, v, tau)
                return _touching(mechanism, q, v, tau, None, None, method, schedule)[0] if a is None else a
            plan = mechanism.plan_for(closed_plain if mechanism.constrained else forward_one)
            mechanism.free_plan = plan
        if method != "auto" or schedule is not None:
            team = team_for(mechanism, plan, schedule, workers) if method == "auto" else None
            if team is not None:
                return _by_team(team, plan, q, v, tau)
            plan = _scheduled_plan(mechanism, plan, method, schedule)
        a, loops = empty(plan.nv), plan.loops
        try:  # straight to compiled code, which refuses whatever is not one state in plain arrays
            if plan.large and workers is None and schedule is None and plan.lanes is not None:
                lanes = plan.lanes
                if lanes_of_state.call(lanes_one.address, lanes.arrays, q, v, plan.zero_tau if tau is None else tau, a,
                                       lanes.work_size) == 0:
                    return a
            if loops is None:
                if forward_one.call(plan.arrays, q, v, plan.zero_tau if tau is None else tau, plan.nothing, a) == 0:
                    return a
            elif not mechanism.springs and closed_plain.call(
                    plan.with_rotors, q, v, plan.zero_tau if tau is None else tau, a, empty(loops.work_size)) == 0:
                return a
        except ArrayMismatch:
            pass
    plan = as_mechanism(mechanism).plan(None if passive else "bare")
    if passive and mechanism.needs_contact():
        return _touching(mechanism, q, v, tau, external, prescribed, method, schedule, workers)[0]
    if prescribed:
        plan, tau = with_prescribed(mechanism, plan, passive, tau, prescribed)
    pushed = external_forces(mechanism, external)
    if method == "auto" and (workers is not None or schedule is not None) and as_array("q", q).ndim == 1:
        if workers is not None:
            as_count("workers", workers)
        team = team_for(mechanism, plan, schedule, workers, pushed is not None)
        if team is not None:
            return _by_team(team, plan, q, v, tau, pushed)
    plan = _scheduled_plan(mechanism, plan, method, schedule)
    if method == "unit_vector":
        if prescribed:
            raise ModelError("the unit-vector method takes torques only; use method='auto' with prescribed joints")
        if plan.loops is not None and np.ndim(q) == 1:
            closed.refuse_open(plan, as_floats("q", q, plan.nq))
        return reference.forward_dynamics(plan, q, v, tau, pushed, workers)
    if plan.loops is not None:
        return closed.forward_dynamics(plan, q, v, tau, pushed, workers)
    return forward.forward_dynamics(plan, q, v, tau, pushed, workers)


def _are_vectors(*arrays) -> bool:
    """Whether all are arrays of one dimension, or None."""
    return all(x is None or (isinstance(x, np.ndarray) and x.ndim == 1) for x in arrays)


@cache
def _with_contact():
    """Fast path to accelerations with contact; imported on first use."""
    from bunraku.evaluate.contact_forces import contact_accelerations

    return contact_accelerations


def _touching(mechanism, q, v, tau, external, prescribed, method="auto", schedule=None, workers=None):
    """(accelerations, contacts) with contact forces; contacts is a list of a batch."""
    from bunraku.evaluate.contact_forces import contact_forces

    if method != "auto" or schedule is not None or workers not in (None, 1):
        raise ModelError(f"{mechanism.why_contact()}, and contact, friction and hard limits are for method='auto' with "
                         "one worker and no schedule; passive=False leaves them out")
    return contact_forces(mechanism, q, v, tau, external, prescribed)


def _by_team(team, plan, q, v, tau, pushed=None):
    """Accelerations of one state by several workers; a batch, or a state without a solution, is computed serially."""
    tau = plan.zero_tau if tau is None else tau
    q, v = as_floats("q", q, plan.nq), as_floats("v", v, plan.nv)
    if plan.loops is None:
        tau = as_floats("tau", tau, plan.nv)
    else:
        torques, drives = closed.split(plan, tau)
        torques = as_floats("tau", torques, plan.nv)
        tau = torques if drives is None else np.concatenate([torques, drives], axis=-1)
    one = all(x.ndim == 1 for x in (q, v, tau)) and (pushed is None or pushed.ndim == 1)
    a = accelerations(team, plan, q, v, tau, pushed) if one else None
    if a is None:  # the ordinary way also names the joint or connection if there is no solution
        if plan.loops is not None:
            return closed.forward_dynamics(plan, q, v, tau, pushed, None)
        a = forward.forward_dynamics(plan, q, v, tau, pushed, None)
    return a


def _scheduled_plan(mechanism, plan, method, schedule):
    """The plan with the operations of the method and its schedule."""
    if method == "auto" and schedule is None:
        return plan
    key = ("assembled", id(plan), method, id(schedule))
    # kept with the schedule, so that its number stays its own
    return mechanism.kept(key, lambda: (_plan_by_schedule(mechanism, plan, method, schedule), schedule))[0]


def _plan_by_schedule(mechanism, plan, method, schedule):
    if method not in METHODS:
        raise ModelError(f"method {method!r} is not one of {', '.join(METHODS)}{hint(method, METHODS, close=True)}")
    if schedule is not None and method not in ("auto", "ada"):
        raise ModelError(f"method {method!r} has no schedule; use method='ada'")
    if method == "aba" and plan.loops is not None:
        raise ModelError(f"{mechanism.name} has connections or couplings, and method='aba' is for trees; use "
                         "method='auto'")
    if method in ("aba", "unit_vector"):
        return plan
    if schedule is not None:
        if not isinstance(schedule, Schedule):
            raise ModelError(f"schedule must be made by bk.schedule or bk.Schedule, not {schedule!r}")
        items = schedule.items(mechanism)  # complains if it was made for another structure
        if not schedule.serial:
            return reschedule(plan, items, schedule.closing == "together")
    return with_connections(plan, ()) if plan.loops is None else plan


def inverse_dynamics(mechanism: Mechanism, q, v, a, *, external: Mapping | None = None, passive: bool = True,
                     workers: int | None = None) -> np.ndarray:
    """Torques that give the accelerations a; arguments as in `forward_dynamics`.

    With connections: torques of the actuated joints (and connections), zero elsewhere; those of minimum norm if the
    mechanism is redundantly actuated, an ActuationError if it is underactuated. See `bk.closed_chain`.
    Friction of joints opposes their velocity, or the acceleration that begins one; contact and hard limits are left
    out, since their forces do not follow from the motion.
    """
    try:
        plan = mechanism.plan_for(inverse.inverse_one) if passive else mechanism.plan("bare")
    except AttributeError:
        as_mechanism(mechanism)
        raise
    if plan.loops is not None:
        return closed_inverse_dynamics(mechanism, plan, q, v, a, external_forces(mechanism, external), passive)
    tau = inverse.inverse_dynamics(plan, q, v, a, external_forces(mechanism, external), workers)
    if mechanism.joint_laws is not False and passive and mechanism.has_joint_laws():
        tau += against_friction(mechanism, v, a)
    return tau


def joint_forces(mechanism: Mechanism, q, v, tau=None, *, external: Mapping | None = None,
                 prescribed: Mapping | None = None) -> dict[str, np.ndarray]:
    """{joint or connection: (force, moment)}: the total wrench each passes to its child link (link b of a connection).

    Six numbers, or (B, 6), at the joint frame's origin in child-side axes, drive and passive forces included. Where
    connections are redundant: the forces of minimum norm, see `Report`.
    """
    try:
        known = mechanism.free_forces
    except AttributeError:
        as_mechanism(mechanism)
        raise
    if known is None and not mechanism.connections and not mechanism.couplings and not mechanism.needs_contact():
        mechanism.plan_for(wrenches_one)  # complains of massless ends
        numbers = {name: k for k, name in enumerate(mechanism.joint_names)}
        known = mechanism.free_forces = mechanism.plan("apart"), numbers
    if known is not None and prescribed is None:
        plan, numbers = known
        if external is None:
            try:  # straight to compiled code, which refuses whatever is not one state in plain arrays
                out = empty(6 * len(numbers))
                if wrenches_one.call(plan.arrays, q, v, plan.zero_tau if tau is None else tau, plan.nothing, out) == 0:
                    return NamedRows(out, numbers, mechanism.no_joint)
            except ArrayMismatch:
                pass
        passed = joint_wrenches(plan, q, v, tau, external_forces(mechanism, external))
        return NamedRows(passed, numbers, mechanism.no_joint)
    return dynamics(mechanism, q, v, tau, external=external, prescribed=prescribed).forces


def connection_forces(mechanism: Mechanism, q, v, tau=None, *, external: Mapping | None = None,
                      prescribed: Mapping | None = None) -> dict[str, np.ndarray]:
    """The connections' part of `joint_forces`, without the cost of the tree joints."""
    plan = mechanism.plan()
    if plan.loops is None:
        return {}
    if prescribed:
        plan, tau = with_prescribed(mechanism, plan, True, tau, prescribed)
    return _connection_forces(mechanism, plan, q, v, tau, external_forces(mechanism, external))[1]


def dynamics(mechanism: Mechanism, q, v, tau=None, *, external: Mapping | None = None,
             prescribed: Mapping | None = None, contacts: Contacts | list[Contacts] | None = None) -> Dynamics:
    """Accelerations, joint forces, contact forces and link accelerations at once; arguments as in `forward_dynamics`.

    With shapes that may touch, contacts within 1e-6 m are closed. `contacts` lists all that are near, each with force
    and mode. Forces of redundant contacts are indeterminate: the minimum-norm admissible ones are returned. Known
    contact forces, for example from `Trajectory.contacts`, can be passed as `contacts`.
    """
    plan, pushed = as_mechanism(mechanism).plan(), external_forces(mechanism, external)
    whole, touching, a, resistance = mechanism, None, None, None
    if mechanism.needs_contact():
        if contacts is None:
            a, touching = _touching(mechanism, q, v, tau, external, prescribed)
        else:
            touching = contacts
        resistance = np.array([x.resistance for x in touching]) if isinstance(touching, list) else touching.resistance
        if mechanism.has_joint_laws():
            tau = with_resistance(mechanism, tau, resistance)
        mechanism = without_contact(mechanism)

    @cache
    def acting():
        return pushed if touching is None else with_contacts(mechanism, touching, pushed)

    q, v = np.array(q, float), np.array(v, float)  # as they are now
    if plan.loops is None:
        if a is None:
            external = external_by_name(mechanism, acting()) if touching is not None else external
            a = forward_dynamics(mechanism, q, v, tau, external=external, prescribed=prescribed)
        held, coupled, report = {}, {}, Report(0, 0, 1.0, {}, {})
    else:
        if prescribed:
            plan, tau = with_prescribed(mechanism, plan, True, tau, prescribed)
        a, held, coupled, report = _connection_forces(mechanism, plan, q, v, tau, acting())

    @cache
    def moved() -> Kinematics:
        return kinematics(mechanism, q, v, a)

    def forces() -> dict[str, np.ndarray]:
        total = with_connection_forces(mechanism, moved(), held, acting()) if held else acting()
        apart = whole.plan("apart")
        _, passed = inverse.inverse_dynamics(apart, q, v, a, total, None, wrenches=True)
        return Named({**link_wrenches(mechanism, apart, passed), **held}, mechanism.no_joint)

    return Dynamics(a, report, touching if whole.may_touch() else None, moved, forces, coupled,
                    resistance)


def with_resistance(mechanism, tau, resistance):
    """tau with the torques of friction and hard limits added."""
    added = np.zeros((*resistance.shape[:-1], mechanism.nv if tau is None else np.shape(tau)[-1]))
    added[..., :mechanism.nv] = resistance
    return added if tau is None else np.asarray(tau, float) + added


def external_by_name(mechanism, pushed) -> dict[str, np.ndarray]:
    """{link: wrench} of an array of 6 per link."""
    return {link.name: pushed[..., 6 * i:6 * i + 6] for i, link in enumerate(mechanism.links)}


def _connection_forces(mechanism, plan, q, v, tau, pushed):
    """Accelerations, wrenches of the connections {name: (6,) or (B, 6)}, torques of the couplings {joint: number or
    (B,)}, and the report (of the worst state)."""
    loops = plan.loops
    tau, drives = closed.split(plan, tau)
    batch, (q, v, tau, drives, pushed) = closed.aligned_states(plan, q, v, tau, drives, pushed)
    states = [(q, v, tau, drives, pushed)] if batch is None else [
        (q[k], v[k], tau[k], None if drives is None else drives[k], None if pushed is None else pushed[k])
        for k in range(batch)]
    held = len(loops.held)
    accelerations, wrenches, torques, reports = [], [], [], []
    for state in states:
        solution = closed.solve(plan, DYNAMICS, *state)
        multipliers, basis = closed.forces(solution)
        accelerations.append(solution.a)
        wrenches.append([solution.wrench(c, multipliers) for c in range(held)])
        torques.append(multipliers[len(multipliers) - loops.couplings:])
        reports.append(report_of(mechanism, solution, basis))
    worst = max(reports, key=lambda r: (r.constraints - r.rank, r.condition))
    if batch is None:
        return (accelerations[0], dict(zip(loops.held, wrenches[0], strict=True)),
                dict(zip(loops.names[held:], map(float, torques[0]), strict=True)), worst)
    columns, turning = np.array(wrenches).reshape(batch, held, 6), np.array(torques).reshape(batch, loops.couplings)
    return (np.array(accelerations), {name: columns[:, c] for c, name in enumerate(loops.held)},
            {name: turning[:, c] for c, name in enumerate(loops.names[held:])}, worst)


def external_forces(mechanism, external):
    """{link: wrench} as an array of 6 per link, with a leading axis if any is a batch; None for nothing."""
    if not external:
        if external is not None and not isinstance(external, Mapping):
            raise ShapeError(f"external must be a dictionary {{link: (fx, fy, fz, mx, my, mz)}}, not {external!r:.60}")
        return None
    if not isinstance(external, Mapping):
        raise ShapeError(f"external must be a dictionary {{link: (fx, fy, fz, mx, my, mz)}}, not {external!r:.60}")
    values = {}
    for name, wrench in external.items():
        link = mechanism.find_link(name, "external")
        if link < 0:
            raise NamingError("external: a force on the ground has no effect; name a link")
        array = as_array(f"external: the wrench on {name!r}", wrench)
        if array.ndim not in (1, 2) or array.shape[-1] != 6:
            raise ShapeError(f"external: the wrench on {name!r} has shape {array.shape}; it must be (6,) or (B, 6)")
        values[link] = array
    batches = {array.shape[0] for array in values.values() if array.ndim == 2}
    if len(batches) > 1:
        raise ShapeError(f"external: batches of different size: {sorted(batches)}")
    shape = (batches.pop(),) if batches else ()
    out = np.zeros((*shape, 6 * len(mechanism.links)))
    for link, array in values.items():
        out[..., 6 * link:6 * link + 6] = array
    return out


def with_prescribed(mechanism, plan, passive, tau, prescribed):
    """A plan with the named joints and connections driven by acceleration, and tau with these accelerations."""
    if not isinstance(prescribed, Mapping):
        raise ShapeError(f"prescribed must be a dictionary {{joint: acceleration}}, not {prescribed!r:.60}")
    links, given = set(), {name for name in prescribed if name in mechanism.connections}
    width = plan.nv
    if plan.loops is not None:
        tree, drives = closed.split(plan, tau)
        if given or drives is not None:
            width = plan.nv + plan.loops.freedoms
            rest = np.zeros((*tree.shape[:-1], plan.loops.freedoms)) if drives is None else drives
            tau = np.concatenate([tree, rest], axis=-1)
    tau = np.zeros(width) if tau is None else as_floats("tau", tau, width).copy()
    for name, value in prescribed.items():
        if name in given:
            where = mechanism.drive_slice(name)
        else:
            links.add(mechanism.find_joint(name, "prescribed: ", mechanism.connections))
            where = mechanism.v_slice(name)
        width = where.stop - where.start
        array = as_array(f"prescribed: the acceleration of {name!r}", value)
        if array.ndim == 0 and width == 1:
            array = array[None]
        if array.ndim == 1 and width == 1 and array.shape[0] != 1:
            array = array[:, None]
        if array.ndim not in (1, 2) or array.shape[-1] != width:
            raise ShapeError(f"prescribed: the acceleration of {name!r} has shape {array.shape}; "
                             f"it must be ({width},) or (B, {width})")
        if array.ndim == 2 and tau.ndim == 1:
            tau = np.tile(tau, (array.shape[0], 1))
        if array.ndim == 2 and array.shape[0] not in (1, tau.shape[0]):
            raise ShapeError(f"prescribed: {name!r} holds {array.shape[0]} states where the others hold {tau.shape[0]}")
        tau[..., where] = array
    return mechanism.driven_plan(links, given, passive), tau
