"""Derivatives of forward and inverse dynamics, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bunraku.entries import closed_solution as closed
from bunraku.entries import derivative_entries as entries
from bunraku.entries.closed_derivatives import closed_derivatives
from bunraku.errors import ContactError, ModelError
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

    With connections: da = da_dq dq + da_dv dv for changes that keep every loop closed, J dq = 0 and
    J dv + rates_dq dq = 0. `da_dtau` holds those of accelerations whatever tau.
    """

    da_dq: np.ndarray
    da_dv: np.ndarray
    da_dtau: np.ndarray   # of a tree without prescribed joints the inverse of the mass matrix
    a: np.ndarray         # the accelerations themselves
    jacobian: np.ndarray  # J of the connections (rows, nv); no rows without
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
    act, the derivative is that of the side the state is on. A ContactError where a contact is closed, a
    joint with friction is at rest, or one is at a hard limit: there is no derivative there.

    With connections, `da_dtau` has nv columns, or nv + nc like tau if the drives of connections are given there. Where
    connections are redundant, their forces are indeterminate and the accelerations and their derivatives are not.
    """
    plan = as_mechanism(mechanism).plan(None if passive else "bare")
    if passive and mechanism.may_touch():
        _refuse_contact(mechanism, q)
    if passive and mechanism.has_joint_laws():
        tau = _with_friction(mechanism, q, v, tau)
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


def _refuse_contact(mechanism, q):
    for k, state in enumerate(np.atleast_2d(np.asarray(q, float))):
        for contact in contacts(mechanism, state, margin=CLOSED):
            a, b = contact.pair
            raise ContactError(f"state {k}: {a!r} and {b!r} touch, and derivatives are for motion without contact; "
                               "mechanism.copy() without planes has none")


def _with_friction(mechanism, q, v, tau):
    """tau with the friction of joints that move; a ContactError where one sticks or is at a hard limit."""
    q, v, friction = np.asarray(q, float), np.asarray(v, float), mechanism.coulomb_friction()
    for link in mechanism.links:
        if not link.joint.laws.any():
            continue
        at, laws = mechanism.v_slice(link.joint_name), link.joint.laws
        place, passive = q[..., mechanism.q_slice(link.joint_name)], link.joint.passive
        sticks = (v[..., at] == 0.0) & (laws[:, FRICTION] > 0.0)
        beyond = (place <= passive[:, LOWER] + CLOSED) | (place >= passive[:, UPPER] - CLOSED)
        stopped = beyond & (laws[:, HARD] > 0.0)
        for wrong, why in ((sticks, "is at rest, and its friction"), (stopped, "is at a hard limit, which")):
            if wrong.any():
                raise ContactError(f"joint {link.joint_name!r} {why} has no derivative there; passive=False leaves "
                                   "friction and hard limits out")
    resistance = -friction * np.sign(v)
    return with_resistance(mechanism, tau, resistance)
