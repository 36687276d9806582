"""Accelerations with contact, and the forces of contacts, at given states."""

from __future__ import annotations

import sys
import threading
import weakref
from typing import NamedTuple

import numpy as np

from bunraku.checks import aligned
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_entries import problem_one
from bunraku.contact.contact_fields import FORCES as FROM_FORCES
from bunraku.contact.contact_fields import NO_SOLUTION, OPEN, ROUGH, SLIDING, SOLVED, STICKING
from bunraku.contact.contact_memory import ACTIVE, FULL, STATUS, WORST
from bunraku.contact.contact_motion import APPROACHING, DIRECT, LOOK, LOOK_LEVEL, OVERLAPPING, contact_solve
from bunraku.entries import closed_solution as closed
from bunraku.entries.explain import refuse, several
from bunraku.entries.signatures import FINE
from bunraku.errors import ContactError, ModelError, StateError
from bunraku.evaluate.contact_problem import solve_problem
from bunraku.evaluate.contact_workspace import Acts, Touching
from bunraku.evaluate.contacts import MARGIN, MODES, Contacts
from bunraku.evaluate.near_contacts import contacts_near, identities, near_pairs, numbers
from bunraku.mechanism import Free, Mechanism
from bunraku.tolerances import CLOSED_GAP, CONTACT_NEAR, CONTACT_SLOW, LIGHT_LOAD, QUICK, QUICK_JOINT, TOO_DEEP


class Limits(NamedTuple):
    """Thresholds by which contact modes are determined from a state."""

    closed: float       # [m] gap below which a contact is closed
    slow: float         # [m/s] slip and separation below which there is none
    approach: float     # [m/s] a closed contact that approaches faster is an impact, which finite forces cannot resolve
    refuse: bool = True  # impacts and overlaps are errors; else impacts carry no force yet, and overlaps do not matter


GIVEN = Limits(TOO_DEEP, CONTACT_SLOW, 1e-3)
"""For states that people give."""
_GIVEN = np.array(GIVEN[:3])
EVENTS = Limits(1e-5, 1e-4, 1e-3, refuse=False)
"""For recorded states of adaptive solvers, and between them."""

_known: weakref.WeakKeyDictionary[Mechanism, threading.local] = weakref.WeakKeyDictionary()


def touching_of(mechanism: Mechanism, locked, q: np.ndarray) -> Touching:
    """Contact workspace of a mechanism in this thread; with many shapes, for the pairs near each other at a state."""
    if not mechanism.contact_pairs().complete:
        return Touching(mechanism, locked, sys.maxsize, near=near_pairs(mechanism, q, CONTACT_NEAR))
    own = _known.get(mechanism)
    if own is None:
        own = _known.setdefault(mechanism, threading.local())
    made = own.__dict__.get(locked)
    if made is None or made.pairs is not mechanism.contact_pairs():
        made = own.__dict__[locked] = Touching(mechanism, locked, sys.maxsize)
    return made


def contact_accelerations(mechanism: Mechanism, q, v, tau):
    """Accelerations of one state given as plain arrays; None for other input, or if an error or warning is due."""
    if q.shape != (mechanism.nq,):
        return None
    touching, a = touching_of(mechanism, frozenset(), q), np.empty(len(v))
    if touching.soft:
        return None
    plan, touch = touching.plan, touching.touch
    tau = plan.zero_tau if tau is None else tau
    if v.shape != (plan.nv,) or tau.shape != (plan.nv,):
        return None
    status = contact_solve.call(DIRECT, touching.structure, q, v, tau, plan.nothing, plan.nothing, _GIVEN, a,
                                touching.work)
    return a if status == FINE and (touch.count[ACTIVE] == 0 or touch.count[STATUS] == SOLVED) else None


def contact_forces(mechanism: Mechanism, q, v, tau=None, external=None, prescribed=None, limits: Limits = GIVEN):
    """(accelerations, contacts with forces) of one state, or (B, nv) and a list of a batch."""
    locked, batch, (q, v, tau, drives, pushed) = contact_inputs(mechanism, q, v, tau, external, prescribed)
    if batch is None:
        return _one(mechanism, locked, q, v, (tau, drives, pushed), limits)
    accelerations, failed = np.full((batch, mechanism.nv), np.nan), {}
    contacts: list[Contacts] = []
    for k in range(batch):
        acts = tau[k], None if drives is None else drives[k], None if pushed is None else pushed[k]
        try:
            accelerations[k], found = _one(mechanism, locked, q[k], v[k], acts, limits)
            contacts.append(found)
        except StateError as error:
            failed[k] = error
    if failed:
        text = several([k in failed for k in range(batch)], lambda k: str(failed[k]))
        kind = ContactError if any(isinstance(error, ContactError) for error in failed.values()) else StateError
        raise kind(text, states=list(failed), result=accelerations)
    return accelerations, contacts


def contact_inputs(mechanism: Mechanism, q, v, tau, external, prescribed):
    """Joints of prescribed motion, size of the batch or None, and (q, v, tau, drives, forces on links) as arrays."""
    from bunraku.evaluate.dynamics import external_forces, with_prescribed

    plan, locked = mechanism.plan(), frozenset[int]()
    if prescribed:
        if any(name in mechanism.connections for name in prescribed):
            raise ModelError("prescribed connections and contact do not go together; prescribe joints")
        _, tau = with_prescribed(mechanism, plan, True, tau, prescribed)
        locked = frozenset(mechanism.find_joint(name, "prescribed: ") for name in prescribed)
    pushed = external_forces(mechanism, external)
    if plan.loops is not None:
        tau, drives = closed.split(plan, tau)
        batch, (q, v, tau, drives, pushed) = closed.aligned_states(plan, q, v, tau, drives, pushed)
    else:
        drives = None
        given = [("q", q, plan.nq), ("v", v, plan.nv), ("tau", plan.zero_tau if tau is None else tau, plan.nv)]
        if pushed is not None:
            given.append(("external", pushed, 6 * plan.links))
        batch, found = aligned(*given)
        q, v, tau = found[:3]
        pushed = found[3] if pushed is not None else None
    return locked, batch, (q, v, tau, drives, pushed)


def contact_acts(touching: Touching, tau, drives, pushed) -> Acts:
    """What acts besides contact, in kernel form."""
    nothing = touching.plan.nothing
    return Acts(np.ascontiguousarray(tau), nothing if drives is None else drives, nothing if pushed is None else pushed)


def _one(mechanism: Mechanism, locked, q, v, acts, limits: Limits) -> tuple[np.ndarray, Contacts]:
    q, v = np.ascontiguousarray(q), np.ascontiguousarray(v)
    touching = touching_of(mechanism, locked, q)
    refuse_soft(touching)
    return (_strictly if limits.refuse else _leniently)(touching, q, v, contact_acts(touching, *acts), limits)


def take_modes_of_state(touching: Touching, q, v, acts: Acts) -> None:
    """Modes of all contacts at a state, by the forces there."""
    refuse_soft(touching)
    _strictly(touching, q, v, acts, GIVEN)


def _strictly(touching: Touching, q, v, acts: Acts, limits: Limits) -> tuple[np.ndarray, Contacts]:
    plan, a = touching.plan, np.empty(touching.plan.nv)
    numbers = _GIVEN if limits is GIVEN else np.array(limits[:3])
    while True:
        touch = touching.touch
        touch.residual[0] = 0.0
        status = contact_solve.call(DIRECT, touching.structure, q, v, *acts, numbers, a, touching.work)
        if touch.count[STATUS] != FULL or not touching.grow():
            break
    if status in (APPROACHING, OVERLAPPING) and touch.count[WORST] < touching.joints:
        touching.refuse_overlap(q, "hard limits")
        raise ContactError(f"{touching.joint_contact(int(touch.count[WORST]))} moves on towards it: an impact, which "
                           "changes velocities at once; bk.Simulation resolves it")
    if status == APPROACHING:
        raise ContactError(f"shapes {touching.pair(int(touch.count[WORST]))} touch and approach each other: an impact, "
                           "which changes velocities at once; bk.Simulation resolves it")
    if status == OVERLAPPING:
        touching.refuse_overlap(q, "contact")
    if status != FINE:
        refuse(plan, q, {"v": v, "tau": acts.tau, "external": acts.external})
    found = touch.found.reshape(-1, c.FOUND).copy()
    found[:touching.joints, c.FOUND_GAP] = np.inf
    n = int(touch.count[ACTIVE])
    if n and touch.count[STATUS] == NO_SOLUTION:
        raise ContactError(touching.jammed_by(touch.active[:n]))
    if n and touch.count[STATUS] == ROUGH:
        raise ContactError(touching.rough())
    if n:
        _make_smallest(touch, n)
        _take_modes(touching, n)
    rows = touch.active[:n]
    forces, moments = in_world(touching, len(found), touching.arrays, rows, touch.force[:3 * n].reshape(n, 3),
                               touching.axes(rows))
    return a, Contacts(touching.mechanism, q, found, MARGIN, forces, touch.modes.copy(),
                       float(touch.residual[0]) if n else 0.0, touching.arrays,
                       touching.joint_forces(touch.force[:3 * n].reshape(n, 3), rows), moments)


def refuse_soft(touching: Touching) -> None:
    if touching.soft:
        raise ModelError(needs_steps(touching.mechanism))


def needs_steps(mechanism: Mechanism) -> str:
    """Error text for soft contacts without a time step."""
    shapes = named(mechanism, lambda shape: shape.stiffness is not None)
    return (f"{mechanism.name} has soft contacts ({shapes}), which are springs of time steps: simulate it with "
            "solver='symplectic_euler', step=..., whose forces are sim.contacts; or make them rigid: "
            "m.with_shape(name, stiffness=None)")


def named(mechanism: Mechanism, which) -> str:
    """Names of shapes for messages, the first few."""
    names = [repr(shape.name) for shape in mechanism.shapes.values() if which(shape)]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def in_world(touching: Touching, size: int, arrays, rows, force, axes) -> tuple[np.ndarray, np.ndarray | None]:
    """(contacts, 3) forces, and moments at the same points or None, in world axes, of those in `rows` of a list with
    `size` contacts, given as normal and tangents."""
    forces, whole = np.zeros((size, 3)), np.einsum("nr,nrx->nx", force, axes)
    if not touching.has_moments:
        forces[rows] = whole
        return forces, None
    moments, of_moment = np.zeros((size, 3)), arrays.contact_i[rows, c.CONTACT_ROLE] != c.PUSH
    forces[rows[~of_moment]] = whole[~of_moment]
    np.add.at(moments, arrays.contact_i[rows[of_moment], c.CONTACT_POINT], whole[of_moment])
    return forces, moments


def _take_modes(touching: Touching, n: int) -> None:
    """Modes by the accelerations: contacts that begin to part are open, sticking ones that begin to slip slide."""
    touch = touching.touch
    rows, after = touch.active[:n], touch.velocity[:3 * n].reshape(n, 3)
    least = 1e-9 * max(float(np.abs(touch.b[:3 * n]).max()), LIGHT_LOAD)
    normal = touch.force[:3 * n:3]
    modes = touch.modes[rows]
    modes[(modes == STICKING) & ((touch.mu[:n] == 0.0) | (np.hypot(after[:, 1], after[:, 2]) > least))] = SLIDING
    modes[(after[:, 0] > least) & (normal <= 1e-12 * normal.max())] = OPEN
    touch.modes[rows] = modes
    touching.open_moments()


def _make_smallest(touch, n: int) -> None:
    """Replace indeterminate contact forces by their minimum-norm choice with the same motion."""
    if (touch.kind[:n] >= c.LOADED).any():  # the loads of moments are no choice
        return
    force, report = touch.force[:3 * n].copy(), np.empty(4)
    problem_one.call(touch.theta[:9 * n * n], touch.b[:3 * n], touch.mu[:n], touch.kind[:n], touch.slip[:2 * n],
                     FROM_FORCES, 1, force, touch.velocity[:3 * n], touch.mode[:n], report)
    if report[2] == SOLVED:
        touch.force[:3 * n] = force


def _leniently(touching: Touching, q, v, acts: Acts, limits: Limits) -> tuple[np.ndarray, Contacts]:
    closed = np.flatnonzero(touching.gaps(q) <= limits.closed)
    touching.set_modes(closed)
    look = touching.solve(LOOK, q, v, acts)
    along = look.before[:, 0]
    closed = look.rows[(along >= -limits.approach) & (along <= limits.slow)]
    for slow in (limits.slow, 10.0 * limits.slow, 100.0 * limits.slow, np.inf):
        try:  # slip that has no acceleration (Painleve) counts as none
            answer = touching.forces(q, v, acts, closed, slow)
            break
        except ContactError:
            if slow == np.inf:
                raise
    n = len(answer.rows)
    _make_smallest(touching.touch, n)
    force = touching.touch.force[:3 * n].reshape(n, 3)
    return touching.a.copy(), _listed(touching, q, answer.rows, force, answer.axes, answer.residual)


def _listed(touching: Touching, q, rows, force, axes, residual: float) -> Contacts:
    """Contacts within the margin, and those in `rows` at any gap, with their forces (normal, two tangents)."""
    found = touching.touch.found.reshape(-1, c.FOUND).copy()
    found[:touching.joints, c.FOUND_GAP] = np.inf
    return _with_forces(touching, q, touching.arrays, found, rows, force, axes, touching.touch.modes.copy(), residual)


def _with_forces(touching: Touching, q, arrays, found, rows, force, axes, modes, residual: float) -> Contacts:
    resistance = touching.joint_forces(force, rows)
    if touching.joints:
        shapes = rows >= touching.joints
        rows, force, axes = rows[shapes], force[shapes], axes[shapes]
    forces, moments = in_world(touching, len(found), arrays, rows, force, axes)
    margin = max(MARGIN, float(found[forces.any(axis=1), c.FOUND_GAP].max(initial=0.0)))
    return Contacts(touching.mechanism, q, found, margin, forces, modes, residual, arrays, resistance, moments)


def step_forces(mechanism: Mechanism, q, v, tau, step: float, external=None, prescribed=None) -> Contacts:
    """Contacts at a state with their forces in the time step that begins there: impulses divided by the step.

    The problem of `contact/contact_step.py`, with minimum-norm forces where they are not unique. (With friction the
    motion itself may be non-unique: a run, which starts from the forces of its last step, may find another solution.)
    """
    locked, _, (q, v, tau, drives, pushed) = contact_inputs(mechanism, q, v, tau, external, prescribed)
    q, v = np.ascontiguousarray(q), np.ascontiguousarray(v)
    touching = touching_of(mechanism, locked, q)
    acts = contact_acts(touching, tau, drives, pushed)
    gap, before, free = touching.gaps(q).copy(), np.zeros(touching.contacts), np.zeros(touching.contacts)
    touching.set_modes(np.flatnonzero(np.isfinite(gap)))
    look = touching.solve(LOOK, q, v, acts)
    before[look.rows] = look.before[:, 0]
    soon, quick = np.where(np.arange(len(gap))[:, None] < touching.joints, (4.0, QUICK_JOINT), (2.0, QUICK)).T
    touching.set_modes(np.flatnonzero(gap <= soon * step * np.maximum(0.0, -before) + quick * step * step))
    found = touching.touch.found.copy()
    look = touching.solve(LOOK_LEVEL, q, after_step(mechanism, v, touching.a, step), acts)
    rows, b, (friction, e) = look.rows, look.before.copy(), touching.arrays.contact_f[look.rows, :c.ARM].T
    gap, before, free = np.where(touching.is_moment(rows), 0.0, gap[rows]), before[rows], b[:, 0].copy()
    rebound = (e > 0.0) & (before < 0.0) & (gap + step * free <= 0.0) & (-e * before > 2.0 * np.abs(free - before))
    theta = touching.touch.theta[:9 * len(rows)**2].reshape(3 * len(rows), 3 * len(rows))
    k, d = touching.arrays.contact_f[rows][:, [c.STIFFNESS, c.DAMPING]].T
    ratio, soft = k / (step * k + d + (k == 0.0)), np.flatnonzero(k)  # as in `contact/soft_contacts.py`
    b[:, 0] += np.where(rebound, e * before, np.where(gap > CLOSED_GAP, gap / step, ratio * gap))
    theta[3 * soft, 3 * soft] += 1.0 / (step * (step * k[soft] + d[soft]))
    for place in np.flatnonzero(touching.is_dry(rows)):
        b[place, 0] = -step * theta[3 * place, 3 * place] * touching.given.joint_f[rows[place], c.JOINT_BOUND]
    answer = solve_problem(theta, b.ravel(), friction, smallest=not touching.has_moments,
                           back=touching.arrays.contact_i[rows, c.CONTACT_BACK])
    touching.touch.found[:] = found
    touching.set_modes([])
    touching.touch.modes[rows] = [MODES.index(mode) for mode in answer.modes]
    return _listed(touching, q, rows, answer.force / step, look.axes, answer.residual)


def after_step(mechanism: Mechanism, v, a, step: float) -> np.ndarray:
    """v + step a; for free joints in fixed axes: those at the beginning of the step."""
    end = v + step * a
    for link in mechanism.links:
        if isinstance(link.joint, Free):
            at = mechanism.v_slice(link.joint_name).start
            end[at:at + 3] += step * np.cross(v[at + 3:at + 6], v[at:at + 3])
    return end


def forces_of_last_step(touching: Touching, q, step: float) -> Contacts:
    """Contacts at q with their forces in the time step that ended there: impulses divided by the step."""
    touch = touching.touch
    n, margin = int(touch.count[ACTIVE]), CONTACT_NEAR
    last = touch.active[:n].copy()
    axes = touching.axes(last)
    identity, before = identities(touching.arrays, last), touch.found.reshape(-1, c.FOUND)[last]
    while True:
        arrays, found = contacts_near(touching.mechanism, np.asarray(q), margin)
        rows = numbers(arrays, identity)
        if (rows >= 0).all():
            break
        margin *= 4.0
    lost, modes = ~np.isfinite(found[rows, c.FOUND_GAP]) & (rows >= touching.joints), np.full(len(found), OPEN)
    found[rows[lost]], modes[rows] = before[lost], touch.modes[last]
    return _with_forces(touching, q, arrays, found, rows, touch.held.reshape(-1, 3)[last] / step, axes, modes,
                        float(touch.residual[0]))
