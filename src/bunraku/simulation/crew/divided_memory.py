"""The solver's memory, divided among workers: every worker integrates its own part of the state, and all take the same
steps.

The memory is divided before the first steps, and stays with the workers, as does the record (`records/pages.py`): both
are gathered when they are read. Between stretches of compiled code a worker gets an order (`worker_share.Order`), whose
size does not depend on the mechanism.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from bunraku.integrate import solver_memory as m
from bunraku.integrate.record import Record
from bunraku.plan import fields as f
from bunraku.plan.chunk_loops import ClosedDivision
from bunraku.runs.event_search import replay
from bunraku.simulation.crew.crews import Crew
from bunraku.simulation.crew.worker_share import Order, Piece
from bunraku.simulation.records.interpolation import used
from bunraku.simulation.records.pages import Block, Kept

if TYPE_CHECKING:
    from bunraku.simulation.crew.sharing import Sharing

RECENT = 2            # stretches by which a crew is judged, by the faster of them
AGAIN = 50            # stretches after which the other crew is tried anew; twice as many each time it is slower


class DividedMemory:
    """The memory of a solver with the workers of a crew: the only one, or the faster one."""

    def __init__(self, crews: list[Crew], links: int, sharing: Sharing):
        self.crews, self.links, self.sharing = crews, links, sharing
        self.seconds: list[list[float]] = [[] for _ in crews]   # per step, in stretches of each
        self.stretches, self.patience, self.now = 0, AGAIN, 0
        self.state_is_here = False             # whether rank 0 has the state at the end of the last stretch
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
