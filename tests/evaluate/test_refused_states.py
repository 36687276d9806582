"""States without a solution are named, also within a batch; no function returns a silent NaN."""

import numpy as np
import pytest

import bunraku as bk
from oracle import close
from refusals import refused
from structures import BODY, KINDS, arm, random_tree


@pytest.fixture(scope="module")
def everything():
    """A tree with a joint of every kind, and a state of it."""
    trees = (random_tree(seed, links=14) for seed in range(1000))
    tree = next(tree for tree in trees if {part.kind for part in tree.parts} == set(KINDS))
    return tree, *tree.state(np.random.default_rng(0))


def owner(tree, index, width):
    """The joint that owns an entry of q or v."""
    for part in tree.parts:
        index -= getattr(part, width)
        if index < 0:
            return part.joint_name
    raise IndexError


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("which", ["q", "v", "tau"])
def test_a_number_that_is_none_is_refused_wherever_it_is(everything, which, bad):
    tree, q, v, tau = everything
    for k in range(len({"q": q, "v": v, "tau": tau}[which])):
        given = {"q": q.copy(), "v": v.copy(), "tau": tau.copy()}
        given[which][k] = bad
        words = f"{which}[{k}]", repr(owner(tree, k, "nq" if which == "q" else "nv"))
        for method in ("auto", "unit_vector"):
            with refused(bk.StateError, *words):
                bk.forward_dynamics(tree.m, **given, method=method)
        as_acceleration = [word.replace("tau[", "a[") for word in words]
        with refused(bk.StateError, *as_acceleration):
            bk.inverse_dynamics(tree.m, given["q"], given["v"], given["tau"])
        with refused(bk.StateError, *as_acceleration):
            bk.kinematics(tree.m, given["q"], given["v"], given["tau"])
        if which == "q":
            with refused(bk.StateError, *words):
                bk.poses(tree.m, given["q"])
            with refused(bk.StateError, *words):
                bk.mass_matrix(tree.m, given["q"])
            with refused(bk.StateError, words[1]):
                tree.m.integrate(given["q"], v)


def evaluations(m, q, v, tau):
    """Every way to evaluate a batch."""
    yield lambda: bk.forward_dynamics(m, q, v, tau), lambda k: bk.forward_dynamics(m, q[k], v[k], tau[k])
    yield (lambda: bk.forward_dynamics(m, q, v, tau, method="unit_vector"),
           lambda k: bk.forward_dynamics(m, q[k], v[k], tau[k]))
    yield lambda: bk.inverse_dynamics(m, q, v, tau), lambda k: bk.inverse_dynamics(m, q[k], v[k], tau[k])
    yield lambda: m.integrate(q, v), lambda k: m.integrate(q[k], v[k])


@pytest.mark.parametrize("workers", [1, 2])
def test_all_failing_states_of_a_batch_are_named_and_the_others_computed(everything, workers):
    tree = everything[0]
    q, v, tau = tree.states(np.random.default_rng(1), 37)
    q[3, 0], v[8, 1], q[36, -1], v[20, 0], v[21, 2] = np.nan, np.inf, -np.inf, np.nan, np.nan
    failing = (3, 8, 20, 21, 36)
    for evaluate, alone in evaluations(tree.m, q, v, tau):
        with refused(bk.StateError, "5 of 37", *(f"state {k}" for k in failing)) as caught:
            evaluate()
        assert caught.value.states == failing
        for k in set(range(37)) - set(failing):
            close(caught.value.result[k], alone(k))


def test_failing_states_of_mass_matrices_are_named_too(everything):
    tree = everything[0]
    q, _, _ = tree.states(np.random.default_rng(1), 9)
    q[4, -1] = np.nan
    with refused(bk.StateError, "state 4") as caught:
        bk.mass_matrix(tree.m, q)
    assert caught.value.states == (4,)
    close(caught.value.result[5], bk.mass_matrix(tree.m, q[5]))


def test_many_failing_states_do_not_flood_the_message():
    q = np.full((1000, 3), np.nan)
    with refused(bk.StateError, "1000 of 1000") as caught:
        bk.forward_dynamics(arm(), q, np.zeros((1000, 3)))
    assert len(caught.value.states) == 1000
    assert len(str(caught.value)) < 10_000


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("evaluate", [bk.forward_dynamics, bk.inverse_dynamics, bk.joint_forces,
                                      lambda *x, **o: bk.forward_dynamics(*x, **o, method="unit_vector")],
                         ids=["forward", "inverse", "forces", "unit_vector"])
def test_an_external_force_that_is_none_is_refused_by_name(evaluate, bad):
    push = np.zeros(6)
    push[4] = bad
    with refused(bk.StateError, "external", "'link1'"):
        evaluate(arm(), np.zeros(3), np.zeros(3), np.zeros(3), external={"link1": push})


@pytest.mark.parametrize("evaluate", [bk.forward_dynamics, bk.inverse_dynamics], ids=["forward", "inverse"])
def test_external_forces_that_are_none_fail_their_states_only(evaluate):
    q, v, a = np.random.default_rng(0).normal(size=(3, 9, 3))
    push = np.ones((9, 6))
    push[2, 1], push[7, 5] = np.nan, np.inf
    with refused(bk.StateError, "2 of 9", "state 2", "state 7", "'link1'") as caught:
        evaluate(arm(), q, v, a, external={"link1": push})
    assert caught.value.states == (2, 7)
    close(caught.value.result[3], evaluate(arm(), q[3], v[3], a[3], external={"link1": np.ones(6)}))


def test_a_bad_force_on_a_link_welded_to_the_ground_is_refused():
    m = arm()
    m.add_link("base", **BODY)
    with refused(bk.StateError, "'base'"):
        bk.joint_forces(m, np.zeros(3), np.zeros(3), external={"base": np.full(6, np.nan)})


def test_a_prescribed_acceleration_that_is_none_is_refused():
    with refused(bk.StateError, "'link1'", "prescribed"):
        bk.forward_dynamics(arm(), np.zeros(3), np.zeros(3), prescribed={"link1": np.nan})


@pytest.mark.parametrize("joint", [bk.Spherical(), bk.Free()], ids=repr)
@pytest.mark.parametrize("scale", [0.0, 1e-200])
def test_a_quaternion_of_no_length_is_refused_by_name(joint, scale):
    m = arm()
    m.add_link("hand", "link2", joint, joint_name="wrist", **BODY)
    q, v = scale * m.neutral(), np.zeros(m.nv)
    for given in ((q, v), (np.tile(q, (3, 1)), np.tile(v, (3, 1)))):
        for evaluate in (bk.forward_dynamics, lambda m, q, v: bk.inverse_dynamics(m, q, v, v), bk.kinematics,
                         lambda m, q, v: bk.mass_matrix(m, q), lambda m, q, v: m.integrate(q, v),
                         lambda m, q, v: m.difference(q, q)):
            with refused(bk.StateError, "quaternion", "'wrist'"):
                evaluate(m, *given)


@pytest.mark.parametrize("evaluate", [bk.forward_dynamics, lambda m, q, v: bk.mass_matrix(m, q),
                                      lambda m, q, v: bk.inverse_dynamics(m, q, v, v), bk.kinematics],
                         ids=["forward", "mass matrix", "inverse", "kinematics"])
def test_numbers_too_large_to_compute_with_are_refused(evaluate):
    m = bk.Mechanism()
    m.add_link("arm", joint=bk.Revolute((0, 0, 1)), **BODY)
    m.add_link("slide", "arm", bk.Prismatic((1, 0, 0)), **BODY)
    with refused(bk.StateError, "huge"):
        evaluate(m, np.array([0.0, 1e200]), np.array([1.0, 1.0]))
