"""Places and motions: against the oracle, against finite differences, and against each other."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku as bk
import oracle
from oracle import close, unskew
from structures import random_tree

SEEDS = st.integers(0, 10**6)


def stacked(dictionary):
    return np.array(list(dictionary.values()))


@given(SEEDS)
@settings(max_examples=60)
def test_poses_velocities_and_accelerations_equal_the_oracle(seed):
    tree = random_tree(seed)
    q, v, a = tree.states(np.random.default_rng(seed), 2)
    for at, k in ((bk.kinematics(tree.m, q[0], v[0], a[0]), ...), (bk.kinematics(tree.m, q, v, a), 0)):
        expected = oracle.motion(tree, q[0], v[0])
        close([R[k] for R, x in at.poses.values()], expected.R, 1e-12)
        close([x[k] for R, x in at.poses.values()], expected.x, 1e-12)
        close([s[k] for s in at.velocities.values()], expected.velocity, 1e-12)
        close([s[k] for s in at.accelerations.values()], expected.drift + expected.J @ a[0], 1e-12)


@given(SEEDS)
@settings(max_examples=40)
def test_velocities_are_the_rates_of_poses(seed):
    tree = random_tree(seed)
    q, v, _ = tree.state(np.random.default_rng(seed))
    h = 1e-5
    before, after = bk.poses(tree.m, tree.m.integrate(q, -h * v)), bk.poses(tree.m, tree.m.integrate(q, h * v))
    for name, velocity in bk.kinematics(tree.m, q, v).velocities.items():
        (R0, x0), (R1, x1) = before[name], after[name]
        close((x1 - x0) / (2 * h), velocity[:3], 1e-7)
        close(unskew(R1 @ R0.T) / (2 * h), velocity[3:], 1e-7)


@given(SEEDS)
@settings(max_examples=40)
def test_jacobians_map_v_to_the_velocity_of_any_point(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(seed)
    q, v, _ = tree.state(rng)
    at = bk.kinematics(tree.m, q, v)
    for name, velocity in at.velocities.items():
        point = rng.normal(size=3)
        moved = velocity + np.concatenate([np.cross(velocity[3:], at.poses[name][0] @ point), np.zeros(3)])
        close(at.jacobian(name) @ v, velocity, 1e-12)
        close(at.jacobian(name, point) @ v, moved, 1e-12)


def test_the_ground_does_not_move():
    tree = random_tree(1)
    at = bk.kinematics(tree.m, tree.m.neutral())
    assert not at.jacobian("ground").any()
    assert at.jacobian("ground").shape == (6, tree.m.nv)


def test_a_kinematics_keeps_the_state_it_was_made_for():
    tree = random_tree(4, links=4, kinds=("revolute",))
    q, v, _ = tree.state(np.random.default_rng(4))
    at = bk.kinematics(tree.m, q, v)
    before = at.jacobian("link3")
    q += 1.0
    assert np.array_equal(at.jacobian("link3"), before)


@given(SEEDS)
@settings(max_examples=40)
def test_centre_of_mass_and_momentum_are_sums_over_links(seed):
    tree = random_tree(seed)
    q, v, _ = tree.state(np.random.default_rng(seed))
    at, expected = bk.kinematics(tree.m, q, v), oracle.motion(tree, q, v)
    moves = [k for k, part in enumerate(tree.parts) if expected.J[k].any()]  # links welded to the ground do not count
    mass = np.array([tree.parts[k].mass for k in moves])
    arms = np.array([expected.R[k] @ tree.parts[k].com for k in moves])
    centres = expected.x[moves] + arms
    rates = expected.velocity[moves, :3] + np.cross(expected.velocity[moves, 3:], arms)
    com = mass @ centres / mass.sum()
    spin = sum(expected.R[k] @ tree.parts[k].inertia @ expected.R[k].T @ expected.velocity[k, 3:] for k in moves)
    angular = spin + np.cross(centres - com, mass[:, None] * rates).sum(axis=0)
    assert np.isclose(at.mass, mass.sum(), rtol=1e-14)
    close(at.com, com, 1e-12)
    close(at.com_velocity, mass @ rates / mass.sum(), 1e-12)
    close(at.momentum, np.concatenate([mass @ rates, angular]), 1e-12)


@given(SEEDS)
@settings(max_examples=60)
def test_difference_undoes_integrate(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(seed)
    q, dq, _ = tree.states(rng, 3)
    dq *= rng.choice([1e-9, 1e-3, 0.01, 1.0], size=(3, 1))
    dq *= min(1.0, 1.7 / np.abs(dq).max())  # less than half a turn about any axis: 1.7 sqrt(3) < pi
    moved = tree.m.integrate(q, dq)
    close(tree.m.difference(q, moved), dq, 1e-12)
    close(tree.m.integrate(q, tree.m.difference(q, moved)), moved, 1e-12)
    assert np.array_equal(tree.m.integrate(q[0], dq[0]), moved[0])
    assert np.array_equal(tree.m.difference(q[0], moved[0]), tree.m.difference(q, moved)[0])


def test_difference_takes_the_short_way():
    m = bk.Mechanism()
    m.add_link("ball", joint=bk.Spherical(), mass=1.0, inertia=(1, 1, 1))
    turned = m.integrate(m.neutral(), np.array([0.0, 0.0, 1.5 * np.pi]))
    assert np.allclose(m.difference(m.neutral(), turned), [0, 0, -0.5 * np.pi], atol=1e-14)
    assert np.allclose(m.difference(m.neutral(), -m.neutral()), 0.0)


def test_quaternions_stay_unit_over_many_moves():
    tree = random_tree(2, links=4, kinds=("spherical", "free"))
    q, v, _ = tree.state(np.random.default_rng(2))
    for _ in range(1000):
        q = tree.m.integrate(q, 0.1 * v)
    for part in tree.parts:
        assert abs(np.linalg.norm(q[tree.m.q_slice(part.joint_name)][-4:]) - 1) < 1e-14


def test_a_free_body_moves_along_its_twist():
    """A constant twist in child axes is a circle: after a full turn the body is back."""
    m = bk.Mechanism()
    m.add_link("car", joint=bk.Free(), mass=1.0, inertia=(1, 1, 1))
    q = np.array([1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 0.0])
    half = m.integrate(q, np.array([np.pi, 0, 0, 0, 0, np.pi]))
    assert np.allclose(half[:3], [1, 4, 3], atol=1e-14)  # half a circle of radius 1 to the left
    whole = m.integrate(half, np.array([np.pi, 0, 0, 0, 0, np.pi]))
    assert np.allclose(whole[:3], q[:3], atol=1e-14)


def test_planar_axes_turn_with_the_normal_the_short_way():
    for normal in ((0, 0, 1), (1, 0, 0), (0.3, 0.4, -0.6), (0.1, 0.2, -1.0), (1e-4, 0, -1.0)):
        n = np.array(normal) / np.linalg.norm(normal)
        m = bk.Mechanism()
        m.add_link("puck", joint=bk.Planar(normal), mass=1.0, inertia=(1, 1, 1))
        x = bk.poses(m, np.array([1.0, 0.0, 0.0]))["puck"][1]
        y = bk.poses(m, np.array([0.0, 1.0, 0.0]))["puck"][1]
        # the short way is a turn about z cross n, which leaves that axis as it is
        hinge = np.array([-n[1], n[0], 0.0])
        assert np.allclose(x * hinge[0] + y * hinge[1], hinge, atol=1e-12), f"normal {normal}"
        assert np.allclose(np.cross(x, y), n, atol=1e-12)
