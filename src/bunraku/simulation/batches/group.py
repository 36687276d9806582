"""Integration of a batch of states to common times, one by one, over threads (`tiles.py`: in lanes).

Every worker takes the next piece of the batch when it has finished its last one. Compiled code returns regularly, for
progress bars and Ctrl-C.
"""

from __future__ import annotations

import contextlib
import copy
import threading
import time
import warnings
from collections.abc import Sequence
from functools import cached_property, partial

import numpy as np

from bunraku.entries.explain import explain
from bunraku.entries.moves import unit_quaternions
from bunraku.entries.pool import take_turns
from bunraku.errors import BunrakuError, ConstraintError, SimulationError, SimulationWarning
from bunraku.evaluate.contact_workspace import Touching
from bunraku.integrate import solver_memory as m
from bunraku.integrate.pace import MOTION, Pace
from bunraku.integrate.record import empty_record
from bunraku.mechanism import Mechanism
from bunraku.plan.build import Plan
from bunraku.runs.actuation import Actuation, PlainActuation
from bunraku.runs.context import structure_of
from bunraku.simulation.acting import Acting
from bunraku.simulation.actuating import address_of, as_actuation
from bunraku.simulation.closing import closed_start, look_at_loops
from bunraku.simulation.contact_events import deepest_start
from bunraku.simulation.crew.sharing import Sharing
from bunraku.simulation.failures import LeftOpen, stopped
from bunraku.simulation.records.tape import Extent
from bunraku.simulation.running import Running
from bunraku.simulation.settings import Settings
from bunraku.simulation.state_changes import start
from bunraku.simulation.stretches import BODY_STEPS_PER_CALL, advance

NOTHING = np.zeros(0)

CANNOT_START = -1  # a status beside those of `integrate.memory`


class Group:
    """The states, their status, and the requested results: at those of `times` that are finite."""

    controls, substeps, origin = np.zeros((0, 0)), 1, np.zeros(1)  # as in `fixed_steps_lanes`

    def __init__(self, mechanism: Mechanism | Sequence[Mechanism], q, v, params, times, settings: Settings, actuation):
        """Several mechanisms share the states evenly, in blocks."""
        several = [mechanism] if isinstance(mechanism, Mechanism) else mechanism
        self.mechanisms = [one.copy().locked() for one in several]
        self.mechanism, self.params, self.times = self.mechanisms[0], params, times
        self.block = len(q) // len(self.mechanisms)
        self.settings, self.function = settings, actuation
        if isinstance(actuation, Actuation):
            actuation.refuse(settings.solver, settings.step, len(params) == len(q))
        self.actuations = [as_actuation(actuation, one) for one in self.mechanisms]  # each with its own model
        self.actuation = self.actuations[0]
        self.plan = plan = self.mechanism.plan()
        self.nq, self.nv, count = plan.nq, plan.nv, len(q)
        self.given, self.y = q, np.empty((count, plan.nq + plan.nv))
        records = int(np.isfinite(times).sum())
        self.q_at = np.full((count, records * plan.nq), np.nan)
        self.v_at = np.full((count, records * plan.nv), np.nan)
        self.status = np.zeros(count, np.int64)
        self.reached, self.loop_error, self.loop_drift = np.zeros((3, count))
        self.steps, self.rejected, self.evaluations = (np.zeros(count, np.int64) for _ in range(3))
        self.causes: dict[int, BaseException] = {}  # what an actuation in Python raised, by state
        self.open_loops: dict[int, str] = {}        # what is to be said of them, by state
        self.stops: dict[int, str] = {}             # what is to be said of those that contact has stopped
        self.left_open: dict[int, LeftOpen] = {}    # by state, of those that failed on the way
        self.structures: dict[int, Mechanism] = {}  # by state, of those with connections of their own
        self.begin(np.arange(count), q, v)

    @cached_property
    def _touching(self) -> list[Touching]:
        return [Touching(mechanism, stepping=self.settings.fixed_step) for mechanism in self.mechanisms]

    def begin(self, states: np.ndarray, q, v, overlapping: bool = False) -> None:
        """Put the states with these numbers at the start (q, v); CANNOT_START those that cannot be there."""
        for k in states.tolist():
            self.open_loops.pop(k, None)
        self.y[states, :self.nq], self.y[states, self.nq:] = unit_quaternions(self.plan, q), v
        finite = np.isfinite(self.y[states]).all(axis=1)
        self.status[states] = np.where(finite, 0, CANNOT_START)
        for k in states[finite].tolist() if self.plan.loops is not None else ():
            try:
                closed = closed_start(self.mechanism, *np.split(self.y[k], [self.nq]))
                self.y[k] = np.concatenate(closed[:2])
            except ConstraintError as error:
                self.status[k], self.open_loops[k] = CANNOT_START, str(error)
        checked = self.mechanism.needs_contact() and not overlapping
        for k in states[self.status[states] == 0].tolist() if checked else ():
            try:
                start = self.y[k, :self.nq], self.y[k, self.nq:]
                touching = self._touching[k // self.block]
                touching.refuse_overlap(start[0], "contact", partial(deepest_start, touching, *start, self.settings))
            except BunrakuError as error:
                self.status[k], self.open_loops[k] = CANNOT_START, str(error)

    def mechanism_of(self, k: int) -> Mechanism:
        """The mechanism of state k, with its own connections."""
        return self.structures.get(k) or self.mechanisms[k // self.block]

    def params_of(self, k: int) -> np.ndarray:
        return self.params[k if len(self.params) > 1 else 0]

    def keep(self, k: int, place: int, y) -> None:
        """Store state k at a requested time."""
        self.q_at[k, place * self.nq:(place + 1) * self.nq] = y[:self.nq]
        self.v_at[k, place * self.nv:(place + 1) * self.nv] = y[self.nq:]

    def blame(self, states) -> None:
        """Assign the exceptions of the actuation in this thread to the states that failed by them, in the same
        order."""
        raised = getattr(self.actuation, "errors", {}).pop(threading.get_ident(), [])
        for k, error in zip(states, raised, strict=False):
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise error
            self.causes[int(k)] = error

    def reason(self, k: int) -> str:
        """Reason why state k did not reach the end."""
        status, q, v = self.status[k], self.y[k, :self.nq], self.y[k, self.nq:]
        if status == CANNOT_START:
            reason = self.open_loops.get(k) or explain(self.mechanism.plan(), self.given[k], {"v": v})
            return f"cannot start: {reason}"
        cause = self.causes.get(k)
        if k in self.stops:
            return self.stops[k]
        own = self.actuations[k // self.block]
        if status == m.ACTUATION_FAILED and isinstance(own, Actuation):
            cause = own.raised(self.reached[k], q, v, self.params_of(k), self._torques_size(k))
        return stopped(status, f"at t = {self.reached[k]:.6g} s", self.mechanism_of(k), q, v, cause=cause,
                       min_step=self.settings.min_step, torques=self._torques(k), left_open=self.left_open.get(k))

    def simulated(self, k: int) -> Running:
        """A simulation from state k that records nothing."""
        acting = Acting(self.mechanism, self.function, self.params_of(k))
        run = Running(self.mechanism, self.settings, acting, Sharing(self.settings, self.mechanism, None, None))
        start(run, self.y[k, :self.nq], self.y[k, self.nq:], 0.0, Extent(0.0, False))
        return run

    def torque_of(self, k: int):
        """Torques of state k as a function of (t, y)."""
        size, actuation = self._torques_size(k), self.actuation
        assert isinstance(actuation, (Actuation, PlainActuation))
        return lambda t, y: actuation.torque(t, y[:self.nq], y[self.nq:], self.params_of(k), size)

    def _torques(self, k: int):
        """Torques of a compiled actuation where state k stopped."""
        if isinstance(self.actuation, Actuation):
            with contextlib.suppress(Exception):
                q, v = self.y[k, :self.nq], self.y[k, self.nq:]
                yield "there", self.actuation.torque(self.reached[k], q, v, self.params_of(k),
                                                   self._torques_size(k))

    def _torques_size(self, k: int) -> int:
        return torques_of(self.mechanism_of(k).plan())


def torques_of(plan: Plan) -> int:
    """Torques of the joints, then of the connections."""
    return plan.nv + (0 if plan.loops is None else int(plan.loops.freedoms))


class MeanTime:
    """Progress bar over the mean time of the states."""

    def __init__(self, bar, count):
        self.bar, self.count = bar, count
        self.total, self.lock = 0.0, threading.Lock()

    def add(self, seconds: float) -> None:
        with self.lock:
            self.total += seconds
            self.bar.show(self.total / self.count)


def one_by_one(group: Group, workers: int, bar) -> float:
    """Each state by itself. Returns the seconds it took."""
    settings = group.settings
    (entry, method), driven = settings.entry(), group.actuation is not None
    run, structure = entry.call, structure_of(settings.plan(group.mechanism, driven), settings.hold)
    address = address_of(group.actuation)
    watchful = None if settings.fixed_step else Pace(settings.explicit, MOTION)
    rows, mean = max(1, min(512, BODY_STEPS_PER_CALL // group.plan.bodies)), MeanTime(bar, len(group.y))

    said = threading.Event()

    def advance(k, memory, record, turns, pace) -> int:
        """State k to the time in memory's clock; says how it ended."""
        status = m.RECORD_FULL
        while status == m.RECORD_FULL and not turns.stopped:
            before, memory.tally[m.RECORDED], tick = memory.clock[m.TIME], 0, time.perf_counter()
            status = run(*method, *structure, address, group.params_of(k), NOTHING, memory, record)
            error, status = look_at_loops(group.mechanism, group.plan, memory, settings.hold, status)
            group.loop_error[k] = max(group.loop_error[k], error)
            mean.add(memory.clock[m.TIME] - before)
            if status == m.RECORD_FULL and pace and not said.is_set():
                n, order = int(memory.tally[m.RECORDED]), int(memory.tally[m.ORDER]) or method[0].order
                text = pace.look(memory, order, record.t[:n], record.y[:n], time.perf_counter() - tick,
                                 group.torque_of(k) if group.actuation else None)
                if text:
                    said.set()
                    warnings.warn(f"state {k}: {text}", SimulationWarning, stacklevel=1)
        return status

    def work(turns):
        record = empty_record(rows, group.y.shape[1])
        blank, memory = (settings.memory(group.y[0]) for _ in range(2))
        for k in turns:
            if group.status[k] != 0:
                continue
            for array, beginning in zip(memory, blank, strict=True):
                array[:] = beginning
            memory.rows[0] = group.y[k]
            pace = copy.copy(watchful)
            for place, until in enumerate(group.times):
                memory.clock[m.UNTIL] = until
                status = advance(k, memory, record, turns, pace)
                if status != m.REACHED:
                    group.status[k], group.left_open[k] = status, LeftOpen.of(memory, settings.hold)
                    group.blame([k])
                    break
                group.keep(k, place, memory.rows[0])
            clock, tally = memory.clock, memory.tally
            group.y[k], group.reached[k], group.loop_drift[k] = memory.rows[0], clock[m.TIME], clock[m.GAP]
            group.steps[k], group.rejected[k] = tally[m.STEPS], tally[m.REJECTED]
            group.evaluations[k] = tally[m.EVALUATIONS]

    begin = time.perf_counter()
    take_turns(work, len(group.y), workers)
    return time.perf_counter() - begin


def touching_one_by_one(group: Group, workers: int, bar) -> float:
    """Each state by itself, from event to event. Returns the seconds it took."""
    begin, mean = time.perf_counter(), MeanTime(bar, len(group.y))
    for k in np.flatnonzero(group.status == 0).tolist():
        run = group.simulated(k)
        for place, until in enumerate(group.times):
            before = run.t
            try:
                advance(run, until)
            except SimulationError as error:
                group.status[k], group.stops[k] = m.STATE_FAILED, str(error)
                if error.__cause__ is not None:
                    group.causes[k] = error.__cause__
                break
            finally:
                mean.add(run.t - before)
            group.keep(k, place, run.state)
        stats = run.stats
        group.y[k], group.reached[k] = run.state, run.t
        group.steps[k], group.rejected[k], group.evaluations[k] = stats.steps, stats.rejected, stats.evaluations
        group.loop_error[k], group.loop_drift[k] = stats.loop_error, stats.loop_drift
    return time.perf_counter() - begin
