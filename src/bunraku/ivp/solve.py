"""`solve_ivp`: the integrators for any ordinary differential equation, with SciPy's signature and result fields."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from bunraku.checks import as_array, as_positive, as_size, hint
from bunraku.compiler.numba_inside import Dispatcher
from bunraku.errors import ModelError, ShapeError, SimulationError, SimulationWarning, StateError
from bunraku.integrate import solver_memory as m
from bunraku.integrate.callbacks import PlainFunction, call_function
from bunraku.integrate.events import PARTS
from bunraku.integrate.history import Family
from bunraku.integrate.methods import METHODS, STRUCTURED, memory_for
from bunraku.integrate.pace import EQUATION, Pace, step_too_small
from bunraku.integrate.record import COEFFICIENTS, CURSOR, EVENTS, NEXT_TIME, PER_STEP, SPLIT, Record
from bunraku.ivp.functions import event_function, right_hand_side
from bunraku.ivp.ivp_entries import solver_of
from bunraku.ivp.jacobians import KnownJacobian
from bunraku.terminal import Interrupts

ROOM, ROOM_PLAIN = 512, 64  # steps recorded in one call of compiled code; of a plain f, so that Ctrl-C waits less
EVENT_ROOM = 64
NUMBERS_PER_CALL = 2_000_000


@dataclass(eq=False)
class DenseSolution:
    """A solution as a function of time: `sol(t)` is (n,) for a number, (n, k) for k times.

    Each step is the interpolating polynomial of its method. `ts` are the ends of the steps.
    """

    ts: np.ndarray
    steps: list[tuple[float, float, np.ndarray]]  # origin, scale, coefficients (degree + 1, n)

    @property
    def t_min(self) -> float:
        return float(min(self.ts[0], self.ts[-1]))

    @property
    def t_max(self) -> float:
        return float(max(self.ts[0], self.ts[-1]))

    def __call__(self, t) -> np.ndarray:
        times = np.asarray(t, float)
        if times.ndim > 1:
            raise ShapeError(f"times must be a number or a 1-D array, not of shape {times.shape}")
        forward = self.ts[-1] >= self.ts[0]
        ends = self.ts if forward else -self.ts
        place = np.searchsorted(ends, times if forward else -times, side="left") - 1
        place = np.clip(np.atleast_1d(place), 0, max(len(self.steps) - 1, 0))
        out = np.empty((len(self.steps[0][2][0]), place.size))
        flat = np.atleast_1d(times)
        for k in np.unique(place):
            origin, scale, coefficients = self.steps[k]
            here = place == k
            s = (flat[here] - origin) / scale
            total = np.zeros((out.shape[0], s.size))
            for c in coefficients[::-1]:
                total = total * s + c[:, None]
            out[:, here] = total
        return out[:, 0] if times.ndim == 0 else out


@dataclass(eq=False)
class IvpResult:
    """Result of `solve_ivp`: SciPy's fields, and `steps` and `rejected`."""

    t: np.ndarray                                  # (k,)
    y: np.ndarray                                  # (n, k)
    sol: DenseSolution | None
    t_events: list[np.ndarray] | None
    y_events: list[np.ndarray] | None
    nfev: int
    njev: int
    nlu: int
    status: int                                    # 0: end reached; 1: an event ended it; -1: failed
    message: str
    success: bool
    steps: int = 0
    rejected: int = 0
    order: int = field(default=0)                  # of the last step

    def __getitem__(self, name):
        return getattr(self, name)


def solve_ivp(fun, t_span, y0, method: str = "gear", t_eval=None, dense_output: bool = False, events=None,
              vectorized: bool = False, args=None, *, rtol=1e-6, atol=1e-9, first_step: float | None = None,
              max_step: float = math.inf, min_step: float = 0.0, max_order: int | None = None, jac=None,
              jac_sparsity=None, lband: int | None = None, uband: int | None = None) -> IvpResult:
    """Solve y' = fun(t, y) from t_span[0] to t_span[1] with y = y0 at the start.

    fun         (t, y, *args) -> y'; compiled by `numba.njit` it runs without Python in the loop. A function with one
                more argument writes y' to it.
    method      "gear" (Adams, orders 1 to 12), "bdf" (stiff, orders 1 to 5), "tsit5", "rkf", "rkg", "rki", "iec"
    t_eval      times of the solution; by default the end of every step
    events      a function (t, y, *args) -> number or a list of them; zeros are located in time. Attributes as in SciPy:
                `terminal` (True, or how many times) and `direction` (1: rising, -1: falling)
    rtol, atol  numbers or arrays like y0: the local error of each component is kept below atol + rtol |y|
    jac         Jacobian for "bdf": (t, y, *args) -> (n, n), entry i, j the derivative of component i by y[j], compiled
                by `numba.njit` if fun is; or a constant matrix. By default it comes from differences
    jac_sparsity, or lband and uband    where it may differ from zero, a (sparse) matrix or the widths of a band:
                differences take fewer evaluations then
    vectorized  fun takes columns, (n, k); it is called with one

    A run that fails has `success` False, `status` -1, a message with the time, and the solution up to then.
    """
    if method in STRUCTURED:
        raise ModelError(f"method {method!r} works with the structure of a mechanism and is for bk.Simulation; for a "
                         "stiff equation of another kind take 'bdf'")
    if method not in METHODS:
        raise ModelError(f"method {method!r} is not one of {', '.join(METHODS)}{hint(method, METHODS, close=True)}")
    if not callable(fun):
        raise ShapeError(f"fun must be a function (t, y) -> derivatives of y, not {fun!r}")
    table = METHODS[method]
    t0, t1 = _span(t_span)
    y = _state(y0)
    args = () if args is None else (tuple(args) if isinstance(args, (tuple, list)) else (args,))
    memory = memory_for(method, y, _tolerance("rtol", rtol, len(y)), _tolerance("atol", atol, len(y)), max_order)
    _limits(memory, t0, t1, first_step, max_step, min_step)
    watched = _Events(events, args, t0, y)
    times = _times(t_eval, t0, t1)
    known = KnownJacobian(method, len(y), args, jac, jac_sparsity, lband, uband)
    memory = known.put_into(memory)
    f = right_hand_side(_of_columns(fun, len(args)) if vectorized else fun, args, len(y))
    room = ROOM_PLAIN if isinstance(f, PlainFunction) else ROOM
    solution = _Solution(t0, y, times, dense_output, watched, room)
    status, pace = m.REACHED, Pace(not (isinstance(table, Family) and table.newton), EQUATION)

    def rates(t, y):
        out = np.zeros(len(y))
        call_function(f.address, t, y, np.empty(0), np.empty(0), out)
        return out
    if len(y):
        entry = solver_of(table).load()
        status = m.RECORD_FULL
        with Interrupts() as interrupts:  # one that came while C calls Python would be lost
            while status == m.RECORD_FULL:
                memory.tally[m.RECORDED] = 0
                record = solution.record()
                tick = time.perf_counter()
                status = entry.call(table, f.address, memory, record)
                solution.keep(record, int(memory.tally[m.RECORDED]))
                interrupts.let_in()
                if status == m.RECORD_FULL:
                    n, order = int(memory.tally[m.RECORDED]), int(memory.tally[m.ORDER]) or getattr(table, "order", 1)
                    text = pace.look(memory, order, record.t[:n], record.y[:n], time.perf_counter() - tick, rates)
                    if text:
                        warnings.warn(text, SimulationWarning, stacklevel=2)
    if status == m.ACTUATION_FAILED:
        _raise_from(f, known.function, watched, float(memory.clock[m.TIME]))
    if status in (m.STATE_FAILED, m.STEP_TOO_SMALL) and not memory.tally[m.STARTED]:
        raise StateError(f"f(t, y) is not finite at the start, t = {t0:.6g}: {_bad_component(f, t0, y)}")
    return solution.result(status, _message(status, f, memory), memory)


# -- what people give ----------------------------------------------------------------------------------------------


def _of_columns(fun, count):
    """A vectorized function as one of a single state; compiled if it is."""
    if isinstance(fun, Dispatcher):
        if count:
            raise ModelError("vectorized: a compiled fun with args is called with one state; leave vectorized out")
        return njit(lambda t, y: fun(t, y.reshape((-1, 1)))[:, 0])
    return lambda t, y, *args: np.asarray(fun(t, y[:, None], *args))[:, 0]


def _span(t_span):
    try:
        t0, t1 = map(float, t_span)
    except (TypeError, ValueError):
        raise ShapeError(f"t_span must be two times, not {t_span!r}") from None
    if not (math.isfinite(t0) and math.isfinite(t1)):
        raise ShapeError(f"t_span must be two finite times, not {t_span!r}")
    return t0, t1


def _state(y0):
    y = np.asarray(y0)
    if y.dtype.kind not in "biuf" or y.ndim != 1:
        raise ShapeError(f"y0 must be a 1-D array of real numbers, not of shape {y.shape} and kind {y.dtype}")
    y = y.astype(float)
    if not np.isfinite(y).all():
        raise StateError(f"y0[{np.flatnonzero(~np.isfinite(y))[0]}] is {y[~np.isfinite(y)][0]}")
    return y


def _tolerance(name, value, n):
    array = as_array(name, value)
    if array.shape not in ((), (n,)):
        raise ShapeError(f"{name} must be a number or an array of shape ({n},), not of shape {array.shape}")
    if not (array >= 0).all() or (name == "atol" and not (array > 0).all()):
        raise ShapeError(f"{name} must be positive, not {value!r}")
    return np.maximum(array, 100 * m.EPSILON) if name == "rtol" else array


def _limits(memory, t0, t1, first_step, max_step, min_step):
    longest = as_positive("max_step", max_step, ShapeError, infinite=True)
    if as_size("min_step", min_step, ShapeError) > longest:
        raise ShapeError(f"min_step = {min_step:g} must not be longer than max_step = {max_step:g}")
    if first_step is not None and as_positive("first_step", first_step, ShapeError) > max(abs(t1 - t0), min_step):
        raise ShapeError(f"first_step must be a positive time within t_span, not {first_step!r}")
    memory.clock[[m.TIME, m.UNTIL, m.MIN_STEP, m.MAX_STEP]] = t0, t1, min_step, max_step
    memory.clock[m.STEP] = 0.0 if first_step is None else math.copysign(first_step, t1 - t0)


def _times(t_eval, t0, t1):
    if t_eval is None:
        return None
    times = np.array(t_eval, float)
    if times.ndim != 1:
        raise ShapeError(f"t_eval must be 1-D, not of shape {times.shape}")
    if times.size and not (min(t0, t1) <= times.min() and times.max() <= max(t0, t1)):
        raise ShapeError(f"t_eval must be within t_span; it reaches from {times.min():g} to {times.max():g}")
    if (np.diff(times) * (1.0 if t1 >= t0 else -1.0) <= 0).any():
        raise ShapeError("t_eval must be sorted in the direction of t_span, without repetitions")
    return times


class _Events:
    """The events as C functions, with their attributes as arrays."""

    def __init__(self, events, args, t0, y):
        self.given = events is not None
        functions = _functions(events)
        self.count = len(functions)
        self.direction = np.array([int(np.sign(getattr(e, "direction", 0.0))) for e in functions], np.int64)
        self.left = np.array([_occurrences(e) for e in functions], np.int64)
        self.functions = [event_function(e, args) for e in functions]
        self.addresses = np.array([f.address for f in self.functions], np.int64)
        self.g = np.zeros((PARTS + 1, self.count))
        for k, event in enumerate(functions):
            self.g[0, k] = float(np.asarray(event(t0, y.copy(), *args)).item())


def _functions(events) -> list:
    if events is None or callable(events):
        return [] if events is None else [events]
    functions = list(events) if isinstance(events, Iterable) else [None]
    if not all(map(callable, functions)):
        raise ShapeError(f"events must be a function (t, y) -> number or a list of them, not {events!r}")
    return functions


def _occurrences(event) -> int:
    terminal = getattr(event, "terminal", None)
    if terminal is None or terminal is False:
        return 0
    if terminal is True:
        return 1
    if int(terminal) != terminal or terminal < 1:
        raise ShapeError(f"`terminal` of an event is True, False, or a number of times, not {terminal!r}")
    return int(terminal)


# -- what was computed ---------------------------------------------------------------------------------------------


class _Solution:
    """Collects the steps recorded by compiled code, call by call."""

    def __init__(self, t0, y, times, dense, events, room=ROOM):
        n = self.n = len(y)
        self.t0, self.y0, self.times, self.dense, self.events = t0, y.copy(), times, dense, events
        self.every_step = times is None
        self.room = max(1, min(room, NUMBERS_PER_CALL // max(1, n * (COEFFICIENTS if dense else 1))))
        self.t, self.y, self.steps = [np.array([t0])], [y[None].copy()], []
        self.event_t, self.event_y, self.event_kind = [np.empty(0)], [np.empty((0, n))], [np.empty(0, np.int64)]
        self.at_times = np.empty((0 if times is None else len(times), n))
        self.cursor = np.zeros(CURSOR + events.count, np.int64)
        self.cursor[CURSOR:] = events.g[0] == 0.0  # a zero that a run starts from is not counted
        self.cursor[SPLIT] = n
        if times is not None and len(times) and times[0] == t0:
            self.at_times[0] = y
            self.cursor[NEXT_TIME] = 1
        self.now = np.empty((COEFFICIENTS if dense or times is not None or events.count else 0, n))

    def record(self) -> Record:
        room, n, e = self.room, self.n, self.events
        polynomials = room if self.dense else 0
        event_room = EVENT_ROOM + PER_STEP * e.count if e.count else 0
        self.cursor[EVENTS] = 0
        return Record(np.empty(room), np.empty((room, n)), np.empty((polynomials, COEFFICIENTS, n)),
                     np.empty((polynomials, 3)), np.empty(0) if self.every_step else self.times, self.at_times,
                     self.now, np.empty(n), e.addresses, np.empty(0), e.g, np.empty(e.count), e.direction, e.left,
                     np.empty(event_room), np.empty((event_room, n)), np.empty(event_room, np.int64), self.cursor)

    def keep(self, record, steps):
        self.t.append(record.t[:steps].copy())
        if self.every_step:
            self.y.append(record.y[:steps].copy())
        if self.dense:
            self.steps += [(float(origin), float(scale), record.poly[k, :int(degree) + 1].copy())
                           for k, (origin, scale, degree) in enumerate(record.poly_t[:steps])]
        count = int(self.cursor[EVENTS])
        self.event_t.append(record.event_t[:count].copy())
        self.event_y.append(record.event_y[:count].copy())
        self.event_kind.append(record.event_kind[:count].copy())

    def result(self, status, message, memory) -> IvpResult:
        ends = np.concatenate(self.t)
        if self.every_step:
            t, y = ends, np.concatenate(self.y)
        else:
            found = int(self.cursor[NEXT_TIME])
            t, y = self.times[:found].copy(), self.at_times[:found].copy()
        t_events = y_events = None
        if self.events.given:
            when, where = np.concatenate(self.event_t), np.concatenate(self.event_y)
            kind = np.concatenate(self.event_kind)
            t_events = [when[kind == k] for k in range(self.events.count)]
            y_events = [where[kind == k] for k in range(self.events.count)]
        sol = None
        if self.dense:
            sol = DenseSolution(ends, self.steps or [(self.t0, 1.0, self.y0[None])])
        tally = memory.tally
        code = {m.REACHED: 0, m.EVENT: 1}.get(status, -1)
        return IvpResult(t, y.T.copy(), sol, t_events, y_events, int(tally[m.EVALUATIONS]), int(tally[m.JACOBIANS]),
                         int(tally[m.FACTORISATIONS]), code, message, code >= 0, int(tally[m.STEPS]),
                         int(tally[m.REJECTED]), int(tally[m.ORDER]))


def _message(status, f, memory) -> str:
    t, h = float(memory.clock[m.TIME]), float(memory.clock[m.STEP])
    if status == m.REACHED:
        return "The solver successfully reached the end of the integration interval."
    if status == m.EVENT:
        return "A termination event occurred."
    if status == m.STEP_TOO_SMALL:
        return step_too_small(f"at t = {t:.9g}", float(memory.clock[m.MIN_STEP]), h, "", "or try method='bdf'")
    return f"f(t, y) is not finite after t = {t:.9g}: {_bad_component(f, t, memory.rows[0].copy(), h)}"


def _bad_component(f, t, y, h=0.0) -> str:
    """The component that is not finite, near a point where one is."""
    out, nothing = np.zeros(len(y)), np.empty(0)
    for k in range(4):
        later = t + h * 4**k
        call_function(f.address, later, y, nothing, nothing, out)
        bad = np.flatnonzero(~np.isfinite(out))
        if bad.size:
            return f"component {bad[0]} of it is {out[bad[0]]} at t = {later:.9g}"
    return "or y has left the region where it is"


def _raise_from(f, jac, events, t):
    for source, what in ((f, "f(t, y)"), (jac, "jac(t, y)"), *((event, "an event") for event in events.functions)):
        error = getattr(source, "error", None)
        if error is not None:
            if isinstance(error, Exception):
                error.add_note(f"raised by {what} while bk.solve_ivp was at t = {t:.9g}")
            raise error
    raise SimulationError(f"the compiled f(t, y){' or jac(t, y)' if jac else ''} failed after t = {t:.9g}: it raised "
                          "an exception, or returned an array of another length than y")
