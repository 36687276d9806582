"""A recorded motion of a mechanism: coordinates at the times of its frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from bunraku.checks import as_array, as_number, as_positive
from bunraku.errors import ModelError, NamingError, ShapeError
from bunraku.mechanism import Compound, Free, Joint, Link, Mechanism, Prismatic, Revolute
from bunraku.mechanism.links import GROUND
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.motion.curve import Curve, continuous
from bunraku.motion.joint_moments import JointMoments, joint_moments
from bunraku.motion.plates import ForcePlate
from bunraku.motion.smoothing import low_pass, sampling_rate
from bunraku.motion.tracking import tracking
from bunraku.motion.write import write_bvh
from bunraku.simulation import Segment, Trajectory

SAME_LENGTH = 1e-4  # [m] joint frames of one skeleton in two files


class Motion:
    """Coordinates q (frames, nq) of a mechanism at times t; between the frames a spline of degree 5.

    `v` and `a` are the derivatives of that spline at the frames. Smooth raw recordings first: see `smooth`.
    """

    def __init__(self, mechanism: Mechanism, t, q, name: str = "motion"):
        self.mechanism, self.name = as_mechanism(mechanism), name
        self.t, self.q = as_array("t", t), as_array("q", q)
        if self.t.ndim != 1 or self.q.shape != (len(self.t), mechanism.nq):
            raise ShapeError(f"{name}: t has shape {self.t.shape} and q {self.q.shape}; they must be (frames,) and "
                             f"(frames, {mechanism.nq}) for {mechanism.name}")
        if not np.isfinite(self.t).all() or (np.diff(self.t) <= 0).any():
            raise ShapeError(f"{name}: times must increase from frame to frame")
        bad = np.argwhere(~np.isfinite(self.q))
        if len(bad):
            frame, k = bad[0]
            joint = next(link.joint_name for link in mechanism.links if k < mechanism.q_slice(link.joint_name).stop)
            raise ShapeError(f"{name}: joint {joint!r} has no finite coordinate in frame {frame}; fill the gap first")
        self.q = continuous(mechanism, self.q)

    # -- play ------------------------------------------------------------------------------------------------------

    @property
    def rate(self) -> float:
        """Frames a second."""
        return sampling_rate(self.t)

    @cached_property
    def curve(self) -> Curve:
        """(q, v, a) as a function of time."""
        return Curve(self.mechanism, self.t, self.q)

    @cached_property
    def _states(self):
        return self.curve(self.t)

    @property
    def v(self) -> np.ndarray:
        """Velocities (frames, nv)."""
        return self._states[1]

    @property
    def a(self) -> np.ndarray:
        """Accelerations (frames, nv): the derivatives of the components of v."""
        return self._states[2]

    def trajectory(self) -> Trajectory:
        """The motion as a trajectory: to draw, to save, to sample."""
        return Trajectory([Segment(self.mechanism.copy().locked(), self.t.copy(), self.q.copy(), self.v.copy())])

    def save(self, path) -> Path:
        """Write a BVH file: figure and motion, in metres, z up."""
        return write_bvh(self, path)

    # -- change ----------------------------------------------------------------------------------------------------

    def smooth(self, cutoff: float) -> Motion:
        """The motion low-pass filtered at `cutoff` [Hz]: a zero-lag Butterworth filter of order 4
        (`motion/smoothing.py`). Quaternions are filtered by their components and normalised.
        """
        return Motion(self.mechanism, self.t, low_pass(self.t, self.q, cutoff), self.name)

    def resample(self, rate: float) -> Motion:
        """The motion resampled at another frame rate, on its spline."""
        step = 1.0 / as_positive("rate [1/s]", rate, ShapeError)
        count = int(np.floor((self.t[-1] - self.t[0]) / step * (1.0 + 1e-12))) + 1
        t = self.t[0] + step * np.arange(count)
        t[-1] = min(t[-1], self.t[-1])
        return Motion(self.mechanism, t, self.curve(t)[0], self.name)

    def between(self, start: float, end: float) -> Motion:
        """The frames from one time to another [s]."""
        kept = (self.t >= as_number("start [s]", start, ShapeError)) & (self.t <= as_number("end [s]", end, ShapeError))
        if not kept.any():
            raise ShapeError(f"{self.name}: no frame between {start:g} and {end:g} s; it goes from {self.t[0]:g} to "
                             f"{self.t[-1]:g} s")
        return Motion(self.mechanism, self.t[kept], self.q[kept], self.name)

    def on(self, mechanism: Mechanism, *, any_length: bool = False) -> Motion:
        """The same motion for another mechanism, with other masses, springs or limits, but the same skeleton.

        Joints are matched by name. Joints that are missing, of another type or at another position are an error that
        names them; with `any_length` segment lengths may differ.
        """
        theirs = {link.joint_name: link for link in as_mechanism(mechanism).links}
        ours = {link.joint_name: link for link in self.mechanism.links}
        moving = [name for name, link in ours.items() if link.joint.nq]
        differs = [f"{name!r} is missing" for name in moving if name not in theirs]
        differs += [f"{name!r} is not in the motion" for name, link in theirs.items()
                    if link.joint.nq and name not in moving]
        signs = {name: _signs(ours[name].joint, theirs[name].joint) for name in moving if name in theirs}
        for name, sign in signs.items():
            mine, other = ours[name], theirs[name]
            if sign is None:
                differs.append(f"{name!r} is {other.joint!r:.60} instead of {mine.joint!r:.60}")
            elif np.abs(mine.rotation - other.rotation).max() > SAME_LENGTH:
                differs.append(f"{name!r} has a joint frame that is turned")
            elif _above(self.mechanism, mine) != _above(mechanism, other):
                differs.append(f"{name!r} hangs from {_above(mechanism, other)!r} instead of "
                               f"{_above(self.mechanism, mine)!r}")
            elif not (any_length or isinstance(mine.joint, Free)) and (
                    np.abs(mine.position - other.position).max() > SAME_LENGTH):
                differs.append(f"{name!r} is {1e3 * np.linalg.norm(mine.position - other.position):.3g} mm off")
        if differs:
            more = f" and {len(differs) - 8} more" if len(differs) > 8 else ""
            if all(text.endswith("mm off") for text in differs):
                more += "; motion.on(mechanism, any_length=True) takes the angles all the same"
            raise ModelError(f"{self.name} is the motion of another skeleton than {mechanism.name}: "
                             f"{', '.join(differs[:8])}{more}")
        q = np.tile(mechanism.neutral(), (len(self.t), 1))
        for name in moving:
            q[:, mechanism.q_slice(name)] = signs[name] * self.q[:, self.mechanism.q_slice(name)]
            if isinstance(ours[name].joint, Free):  # counted from another origin
                start = mechanism.q_slice(name).start
                q[:, start:start + 3] += ours[name].position - theirs[name].position
        return Motion(mechanism, self.t, q, self.name)

    # -- use -------------------------------------------------------------------------------------------------------

    def inverse_dynamics(self, plates: Mapping[str, ForcePlate | Sequence[ForcePlate]] | Sequence[ForcePlate] = (), *,
                         feet: Sequence[str] = (), external: Mapping | None = None) -> JointMoments:
        """Joint moments at every frame, from v, a and measured ground forces.

        plates    {link: plate or plates that it stands on}; or a list of plates with `feet`, the links that may stand
                  on them: each contact then acts on the one that is nearest to the centre of pressure
        external  further forces as in `bk.inverse_dynamics`: {link: (6,) or (frames, 6)}

        `residuals` holds the unexplained force and moment on each link with a Free joint.
        """
        return joint_moments(self, plates, feet, external)

    def tracking(self, kp=None, kd=None, *, frequency: float = 50.0, feedforward: bool = True,
                 external: Mapping | None = None, hold: bool = True) -> Callable:
        """An actuation for `bk.Simulation` that follows the motion: PD control in every joint.

        tau = torque of the motion + kp (q_motion - q) + kd (v_motion - v), before and after it its first and last pose

        kp, kd       [N m/rad, N m s/rad] (N/m where a joint slides): a number for all joints, or {joint: number}; by
                     default critically damped with the natural frequency `frequency` [rad/s] for the inertia at the
                     joint while all others are free
        feedforward  adds the torque of inverse dynamics, with `external` forces; without it there is PD control only
        hold         Free joints are driven too, by fictitious forces; without it the figure must balance itself
        """
        return tracking(self, kp, kd, frequency, feedforward, external, hold)

    def prescribed(self, *joints: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """The motion of some joints, or of all, for `bk.Simulation(prescribed=...)`: {joint: (times, coordinates)}."""
        m = self.mechanism
        moving = [link.joint_name for link in m.links if link.joint.nq]
        for name in joints:
            if name not in moving:
                wrong = f"joint {name!r} does not move" if name in m.joint_names else m.no_joint(name)
                raise NamingError(f"prescribed: {wrong}")
        return {name: (self.t, self.q[:, m.q_slice(name)]) for name in joints or moving}

    def __len__(self):
        return len(self.t)

    def __repr__(self):
        return (f"Motion {self.name!r} of {self.mechanism.name}: {len(self.t)} frames, {self.t[0]:g} to "
                f"{self.t[-1]:g} s, {self.mechanism.nv} degrees of freedom")


def _above(mechanism: Mechanism, link: Link) -> str:
    """The nearest moving joint above a link's joint."""
    while link.parent >= 0:
        link = mechanism.links[link.parent]
        if link.joint.nq:
            return link.joint_name
    return GROUND


def _signs(a: Joint, b: Joint) -> np.ndarray | None:
    """Signs (1 or -1) that convert coordinates of joint a to those of b, whose axis may be opposite; None if the joints
    have different motions. Springs and limits may differ."""
    mine, theirs = a.elements(), b.elements()
    if type(a) is not type(b) or len(mine) != len(theirs):
        return None
    signs: list[float] = []
    for x, y in zip(mine, theirs, strict=True):
        sign = -1.0 if isinstance(a, (Revolute, Prismatic, Compound)) and x.axis @ y.axis < 0.0 else 1.0
        same = np.allclose([*x.axis, *x.point, x.angular, x.linear], [*(sign * y.axis), *y.point, y.angular, y.linear],
                           atol=1e-6)
        if x.kind != y.kind or not same:
            return None
        signs += [sign] * x.nq
    return np.array(signs)
