"""Chunks: connected parts of a tree, each with at most two boundary links, and their workers.

Given a worker for every link, joints between links of different workers are cut. The links that carry cut joints,
together with the links where paths from them to the ground meet, are the *boundary links*. Between them lie the chunks:
for every boundary link u the path to it from the next boundary link above, with all that hangs from the path and with
the subtrees at u of the same worker; for every other worker, its subtrees at u as one *bundle*.
Cost: O(boundary links log N), and a few NumPy operations on all links.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bunraku.scheduling.forest import Tree

NONE = -2


@dataclass(frozen=True, eq=False)
class Chunks:
    """Chunks, parents first; columns of costs are passes 1 to 4.

    above    the link that a chunk hangs from (-1: the ground)
    far      its link that carries other chunks, or NONE
    tops     links by which it hangs, and the joints of which are cut
    parent   the chunk that `above` is in, or -1
    worker   the worker that computes it, numbered from the root on
    labels   per worker: the number under which it was given
    cost     of all its links, in plain sweeps
    path     of the links from `above` to `far`
    rows     open rows of connections at `above`
    looped   whether there are connections: states, fronts and forces of open rows are sent
    """

    above: np.ndarray
    far: np.ndarray
    tops: list[list[int]]
    parent: np.ndarray
    worker: np.ndarray
    labels: np.ndarray
    cost: np.ndarray
    path: np.ndarray
    rows: np.ndarray
    looped: bool = False

    def __len__(self):
        return len(self.above)


class Weighed:
    """A tree with the costs of its links, and sums that chunks are made of."""

    def __init__(self, tree: Tree, cost: np.ndarray, ties: np.ndarray | None = None):
        self.tree, self.cost = tree, cost
        self.ties = np.zeros((0, 3), np.int64) if ties is None else ties   # connections: link, link, rows
        self.subtree = tree.below(cost)
        self.to_ground = tree.above(cost)                                  # the last row: the ground

    def chunks(self, worker: np.ndarray) -> Chunks:
        """The chunks if these workers have these links."""
        tree = self.tree
        parent = tree.parent
        cut = np.flatnonzero((parent >= 0) & (worker != worker[parent]))
        ends = _closed(tree, np.unique(parent[cut]))
        out: dict[str, list] = {name: [] for name in ("above", "far", "tops", "parent", "worker", "cost", "path")}
        number = {-1: -1}                # of the chunk that ends at a boundary link
        hung: dict[int, list[int]] = {}  # children of a boundary link that lead to others

        def add(above, far, tops, chunk, who, cost, path):
            for name, value in zip(out, (above, far, tops, chunk, who, cost, path), strict=True):
                out[name].append(value)

        for u, above in ends:
            top = tree.toward(above, u)
            hung.setdefault(above, []).append(top)
            number[u] = len(number) - 1
            rest = self.subtree[u] - self.cost[u]
            add(above, u, [top], number[above], int(worker[u]), self.subtree[top] - rest,
                self.to_ground[u] - self.to_ground[above])
        for u in number:
            kids = tree.kids(u if u >= 0 else tree.n)
            if u in hung:
                kids = kids[~np.isin(kids, hung[u])]
            for who in np.unique(worker[kids]):
                mine = kids[worker[kids] == who]
                cost = self.subtree[mine].sum(axis=0)
                if u >= 0 and who == out["worker"][number[u]]:
                    out["cost"][number[u]] = out["cost"][number[u]] + cost
                else:
                    add(u, NONE, mine.tolist(), number[u], int(who), cost, np.zeros_like(cost))
        names: dict[int, int] = {}
        renamed = np.array([names.setdefault(who, len(names)) for who in out["worker"]])
        tops = out["tops"]
        made = {name: np.array(out[name]) for name in ("above", "far", "parent")}
        made |= {name: np.array(out[name]).reshape(-1, self.cost.shape[1]) for name in ("cost", "path")}
        return Chunks(**made, tops=tops, worker=renamed, labels=np.array(list(names), np.int64),
                      rows=self._open_rows(tops, made["above"]), looped=len(self.ties) > 0)

    def _open_rows(self, tops, above) -> np.ndarray:
        """Rows of the connections with one end in a chunk or in what it carries, and the other elsewhere. Those to the
        ground are closed in the chunk that hangs from it."""
        rows = np.zeros(len(tops), np.int64)
        if not len(self.ties):
            return rows
        a, b = (np.where(x >= 0, self.tree.post[x], -1) for x in self.ties[:, :2].T)
        to_ground = (a < 0) | (b < 0)
        for k, links in enumerate(tops):
            begin, end = np.sort(self.tree.start[links]), np.sort(self.tree.post[links])
            one, other = (np.searchsorted(begin, x, "right") > np.searchsorted(end, x, "left") for x in (a, b))
            leaves = (one != other) & ~(to_ground & (above[k] < 0))
            rows[k] = self.ties[leaves, 2].sum()
        return rows

    def members(self, chunks: Chunks) -> np.ndarray:
        """The chunk of every link."""
        starts = {top: k for k, tops in enumerate(chunks.tops) for top in tops}
        member = [-1] * self.tree.n
        for i, p in enumerate(self.tree.parent.tolist()):
            member[i] = starts[i] if i in starts else member[p]
        return np.array(member)


def _closed(tree: Tree, links: np.ndarray) -> list[tuple[int, int]]:
    """Links and the places where their paths to the ground meet, from the ground on; each with the next one above."""
    found = sorted(links.tolist(), key=tree.post.__getitem__)
    meets = {tree.meet(a, b) for a, b in pairwise(found)} - {-1}
    closed: list[tuple[int, int]] = []
    above: list[int] = []
    for u in sorted({*found, *meets}, key=tree.post.__getitem__, reverse=True):
        while above and not tree.within(above[-1], u):
            above.pop()
        closed.append((u, above[-1] if above else -1))
        above.append(u)
    return closed


def cut_at(tree: Tree, cuts) -> np.ndarray:
    """A worker for every part between cut joints, named by its top link; -1 for the part connected to the ground."""
    cut = set(cuts)
    worker = [-1] * tree.n
    for i, p in enumerate(tree.parent.tolist()):
        worker[i] = i if i in cut else -1 if p < 0 else worker[p]
    return np.array(worker)
