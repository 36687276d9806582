"""External action on a simulation: external forces, pulls, prescribed motion; against SciPy and closed forms."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import bunraku as bk
from bunraku.simulation.watching import prescribed_at


def reference(mechanism, q, v, until, external):
    """The same motion by SciPy, with a wrench {link: (6,)} that is a function of (t, q, v)."""
    nq = mechanism.nq

    def rates(t, y):
        y, speed = y[:nq], y[nq:]
        dq = (mechanism.integrate(y, 1e-7 * speed) - mechanism.integrate(y, -1e-7 * speed)) / 2e-7
        return np.concatenate([dq, bk.forward_dynamics(mechanism, y, speed, external=external(t, y, speed))])

    found = solve_ivp(rates, (0.0, until), np.concatenate([q, v]), rtol=1e-9, atol=1e-11, method="DOP853")
    return found.y[:nq, -1], found.y[nq:, -1]


def spring(mechanism, link, point, target, stiffness, damping):
    def wrench(t, q, v):
        moved = bk.kinematics(mechanism, q, v)
        rotation, origin = moved.poses[link]
        arm = rotation @ point
        velocity = moved.velocities[link]
        speed = velocity[:3] + np.cross(velocity[3:], arm)
        force = stiffness * (target - origin - arm) - damping * speed
        return {link: np.concatenate([force, np.cross(arm, force)])}

    return wrench


def chain(links=4):
    return bk.models.chain(links, joint="spherical")


@pytest.fixture(scope="module")
def start():
    m = chain()
    rng = np.random.default_rng(3)
    q = m.integrate(m.neutral(), 0.4 * rng.normal(size=m.nv))
    return m, q, 0.3 * rng.normal(size=m.nv)


@pytest.mark.parametrize("solver", ["gear", "tsit5", "implicit"])
def test_external_force_as_scipy_has_it(start, solver):
    m, q, v = start
    link, wrench = m.link_names[2], np.array([3.0, -2.0, 1.0, 0.1, 0.2, -0.1])
    sim = bk.Simulation(m, q, v, solver=solver, rtol=1e-9, atol=1e-11, external={link: wrench})
    sim.advance(0.4)
    there, speed = reference(m, q, v, 0.4, lambda t, q, v: {link: wrench})
    tolerance = 2e-5 if solver == "implicit" else 1e-6
    assert np.abs(m.difference(sim.q, there)).max() < tolerance
    assert np.abs(sim.v - speed).max() < 20 * tolerance * np.abs(speed).max()


def test_external_force_as_a_function_of_time_beside_an_actuation(start):
    m, q, v = start
    link = m.link_names[-1]

    def wave(t):
        return (5.0 * np.sin(7.0 * t), 0.0, 0.0, 0.0, 0.0, 0.0)

    @bk.actuation
    def brake(t, q, v, params, tau):
        for j in range(len(tau)):
            tau[j] = -params[0] * v[j]

    sim = bk.Simulation(m, q, v, rtol=1e-9, atol=1e-11, external={link: wave}, actuation=brake, params=[0.01])
    sim.advance(0.3)
    damped = m
    for name in m.link_names:
        damped = damped.with_joint(name, damping=0.01)
    there, speed = reference(damped, q, v, 0.3, lambda t, q, v: {link: np.array(wave(t))})
    assert np.abs(m.difference(sim.q, there)).max() < 1e-6
    assert np.abs(sim.v - speed).max() < 1e-6 * np.abs(speed).max()


def test_push_changes_and_ends_a_force(start):
    m, q, v = start
    link, wrench = m.link_names[0], np.array([0.0, 0.0, 4.0, 0.0, 0.0, 0.0])
    sim = bk.Simulation(m, q, v, rtol=1e-10, atol=1e-12)
    sim.push(link, wrench)
    sim.advance(0.1)
    middle, speed = reference(m, q, v, 0.1, lambda t, q, v: {link: wrench})
    assert np.abs(m.difference(sim.q, middle)).max() < 1e-7
    sim.push(link)
    free = bk.Simulation(m, sim.q, sim.v, rtol=1e-10, atol=1e-12)
    sim.advance(0.2)
    free.advance(0.1)
    assert np.abs(m.difference(sim.q, free.q)).max() < 1e-8


@pytest.mark.parametrize("held", [False, True])
def test_pull_is_a_spring_to_the_target(start, held):
    m, q, v = start
    m = m.copy()
    link, point, target = m.link_names[2], np.array([0.02, -0.1, -0.3]), np.array([0.3, 0.5, -1.0])
    sim = bk.Simulation(m, q, v, rtol=1e-9, atol=1e-11)
    if held:  # a loop
        sim.connect("ground", m.link_names[-1], bk.Spherical(), name="grip")
    q, v, m = sim.q.copy(), sim.v.copy(), sim.mechanism
    sim.pull(link, point, target, stiffness=60.0, damping=3.0)
    sim.advance(0.3)
    there, speed = reference(m, q, v, 0.3, spring(m, link, point, target, 60.0, 3.0))
    assert np.abs(m.difference(sim.q, there)).max() < 1e-6
    assert np.abs(sim.v - speed).max() < 1e-6 * np.abs(speed).max()


def test_pull_by_default_brings_a_point_to_a_moving_target():
    floating = bk.Mechanism(gravity=(0, 0, 0))
    floating.add_link("ball", joint=bk.Free(), mass=2.0, inertia=(0.01, 0.01, 0.01))
    sim = bk.Simulation(floating, record=None)
    for k in range(180):
        target = np.array([0.5, 0.1, min(1.0, k / 60)])
        sim.pull("ball", (0, 0, 0), target)
        sim.advance((k + 1) / 60)
    assert sim.q[:3] == pytest.approx(target, abs=1e-3)
    sim.release()
    v = sim.v.copy()
    sim.advance(4.0)
    assert np.allclose(sim.v, v, atol=1e-9)  # let go: nothing acts any more


# -- pull and turn -----------------------------------------------------------------------------------------------------


def turning(mechanism, link, rotation, stiffness, damping):
    def wrench(t, q, v):
        moved = bk.kinematics(mechanism, q, v)
        left = (rotation * Rotation.from_matrix(moved.poses[link][0]).inv()).as_rotvec()
        return {link: np.concatenate([np.zeros(3), stiffness * left - damping * moved.velocities[link][3:]])}

    return wrench


def body(inertia=(0.03, 0.02, 0.02), **settings):
    m = bk.Mechanism(gravity=(0, 0, 0))
    m.add_link("body", joint=bk.Free(), mass=2.0, inertia=inertia)
    return bk.Simulation(m, rtol=1e-10, atol=1e-12, **settings)


@pytest.mark.parametrize("held", [False, True])
def test_pull_turns_a_link_to_a_rotation(start, held):
    m, q, v = start
    link, point, target = m.link_names[2], np.array([0.02, -0.1, -0.3]), np.array([0.3, 0.5, -1.0])
    rotation = Rotation.from_rotvec([0.4, -1.1, 0.7])
    sim = bk.Simulation(m.copy(), q, v, rtol=1e-9, atol=1e-11)
    if held:  # a loop
        sim.connect("ground", m.link_names[-1], bk.Spherical(), name="grip")
    q, v, m = sim.q.copy(), sim.v.copy(), sim.mechanism
    sim.pull(link, point, target, 60.0, 3.0, rotation=rotation.as_matrix(), turn_stiffness=7.0, turn_damping=0.4)

    def wrench(t, q, v):
        pulled = spring(m, link, point, target, 60.0, 3.0)(t, q, v)[link]
        return {link: pulled + turning(m, link, rotation, 7.0, 0.4)(t, q, v)[link]}

    assert np.allclose(sim.dynamics().a, bk.forward_dynamics(m, q, v, external=wrench(0.0, q, v)), atol=1e-9)
    sim.advance(0.3)
    there, speed = reference(m, q, v, 0.3, wrench)
    assert np.abs(m.difference(sim.q, there)).max() < 1e-6
    assert np.abs(sim.v - speed).max() < 1e-6 * np.abs(speed).max()


def test_springs_of_a_pull_store_what_the_motion_loses():
    sim = body(v=[0.3, -0.2, 0.1, 1.0, -2.0, 3.0])
    target, rotation = np.array([0.2, 0.1, -0.3]), Rotation.from_rotvec([1.5, 0.3, -1.0])
    sim.pull("body", (0, 0, 0), target, 40.0, 0.0, rotation=rotation.as_matrix(), turn_stiffness=0.9, turn_damping=0.0)

    def energy():
        left = (rotation * Rotation.from_quat(sim.q[3:], scalar_first=True).inv()).magnitude()
        return sim.mechanism.energy(sim.q, sim.v)[0] + 20.0 * np.sum((target - sim.q[:3]) ** 2) + 0.45 * left**2

    begin, kinetic = energy(), []
    for k in range(1, 31):
        sim.advance(0.05 * k)
        assert energy() == pytest.approx(begin, rel=1e-7)
        kinetic.append(sim.mechanism.energy(sim.q, sim.v)[0])
    assert max(kinetic) > 2 * min(kinetic)  # it went to and fro between springs and motion


@pytest.mark.parametrize("axis", range(3))
def test_turning_by_default_is_critically_damped_about_each_axis_of_a_thin_link(axis):
    inertia = np.array([0.03, 0.03, 0.0009])
    sim = body(inertia)
    turn = 1.2 * np.eye(3)[axis]
    sim.pull("body", (0, 0, 0), (0, 0, 0), rotation=Rotation.from_rotvec(turn).as_matrix())
    rate = 4 * np.pi * np.sqrt(0.03 / inertia[axis])  # the spring is that of the largest moment
    for t in (0.3 / rate, 1.0 / rate, 4.0 / rate):
        sim.advance(t)
        left = (Rotation.from_rotvec(turn) * Rotation.from_quat(sim.q[3:], scalar_first=True).inv()).as_rotvec()
        assert np.allclose(left, turn * (1 + rate * t) * np.exp(-rate * t), atol=1e-6)


def test_pull_turns_by_a_half_turn_too():
    sim = body()
    sim.pull("body", (0, 0, 0), (0, 0, 0), rotation=np.diag([-1.0, 1.0, -1.0]), turn_stiffness=2.0, turn_damping=0.3)
    moment = sim.dynamics().a[3:] * (0.03, 0.02, 0.02)
    assert np.allclose(np.abs(moment), (0, 2.0 * np.pi, 0), atol=1e-9)
    sim.advance(0.01)
    assert np.allclose(np.abs(sim.v[4]), 2.0 * np.pi / 0.02 * 0.01, rtol=0.1)
    assert np.allclose(sim.v[[3, 5]], 0, atol=1e-9)
    sim.advance(4.0)
    assert np.allclose(np.abs(sim.q[3:]), (0, 0, 1, 0), atol=1e-3)


def test_a_link_without_inertia_of_its_own_is_turned_too():
    m = bk.Mechanism(gravity=(0, 0, 0))
    m.add_link("hub", joint=bk.Spherical(), mass=0.0)
    m.add_link("rod", "hub", bk.Fixed(), mass=1.0, com=(0, 0, -0.5), inertia=(0.02, 0.02, 0.01))
    sim = bk.Simulation(m)
    goal = Rotation.from_rotvec([0.5, 0.2, -0.3])
    sim.pull("hub", (0, 0, 0), (0, 0, 0), rotation=goal.as_matrix())
    sim.advance(60.0)
    assert (goal * Rotation.from_quat(sim.q, scalar_first=True).inv()).magnitude() < 0.02


def test_a_turn_needs_a_rotation():
    sim = body()
    with pytest.raises(bk.ModelError, match="3x3"):
        sim.pull("body", (0, 0, 0), (0, 0, 0), rotation=(1.0, 0.0, 0.0, 0.0))
    with pytest.raises(bk.ShapeError, match="give rotation="):
        sim.pull("body", (0, 0, 0), (0, 0, 0), turn_stiffness=3.0)
    with pytest.raises(bk.ShapeError, match="turn_damping"):
        sim.pull("body", (0, 0, 0), (0, 0, 0), rotation=np.eye(3), turn_damping=-1.0)


@pytest.mark.parametrize("solver", ["gear", "rk4"])
@pytest.mark.parametrize("loops", [False, True])
def test_pull_and_push_on_several_workers_are_those_of_one(solver, loops):
    m = bk.models.chain(40)
    rng = np.random.default_rng(5)
    q = 0.2 * rng.normal(size=m.nq)
    options = {"step": 1e-3} if solver == "rk4" else {"rtol": 1e-9, "atol": 1e-11}
    turned = Rotation.from_rotvec([0.3, 1.0, 0.1]).as_matrix()
    ends = []
    for workers in (None, 1, 2):
        schedule = None if workers is None else bk.schedule(m, 2, exactly=True)
        sim = bk.Simulation(m, q, solver=solver, workers=workers, schedule=schedule, **options)
        if loops:
            sim.connect("ground", m.link_names[-1], bk.Spherical(), name="grip")
        sim.push(m.link_names[30], (1.0, 2.0, 0.0, 0.1, 0.0, 0.0))
        for k in range(6):
            for link in (m.link_names[8], m.link_names[35]):
                sim.pull(link, (0.01, 0.0, -0.2), (0.1 * k, 0.2, -3.0), 20.0, 0.5, rotation=turned, turn_damping=0.1)
            sim.advance(0.02 * (k + 1))
        sim.release()
        sim.advance(0.15)
        ends.append((sim.q.copy(), sim.v.copy(), sim.stats.steps, sim.stats.workers))
    serial, one, two = ends
    assert (one[3], two[3]) == (1, 2)
    assert np.array_equal(one[0], two[0])
    assert np.array_equal(one[1], two[1])
    assert one[2] == two[2]
    assert np.abs(serial[0] - two[0]).max() < 1e-6
    assert np.abs(serial[1] - two[1]).max() < 1e-4


# -- prescribed motion -------------------------------------------------------------------------------------------------


def cart():
    m = bk.Mechanism()
    m.add_link("cart", joint=bk.Prismatic((1, 0, 0)), joint_name="rail", mass=3.0, inertia=(0.1, 0.1, 0.1))
    m.add_link("rod", "cart", joint=bk.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -0.5), inertia=(0.02, 0.02, 0.001))
    return m


def swing(t):
    return 0.2 * np.sin(5.0 * t)


def swing_fully(t):
    return 0.2 * np.sin(5.0 * t), np.cos(5.0 * t), -5.0 * np.sin(5.0 * t)


TIMES = np.linspace(0.0, 2.0, 201)


@pytest.mark.parametrize(("given", "tolerance"), [(swing, 1e-7), (swing_fully, 1e-7), ((TIMES, swing(TIMES)), 1e-4)])
@pytest.mark.parametrize("workers", [1, 2])
def test_pendulum_on_a_cart_that_is_moved(given, tolerance, workers):
    sim = bk.Simulation(cart(), [0.0, 0.3], rtol=1e-10, atol=1e-12, prescribed={"cart": given}, workers=workers)
    sim.advance(1.5)
    inertia = 0.02 + 0.25  # about the hinge; x = -0.5 sin(angle) along x when it turns about y

    def rates(t, y):
        push = -5.0 * np.sin(5.0 * t)
        return y[1], (0.5 * np.cos(y[0]) * push - 9.81 * 0.5 * np.sin(y[0])) / inertia

    found = solve_ivp(rates, (0.0, 1.5), [0.3, 0.0], rtol=1e-11, atol=1e-12)
    assert sim.q[1] == pytest.approx(found.y[0, -1], abs=20 * tolerance)
    assert sim.q[0] == pytest.approx(swing(1.5), abs=tolerance)
    assert sim.v[0] == pytest.approx(np.cos(7.5), abs=20 * tolerance)


def carried():
    m = bk.Mechanism()
    m.add_link("suspension", joint=bk.Free(), mass=1.0, inertia=(0.1, 0.2, 0.3))
    m.add_link("bob", "suspension", joint=bk.Spherical(), position=(0.1, 0, 0), mass=0.5, com=(0, 0, -0.4),
               inertia=(0.01, 0.01, 0.002))
    return m


def tour(t):
    """A free joint that moves and turns at once."""
    half = np.array([0.4 * np.sin(2 * t), 0.3 * t, 0.2 * np.cos(t)])
    angle = np.linalg.norm(half)
    return np.concatenate([[0.3 * np.sin(3 * t), 0.1 * t**2, 0.2 * np.cos(2 * t)], [np.cos(angle)],
                           np.sin(angle) / angle * half])


@pytest.mark.parametrize("table", [False, True])
def test_free_joint_follows_its_motion_and_carries_the_rest(table):
    m = carried()
    times = np.linspace(0.0, 1.2, 241)
    given = (times, np.array([tour(t) for t in times])) if table else tour
    sim = bk.Simulation(m, rtol=1e-9, atol=1e-11, prescribed={"suspension": given})
    tr = sim.run(1.0)
    tolerance = 1e-6 if table else 1e-7
    there = m.neutral()
    there[:7], there[7:] = tour(1.0), sim.q[7:]
    assert np.abs(m.difference(sim.q, there)).max() < tolerance
    # velocities are those of the coordinates, and the bob obeys the dynamics of a prescribed suspension
    assert tr.segments[-1].v[-1][:6] == pytest.approx(
        (lambda d: (m.difference(*d) / 2e-4)[:6])([np.concatenate([tour(1 + s), sim.q[7:]]) for s in (-1e-4, 1e-4)]),
        abs=1e-3)
    free = bk.Simulation(m, tr.q[0], tr.v[0], rtol=1e-9, atol=1e-11, actuation=lambda t, q, v: bk.inverse_dynamics(
        m, q, v, bk.forward_dynamics(m, q, v, prescribed=prescribed_at(sim, t, q, v))))
    free.advance(0.4)
    assert np.abs(m.difference(free.q, tr.sample([0.4])[0][1])).max() < 1e-6  # the torques that it takes, given as such


def test_a_table_of_rotations_is_as_good_as_one_of_angles():
    m = carried()
    times = np.linspace(0.0, 1.2, 121)
    exact = bk.Simulation(m, rtol=1e-10, prescribed={"suspension": tour})._running.acting.courses[0]
    table = bk.Simulation(m, rtol=1e-10, prescribed={
        "suspension": (times, np.array([tour(t) * (1 if k % 7 else [1, 1, 1, -1, -1, -1, -1])  # either sign will do
                                        for k, t in enumerate(times)]))})._running.acting.courses[0]
    for t in (0.0, 0.003, 0.5, 0.777, 1.1997, 1.2):
        q, v, a = exact(t)
        p, w, b = table(t)
        assert min(np.abs(p[3:] - q[3:]).max(), np.abs(p[3:] + q[3:]).max()) < 1e-7
        assert np.abs(w - v).max() < 2e-5
        assert np.abs(b - a).max() < 5e-3


def test_guide_goes_where_it_is_told():
    m = carried()
    home = m.neutral()[:7]
    guide = bk.Guide(home)
    sim = bk.Simulation(m, prescribed={"suspension": guide}, record=1.0)
    sim.advance(0.2)
    assert np.allclose(sim.q[:7], home, atol=1e-9)
    target = np.array([0.5, 0.0, 0.2, np.cos(0.5), 0.0, 0.0, np.sin(0.5)])
    guide.to(target, seconds=0.4)
    sim.advance(0.6)
    assert np.abs(sim.q[:3] - target[:3]).max() < 0.02 * 0.6
    sim.advance(2.0)
    assert sim.q[:7] == pytest.approx(target, abs=1e-5)


def test_a_cut_ends_a_prescribed_motion():
    sim = bk.Simulation(cart(), prescribed={"cart": swing})
    sim.advance(0.1)
    sim.cut("cart")
    z = bk.kinematics(sim.mechanism, sim.q, sim.v).com[2]
    sim.advance(0.4)
    assert bk.kinematics(sim.mechanism, sim.q, sim.v).com[2] < z - 0.3  # falls


@pytest.mark.parametrize(("options", "error", "words"), [
    ({"prescribed": {"nose": swing}}, bk.NamingError, "nose"),
    ({"prescribed": {"cart": 3.0}}, bk.ModelError, "function of t"),
    ({"prescribed": {"cart": lambda t, q: 0.0}}, bk.ModelError, "function of t"),
    ({"prescribed": {"cart": ([0.0, 0.0], [1.0, 2.0])}}, bk.ShapeError, "increase"),
    ({"prescribed": {"cart": ([0.0, 1.0], [[1.0, 2.0], [1.0, 2.0]])}}, bk.ShapeError, "cart"),
    ({"prescribed": [1]}, bk.ShapeError, "dictionary"),
    ({"external": {"rod": (1, 2, 3)}}, bk.ShapeError, "rod"),
    ({"external": {"ground": (1, 2, 3, 4, 5, 6)}}, bk.NamingError, "ground"),
    ({"external": {"rod": np.zeros((2, 6))}}, bk.ShapeError, "batch"),
    ({"external": {"rod": (np.inf, 0, 0, 0, 0, 0)}}, bk.ShapeError, "'rod' is not finite"),
    ({"prescribed": {"cart": swing, "rail": swing}}, bk.NamingError, "twice"),
    ({"record": "some"}, bk.ModelError, "record"),
    ({"record": -1.0}, bk.ShapeError, "record"),
    ({"record": None, "dense": True}, bk.ModelError, "dense"),
    ({"reads": "cart"}, bk.NamingError, "list"),
    ({"reads": ["nose"]}, bk.NamingError, "nose"),
])
def test_wrong_calls_are_refused_by_name(options, error, words):
    with pytest.raises(error, match=words):
        bk.Simulation(cart(), **options)


def test_wrong_calls_while_running():
    sim = bk.Simulation(cart(), prescribed={"cart": (TIMES, swing(TIMES))})
    with pytest.raises(bk.ShapeError, match="ends at 2 s"):
        sim.run(2.5)
    with pytest.raises(bk.NamingError, match="nose"):
        sim.pull("nose", (0, 0, 0), (0, 0, 0))
    with pytest.raises(bk.ShapeError, match="stiffness"):
        sim.pull("rod", (0, 0, 0), (0, 0, 0), stiffness=-1.0)
    with pytest.raises(bk.SimulationError, match="not being pulled"):
        sim.release("rod")
    with pytest.raises(bk.ModelError, match="implicit"):
        bk.Simulation(cart(), solver="implicit", prescribed={"cart": swing}).run(0.1)
    failing = bk.Simulation(cart(), external={"rod": lambda t: (1, 2)})
    with pytest.raises(bk.SimulationError, match="rod"):
        failing.run(0.1)
    jumps = bk.Simulation(cart(), external={"rod": lambda t: 1 / 0})
    with pytest.raises(bk.SimulationError, match="division by zero"):
        jumps.run(0.1)


def test_checkpoint_goes_on_with_all_that_acts(tmp_path):
    def run(sim):
        sim.advance(0.5)
        return np.concatenate([sim.q, sim.v])

    def wind(t):
        return (np.sin(t), 0, 0, 0, 0, 0)

    sim = bk.Simulation(cart(), [0.0, 0.3], prescribed={"cart": swing}, external={"rod": wind, "cart": np.ones(6)},
                        record=0.2)
    sim.pull("rod", (0, 0, -1), (0.3, 0, -0.5))
    sim.advance(0.2)
    file = sim.save(tmp_path / "here")
    with pytest.raises(bk.ModelError, match="external functions for 'rod'; prescribed functions for 'cart'"):
        bk.Simulation.load(file)
    with pytest.raises(bk.ModelError, match="prescribed"):
        bk.Simulation.load(file, external={"rod": wind})
    with pytest.raises(bk.ModelError, match="external"):
        bk.Simulation.load(file, prescribed={"cart": swing})
    again = bk.Simulation.load(file, prescribed={"cart": swing}, external={"rod": wind})
    assert np.array_equal(run(again), run(sim))
    assert again.trajectory.t[0] <= 0.3 < again.trajectory.t[1]


def slider():
    m = bk.Mechanism(gravity=(0, 0, 0))
    m.add_link("cart", joint=bk.Prismatic((1, 0, 0)), joint_name="rail", mass=2.0, inertia=(1, 1, 1))
    m.add_link("bob", "cart", bk.Revolute((0, 1, 0)), "pin", mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    return m


def even(t):
    return 5.0 * t * t, 10.0 * t, 10.0


@pytest.mark.parametrize(("act", "joint", "force"), [
    (lambda sim: sim.push("bob", (0, 100.0, 0, 0, 0, 0)), "rail", 100.0),
    (lambda sim: sim.push("bob", lambda t: (0, 100.0, 0, 0, 0, 0)), "pin", 100.0),
    (lambda sim: sim.pull("cart", (0, 0, 0), (0, 1, 0), 80.0, 0.0), "rail", 80.0),
])
def test_forces_that_are_watched_have_all_that_acts(act, joint, force):
    for limit, expected in ((1.01 * force, []), (0.99 * force, [0.0])):
        sim, hit = bk.Simulation(slider()), []
        act(sim)
        sim.when(bk.force_above(joint, limit), lambda sim, hit=hit: hit.append(sim.t))
        sim.advance(1e-3)
        assert hit == expected
        assert np.linalg.norm(sim.dynamics().forces[joint][:3]) == pytest.approx(force, rel=1e-3)


def test_force_in_a_prescribed_joint():
    m = slider()
    m = m.with_joint("pin", joint=bk.Fixed())
    sim = bk.Simulation(m, prescribed={"rail": even})
    sim.advance(0.1)
    r = sim.dynamics()
    assert r.forces["rail"][:3] == pytest.approx([30.0, 0, 0], abs=1e-6)  # 3 kg at 10 m/s^2
    assert r.forces["pin"][:3] == pytest.approx([10.0, 0, 0], abs=1e-6)
    held = bk.Simulation(m, prescribed={"rail": even})
    held.connect("cart", "bob", bk.Fixed(), name="second")  # a loop: the two share the force
    both = held.dynamics().forces
    assert both["pin"][0] + both["second"][0] == pytest.approx(10.0, abs=1e-6)
    assert both["rail"][0] == pytest.approx(30.0, abs=1e-6)


def test_prescribed_joints_keep_their_velocity_when_struck_or_connected():
    sim = bk.Simulation(slider(), prescribed={"rail": lambda t: (0.0, 0.0, 0.0)})
    sim.impulse("bob", (1, 0, 0), point=(0, 0, -1))
    assert sim.v == pytest.approx([0.0, -1 / 1.1], abs=1e-12)
    m = bk.Mechanism(gravity=(0, 0, 0))
    for name in ("cart", "block"):
        m.add_link(name, joint=bk.Prismatic((1, 0, 0)), mass=1.0, inertia=(1, 1, 1))
    sim = bk.Simulation(m, prescribed={"cart": lambda t: (t, 1.0, 0.0)})
    sim.advance(0.1)
    sim.connect("cart", "block", bk.Fixed(), "glue")
    assert sim.v == pytest.approx([1.0, 1.0], abs=1e-9)
    sim.advance(0.5)
    assert sim.q == pytest.approx([0.5, 0.4], abs=1e-8)


@pytest.mark.parametrize(("given", "cut"), [("pin", "bob"), ("bob", "pin"), ("pin", "pin")])
def test_a_cut_by_either_name_ends_a_prescribed_motion(given, cut):
    sim = bk.Simulation(slider(), prescribed={given: lambda t: (0.1 * t, 0.1, 0.0)})
    sim.advance(0.1)
    sim.cut(cut)
    sim.advance(0.2)
    assert sim.mechanism.nv == 7


def test_a_table_that_begins_later_is_refused():
    with pytest.raises(bk.ShapeError, match="begins at 1 s"):
        bk.Simulation(slider(), prescribed={"rail": ([1.0, 2.0, 3.0], [0.0, 1.0, 0.0])})


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_record_keeps_what_is_asked_for():
    everything = bk.Simulation(cart(), [0.0, 0.5])
    everything.advance(3.0)
    whole = everything.trajectory
    recent = bk.Simulation(cart(), [0.0, 0.5], record=0.5)
    recent.advance(3.0)
    kept = recent.trajectory
    assert kept.t[-1] == 3.0
    assert kept.t[0] <= 2.5 < kept.t[1]  # the step in which they begin
    assert np.allclose(kept.sample([2.5])[0][1], whole.sample([2.5])[0][1], atol=1e-8)
    assert np.array_equal(kept.q, whole.q[-len(kept.t):])  # bit by bit
    nothing = bk.Simulation(cart(), [0.0, 0.5], record=None)
    nothing.advance(3.0)
    assert np.array_equal(nothing.q, everything.q)
    assert len(nothing.trajectory.t) == 1


def test_memory_of_a_short_record_stays_small():
    sim = bk.Simulation(cart(), [0.0, 0.5], record=0.2)
    sizes = []
    for k in range(120):
        sim.advance((k + 1) / 60)
        if k % 40 == 20:
            sim.impulse("rod", (0.1, 0, 0))
        sizes.append(len(sim._running.tape.present) + sum(map(len, sim._running.tape.past)))
    assert max(sizes[60:]) <= 2 * max(sizes[:30])
    assert [event.text[:7] for event in sim.trajectory.events] == []  # older than what is kept


def test_recording_does_not_change_the_motion_of_an_actuation_with_a_memory(tmp_path):
    def run(file):
        count = [0]

        def counts(t, q, v):
            count[0] += 1
            return np.array([0.0, 1e-3 * count[0]])

        sim = bk.Simulation(cart(), [0.0, 0.3], actuation=counts)
        if file is None:
            sim.advance(0.3)
        else:
            with sim.record_to(file):
                sim.advance(0.3)
        return sim.q

    pytest.importorskip("mcap")
    assert np.array_equal(run(None), run(tmp_path / "a.mcap"))


@pytest.mark.parametrize("act", [{"external": {"rod": (0, 500.0, 0, 0, 0, 0)}}, {"prescribed": {"cart": swing}}, {}])
def test_forces_of_a_recording_are_refused_if_more_acted_than_it_has(act, tmp_path):
    pytest.importorskip("mcap")
    pytest.importorskip("matplotlib")
    from bunraku.view.plots import plot

    sim = bk.Simulation(cart(), [0.0, 0.3], **act)
    if not act:
        sim.pull("rod", (0, 0, 0), (0, 1, 0))
    with sim.record_to(tmp_path / "a.mcap"):
        sim.advance(0.1)
    with pytest.raises(bk.ShapeError, match="what else acted"):
        plot(bk.load_trajectory(tmp_path / "a.mcap"), tmp_path / "a.png", ["forces"])


# -- what the actuation reads ------------------------------------------------------------------------------------------


def test_an_actuation_that_says_what_it_reads_gets_that_only():
    m = bk.models.chain(40)
    names = [m.link_names[k] for k in (3, 20, 38)]
    at = [m.v_slice(name).start for name in names]
    schedule, seen = bk.schedule(m, 2, exactly=True), []

    def spring(t, q, v):
        seen.append(q.copy())
        tau = np.zeros(m.nv)
        tau[at] = -3.0 * q[at] - 0.1 * v[at]
        return tau

    ends = []
    for workers, reads in ((1, None), (2, None), (1, names), (2, names)):
        seen.clear()
        sim = bk.Simulation(m, np.full(m.nq, 0.1), actuation=spring, workers=workers, schedule=schedule, reads=reads)
        sim.advance(0.1)
        ends.append((sim.q.copy(), sim.stats.steps))
        if reads and workers == 2:
            assert np.isfinite(seen[-1][at]).all()
            assert np.isnan(np.delete(seen[-1], at)).all()
    for q, steps in ends[1:]:
        assert np.array_equal(q, ends[0][0])
        assert steps == ends[0][1]


def test_messages_of_an_actuation_grow_with_what_it_reads():
    from bunraku.evaluate.team import divide
    from bunraku.plan import fields as f
    from bunraku.plan.chunk_plan import Read

    floats = []
    for links in (40, 80):
        m = bk.models.chain(links)
        plan = m.plan()
        assembly = bk.schedule(m, 2, exactly=True).assembly(plan)
        division = divide(plan, assembly, False, Read(np.array([1, links - 2]), np.array([1, links - 2])))
        floats.append([e.floats for e in division.edges if e.number == f.GATHER and e.receiver == 0])
    assert floats[0] == floats[1]  # whatever the size of the mechanism
    assert sum(floats[0]) in (2, 4)


def test_a_guide_leads_to_numbers():
    with pytest.raises(bk.ShapeError, match=r"q must be finite numbers, but q\[1\] is nan"):
        bk.Guide([0.0, np.nan])
    guide = bk.Guide(0.3)
    with pytest.raises(bk.ShapeError, match="q must be finite numbers, but q is inf"):
        guide.to(np.inf)
    assert guide.q == 0.3
