"""Values that are read-only, and the calls that change them: mechanisms by copies, states by events."""

import copy
import pickle

import numpy as np
import pytest

import bunraku as bk
from oracle import close
from structures import arm


def double(**joint):
    m = bk.Mechanism()
    for name, parent, z in (("upper", "ground", 1.2), ("lower", "upper", -0.5)):
        m.add_link(name, parent, bk.Revolute((0, 1, 0), **joint), joint_name=f"{name}_joint", position=(0, 0, z),
                   mass=1.0, com=(0, 0, -0.25), inertia=(0.02, 0.02, 0.001))
    return m


def write(place, key, value):
    place[key] = value


# -- mechanisms ----------------------------------------------------------------------------------------------------

WRITES = {
    "mass": (lambda m: setattr(m.link("upper"), "mass", 3.0), r"m.with_link\('upper', mass=3.0\)"),
    "upper": (lambda m: setattr(m.joint("upper"), "upper", 2.0), r"m.with_joint\(name, upper=2.0\)"),
    "joint": (lambda m: setattr(m.link("upper"), "joint", bk.Free()), r"m.with_joint\('upper_joint', joint="),
    "com": (lambda m: write(m.link("upper").com, 2, -0.3), r"m.with_link\('upper', com="),
    "inertia": (lambda m: write(m.link("upper").inertia, (0, 0), 1.0), r"m.with_link\('upper', inertia="),
    "a row of the inertia": (lambda m: write(m.link("upper").inertia[0], 0, 1.0), "with_link"),
    "axis": (lambda m: write(m.joint("upper").axis, 0, 1.0), "with_joint"),
    "gravity": (lambda m: write(m.gravity, 2, -1.62), r"m.gravity = \(0, 0, -1.62\)"),
    "links": (lambda m: m.links.append(m.links[0]), "add_link"),
    "a link": (lambda m: write(m.links, 0, m.links[1]), "with_link"),
    "springs": (lambda m: m.springs.clear(), "add_spring"),
    "connections": (lambda m: m.connections.clear(), r"m.cut\(name\)"),
}


@pytest.mark.parametrize("what", WRITES)
def test_a_write_without_effect_is_refused_with_the_call_that_has_one(what):
    do, call = WRITES[what]
    m = double()
    with pytest.raises(bk.ReadOnlyError, match=call) as caught:
        do(m)
    assert isinstance(caught.value, (bk.ModelError, AttributeError, ValueError))
    assert repr(m) == repr(double())
    assert m.gravity[2] == -9.81


def test_a_changed_link_moves_as_one_that_was_built_so():
    m, built = double(), bk.Mechanism()
    for name, parent, z, mass in (("upper", "ground", 1.2, 3.0), ("lower", "upper", -0.5, 1.0)):
        built.add_link(name, parent, bk.Revolute((0, 1, 0)), position=(0, 0, z), mass=mass, com=(0, 0, -0.25),
                       inertia=(0.02, 0.02, 0.001))
    q, v = np.array([0.4, -0.2]), np.array([1.0, 2.0])
    changed = m.with_link("upper", mass=3.0)
    assert (bk.forward_dynamics(changed, q, v) == bk.forward_dynamics(built, q, v)).all()
    assert (m.link("upper").mass, changed.link("upper").mass) == (1.0, 3.0)


def test_a_changed_joint_has_its_limits_springs_and_axis():
    m = double(limit_stiffness=50.0)
    q, v = np.array([0.8, 0.0]), np.zeros(2)
    limited = m.with_joint("upper_joint", upper=0.5)
    pulled = bk.inverse_dynamics(limited, q, v, v) - bk.inverse_dynamics(m, q, v, v)
    close(pulled, [50.0 * 0.3, 0.0], 1e-12)
    assert (limited.joint("upper").upper, m.joint("upper").upper) == (0.5, np.inf)
    turned = m.with_joint("lower_joint", axis=(1, 0, 0), actuated=False)
    assert repr(turned.joint("lower")).startswith("Revolute((1, 0, 0)")
    assert not turned.link("lower").actuated


def test_a_joint_can_be_given_another_name():
    m = double().with_joint("upper_joint", joint_name="shoulder")
    assert m.joint_names == ["shoulder", "lower_joint"]
    assert m.q_slice("shoulder") == slice(0, 1)
    with pytest.raises(bk.NamingError, match="upper_joint"):
        m.q_slice("upper_joint")
    with pytest.raises(bk.NamingError, match="already a joint"):
        m.with_joint("shoulder", joint_name="lower_joint")


def test_another_kind_of_joint_shifts_the_coordinates_that_follow():
    m = arm().with_joint("link0", joint=bk.Spherical(damping=0.1))
    assert (m.nq, m.nv) == (6, 5)
    assert (m.q_slice("link1"), m.v_slice("link1")) == (slice(4, 5), slice(3, 4))
    assert np.isfinite(bk.forward_dynamics(m, m.neutral(), np.zeros(5))).all()


def test_parameters_of_compound_joints_connections_and_springs():
    m = bk.Mechanism()
    m.add_link("a", joint=bk.Compound(bk.Revolute((1, 0, 0)), bk.Revolute((0, 1, 0))), mass=1.0, inertia=(1, 1, 1))
    m.add_spring("ground", "a", stiffness=1.0, name="s", position_b=(0, 0, 1))
    twin = m.with_joint("a", damping=[1.0, 2.0]).with_spring("s", stiffness=5.0)
    assert twin.joint("a").damping.tolist() == [1.0, 2.0]
    assert (m.springs[0].stiffness, twin.springs[0].stiffness) == (1.0, 5.0)
    linkage = bk.models.four_bar()
    (name,) = linkage.connections
    damped = linkage.with_joint(name, damping=3.0)
    assert (damped.connections[name].joint.damping, linkage.connections[name].joint.damping) == (3.0, 0.0)


@pytest.mark.parametrize(("ask", "words"), [
    (lambda m: m.with_link("upper", upper=1.0), r"with_joint\('upper_joint', upper="),
    (lambda m: m.with_joint("upper_joint", mass=1.0), r"with_link\('upper', mass="),
    (lambda m: m.with_joint("upper_joint", uper=1.0), "did you mean 'upper'"),
    (lambda m: m.with_link("upper_joint", mass=1.0), "'upper_joint' is a joint where a link is meant"),
    (lambda m: m.with_link("upper", inertia=(1, 1, 3)), "triangle"),
    (lambda m: m.with_joint("upper_joint", lower=2.0, upper=1.0), "lies above"),
])
def test_changes_that_make_no_sense_are_refused(ask, words):
    with pytest.raises(bk.ModelError, match=words):
        ask(double())


def test_copies_and_pickles_are_as_read_only_as_the_original():
    for m in (double().copy(), copy.deepcopy(double()), pickle.loads(pickle.dumps(double()))):
        with pytest.raises(bk.ReadOnlyError):
            m.link("upper").com[0] = 1.0
        with pytest.raises(bk.ReadOnlyError):
            m.joint("upper").upper = 1.0
        m.add_link("hand", "lower", mass=1.0)
        assert np.isfinite(bk.forward_dynamics(m, np.zeros(2), np.zeros(2))).all()


# -- the state of a simulation -------------------------------------------------------------------------------------


def test_writing_to_q_or_v_is_refused_with_the_call_that_does_it():
    sim = bk.Simulation(double(), [0.1, 0.2])
    for do in (lambda: write(sim.q, 0, 1.0), lambda: write(sim.v, slice(None), 0.0), lambda: write(sim.q[1:], 0, 1.0),
               lambda: sim.v.__iadd__(1.0), lambda: sim.q.fill(0.0), lambda: setattr(sim, "q", [0.0, 0.0])):
        with pytest.raises(bk.ReadOnlyError, match=r"sim\.set_state"):
            do()
    assert sim.q.tolist() == [0.1, 0.2]
    assert not sim.q.flags.writeable


def test_what_is_computed_from_q_and_v_can_be_written_to():
    sim = bk.Simulation(double(), [0.1, 0.2])
    for array in (sim.q.copy(), sim.q + 1.0, np.array(sim.q), 2.0 * sim.q[:1], pickle.loads(pickle.dumps(sim.q))):
        assert type(array) is np.ndarray
        array[0] = 5.0
    both = np.concatenate([sim.q, sim.v])
    both[:2] *= 2.0
    both[0] = 7.0
    assert both.tolist() == [7.0, 0.4, 0.0, 0.0]
    assert isinstance(sim.q.sum(), float)
    a = bk.forward_dynamics(sim.mechanism, sim.q, sim.v)  # and compiled code takes it as it is
    assert (a == bk.forward_dynamics(sim.mechanism, sim.q.copy(), sim.v.copy())).all()


def test_settings_of_a_run_that_would_have_no_effect_are_refused():
    sim = bk.Simulation(double())
    for name, value in (("solver", "bdf"), ("rtol", 1e-9), ("actuation", None), ("t", 1.0), ("mechanism", double())):
        with pytest.raises(bk.ReadOnlyError, match=f"sim.{name} is read-only"):
            setattr(sim, name, value)
    sim.params = [1, 2]  # made an array, as compiled code wants it
    assert sim.params.dtype == float


def test_set_state_is_an_event_and_a_new_segment():
    sim = bk.Simulation(double(), [0.1, 0.2])
    sim.run(until=0.1)
    sim.set_state([1.0, -1.0], [0.5, 0.0])
    sim.set_state(v=[0.0, 0.3])
    trajectory = sim.run(until=0.2)
    assert [event.text for event in trajectory.events] == ["set_state", "set_state"]
    assert [event.t for event in trajectory.events] == [0.1, 0.1]
    first, second = trajectory.segments
    assert (second.q[0].tolist(), second.v[0].tolist()) == ([1.0, -1.0], [0.0, 0.3])
    assert first.t[-1] == second.t[0] == 0.1
    alone = bk.Simulation(double(), [1.0, -1.0], [0.0, 0.3], t=0.1)
    alone.run(until=0.2)
    assert (alone.q == sim.q).all()


def test_a_simulation_can_start_and_go_on_at_any_time():
    @bk.actuation
    def pulse(t, q, v, params, tau):
        tau[0] = 1.0 if t > 5.0 else 0.0

    sim = bk.Simulation(double(), t=5.0, actuation=pulse)
    assert sim.trajectory.t.tolist() == [5.0]
    sim.run(until=5.1)
    assert sim.q[0] != 0.0
    sim.set_state(t=7.0)
    assert sim.run(until=7.1).t[-1] == 7.1
    sim.set_state([0.0, 0.0], [0.0, 0.0], t=0.0)  # earlier: a record of its own
    trajectory = sim.run(until=0.1)
    assert (trajectory.t[0], sim.t, sim.q[0]) == (0.0, 0.1, 0.0)
    assert (np.diff(trajectory.t) > 0).all()
    with pytest.raises(bk.ShapeError, match="t "):
        bk.Simulation(double(), t=np.nan)


def test_an_action_may_set_the_state_and_the_time():
    sim = bk.Simulation(double(), [0.5, 0.0])
    sim.when(lambda t, q, v: t - 0.1, lambda s: s.set_state([0.0, 0.0], [0.0, 0.0], t=0.3))
    sim.run(until=0.2)
    assert (sim.t, sim.q.tolist(), sim.v.tolist()) == (0.3, [0.0, 0.0], [0.0, 0.0])
    assert [event.text for event in sim.trajectory.events] == ["condition 0", "set_state: from t = 0.1 s"]


def test_a_refused_state_changes_nothing():
    sim = bk.Simulation(bk.models.four_bar())
    sim.run(until=0.1)
    before = sim.q.copy(), sim.v.copy(), len(sim.trajectory.events)
    for q, v, error, words in ((sim.q + 0.1, sim.v, bk.SimulationError, "bk.project"),
                               (sim.q, sim.v + 1.0, bk.SimulationError, "bk.project"),
                               (sim.q[:2], sim.v, bk.ShapeError, "shape"),
                               (sim.q * np.nan, sim.v, bk.SimulationError, "set_state: .* nan")):
        with pytest.raises(error, match=words):
            sim.set_state(q, v)
    assert (sim.q == before[0]).all()
    assert (sim.v == before[1]).all()
    assert len(sim.trajectory.events) == before[2]


# -- impulses ------------------------------------------------------------------------------------------------------


def stone():
    m = bk.Mechanism()
    m.add_link("stone", joint=bk.Free(), mass=2.0, inertia=(0.1, 0.2, 0.3))
    return m


def test_an_impulse_changes_momentum_and_spin_by_newton_and_euler():
    sim = bk.Simulation(stone())
    sim.impulse("stone", (1.0, 0.0, -4.0))
    close(sim.v, [0.5, 0, -2.0, 0, 0, 0], 1e-15)
    sim = bk.Simulation(stone())
    sim.impulse("stone", (0, 0, 4.0), point=(0, 0.5, 0))  # moment of impulse 2 about x
    close(sim.v, [0, 0, 2.0, 2.0 / 0.1, 0, 0], 1e-14)
    sim = bk.Simulation(stone())
    sim.impulse("stone", (0, 0, 0), (0, 0.2, 0))
    close(sim.v, [0, 0, 0, 0, 1.0, 0], 1e-15)
    assert sim.trajectory.events[-1].text.startswith("impulse on 'stone'")


def random_state(m, seed):
    rng = np.random.default_rng(seed)
    return m.integrate(m.neutral(), 0.4 * rng.normal(size=m.nv)), rng.normal(size=m.nv), rng


@pytest.mark.parametrize("seed", range(5))
def test_an_impulse_on_a_tree_obeys_the_mass_matrix(seed):
    m = bk.models.human(34)
    q, v, rng = random_state(m, seed)
    p, point = rng.normal(size=6), rng.normal(size=3)
    sim = bk.Simulation(m, q, v)
    sim.impulse("left_hand", p, point=point)
    J = bk.kinematics(m, q).jacobian("left_hand", point)
    close(bk.mass_matrix(m, q) @ (sim.v - v), J.T @ p, 1e-10)


@pytest.mark.parametrize("make", [bk.models.four_bar, lambda: bk.models.n_four_bar(3), lambda: bk.models.chain_held(6)])
def test_loops_answer_an_impulse_with_impulses_of_their_own(make):
    m = make()
    q = bk.project(m, m.neutral())
    v = bk.impact(m, q, np.random.default_rng(1).normal(size=m.nv))
    link, p = m.link_names[1], np.array([1.0, 2.0, 3.0, -1.0, 0.5, 2.0])
    sim = bk.Simulation(m, q, v)
    sim.impulse(link, p)
    M, A = bk.mass_matrix(m, q), bk.constraints(m, q).jacobian
    push = bk.kinematics(m, q).jacobian(link).T @ p
    # the dense solution of M dv = push + A' x, A dv = 0, with redundant rows of A
    n, c = len(M), len(A)
    matrix, demand = np.block([[M, -A.T], [A, np.zeros((c, c))]]), np.concatenate([push, np.zeros(c)])
    close(sim.v - v, np.linalg.lstsq(matrix, demand, rcond=1e-12)[0][:n], 1e-9)
    assert set(sim.impulses) == set(m.connections)
    assert max(np.linalg.norm(x) for x in sim.impulses.values()) > 0.01


def test_a_ball_bounces_by_impulses():
    sim = bk.Simulation(stone(), np.r_[0, 0, 1.0, 1, 0, 0, 0], rtol=1e-10, atol=1e-12)
    sim.when(lambda t, q, v: -q[2] if v[2] < 0 else -1.0, lambda s: s.impulse("stone", (0, 0, -2 * 2.0 * s.v[2])),
             "bounce", repeat=True)
    sim.run(until=3.0)
    fall = np.sqrt(2 / 9.81)
    bounces = [event.t for event in sim.trajectory.events if event.text == "bounce"]
    np.testing.assert_allclose(bounces, fall * np.array([1, 3, 5]), rtol=1e-7)
    assert sum(event.text.startswith("impulse") for event in sim.trajectory.events) == 3
    _, kinetic, potential = sim.trajectory.energy()
    np.testing.assert_allclose(kinetic + potential, 2 * 9.81, rtol=1e-7)


@pytest.mark.parametrize(("strike", "words"), [
    (lambda s: s.impulse("ground", (0, 0, 1)), "ground"),
    (lambda s: s.impulse("upper_joint", (0, 0, 1)), "'upper_joint' is a joint where a link is meant"),
    (lambda s: s.impulse("upper", 1.0), "three finite numbers"),
    (lambda s: s.impulse("upper", (0, 0, np.nan)), "three finite numbers"),
    (lambda s: s.impulse("upper", np.zeros(6), np.zeros(3)), "moment"),
])
def test_impulses_that_make_no_sense_are_refused(strike, words):
    sim = bk.Simulation(double())
    with pytest.raises(bk.BunrakuError, match=words):
        strike(sim)
    assert not sim.trajectory.events


# -- the mechanism of a simulation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [
    lambda m: m.add_link("hand", "lower", mass=1.0), lambda m: m.add_spring("upper", "ground", stiffness=1.0),
    lambda m: m.connect("ground", "lower"), lambda m: m.cut("lower"), lambda m: setattr(m, "gravity", (0, 0, 0)),
    lambda m: setattr(m, "length_scale", 2.0)])
def test_the_mechanism_of_a_simulation_is_changed_through_the_simulation_only(change):
    sim = bk.Simulation(double(), [0.5, 0.0])
    trajectory = sim.run(until=0.1)
    energy = np.sum(trajectory.energy()[1:], axis=0)
    for mechanism in (sim.mechanism, trajectory.segments[0].mechanism):
        with pytest.raises(bk.ReadOnlyError, match="belongs to a simulation"):
            change(mechanism)
    change(sim.mechanism.copy())  # a copy is nobody's
    sim.run(until=0.2)
    np.testing.assert_allclose(np.sum(sim.trajectory.energy()[1:], axis=0)[:len(energy)], energy, rtol=1e-12)


def test_the_mechanism_a_simulation_was_made_from_stays_free():
    m = double()
    sim = bk.Simulation(m)
    m.add_link("hand", "lower", mass=1.0)
    m.gravity = (0, 0, 0)
    sim.cut("lower_joint")
    with pytest.raises(bk.ReadOnlyError, match=r"sim.connect\(...\)"):
        sim.mechanism.connect("ground", "lower")
    assert len(sim.mechanism.links) == 2


def test_copies_by_the_standard_library_are_copies():
    m = bk.models.four_bar()
    nv = m.nv
    for twin in (copy.copy(m), copy.deepcopy(m), copy.deepcopy(bk.Simulation(m).mechanism)):
        twin.add_link("x", joint=bk.Revolute((0, 1, 0)), mass=1.0, inertia=(1, 1, 1))
        assert twin.nv == nv + 1
    assert m.nv == nv
    assert bk.forward_dynamics(m, m.neutral(), np.zeros(nv)).shape == (nv,)


def test_connections_get_no_armature_afterwards_either():
    with pytest.raises(bk.ModelError, match="no armature"):
        bk.models.four_bar().with_joint("pin", armature=5.0)

