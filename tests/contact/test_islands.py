"""Contact of many bodies in time steps: islands, large ones without a full matrix, pairs near each other."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.bench.contact_crowds import a_card_house, a_tower, a_wall, at_rest, in_a_box
from bunraku.evaluate import contact_workspace

STEP = 2e-3


def stepped(m, q, until, v=None, **options):
    sim = bk.Simulation(m, q, v, solver="symplectic_euler", step=STEP, record=None, progress=False, **options)
    sim.advance(until)
    return sim


def towers(places):
    """Three balls on top of each other at each place, not quite upright."""
    m, q = bk.Mechanism(), []
    m.add_plane(friction=0.4)
    for x in places:
        for k in range(3):
            name = f"{x} {k}"
            m.add_link(name, joint=bk.Free(), mass=1.0 + k, inertia=(0.004, 0.004, 0.004))
            m.add_shape(name, bk.Sphere(0.1), friction=0.4)
            q += [x + 0.01 * k * np.cos(7 * x + k), 0.01 * k, 0.1 + 0.2 * k, 1, 0, 0, 0]
    return m, np.array(q)


def test_an_island_moves_as_if_it_were_alone():
    """Bit by bit: neighbours that it does not touch change nothing."""
    together = stepped(*towers([0.0, 5.0, 10.0]), 0.4)
    for n, x in enumerate([0.0, 5.0, 10.0]):
        alone = stepped(*towers([x]), 0.4)
        assert np.array_equal(together.q[21 * n:21 * n + 21], alone.q)
        assert np.array_equal(together.v[18 * n:18 * n + 18], alone.v)


@pytest.fixture
def always_sparse(monkeypatch):
    monkeypatch.setattr(contact_workspace, "DENSE_ISLAND", 1)


@pytest.mark.parametrize(("scene", "until"), [(lambda: towers([0.0, 0.3]), 0.3), (lambda: in_a_box(9)[:2], 0.3)])
def test_large_islands_move_like_small_ones(always_sparse, monkeypatch, scene, until):
    """Two methods for the same law: sparse factors and Newton's method with the full matrix."""
    sparse = stepped(*scene(), until)
    assert sparse.stats.contact_residual < 1e-10
    monkeypatch.setattr(contact_workspace, "DENSE_ISLAND", 64)
    dense = stepped(*scene(), until)
    assert dense.stats.contact_residual < 1e-10
    assert np.abs(sparse.q - dense.q).max() < 1e-7
    assert np.abs(sparse.v - dense.v).max() < 1e-5


@pytest.mark.parametrize(("floor", "moments"), [({"stiffness": 2e4, "damping": 100.0}, {}), (
    {}, {"torsional": 0.003, "rolling": 0.006}), ({"stiffness": 2e4}, {"torsional": 0.003, "rolling": 0.006})])
def test_soft_contacts_and_rolling_friction_in_large_islands(always_sparse, monkeypatch, floor, moments):
    """Both methods again, of balls that are thrown on a floor and roll over each other."""
    m, rng = bk.Mechanism(), np.random.default_rng(3)
    m.add_plane(friction=0.6, **floor)
    q, v = [], rng.normal(size=72)
    for k in range(12):
        m.add_link(f"b{k}", joint=bk.Free(), mass=1.0 + k % 3, inertia=(0.004 * (1 + k % 3),) * 3)
        m.add_shape(f"b{k}", bk.Sphere(0.1), friction=0.6, **moments)
        q += [0.17 * (k % 3) + 0.01 * rng.normal(), 0.17 * (k // 3 % 2) + 0.01 * rng.normal(), 0.105 + 0.18 * (k // 6),
              1, 0, 0, 0]
    start = bk.part(m, q)
    sparse = stepped(m, start, 0.1, v)
    monkeypatch.setattr(contact_workspace, "DENSE_ISLAND", 1000)
    dense = stepped(m, start, 0.1, v)
    assert max(sparse.stats.contact_residual, dense.stats.contact_residual) < 1e-10
    assert np.abs(sparse.q - dense.q).max() < 1e-7


def test_a_figure_in_a_large_island(always_sparse, monkeypatch):
    """Trees of many joints: a figure that topples moves as with the full matrix, until it falls on its hands: Coulomb's
    law has several solutions there."""
    m = bk.models.human(dof=16)
    m.add_plane(friction=0.7)
    v = np.zeros(m.nv)
    v[3] = 0.8
    sparse = stepped(m, m.neutral(), 0.14, v=v)
    monkeypatch.setattr(contact_workspace, "DENSE_ISLAND", 64)
    dense = stepped(m, m.neutral(), 0.14, v=v)
    assert np.abs(sparse.q - dense.q).max() < 1e-10
    assert np.abs(sparse.v - dense.v).max() < 1e-8


def test_a_falling_figure_obeys_the_law(always_sparse):
    m = bk.models.human(dof=16)
    m.add_plane(friction=0.7)
    v = np.zeros(m.nv)
    v[3] = 0.8
    assert stepped(m, m.neutral(), 0.6, v=v).stats.contact_residual < 1e-10


def test_many_balls_at_rest_stay_there():
    """Also where a full matrix of all contacts would need gigabytes."""
    m, q, _ = at_rest(400)
    sim = stepped(m, q, 0.02, max_contacts=10_000)
    assert np.array_equal(sim.q, q)
    assert not sim.v.any()


def test_a_heap_stays_in_its_box():
    """More contacts than a problem with a full matrix has: they keep the balls apart."""
    m, q, _ = in_a_box(36)
    with np.errstate(all="raise"):
        sim = stepped(m, q, 0.3, max_contacts=1000)
    assert sim.stats.contact_residual < 1e-10
    gap = bk.contacts(m, sim.q, margin=0.0).gap
    assert gap.min(initial=0.0) > -STEP * np.abs(sim.v).max() - 20 * STEP**2


def test_a_fast_ball_finds_what_is_far_when_it_starts():
    """The list of near pairs is renewed as shapes move."""
    m, q, _ = at_rest(12)
    v = np.zeros(m.nv)
    v[0], v[1] = 8.0, 8.0  # along the diagonal, towards others
    sim = stepped(m, q, 0.2, v=v, max_contacts=200)
    hit = np.abs(sim.v.reshape(-1, 6)).max(axis=1) > 1e-3
    assert hit.sum() >= 3
    assert bk.contacts(m, sim.q, margin=0.0).gap.min(initial=0.0) > -STEP * 8.0


@pytest.mark.parametrize("scene", [lambda: a_wall(4, 4), lambda: a_tower(12), lambda: a_card_house(3)],
                         ids=["wall", "tower", "card house"])
def test_boxes_on_top_of_each_other_stand_still(scene):
    """Redundant contacts, masses up to 1000 times as large above as below, and cards half a millimetre thick."""
    m, q, _ = scene()
    sim = stepped(m, q, 0.2, max_contacts=2000)
    assert sim.stats.contact_residual < 1e-10
    assert np.abs(sim.q - q).max() < 1e-10
