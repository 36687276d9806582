"""Records of shared simulations: each worker keeps the columns of its own links, and they are joined when read."""

import copy
import warnings

import numpy as np
import pytest

import bunraku as bk
from bunraku.bench.bench_parallel import free_tree
from bunraku.integrate import pace
from bunraku.simulation.records.pages import Kept

M = free_tree(30)
TWO = bk.schedule(M, 2, exactly=True)
Q, V = M.integrate(M.neutral(), 0.2 * np.sin(np.arange(M.nv))), 0.3 * np.cos(np.arange(M.nv))


def pair(**options):
    """The same chunks by one worker and by two."""
    return [bk.Simulation(M, Q, V, solver="rk4", step=1e-3, workers=workers, schedule=TWO, **options)
            for workers in (1, 2)]


def pages(sim):
    """How many states each worker keeps."""
    crew = sim._running.sharing.shared.crew
    return [sum(map(len, share.pages.values())) for share in crew.shares]


def test_states_stay_with_the_workers_until_they_are_read():
    _, sim = pair()
    sim.advance(0.1)
    sim.advance(0.2)
    assert all(isinstance(block.y, Kept) for block in sim._running.tape.present.blocks[1:])
    assert pages(sim) == [200, 200]
    assert len(sim.trajectory.t) == 201
    assert not any(isinstance(block.y, Kept) for block in sim._running.tape.present.blocks)
    sim.advance(0.21)  # workers then learn that the pages are no longer referenced
    assert pages(sim) == [10, 10]


def test_what_is_not_recorded_is_not_kept():
    for record, least, most in ((None, 10, 20), (0.05, 50, 80)):  # in blocks of 10
        _, sim = pair(record=record)
        for k in range(1, 41):
            sim.advance(0.01 * k)
        for count in pages(sim):
            assert least <= count <= most


@pytest.mark.parametrize("record", ["all", 0.035, None])
def test_joined_records_have_the_bits_of_one_worker(record):
    one, two = pair(record=record)
    for sim in (one, two):
        sim.advance(0.03)
        sim.set_state(v=0.5 * sim.v)
        sim.advance(0.05)
        sim.cut(M.links[12].joint_name)
        sim.when(lambda t, q, v: t - 0.0635, lambda sim: sim.impulse("link3", (0.1, 0.0, 0.0)), name="hit")
        sim.advance(0.08)
    a, b = one.trajectory, two.trajectory
    assert len(a.segments) == len(b.segments) > (record is not None)
    assert a.events == b.events
    for x, y in zip(a.segments, b.segments, strict=True):
        for name in ("t", "q", "v"):
            assert np.array_equal(getattr(x, name), getattr(y, name))


def test_a_copy_has_the_record_and_goes_on_by_itself():
    one, sim = pair()
    for other in (one, sim):
        other.advance(0.05)
    twin = copy.deepcopy(sim)
    for other in (one, sim, twin):
        other.advance(0.1)
    for other in (sim, twin):
        assert np.array_equal(other.trajectory.q, one.trajectory.q)


def test_reading_the_state_leaves_the_solver_with_the_workers():
    one, sim = pair(record=None)
    for until in (0.02, 0.04, 0.06):
        one.advance(until)
        sim.advance(until)
        assert np.array_equal(sim.q, one.q)
        assert sim._running.sharing.holder is not None
        if until == 0.04:
            assert np.array_equal(sim._running.memory.rows, one._running.memory.rows)  # whole: workers get it anew
            assert sim._running.sharing.holder is None


def test_workers_of_another_structure_keep_nothing_but_the_record():
    _, sim = pair()
    sim.advance(0.02)
    old = sim._running.sharing.shared.crew
    sim.cut(M.links[12].joint_name)
    sim.advance(0.04)
    assert all(share.memory is None for share in old.shares)
    assert sum(len(share.pages) for share in old.shares) == 2
    assert np.array_equal(sim.trajectory.segments[0].t[[0, -1]], [0.0, sim.trajectory.events[0].t])


def test_stiffness_is_seen_where_the_states_are(monkeypatch):
    """Workers measure how smooth their own columns are; together they say what one says."""
    said, m = [], M.copy()
    for link in m.links[6:]:
        m = m.with_joint(link.joint_name, damping=3e3)
    monkeypatch.setattr(pace, "MANY", 1)
    for workers in (1, 2):
        sim = bk.Simulation(m, Q, workers=workers, schedule=bk.schedule(m, 2, exactly=True), record=None)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            sim._running.halted = lambda sim=sim: sim.stats.steps > 3000
            sim.advance(100.0)
        assert isinstance(sim._running.tape.present.blocks[-1].y, Kept)
        said.append([str(w.message).partition("stability")[0] for w in caught])
    assert said[0] == said[1]
    assert "stiff" in said[0][0]
