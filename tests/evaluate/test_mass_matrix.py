"""The mass matrix: definition, symmetry, and agreement with other methods."""

import numpy as np
import pytest
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


@pytest.mark.parametrize("size", [1e-1, 1e-2, 1e-3, 1e-5])
@pytest.mark.parametrize("joint", ["ball", "hinge"])
def test_small_bodies_far_out_keep_their_digits(joint, size):
    """What turns a ball about its own centre is its own inertia, however far from the root it is."""
    m, rng = bk.Mechanism(), np.random.default_rng(3)
    kinds = {"ball": bk.Spherical, "hinge": lambda: bk.Revolute((0, 0, 1))}
    for k in range(9):
        m.add_link(f"arm {k}", f"arm {k - 1}" if k else "ground", bk.Spherical(), position=(0.5, 0, 0),
                   mass=1.0, com=(0.25, 0, 0), inertia=(1e-3, 2e-2, 2e-2))
    m.add_link("tip", "arm 8", kinds[joint](), position=(0.5, 0, 0), mass=1.0, com=(0, 0, 0),
               inertia=np.array([1.0, 2.0, 2.5]) * size**2)
    own = np.diag([1.0, 2.0, 2.5] if joint == "ball" else [2.5]) * size**2
    for q in m.integrate(np.tile(m.neutral(), (5, 1)), rng.normal(size=(5, m.nv))):
        M = bk.mass_matrix(m, q)
        assert np.abs(M[27:, 27:] - own).max() < 1e-11 * own.max()


@pytest.mark.parametrize("n", [3, 8, 13, 15, 16, 17, 40, 100])
@pytest.mark.parametrize("joint", ["revolute", "spherical"])
def test_every_way_of_writing_it_gives_the_same(n, joint):
    """One state and batches of any size, into fresh memory and memory at hand, for short and long mechanisms."""
    m = bk.models.chain(n, joint, axes=((0, 1, 0), (1, 0, 0)), base="free" if n % 2 else "fixed")
    for parent in ("link0", "link1"):  # branches
        m.add_link(f"side of {parent}", parent, bk.Revolute((1, 0, 0)), mass=1.0, com=(0.1, 0, 0), inertia=(1, 1, 1))
    rng = np.random.default_rng(n)
    q = m.integrate(np.tile(m.neutral(), (19, 1)), rng.normal(size=(19, m.nv)))
    single = np.array([bk.mass_matrix(m, one) for one in q])
    out = np.full((19, m.nv, m.nv), np.nan)
    assert bk.mass_matrix(m, q, out=out) is out
    for found in (out, bk.mass_matrix(m, q)):
        close(found, single, 1e-13)
        assert np.array_equal(found, found.transpose(0, 2, 1))
    a = rng.normal(size=m.nv)
    still = bk.inverse_dynamics(m, q[0], 0 * a, 0 * a)
    close(single[0] @ a, bk.inverse_dynamics(m, q[0], 0 * a, a) - still)


def test_a_batch_too_large_for_the_cache_equals_its_states():
    m = bk.models.human(48)
    q = m.integrate(np.tile(m.neutral(), (515, 1)), np.random.default_rng(0).normal(size=(515, m.nv)))
    memory = np.full(515 * m.nv**2 + 3, np.nan)
    found = bk.mass_matrix(m, q, out=memory[3:].reshape(515, m.nv, m.nv))  # wherever it starts
    close(found, np.array([bk.mass_matrix(m, one) for one in q]), 1e-13)
    assert np.isnan(memory[:3]).all()


def test_a_batch_of_large_mechanisms_is_written_past_the_cache():
    m = bk.models.chain(60, axes=((0, 1, 0), (1, 0, 0)))
    q = np.random.default_rng(1).normal(size=(150, m.nq))
    memory = np.full(3 + 150 * m.nv**2, np.nan)
    found = bk.mass_matrix(m, q, out=memory[3:].reshape(150, m.nv, m.nv))
    for k in (0, 1, 77, 149):
        close(found[k], bk.mass_matrix(m, q[k]))


@pytest.mark.parametrize("n", [5, 20])  # below and above a lane of sines
def test_many_turns_leave_the_matrix_as_it_is(n):
    m = bk.models.chain(n, axes=((0, 1, 0), (1, 0, 0)))
    q = np.random.default_rng(2).normal(size=n)
    turned = q + 2.0 * np.pi * np.where(np.arange(n) % 3, 0.0, 1e6)
    assert np.abs(bk.mass_matrix(m, turned) - bk.mass_matrix(m, q)).max() < 1e-7
    turned[-1] += 2.0 * np.pi * 1e13  # no digits are left, but a matrix is
    assert np.linalg.eigvalsh(bk.mass_matrix(m, turned)).min() > 0.0


def test_memory_that_does_not_fit_is_refused():
    m, read_only = bk.models.chain(3), np.empty((3, 3))
    read_only.flags.writeable = False
    for out in (np.empty((3, 2)), np.empty((3, 3), np.float32), np.empty((3, 6))[:, ::2], [[0.0] * 3] * 3,
                np.broadcast_to(0.0, (3, 3)), read_only):
        with pytest.raises(bk.ShapeError, match="out must be"):
            bk.mass_matrix(m, m.neutral(), out=out)
    with pytest.raises(bk.ModelError, match="method='auto'"):
        bk.mass_matrix(m, m.neutral(), method="oke", out=np.empty((3, 3)))
    out = np.empty((3, 3))
    assert bk.mass_matrix(m, m.neutral(), out=out) is out
