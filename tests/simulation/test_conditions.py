"""Conditions watched while a simulation runs: located at the right time, and their effect on the structure."""

import math

import numba
import numpy as np
import pytest

import bunraku as bk

G = 9.81


def falling(height=5.0, joint=None):
    m = bk.Mechanism(gravity=(0, 0, -G))
    m.add_link("ball", joint=joint or bk.Prismatic((0, 0, 1)), position=(0, 0, height), mass=2.0,
               inertia=np.diag([0.1, 0.1, 0.1]))
    return m


def pendulum():
    m = bk.Mechanism(gravity=(0, 0, -G))
    m.add_link("bob", joint=bk.Revolute((0, 1, 0)), joint_name="pivot", mass=2.0, com=(0, 0, -1.0),
               inertia=np.zeros((3, 3)) + 1e-9 * np.eye(3))
    return m


@pytest.mark.parametrize("solver", ["gear", "bdf", "tsit5", "rkg"])
def test_the_moment_is_located_within_a_step(solver):
    sim = bk.Simulation(falling(), solver=solver, rtol=1e-10, atol=1e-12)
    sim.when(lambda t, q, v: -3.0 - q[0], lambda s: True, "three metres down")
    tr = sim.run(until=2.0)
    assert sim.t == pytest.approx(math.sqrt(6.0 / G), rel=1e-9)
    assert tr.events[-1] == (sim.t, "three metres down")
    assert tr.t[-1] == sim.t
    assert tr.q[-1, 0] == pytest.approx(-3.0, abs=1e-9)


def test_a_fixed_step_is_cut_at_the_event():
    sim = bk.Simulation(falling(), solver="symplectic_euler", step=1e-3)
    sim.when(lambda t, q, v: -3.0 - q[0], lambda s: True)
    sim.run(until=2.0)
    assert sim.q[0] == pytest.approx(-3.0, abs=1e-12)
    assert sim.t == pytest.approx(math.sqrt(6.0 / G), abs=1e-3)
    assert sim.run(until=1.0).t[-1] == 1.0  # and goes on with its own step
    assert np.diff(sim.trajectory.t)[-3] == pytest.approx(1e-3, abs=1e-12)


def test_a_compiled_condition_is_the_same_condition():
    @numba.njit
    def deep(t, q, v):
        return -3.0 - q[0]

    times = []
    for condition in (deep, deep.py_func):
        sim = bk.Simulation(falling())
        watch = sim.when(condition, lambda s: True)
        sim.run(until=2.0)
        times += watch.times
    assert times[0] == times[1]


def test_repeated_events_happen_at_every_period():
    """A pendulum passes the bottom in one direction once a period; the exact period by the AGM."""
    theta = 1.0
    a, b = 1.0, math.cos(theta / 2)
    while abs(a - b) > 1e-15:
        a, b = (a + b) / 2, math.sqrt(a * b)
    period = 2 * math.pi / math.sqrt(G) / a
    sim = bk.Simulation(pendulum(), q=[theta], rtol=1e-11, atol=1e-12)
    watch = sim.when(lambda t, q, v: -q[0], lambda s: None, repeat=True)
    for until in (1.0, 2.0, 9.2):  # in pieces, so that a run begins while the condition holds
        sim.run(until=until)
    np.testing.assert_allclose(watch.times, period / 4 + period * np.arange(len(watch.times)), atol=1e-8)
    assert len(watch.times) == 5


def test_a_grip_breaks_when_its_force_reaches_the_limit():
    """A rope force of m (g cos + v^2 / l) = m g (3 cos theta - 2 cos theta_0) by energy."""
    theta, limit = 1.4, 2.0 * G * 2.0
    m = bk.Mechanism(gravity=(0, 0, -G))
    m.add_link("bob", joint=bk.Free(), mass=2.0, inertia=1e-9 * np.eye(3))
    start = (-math.sin(theta), 0, -math.cos(theta))
    sim = bk.Simulation(m, q=[*start, 1, 0, 0, 0], rtol=1e-10, atol=1e-11)
    sim.connect("ground", "bob", bk.Spherical(), "rope", position_a=(0, 0, 0))
    sim.when(bk.force_above("rope", limit), lambda s: s.cut("rope"))
    tr = sim.run(until=1.5)
    assert [e.text.split()[0] for e in tr.events] == ["connect", "force", "cut"]
    broke = tr.segments[0]
    x = broke.q[-1, :3]
    assert np.linalg.norm(x) == pytest.approx(1.0, abs=1e-8)
    assert -x[2] == pytest.approx((limit / (2.0 * G) + 2 * math.cos(theta)) / 3, abs=1e-7)
    # free flight afterwards: a parabola
    t, t0 = tr.t[-1], broke.t[-1]
    k = bk.kinematics(broke.mechanism, broke.q[-1], broke.v[-1])
    flight = x + k.com_velocity * (t - t0) - np.array([0, 0, G / 2]) * (t - t0) ** 2
    np.testing.assert_allclose(sim.q[:3], flight, atol=1e-7)


def test_points_that_meet_are_connected_and_momentum_is_kept():
    m = bk.Mechanism(gravity=(0, 0, 0))
    for name, x in (("left", -1.0), ("right", 1.0)):
        m.add_link(name, joint=bk.Free(), position=(x, 0.2 * x, 0), mass=1.5, inertia=np.diag([0.1, 0.2, 0.3]))
    v = np.zeros(12)
    v[0], v[6] = 1.0, -1.0
    sim = bk.Simulation(m, v=v)
    tip = {"position_a": (0.1, 0.2, 0), "position_b": (-0.1, -0.2, 0)}
    before = bk.kinematics(sim.mechanism, sim.q, sim.v).momentum
    sim.when(bk.points_meet("left", "right", within=1e-6, **tip),
             lambda s: s.connect("left", "right", bk.Spherical(), "clasp", **tip, max_gap=1e-5))
    tr = sim.run(until=2.0)
    assert [e.t for e in tr.events] == pytest.approx([0.9, 0.9], abs=1e-6)
    assert "clasp" in sim.mechanism.connections
    np.testing.assert_allclose(bk.kinematics(sim.mechanism, sim.q, sim.v).momentum, before, atol=1e-6)
    k0, k1 = (sum(segment.mechanism.energy(segment.q[-1], segment.v[-1])) for segment in tr.segments)
    assert k1 < 0.9 * k0  # a plastic impact


def test_what_holds_at_the_start_happens_at_once_and_only_once():
    sim = bk.Simulation(falling())
    seen = []
    sim.when(lambda t, q, v: 1.0, lambda s: seen.append(s.t))
    sim.run(until=0.5)
    sim.run(until=1.0)
    assert seen == [0.0]


def test_a_condition_on_a_joint_that_is_gone_waits():
    sim = bk.Simulation(pendulum(), q=[1.0])
    watch = sim.when(bk.force_above("pivot", 1e6), lambda s: True)
    sim.when(lambda t, q, v: t - 0.1, lambda s: s.cut("pivot"))
    sim.run(until=0.3)
    assert watch.times == []


def test_an_event_may_change_params_and_the_run_goes_on():
    @bk.actuation
    def push(t, q, v, params, tau):
        tau[0] = params[0]

    sim = bk.Simulation(falling(), actuation=push, params=[0.0], rtol=1e-10, atol=1e-12)

    def hover(s):
        s.params[0] = 2.0 * G

    sim.when(lambda t, q, v: t - 0.5, hover)
    sim.run(until=1.5)
    assert sim.v[0] == pytest.approx(-G * 0.5, rel=1e-9)
    assert sim.q[0] == pytest.approx(-G / 8 - G * 0.5, rel=1e-9)


def test_errors_of_conditions_name_the_condition_and_keep_the_motion():
    sim = bk.Simulation(falling())

    def fragile(t, q, v):
        if t > 0.5:
            raise ValueError("no such thing")
        return -1.0

    sim.when(fragile, lambda s: True)
    with pytest.raises(bk.SimulationError, match=r"condition 'fragile' failed at t = .*no such thing") as error:
        sim.run(until=1.0)
    assert error.value.trajectory.t[-1] > 0
    with pytest.raises(bk.ModelError, match="condition must be"):
        sim.when(3.0, lambda s: True)
    with pytest.raises(bk.ModelError, match="action must be"):
        sim.when(lambda t, q, v: 1.0, "cut")


def test_conditions_without_a_name_are_numbered():
    sim = bk.Simulation(falling())
    sim.when(lambda t, q, v: -1.0, lambda s: None, "never")
    sim.when(lambda t, q, v: t - 0.5, lambda s: True)
    assert sim.run(until=1.0).events == [(0.5, "condition 1")]


def test_a_condition_without_a_number_is_an_error_not_silence():
    sim = bk.Simulation(falling())
    sim.when(lambda t, q, v: math.nan if t > 0.3 else -1.0, lambda s: True, "lost")
    with pytest.raises(bk.SimulationError, match=r"condition 'lost' failed at t = .*nan"):
        sim.run(until=1.0)
    assert sim.t > 0.0


@pytest.mark.parametrize("begins", [0.0, 0.3])
@pytest.mark.parametrize("how", ["raises", "nan"])
def test_a_compiled_condition_that_fails_is_named(how, begins):
    raises = how == "raises"

    @numba.njit
    def fragile(t, q, v):
        if t >= begins:
            if raises:
                raise ValueError
            return math.nan
        return -1.0

    sim = bk.Simulation(falling())
    sim.when(fragile, lambda s: True)
    with pytest.raises(bk.SimulationError, match="condition 'fragile' failed at t = "):
        sim.run(until=1.0)
    assert sim.trajectory.t[-1] == sim.t


def test_a_condition_that_cannot_be_compiled_says_why():
    @numba.njit
    def mistaken(t, q, v):
        return nowhere + t  # noqa: F821

    sim = bk.Simulation(falling())
    sim.when(mistaken, lambda s: True)
    with pytest.raises(bk.ModelError, match=r"condition 'mistaken' cannot be compiled.*'nowhere' is not defined"):
        sim.run(until=1.0)


def test_an_error_of_an_action_says_where_it_came_from():
    sim = bk.Simulation(falling())
    sim.when(lambda t, q, v: t - 0.5, lambda s: s.cut("rope"), "let go")
    with pytest.raises(bk.NamingError, match="'rope'") as error:
        sim.run(until=1.0)
    assert error.value.__notes__ == ["raised by the action of 'let go' at t = 0.5 s"]
    assert sim.trajectory.t[-1] == 0.5


@pytest.mark.parametrize("apart", [0.0, 1e-16, -1e-16])  # exactly together, or by less than rounding
@pytest.mark.parametrize("solver", ["gear", "tsit5"])
def test_all_that_happens_at_one_instant_happens_there(solver, apart):
    m = falling(joint=bk.Free())
    for k in range(3):
        m.add_link(f"part{k}", "ball", bk.Revolute((0, 1, 0)), position=(k, 0, 0), mass=1.0, com=(0, 0, -0.2),
                   inertia=np.eye(3))
    sim = bk.Simulation(m, v=np.full(m.nv, 0.3), solver=solver)
    for k in range(3):
        sim.when(lambda t, q, v, k=k: t - 0.5 - k * apart, lambda s, k=k: s.cut(f"part{k}"), f"crack {k}")
    sim.when(lambda t, q, v: t - 0.5, lambda s: None, "thunder")
    tr = sim.run(until=1.0)
    assert len(tr.events) == 7
    assert sorted(event.text for event in tr.events if "cut" not in event.text) == [
        "crack 0", "crack 1", "crack 2", "thunder"]
    assert [event.t for event in tr.events] == pytest.approx([0.5] * 7, abs=1e-14)
    assert [len(s.mechanism.plan().body_link) for s in tr.segments] == [4, 4]
    assert [s.mechanism.nv for s in tr.segments] == [9, 24]   # what lay between lasted no time
    assert all(np.diff(s.t).min() > 1e-9 for s in tr.segments)  # nor is any state there twice


@numba.njit
def _height(t, y):
    return y[0]


def test_solve_ivp_takes_compiled_events():
    def fall(t, y):
        return [y[1], -G]
    found = [bk.solve_ivp(fall, (0, 2), [1.0, 0.0], events=e).t_events[0] for e in (_height, _height.py_func)]
    assert found[0] == pytest.approx(math.sqrt(2 / G), rel=1e-9)
    np.testing.assert_array_equal(*found)


def test_what_begins_and_ends_within_one_step_is_found():
    """y = t is one step for a multistep method once it has its stride; |y - 5| < 0.001 lasts 2 ms of it."""
    def near(t, y):
        return abs(y[0] - 5.0) - 1e-3
    sol = bk.solve_ivp(lambda t, y: [1.0], (0, 20), [0.0], events=near)
    assert np.diff(sol.t).max() > 1.0
    np.testing.assert_allclose(sol.t_events[0], [4.999, 5.001], rtol=1e-12)


# -- conditions that are zero before they are true -----------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"solver": "tsit5"}, {"solver": "rk4", "step": 0.01}])
def test_a_condition_that_is_zero_at_the_start_and_rises_comes_true_there(settings):
    sim = bk.Simulation(falling(), **settings)
    watch = sim.when(lambda t, q, v: t, lambda s: None, repeat=True)
    falls = sim.when(lambda t, q, v: -q[0], lambda s: None)
    sim.when(lambda t, q, v: q[0], lambda s: None, "never")
    tr = sim.run(until=1.0)
    assert watch.times == [0.0]
    assert falls.times == pytest.approx([0.0], abs=1e-14)
    assert len(tr.events) == 2
    sim.run(until=1.5)
    assert len(watch.times) == 1


@numba.njit
def _deep(t, q, v):
    return q[0] < -3.0


@pytest.mark.parametrize("condition", [lambda t, q, v: q[0] < -3.0, lambda t, q, v: max(0.0, -3.0 - q[0]), _deep,
                                       lambda t, q, v: np.sign(-3.0 - q[0])])
@pytest.mark.parametrize("solver", ["gear", "tsit5", "implicit"])
def test_a_condition_may_be_true_or_false(condition, solver):
    sim = bk.Simulation(falling(), solver=solver, rtol=1e-10, atol=1e-12)
    watch = sim.when(condition, lambda s: True)
    sim.run(until=2.0)
    assert watch.times == [sim.t]
    assert sim.t == pytest.approx(math.sqrt(6.0 / G), rel=1e-9)


def test_a_condition_that_turns_true_at_the_end_of_a_step_is_not_lost():
    sim = bk.Simulation(falling(), solver="rk4", step=0.125)  # a step ends at 0.5 exactly
    watch = sim.when(lambda t, q, v: max(0.0, t - 0.5), lambda s: True)
    sim.run(until=1.0)
    assert watch.times == pytest.approx([0.5], abs=1e-14)


def test_a_repeated_condition_may_be_true_or_false():
    sim = bk.Simulation(pendulum(), q=[1.0], rtol=1e-9, atol=1e-11)
    turns = sim.when(lambda t, q, v: q[0] < 0.0, lambda s: None, repeat=True)
    crossings = sim.when(lambda t, q, v: -q[0], lambda s: None, repeat=True)
    for until in (1.0, 2.0, 9.2):
        sim.run(until=until)
    assert len(turns.times) == 5
    np.testing.assert_allclose(turns.times, crossings.times, atol=1e-12)


def test_a_repeated_condition_hears_a_connection_that_is_made_again():
    """The rope holds more than the limit at once; it is cut and, a while later, made again."""
    m = falling(joint=bk.Free())
    sim = bk.Simulation(m)
    sim.connect("ground", "ball", bk.Spherical(), "rope")
    watch = sim.when(bk.force_above("rope", 1.0), lambda s: s.cut("rope"), repeat=True)
    for t in (0.25, 0.5):
        sim.when(lambda t, q, v, at=t: t - at, lambda s: s.connect("ground", "ball", bk.Spherical(), "rope"))
    sim.run(until=1.0)
    assert watch.times == pytest.approx([0.0, 0.25, 0.5], abs=1e-12)


def test_a_condition_hears_a_connection_made_again_by_the_same_action():
    m = falling(joint=bk.Free())
    sim = bk.Simulation(m)
    sim.connect("ground", "ball", bk.Spherical(), "rope")
    watch = sim.when(bk.force_above("rope", 1.0), lambda s: None, repeat=True)

    def renew(s):
        s.cut("rope")
        s.connect("ground", "ball", bk.Spherical(), "rope")
    sim.when(lambda t, q, v: t - 0.25, renew)
    sim.run(until=0.5)
    assert watch.times == pytest.approx([0.0, 0.25], abs=1e-12)


def test_a_condition_on_a_connection_that_is_yet_to_come_waits_for_it():
    sim = bk.Simulation(falling(joint=bk.Free()))
    watch = sim.when(bk.force_above("rope", 1.0), lambda s: True)
    sim.when(lambda t, q, v: t - 0.5, lambda s: s.connect("ground", "ball", bk.Spherical(), "rope"))
    sim.run(until=1.0)
    assert watch.times == pytest.approx([0.5], abs=1e-12)


def test_names_that_can_never_come_are_refused_at_once():
    sim = bk.Simulation(pendulum(), q=[0.1])
    with pytest.raises(bk.NamingError, match="there is no link 'flor'"):  # no simulation gets new links
        sim.when(bk.points_meet("bob", "flor", within=0.1), lambda s: True)
    with pytest.raises(bk.NamingError, match="'bob' is a link where a joint is meant"):
        sim.when(bk.force_above("bob", 1.0), lambda s: True)


def test_a_name_that_never_was_is_said_once_at_the_end_of_a_run():
    sim = bk.Simulation(pendulum(), q=[0.1])
    sim.when(bk.force_above("pivto", 1.0), lambda s: True)
    with pytest.warns(bk.SimulationWarning, match=r"never applied: there is no .*'pivto'; did you mean 'pivot'\?"):
        sim.run(until=0.1)
    sim.run(until=0.2)  # and only once
    assert sim.t == 0.2


@pytest.mark.parametrize("start", [0.0, 1e4, 1e6])
def test_a_condition_that_starts_from_its_extreme_is_located_at_any_time(start):
    """The first steps are short, and late in time only a few roundings long: the search for an extreme must end."""
    sim = bk.Simulation(pendulum(), q=[1.0], t=start)
    up = sim.when(lambda t, q, v: v[0], lambda s: None, repeat=True)
    down = sim.when(lambda t, q, v: -v[0], lambda s: None, repeat=True)
    sim.run(start + 4.0)
    assert 1 <= len(up.times) <= 4
    assert abs(len(up.times) - len(down.times)) <= 1
    assert sim.stats.steps < 2000


def test_an_action_may_answer_with_a_bool_of_numpy():
    sim = bk.Simulation(pendulum(), [1.0])
    sim.when(lambda t, q, v: -q[0], lambda s: s.v[0] < 0)
    sim.run(2.0)
    assert sim.t < 2.0
