"""Planned motions: bounded least squares of linear systems, gradients by differences, closed chains, followed."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

import bunraku as bk
from bunraku import optimal_control as oc
from differences import columns
from structures import random_tree


def slider():
    m = bk.Mechanism(gravity=(0, 0, 0), name="slider")
    m.add_link("mass", joint=bk.Prismatic((1, 0, 0)), mass=2.0, inertia=(1, 1, 1))
    return m


def acrobot():
    m = bk.Mechanism(name="acrobot")
    rod = {"mass": 1.0, "com": (0, 0, -0.5), "inertia": (0.083, 0.083, 0.001)}
    m.add_link("upper", joint=bk.Revolute((0, 1, 0)), actuated=False, **rod)
    m.add_link("lower", "upper", bk.Revolute((0, 1, 0)), position=(0, 0, -1.0), **rod)
    return m


def five_bar():
    """Two arms whose tips are joined: two freedoms, motors at the shoulders."""
    m = bk.Mechanism(name="five-bar")
    for side, x in (("left", -0.2), ("right", 0.2)):
        m.add_link(side, joint=bk.Revolute((0, 1, 0), damping=0.02), position=(x, 0, 0), mass=0.5, com=(0, 0, -0.25),
                   inertia=(0.01, 0.01, 0.001))
        m.add_link(f"{side}_fore", side, bk.Revolute((0, 1, 0)), actuated=False, position=(0, 0, -0.5), mass=0.7,
                   com=(0, 0, -0.35), inertia=(0.03, 0.03, 0.001))
    m.connect("right_fore", "left_fore", bk.Revolute((0, 1, 0)), "tip", position_a=(0, 0, -0.7),
              position_b=(0, 0, -0.7), actuated=False)
    return m, bk.project(m, np.array([0.6, -0.9, -0.6, 0.9]))


@pytest.mark.parametrize("limit", [np.inf, 3.0])
def test_a_mass_on_a_rail_moves_by_bounded_least_squares(limit):
    """x and v after T steps are linear in the forces, so the plan is the minimum of a bounded least-squares problem."""
    steps, h, effort, stiff = 40, 0.02, 0.05, 400.0
    r = bk.plan_motion(slider(), oc.StateGoal([0.5], 0.0, q_weight=stiff, v_weight=stiff), steps=steps, step=h,
                       effort=effort, limits=limit, tolerance=1e-14)
    k = np.arange(steps)
    of_v = np.full(steps, h / 2.0)
    of_x = h * h / 2.0 * (steps - k)
    rows = np.vstack([np.sqrt(stiff) * of_x, np.sqrt(stiff) * of_v, np.sqrt(h * effort) * np.eye(steps)])
    wanted = np.concatenate([[np.sqrt(stiff) * 0.5, 0.0], np.zeros(steps)])
    expected = lsq_linear(rows, wanted, bounds=(-limit, limit) if limit < np.inf else (-np.inf, np.inf), tol=1e-14)
    assert np.abs(r.tau[:, 0] - expected.x).max() < 1e-5
    assert r.cost == pytest.approx(expected.cost, rel=1e-9)
    assert r.converged
    assert (np.abs(r.tau).max() == 3.0) == (limit == 3.0)
    if limit == np.inf:
        assert r.iterations == 1


@pytest.mark.parametrize("goal", ["state", "point", "pose", "centre", "own"])
def test_slopes_of_goals_are_those_of_their_costs(goal):
    m = random_tree(5, kinds=("revolute", "spherical", "free", "prismatic"), links=5).m
    rng = np.random.default_rng(3)
    q, v = m.integrate(m.neutral(), 0.7 * rng.normal(size=m.nv)), rng.normal(size=m.nv)
    link = m.link_names[-1]
    wanted_q = m.integrate(q, 0.8 * rng.normal(size=m.nv))

    class Height(oc.Goal):
        def residual(self, knots):
            return knots.kinematics.com[:, 2:] - 1.0

        def jacobian(self, knots):
            J = knots.kinematics.com_jacobian[:, 2:]
            return np.concatenate([J, np.zeros_like(J)], axis=2)

    R, p = bk.poses(m, wanted_q)[link]
    g = {"state": oc.StateGoal(wanted_q, 0.3, q_weight=rng.uniform(size=m.nv), v_weight=2.0),
         "point": oc.PointGoal(link, (1, 2, 3), point=(0.1, 0.2, 0.3), weight=(1, 2, 0)),
         "pose": oc.PoseGoal(link, (R, p), weight=2.0, turn_weight=3.0),
         "centre": oc.CentreGoal((0, 0, 1), weight=3.0), "own": Height(2.0)}[goal]

    def knots(x):
        return oc.Knots(m, m.integrate(q, x[:m.nv])[None], (v + x[m.nv:])[None], np.array([0]))

    expected = columns(lambda x: g.cost(knots(x)), 2 * m.nv).ravel()
    here = knots(np.zeros(2 * m.nv))
    for kind in {type(g), oc.Goal}:  # in its own way, and by the Jacobian
        l_x, l_xx = np.zeros((1, 2 * m.nv)), np.zeros((1, 2 * m.nv, 2 * m.nv))
        if kind is oc.Goal and goal == "state":
            continue
        kind.add_slopes(g, here, 1.0, l_x, l_xx)
        assert np.abs(l_x[0] - expected).max() < 1e-7 * (1 + np.abs(expected).max())
        assert np.linalg.eigvalsh(l_xx[0]).min() > -1e-9 * np.abs(l_xx).max()


def test_an_acrobot_swings_up_and_is_followed_from_beside():
    m, up = acrobot(), [np.pi, 0.0]
    r = bk.plan_motion(m, [oc.StateGoal(up, 0.0, q_weight=1000.0, v_weight=200.0),
                           oc.StateGoal(up, 0.0, q_weight=0.04, v_weight=0.02, when="always")], steps=200, step=0.02,
                       effort=2e-3, limits=12.0, tau=np.outer(np.random.default_rng(0).normal(size=200), [0.0, 1.0]),
                       tolerance=1e-4)
    assert np.abs(m.difference(up, r.q[-1])).max() < 0.01
    assert np.abs(r.tau[:, 0]).max() == 0.0
    assert np.abs(r.tau).max() <= 12.0
    assert (np.diff(r.costs) < 0).all()
    same = bk.Simulation(m, r.q[0], solver="symplectic_euler", step=0.02, actuation=r.controller())
    same.run(until=4.0)
    assert np.abs(same.q - r.q[-1]).max() < 1e-6
    beside = bk.Simulation(m, [0.01, 0.0], solver="symplectic_euler", step=0.02, actuation=r.controller(20.0))
    beside.run(until=4.0)
    assert np.abs(m.difference(up, beside.q)).max() < 0.1


def test_nothing_beside_a_plan_of_a_body_with_quaternions_costs_less():
    """A figure in flight turns its trunk and places a hand: the slope of the whole cost by every torque is zero."""
    m = bk.models.human(dof=16)
    hand = bk.poses(m, m.neutral())["left_hand"][1]
    goals = [oc.PointGoal("left_hand", hand + np.array([0.2, 0.1, 0.1]), weight=200.0),
             oc.StateGoal(v=0.0, v_weight=0.01)]
    r = bk.plan_motion(m, goals, steps=15, step=0.02, effort=1e-3, tolerance=1e-13)
    assert r.converged

    def cost(tau):
        w.reset([0], r.q[0], r.v[0])
        w.step(tau[None])
        off = bk.poses(m, w.q[0])["left_hand"][1] - hand - (0.2, 0.1, 0.1)
        return 100.0 * off @ off + 0.005 * w.v[0] @ w.v[0] + 0.5 * 0.02 * 1e-3 * np.sum(tau**2)

    w = bk.Worlds(m, 1, step=0.02)
    motors = np.abs(r.tau).max(axis=0) > 0
    assert cost(r.tau) == pytest.approx(r.cost, rel=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(5):
        change = rng.normal(size=r.tau.shape) * motors
        slope = (cost(r.tau + 1e-4 * change) - cost(r.tau - 1e-4 * change)) / 2e-4
        assert abs(slope) < 1e-5 * r.cost * np.linalg.norm(change)


def test_jumps_of_a_first_guess_of_states_are_closed():
    m, up = acrobot(), np.array([np.pi, 0.0])
    states = np.linspace([0.0, 0.0], [0.5, -1.0], 41), np.zeros((41, 2))
    r = bk.plan_motion(m, oc.StateGoal([0.5, -1.0], 0.0, q_weight=100.0), steps=40, step=0.02, states=states,
                       effort=1e-2)
    assert r.gap == 0.0
    w = bk.Worlds(m, 1, step=0.02, q=r.q[0])
    w.step(r.tau[None])
    assert np.abs(w.q[0] - r.q[-1]).max() < 1e-9
    plain = bk.plan_motion(m, oc.StateGoal([0.5, -1.0], 0.0, q_weight=100.0), steps=40, step=0.02, effort=1e-2)
    assert r.cost == pytest.approx(plain.cost, rel=1e-4)
    assert up.shape == (2,)


def test_a_closed_chain_reaches_a_point_with_its_loop_closed():
    m, q = five_bar()
    goal, tip = np.array([0.3, 0.0, -0.6]), (0.0, 0.0, -0.7)
    r = bk.plan_motion(m, [oc.PointGoal("left_fore", goal, point=tip, weight=1e4), oc.StateGoal(v=0.0, v_weight=1.0)],
                       steps=25, step=0.02, q=q, effort=1e-2, limits={"left": 6.0, "right": 6.0}, tolerance=1e-5)
    R, p = bk.poses(m, r.q[-1])["left_fore"]
    assert np.abs(p + R @ tip - goal).max() < 1e-3
    assert np.abs(bk.constraints(m, r.q[-1], r.v[-1]).gap).max() < 1e-8
    assert np.abs(r.tau).max() <= 6.0
    sim = bk.Simulation(m, r.q[0], solver="symplectic_euler", step=0.02, actuation=r.controller())
    sim.run(until=0.5)
    assert np.abs(sim.q - r.q[-1]).max() < 1e-6


def test_wrong_goals_limits_and_guesses_are_named():
    m = acrobot()
    goal = oc.StateGoal([0.0, 0.0])
    with pytest.raises(bk.ModelError, match="when must be"):
        oc.StateGoal([0.0, 0.0], when="allways")
    with pytest.raises(bk.ShapeError, match="1 to 5"):
        bk.plan_motion(m, oc.StateGoal([0.0, 0.0], when=[7]), steps=5, step=0.01)
    with pytest.raises(bk.NamingError, match="uper"):
        bk.plan_motion(m, goal, steps=5, step=0.01, limits={"uper": 1.0})
    with pytest.raises(bk.ShapeError, match="states must have 6 rows"):
        bk.plan_motion(m, goal, steps=5, step=0.01, states=(np.zeros((5, 2)), np.zeros((5, 2))))
    with pytest.raises(bk.ShapeError, match="StateGoal: q"):
        bk.plan_motion(m, oc.StateGoal([0.0, 0.0, 0.0]), steps=5, step=0.01)
    touching = bk.Mechanism()
    touching.add_link("ball", joint=bk.Free(), actuated=True, mass=1.0, inertia=(1, 1, 1))
    touching.add_shape("ball", bk.Sphere(0.1))
    touching.add_plane()
    with pytest.raises(bk.ModelError, match="contact"):
        bk.plan_motion(touching, goal, steps=5, step=0.01)
