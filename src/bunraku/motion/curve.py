"""A motion between its frames: coordinates, velocities and accelerations at any time.

A spline of degree 5 goes through the coordinates of all frames; quaternions are interpolated by their components, with
continuous signs, and normalised. v and a are the exact derivatives of that curve. With p the quaternion before it is
normalised and w = p^-1 p', the angular velocity in child axes is twice the vector part of w, and its derivative twice
that of p^-1 p'' - w w: the norm of p cancels.
"""

from __future__ import annotations

import numpy as np

from bunraku.mechanism import Free, Mechanism, Spherical
from bunraku.motion.smoothing import spline

CONJUGATE = np.array([1.0, -1.0, -1.0, -1.0])


class Curve:
    """Coordinates of a mechanism as functions of time."""

    def __init__(self, mechanism: Mechanism, t: np.ndarray, q: np.ndarray):
        self.start, self.end, self.nv = float(t[0]), float(t[-1]), mechanism.nv
        self._places = spline(t, continuous(mechanism, q))
        self._rates = self._places.derivative()
        self._changes = self._rates.derivative() if self._rates.k else lambda t: 0.0 * self._rates(t)
        self._index(mechanism)

    def _index(self, mechanism: Mechanism):
        """Indices in q and v: of quaternions and their rates, of Free joints' positions and velocities, of the rest."""
        turns: list[range] = []
        rates, places, speeds = [], [], []
        carried: list[int] = []
        plain: list[int] = []
        plain_v: list[int] = []
        for link in mechanism.links:
            i, j = mechanism.q_slice(link.joint_name), mechanism.v_slice(link.joint_name)
            if isinstance(link.joint, (Free, Spherical)):
                if isinstance(link.joint, Free):
                    places.append(range(i.start, i.start + 3))
                    speeds.append(range(j.start, j.start + 3))
                    carried.append(len(turns))
                turns.append(range(i.stop - 4, i.stop))
                rates.append(range(j.stop - 3, j.stop))
            else:
                plain += range(i.start, i.stop)
                plain_v += range(j.start, j.stop)
        self._turns, self._turning = np.array(turns, int).reshape(-1, 4), np.array(rates, int).reshape(-1, 3)
        self._frames, self._speeds = np.array(places, int).reshape(-1, 3), np.array(speeds, int).reshape(-1, 3)
        self._carried, self._plain, self._plain_v = carried, plain, plain_v

    def __call__(self, t) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(q, v, a) at a time or at times (n,)."""
        q, dq, ddq = self._places(t), self._rates(t), self._changes(t)
        v, a = np.empty((*q.shape[:-1], self.nv)), np.empty((*q.shape[:-1], self.nv))
        v[..., self._plain_v], a[..., self._plain_v] = dq[..., self._plain], ddq[..., self._plain]
        p = q[..., self._turns]
        w, dw = _derivatives(p, dq[..., self._turns], ddq[..., self._turns])
        v[..., self._turning], a[..., self._turning] = w, dw
        p = q[..., self._turns] = p / np.sqrt(np.sum(p * p, axis=-1, keepdims=True))
        if self._carried:
            back = p[..., self._carried, :] * CONJUGATE
            speed, change = rotate(back, dq[..., self._frames]), rotate(back, ddq[..., self._frames])
            v[..., self._speeds] = speed
            a[..., self._speeds] = change - cross(w[..., self._carried, :], speed)
        return q, v, a


def quaternions(mechanism: Mechanism) -> list[slice]:
    """Indices of the quaternions in q."""
    found = []
    for link in mechanism.links:
        if isinstance(link.joint, (Free, Spherical)):
            stop = mechanism.q_slice(link.joint_name).stop
            found.append(slice(stop - 4, stop))
    return found


def continuous(mechanism: Mechanism, q: np.ndarray) -> np.ndarray:
    """The same orientations, with unit quaternions that do not jump from one frame to the next."""
    q = np.array(q)
    for c in quaternions(mechanism):
        q[:, c] /= np.linalg.norm(q[:, c], axis=1, keepdims=True)
        flips = np.sum(q[1:, c] * q[:-1, c], axis=1) < 0.0
        q[1:, c][np.logical_xor.accumulate(flips)] *= -1.0
    return q


def _derivatives(p, dp, ddp) -> tuple[np.ndarray, np.ndarray]:
    """Angular velocity and its derivative, in child axes."""
    inverse = p * CONJUGATE / np.sum(p * p, axis=-1, keepdims=True)
    w = product(inverse, dp)
    return 2.0 * w[..., 1:], 2.0 * (product(inverse, ddp) - product(w, w))[..., 1:]


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Product of quaternions w x y z."""
    real = a[..., :1] * b[..., :1] - np.sum(a[..., 1:] * b[..., 1:], axis=-1, keepdims=True)
    return np.concatenate([real, a[..., :1] * b[..., 1:] + b[..., :1] * a[..., 1:] + cross(a[..., 1:], b[..., 1:])],
                          axis=-1)


def rotate(p: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Vectors turned by unit quaternions."""
    twice = 2.0 * cross(p[..., 1:], x)
    return x + p[..., :1] * twice + cross(p[..., 1:], twice)


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """As np.cross for vectors of three, but a tenth of the time for a few of them."""
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    u, v, w = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=-1)
