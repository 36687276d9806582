"""Runs that hardly get on say why while they go on; ordinary ones are left in peace."""

import time

import numpy as np
import pytest

import bunraku as bk
from moving import linkage, pendulum, tumbling


def said_within(seconds, sim, until):
    """The warning that a run gives, which must come within seconds of the processor; the run is left there."""
    began = time.process_time()
    with pytest.raises(bk.SimulationWarning) as caught:  # warnings are errors in these tests
        sim.run(until)
    assert time.process_time() - began < seconds
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
