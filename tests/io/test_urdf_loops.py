"""Loops in URDF files, in the dialects of several simulators: connections where the elements put them."""

import numpy as np
import pytest

import bunraku as bk

MASS = '<inertial><mass value="1"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>'


def crank(more="", links=""):
    """Two arms of 1 m on hinges about y, 1 m apart, the first with a rod of 1 m: a parallelogram, still open."""
    joints = "".join(f'<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>'
                     f'<origin xyz="{xyz}" rpy="0 0 {turn}"/><axis xyz="0 1 0"/></joint>'
                     for name, parent, child, xyz, turn in (("j1", "base", "arm", "0 0 0", 0),
                                                            ("j2", "arm", "rod", "0 0 1", 0),
                                                            ("j3", "base", "other", "1 0 0", 0)))
    bodies = "".join(f'<link name="{name}">{MASS}</link>' for name in ("base", "arm", "rod", "other"))
    return f'<robot name="crank">{bodies}{joints}{links}{more}</robot>'


DIALECTS = {
    "hinge": '<loop_joint name="loop" type="revolute"><link1 link="rod" xyz="1 0 0" rpy="0 0 0"/>'
             '<link2 link="other" xyz="0 0 1"/><axis xyz="0 1 0"/></loop_joint>',
    "link1 twice": '<loop_joint name="loop" type="spherical"><link1 link="rod" xyz="1 0 0" rpy="0 .3 0"/>'
                   '<link1 link="other" xyz="0 0 1" rpy="0 0 0"/></loop_joint>',
    "ball constraint": '<drake:ball_constraint><drake:ball_constraint_body_A name="rod"/><drake:ball_constraint_body_B'
                       ' name="other"/><drake:ball_constraint_p_AP value="1 0 0"/><drake:ball_constraint_p_BQ'
                       ' value="0 0 1"/></drake:ball_constraint>',
    "gazebo": '<gazebo><joint name="loop" type="revolute"><parent>rod</parent><child>other</child><pose>0 0 1 0 0 0'
              '</pose><axis><xyz>0 1 0</xyz></axis></joint></gazebo>',
}


def write(tmp_path, text):
    path = tmp_path / "crank.urdf"
    path.write_text(text.replace("<robot ", '<robot xmlns:drake="https://drake.mit.edu" '))
    return path


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_parallelogram_closes(tmp_path, dialect):
    m = bk.load(write(tmp_path, crank(DIALECTS[dialect])), base="fixed", strict=True)
    assert len(m.connections) == 1
    (connection,) = m.connections.values()
    assert isinstance(connection.joint, bk.Revolute if dialect in ("hinge", "gazebo") else bk.Spherical)
    assert np.abs(bk.constraints(m, m.neutral()).gap).max() < 1e-15
    q, _ = bk.project(m, np.array([0.4, -0.3, 0.35]), np.zeros(3))
    assert np.abs(bk.constraints(m, q).gap).max() < 1e-13
    if dialect == "hinge":
        q = bk.project(m, np.array([0.4, 0.0, 0.0]), np.zeros(3))[0]
    np.testing.assert_allclose([q[2] - q[0], q[1] + q[0]], 0.0, atol=1e-12)
    assert bk.closed_chain(m, q).freedom == 1


LEFT_OPEN = [
    ('<loop_joint name="l" type="gimbal"><link1 link="rod"/><link2 link="other"/></loop_joint>', "type 'gimbal'"),
    ('<loop_joint name="l" type="spherical"><link1 link="rod"/></loop_joint>', "needs two ends"),
    ('<loop_joint name="l" type="spherical"><link1 link="rod"/><link2 link="lever"/></loop_joint>', "no link 'lever'"),
    ('<gazebo><joint name="l" type="revolute"><parent>rod</parent><child>lever</child></joint></gazebo>', "no link"),
    ('<gazebo><joint name="l" type="gear"><parent>rod</parent><child>other</child></joint></gazebo>', "type 'gear'"),
]


@pytest.mark.parametrize(("text", "reason"), LEFT_OPEN)
def test_a_loop_that_is_not_understood_is_named(tmp_path, text, reason):
    with pytest.warns(bk.LoadWarning, match=rf"'l', line 1: the loop is left open: .*{reason}"):
        m = bk.load(write(tmp_path, crank(text)), base="fixed")
    assert not m.connections


def test_frames_that_close_loops_by_their_names_are_named(tmp_path):
    frames = "".join(f'<link name="closing_top_{k}"/><joint name="to{k}" type="fixed"><parent link="{link}"/>'
                     f'<child link="closing_top_{k}"/><origin xyz="{xyz}"/></joint>'
                     for k, link, xyz in ((1, "rod", "1 0 0"), (2, "other", "0 0 1")))
    with pytest.warns(bk.LoadWarning, match=r"m\.connect\('closing_top_1', 'closing_top_2', bk\.Spherical\(\)\)"):
        m = bk.load(write(tmp_path, crank(links=frames)), base="fixed")
    m.connect("closing_top_1", "closing_top_2", bk.Spherical())
    assert np.abs(bk.constraints(m, m.neutral()).gap).max() < 1e-15
