"""Linear models of the motion near a state, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bunraku.checks import as_floats, as_positive
from bunraku.errors import ContactError, ModelError, SettingError, StateError
from bunraku.evaluate.constraints import one_state
from bunraku.evaluate.derivatives import Derivatives, derivatives, in_contact
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.plan import fields as f
from bunraku.tolerances import SINGULAR_VALUE


@dataclass(frozen=True, eq=False)
class LinearModel:
    """dx/dt = A x + B u near a state, with x = (small move, change of v) and u the change of torques.

    Moves are as in `Mechanism.integrate` and `Mechanism.difference`. With connections, x has to keep loops closed: it
    is a sum of columns of `basis`, and `reduced()` is the model in terms of these.
    """

    A: np.ndarray      # (2 nv, 2 nv)
    B: np.ndarray      # (2 nv, number of torques)
    basis: np.ndarray  # (2 nv, twice the degrees of freedom), the identity without connections
    a: np.ndarray      # accelerations in this state: zero in an equilibrium at rest

    def reduced(self) -> tuple[np.ndarray, np.ndarray]:
        """(A, B) of x = basis y, for an equilibrium at rest, where the basis stays what it is."""
        back = np.linalg.pinv(self.basis)
        return back @ self.A @ self.basis, back @ self.B


def linearise(mechanism: Mechanism, q, v=None, tau=None, *, external: Mapping | None = None,
              prescribed: Mapping | None = None, passive: bool = True) -> LinearModel:
    """The linear model of the motion near one state (at rest if v is not given); arguments as in `derivatives`.

    Near a state in motion it holds at that instant: small changes of a motion obey it with A and B at each time.
    """
    one_state(q, v, tau)
    nv = as_mechanism(mechanism).nv
    v = np.zeros(nv) if v is None else as_floats("v", v, nv)
    d = derivatives(mechanism, q, v, tau, external=external, prescribed=prescribed, passive=passive)
    A = np.block([[-turned_by(mechanism.plan(), v), np.eye(nv)], [d.da_dq, d.da_dv]])
    B = np.vstack([np.zeros_like(d.da_dtau), d.da_dtau])
    return LinearModel(A, B, closed_changes(d), d.a)


def turned_by(plan, v) -> np.ndarray:
    """v x move, for joints whose moves are in turning axes: what a move changes by although its velocity does not."""
    out = np.zeros((*v.shape, plan.nv))
    for at in turning_joints(plan):
        out[..., at, at] = turning(v[..., at])
    return out


def turning_joints(plan) -> list[slice]:
    """Velocities of each joint whose moves are in turning axes: spherical and free ones."""
    return [slice(row[f.V_INDEX], row[f.V_INDEX] + row[f.DOF]) for row in plan.body_i[:-1].tolist()
            if row[f.KIND] in (f.SPHERICAL, f.FREE)]


def turning(v) -> np.ndarray:
    """v x, as matrices: of angular velocities (3), or of linear and angular ones (6)."""
    if v.shape[-1] == 3:
        return _cross(v)
    out = np.zeros((*v.shape, 6))
    out[..., :3, :3] = out[..., 3:, 3:] = _cross(v[..., 3:])
    out[..., :3, 3:] = _cross(v[..., :3])
    return out


def _cross(w) -> np.ndarray:
    """w x, as matrices."""
    return np.stack([0.0 * w[..., 0], -w[..., 2], w[..., 1], w[..., 2], 0.0 * w[..., 0], -w[..., 0], -w[..., 1],
                     w[..., 0], 0.0 * w[..., 0]], axis=-1).reshape(*w.shape, 3)


def closed_changes(d) -> np.ndarray:
    """Changes (move, of v) that keep loops closed: J move = 0 and J dv + rates_dq move = 0."""
    J, nv = d.jacobian, len(d.a)
    if not len(J):
        return np.eye(2 * nv)
    left, values, right = np.linalg.svd(J)
    rank = int((values > SINGULAR_VALUE * values.max(initial=0.0)).sum())
    N = right[rank:].T
    if not N.shape[1]:
        raise StateError("connections leave nothing free to move, so there is no linear model")
    dv = -right[:rank].T @ ((left[:, :rank].T @ d.rates_dq @ N) / values[:rank, None])
    return np.block([[N, np.zeros_like(N)], [dv, N]])


# -- one step ----------------------------------------------------------------------------------------------------------


class StepDerivatives(NamedTuple):
    """Derivatives of the state after a step with respect to the state before, x = (move, v): dx' = A dx + B dtau."""

    A: np.ndarray  # (2 nv, 2 nv), or (B, 2 nv, 2 nv)
    B: np.ndarray  # (2 nv, nv)
    q: np.ndarray  # after the step
    v: np.ndarray


TERMS, LONGEST = 24, 3.0
"""Terms of the exponential series of a step's turn, and the largest turn and travel for which they are exact."""
ROUNDING = 1e-18  # of terms that follow


def step_derivatives(mechanism: Mechanism, q, v, tau=None, *, step: float, external: Mapping | None = None,
                     passive: bool = True, workers: int | None = None) -> StepDerivatives:
    """Derivatives of a step of "symplectic_euler", v' = v + step a(q, v, tau), q' = q moved by step v'; trees only.

    One state or a batch, such as all steps of a motion: arguments as in `derivatives`. The gradient of a final cost
    with respect to every torque is a product of these matrices, from the end to the start (docs/derivatives.md).
    """
    step = as_positive("step", step, SettingError)
    plan = as_mechanism(mechanism).plan()
    if plan.loops is not None:
        raise ModelError(f"{mechanism.name} has connections, and step_derivatives is for trees; linearise and "
                         "derivatives take both")
    if passive and mechanism.needs_contact() and in_contact(mechanism, q, v).any():
        raise ContactError("step_derivatives is for steps without contact, and here shapes touch, or a joint with "
                           "friction is at rest or at a hard limit; passive=False leaves them out")
    d = derivatives(mechanism, q, v, tau, external=external, passive=passive, workers=workers)
    return after_step(mechanism, q, v, d, step)


def after_step(mechanism: Mechanism, q, v, d: Derivatives, step: float) -> StepDerivatives:
    """Of a step from (q, v) with the accelerations and derivatives `d`; of closed chains that of their tree, before
    loops are closed again."""
    plan = mechanism.plan()
    nv = plan.nv
    v = np.broadcast_to(np.asarray(v, float), d.a.shape) + step * d.a
    of_v = np.concatenate([step * d.da_dq, np.eye(nv) + step * d.da_dv], axis=-1)
    of_tau = step * d.da_dtau
    of_q, at_once = step * of_v, step * of_tau
    places = np.arange(nv)
    of_q[..., places, places] += 1.0
    for at in turning_joints(plan):
        turned, moved = after_move(short(turning(step * v[..., at])))
        of_q[..., at, :] = step * moved @ of_v[..., at, :]
        of_q[..., at, at] += turned
        at_once[..., at, :] = step * moved @ of_tau[..., at, :]
    return StepDerivatives(np.concatenate([of_q, of_v], axis=-2), np.concatenate([at_once, of_tau], axis=-2),
                           mechanism.integrate(np.broadcast_to(np.asarray(q, float), (*d.a.shape[:-1], plan.nq)),
                                               step * v), v)


def short(turn):
    """A turn that a step may make."""
    if not np.abs(turn).max(initial=0.0) <= LONGEST:
        raise SettingError(f"a step turns or moves a joint by {np.abs(turn).max():.3g} (rad or m), more than "
                           f"{LONGEST:g}; take a smaller one")
    return turn


def after_move(turn):
    """How a change before a move, and one of the move itself, appear behind it: exp(-turn) and the mean of
    exp(-s turn) over s from 0 to 1. The inverse of the second is how the move to a state changes with that state."""
    whole = mean = term = np.broadcast_to(np.eye(turn.shape[-1]), turn.shape)
    for k in range(1, TERMS):
        term = term @ turn / -k
        whole, mean = whole + term, mean + term / (k + 1)
        if not np.abs(term).max(initial=0.0) > ROUNDING:
            break
    return whole, mean
