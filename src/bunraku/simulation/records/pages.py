"""Recorded steps: an array here, or pages that the workers of a crew keep, each the columns of its own links.

Nothing of a record is sent while a simulation runs. A page is assembled when it is read; workers drop it when it is
no longer referenced here.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bunraku.integrate.pace import squares
from bunraku.integrate.record import COEFFICIENTS, Record
from bunraku.mechanism import Mechanism
from bunraku.simulation.records.interpolation import Steps, join, used
from bunraku.simulation.records.trajectory import Segment


class Keeper(Protocol):
    """Workers that keep pages, each its own columns (`crew/crews.py`)."""

    width: int           # columns of a page
    dropped: list[int]   # pages that are not wanted any more

    def joined(self, what: str, *given) -> np.ndarray: ...
    def ask(self, what: str, *given) -> Iterator[np.ndarray]: ...


class Kept:
    """A page that workers keep. `np.asarray`, or a slice of its rows, assembles it; it never changes."""

    def __init__(self, crew: Keeper, number: int, rows: int):
        self.crew, self.number, self.shape = crew, number, (rows, crew.width)
        weakref.finalize(self, crew.dropped.append, number).atexit = False

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return self[:]

    def __getitem__(self, rows: slice) -> np.ndarray:
        return self.crew.joined("page", self.number, rows.start, rows.stop)

    def copy(self) -> Kept:
        return self

    def __reduce__(self):
        """Copies and pickles are arrays."""
        return np.asarray, (np.asarray(self),)


Page = np.ndarray | Kept


@dataclass(eq=False)
class Block:
    """Steps as they come: the states at their ends and, of a `dense` simulation, their polynomials."""

    t: np.ndarray                     # (n,)
    y: Page                           # (at least n, nq + nv)
    table: np.ndarray | None = None   # (steps, 4), and (sum of degree + 1, nq + nv): see `interpolation.Steps`
    rows: Page | None = None
    first: int = 0                    # row of y that belongs to t[0]

    @classmethod
    def of(cls, record: Record, n: int, dense: bool) -> Block:
        """The first n steps recorded by compiled code."""
        t, table = record.t[:n], record.poly_t[:n]
        steps = (np.column_stack([table, t]), record.poly[:n][used(table)]) if dense else ()
        return cls(t.copy(), record.y[:n].copy(), *steps)

    def states(self) -> np.ndarray:
        return self.y[self.first:self.first + len(self.t)]

    def last(self) -> Block:
        """The last state alone."""
        n = len(self.t) - 1
        return Block(self.t[n:], self.y, first=self.first + n)

    def steps(self) -> Steps | None:
        return None if self.table is None or self.rows is None else Steps(self.table, np.asarray(self.rows))


class Reel:
    """The blocks of one structure, in order of time; at least one."""

    def __init__(self, mechanism: Mechanism, *blocks: Block):
        self.mechanism, self.blocks = mechanism, list(blocks)
        self.since = -np.inf  # states before that are not wanted any more, but for one

    @classmethod
    def of(cls, segment: Segment) -> Reel:
        steps = segment.steps or (None, None)
        return cls(segment.mechanism, Block(segment.t, np.hstack([segment.q, segment.v]), *steps))

    @property
    def begin(self) -> float:
        return float(next(block for block in self.blocks if len(block.t)).t[0])

    @property
    def end(self) -> float:
        return float(self.blocks[-1].t[-1])

    def __len__(self) -> int:
        return sum(len(block.t) for block in self.blocks)

    def drop_last(self) -> None:
        """Remove the last state; the polynomial of its step stays."""
        last = self.blocks[-1]
        last.t = last.t[:-1]
        if not len(last.t) and last.table is None:
            del self.blocks[-1]

    def joined(self) -> Block:
        """All blocks in one, here."""
        if len(self.blocks) > 1 or isinstance(self.blocks[0].y, Kept) or isinstance(self.blocks[0].rows, Kept):
            steps = join([found for block in self.blocks if (found := block.steps()) is not None])
            self.blocks = [Block(np.concatenate([block.t for block in self.blocks]),
                                 np.concatenate([block.states() for block in self.blocks]), *(steps or (None, None)))]
        return self.blocks[0]

    def segment(self) -> Segment:
        block, nq = self.joined(), self.mechanism.nq
        first = max(int(np.searchsorted(block.t, self.since, side="right")) - 1, 0)
        t, y = block.t[first:], block.states()[first:]
        return Segment(self.mechanism, t, y[:, :nq], y[:, nq:], block.steps())


def misfit(pages: list[Page], skip: int, weights: np.ndarray, nodes: np.ndarray, tolerance: np.ndarray) -> np.ndarray:
    """`pace.squares` of the states on some pages except the first `skip`, computed by the workers that hold them."""
    crews = {page.crew if isinstance(page, Kept) else None for page in pages}
    crew = crews.pop()
    if crew is None or crews:
        return squares(np.concatenate([np.asarray(page) for page in pages])[skip:], weights, nodes, tolerance)
    numbers = [page.number for page in pages if isinstance(page, Kept)]
    return sum(crew.ask("misfit", numbers, skip, weights, nodes), np.zeros((len(weights), 1)))[:, 0]


def polynomial_room(steps: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Reusable buffer for the polynomials of this number of steps."""
    return np.empty((steps, COEFFICIENTS, n)), np.empty((steps, 3))
