"""[J, sec. III-D] on mobiles: estimated duration, and where processors go."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunraku.scheduling import Partitions, Tree, distribute, paper
from bunraku.scheduling.jung import Distributor
from shapes import chain, children, forests, mobile, star

CMPTM, ROITM = 0.4e-3, 1.5e-3  # [s] on MANNA


def speedups(parents, processors):
    d = distribute(Tree(parents), np.full(len(parents), CMPTM), ROITM, processors)
    return d.durations[0] / d.durations


def test_the_mobile_of_455_joints_ends_near_10():
    """[J, fig. 10]: not higher than 10, reached with 81 processors at the latest, the breadth of the tree."""
    found = speedups(mobile(), 200)
    assert len(mobile()) == 455
    assert 9.5 < found.max() < 10.6
    assert len(found) <= 81


def test_paper_costs_are_cmptm_and_roitm():
    assert paper().cmptm == pytest.approx(CMPTM)
    assert paper().roitm == pytest.approx(ROITM)


def test_a_larger_mobile_gains_more():
    assert speedups(mobile(4), 199)[-1] > 45


def test_a_chain_is_never_divided():
    assert speedups(chain(50), 8).tolist() == [1.0]


def test_one_processor_takes_the_sum():
    d = distribute(Tree(mobile()), np.full(455, CMPTM), ROITM, 1)
    assert d.duration == pytest.approx(455 * CMPTM)
    assert set(d.worker) == {0}


def test_durations_by_hand():
    """A root with two equal branches: the second is started by the first, which costs ROITM."""
    parents = [-1, 0, 1, 2, 3, 0, 5, 6, 7]
    d = distribute(Tree(parents), np.full(9, 1.0), 0.5, 5)
    assert d.durations.tolist() == [9.0, 1 + 0.5 + 4]
    assert len(set(d.worker[1:5]) | set(d.worker[5:])) == 2


def test_every_branch_starts_two_siblings():
    """64 equal branches, all remote: started in a binary tree, so that the time grows with its depth."""
    d = distribute(Tree(star(65)), np.full(65, 1.0), 0.25, 64)
    assert d.used == 64
    assert d.duration == pytest.approx(1 + 1 + 0.25 * 2 * 6, abs=0.5)


def test_a_branch_that_costs_less_than_a_call_stays_local():
    """[J, fig. 7]: the small branch is computed locally. By hand: root 1, branches 4, 3 and 0.5; a call 1.

    One processor: 8.5. The branch of 4 is computed by the processor of the root and starts the one of 3: max(1 + 3,
    1 + 0.5 + 4) = 5.5 after the root. The third branch elsewhere: max(1 + 3, 2 + 0.5, 2 + 4) = 6.
    """
    d = distribute(Tree([-1, 0, 0, 0]), np.array([1.0, 4.0, 3.0, 0.5]), 1.0, 4)
    assert d.worker.tolist() == [0, 0, 1, 0]
    assert d.durations.tolist() == [8.5, 6.5]


def test_the_longer_sibling_is_started_first_and_remote_ones_before_local_ones():
    """Branches 8, 6, 5, 4, 3 at a root: 8 starts 6 (which starts 5) and 4 (which starts 3)."""
    cost = np.array([1.0, 8.0, 6.0, 5.0, 4.0, 3.0])
    d = distribute(Tree([-1, 0, 0, 0, 0, 0]), cost, 0.5, 5)
    s = d.starts
    lengths = {k: cost[i] for k, i in enumerate(s.top)}
    assert {lengths[k]: [lengths[x] for x in (s.left[k], s.right[k]) if x >= 0] for k in lengths} == {
        1.0: [], 8.0: [6.0, 4.0], 6.0: [5.0], 4.0: [3.0], 5.0: [], 3.0: []}
    assert d.used == 5
    assert d.duration == 1 + 1 + 8                             # both calls, then its own chain


# -- the text of the paper once more, with objects and recursion ------------------------------------------------------


class Branch:
    def __init__(self, links, length):
        self.links, self.length, self.processor = links, length, 0
        self.left = self.right = self.children = None

    def below(self):
        """All branches of the tree that begins here."""
        return [self, *(y for x in (self.left, self.right, self.children) if x for y in x.below())]

    def copied(self):
        return copy.deepcopy(self)


def tree_of(parents, cost):
    """Branches: the siblings of a fork sorted by cost, each starting the next one with half of the rest, then the
    others."""
    kids = children(parents)
    weight = [float(x) for x in cost]
    for i in range(len(parents) - 1, -1, -1):
        if parents[i] >= 0:
            weight[parents[i]] += weight[i]

    def fork(tops):
        tops = sorted(tops, key=lambda i: -weight[i])
        if not tops:
            return None
        links = [tops[0]]
        while len(kids[links[-1]]) == 1:
            links += kids[links[-1]]
        first = Branch(links, sum(cost[i] for i in links))
        first.children = fork(kids[links[-1]])
        half = len(tops) // 2
        first.left, first.right = fork(tops[1:half + 1]), fork(tops[half + 1:])
        return first

    return fork([i for i, p in enumerate(parents) if p < 0])


def duration(w, roitm):
    if w is None:
        return 0.0
    dl = dr = 0.0
    if w.left and w.left.processor != w.processor:
        started = roitm
        dl = started + duration(w.left, roitm)
    else:
        started = duration(w.left, roitm)                        # printed: right siblings
    if w.right and w.right.processor != w.processor:
        started += roitm
        dr = started + duration(w.right, roitm)
    else:
        started += duration(w.right, roitm)
    return max(dl, dr, started + w.length + duration(w.children, roitm))


def assign(w, p):
    for x in w.below():
        x.processor = p


def change_siblings(w):
    if (w.left is None or w.left.processor == w.processor) and w.right and w.right.processor != w.processor:
        w.left, w.right = w.right, w.left


def useful(w, side, roitm):
    """Whether a processor more can be used in a sibling: in it, or for all of it if it is computed locally."""
    sibling = getattr(w, side)
    if sibling is None:
        return False
    if sibling.processor != w.processor:
        return reducible(sibling, roitm)
    there = w.copied()
    assign(getattr(there, side), -1)
    change_siblings(there)
    return duration(there, roitm) < duration(w, roitm)


def reducible(w, roitm):
    return w is not None and (useful(w, "left", roitm) or useful(w, "right", roitm) or reducible(w.children, roitm))


def use(w, p, roitm):
    remote = [x is not None and x.processor != w.processor for x in (w.left, w.right)]
    times = {}
    if reducible(w.children, roitm):
        times["children"] = duration(w.children, roitm) + w.length + roitm * sum(remote)
    if useful(w, "left", roitm):
        times["left"] = duration(w.left, roitm)
    if useful(w, "right", roitm):
        times["right"] = duration(w.right, roitm) + roitm * remote[0]
    chosen = getattr(w, max(times, key=times.get))
    if chosen is not w.children and chosen.processor == w.processor:
        assign(chosen, p)
    else:
        use(chosen, p, roitm)
    change_siblings(w)


@given(forests(14), st.sampled_from([64.0, 500.0, 3000.0]), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_distribution_as_the_text_of_the_paper_has_it(parents, roitm, seed):
    cost = np.random.default_rng(seed).integers(100, 2000, len(parents)).astype(float)  # sums are exact
    first = tree_of(parents, cost)
    durations = [duration(first, roitm)]
    for p in range(1, 6):
        if not reducible(first, roitm):
            break
        use(first, p, roitm)
        durations.append(duration(first, roitm))
    worker = np.zeros(len(parents), int)
    for x in first.below():
        worker[x.links] = x.processor
    d = distribute(Tree(parents, cost), cost, roitm, 6)
    assert d.durations.tolist() == durations
    assert d.worker.tolist() == worker.tolist()
    check_start_order(parents, cost, roitm, d)


def check_start_order(parents, cost, roitm, d):
    """Chunks have the processors of the distribution; each join of branches is computed by the starter."""
    costs = paper(1.0, roitm)
    part = Partitions(parents, np.outer(cost, [0.25] * 4), costs, passes=4).jung(6)
    p = Partitions(parents, np.outer(cost, [0.25] * 4), costs, passes=4)
    assert (part.chunks.worker[p.weighed.members(part.chunks)] == d.worker).all()
    m = len(part.chunks)
    assert sorted([*part.joins.left, *part.joins.right]) == list(range(2 * m - 2))
    assert part.prediction.time >= max(cost[d.worker == w].sum() for w in range(d.used)) * (1 - 1e-12)


def test_distributing_again_continues():
    one = Distributor(Tree(mobile()), np.full(455, CMPTM), ROITM)
    for p in (4, 9, 3, 30):
        there = one.at(p)
        alone = distribute(Tree(mobile()), np.full(455, CMPTM), ROITM, p)
        assert there.durations.tolist() == alone.durations.tolist()
        assert (there.worker == alone.worker).all()
