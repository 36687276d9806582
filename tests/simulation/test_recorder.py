"""A recording that is written while a simulation runs is the motion that the simulation remembers."""

import subprocess
import sys

import numpy as np
import pytest

import bunraku as bk
from bunraku.simulation.watching import with_torques
from moving import pendulum


@bk.actuation
def swing(t, q, v, params, tau):
    tau[0] = params[0] * np.sin(5.0 * t) - 0.1 * v[0]


def assert_recorded(path, trajectory):
    again = bk.load_trajectory(path)
    assert len(again.segments) == len(trajectory.segments)
    for one, other in zip(again.segments, trajectory.segments, strict=True):
        for name in ("t", "q", "v"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert again.events == trajectory.events
    return again


def test_structures_events_and_impulses_are_recorded_as_remembered(tmp_path):
    sim = bk.Simulation(bk.models.human(dof=16))
    with sim.record_to(tmp_path / "live.mcap"):
        for hand in ("left", "right"):
            sim.connect("ground", f"{hand}_hand", bk.Spherical(), name=f"{hand}_grip")
        sim.when(bk.force_above("right_grip", 400.0), lambda sim: sim.cut("right_grip"), name="slip")
        sim.run(0.2)
        sim.impulse("left_foot", (3.0, 0, 0))
        for k in range(10):
            sim.advance(0.2 + 0.01 * k)
    assert len(sim.trajectory.segments) > 1
    assert_recorded(tmp_path / "live.mcap", sim.trajectory)
    sim.run(0.5)  # what happens later is not recorded
    assert bk.load_trajectory(tmp_path / "live.mcap").t[-1] < 0.5


def test_a_time_that_is_set_back_is_recorded_as_remembered(tmp_path):
    sim = bk.Simulation(pendulum(), [0.5])
    with sim.record_to(tmp_path / "live.mcap"):
        sim.run(0.3)
        sim.set_state([0.1], [0.0], t=0.1)
        sim.run(0.2)
    assert_recorded(tmp_path / "live.mcap", sim.trajectory)


def test_a_simulation_that_remembers_nothing_is_recorded_all_the_same(tmp_path):
    sims = [bk.Simulation(pendulum(), [0.5], record=record) for record in (None, "all")]
    with sims[0].record_to(tmp_path / "live.mcap"):
        sims[0].advance(1.0)
    assert_recorded(tmp_path / "live.mcap", sims[1].run(1.0))


def test_torques_are_those_of_the_actuation(tmp_path):
    sim = bk.Simulation(pendulum(), [0.5], actuation=swing, params=[2.0])
    with sim.record_to(tmp_path / "live.mcap"):
        sim.run(0.5)
    again = assert_recorded(tmp_path / "live.mcap", sim.trajectory)
    expected = 2.0 * np.sin(5.0 * again.t) - 0.1 * again.v[:, 0]
    np.testing.assert_allclose(again.segments[0].tau[:, 0], expected, rtol=1e-13)
    np.testing.assert_array_equal(with_torques(sim).segments[0].tau, again.segments[0].tau)
    a = bk.forward_dynamics(pendulum(), again.q, again.v, again.segments[0].tau)
    measured = np.gradient(again.v[:, 0], again.t)
    np.testing.assert_allclose(measured[3:-3], a[3:-3, 0], rtol=0.05, atol=0.05)


def test_a_run_that_is_killed_leaves_its_motion(tmp_path):
    done = subprocess.run([sys.executable, "-c", """
import os, bunraku as bk
sim = bk.Simulation(bk.models.chain(3), q=[0.5, 0, 0])
recorder = sim.record_to("killed.mcap")
sim.run(0.5)
recorder.recording.flush()
sim.when(lambda t, q, v: t - 0.6, lambda sim: os.kill(os.getpid(), 9))
sim.run(1.0)"""], cwd=tmp_path, timeout=900)
    assert done.returncode == -9
    with pytest.warns(bk.LoadWarning, match="was not closed"):
        assert bk.load_trajectory(tmp_path / "killed.mcap").t[-1] >= 0.5
