"""A forest of links as arrays: heavy paths, post-order, sums over subtrees and along paths to the ground.

The *heavy child* of a link is the child with the heaviest subtree; links joined by heavy edges form *heavy paths*. From
any link to the ground there are at most log2 N light edges (to a child that is not heavy) [Sleator and Tarjan 1983].
Reference: Sleator, Tarjan, A data structure for dynamic trees, J. Comput. Syst. Sci. 26 (1983). Cost: O(N).

Links are numbered parents first. The ground is link -1 for callers and vertex N in arrays of length N + 1.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np

from bunraku.errors import ModelError

FLOOR = 0.1  # least weight of a link, in mean weights: without it, links of no weight would be joined one by one


class Tree:
    """Links with weights. `waits` marks links without a heavy child: all their children are light."""

    def __init__(self, parent, weight=None, waits=None):
        self.parent = np.asarray(parent, np.int64)
        n = self.n = len(self.parent)
        if n and not ((self.parent >= -1) & (self.parent < np.arange(n))).all():
            raise ModelError("links must be numbered parents first")
        raw = np.ones(n) if weight is None else np.asarray(weight, float)
        mean = raw.mean() if n else 0.0
        self.weight = np.maximum(raw, FLOOR * mean) if mean > 0 else np.ones(n)
        self.waits = np.zeros(n, bool) if waits is None else np.asarray(waits, bool)
        self._find_paths()

    def _find_paths(self):
        n, parent, waits = self.n, self.parent.tolist(), [*self.waits.tolist(), False]
        size, count = [*self.weight.tolist(), 0.0], [1] * n + [0]
        children = [0] * (n + 1)
        for i in range(n - 1, -1, -1):
            p = parent[i]           # -1 is the last entry: the ground
            size[p] += size[i]
            count[p] += count[i]
            children[p] += 1
        heavy, best = [-1] * (n + 1), [0.0] * (n + 1)
        for i in range(n - 1, -1, -1):
            p = parent[i]
            if size[i] >= best[p] and not waits[p]:
                best[p], heavy[p] = size[i], i
        head, depth, light = list(range(n + 1)), [0] * (n + 1), [0] * (n + 1)
        start = [0] * (n + 1)
        used = [count[h] if h >= 0 else 0 for h in heavy]  # positions in post-order that a link's children have used
        for i in range(n):
            p = parent[i]
            depth[i] = depth[p] + 1
            if heavy[p] == i:
                head[i], light[i], start[i] = head[p], light[p], start[p]
            else:
                light[i], start[i] = light[p] + 1, start[p] + used[p]
                used[p] += count[i]
        self.size, self.heavy, self.head = np.array(size), np.array(heavy), np.array(head)
        self.depth, self.light, self.children = np.array(depth), np.array(light), np.array(children)
        self.start = np.array(start)                                 # first place of the subtree in post-order
        self.post = self.start + np.array(count) - 1                 # place of the link itself
        self.post[n] = n
        self._lists = parent, heavy, head, depth

    @cached_property
    def order(self) -> np.ndarray:
        """Links in post-order: heavy child first, a link after its children."""
        order = np.empty(self.n, np.int64)
        order[self.post[:-1]] = np.arange(self.n)
        return order

    @cached_property
    def along(self) -> np.ndarray:
        """Vertices path by path, from head to tip; paths by their number of light edges to the ground."""
        return np.lexsort((self.depth, self.head, self.light))

    @cached_property
    def child_lists(self) -> tuple[np.ndarray, np.ndarray]:
        """Children of all vertices in post-order, and where those of each vertex begin (N + 2 entries)."""
        parent = np.where(self.parent < 0, self.n, self.parent)
        listed = np.lexsort((self.post[:-1], parent))
        return listed, np.concatenate([[0], np.cumsum(np.bincount(parent, minlength=self.n + 1))])

    def kids(self, v: int) -> np.ndarray:
        """Children of a vertex (N: the ground), in post-order."""
        listed, begin = self.child_lists
        return listed[begin[v]:begin[v + 1]]

    def below(self, values: np.ndarray) -> np.ndarray:
        """Sums over the subtree of each link; `values` has a row per link."""
        total = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values[self.order], axis=0)])
        return total[self.post[:-1] + 1] - total[self.start[:-1]]

    def above(self, values: np.ndarray) -> np.ndarray:
        """Sums from the ground down to each link, itself included; the last row is the ground's: zero."""
        along, out = self.along, np.zeros((self.n + 1, *values.shape[1:]))
        if not self.n:
            return out
        own = np.concatenate([values, np.zeros((1, *values.shape[1:]))])
        edges = np.searchsorted(self.light[along], np.arange(self.light.max() + 2))
        for a, b in pairwise(edges):  # all paths with the same number of light edges at once
            v = along[a:b]
            sums = np.cumsum(own[v], axis=0)
            head = self.head[v]
            first = np.searchsorted(head, head)
            hung = np.where(head < self.n, self.parent[np.minimum(head, self.n - 1)], self.n)
            out[v] = sums - sums[first] + own[v[first]] + out[hung]
        return out

    def meet(self, a: int, b: int) -> int:
        """The lowest link above both, or one of them; -1 is the ground."""
        parent, _, head, depth = self._lists
        while head[a] != head[b]:
            if depth[head[a]] >= depth[head[b]]:
                a = parent[head[a]]
            else:
                b = parent[head[b]]
        return a if depth[a] <= depth[b] else b

    def toward(self, above: int, below: int) -> int:
        """The child of `above` (-1: the ground) whose subtree holds `below`."""
        parent, heavy, head, _ = self._lists
        x = below
        while head[x] != head[above]:
            last = head[x]
            x = parent[last]
            if x == above:
                return last
        return heavy[above]

    def within(self, above: int, below: int) -> bool:
        """Whether `below` is in the subtree of `above`."""
        return self.start[above] <= self.post[below] <= self.post[above]
