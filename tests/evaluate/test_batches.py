"""Batches, workers and threads: however the work is divided, every state gets the answer it would get alone."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import answers
import bunraku as bk
from bunraku.compiler.targets import levels_here
from bunraku.spatial.lanes import WIDTH
from oracle import close
from structures import random_tree


@pytest.fixture(scope="module")
def tree():
    return random_tree(1234, links=8, passive=True, springs=True)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("count", [1, 7, 8, 9, 37])
def test_a_batch_equals_its_states_one_by_one(tree, count, workers):
    rng = np.random.default_rng(count)
    q, v, tau = tree.states(rng, count)
    external = tree.external(rng, count)
    split = [{name: wrench[k] for name, wrench in external.items()} for k in range(count)]
    shared = {"external": external, "workers": workers}
    a = bk.forward_dynamics(tree.m, q, v, tau, **shared)
    close(a, [bk.forward_dynamics(tree.m, q[k], v[k], tau[k], external=split[k]) for k in range(count)], 1e-12)
    close(bk.inverse_dynamics(tree.m, q, v, a, **shared),
          [bk.inverse_dynamics(tree.m, q[k], v[k], a[k], external=split[k]) for k in range(count)], 1e-12)
    close(bk.forward_dynamics(tree.m, q, v, tau, method="unit_vector", **shared), a)
    close(bk.mass_matrix(tree.m, q, workers=workers), [bk.mass_matrix(tree.m, one) for one in q], 1e-12)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 37])
def test_kinematics_of_a_batch_are_those_of_its_states(tree, count):
    q, v, a = tree.states(np.random.default_rng(count), count)
    batch = bk.kinematics(tree.m, q, v, a)
    kinetic, potential = tree.m.energy(q, v)
    for k in range(count):
        one = bk.kinematics(tree.m, q[k], v[k], a[k])
        for name in tree.m.link_names:
            close(batch.accelerations[name][k], one.accelerations[name], 1e-12)
            close(batch.poses[name][0][k], one.poses[name][0], 1e-12)
        close(batch.momentum[k], one.momentum, 1e-12)
        close((kinetic[k], potential[k]), tree.m.energy(q[k], v[k]), 1e-12)


def test_a_batch_large_enough_for_every_core_equals_one_worker(tree):
    q, v, tau = tree.states(np.random.default_rng(0), 40)
    q, v, tau = (np.tile(x, (51, 1))[:2001] for x in (q, v, tau))
    a = bk.forward_dynamics(tree.m, q, v, tau)
    assert np.array_equal(a, bk.forward_dynamics(tree.m, q, v, tau, workers=1))
    assert np.array_equal(a[:40], a[1960:2000])


def test_an_empty_batch_gives_an_empty_answer(tree):
    q, v = np.empty((0, tree.m.nq)), np.empty((0, tree.m.nv))
    assert bk.forward_dynamics(tree.m, q, v).shape == (0, tree.m.nv)
    assert bk.inverse_dynamics(tree.m, q, v, v).shape == (0, tree.m.nv)
    assert bk.mass_matrix(tree.m, q).shape == (0, tree.m.nv, tree.m.nv)
    assert tree.m.integrate(q, v).shape == (0, tree.m.nq)


@pytest.mark.parametrize("count", [1, 5])
def test_what_is_given_once_holds_for_the_whole_batch(tree, count):
    q, v, tau = tree.states(np.random.default_rng(1), count)
    repeated = bk.forward_dynamics(tree.m, q, np.tile(v[0], (count, 1)), np.tile(tau[0], (count, 1)))
    assert np.array_equal(bk.forward_dynamics(tree.m, q, v[0], tau[0]), repeated)
    assert np.array_equal(bk.forward_dynamics(tree.m, q, v), bk.forward_dynamics(tree.m, q, v, 0 * tau))
    push = {"link0": np.arange(6.0 * count).reshape(count, 6)}
    close(bk.forward_dynamics(tree.m, q[0], v[0], external=push)[-1],
          bk.forward_dynamics(tree.m, q[0], v[0], external={"link0": push["link0"][-1]}), 1e-12)


@pytest.mark.parametrize("angle", [1e5 - 1.0, 1e5 + 1.0, 3e6, 1e9])
def test_a_wheel_that_has_turned_far_is_where_it_would_be_alone(angle):
    m = bk.Mechanism()
    m.add_link("wheel", joint=bk.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -1))
    q, v = np.full((9, 1), angle), np.zeros((9, 1))
    assert np.allclose(bk.forward_dynamics(m, q, v), -9.81 * np.sin(angle), rtol=0, atol=1e-12)
    assert np.isclose(bk.forward_dynamics(m, q[0], v[0])[0], -9.81 * np.sin(angle), rtol=0, atol=1e-12)


@pytest.mark.parametrize("angle", [1e17, 1e19, 1e300])
def test_an_angle_beyond_reason_is_right_or_refused(angle):
    m = bk.Mechanism()
    m.add_link("wheel", joint=bk.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -1))
    try:
        a = bk.forward_dynamics(m, np.full((9, 1), angle), np.zeros((9, 1)))
    except bk.StateError:
        return
    assert np.allclose(a, -9.81 * np.sin(angle), rtol=0, atol=1e-9)


def test_threads_that_call_at_once_do_not_disturb_each_other():
    trees = [random_tree(seed, links=6, passive=True, springs=seed % 2 == 0) for seed in range(4)]
    cases = [(tree, *tree.states(np.random.default_rng(k), 33)) for k, tree in enumerate(trees)]

    def evaluated(case):
        tree, q, v, tau = case
        return (bk.forward_dynamics(tree.m, q, v, tau, workers=2), bk.forward_dynamics(tree.m, q[0], v[0], tau[0]),
                bk.inverse_dynamics(tree.m, q, v, tau), bk.mass_matrix(tree.m, q[1]),
                bk.kinematics(tree.m, q, v).momentum)

    alone = [evaluated(case) for case in cases]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(evaluated, cases * 40))
    for k, result in enumerate(together):
        for one, expected in zip(result, alone[k % 4], strict=True):
            assert np.array_equal(one, expected)


def test_inputs_are_left_as_they_were(tree):
    q, v, tau = tree.states(np.random.default_rng(2), 9)
    copies = q.copy(), v.copy(), tau.copy()
    bk.dynamics(tree.m, q, v, tau, external={"link0": np.ones(6)})
    bk.forward_dynamics(tree.m, q, v, tau, prescribed={tree.parts[-1].joint_name: np.ones(tree.parts[-1].nv)})
    bk.forward_dynamics(tree.m, q[0], v[0], tau[0])
    for given, copy in zip((q, v, tau), copies, strict=True):
        assert np.array_equal(given, copy)


@pytest.mark.parametrize("width", [w for w in (2, 4) if w != WIDTH])
def test_lanes_of_another_width_give_the_same_answers(width, tmp_path):
    """Other processors have other lanes: with the code for such a processor, if this one can run it."""
    file = tmp_path / "answers.npz"
    code = ("import numpy as np, answers\nfrom bunraku.spatial.lanes import WIDTH\n"
            f"np.savez({str(file)!r}, np.array(WIDTH), *answers.in_lanes())")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=1100, env={
        **os.environ, "BUNRAKU_LEVEL": {level.width: level.name for level in levels_here()}.get(width, ""),
        "BUNRAKU_LANE_WIDTH": str(width), "PYTHONPATH": os.pathsep.join(sys.path), "BUNRAKU_QUIET": "1"})
    with np.load(file) as found:
        theirs = list(found.values())
    assert theirs[0] == width
    for a, b in zip(theirs[1:], answers.in_lanes(), strict=True):
        close(a, b, 1e-11)
