"""[J]'s distribution, executed: accelerations, motions, and messages that go as branches start each other."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.bench.bench_parallel import free_tree
from bunraku.plan.chunk_plan import Division
from bunraku.scheduling import Tree, distribute
from divided import state
from structures import random_tree

COSTS = {"cmptm": 1e-6, "roitm": 1e-6}  # as dear a call as a body: everything is worth a processor


def fan(branches=9, links=2):
    """Equal branches at one link."""
    return bk.models.mobile(0.2, 0.1, 0.2, 0.5, 2, links, branches, 2.0, 2.0)


def jung(m, workers, **more):
    return bk.schedule(m, workers, method="jung", **({"costs": COSTS} | more))


@pytest.mark.parametrize("build", [fan, lambda: bk.models.mobile(0.2, 0.1, 0.2, 0.5, 3, 2, 3, 2.0, 2.0),
                                   lambda: bk.models.human(34), lambda: free_tree(60),
                                   lambda: random_tree(5, passive=True).m, lambda: random_tree(11).m])
def test_accelerations_are_those_of_one_worker(build):
    m = build()
    q, v, tau = state(m, np.random.default_rng(1))
    alone = bk.forward_dynamics(m, q, v, tau, workers=1)
    for workers in (2, 3, 5):
        s = jung(m, workers)
        assert s.workers == len(set(s.chunk_workers)) <= workers
        one = bk.forward_dynamics(m, q, v, tau, workers=1, schedule=s)
        several = bk.forward_dynamics(m, q, v, tau, workers=min(s.workers, 2), schedule=s)
        assert np.array_equal(one, several)
        assert np.abs(one - alone).max() <= 1e-11 * max(1.0, np.abs(alone).max())


def test_chunks_are_those_of_the_distribution():
    m = bk.models.mobile(0.2, 0.1, 0.2, 0.5, 3, 3, 4, 2.0, 2.0)
    tree, n = Tree([link.parent for link in m.links]), len(m.links)
    for workers in (1, 2, 3, 7, 12):
        s = jung(m, workers, costs={"cmptm": 0.4e-3, "roitm": 1.5e-3})
        expected = distribute(tree, np.full(n, 0.4e-3), 1.5e-3, workers)
        found = {link: worker for links, worker in zip(s.chunks, s.chunk_workers, strict=True) for link in links}
        assert [found[link.name] for link in m.links] == expected.worker.tolist()
        assert s.workers == expected.used
        assert not any(handles > 2 for handles in s.handles)


def test_messages_go_as_branches_start_each_other():
    """Nine equal branches on nine workers: each starts at most two others, in the order of the starts, before its own
    chain; motions, inertias, accelerations and sums go the same ways."""
    m = fan()
    s = jung(m, 9)
    assert s.workers == 9
    starts = distribute(Tree([link.parent for link in m.links]), np.full(len(m.links), 1e-6), 1e-6, 9).starts
    ways = [(starts.processor[k], starts.processor[x]) for k in range(len(starts.top))
            for x in (starts.left[k], starts.right[k]) if x >= 0]
    division = Division(m.plan(), s.assembly(m.plan()))
    for number, sent in ((1, ways), (2, [way[::-1] for way in ways]), (3, ways)):
        assert sorted((e.sender, e.receiver) for e in division.edges if e.number == number) == sorted(sent)
    for worker in range(9):
        mine = [e.receiver for e in division.edges if e.number == 1 and e.sender == worker]
        assert mine == [receiver for sender, receiver in ways if sender == worker]
        assert len(mine) <= 2


@pytest.mark.parametrize("solver", ["gear", "rk4"])
def test_simulations_have_the_same_bits_on_one_worker_and_on_several(solver):
    m = free_tree(40)
    q, v, _ = state(m, np.random.default_rng(2))
    s, found = jung(m, 3), []
    assert s.workers == 3
    for workers in (1, 2, 3):
        sim = bk.Simulation(m, q, 0.2 * v, solver, workers=workers, schedule=s,
                            **({"step": 0.004} if solver == "rk4" else {}))
        sim.run(0.04)
        assert sim.stats.workers == workers
        found.append((sim.q, sim.v, sim.stats.steps))
    for x in found[1:]:
        assert np.array_equal(x[0], found[0][0])
        assert np.array_equal(x[1], found[0][1])
        assert x[2] == found[0][2]
    whole = bk.Simulation(m, q, 0.2 * v, solver, workers=1, **({"step": 0.004} if solver == "rk4" else {}))
    whole.run(0.04)
    assert np.abs(whole.q - found[0][0]).max() < 1e-9


def test_with_loops_the_tree_is_distributed_and_loops_close_where_their_sides_meet():
    m = free_tree(40)
    q, v, tau = state(m, np.random.default_rng(3))
    one, other = m.links[-1].name, m.links[20].name
    (turn, a), (_, b) = (bk.poses(m, q)[name] for name in (one, other))
    m.connect(one, other, bk.Spherical(), position_a=turn.T @ (b - a), position_b=(0.0, 0.0, 0.0))
    q, v = bk.project(m, q, v)
    alone = bk.forward_dynamics(m, q, v, tau)
    s = jung(m, 3)
    assert s.workers == 3
    one, several = (bk.forward_dynamics(m, q, v, tau, schedule=s, workers=w) for w in (1, 2))
    assert np.array_equal(one, several)
    assert np.abs(one - alone).max() < 1e-9 * max(1.0, np.abs(alone).max())


def test_a_change_of_structure_makes_the_same_request_again():
    m = fan()
    sim = bk.Simulation(m, workers=2, schedule=jung(m, 3))
    sim.run(0.01)
    sim.cut("4/link0")
    sim.run(0.02)
    assert set(sim.schedule.chunk_workers) == {0, 1, 2}
    assert sim.schedule.method == "jung"


def test_a_chain_is_for_one_worker_and_says_why():
    s = bk.schedule(bk.models.chain(20), 4, method="jung")
    assert s.workers == 1
    assert "chains are not divided" in repr(s)


def test_requests_that_make_no_sense_are_refused():
    m = fan()
    with pytest.raises(bk.ModelError, match=r"method 'jungg' is not one of auto, jung.*jung"):
        bk.schedule(m, 2, method="jungg")
    with pytest.raises(bk.ModelError, match="leave out exactly"):
        bk.schedule(m, 2, method="jung", exactly=True)
    for wrong in (-1.0, "x", float("nan")):
        with pytest.raises(bk.ModelError, match="roitm must be a number of seconds"):
            bk.schedule(m, 2, method="jung", costs={"cmptm": 1e-6, "roitm": wrong})
