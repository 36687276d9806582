"""Exciting motions, which a robot performs so that its parameters can be identified.

Fourier series of all joints, within their limits, that are the most informative about the unknowns: the information
sum log(1 + s^2), with s the singular values of the regressor relative to the given model and to torque errors of a
hundredth of each joint's torque, is maximised by trying random series and then random changes of the best one.
References: Swevers et al. (1997) for the series, Fedorov (1972) for the criterion. Collisions are not checked.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bunraku.checks import as_count, as_positive
from bunraku.errors import ModelError
from bunraku.evaluate import inertial_regressor, inverse_dynamics
from bunraku.identification.equations import columns
from bunraku.identification.unknowns import FIT, Unknowns, as_fit, unknowns
from bunraku.mechanism import Fixed, Free, Mechanism, Spherical
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.motion import Motion

ERROR = 0.01       # of a joint's torque: its error
LOOKED_AT = 60     # samples in which a candidate is judged
RAMP = 0.1         # of the duration: in which the motion starts and ends
WAVES = 5          # harmonics of each joint
USED = 0.95        # of the limits


def exciting_motion(mechanism: Mechanism, seconds: float = 10.0, *, rate: float = 100.0, amplitude: float = 1.0,
                    speed: float = 2.0, fit: Iterable[str] = FIT, tries: int = 200, seed: int = 0) -> Motion:
    """A motion that is informative about the parameters of a tree: perform it, record it, and call `bk.identify`.

    It starts and ends at rest, in the middle of the joints' limits; joints without limits at their neutral position.

    amplitude  [rad, m] of joints without limits; all joints stay within `lower` and `upper`
    speed      [rad/s, m/s] of joints without a speed limit
    fit        the parameters to be found, as in `bk.identify`
    tries      number of motions that are compared

    Collisions are not checked.
    """
    m, fit = as_mechanism(mechanism), as_fit(fit)
    if m.constrained:
        raise ModelError(f"exciting_motion: {m.name} has connections or couplings, and its joints cannot move each by "
                         "itself; give bk.identify any motion of it that varies poses, speeds and directions")
    for link in m.links:
        if isinstance(link.joint, Spherical):
            raise ModelError(f"exciting_motion: joint {link.joint_name!r} is a Spherical joint; only joints with plain "
                             "coordinates are moved. Record any motion that turns it fast and slow, about all axes")
    seconds, rate = as_positive("seconds", seconds), as_positive("rate", rate)
    tries, rng = as_count("tries", tries), np.random.default_rng(seed)
    shape = _Shape(m, seconds, as_positive("amplitude", amplitude), as_positive("speed", speed))
    judge = _Judge(m, fit, shape)
    best, most = None, -np.inf
    for k in range(tries):
        waves = rng.normal(size=(2, WAVES, len(shape.moved)))
        if best is not None and k >= tries // 4:
            waves = best + 0.3 * rng.random() * waves
        told = judge(waves)
        if told > most:
            best, most = waves, told
    t = np.arange(0.0, seconds * (1.0 + 1e-9), 1.0 / rate)
    return Motion(m, t, shape(best, t)[0], "exciting motion")


class _Shape:
    """Coordinates as functions of time, for given waves."""

    def __init__(self, m: Mechanism, seconds, amplitude, speed):
        self.m, self.seconds, self.q = m, seconds, m.neutral()
        self.moved, places, reach, fastest = [], [], [], []
        for link in m.links:
            joint = link.joint
            if isinstance(joint, (Free, Fixed)):
                continue
            i, j = m.q_slice(link.joint_name), m.v_slice(link.joint_name)
            for d in range(joint.nv):
                lower, upper = np.broadcast_to(joint.lower, joint.nv)[d], np.broadcast_to(joint.upper, joint.nv)[d]
                limited = np.isfinite(lower) and np.isfinite(upper)
                middle = np.clip(self.q[i.start + d], lower + amplitude, upper - amplitude)
                self.q[i.start + d] = 0.5 * (lower + upper) if limited else middle
                self.moved.append(j.start + d)
                places.append(i.start + d)
                reach.append(0.5 * (upper - lower) if limited else amplitude)
                fastest.append(min(m.speed[j.start + d], speed if np.isinf(m.speed[j.start + d]) else np.inf))
        if not self.moved:
            raise ModelError(f"exciting_motion: {m.name} has no joint with a coordinate to move")
        self.places, self.reach, self.fastest = places, np.array(reach), np.array(fastest)

    def __call__(self, waves, t):
        """(q, v, a) at times t; the largest excursion and speed are those of the limits, whichever comes first."""
        fine = np.linspace(0.0, self.seconds, 400)
        x, dx, _ = self._series(waves, fine)
        scale = USED / np.maximum(np.abs(x).max(axis=0) / self.reach, np.abs(dx).max(axis=0) / self.fastest)
        q, v, a = np.tile(self.q, (len(t), 1)), np.zeros((len(t), self.m.nv)), np.zeros((len(t), self.m.nv))
        x, dx, ddx = (scale * part for part in self._series(waves, t))
        q[:, self.places] += x
        v[:, self.moved], a[:, self.moved] = dx, ddx
        return q, v, a

    def _series(self, waves, t):
        """The Fourier series, faded in and out, and two derivatives."""
        w = 2.0 * np.pi / self.seconds * np.arange(1, WAVES + 1)
        c, s = np.cos(np.outer(t, w)), np.sin(np.outer(t, w))
        x = s @ waves[0] + c @ waves[1]
        dx = (c * w) @ waves[0] - (s * w) @ waves[1]
        ddx = -(s * w**2) @ waves[0] - (c * w**2) @ waves[1]
        length = RAMP * self.seconds
        near = np.clip(np.minimum(t, self.seconds - t) / length, 0.0, 1.0)[:, None]
        way = np.where(t < 0.5 * self.seconds, 1.0, -1.0)[:, None] / length
        f, df, ddf = near**3 * (10 - 15 * near + 6 * near**2), 30 * near**2 * (1 - near)**2, 60 * near * (1 - near) * (
            1 - 2 * near)
        df, ddf = df * way, ddf * way**2
        return f * x, f * dx + df * x, f * ddx + 2 * df * dx + ddf * x


class _Judge:
    """The information of a motion about the unknowns."""

    def __init__(self, m: Mechanism, fit, shape: _Shape):
        self.m, self.fit, self.shape = m, fit, shape
        self.t = np.linspace(0.0, shape.seconds, LOOKED_AT)
        self.unknowns: Unknowns | None = None

    def __call__(self, waves) -> float:
        m = self.m
        q, v, a = self.shape(waves, self.t)
        Y = inertial_regressor(m, q, v, a)
        torque = inverse_dynamics(m, q, v, a)[:, self.shape.moved]
        size = np.maximum(np.sqrt(np.mean(torque**2, axis=0)), 1e-9)
        if self.unknowns is None:
            moves = np.abs(Y.reshape(-1, len(m.links), 10)).max(axis=(0, 2)) > 0.0
            own = np.ones(m.nv)
            own[self.shape.moved] = size
            scales = {"damping": own / np.sqrt(np.mean(v**2) + 1e-12), "friction": own,
                      "armature": own / np.sqrt(np.mean(a**2) + 1e-12)}
            self.unknowns = unknowns(m, self.fit, None, None, moves, scales)
        found = self.unknowns
        A: np.ndarray = columns(found, Y, v, a)[:, self.shape.moved] / (ERROR * size)[:, None]
        values = np.linalg.svd((A @ found.T).reshape(-1, found.count), compute_uv=False)
        return float(np.sum(np.log1p(values**2)))
