"""`lqr`: the linear-quadratic regulator of an equilibrium, of trees and of closed chains.

The linear model of small changes x (`bk.linearise`) is reduced to those that keep loops closed, x = basis y. The gain
for y that makes the integral of x.Q x + u.R u least comes from the algebraic Riccati equation; for x it is that times
the pseudoinverse of the basis. Reference: Anderson, Moore (1990), "Optimal control: linear quadratic methods".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from bunraku.checks import as_finite, as_floats
from bunraku.control import Controller, state_feedback
from bunraku.errors import ShapeError, StateError
from bunraku.evaluate.dynamics import inverse_dynamics
from bunraku.evaluate.linear_models import LinearModel, linearise
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.optimal_control.planner import motors

AT_REST = 1e-6       # largest acceleration of an equilibrium, part of that of gravity, per metre or radian


@dataclass(frozen=True, eq=False)
class Regulator:
    """Result of `lqr`: tau = (tau of the equilibrium) - gain x, with x = (difference of q from it, v)."""

    mechanism: Mechanism
    q: np.ndarray
    tau: np.ndarray      # (nv,) that hold the equilibrium
    gain: np.ndarray     # (nv, 2 nv)
    value: np.ndarray    # P (2 nv, 2 nv): x.P x is the cost from x on
    poles: np.ndarray    # of the regulated motion [1/s]: all have negative real parts
    model: LinearModel

    def controller(self, limits=None) -> Controller:
        """A compiled controller for simulations; `limits` are the largest torques, a number or (nv,)."""
        return state_feedback(self.mechanism, self.q, -self.gain, tau=self.tau, limits=limits)


def lqr(mechanism: Mechanism, q, Q=None, R=None, *, tau=None, joints: Sequence[str] | None = None,
        prescribed: Mapping | None = None) -> Regulator:
    """The regulator that returns to an equilibrium at rest after small disturbances, with the least integral of
    x.Q x + u.R u, x = (difference of q, v) and u the change of torques.

    Q, R        numbers, diagonals or matrices: Q (2 nv), R one for each velocity with a motor; 1 by default
    tau         (nv,) that hold the equilibrium; those of `inverse_dynamics` by default
    joints      that have motors; by default all that are actuated

    Raises a StateError if this is no equilibrium, or if the motors cannot hold it.
    """
    m = as_mechanism(mechanism)
    q, places = as_floats("q", q, m.nq), motors(m, joints)
    if q.ndim != 1:
        raise ShapeError("lqr is of one equilibrium, not of a batch")
    still = np.zeros(m.nv)
    free = np.ones(m.nv, bool)
    free[places] = False
    if tau is None:
        tau = np.asarray(inverse_dynamics(m, q, still, still))[:m.nv].copy()
        tau[free] = 0.0
    else:
        tau = as_floats("tau", tau, m.nv).copy()
    model = linearise(m, q, still, tau, prescribed=prescribed)
    _refuse_motion(m, model.a)
    A, B = model.reduced()
    B = np.ascontiguousarray(B[:, places])
    weight, effort = _matrix("Q", Q, 2 * m.nv), _matrix("R", R, len(places))
    try:
        P = scipy.linalg.solve_continuous_are(A, B, model.basis.T @ weight @ model.basis, effort)
    except np.linalg.LinAlgError:
        raise StateError(_cannot_hold(m, A, B, model.basis)) from None
    own = np.linalg.solve(effort, B.T @ P)
    poles = np.linalg.eigvals(A - B @ own)
    if not poles.real.max() < 0.0:
        raise StateError(_cannot_hold(m, A, B, model.basis))
    back = np.linalg.pinv(model.basis)
    gain = np.zeros((m.nv, 2 * m.nv))
    gain[places] = own @ back
    return Regulator(m, q.copy(), tau, gain, back.T @ P @ back, poles, model)


def _refuse_motion(m, a):
    size = max(1.0, float(np.linalg.norm(m.gravity)))
    worst = int(np.abs(a).argmax())
    if abs(a[worst]) > AT_REST * size:
        link, joint = m.plan().names[m.plan().dof_link[worst]]
        raise StateError(f"this is no equilibrium: joint {joint!r} accelerates by {a[worst]:.3g} (rad or m)/s^2; give "
                         "q of an equilibrium, or `tau` that holds it")


def _matrix(name, value, size):
    array = as_finite(name, 1.0 if value is None else value)
    if array.shape not in ((), (size,), (size, size)):
        raise ShapeError(f"{name} must be a number, ({size},) or ({size}, {size}), not {array.shape}")
    whole = array if array.ndim == 2 else np.diag(np.broadcast_to(array, size))
    if not np.allclose(whole, whole.T) or np.linalg.eigvalsh(whole)[0] < (-1e-12 if name == "Q" else 1e-300):
        raise ShapeError(f"{name} must be symmetric and " + ("positive semidefinite" if name == "Q" else
                                                             "positive definite"))
    return whole


def _cannot_hold(m, A, B, basis) -> str:
    """The error message, which names the growing mode that the motors affect least."""
    values, left, right = scipy.linalg.eig(A, left=True)
    felt = np.linalg.norm(left.conj().T @ B, axis=1)
    for k in np.argsort(felt):
        if values[k].real > -1e-9 * max(1.0, abs(values).max()):
            moves = np.abs((basis @ right[:, k])[:m.nv])
            link, joint = m.plan().names[m.plan().dof_link[int(moves.argmax())]]
            return (f"the motors cannot hold this equilibrium: the motion with eigenvalue {values[k]:.3g} 1/s, largest "
                    f"in joint {joint!r}, is not affected by them or not enough, or has no weight in Q; name further "
                    "joints in `joints`, or give it a weight in Q")
    return "the Riccati equation has no solution: scale Q and R to similar sizes"
