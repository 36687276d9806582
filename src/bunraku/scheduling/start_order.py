"""Chunks of [J]'s distribution, joined as its branches start each other [J, fig. 7].

Idea: a chunk waits for what it carries, as in [J]. At a fork every processor has some siblings, which hang together in
the order of starting: the first of them was started from outside. Its worker gets the motion of the link above, passes
it on to the branches that its siblings start on other processors, in the order of the starts, then computes its own;
inertias, accelerations and sums go the same ways. So joins are numbered in the order in which [J] starts branches, the
last one first, and are computed by the starter.
Cost: O(branches).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bunraku.scheduling.chunks import Chunks, Weighed
from bunraku.scheduling.clusters import GROUND, NONE, Clusters
from bunraku.scheduling.jung import NONE as NO_BRANCH
from bunraku.scheduling.jung import Distribution, Starts


class Started(NamedTuple):
    """Chunks with [J]'s processors as workers; joins in the order of starting; the owner of each join."""

    chunks: Chunks
    joins: Clusters
    owner: np.ndarray


START, OWN, REMOTE, ALONE, CARRIES = range(5)


class _Item(NamedTuple):
    """REMOTE and a branch; or ALONE and a chunk by itself, CARRIES and a chunk with all that it carries."""

    kind: int
    which: int


class _Items(NamedTuple):
    """Items that one worker joins at a fork, from `begin` on, in the order of starting."""

    found: list[_Item]
    begin: int
    owner: int


class _Join(NamedTuple):
    first: _Item
    second: _Items
    series: bool
    owner: int


def started(weighed: Weighed, distribution: Distribution) -> Started:
    """The chunks of a distribution and their joins."""
    chunks = weighed.chunks(distribution.worker)
    chunks = replace(chunks, worker=chunks.labels[chunks.worker], labels=np.arange(len(chunks.labels)))
    return Started(chunks, *_Joins(distribution.starts, chunks, weighed.members(chunks).tolist()).run())


class _Joins:
    def __init__(self, starts: Starts, chunks: Chunks, member: list[int]):
        self.starts, self.chunks, self.member = starts, chunks, member
        self.far = chunks.far.tolist()

    def run(self) -> tuple[Clusters, np.ndarray]:
        """Joins from the ground down in the order of starting; their numbers go the other way."""
        m = len(self.chunks)
        left, right, owner = (np.zeros(max(m - 1, 0), np.int64) for _ in range(3))
        series = np.zeros(len(left), bool)
        todo: list[tuple[_Item | _Items, np.ndarray, int]] = []  # what, and where its node is to be written
        if m:
            todo.append((self._fork(self.starts.first, NONE), np.zeros(1, np.int64), 0))
        j = len(left)
        while todo:
            what, operands, place = todo.pop()
            node, both = self._resolved(what)
            if both is not None:
                j -= 1
                node, series[j], owner[j] = m + j, both.series, both.owner
                todo += [(both.second, right, j), (both.first, left, j)]
            operands[place] = node
        return self._clusters(left, right, series), owner

    def _resolved(self, what: _Item | _Items) -> tuple[int, _Join | None]:
        """A chunk that stands for itself, or a join."""
        while True:
            if isinstance(what, _Items):
                if what.begin < len(what.found) - 1:
                    return NONE, _Join(what.found[what.begin], what._replace(begin=what.begin + 1), False, what.owner)
                what = what.found[what.begin]
            kind, x = what
            if kind == REMOTE:
                what = self._fork(x, NONE)
            elif kind == ALONE or self.far[x] < 0:
                return x, None
            else:
                below = self._fork(self.starts.children[self.starts.branch[self.far[x]]], x)
                return NONE, _Join(_Item(ALONE, x), below, True, x)

    def _fork(self, first: int, carrier: int) -> _Items:
        """Items joined by the worker of branch `first`: remote branches and its own chunks, in the order of
        starting. Siblings that are part of the chunk above (`carrier`) need no join."""
        starts = self.starts
        found, own, stack = [], NONE, [(START, first)]
        while stack:
            step, k = stack.pop()
            if step == START:
                stack.append((OWN, k))
                stack += [(REMOTE if starts.remote(k, x) else START, x)
                          for x in (starts.right[k], starts.left[k]) if x != NO_BRANCH]
            elif step == REMOTE:
                found.append(_Item(REMOTE, k))
            elif (chunk := self.member[starts.top[k]]) != carrier:
                if self.far[chunk] >= 0:
                    found.append(_Item(CARRIES, chunk))
                else:
                    own = chunk                               # one chunk of all siblings that carry no other
        if own != NONE:
            found.append(_Item(ALONE, own))
        return _Items(found, 0, carrier if carrier != NONE else self.member[starts.top[first]])

    def _clusters(self, left, right, series) -> Clusters:
        m = len(self.chunks)
        far = np.full(max(2 * m - 1, 0), NONE)
        far[:m][self.chunks.far >= 0] = np.flatnonzero(self.chunks.far >= 0)
        above = [*np.where(self.chunks.parent >= 0, self.chunks.parent, GROUND).tolist()]
        height = [0] * m
        for a, b in zip(left.tolist(), right.tolist(), strict=True):
            above.append(above[a])
            height.append(1 + max(height[a], height[b]))
        return Clusters(left, right, series, np.array(above, np.int64), far, max(height, default=0))
