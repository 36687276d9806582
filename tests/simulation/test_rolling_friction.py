"""Torsional and rolling friction: balls that roll, spin and rest, against closed forms; steps, lanes and events."""

import numpy as np
import pytest

import bunraku as bk

G, R, MASS = 9.81, 0.1, 2.0
INERTIA = 0.4 * MASS * R**2
STEPS = {"solver": "symplectic_euler", "step": 0.005}
WAYS = pytest.mark.parametrize("settings", [STEPS, {"solver": "tsit5"}], ids=["steps", "events"])


def ball(slope=0.0, friction=0.8, **surface):
    """A ball on a plane with the slope [rad] downwards along x."""
    m = bk.Mechanism(gravity=(G * np.sin(slope), 0.0, -G * np.cos(slope)))
    m.add_link("ball", joint=bk.Free(), mass=MASS, inertia=(INERTIA,) * 3)
    m.add_shape("ball", bk.Sphere(R), friction=friction, **surface)
    m.add_plane(friction=friction, name="floor")
    q = m.neutral()
    q[2] = R
    return m, q


def speed_of(m, q, v):
    return bk.kinematics(m, q, v).velocities["ball"][0]


@WAYS
def test_a_rolling_ball_slows_down_at_the_closed_form_rate_and_stops_for_good(settings):
    """The moment c m g takes a rolling ball the speed c g / (r (1 + I / (m r^2))) in a second."""
    m, q = ball(rolling=0.02)
    v, rate = np.array([1.0, 0, 0, 0, 1.0 / R, 0]), 0.02 * G / (R * 1.4)
    sim = bk.Simulation(m, q, v, **settings)
    sim.run(0.3)
    assert abs(speed_of(m, sim.q, sim.v) - (1.0 - 0.3 * rate)) < 1e-7
    contact, = sim.contacts
    assert contact.mode == "sticking"
    assert np.abs(contact.moment - [0, -0.02 * MASS * G, 0]).max() < 1e-6
    sim.run(1.0)
    assert np.abs(sim.v).max() <= (0.0 if settings is STEPS else 1e-12)
    assert abs(sim.q[0] - 0.5 / rate) < (3e-3 if settings is STEPS else 1e-6)
    at = sim.q.copy()
    sim.run(1.5)
    assert np.abs(at - sim.q).max() < 1e-12


@WAYS
def test_a_spinning_ball_stops_to_spin(settings):
    m, q = ball(torsional=0.01)
    v, rate = np.array([0, 0, 0, 0, 0, 5.0]), 0.01 * MASS * G / INERTIA
    sim = bk.Simulation(m, q, v, **settings)
    sim.run(0.1)
    assert abs(sim.v[5] - (5.0 - 0.1 * rate)) < 1e-7
    assert np.abs(sim.contacts.moment - [0, 0, -0.01 * MASS * G]).max() < 1e-6
    sim.run(0.5)
    assert np.abs(sim.v).max() <= (0.0 if settings is STEPS else 1e-12)


@WAYS
def test_a_ball_on_a_slope_rests_below_the_rolling_angle_and_rolls_above(settings):
    """It rolls where tan(slope) > c / r."""
    c, limit = 0.02, np.arctan(0.02 / R)
    m, q = ball(0.95 * limit, rolling=c, torsional=0.001)
    sim = bk.Simulation(m, q, **settings)
    assert not sim.run(1.0).v.any()
    needed = MASS * G * np.sin(0.95 * limit) * R
    assert abs(sim.contacts.moment[0, 1] + needed) < 1e-9
    m, q = ball(1.5 * limit, rolling=c, torsional=0.001)
    sim = bk.Simulation(m, q, **settings)
    sim.run(0.5)
    rate = G * (np.sin(1.5 * limit) - c / R * np.cos(1.5 * limit)) / 1.4
    assert abs(speed_of(m, sim.q, sim.v) - 0.5 * rate) < 1e-7


def test_accelerations_and_moments_at_a_state():
    m, q = ball(rolling=0.02, torsional=0.01)
    v = np.array([1.0, 0, 0, 0, 1.0 / R, 3.0])
    r = bk.dynamics(m, q, v)
    rate = 0.02 * G / (R * 1.4)
    assert np.abs(r.contacts.moment - [[0, -0.02 * MASS * G, -0.01 * MASS * G]]).max() < 1e-9
    assert abs(r.a[5] + 0.01 * MASS * G / INERTIA) < 1e-9
    assert abs(r.a[4] + rate / R) < 1e-9
    assert np.abs(bk.forward_dynamics(m, q, v) - r.a).max() < 1e-10
    total = r.contacts.resultants["ball", "ground"]
    assert abs(total.center_of_pressure[0] - 0.02) < 1e-9   # ahead of the ball: the moment as an offset of the force
    assert abs(total.moment[2] + 0.01 * MASS * G) < 1e-9
    sloped, q = ball(0.1, rolling=0.02)
    assert np.abs(bk.forward_dynamics(sloped, q, np.zeros(6))).max() < 1e-12


def test_a_box_turns_on_its_corners_as_their_torsional_friction_lets_it():
    """Without sliding friction, each corner bears a quarter of the weight and resists by its part."""
    m = bk.Mechanism()
    m.add_link("box", joint=bk.Free(), mass=MASS, inertia=(0.02, 0.02, 0.02))
    m.add_shape("box", bk.Box(0.2, 0.2, 0.1), friction=0.0)
    m.add_plane(friction=0.0, torsional=0.004)
    q, v = m.neutral(), np.array([0, 0, 0, 0, 0, 3.0])
    q[2] = 0.05
    sim = bk.Simulation(m, q, v, **STEPS)
    sim.run(0.2)
    assert abs(sim.v[5] - (3.0 - 0.2 * 0.004 * MASS * G / 0.02)) < 1e-9
    assert len(sim.contacts) == 4
    sim.run(1.0)
    assert not sim.v.any()


def test_moments_of_a_pile_obey_the_law():
    """Bounded by c f_n; at the bound against the relative rotation, below it without any."""
    m, rng = bk.Mechanism(), np.random.default_rng(3)
    for k in range(5):
        m.add_link(f"b{k}", joint=bk.Free(), mass=1.0 + k, inertia=(0.004 * (1 + k),) * 3)
        m.add_shape(f"b{k}", bk.Sphere(0.1), friction=0.6, torsional=0.003, rolling=0.006)
    m.add_plane(friction=0.6)
    q, v = m.neutral(), np.zeros(m.nv)
    for k in range(5):
        q[7 * k:7 * k + 3] = 0.17 * (k % 3) + 0.01 * rng.normal(), 0.15 * (k // 3), 0.1 + 0.17 * (k // 3)
        v[6 * k:6 * k + 6] = rng.normal(size=6)
    sim, loaded = bk.Simulation(m, bk.part(m, q), v, **STEPS), 0
    motion = sim.run(0.3)
    for k in range(0, 60, 3):
        after = bk.kinematics(m, motion.q[k + 1], motion.v[k + 1]).velocities
        turning = {**{name: x[3:] for name, x in after.items()}, "ground": np.zeros(3)}
        for contact in motion.contacts(motion.t[k]):
            n, w = contact.normal, turning[contact.links[0]] - turning[contact.links[1]]
            load = contact.force @ n
            for moment, slip, c in ((n * (n @ contact.moment), n * (n @ w), 0.003),
                                    (contact.moment - n * (n @ contact.moment), w - n * (n @ w), 0.006)):
                size, fast = np.linalg.norm(moment), np.linalg.norm(slip)
                assert size <= c * load * (1 + 1e-9)
                if load > 1e-6 and fast > 1e-6:
                    assert np.linalg.norm(moment + c * load * slip / fast) < 1e-5 * c * load
                    loaded += 1
    assert loaded > 20
    assert sim.stats.contact_residual < 1e-7


def test_lanes_agree_with_single_runs_and_forces_of_a_motion_follow():
    m, q = ball(rolling=0.02, torsional=0.01)
    v = np.zeros((9, 6))
    v[:, 0] = np.linspace(0.0, 1.0, 9)
    v[:, 4], v[:, 5] = v[:, 0] / R, np.linspace(-4.0, 4.0, 9)
    many = bk.rollout(m, np.tile(q, (9, 1)), v, until=0.2, **STEPS)
    for k in (0, 3, 8):
        sim = bk.Simulation(m, q, v[k], **STEPS)
        motion = sim.run(0.2)
        assert np.abs(many.q[k, -1] - sim.q).max() < 1e-9
    assert abs(motion.contacts(0.1)[0].moment[2] + 0.01 * MASS * G) < 1e-9


def test_files_and_copies_keep_it_and_wrong_values_are_refused(tmp_path):
    m, q = ball(rolling=0.02, torsional=0.01)
    path = bk.Simulation(m, q, **STEPS).run(0.02).save(tmp_path / "a.npz")
    again = bk.load_trajectory(path).segments[0].mechanism.shapes["ball"]
    assert (again.rolling, again.torsional) == (0.02, 0.01)
    assert m.with_shape("ball", rolling=0.0).shapes["ball"].rolling == 0.0
    with pytest.raises(bk.ModelError, match="rolling must be a finite number, not negative"):
        m.with_shape("ball", rolling=-0.1)


def test_mjcf_has_them_by_condim(tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "m.xml").write_text("""<mujoco><worldbody><geom name="floor" type="plane" size="1 1 .1"/>
        <body name="a" pos="0 0 1"><freejoint/><geom name="spins" type="sphere" size=".1" condim="4"
        friction=".7 .02 .01"/><geom name="rolls" type="sphere" size=".2" condim="6" friction=".7 .02 .01"/></body>
        </worldbody></mujoco>""")
    shapes = bk.load(tmp_path / "m.xml", shapes=True, strict=True).shapes
    assert [(shapes[x].torsional, shapes[x].rolling) for x in ("floor", "spins", "rolls")] == [
        (0.0, 0.0), (0.02, 0.0), (0.02, 0.01)]
