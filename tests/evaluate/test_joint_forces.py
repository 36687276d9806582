"""Joint forces and link accelerations: every joint's whole wrench, Fixed joints included, is that of the oracle."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku as bk
import oracle
from oracle import close, close_forces
from structures import random_tree

SEEDS = st.integers(0, 10**6)


@given(SEEDS)
@settings(max_examples=80)
def test_every_joint_force_and_link_acceleration_equals_the_oracle(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, passive=seed % 2 == 0, springs=seed % 3 == 0)
    q, v, tau = tree.state(rng)
    external = tree.external(rng)
    expected = oracle.solve(tree, q, v, tau, external=external)
    result = bk.dynamics(tree.m, q, v, tau, external=external)
    close_forces(result.forces, expected.forces)
    close(result.a, expected.a)
    assert list(result.links) == tree.m.link_names
    close(np.array(list(result.links.values())), expected.links)


@given(SEEDS)
@settings(max_examples=20)
def test_joint_forces_of_a_batch_are_those_of_its_states(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, passive=True, springs=True)
    q, v, tau = tree.states(rng, 5)
    external = tree.external(rng, 5)
    batch = bk.joint_forces(tree.m, q, v, tau, external=external)
    for k in range(5):
        one = bk.joint_forces(tree.m, q[k], v[k], tau[k], external={name: w[k] for name, w in external.items()})
        close_forces({name: wrench[k] for name, wrench in batch.items()}, one, 1e-12)


def test_a_weld_carries_the_weight_beyond_it():
    m = bk.Mechanism(gravity=(0, 0, -10))
    m.add_link("base", position=(1, 0, 0), mass=7.0)
    m.add_link("post", "base", joint_name="weld", position=(0, 0, 1), mass=2.0, com=(0.5, 0, 0))
    m.add_link("pan", "post", bk.Prismatic((0, 0, 1)), mass=3.0)
    forces = bk.joint_forces(m, np.zeros(1), np.zeros(1), np.array([30.0]))
    assert np.allclose(forces["pan"], [0, 0, 30, 0, 0, 0], atol=1e-12)
    assert np.allclose(forces["weld"], [0, 0, 50, 0, -10, 0], atol=1e-12)
    assert np.allclose(forces["base"], [0, 0, 120, 0, -10, 0], atol=1e-12)


def test_a_push_on_a_link_welded_to_the_ground_is_felt_by_the_weld_alone():
    m = bk.Mechanism(gravity=(0, 0, 0))
    m.add_link("base", mass=1.0)
    m.add_link("arm", "base", bk.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -1))
    push = {"base": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)}
    result = bk.dynamics(m, np.zeros(1), np.zeros(1), external=push)
    assert np.allclose(result.a, 0.0)
    assert np.allclose(result.forces["arm"], 0.0)
    assert np.allclose(result.forces["base"], [-1, -2, -3, -4, -5, -6])


def test_a_tree_has_no_loop_constraints_to_report():
    report = bk.dynamics(*demo()).report
    assert (report.constraints, report.rank) == (0, 0)


def demo():
    tree = random_tree(5)
    return tree.m, *tree.state(np.random.default_rng(5))


def test_entries_made_when_asked_for_are_a_plain_dictionary_otherwise():
    m, q, v, tau = demo()
    whole = {name: wrench.copy() for name, wrench in bk.joint_forces(m, q, v, tau).items()}
    assert list(whole) == m.joint_names
    assert len(bk.joint_forces(m, q, v, tau)) == len(whole)
    assert set(bk.joint_forces(m, q, v, tau)) == set(whole)
    assert all(np.array_equal(x, y) for x, y in zip(dict(bk.joint_forces(m, q, v, tau)).values(), whole.values(),
                                                    strict=True))
    last = m.joint_names[-1]
    for each in (lambda r: r[last], lambda r: r.get(last), lambda r: {**r}[last], lambda r: pickle.loads(
            pickle.dumps(r))[last], lambda r: copy.copy(r)[last], lambda r: r.pop(last)):
        assert np.array_equal(each(bk.joint_forces(m, q, v, tau)), whole[last])
    read = bk.joint_forces(m, q, v, tau)
    assert last in read
    assert "no such joint" not in read
    assert list(read) == m.joint_names  # in order, whichever is read first
    with pytest.raises(bk.NamingError, match="no joint or connection"):
        bk.joint_forces(m, q, v, tau)["no such joint"]


def test_coupled_joints_transmit_the_torque_of_their_coupling():
    tree = bk.Mechanism(gravity=(0, 0, 0))
    for name in ("a", "b"):
        tree.add_link(name, joint=bk.Revolute((0, 0, 1)), mass=1.0, inertia=(1.0, 1.0, 2.0))
    tree.couple("b", "a", ratio=3.0)
    forces = bk.joint_forces(tree, np.zeros(2), np.zeros(2), np.array([20.0, 0.0]))  # (2 + 9 x 2) a = 20
    assert np.allclose(forces["a"][5], 2.0)
    assert np.allclose(forces["b"][5], 6.0)
