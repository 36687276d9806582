"""Sensors: their readings in motions known in closed form, beside the calls of one state, and their errors by seed."""

import math

import numba
import numpy as np
import pytest

import bunraku as bk
from moving import double, pendulum

G = 9.81
UP = np.array([0.0, 0.0, G])


@bk.actuation
def swing(t, q, v, params, tau):
    tau[0] = np.sin(3.0 * t)
    tau[1] = -0.2 * v[1]


def body(v):
    """A free body with this velocity."""
    m = bk.Mechanism(gravity=(0, 0, -G))
    m.add_link("body", joint=bk.Free(), mass=2.0, inertia=(0.1, 0.1, 0.1))
    return bk.Simulation(m, v=v, rtol=1e-9, atol=1e-11)


# -- what they read -------------------------------------------------------------------------------------------------


def test_an_encoder_reads_the_joint_at_its_rate():
    sim = bk.Simulation(double(), [0.4, -0.3], actuation=swing, rtol=1e-9, atol=1e-11)
    sim.run(1.0)
    t, values = bk.sensors.read(sim, {"e": bk.sensors.Encoder("lower_joint", 200.0)})["e"]
    np.testing.assert_allclose(t, np.arange(201) / 200.0, atol=1e-15)
    states = sim.trajectory.sample(t)
    np.testing.assert_array_equal(values[:, 0], [q[1] for _, q, _ in states])
    coarse = bk.sensors.read(sim, {"e": bk.sensors.Encoder("lower_joint", 200.0, resolution=0.01)})["e"].values
    assert np.abs(coarse - values).max() <= 0.005 + 1e-12
    np.testing.assert_allclose(coarse / 0.01, np.round(coarse / 0.01), atol=1e-9)


def test_a_range_sensor_reads_the_distance_to_what_is_before_it():
    """A body that falls and turns, above a plane: along its axis, and at 45 degrees; beyond `most` it reads `most`."""
    m = bk.Mechanism(gravity=(0, 0, -G))
    m.add_link("body", joint=bk.Free(), mass=2.0, inertia=(0.1, 0.1, 0.1))
    m.add_shape("body", bk.Sphere(0.1), meets=0)
    m.add_plane(meets=0)
    sim = bk.Simulation(m, [0, 0, 3.0, 1, 0, 0, 0], [0, 0, 0, 0, 0.5, 0], rtol=1e-9, atol=1e-11)
    sim.run(0.5)
    sensor = bk.sensors.Range("body", 50.0, direction=((0, 0, -1), (1, 0, -1)), most=3.5)
    t, values = bk.sensors.read(sim, {"r": sensor})["r"]
    height, turn = 3.0 - 0.5 * G * t**2, 0.5 * t
    wanted = height[:, None] / np.cos(turn[:, None] + (0.0, -math.pi / 4))
    assert (wanted > 3.5).any()
    np.testing.assert_allclose(values, np.minimum(wanted, 3.5), rtol=1e-6)


def test_in_free_fall_an_imu_reads_its_turning_and_no_force():
    sim = body([1.0, 2.0, 3.0, 0.0, 0.0, 4.0])
    sim.run(0.5)
    values = bk.sensors.read(sim, {"imu": bk.sensors.IMU("body", 100.0)})["imu"].values
    np.testing.assert_allclose(values, np.tile([0, 0, 4.0, 0, 0, 0], (50, 1)), atol=1e-6)


def test_beside_the_axis_an_imu_reads_the_centripetal_force():
    """Its mean over a period: the change of a velocity that turns."""
    turning, radius, rate = 4.0, 0.3, 1000.0
    sim = body([0.0, 0.0, 0.0, 0.0, 0.0, turning])
    sim.run(0.2)
    imu = bk.sensors.IMU("body", rate, position=(radius, 0.0, 0.0))
    values = bk.sensors.read(sim, {"imu": imu})["imu"].values
    angle = turning / rate
    wanted = radius * turning * rate * np.array([-math.sin(angle), 1.0 - math.cos(angle)])
    np.testing.assert_allclose(values[:, 3:5], np.tile(wanted, (len(values), 1)), atol=1e-4)


def test_at_rest_an_imu_reads_gravity_in_its_own_axes():
    m = pendulum(damping=1.0)
    sim = bk.Simulation(m)
    sim.run(0.1)
    turn = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])  # its x axis points down
    values = bk.sensors.read(sim, {"imu": bk.sensors.IMU("rod", 100.0, rotation=turn)})["imu"].values
    np.testing.assert_allclose(values, np.tile([0, 0, 0, -G, 0, 0], (len(values), 1)), atol=1e-9)


def test_an_imu_of_a_driven_pendulum_reads_acceleration_minus_gravity():
    sim = bk.Simulation(double(), [0.4, -0.3], actuation=swing, rtol=1e-10, atol=1e-12)
    sim.run(0.5)
    t, values = bk.sensors.read(sim, {"imu": bk.sensors.IMU("lower", 2000.0)})["imu"]
    for k in (100, 500, 900):
        middle = t[k] - 0.5 / 2000.0  # of the period
        m, q, v = sim.trajectory.sample(middle)[0]
        a = bk.forward_dynamics(m, q, v, sim.torque(middle, q, v))
        state = bk.kinematics(m, q, v, a)
        R, wanted = state.poses["lower"][0], state.accelerations["lower"][:3] + UP
        np.testing.assert_allclose(values[k, 3:], R.T @ wanted, atol=5e-2)  # the axes turn by 1e-3 in half a period
        assert np.linalg.norm(values[k, 3:]) == pytest.approx(np.linalg.norm(wanted), abs=1e-4)


def test_a_force_torque_sensor_reads_the_wrench_of_its_joint():
    sim = bk.Simulation(double(), [0.4, -0.3], actuation=swing, rtol=1e-9, atol=1e-11)
    sim.run(0.3)
    t, values = bk.sensors.read(sim, {"ft": bk.sensors.ForceTorque("lower_joint", 50.0)})["ft"]
    for when, value in zip(t, values, strict=True):
        m, q, v = sim.trajectory.sample(when)[0]
        wanted = bk.joint_forces(m, q, v, sim.torque(when, q, v))["lower_joint"]
        np.testing.assert_allclose(value, wanted, atol=1e-3)  # torques between recorded states are interpolated


def test_a_connection_has_a_force_torque_sensor():
    m = bk.models.four_bar()
    name = next(iter(m.connections))
    sim = bk.Simulation(m)
    sim.run(0.2)
    t, values = bk.sensors.read(sim, {"ft": bk.sensors.ForceTorque(name, 20.0)})["ft"]
    m, q, v = sim.trajectory.sample(t[-1])[0]
    np.testing.assert_allclose(values[-1], bk.joint_forces(m, q, v)[name], rtol=1e-6, atol=1e-6)


def test_touch_reads_the_weight_of_a_resting_box():
    m = bk.Mechanism(gravity=(0, 0, -G))
    m.add_link("box", joint=bk.Free(), position=(0, 0, 0.1), mass=2.0, inertia=(0.01, 0.01, 0.01))
    m.add_shape("box", bk.Box(0.2, 0.2, 0.2))
    m.add_plane()
    sim = bk.Simulation(m, solver="symplectic_euler", step=1e-3)
    sim.run(0.1)
    values = bk.sensors.read(sim, {"touch": bk.sensors.Touch("box", 100.0)})["touch"].values
    np.testing.assert_allclose(values[1:], 2.0 * G, rtol=1e-6)


# -- their errors ---------------------------------------------------------------------------------------------------


def test_noise_is_normal_and_depends_on_seed_sample_and_channel():
    x = bk.sensors.normal(3, np.arange(20000)[:, None], np.arange(4))
    assert abs(x.mean()) < 0.02
    assert x.std() == pytest.approx(1.0, abs=0.02)
    assert (np.abs(x) > 3.0).mean() == pytest.approx(0.0027, abs=0.0008)
    assert np.abs(np.corrcoef(x.T) - np.eye(4)).max() < 0.03
    assert abs(np.corrcoef(x[1:, 0], x[:-1, 0])[0, 1]) < 0.03
    assert abs(np.corrcoef(x[:, 0], bk.sensors.normal(4, np.arange(20000), 0))[0, 1]) < 0.03


def test_compiled_functions_draw_the_same_numbers():
    normal = bk.sensors.normal

    @numba.njit
    def draw(seed, count, out):
        for k in range(count):
            out[k] = normal(seed, k - 1, 7)

    out = np.empty(200)
    draw(12345.0, 200, out)
    np.testing.assert_allclose(out, normal(12345, np.arange(-1, 199), 7), rtol=1e-12)


def test_errors_are_those_of_the_seed():
    sim = bk.Simulation(double(), [0.4, -0.3])
    sim.run(1.0)
    sensors = {"a": bk.sensors.Encoder("upper_joint", 300.0, noise=0.01, bias=0.1),
               "b": bk.sensors.Encoder("upper_joint", 300.0, noise=0.01)}
    exact = bk.sensors.read(sim, {"a": bk.sensors.Encoder("upper_joint", 300.0)})["a"].values
    first, again, other = (bk.sensors.read(sim, sensors, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first["a"].values, again["a"].values)
    errors = first["a"].values - exact
    assert errors.std() == pytest.approx(0.01, rel=0.2)
    assert errors.mean() == pytest.approx(0.1 * bk.sensors.normal(1, -1, 0), abs=3e-3)
    assert np.abs(first["b"].values - exact).std() > 0
    assert not np.allclose(first["a"].values - exact, first["b"].values - exact)
    assert not np.allclose(first["a"].values, other["a"].values)


def test_a_controller_reads_measured_states():
    m = double()
    law = bk.control.pd(m, 20.0, 2.0, goal=[0.2, 0.1])
    noisy = bk.control.measured(m, law, 0.01, q_noise=0.001, v_noise=[0.01, 0.02], resolution=1e-4, seed=5)
    q, v, normal = np.array([0.3, -0.2]), np.array([1.0, -1.0]), bk.sensors.normal
    k = 3
    q_read = np.floor((q + 0.001 * normal(5, k, np.arange(2))) / 1e-4 + 0.5) * 1e-4
    v_read = v + np.array([0.01, 0.02]) * normal(5, k, 2 + np.arange(2))
    sim = bk.Simulation(m, actuation=noisy)
    plain = bk.Simulation(m, actuation=law)
    np.testing.assert_allclose(sim.torque(0.035, q, v), plain.torque(0.035, q_read, v_read), atol=1e-12)
    r = bk.rollout(m, np.zeros((3, 2)), until=0.5, solver="symplectic_euler", step=0.001, actuation=noisy,
                   params=noisy.batch(3, seed=[5, 5, 6]))
    np.testing.assert_array_equal(r.q[0], r.q[1])
    assert np.abs(r.q[0] - r.q[2]).max() > 1e-8


# -- what is wrong --------------------------------------------------------------------------------------------------


def test_wrong_sensors_are_refused():
    sim = bk.Simulation(double(), [0.4, -0.3])
    sim.run(0.1)
    read, sensors = bk.sensors.read, bk.sensors
    with pytest.raises(bk.NamingError, match="did you mean"):
        read(sim, {"e": sensors.Encoder("uper_joint", 10.0)})
    with pytest.raises(bk.NamingError, match="'uper'"):
        read(sim, {"i": sensors.IMU("uper", 10.0)})
    with pytest.raises(bk.ShapeError, match="rate"):
        sensors.Encoder("upper_joint", 0.0)
    with pytest.raises(bk.ShapeError, match="6 of them"):
        read(sim, {"i": sensors.IMU("upper", 10.0, noise=(0.1, 0.2))})
    with pytest.raises(bk.ModelError, match="no sensor"):
        read(sim, {"i": "imu"})
    free = body(None)
    free.run(0.1)
    with pytest.raises(bk.ModelError, match="quaternion"):
        read(free, {"e": sensors.Encoder("body", 10.0)})


def test_forces_of_a_pulled_mechanism_are_refused():
    sim = bk.Simulation(double(), [0.4, -0.3], external={"lower": (30.0, 0.0, 0.0, 0.0, 0.0, 0.0)})
    sim.run(0.2)
    with pytest.raises(bk.ShapeError):
        bk.sensors.read(sim, {"ft": bk.sensors.ForceTorque("lower_joint", 100.0)})
    bk.sensors.read(sim, {"imu": bk.sensors.IMU("lower", 100.0)})  # needs no forces
