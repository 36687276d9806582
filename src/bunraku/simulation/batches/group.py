"""Integration of a batch of states to common times: in lanes with fixed steps, else one by one; over threads.

Every worker takes the next piece of the batch when it has finished its last one. Compiled code returns regularly, for
progress bars and Ctrl-C.
"""

from __future__ import annotations

import contextlib
import copy
import threading
import time
import warnings
from functools import partial

import numpy as np

from bunraku.contact.contact_memory import handles_of
from bunraku.contact.problem import contact_problem
from bunraku.contact.solid_pairs import solids_in_lanes
from bunraku.entries.explain import explain
from bunraku.entries.moves import unit_quaternions
from bunraku.entries.pool import take_turns
from bunraku.errors import BunrakuError, ConstraintError, SimulationError, SimulationWarning
from bunraku.evaluate.contact_workspace import Touching
from bunraku.integrate import solver_memory as m
from bunraku.integrate.methods import FIXED_STEP
from bunraku.integrate.pace import MOTION, Pace
from bunraku.integrate.record import empty_record
from bunraku.jit import prepare
from bunraku.mechanism import Mechanism
from bunraku.runs.actuation import Actuation, PlainActuation
from bunraku.runs.contact_lane_run import contact_steps_lanes
from bunraku.runs.context import structure_of
from bunraku.runs.lane_run import NEXT, TIME, fixed_steps_lanes
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
from bunraku.spatial.lanes import WIDTH
from bunraku.tolerances import LAST_STAGE, LAST_STEP, ROUGH_ENOUGH

NOTHING = np.zeros(0)

CANNOT_START = -1  # a status beside those of `integrate.memory`
TURNS_EACH = 4     # pieces per worker: machines are shared


class Group:
    """The states, their status, and the requested results."""

    def __init__(self, mechanism: Mechanism, q, v, params, times, settings: Settings, actuation):
        self.mechanism, self.params, self.times = mechanism.copy().locked(), params, times
        self.settings, self.function = settings, actuation
        self.actuation = as_actuation(actuation, self.mechanism.nv)
        self.plan = plan = self.mechanism.plan()
        self.nq, self.nv, count = plan.nq, plan.nv, len(q)
        self.given = q
        self.y = np.concatenate([unit_quaternions(plan, q), v], axis=1)
        self.q_at = np.full((count, len(times) * plan.nq), np.nan)
        self.v_at = np.full((count, len(times) * plan.nv), np.nan)
        self.status = np.zeros(count, np.int64)
        self.reached, self.loop_error, self.loop_drift = np.zeros((3, count))
        self.steps, self.rejected, self.evaluations = (np.zeros(count, np.int64) for _ in range(3))
        self.causes: dict[int, BaseException] = {}  # what an actuation in Python raised, by state
        self.open_loops: dict[int, str] = {}        # what is to be said of them, by state
        self.stops: dict[int, str] = {}             # what is to be said of those that contact has stopped
        self.left_open: dict[int, LeftOpen] = {}    # by state, of those that failed on the way
        self.status[~np.isfinite(self.y).all(axis=1)] = CANNOT_START
        if plan.loops is not None:
            for k in np.flatnonzero(self.status == 0).tolist():
                try:
                    q, v, _ = closed_start(self.mechanism, *np.split(self.y[k], [self.nq]))
                    self.y[k] = np.concatenate([q, v])
                except ConstraintError as error:
                    self.status[k], self.open_loops[k] = CANNOT_START, str(error)
        if self.mechanism.may_touch():
            touching = Touching(self.mechanism, stepping=settings.fixed_step)
            for k in np.flatnonzero(self.status == 0).tolist():
                try:
                    start = self.y[k, :self.nq], self.y[k, self.nq:]
                    deepest = partial(deepest_start, touching, *start, settings)
                    touching.refuse_overlap(start[0], "contact", deepest)
                except BunrakuError as error:
                    self.status[k], self.open_loops[k] = CANNOT_START, str(error)

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
        if status == m.ACTUATION_FAILED and isinstance(self.actuation, Actuation):
            cause = self.actuation.raised(self.reached[k], q, v, self.params_of(k), self._torques_size())
        return stopped(status, f"at t = {self.reached[k]:.6g} s", self.mechanism, q, v, cause=cause,
                       min_step=self.settings.min_step, torques=self._torques(k), left_open=self.left_open.get(k))

    def simulated(self, k: int) -> Running:
        """A simulation from state k that records nothing."""
        acting = Acting(self.mechanism, self.function, self.params_of(k))
        run = Running(self.mechanism, self.settings, acting, Sharing(self.settings, self.mechanism, None, None))
        start(run, self.y[k, :self.nq], self.y[k, self.nq:], 0.0, Extent(0.0, False))
        return run

    def torque_of(self, k: int):
        """Torques of state k as a function of (t, y)."""
        size, actuation = self._torques_size(), self.actuation
        assert isinstance(actuation, (Actuation, PlainActuation))
        return lambda t, y: actuation.torque(t, y[:self.nq], y[self.nq:], self.params_of(k), size)

    def _torques(self, k: int):
        """Torques of a compiled actuation where state k stopped."""
        if isinstance(self.actuation, Actuation):
            with contextlib.suppress(Exception):
                q, v = self.y[k, :self.nq], self.y[k, self.nq:]
                yield "there", self.actuation.torque(self.reached[k], q, v, self.params_of(k), self._torques_size())

    def _torques_size(self) -> int:
        return self.nv + (0 if self.plan.loops is None else self.plan.loops.freedoms)


class _Mean:
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
    rows, mean = max(1, min(512, BODY_STEPS_PER_CALL // group.plan.bodies)), _Mean(bar, len(group.y))

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


def in_lanes(group: Group, workers: int, bar) -> float:
    """Several states at once, with fixed steps. The result of a state does not depend on those beside it.

    Returns the seconds it took.
    """
    fixed_steps_lanes.load()
    plan, count, settings = group.plan, len(group.y), group.settings
    address = address_of(group.actuation)
    method = FIXED_STEP.get(settings.solver) if isinstance(settings.solver, str) else None
    scheme = (method.A, method.B, method.C) if method else (np.zeros((0, 0)), np.zeros(0), np.zeros(0))
    constants = (plan.arrays, address, group.params, *scheme, float(settings.step),
                 LAST_STAGE if method else LAST_STEP)

    def call(*tiles):
        fixed_steps_lanes.call(*constants, group.y, group.times, group.q_at, group.v_at, group.status, group.reached,
                               group.steps, *tiles)

    begin = time.perf_counter()
    _by_tiles(group, workers, _Mean(bar, count), 4 * BODY_STEPS_PER_CALL // plan.bodies, call)
    group.evaluations[:] = group.steps * (len(method.B) if method else 1) + (group.status == m.STATE_FAILED)
    return time.perf_counter() - begin


def _by_tiles(group: Group, workers: int, mean: _Mean, steps: int, call) -> None:
    """Compute all tiles of states, in pieces of some tiles. call(clock, room, start, stop) advances the states of a
    piece by at most `room` steps each; a tile alone has room for `steps`."""
    count = len(group.y)
    tiles = -(-count // WIDTH)
    each = max(1, tiles // (TURNS_EACH * workers))

    def work(turns):
        for piece in turns:
            start, stop = piece * each * WIDTH, min(count, (piece + 1) * each * WIDTH)
            clock = np.zeros(2)
            while clock[NEXT] < len(group.times) and not turns.stopped and (group.status[start:stop] == 0).any():
                t, before = clock[TIME], group.status[start:stop].copy()
                call(clock, max(1, steps // each), start, stop)
                lost = start + np.flatnonzero((group.status[start:stop] == m.ACTUATION_FAILED) & (before == 0))
                if lost.size:  # tile by tile, then by time, then by place
                    group.blame(lost[np.lexsort((lost, group.reached[lost], lost // WIDTH))])
                mean.add((clock[TIME] - t) * (stop - start))

    take_turns(work, -(-tiles // each), workers)


ASIDE = -1
"""Status of states that are not computed now."""
ROOM_IN_LANES = 128
"""Contacts that states in the same lanes may have, all together; with a larger `max_contacts`, at first."""


def touching_in_lanes(group: Group, workers: int, bar) -> float:
    """As `in_lanes`, with contact. Returns the seconds it took."""
    prepare((contact_steps_lanes, solids_in_lanes, contact_problem))
    settings, count = group.settings, len(group.y)
    plan, arrays = group.mechanism.touching_plan(frozenset()), group.mechanism.contact_pairs().arrays
    contacts = len(arrays.contact_i)
    most = min(contacts, max(ROOM_IN_LANES, settings.max_contacts or 0))
    places, address = min(most, ROOM_IN_LANES), address_of(group.actuation)
    held, residual = np.zeros((count, 3 * contacts + 1)), np.zeros(count)
    steps, mean = BODY_STEPS_PER_CALL // plan.bodies, _Mean(bar, count)

    def call(*tiles):
        contact_steps_lanes.call(plan.arrays, arrays, places, handles_of(arrays, places), address, group.params,
                                 float(settings.step), LAST_STEP, group.y, held, group.times, group.q_at, group.v_at,
                                 group.status, group.reached, group.steps, residual, *tiles)

    begin, start, params = time.perf_counter(), group.y.copy(), group.params.copy()
    _by_tiles(group, workers, mean, steps, call)
    while places < most and (group.status == m.CONTACTS_FULL).any():  # those that found no room, from the start
        full = group.status == m.CONTACTS_FULL
        places, others = min(most, 2 * places), np.where(full, 0, group.status)
        group.y[full], held[full], residual[full] = start[full], 0.0, 0.0
        group.steps[full], group.status[:] = 0, np.where(full, 0, ASIDE)
        if len(params) == count:
            group.params[full] = params[full]
        _by_tiles(group, workers, mean, steps, call)
        group.status[:] = np.where(full, group.status, others)
    for k in np.flatnonzero(group.status == m.CONTACTS_FULL).tolist():
        group.stops[k] = (f"at t = {group.reached[k]:.6g} s there are more than {places} contacts in the states that "
                          f"are computed together; give room for more: max_contacts={2 * places}")
    group.evaluations[:] = group.steps
    seconds, rough = time.perf_counter() - begin, np.flatnonzero(residual > ROUGH_ENOUGH)
    if rough.size:
        warnings.warn(f"contact problems of {rough.size} states (the first is {rough[0]}) were solved roughly, with a "
                      f"residual of up to {residual.max():.1g} of their size", SimulationWarning, stacklevel=3)
    return seconds


def touching_one_by_one(group: Group, workers: int, bar) -> float:
    """Each state by itself, from event to event. Returns the seconds it took."""
    begin, mean = time.perf_counter(), _Mean(bar, len(group.y))
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
