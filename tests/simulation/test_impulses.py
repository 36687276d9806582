"""Impulses during a simulation: Newton and Euler, the mass matrix, and reactions of loops."""

import numpy as np
import pytest

import bunraku as bk
from moving import double
from oracle import close


def stone():
    m = bk.Mechanism()
    m.add_link("stone", joint=bk.Free(), mass=2.0, inertia=(0.1, 0.2, 0.3))
    return m


def test_an_impulse_changes_momentum_and_spin_by_newton_and_euler():
    sim = bk.Simulation(stone())
    sim.impulse("stone", (1.0, 0.0, -4.0))
    close(sim.v, [0.5, 0, -2.0, 0, 0, 0], 1e-14)
    sim = bk.Simulation(stone())
    sim.impulse("stone", (0, 0, 4.0), point=(0, 0.5, 0))  # moment of impulse 2 about x
    close(sim.v, [0, 0, 2.0, 2.0 / 0.1, 0, 0], 1e-14)
    sim = bk.Simulation(stone())
    sim.impulse("stone", (0, 0, 0), (0, 0.2, 0))
    close(sim.v, [0, 0, 0, 0, 1.0, 0], 1e-14)
    assert sim.trajectory.events[-1].text.startswith("impulse on 'stone'")


def random_state(m, seed):
    rng = np.random.default_rng(seed)
    return m.integrate(m.neutral(), 0.4 * rng.normal(size=m.nv)), rng.normal(size=m.nv), rng


@pytest.mark.parametrize("seed", range(5))
def test_an_impulse_on_a_tree_obeys_the_mass_matrix(seed):
    m = bk.models.human(34)
    q, v, rng = random_state(m, seed)
    p, point = rng.normal(size=6), rng.normal(size=3)
    sim = bk.Simulation(m, q, v)
    sim.impulse("left_hand", p, point=point)
    J = bk.kinematics(m, q).jacobian("left_hand", point)
    close(bk.mass_matrix(m, q) @ (sim.v - v), J.T @ p, 1e-10)


@pytest.mark.parametrize("make", [bk.models.four_bar, lambda: bk.models.n_four_bar(3), lambda: bk.models.chain_held(6)])
def test_loops_answer_an_impulse_with_impulses_of_their_own(make):
    m = make()
    q = bk.project(m, m.neutral())
    v = bk.impact(m, q, np.random.default_rng(1).normal(size=m.nv))
    link, p = m.link_names[1], np.array([1.0, 2.0, 3.0, -1.0, 0.5, 2.0])
    sim = bk.Simulation(m, q, v)
    sim.impulse(link, p)
    M, A = bk.mass_matrix(m, q), bk.constraints(m, q).jacobian
    push = bk.kinematics(m, q).jacobian(link).T @ p
    # the dense solution of M dv = push + A' x, A dv = 0, with redundant rows of A
    n, c = len(M), len(A)
    matrix, demand = np.block([[M, -A.T], [A, np.zeros((c, c))]]), np.concatenate([push, np.zeros(c)])
    close(sim.v - v, np.linalg.lstsq(matrix, demand, rcond=1e-12)[0][:n], 1e-9)
    assert set(sim.impulses) == set(m.connections)
    assert max(np.linalg.norm(x) for x in sim.impulses.values()) > 0.01


def test_a_ball_bounces_by_impulses():
    sim = bk.Simulation(stone(), np.r_[0, 0, 1.0, 1, 0, 0, 0], rtol=1e-10, atol=1e-12)
    sim.when(lambda t, q, v: -q[2] if v[2] < 0 else -1.0, lambda s: s.impulse("stone", (0, 0, -2 * 2.0 * s.v[2])),
             "bounce", repeat=True)
    sim.run(until=3.0)
    fall = np.sqrt(2 / 9.81)
    bounces = [event.t for event in sim.trajectory.events if event.text == "bounce"]
    np.testing.assert_allclose(bounces, fall * np.array([1, 3, 5]), rtol=1e-7)
    assert sum(event.text.startswith("impulse") for event in sim.trajectory.events) == 3
    _, kinetic, potential = sim.trajectory.energy()
    np.testing.assert_allclose(kinetic + potential, 2 * 9.81, rtol=1e-7)


@pytest.mark.parametrize(("strike", "words"), [
    (lambda s: s.impulse("ground", (0, 0, 1)), "ground"),
    (lambda s: s.impulse("upper_joint", (0, 0, 1)), "'upper_joint' is a joint where a link is meant"),
    (lambda s: s.impulse("upper", 1.0), "three finite numbers"),
    (lambda s: s.impulse("upper", (0, 0, np.nan)), "three finite numbers"),
    (lambda s: s.impulse("upper", np.zeros(6), np.zeros(3)), "moment"),
])
def test_impulses_that_make_no_sense_are_refused(strike, words):
    sim = bk.Simulation(double())
    with pytest.raises(bk.BunrakuError, match=words):
        strike(sim)
    assert not sim.trajectory.events
