"""A Delta robot and Cassie load from MJCF with their loops and gears, close to rounding and move."""

from __future__ import annotations

import numpy as np
import pytest

import bunraku as bk
from looped_robots import CASSIE, cassie, delta
from mujoco_constraints import compare, load_quietly

pytest.importorskip("mujoco")
needs_cassie = pytest.mark.skipif(not CASSIE.is_file(), reason="example-robot-data is not installed")


@pytest.fixture(scope="module")
def delta_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("delta") / "delta.xml"
    path.write_text(delta())
    return path


@pytest.fixture(scope="module")
def cassie_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("cassie") / "cassie.xml"
    path.write_text(cassie())
    return path


def closed(m, q, v=None) -> float:
    found = bk.constraints(m, q, v)
    return max(np.abs(found.gap).max(), np.abs(found.rates).max())


def test_a_delta_robot_moves_its_plate_without_turning_it(delta_file):
    m = load_quietly(delta_file)
    assert (len(m.connections), m.nv) == (6, 3 * 5 + 6)
    assert [link.joint_name for link in m.links if link.actuated and link.joint.nv] == ["drive0", "drive1", "drive2"]
    rng = np.random.default_rng(1)
    for _ in range(5):
        q = bk.project(m, m.integrate(m.neutral(), 0.1 * rng.normal(size=m.nv)))
        assert closed(m, q) < 1e-12
        chain = bk.closed_chain(m, q)
        assert chain.freedom == 3
        turning = m.v_slice("plate").start + 3 + np.arange(3)
        assert np.abs(chain.W[turning]).max() < 1e-9
        tau = bk.inverse_dynamics(m, q, np.zeros(m.nv), np.zeros(m.nv))
        np.testing.assert_allclose(bk.forward_dynamics(m, q, np.zeros(m.nv), tau), 0.0, atol=1e-9)
    error = compare(delta_file, moving=False)
    print(f"Delta: relative difference {error:.1e}")
    assert error < 1e-9


@needs_cassie
def test_cassie_closes_its_rods_and_gears(cassie_file):
    m = load_quietly(cassie_file)
    assert len(m.couplings) == 10
    assert len(m.connections) == 4
    rng = np.random.default_rng(2)
    for _ in range(5):
        q, v = bk.project(m, m.integrate(m.neutral(), 0.1 * rng.normal(size=m.nv)), rng.normal(size=m.nv))
        print(f"Cassie: open by {closed(m, q, v):.1e}")
        assert closed(m, q, v) < 1e-12
    error = compare(cassie_file, moving=False)
    print(f"Cassie: relative difference {error:.1e}")
    assert error < 1e-8


@needs_cassie
def test_cassie_starts_closed_and_stays_closed(cassie_file):
    m = load_quietly(cassie_file)
    sim = bk.Simulation(m, rtol=1e-8, atol=1e-10)
    assert closed(m, sim.q, sim.v) < 1e-12
    tr = sim.run(until=0.2)
    assert max(closed(m, *state) for state in zip(tr.q, tr.v, strict=True)) < 1e-10
    energy = [sum(m.energy(*state)) for state in zip(tr.q, tr.v, strict=True)]
    assert np.diff(energy).max() < 1e-5  # dampers take energy
