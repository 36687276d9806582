"""A simulation shared by a team: every worker integrates its own part of the state, and all take the same steps.

The solver's memory is divided before the first steps, and stays with the workers, as does the record (`pages.py`): both
are gathered when they are read. Between stretches of compiled code a worker gets an order (`share.Order`), whose
size does not depend on the mechanism. The same chunks give the same motion, bit by bit, on any number of workers; so
when `workers` is not given, their number may change between stretches, for example to one while other programs occupy
the processors.
"""

from __future__ import annotations

import time

import numpy as np

from bunraku.checks import as_count
from bunraku.entries.pool import available
from bunraku.errors import ModelError
from bunraku.evaluate.schedules import Schedule, schedule
from bunraku.evaluate.team import divide
from bunraku.integrate import solver_memory as m
from bunraku.integrate.history import Family
from bunraku.integrate.methods import method_of
from bunraku.integrate.record import Record
from bunraku.mechanism import Mechanism
from bunraku.plan import fields as f
from bunraku.plan.build import Plan
from bunraku.plan.chunk_loops import ClosedDivision
from bunraku.plan.chunk_plan import Read
from bunraku.runs.event_search import replay
from bunraku.simulation.acting import Acting
from bunraku.simulation.crew.crews import Crew, Processes, Threads
from bunraku.simulation.crew.mpi_ranks import ranks
from bunraku.simulation.crew.worker_share import Order, Piece
from bunraku.simulation.records.interpolation import used
from bunraku.simulation.records.pages import Block, Kept
from bunraku.simulation.settings import Settings

WORTHWHILE = 1.25     # smallest predicted speed-up for which workers are used by default
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
        self.left_alone = workers is None and given is None  # the number of workers is chosen here
        self.workers, self.gathers = 1, False
        self.shared: Shared | None = None                    # of the present run
        self.holder: Shared | None = None                    # who has the solver's memory; None: it is whole
        self._shared: tuple | None = None

    def stay_alone(self) -> None:
        """Compute with one worker, without lanes."""
        self.asked, self.in_lanes, self.left_alone = 1, False, False

    @property
    def request(self) -> list:
        """For checkpoints: workers, and the arguments of the schedule."""
        return [self.asked, None if self.given is None else self.given.request]

    def changed(self, mechanism: Mechanism) -> None:
        """After a change of structure and memory: repeat the request for a schedule; if its cuts are no longer
        possible, make one for the same number of workers."""
        given = self.given
        if given is not None:
            try:
                given = given.rebuilt(mechanism)
            except ModelError:
                given = schedule(mechanism, given.workers, exactly=True)
        self._retire()
        self.left_alone = self.asked is None and given is None
        self.given = self.schedule = given

    def _retire(self) -> None:
        """Release everything of the workers but their records."""
        if self._shared is not None and self._shared[2] is not None:
            for crew in self._shared[2].crews:
                crew.retire()
        self._shared = self.shared = self.holder = None

    def __getstate__(self):
        """State without threads, of a simulation whose memory has been gathered."""
        return {**self.__dict__, "shared": None, "holder": None, "_shared": None}

    def may_begin(self, steps: int) -> bool:
        """Whether enough steps have been made for an automatic schedule to pay. (Counted in steps, not in seconds:
        repeated runs agree bit by bit.)"""
        return self.left_alone and steps >= ENOUGH

    def divided(self, mechanism: Mechanism, plan: Plan, memory: m.Memory, acting: Acting, actuated: bool,
                watched: bool, begin: bool = False) -> Shared | None:
        """The crews for the next steps; None if one worker does everything: where nothing is gained; where an
        actuation would be called beyond an event (it may have a memory) or by a number of probes that depends on the
        worker (`runs/implicit_run.py`); where forces on links are functions of time."""
        self.workers, self.gathers, self.shared = 1, False, None
        driven = actuated or bool(acting.courses)
        several = ranks() is not None and self.asked != 1  # started under MPI
        alone = self.full_matrix or acting.functions or (driven and (watched or self.settings.structured))
        if alone or (self.given is None and (self.asked or 2) < 2):
            return None
        if self.left_alone and not several and (driven or watched or not (begin or self._shared is not None)):
            return None
        key = id(plan), driven, acting.array.size > 0
        if self._shared is None or self._shared[0] != key:
            read = acting.read_by_actuation(mechanism, actuated) if driven else None
            self.collect(memory)
            self._retire()
            self._shared = key, plan, self._make(mechanism, plan, acting.array.size > 0, read)
        self.shared = self._shared[2]
        if self.shared is None:
            self.left_alone = False  # looked at: nothing is gained
        return self.shared

    def collect(self, memory: m.Memory) -> None:
        """Gather the whole memory; it is distributed again before the next steps."""
        if self.holder is not None:
            memory.rows[:] = self.holder.crew.joined("history")
            self.holder = None

    def collect_state(self, memory: m.Memory) -> None:
        """Gather the state in memory.rows[0]; workers keep the rest."""
        if self.holder is not None and not self.holder.state_is_here:
            memory.rows[:1] = self.holder.crew.joined("state")
            self.holder.state_is_here = True

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
        crews: list[Crew] = ([Processes(divisions[0], self.settings, plan.nq, others)] if others else
                             [Threads(division, self.settings, plan.nq) for division in divisions])
        return Shared(crews, len(plan.link_i), self)


class Shared:
    """The memory of a solver, divided among the workers of a crew: the only one, or the faster one."""

    def __init__(self, crews: list[Crew], links: int, sharing: Sharing):
        self.crews, self.links, self.sharing = crews, links, sharing
        self.seconds: list[list[float]] = [[] for _ in crews]   # per step, in stretches of each
        self.stretches, self.patience, self.now = 0, AGAIN, 0
        self.state_is_here = False             # whether rank 0 knows the state that the last stretch has left
        self._external: np.ndarray | None = None  # forces on links, as the workers know them

    @property
    def crew(self) -> Crew:
        return self.crews[self.now]

    def _choose(self) -> int:
        """The crew for the next stretch: the recently fastest; now and then another one, since the load of the machine
        changes."""
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

    def _divide(self, memory: m.Memory) -> None:
        """Give every worker its columns of the memory."""
        self.crew.take_over([Piece(memory.clock.copy(), memory.tally.copy(), memory.tolerance.take(own, axis=1),
                                   memory.rows.take(own, axis=1)) for own in self.crew.columns])
        self.sharing.holder, self._external = self, None

    def _orders(self, address: int, external: np.ndarray, memory: m.Memory, rows: int, kept: bool) -> list[Order]:
        """The order of the next stretch for each worker: only the data it does not have."""
        crew, mine = self.crew, self.crew.first.memory
        assert mine is not None
        mine.tally[m.RECORDED] = memory.tally[m.RECORDED] = 0
        known = np.array_equal(mine.clock, memory.clock) and np.array_equal(mine.tally, memory.tally)
        page, dropped = crew.pages, tuple(crew.dropped)
        crew.pages += 2
        del crew.dropped[:len(dropped)]
        same = Order(page, rows, kept, address, None if known else (memory.clock.copy(), memory.tally.copy()), None,
                     dropped)
        if self._external is not None and np.array_equal(self._external, external):
            return [same] * len(crew)
        self._external = external.copy()
        return [same._replace(external=_own_forces(external, self.links, part.link_index))
                for part in crew.division.parts]

    def _name_open(self, memory: m.Memory) -> None:
        """Number of the open connection in the whole mechanism: workers number their own."""
        division = self.crew.division
        if isinstance(division, ClosedDivision):
            for mine, part in zip(division.mine_c, self.crew.ask("open"), strict=True):
                at, by = int(part[0, 0]), part[0, 1]
                if mine and at >= 0 and by >= memory.clock[m.OPEN_BY]:
                    memory.tally[m.OPEN_AT] = mine[at]

    def run(self, address: int, params: np.ndarray, external: np.ndarray, memory: m.Memory,
            record: Record) -> tuple[int, Block | None]:
        """One stretch of compiled code by all workers: its status, and the steps, which stay with the workers. If
        events are watched: None, and the steps are gathered in `record`."""
        chosen = self._choose()
        if self.sharing.holder is not self or chosen != self.now:
            self.sharing.collect(memory)
            self.now = chosen
            self._divide(memory)
        crew = self.crew
        self.sharing.workers = len(crew)
        self.sharing.gathers = crew.division.gathers and len(crew) > 1
        before, began = int(memory.tally[m.STEPS]), float(memory.clock[m.TIME])
        orders = self._orders(address, external, memory, len(record.t), len(record.poly) > 0)
        begin, self.state_is_here = time.perf_counter(), False
        try:
            first = crew.stretch(orders, params)
        except BaseException:  # workers were stopped anywhere: begin anew where the last block of steps ended
            memory.rows[:1] = crew.joined("state_before", orders[0].page)
            memory.tally[m.STARTED], self.sharing.holder = 0, None
            if memory.clock[m.MIN_STEP] < memory.clock[m.MAX_STEP]:
                memory.clock[m.STEP] = 0.0
            raise
        status, n = first.status, len(first.t)
        memory.clock[:], memory.tally[:], memory.totals[:] = first.clock, first.tally, first.totals
        if status == m.LOOPS_OPEN:
            self._name_open(memory)
        self._note(time.perf_counter() - begin, int(memory.tally[m.STEPS]) - before)
        block = Block(first.t.copy(), Kept(crew, orders[0].page, n))
        if orders[0].kept:
            block.table = np.column_stack([first.poly_t, first.t])
            block.rows = Kept(crew, orders[0].page + 1, int(first.poly_t[:, 2].sum()) + n)
        if record.g.shape[1] == 0 or n == 0:
            return status, block
        return self._look_for_events(memory, record, block, began) or status, None

    def _look_for_events(self, memory: m.Memory, record: Record, block: Block, began: float) -> int:
        """Gather the steps with their polynomials and locate events in them (`runs/event_search.py`)."""
        n, steps = len(block.t), block.steps()
        assert steps is not None
        record.t[:n], record.y[:n], record.poly_t[:n] = block.t, block.states(), steps.table[:, :3]
        record.poly[:n][used(steps.table)] = steps.rows
        status = replay.call(memory, record, n, began)
        if status:  # workers are beyond this state
            state = memory.rows[:1].copy()
            self.sharing.collect(memory)
            memory.rows[:1] = state
        return status

    def _note(self, seconds: float, steps: int) -> None:
        if len(self.crews) > 1 and steps > 0:
            self.seconds[self.now] = [*self.seconds[self.now], seconds / steps][-RECENT:]
            self.stretches += 1


def _own_forces(external: np.ndarray, total: int, links: np.ndarray) -> np.ndarray:
    """Forces and pulls on a worker's links, selected from those on all links and renumbered."""
    if not external.size:
        return external
    pulls = external[6 * total:].reshape(-1, f.PULL).copy()
    pulls = pulls[np.isin(pulls[:, f.PULL_LINK], links)]
    place = np.zeros(total)
    place[links] = np.arange(len(links))
    pulls[:, f.PULL_LINK] = place[pulls[:, f.PULL_LINK].astype(int)]
    return np.concatenate([external[:6 * total].reshape(-1, 6)[links].ravel(), pulls.ravel()])
