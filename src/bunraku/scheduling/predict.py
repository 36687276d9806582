"""Prediction: time of an evaluation if chunks are computed by workers and joined in a given order.

The timeline of the passes is simulated with the costs of `costs.py`. A worker does one operation at a time, in the
order of the assembly tree; results for other workers are sent as messages. A chunk that carries others either *waits*
for them and is then swept plainly, as in the articulated-body algorithm, or is swept at once with a far handle and
joined later. Cost: O(chunks). Nothing is executed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bunraku.scheduling.chunks import NONE, Chunks
from bunraku.scheduling.clusters import Clusters
from bunraku.scheduling.costs import FLOATS, FLOATS_FAR, FLOATS_FAR_DOWN, FLOATS_LOOPS, FLOATS_MOTION, PASSES, Costs


@dataclass(frozen=True, eq=False)
class Prediction:
    """Seconds for one evaluation, the seconds each worker is busy, messages sent and the most floats of one in each
    pass; `tasks` if they were recorded: (worker, begin, end, pass, node)."""

    time: float
    busy: np.ndarray
    messages: int
    floats: tuple[int, ...]
    tasks: list[tuple[int, float, float, int, int]] = field(default_factory=list)


def predict(chunks: Chunks, joins: Clusters, waits: np.ndarray, owner: np.ndarray, costs: Costs, passes: int = 3,
            record: bool = False) -> Prediction:
    """Simulate the timeline of passes 1 to 3 (forward dynamics), or 1 to 4 (with the solver's sums). owner: of each
    join, the chunk whose worker computes it."""
    if not len(chunks):
        return Prediction(0.0, np.zeros(1), 0, (0,) * PASSES)
    return _Play(chunks, joins, waits, owner, costs, record).run(passes)


def owners(joins: Clusters, waits: np.ndarray) -> np.ndarray:
    """The chunk whose worker computes each join: that of the taller operand, or the chunk that waits."""
    m = joins.leaves
    owner, height = list(range(m)), [0] * m
    for a, b, series in zip(joins.left.tolist(), joins.right.tolist(), joins.series.tolist(), strict=True):
        waiting = series and a < m and waits[a]
        owner.append(owner[a] if waiting or height[a] >= height[b] else owner[b])
        height.append(1 + max(height[a], height[b]))
    return np.array(owner[m:], np.int64)


class _Play:
    def __init__(self, chunks, joins, waits, owner, costs, record):
        self.costs, self.record = costs, record
        self.m = len(chunks)
        self.left, self.right = joins.left.tolist(), joins.right.tolist()
        self.series = joins.series.tolist()
        self.open = [f != NONE for f in joins.far.tolist()]
        self.waits = waits.tolist()
        self.whole, self.path = chunks.cost.tolist(), chunks.path.tolist()
        self.free = [0.0] * (int(chunks.worker.max()) + 1)
        self.busy = [0.0] * len(self.free)
        self.messages, self.tasks = 0, []
        self.floats = [0] * PASSES
        self.place = [*chunks.worker.tolist(), *chunks.worker[owner].tolist()]
        self.base = FLOATS_LOOPS if chunks.looped else FLOATS
        self.rows = chunks.rows.tolist() + [0] * (self.m - 1)  # open at the link above
        for k in range(self.m - 1):
            self.rows[self.m + k] = self.rows[self.left[k]] + (0 if self.series[k] else self.rows[self.right[k]])
        self.more = [k * 9 + k * (k + 1) // 2 for k in self.rows]  # floats: Y, beta and Theta, sizes to judge by

    def _do(self, node, ready, seconds, which) -> float:
        worker = self.place[node]
        begin = max(self.free[worker], ready)
        end = begin + seconds
        self.free[worker] = end
        self.busy[worker] += seconds
        if self.record:
            self.tasks.append((worker, begin, end, which, node))
        return end

    def _sent(self, ready, source, target, floats, which) -> float:
        if self.place[source] == self.place[target]:
            return ready
        self.messages += 1
        self.floats[which - 1] = max(self.floats[which - 1], floats)
        return ready + self.costs.message(floats)

    def _waiting(self, join) -> bool:
        """Whether the upper operand of the join is a chunk that waits for the lower one."""
        a = self.left[join]
        return self.series[join] and a < self.m and self.waits[a]

    def run(self, passes) -> Prediction:
        moved = self._velocities()
        assembled = self._inertias(moved)
        done = self._accelerations(assembled)
        if passes == 4:
            done = self._sums(done)
        return Prediction(max(done), np.array(self.busy), self.messages, tuple(self.floats), self.tasks)

    def _velocities(self) -> list[float]:
        """Pass 1: motion across chunks with far handles, then velocities from the ground down."""
        m, costs = self.m, self.costs
        across = [0.0] * (2 * m - 1)
        for k in range(m - 1, -1, -1):
            if self.open[k] and not self.waits[k]:
                across[k] = self._do(k, 0.0, costs.follow * self.path[k][0] + costs.chunk, 1)
        for j in range(m - 1):
            a, b = self.left[j], self.right[j]
            if self.open[m + j]:
                inner = [x for x in (a, b) if self.open[x]]
                across[m + j] = max(self._sent(across[x], x, m + j, FLOATS_MOTION, 1) for x in inner)
        at, end = [0.0] * (2 * m - 1), [0.0] * m
        for node in range(2 * m - 2, m - 1, -1):
            j = node - m
            a, b = self.left[j], self.right[j]
            at[a] = self._sent(at[node], node, a, self.base[0], 1)
            if self._waiting(j):
                at[a] = self._path(a, at[a], 1)
                at[b] = self._sent(at[a], a, b, self.base[0], 1)
            elif self.series[j]:
                at[b] = self._sent(max(at[node], across[a]), a, b, self.base[0], 1)
            else:
                at[b] = self._sent(at[node], node, b, self.base[0], 1)
        self._leaves(at, end, 1)
        return end

    def _path(self, chunk, ready, which) -> float:
        """The path through a chunk that waits: outwards it comes before the rest of the chunk."""
        return self._do(chunk, ready, self.path[chunk][which - 1] + self.costs.chunk, which)

    def _leaves(self, at, end, which):
        """Chunks, or their remainders, as they become ready."""
        for k in sorted(range(self.m), key=at.__getitem__):
            seconds = self.whole[k][which - 1] + self.costs.chunk
            if self.waits[k] and self.open[k]:
                seconds = max(self.whole[k][which - 1] - self.path[k][which - 1], 0.0)
            end[k] = self._do(k, at[k], seconds, which)

    def _inertias(self, moved) -> float:
        """Pass 2: sweeps from tips to root, and joins."""
        m, costs = self.m, self.costs
        done = [0.0] * (2 * m - 1)
        for k in range(m - 1, -1, -1):
            if self.waits[k] and self.open[k]:
                seconds = self.whole[k][1] - self.path[k][1]
            else:
                seconds = self.whole[k][1]
                if self.open[k]:
                    seconds += (costs.far - 1.0) * sum(self.path[k][:3])
            done[k] = self._do(k, moved[k], max(seconds, 0.0) + costs.chunk, 2)
        for j in range(m - 1):
            a, b = self.left[j], self.right[j]
            ready = max(self._sent(done[x], x, m + j, (FLOATS_FAR if self.open[x] else self.base[1]) + self.more[x], 2)
                        for x in (a, b))
            if self._waiting(j):
                seconds = self.path[a][1]
            elif self.series[j]:
                seconds = costs.join_far if self.open[b] else costs.join
            else:
                seconds = costs.add
            done[m + j] = self._do(m + j, ready, seconds, 2)
        return done[2 * m - 2]

    def _accelerations(self, ready) -> list[float]:
        """Pass 3: from the ground down."""
        m, costs = self.m, self.costs
        at, end = [ready] * (2 * m - 1), [0.0] * m
        for node in range(2 * m - 2, m - 1, -1):
            j = node - m
            a, b = self.left[j], self.right[j]
            if self._waiting(j):
                at[a] = self._path(a, self._sent(at[node], node, a, self.base[2] + self.rows[a], 3), 3)
                at[b] = self._sent(at[a], a, b, self.base[2] + self.rows[b], 3)
            else:
                known = self._do(node, at[node], costs.split, 3) if self.series[j] else at[node]
                for x in (a, b):
                    floats = FLOATS_FAR_DOWN if self.open[x] else self.base[2] + self.rows[x]
                    at[x] = self._sent(known, node, x, floats, 3)
        self._leaves(at, end, 3)
        return end

    def _sums(self, ready) -> list[float]:
        """Pass 4: the solver's error sums, up to the root."""
        m = self.m
        done = [self._do(k, ready[k], self.whole[k][3] + self.costs.chunk, 4) for k in range(m)]
        for j in range(m - 1):
            a, b = self.left[j], self.right[j]
            done.append(max(self._sent(done[x], x, m + j, self.base[3], 4) for x in (a, b)))
        return done
