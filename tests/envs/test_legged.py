"""Legged tasks: ten monkey bars are crossed, hands act as actions say, motors keep to their efforts."""

import numpy as np

import bunraku as bk
from bunraku.envs.climbing import HandOverHand
from bunraku.envs.legged_tasks import BARS, SPACING
from bunraku.envs.planning import Planner
from bunraku.envs.tasks import task


def hand(own, w, side, copy=0):
    rotation, position = bk.poses(own.mechanism, w.q[copy])[f"{side}_forearm"]
    return position + rotation @ own.hands.point


def test_a_policy_crosses_ten_bars_from_several_starts():
    own = task("monkey-bars")
    w, policies = own.worlds(3, seed=1), [HandOverHand() for _ in range(3)]
    own.begin(w)
    assert len({tuple(q) for q in w.q}) == 3
    for _ in range(400):
        seen = own.seen(w)
        own.move(w, np.array([policy(row) for policy, row in zip(policies, seen, strict=True)]))
        if (w.params[:, 2] == BARS - 1).all():
            break
    assert (w.params[:, 2] - 1 == 10).all()
    assert w.running.all()
    assert not own.ends(w.q, w.v).any()
    for k in range(3):
        side = "left" if w.params[k, 0] > w.params[k, 1] else "right"
        assert abs(hand(own, w, side, k)[0] - SPACING * (BARS - 1)) < own.hands.reach


def test_hands_hold_only_what_is_in_reach_and_let_go():
    own = task("monkey-bars")
    w = own.worlds(2)
    still = np.zeros((2, 7))
    still[:, 5:] = 1.0
    still[1, 5:] = -1.0  # opens both hands
    before = own.seen(w)
    assert before[:, 14:16].all()
    np.testing.assert_allclose(before[0, 16:20], [-2 * SPACING, 0, -SPACING, 0], atol=1e-12)
    own.move(w, still)
    assert w.connected("left_hand").tolist() == [True, False]
    for _ in range(10):
        own.move(w, still)
    for _ in range(10):
        own.move(w, np.abs(still))  # closes them again, out of reach
    assert own.seen(w)[:, 14:16].tolist() == [[1, 1], [0, 0]]
    np.testing.assert_allclose(hand(own, w, "right"), [SPACING, -0.14, 0], atol=1e-7)
    fallen = w.q[1, 1] - w.q[0, 1]
    assert -0.5 * 9.81 * 0.42**2 - 0.2 < fallen < -0.4
    while not own.ends(w.q, w.v)[1]:
        own.move(w, still)
    own.begin(w, [1])
    assert w.connected("left_hand").all()
    assert own.seen(w)[1, 14:16].all()


def test_plans_may_let_go_and_branches_remember_grips():
    own = task("monkey-bars")
    w = own.worlds(1)
    planner = Planner(own, samples=6, horizon=4)
    action = planner.plan(w.snapshot())
    assert np.isfinite(planner.costs).all()
    assert (np.abs(action) <= 1.0).all()
    assert w.connected("left_hand").all()  # only futures have moved


def test_a_quadruped_stands_and_legs_obey_their_efforts():
    own = task("quadruped")
    w = own.worlds(8)
    for _ in range(50):
        own.move(w, np.zeros((8, 12)))
    assert not own.ends(w.q, w.v).any()
    assert (np.abs(w.v) < 0.3).all()
    assert (np.abs(w.q[:, 2]) < 0.05).all()
    tau = np.full(own.mechanism.nv, 50.0)
    own.motors(0.0, w.q[0], 10.0 * np.ones(own.mechanism.nv), np.zeros(0), tau)
    assert (tau[6:] == own.mechanism.effort[6:]).all()


def test_a_closed_chain_leg_jumps_by_its_motors_and_stays_closed():
    own = task("hopping-leg")
    w = own.worlds(1)
    assert (own.torques(own.high[None])[0] <= own.mechanism.effort).all()
    high = 0.0
    for k in range(60):
        v = w.v[0]
        push = 1.0 if 20 <= k < 32 else 0.0
        lean = np.array([[push - 0.1 * v[2] * (push == 0), -push - 0.1 * v[4] * (push == 0)]])
        own.move(w, np.clip(lean, -1, 1))
        high = max(high, w.q[0, 1])
    assert w.running.all()
    assert high > 0.03
    assert np.abs(bk.constraints(own.mechanism, w.q[0]).gap).max() < 1e-8


def test_a_leg_goes_on_where_its_foot_leaves_the_ground_by_itself():
    """An overlap that ends within the step is none to remove, not even where impulses seem to gain energy."""
    q = [0.0130114840, -0.1426385328, -0.7581170972, 0.8934534281, 0.8988446200, -0.9225177893]
    v = [0.0453297084, -0.5257465554, -3.3500084062, 3.3426992950, 6.0220681762, -3.9256550423]
    tau = np.array([0.0, 0.0, -2.8837112762, 0.0, -12.9715320588, 0.0])
    m = task("hopping-leg").mechanism
    sim = bk.Simulation(m, *bk.project(m, q, v), solver="symplectic_euler", step=1e-3, actuation=lambda t, q, v: tau)
    sim.advance(0.02)
    assert np.isfinite(sim.v).all()
