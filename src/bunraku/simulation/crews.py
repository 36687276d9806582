"""Who computes the shares of a simulation: threads of this process, or other processes (ranks of MPI).

A crew hands out pieces of the solver's memory, has all shares make a stretch of steps at the same time, and hands back
their histories. What a share does is the same everywhere (`share.py`), and so are its bits.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Protocol

import numpy as np

from bunraku.integrate.record import COEFFICIENTS
from bunraku.plan import fields as f
from bunraku.plan.chunk import Division, Part
from bunraku.plan.chunk_loops import ClosedDivision
from bunraku.simulation.mpi import Ranks
from bunraku.simulation.settings import Settings
from bunraku.simulation.share import Answer, Piece, Share
from bunraku.workers.threads import Team

Keep = Callable[[int, Answer], None]


class Crew(Protocol):
    division: Division
    parts: list[Part]

    def __len__(self) -> int: ...
    def take_over(self, pieces: list[Piece]) -> None: ...
    def stretch(self, address: int, params: np.ndarray, external: list[np.ndarray], rows: int, kept: int,
                keep: Keep) -> list[Answer]:
        """The answers of all; `keep(k, answer)` is called for each, as soon as it is there."""
    def histories(self) -> list[np.ndarray]: ...


class Threads:
    """Shares computed by a team of threads."""

    def __init__(self, division: Division, settings: Settings):
        self.division, self.parts, self.team = division, division.parts, Team(division)
        self.settings, self.closed = settings, isinstance(division, ClosedDivision)
        self._arrays = self.team.arrays
        self.shares: list[Share] = []
        self._renew()

    def _renew(self) -> None:
        self._arrays = self.team.arrays
        for arrays in self._arrays:
            arrays.conn_f[:, f.HOLD] = self.settings.hold
        self.shares = [Share(arrays, self.closed, self.settings, part.spans)
                       for arrays, part in zip(self._arrays, self.parts, strict=True)]

    def __len__(self) -> int:
        return len(self.parts)

    def take_over(self, pieces: list[Piece]) -> None:
        if self._arrays is not self.team.arrays:  # workers were stopped: their mail is new
            self._renew()
        for share, piece in zip(self.shares, pieces, strict=True):
            share.take_over(piece)

    def stretch(self, address, params, external, rows, kept, keep) -> list[Answer]:
        def work(k):
            answer = self.shares[k].stretch(address, params, external[k], rows, kept)
            keep(k, answer)
            return answer

        return self.team.run(work)

    def histories(self) -> list[np.ndarray]:
        return [share.memory.rows for share in self.shares if share.memory is not None]


class Processes:
    """Shares of which rank 0 computes the first, and other ranks one each; they hold nothing but their own."""

    def __init__(self, division: Division, settings: Settings, ranks: Ranks):
        self.division, self.parts, self.ranks = division, division.parts, ranks
        closed, self.number, old = isinstance(division, ClosedDivision), next(ranks.numbers), ranks.forgotten.copy()
        ranks.forgotten.clear()
        weakref.finalize(self, ranks.forgotten.append, self.number)
        for k in range(1, ranks.size):
            ranks.tell(k, ("forget", old))
        for k, part in enumerate(self.parts):
            arrays = division.arrays_apart(k)
            arrays.conn_f[:, f.HOLD] = settings.hold
            if k == 0:
                ranks.connect(arrays)
                self.own = Share(arrays, closed, settings, part.spans)
            else:
                ranks.tell(k, ("share", self.number, arrays, closed, settings, part.spans))

    def __len__(self) -> int:
        return len(self.parts)

    def take_over(self, pieces: list[Piece]) -> None:
        self.own.take_over(pieces[0])
        for k, piece in enumerate(pieces[1:], 1):
            self.ranks.tell(k, ("take over", self.number, piece))

    def stretch(self, address, params, external, rows, kept, keep) -> list[Answer]:
        for k in range(1, len(self)):
            self.ranks.tell(k, ("stretch", self.number, int(address != 0), external[k], rows, kept))
        try:
            own = self.own.stretch(address, params, external[0], rows, kept)
            answers = [own, *(self._answer(k, kept) for k in range(1, len(self)))]
        except BaseException as error:  # a signal's: the others may wait for messages that will not come
            self.ranks.abort(error)
            raise
        for k, answer in enumerate(answers):
            keep(k, answer)
        return answers

    def _answer(self, k: int, kept: int) -> Answer:
        status, clock, tally, totals, n = self.ranks.hear(k)
        part = self.parts[k]
        columns = len(part.q_index) + len(part.v_index)
        state, y = (self.ranks.fetch(k, np.empty((rows, columns))) for rows in (1, n))
        poly = np.empty((0, COEFFICIENTS, columns))
        if kept:
            poly = self.ranks.fetch(k, np.empty((n, COEFFICIENTS, columns)))
        return Answer(status, clock, tally, totals, state, np.empty(0), y, poly, np.empty((0, 3)))

    def histories(self) -> list[np.ndarray]:
        assert self.own.memory is not None
        found = [self.own.memory.rows]
        for k in range(1, len(self)):
            self.ranks.tell(k, ("history", self.number))
            found.append(self.ranks.fetch(k, np.empty(self.ranks.hear(k))))
        return found
