"""Ready-made controllers: their laws against independent calls, sums, copies with parameters of their own, samples."""

import numpy as np
import pytest

import bunraku as bk
from structures import random_tree

STEPS = {"solver": "symplectic_euler", "step": 0.001}


def arm(count=7):
    """A chain about changing axes."""
    m = bk.Mechanism(name="arm")
    for i in range(count):
        m.add_link(f"l{i}", f"l{i - 1}" if i else "ground", bk.Revolute(np.roll((0, 0, 1), i % 3)),
                   position=(0, 0, 0.3), mass=1.0, com=(0, 0, 0.15), inertia=(0.01, 0.01, 0.002))
    return m


def torque(m, controller, q, v, t=0.0):
    return bk.Simulation(m, q, v, actuation=controller).torque(t, q, v)


# -- the laws ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tree():
    return random_tree(7, links=5, kinds=("revolute", "spherical", "prismatic", "planar"), massless=False)


@pytest.fixture(scope="module")
def states(tree):
    rng = np.random.default_rng(1)
    return tree.state(rng)[0], tree.state(rng)[:2]


def test_pd_is_springs_and_dampers_to_the_goal_with_gravity_compensated(tree, states):
    m, (goal, (q, v)) = tree.m, states
    zero = np.zeros(m.nv)
    kp = np.arange(1.0, m.nv + 1)
    wanted = kp * m.difference(q, goal) - 3.0 * v + bk.inverse_dynamics(m, q, zero, zero, passive=False)
    controller = bk.control.pd(m, kp, 3.0, goal=goal)
    np.testing.assert_allclose(torque(m, controller, q, v), wanted, rtol=1e-12, atol=1e-11)
    controller["kp"] = 0.0
    controller["kd"] *= 2.0
    wanted += -kp * m.difference(q, goal) - 3.0 * v
    np.testing.assert_allclose(torque(m, controller, q, v), wanted, rtol=1e-12, atol=1e-11)


def test_computed_torque_gives_the_acceleration_that_it_asks_for(tree, states):
    m, (goal, (q, v)) = tree.m, states
    tau = torque(m, bk.control.computed_torque(m, 100.0, 20.0, goal=goal), q, v)
    a = bk.forward_dynamics(m, q, v, tau)
    np.testing.assert_allclose(a, 100.0 * m.difference(q, goal) - 20.0 * v, rtol=1e-8, atol=1e-8)


def test_a_table_is_followed_and_rests_at_its_ends():
    m, t = arm(3), np.linspace(0.0, 1.0, 41)
    size = np.array([0.5, -0.3, 0.2])
    controller = bk.control.computed_torque(m, 400.0, 40.0, table=(t, np.sin(2.0 * t)[:, None] * size))
    sim = bk.Simulation(m, v=2.0 * size, actuation=controller, rtol=1e-9, atol=1e-11)
    sim.run(0.7)
    np.testing.assert_allclose(sim.q, np.sin(1.4) * size, atol=1e-6)  # of a cubic spline
    np.testing.assert_allclose(sim.v, 2.0 * np.cos(1.4) * size, atol=1e-4)
    sim.run(3.0)
    np.testing.assert_allclose(sim.q, np.sin(2.0) * size, atol=1e-8)
    copies = bk.rollout(m, times=[0.35, 0.7], actuation=controller, v=np.tile(2.0 * size, (3, 1)), solver="rk4",
                        step=0.002)
    np.testing.assert_allclose(copies.q[:, 1], np.tile(np.sin(1.4) * size, (3, 1)), atol=1e-6)


@pytest.fixture(scope="module")
def reach():
    """An arm whose hand goes to where it is in another posture."""
    m, rng = arm(), np.random.default_rng(3)
    q = rng.uniform(0.2, 0.8, m.nv)
    R, p = bk.poses(m, q)["l6"]
    target = R, p + R @ (0.0, 0.0, 0.2)
    return m, target, bk.control.operational_space(m, "l6", 100.0, 20.0, target, point=(0, 0, 0.2),
                                                   posture_kp=5.0, posture_kd=4.0)


def test_the_point_moves_as_a_mass_on_springs_whatever_the_posture(reach):
    m, (R_goal, p_goal), controller = reach
    rng = np.random.default_rng(4)
    q, v = rng.uniform(-0.9, 0.9, m.nv), rng.normal(size=m.nv)
    a = bk.forward_dynamics(m, q, v, torque(m, controller, q, v))
    k = bk.kinematics(m, q, v, a)
    (R, p), point = k.poses["l6"], np.array([0.0, 0.0, 0.2])
    linear, angular = np.split(k.velocities["l6"], 2)
    r, (a_linear, a_angular) = R @ point, np.split(k.accelerations["l6"], 2)
    velocity = linear + np.cross(angular, r)
    found = a_linear + np.cross(a_angular, r) + np.cross(angular, np.cross(angular, r))
    np.testing.assert_allclose(found, 100.0 * (p_goal - p - r) - 20.0 * velocity, rtol=1e-7, atol=1e-7)
    turn = rotation_vector(R_goal @ R.T)
    np.testing.assert_allclose(a_angular, 100.0 * turn - 20.0 * angular, rtol=1e-7, atol=1e-7)


def rotation_vector(R):
    from scipy.spatial.transform import Rotation
    return Rotation.from_matrix(R).as_rotvec()


def test_many_copies_reach_targets_of_their_own(reach):
    m, _, controller = reach
    rng = np.random.default_rng(5)
    goals = rng.uniform(0.2, 0.7, (20, m.nv))
    poses = bk.poses(m, goals)["l6"]
    places = poses[1] + poses[0] @ (0.0, 0.0, 0.2)
    params = controller.batch(20, rotation=poses[0], position=places)
    r = bk.rollout(m, goals + rng.normal(scale=0.1, size=goals.shape), until=2.0, actuation=controller, params=params,
                   solver="symplectic_euler", step=0.002)
    R, p = bk.poses(m, r.q[:, -1])["l6"]
    np.testing.assert_allclose(p + R @ (0.0, 0.0, 0.2), places, atol=1e-4)
    np.testing.assert_allclose(R, poses[0], atol=1e-4)


def test_at_a_singular_pose_torques_stay_finite(reach):
    m, _, controller = reach
    stretched = np.zeros(m.nv)
    assert np.abs(torque(m, controller, stretched, stretched)).max() < 1e4


# -- sums, sequences, samples -----------------------------------------------------------------------------------------


@bk.actuation
def push(t, q, v, params, tau):
    tau[0] += 2.0


@bk.actuation
def lift(t, q, v, params, tau, model):
    model.gravity(q, tau)
    tau *= 0.5


def test_controllers_add_up_with_parameters_of_their_own():
    m = arm(3)
    rng = np.random.default_rng(6)
    q, v, zero = rng.normal(size=3), rng.normal(size=3), np.zeros(3)
    springs = bk.control.pd(m, 10.0, 1.0, gravity=False)
    whole = springs + push + lift
    assert whole.names == ["kp", "kd", "goal"]
    g = bk.inverse_dynamics(m, q, zero, zero)
    np.testing.assert_allclose(torque(m, whole, q, v), -10.0 * q - v + [2.0, 0.0, 0.0] + 0.5 * g, atol=1e-12)
    whole.parts[0]["kp"] = 20.0
    np.testing.assert_allclose(torque(m, whole, q, v), -20.0 * q - v + [2.0, 0.0, 0.0] + 0.5 * g, atol=1e-12)
    assert springs["kp"][0] == 10.0
    assert bk.control.total(springs, springs).names == ["kp", "kd", "goal", "kp 2", "kd 2", "goal 2"]


def test_a_sequence_is_held_over_its_periods_by_every_copy():
    m, rng = arm(3), np.random.default_rng(7)
    commands = rng.normal(size=(4, 5, 3))
    controller = bk.control.hold(m, commands[0], 0.01)
    r = bk.rollout(m, until=0.05, actuation=controller, params=controller.batch(4, commands=commands), **STEPS)
    for k in range(4):
        sim = bk.Simulation(m, actuation=torques_of_params, params=np.zeros(3), **STEPS)
        for row in commands[k]:
            sim.params[:] = row
            sim.advance(sim.t + 0.01)
        np.testing.assert_allclose(r.q[k, -1], sim.q, rtol=0, atol=1e-14)


@bk.actuation
def torques_of_params(t, q, v, params, tau):
    tau[:] = params


@pytest.mark.parametrize("delay", [0.0, 0.013])
def test_a_sampled_controller_is_a_loop_of_samples(delay):
    """Beside a loop in Python that samples and applies torques at the same times."""
    m, period = arm(3), 0.005
    law = bk.control.pd(m, 4.0, 0.5, goal=[0.3, 0.2, -0.1])
    controller = bk.control.sampled(m, law, period, delay)
    q = np.array([0.1, -0.2, 0.3])
    r = bk.rollout(m, np.tile(q, (3, 1)), until=0.2, actuation=controller, params=controller.batch(3), **STEPS)
    sim = bk.Simulation(m, q, actuation=torques_of_params, params=np.zeros(3), **STEPS)
    torques, late = [], round(delay / 0.001)
    for step in range(200):
        if step % 5 == 0:
            torques.append(torque(m, law, sim.q, sim.v))
        k = (step - late) // 5
        sim.params[:] = torques[k] if k >= 0 else 0.0
        sim.advance((step + 1) * 0.001)
    for k in range(3):
        np.testing.assert_allclose(r.q[k, -1], sim.q, rtol=0, atol=1e-12)


# -- what is wrong ----------------------------------------------------------------------------------------------------


def test_sampled_controllers_are_refused_where_they_would_be_wrong():
    m = arm(2)
    controller = bk.control.sampled(m, bk.control.pd(m, 1.0, 1.0), 0.005)
    with pytest.raises(bk.ModelError, match="symplectic_euler"):
        bk.Simulation(m, actuation=controller)
    with pytest.raises(bk.ModelError, match="no whole number of steps"):
        bk.Simulation(m, actuation=controller, solver="symplectic_euler", step=0.002)
    with pytest.raises(bk.ModelError, match=r"controller\.batch"):
        bk.rollout(m, np.zeros((2, 2)), until=0.1, actuation=controller, **STEPS)


def test_wrong_arguments_name_what_is_wrong():
    m, control = arm(2), bk.control
    with pytest.raises(bk.NamingError, match="did you mean 'l0'"):
        control.pd(m, 1.0, 1.0, joints=["l00"])
    with pytest.raises(bk.ShapeError, match="kp must be a number"):
        control.pd(m, [1.0, 2.0, 3.0], 1.0)
    with pytest.raises(bk.ShapeError, match="must not be negative"):
        control.computed_torque(m, -1.0, 1.0)
    with pytest.raises(bk.ShapeError, match="times of the table must increase"):
        control.pd(m, 1.0, 1.0, table=([0.0, 0.0], np.zeros((2, 2))))
    with pytest.raises(bk.NamingError, match="did you mean 'l1'"):
        control.operational_space(m, "l11", 1.0, 1.0)
    with pytest.raises(bk.ShapeError, match=r"shape \(n, 2\)"):
        control.hold(m, np.zeros((3, 5)), 0.1)
    with pytest.raises(bk.NamingError, match="did you mean 'goal'"):
        control.pd(m, 1.0, 1.0)["gaol"]
    ball = bk.Mechanism()
    ball.add_link("ball", joint=bk.Spherical(), mass=1.0, inertia=(1, 1, 1))
    with pytest.raises(bk.ModelError, match="no quaternions"):
        control.pd(ball, 1.0, 1.0, table=([0.0, 1.0], np.tile(ball.neutral(), (2, 1))))


def test_another_mechanism_is_refused():
    with pytest.raises(bk.SimulationError, match="another number of velocities"):
        bk.Simulation(arm(3), actuation=bk.control.gravity_compensation(arm(2))).run(0.1)


def test_sums_of_sums_keep_every_parameter():
    one = bk.control.pd(bk.models.chain(2), 1.0, 0.1, goal=[0.1, 0.2])
    both = (one + one) + one
    assert len(both.params) == 3 * len(one.params) == sum(both[name].size for name in both.names)
    with pytest.raises(bk.ShapeError, match="goal"):
        one.batch(4, goal=np.zeros(7))


def test_what_sampled_controllers_remember_ends_with_a_reset():
    m = bk.models.chain(2)
    late = bk.control.sampled(m, bk.control.pd(m, 8.0, 0.8, goal=[0.5, -0.2]), period=0.02, delay=0.0)
    options = {"solver": "symplectic_euler", "step": 0.001, "actuation": late}
    used, new = (bk.Worlds(m, 2, params=late.batch(2), **options) for _ in range(2))
    used.step(count=5)
    for w in (used, new):
        w.reset(q=[0.3, 0.1])
        w.step(count=5)
    assert np.array_equal(used.q, new.q)
