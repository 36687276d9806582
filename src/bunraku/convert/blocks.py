"""Conversion of one joint's coordinates to another library's convention.

A block takes our q to theirs and back. Velocities follow as v' = T(q) v with T orthogonal in every case here, so

    v' = T v        a' = T a + drift, drift = dT/dt v        tau' = T tau   (power: tau' . v' = tau . v)

and all of it is undone with T transposed. Arrays are batches: (B, n).
"""

from __future__ import annotations

import numpy as np

from bunraku.errors import StateError


class Block:
    """Unchanged coordinates; base class of the other blocks."""

    def __init__(self, nq: int, nv: int, nq_other: int | None = None):
        self.nq, self.nv = nq, nv
        self.nq_other = nq if nq_other is None else nq_other

    def q(self, q: np.ndarray) -> np.ndarray:
        return q

    def q_back(self, q: np.ndarray) -> np.ndarray:
        return q

    def rate(self, q: np.ndarray) -> np.ndarray:
        """T at our q: (B, nv, nv). Blocks that keep this one have velocities that are only moved."""
        return np.broadcast_to(np.eye(self.nv), (*q.shape[:-1], self.nv, self.nv))

    def drift(self, q: np.ndarray, v: np.ndarray) -> np.ndarray | float:
        """dT/dt v at our q and v."""
        return 0.0


class Angle(Block):
    """An angle as its cosine and sine; back in (-pi, pi]."""

    def __init__(self):
        super().__init__(1, 1, 2)

    def q(self, q):
        return np.concatenate([np.cos(q), np.sin(q)], axis=-1)

    def q_back(self, q):
        return np.arctan2(q[..., 1:], q[..., :1])


class Ball(Block):
    """A quaternion as one with the scalar first or last, angular velocity in child axes as ours."""

    def __init__(self, scalar_last: bool):
        super().__init__(4, 3)
        self.scalar_last = scalar_last

    def q(self, q):
        q = unit(q)
        return np.roll(q, -1, axis=-1) if self.scalar_last else q

    def q_back(self, q):
        return unit(np.roll(q, 1, axis=-1) if self.scalar_last else q)


class BallRpy(Block):
    """Roll, pitch, yaw (R = Rz Ry Rx), angular velocity in parent axes."""

    def __init__(self):
        super().__init__(4, 3, 3)

    def q(self, q):
        return rpy_of_quaternion(q)

    def q_back(self, q):
        return quaternion_of_rpy(q)

    def rate(self, q):
        return rotations(q)


class Floating(Block):
    """Position and orientation in any order, linear and angular velocity in child or parent axes."""

    def __init__(self, orientation: str, orientation_first: bool = False, linear_in_parent: bool = False,
                 angular_in_parent: bool = False, placement: tuple[np.ndarray, np.ndarray] | None = None):
        """orientation: "wxyz", "xyzw" or "rpy"; placement: rotation and position of our joint frame in their parent."""
        super().__init__(7, 6, 6 if orientation == "rpy" else 7)
        self.orientation: Block = BallRpy() if orientation == "rpy" else Ball(orientation == "xyzw")
        self.orientation_first = orientation_first
        self.linear_in_parent, self.angular_in_parent = linear_in_parent, angular_in_parent
        turn, shift = (np.eye(3), np.zeros(3)) if placement is None else placement
        self.turn: np.ndarray = turn
        self.shift: np.ndarray = shift
        self.turn_q = quaternion_of_rotation(self.turn)

    def q(self, q):
        p = self.shift + q[..., :3] @ self.turn.T
        o = self.orientation.q(quaternion_product(self.turn_q, q[..., 3:]))
        return np.concatenate([o, p] if self.orientation_first else [p, o], axis=-1)

    def q_back(self, q):
        n = self.orientation.nq_other
        o, p = (q[..., :n], q[..., n:]) if self.orientation_first else (q[..., 3:], q[..., :3])
        o = quaternion_product(self.turn_q * [1.0, -1.0, -1.0, -1.0], self.orientation.q_back(o))
        return np.concatenate([(p - self.shift) @ self.turn, o], axis=-1)

    def rate(self, q):
        R = self.turn @ rotations(q[..., 3:])
        T = np.zeros((*q.shape[:-1], 6, 6))
        linear, angular = (slice(3, 6), slice(0, 3)) if self.orientation_first else (slice(0, 3), slice(3, 6))
        T[..., linear, :3] = R if self.linear_in_parent else np.eye(3)
        T[..., angular, 3:] = R if self.angular_in_parent else np.eye(3)
        return T

    def drift(self, q, v):
        """d/dt (R u) = R (w x u): nothing for the angular velocity itself."""
        out = np.zeros_like(v)
        if self.linear_in_parent:
            R = self.turn @ rotations(q[..., 3:])
            linear = slice(3, 6) if self.orientation_first else slice(0, 3)
            out[..., linear] = apply(R, np.cross(v[..., 3:], v[..., :3]))
        return out


class PlanarLocal(Block):
    """x, y, cosine, sine; the velocity of the origin in child axes."""

    def __init__(self):
        super().__init__(3, 3, 4)

    def q(self, q):
        return np.concatenate([q[..., :2], np.cos(q[..., 2:]), np.sin(q[..., 2:])], axis=-1)

    def q_back(self, q):
        return np.concatenate([q[..., :2], np.arctan2(q[..., 3:], q[..., 2:3])], axis=-1)

    def rate(self, q):
        c, s = np.cos(q[..., 2]), np.sin(q[..., 2])
        T = np.zeros((*q.shape[:-1], 3, 3))
        T[..., 0, 0] = T[..., 1, 1] = c
        T[..., 0, 1], T[..., 1, 0] = s, -s
        T[..., 2, 2] = 1.0
        return T

    def drift(self, q, v):
        c, s = np.cos(q[..., 2]), np.sin(q[..., 2])
        x, y, w = v[..., 0], v[..., 1], v[..., 2]
        return np.stack([w * (-s * x + c * y), w * (-c * x - s * y), 0.0 * w], axis=-1)


# -- rotations -----------------------------------------------------------------------------------------------------


def apply(T: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...j->...i", T, v)


def unit(q: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(q, axis=-1, keepdims=True)
    fine = (length > 0) & np.isfinite(length)
    if not np.all(fine):
        bad = np.flatnonzero(~fine).tolist() if q.ndim > 1 else []
        where = f"states {bad}: " if len(bad) > 1 else f"state {bad[0]}: " if bad else ""
        raise StateError(f"{where}q holds a quaternion that is zero or not finite", states=bad)
    return q / length


def rotations(q: np.ndarray) -> np.ndarray:
    """Matrices of quaternions w x y z."""
    w, x, y, z = np.moveaxis(unit(q), -1, 0)
    rows = [[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def quaternion_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    w, x, y, z = np.moveaxis(a, -1, 0)
    k, l, m, n = np.moveaxis(b, -1, 0)
    return np.stack([w * k - x * l - y * m - z * n, w * l + x * k + y * n - z * m,
                     w * m - x * n + y * k + z * l, w * n + x * m - y * l + z * k], axis=-1)


def quaternion_of_rotation(R: np.ndarray) -> np.ndarray:
    """The unit quaternion w x y z of one matrix: the longest column of 4 q q^T."""
    a, b, c = np.diag(R)
    d, e, f = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    g, h, i = R[1, 0] + R[0, 1], R[0, 2] + R[2, 0], R[2, 1] + R[1, 2]
    K = np.array([[1 + a + b + c, d, e, f], [d, 1 + a - b - c, g, h],
                  [e, g, 1 - a + b - c, i], [f, h, i, 1 - a - b + c]])
    column = K[np.argmax(np.diag(K))]
    return column / np.linalg.norm(column)


def rpy_of_quaternion(q: np.ndarray) -> np.ndarray:
    """Roll, pitch, yaw with R = Rz(yaw) Ry(pitch) Rx(roll); where they are not unique, some that give R."""
    R = rotations(q)
    yaw = np.arctan2(R[..., 1, 0], R[..., 0, 0])
    pitch = np.arctan2(-R[..., 2, 0], np.hypot(R[..., 0, 0], R[..., 1, 0]))
    c, s = np.cos(yaw), np.sin(yaw)  # the roll is what is left after the yaw: exact even looking straight up
    roll = np.arctan2(s * R[..., 0, 2] - c * R[..., 1, 2], c * R[..., 1, 1] - s * R[..., 0, 1])
    return np.stack([roll, pitch, yaw], axis=-1)


def quaternion_of_rpy(rpy: np.ndarray) -> np.ndarray:
    half = 0.5 * rpy
    zero = np.zeros_like(half[..., 0])
    (cr, cp, cy), (sr, sp, sy) = np.moveaxis(np.cos(half), -1, 0), np.moveaxis(np.sin(half), -1, 0)
    turned = quaternion_product(np.stack([cy, zero, zero, sy], -1), np.stack([cp, zero, sp, zero], -1))
    return quaternion_product(turned, np.stack([cr, sr, zero, zero], -1))
