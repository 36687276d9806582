"""Derivatives of forward and inverse dynamics, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bunraku.entries import derivative_entries as entries
from bunraku.errors import ContactError, ModelError
from bunraku.evaluate.contacts import contacts
from bunraku.evaluate.dynamics import external_forces, with_prescribed
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.tolerances import CLOSED


class Derivatives(NamedTuple):
    """Derivatives of the accelerations of forward dynamics, (nv, nv) each, or (B, nv, nv) of a batch.

    Row i belongs to acceleration i. Column j of `da_dq` is for a small move v dt along velocity j alone, as
    `Mechanism.integrate` makes it: quaternions are varied by small turns in child axes.
    """

    da_dq: np.ndarray
    da_dv: np.ndarray
    da_dtau: np.ndarray   # without prescribed joints the inverse of the mass matrix
    a: np.ndarray         # the accelerations themselves


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
    act, the derivative is that of the side the state is on. Without closed contacts.
    """
    plan = _tree_plan(mechanism, q, passive, "derivatives")
    if prescribed:
        plan, tau = with_prescribed(mechanism, plan, passive, tau, prescribed)
    a, by = entries.forward_derivatives(plan, q, v, tau, external_forces(mechanism, external), workers)
    return Derivatives(by[0], by[1], by[2], a)


def inverse_derivatives(mechanism: Mechanism, q, v, a, *, external: Mapping | None = None, passive: bool = True,
                        workers: int | None = None) -> InverseDerivatives:
    """How the torques of `inverse_dynamics` change with coordinates, velocities and accelerations; arguments as there.

    Columns and `external` as in `derivatives`.
    """
    plan = _tree_plan(mechanism, None, passive, "inverse_derivatives")
    by = entries.inverse_derivatives(plan, q, v, a, external_forces(mechanism, external), workers)
    return InverseDerivatives(by[0], by[1], by[2])


def _tree_plan(mechanism, q, passive, name):
    plan = as_mechanism(mechanism).plan(None if passive else "bare")
    if plan.loops is not None:
        raise ModelError(f"{mechanism.name} has connections, and {name} is for trees; cut them, or ask for the tree "
                         "of a copy")
    if q is not None and passive and mechanism.may_touch():
        for k, state in enumerate(np.atleast_2d(np.asarray(q, float))):
            for contact in contacts(mechanism, state, margin=CLOSED):
                a, b = contact.pair
                raise ContactError(f"state {k}: {a!r} and {b!r} touch, and derivatives are for motion without contact; "
                                   "mechanism.copy() without planes has none")
    return plan
