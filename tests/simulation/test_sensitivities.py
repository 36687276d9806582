"""Sensitivities of simulations, across events: closed forms, and differences of simulations with tight tolerances."""

import numpy as np
import pytest

import bunraku as bk
from differences import WEIGHTS

EXACT = {"solver": "tsit5", "rtol": 1e-11, "atol": 1e-12}
G = 9.81


def near(found, expected, tolerance=1e-8):
    assert np.abs(found - expected).max() <= tolerance * (1.0 + np.abs(expected).max())


def slope(function, step):
    return sum(w * (function(k * step) - function(-k * step)) for k, w in enumerate(WEIGHTS, 1)) / step


def by_complex_steps(function, x):
    """Derivatives of an analytic function, as columns."""
    x = np.asarray(x, complex)
    return np.stack([np.array(function(x + 1e-30j * unit)).imag / 1e-30 for unit in np.eye(len(x))], axis=-1)


def ball(restitution=0.8, friction=0.0, joint=None):
    m = bk.Mechanism()
    m.add_link("ball", joint=bk.Prismatic((0, 0, 1)) if joint is None else joint, mass=0.6, inertia=(0.004,) * 3)
    m.add_shape("ball", bk.Sphere(0.1), restitution=restitution, friction=friction)
    m.add_plane(friction=friction)
    return m


def bounces(x, until=2.0, kicked=None):
    """Height and velocity of a ball after its bounces: x = height of its centre, velocity, restitution, g, kick."""
    height, v, e, g, kick = x[0] - 0.1, x[1], x[2], x[3], x[4]
    t, ends = 0.0, [until] if kicked is None else [kicked, until]
    for end in ends:
        while True:
            fall = (v + np.sqrt(v * v + 2.0 * g * height)) / g
            if (t + fall).real > end:
                break
            t, height, v = t + fall, 0.0 * height, e * (g * fall - v)
        flight = end - t
        t, height, v = end, height + v * flight - 0.5 * g * flight**2, v - g * flight
        v = v + (kick if end != until else 0.0)
    return height + 0.1, v


def test_a_bouncing_ball():
    """Three bounces in 2 s; every one of them moves in time with the start, the restitution and gravity."""
    sim = bk.Simulation(ball(), [1.1], [0.2], **EXACT)
    s = bk.sensitivities(sim, 2.0, parameters=[("restitution", "ball"), "gravity", ("mass", "ball")])
    expected = by_complex_steps(bounces, [1.1, 0.2, 0.8, G, 0.0])
    near(s.by_state[-1], expected[:, :2])
    near(s.by_parameters[-1][:, [0, 3]], expected[:, 2:4] * [1, -1])
    near(s.by_parameters[-1][:, 4], np.zeros(2))  # the mass does not matter
    fall = (0.2 + np.sqrt(0.04 + 2 * G)) / G
    hit = next(event for event in s.events if abs(event.t - fall) < 1e-6)
    near(hit.by_state, [1.0 / (G * fall - 0.2), fall / (G * fall - 0.2)])


def test_a_kick_through_an_impact():
    """The velocity after a bounce by the impulse before it: -e, and by the height it falls from."""
    def run(kick):
        sim = bk.Simulation(ball(), [1.1], [0.0], **EXACT)
        sim.when(lambda t, q, v: t - 0.3, lambda sim: sim.impulse("ball", (0, 0, 0.6 * kick)))
        return sim

    s = bk.sensitivities(run(-1.0), 0.7, parameters=[("restitution", "ball")])
    expected = by_complex_steps(lambda x: bounces(x, 0.7, kicked=0.3), [1.1, 0.0, 0.8, G, -1.0])
    near(s.by_state[-1], expected[:, :2])
    near(s.by_parameters[-1][:, 0], expected[:, 2])
    at = bk.sensitivities(run(-1.0), 0.7, times=[0.0, 0.3, 0.7])
    near(at.by_state[0], np.eye(2))
    near(at.by_state[2], s.by_state[-1])
    # a velocity given at 0.3 s: what came before it does not matter
    near(at.by_state[2] @ np.linalg.solve(at.by_state[1], [0.0, 1.0]), expected[:, 4])


def test_a_sliding_block_stops():
    """Distance v^2 / (2 mu g), time v / (mu g); a sideways push turns the slip, which comes to rest with half of it."""
    m = bk.Mechanism()
    m.add_link("block", joint=bk.Free(), mass=2.0, inertia=(0.02, 0.03, 0.04))
    m.add_shape("block", bk.Box(0.4, 0.3, 0.2), friction=0.5)
    m.add_plane(friction=0.4)
    q, v, mu, fast = m.neutral(), np.zeros(6), np.sqrt(0.2), 1.5
    q[2], v[0] = 0.1, fast
    s = bk.sensitivities(bk.Simulation(m, q, v, **EXACT), 0.6, parameters=[("friction", "block"), ("mass", "block")])
    x, by = s.by_state[-1], s.by_parameters[-1]
    near(x[0, [0, 6]], [1.0, fast / (mu * G)])
    near(x[1, [1, 7]], [1.0, fast / (2 * mu * G)])
    near(by[0], [-fast**2 / (2 * mu**2 * G) * 0.5 * np.sqrt(0.4 / 0.5), 0.0])
    near(x[6:], np.zeros((6, 12)))
    near(s.events[-1].by_state[6], 1.0 / (mu * G))


@pytest.mark.parametrize("fast", [0.2, 3.0])
def test_a_ball_with_friction_sticks_or_slides_in_its_impacts(fast):
    m = ball(0.7, 0.3, bk.Free())
    start = np.array([0, 0, 0.5, 1, 0, 0, 0.0])
    v = np.array([fast, 0.3, 0.1, 0.5, -0.4, 2.0])

    def run(q=0.0, v=v, mass=0.6, **surface):
        other = m.with_link("ball", mass=mass).with_shape("ball", **surface)
        sim = bk.Simulation(other, other.integrate(start, q * np.eye(6)[2]), v, **EXACT)
        sim.when(lambda t, q, v: t - 0.2, lambda sim: sim.impulse("ball", (0.3, 0.1, -0.4), point=(0.05, 0, 0)))
        return sim

    s = bk.sensitivities(run(), 0.6, parameters=[("mass", "ball"), ("restitution", "ball"), ("friction", "ball")])
    end = s.trajectory.q[-1]

    def state(**changes):
        sim = run(**changes)
        sim.run(0.6)
        return np.concatenate([m.difference(end, sim.q), sim.v])

    direction = np.linspace(-1, 1, 6)
    near(s.by_state[-1][:, 2], slope(lambda h: state(q=h), 1e-3), 2e-8)
    near(s.by_state[-1][:, 6:] @ direction, slope(lambda h: state(v=v + h * direction), 1e-3), 2e-8)
    for column, (name, value) in enumerate({"mass": 0.6, "restitution": 0.7, "friction": 0.3}.items()):
        near(s.by_parameters[-1][:, column], slope(lambda h, n=name, x=value: state(**{n: x + h}), 1e-3), 2e-8)


@bk.actuation
def held(t, q, v, params, tau):
    tau[0] = -params[0] * (q[0] - 0.2 * np.sin(3.0 * t)) - params[1] * v[0]
    tau[1] = -params[0] * q[1]


def test_a_controller_and_a_hard_stop():
    m = bk.models.chain(2)
    m = m.with_joint(m.joint_names[0], lower=-0.1, hard_limits=True, restitution=0.6, damping=0.05)
    x = np.array([0.3, 0.2, -2.0, 1.0])

    def run(x=x, gain=3.0, mass=0.0):
        other = m.with_link("link1", mass=m.link("link1").mass + mass)
        return bk.Simulation(other, x[:2], x[2:], actuation=held, params=np.array([gain, 0.2]), **EXACT)

    s = bk.sensitivities(run(), 0.26, parameters=[("params", 0), ("mass", "link1")])
    assert any("impact" in event.text for event in s.trajectory.events)

    def state(**changes):
        sim = run(**changes)
        sim.run(0.26)
        return np.concatenate([sim.q, sim.v])

    direction = np.array([1.0, -0.5, 0.3, 0.7])
    near(s.by_state[-1] @ direction, slope(lambda h: state(x=x + h * direction), 1e-3))
    near(s.by_parameters[-1][:, 0], slope(lambda h: state(gain=3.0 + h), 1e-3))
    near(s.by_parameters[-1][:, 1], slope(lambda h: state(mass=h), 1e-3))


@pytest.mark.parametrize("angle", [False, True])
def test_a_pendulum_cut_loose(angle):
    """At a time, or at an angle: afterwards its link is a free body, with more coordinates."""
    m = bk.Mechanism()
    m.add_link("bob", joint=bk.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -1.0), inertia=(1e-3,) * 3, joint_name="hinge")
    true = (lambda t, q, v: 0.3 - q[0]) if angle else (lambda t, q, v: t - 0.5)

    def run(q=1.0, v=0.2):
        sim = bk.Simulation(m, [q], [v], **EXACT)
        sim.when(true, lambda sim: sim.cut("hinge"))
        return sim

    s = bk.sensitivities(run(), 0.8)
    last = s.trajectory.segments[-1]

    def state(**changes):
        sim = run(**changes)
        sim.run(0.8)
        return np.concatenate([last.mechanism.difference(last.q[-1], sim.q), sim.v])

    assert s.by_state[-1].shape == (12, 2)
    near(s.by_state[-1][:, 0], slope(lambda h: state(q=1.0 + h), 3e-3))
    near(s.by_state[-1][:, 1], slope(lambda h: state(v=0.2 + h), 3e-3))
    assert (np.abs(s.events[0].by_state) > 0.0).any() == angle


@pytest.mark.parametrize("joint", [bk.Fixed(), bk.Revolute((0, 0, 1)), bk.Planar((0, 1, 0))])
def test_a_figure_connected_kicked_and_cut(joint):
    """Two links and a free body: connected at an angle, where its frame is captured, struck, and let go."""
    rng = np.random.default_rng(1)
    m = bk.Mechanism()
    m.add_link("a", joint=bk.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -0.25), inertia=(0.02, 0.03, 0.01))
    m.add_link("b", "a", bk.Spherical(), position=(0, 0, -0.5), mass=1.0, com=(0, 0.1, -0.25),
               inertia=(0.02, 0.03, 0.01))
    m.add_link("c", joint=bk.Free(), mass=0.7, com=(0.02, 0, 0), inertia=(0.02, 0.025, 0.03))
    q, v = m.integrate(m.neutral(), 0.3 * rng.normal(size=m.nv)), rng.normal(size=m.nv)
    free = bk.Simulation(m, q, v, **EXACT)
    free.run(0.2)
    angle, sign = float(free.q[0]), np.sign(free.v[0])

    def run(x=None, mass=0.7):
        x = np.zeros(2 * m.nv) if x is None else x
        sim = bk.Simulation(m.with_link("c", mass=mass), m.integrate(q, x[:m.nv]), v + x[m.nv:], **EXACT)
        sim.when(lambda t, q, v: sign * (q[0] - angle),
                 lambda sim: sim.connect("b", "c", joint, "grip", position_b=(0.1, 0, 0.05)))
        sim.when(lambda t, q, v: t - 0.3, lambda sim: sim.impulse("b", (0.1, 0.2, -0.3), point=(0.1, 0.2, 0.3)))
        sim.when(lambda t, q, v: t - 0.4, lambda sim: sim.cut("grip"))
        return sim

    s = bk.sensitivities(run(), 0.5, parameters=[("mass", "c")])
    assert len(s.events) == 3
    end = s.trajectory.q[-1]

    def state(**changes):
        sim = run(**changes)
        sim.run(0.5)
        return np.concatenate([m.difference(end, sim.q), sim.v])

    direction = rng.normal(size=2 * m.nv)
    near(s.by_state[-1] @ direction, slope(lambda h: state(x=h * direction), 1e-3), 5e-8)
    near(s.by_parameters[-1][:, 0], slope(lambda h: state(mass=0.7 + h), 3e-3), 5e-8)


def test_an_event_that_ends_the_run_moves_in_time():
    """A ball thrown upwards, at its highest point: v^2 / (2 g) above the start, after v / g."""
    m = bk.Mechanism()
    m.add_link("ball", joint=bk.Prismatic((0, 0, 1)), mass=1.0, inertia=(0.1,) * 3)
    sim = bk.Simulation(m, [0.0], [3.0], **EXACT)
    sim.when(lambda t, q, v: -v[0], lambda sim: True)
    s = bk.sensitivities(sim, 1.0, parameters=["gravity"])
    near(s.by_state[-1], [[1.0, 3.0 / G], [0.0, 0.0]])
    near(s.by_parameters[-1][:, 2], [3.0**2 / (2 * G**2), 0.0])
    near(s.events[-1].by_state, [0.0, 1.0 / G])


def test_what_has_no_sensitivities_is_refused():
    m = ball()
    with pytest.raises(bk.ModelError, match="dense"):
        bk.sensitivities(bk.Simulation(m, [1.0]), 0.1)
    sim = bk.Simulation(m, [1.0], **EXACT)
    sim.when(lambda t, q, v: t > 0.05, lambda sim: sim.cut("ball"), name="too late")
    with pytest.raises(bk.ModelError, match="too late"):
        bk.sensitivities(sim, 0.1)
    sim = bk.Simulation(m, [1.0], **EXACT)
    sim.when(lambda t, q, v: t - 0.05, lambda sim: sim.set_state([0.5]))
    with pytest.raises(bk.ModelError, match="set_state"):
        bk.sensitivities(sim, 0.1)
