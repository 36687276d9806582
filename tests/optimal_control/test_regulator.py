"""Regulators of equilibria: the double integrator in closed form, a linkage held upright, what cannot be held."""

import numpy as np
import pytest

import bunraku as bk
from loops import parallelogram, posed


def test_a_mass_on_a_rail_has_the_gain_of_the_textbook():
    """x'' = u / m with Q = 1, R = r: k1 = 1/sqrt(r), k2 = sqrt((1 + 2 m sqrt(r)) / r)."""
    m = bk.Mechanism(gravity=(0, 0, 0))
    m.add_link("mass", joint=bk.Prismatic((1, 0, 0)), mass=2.0, inertia=(1, 1, 1))
    r = bk.lqr(m, [0.3], R=0.25)
    assert r.gain[0] == pytest.approx([2.0, np.sqrt((1 + 2 * 2.0 * 0.5) / 0.25)], rel=1e-9)
    assert r.poles.real.max() < 0


def test_a_linkage_is_held_upright_by_its_crank():
    m = parallelogram()
    r = bk.lqr(m, posed(np.pi), R=0.1)
    sim = bk.Simulation(m, *bk.project(m, posed(np.pi + 0.05), np.zeros(3)), actuation=r.controller())
    assert bk.lqr(m, posed(np.pi), Q=np.ones(6), R=[[0.1]]).gain == pytest.approx(r.gain)
    x = np.concatenate([m.difference(r.q, sim.q), sim.v])
    start = sim.q.copy()
    sim.run(until=8.0)
    assert np.abs(m.difference(posed(np.pi), sim.q)).max() < 1e-3
    assert np.abs(m.difference(posed(np.pi), start)).max() > 0.04
    # x.P x is what the motion costs, up to terms of higher order
    t = np.linspace(0.0, 8.0, 2001)
    rows = np.array([np.concatenate([m.difference(r.q, q), v]) for _, q, v in sim.trajectory.sample(t)])
    u = rows @ r.gain[0]
    assert np.trapezoid(np.sum(rows**2, axis=1) + 0.1 * u**2, t) == pytest.approx(x @ r.value @ x, rel=0.02)


def test_a_quaternion_joint_is_held():
    m = bk.Mechanism()
    m.add_link("top", joint=bk.Spherical(), mass=1.0, com=(0, 0, 0.5), inertia=(0.1, 0.1, 0.02))
    r = bk.lqr(m, m.neutral())
    sim = bk.Simulation(m, m.integrate(m.neutral(), [0.2, -0.1, 0.3]), actuation=r.controller())
    sim.run(until=6.0)
    assert np.abs(m.difference(m.neutral(), sim.q)).max() < 1e-2


def test_what_is_no_equilibrium_or_cannot_be_held_is_named():
    m = bk.models.chain(2)
    with pytest.raises(bk.StateError, match="no equilibrium"):
        bk.lqr(m, [0.5, 0.0], tau=[0.0, 0.0])
    two = bk.Mechanism(gravity=(0, 0, 0))
    for name in ("held", "drifts"):
        two.add_link(name, joint=bk.Prismatic((1, 0, 0)), mass=1.0, inertia=(1, 1, 1))
    with pytest.raises(bk.StateError, match="'drifts'"):
        bk.lqr(two, [0.0, 0.0], joints=["held"])
    with pytest.raises(bk.ShapeError, match="R must be"):
        bk.lqr(m, [0.0, 0.0], R=[1.0, 1.0, 1.0])
