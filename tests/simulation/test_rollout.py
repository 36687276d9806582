"""Rollouts of batches: each state moves as in a simulation of its own, whatever else is in the batch."""

import threading

import numpy as np
import pytest

import bunraku as bk
from bunraku.spatial.lanes import WIDTH

EULER = {"solver": "symplectic_euler", "step": 0.002}


RK4 = {"solver": "rk4", "step": 0.002}


@bk.actuation
def pull(t, q, v, params, tau):
    if params[2] > 0.0 and t > params[2]:
        raise ValueError
    for j in range(len(tau)):
        tau[j] = params[0] * np.sin(3.0 * t) - params[1] * v[j]


def everything():
    """A tree with every kind of coordinate and of passive force."""
    m = bk.Mechanism(name="everything")
    solid = {"mass": 1.0, "com": (0.05, 0.0, -0.1), "inertia": (0.02, 0.03, 0.01)}
    m.add_link("base", joint=bk.Free(), **solid)
    m.add_link("arm", "base", bk.Revolute((0, 1, 0), stiffness=2.0, damping=0.1, armature=0.02), position=(0, 0, 0.3),
               **solid)
    m.add_link("ball", "arm", bk.Spherical(stiffness=1.0, damping=0.05), position=(0, 0, -0.3), **solid)
    m.add_link("slide", "base", bk.Prismatic((1, 0, 0), damping=0.5), position=(0, 0.2, 0), **solid)
    m.add_link("screw", "base", bk.Helical((0, 0, 1), 0.05), position=(0, -0.2, 0), **solid)
    m.add_link("flat", "slide", bk.Planar((0, 0, 1)), position=(0.1, 0, 0), **solid)
    m.add_spring("base", "ball", stiffness=5.0, rest_length=0.2)
    return m


def starts(m, count, seed=0, speed=1.0):
    rng = np.random.default_rng(seed)
    q = m.integrate(np.tile(m.neutral(), (count, 1)), 0.4 * rng.normal(size=(count, m.nv)))
    return q, speed * rng.normal(size=(count, m.nv))


def simulated(m, q, v, times, **settings):
    """States at times, of a simulation by itself."""
    sim, states = bk.Simulation(m, q, v, **settings), []
    for t in times:
        sim.run(t)
        states.append((sim.q, sim.v))
    return sim, np.array([q for q, _ in states]), np.array([v for _, v in states])


# -- the same as simulations -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [lambda: bk.models.human(34), lambda: bk.models.chain(5), everything])
@pytest.mark.parametrize("count", [1, 2, WIDTH, 2 * WIDTH + 3])
@pytest.mark.parametrize("settings", [EULER, RK4])
def test_fixed_steps_equal_simulations(build, count, settings):
    m = build()
    q, v = starts(m, count)
    times = [0.0, 0.05, 0.0731, 0.1]  # the third between two steps
    r = bk.rollout(m, q, v, times=times, **settings)
    assert r.q.shape == (count, 4, m.nq)
    assert r.v.shape == (count, 4, m.nv)
    for k in {0, count // 2, count - 1}:
        sim, q_k, v_k = simulated(m, q[k], v[k], times, **settings)
        np.testing.assert_allclose(r.q[k], q_k, rtol=0, atol=1e-12)
        np.testing.assert_allclose(r.v[k], v_k, rtol=0, atol=1e-11)
        assert r.steps[k] == sim.stats.steps
        assert abs(r.steps[k] - 51) <= 2
    assert (r.reached == 0.1).all()
    assert r.failed == ()


@pytest.mark.parametrize("solver", ["gear", "implicit", "tsit5"])
def test_adaptive_steps_equal_simulations(solver):
    m = everything()
    q, v = starts(m, 7)
    r = bk.rollout(m, q, v, times=[0.1, 0.3], solver=solver, workers=2)
    for k in (0, 6):
        sim, q_k, v_k = simulated(m, q[k], v[k], [0.1, 0.3], solver=solver)
        assert (r.q[k] == q_k).all()
        assert (r.v[k] == v_k).all()
        assert (r.steps[k], r.rejected[k], r.evaluations[k]) == (sim.stats.steps, sim.stats.rejected,
                                                                 sim.stats.evaluations)


@pytest.mark.parametrize("settings", [EULER, {}])
def test_loops_stay_closed(settings):
    m = bk.models.four_bar()
    q, v = bk.project(m, m.neutral(), np.full(m.nv, 0.5))
    r = bk.rollout(m, np.array([q, q]), np.array([v, 0.0 * v]), until=0.1, **settings)
    sim, q_k, _ = simulated(m, q, v, [0.1], **settings)
    assert (r.q[0] == q_k).all()
    assert r.loop_error[0] == sim.stats.loop_error
    assert max(np.abs(bk.constraints(m, x).gap).max() for x in r.q[:, -1]) < 1e-8


@pytest.mark.parametrize("settings", [EULER, RK4, {}])
def test_workers_and_neighbours_change_nothing(settings):
    m = bk.models.human(16)
    q, v = starts(m, 3 * WIDTH + 1)
    r = bk.rollout(m, q, v, until=0.05, workers=1, **settings)
    for workers in (2, 3):
        assert (bk.rollout(m, q, v, until=0.05, workers=workers, **settings).q == r.q).all()
    part = bk.rollout(m, q[5:8], v[5:8], until=0.05, **settings)
    np.testing.assert_allclose(part.q, r.q[5:8], rtol=0, atol=1e-13)
    assert r.workers == 1


def test_the_classical_method_has_order_four():
    m = everything()
    q, v = starts(m, 2)
    exact = bk.rollout(m, q, v, until=0.2, rtol=1e-12, atol=1e-13)
    errors = [np.abs(bk.rollout(m, q, v, until=0.2, solver="rk4", step=h).v - exact.v).max() for h in (0.02, 0.01)]
    assert 3.6 < np.log2(errors[0] / errors[1]) < 4.6


def test_quick_turns_take_the_long_way():
    """Beyond a radian a step, where polynomials do not reach."""
    m = bk.Mechanism(gravity=(0, 0, 0))
    m.add_link("top", joint=bk.Free(), mass=1.0, inertia=(0.1, 0.1, 0.1))
    v = np.zeros((WIDTH, 6))
    v[:, 5] = np.linspace(0.1, 3000.0, WIDTH)  # up to six radians a step
    v[:, 0] = 1.0
    r = bk.rollout(m, None, v, until=0.002, solver="symplectic_euler", step=0.002)
    for k in range(WIDTH):
        sim = bk.Simulation(m, None, v[k], **EULER)
        sim.run(0.002)
        turned = m.integrate(m.neutral(), 0.002 * r.v[k, 0])
        np.testing.assert_allclose(r.q[k, 0], turned, atol=1e-13)
        np.testing.assert_allclose(r.q[k, 0], sim.q, atol=1e-13)


@pytest.mark.parametrize("solver", ["gear", "bdf", "implicit", "tsit5"])
def test_times_a_rounding_apart_cost_no_steps(solver):
    m = bk.models.human(dof=16)
    v = np.random.default_rng(1).normal(size=m.nv)
    close = bk.rollout(m, v=v, times=[1e-160, 0.3, 0.1 + 0.2, 1.0], solver=solver)
    alone = bk.rollout(m, v=v, until=1.0, solver=solver)
    assert close.steps <= 1.3 * alone.steps + 12
    np.testing.assert_allclose(close.q[-1], alone.q[-1], atol=1e-3)
    np.testing.assert_allclose(close.q[1], close.q[2], atol=1e-14)


def test_one_state_has_no_batch_axis():
    m = bk.models.chain(3)
    r = bk.rollout(m, v=np.ones(m.nv), times=[0.1, 0.2], **EULER)
    assert r.q.shape == (2, m.nq)
    assert r.steps == 100
    assert "one state" in repr(r)
    trajectory = r.trajectory()
    assert trajectory.t.tolist() == [0.1, 0.2]


def test_a_motion_of_a_batch_is_a_trajectory(tmp_path):
    m = bk.models.chain(3)
    r = bk.rollout(m, v=starts(m, 4)[1], times=np.linspace(0.0, 0.1, 6), **EULER)
    trajectory = r.trajectory(2)
    assert len(trajectory.t) == 6
    assert (bk.load_trajectory(trajectory.save(tmp_path / "two")).q == r.q[2]).all()
    with pytest.raises(bk.ShapeError, match="which state"):
        r.trajectory()


# -- actuation -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [EULER, RK4, {}])
def test_every_state_has_its_own_parameters(settings):
    m = everything()
    q, v = starts(m, WIDTH + 3)
    params = np.array([[0.5 * k, 0.1, 0.0] for k in range(len(q))])
    r = bk.rollout(m, q, v, until=0.1, actuation=pull, params=params, workers=2, **settings)
    shared = bk.rollout(m, q, v, until=0.1, actuation=pull, params=params[4], **settings)
    for k in (0, 4, WIDTH + 2):
        _, q_k, _ = simulated(m, q[k], v[k], [0.1], actuation=pull, params=params[k], **settings)
        np.testing.assert_allclose(r.q[k], q_k, rtol=0, atol=1e-12)
    assert (shared.q[4] == r.q[4]).all()
    assert not np.allclose(shared.q[0], r.q[0])
    only = bk.rollout(m, q[0], v[0], until=0.1, actuation=pull, params=params, **settings)  # parameters make the batch
    assert only.q.shape == (len(q), 1, m.nq)


@pytest.mark.parametrize("settings", [EULER, {}])
@pytest.mark.parametrize("workers", [None, 2])
def test_plain_python_drives_a_batch(settings, workers):
    m = bk.models.chain(3)
    q, v = starts(m, WIDTH + 1)
    r = bk.rollout(m, q, v, until=0.05, actuation=lambda t, q, v: -v, workers=workers, **settings)
    _, q_k, _ = simulated(m, q[-1], v[-1], [0.05], actuation=lambda t, q, v: -v, **settings)
    np.testing.assert_allclose(r.q[-1], q_k, rtol=0, atol=1e-12)
    assert r.workers == (workers or 1)


# -- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [EULER, RK4, {}])
def test_failing_states_are_all_named_and_disturb_nobody(settings):
    m = bk.models.human(34)
    q, v, other = *starts(m, 2 * WIDTH + 1), WIDTH + 1
    good = bk.rollout(m, q, v, times=[0.01, 0.02], **settings)
    bad_q, bad_v = q.copy(), v.copy()
    bad_v[1, 3], bad_q[2, 3:7], bad_v[other] = np.nan, 0.0, 1e200
    with pytest.raises(bk.SimulationError, match="3 of 17 states" if WIDTH == 8 else "3 of") as caught:
        bk.rollout(m, bad_q, bad_v, times=[0.01, 0.02], **settings)
    error, result = caught.value, caught.value.result
    assert error.states == result.failed == (1, 2, other)
    assert f"state {other}: the motion cannot go on at t = 0 s" in str(error)
    assert "v[3] of joint 'root' is nan" in str(error)
    assert "quaternion" in str(error)
    fine = [k for k in range(len(q)) if k not in error.states]
    assert (result.q[fine] == good.q[fine]).all()
    assert (result.v[fine] == good.v[fine]).all()
    assert np.isnan(result.q[list(error.states)]).all()
    assert (result.reached[fine] == 0.02).all()
    assert (result.reached[list(error.states)] == 0).all()


@pytest.mark.parametrize("settings", [EULER, RK4, {}])
def test_actuations_that_fail_are_told_apart(settings):
    m = bk.models.chain(3)
    q, v = starts(m, WIDTH + 2)
    params = np.zeros((len(q), 3))
    params[3, 2] = 0.0115  # fails from then on
    with pytest.raises(bk.SimulationError, match=r"state 3: the actuation failed at t = 0\.01") as caught:
        bk.rollout(m, q, v, times=[0.005, 0.05], actuation=pull, params=params, **settings)
    result = caught.value.result
    assert caught.value.states == (3,)
    assert np.isfinite(result.q[3, 0]).all()
    assert np.isnan(result.q[3, 1]).all()
    assert np.isfinite(np.delete(result.q, 3, axis=0)).all()
    assert 0.005 < result.reached[3] < 0.02
    assert len(result.trajectory(3).t) == 1


def test_errors_in_python_keep_their_words():
    def fussy(t, q, v):
        if t > 0.01 and v[0] > 1.5:
            raise ValueError(f"too fast: {v[0]:.0f}")
        return np.zeros(2)

    v = np.array([[1.0, 0.0]] * 3 + [[2.0, 0.0], [8.0, 0.0]])
    m = bk.Mechanism(gravity=(0, 0, 0))
    m.add_link("a", joint=bk.Prismatic((1, 0, 0)), mass=1.0)
    m.add_link("b", "a", bk.Prismatic((0, 1, 0)), mass=1.0)
    for settings in (EULER, {}):
        with pytest.raises(bk.SimulationError, match="too fast: 8") as caught:
            bk.rollout(m, None, v, until=0.1, actuation=fussy, **settings)
        assert caught.value.states == (3, 4)
        assert "state 3: the actuation failed" in str(caught.value)
        assert "too fast: 2" in str(caught.value)
        assert isinstance(caught.value.__cause__, ValueError)


def test_an_interrupt_ends_all_of_it():
    m = bk.models.chain(2)

    def interrupted(t, q, v):
        if t > 0.01:
            raise KeyboardInterrupt
        return np.zeros(m.nv)

    for settings in (EULER, {}):
        with pytest.raises(KeyboardInterrupt):
            bk.rollout(m, starts(m, 20)[0], until=1.0, actuation=interrupted, **settings)
    assert threading.active_count() < 200


def test_open_loops_are_named():
    m = bk.models.four_bar()
    q, v = bk.project(m, m.neutral(), np.zeros(m.nv))
    with pytest.raises(bk.SimulationError, match=r"state 1: cannot start: connection .* is open by") as caught:
        bk.rollout(m, np.array([q, q + 0.3]), np.array([v, v]), until=0.02)
    assert caught.value.states == (1,)
    assert np.isfinite(caught.value.result.q[0]).all()


@bk.actuation
def drive_on(t, q, v, params, tau):
    """Torques that grow with the speed."""
    for j in range(len(v)):
        tau[j] = params[0] * v[j] * abs(v[j])


@pytest.mark.parametrize("settings", [EULER, RK4, {}, {"solver": "tsit5"}, {"solver": "implicit"}])
def test_a_state_that_diverges_with_loops_loses_nobody(settings):
    m = bk.models.four_bar()
    q, v = bk.project(m, m.neutral(), np.ones(3))
    good = bk.rollout(m, q, v, times=[0.05, 0.1], actuation=drive_on, params=[0.0], **settings)
    with pytest.raises(bk.SimulationError, match=r"1 of 3 states .*\n  state 1: ") as caught:
        bk.rollout(m, np.array([q, q, q]), v, times=[0.05, 0.1], actuation=drive_on, params=[[0.0], [1e3], [0.0]],
                   **settings)
    error, result = caught.value, caught.value.result
    assert error.states == result.failed == (1,)
    assert result.reached[1] < 0.05
    assert np.isnan(result.q[1]).all()
    for k in (0, 2):
        assert (result.q[k] == good.q).all()
        assert (result.v[k] == good.v).all()


def test_one_failing_state_is_told_plainly():
    m = bk.models.chain(2)
    with pytest.raises(bk.SimulationError, match=r"^cannot start: v\[0\]"):
        bk.rollout(m, None, [np.nan, 0.0], until=0.1)


@pytest.mark.parametrize(("arguments", "words"), [
    ({"until": 1.0, "times": [1.0]}, "not both"),
    ({}, "say how long"),
    ({"until": -1.0}, "from 0 s on"),
    ({"until": np.nan}, "from 0 s on"),
    ({"times": [0.2, 0.1]}, "increase"),
    ({"times": []}, "increase"),
    ({"until": 1.0, "q": np.zeros((3, 5))}, "q has shape"),
    ({"until": 1.0, "q": np.zeros((3, 2)), "v": np.zeros((4, 2))}, "different size"),
    ({"until": 1.0, "q": np.zeros((0, 2))}, "without any states"),
    ({"until": 1.0, "params": np.zeros((2, 2, 2)), "actuation": pull}, "params has shape"),
    ({"until": 1.0, "params": np.zeros((2, 2))}, "params of a batch"),
    ({"until": 1.0, "workers": 0}, "workers must be"),
    ({"until": 1.0, "solver": "symplectic_euler"}, "fixed step"),
    ({"until": 1.0, "solver": "euler"}, "is not one of"),
])
def test_what_makes_no_sense_is_refused(arguments, words):
    with pytest.raises(bk.BunrakuError, match=words):
        bk.rollout(bk.models.chain(2), **arguments)


def test_contact_points_that_only_some_states_have_leave_the_others_alone():
    """Capsules have one contact where they cross, and further ones along a part that they share."""
    m = bk.Mechanism()
    m.add_plane()
    for name in "ab":
        m.add_link(name, joint=bk.Free(), mass=1.0, inertia=(0.02, 0.02, 0.01))
        m.add_shape(name, bk.Capsule(0.1, 0.4))
    q = np.tile(m.neutral(), (2 * WIDTH, 1))
    q[:, 2], q[:, 9] = 0.103, 0.306
    q[:, 3:7] = np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0               # on its side
    angle = np.where(np.arange(len(q)) % 3 == 0, 0.0, np.pi / 2)   # the other one along it, or across
    q[:, 10:14] = np.sqrt(0.5) * np.stack([np.cos(angle / 2), -np.sin(angle / 2), np.cos(angle / 2),
                                           np.sin(angle / 2)], axis=1)
    r = bk.rollout(m, q, until=0.1, **EULER)
    assert r.failed == ()
    assert np.isfinite(r.q).all()
    for k in (0, 1):
        alone = bk.rollout(m, q[[k, k]], until=0.1, **EULER)
        assert (alone.q[0] == r.q[k]).all()
        assert abs(r.q[k, 0, 2] - 0.1) < 1e-3
