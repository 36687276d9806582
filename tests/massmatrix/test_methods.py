"""The methods of [F] for the mass matrix: all are the same matrix, and say what they cannot do."""

import numpy as np
import pytest

import bunraku as bk
from bunraku import ModelError, StateError
from bunraku.massmatrix import chain_of, mass_matrix, simulate
from bunraku.massmatrix.by_method import to_array
from structures import random_chain

FAMILY = ("oke", "vke", "oneb", "vneb", "ocrb", "vcrb")
ARRAYS = [(method, processors) for method in ("vneb", "vcrb") for processors in ("n", "n^2")]


def off(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


def pinocchio_matrix(m, q):
    pytest.importorskip("pinocchio")
    from bunraku.bench.peers import Pinocchio

    twin = Pinocchio(m)
    M = np.triu(twin.pin.crba(twin.model, twin.data, twin.q(q)))
    return (M + np.triu(M, 1).T)[np.ix_(np.argsort(twin.order_v), np.argsort(twin.order_v))]


@pytest.mark.parametrize("n", [*range(1, 14), 25, 50, 100, 200])
def test_all_methods_and_arrays_are_one_matrix(n):
    m, q = random_chain(n, seed=n)
    expected = pinocchio_matrix(m, q)
    methods = ("auto", *FAMILY) if n <= 100 else ("auto", *FAMILY[1:])  # the cubic one is seen once more below
    for method in methods:
        M = bk.mass_matrix(m, q, method=method)
        assert off(M, expected) < 1e-11, method
        assert np.array_equal(M, M.T), method
        np.linalg.cholesky(M)
    for method, processors in ARRAYS:
        if n <= 50 or processors == "n":
            assert off(bk.processor_array(m, q, method=method, processors=processors).matrix, expected) < 1e-11


def test_the_cubic_method_and_the_triangle_agree_at_200_joints():
    m, q = random_chain(200, seed=7)
    expected = pinocchio_matrix(m, q)
    assert off(bk.mass_matrix(m, q, method="oke"), expected) < 1e-11
    chain = chain_of(m.plan())  # the arrays on plain numbers, which is faster
    for method in ("vneb", "vcrb"):
        assert off(to_array(chain, simulate(method, "n^2", chain, chain.turns(q)).matrix), expected) < 1e-11


@pytest.mark.parametrize("seed", range(12))
def test_sliding_joints_and_naive_frames_give_the_same_matrix(seed):
    m, q = random_chain(1 + seed, seed, (bk.Revolute, bk.Prismatic))
    expected = bk.mass_matrix(m, q)
    for method in FAMILY:
        assert off(bk.mass_matrix(m, q, method=method), expected) < 1e-12
    for method in ("vneb", "vcrb"):
        assert off(mass_matrix(chain_of(m.plan()), q, method, "body"), expected) < 1e-12


def test_parallel_axes_compound_joints_fixed_links_and_armature_give_the_same_matrix():
    m, q = random_chain(5, 3, parallel=True)
    m.add_link("plate", "link4", bk.Fixed(), position=(0.1, 0, 0), mass=1.0, com=(0, 0.1, 0), inertia=(0.1, 0.1, 0.1))
    m.add_link("wrist", "plate", bk.Compound(bk.Revolute((1, 0, 0), armature=0.3), bk.Prismatic((0, 1, 0))), mass=0.5,
               com=(0, 0, 0.2), inertia=(0.01, 0.02, 0.02))
    m.add_link("hand", "wrist", bk.Cylindrical((1, 1, 0)), mass=0.5, com=(0, 0, 0.2), inertia=(0.01, 0.02, 0.02))
    q = np.concatenate([q, (0.4, 0.2, -0.1, 1.0)])
    for method in FAMILY:
        assert off(bk.mass_matrix(m, q, method=method), bk.mass_matrix(m, q)) < 1e-12


def test_axes_a_hair_from_parallel_keep_their_digits():
    m = bk.Mechanism()
    m.add_link("a", "ground", bk.Revolute((0, 0, 1)), mass=1.0, com=(0.3, 0, 0), inertia=(0.1, 0.1, 0.1))
    m.add_link("b", "a", bk.Revolute((1e-9, 2e-9, 1)), position=(1, 0, 0), mass=1.0, com=(0.3, 0, 0.1),
               inertia=(0.1, 0.1, 0.1))
    for method in FAMILY:
        assert off(bk.mass_matrix(m, [0.3, 0.4], method=method), bk.mass_matrix(m, [0.3, 0.4])) < 1e-14


def test_a_batch_is_its_states():
    m, _ = random_chain(6, 4, (bk.Revolute, bk.Prismatic))
    q = np.random.default_rng(0).normal(size=(5, 6))
    for method in FAMILY:
        batch = bk.mass_matrix(m, q, method=method)
        assert batch.shape == (5, 6, 6)
        assert off(batch, np.array([bk.mass_matrix(m, one, method=method) for one in q])) < 1e-14


# -- what they refuse ------------------------------------------------------------------------------------------------


def test_mechanisms_that_are_no_chain_are_refused():
    for m, culprit in ((bk.models.human(34), "Free"), (bk.models.chain(3, "spherical"), "Spherical")):
        with pytest.raises(ModelError, match=f"{culprit}.*method='auto'"):
            bk.mass_matrix(m, m.neutral(), method="vcrb")
    m, q = random_chain(3)
    m.add_link("branch", "link0", bk.Revolute((0, 0, 1)), mass=1.0, inertia=(1, 1, 1))
    with pytest.raises(ModelError, match=r"'branch' branches off.*method='auto'"):
        bk.mass_matrix(m, [*q, 0.0], method="oke")


def test_arrays_and_counts_refuse_what_they_cannot_do():
    m, q = random_chain(4, 1, (bk.Prismatic,))
    with pytest.raises(ModelError, match=r"'link0' is prismatic.*mass_matrix"):
        bk.processor_array(m, q)
    with pytest.raises(ModelError, match="vneb and vcrb"):
        bk.operation_count("oke", 6, "n")
    with pytest.raises(ModelError, match="1, 'n', 'n\\^2'"):
        bk.operation_count("vneb", 6, 12)
    with pytest.raises(ModelError, match="not for 'auto'"):
        bk.operation_count("auto", 6)
    with pytest.raises(ModelError, match="whole number"):
        bk.operation_count("oke", 0)
    with pytest.raises(ModelError, match="'fastest' is not one of auto, oke"):
        bk.mass_matrix(m, q, method="fastest")


def test_states_without_an_answer_are_named():
    m, q = random_chain(3)
    states = np.array([q, [np.nan, 0, 0], q])
    with pytest.raises(StateError, match="state 1: q\\[0\\]") as caught:
        bk.mass_matrix(m, states, method="vneb")
    assert caught.value.states == (1,)
    assert off(caught.value.result[2], bk.mass_matrix(m, q)) < 1e-12
    with pytest.raises(StateError, match="q\\[2\\]"):
        bk.mass_matrix(m, [0, 0, np.inf], method="vcrb")
