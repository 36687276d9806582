"""[J]'s distribution: `estimated duration` and `distribute n processors` [J, sec. III-D].

Idea: unbranched chains (*branches*) are never divided. At a fork the branches start each other: each starts at most two
siblings before it computes its own chain, the longer one first. A further processor goes where the time is longest.
Cost: O(branches on the way down) per processor. Limits: no far handles, so a tree takes at least as long as its depth;
a processor once given is never taken back.

In the first `else` of `estimated duration` the print has *right* siblings where it must read *left*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bunraku.scheduling.tree import Tree

NONE = -1


@dataclass(frozen=True, eq=False)
class Distribution:
    """A processor for every link, the estimated duration with 1, 2, ... processors, and how many were used."""

    worker: np.ndarray
    durations: np.ndarray
    used: int

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
        self._durations = [self._tree.duration[self._tree.first]]

    def at(self, processors: int) -> Distribution:
        w = self._tree
        if len(self._durations) > processors:
            self._begin()
            w = self._tree
        while len(self._durations) < processors and w.reducible[w.first]:
            w.use(len(self._durations))
            self._durations.append(w.duration[w.first])
        return Distribution(np.array(w.processor)[w.branch], np.array(self._durations), len(self._durations))


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
        self.branch, self.length = np.array(branch), length
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

    def _tips_first(self) -> list[int]:
        order, stack = [], [self.first]
        while stack:
            k = stack.pop()
            order.append(k)
            stack += [x for x in (self.left[k], self.right[k], self.children[k]) if x != NONE]
        return order[::-1]

    def _remote(self, k, sibling) -> bool:
        return sibling != NONE and self.processor[sibling] != self.processor[k]

    def _of(self, k) -> float:
        return self.duration[k] if k != NONE else 0.0

    def _update(self, k):
        """`estimated duration` of the tree that begins with branch k, and whether it is time-reducible."""
        left, right, R = self.left[k], self.right[k], self.roitm
        dl = dr = 0.0
        if self._remote(k, left):
            started = R
            dl = started + self._of(left)
        else:
            started = self._of(left)
        if self._remote(k, right):
            started += R
            dr = started + self._of(right)
        else:
            started += self._of(right)
        dc = started + self.length[k] + self._of(self.children[k])
        self.duration[k] = max(dl, dr, dc)
        siblings = [x for x in (left, right) if x != NONE]
        self.reducible[k] = (any(self.processor[x] == self.processor[k] or self.reducible[x] for x in siblings)
                             or (self.children[k] != NONE and self.reducible[self.children[k]]))

    def use(self, p: int):
        """`use processor p in tree w`."""
        k, way = self.first, []
        while True:
            way.append(k)
            left, right, children = self.left[k], self.right[k], self.children[k]
            calls = sum(self.roitm for x in (left, right) if self._remote(k, x))
            offers = []
            for x, before in ((left, 0.0), (right, self.roitm * self._remote(k, left))):
                if x != NONE and (self.processor[x] == self.processor[k] or self.reducible[x]):
                    offers.append((self.duration[x] + before, x))
            if children != NONE and self.reducible[children]:
                offers.append((self.duration[children] + self.length[k] + calls, children))
            _, chosen = max(offers)
            if chosen != children and self.processor[chosen] == self.processor[k]:
                self._give(chosen, p)
                break
            k = chosen
        for k in reversed(way):
            if not self._remote(k, self.left[k]) and self._remote(k, self.right[k]):
                self.left[k], self.right[k] = self.right[k], self.left[k]   # remote calls come first
            self._update(k)

    def _give(self, k, p):
        """`assign processor p to all elements of subtree w`."""
        stack, seen = [k], []
        while stack:
            k = stack.pop()
            seen.append(k)
            self.processor[k] = p
            stack += [x for x in (self.left[k], self.right[k], self.children[k]) if x != NONE]
        for k in reversed(seen):
            self._update(k)
