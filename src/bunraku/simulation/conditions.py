"""When something is to happen: conditions on forces and places, watched while a simulation runs.

A condition is a number that is positive where it holds. Any function (t, q, v) -> number is one; those here know the
names of joints and links and go with the simulation's structure as it changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numba import carray
from numba.core.dispatcher import Dispatcher

from bunraku.errors import ModelError, ShapeError
from bunraku.evaluate import connection_forces, joint_forces, kinematics
from bunraku.mechanism.checks import as_vector
from bunraku.mechanism.mechanism import GROUND, Mechanism
from bunraku.run.callbacks import CompiledFunction, PlainFunction


class ForceAbove:
    """The force through a joint or connection exceeds a limit: its magnitude, or its component along a direction."""

    def __init__(self, joint: str, limit: float, direction=None):
        self.joint, self.limit = joint, _number("limit", limit)
        self.direction = None if direction is None else _unit(direction)
        along = "" if self.direction is None else f" along {tuple(self.direction.round(3).tolist())}"
        self.text = f"force in {joint!r}{along} above {limit:g} N"

    def applies(self, mechanism: Mechanism) -> bool:
        return self.joint in mechanism.connections or self.joint in mechanism.joint_names

    def value(self, mechanism, q, v, tau) -> float:
        ask = connection_forces if self.joint in mechanism.connections else joint_forces
        force = ask(mechanism, q, v, tau)[self.joint][:3]
        return (float(np.linalg.norm(force)) if self.direction is None else float(self.direction @ force)) - self.limit


class Distance:
    """Two points of links are nearer than (sign -1) or farther apart than (sign 1) a distance."""

    def __init__(self, link_a, link_b, distance, position_a, position_b, sign):
        self.links = link_a, link_b
        self.places = as_vector("position_a", position_a), as_vector("position_b", position_b)
        self.distance, self.sign = _number("the distance", distance), sign
        self.text = f"{link_a!r} and {link_b!r} {'within' if sign < 0 else 'farther apart than'} {distance:g} m"

    def applies(self, mechanism: Mechanism) -> bool:
        return all(link == GROUND or link in mechanism.link_names for link in self.links)

    def value(self, mechanism, q, v, tau) -> float:
        poses = {GROUND: (np.eye(3), np.zeros(3)), **kinematics(mechanism, q).poses}
        a, b = (poses[link][1] + poses[link][0] @ x for link, x in zip(self.links, self.places, strict=True))
        return self.sign * (float(np.linalg.norm(a - b)) - self.distance)


def force_above(joint: str, limit: float, direction=None) -> ForceAbove:
    """Condition: the force through a joint or connection exceeds `limit` [N].

    Its magnitude, or with a `direction` (child-side axes, as in `bk.joint_forces`) its component along that.
    """
    return ForceAbove(joint, limit, direction)


def points_meet(link_a: str, link_b: str, within: float, position_a=(0, 0, 0), position_b=(0, 0, 0)) -> Distance:
    """Condition: a point of one link comes within a distance [m] of a point of another (or of the ground)."""
    return Distance(link_a, link_b, within, position_a, position_b, -1.0)


def points_part(link_a: str, link_b: str, beyond: float, position_a=(0, 0, 0), position_b=(0, 0, 0)) -> Distance:
    """Condition: a point of one link gets farther than a distance [m] from a point of another (or of the ground)."""
    return Distance(link_a, link_b, beyond, position_a, position_b, 1.0)


Condition = ForceAbove | Distance | Callable[..., float]


@dataclass(eq=False)
class Watch:
    """A condition under observation and what follows. `times` are those at which it came true."""

    condition: Condition
    action: Callable
    name: str
    repeat: bool
    active: bool = True                                # set it to False to stop watching
    times: list[float] = field(default_factory=list)
    holds: bool = False                                # has come true and not ceased since

    def function(self, simulation):
        """The condition as a C function for the present structure; None while it does not apply."""
        condition = self.condition
        if isinstance(condition, Dispatcher):
            return _compiled(condition)
        if isinstance(condition, (ForceAbove, Distance)):
            mechanism = simulation.mechanism
            if not condition.applies(mechanism):
                return None

            def ask(t, q, v):
                return condition.value(mechanism, q, v, simulation.torque(t, q, v))
        else:
            ask = condition

        def fill(t, q, v, out):
            out[0] = float(np.asarray(ask(t, q, v)).item())

        return PlainFunction(fill)


def _compiled(condition):
    def call(t, q, nq, v, nv, params, count, out, size):
        try:
            out[0] = condition(t, carray(q, nq), carray(v, nv))
        except Exception:
            return 1
        return 0
    return CompiledFunction(call)


def as_watch(mechanism, condition, action, name, repeat) -> Watch:
    """What `Simulation.when` was given, checked."""
    if not callable(action):
        raise ModelError(f"action must be a function of the simulation, not {action!r}")
    if isinstance(condition, (ForceAbove, Distance)):
        if not condition.applies(mechanism):
            raise ModelError(f"cannot watch for {condition.text}: {mechanism.name} has nothing of that name")
        text = condition.text
    elif callable(condition):
        text = getattr(condition, "__name__", "condition")
    else:
        raise ModelError("condition must be a function (t, q, v) -> number, bk.force_above, bk.points_meet or "
                         f"bk.points_part, not {condition!r}")
    return Watch(condition, action, text if name is None else name, bool(repeat))


def _number(what, value) -> float:
    if not np.isfinite(value):
        raise ShapeError(f"{what} must be a finite number, not {value!r}")
    return float(value)


def _unit(direction) -> np.ndarray:
    vector = as_vector("direction", direction)
    if not np.linalg.norm(vector) > 0:
        raise ShapeError(f"direction must not be zero, not {direction!r}")
    return vector / np.linalg.norm(vector)
