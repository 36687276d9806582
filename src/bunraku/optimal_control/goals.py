"""Goals of a planned motion: sums of squares of what is off, with the Jacobians that Gauss-Newton steps need.

A goal costs weight/2 |off|^2 at some knots of the motion, the states between its steps: at the end, always (times the
step, so that it is an integral over time), or at listed ones. Second derivatives are J^T weight J: what is off times
its own curvature is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from bunraku.checks import as_finite, as_vector, hint
from bunraku.errors import ModelError, ShapeError
from bunraku.evaluate.kinematics import Kinematics, kinematics
from bunraku.evaluate.linear_models import after_move, turning, turning_joints
from bunraku.mechanism import Mechanism

WORDS = ("end", "always")


class Knots:
    """Some knots of a motion: states (K, nq) and (K, nv), and their numbers (K,)."""

    def __init__(self, mechanism: Mechanism, q: np.ndarray, v: np.ndarray, numbers: np.ndarray):
        self.mechanism, self.q, self.v, self.numbers = mechanism, q, v, numbers

    @cached_property
    def kinematics(self) -> Kinematics:
        return kinematics(self.mechanism, self.q, self.v)


class Goal:
    """A goal of `plan_motion`: use a subclass, or write your own with `residual` and `jacobian`.

    weight      a number, or one for each entry of the residual
    when        "end", "always", or numbers of knots, 1 to `steps`
    """

    def __init__(self, weight=1.0, when: str | Sequence[int] = "end"):
        self.weight = as_finite("weight", weight)
        if (self.weight < 0).any():
            raise ShapeError("the weight of a goal must not be negative")
        if isinstance(when, str) and when not in WORDS:
            raise ModelError(f"when must be 'end', 'always' or numbers of knots, not {when!r}{hint(when, WORDS)}")
        self.when: str | tuple[int, ...] = when if isinstance(when, str) else tuple(int(k) for k in when)

    def residual(self, knots: Knots) -> np.ndarray:
        """Errors at the knots, (K, r)."""
        raise NotImplementedError

    def jacobian(self, knots: Knots) -> np.ndarray:
        """Derivative of the residual with respect to x = (move, change of v), (K, r, 2 nv)."""
        raise NotImplementedError

    # -- for the planner -----------------------------------------------------------------------------------------------

    def numbers(self, steps: int) -> np.ndarray:
        """Its knots in a motion of so many steps."""
        if self.when == "end":
            return np.array([steps])
        if self.when == "always":
            return np.arange(1, steps + 1)
        numbers = np.unique(self.when)
        if not numbers.size or numbers.min() < 1 or numbers.max() > steps:
            raise ShapeError(f"when = {list(self.when)}: numbers of knots are 1 to {steps}, the number of steps")
        return numbers

    def scale(self, step: float) -> float:
        return step if self.when == "always" else 1.0

    def cost(self, knots: Knots) -> float:
        off = self.residual(knots)
        return 0.5 * float(np.sum(self._weight_of(off) * off * off))

    def add_slopes(self, knots: Knots, scale: float, l_x: np.ndarray, l_xx: np.ndarray) -> None:
        """Add scale times the gradient of the cost, and its Gauss-Newton matrix, to those of all knots."""
        J, off = self.jacobian(knots), self.residual(knots)
        weight = scale * self._weight_of(off)
        used = np.flatnonzero(np.abs(J).max(axis=(0, 1), initial=0.0))
        small = np.ascontiguousarray(J[:, :, used])
        weighted = small * weight[:, None]
        l_x[np.ix_(knots.numbers, used)] += np.einsum("kri,kr->ki", weighted, off)
        l_xx[np.ix_(knots.numbers, used, used)] += weighted.swapaxes(1, 2) @ small

    def _weight_of(self, off):
        if self.weight.shape not in ((), off.shape[1:]):
            raise ShapeError(f"{type(self).__name__}: weight must be a number or {off.shape[1:]}, one for each entry "
                             f"of the residual, not {self.weight.shape}")
        return np.broadcast_to(self.weight, off.shape[1:])

    def _target(self, name: str, knots: Knots, values: np.ndarray, shape: tuple) -> np.ndarray:
        """Values of the knots, from one for all or from a path with one for every knot of the motion."""
        if values.shape == shape:
            return np.broadcast_to(values, (len(knots.q), *shape))
        if values.ndim == len(shape) + 1 and values.shape[1:] == shape and len(values) > knots.numbers.max():
            return values[knots.numbers]
        raise ShapeError(f"{type(self).__name__}: {name} must have shape {shape}, or for a path (steps + 1, "
                         f"{', '.join(map(str, shape))}), not {values.shape}")


class StateGoal(Goal):
    """Coordinates and velocities, with weights that are numbers or (nv,); (steps + 1, nq) and (steps + 1, nv) are
    followed. Quaternions are compared by the rotation vector between them."""

    def __init__(self, q=None, v=None, *, q_weight=1.0, v_weight=1.0, when: str | Sequence[int] = "end"):
        super().__init__(1.0, when)
        self.q = None if q is None else as_finite("q", q)
        self.v = None if v is None else as_finite("v", v)
        if q is None and v is None:
            raise ModelError("StateGoal: give q, v or both")
        self.q_weight, self.v_weight = as_finite("q_weight", q_weight), as_finite("v_weight", v_weight)
        if (self.q_weight < 0).any() or (self.v_weight < 0).any():
            raise ShapeError("StateGoal: weights must not be negative")

    def _off(self, knots):
        m = knots.mechanism
        q = v = None
        if self.q is not None:
            q = m.difference(self._target("q", knots, self.q, (m.nq,)), knots.q)
        if self.v is not None:
            wanted = np.full(m.nv, self.v) if self.v.ndim == 0 else self.v
            v = knots.v - self._target("v", knots, wanted, (m.nv,))
        return q, v

    def _weights(self, nv):
        try:
            return np.broadcast_to(self.q_weight, nv), np.broadcast_to(self.v_weight, nv)
        except ValueError:
            raise ShapeError(f"StateGoal: weights must be numbers or ({nv},), not {self.q_weight.shape} and "
                             f"{self.v_weight.shape}") from None

    def residual(self, knots):
        return np.hstack([x for x in self._off(knots) if x is not None])

    def jacobian(self, knots):
        nv, parts = knots.mechanism.nv, []
        q, v = self._off(knots)
        if q is not None:
            by_q = np.zeros((len(q), nv, 2 * nv))
            by_q[:, np.arange(nv), np.arange(nv)] = 1.0
            for at in turning_joints(knots.mechanism.plan()):
                by_q[:, at, at] = np.linalg.inv(after_move(turning(q[:, at]))[1])
            parts.append(by_q)
        if v is not None:
            parts.append(np.broadcast_to(np.hstack([np.zeros((nv, nv)), np.eye(nv)]), (len(v), nv, 2 * nv)))
        return np.concatenate(parts, axis=1)

    def cost(self, knots):
        own, faster = self._weights(knots.mechanism.nv)
        q, v = self._off(knots)
        return 0.5 * float((0.0 if q is None else np.sum(own * q * q)) + (0.0 if v is None else np.sum(faster * v * v)))

    def add_slopes(self, knots, scale, l_x, l_xx):
        nv, at = knots.mechanism.nv, knots.numbers
        own, faster = self._weights(nv)
        q, v = self._off(knots)
        places = np.arange(nv)
        if q is not None:
            slope, turned = own * q, turning_joints(knots.mechanism.plan())
            flat = np.ones(nv, bool)
            for joint in turned:
                flat[joint] = False
                J = np.linalg.inv(after_move(turning(q[:, joint]))[1])
                weighted = own[joint, None] * J
                slope[:, joint] = np.einsum("kri,kr->ki", weighted, q[:, joint])
                moved = places[joint]
                l_xx[np.ix_(at, moved, moved)] += scale * J.swapaxes(1, 2) @ weighted
            l_x[at, :nv] += scale * slope
            l_xx[at[:, None], places[flat], places[flat]] += scale * own[flat]
        if v is not None:
            l_x[at, nv:] += scale * faster * v
            l_xx[at[:, None], nv + places, nv + places] += scale * faster


class PointGoal(Goal):
    """A point of a link, given in its frame, is to be at `target`, (3,) or a path (steps + 1, 3), in the world [m];
    axes with weight 0 do not matter."""

    def __init__(self, link: str, target, *, point=(0.0, 0.0, 0.0), weight=1.0, when: str | Sequence[int] = "end"):
        super().__init__(weight, when)
        self.link, self.target, self.point = link, as_finite("target", target), as_vector("point", point)

    def residual(self, knots):
        R, p = knots.kinematics.poses[self.link]
        return p + R @ self.point - self._target("target", knots, self.target, (3,))

    def jacobian(self, knots):
        J = knots.kinematics.jacobian(self.link, self.point)[:, :3]
        return np.concatenate([J, np.zeros_like(J)], axis=2)


class PoseGoal(Goal):
    """The pose of a link: (rotation (3, 3), position (3,)) in the world; weights of turns [1/rad^2] and places."""

    def __init__(self, link: str, pose, *, turn_weight=1.0, weight=1.0, when: str | Sequence[int] = "end"):
        super().__init__(1.0, when)
        self.link = link
        try:
            R, p = pose
            self.rotation, self.position = as_finite("rotation", R), as_finite("position", p)
        except (TypeError, ValueError):
            raise ShapeError("PoseGoal: pose must be (rotation (3, 3), position (3,))") from None
        self.weight = np.concatenate([np.broadcast_to(as_finite("weight", weight), 3),
                                      np.broadcast_to(as_finite("turn_weight", turn_weight), 3)])

    def _turned(self, knots):
        R, p = knots.kinematics.poses[self.link]
        wanted = self._target("rotation", knots, self.rotation, (3, 3))
        return p - self._target("position", knots, self.position, (3,)), rotation_vectors(R @ wanted.swapaxes(1, 2))

    def residual(self, knots):
        return np.hstack(self._turned(knots))

    def jacobian(self, knots):
        J = knots.kinematics.jacobian(self.link)
        _, turn = self._turned(knots)
        # R exp: a turn by a small angle in world axes changes the rotation vector by the inverse of the mean turn
        by_turn = np.linalg.inv(after_move(turning(-turn))[1]) @ J[:, 3:]
        return np.concatenate([np.concatenate([J[:, :3], by_turn], axis=1), np.zeros((len(J), 6, J.shape[2]))], axis=2)


class CentreGoal(Goal):
    """The centre of mass is to be at `target`, (3,) or a path, in the world [m]; axes with weight 0 do not matter."""

    def __init__(self, target, *, weight=1.0, when: str | Sequence[int] = "end"):
        super().__init__(weight, when)
        self.target = as_finite("target", target)

    def residual(self, knots):
        return knots.kinematics.com - self._target("target", knots, self.target, (3,))

    def jacobian(self, knots):
        J = knots.kinematics.com_jacobian
        return np.concatenate([J, np.zeros_like(J)], axis=2)


def rotation_vectors(R: np.ndarray) -> np.ndarray:
    """(K, 3) of rotation matrices (K, 3, 3), the short way."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(R).as_rotvec()
