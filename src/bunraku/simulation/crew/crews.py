"""Workers that compute the shares of a simulation: threads of this process, or other processes (MPI ranks).

A crew distributes the solver's memory, has all shares make a stretch of steps at the same time, and gathers the
workers' data on request. A share computes the same everywhere (`worker_share.py`), bit by bit.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import numpy as np

from bunraku.entries.part_entries import put_columns
from bunraku.plan import fields as f
from bunraku.plan.chunk_loops import ClosedDivision
from bunraku.plan.chunk_plan import Division
from bunraku.simulation.crew.mpi_ranks import Ranks
from bunraku.simulation.crew.worker_share import Answer, Order, Piece, Share
from bunraku.simulation.settings import Settings
from bunraku.workers.threads import Team


class Crew:
    """Workers with a share each; the first is of this process."""

    first: Share

    def __init__(self, division: Division, settings: Settings, nq: int):
        self.division, self.settings = division, settings
        self.closed = isinstance(division, ClosedDivision)
        self.columns = [np.concatenate([part.q_index, nq + part.v_index]) for part in division.parts]
        self.width = sum(map(len, self.columns))
        self._runs = [_runs(own) for own in self.columns]
        self.pages = 0                   # of the record, so far
        self.dropped: list[int] = []     # those that are not wanted any more, until the workers know

    def __len__(self) -> int:
        return len(self.division.parts)

    def take_over(self, pieces: list[Piece]) -> None:
        raise NotImplementedError

    def stretch(self, orders: list[Order], params: np.ndarray) -> Answer:
        """All workers make the same steps."""
        raise NotImplementedError

    def ask(self, what: str, *given) -> Iterator[np.ndarray]:
        """Results of a method of `Share`, worker by worker."""
        raise NotImplementedError

    def retire(self) -> None:
        """End the computation; the record stays available."""
        raise NotImplementedError

    def joined(self, what: str, *given) -> np.ndarray:
        """Results of a method of `Share`, each worker's columns, assembled into one array."""
        whole = None
        for part, runs in zip(self.ask(what, *given), self._runs, strict=True):
            whole = np.empty((len(part), self.width)) if whole is None else whole
            put_columns.call(part, runs, whole)
        assert whole is not None
        return whole


class Threads(Crew):
    """Shares computed by a team of threads."""

    def __init__(self, division: Division, settings: Settings, nq: int):
        super().__init__(division, settings, nq)
        self.team: Team | None = Team(division)
        self.shares = [Share(arrays, self.closed, settings, part.spans)
                       for arrays, part in zip(self.team.arrays, division.parts, strict=True)]
        self.first = self.shares[0]

    def take_over(self, pieces: list[Piece]) -> None:
        assert self.team is not None
        for share, arrays, piece in zip(self.shares, self.team.arrays, pieces, strict=True):
            arrays.conn_f[:, f.HOLD] = self.settings.hold
            share.arrays = arrays  # workers may have been stopped: then their mail is new
            share.take_over(piece)

    def stretch(self, orders: list[Order], params: np.ndarray) -> Answer:
        assert self.team is not None
        return self.team.run(lambda k: self.shares[k].stretch(orders[k], params))[0]

    def ask(self, what: str, *given) -> Iterator[np.ndarray]:
        return (getattr(share, what)(*given) for share in self.shares)

    def retire(self) -> None:
        self.team = None
        for share in self.shares:
            share.retire()


class Processes(Crew):
    """Shares of which rank 0 computes the first, and other ranks one each; they hold nothing but their own."""

    def __init__(self, division: Division, settings: Settings, nq: int, ranks: Ranks):
        super().__init__(division, settings, nq)
        self.ranks, self.number, old = ranks, next(ranks.numbers), ranks.forgotten.copy()
        ranks.forgotten.clear()
        weakref.finalize(self, ranks.forgotten.append, self.number).atexit = False
        for k in range(1, ranks.size):
            ranks.tell(k, ("forget", old))
        for k, part in enumerate(division.parts):
            arrays = division.arrays_apart(k)
            arrays.conn_f[:, f.HOLD] = settings.hold
            if k == 0:
                ranks.connect(arrays)
                self.first = Share(arrays, self.closed, settings, part.spans)
            else:
                ranks.tell(k, ("share", self.number, arrays, self.closed, settings, part.spans))

    def _tell(self, k: int, what: str, *given) -> None:
        self.ranks.tell(k, (what, self.number, *given))

    def take_over(self, pieces: list[Piece]) -> None:
        self.first.take_over(pieces[0])
        for k, piece in enumerate(pieces[1:], 1):
            self._tell(k, "take over", *piece)

    def stretch(self, orders: list[Order], params: np.ndarray) -> Answer:
        for k, order in enumerate(orders[1:], 1):
            self._tell(k, "stretch", *order._replace(address=int(order.address != 0)))
        try:
            return self.first.stretch(orders[0], params)
        except BaseException as error:  # a signal's: the others may wait for messages that will not come
            self.ranks.abort(error)
            raise

    def ask(self, what: str, *given) -> Iterator[np.ndarray]:
        for k in range(1, len(self)):
            self._tell(k, "ask", what, *given)
        return self._answers(getattr(self.first, what)(*given))

    def _answers(self, own: np.ndarray) -> Iterator[np.ndarray]:
        yield own
        for k in range(1, len(self)):
            try:
                yield self.ranks.fetch(k)
            except BaseException as error:  # the next question would get the answer to this one
                self.ranks.abort(error)
                raise

    def retire(self) -> None:
        self.first.retire()
        for k in range(1, len(self)):
            self._tell(k, "retire")


def _runs(index: np.ndarray) -> np.ndarray:
    """Runs of consecutive numbers: (first position, first number, count)."""
    begin = np.flatnonzero(np.diff(index, prepend=index[0] - 2) != 1)
    return np.column_stack([begin, index[begin], np.diff(begin, append=len(index))]).astype(np.int64)
