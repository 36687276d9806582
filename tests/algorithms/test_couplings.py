"""Coupled joints: accelerations are those of the dense equations, by every method and with loops; torques balance."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import bunraku as bk
from coupled import random_coupled, solve
from oracle import close

SEEDS = st.integers(0, 10**6)
ROD = {"mass": 2.0, "com": (0, 0, -0.2), "inertia": (0.1, 0.1, 0.05)}


@given(SEEDS)
@settings(max_examples=40)
def test_accelerations_equal_the_dense_equations(seed):
    m, q, v, tau = random_coupled(seed, passive=seed % 2 == 0, couplings=1 + seed % 5)
    expected, f, _ = solve(m, q, v, tau)
    close(bk.forward_dynamics(m, q, v, tau), expected, 1e-8)
    result = bk.dynamics(m, q, v, tau)
    close(np.array(list(result.couplings.values())), f, 1e-8)
    for method in ("ada", "unit_vector"):
        close(bk.forward_dynamics(m, q, v, tau, method=method), expected, 1e-8)
    batch = np.tile(q, (9, 1))
    close(bk.forward_dynamics(m, batch, v, tau), np.tile(expected, (9, 1)), 1e-8)


@given(SEEDS)
@settings(max_examples=30)
def test_couplings_and_loops_together_equal_the_dense_equations(seed):
    m, q, v, tau = random_coupled(seed, connections=1 + seed % 2, links=12)
    J = solve(m, q, v, tau)[2]
    values = np.linalg.svd(J, compute_uv=False)
    assume(len(J) < m.nv and values[-1] > 1e-2 * values[0])
    expected = solve(m, q, v, tau)[0]
    close(bk.forward_dynamics(m, q, v, tau), expected, 1e-7)
    order = list(np.random.default_rng(seed).permutation([*m.joint_names, *m.connections]))
    for closing in ("inside", "together"):
        schedule = bk.Schedule(m, order, closing)
        close(bk.forward_dynamics(m, q, v, tau, schedule=schedule), expected, 1e-6)


@given(SEEDS)
@settings(max_examples=20)
def test_torques_of_joints_include_those_of_couplings(seed):
    m, q, v, tau = random_coupled(seed)
    result = bk.dynamics(m, q, v, tau)
    total = tau.copy()
    for c in m.couplings.values():
        total[m.v_slice(c.joint)] += result.couplings[c.joint]
        total[m.v_slice(c.to)] -= c.ratio * result.couplings[c.joint]
    tree = m.copy()
    for joint in m.couplings:
        tree.uncouple(joint)
    close(bk.inverse_dynamics(tree, q, v, result.a), total, 1e-8)
    for name, wrench in bk.dynamics(tree, q, v, total).forces.items():
        close(result.forces[name], wrench, 1e-8)


@given(SEEDS)
@settings(max_examples=15)
def test_inverse_dynamics_gives_torques_that_give_the_accelerations(seed):
    m, q, v, tau = random_coupled(seed)
    a = bk.forward_dynamics(m, q, v, tau)
    try:
        torques = bk.inverse_dynamics(m, q, v, a)
    except bk.ActuationError:  # a floating base
        assume(False)
    close(bk.forward_dynamics(m, q, v, torques), a, 1e-7)


def test_a_gear_adds_its_inertia_times_the_ratio_squared():
    m = bk.Mechanism(gravity=(0, 0, 0))
    m.add_link("arm", joint=bk.Revolute((0, 0, 1)), mass=1.0, inertia=(0.2, 0.2, 0.3))
    m.add_link("rotor", joint=bk.Revolute((0, 0, 1)), mass=0.1, inertia=(2e-5, 2e-5, 3e-5))
    m.couple("rotor", "arm", ratio=100.0)
    reflected = bk.Mechanism(gravity=(0, 0, 0))
    reflected.add_link("arm", joint=bk.Revolute((0, 0, 1), armature=100.0**2 * 3e-5), mass=1.0, inertia=(0.2, 0.2, 0.3))
    a = bk.forward_dynamics(m, np.zeros(2), np.zeros(2), np.array([0.0, 0.05]))
    assert a[0] == pytest.approx(100.0 * 0.05 / 0.6, rel=1e-13)
    expected = bk.forward_dynamics(reflected, np.zeros(1), np.zeros(1), np.array([5.0]))
    assert a[0] == pytest.approx(expected[0], rel=1e-13)


@pytest.mark.parametrize("ratio", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("mass", [1e-6, 1e6])
def test_extreme_masses_and_ratios_are_exact(ratio, mass):
    m = bk.Mechanism()
    m.add_link("a", joint=bk.Revolute((0, 1, 0)), **ROD)
    m.add_link("b", "a", joint=bk.Revolute((0, 1, 0)), position=(0, 0, -0.5), mass=mass, com=(0, 0, -0.2),
               inertia=(0.1 * mass, 0.1 * mass, 0.05 * mass))
    m.add_link("c", joint=bk.Prismatic((0, 1, 1)), **ROD)
    m.couple("c", "b", ratio)
    q, v = np.array([0.3, 0.2, 0.2 * ratio]), np.array([1.0, -2.0, -2.0 * ratio])
    a = bk.forward_dynamics(m, q, v)
    W = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, ratio]])
    tree = m.copy()
    tree.uncouple("c")
    M, h = bk.mass_matrix(tree, q), bk.inverse_dynamics(tree, q, v, np.zeros(3))
    expected = W @ np.linalg.solve(W.T @ M @ W, -W.T @ h)
    np.testing.assert_allclose(a, expected, rtol=1e-8)


def test_a_massless_follower_is_carried_by_the_joint_it_follows():
    m = bk.Mechanism()
    m.add_link("a", joint=bk.Revolute((0, 1, 0)), **ROD)
    m.add_link("pointer", joint=bk.Revolute((0, 1, 0)))
    with pytest.raises(bk.ModelError, match="pointer"):
        bk.forward_dynamics(m, np.zeros(2), np.zeros(2))
    m.couple("pointer", "a", -2.0)
    alone = bk.Mechanism()
    alone.add_link("a", joint=bk.Revolute((0, 1, 0)), **ROD)
    a = bk.forward_dynamics(m, np.array([0.3, -0.6]), np.array([1.0, -2.0]), np.array([0.5, 0.1]))
    expected = bk.forward_dynamics(alone, np.array([0.3]), np.array([1.0]), np.array([0.5 - 0.2]))
    np.testing.assert_allclose(a, [expected[0], -2.0 * expected[0]], rtol=1e-10)


def test_a_prescribed_joint_drives_those_coupled_to_it():
    m, q, v, tau = random_coupled(5, couplings=2)
    c = next(iter(m.couplings.values()))
    for name, other, factor in ((c.to, c.joint, c.ratio), (c.joint, c.to, 1.0 / c.ratio)):
        a = bk.forward_dynamics(m, q, v, tau, prescribed={name: 1.5})
        np.testing.assert_allclose(a[m.v_slice(name)], 1.5)
        np.testing.assert_allclose(a[m.v_slice(other)], 1.5 * factor, rtol=1e-10)
    with pytest.raises(bk.ConstraintError, match="inconsistent"):
        bk.forward_dynamics(m, q, v, tau, prescribed={c.joint: 1.0, c.to: 10.0 / c.ratio})


def test_inconsistent_states_are_refused_by_name_and_projected():
    m, q, v, _ = random_coupled(8, couplings=2)
    c = next(iter(m.couplings.values()))
    off = q.copy()
    off[m.q_slice(c.joint)] += 0.1
    with pytest.raises(bk.ConstraintError, match=f"coupling of joint '{c.joint}'.*project"):
        bk.forward_dynamics(m, off, v)
    with pytest.raises(bk.BunrakuError, match=f"coupling of joint '{c.joint}'"):
        bk.Simulation(m, off, v)
    near, speed = bk.project(m, off, v)
    assert np.abs(bk.constraints(m, near, speed).gap).max() < 1e-12
    assert np.abs(bk.constraints(m, near, speed).rates).max() < 1e-11
    with pytest.raises(bk.StateError):
        bk.forward_dynamics(m, np.where(np.arange(m.nq) == 3, np.nan, q), v)


@given(SEEDS)
@settings(max_examples=8)
def test_derivatives_are_those_of_the_independent_coordinates(seed):
    m, q, v, tau = random_coupled(seed, kinds=("revolute", "prismatic", "helical", "compound"), couplings=2)
    assume(m.couplings)
    chain = bk.closed_chain(m, q)
    d = bk.derivatives(m, q, v, tau)
    close(d.jacobian @ chain.W, np.zeros((len(d.jacobian), chain.W.shape[1])), 1e-12)
    for k in range(chain.W.shape[1]):
        dq = 1e-6 * chain.W[:, k]
        step = bk.forward_dynamics(m, q + dq, v, tau) - bk.forward_dynamics(m, q - dq, v, tau)
        close(d.da_dq @ chain.W[:, k], step / 2e-6, 1e-4)
        step = bk.forward_dynamics(m, q, v + dq, tau) - bk.forward_dynamics(m, q, v - dq, tau)
        close(d.da_dv @ chain.W[:, k], step / 2e-6, 1e-4)
    step = bk.forward_dynamics(m, q, v, tau + 1.0) - bk.forward_dynamics(m, q, v, tau)
    close(d.da_dtau.sum(axis=1), step, 1e-7)
