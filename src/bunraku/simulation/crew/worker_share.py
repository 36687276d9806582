"""One worker's part of a simulation: its plan, its columns of the solver's memory, its part of the record."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bunraku.entries.part_entries import part_closed, part_one
from bunraku.integrate import solver_memory as m
from bunraku.integrate.pace import squares
from bunraku.integrate.record import COEFFICIENTS, Record, empty_record
from bunraku.plan import fields as f
from bunraku.plan.plan_arrays import Arrays
from bunraku.simulation.records.interpolation import used
from bunraku.simulation.records.pages import polynomial_room
from bunraku.simulation.settings import Settings

NOTHING = np.zeros(0)


class Piece(NamedTuple):
    """One worker's part of the solver's memory."""

    clock: np.ndarray
    tally: np.ndarray
    tolerance: np.ndarray
    rows: np.ndarray


class Order(NamedTuple):
    """A stretch of steps to be made. Its size depends on the mechanism only where `external` has changed."""

    page: int                             # of the record, for the states; the next one is for polynomials
    rows: int                             # steps, at most
    kept: bool                            # whether polynomials of the steps are kept, too
    address: int                          # of the actuation, 0 for none; only worker 0 of several processes calls it
    news: tuple[np.ndarray, np.ndarray] | None = None  # clock and tally, if they are not as the last stretch left them
    external: np.ndarray | None = None    # forces on this worker's links, if they have changed
    dropped: tuple[int, ...] = ()         # pages that are not wanted any more


class Answer(NamedTuple):
    """Outcome of a stretch of steps, the same for all workers: their steps and decisions agree."""

    status: int
    clock: np.ndarray
    tally: np.ndarray
    totals: np.ndarray
    t: np.ndarray        # (steps,)
    poly_t: np.ndarray   # (steps or 0, 3)


class Share:
    """The data of one worker."""

    def __init__(self, arrays: Arrays, closed: bool, settings: Settings, spans: np.ndarray):
        self.arrays, self.spans = arrays, spans
        self.motion = (part_closed if closed else part_one).address
        self.entry, self.method = settings.entry()
        self.external = np.zeros(0)
        self.memory: m.Memory | None = None
        self.pages: dict[int, np.ndarray] = {}  # of the record, by number: states, or coefficients of polynomials
        self._began = -1, np.zeros((0, 0))       # the last stretch, and the state that it began with
        self._room: Record | None = None

    def take_over(self, piece: Piece) -> None:
        """Go on from here."""
        columns = piece.rows.shape[1]
        self.memory = m.Memory(piece.clock, piece.tally, piece.tolerance, piece.rows, np.zeros((0, columns)),
                               np.zeros(0, np.int64), self.spans, np.zeros((len(self.spans), m.PLACES)),
                               np.zeros(m.PLACES))

    def stretch(self, order: Order, params: np.ndarray = NOTHING) -> Answer:
        """Make steps and record them. The answer refers to the memory itself, not to a copy."""
        memory = self._memory()
        for number in order.dropped:
            self.pages.pop(number, None)
        if order.news is not None:
            memory.clock[:], memory.tally[:] = order.news
        if order.external is not None:
            self.external = order.external
        self._began = order.page, memory.rows[:1].copy()
        room = self._pages(order.rows, order.kept, memory.rows.shape[1])
        memory.tally[m.RECORDED] = 0
        room.cursor[:] = 0
        status = self.entry.call(*self.method, self.motion, self.arrays, order.address, params, self.external, memory,
                                 room)
        n = int(memory.tally[m.RECORDED])
        self.pages[order.page] = room.y[:n].copy()
        if order.kept:
            self.pages[order.page + 1] = room.poly[:n][used(room.poly_t[:n])]
        return Answer(status, memory.clock, memory.tally, memory.totals, room.t[:n], room.poly_t[:n * order.kept])

    def retire(self) -> None:
        """Release everything but the record."""
        self.memory = self._room = None
        del self.arrays

    # -- what others may ask for: arrays with a column for each of this worker's, if `joined` is to put them together

    def state(self) -> np.ndarray:
        return self._memory().rows[:1]

    def state_before(self, page: int) -> np.ndarray:
        """The state at the beginning of this page's stretch, also if it was computed elsewhere."""
        return self._began[1] if self._began[0] == page else self.state()

    def history(self) -> np.ndarray:
        return self._memory().rows

    def page(self, number: int, first: int | None, end: int | None) -> np.ndarray:
        return self.pages[number][first:end]

    def misfit(self, numbers: list[int], skip: int, weights: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        y = np.concatenate([self.pages[number] for number in numbers])[skip:]
        return squares(y, weights, nodes, self._memory().tolerance)[:, None]

    def open(self) -> np.ndarray:
        """The connection with the largest gap, by its number among this worker's, and the gap."""
        memory = self._memory()
        return np.array([[memory.tally[m.OPEN_AT], memory.clock[m.OPEN_BY]]])

    def posted(self) -> np.ndarray:
        """Number of floats that this worker has sent to other chunks."""
        return np.array([[self.arrays.mail.view(np.int64)[f.MAIL_FLOATS]]], float)

    def _memory(self) -> m.Memory:
        assert self.memory is not None
        return self.memory

    def _pages(self, rows: int, kept: bool, columns: int) -> Record:
        known = self._room
        if known is None or known.t.shape[0] != rows or (len(known.poly) > 0) != kept or known.y.shape[1] != columns:
            poly, poly_t = polynomial_room(rows * kept, columns)
            self._room = known = empty_record(rows, columns)._replace(
                poly=poly, poly_t=poly_t, now=np.empty((COEFFICIENTS if kept else 0, columns)))
        return known
