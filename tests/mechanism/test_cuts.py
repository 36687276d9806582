"""Cuts of tree joints: every link keeps its place and velocity, and the pieces move as if built apart."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku as bk
from bunraku.mechanism.connections import quaternion
from moving import figure
from oracle import close
from structures import arm, random_rotation, random_tree, some_joint


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
    before, lead = bk.kinematics(m, q, v), q.shape[:-1]
    for _ in range(cuts):
        name = some_joint(m, rng)
        if name is None:
            break
        q, v = m.cut(name)(q, v)
        assert q.shape == (*lead, m.nq)
        after = bk.kinematics(m, q, v)
        for name in m.link_names:
            for k in (0, 1):
                close(after.poses[name][k], before.poses[name][k], 1e-12)
            close(after.velocities[name], before.velocities[name], 1e-11)


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_after_a_cut_both_pieces_move_as_if_built_apart(seed):
    tree = random_tree(seed, links=6, kinds=("revolute", "spherical", "planar", "fixed", "free"), passive=True)
    m, rng = tree.m, np.random.default_rng(seed)
    q, v, _ = tree.state(rng)
    name = some_joint(m, rng)
    if name is None:
        return
    cut = m.joint_names.index(name)
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
    close(q[1:4], (-0.5 * np.sin(0.5), 0, -0.5 * np.cos(0.5)), 1e-14)
    close(v[1:], (-1.0, 0, 0, 0, 2.0, 0), 1e-14)


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
    close(q, (1, 0, 1, 1, 0, 0, 0), 1e-14)
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
