"""Events: conditions on forces and positions, watched while a simulation runs.

A condition is a number that is positive, or True, where it holds. Any function (t, q, v) -> number is one, and any
(t, q, v, model) -> number, which is given the running mechanism (`runs/model.py`); those here refer to joints and links
by name and follow changes of the simulation's structure.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numba import carray, cfunc, types

from bunraku.checks import as_number, as_vector
from bunraku.compiler.numba_inside import Dispatcher, NumbaError
from bunraku.errors import ModelError, NamingError, ShapeError, SimulationError, StateError
from bunraku.evaluate import connection_forces, joint_forces, kinematics
from bunraku.integrate.callbacks import (
    READ_ONLY,
    SIGNATURE,
    CFunction,
    CompiledFunction,
    PlainFunction,
    call_function,
    checked,
    compile_for,
    in_python,
)
from bunraku.integrate.events import PARTS
from bunraku.integrate.record import COEFFICIENTS, CURSOR, EVENTS, PER_STEP, SPLIT, Record
from bunraku.mechanism.mechanism import GROUND, Mechanism
from bunraku.runs.bound_functions import bind
from bunraku.runs.model import PlanModel
from bunraku.runs.model_calls import CompiledWithModel
from bunraku.simulation.actuating import model_of, takes_model
from bunraku.simulation.failures import cannot_compile, said

if TYPE_CHECKING:
    from bunraku.simulation.running import Running

LAMBDA = (lambda: None).__name__


class ForceAbove:
    """The force through a joint or connection exceeds a limit: its magnitude, or its component along a direction."""

    def __init__(self, joint: str, limit: float, direction=None):
        self.joint, self.limit = joint, as_number("force_above: the limit", limit, ShapeError)
        self.direction = None if direction is None else _unit(direction)
        along = "" if self.direction is None else f" along {tuple(self.direction.round(3).tolist())}"
        self.text = f"force in {joint!r}{along} above {limit:g} N"

    def missing(self, mechanism: Mechanism) -> str | None:
        known = [*mechanism.joint_names, *mechanism.connections]
        return None if self.joint in known else mechanism.no_joint(self.joint)

    def about(self, mechanism: Mechanism) -> object:
        """The watched joint or connection object; a connection that is cut and made again is a new object."""
        if self.joint in mechanism.connections:
            return mechanism.connections[self.joint].position_a
        return mechanism.links[mechanism.joint_names.index(self.joint)].joint

    def value(self, mechanism, q, v, tau, acting) -> float:
        ask = connection_forces if self.joint in mechanism.connections else joint_forces
        force = ask(mechanism, q, v, tau, **acting)[self.joint][:3]
        return (float(np.linalg.norm(force)) if self.direction is None else float(self.direction @ force)) - self.limit


class Distance:
    """Two points of links are nearer than (sign -1) or farther apart than (sign 1) a distance."""

    def __init__(self, link_a, link_b, distance, position_a, position_b, sign):
        self.links = link_a, link_b
        self.places = as_vector("position_a", position_a), as_vector("position_b", position_b)
        self.distance, self.sign = as_number("the distance", distance, ShapeError), sign
        self.text = f"{link_a!r} and {link_b!r} {'within' if sign < 0 else 'farther apart than'} {distance:g} m"

    def missing(self, mechanism: Mechanism) -> str | None:
        known = [GROUND, *mechanism.link_names]
        return next((mechanism.no_link(link) for link in self.links if link not in known), None)

    def about(self, mechanism: Mechanism) -> object:
        return GROUND  # links are never made anew

    def value(self, mechanism, q, v, tau, acting) -> float:
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
    """A watched condition and its action. `times` are those at which it came true."""

    condition: Condition
    action: Callable
    name: str
    repeat: bool
    active: bool = True                                # set it to False to stop watching
    times: list[float] = field(default_factory=list)
    holds: bool = False                                # has come true and not ceased since
    about: object = None                               # the present make of its connection: cut and made, another
    applied: bool = False                              # to any structure so far
    before: float = 0.0                                # its number where the solver last started

    def applies(self, mechanism: Mechanism) -> bool:
        """Whether all joints and links of the condition exist. A connection that was cut and made again is a new one:
        the condition's state is reset."""
        if not isinstance(self.condition, (ForceAbove, Distance)):
            return True
        there = not self.condition.missing(mechanism)
        about = self.condition.about(mechanism) if there else None
        if about is not self.about:
            self.about, self.holds, self.before = about, False, 0.0
        return there

    @property
    def with_model(self) -> bool:
        """Whether the condition takes the model after (t, q, v)."""
        return callable(self.condition) and takes_model(self.condition, 3)

    def function(self, run: Running):
        """The condition as a C function for the present structure; None while it does not apply."""
        condition = self.condition
        if isinstance(condition, Dispatcher):
            return ConditionOfModel(condition, model_of(run.mechanism)) if self.with_model else _compiled(condition)
        if isinstance(condition, (ForceAbove, Distance)):
            mechanism = run.mechanism
            if not self.applies(mechanism):
                return None

            def ask(t, q, v):
                return condition.value(mechanism, q, v, run.acting.own_torque(mechanism, t, q, v),
                                       run.acting.at(mechanism, t, q, v))
        else:
            ask = partial(condition, model=model_of(run.mechanism)) if self.with_model else condition

        def fill(t, q, v, out):
            out[0] = float(np.asarray(ask(t, q, v)).item())
            if np.isnan(out[0]):  # would never come true, and never say why
                raise StateError("it is not a number (nan)")

        return PlainFunction(fill)


@functools.lru_cache(maxsize=256)
def _compiled(condition):
    safe = checked(condition)

    def call(t, q, nq, v, nv, params, count, out, size):
        try:
            out[0] = safe(t, carray(q, nq), carray(v, nv))
        except Exception:
            return 1
        return 1 if np.isnan(out[0]) else 0
    try:
        answer = compile_for(safe, types.float64, READ_ONLY, READ_ONLY)
        _refuse_unless_number(condition, answer)
        return CompiledFunction(call)
    except NumbaError as error:
        raise ModelError(cannot_compile(f"the condition {condition.__name__!r}", error)) from error


class ConditionOfModel(CFunction):
    """A compiled condition (t, q, v, model) with the model of one structure."""

    error: BaseException | None = None

    def __init__(self, condition, model: PlanModel):
        self.model = model  # what the words point to
        self._kept, names = _compiled_with_model(condition)
        self._words = model.words(names, condition.__name__)
        self.address = bind(self, self._kept.address, self._words.ctypes.data)


@functools.lru_cache(maxsize=256)
def _compiled_with_model(condition):
    """The compiled condition as a C function whose last argument is the address of a model's words, and its names."""
    try:
        made = CompiledWithModel(condition, types.float64, READ_ONLY, READ_ONLY)
        user, as_model = made.call, made.as_model

        def call(t, q, nq, v, nv, params, count, out, size, words):
            try:
                out[0] = user(t, carray(q, nq), carray(v, nv), as_model(words))
            except Exception:
                return 1
            return 1 if np.isnan(out[0]) else 0
        _refuse_unless_number(condition, made.answer)
        return cfunc(SIGNATURE.return_type(*SIGNATURE.args, types.int64))(call), made.names
    except NumbaError as error:
        raise ModelError(cannot_compile(f"the condition {condition.__name__!r}", error)) from error


def _refuse_unless_number(condition, answer) -> None:
    if not isinstance(answer, (types.Number, types.Boolean)):
        raise ModelError(f"the condition {condition.__name__!r} must return a number, positive where it holds, but "
                         f"returns {answer}")


class Watched:
    """The conditions of a simulation that apply to its present structure, in the form for compiled code."""

    def __init__(self, run: Running, watches: list[Watch]):
        self.run = run
        found = [(watch, watch.function(run)) for watch in watches if watch.active]
        self.watches = [watch for watch, function in found if function is not None]
        for watch in self.watches:
            watch.applied = True
        self.functions = [function for _, function in found if function is not None]
        count = len(self.watches)
        self.event_addresses = np.array([function.event_address for function in self.functions], np.int64)
        self.g = np.zeros((PARTS + 1, count))
        for k in range(count):
            self.g[0, k] = self._ask(k)
        self.cursor = np.zeros(CURSOR + count, np.int64)  # a zero that a run starts from is yet to be counted
        self.cursor[SPLIT] = run.mechanism.nq

    def _ask(self, k) -> float:
        run, value = self.run, np.zeros(1)
        if call_function(self.functions[k].address, run.t, run.q, run.v, run.acting.params, value) != 0:
            self.complain()
        watch, just_true = self.watches[k], np.finfo(float).tiny
        found_here = watch.times and watch.times[-1] == run.t
        if found_here:  # at this zero, which is not to be found again
            watch.before = value[0]
            return max(value[0], just_true)
        watch.holds = watch.holds and value[0] > 0
        if watch.before < 0.0 == value[0]:  # has come to zero just where another one was found
            return just_true
        watch.before = value[0]
        return value[0]

    def already(self) -> Watch | None:
        """A condition that already holds at the start, without a zero crossing within a step."""
        return next((w for w, g in zip(self.watches, self.g[0], strict=True) if g > 0 and not w.holds), None)

    def record(self, rows: int, n: int, polynomials) -> Record:
        """Empty record for this number of steps of n numbers; `polynomial_room` for the interpolating polynomials."""
        count, (cube, table) = len(self.watches), polynomials
        room = PER_STEP * count
        self.cursor[EVENTS] = 0
        self.event_kind = np.empty(room, np.int64)
        return Record(np.empty(rows), np.empty((rows, n)), cube, table, np.empty(0), np.empty((0, n)),
                     np.empty((COEFFICIENTS if count or len(cube) else 0, n)), np.empty(n), self.event_addresses,
                     self.run.acting.params, self.g, np.empty(count), np.ones(count, np.int64),
                     np.ones(count, np.int64), np.empty(room), np.empty((room, n)), self.event_kind, self.cursor)

    def found(self) -> Watch:
        """The condition at which the run stopped; conditions that have ceased to hold are marked so."""
        for watch, before in zip(self.watches, self.g[0], strict=True):
            watch.holds = watch.holds and before > 0.0
        return self.watches[self.event_kind[self.cursor[EVENTS] - 1]]

    def complain(self, alone: bool = True) -> None:
        """Raise the exception of a condition again, if there was one; `alone`: only a condition can have failed.

        A compiled condition gives no details.
        """
        trajectory, where = self.run.trajectory, f"failed at t = {self.run.t:.6g} s"
        for watch, function in zip(self.watches, self.functions, strict=True):
            if isinstance(function.error, (KeyboardInterrupt, SystemExit)):
                raise function.error
            if function.error is not None:
                raise SimulationError(f"condition {watch.name!r} {where}: {said(function.error)}",
                                      trajectory) from function.error
        state = self.run.t, self.run.q.copy(), self.run.v.copy()
        for watch in self.watches:
            if isinstance(watch.condition, Dispatcher):
                try:
                    model = (model_of(self.run.mechanism),) if watch.with_model else ()
                    in_python(watch.condition)(*state, *model)  # says what the compiled one cannot
                except Exception as error:
                    error.add_note(f"(q has {len(state[1])} entries, v {len(state[2])})")
                    raise SimulationError(f"condition {watch.name!r} {where}: {said(error)}", trajectory) from error
        compiled = [repr(w.name) for w in self.watches if isinstance(w.condition, Dispatcher)]
        if alone and compiled:
            raise SimulationError(f"condition {' or '.join(compiled)} {where}: compiled, it raised an exception or "
                                  "gave no number", trajectory)


def as_watch(mechanism, condition, action, name, repeat, number: int) -> Watch:
    """The arguments of `Simulation.when`, checked; unnamed conditions are named by `number`.

    A connection may be made later; links must exist from the start.
    """
    if not callable(action):
        raise ModelError("action must be a function of the simulation, such as lambda sim: sim.cut('grip'), not "
                         f"{action!r}")
    if isinstance(condition, (ForceAbove, Distance)):
        missing = condition.missing(mechanism)
        if missing and (isinstance(condition, Distance) or condition.joint in mechanism.link_names):
            raise NamingError(f"cannot watch for {condition.text}: {missing}")
        text = condition.text
    elif callable(condition):
        text = getattr(condition, "__name__", LAMBDA)
        text = f"condition {number}" if text == LAMBDA else text
    else:
        raise ModelError("condition must be a function (t, q, v) -> number, bk.force_above, bk.points_meet or "
                         f"bk.points_part, not {condition!r}")
    return Watch(condition, action, text if name is None else name, bool(repeat))


def never_applied(watches: list[Watch], mechanism: Mechanism) -> list[str]:
    """Warning text, issued once, for conditions whose joint or link has never existed: probably a misspelt name."""
    out = []
    for watch in watches:
        if watch.active and not watch.applied and isinstance(watch.condition, (ForceAbove, Distance)):
            out.append(f"condition {watch.name!r} never applied: {watch.condition.missing(mechanism)}")
            watch.applied = True
    return out


def _unit(direction) -> np.ndarray:
    vector = as_vector("direction", direction)
    if not np.linalg.norm(vector) > 0:
        raise ShapeError(f"direction must not be zero, not {direction!r}")
    return vector / np.linalg.norm(vector)
