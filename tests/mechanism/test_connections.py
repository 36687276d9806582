"""Connections: what they add to a mechanism and leave unchanged, and how they are shown and stored."""

import json

import numpy as np
import pytest

import bunraku as bk
from bunraku.cli import info
from bunraku.mechanism.describe import describe, rebuild
from moving import figure
from oracle import close
from structures import arm, random_rotation

# -- connections -----------------------------------------------------------------------------------------------------


def test_a_connection_adds_no_coordinates_and_keeps_its_frames():
    m = figure()
    nq, nv = m.nq, m.nv
    R = random_rotation(np.random.default_rng(0))
    c = m.connect("left_hand", "right_hand", bk.Revolute((0, 0, 1)), "clap", position_a=(0, 0, 1), rotation_b=R)
    assert (m.nq, m.nv) == (nq, nv)
    assert m.connections["clap"] is c
    assert (m.links[c.link_a].name, m.links[c.link_b].name) == ("left_hand", "right_hand")
    np.testing.assert_array_equal(c.position_a, (0, 0, 1))
    np.testing.assert_array_equal(c.position_b, (0, 0, 0))
    np.testing.assert_array_equal(c.rotation_a, np.eye(3))
    close(c.rotation_b, R, 1e-14)


@pytest.mark.parametrize("joint", [None, bk.Free(), bk.Spherical(), bk.Revolute((0, 0, 1))], ids=repr)
def test_connections_are_fixed_and_not_actuated_unless_told(joint):
    m = figure()
    assert m.connect("torso", "right_hand", joint).actuated is False
    assert m.connect("torso", "right_hand", joint, actuated=True).actuated is True
    assert m.connect("torso", "right_hand").joint.nv == 0


def test_torques_of_connections_follow_those_of_the_tree():
    m = figure()
    m.connect("torso", "right_hand", bk.Fixed(), "pocket")
    m.connect("left_hand", "right_hand", bk.Cylindrical((0, 0, 1)), "stick")
    assert m.nc == 5
    assert m.drive_slice("left_grip") == slice(m.nv, m.nv + 3)
    assert m.drive_slice("pocket") == slice(m.nv + 3, m.nv + 3)
    assert m.drive_slice("stick") == slice(m.nv + 3, m.nv + 5)
    assert m.drive_slice("left_wrist") == m.v_slice("left_wrist")
    m.cut("left_grip")
    assert m.drive_slice("stick") == slice(m.nv, m.nv + 2)


def test_automatic_names_never_meet_others():
    m = figure()
    m.add_link("connection2", "torso", mass=1.0)
    first = m.connect("torso", "right_hand").name
    m.cut(first)
    second, third = m.connect("torso", "right_hand").name, m.connect("torso", "left_hand").name
    assert len({first, second, third, "connection2"}) == 4


def test_other_connections_stay_when_one_goes():
    m = figure()
    stays = m.connect("torso", "right_hand", name="pocket")
    m.cut("left_grip")
    assert list(m.connections) == ["pocket"]
    assert m.connections["pocket"] is stays
    m.connect("ground", "left_hand", bk.Spherical(), "left_grip")
    assert list(m.connections) == ["pocket", "left_grip"]


def test_cutting_a_connection_changes_no_state():
    m = figure()
    rng = np.random.default_rng(1)
    q, v = rng.normal(size=(3, m.nq)), rng.normal(size=(3, m.nv))
    carry = m.cut("left_grip")
    same_q, same_v = carry(q, v)
    np.testing.assert_array_equal(same_q, q)
    np.testing.assert_array_equal(same_v, v)
    assert same_q is not q
    with pytest.raises(bk.ShapeError, match="q has shape"):
        carry(q[:, 1:], v)


@pytest.mark.parametrize(("change", "message"), [
    (lambda m: m.connect("torso", "torso"), "both ends on 'torso'"),
    (lambda m: m.connect("ground", "ground"), "both ends on 'ground'"),
    (lambda m: m.connect("left_hnd", "torso"), "did you mean 'left_hand'"),
    (lambda m: m.connect("torso", 3), "link_b of connection .* no link 3"),
    (lambda m: m.connect("torso", "left_hand", name="left_grip"), "already a connection 'left_grip'"),
    (lambda m: m.connect("torso", "left_hand", name="left_wrist"), "already a joint 'left_wrist'"),
    (lambda m: m.connect("torso", "left_hand", name="torso"), "already a link 'torso'"),
    (lambda m: m.connect("torso", "left_hand", name=""), "connection name must be text"),
    (lambda m: m.connect("torso", "left_hand", "glue"), "joint must be a joint"),
    (lambda m: m.connect("torso", "left_hand", position_a=(1, 2)), "position_a must be three finite numbers"),
    (lambda m: m.connect("torso", "left_hand", rotation_b=np.ones((3, 3))), "rotation_b is not a rotation"),
    (lambda m: m.add_link("x", "torso", joint_name="left_grip"), "already a connection 'left_grip'"),
    (lambda m: m.add_link("left_grip", "torso", joint_name="x"), "already a connection 'left_grip'"),
    (lambda m: m.cut("left_grib"), "did you mean 'left_grip'"),
    (lambda m: m.cut("ground"), "no joint, connection or link 'ground'"),
    (lambda m: m.cut(None), "no joint, connection or link None"),
    (lambda m: m.cut("root"), "loose already"),
    (lambda m: m.cut("torso"), "loose already"),
    (lambda m: m.q_slice("left_grip"), "adds no coordinates"),
    (lambda m: m.drive_slice("grip"), "did you mean 'left_grip'"),
    (lambda m: m.family("left_elbow"), "no link or connection 'left_elbow'"),
])
def test_bad_changes_are_refused_and_change_nothing(change, message):
    m = figure()
    m.add_link("feather", "torso")
    before, plan = describe(m), m.plan("tree")
    with pytest.raises(bk.ModelError, match=message):
        change(m)
    assert describe(m) == before
    assert m.plan("tree") is plan
    assert m.connect("torso", "right_hand").name == "connection1"


def test_a_massless_end_is_fine_once_a_loop_holds_it():
    m = arm(2)
    m.add_link("rod", "link1", bk.Revolute((0, 1, 0)))
    with pytest.raises(bk.ModelError, match="'rod' moves no mass"):
        m.plan()
    m.connect("ground", "rod", bk.Free(), "nothing")
    with pytest.raises(bk.ModelError, match="'rod' moves no mass"):
        m.plan()
    m.connect("ground", "rod", bk.Spherical(), "pin", position_a=(1, 0, 0))
    assert m.plan().nv == 3
    m.cut("pin")
    with pytest.raises(bk.ModelError, match="'rod' moves no mass"):
        m.plan()


# -- what people see -------------------------------------------------------------------------------------------------


def test_everybody_knows_the_family():
    m = figure()
    m.connect("torso", "right_hand", name="pocket")
    assert m.family("ground") == (None, "torso", None, None)
    assert m.family("torso") == ("ground", "left_arm", "left_grip", None)  # the virtual hand hangs on the ground
    assert m.family("left_arm") == ("torso", "left_hand", "right_arm", None)
    assert m.family("right_arm") == ("torso", "right_hand", "pocket", None)
    assert m.family("left_grip") == ("ground", None, None, "left_hand")
    assert m.family("pocket") == ("torso", None, None, "right_hand")
    assert m.virtual_links == {"left_grip": "left_hand", "pocket": "right_hand"}
    m.cut("right_shoulder")
    assert m.family("torso").brother == "right_arm"
    assert m.family("left_arm").brother == "pocket"
    m.cut("pocket")
    assert m.family("left_arm").brother is None


def test_connections_survive_the_way_through_a_file():
    m = figure()
    m.connect("torso", "ground", bk.Compound(bk.Revolute((1, 0, 0), damping=2.0), bk.Prismatic((0, 0, 1))), "rail",
              rotation_a=random_rotation(np.random.default_rng(3)), actuated=False)
    again = rebuild(json.loads(json.dumps(describe(m))))
    assert describe(again) == describe(m)
    assert repr(again) == repr(m)
    old = {name: value for name, value in describe(arm(2)).items() if name != "connections"}
    assert rebuild(old).connections == {}


def test_connections_are_shown():
    m = figure()
    assert "left_grip: ground - left_hand by Spherical()" in repr(m)
    assert "connections (1)\n  left_grip: ground - left_hand, spherical" in info.text(m, [])
    shown = json.loads(json.dumps(info.summary(m, "none", [])))["connections"][0]
    assert (shown["name"], shown["from"], shown["to"], shown["type"]) == ("left_grip", "ground", "left_hand",
                                                                          "Spherical")
    for _ in range(30):
        m.connect("torso", "left_hand")
    assert "and 11 more connections" in repr(m)


def test_copies_are_cut_and_connected_on_their_own():
    m = figure()
    before = describe(m)
    twin = m.copy()
    twin.cut("left_grip")
    twin.connect("torso", "right_hand")
    twin.cut("left_wrist")
    assert describe(m) == before
    assert twin.nv == m.nv + 5
