"""Equal chunks of one mechanism, W at once in lanes.

Idea: chunks are *like* if their bodies have the same joints and inertias, bit for bit; only the place of the first
joint on the link above may differ. Two sources of them: a stretch of a chain whose bodies repeat with some period, cut
into chunks of equal length that hang one from the other (with far handles, `algorithms/far.py`); and equal branches
that hang from the same link. W like chunks are a *bundle*. All other bodies are ordinary chunks, swept after what they
carry.
`lane_plan.py` makes a plan of them. Cost: O(bodies).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bunraku.plan import fields as f
from bunraku.plan.build import Plan
from bunraku.plan.loop_plan import clusters
from bunraku.spatial.lanes import WIDTH

LONGEST = 256     # bodies of a chunk in a series: its lane memory, 2 KB a body, stays in the second cache
SHORTEST = 8      # bodies of a chunk in a series: fewer are not worth a join
FEWEST = 24       # bodies of W like branches together
MOST_PERIOD = 32

@dataclass(eq=False)
class Chunk:
    """Bodies, the path first; `above`: the chunk it hangs from, -1 for the ground."""

    bodies: np.ndarray
    path: int             # bodies on the path to the far body; 0 if it carries nothing
    above: int
    shape: int = -1       # -1: ordinary
    carried: list[int] = field(default_factory=list)


class Partition:
    """Chunks, parents first, and bundles: numbers of W chunks with the same shape."""

    def __init__(self, plan: Plan, longest: int):
        self.plan, self.longest = plan, longest
        self.chunks: list[Chunk] = []
        self.bundles: list[list[int]] = []
        self.shapes = 0
        parent = plan.body_i[:-1, f.PARENT].tolist()
        self.children: list[list[int]] = [[] for _ in range(plan.bodies + 1)]   # the last: of the ground
        for i, p in enumerate(parent):
            self.children[p].append(i)
        self.may_cut = np.array(clusters(plan)) == np.arange(plan.bodies)
        self._classify()
        self._find_branches()
        self._hanging = [(self.children[-1], -1)]
        while self._hanging:
            self._divide(*self._hanging.pop())
        for k, chunk in enumerate(self.chunks):
            if chunk.above >= 0:
                self.chunks[chunk.above].carried.append(k)

    # -- what is like what -------------------------------------------------------------------------------------------

    def _classify(self):
        """Numbers of equal bodies: `kind`, and `kind_first` whatever the place of the joint on the body above."""
        plan, rows = self.plan, self.plan.body_i[:-1]
        rotor = np.zeros((plan.bodies, 6))
        for d in range(6):
            has = rows[:, f.DOF] > d
            rotor[has, d] = plan.dof_f[f.ARMATURE, rows[has, f.V_INDEX] + d]
        own = np.column_stack([rows[:, [f.KIND, f.ELIMINATION, f.DOF, f.MASSIVE]], rotor, plan.body_f[:-1, f.INERTIA:]])
        self.kind_first = _numbered(own)
        self.kind = _numbered(np.column_stack([own, plan.body_f[:-1, :f.INERTIA]]))

    def _find_branches(self):
        """`branch`: the number of each subtree among equal ones, the place of its first joint apart; `size`; `leads`:
        whether there may be bundles in it; `stretch`: bodies from each on until the tree branches or ends."""
        n = self.plan.bodies
        known: dict[tuple, int] = {}
        branch, whole, size, leads, stretch = [0] * n, [0] * n, [1] * n, [False] * n, [1] * n
        self.branch, self.size, self.leads, self.stretch = branch, size, leads, stretch
        kind, first = self.kind.tolist(), self.kind_first.tolist()
        for i in range(n - 1, -1, -1):
            below = self.children[i]
            key = tuple(whole[c] for c in below)
            branch[i] = known.setdefault((-1, first[i], key), len(known))
            whole[i] = known.setdefault((kind[i], key), len(known))
            size[i] += sum(size[c] for c in below)
            if len(below) == 1:
                stretch[i] += stretch[below[0]]
            leads[i] = (stretch[i] >= WIDTH * SHORTEST or any(leads[c] for c in below)
                        or (len(below) >= WIDTH and bool(self._bundles(below)[0])))

    def _bundles(self, tops):
        """W equal branches at a time, among those that begin with these bodies; and the bodies that are left over."""
        alike: dict[int, list[int]] = {}
        for c in tops:
            alike.setdefault(self.branch[c], []).append(c)
        bundles, rest = [], []
        for group in alike.values():
            count = len(group) // WIDTH * WIDTH
            if WIDTH * self.size[group[0]] < FEWEST or not self.may_cut[group[0]]:
                count = 0
            bundles += [group[k:k + WIDTH] for k in range(0, count, WIDTH)]
            rest += group[count:]
        return bundles, sorted(rest)

    # -- chunks ------------------------------------------------------------------------------------------------------

    def _add(self, bodies, path, above, shape=-1) -> int:
        self.chunks.append(Chunk(np.array(bodies, np.int64), path, above, shape))
        return len(self.chunks) - 1

    def _below(self, tops) -> list[int]:
        """All bodies of the subtrees that begin with these (bodies are numbered depth first)."""
        return [i for top in tops for i in range(top, top + self.size[top])]

    def _divide(self, tops, above):
        """Branches that hang from the same link."""
        bundles, rest = self._bundles(tops)
        shapes = {}
        for bundle in bundles:
            kind = self.branch[bundle[0]]
            if kind not in shapes:
                shapes[kind] = self.shapes
                self.shapes += 1
            self.bundles.append([self._add(self._below([top]), 0, above, shapes[kind]) for top in bundle])
        plain = [top for top in rest if not (self.leads[top] and self.may_cut[top])]
        if plain:
            self._add(self._below(plain), 0, above)
        for top in rest:
            if self.leads[top] and self.may_cut[top]:
                self._follow(top, above)

    def _follow(self, top, above):
        """A branch with bundles in it: down the tree as long as they are all in one subtree."""
        path: list[int] = []
        aside: list[int] = []
        body = top
        while True:
            run = range(body, body + self.stretch[body])
            begin = run.start
            for first, length, count in self._series(run):
                path += range(begin, first)
                if path:
                    above = self._add(path + sorted(aside), len(path), above)
                    path, aside = [], []
                for k in range(count):
                    at = first + k * length
                    above = self._add(range(at, at + length), length, above, self.shapes)
                    if k % WIDTH == 0:
                        self.bundles.append([])
                    self.bundles[-1].append(above)
                self.shapes += 1
                begin = first + count * length
            path += range(begin, run.stop)
            below = self.children[run.stop - 1]
            bundles, _ = self._bundles(below)
            on = [c for c in below if self.leads[c]]
            if not bundles and len(on) == 1:  # the others are swept with this chunk
                aside += self._below([c for c in below if c != on[0]])
                body = on[0]
                continue
            if bundles or on:
                if path:
                    bundled = {top for bundle in bundles for top in bundle}
                    plain = [c for c in below if c not in bundled and not (self.leads[c] and self.may_cut[c])]
                    aside += self._below(plain)
                    above = self._add(path + sorted(aside), len(path), above)
                    below = [c for c in below if c not in plain]
                self._hanging.append((below, above))
                return
            aside += self._below(below)
            if path or aside:
                self._add(sorted(path + aside), 0, above)
            return

    def _series(self, run) -> list[tuple[int, int, int]]:
        """Stretches of like chunks in a run of bodies: first body, bodies of a chunk, number of chunks."""
        found, waiting = [], [(run.start, run.stop)]
        while waiting:
            start, stop = waiting.pop()
            series = self._longest_series(start, stop)
            if series is not None:
                first, length, count = series
                found.append(series)
                waiting += [(start, first), (first + length * count, stop)]
        return sorted(found)

    def _longest_series(self, start, stop):
        best = (0, 0, 0, 0)
        kind = self.kind[start:stop]
        for period in range(1, min(MOST_PERIOD, (stop - start) // (2 * WIDTH)) + 1):
            same = np.concatenate([[0], kind[period:] == kind[:-period], [0]]).astype(np.int8)
            begins, ends = np.flatnonzero(np.diff(same) == 1), np.flatnonzero(np.diff(same) == -1)
            if len(begins):
                k = int(np.argmax(ends - begins))
                length = int(ends[k] - begins[k]) + period
                if length > 1.05 * best[0]:  # a longer period must be worth it
                    best = (length, start + int(begins[k]), start + int(begins[k]) + length, period)
        _, first, last, period = best
        if period == 0:
            return None
        if first > start and self.kind_first[first - 1] == self.kind_first[first - 1 + period]:
            first -= 1  # the first joint of the first chunk may be elsewhere on the link above
        for end in range(last, last - period, -1):
            bundles = max(1, min(-(-(end - first) // (WIDTH * self.longest)), (end - first) // (WIDTH * SHORTEST)))
            length = (end - first) // (bundles * WIDTH * period) * period
            count = bundles * WIDTH
            tops = np.arange(end - count * length, end + 1, max(length, 1))
            if length >= SHORTEST and self.may_cut[[*tops[:-1], *self.children[end - 1]]].all():
                return int(tops[0]), length, count
        return None


def _numbered(table) -> np.ndarray:
    """The number of each row among the different ones, compared bit by bit."""
    table = np.ascontiguousarray(table, float)
    rows = table.view(np.dtype((np.void, table.dtype.itemsize * table.shape[1]))).ravel()
    return np.unique(rows, return_inverse=True)[1].ravel()
