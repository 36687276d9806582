"""A simulation shared by a team: every worker integrates its own part of the state, and all take the same steps.

The whole memory of the solver is divided before a run and put together after every stretch of compiled code, so that
between stretches everything is where a single worker would have left it. The same chunks give the same motion to the
last bit on any number of workers; so a simulation that nobody has asked how many to use may change their number between
stretches, and does where one worker is faster, such as while other programs want the processors.
"""

from __future__ import annotations

import contextlib
import time

import numpy as np

from bunraku.checks import as_count
from bunraku.entries.parts import put_columns
from bunraku.entries.pool import available
from bunraku.errors import ModelError
from bunraku.evaluate.schedule import Schedule, schedule
from bunraku.evaluate.team import divide
from bunraku.integrate import memory as m
from bunraku.integrate.history import Family
from bunraku.integrate.methods import method_of
from bunraku.integrate.record import COEFFICIENTS, Record
from bunraku.mechanism import Mechanism
from bunraku.plan import fields as f
from bunraku.plan.build import Plan
from bunraku.plan.chunk import Read
from bunraku.plan.chunk_loops import ClosedDivision
from bunraku.simulate.replay import replay
from bunraku.simulation.acting import Acting
from bunraku.simulation.crews import Crew, Processes, Threads
from bunraku.simulation.mpi import ranks
from bunraku.simulation.settings import Settings
from bunraku.simulation.share import Answer, Piece

WORTHWHILE = 1.25     # predicted speed-up from which on workers are used that nobody has asked for
SMALLEST = 100        # bodies of a mechanism that is looked at for it
ENOUGH = 2000         # steps after which it is looked at: a schedule takes as long as some hundred of them
RECENT = 2            # stretches by which a way is judged, by the faster of them
AGAIN = 50            # stretches after which the other way is tried anew; twice as many each time it is slower


class Sharing:
    """Whether and how the workers of a simulation share it."""

    def __init__(self, settings: Settings, mechanism: Mechanism, workers: int | None, given: Schedule | None):
        self.asked = None if workers is None else as_count("workers", workers)
        if given is not None:
            if not isinstance(given, Schedule):
                raise ModelError(f"schedule must be made by bk.schedule or bk.Schedule, not {given!r}")
            given.fits(mechanism)
        self.given, self.settings = given, settings
        method = method_of(settings.solver)
        several = (self.asked or 1) > 1 or (given is not None and self.asked is None and given.workers > 1)
        self.full_matrix = isinstance(method, Family) and method.newton
        if self.full_matrix and several:
            raise ModelError("solver 'bdf' factors one matrix of the whole state, which one worker has to do: take "
                             "'implicit' or 'gear' for several workers, or workers=1")
        self.in_lanes = workers is None and given is None and not settings.structured  # lanes have rotors of their own
        self.links_in_lanes = 0
        self.schedule: Schedule | None = given
        self.left_alone = workers is None and given is None  # nobody has asked for workers
        self.workers, self.gathers = 1, False
        self.shared: Shared | None = None                    # of the present run
        self._shared: tuple | None = None

    def stay_alone(self) -> None:
        """One worker does everything, without lanes."""
        self.asked, self.in_lanes, self.left_alone = 1, False, False

    @property
    def request(self) -> list:
        """For checkpoints: workers, and what the schedule was made from."""
        return [self.asked, None if self.given is None else self.given.request]

    def changed(self, mechanism: Mechanism) -> None:
        """Another structure: the same request for a schedule; if its cuts are no longer possible, one for as many
        workers."""
        given = self.given
        if given is not None:
            try:
                given = given.rebuilt(mechanism)
            except ModelError:
                given = schedule(mechanism, given.workers, exactly=True)
        self._shared, self.left_alone = None, self.asked is None and given is None
        self.given = self.schedule = given

    def __getstate__(self):
        """Without threads."""
        return {**self.__dict__, "shared": None, "_shared": None}

    def may_begin(self, steps: int) -> bool:
        """Whether so many steps have been made that a schedule nobody has asked for is worth its time. (By their
        number, not by the clock: the same runs have the same bits.)"""
        return self.left_alone and steps >= ENOUGH

    def divided(self, mechanism: Mechanism, plan: Plan, memory: m.Memory, acting: Acting, actuated: bool,
                watched: bool, begin: bool = False) -> Shared | None:
        """The crew for the runs to come, with its part of the memory each; None if one worker does everything: where
        nothing is gained; where an actuation would be called beyond an event (it may have a memory) or by a number of
        probes that depends on the worker (`simulate/implicit.py`); where forces on links are functions of time."""
        self.workers, self.gathers, self.shared = 1, False, None
        driven = actuated or bool(acting.courses)
        several = ranks() is not None and self.asked != 1  # somebody has started them
        alone = self.full_matrix or acting.functions or (driven and (watched or self.settings.structured))
        if alone or (self.given is None and (self.asked or 2) < 2):
            return None
        if self.left_alone and not several and (driven or watched or not (begin or self._shared is not None)):
            return None
        key = id(plan), driven, acting.array.size > 0
        if self._shared is None or self._shared[0] != key:
            read = acting.read_by_actuation(mechanism, actuated) if driven else None
            self._shared = key, plan, self._make(mechanism, plan, acting.array.size > 0, read)
        self.shared = self._shared[2]
        if self.shared is not None:
            self.shared.divide(memory)
        else:
            self.left_alone = False  # looked at: nothing is gained
        return self.shared

    @contextlib.contextmanager
    def kept(self, memory: m.Memory):
        """While stretches are run: the whole memory is put together in the end."""
        try:
            yield
        finally:
            if self.shared is not None:
                self.shared.unite(memory)
                self.shared = None

    def _make(self, mechanism: Mechanism, plan: Plan, pushed: bool, read: Read | None) -> Shared | None:
        chosen, most, others = self.given, self.asked, ranks()
        if others:
            most = min(most or others.size, others.size)
        if chosen is None:
            if most is None and (plan.bodies < SMALLEST or available() < 2 or (self.in_lanes and plan.lanes)):
                return None
            most_used = min(most or available(), others.size if others else available())  # more would only wait
            chosen = (schedule(mechanism, most_used) if most is not None else
                      schedule(mechanism, most_used, passes=4, far=False))
            if most is None and not chosen.predicted_speedup >= WORTHWHILE:
                return None
        assembly = chosen.assembly(plan)
        if assembly is None or len(assembly.worker) < 2:
            return None
        self.schedule = chosen
        worker = assembly.worker
        if most is not None and most < chosen.workers:  # the same chunks on fewer
            worker = worker * most // chosen.workers
        ways = [worker]
        if most is None and self.given is None and worker.any():
            ways.insert(0, np.zeros_like(worker))
        divisions = [divide(plan, assembly._replace(worker=w), pushed, read) for w in ways]
        crews: list[Crew] = ([Processes(divisions[0], self.settings, others)] if others else
                             [Threads(division, self.settings) for division in divisions])
        return Shared(crews, plan.nq, len(plan.link_i), self)


class Shared:
    """The memory of a solver, divided among the workers of a crew: of the only one, or of the one that is faster."""

    def __init__(self, crews: list[Crew], nq: int, links: int, sharing: Sharing):
        self.crews, self.links, self.sharing = crews, links, sharing
        self.columns = [[np.concatenate([part.q_index, nq + part.v_index]) for part in crew.parts] for crew in crews]
        self.runs = [[_runs(own) for own in columns] for columns in self.columns]
        self.seconds: list[list[float]] = [[] for _ in crews]   # per step, in stretches of each
        self.stretches, self.patience, self.now = 0, AGAIN, 0

    def _choose(self) -> int:
        """Which crew has the next stretch: the one that was faster of late; now and then another, since other programs
        come and go."""
        if len(self.crews) == 1:
            return 0
        untried = [k for k, seconds in enumerate(self.seconds) if len(seconds) < RECENT]
        if untried:
            return untried[0]
        fastest = int(np.argmin([min(seconds) for seconds in self.seconds]))
        if fastest != self.now:
            self.stretches, self.patience = 0, min(2 * self.patience, 16 * AGAIN) if self.stretches == 1 else AGAIN
        elif self.stretches >= self.patience:
            self.stretches = 0
            return (fastest + 1) % len(self.crews)
        return fastest

    def divide(self, memory: m.Memory) -> None:
        """Give every worker its columns of the memory."""
        self.crews[self.now].take_over([
            Piece(memory.clock.copy(), memory.tally.copy(), memory.tolerance.take(own, axis=1),
                  memory.rows.take(own, axis=1)) for own in self.columns[self.now]])

    def unite(self, memory: m.Memory) -> None:
        """Put the memory together again: the history of the solver, which nobody reads between stretches."""
        for runs, rows in zip(self.runs[self.now], self.crews[self.now].histories(), strict=True):
            put_columns.call(rows, runs, memory.rows)

    def _name_open(self, memory: m.Memory, answers: list[Answer]) -> None:
        """Number of the connection that is open among those of the whole: workers number their own."""
        division = self.crews[self.now].division
        if isinstance(division, ClosedDivision):
            for mine, part in zip(division.mine_c, answers, strict=True):
                if mine and part.tally[m.OPEN_AT] >= 0 and part.clock[m.OPEN_BY] >= memory.clock[m.OPEN_BY]:
                    memory.tally[m.OPEN_AT] = mine[int(part.tally[m.OPEN_AT])]

    def run(self, address: int, params: np.ndarray, external: np.ndarray, memory: m.Memory, record: Record) -> int:
        """One stretch of compiled code by all workers; memory and record of the whole are kept up. Returns how it
        ended."""
        chosen = self._choose()
        if chosen != self.now:
            self.unite(memory)
            self.now = chosen
            self.divide(memory)
        crew, runs = self.crews[chosen], self.runs[chosen]
        self.sharing.workers = len(crew)
        self.sharing.gathers = crew.division.gathers and len(crew) > 1
        before, began = int(memory.tally[m.STEPS]), float(memory.clock[m.TIME])
        pushed = [_own_forces(external, self.links, part.link_index) for part in crew.parts]
        rows, kept = record.t.shape[0], record.poly.shape[0]
        polynomials = record.poly.reshape(-1, record.y.shape[1])

        def keep(k: int, answer: Answer) -> None:
            n = len(answer.y)
            put_columns.call(answer.y, runs[k], record.y[:n])
            if kept:
                put_columns.call(answer.poly.reshape(n * COEFFICIENTS, -1), runs[k], polynomials[:n * COEFFICIENTS])

        begin = time.perf_counter()
        try:
            answers = crew.stretch(address, params, pushed, rows, kept, keep)
        except BaseException:  # workers were stopped anywhere: begin anew where the last block of steps ended
            memory.tally[m.STARTED] = 0
            if memory.clock[m.MIN_STEP] < memory.clock[m.MAX_STEP]:
                memory.clock[m.STEP] = 0.0
            self.divide(memory)
            raise
        first = answers[0]
        status, n = first.status, len(first.t)
        memory.clock[:], memory.tally[:], memory.totals[:] = first.clock, first.tally, first.totals
        for own, answer in zip(runs, answers, strict=True):
            put_columns.call(answer.state, own, memory.rows[:1])
        if status == m.LOOPS_OPEN:
            self._name_open(memory, answers)
        self._note(time.perf_counter() - begin, int(memory.tally[m.STEPS]) - before)
        record.t[:n] = first.t
        if kept:
            record.poly_t[:n] = first.poly_t
        if record.g.shape[1] > 0 and n > 0:
            self.unite(memory)
            status = replay.call(memory, record, n, began) or status
            self.divide(memory)
        return status

    def _note(self, seconds: float, steps: int) -> None:
        if len(self.crews) > 1 and steps > 0:
            self.seconds[self.now] = [*self.seconds[self.now], seconds / steps][-RECENT:]
            self.stretches += 1


def _own_forces(external: np.ndarray, total: int, links: np.ndarray) -> np.ndarray:
    """Forces and pulls on a worker's links out of those on all, by the numbers that these have there."""
    if not external.size:
        return external
    pulls = external[6 * total:].reshape(-1, f.PULL).copy()
    pulls = pulls[np.isin(pulls[:, f.PULL_LINK], links)]
    place = np.zeros(total)
    place[links] = np.arange(len(links))
    pulls[:, f.PULL_LINK] = place[pulls[:, f.PULL_LINK].astype(int)]
    return np.concatenate([external[:6 * total].reshape(-1, 6)[links].ravel(), pulls.ravel()])


def _runs(index: np.ndarray) -> np.ndarray:
    """Ranges of numbers that follow each other: first place, first number, how many."""
    begin = np.flatnonzero(np.diff(index, prepend=index[0] - 2) != 1)
    return np.column_stack([begin, index[begin], np.diff(begin, append=len(index))]).astype(np.int64)
