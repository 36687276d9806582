"""Derivatives of forward and inverse dynamics, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bunraku.entries import closed_solution as closed
from bunraku.entries import derivative_entries as entries
from bunraku.entries.closed_derivatives import closed_derivatives, force_derivatives
from bunraku.errors import ContactError, ModelError, ShapeError
from bunraku.evaluate.constraints import one_state
from bunraku.evaluate.contacts import contacts
from bunraku.evaluate.dynamics import external_forces, with_prescribed, with_resistance
from bunraku.mechanism import Mechanism
from bunraku.mechanism.joints import FRICTION, HARD
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.plan.fields import LOWER, UPPER
from bunraku.tolerances import CLOSED


class Derivatives(NamedTuple):
    """Derivatives of the accelerations of forward dynamics, (nv, nv) each, or (B, nv, nv) of a batch.

    Row i belongs to acceleration i. Column j of `da_dq` is for a small move v dt along velocity j alone, as
    `Mechanism.integrate` makes it: quaternions are varied by small turns in child axes.

    With connections or closed contacts: da = da_dq dq + da_dv dv for changes that keep every loop and contact closed,
    J dq = 0 and J dv + rates_dq dq = 0. `da_dtau` holds those of accelerations whatever tau.
    """

    da_dq: np.ndarray
    da_dv: np.ndarray
    da_dtau: np.ndarray   # of a tree without prescribed joints the inverse of the mass matrix
    a: np.ndarray         # the accelerations themselves
    jacobian: np.ndarray  # J of the connections, then of closed contacts (rows, nv); no rows without
    rates_dq: np.ndarray  # derivative of J v by coordinates, likewise


class InverseDerivatives(NamedTuple):
    """Derivatives of the torques of inverse dynamics, (nv, nv) each, or (B, nv, nv) of a batch; columns as in
    `Derivatives`."""

    dtau_dq: np.ndarray
    dtau_dv: np.ndarray
    dtau_da: np.ndarray   # the mass matrix, armature included


def derivatives(mechanism: Mechanism, q, v, tau=None, *, external: Mapping | None = None,
                prescribed: Mapping | None = None, passive: bool = True, workers: int | None = None) -> Derivatives:
    """How the accelerations of `forward_dynamics` change with coordinates, velocities and torques; arguments as there.

    Forces of `external` keep their directions in the world while the links they act on move. Column j of a joint whose
    acceleration is prescribed is, in `da_dtau`, for that acceleration in place of its torque. Where a limit begins to
    act, the derivative is the one-sided derivative of the branch that applies to the state.

    Where contacts are closed, joints with friction are at rest or joints are at hard limits, it is that of the motion
    in which each of them keeps its mode: sticking ones are constraints, as connections are (`jacobian`), sliding ones
    have friction against their slip. Raises a ContactError at an impact.

    With connections, `da_dtau` has nv columns, or nv + nc like tau if the drives of connections are given there. Where
    connections are redundant, their forces are indeterminate and the accelerations and their derivatives are not.
    """
    plan = as_mechanism(mechanism).plan(None if passive else "bare")
    if passive and mechanism.needs_contact():
        held = in_contact(mechanism, q, v)
        if held.any():
            return _in_contact(mechanism, held, q, v, tau, external, prescribed)
        tau = with_resistance(mechanism, tau, -mechanism.coulomb_friction() * np.sign(np.asarray(v, float)))
    if prescribed:
        plan, tau = with_prescribed(mechanism, plan, passive, tau, prescribed)
    pushed = external_forces(mechanism, external)
    if plan.loops is not None:
        return _closed(plan, q, v, tau, pushed)
    a, by = entries.forward_derivatives(plan, q, v, tau, pushed, workers)
    none = a[..., None, :][..., :0, :]
    return Derivatives(by[0], by[1], by[2], a, none, none)


def inverse_derivatives(mechanism: Mechanism, q, v, a, *, external: Mapping | None = None, passive: bool = True,
                        workers: int | None = None) -> InverseDerivatives:
    """How the torques of `inverse_dynamics` change with coordinates, velocities and accelerations; arguments as there.

    Columns and `external` as in `derivatives`.
    """
    plan = as_mechanism(mechanism).plan(None if passive else "bare")
    if plan.loops is not None:
        raise ModelError(f"{mechanism.name} has connections or couplings, and inverse_derivatives is for trees; "
                         "derivatives takes both")
    by = entries.inverse_derivatives(plan, q, v, a, external_forces(mechanism, external), workers)
    return InverseDerivatives(by[0], by[1], by[2])


class ForceDerivatives(NamedTuple):
    """Derivatives of the wrench (force, moment) that a connection passes to link b, at the joint frame's origin in
    child-side axes: (6, nv) each, along changes as in `Derivatives`."""

    df_dq: np.ndarray
    df_dv: np.ndarray
    df_dtau: np.ndarray


def connection_force_derivatives(mechanism: Mechanism, q, v, tau=None, *,
                                 external: Mapping | None = None) -> dict[str, ForceDerivatives]:
    """{connection: ForceDerivatives}: how the force of each connection, as in `joint_forces`, changes with coordinates,
    velocities and torques, in one state.

    For changes that keep every loop closed. Raises a ConstraintError where connections are redundant, since their
    forces are indeterminate. Compound and driven planar connections are rejected.
    """
    one_state(q, v, tau)
    plan = as_mechanism(mechanism).plan()
    if plan.loops is None:
        raise ModelError(f"{mechanism.name} has no connections; bk.joint_forces has the forces of tree joints")
    if mechanism.needs_contact() and in_contact(mechanism, q, v).any():
        raise ContactError("derivatives of connection forces are for motion without contact; mechanism.copy() without "
                           "planes has none")
    tau, drives = closed.split(plan, tau)
    width, nv = plan.nv + (0 if drives is None else plan.loops.freedoms), plan.nv
    _, state = closed.aligned_states(plan, q, v, tau, drives, external_forces(mechanism, external))
    found = force_derivatives(plan, closed_derivatives(plan, *state))
    return {name: ForceDerivatives(table[:, :nv], table[:, nv:2 * nv], table[:, 2 * nv:2 * nv + width])
            for name, table in found.items()}


def _closed(plan, q, v, tau, pushed):
    """Of a closed structure: one state after the other."""
    tau, drives = closed.split(plan, tau)
    width = plan.nv + (0 if drives is None else plan.loops.freedoms)
    batch, (q, v, tau, drives, pushed) = closed.aligned_states(plan, q, v, tau, drives, pushed)
    states = [[x if x is None or batch is None else x[k] for x in (q, v, tau, drives, pushed)]
              for k in range(1 if batch is None else batch)]
    found = [closed_derivatives(plan, *state) for state in states]
    if batch is None:
        return Derivatives(found[0].da_dq, found[0].da_dv, found[0].da_dtau[:, :width], found[0].a, found[0].jacobian,
                           found[0].rates_dq)
    nv, rows = plan.nv, plan.loops.rows

    def together(name, *shape):
        return np.array([getattr(d, name) for d in found]).reshape(batch, *shape)

    da_dtau = together("da_dtau", nv, nv + plan.loops.freedoms)[..., :width]
    return Derivatives(together("da_dq", nv, nv), together("da_dv", nv, nv), da_dtau, together("a", nv),
                       together("jacobian", rows, nv), together("rates_dq", rows, nv))


def in_contact(mechanism, q, v) -> np.ndarray:
    """(states,) whether contacts are closed, joints with friction at rest or at hard limits."""
    q, v = np.atleast_2d(np.asarray(q, float)), np.atleast_2d(np.asarray(v, float))
    held = np.zeros(max(len(q), len(v)) if len(q) and len(v) else 0, bool)
    if mechanism.may_touch():
        held |= np.array([len(contacts(mechanism, state, margin=CLOSED)) > 0 for state in q])
    for link in mechanism.links if mechanism.has_joint_laws() else ():
        laws, passive = link.joint.laws, link.joint.passive
        if laws.any():
            at, place = mechanism.v_slice(link.joint_name), q[:, mechanism.q_slice(link.joint_name)]
            beyond = (place <= passive[:, LOWER] + CLOSED) | (place >= passive[:, UPPER] - CLOSED)
            held |= ((v[:, at] == 0.0) & (laws[:, FRICTION] > 0.0)).any(axis=1)
            held |= (beyond & (laws[:, HARD] > 0.0)).any(axis=1)
    return held


def _in_contact(mechanism, held, q, v, tau, external, prescribed):
    """Of states some of which are in contact, one after the other."""
    from bunraku.evaluate.contact_forces import contact_inputs

    locked, batch, (q, v, tau, drives, pushed) = contact_inputs(mechanism, q, v, tau, external, prescribed)
    width = mechanism.nv + (0 if drives is None else mechanism.nc)
    found = []
    for k in range(1 if batch is None else batch):
        state = [x if x is None or batch is None else x[k] for x in (q, v, tau, drives, pushed)]
        found.append(_one_in_contact(mechanism, locked, state, width))
    if batch is None:
        return found[0]
    if len({len(d.jacobian) for d in found}) > 1:
        raise ShapeError("states of this batch have different numbers of constraints by contact, so their Jacobians "
                         "have different shapes; ask for the states one by one")
    return Derivatives(*(np.array(part) for part in zip(*found, strict=True)))


def _one_in_contact(mechanism, locked, state, width) -> Derivatives:
    from bunraku.evaluate.contact_derivatives import contact_derivatives
    from bunraku.evaluate.contact_forces import contact_acts, take_modes_of_state, touching_of

    q, v, tau, drives, pushed = state
    touching = touching_of(mechanism, locked, np.ascontiguousarray(q))
    acts = contact_acts(touching, tau, np.zeros(mechanism.nc) if drives is None else drives, pushed)
    q, v = np.ascontiguousarray(q), np.ascontiguousarray(v)
    take_modes_of_state(touching, q, v, acts)
    d = contact_derivatives(touching, q, v, acts)
    jacobian, rates = d.jacobian, d.rates_dq
    if touching.plan.loops is not None:
        loops = closed_derivatives(touching.plan, q, v, acts.tau, acts.drives, pushed)
        jacobian, rates = np.vstack([loops.jacobian, jacobian]), np.vstack([loops.rates_dq, rates])
    return Derivatives(d.da_dq, d.da_dv, d.da_dtau[:, :width], d.a, jacobian, rates)
