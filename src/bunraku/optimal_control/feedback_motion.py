"""Motion of a mechanism under feedback, and its derivatives, as the planner needs them.

Trees move in one compiled call, and x = (move, change of v) has 2 nv entries. Motions of closed chains are those of
`Worlds`; there x = basis y, where y has two entries for each freedom, so that every change keeps loops closed:

    y' = basis'^+ P' A basis y + ...,   P' the projection onto what loops allow behind the step, in the mass metric

whose derivatives leave out terms of the square of the step. Feedback gains are of x in both.
"""

from __future__ import annotations

import numpy as np

from bunraku.entries.feedback_entries import forward_pass
from bunraku.errors import ModelError, StateError
from bunraku.evaluate.derivatives import derivatives
from bunraku.evaluate.linear_models import after_step, closed_changes, step_derivatives
from bunraku.evaluate.loop_closure import project
from bunraku.evaluate.mass_matrices import mass_matrix
from bunraku.mechanism import Mechanism
from bunraku.simulation import Worlds


class TreeMotion:
    """Of a mechanism without connections."""

    def __init__(self, mechanism: Mechanism, step: float, places: np.ndarray, workers: int | None):
        self.mechanism, self.step, self.places, self.workers = mechanism, step, places, workers
        self.plan = mechanism.plan()

    def start(self, q, v):
        return q, v

    def torques(self, u):
        """(steps, nv) of controls."""
        tau = np.zeros((len(u), self.mechanism.nv))
        tau[:, self.places] = u
        return tau

    def follow(self, length, q, v, u, ahead, gain, gap, lower, upper):
        """(q, v, u) of the motion with changes `length` ahead and feedback about the motion given; None if it has no
        finite end."""
        new = np.empty_like(q), np.empty_like(v), np.empty_like(u)
        done = forward_pass.call(self.plan.arrays, self.step, length, q, v, u, ahead, gain, gap, lower, upper,
                                 self.places, *new)
        return new if done == len(u) else None

    def linear(self, q, v, u):
        """(A, B, gap, None): of changes of the state and of the controls, and gaps between steps."""
        d = step_derivatives(self.mechanism, q[:-1], v[:-1], self.torques(u), step=self.step, workers=self.workers)
        gap = np.hstack([self.mechanism.difference(q[1:], d.q), d.v - v[1:]])
        return np.ascontiguousarray(d.A), np.ascontiguousarray(d.B[:, :, self.places]), gap, None


class ClosedMotion(TreeMotion):
    """Of a mechanism with connections."""

    def __init__(self, mechanism: Mechanism, step: float, places: np.ndarray, workers: int | None):
        super().__init__(mechanism, step, places, workers)
        self.world = Worlds(mechanism, 1, step, solver="symplectic_euler", workers=1, warn=False)

    def start(self, q, v):
        return project(self.mechanism, q, v)

    def follow(self, length, q, v, u, ahead, gain, gap, lower, upper):
        m, w = self.mechanism, self.world
        new_q, new_v, new_u = np.empty_like(q), np.empty_like(v), np.empty_like(u)
        new_q[0], new_v[0] = q[0], v[0]
        w.reset([0], q[0], v[0])
        tau = np.zeros(m.nv)
        for k in range(len(u)):
            x = np.concatenate([m.difference(q[k], new_q[k]), new_v[k] - v[k]])
            tau[self.places] = new_u[k] = np.clip(u[k] + length * ahead[k] + gain[k] @ x, lower[k], upper[k])
            if not np.isfinite(tau).all():
                return None
            w.step(tau)
            if not w.running[0]:
                return None
            new_q[k + 1], new_v[k + 1] = w.q[0], w.v[0]
        return new_q, new_v, new_u

    def linear(self, q, v, u):
        """As of trees, in terms of y; the last result has bases, (steps + 1, 2 nv, 2 freedoms)."""
        m, h, nv = self.mechanism, self.step, self.mechanism.nv
        tau = np.vstack([self.torques(u), np.zeros(nv)])
        each = derivatives(m, q, v, tau, workers=self.workers)
        bases = [closed_changes(type(each)(*(part[k] for part in each))) for k in range(len(q))]
        if len({basis.shape for basis in bases}) > 1:
            raise StateError("the mobility of the closed chain changes on the way: the motion passes through "
                             "a singular configuration, where there are no derivatives")
        basis, M = np.array(bases), mass_matrix(m, q)
        tree = after_step(m, q, v, each, h)
        count = basis.shape[2] // 2
        N, falls = basis[1:, :nv, :count], basis[1:, nv:, :count]   # moves, and velocities that turn with them
        held = N.swapaxes(1, 2) @ M[1:]
        back = np.linalg.solve(held @ N, held)                      # a change in the mass metric -> freedoms

        def reduced(change):
            by_q = back @ change[:, :nv]
            return np.concatenate([by_q, back @ (change[:, nv:] - falls @ by_q)], axis=1)
        A, B = reduced(tree.A[:-1] @ basis[:-1]), reduced(tree.B[:-1][:, :, self.places])
        return (np.ascontiguousarray(A), np.ascontiguousarray(B), np.zeros((len(u), 2 * count)), basis)


def motion_of(mechanism: Mechanism, step: float, places: np.ndarray, workers: int | None):
    closed = mechanism.plan().loops is not None
    if mechanism.may_touch():
        raise ModelError(f"{mechanism.name} can be in contact, and motions are planned without contact; use a "
                         "mechanism without planes and pairs of shapes, or bunraku.envs.planning, which samples")
    if mechanism.has_joint_laws():
        raise ModelError(f"{mechanism.name} has joints with friction or hard limits, which have no derivatives at "
                         "rest; plan with damping, and with springs at limits, instead")
    return (ClosedMotion if closed else TreeMotion)(mechanism, step, places, workers)
