"""The mass matrix: what it is, and what it must agree with."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku as bk
import oracle
from oracle import close
from structures import random_tree

SEEDS = st.integers(0, 10**6)


@given(SEEDS)
@settings(max_examples=60)
def test_it_is_the_sum_of_jacobians_on_inertias_plus_armature(seed):
    tree = random_tree(seed, passive=seed % 2 == 0)
    q, _, _ = tree.states(np.random.default_rng(seed), 3)
    expected = np.array([oracle.mass_matrix(tree, one) for one in q])
    close(bk.mass_matrix(tree.m, q), expected)
    close(bk.mass_matrix(tree.m, q[0]), expected[0])


@given(SEEDS)
@settings(max_examples=40)
def test_it_is_symmetric_and_positive_definite(seed):
    tree = random_tree(seed)
    q, _, _ = tree.state(np.random.default_rng(seed))
    M = bk.mass_matrix(tree.m, q)
    assert np.array_equal(M, M.T)
    assert np.linalg.eigvalsh(M)[0] > 0


@given(SEEDS)
@settings(max_examples=40)
def test_half_v_M_v_is_the_kinetic_energy(seed):
    tree = random_tree(seed)
    q, v, _ = tree.state(np.random.default_rng(seed))
    close(tree.m.energy(q, v)[0], 0.5 * v @ bk.mass_matrix(tree.m, q) @ v, 1e-12)


@given(SEEDS)
@settings(max_examples=40)
def test_it_is_what_torques_have_to_overcome(seed):
    tree = random_tree(seed, passive=True)
    q, v, a = tree.state(np.random.default_rng(seed))
    still = bk.inverse_dynamics(tree.m, q, v, 0 * a)
    close(bk.inverse_dynamics(tree.m, q, v, a) - still, bk.mass_matrix(tree.m, q) @ a)


def test_joints_of_different_branches_do_not_couple():
    m = bk.Mechanism()
    m.add_link("left", joint=bk.Spherical(), mass=1.0, com=(1, 0, 0), inertia=(1, 1, 1))
    m.add_link("right", joint=bk.Revolute((0, 1, 0)), mass=1.0, com=(1, 0, 0), inertia=(1, 1, 1))
    M = bk.mass_matrix(m, m.neutral())
    assert not M[:3, 3:].any()
    assert np.allclose(np.diag(M), [1, 2, 2, 2])
