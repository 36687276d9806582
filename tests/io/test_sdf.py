"""SDF files: robots have the kinematics and inertia of their URDF; loops, gears, frames and axes are where the format
puts them; Cassie closes; what cannot be read is named."""

import warnings

import numpy as np
import pytest

import bunraku as bk
from looped_robots import CASSIE, cassie
from robots import FOLDER, needs_robots

MASS = "<inertial><mass>2</mass><pose>.1 .2 .3 .4 .5 .6</pose><inertia><ixx>.3</ixx><iyy>.4</iyy><izz>.5</izz>" \
       "<ixy>.01</ixy><ixz>.02</ixz><iyz>.03</iyz></inertia></inertial>"


def link(name, pose="0 0 0 0 0 0", more=""):
    return f'<link name="{name}"><pose>{pose}</pose>{MASS}{more}</link>'


def joint(name, kind, parent, child, more=""):
    return f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>{more}</joint>'


@pytest.fixture
def load(tmp_path):
    def load(text, base="free", version="1.9", inside="<model name='m'>{}</model>", **options):
        path = tmp_path / "model.sdf"
        path.write_text(f"<sdf version='{version}'>{inside.format(text)}</sdf>")
        return bk.load(path, base=base, **options)
    return load


def as_sdf(m) -> str:
    """The robot as SDF: links placed in the model, joints at their child links."""
    def spaced(values):
        return " ".join(f"{x:.17g}" for x in values)

    def rpy(R):
        return np.arctan2(R[2, 1], R[2, 2]), -np.arcsin(np.clip(R[2, 0], -1, 1)), np.arctan2(R[1, 0], R[0, 0])
    out, poses = [], bk.poses(m, m.neutral())
    names = [link.name for link in m.links]
    for one in m.links:
        R, p = poses[one.name]
        moments = "".join(f"<i{a}{b}>{one.inertia[i, j]:.17g}</i{a}{b}>"
                          for i, a in enumerate("xyz") for j, b in enumerate("xyz") if j >= i)
        out.append(f"""<link name="{one.name}"><pose>{spaced((*p, *rpy(R)))}</pose><inertial>
            <pose>{spaced(one.com)} 0 0 0</pose><mass>{one.mass:.17g}</mass><inertia>{moments}</inertia></inertial>
            </link>""")
        if one.parent >= 0:
            kind = {bk.Revolute: "revolute", bk.Prismatic: "prismatic", bk.Fixed: "fixed"}[type(one.joint)]
            axis = "" if kind == "fixed" else f"<axis><xyz>{spaced(one.joint.axis)}</xyz></axis>"
            out.append(joint(one.joint_name, kind, names[one.parent], one.name, axis))
    return "".join(out)


@needs_robots
@pytest.mark.parametrize("file", ["panda_description/urdf/panda.urdf", "kinova_description/robots/kinova.urdf",
                                  "talos_data/robots/talos_reduced.urdf"])
def test_a_robot_is_that_of_its_urdf(load, file):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bk.LoadWarning)
        m = bk.load(FOLDER / file)
        for coupling in list(m.couplings):
            m.uncouple(coupling)
        other = load(as_sdf(m))
    assert [link.name for link in other.links] == [link.name for link in m.links]
    q = m.integrate(m.neutral(), np.random.default_rng(1).normal(size=m.nv))
    np.testing.assert_allclose(bk.mass_matrix(other, q), bk.mass_matrix(m, q), rtol=0, atol=1e-10 * m.mass)
    for name, (R, p) in bk.poses(m, q).items():
        np.testing.assert_allclose(np.column_stack(bk.poses(other, q)[name]), np.column_stack((R, p)), atol=1e-12)


@pytest.mark.skipif(not CASSIE.is_file(), reason="example-robot-data is not installed")
def test_cassie_has_its_loops_and_gears(tmp_path):
    """The tree beside the same facts as MJCF; all six loops are closed at the file's pose."""
    (tmp_path / "cassie.xml").write_text(cassie())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bk.LoadWarning)
        m, other = bk.load(CASSIE), bk.load(tmp_path / "cassie.xml")
    assert (len(m.links), m.nv, len(m.connections), len(m.couplings)) == (35, 44, 6, 10)
    assert np.abs(bk.constraints(m, m.neutral()).gap).max() < 1e-14
    assert m.couplings["left-knee-op"].ratio == -0.0625  # theta_2 = -ratio theta_1
    q0 = other.integrate(other.neutral(), 0.5 * np.random.default_rng(2).normal(size=other.nv))
    q, v_of = m.neutral(), np.zeros(m.nv, int)
    for one in other.links:
        name = one.joint_name if one.joint_name in m.joint_names else "root"
        q[m.q_slice(name)] = q0[other.q_slice(one.joint_name)]
        v_of[m.v_slice(name)] = np.arange(other.nv)[other.v_slice(one.joint_name)]
    np.testing.assert_allclose(bk.mass_matrix(m, q), bk.mass_matrix(other, q0)[np.ix_(v_of, v_of)], atol=1e-5)
    closed, _ = bk.project(m, m.integrate(m.neutral(), 0.05 * np.random.default_rng(3).normal(size=m.nv)),
                           np.zeros(m.nv))
    assert np.abs(bk.constraints(m, closed).gap).max() < 1e-9


def test_joints_and_axes_are_where_the_format_puts_them(load):
    """Every kind of joint, away from the link's origin, beside a mechanism built by hand."""
    text = f"""<frame name="f" attached_to="a"><pose degrees="true">.1 0 0 0 0 90</pose></frame>
        {link("a")}<link name="b"><pose relative_to="f" rotation_format="quat_xyzw">0 .5 0  0 0 0.6 0.8</pose>{MASS}
        </link>
        {link("c", "0 0 1 0 0 0")}{link("d", "0 1 1 0 0 .5")}{link("e", "0 2 1 0 0 0")}{link("g", "0 3 1 0 0 0")}
        {joint("ab", "revolute", "a", "b", '<pose>.1 .2 .3 0 0 0</pose><axis><xyz expressed_in="__model__">1 0 0</xyz>'
               '<limit><lower>-1</lower><upper>2</upper><effort>5</effort></limit><dynamics><damping>.1</damping>'
               '<spring_stiffness>3</spring_stiffness><spring_reference>.2</spring_reference></dynamics></axis>')}
        {joint("ac", "ball", "a", "c", "<pose>0 0 -.5 0 0 0</pose>")}
        {joint("cd", "universal", "c", "d", '<pose>.1 0 0 0 0 0</pose><axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0'
               '</xyz></axis2>')}
        {joint("de", "screw", "d", "e", '<axis><xyz>0 0 1</xyz></axis><screw_thread_pitch>.5</screw_thread_pitch>')}
        {joint("eg", "prismatic", "e", "g", '<axis><xyz>0 1 0</xyz><mimic joint="de"><multiplier>2</multiplier><offset>'
               '.3</offset><reference>.1</reference></mimic></axis>')}"""
    m = load(text)
    R = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]) @ np.array([[0.28, -0.96, 0], [0.96, 0.28, 0], [0, 0, 1]])
    b = m.joint("ab")
    np.testing.assert_allclose(m.link("b").rotation, R, atol=1e-15)
    np.testing.assert_allclose(m.link("b").position, (-0.4, 0, 0), atol=1e-15)
    np.testing.assert_allclose(b.axis, R.T @ (1.0, 0, 0), atol=1e-15)
    np.testing.assert_allclose(b.at, (0.1, 0.2, 0.3), atol=1e-15)
    assert (b.lower, b.upper, b.effort, b.damping, b.stiffness, b.rest) == (-1, 2, 5, 0.1, 3, 0.2)
    q = m.neutral()
    q[m.q_slice("ac")] = np.cos(0.3), np.sin(0.3), 0, 0         # 0.6 rad about x through (0, 0, 0.5)
    np.testing.assert_allclose(bk.poses(m, q)["c"][1], (0, -0.5 * np.sin(0.6), 0.5 + 0.5 * np.cos(0.6)), atol=1e-14)
    q = m.neutral()
    q[m.q_slice("cd")] = 0.2, 0.0
    np.testing.assert_allclose(bk.poses(m, q)["d"][0][2], (0, np.sin(0.2), np.cos(0.2)), atol=1e-14)  # about its own x
    q = m.neutral()
    q[m.q_slice("de")] = np.pi
    assert abs(bk.poses(m, q)["e"][1][2] - 1.25) < 1e-14        # half a turn: half of 0.5 m
    assert (m.couplings["eg"].ratio, m.couplings["eg"].offset) == (2.0, 0.3 - 0.2)
    assert not next(link.actuated for link in m.links if link.name == "g")


def test_a_loop_of_joints_is_closed_by_a_connection(load):
    """A parallelogram of hinges on the world."""
    y = "<axis><xyz>0 1 0</xyz></axis>"
    m = load(link("a", "0 0 1 0 0 0") + link("b", "0 0 2 0 0 0") + link("c", "1 0 1 0 0 0")
             + joint("wa", "revolute", "world", "a", y) + joint("ab", "revolute", "a", "b", y)
             + joint("wc", "revolute", "world", "c", y) + joint("bc", "revolute", "b", "c",
                                                               f"<pose>0 0 1 0 0 0</pose>{y}"))
    assert list(m.connections) == ["bc"]
    assert m.nv == 3
    assert np.abs(bk.constraints(m, m.neutral()).gap).max() < 1e-15
    q, _ = bk.project(m, np.array([0.3, 0.0, 0.0]), np.zeros(3))
    assert abs(q[0]) > 0.1
    assert bk.closed_chain(m, q).freedom == 1


def test_bases_worlds_and_shapes(load):
    arm = link("a", "0 0 1 0 0 0", "<collision name='c'><geometry><box><size>.1 .2 .3</size></box></geometry><surface>"
               "<friction><ode><mu>.3</mu></ode></friction></surface></collision>") \
        + link("b", "0 0 2 0 0 0") + joint("ab", "revolute", "a", "b")
    assert isinstance(load(arm).links[0].joint, bk.Free)
    np.testing.assert_array_equal(bk.poses(load(arm), load(arm).neutral())["a"][1], 0.0)
    fixed = load("<pose>1 0 0 0 0 0</pose>" + arm, base="fixed")
    np.testing.assert_array_equal(bk.poses(fixed, fixed.neutral())["b"][1], (1, 0, 2))
    assert isinstance(load("<static>1</static>" + arm).links[0].joint, bk.Fixed)
    world = "<world name='w'><gravity>0 0 -1.6</gravity><model name='moon'>{}</model></world>"
    m = load(arm, inside=world, shapes=True)
    assert tuple(m.gravity) == (0, 0, -1.6)
    assert [(type(placed.shape), placed.friction) for placed in m.shapes.values()] == [(bk.Box, 0.3)]


WRONG = [
    ("<model name='n'/>" + link("a"), "models within models"),
    (link("a") + joint("j", "revolute", "a", "b"), "its child 'b' is no link"),
    (link("a") + link("b") + joint("j", "hinge", "a", "b"), "joint 'j', line 1: joints of type 'hinge'"),
    ("<link name='a'><pose relative_to='b'/></link><link name='b'><pose relative_to='a'/></link>", "depends on itself"),
    ("<link name='a'><pose>1 2</pose></link>", "must be 6 numbers"),
    (link("world"), "'world' is the fixed world"),
    ("<link name='a'><inertial auto='true'/></link>", "auto"),
]


@pytest.mark.parametrize(("text", "reason"), WRONG)
def test_what_cannot_be_read_is_named(load, text, reason):
    with pytest.raises(bk.LoadError, match=reason):
        load(text)


def test_findings_name_elements(load):
    with pytest.warns(bk.LoadWarning, match="link 'a', line 1: has no <inertial>: a mass of 1 kg"):
        load("<link name='a'/>")
    with pytest.warns(bk.LoadWarning, match="joint 'g', line 1: is left out, so its joints move independently"):
        load(link("a") + link("b") + joint("ab", "revolute", "a", "b") + joint("g", "gearbox", "a", "b",
                                                                         "<gearbox_reference_body>a"
                                                                         "</gearbox_reference_body>"))
    with pytest.raises(bk.LoadError, match="one <model>"):
        load("", inside="<model name='a'/><model name='b'/>")
