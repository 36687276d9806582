"""One worker's part of a simulation: its plan, its columns of the solver's memory, its pages of the record."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bunraku.entries.parts import part_closed, part_one
from bunraku.integrate import memory as m
from bunraku.integrate.record import COEFFICIENTS, Record, empty_record
from bunraku.plan.arrays import Arrays
from bunraku.simulation.conditions import polynomial_room
from bunraku.simulation.settings import Settings


class Piece(NamedTuple):
    """Of the solver's memory: what one worker needs to go on."""

    clock: np.ndarray
    tally: np.ndarray
    tolerance: np.ndarray
    rows: np.ndarray


class Answer(NamedTuple):
    """What one worker has to say after a stretch of steps."""

    status: int
    clock: np.ndarray
    tally: np.ndarray
    totals: np.ndarray
    state: np.ndarray    # (1, columns)
    t: np.ndarray        # (steps,)
    y: np.ndarray        # (steps, columns)
    poly: np.ndarray     # (steps or 0, COEFFICIENTS, columns)
    poly_t: np.ndarray


class Share:
    """All that a worker holds."""

    def __init__(self, arrays: Arrays, closed: bool, settings: Settings, spans: np.ndarray):
        self.arrays, self.spans = arrays, spans
        self.motion = (part_closed if closed else part_one).address
        self.entry, self.method = settings.entry()
        self.memory: m.Memory | None = None
        self._pages: Record | None = None

    def take_over(self, piece: Piece) -> None:
        """Go on from here."""
        columns = piece.rows.shape[1]
        self.memory = m.Memory(piece.clock, piece.tally, piece.tolerance, piece.rows, np.zeros((0, columns)),
                               np.zeros(0, np.int64), self.spans, np.zeros((len(self.spans), m.PLACES)),
                               np.zeros(m.PLACES))

    def stretch(self, address: int, params: np.ndarray, external: np.ndarray, rows: int, kept: int) -> Answer:
        """So many steps at most; with polynomials if `kept`. The answer shows the memory itself."""
        memory = self.memory
        assert memory is not None
        pages = self._page(rows, kept, memory.rows.shape[1])
        memory.tally[m.RECORDED] = 0
        pages.cursor[:] = 0
        status = self.entry.call(*self.method, self.motion, self.arrays, address, params, external, memory, pages)
        n = int(memory.tally[m.RECORDED])
        polynomials = n if kept else 0
        return Answer(status, memory.clock, memory.tally, memory.totals, memory.rows[:1], pages.t[:n], pages.y[:n],
                      pages.poly[:polynomials], pages.poly_t[:polynomials])

    def _page(self, rows: int, kept: int, columns: int) -> Record:
        known = self._pages
        if known is None or known.t.shape[0] != rows or known.poly.shape[0] != kept or known.y.shape[1] != columns:
            poly, poly_t = polynomial_room(kept, columns)
            self._pages = known = empty_record(rows, columns)._replace(
                poly=poly, poly_t=poly_t, now=np.empty((COEFFICIENTS if kept else 0, columns)))
        return known
