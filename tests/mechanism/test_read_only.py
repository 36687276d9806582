"""Mechanisms are read-only where a write would have no effect; they are changed by copies."""

import copy
import pickle

import numpy as np
import pytest

import bunraku as bk
from moving import double
from oracle import close
from structures import arm


def write(place, key, value):
    place[key] = value


# -- mechanisms ------------------------------------------------------------------------------------------------------

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


# -- the mechanism of a simulation -----------------------------------------------------------------------------------


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
    change(sim.mechanism.copy())  # a copy belongs to no simulation
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
