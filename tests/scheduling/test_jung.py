"""[J, sec. III-D] on mobiles: estimated duration, and where processors go."""

import numpy as np
import pytest

from bunraku.scheduling import Tree, distribute, paper
from bunraku.scheduling.jung import Distributor
from shapes import chain, mobile, star

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
    d = distribute(Tree(star(65)), np.full(65, 1.0), 1.0, 64)
    assert d.used == 64
    assert d.duration == pytest.approx(1 + 1 + 2 * 6, abs=2)


def test_distributing_again_continues():
    one = Distributor(Tree(mobile()), np.full(455, CMPTM), ROITM)
    for p in (4, 9, 3, 30):
        there = one.at(p)
        alone = distribute(Tree(mobile()), np.full(455, CMPTM), ROITM, p)
        assert there.durations.tolist() == alone.durations.tolist()
        assert (there.worker == alone.worker).all()
