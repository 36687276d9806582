"""External action on a simulation: forces on links, pulls by hand, prescribed motion of joints.

Forces and pulls are an array that compiled code reads in every evaluation (`plan/fields.py`, external), so that they
can change while it runs. A joint whose motion q*(t) is prescribed is driven by acceleration,

    a = a* + 2 r (v* - v) + r^2 (q* - q),                                                                           (1)

in which the last two terms keep the integrated motion on q*: an error decays with the time constant 1/r.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline

from bunraku.checks import as_array, as_finite, as_positive
from bunraku.errors import ModelError, NamingError, ShapeError
from bunraku.evaluate import kinematics
from bunraku.evaluate.dynamics import external_forces
from bunraku.mechanism import Free, Joint, Mechanism, Spherical
from bunraku.plan import fields as f
from bunraku.plan.chunk_plan import Read
from bunraku.runs.actuation import PlainActuation
from bunraku.simulation.actuating import as_actuation, as_params, given_params
from bunraku.simulation.pulls import wrench_of

RATE = 20.0        # [1/s] r of eq. (1)
DIFFERENCE = 1e-3  # [s] between the values of q* from which its derivatives are taken, if only q* is given


class Guide:
    """A prescribed motion whose target can be changed while the simulation runs: `prescribed={"suspension": guide}`.

    The joint follows its target as a critically damped spring would, without overshooting.
    """

    def __init__(self, q, *, seconds: float = 0.5):
        self.q = np.atleast_1d(as_finite("q", q)).astype(float)
        self.to(q, seconds)

    def to(self, q, seconds: float = 0.5) -> None:
        """Set the target q, approached to within 1 % of the distance after the given time [s]."""
        target = np.atleast_1d(as_finite("q", q)).astype(float)
        if target.shape != self.q.shape:
            raise ShapeError(f"q has the shape {target.shape}, not {self.q.shape}")
        self.q, self.rate = target, 6.6 / as_positive("seconds", seconds, ShapeError)

    def __call__(self, t: float):
        return self.q, 0.0, 0.0


@dataclass
class Course:
    """The prescribed motion of a joint."""

    name: str
    joint: Joint
    function: Callable
    at_q: slice
    at_v: slice
    begin: float = -np.inf  # [s] of a table
    end: float = np.inf

    def __call__(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q*, v*, a*"""
        answer = self.function(t)
        if isinstance(answer, tuple) and len(answer) == 3:
            q, v, a = answer
            nv = self.joint.nv
            return self._checked(q, self.joint.nq, "q"), self._checked(v, nv, "v"), self._checked(a, nv, "a")
        return self._differentiated(t, self._checked(answer, self.joint.nq, "q"))

    def _checked(self, value, size: int, what: str) -> np.ndarray:
        array = np.asarray(value, float)
        if array.ndim == 0 and (size == 1 or what != "q"):
            array = np.full(size, float(array))
        if array.shape != (size,) or not np.isfinite(array).all():
            raise ShapeError(f"prescribed motion of {self.name!r}: {what} must be {size} finite numbers, not "
                             f"{value!r}; a function of t returns q, or the tuple (q, v, a)")
        return array

    def _differentiated(self, t, q):
        """Central differences of the fourth order, in the tangent space at q."""
        h = DIFFERENCE
        back2, back, on, on2 = (away(self.joint, q, self._checked(self.function(t + k * h), self.joint.nq, "q"))
                                for k in (-2, -1, 1, 2))
        v, a = (8.0 * (on - back) - (on2 - back2)) / (12.0 * h), (16.0 * (on + back) - (on2 + back2)) / (12.0 * h * h)
        if isinstance(self.joint, Free):  # the linear velocity is measured in turning axes
            (x, y, z, a_, b_, c_) = v.tolist()
            a[:3] -= (b_ * z - c_ * y, c_ * x - a_ * z, a_ * y - b_ * x)
        return q, v, a

    def acceleration(self, t, q, v) -> np.ndarray:
        """Eq. (1)."""
        rate = getattr(self.function, "rate", RATE)
        there, speed, a = self(t)
        return a + 2.0 * rate * (speed - v[self.at_v]) + rate * rate * away(self.joint, q[self.at_q], there)


def away(joint: Joint, q0: np.ndarray, q1: np.ndarray) -> np.ndarray:
    """The displacement from q0 to q1 of one joint, as a velocity over one second."""
    if isinstance(joint, Spherical):
        return np.array(_turn(q0.tolist(), q1.tolist()))
    if isinstance(joint, Free):
        x, y, z, *p0 = q0.tolist()
        x1, y1, z1, *p1 = q1.tolist()
        return np.array([*_turned_back(p0, x1 - x, y1 - y, z1 - z), *_turn(p0, p1)])
    return q1 - q0


def _turned_back(p, x, y, z):
    """A vector in the axes that a quaternion has turned. (Scalar arithmetic: faster than arrays of three.)"""
    w, a, b, c = p
    n = w * w + a * a + b * b + c * c
    u, v, o = 2.0 * (b * z - c * y), 2.0 * (c * x - a * z), 2.0 * (a * y - b * x)
    return (x - (w * u - (b * o - c * v)) / n, y - (w * v - (c * u - a * o)) / n, z - (w * o - (a * v - b * u)) / n)


def _turn(p0, p1):
    """Rotation vector from one quaternion to another, in the axes of the first."""
    w0, a0, b0, c0 = p0
    w1, a1, b1, c1 = p1
    w = w0 * w1 + a0 * a1 + b0 * b1 + c0 * c1
    a = w0 * a1 - w1 * a0 - (b0 * c1 - c0 * b1)
    b = w0 * b1 - w1 * b0 - (c0 * a1 - a0 * c1)
    c = w0 * c1 - w1 * c0 - (a0 * b1 - b0 * a1)
    if w < 0.0:
        w, a, b, c = -w, -a, -b, -c
    sine = math.sqrt(a * a + b * b + c * c)
    k = 2.0 * math.atan2(sine, w) / sine if sine > 1e-12 * w else 2.0 / w
    return k * a, k * b, k * c


class Acting:
    """What acts on one simulation, for its present structure: actuation, external forces, pulls, prescribed motion.

    function    the user's actuation, as it was given; `params` are its parameters
    own         the same as a C function; None if there is none
    actuation   that, prescribed motions and forces given as functions of time, all in one C function
    """

    def __init__(self, mechanism: Mechanism, actuation=None, params=None, external=None, prescribed=None, reads=None):
        for name, given in (("external", external), ("prescribed", prescribed)):
            if given is not None and not isinstance(given, Mapping):
                what = "{link: wrench or function of t}" if name == "external" else "{joint: function of t or table}"
                raise ShapeError(f"{name} must be a dictionary {what}, not {given!r:.60}")
        if reads is not None and (isinstance(reads, str) or not isinstance(reads, Sequence)):
            raise NamingError(f"reads must be a list of names of joints or links, not {reads!r:.60}")
        if reads is not None and getattr(actuation, "with_model", False):
            raise ModelError("an actuation that takes the model reads the whole state, which worker 0 gathers: leave "
                             "out `reads`")
        self.external, self.prescribed = dict(external or {}), dict(prescribed or {})
        self.reads = None if reads is None else list(reads)
        self.pulls: dict[str, np.ndarray] = {}
        params = given_params(actuation, params)
        self.function, self.params = actuation, as_params(np.zeros(0) if params is None else params)
        self.fit(mechanism)
        self.drive(mechanism)

    def fit(self, mechanism: Mechanism, cut: int | None = None) -> None:
        """Look up all names in a mechanism. The joint of a link (by index) that was cut is no longer prescribed."""
        if cut is not None:
            self.prescribed = {name: given for name, given in self.prescribed.items()
                               if mechanism.find_joint(name, "prescribed: ") != cut}
        if self.reads is not None:
            for name in self.reads:
                mechanism.q_slice(name)
        constant = {name: given for name, given in self.external.items() if not callable(given)}
        self.functions = [(mechanism.find_link(name, "external"), name, function)
                          for name, function in self.external.items() if callable(function)]
        zeros = {name: np.zeros(6) for _, name, _ in self.functions}
        forces = external_forces(mechanism, {**constant, **zeros})
        if forces is not None and forces.ndim > 1:
            raise ShapeError("external: a simulation has one state: a wrench is (6,), not a batch")
        if forces is not None and not np.isfinite(forces).all():
            link = mechanism.link_names[int(np.flatnonzero(~np.isfinite(forces))[0]) // 6]
            raise ShapeError(f"external: the wrench on {link!r} is not finite")
        self.courses = [as_course(mechanism, name, given) for name, given in self.prescribed.items()]
        self.locked = frozenset(mechanism.find_joint(name, "prescribed: ") for name in self.prescribed)
        if len(self.locked) < len(self.prescribed):
            raise NamingError(f"prescribed: {', '.join(map(repr, self.prescribed))} name a joint twice, by its own "
                              "name and by that of its link; leave one out")
        size = 6 * len(mechanism.links)
        if forces is None and not self.pulls:
            self.array = np.zeros(0)
            return
        self.array = np.concatenate([np.zeros(size) if forces is None else forces, *self.pulls.values()])
        for k, name in enumerate(self.pulls):
            self.array[size + f.PULL * k + f.PULL_LINK] = mechanism.find_link(name, "pull")

    def said(self) -> list[str]:
        """Description of the initial external action, for the record."""
        return [f"{what} {', '.join(map(repr, names))}" for what, names in
                (("external forces on", self.external), ("prescribed motion of", self.prescribed)) if names]

    def to_header(self) -> dict:
        """For checkpoints: all but functions and tables, of which only the names are kept."""
        return {"external": [name for _, name, _ in self.functions], "prescribed": list(self.prescribed),
                "forces": {name: np.asarray(w, float).tolist() for name, w in self.external.items() if not callable(w)},
                "pulls": {name: row.tolist() for name, row in self.pulls.items()}, "reads": self.reads}

    def restore_pulls(self, pulls: dict, mechanism: Mechanism) -> None:
        for name, row in pulls.items():
            if len(row) != f.PULL or not np.isfinite(np.asarray(row, float)).all():
                raise ModelError(f"the pull of {name!r} is damaged: {row!r}")
            self.pulls[name] = np.array(row, float)
        self.fit(mechanism)

    def read_by_actuation(self, mechanism: Mechanism) -> Read:
        """Entries of the state read by the actuation (all, or those of `reads`) and by prescribed joints."""
        nq, nv, actuated = mechanism.nq, mechanism.nv, self.own is not None
        if actuated and self.reads is None:
            return Read(np.arange(nq), np.arange(nv))
        names = {*(self.reads or () if actuated else ()), *self.prescribed}
        at = [(mechanism.q_slice(name), mechanism.v_slice(name)) for name in names]
        q, v = (sorted({i for pair in at for i in range(pair[k].start, pair[k].stop)}) for k in (0, 1))
        return Read(np.array(q, np.int64), np.array(v, np.int64))

    def plan(self, mechanism: Mechanism, settings):
        """The plan of the mechanism for the solver."""
        if not self.locked:
            return settings.plan(mechanism, self.actuation is not None)
        if settings.structured:
            raise ModelError("solver 'implicit' does not take prescribed joints; use 'gear', 'bdf' or a Runge-Kutta "
                             "method")
        return mechanism.driven_plan(self.locked)

    def drive(self, mechanism: Mechanism) -> None:
        """Make the C functions for a mechanism."""
        self.own = self.actuation = as_actuation(self.function, mechanism)
        if not (self.functions or self.courses):
            return

        def act(t, q, v):
            tau = self.own_torque(mechanism, t, q, v)
            for link, name, function in self.functions:
                self.array[6 * link:6 * link + 6] = _wrench(name, function(t))
            for course in self.courses:
                tau[course.at_v] = course.acceleration(t, q, v)
            return tau

        self.actuation = PlainActuation(act, mechanism.nv)

    def own_torque(self, mechanism: Mechanism, t: float, q, v) -> np.ndarray:
        """Torques of the user's actuation: those of the joints, then those of the connections."""
        return self._torque(self.own, mechanism, t, q, v)

    def torque(self, mechanism: Mechanism, t: float, q, v) -> np.ndarray:
        """As `own_torque`, with the accelerations of prescribed joints in place of their torques."""
        return self._torque(self.actuation, mechanism, t, q, v)

    def _torque(self, actuation, mechanism: Mechanism, t: float, q, v) -> np.ndarray:
        tau = np.zeros(mechanism.nv + mechanism.nc)
        if actuation is not None:
            given = actuation.torque(t, q, v, self.params, len(tau))
            tau[:len(given)] = given
        return tau

    def begin(self) -> None:
        """Before a run: clear earlier errors of plain functions."""
        for actuation in (self.own, self.actuation):
            if isinstance(actuation, PlainActuation):
                actuation.begin()

    def start(self, q: np.ndarray, v: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """The state with prescribed joints on their motion at t, and the names of those that were moved."""
        self.refuse_beyond(t, t)
        q, v, moved = q.copy(), v.copy(), []
        for course in self.courses:
            there, speed, _ = course(t)
            if isinstance(course.function, Guide):
                continue  # goes there by and by
            if np.abs(away(course.joint, q[course.at_q], there)).max() > 1e-9:
                moved.append(course.name)
            q[course.at_q], v[course.at_v] = there, speed
        return q, v, moved

    def refuse_beyond(self, begin: float, end: float) -> None:
        """Tables must reach from `begin` to `end`."""
        for course in self.courses:
            if begin < course.begin - 1e-12 * abs(begin):
                raise ShapeError(f"the prescribed motion of {course.name!r} begins at {course.begin:g} s, after "
                                 f"t = {begin:g} s")
            if end > course.end:
                raise ShapeError(f"the prescribed motion of {course.name!r} ends at {course.end:g} s, before until = "
                                 f"{end:g} s")

    def at(self, mechanism: Mechanism, t: float, q, v) -> dict:
        """External action at a state, as arguments of `bk.dynamics`: forces on links, pulls included, and accelerations
        of prescribed joints."""
        forces = {name: np.array(_wrench(name, w(t)) if callable(w) else w, float) for name, w in self.external.items()}
        if self.pulls:
            moved = kinematics(mechanism, q, v)
            for name, row in self.pulls.items():
                forces[name] = forces.get(name, 0.0) + wrench_of(row, moved.poses[name], moved.velocities[name])
        return {"external": forces or None,
                "prescribed": {course.name: course.acceleration(t, q, v) for course in self.courses} or None}


def _wrench(name, value) -> np.ndarray:
    array = np.asarray(value, float)
    if array.shape != (6,) or not np.isfinite(array).all():
        raise ShapeError(f"external: the function for {name!r} must return (fx, fy, fz, mx, my, mz), not {value!r}")
    return array


def as_course(mechanism: Mechanism, name: str, given) -> Course:
    """A prescribed motion from the user's argument: a function of t, or a table (times, values)."""
    if name in mechanism.connections:
        raise NamingError(f"prescribed: {name!r} is a connection; in a simulation only joints of the tree have a "
                          "prescribed motion")
    link = mechanism.links[mechanism.find_joint(name, "prescribed: ")]
    at_q, at_v, joint = mechanism.q_slice(name), mechanism.v_slice(name), link.joint
    if callable(given):
        try:
            inspect.signature(given).bind(0.0)
        except TypeError as error:
            raise ModelError(f"prescribed motion of {name!r} must be a function of t, not {given!r:.60}: "
                             f"{error}") from None
        except ValueError:
            pass  # has no signature
        return Course(name, joint, given, at_q, at_v)
    if not (isinstance(given, (tuple, list)) and len(given) == 2):
        raise ModelError(f"prescribed motion of {name!r} must be a function of t or a table (times, values), "
                         f"not {given!r:.60}")
    times, values = as_array(f"times of {name!r}", given[0]), as_array(f"values of {name!r}", given[1])
    values = values[:, None] if values.ndim == 1 else values
    if times.ndim != 1 or len(times) < 2 or (np.diff(times) <= 0).any() or not np.isfinite(times).all():
        raise ShapeError(f"prescribed motion of {name!r}: times must be two or more that increase")
    if values.shape != (len(times), joint.nq) or not np.isfinite(values).all():
        raise ShapeError(f"prescribed motion of {name!r}: values have the shape {values.shape}; they must be finite "
                         f"and ({len(times)}, {joint.nq}), a row of q for every time")
    return Course(name, joint, _spline(joint, times, values), at_q, at_v, float(times[0]),
                  float(times[-1]))


def _spline(joint: Joint, times: np.ndarray, values: np.ndarray) -> Callable:
    """Cubic splines of coordinates: accelerations are continuous. Those of quaternions p are not of unit length between
    the times; p^-1 p' and p^-1 p'' - (p^-1 p')^2 have half the angular velocity and acceleration all the same."""
    straight = joint.nq - 4 if isinstance(joint, (Spherical, Free)) else joint.nq
    if straight < joint.nq:
        values = values.copy()
        turns = values[:, straight:]
        turns /= np.linalg.norm(turns, axis=1, keepdims=True)
        flips = np.cumsum(np.einsum("ij,ij->i", turns[1:], turns[:-1]) < 0.0) % 2 == 1
        turns[1:][flips] *= -1.0
    line = CubicSpline(times, values)

    def at(t):
        q, dq, ddq = line(t), line(t, 1), line(t, 2)
        if straight == joint.nq:
            return q, dq, ddq
        p, square = q[straight:].tolist(), float(q[straight:] @ q[straight:])
        stretch = float(q[straight:] @ dq[straight:]) / square
        w, u = _half_rate(p, dq[straight:].tolist(), square), _half_rate(p, ddq[straight:].tolist(), square)
        rate, change = [2.0 * x for x in w], [2.0 * y - 4.0 * stretch * x for x, y in zip(w, u, strict=True)]
        q[straight:] /= math.sqrt(square)
        if not straight:
            return q, np.array(rate), np.array(change)
        (x, y, z), (a, b, c) = _turned_back(p, *dq[:3].tolist()), rate
        d, e, g = _turned_back(p, *ddq[:3].tolist())
        return (q, np.array([x, y, z, *rate]),
                np.array([d - (b * z - c * y), e - (c * x - a * z), g - (a * y - b * x), *change]))

    return at


def _half_rate(p, dp, square):
    """Vector part of p^-1 dp."""
    w, a, b, c = p
    dw, da, db, dc = dp
    return ((w * da - dw * a - (b * dc - c * db)) / square, (w * db - dw * b - (c * da - a * dc)) / square,
            (w * dc - dw * c - (a * db - b * da)) / square)
