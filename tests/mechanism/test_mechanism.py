"""Building and querying mechanisms through the public interface."""

import numpy as np
import pytest

import bunraku as bk
from oracle import close
from structures import arm, random_tree


def test_slices_are_found_by_joint_name_else_by_link_name():
    m = bk.Mechanism()
    m.add_link("torso", joint=bk.Free(), joint_name="root", mass=1.0, inertia=(1, 1, 1))
    m.add_link("head", "torso", bk.Spherical(), joint_name="neck", mass=1.0, inertia=(1, 1, 1))
    m.add_link("hat", "head", mass=0.1)
    assert (m.nq, m.nv) == (11, 9)
    assert m.q_slice("root") == m.q_slice("torso") == slice(0, 7)
    assert m.q_slice("neck") == m.q_slice("head") == slice(7, 11)
    assert m.v_slice("neck") == slice(6, 9)
    assert m.v_slice("hat") == slice(9, 9)


def test_a_joint_name_wins_over_a_link_name():
    m = bk.Mechanism()
    m.add_link("a", joint=bk.Revolute((0, 0, 1)), joint_name="b", mass=1.0, inertia=(1, 1, 1))
    m.add_link("b", "a", bk.Revolute((0, 0, 1)), joint_name="c", mass=1.0, inertia=(1, 1, 1))
    assert m.v_slice("b") == slice(0, 1)


def test_neutral_coordinates_put_child_frames_on_joint_frames():
    tree = random_tree(21, links=8)
    where = {"ground": (np.eye(3), np.zeros(3)), **bk.poses(tree.m, tree.m.neutral())}
    for part in tree.parts:
        R, x = where[tree.parts[part.parent].name] if part.parent >= 0 else where["ground"]
        close(where[part.name][0], R @ part.rotation, 1e-14)
        close(where[part.name][1], x + R @ part.position, 1e-14)


@pytest.mark.parametrize(("joint", "actuated"), [(bk.Revolute((0, 0, 1)), True), (bk.Spherical(), True),
                                                 (bk.Free(), False)], ids=repr)
def test_every_joint_is_actuated_but_free_ones(joint, actuated):
    m = bk.Mechanism()
    assert m.add_link("a", joint=joint, mass=1.0, inertia=(1, 1, 1)).actuated is actuated
    assert m.add_link("b", joint=joint, actuated=not actuated, mass=1.0, inertia=(1, 1, 1)).actuated is not actuated


def test_a_mechanism_can_change_after_use():
    m = arm(2)
    before = bk.forward_dynamics(m, np.ones(2), np.ones(2))
    m.gravity = (0, 0, 0)
    assert not np.allclose(bk.forward_dynamics(m, np.ones(2), np.ones(2)), before)
    m.gravity = (0, 0, -9.81)
    assert np.array_equal(bk.forward_dynamics(m, np.ones(2), np.ones(2)), before)
    m.add_link("hand", "link1", bk.Spherical(), mass=1.0, inertia=(1, 1, 1))
    assert bk.forward_dynamics(m, m.neutral(), np.zeros(m.nv)).shape == (5,)
    m.add_spring("hand", "ground", position_b=(1, 0, 0), stiffness=3.0)
    sprung = bk.forward_dynamics(m, m.neutral(), np.zeros(5))
    assert not np.allclose(sprung, bk.forward_dynamics(m, m.neutral(), np.zeros(5), passive=False))


def test_a_change_reaches_the_variants_made_before():
    m = arm(2)
    options = ({"passive": False}, {"prescribed": {"link0": 0.0}}, {"external": {"link1": np.ones(6)}})
    before = [bk.forward_dynamics(m, np.ones(2), np.ones(2), **option) for option in options]
    forces = bk.joint_forces(m, np.ones(2), np.ones(2))["link1"]
    m.gravity = (3, 0, 0)
    for option, old in zip(options, before, strict=True):
        assert not np.allclose(bk.forward_dynamics(m, np.ones(2), np.ones(2), **option), old)
    assert not np.allclose(bk.joint_forces(m, np.ones(2), np.ones(2))["link1"], forces)


def test_a_copy_goes_its_own_way():
    m = arm(2)
    before = bk.forward_dynamics(m, np.ones(2), np.ones(2))
    twin = m.copy()
    twin.gravity = (0, 0, 0)
    twin.add_link("hand", "link1", bk.Revolute((1, 0, 0)), mass=1.0, inertia=(1, 1, 1))
    assert m.nv == 2
    assert np.array_equal(bk.forward_dynamics(m, np.ones(2), np.ones(2)), before)
    assert bk.forward_dynamics(twin, np.ones(3), np.ones(3)).shape == (3,)


def test_gravity_cannot_be_changed_behind_the_mechanisms_back():
    m = arm(1)
    with pytest.raises(bk.ReadOnlyError, match="as a whole"):
        m.gravity[2] = 100.0
    assert m.gravity[2] == -9.81


def test_the_order_of_links_does_not_matter():
    """Breadth first or depth first: the same arm and leg, and the same accelerations by name."""
    rng = np.random.default_rng(0)
    names = {"hip": "ground", "knee": "hip", "shoulder": "ground", "elbow": "shoulder"}
    orders = (["hip", "knee", "shoulder", "elbow"], ["shoulder", "hip", "elbow", "knee"])
    bodies = {name: {"mass": 1 + rng.random(), "com": rng.normal(size=3), "inertia": (1, 1, 1),
                     "position": rng.normal(size=3)} for name in names}
    joints = {name: bk.Revolute(rng.normal(size=3)) for name in names}
    values = {name: rng.normal(size=3) for name in names}
    found = []
    for order in orders:
        m = bk.Mechanism()
        for name in order:
            m.add_link(name, names[name], joints[name], **bodies[name])
        q, v, tau = np.array([values[name] for name in order]).T.copy()
        a = bk.forward_dynamics(m, q, v, tau)
        found.append([a[m.v_slice(name)][0] for name in names])
    close(found[1], found[0], 1e-13)


def test_masses_add_up():
    m = arm(3)
    assert m.mass == 3.0
    assert bk.kinematics(m, np.zeros(3)).mass == 3.0


def test_a_mechanism_describes_itself():
    text = repr(arm(2))
    assert "2 links, 2 degrees of freedom, 2 kg" in text
    assert "3 links, 3 degrees of freedom, minus the constraints of 1 connection, 2.4 kg" in repr(bk.models.four_bar())
    assert "link1: Revolute((0, 1, 0))" in text
