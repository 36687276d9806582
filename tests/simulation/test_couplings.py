"""Coupled joints in motion: closed forms, no drift, structure changes, copies, checkpoints, rollouts."""

import numpy as np
import pytest
from scipy.linalg import expm

import bunraku as bk
from coupled import random_coupled

TORQUE = 0.05


def pair(ratio):
    """A motor with a damper that turns a load on a spring by gears."""
    m = bk.Mechanism()
    m.add_link("motor", joint=bk.Revolute((0, 0, 1), damping=0.02), mass=0.5, inertia=(0.002, 0.002, 0.003))
    m.add_link("load", joint=bk.Revolute((0, 0, 1), stiffness=3.0), position=(0.2, 0, 0), mass=4.0,
               inertia=(0.3, 0.3, 0.5))
    m.couple("load", "motor", ratio, 0.2)
    return m


def closed_form(ratio, t, angle=0.3, speed=1.0):
    """Angle and speed of the motor: (J_1 + n^2 J_2) x'' + c x' + n^2 k x = torque - n k offset."""
    J, c, k = 0.003 + ratio**2 * 0.5, 0.02, ratio**2 * 3.0
    rest = (TORQUE - ratio * 3.0 * 0.2) / k
    return expm(np.array([[0, 1], [-k / J, -c / J]]) * t) @ [angle - rest, speed] + [rest, 0.0]


@pytest.mark.parametrize("ratio", [0.1, -0.02, 50.0])
@pytest.mark.parametrize("solver", ["gear", "rkf", "implicit"])
def test_a_geared_pair_moves_as_its_closed_form(ratio, solver):
    sim = bk.Simulation(pair(ratio), np.array([0.3, 0.3 * ratio + 0.2]), np.array([1.0, ratio]), solver=solver,
                        rtol=1e-11, atol=1e-12, actuation=lambda t, q, v: np.array([TORQUE, 0.0]))
    tr = sim.run(until=2.0)
    np.testing.assert_allclose([tr.q[-1, 0], tr.v[-1, 0]], closed_form(ratio, 2.0), rtol=0, atol=1e-8)
    assert np.abs(tr.q[:, 1] - ratio * tr.q[:, 0] - 0.2).max() <= 1e-14 * max(1.0, abs(ratio))


def test_gears_do_not_drift_in_many_turns():
    m = bk.Mechanism(gravity=(0, 0, 0))
    for name, x in (("a", 0.0), ("b", 0.2), ("c", 0.5)):
        m.add_link(name, joint=bk.Revolute((0, 0, 1)), position=(x, 0, 0), mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.couple("b", "a", -20.0 / 7.0)
    m.couple("c", "b", -0.3)
    v = np.array([100.0, -2000.0 / 7.0, 600.0 / 7.0])
    sim = bk.Simulation(m, np.zeros(3), v, solver="rk4", step=0.01, record=None)
    sim.advance(100.0)
    assert sim.q[0] == pytest.approx(1e4, rel=1e-12)
    np.testing.assert_allclose(sim.q, 1e4 * v / 100.0, rtol=1e-12)
    np.testing.assert_allclose(sim.v, v, rtol=1e-12)


@pytest.mark.parametrize("solver", ["gear", "rkf", "symplectic_euler"])
@pytest.mark.parametrize("connections", [0, 1])
def test_couplings_hold_and_energy_is_kept_in_random_motion(solver, connections):
    m, q, v, _ = random_coupled(11, connections=connections, links=10)
    v = 0.2 * v
    sim = bk.Simulation(m, q, v, solver=solver, **({"step": 1e-4} if solver == "symplectic_euler" else
                                                  {"rtol": 1e-9, "atol": 1e-11}))
    tr = sim.run(until=0.3)
    found = [bk.constraints(m, *state) for state in zip(tr.q, tr.v, strict=True)]
    assert max(np.abs(x.gap).max() for x in found) < 1e-9
    assert max(np.abs(x.rates).max() for x in found) < 1e-8
    energy = np.array([sum(m.energy(*state)) for state in zip(tr.q, tr.v, strict=True)])
    assert np.abs(energy - energy[0]).max() < (1e-2 if solver == "symplectic_euler" else 1e-6) * max(1, abs(energy[0]))


def wheels():
    m = bk.Mechanism(gravity=(0, 0, 0))
    for name, x, J in (("a", 0.0, 0.2), ("b", 0.5, 0.1)):
        m.add_link(name, joint=bk.Revolute((0, 0, 1)), position=(x, 0, 0), mass=1.0, inertia=(J, J, J))
    return m


def test_coupling_moving_joints_is_an_impact_and_uncoupling_leaves_them():
    sim = bk.Simulation(wheels(), np.zeros(2), np.array([3.0, 1.0]))
    sim.run(until=0.5)
    coupling = sim.couple("b", "a", -2.0)
    assert coupling.offset == pytest.approx(0.5 + 2.0 * 1.5)
    a = (0.2 * 3.0 - 2.0 * 0.1 * 1.0) / (0.2 + 4.0 * 0.1)  # J_a w_a + n J_b w_b is kept
    np.testing.assert_allclose(sim.v, [a, -2.0 * a], rtol=1e-10)
    sim.run(until=1.0)
    np.testing.assert_allclose(sim.q, [1.5 + 0.5 * a, 0.5 - a], rtol=1e-8)
    sim.uncouple("b")
    np.testing.assert_allclose(sim.v, [a, -2.0 * a], rtol=1e-8)
    sim.push("b", (0, 0, 0, 0, 0, 0.1))
    tr = sim.run(until=1.5)
    np.testing.assert_allclose(sim.v, [a, -2.0 * a + 0.5], rtol=1e-6)
    assert [text.split(":")[0] for _, text in tr.events] [:2] == ["couple 'b'", "uncouple 'b'"]
    with pytest.raises(bk.SimulationError, match="leave offset out"):
        sim.couple("b", "a", 1.0, 0.0)
    sim.couple("b", "a", 1.0, 0.0, max_gap=10.0)
    assert sim.q[0] == pytest.approx(sim.q[1], abs=1e-12)
    with pytest.raises(bk.ReadOnlyError, match="use sim"):
        sim.mechanism.uncouple("b")


def test_checkpoints_and_recordings_keep_couplings(tmp_path):
    m, q, v, _ = random_coupled(3, connections=1)
    sim = bk.Simulation(m, q, 0.2 * v)
    sim.run(until=0.05)
    sim.save(tmp_path / "half.bk")
    again = bk.Simulation.load(tmp_path / "half.bk")
    sim.run(until=0.1)
    again.run(until=0.1)
    np.testing.assert_array_equal(sim.q, again.q)
    again.trajectory.save(tmp_path / "motion.npz")
    read = bk.load_trajectory(tmp_path / "motion.npz").segments[0].mechanism
    assert [c.equation for c in read.couplings.values()] == [c.equation for c in m.couplings.values()]


def test_rollouts_equal_simulations_and_one_worker_computes_couplings():
    m, q, v, _ = random_coupled(4)
    batch, speeds = np.tile(q, (6, 1)), 0.2 * np.outer(np.linspace(0.5, 1.0, 6), v)
    found = bk.rollout(m, batch, speeds, until=0.1, solver="rk4", step=0.001)
    for k in (0, 5):
        sim = bk.Simulation(m, batch[k], speeds[k], solver="rk4", step=0.001)
        sim.run(until=0.1)
        np.testing.assert_allclose(found.q[k].reshape(-1, m.nq)[-1], sim.q, rtol=1e-9, atol=1e-10)
    assert "couplings" in bk.schedule(m, workers=2).why_fewer
    np.testing.assert_array_equal(bk.forward_dynamics(m, q, v, workers=2), bk.forward_dynamics(m, q, v))
    with pytest.raises(bk.ModelError, match="one worker"):
        bk.Schedule(m, cuts=[m.joint_names[1]])
    two = bk.Simulation(m, q, 0.2 * v, workers=2)
    two.run(until=0.02)
    one = bk.Simulation(m, q, 0.2 * v, workers=1)
    one.run(until=0.02)
    np.testing.assert_array_equal(one.q, two.q)


def test_baumgarte_closes_couplings_by_forces():
    m = pair(0.5)
    sim = bk.Simulation(m, np.array([0.3, 0.35]), np.array([1.0, 0.5]), baumgarte=30.0, rtol=1e-9, atol=1e-11)
    sim.run(until=1.0)
    assert abs(sim.q[1] - 0.5 * sim.q[0] - 0.2) < 1e-7


def test_a_coupled_gripper_holds_a_ball_by_contact():
    m = bk.Mechanism(gravity=(0, 0, 0))
    for name, side in (("left", -1.0), ("right", 1.0)):
        m.add_link(name, joint=bk.Prismatic((side, 0, 0)), position=(0.1 * side, 0, 0), mass=0.2,
                   inertia=(1e-4, 1e-4, 1e-4))
        m.add_shape(name, bk.Sphere(0.02), friction=0.8)
    m.add_link("ball", joint=bk.Free(), mass=0.5, inertia=(2e-4, 2e-4, 2e-4))
    m.add_shape("ball", bk.Sphere(0.04), friction=0.8)
    m.couple("right", "left")
    q = m.neutral()
    q[m.q_slice("ball")][0] = 0.01
    sim = bk.Simulation(m, q, solver="symplectic_euler", step=0.001,
                        actuation=lambda t, q, v: np.array([-2.0, *np.zeros(m.nv - 1)]))
    sim.run(until=1.0)
    assert sim.q[0] == pytest.approx(sim.q[1], abs=1e-9)
    assert sim.q[0] == pytest.approx(-0.04, abs=1e-3)
    np.testing.assert_allclose(sim.v, 0.0, atol=1e-3)


def test_copies_start_as_a_simulation_where_coordinates_are_not_given():
    m = pair(0.5)
    start = bk.Simulation(m).q
    assert start[1] == pytest.approx(0.5 * start[0] + 0.2, abs=1e-14)
    np.testing.assert_array_equal(bk.Worlds(m, 2).q, [start, start])
    np.testing.assert_array_equal(bk.rollout(m, until=0.0).q[-1], start)
