"""Structure as state: connections, cuts, what they leave unchanged, and the plans made after them."""

import contextlib
import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku as bk
from bunraku.cli import info
from bunraku.mechanism.connections import quaternion
from bunraku.mechanism.describe import describe, rebuild
from bunraku.plan.build import Plan, lay_out_records, mark_slots
from oracle import close
from structures import arm, random_rotation, random_tree


def figure():
    """Two arms on a torso that hangs from a bar by its left hand."""
    m = bk.Mechanism(name="figure")
    m.add_link("torso", joint=bk.Free(), joint_name="root", mass=10.0, inertia=(1, 1, 1))
    for side, y in (("left", 0.2), ("right", -0.2)):
        m.add_link(f"{side}_arm", "torso", bk.Spherical(), f"{side}_shoulder", position=(0, y, 0.5), mass=2.0,
                   com=(0, 0, -0.3), inertia=(0.1, 0.1, 0.01))
        m.add_link(f"{side}_hand", f"{side}_arm", bk.Revolute((0, 1, 0)), f"{side}_wrist", position=(0, 0, -0.6),
                   mass=0.5, inertia=(0.01, 0.01, 0.01))
    m.connect("ground", "left_hand", bk.Spherical(), "left_grip", position_a=(0, 0, 2))
    return m


def same_plan(a: Plan, b: Plan):
    for field in dataclasses.fields(Plan):
        x, y = getattr(a, field.name), getattr(b, field.name)
        if isinstance(x, np.ndarray):
            assert x.dtype == y.dtype, field.name
            np.testing.assert_array_equal(x, y, err_msg=field.name)
        else:
            assert x == y, field.name


def some_joint(m, rng):
    """A joint that can be cut without leaving a massless end; None if there is none."""
    names = []
    for link in m.links:
        if not (link.parent < 0 and isinstance(link.joint, bk.Free)):
            twin = m.copy()
            twin.cut(link.joint_name)
            with contextlib.suppress(bk.ModelError):
                twin.plan()
                names.append(link.joint_name)
    return names[rng.integers(len(names))] if names else None


# -- connections ---------------------------------------------------------------------------------------------------


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
    close(c.rotation_b, R, 1e-15)


@pytest.mark.parametrize(("joint", "actuated"), [(None, False), (bk.Free(), False), (bk.Spherical(), True),
                                                 (bk.Revolute((0, 0, 1)), True)], ids=repr)
def test_connections_are_fixed_unless_told_and_actuated_where_they_can_move(joint, actuated):
    m = figure()
    assert m.connect("torso", "right_hand", joint).actuated is actuated
    assert m.connect("torso", "right_hand", joint, actuated=not actuated).actuated is not actuated
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
    m._refuse_massless_ends(m.plan("tree"))
    m.cut("pin")
    with pytest.raises(bk.ModelError, match="'rod' moves no mass"):
        m.plan()


# -- cuts of tree joints -------------------------------------------------------------------------------------------


def test_what_was_cut_hangs_from_the_ground_in_the_same_place_of_the_lists():
    m = figure()
    names, joints = m.link_names, m.joint_names
    m.cut("left_arm")
    assert (m.link_names, m.joint_names) == (names, joints)
    arm_ = m.link("left_arm")
    assert (arm_.parent, type(arm_.joint), arm_.actuated) == (-1, bk.Free, False)
    assert m.links[m.link("left_hand").parent] is arm_
    assert m.q_slice("left_shoulder") == slice(7, 14)
    assert m.v_slice("left_shoulder") == slice(6, 12)
    assert (m.nq, m.nv) == (7 + 7 + 1 + 4 + 1, 6 + 6 + 1 + 3 + 1)
    with pytest.raises(bk.ModelError, match="loose already"):
        m.cut("left_shoulder")


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 4), st.booleans())
def test_every_link_keeps_its_place_and_velocity_across_cuts(seed, cuts, batch):
    tree = random_tree(seed, passive=seed % 2 == 0, springs=seed % 3 == 0)
    m, rng = tree.m, np.random.default_rng(seed)
    q, v, _ = tree.states(rng, 3) if batch else tree.state(rng)
    before = bk.kinematics(m, q, v)
    for _ in range(cuts):
        name = some_joint(m, rng)
        if name is None:
            break
        q, v = m.cut(name)(q, v)
        assert q.shape == (*before._q.shape[:-1], m.nq)
        after = bk.kinematics(m, q, v)
        for name in m.link_names:
            for k in (0, 1):
                close(after.poses[name][k], before.poses[name][k], 1e-12)
            close(after.velocities[name], before.velocities[name], 1e-11)


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_the_plan_after_cuts_is_the_plan_of_a_mechanism_built_that_way(seed):
    tree = random_tree(seed, passive=seed % 2 == 0, springs=seed % 3 == 0)
    m, rng = tree.m, np.random.default_rng(seed)
    m.plan(), m.plan("apart")
    for _ in range(3):
        name = some_joint(m, rng)
        if name:
            m.cut(name)
        fresh = rebuild(json.loads(json.dumps(describe(m))))
        for variant in (None, "bare", "apart", "tree"):
            same_plan(m.plan(variant), fresh.plan(variant))
        np.testing.assert_array_equal(m.neutral(), fresh.neutral())
        assert [m.q_slice(n) for n in m.joint_names] == [fresh.q_slice(n) for n in m.joint_names]


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_after_a_cut_both_pieces_move_as_if_built_apart(seed):
    tree = random_tree(seed, links=6, kinds=("revolute", "spherical", "planar", "fixed", "free"), passive=True)
    m, rng = tree.m, np.random.default_rng(seed)
    q, v, _ = tree.state(rng)
    name = some_joint(m, rng)
    if name is None:
        return
    cut = m._find_joint(name)
    q, v = m.cut(name)(q, v)
    tau = rng.normal(size=m.nv)
    a = bk.forward_dynamics(m, q, v, tau)
    beyond = {cut}
    for i, link in enumerate(m.links):
        if link.parent in beyond:
            beyond.add(i)
    for members in (beyond, set(range(6)) - beyond):
        piece = bk.Mechanism(gravity=m.gravity)
        for i in sorted(members):
            link = m.links[i]
            parent = "ground" if link.parent < 0 else m.links[link.parent].name
            piece.add_link(link.name, parent, link.joint, link.joint_name, position=link.position,
                           rotation=link.rotation, mass=link.mass, com=link.com, inertia=link.inertia)
        if piece.nv:
            at_q, at_v = (np.concatenate([np.arange(whole.nq)[s] if kind == "q" else np.arange(whole.nv)[s]
                                          for s in (getattr(whole, f"{kind}_slice")(n) for n in piece.joint_names)])
                          for whole, kind in ((m, "q"), (m, "v")))
            close(a[at_v], bk.forward_dynamics(piece, q[at_q], v[at_v], tau[at_v]), 1e-9)


def test_a_fixed_joint_can_be_cut():
    m = arm(1)
    m.add_link("tip", "link0", position=(0, 0, -0.5), mass=1.0, inertia=(0.1, 0.1, 0.1))
    q, v = m.cut("tip")([0.5], [2.0])
    assert (m.nq, m.nv) == (8, 7)
    close(q[1:4], (-0.5 * np.sin(0.5), 0, -0.5 * np.cos(0.5)), 1e-15)
    close(v[1:], (-1.0, 0, 0, 0, 2.0, 0), 1e-15)


def test_cutting_off_what_has_no_mass_is_refused_when_it_should_move():
    m = arm(1)
    m.add_link("feather", "link0")
    m.cut("feather")
    with pytest.raises(bk.ModelError, match="'feather' moves no mass"):
        m.plan()
    m.add_link("stone", "feather", mass=1.0, inertia=(1, 1, 1))
    assert m.plan().nv == 7


def test_a_structure_that_nothing_moved_in_can_be_cut():
    m = bk.Mechanism()
    m.add_link("wall", position=(0, 0, 1), mass=1.0)
    m.add_link("stone", "wall", position=(1, 0, 0), mass=1.0, inertia=(1, 1, 1))
    q, v = m.cut("stone")([], [])
    close(q, (1, 0, 1, 1, 0, 0, 0), 1e-15)
    close(bk.forward_dynamics(m, q, v), (0, 0, -9.81, 0, 0, 0), 1e-12)


def test_a_carry_remembers_the_structure_it_was_made_for():
    m = arm(3)
    first = m.cut("link2")
    second = m.cut("link1")
    m.gravity = (0, 0, 0)
    q, v = np.array([0.3, 0.4, 0.5]), np.ones(3)
    there = bk.poses(m, second(*first(q, v))[0])
    for name, (R, x) in bk.poses(arm(3), q).items():
        close(there[name][0], R, 1e-14)
        close(there[name][1], x, 1e-14)


def test_springs_stay_on_their_links():
    m = arm(3)
    m.add_spring("link0", "link2", stiffness=10.0, name="band")
    q, v = np.array([0.3, 0.4, 0.5]), np.ones(3)
    potential = m.energy(q, v)
    q, v = m.cut("link1")(q, v)
    assert m.springs[0].name == "band"
    close(m.energy(q, v), potential, 1e-12)


def test_connections_stay_across_the_cut_of_a_joint():
    m = figure()
    m.cut("left_shoulder")
    assert m.links[m.connections["left_grip"].link_b].name == "left_hand"


@given(st.integers(0, 10**6))
def test_quaternions_of_rotations(seed):
    rng = np.random.default_rng(seed)
    half_turns = [np.diag(d) for d in ([1.0, -1, -1], [-1.0, 1, -1], [-1.0, -1, 1])]
    R = np.array([random_rotation(rng), np.eye(3), *half_turns])
    w, x, y, z = quaternion(R).T
    again = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                      [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                      [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])
    close(np.moveaxis(again, 2, 0), R, 1e-14)


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_bodies_may_keep_a_slot_of_their_own(seed):
    """Where passes leave their results makes no difference to them."""
    tree = random_tree(seed, links=12)
    m, rng = tree.m, np.random.default_rng(seed)
    q, v, tau = tree.state(rng)
    a = bk.forward_dynamics(m, q, v, tau)
    body_i = m.plan().body_i.copy()
    mark_slots(body_i, rng.random(m.plan().bodies) < 0.3)
    lay_out_records(body_i)
    m._plan = dataclasses.replace(m.plan(), body_i=body_i)
    close(bk.forward_dynamics(m, q, v, tau), a, 1e-10)
    mark_slots(body_i)
    lay_out_records(body_i)
    np.testing.assert_array_equal(body_i, m.plan("tree").body_i)


# -- what people see -----------------------------------------------------------------------------------------------


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


def test_connections_leave_the_plan_of_the_tree_alone():
    m = figure()
    plan = m.plan("tree")
    m.connect("torso", "right_hand", name="pocket")
    m.cut("left_grip")
    m.cut("pocket")
    assert m.plan("tree") is plan
    assert m.plan() is plan
