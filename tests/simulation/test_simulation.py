"""Simulations: runs that go on, settings that are refused, and interrupts that lose nothing."""


import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import bunraku as bk
from moving import pendulum
from processes import start

# -- runs ------------------------------------------------------------------------------------------------------------


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


# -- what is refused or interrupted ----------------------------------------------------------------------------------


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


def test_a_step_below_its_minimum_stops_the_run():
    with pytest.raises(bk.SimulationError, match=r"too small at t = 0 s: .*less than min_step = 0\.05 s; lower"):
        bk.Simulation(pendulum(), [1.0], rtol=1e-10, atol=1e-12, min_step=0.05).run(2.0)


def test_ctrl_c_leaves_the_partial_result():
    code = """
import numpy as np, bunraku as bk
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
    with start([sys.executable, "-c", code], stdout=subprocess.PIPE,
               env={**os.environ, "BUNRAKU_QUIET": "1"}) as process:
        try:
            assert process.stdout.readline() == "started\n"
            time.sleep(1.0)
            process.send_signal(signal.SIGINT)
            asked = time.perf_counter()
            assert process.communicate(timeout=900)[0] == "kept True\n"
            assert time.perf_counter() - asked < 60.0  # of days; the machine may be busy
        finally:
            process.kill()


def test_nothing_is_printed_when_the_output_is_not_a_terminal(capsys):
    sim = bk.Simulation(pendulum(), [1.0])
    sim.run(1.0)
    assert capsys.readouterr().err == ""
