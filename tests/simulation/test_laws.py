"""Laws of mechanics kept over time: periods, energy, momentum, springs and limits."""

import numpy as np
import pytest

import bunraku as bk
from moving import pendulum


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
