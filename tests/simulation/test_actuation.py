"""Actuation, compiled or plain: the same motion, and an error that says what is wrong with one that fails."""

import os
import threading

import numba
import numpy as np
import pytest

import bunraku as bk
from bunraku.jit import JIT_OFF
from moving import pendulum


@bk.actuation
def brake(t, q, v, params, tau):
    for j in range(len(v)):
        tau[j] = -params[0] * v[j]


# -- what it does ----------------------------------------------------------------------------------------------------


def test_compiled_and_plain_actuation_give_the_same_motion():
    m = bk.models.human(16)
    v = np.random.default_rng(1).normal(size=m.nv)
    compiled = bk.Simulation(m, v=v, actuation=brake, params=[0.5]).run(0.3)
    plain = bk.Simulation(m, v=v, actuation=lambda t, q, v: -0.5 * v).run(0.3)
    np.testing.assert_allclose(plain.q[-1], compiled.q[-1], rtol=1e-12, atol=1e-12)
    assert len(plain.t) == len(compiled.t)


def test_parameters_may_change_between_and_during_runs():
    params = np.array([0.0])
    sim = bk.Simulation(pendulum(), [1.0], actuation=brake, params=params, rtol=1e-8, atol=1e-10)
    sim.run(2.0)
    free = sum(sim.mechanism.energy(sim.q, sim.v))
    assert free == pytest.approx(sum(sim.mechanism.energy([1.0], [0.0])), rel=1e-6)
    params[0] = 1.0
    sim.run(6.0)
    assert sum(sim.mechanism.energy(sim.q, sim.v)) < free - 0.5


def test_a_plain_actuation_may_return_zeros_for_no_torque():
    quiet = bk.Simulation(pendulum(), [1.0], actuation=lambda t, q, v: np.zeros(1)).run(1.0)
    np.testing.assert_array_equal(quiet.q, bk.Simulation(pendulum(), [1.0]).run(1.0).q)


def test_simulations_run_side_by_side_in_threads():
    m = bk.models.human(34)
    starts = [np.random.default_rng(k).normal(size=m.nv) for k in range(4)]
    alone = [bk.Simulation(m, v=v).run(0.2).q[-1] for v in starts]
    together: dict[int, np.ndarray] = {}
    threads = [threading.Thread(target=lambda k=k, v=v: together.update({k: bk.Simulation(m, v=v).run(0.2).q[-1]}))
               for k, v in enumerate(starts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        np.testing.assert_array_equal(together[k], alone[k])


# -- what it must not be ---------------------------------------------------------------------------------------------


def test_a_plain_actuation_that_raises_stops_the_run_and_keeps_what_was_computed():
    def fails(t, q, v):
        if t > 0.5:
            raise ZeroDivisionError("no such torque")
        return [0.0]

    sim = bk.Simulation(pendulum(), [1.0], actuation=fails)
    with pytest.raises(bk.SimulationError, match="ZeroDivisionError: no such torque") as caught:
        sim.run(2.0)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert 0.3 < caught.value.trajectory.t[-1] <= 0.5
    assert sim.t == caught.value.trajectory.t[-1]


def test_an_actuation_of_the_wrong_length_says_so():
    with pytest.raises(bk.SimulationError, match=r"\(2,\).*\(1,\)"):
        bk.Simulation(pendulum(), actuation=lambda t, q, v: [0.0, 0.0]).run(1.0)


@bk.actuation
def square_root(t, q, v, params, tau):
    tau[0] = np.sqrt(0.5 - t)


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("options", [{}, {"solver": "symplectic_euler", "step": 0.01}])
def test_a_torque_that_is_not_a_number_stops_the_run_naming_time_and_joint(options):
    with pytest.raises(bk.SimulationError, match=r"t = 0\.5.*'rod' is nan") as caught:
        bk.Simulation(pendulum(), [1.0], actuation=square_root, **options).run(2.0)
    assert caught.value.trajectory.t[-1] == pytest.approx(0.5, abs=0.011)
    assert np.isfinite(caught.value.trajectory.q).all()


def test_a_torque_in_a_connection_that_is_not_a_number_is_named():
    m = bk.models.four_bar()
    m.connect("ground", m.link_names[0], bk.Free(), name="handle", actuated=True)

    def handle(t, q, v):
        tau = np.zeros(m.nv + m.nc)
        tau[m.drive_slice("handle")] = np.nan if t > 0.1 else 0.0
        return tau

    with pytest.raises(bk.SimulationError, match=r"of connection 'handle' is nan, from the actuation at t = 0\.10000"):
        bk.Simulation(m, actuation=handle).run(1.0)


def test_an_actuation_that_cannot_be_compiled_says_why():
    @bk.actuation
    def mistaken(t, q, v, params, tau):
        tau[0] = nowhere  # noqa: F821

    with pytest.raises(bk.ModelError, match=r"actuation 'mistaken' cannot be compiled.*'nowhere' is not defined"):
        bk.Simulation(pendulum(), actuation=mistaken).run(1.0)
    with pytest.raises(bk.ModelError, match=r"\(t, q, v, params, tau\)"):
        bk.actuation(lambda t, q, v: None)


# -- compiled user functions -----------------------------------------------------------------------------------------


@numba.njit
def seventh(array):
    return array[7]


def far_write(t, q, v, params, tau):
    tau[10**9] = 1.0


def near_write(t, q, v, params, tau):
    tau[7] = 1.0


def far_read(t, q, v, params, tau):
    tau[0] = -params[5]


def below(t, q, v, params, tau):
    tau[0] = q[-3]


def helper(t, q, v, params, tau):
    tau[0] = seventh(q)


RUNS = {
    "run": lambda law: bk.Simulation(pendulum(), actuation=law, params=[1.0]).run(until=0.1),
    "torque": lambda law: bk.Simulation(pendulum(), actuation=law, params=[1.0]).torque(0.0, np.zeros(1), np.zeros(1)),
    "rollout": lambda law: bk.rollout(pendulum(), np.zeros((2, 1)), until=0.1, actuation=law, params=[1.0]),
    "lanes": lambda law: bk.rollout(pendulum(), np.zeros((2, 1)), until=0.1, actuation=law, params=[1.0], solver="rk4",
                                    step=0.01),
}


@pytest.mark.parametrize(("law", "index"), [(far_write, 10**9), (near_write, 7), (far_read, 5), (below, -3),
                                             (helper, 7)])
@pytest.mark.parametrize("how", RUNS)
def test_an_index_out_of_bounds_in_a_compiled_actuation_is_an_error(law, index, how):
    with pytest.raises((bk.SimulationError, IndexError)) as caught:
        RUNS[how](bk.actuation(law))
    said = str(caught.value) + " ".join(getattr(caught.value, "__notes__", ()))
    assert f"index {index} is out of bounds" in said
    assert f"{os.path.basename(__file__)}, line" in said
    assert "q has 1 entries, v 1, params 1, tau 1" in said


def test_an_index_out_of_bounds_in_a_compiled_condition_is_an_error():
    @numba.njit
    def over(t, q, v):
        return q[40]

    sim = bk.Simulation(pendulum())
    sim.when(over, lambda s: True)
    with pytest.raises(bk.SimulationError, match=r"'over'.*index 40 is out of bounds"):
        sim.run(until=0.1)


@pytest.mark.skipif(JIT_OFF, reason="about types of compiled functions")
def test_a_compiled_actuation_that_returns_torques_is_refused():
    @bk.actuation
    def law(t, q, v, params, tau):
        return -10.0 * q

    with pytest.raises(bk.ModelError, match=r"'law' returns a value.*write the torques into tau"):
        bk.Simulation(pendulum(), [0.1], actuation=law).run(until=0.1)


@pytest.mark.skipif(JIT_OFF, reason="about types of compiled functions")
def test_a_compiled_function_cannot_change_the_state_behind_the_solver():
    @bk.actuation
    def law(t, q, v, params, tau):
        q[0] = 0.0

    with pytest.raises(bk.ModelError, match=r"'law' writes into q or v.*sim\.set_state"):
        bk.Simulation(pendulum(), [0.1], actuation=law).run(until=0.1)

    @bk.actuation
    def counts(t, q, v, params, tau):
        params[0] += 1.0  # its own memory

    sim = bk.Simulation(pendulum(), [0.1], actuation=counts, params=[0.0])
    sim.run(until=0.1)
    assert sim.params[0] >= sim.stats.evaluations > 0


@pytest.mark.skipif(JIT_OFF, reason="about types of compiled functions")
def test_helpers_compiled_for_writable_arrays_only_can_still_be_called():
    @numba.njit("float64(float64[::1])")
    def first(array):
        return array[0]

    @bk.actuation
    def law(t, q, v, params, tau):
        tau[0] = -first(q)

    sim = bk.Simulation(pendulum(), [0.1], actuation=law)
    assert sim.torque(0.0, np.array([0.3]), np.zeros(1))[0] == -0.3


@pytest.mark.parametrize(("answer", "words"), [(None, "returned None.*return tau"), ("all", "returned str"),
                                               ([1.0, 2.0], "shape")])
def test_a_plain_actuation_that_returns_no_torques_is_refused(answer, words):
    sim = bk.Simulation(pendulum(), [0.1], actuation=lambda t, q, v: answer)
    with pytest.raises(bk.SimulationError, match=words):
        sim.run(until=0.1)
    with pytest.raises(bk.ShapeError, match=words):
        sim.torque(0.0, sim.q, sim.v)


# -- errors and changes within a step --------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["gear", "tsit5", "bdf", "implicit"])
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_what_an_actuation_raises_once_ends_the_run(solver, kind):
    """No shorter step may hide it."""
    calls = [0]

    def act(t, q, v):
        calls[0] += 1
        if calls[0] == 30:
            raise kind("once")
        return np.zeros(1)

    sim = bk.Simulation(pendulum(), [1.0], solver=solver, actuation=act)
    with pytest.raises(bk.SimulationError if kind is ValueError else kind):
        sim.run(2.0)
    assert 0.0 < sim.t < 2.0
    sim.run(2.0)  # it goes on from there
    assert sim.t == 2.0


@pytest.mark.parametrize("do", [lambda s: s.set_state(q=[0.5]), lambda s: s.impulse("rod", (1.0, 0.0, 0.0)),
                                lambda s: s.cut("rod"), lambda s: s.run(3.0)])
def test_nothing_changes_within_a_step(do):
    calls = [0]

    def act(t, q, v):
        calls[0] += 1
        if calls[0] == 30:
            do(sim)
        return np.zeros(1)

    sim = bk.Simulation(pendulum(), [1.0], actuation=act)
    with pytest.raises(bk.SimulationError, match="not allowed during a step"):
        sim.run(2.0)
    assert (np.diff(sim.trajectory.t) > 0).all()


def test_parameters_that_are_not_a_number_are_refused_and_infinity_is_a_limit_like_any_other():
    m = pendulum()
    for params in ([0.5, np.nan], np.array([0.5, np.nan])):
        with pytest.raises(bk.ShapeError, match=r"params must be numbers, but params\[1\] is nan"):
            bk.Simulation(m, actuation=brake, params=params)
        with pytest.raises(bk.ShapeError, match=r"params\[1\] is nan"):
            bk.rollout(m, m.neutral(), until=0.1, actuation=brake, params=params)
    sim = bk.Simulation(m, actuation=brake, params=[0.5, np.inf])
    with pytest.raises(bk.ShapeError, match=r"params\[0\] is nan"):
        sim.params = [np.nan]
    assert list(sim.params) == [0.5, np.inf]
