"""A motion between its frames: coordinates, velocities and accelerations at any time.

A spline of degree 5 goes through the coordinates of all frames; quaternions are interpolated by their components, with
continuous signs, and normalised. v and a are the exact derivatives of that curve. With p the quaternion before it is
normalised and w = p^-1 p', the angular velocity in child axes is twice the vector part of w, and its derivative twice
that of p^-1 p'' - w w: lengths drop out.
"""

from __future__ import annotations

import numpy as np

from bunraku.mechanism import Free, Mechanism, Spherical
from bunraku.motion.smoothing import spline


class Curve:
    """Coordinates of a mechanism as functions of time."""

    def __init__(self, mechanism: Mechanism, t: np.ndarray, q: np.ndarray):
        self.mechanism, self.start, self.end = mechanism, float(t[0]), float(t[-1])
        self._places = spline(t, continuous(mechanism, q))
        self._rates = self._places.derivative()
        self._changes = self._rates.derivative() if self._rates.k > 0 else None

    def __call__(self, t) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(q, v, a) at a time or at times (n,)."""
        y, dy = self._places(t), self._rates(t)
        ddy = np.zeros_like(y) if self._changes is None else self._changes(t)
        m = self.mechanism
        q, v, a = y, np.empty((*y.shape[:-1], m.nv)), np.empty((*y.shape[:-1], m.nv))
        for link in m.links:
            i, j = m.q_slice(link.joint_name), m.v_slice(link.joint_name)
            if isinstance(link.joint, (Free, Spherical)):
                c = slice(i.stop - 4, i.stop)
                w, dw = _derivatives(y[..., c], dy[..., c], ddy[..., c])
                q[..., c] = y[..., c] / np.linalg.norm(y[..., c], axis=-1, keepdims=True)
                v[..., j.stop - 3:j.stop], a[..., j.stop - 3:j.stop] = w, dw
                if isinstance(link.joint, Free):
                    x, back = slice(i.start, i.start + 3), q[..., c] * [1.0, -1.0, -1.0, -1.0]
                    speed, change = rotate(back, dy[..., x]), rotate(back, ddy[..., x])
                    v[..., j.start:j.start + 3], a[..., j.start:j.start + 3] = speed, change - np.cross(w, speed)
            else:
                v[..., j], a[..., j] = dy[..., i], ddy[..., i]
        return q, v, a


def quaternions(mechanism: Mechanism) -> list[slice]:
    """Where the quaternions are in q."""
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
    inverse = p * [1.0, -1.0, -1.0, -1.0] / np.sum(p * p, axis=-1, keepdims=True)
    w = product(inverse, dp)
    return 2.0 * w[..., 1:], 2.0 * (product(inverse, ddp) - product(w, w))[..., 1:]


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of quaternions w x y z."""
    real = a[..., :1] * b[..., :1] - np.sum(a[..., 1:] * b[..., 1:], axis=-1, keepdims=True)
    return np.concatenate([real, a[..., :1] * b[..., 1:] + b[..., :1] * a[..., 1:] + np.cross(a[..., 1:], b[..., 1:])],
                          axis=-1)


def rotate(p: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Vectors turned by unit quaternions."""
    twice = 2.0 * np.cross(p[..., 1:], x)
    return x + p[..., :1] * twice + np.cross(p[..., 1:], twice)
