"""Soft contacts in time steps: equilibrium, vibration, stability for any step, exact friction, against closed forms."""

import numpy as np
import pytest

import bunraku as bk

G, R, MASS, K = 9.81, 0.1, 2.0, 1e4
STEPS = {"solver": "symplectic_euler", "step": 0.002}


def ball(stiffness=K, damping=0.0, **floor):
    m = bk.Mechanism()
    m.add_link("ball", joint=bk.Free(), mass=MASS, inertia=(0.4 * MASS * R**2,) * 3)
    m.add_shape("ball", bk.Sphere(R), stiffness=stiffness, damping=damping)
    m.add_plane(**floor)
    q = m.neutral()
    q[2] = R
    return m, q


def box(slope=0.0, friction=0.5, stiffness=K, damping=300.0):
    m = bk.Mechanism(gravity=(G * np.sin(slope), 0.0, -G * np.cos(slope)))
    m.add_link("box", joint=bk.Free(), mass=MASS, inertia=(0.02, 0.02, 0.02))
    m.add_shape("box", bk.Box(0.2, 0.2, 0.1), friction=friction)
    m.add_plane(friction=friction, stiffness=stiffness, damping=damping)
    q = m.neutral()
    q[2] = 0.05
    return m, q


def test_the_overlap_at_rest_is_force_by_stiffness():
    for (m, q), depth in ((ball(damping=200.0), MASS * G / K), (box(), MASS * G / (4 * K))):
        sim = bk.Simulation(m, q, **STEPS)
        sim.run(2.0)
        assert abs(q[2] - sim.q[2] - depth) < 1e-12
        assert np.abs(sim.v).max() < 1e-12
        assert abs(sim.contacts.force[:, 2].sum() - MASS * G) < 1e-9


def test_shapes_are_in_series():
    m, q = ball()
    m = m.with_shape("ball", stiffness=2 * K, damping=300.0).with_shape("ground", stiffness=3 * K, damping=450.0)
    sim = bk.Simulation(m, q, **STEPS)
    sim.run(2.0)
    assert abs(R - sim.q[2] - MASS * G / (6 / 5 * K)) < 1e-12


def test_a_mass_on_its_contact_vibrates_at_the_natural_frequency_and_damping():
    """x'' + 2 D w x' + w^2 x = 0 about the overlap at rest; the errors of steps halve with them."""
    D, w = 0.05, np.sqrt(K / MASS)
    m, q = ball(damping=2 * D * w * MASS)
    depth, errors = MASS * G / K, []
    q[2] = R - 0.5 * depth
    damped, until = w * np.sqrt(1 - D**2), 0.1
    exact = 0.5 * depth * np.exp(-D * w * until) * (np.cos(damped * until) + D * w / damped * np.sin(damped * until))
    for step in (4e-5, 2e-5):
        sim = bk.Simulation(m, q, solver="symplectic_euler", step=step)
        sim.run(until)
        errors.append(abs(sim.q[2] - R + depth - exact))
    assert errors[1] < 0.01 * depth
    assert 1.8 < errors[0] / errors[1] < 2.2


def test_a_step_is_that_of_implicit_euler():
    """v+ (m + h d + h^2 k) = m v + h (m g - k z), z the overlap."""
    m, q = ball(damping=30.0)
    q[2] = R - 0.001
    h, v, z = 0.01, 0.2, 0.001
    sim = bk.Simulation(m, q, [0, 0, -v, 0, 0, 0], solver="symplectic_euler", step=h)
    sim.run(h)
    after = (MASS * v + h * (MASS * G - K * z)) / (MASS + h * 30.0 + h**2 * K)
    assert abs(sim.v[2] + after) < 1e-12
    assert abs(R - sim.q[2] - (z + h * after)) < 1e-12


@pytest.mark.parametrize(("stiffness", "damping", "step"), [(1e8, 0.0, 0.02), (1e6, 10.0, 0.05), (10.0, 1e5, 0.02)])
def test_any_step_is_stable(stiffness, damping, step):
    m, q = ball(stiffness, damping)
    q[2] += 0.05
    sim = bk.Simulation(m, q, solver="symplectic_euler", step=step)
    motion = sim.run(4.0)
    assert np.abs(motion.v[:, 2]).max() < 1.5
    if stiffness > 1e3:
        assert abs(R - sim.q[2] - MASS * G / stiffness) < 1e-9


def test_a_bouncing_ball_leaves_again_without_being_held():
    m, q = ball(damping=1.0)
    q[2] += 0.2
    sim = bk.Simulation(m, q, solver="symplectic_euler", step=1e-4)
    motion = sim.run(0.6)
    assert sim.q[2] > R + 0.05
    for t in motion.t[::200]:
        force = motion.contacts(t).force
        assert (force[:, 2] >= 0.0).all()


def test_friction_is_exact_and_nothing_creeps():
    slope = 0.98 * np.arctan(0.5)
    m, q = box(slope)
    sim = bk.Simulation(m, q, **STEPS)
    sim.run(2.0)
    at = sim.q.copy()
    sim.run(4.0)
    assert np.abs(sim.q - at).max() < 1e-12
    assert set(sim.contacts.mode) == {"sticking"}
    m, q = box(1.2 * np.arctan(0.5), damping=900.0)
    sim = bk.Simulation(m, q, **STEPS)
    sim.run(1.0)
    before = sim.v[0]
    sim.run(1.1)
    a = G * (np.sin(1.2 * np.arctan(0.5)) - 0.5 * np.cos(1.2 * np.arctan(0.5)))
    assert abs((sim.v[0] - before) / 0.1 - a) < 1e-6


def test_lanes_agree_with_single_runs_also_beside_rigid_contacts():
    m, q = box()
    m.add_link("ball", joint=bk.Free(), mass=1.0, inertia=(0.004,) * 3)
    m.add_shape("ball", bk.Sphere(0.1), restitution=0.5)
    starts = np.tile(np.concatenate([q, [0, 0, 0.2, 1, 0, 0, 0]]), (9, 1))
    starts[:, 9] += np.linspace(0.0, 0.1, 9)
    starts[:, 7] = np.linspace(0.0, 0.03, 9)
    many = bk.rollout(m, starts, until=0.4, **STEPS)
    for k in (0, 4, 8):
        sim = bk.Simulation(m, starts[k], **STEPS)
        sim.run(0.4)
        assert np.abs(many.q[k, -1] - sim.q).max() < 1e-9


def test_events_and_single_states_are_refused_with_the_remedy():
    m, q = ball()
    for act in (lambda: bk.Simulation(m, q).run(0.1), lambda: bk.dynamics(m, q, np.zeros(6)),
                lambda: bk.forward_dynamics(m, q, np.zeros(6))):
        with pytest.raises(bk.ModelError, match=r"soft contacts .'ball'.*solver='symplectic_euler'"):
            act()
    with pytest.raises(bk.ModelError, match="stiffness must be"):
        m.with_shape("ball", stiffness=0.0)
    assert m.with_shape("ball", stiffness=None).shapes["ball"].stiffness is None


def test_files_keep_it(tmp_path):
    m, q = ball(damping=3.0)
    path = bk.Simulation(m, q, **STEPS).run(0.02).save(tmp_path / "a.npz")
    again = bk.load_trajectory(path).segments[0].mechanism.shapes["ball"]
    assert (again.stiffness, again.damping) == (K, 3.0)
