"""[J]'s distribution: `estimated duration` and `distribute n processors` [J, sec. III-D].

Idea: unbranched chains (*branches*) are never divided. At a fork the branches start each other: each starts at most two
siblings before it computes its own chain, the longer one first [J, fig. 7]. A further processor goes where the time is
longest. `start_order.py` makes chunks of it, joined as the branches start each other.
Cost: O(branches on the way down) per processor. Limits: no far handles, so a tree takes at least as long as its depth;
a processor once given is never taken back.

Where the printed text is wrong or incomplete we use:
  - in the first `else` of `estimated duration` *left* siblings, where it has *right*;
  - which two siblings: sorted by the cost of their subtrees, the longest is computed by the processor of the fork
    itself; it starts the next one with half of the others, then the first of the other half, and so on;
  - *time-reducible*: a branch that is computed locally becomes remote only if that shortens the estimated duration of
    the siblings that start with its starter (the small branch of fig. 7 stays local); a remote branch and the children
    of a branch are time-reducible if there is such a branch in them;
  - of equal durations: the children first, then the left, then the right sibling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bunraku.scheduling.forest import Tree

NONE = -1


class Starts(NamedTuple):
    """The branches that each branch starts; NONE where it starts none."""

    branch: np.ndarray      # of each link
    top: list[int]          # first link of each branch
    left: list[int]         # the sibling that a branch starts first
    right: list[int]        # the sibling that it starts next
    children: list[int]     # the first branch of the fork at its end
    first: int              # the first branch of all
    processor: list[int]

    def remote(self, k: int, sibling: int) -> bool:
        """Whether branch k starts this sibling on another processor."""
        return sibling != NONE and self.processor[sibling] != self.processor[k]


@dataclass(frozen=True, eq=False)
class Distribution:
    """A processor for every link, the estimated duration with 1, 2, ... processors, the number used, and the
    order in which branches are started."""

    worker: np.ndarray
    durations: np.ndarray
    used: int
    starts: Starts

    @property
    def duration(self) -> float:
        return float(self.durations[-1])


def distribute(tree: Tree, cost: np.ndarray, roitm: float, processors: int) -> Distribution:
    """Distribute processors over a tree. cost: seconds per link (CMPTM); roitm: seconds per remote edge (ROITM)."""
    return Distributor(tree, cost, roitm).at(processors)


class Distributor:
    """`distribute n processors` for one n after the other; going up costs only the further processors."""

    def __init__(self, tree: Tree, cost: np.ndarray, roitm: float):
        self._given = tree, cost, roitm
        self._begin()

    def _begin(self):
        self._tree = _Branches(*self._given)
        self._durations = [self._tree.of(self._tree.first)]

    def at(self, processors: int) -> Distribution:
        w = self._tree
        if len(self._durations) > processors:
            self._begin()
            w = self._tree
        while len(self._durations) < processors and w.first != NONE and w.reducible[w.first]:
            w.use(len(self._durations))
            self._durations.append(w.of(w.first))
        starts = Starts(w.branch, w.top, list(w.left), list(w.right), w.children, w.first, list(w.processor))
        worker = np.array(w.processor, np.int64)[w.branch]
        return Distribution(worker, np.array(self._durations), len(self._durations), starts)


class _Branches:
    """Branches as nodes: `left` and `right` siblings that a branch starts, `children` the first branch of the fork at
    its end."""

    def __init__(self, tree: Tree, cost, roitm):
        self.roitm = roitm
        parent = tree.parent.tolist()
        branch: list[int] = []
        ends: list[int] = []              # last link of each branch
        length: list[float] = []
        for i, p in enumerate(parent):
            if p >= 0 and tree.children[p] == 1:
                branch.append(branch[p])
                ends[branch[p]] = i
                length[branch[p]] += float(cost[i])
            else:
                branch.append(len(ends))
                ends.append(i)
                length.append(float(cost[i]))
        n = len(ends)
        self.branch, self.length = np.array(branch, np.int64), length
        self.top: list[int] = [NONE] * n
        for i in range(len(parent) - 1, -1, -1):
            self.top[branch[i]] = i
        self.left, self.right, self.children = [NONE] * n, [NONE] * n, [NONE] * n
        self.processor = [0] * n
        subtree = tree.below(np.asarray(cost, float))
        for k, end in enumerate(ends):
            self.children[k] = self._fork(tree.kids(end), branch, subtree)
        self.first = self._fork(tree.kids(tree.n), branch, subtree)
        self.duration, self.reducible = [0.0] * n, [False] * n
        for k in self._tips_first():
            self._update(k)

    def _fork(self, links, branch, subtree) -> int:
        """The siblings of a fork as a binary tree, longest first; its first."""
        siblings = [branch[i] for i in sorted(links.tolist(), key=lambda i: -subtree[i])]
        stack = [(0, len(siblings))]
        while stack:
            lo, hi = stack.pop()
            if hi - lo < 2:
                continue
            half = lo + 1 + (hi - lo) // 2
            self.left[siblings[lo]] = siblings[lo + 1]
            stack.append((lo + 1, half))
            if half < hi:
                self.right[siblings[lo]] = siblings[half]
                stack.append((half, hi))
        return siblings[0] if siblings else NONE

    def _remote(self, k, sibling) -> bool:
        return sibling != NONE and self.processor[sibling] != self.processor[k]

    def of(self, k) -> float:
        """The estimated duration of the tree that begins with branch k."""
        return self.duration[k] if k != NONE else 0.0

    def _tips_first(self) -> list[int]:
        return self._below(self.first)[::-1]

    def _below(self, k) -> list[int]:
        """The tree that begins with branch k, starters first."""
        order, stack = [], [k] if k != NONE else []
        while stack:
            k = stack.pop()
            order.append(k)
            stack += [x for x in (self.left[k], self.right[k], self.children[k]) if x != NONE]
        return order

    def _estimated(self, k, left, left_remote, right, right_remote) -> float:
        """`estimated duration` of the tree that begins with branch k."""
        dl = dr = 0.0
        if left_remote:
            started = self.roitm
            dl = started + self.of(left)
        else:
            started = self.of(left)
        if right_remote:
            started += self.roitm
            dr = started + self.of(right)
        else:
            started += self.of(right)
        dc = started + self.length[k] + self.of(self.children[k])
        return max(dl, dr, dc)

    def _saves(self, k, x) -> bool:
        """Whether sibling x, which branch k computes locally, would save time on a processor of its own."""
        other = self.right[k] if x == self.left[k] else self.left[k]
        if self._remote(k, other):  # it stays the first that is started
            alone = self._estimated(k, self.left[k], True, self.right[k], True)
        else:
            alone = self._estimated(k, x, True, other, False)
        return alone < self.duration[k]

    def _offers(self, k) -> list[tuple[float, int]]:
        """(duration, branch) wherever a further processor can be used below branch k: children, left, right."""
        left, right, children = self.left[k], self.right[k], self.children[k]
        calls = self.roitm * (self._remote(k, left) + self._remote(k, right))
        offers = []
        if children != NONE and self.reducible[children]:
            offers.append((self.duration[children] + self.length[k] + calls, children))
        for x, before in ((left, 0.0), (right, self.roitm * self._remote(k, left))):
            if x != NONE and (self.reducible[x] if self._remote(k, x) else self._saves(k, x)):
                offers.append((self.duration[x] + before, x))
        return offers

    def _update(self, k):
        """Estimated duration of the tree that begins with branch k, and whether it is time-reducible."""
        left, right = self.left[k], self.right[k]
        self.duration[k] = self._estimated(k, left, self._remote(k, left), right, self._remote(k, right))
        self.reducible[k] = bool(self._offers(k))

    def use(self, p: int):
        """`use processor p in tree w`."""
        k, way = self.first, []
        while True:
            way.append(k)
            _, chosen = max(self._offers(k), key=lambda offer: offer[0])
            if chosen != self.children[k] and self.processor[chosen] == self.processor[k]:
                self._assign(chosen, p)
                break
            k = chosen
        for k in reversed(way):
            if not self._remote(k, self.left[k]) and self._remote(k, self.right[k]):
                self.left[k], self.right[k] = self.right[k], self.left[k]   # remote calls come first
            self._update(k)

    def _assign(self, k, p):
        """`assign processor p to all elements of subtree w`."""
        below = self._below(k)
        for x in below:
            self.processor[x] = p
        for x in reversed(below):
            self._update(x)
