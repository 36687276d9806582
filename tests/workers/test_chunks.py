"""Mechanisms cut at joints: any cuts, any waiting, any workers give the accelerations of the whole."""

import os
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku as bk
from bunraku.plan.chunk_plan import Division
from bunraku.workers.threads import Team
from divided import by_team, possible_cuts, random_assembly, state
from oracle import close, solve
from structures import random_tree


@given(st.integers(0, 10**6))
@settings(max_examples=60)
def test_random_trees_random_cuts_random_waiting(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, passive=bool(rng.integers(2)))
    m = tree.m
    q, v, tau = state(m, rng)
    assembly = random_assembly(m, rng)
    chunks = len(assembly.worker)
    alone, _ = by_team(m, assembly, np.zeros(chunks, int), q, v, tau)
    close(alone, solve(tree, q, v, tau).a, 1e-9)
    close(alone, bk.forward_dynamics(m, q, v, tau), 1e-10)
    workers = rng.permutation(np.arange(chunks) % rng.integers(1, 4))
    workers = np.unique(workers, return_inverse=True)[1]
    shared, _ = by_team(m, assembly, workers, q, v, tau)
    assert np.array_equal(alone, shared)  # to the last bit


@pytest.mark.parametrize("waiting", [0.0, 1.0])
@pytest.mark.parametrize("build", [bk.models.humanoid, lambda: bk.models.human(48),
                                   lambda: bk.models.chain(30, axes=((0, 1, 0), (1, 0, 0))),
                                   lambda: bk.models.chain(30, "spherical"), lambda: bk.models.chain(12, base="free"),
                                   lambda: bk.models.mobile(0.2, 0.3, 0.2, 1.0, 2, 3, 4, 3.0, 2.0)])
def test_every_link_a_chunk(build, waiting):
    """No digits are lost by joins: as exact as the sweep over the whole."""
    m, rng = build(), np.random.default_rng(3)
    q, v, tau = state(m, rng)
    assembly = random_assembly(m, rng, possible_cuts(m), waiting)
    a, _ = by_team(m, assembly, np.zeros(len(assembly.worker), int), q, v, tau)
    close(a, bk.forward_dynamics(m, q, v, tau), 1e-11)


def test_long_chains_keep_their_digits():
    m, rng = bk.models.chain(2000, axes=((0, 1, 0), (1, 0, 0))), np.random.default_rng(0)
    q, v, tau = state(m, rng)
    expected = bk.forward_dynamics(m, q, v, tau)
    for workers in (2, 7, 40):
        s = bk.schedule(m, workers, exactly=True)
        close(bk.forward_dynamics(m, q, v, tau, schedule=s, workers=1), expected, 1e-10)


def messages(n):
    m, rng = bk.models.chain(n), np.random.default_rng(1)
    cuts = [f"link{k * n // 8}" for k in range(1, 8)]
    far = Division(m.plan(), random_assembly(m, rng, cuts, 0.0)._replace(worker=np.arange(8)))
    plain = Division(m.plan(), random_assembly(m, rng, cuts, 1.0)._replace(worker=np.arange(8)))
    return [sorted((e.number, e.floats) for e in division.edges) for division in (far, plain)]


def test_floats_per_edge_do_not_grow_with_the_mechanism():
    """[J, table IX]: 6, 27 and 6 floats between chunks, 90 with a far handle, whatever the number of links."""
    far, plain = messages(64)
    assert messages(640) == [far, plain]
    assert set(plain) == {(1, 6), (2, 27), (3, 6), (4, 7)}
    assert set(far) == {(1, 6), (1, 18), (2, 27), (2, 90), (3, 6), (3, 12), (4, 7)}


def test_floats_that_cross_are_those_declared():
    """Counted where they are posted: every box gets one message in an evaluation, of the size of its edge."""
    m, rng = bk.models.humanoid(), np.random.default_rng(2)
    q, v, tau = state(m, rng)
    assembly = random_assembly(m, rng, possible_cuts(m)[::3])
    worker = np.arange(len(assembly.worker)) % 3
    _, division = by_team(m, assembly, worker, q, v, tau)
    team = Team(division)
    from bunraku.evaluate.team import accelerations
    accelerations(team, m.plan(), q, v, tau)
    posted = [0] * len(division.edges)
    for part, arrays in zip(team.parts, team.arrays, strict=True):
        for op, _, floats, box, _ in arrays.ops:
            if op == 0:
                edge = part.boxes[box]
                assert division.edges[edge].floats == floats
                posted[edge] = int(arrays.boxes[box, 1])
    assert posted == [0 if e.number == 4 else 1 for e in division.edges]


def test_a_state_without_solution_is_refused_by_the_name_of_its_joint():
    m = bk.models.chain(10)
    q, v = np.zeros(m.nv), np.zeros(m.nv)
    q[7] = np.nan
    s = bk.Schedule(m, cuts=["link5"])
    with pytest.raises(bk.BunrakuError, match="link7"):
        bk.forward_dynamics(m, q, v, schedule=s)
    q[7] = 0.0
    assert np.isfinite(bk.forward_dynamics(m, q, v, schedule=s)).all()


def test_an_error_in_one_worker_ends_the_waiting_of_the_others():
    m, rng = bk.models.chain(10), np.random.default_rng(0)
    q, v, tau = state(m, rng)
    assembly = random_assembly(m, rng, ["link5"], 1.0)._replace(worker=np.arange(2))
    team = Team(Division(m.plan(), assembly))
    from bunraku.entries.part_entries import part_of_state, part_one
    from bunraku.evaluate.team import accelerations

    def work(k):
        if k == 0:
            raise ZeroDivisionError("on purpose")
        part = team.parts[k]
        return part_of_state.call(part_one.address, team.arrays[k], part.q_index, part.v_index, q, v, tau,
                                  np.empty(m.nv))

    with pytest.raises(ZeroDivisionError):
        team.run(work)
    close(accelerations(team, m.plan(), q, v, tau), bk.forward_dynamics(m, q, v, tau), 1e-10)


def test_teams_may_be_asked_by_several_threads():
    m, rng = bk.models.chain(60), np.random.default_rng(0)
    q, v, tau = state(m, rng)
    s = bk.schedule(m, 2, exactly=True)
    expected, found = bk.forward_dynamics(m, q, v, tau, schedule=s), []

    def ask():
        for _ in range(20):
            found.append(bk.forward_dynamics(m, q, v, tau, schedule=s))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert all(np.array_equal(a, expected) for a in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_teams_survive_a_fork():
    m = bk.models.chain(40)
    q, v = np.full(m.nv, 0.1), np.zeros(m.nv)
    s = bk.schedule(m, 2, exactly=True)
    expected = bk.forward_dynamics(m, q, v, schedule=s)
    child = os.fork()
    if child == 0:
        same = np.array_equal(bk.forward_dynamics(m, q, v, schedule=s), expected)
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("workers", [0, -1, True, 2.5, "2", None.__class__])
def test_numbers_of_workers_that_are_none(workers):
    m = bk.models.chain(4)
    with pytest.raises(bk.ModelError, match="workers must be a whole number"):
        bk.forward_dynamics(m, np.zeros(4), np.zeros(4), workers=workers)


def test_more_workers_than_chunks():
    m = bk.models.chain(4)
    s = bk.schedule(m, 100, exactly=True)
    assert s.workers == 4
    assert "of 100 asked for: it cannot be cut into more chunks" in repr(s)
    q = np.full(4, 0.3)
    close(bk.forward_dynamics(m, q, q, schedule=s), bk.forward_dynamics(m, q, q), 1e-12)


def test_a_schedule_of_another_structure():
    m = bk.models.human(16)
    s = bk.schedule(m, 2, exactly=True)
    with pytest.raises(bk.ModelError, match="another structure"):
        bk.forward_dynamics(bk.models.chain(5), np.zeros(5), np.zeros(5), schedule=s)
    m.cut(m.links[3].joint_name)
    with pytest.raises(bk.ModelError, match="another structure"):
        bk.forward_dynamics(m, m.neutral(), np.zeros(m.nv), schedule=s)
