"""Passive forces one at a time, against formulas a person can check. Random mixtures: test_forward_dynamics.py."""

import numpy as np
import pytest

import bunraku as bk


def wheel(joint):
    """A unit inertia on one joint, without gravity: its acceleration is the torque."""
    m = bk.Mechanism(gravity=(0, 0, 0))
    m.add_link("wheel", joint=joint, mass=1.0, inertia=(1, 1, 1))
    return m


def acceleration(m, q, v, **options):
    """Of one state, after checking that a batch says the same."""
    q, v = np.asarray(q, float), np.asarray(v, float)
    a = bk.forward_dynamics(m, q, v, **options)
    batch = bk.forward_dynamics(m, np.tile(q, (3, 1)), np.tile(v, (3, 1)), **options)
    assert np.allclose(batch, a, rtol=1e-13, atol=1e-13)
    return a


@pytest.mark.parametrize(("q", "expected"), [(0.0, 0.0), (0.5, 0.0), (-0.4, 0.0), (0.7, -0.2 * 10 - 3 * 2.0),
                                             (-0.6, 0.2 * 10 - 3 * 2.0)])
def test_a_soft_limit_pushes_back_and_damps_only_beyond(q, expected):
    m = wheel(bk.Revolute((0, 0, 1), lower=-0.4, upper=0.5, limit_stiffness=10, limit_damping=3))
    assert np.isclose(acceleration(m, [q], [2.0])[0], expected)


@pytest.mark.parametrize("joint", [bk.Revolute((0, 0, 1), upper=0.5, limit_damping=3),
                                   bk.Cylindrical((0, 0, 1), upper=0.5, limit_damping=3),
                                   bk.Spherical(upper=0.5, limit_damping=3)], ids=repr)
def test_a_limit_without_stiffness_is_information_only(joint):
    m = wheel(joint)
    q = m.integrate(m.neutral(), np.ones(m.nv))
    assert np.allclose(acceleration(m, q, np.ones(m.nv)), 0.0, atol=1e-14)


def test_spring_damper_and_armature_act_by_their_formulas():
    m = wheel(bk.Prismatic((0, 0, 1), stiffness=8, rest=0.25, damping=3, armature=1.0))
    assert np.isclose(acceleration(m, [0.75], [2.0])[0], (-8 * 0.5 - 3 * 2) / 2)
    assert acceleration(m, [0.75], [2.0], passive=False)[0] == 0.0


@pytest.mark.parametrize("angle", [1e-9, 0.3, 1.0, 3.0])
def test_a_spherical_spring_turns_back_along_the_rotation_vector(angle):
    m = wheel(bk.Spherical(stiffness=5.0))
    axis = np.array([1.0, 2.0, -2.0]) / 3
    q = m.integrate(m.neutral(), angle * axis)
    assert np.allclose(acceleration(m, q, np.zeros(3)), -5.0 * angle * axis, rtol=1e-12, atol=0)
    assert np.allclose(acceleration(m, -q, np.zeros(3)), -5.0 * angle * axis, rtol=1e-12, atol=0)


@pytest.mark.parametrize(("angle", "over"), [(0.5, 0.0), (1.0, 0.2), (3.0, 2.2)])
def test_a_spherical_limit_acts_beyond_its_cone(angle, over):
    m = wheel(bk.Spherical(upper=0.8, limit_stiffness=10.0, limit_damping=2.0))
    axis, v = np.array([0.6, 0.0, 0.8]), np.array([0.1, 0.2, 0.3])
    expected = -10.0 * over * axis - 2.0 * v * (over > 0)
    assert np.allclose(acceleration(m, m.integrate(m.neutral(), angle * axis), v), expected, atol=1e-12)


def test_a_free_joint_can_be_damped():
    m = wheel(bk.Free(damping=[1, 2, 3, 4, 5, 6]))
    assert np.allclose(acceleration(m, m.neutral(), [1, 0, 0, 0, 0, 0]), [-1, 0, 0, 0, 0, 0])
    assert np.allclose(acceleration(m, m.neutral(), [0, 0, 0, 0, 1, 0]), [0, 0, 0, 0, -5, 0])


def test_a_point_spring_pulls_two_bodies_together():
    m = bk.Mechanism(gravity=(0, 0, 0))
    for name, x in (("a", 0.0), ("b", 3.0)):
        m.add_link(name, joint=bk.Prismatic((1, 0, 0)), position=(x, 0, 0), mass=2.0)
    m.add_spring("a", "b", position_b=(1, 0, 0), stiffness=5.0, rest_length=2.0, damping=0.5)
    pull = 5.0 * (4.0 - 2.0) + 0.5 * 0.3
    assert np.allclose(acceleration(m, [0.0, 0.0], [0.1, 0.4]), [pull / 2, -pull / 2])
    assert np.isclose(m.energy(np.zeros(2), np.zeros(2))[1], 0.5 * 5.0 * 2.0**2)


def test_a_point_spring_to_the_ground_turns_a_lever():
    m = bk.Mechanism(gravity=(0, 0, 0))
    m.add_link("lever", joint=bk.Revolute((0, 0, 1)), mass=1.0, inertia=(1, 1, 1))
    m.add_spring("ground", "lever", position_a=(1, 2, 0), position_b=(1, 0, 0), stiffness=3.0)
    assert np.isclose(acceleration(m, [0.0], [0.0])[0], 6.0)


def test_a_spring_of_no_length_gives_numbers():
    m = bk.Mechanism(gravity=(0, 0, 0))
    m.add_link("a", joint=bk.Free(), mass=1.0, inertia=(1, 1, 1))
    m.add_spring("ground", "a", stiffness=5.0, rest_length=1.0, damping=1.0)
    assert np.isfinite(acceleration(m, m.neutral(), np.ones(6))).all()


def test_stored_energy_counts_springs_and_limits():
    hinge = wheel(bk.Revolute((0, 0, 1), stiffness=4.0, rest=0.5, upper=1.0, limit_stiffness=10.0))
    assert np.isclose(hinge.energy(np.array([1.5]), np.zeros(1))[1], 0.5 * 4 * 1.0**2 + 0.5 * 10 * 0.5**2)
    ball = wheel(bk.Spherical(stiffness=4.0, upper=1.0, limit_stiffness=10.0))
    q = ball.integrate(ball.neutral(), np.array([0.0, 1.5, 0.0]))
    assert np.isclose(ball.energy(q, np.zeros(3))[1], 0.5 * 4 * 1.5**2 + 0.5 * 10 * 0.5**2)
