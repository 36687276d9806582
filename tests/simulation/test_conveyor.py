"""Surface velocity: conveyors in events, steps, lanes and impacts, against closed forms."""

import numpy as np
import pytest

import bunraku as bk

G, MU, BELT = 9.81, 0.3, 0.8
STEPS = {"solver": "symplectic_euler", "step": 0.002}


def on_belt(shape=None, surface=(BELT, 0, 0), lift=0.0, friction=MU):
    m = bk.Mechanism()
    m.add_link("box", joint=bk.Free(), mass=2.0, inertia=(0.02, 0.02, 0.02))
    m.add_shape("box", shape or bk.Box(0.4, 0.4, 0.1), friction=friction)
    m.add_plane(friction=friction, surface_velocity=surface)
    q = m.neutral()
    q[2] = 0.05 + lift
    return m, q


@pytest.mark.parametrize("settings", [{}, {"solver": "tsit5"}, STEPS], ids=["gear", "tsit5", "steps"])
def test_a_box_slips_until_it_has_the_speed_of_the_belt_and_rides_along(settings):
    """It slips for v / (mu g), over v^2 / (2 mu g), and then rides exactly."""
    m, q = on_belt()
    sim = bk.Simulation(m, q, **settings)
    slips = BELT / (MU * G)
    sim.run(0.5 * slips)
    assert abs(sim.v[0] - MU * G * sim.t) < 1e-9
    assert sim.contacts.mode[0] == "sliding"
    end = sim.run(1.0)
    assert abs(sim.v[0] - BELT) < 1e-9
    assert np.abs(sim.v[1:]).max() < 1e-9
    x = BELT * 1.0 - BELT**2 / (2 * MU * G)
    assert abs(sim.q[0] - x) < (1.5e-3 if settings is STEPS else 1e-7)
    at = np.searchsorted(end.t, slips + 0.05)
    assert np.abs(np.diff(end.q[at:, 0]) - BELT * np.diff(end.t[at:])).max(initial=0.0) < 1e-9
    assert set(sim.contacts.mode) == {"sticking"}


def test_the_forces_at_a_state():
    m, q = on_belt()
    r = bk.dynamics(m, q, np.zeros(6))
    assert set(r.contacts.mode) == {"sliding"}
    assert np.abs(r.a - [MU * G, 0, 0, 0, 0, 0]).max() < 1e-10
    assert np.abs(bk.forward_dynamics(m, q, np.zeros(6)) - r.a).max() < 1e-10
    r = bk.dynamics(m, q, np.array([BELT, 0, 0, 0, 0, 0]))
    assert set(r.contacts.mode) == {"sticking"}
    assert np.abs(r.a).max() < 1e-10


@pytest.mark.parametrize("settings", [{}, STEPS], ids=["events", "steps"])
def test_a_box_that_falls_on_the_belt_gets_its_speed_by_the_impact(settings):
    """A flat landing at u: the impulse m u of the floor gives the speed mu u at once, if that is below the belt's."""
    m, q = on_belt(lift=0.2)
    sim = bk.Simulation(m, q, **settings)
    lands, speed = np.sqrt(2 * 0.2 / G), np.sqrt(2 * G * 0.2)
    sim.run(lands + 0.005)
    assert abs(sim.v[0] - MU * (speed + G * 0.005)) < (2e-2 if settings else 1e-6)
    sim.run(1.0)
    assert abs(sim.v[0] - BELT) < 1e-9


def test_lanes_agree_with_a_single_run():
    m, q = on_belt()
    starts = np.tile(q, (9, 1))
    starts[:, 0] = np.arange(9)
    v = np.zeros((9, 6))
    v[:, 1] = np.linspace(0, 0.4, 9)
    many = bk.rollout(m, starts, v, until=0.2, **STEPS)
    for k in (0, 3, 8):
        sim = bk.Simulation(m, starts[k], v[k], **STEPS)
        sim.run(0.2)
        assert np.abs(many.q[k, -1] - sim.q).max() < 1e-9
        assert sim.v[0] > 0.5


def test_a_ball_on_a_belt_rolls_at_two_sevenths_of_its_speed():
    """Slip ends when v + w r = belt: v = 2/7 of it, for a solid ball [angular momentum about the contact]."""
    m = bk.Mechanism()
    m.add_link("ball", joint=bk.Free(), mass=1.0, inertia=(0.004, 0.004, 0.004))
    m.add_shape("ball", bk.Sphere(0.1), friction=MU)
    m.add_plane(friction=MU, surface_velocity=(0, BELT, 0))
    q = m.neutral()
    q[2] = 0.1
    for settings, errors in (({"solver": "tsit5"}, 1e-5), (STEPS, 1e-8)):  # of the solver's tolerance; of none
        sim = bk.Simulation(m, q, **settings)
        sim.run(0.6)
        v = bk.kinematics(m, sim.q, sim.v).velocities["ball"]
        assert np.abs(v - [0, BELT * 2 / 7, 0, BELT * 5 / 7 / 0.1, 0, 0]).max() < errors


def test_the_belt_turns_with_its_link():
    """A box at rest on a lazy Susan whose top is a belt: the belt's direction turns with the table."""
    m = bk.Mechanism()
    m.add_link("table", joint=bk.Revolute((0, 0, 1)), mass=1.0, inertia=(1.0, 1.0, 1.0))
    m.add_plane("table", friction=0.9, surface_velocity=(BELT, 0, 0))
    m.add_link("box", joint=bk.Free(), mass=1.0, inertia=(0.01,) * 3)
    m.add_shape("box", bk.Points([(0.0, 0.0, 0.0)]), friction=0.9)
    q, v = m.neutral(), np.zeros(m.nv)
    v[0] = 2.0
    v[m.v_slice("box")] = BELT, 0, 0, 0, 0, 0
    a = bk.forward_dynamics(m, q, v)[m.v_slice("box")]
    assert np.abs(a[:3] - [0, 2.0 * BELT * 2, 0]).max() < 1e-9  # Coriolis: 2 w x s


def test_files_and_copies_keep_it_and_wrong_ones_are_refused(tmp_path):
    m, q = on_belt()
    path = bk.Simulation(m, q, **STEPS).run(0.01).save(tmp_path / "a.npz")
    again = bk.load_trajectory(path).segments[0].mechanism
    assert again.shapes["ground"].surface_velocity.tolist() == [BELT, 0, 0]
    assert m.with_shape("ground", surface_velocity=(0, 1, 0)).shapes["ground"].surface_velocity.tolist() == [0, 1, 0]
    with pytest.raises(bk.ModelError, match="surface_velocity must lie in the plane"):
        m.add_plane(surface_velocity=(0, 0, 1))


def test_a_belt_lies_in_its_plane_also_when_it_is_changed():
    m = bk.Mechanism()
    m.add_plane(normal=(0, 1, 1), surface_velocity=(1, 0, 0))
    assert m.with_shape("ground", surface_velocity=(0, 1, -1)).shapes["ground"].surface_velocity[1] == 1.0
    for change in ({"surface_velocity": (0, 0, 1)}, {"rotation": ((0, 0, 1), (1, 0, 0), (0, 1, 0))}):
        with pytest.raises(bk.ModelError, match="must lie in the plane"):
            m.with_shape("ground", **change)
