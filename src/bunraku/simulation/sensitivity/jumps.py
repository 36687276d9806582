"""Derivatives of what happens at an event: maps of states, and the functions whose zero is the event.

A map of the state x = (small move, velocity) has the derivative D (by the state before) and P (by parameters). Impacts
of connections are solved by the derivatives of forward dynamics at rest (`impact_derivatives`); impacts of contacts,
whose law is not smooth, by differences of order eight with the same contacts, which keep their modes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bunraku.contact import contact_fields as c
from bunraku.contact.contact_fields import OPEN, SLIDING
from bunraku.contact.contact_memory import FEATURES
from bunraku.contact.contact_motion import HOLD_SPEED, IMPACT, KEEP, LOOK
from bunraku.entries import derivative_entries
from bunraku.entries.closed_derivatives import closed_derivatives, impact_derivatives
from bunraku.errors import ModelError, SimulationError
from bunraku.evaluate import kinematics
from bunraku.evaluate.contact_derivatives import STEP, columns, slope
from bunraku.evaluate.parameter_derivatives import inertia_alone, torque_derivatives
from bunraku.mechanism import Coupling, Mechanism
from bunraku.mechanism.connections import Carry
from bunraku.plan import fields as f
from bunraku.simulation.contact_settling import Struck
from bunraku.simulation.sensitivity.smooth_motion import Motion, Wanted, of_shape
from bunraku.simulation.state_changes import Kick
from bunraku.simulation.structure_changes import Strikes

INERTIA = ("mass", "com", "inertia", "inertial", "armature")
"""Parameters on which impulses depend."""
SLOWER = 0.01  # part of a velocity by which it is varied, where its direction matters
SAME_IMPACT = 1e-6
NO_SLIP = 1e-6  # of the largest velocity: what the errors of a solver leave where slip passes zero


class Jump(NamedTuple):
    """Derivative of the state after by the one before (n+, n-), and by parameters (n+, k)."""

    D: np.ndarray
    P: np.ndarray


class Guard(NamedTuple):
    """Derivative of a function that is zero at an event, by the state (n,) and by time."""

    by_state: np.ndarray
    by_time: float = 0.0


def cut(carry: Carry, q, v, before: Mechanism, after: Mechanism, count: int) -> Jump:
    """Every link keeps its pose and velocity."""
    nv, there = before.nv, carry(q, v)[0]

    def moved(change):
        q_after, v_after = carry(before.integrate(q, change[:nv]), v + change[nv:])
        return np.concatenate([after.difference(there, q_after), v_after])

    return Jump(columns(moved, 2 * nv), np.zeros((2 * after.nv, count)))


def connect(by: Strikes, q, v, after: Mechanism, wanted: Wanted) -> Jump:
    """Velocities jump, coordinates stay: frames are captured where the links are, so that every state is closed."""
    if isinstance(by.made, Coupling):
        refuse: bool = by.frame_a is not None
    else:
        refuse = by.frame_a[0] is not None or bool(by.made.joint.passive[:, f.STIFFNESS].any())
    if refuse:
        raise ModelError("sensitivities: a connection made while the simulation runs must capture the frame on its "
                         "first link (give position_b alone, or none) and have no spring, and a coupling must capture "
                         "its offset: otherwise nearby states could not be connected")
    if not isinstance(by.made, Coupling) and by.frame_b[0] is None and by.frame_a[0] is not None:
        raise ModelError("sensitivities: give position_b instead of position_a")
    plan = inertia_alone(after.plan())
    found = impact_derivatives(plan, q, v)
    nv, P = after.nv, np.zeros((2 * after.nv, len(wanted.names)))
    for column, push in pushes(after, q, found.v - v, wanted):
        P[nv:, column] = -found.by_push @ push
    return Jump(np.block([[np.eye(nv), np.zeros((nv, nv))], [found.by_q, found.by_v]]), P)


def pushes(mechanism: Mechanism, q, change, wanted: Wanted):
    """(column, (nv,)): derivatives of M (v+ - v) by parameters, v+ - v being given."""
    plan = inertia_alone(mechanism.plan())
    for column, parameter in wanted.mechanical:
        if parameter.what in INERTIA:
            table = torque_derivatives(mechanism, q, 0.0 * change, change, [parameter], plan)
            for k in range(len(parameter.names)):
                yield column + k, table[:mechanism.nv, k]


def kick(by: Kick, q, v, mechanism: Mechanism, wanted: Wanted) -> Jump:
    """An impulse: forward dynamics at rest, without gravity and springs, with the impulse for a force."""
    nv, count = mechanism.nv, len(wanted.names)
    plan, point = inertia_alone(mechanism.plan()), np.asarray(by.point, float)
    moved, link = kinematics(mechanism, q), mechanism.find_link(by.link, "impulse")
    arm, jacobian = moved.poses[by.link][0] @ point, moved.jacobian(by.link)
    forces = np.zeros(6 * plan.links)
    forces[6 * link:6 * link + 6] = by.wrench + np.concatenate([np.zeros(3), np.cross(arm, by.wrench[:3])])
    if plan.loops is None:
        a, found = derivative_entries.forward_derivatives(plan, q, 0.0 * v, None, forces, None)
        by_q, by_push = found[0], found[2]
    else:
        d = closed_derivatives(plan, q, 0.0 * v, plan.zero_tau, None, forces)
        a, by_q, by_push = d.a, d.da_dq, d.da_dtau[:, :nv]
    turned = np.cross(np.cross(jacobian[3:], arm, axisa=0), by.wrench[:3])  # (nv, 3): the arm turns with the link
    D = np.eye(2 * nv)
    D[nv:, :nv] = by_q + by_push @ (jacobian[3:].T @ turned.T)
    P = np.zeros((2 * nv, count))
    for column, push in pushes(mechanism, q, a, wanted):
        P[nv:, column] = -by_push @ push
    return Jump(D, P)


# -- contact -----------------------------------------------------------------------------------------------------------


def strike(motion: Motion, t: float, q, struck: Struck, wanted: Wanted) -> Jump:
    """An impact of contacts. Restitution that was reduced, since it would have gained energy, has no derivative."""
    touching, mechanism, nv = motion.in_modes(), motion.mechanism, motion.mechanism.nv
    q, v, acts = motion.state(t, q, struck.v)
    own = touching.arrays.contact_f
    kept_features(touching, struck.closed, q, v, acts)

    def after(q=q, v=v, e=struck.restitution):
        touching.set_modes(struck.closed)
        touching.solve(IMPACT, q, v, acts, np.ascontiguousarray(e))
        return v + touching.touch.delta

    reference = after()
    if np.abs(reference - struck.after).max() > SAME_IMPACT * (1.0 + np.abs(v).max()):
        raise SimulationError(f"at t = {t:.6g} s an impact with friction would gain energy by its restitution, which "
                              "is reduced: there are no sensitivities across it")
    fine = min(STEP, SLOWER * float(np.abs(v).max(initial=1.0)) or STEP)
    D = np.eye(2 * nv)
    D[nv:, :nv] = columns(lambda move: after(q=mechanism.integrate(q, move)), nv)
    D[nv:, nv:] = columns(lambda more: after(v=v + more), nv, fine)
    P = np.zeros((2 * nv, len(wanted.names)))
    touching.set_modes(struck.closed)
    look = touching.solve(LOOK, q, v, acts)
    for column, push in pushes(mechanism, q, reference - v, wanted):
        w = -free_response(motion, t, q, v) @ push

        def pushed(h, w=w):  # the approach to which restitution belongs is that without the push
            e, before = struck.restitution.copy(), look.before[:, 0]
            touching.set_modes(struck.closed)
            there = touching.solve(LOOK, q, v + h * w, acts).before[:, 0]
            e[look.rows] *= np.divide(before, there, out=np.ones_like(there), where=there != 0.0)
            return after(v=v + h * w, e=e)

        size = fine / max(1.0, float(np.abs(w).max(initial=0.0)))
        P[nv:, column] = slope(pushed, size)
    for column, what, name in wanted.shapes:
        of = of_shape(touching, what, name)
        if what == "restitution":
            of[struck.restitution == 0.0] = 0.0
            P[nv:, column] = slope(lambda h, of=of: after(e=struck.restitution + h * of))
        else:
            P[nv:, column] = slope(lambda h, of=of: with_friction(own, h * of, after))
    return Jump(D, P)


def with_friction(contact_f, more, function):
    """function() while the friction of contacts is changed."""
    before = contact_f.copy()
    contact_f[:, c.FRICTION] += more
    try:
        return function()
    finally:
        contact_f[:] = before


def free_response(motion: Motion, t: float, q, v) -> np.ndarray:
    """(nv, nv): changes of velocity by generalised impulses, without contact."""
    plan = inertia_alone(motion.mechanism.plan())
    if plan.loops is None:
        return derivative_entries.forward_derivatives(plan, q, 0.0 * v, None, None, None)[1][2]
    return closed_derivatives(plan, q, 0.0 * v, plan.zero_tau, None, None).da_dtau[:, :motion.mechanism.nv]


def kept_features(touching, closed, q, v, acts) -> None:
    """Let closed contacts keep their features, so that they vary smoothly."""
    touching.touch.features.reshape(-1, FEATURES)[:] = 0.0
    touching.set_modes(closed)
    touching.solve(KEEP, q, v, acts)


def hold(motion: Motion, t: float, q, v, modes, count: int) -> Jump:
    """Slip has come to an end: the velocity is what sticking contacts allow."""
    touching, mechanism, nv = motion.in_modes(), motion.mechanism, motion.mechanism.nv
    q, v, acts = motion.state(t, q, v)
    kept_features(touching, np.flatnonzero(modes != OPEN), q, v, acts)

    def after(q=q, v=v):
        touching.touch.modes[:] = modes
        touching.solve(HOLD_SPEED, q, v, acts)
        return v + touching.touch.delta

    D = np.eye(2 * nv)
    D[nv:, :nv] = columns(lambda move: after(q=mechanism.integrate(q, move)), nv)
    D[nv:, nv:] = columns(lambda more: after(v=v + more), nv)
    return Jump(D, np.zeros((2 * nv, count)))


def gap_guard(motion: Motion, t: float, q, v, k: int) -> Guard:
    """The gap of contact k: its rate is the normal velocity."""
    speeds = _speeds(motion, t, q, v, [k])
    nothing = speeds(q, 0.0 * v)[:, 0]
    rows = np.stack([speeds(q, unit)[:, 0] - nothing for unit in np.eye(len(v))], axis=-1)
    return Guard(np.concatenate([rows[0], 0.0 * v]))


def slip_guard(motion: Motion, t: float, q, v, k: int) -> Guard:
    """The slip of contact k along its direction."""
    speeds, mechanism = _speeds(motion, t, q, v, [k]), motion.mechanism
    slip = speeds(q, v)[0, 1:]
    size = float(np.linalg.norm(slip))
    along = slip / size if size > 0.0 else np.array([1.0, 0.0])

    def speed(q=q, v=v):
        return along @ speeds(q, v)[0, 1:]

    nothing = speed(v=0.0 * v)
    by_v = np.array([speed(v=unit) - nothing for unit in np.eye(len(v))])
    return Guard(np.concatenate([columns(lambda move: speed(q=mechanism.integrate(q, move)), len(v)), by_v]))


def slow_slips(motion: Motion, t: float, q, v, before, after) -> np.ndarray:
    """Contacts with friction that slide on, but whose slip has just passed zero."""
    rough = motion.in_modes().arrays.contact_f[:, c.FRICTION] > 0.0
    rows = np.flatnonzero((before == SLIDING) & (after == SLIDING) & rough)
    if not rows.size:
        return rows
    slips = _speeds(motion, t, q, v, rows)(q, v)[:, 1:]
    return rows[np.hypot(slips[:, 0], slips[:, 1]) < NO_SLIP * max(1.0, float(np.abs(v).max()))]


def _speeds(motion: Motion, t: float, q, v, rows):
    """Function of q and v: velocities (normal, two tangents) of contacts."""
    touching = motion.in_modes()
    q, v, acts = motion.state(t, q, v)
    kept_features(touching, rows, q, v, acts)

    def speeds(q, v):
        touching.set_modes(rows)
        return touching.solve(LOOK, np.ascontiguousarray(q), np.ascontiguousarray(v), acts).before

    return speeds
