"""Differential inverse kinematics: errors decay at the rate asked for, limits hold, loops stay closed; the same in
compiled functions and as a controller."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import bunraku as bk


def arm(speed=np.inf, limit=np.inf):
    """Seven hinges about changing axes."""
    m = bk.Mechanism(name="arm")
    for i in range(7):
        joint = bk.Revolute(np.roll((0, 0, 1), i % 3), speed=speed, lower=-limit, upper=limit)
        m.add_link(f"l{i}", f"l{i - 1}" if i else "ground", joint, position=(0, 0, 0.3), mass=1.0, com=(0, 0, 0.15),
                   inertia=(0.01, 0.01, 0.002))
    return m


def errors(m, q, targets):
    out = []
    for name, (R, p) in targets.items():
        have_R, have_p = bk.poses(m, q)[name]
        out += [np.linalg.norm(p - have_p), Rotation.from_matrix(R @ have_R.T).magnitude()]
    return np.array(out)


@pytest.fixture(scope="module")
def reach():
    """An arm, a pose to begin with, and a target that it can reach."""
    m, rng = arm(), np.random.default_rng(3)
    q = rng.uniform(0.2, 0.8, m.nv)
    goal = q + rng.uniform(-0.3, 0.3, m.nv)
    return m, q, {"l6": bk.poses(m, goal)["l6"]}


def test_errors_decay_exponentially(reach):
    m, q, targets = reach
    ik, step = bk.control.differential_ik(m, targets, gain=4.0), 1e-3
    assert errors(m, q, targets).min() > 0.05
    for k in range(1500):
        if k == 1000:  # large errors are damped
            first = errors(m, q, targets)
        q = m.integrate(q, step * ik(q))
    np.testing.assert_allclose(errors(m, q, targets), first * (1.0 - 4.0 * step)**500, rtol=1e-3)


def test_a_moving_target_is_followed_without_lag(reach):
    m, q, _ = reach
    R, p = bk.poses(m, q)["l6"]
    ik, step = bk.control.differential_ik(m, {"l6": (R, p)}, gain=10.0), 1e-3
    velocity, spin = np.array([0.05, -0.1, -0.08]), np.array([0.2, 0.1, -0.3])
    for k in range(400):
        turned = Rotation.from_rotvec(step * k * spin).as_matrix() @ R
        q = m.integrate(q, step * ik(q, {"l6": (turned, p + step * k * velocity)}, motion=[*velocity, *spin]))
    turned = Rotation.from_rotvec(0.4 * spin).as_matrix() @ R
    assert errors(m, q, {"l6": (turned, p + 0.4 * velocity)}).max() < 1e-4


def test_limits_of_joints_and_speeds_hold_where_a_target_is_out_of_reach():
    m = arm(speed=0.5, limit=0.7)
    ik = bk.control.differential_ik(m, {"l6": (3.0, 1.0, 0.0)}, gain=5.0)
    q, fastest = np.full(m.nv, 0.1), 0.0
    for _ in range(1500):
        v = ik(q)
        fastest = max(fastest, np.abs(v).max())
        q = q + 0.01 * v
        assert np.abs(q).max() < 0.7 + 1e-9
    assert abs(fastest - 0.5) < 1e-12
    assert np.abs(q).max() > 0.69
    best = bk.inverse_kinematics(m, {"l6": (3.0, 1.0, 0.0)}, np.full(m.nv, 0.1), starts=1)
    assert np.linalg.norm(bk.poses(m, q)["l6"][1] - (3.0, 1.0, 0.0)) < best.error[0] + 0.02


def test_several_targets_a_posture_and_priorities():
    """Both hands of a figure; the posture moves nothing of theirs. A target of priority 1 gives way."""
    m = bk.models.human(dof=34, limits=True)
    q0 = m.neutral()
    here = bk.poses(m, q0)
    targets = {hand: here[hand][1] + offset for hand, offset in (("left_hand", (0.2, 0.1, 0.2)),
                                                                ("right_hand", (0.1, -0.1, 0.3)))}
    with_posture = bk.control.differential_ik(m, targets, 5.0, posture_gain=3.0, weights={"left_hand": 2.0},
                                              damping=0.0, limits=False)
    q = m.integrate(q0, 0.1 * np.random.default_rng(1).normal(size=m.nv))
    J = {hand: bk.kinematics(m, q).jacobian(hand)[:3] for hand in targets}
    v = with_posture(q)
    for hand, target in targets.items():
        np.testing.assert_allclose(J[hand] @ v, 5.0 * (target - bk.poses(m, q)[hand][1]), atol=1e-6)
    free = bk.control.differential_ik(m, targets, 5.0, damping=0.0, limits=False)(q)
    assert np.linalg.norm(free - v) > 0.1  # the posture moves the rest
    both = {"left_hand": targets["left_hand"] + (5.0, 0, 0), "right_hand": targets["right_hand"]}
    ranked = bk.control.differential_ik(m, both, 5.0, priorities={"left_hand": 1}, limits=False, damping=0.0)
    wanted = 5.0 * (both["right_hand"] - bk.poses(m, q)["right_hand"][1])
    np.testing.assert_allclose(J["right_hand"] @ ranked(q), wanted, atol=1e-6)


def test_loops_stay_closed_on_the_way():
    m = bk.models.four_bar()
    q, _ = bk.project(m, m.integrate(m.neutral(), np.array([0.1, 0, 0])), np.zeros(m.nv))
    goal = bk.project(m, m.integrate(m.neutral(), np.array([0.5, 0, 0])), np.zeros(m.nv))[0]
    link = m.link_names[0]
    R, p = bk.poses(m, goal)[link]
    ik, step = bk.control.differential_ik(m, {link: (R, None)}, gain=5.0), 2e-3
    first = errors(m, q, {link: (R, p)})[1]
    v = ik(q)
    assert np.abs(bk.constraints(m, q, v).rates).max() < 1e-9 * np.abs(v).max()
    for _ in range(300):
        q = m.integrate(q, step * ik(q))
    assert np.abs(bk.constraints(m, q).gap).max() < 1e-4  # drift of Euler steps, drawn back
    assert abs(errors(m, q, {link: (R, p)})[1] / (first * (1.0 - 5.0 * step)**300) - 1.0) < 0.05


def test_the_same_in_compiled_functions_and_as_a_controller(reach):
    m, q, targets = reach
    ik = bk.control.differential_ik(m, targets, gain=6.0)
    velocity, goal, motion, rest = ik.velocity, ik.goal(targets), ik.motion, ik.posture

    @bk.actuation
    def follow(t, q, v, params, tau, model):
        wanted = np.empty(model.nv)
        velocity(q, goal, motion, rest, wanted)
        for j in range(model.nv):
            wanted[j] = 60.0 * (wanted[j] - v[j])
        model.inverse_dynamics(q, v, wanted, tau)
    v = 0.1 * np.arange(m.nv)
    found = bk.Simulation(m, q, v, actuation=follow).torque(0.0, q, v)
    np.testing.assert_allclose(found, bk.inverse_dynamics(m, q, v, 60.0 * (ik(q) - v)), rtol=1e-12)
    controller = ik.controller(kd=60.0)
    np.testing.assert_allclose(bk.Simulation(m, q, v, actuation=controller).torque(0.0, q, v), found, rtol=1e-12)
    goals = q + np.random.default_rng(8).uniform(-0.2, 0.2, (5, m.nv))
    R, p = bk.poses(m, goals)["l6"]
    own = np.concatenate([R.reshape(5, 9), p], axis=1)[:, None]
    r = bk.rollout(m, np.tile(q, (5, 1)), until=3.0, actuation=controller, params=controller.batch(5, goal=own),
                   solver="symplectic_euler", step=0.002)
    reached = bk.poses(m, r.q[:, -1])["l6"]
    np.testing.assert_allclose(reached[1], p, atol=1e-5)
    np.testing.assert_allclose(reached[0], R, atol=1e-5)


def test_wrong_arguments_name_what_is_wrong(reach):
    m, q, targets = reach
    ik = bk.control.differential_ik(m, targets)
    with pytest.raises(bk.NamingError, match="the targets are 'l6', not 'l5'"):
        ik(q, {"l5": targets["l6"]})
    with pytest.raises(bk.ModelError, match="not a rotation matrix"):
        ik(q, {"l6": (2.0 * np.eye(3), targets["l6"][1])})
    with pytest.raises(bk.ShapeError, match="gain"):
        bk.control.differential_ik(m, targets, gain=0.0)
    with pytest.raises(bk.NamingError, match="did you mean 'l6'"):
        bk.control.differential_ik(m, {"l66": targets["l6"]})
