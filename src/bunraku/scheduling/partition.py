"""Chunks for p workers, with minimal predicted time.

Idea: in post-order with heavy children first, any stretch of links meets the rest at few links (at most one per light
edge on the way to the ground). Workers get stretches of equal cost; the prediction shows which workers are overloaded
(chunks with far handles cost more), and the shares are corrected a few times. Candidates with fewer workers compete,
and so does the distribution of [J].
Cost: O(N) once, then O(workers log N) per candidate. A heuristic: the best candidate need not be optimal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bunraku.scheduling.chunks import Chunks, Weighed
from bunraku.scheduling.clusters import Clusters, clusters
from bunraku.scheduling.costs import Costs
from bunraku.scheduling.forest import Tree
from bunraku.scheduling.jung import Distribution, Distributor
from bunraku.scheduling.predict import Prediction, owners, predict
from bunraku.scheduling.start_order import started

ROUNDS = 4                 # corrections of the shares
SNAPS = (0.0, 0.1, 0.4)    # how far a cut may move to a better place, in stretches
EVERY = 32                 # up to so many workers every number competes, beyond it eight in each octave
MANY = 256                 # from so many workers on there are fewer candidates
PATIENCE = 12              # candidates in a row that may be no better before the search ends; from MANY on, 3
MOST_TIPS = 2000           # of trees for which [J]'s distribution competes


@dataclass(frozen=True, eq=False)
class Partition:
    """Chunks, the order of their joins, the chunks that wait for those they carry, the chunk whose worker computes each
    join, and the predicted evaluation."""

    chunks: Chunks
    joins: Clusters
    waits: np.ndarray
    owner: np.ndarray
    prediction: Prediction

    @property
    def workers(self) -> int:
        return int(self.chunks.worker.max()) + 1 if len(self.chunks) else 1


class Partitions:
    """All partitions of one tree with given costs. Results are kept: `best(8)` costs little after `best(7)`.

    passes   3 for forward dynamics, 4 with the solver's sums
    far      whether chunks may have far handles; without, all wait for what they carry
    """

    def __init__(self, parent, cost: np.ndarray, costs: Costs, ties: np.ndarray | None = None, passes: int = 3,
                 far: bool = True):
        self.costs, self.passes, self.far = costs, passes, far
        self.cost = np.asarray(cost, float)
        self.total = self.cost[:, :passes].sum(axis=1)
        self.tree = Tree(parent, self.total)
        self.weighed = Weighed(self.tree, self.cost, ties)
        n = self.tree.n
        self.sums = np.concatenate([[0.0], np.cumsum(self.tree.weight[self.tree.order])])
        steps = np.zeros(n + 2)   # how many links are boundary links if the order is cut before a place
        v = np.flatnonzero(self.tree.heavy[:-1] >= 0)
        np.add.at(steps, self.tree.post[self.tree.heavy[v]] + 1, 1)
        np.add.at(steps, self.tree.post[v] + 1, -1)
        self.boundaries = np.cumsum(steps)[:n + 1]
        self._made: dict[int, Partition] = {}
        self._theirs: dict[int, Partition] = {}
        self._jung: Distributor | None = None
        self.tips = int((self.tree.children[:-1] == 0).sum())

    def serial(self) -> Partition:
        return self.exactly(1)

    def best(self, workers: int) -> Partition:
        """The partition with the least predicted time for at most `workers` workers.

        The candidate numbers of workers do not depend on the requested number, so that more workers are never predicted
        to be slower; nor slower than [J]'s distribution.
        """
        found, worse = self.serial(), 0
        for p in ladder(min(workers, self.tree.n)):
            one = self.exactly(p)
            worse += 1
            if one.prediction.time < found.prediction.time:
                found, worse = one, 0
            if worse >= (PATIENCE if p < MANY else 3):
                break
        theirs = [self.of_jung(p) for p in {*ladder(min(workers, self.tips)), workers} - {1}]
        return min([found, *filter(None, theirs)], key=lambda x: x.prediction.time)

    def exactly(self, workers: int) -> Partition:
        """The best partition found for this number of workers, or for fewer if there are not enough links."""
        if workers not in self._made:
            snaps = SNAPS if 1 < workers < MANY else SNAPS[1:2]
            self._made[workers] = min((self._balanced(workers, snap) for snap in snaps), key=_merit)
        return self._made[workers]

    def jung(self, workers: int) -> Partition:
        """[J]'s distribution as it is: branches are started as in [J, fig. 7], and chunks wait for what they carry."""
        chunks, joins, owner = started(self.weighed, self._distributed(workers))
        return self._played(chunks, joins, chunks.far >= 0, owner)

    def of_jung(self, workers: int) -> Partition | None:
        """[J]'s distribution, joined as in [J] or as chosen here, whichever is predicted to be faster; None if the
        tree has no forks, or too many."""
        if not 1 < self.tips <= MOST_TIPS:
            return None
        workers = min(workers, self.tips)  # there are no more branches side by side
        if workers not in self._theirs:
            chosen = self.evaluate(self._distributed(workers).worker)
            self._theirs[workers] = min(chosen, self.jung(workers), key=lambda x: x.prediction.time)
        return self._theirs[workers]

    def _distributed(self, workers: int) -> Distribution:
        """By CMPTM and ROITM, which are of all four passes [J, table IX]."""
        if self._jung is None:
            self._jung = Distributor(self.tree, self.cost.sum(axis=1), self.costs.roitm)
        return self._jung.at(workers)

    def _balanced(self, workers: int, snap: float) -> Partition:
        if workers == 1:
            return self.evaluate(np.zeros(self.tree.n, np.int64))
        share = np.full(workers, 1.0 / workers)
        best = None
        for _ in range(ROUNDS if workers < MANY else 2):
            one = self.evaluate(self._stretches(share, snap))
            if best is None or _merit(one) < _merit(best):
                best = one
            if one.workers != workers:
                break
            busy = np.empty(workers)
            busy[one.chunks.labels] = one.prediction.busy
            share = share * (busy.mean() / np.maximum(busy, 1e-3 * busy.mean() + 1e-300)) ** 0.8
            share /= share.sum()
        assert best is not None
        return best

    def _stretches(self, share, snap) -> np.ndarray:
        """Workers of all links: stretches of the post-order with these shares of the cost."""
        n = self.tree.n
        wanted = np.cumsum(share)[:-1] * self.sums[-1]
        places = np.clip(np.searchsorted(self.sums, wanted), 0, n)
        if snap > 0.0:
            reach = snap * self.sums[-1] / len(share)
            low = np.searchsorted(self.sums, wanted - reach)
            high = np.minimum(np.searchsorted(self.sums, wanted + reach), n) + 1
            for k in range(len(places)):
                window = np.arange(low[k], high[k])
                if len(window):
                    off = np.abs(self.sums[window] - wanted[k]) / (reach + 1e-300)
                    places[k] = window[np.argmin(self.boundaries[window] + off)]
        least = np.arange(1, len(share))  # no stretch is empty if there are enough links
        places = np.maximum.accumulate(np.maximum(places, least) - least) + least
        places = np.minimum(places, n - len(share) + least) if n >= len(share) else np.minimum(places, n)
        worker = np.empty(n, np.int64)
        lengths = np.diff(np.concatenate([[0], places, [n]]))
        worker[self.tree.order] = np.repeat(np.arange(len(share)), lengths)
        return worker

    def evaluate(self, worker: np.ndarray) -> Partition:
        """The partition in which these workers have these links, with the best of the ways to wait."""
        chunks = self.weighed.chunks(worker)
        carries = chunks.far >= 0
        short = carries & (chunks.path[:, 1] <= self.costs.join + (self.costs.far - 1) * chunks.path[:, :3].sum(axis=1))
        ways = [short, np.zeros(len(chunks), bool), *([carries] if len(chunks) < MANY else [])]
        if not self.far or chunks.looped:  # open rows of connections travel tips to root only
            ways = [carries]
        found = []
        for waits in {w.tobytes(): w for w in ways}.values():
            joins = clusters(Tree(chunks.parent, chunks.cost.sum(axis=1), waits))
            found.append(self._played(chunks, joins, waits, owners(joins, waits)))
        return min(found, key=lambda x: x.prediction.time)

    def _played(self, chunks, joins, waits, owner) -> Partition:
        return Partition(chunks, joins, waits, owner, predict(chunks, joins, waits, owner, self.costs, self.passes))


def _merit(x: Partition) -> tuple[int, float]:
    """The smaller, the better: as many workers as possible, then the least time."""
    return -x.workers, x.prediction.time


def ladder(most: int) -> list[int]:
    """Numbers of workers that compete: 2, 3, ... 32, 36, 40, ... 64, 72, ..."""
    numbers, octave = list(range(2, EVERY + 1)), EVERY
    while octave < most:
        parts = 8 if octave < MANY else 4 if octave < 4 * MANY else 2
        numbers += [octave + octave * part // parts for part in range(1, parts + 1)]
        octave *= 2
    return [p for p in numbers if p <= most]
