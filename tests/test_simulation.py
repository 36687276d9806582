"""Simulations: laws kept over time, actuation of both kinds, recordings, and what happens when something fails."""

import os
import signal
import subprocess
import sys
import threading
import time

import numba
import numpy as np
import pytest

import bunraku as bk
from bunraku.jit import JIT_OFF
from bunraku.simulation.trajectory import Event, Segment


def pendulum(**joint):
    m = bk.Mechanism(name="pendulum")
    m.add_link("rod", joint=bk.Revolute((0, 1, 0), **joint), position=(0, 0, 1), mass=1.0, com=(0, 0, -0.5),
               inertia=(0.02, 0.02, 0.001))
    return m


@bk.actuation
def brake(t, q, v, params, tau):
    for j in range(len(v)):
        tau[j] = -params[0] * v[j]


# -- physics -------------------------------------------------------------------------------------------------------


def test_a_small_swing_has_the_period_of_a_physical_pendulum():
    sim = bk.Simulation(pendulum(), [1e-3], rtol=1e-10, atol=1e-13)
    period = 2 * np.pi * np.sqrt((0.02 + 0.25) / (9.81 * 0.5))
    sim.run(10 * period)
    assert sim.q[0] == pytest.approx(1e-3, rel=1e-5)
    assert abs(sim.v[0]) < 1e-7


@pytest.mark.parametrize("dof", [16, 34, 48])
def test_a_figure_in_free_flight_keeps_energy_and_momentum(dof):
    m = bk.models.human(dof)
    rng = np.random.default_rng(dof)
    sim = bk.Simulation(m, m.neutral(), rng.normal(size=m.nv), rtol=1e-9, atol=1e-10)
    trajectory = sim.run(0.5)
    _, kinetic, potential = trajectory.energy()
    start, end = bk.kinematics(m, trajectory.q[0], trajectory.v[0]), bk.kinematics(m, sim.q, sim.v)
    assert np.ptp(kinetic + potential) < 1e-6 * kinetic[0]
    np.testing.assert_allclose(end.momentum[3:], start.momentum[3:], atol=1e-7 * np.abs(start.momentum).max())
    fall = start.com + 0.5 * start.com_velocity + 0.5 * m.gravity * 0.5**2
    np.testing.assert_allclose(end.com, fall, atol=1e-7)


def test_quaternions_stay_unit():
    m = bk.models.chain(4, joint="spherical")
    trajectory = bk.Simulation(m, v=np.random.default_rng(0).normal(size=m.nv)).run(3.0)
    lengths = np.linalg.norm(trajectory.q.reshape(len(trajectory.t), 4, 4), axis=2)
    np.testing.assert_allclose(lengths, 1.0, atol=1e-14)


def test_springs_and_limits_act_during_a_run():
    m = pendulum(damping=0.5, upper=0.3, limit_stiffness=500.0, limit_damping=1.0)
    m.add_spring("ground", "rod", position_a=(-1.0, 0, 0.5), position_b=(0, 0, -0.5), stiffness=40.0, damping=2.0)
    sim = bk.Simulation(m)
    sim.run(20.0)
    assert 0.3 < sim.q[0] < 0.4  # pulled against the limit, which gives a little
    assert abs(bk.forward_dynamics(m, sim.q, np.zeros(1))[0]) < 1e-4  # and at rest there


# -- actuation -----------------------------------------------------------------------------------------------------


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


# -- recordings ----------------------------------------------------------------------------------------------------


def test_a_simulation_works_on_its_own_copy():
    m = pendulum()
    sim = bk.Simulation(m, [0.5])
    m.add_link("more", "rod", bk.Revolute((0, 1, 0)), mass=1.0, inertia=(0.1, 0.1, 0.1))
    assert sim.run(0.1).q.shape[1] == 1


def test_a_run_goes_on_where_the_last_one_ended():
    at_once = bk.Simulation(pendulum(), [1.0], rtol=1e-9, atol=1e-11)
    at_once.run(2.0)
    in_parts = bk.Simulation(pendulum(), [1.0], rtol=1e-9, atol=1e-11)
    in_parts.run(0.7)
    trajectory = in_parts.run(2.0)
    assert trajectory.t[0] == 0.0
    assert trajectory.t[-1] == 2.0
    assert np.all(np.diff(trajectory.t) > 0)
    np.testing.assert_allclose(in_parts.q, at_once.q, atol=1e-7)


@pytest.mark.parametrize("name", ["motion", "motion.v2", "motion.npz"])
def test_a_trajectory_is_loaded_by_the_name_it_was_saved_under(tmp_path, name):
    trajectory = bk.Simulation(pendulum(), [0.1]).run(0.1)
    file = trajectory.save(tmp_path / name)
    assert (bk.load_trajectory(tmp_path / name).q == trajectory.q).all()
    assert (bk.load_trajectory(str(file)).q == trajectory.q).all()
    with pytest.raises(bk.MissingFileError, match=r"other\.npz: there is no such file"):
        bk.load_trajectory(tmp_path / "other")


def test_a_saved_trajectory_reads_back_the_same_with_its_mechanism(tmp_path):
    m = pendulum(damping=0.1, lower=-1.0, stiffness=2.0)
    m.add_link("two", "rod", bk.Compound(bk.Revolute((1, 0, 0), at=(0, 0, 0.1)), bk.Prismatic((0, 0, 1))),
               mass=0.5, com=(0, 0, 0.2), inertia=(0.01, 0.01, 0.01))
    m.add_link("ball", "two", bk.Spherical(upper=1.0, limit_stiffness=3.0), mass=0.1, inertia=(0.01, 0.01, 0.01))
    m.add_spring("ground", "ball", stiffness=3.0, rest_length=0.2, name="elastic")
    trajectory = bk.Simulation(m, v=np.ones(m.nv)).run(0.5)
    again = bk.load_trajectory(trajectory.save(tmp_path / "motion"))
    for name in ("t", "q", "v"):
        np.testing.assert_array_equal(getattr(again, name), getattr(trajectory, name))
    there = again.segments[0].mechanism
    assert repr(there) == repr(m)
    np.testing.assert_array_equal(bk.forward_dynamics(there, trajectory.q[-1], trajectory.v[-1]),
                                  bk.forward_dynamics(m, trajectory.q[-1], trajectory.v[-1]))


def test_a_trajectory_has_segments_of_different_width_and_events(tmp_path):
    one, two = pendulum(), bk.models.chain(3)
    first, second = bk.Simulation(one, [0.1]).run(1.0), bk.Simulation(two).run(0.5)
    later = Segment(two, second.t + 1.0, second.q, second.v)
    trajectory = bk.Trajectory([*first.segments, later], [Event(1.0, "became a chain")])
    again = bk.load_trajectory(trajectory.save(tmp_path / "both.npz"))
    assert [s.q.shape[1] for s in again.segments] == [1, 3]
    assert again.events == [(1.0, "became a chain")]
    assert [m.nv for m, _, _ in again.sample([0.5, 1.0, 1.2])] == [1, 3, 3]
    with pytest.raises(bk.ShapeError, match="segments"):
        _ = again.q
    t, kinetic, potential = again.energy()
    assert len(t) == len(kinetic) == len(potential)


def test_a_file_keeps_the_length_that_decides_forces_in_loops(tmp_path):
    m = bk.models.bricard()
    m.length_scale = 0.3
    again = bk.load_trajectory(bk.Simulation(m).run(0.1).save(tmp_path / "loops.npz")).segments[0].mechanism
    assert again.length_scale == 0.3
    q, v = m.neutral(), np.zeros(m.nv)
    expected, forces = bk.joint_forces(m, q, v), bk.joint_forces(again, q, v)
    assert all(np.array_equal(forces[name], expected[name]) for name in expected)


def test_states_between_the_recorded_ones_are_close_to_the_motion():
    sim = bk.Simulation(bk.models.human(34), v=np.random.default_rng(3).normal(size=34), rtol=1e-6, atol=1e-8)
    coarse = sim.run(0.2)
    times = np.linspace(0.013, 0.187, 7)
    for t, (m, q, _) in zip(times, coarse.sample(times), strict=True):
        exact = bk.Simulation(m, coarse.q[0], coarse.v[0], rtol=1e-10, atol=1e-11)
        exact.run(t)
        assert np.abs(m.difference(exact.q, q)).max() < 1e-4


@pytest.mark.parametrize("content", [b"", b"not a file of ours", b"PK\x03\x04 truncated"])
def test_other_files_are_refused_by_name(tmp_path, content):
    path = tmp_path / "other.npz"
    path.write_bytes(content)
    with pytest.raises(bk.ModelError, match=r"other\.npz") as error:
        bk.load_trajectory(path)
    assert "unsafe" not in str(error.value)  # NumPy's advice for what it takes for a pickle


# -- failures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "error"), [
    ({"solver": "magic"}, bk.ModelError), ({"rtol": 0.0}, bk.ShapeError), ({"step": -1.0}, bk.ShapeError),
    ({"solver": "symplectic_euler"}, bk.ShapeError), ({"q": [1.0, 2.0]}, bk.ShapeError),
    ({"q": [np.nan]}, bk.SimulationError), ({"q": np.zeros((3, 1))}, bk.ShapeError),
    ({"actuation": 3}, bk.ModelError), ({"params": [[1.0]]}, bk.ShapeError), ({"params": "all"}, bk.ShapeError),
    ({"rtol": "1e-3"}, bk.ShapeError), ({"atol": np.nan}, bk.ShapeError), ({"min_step": -1.0}, bk.ShapeError),
    ({"min_step": np.nan}, bk.ShapeError), ({"max_step": 0.0}, bk.ShapeError), ({"baumgarte": 0.0}, bk.ShapeError),
    ({"min_step": 0.2, "max_step": 0.1}, bk.ShapeError)])
def test_bad_options_are_refused_by_name(options, error):
    with pytest.raises(error, match="has a fixed step|from one state|" + next(iter(options))):
        bk.Simulation(pendulum(), **options)


@pytest.mark.parametrize("run", [bk.Simulation, lambda m: bk.rollout(m, until=1.0)])
def test_what_is_no_mechanism_is_refused(run):
    with pytest.raises(bk.ModelError, match=r"not 'robot\.urdf'; bk\.load reads model files"):
        run("robot.urdf")


def test_a_solver_misspelt_is_guessed():
    with pytest.raises(bk.ModelError, match=r"'geer' is not one of gear, .*; did you mean 'gear'\?"):
        bk.Simulation(pendulum(), solver="geer")


@pytest.mark.parametrize("until", [-1.0, np.nan, np.inf, "1", None])
def test_a_time_that_cannot_be_reached_is_refused(until):
    with pytest.raises(bk.ShapeError, match="until"):
        bk.Simulation(pendulum()).run(until)


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


def test_a_step_below_its_minimum_stops_the_run():
    with pytest.raises(bk.SimulationError, match=r"too small at t = 0 s: .*less than min_step = 0\.05 s; lower"):
        bk.Simulation(pendulum(), [1.0], rtol=1e-10, atol=1e-12, min_step=0.05).run(2.0)


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


def test_ctrl_c_leaves_the_partial_result():
    code = """
import signal
import numpy as np, bunraku as bk
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore Ctrl-C
m = bk.models.chain(30, joint="spherical")
sim = bk.Simulation(m, v=np.ones(m.nv), rtol=1e-12, atol=1e-12)
sim.run(1e-3)
print("started", flush=True)
try:
    sim.run(1e6)
except KeyboardInterrupt:
    t = sim.trajectory.t
    print("kept", len(t) > 10 and t[-1] == sim.t > 1e-3 and len(sim.trajectory.q) == len(t))
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "BUNRAKU_QUIET": "1"})
    assert process.stdout.readline() == "started\n"
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    asked = time.perf_counter()
    assert process.communicate(timeout=60)[0] == "kept True\n"
    assert time.perf_counter() - asked < 5.0


def test_nothing_is_printed_when_the_output_is_not_a_terminal(capsys):
    sim = bk.Simulation(pendulum(), [1.0])
    sim.run(1.0)
    assert capsys.readouterr().err == ""


# -- compiled functions of people's --------------------------------------------------------------------------------


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
    assert "test_simulation.py, line" in said
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


# -- stops ---------------------------------------------------------------------------------------------------------


def in_pieces(times, **settings):
    """(steps of a figure that runs to each of the times, steps of one that runs to the last at once, difference)."""
    m = bk.models.human(dof=16)
    v = np.random.default_rng(1).normal(size=m.nv)
    one, sim = bk.Simulation(m, v=v, **settings), bk.Simulation(m, v=v, **settings)
    one.run(times[-1])
    for t in times:
        sim.run(t)
        assert sim.t == t
    return sim.stats.steps, one.stats.steps, np.abs(m.difference(one.q, sim.q)).max()


@pytest.mark.parametrize("solver", ["gear", "bdf", "implicit", "tsit5", "rkf"])
def test_a_run_of_one_rounding_costs_the_next_run_nothing(solver):
    """0.1 + 0.2 is one rounding after 0.3. Such a step must not become the step of the run after it."""
    steps, alone, apart = in_pieces([0.3, 0.1 + 0.2, 1.0], solver=solver)
    assert steps <= 1.3 * alone + 4
    assert apart < 1e-3


@pytest.mark.parametrize("solver", ["gear", "bdf", "implicit", "tsit5"])
def test_many_stops_a_few_roundings_apart_cost_at_most_a_step_each(solver):
    times, t = [], 0.2
    for k in range(200):
        t = float(np.nextafter(t, 1.0)) if k % 3 else t  # also where it is
        times.append(t)
    steps, alone, apart = in_pieces([*times, 0.5], solver=solver)
    assert steps <= 1.3 * alone + 200 + 4
    assert apart < 1e-3


@pytest.mark.parametrize("solver", ["gear", "bdf", "implicit", "tsit5", "iec"])
@pytest.mark.parametrize("first", [5e-324, 1e-310, 1e-160, 1e-30, 1e-14])
def test_a_first_run_however_short_ends(solver, first):
    steps, alone, apart = in_pieces([first, 2 * first, 0.1], solver=solver)
    assert steps <= 1.3 * alone + 12
    assert apart < 1e-4


def test_stops_at_a_tenth_of_a_step_keep_the_accuracy():
    """A stop cuts a step short; the step after it goes on with the length that error control had found."""
    m = bk.models.human(dof=16)
    v = np.random.default_rng(1).normal(size=m.nv)
    states = []
    for settings, times in (({"rtol": 1e-12, "atol": 1e-13}, [1.0]), ({}, [1.0]), ({}, np.arange(1, 101) / 100)):
        sim = bk.Simulation(m, v=v, **settings)
        for t in times:
            sim.run(float(t))
        states.append((sim.q, sim.stats.steps))
    (exact, _), (one, alone), (pieces, steps) = states
    assert np.abs(m.difference(exact, pieces)).max() < 3 * np.abs(m.difference(exact, one)).max() + 1e-6
    assert steps < alone + 250


# -- between the steps ---------------------------------------------------------------------------------------------


def tumbling():
    """A free body, quick and unsymmetrical: everything about quaternions matters."""
    m = bk.Mechanism(gravity=(0, 0, -9.81))
    m.add_link("body", joint=bk.Free(), mass=2.0, com=(0.02, 0.0, 0.05), inertia=np.diag([0.03, 0.05, 0.02]))
    return m, m.neutral(), np.array([1.0, 0.0, 2.0, 4.0, 0.3, 3.0])


def linkage():
    m = bk.models.four_bar()
    return m, m.neutral(), bk.project(m, m.neutral(), np.full(m.nv, 3.0))[1]


@pytest.mark.parametrize(("solver", "rtol", "dense"), [
    ("gear", 1e-10, False), ("gear", 1e-10, True), ("gear", 1e-6, False), ("gear", 1e-6, True), ("bdf", 1e-6, False),
    ("bdf", 1e-6, True), ("tsit5", 1e-8, True), ("rkg", 1e-8, True), ("rk4", 0, False), ("rk4", 0, True)])
@pytest.mark.parametrize("build", [tumbling, linkage])
def test_samples_are_as_good_as_the_steps(build, solver, rtol, dense):
    m, q, v = build()
    settings = {"step": 0.005} if solver == "rk4" else {"rtol": rtol, "atol": 1e-2 * rtol}
    tr = bk.Simulation(m, q, v, solver=solver, dense=dense, **settings).run(1.0)
    k = np.linspace(3, len(tr.t) - 2, 15).astype(int)
    middle = 0.37 * tr.t[k] + 0.63 * tr.t[k + 1]
    times = np.unique(np.concatenate([tr.t[k], middle]))
    exact = bk.rollout(m, q, v, times=times, rtol=1e-13, atol=1e-14)

    def worst(at, states):
        out = 0.0
        for t, (q, v) in zip(at, states, strict=True):
            n = int(np.flatnonzero(times == t)[0])
            out = max(out, np.abs(m.difference(exact.q[n], q)).max(), np.abs(exact.v[n] - v).max())
        return out
    steps = worst(tr.t[k], zip(tr.q[k], tr.v[k], strict=True))
    between = worst(middle, [(q, v) for _, q, v in tr.sample(middle)])
    assert between < 10 * steps + 1e-11


def test_samples_pass_through_the_recorded_states_without_a_jump():
    for build in (tumbling, linkage):
        m, q, v = build()
        tr = bk.Simulation(m, q, v, rtol=1e-4, atol=1e-5, dense=True).run(1.0)
        for k in (5, len(tr.t) // 2, len(tr.t) - 1):
            for t in (np.nextafter(tr.t[k], 0.0), tr.t[k], np.nextafter(tr.t[k], tr.t[-1])):
                _, q, v = tr.sample(t)[0]
                assert np.abs(m.difference(tr.q[k], q)).max() < 1e-12
                assert np.abs(tr.v[k] - v).max() < 1e-11


def test_loops_are_closed_between_the_steps():
    m, q, v = linkage()
    for dense in (False, True):
        tr = bk.Simulation(m, q, v, rtol=1e-3, atol=1e-4, dense=dense).run(1.0)
        for _, q, v in tr.sample(np.linspace(0.0, 1.0, 41)):
            c = bk.constraints(m, q, v)
            assert np.abs(c.gap).max() < 1e-9
            assert np.abs(c.rates).max() < 1e-8


def test_a_file_keeps_what_was_between_the_steps(tmp_path):
    m, q, v = tumbling()
    sim = bk.Simulation(m, q, v, rtol=1e-9, atol=1e-10, dense=True)
    sim.when(lambda t, q, v: t - 0.4, lambda s: None)
    tr = sim.run(1.0)
    times = np.linspace(0.0, 1.0, 57)
    again = bk.load_trajectory(tr.save(tmp_path / "dense.npz"))
    for (_, q, v), (_, q_again, v_again) in zip(tr.sample(times), again.sample(times), strict=True):
        np.testing.assert_array_equal(q, q_again)
        np.testing.assert_array_equal(v, v_again)


def test_a_kink_between_steps_does_not_ring():
    """Without the solver's polynomials, states come from those around; a torque that switches must not disturb that."""
    @bk.actuation
    def switch(t, q, v, params, tau):
        tau[0] = 5.0 if t > 0.5 else 0.0

    tr = bk.Simulation(pendulum(), [0.3], actuation=switch, rtol=1e-8, atol=1e-10).run(1.0)
    times = np.linspace(0.4, 0.6, 101)
    first = bk.rollout(pendulum(), [0.3], times=[*times[times < 0.5], 0.5], rtol=1e-12, atol=1e-13)
    second = bk.rollout(pendulum(), first.q[-1], first.v[-1], times=times[times > 0.5] - 0.5, rtol=1e-12, atol=1e-13,
                        actuation=lambda t, q, v: [5.0])
    exact = np.concatenate([first.q, second.q]), np.concatenate([first.v, second.v])
    times = np.concatenate([first.t, second.t + 0.5])
    for q, v, (_, q_sampled, v_sampled) in zip(*exact, tr.sample(times), strict=True):
        np.testing.assert_allclose(q_sampled, q, atol=1e-7)
        np.testing.assert_allclose(v_sampled, v, atol=3e-5)


# -- runs that hardly get on ---------------------------------------------------------------------------------------


def said_within(seconds, sim, until):
    """The warning that a run gives, which must come soon; the run is left there."""
    began = time.perf_counter()
    with pytest.raises(bk.SimulationWarning) as caught:  # warnings are errors in these tests
        sim.run(until)
    assert time.perf_counter() - began < seconds
    return str(caught.value)


@pytest.mark.parametrize("solver", ["gear", "tsit5", "bdf"])
def test_a_torque_that_chatters_is_said_while_the_run_goes_on(solver):
    bk.Simulation(pendulum(), [0.3], solver=solver).run(0.01)  # compiled
    sim = bk.Simulation(pendulum(), [0.01], solver=solver, actuation=lambda t, q, v: -0.3 * np.sign(v))
    text = said_within(5.0, sim, 1.0)
    assert "chatters" in text
    assert "tau[0]" in text
    assert "tanh" in text


@pytest.mark.parametrize("solver", ["gear", "tsit5"])
def test_stiffness_is_said_with_the_solver_to_take(solver):
    bk.Simulation(pendulum(), [0.3], solver=solver).run(0.01)  # compiled
    sim = bk.Simulation(pendulum(damping=1e5), [0.3], solver=solver)
    text = said_within(3.0, sim, 10.0)
    assert "stiff" in text
    assert "implicit" in text
    ahead = bk.Simulation(pendulum(damping=1e5), [0.3], solver="implicit")
    ahead.run(10.0)
    assert ahead.stats.steps < 1000


@pytest.mark.parametrize("solver", ["gear", "tsit5", "bdf", "implicit"])
def test_ordinary_runs_are_left_in_peace(solver):
    """Long ones of many steps, with warnings as errors: accurate, quick, damped or driven."""
    @bk.actuation
    def hold(t, q, v, params, tau):
        for j in range(len(tau)):
            tau[j] = -20.0 * q[j] - 2.0 * v[j] + np.sin(10.0 * t)

    chain = bk.models.chain(4)
    bk.Simulation(chain, 0.5 * np.ones(4), solver=solver, actuation=hold, rtol=1e-6).run(30.0)
    bk.Simulation(pendulum(damping=0.1), [2.0], solver=solver, rtol=1e-7).run(100.0)
    m, q, v = tumbling()
    bk.Simulation(m, q, v, solver=solver, rtol=1e-7).run(30.0)
    m, q, v = linkage()
    bk.Simulation(m, q, v, solver=solver, rtol=1e-6).run(10.0)


# -- functions that misbehave --------------------------------------------------------------------------------------


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
    with pytest.raises(bk.SimulationError, match="a step is under way"):
        sim.run(2.0)
    assert (np.diff(sim.trajectory.t) > 0).all()


def test_an_action_may_answer_with_a_bool_of_numpy():
    sim = bk.Simulation(pendulum(), [1.0])
    sim.when(lambda t, q, v: -q[0], lambda s: s.v[0] < 0)
    sim.run(2.0)
    assert sim.t < 2.0


def test_times_in_a_gap_of_the_record_are_refused():
    sim = bk.Simulation(pendulum(), [1.0])
    sim.run(0.5)
    sim.set_state(t=1.0)
    trajectory = sim.run(1.5)
    with pytest.raises(bk.ShapeError, match="gap of the recorded motion"):
        trajectory.sample(0.75)
    for times in ("a", [[0.1, 0.2]], None):
        with pytest.raises(bk.ShapeError):
            trajectory.sample(times)


def test_folders_that_are_not_there_are_named(tmp_path):
    sim = bk.Simulation(pendulum(), [1.0])
    for save in (sim.save, sim.trajectory.save):
        with pytest.raises(bk.MissingFileError, match="there is no folder"):
            save(tmp_path / "no" / "file")

