"""Static top trees: any forest of links assembled in O(log N) steps, with at most two boundary links on the way.

Idea: a heavy path, listed link by link with the subtrees of each link before the next link, is a
sequence of which every interval has at most two boundary links: the link it is attached to (*above*) and the link that
carries the rest (*far*). Halving such sequences by weight, the subtrees' own sequences in their places, gives a
binary tree of joins. It is the assembly tree of [YN02, sec. 5.1] for any structure.
Reference: Alstrup, Holm, de Lichtenberg, Thorup, Maintaining information in fully dynamic trees with top trees, ACM
Trans. Algorithms 1 (2005); heavy paths as in `forest.py`.
Cost: O(N log N) in a few dozen NumPy operations per level. Depth: below 2.5 log2 N on all shapes tried.

Two subtrees at the same link are joined *side by side* (their inertias add); a cluster and one that hangs from its far
link are joined *in series*, by the joints between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bunraku.scheduling.forest import Tree

GROUND = -1
NONE = -2  # no far link: nothing hangs from the cluster


@dataclass(frozen=True, eq=False)
class Clusters:
    """A binary tree of joins. Nodes 0..n-1 are the links (or chunks), nodes n..2n-2 joins, operands before joins.

    left, right   operands of each join; in series, `left` is the upper one
    series        per join: whether the right operand hangs from the left one, else both hang from the same link
    above         per node: the link that its top links hang from, GROUND or a link outside
    far           per node: its link that carries links outside, or NONE
    depth         joins above the deepest link
    """

    left: np.ndarray
    right: np.ndarray
    series: np.ndarray
    above: np.ndarray
    far: np.ndarray
    depth: int

    @property
    def leaves(self) -> int:
        return len(self.above) - len(self.left)

    @cached_property
    def upper(self) -> np.ndarray:
        """The join that each node is an operand of; -1 for the last."""
        upper = np.full(len(self.above), -1)
        joins = self.leaves + np.arange(len(self.left))
        upper[self.left], upper[self.right] = joins, joins
        return upper

    def meet(self, a: int, b: int) -> int:
        """The lowest cluster that contains both links: where a connection between them can be closed."""
        upper = self.upper
        while a != b:
            if a < b:
                a = int(upper[a])
            else:
                b = int(upper[b])
        return a


def clusters(tree: Tree) -> Clusters:
    """The top tree of a forest. Links of `tree.waits` are joined only when their subtrees are
    complete, as in the articulated-body algorithm."""
    if tree.n == 0:
        none = np.zeros(0, np.int64)
        return Clusters(none, none, none.astype(bool), none, none, 0)
    return _halve(tree.n, _sequences(tree))


@dataclass(frozen=True, eq=False)
class _Sequences:
    """All sequences, concatenated. An item is a link (>= 0) or a sequence (-1 - its number)."""

    items: np.ndarray
    above: np.ndarray      # link that the item hangs from
    on_path: np.ndarray    # whether the item is a link of the path, with what it waits for
    link: np.ndarray       # the link, or the top link of a subtree
    total: np.ndarray      # weights of all items before
    begin: np.ndarray      # of each sequence
    end: np.ndarray
    first: int             # the sequence of everything


def _sequences(tree: Tree) -> _Sequences:
    n = tree.n
    waiting = np.flatnonzero(tree.waits & (tree.children[:-1] > 0))
    waits = np.zeros(n + 1, bool)
    waits[waiting] = True
    # A link's block in its path: the link, then its light subtrees; or the link alone if it waits for them.
    light = np.where(waits, 0, tree.children - (tree.heavy >= 0))
    block = 1 + light
    along = tree.along
    place = np.empty(n + 1, np.int64)                  # of each link in its path's sequence
    place[along] = np.cumsum(block[along]) - block[along]
    on_paths = int(block.sum())
    pairs = on_paths + 2 * np.arange(len(waiting))     # sequences of a waiting link: itself, and all it waits for
    bundles = on_paths + 2 * len(waiting) + np.concatenate([[0], np.cumsum(tree.children[waiting])])
    length = int(bundles[-1])

    items, link = np.empty(length, np.int64), np.empty(length, np.int64)
    on_path = np.zeros(length, bool)
    weight = np.empty(length)
    v = np.arange(n + 1)
    items[place], link[place], on_path[place], weight[place] = v, v, True, [*tree.weight, 0.0]
    numbers = n + 1 + np.arange(len(waiting))          # of the pairs; those of the bundles follow
    items[place[waiting]], weight[place[waiting]] = -1 - numbers, tree.size[waiting]
    items[pairs], link[pairs], on_path[pairs], weight[pairs] = waiting, waiting, True, tree.weight[waiting]
    items[pairs + 1], link[pairs + 1] = -1 - numbers - len(waiting), waiting
    weight[pairs + 1] = tree.size[waiting] - tree.weight[waiting]

    heads = np.flatnonzero(tree.head[:-1] == np.arange(n))             # top links of light subtrees
    parent = np.where(tree.parent[heads] < 0, n, tree.parent[heads])
    heads = heads[np.argsort(parent, kind="stable")]
    parent = np.sort(parent)
    rank = np.arange(len(heads)) - np.searchsorted(parent, parent)     # among the light children of one link
    of_bundle = np.zeros(n + 1, np.int64)
    of_bundle[waiting] = bundles[:-1]
    at = np.where(waits[parent], of_bundle[parent] + rank, place[parent] + 1 + rank)
    items[at], link[at], weight[at] = -1 - heads, heads, tree.size[heads]

    begin, end = np.zeros(n + 1 + 2 * len(waiting), np.int64), np.zeros(n + 1 + 2 * len(waiting), np.int64)
    head = tree.head[along]
    begin[head[::-1]] = place[along[::-1]]
    end[head] = (place + block)[along]
    begin[n] += 1                                      # without the ground itself
    begin[numbers], end[numbers] = pairs, pairs + 2
    begin[numbers + len(waiting)], end[numbers + len(waiting)] = bundles[:-1], bundles[1:]
    above = np.where(link < n, tree.parent[np.minimum(link, n - 1)], GROUND)
    above[pairs + 1] = waiting
    return _Sequences(items, above, on_path, link, np.concatenate([[0.0], np.cumsum(weight)]), begin, end, n)


def _halve(n: int, s: _Sequences) -> Clusters:
    """Halve all sequences at once, level by level, from the whole to single links."""
    left, right = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64)
    series = np.empty(n - 1, bool)
    above, far = np.empty(2 * n - 1, np.int64), np.full(2 * n - 1, NONE)
    path_links = np.concatenate([[0], np.cumsum(s.on_path)])
    last_link = np.maximum.accumulate(np.where(s.on_path, np.arange(len(s.items)), -1))
    lo, hi, end = (np.array([x]) for x in (s.begin[s.first], s.end[s.first], s.end[s.first]))
    joined = None                    # joins whose operands these nodes are: all left ones, then all right ones
    next_id, depth = 2 * n - 2, -1
    while len(lo):
        depth += 1
        open_end = (hi < end) & (path_links[hi] > path_links[lo])
        reach = np.where(open_end, s.link[np.maximum(last_link[hi - 1], 0)], NONE)
        while True:                  # a sequence that is one item is that item
            nested = (hi - lo == 1) & (s.items[lo] < 0)
            if not nested.any():
                break
            inner = -1 - s.items[lo[nested]]
            lo[nested], hi[nested], end[nested] = s.begin[inner], s.end[inner], s.end[inner]
        single = hi - lo == 1
        node = np.empty(len(lo), np.int64)
        node[single] = s.items[lo[single]]
        joins = int((~single).sum())
        node[~single] = next_id - np.arange(joins)
        next_id -= joins
        above[node], far[node] = s.above[lo], reach
        if joined is not None:
            left[joined], right[joined] = node[:len(joined)], node[len(joined):]
        lo, hi, end, node = lo[~single], hi[~single], end[~single], node[~single]
        if not joins:
            break
        middle = 0.5 * (s.total[lo] + s.total[hi])
        k = np.clip(np.searchsorted(s.total, middle), lo + 1, hi - 1)
        k -= (k - 1 > lo) & (np.abs(s.total[k - 1] - middle) < np.abs(s.total[k] - middle))
        series[node - n] = s.above[lo] != s.above[k]
        lo, hi, end = np.concatenate([lo, k]), np.concatenate([k, hi]), np.concatenate([end, end])
        joined = node - n
    return Clusters(left, right, series, above, far, depth)
