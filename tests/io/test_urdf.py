"""URDF files: every robot of example-robot-data agrees with Pinocchio, and files say what they should."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest

import bunraku as bk
from robots import FOLDER, NAMES, Twin, needs_robots

RELATIVE = 1e-8

UNREADABLE = {
    "ur_description/urdf/ur3.urdf": "has neither a name nor a link: an empty <robot>",
}
"""Files that Pinocchio cannot parse; bunraku says what is missing."""

MASSLESS = {
    "romeo_description/urdf/romeo.urdf": "LHand",                      # the fingers have no mass
    "romeo_description/urdf/romeo_laas_small.urdf": "l_gripper_joint",  # nor has the gripper
}
"""Files in which a joint moves no mass: pin.aba returns NaN, bunraku names the first such joint."""

NOTHING_MOVES = ("hector_description/robots/quadrotor_base.urdf", "iris_description/robots/iris_simple.urdf")
"""One rigid body each: on a fixed base there is nothing to compare."""


def load_quietly(path, **options) -> bk.Mechanism:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bk.LoadWarning)
        return bk.load(path, **options)


def notes_of(path, **options) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bk.load(path, **options)
    assert all(w.category is bk.LoadWarning for w in caught)
    return [str(w.message) for w in caught]


def random_states(mechanism, count, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        q = mechanism.integrate(mechanism.neutral(), rng.normal(size=mechanism.nv))
        yield q, *rng.normal(size=(3, mechanism.nv))


def largest_error(ours, theirs) -> float:
    assert np.isfinite(theirs).all()
    return np.abs(ours - theirs).max() / np.abs(theirs).max()


# -- real robots -------------------------------------------------------------------------------------------------------


@needs_robots
def test_all_robots_of_the_wheel_are_here():
    assert len(NAMES) >= 69
    assert {*UNREADABLE, *MASSLESS, *NOTHING_MOVES} <= set(NAMES)


@needs_robots
@pytest.mark.parametrize("base", ["free", "fixed"])
@pytest.mark.parametrize("name", [n for n in NAMES if n not in UNREADABLE and n not in MASSLESS])
def test_every_robot_agrees_with_pinocchio(name, base):
    pytest.importorskip("pinocchio")
    mechanism = load_quietly(FOLDER / name, base=base)
    for joint in list(mechanism.couplings):  # mimic joints are compared below
        mechanism.uncouple(joint)
    twin = Twin(FOLDER / name, mechanism, base)
    if name in NOTHING_MOVES and base == "fixed":
        assert twin.model.nv == 0
        with pytest.raises(bk.ModelError, match="nothing to move"):
            mechanism.plan()
        return
    for q, v, a, tau in random_states(mechanism, 3):
        assert largest_error(bk.mass_matrix(mechanism, q), twin.crba(q)) < RELATIVE
        assert largest_error(bk.inverse_dynamics(mechanism, q, v, a, passive=False), twin.rnea(q, v, a)) < RELATIVE
        # icub's head is a point mass close to the axis of neck_yaw: accelerations of 1e10 rad/s^2, which only local
        # origins get right
        assert largest_error(bk.forward_dynamics(mechanism, q, v, tau, passive=False), twin.aba(q, v, tau)) < RELATIVE


@needs_robots
@pytest.mark.parametrize("base", ["free", "fixed"])
@pytest.mark.parametrize("name", MASSLESS)
def test_joints_that_move_no_mass_are_named(name, base):
    """Pinocchio returns NaN; bunraku notes it when loading and names the joint when asked."""
    pytest.importorskip("pinocchio")
    mechanism = load_quietly(FOLDER / name, base=base)
    twin = Twin(FOLDER / name, mechanism, base)
    q, v, _, tau = next(random_states_of_pinocchio(twin))
    assert not np.isfinite(twin.pin.aba(twin.model, twin.data, q, v, tau)).all()
    assert any(MASSLESS[name] in note and "moves no mass" in note for note in notes_of(FOLDER / name))
    with pytest.raises(bk.ModelError, match=f"{MASSLESS[name]}.*moves no mass"):
        bk.forward_dynamics(mechanism, mechanism.neutral(), np.zeros(mechanism.nv))


def random_states_of_pinocchio(twin, seed=0):
    rng = np.random.default_rng(seed)
    while True:
        q = twin.pin.integrate(twin.model, twin.pin.neutral(twin.model), rng.normal(size=twin.model.nv))
        yield q, *rng.normal(size=(3, twin.model.nv))


@needs_robots
@pytest.mark.parametrize("name", UNREADABLE)
def test_what_pinocchio_cannot_parse_is_refused_with_the_reason(name):
    pin = pytest.importorskip("pinocchio")
    with pytest.raises(ValueError, match="valid URDF"):
        pin.buildModelFromUrdf(str(FOLDER / name))
    with pytest.raises(bk.LoadError, match=r"ur3.urdf: <robot>, line 6: the robot has no links"):
        bk.load(FOLDER / name)


@needs_robots
def test_the_largest_loads_quickly():
    path = max((FOLDER / name for name in NAMES), key=lambda p: p.stat().st_size)
    times = []
    for _ in range(3):
        start = time.thread_time()  # not the clock on the wall: the machine may be busy
        load_quietly(path)
        times.append(time.thread_time() - start)
    assert path.name == "tiago_dual.urdf"
    assert min(times) < 0.3


@needs_robots
def test_frames_agree_with_pinocchio():
    """Every link's frame, also of links on fixed joints, which the plan has merged."""
    pytest.importorskip("pinocchio")
    path = FOLDER / "talos_data/robots/talos_reduced.urdf"
    mechanism = load_quietly(path)
    twin = Twin(path, mechanism, "free")
    assert sum(isinstance(link.joint, bk.Fixed) for link in mechanism.links) > 20
    for q, *_ in random_states(mechanism, 2):
        poses = bk.poses(mechanism, q)
        twin.pin.framesForwardKinematics(twin.model, twin.data, twin.q(q))
        for link in mechanism.link_names:
            frame = twin.data.oMf[twin.model.getFrameId(link, twin.pin.FrameType.BODY)]
            np.testing.assert_allclose(poses[link][0], frame.rotation, atol=1e-12)
            np.testing.assert_allclose(poses[link][1], frame.translation, atol=1e-12)


@needs_robots
def test_links_on_fixed_joints_cost_nothing():
    mechanism = load_quietly(FOLDER / "talos_data/robots/talos_reduced.urdf")
    assert mechanism.plan().bodies == sum(link.joint.nv > 0 for link in mechanism.links) < len(mechanism.links)
    assert mechanism.plan("apart").bodies == len(mechanism.links)


@needs_robots
def test_visuals_and_their_meshes_are_found():
    mechanism = load_quietly(FOLDER / "talos_data/robots/talos_reduced.urdf")
    visuals = [visual for link in mechanism.links for visual in link.visuals]
    meshes = [visual.mesh for visual in visuals if visual.shape == "mesh"]
    assert len(meshes) > 30
    assert all((FOLDER / mesh).is_file() for mesh in meshes)


@needs_robots
def test_a_robot_survives_being_described():
    """Also one whose inertias no body has."""
    from bunraku.mechanism.describe import describe, rebuild

    mechanism = load_quietly(FOLDER / "tiago_description/robots/tiago.urdf")
    again = rebuild(describe(mechanism))
    assert again.joint_names == mechanism.joint_names
    assert all((a.inertia == b.inertia).all() for a, b in zip(again.links, mechanism.links, strict=True))
    assert [len(link.visuals) for link in again.links] == [len(link.visuals) for link in mechanism.links]


# -- small files -------------------------------------------------------------------------------------------------------

BODY = "<inertial><mass value='2'/><origin xyz='0.1 0 0.2'/>" \
       "<inertia ixx='0.1' ixy='0' ixz='0' iyy='0.1' iyz='0' izz='0.1'/></inertial>"


def link(name, inside=BODY):
    return f"<link name='{name}'>{inside}</link>"


def joint(name, parent, child, kind="revolute", inside="<axis xyz='0 0 1'/><limit lower='-1' upper='1'/>"):
    return f"<joint name='{name}' type='{kind}'><parent link='{parent}'/><child link='{child}'/>{inside}</joint>"


@pytest.fixture
def write(tmp_path):
    def write(*elements, name="robot.urdf"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("<robot name='test'>\n" + "\n".join(elements) + "\n</robot>")
        return path

    return write


def test_every_joint_type_has_its_joint_and_limits(write):
    kinds = ["revolute", "continuous", "prismatic", "fixed", "floating", "planar"]
    names = ["base", *kinds]
    path = write(*map(link, names), *[joint(f"j{kind}", names[k], kind, kind) for k, kind in enumerate(kinds)])
    mechanism = bk.load(path, base="fixed", strict=True)
    found = {link.name: type(link.joint) for link in mechanism.links}
    assert found == {"base": bk.Fixed, "revolute": bk.Revolute, "continuous": bk.Revolute, "prismatic": bk.Prismatic,
                     "fixed": bk.Fixed, "floating": bk.Free, "planar": bk.Planar}
    assert (mechanism.nq, mechanism.nv) == (1 + 1 + 1 + 7 + 3, 1 + 1 + 1 + 6 + 3)
    assert bk.load(path).nv == mechanism.nv + 6
    assert mechanism.joint("jrevolute").passive[0, 4:6].tolist() == [-1, 1]
    assert np.isinf(mechanism.joint("jcontinuous").passive[0, 4:6]).all()


def test_floating_and_planar_joints_agree_with_pinocchio(write):
    pin = pytest.importorskip("pinocchio")
    path = write(link("a"), link("b"), link("c"), joint("ab", "a", "b", "planar", "<axis xyz='0 0 1'/>"),
                 joint("bc", "b", "c", "floating", "<origin xyz='0.3 0.1 0' rpy='0.1 0.2 0.3'/>"))
    mechanism = bk.load(path, base="fixed")
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    for q, v, _, tau in random_states(mechanism, 3):
        c, s = np.cos(q[2]), np.sin(q[2])
        turn = np.array([[c, s], [-s, c]])  # Pinocchio's planar velocity is in child axes
        q_pin = np.r_[q[:2], c, s, q[3:6], q[7:], q[6]]
        v_pin = np.r_[turn @ v[:2], v[2:]]
        tau_pin = np.r_[turn @ tau[:2], tau[2:]]
        a_pin = pin.aba(model, data, q_pin, v_pin, tau_pin)
        a = np.r_[turn.T @ (a_pin[:2] + v[2] * np.array([-v_pin[1], v_pin[0]])), a_pin[2:]]
        np.testing.assert_allclose(bk.forward_dynamics(mechanism, q, v, tau, passive=False), a, rtol=1e-9, atol=1e-9)


def test_inertia_is_turned_into_link_axes(write):
    path = write(link("a", "<inertial><origin xyz='1 2 3' rpy='0 0 1.5707963267948966'/><mass value='1'/>"
                           "<inertia ixx='1' iyy='2' izz='2.5' ixy='0' ixz='0' iyz='0'/></inertial>"))
    body = bk.load(path, strict=True).link("a")
    np.testing.assert_allclose(body.inertia, np.diag([2, 1, 2.5]), atol=1e-14)
    assert body.com.tolist() == [1, 2, 3]


def test_joints_and_links_have_names_of_their_own(write):
    path = write(link("arm"), link("hand"), link("root"), joint("hand", "root", "arm"), joint("arm", "arm", "hand"),
                 name="names.urdf")
    mechanism = bk.load(path, base="fixed", strict=True)
    assert mechanism.link("hand").joint_name == "arm"
    assert mechanism.q_slice("hand") == slice(0, 1)  # the joint of this name carries the link "arm"


def test_the_root_joint_never_clashes(write):
    path = write(link("a"), link("b"), joint("root", "a", "b"))
    mechanism = bk.load(path)
    assert mechanism.joint_names == ["root_", "root"]
    assert isinstance(mechanism.links[0].joint, bk.Free)


def test_a_link_called_ground_gets_another_name(write):
    mechanism = load_quietly(write(link("ground"), link("b"), joint("j", "ground", "b")))
    assert mechanism.link_names == ["ground_", "b"]
    assert mechanism.links[1].parent == 0


def test_friction_of_joints_is_read_where_it_is_asked_for(write):
    inside = "<dynamics damping='1' friction='2'/><limit lower='0' upper='1'/>"
    path = write(link("a"), link("b"), joint("j", "a", "b", inside=inside))
    assert bk.load(path, friction=True, strict=True).joint("j").friction == 2.0
    [note] = notes_of(path)
    assert "friction=True" in note
    with pytest.raises(bk.LoadError, match="friction"):
        bk.load(write(link("a"), link("b"), joint("j", "a", "b", inside=inside.replace("'2'", "'-2'"))), friction=True)


def test_limits_of_drives_are_read(write):
    inside = "<limit lower='0' upper='1' effort='5' velocity='0'/>"
    m = bk.load(write(link("a"), link("b"), joint("j", "a", "b", inside=inside)), strict=True)
    assert (m.joint("j").effort, m.joint("j").speed) == (5.0, np.inf)
    [note] = notes_of(write(link("a"), link("b"), joint("j", "a", "b", inside=inside.replace("'5'", "'-5'"))))
    assert "negative limit of effort" in note


def mimic(to, more=""):
    return f"<axis xyz='0 0 1'/><limit lower='0' upper='1'/><mimic joint='{to}' {more}/>"


def test_mimic_joints_are_coupled(write):
    path = write(link("a"), link("b"), link("c"), link("d"), joint("ab", "a", "b"),
                 joint("ac", "a", "c", inside=mimic("ab", "multiplier='2'")),
                 joint("cd", "c", "d", inside=mimic("ac", "offset='-0.1'")))
    m = bk.load(path, strict=True)
    assert [c.equation for c in m.couplings.values()] == ["ac = 2 ab", "cd = ac - 0.1"]
    assert {link.joint_name: link.actuated for link in m.links[1:]} == {"ab": True, "ac": False, "cd": False}
    assert bk.closed_chain(m, bk.project(m, m.neutral())).freedom == 6 + 1


@pytest.mark.parametrize(("to", "kind", "reason"), [
    ("nothing", "revolute", "moves independently: there is no joint 'nothing'"),
    ("ac", "revolute", "moves independently: joint 'ac' cannot follow itself"),
    ("stuck", "revolute", "moves independently: joint 'stuck' is a Fixed"),
    ("ab", "fixed", "<mimic> has no effect on a fixed joint")])
def test_mimic_that_cannot_be_is_a_finding(write, to, kind, reason):
    path = write(link("a"), link("b"), link("c"), link("d"), joint("ab", "a", "b"),
                 joint("stuck", "a", "d", "fixed"), joint("ac", "a", "c", kind, inside=mimic(to)))
    [note] = notes_of(path)
    assert note.startswith("robot.urdf: joint 'ac', line 8: <mimic>")
    assert reason in note
    assert not load_quietly(path).couplings
    with pytest.raises(bk.LoadError, match=r"(?s)robot.urdf.*strict.*'ac', line 8"):
        bk.load(path, strict=True)


MIMICS = ("panda_description/urdf/panda.urdf", "baxter_description/urdf/baxter.urdf",
          "pr2_description/urdf/pr2.urdf", "tiago_pro_description/robots/tiago_pro.urdf")
MIMICS_AFTER = ("talos_data/robots/talos_full_v2.urdf", "talos_data/robots/talos_full_v2_box.urdf")
"""Pinocchio refuses mimic joints that come before those they follow; here its whole tree is the oracle."""


@needs_robots
@pytest.mark.parametrize("name", [*MIMICS, *MIMICS_AFTER])
def test_robots_with_mimic_joints_accelerate_as_in_pinocchio(name):
    """Pinocchio's mimic joints have no coordinates of their own: G maps its velocities to ours."""
    pin = pytest.importorskip("pinocchio")
    mechanism = load_quietly(FOLDER / name, base="fixed")
    rng = np.random.default_rng(7)
    assert mechanism.couplings
    if name in MIMICS:
        model = pin.buildModelFromUrdf(str(FOLDER / name), mimic=True)
        assert model.nv == mechanism.nv - len(mechanism.couplings)
    else:
        model = pin.buildModelFromUrdf(str(FOLDER / name))
    data = model.createData()
    place = {x.joint_name: mechanism.v_slice(x.joint_name).start for x in mechanism.links if x.joint.nv}
    chosen = [k for x, k in place.items() if x not in mechanism.couplings]
    G = np.eye(mechanism.nv)[:, chosen]
    for _ in range(3):
        q, v = np.zeros((2, mechanism.nv))
        q[chosen], v[chosen] = rng.normal(size=(2, len(chosen)))
        for _ in mechanism.couplings:  # chains
            for c in mechanism.couplings.values():
                q[place[c.joint]] = c.ratio * q[place[c.to]] + c.offset
                v[place[c.joint]] = c.ratio * v[place[c.to]]
                G[place[c.joint]] = c.ratio * G[place[c.to]]
        theirs, speed, order = np.zeros(model.nq), np.zeros(model.nv), np.zeros((mechanism.nv, model.nv))
        for x, k in place.items():
            if x in mechanism.couplings and name in MIMICS:
                continue
            joint = model.joints[model.getJointId(x)]
            own = [np.cos(q[k]), np.sin(q[k])] if joint.nq == 2 else [q[k]]
            theirs[joint.idx_q:joint.idx_q + joint.nq], speed[joint.idx_v], order[k, joint.idx_v] = own, v[k], 1.0
        G_theirs = order.T @ G  # (their velocities, independent ones)
        M = np.triu(pin.crba(model, data, theirs))
        M = G_theirs.T @ (M + np.triu(M, 1).T) @ G_theirs
        h = G_theirs.T @ pin.rnea(model, data, theirs, speed, np.zeros(model.nv))
        tau = rng.normal(size=mechanism.nv)
        assert largest_error(G.T @ bk.mass_matrix(mechanism, q) @ G, M) < RELATIVE
        expected = G @ np.linalg.solve(M, G.T @ tau - h)
        error = largest_error(bk.forward_dynamics(mechanism, q, v, tau, passive=False), expected)
        print(f"{name}: {len(mechanism.couplings)} couplings, relative difference {error:.1e}")
        assert error < 1e-10
        torques = bk.inverse_dynamics(mechanism, q, v, expected, passive=False)
        assert largest_error(G.T @ torques, G.T @ tau) < 1e-7


@pytest.mark.parametrize(("elements", "expected"), [
    ([link("a", BODY.replace("ixx='0.1'", "ixx='-0.1'"))], "link 'a', line 2: inertia has a negative principal moment"),
    ([link("a", BODY.replace("ixx='0.1'", "ixx='0.3'"))], "link 'a', line 2: principal moments"),
    ([link("a", BODY.replace("value='2'", "value='0'"))], "link 'a', line 2: inertia without mass"),
    ([link("a", "<inertial><mass value='1'/></inertial>")], "link 'a', line 2: its <inertial> has no <inertia>"),
    ([link("a"), link("b", BODY.replace("'2'", "'1e-8'")), joint("j", "a", "b")],
     "joint 'j', line 4: moves a nearly massless link (1e-08 kg"),
    ([link("a"), link("b", ""), joint("j", "a", "b")], "joint 'j', line 4: moves no mass"),
    ([link("a"), link("b", "<inertial><mass value='1'/><inertia ixx='0' iyy='0' izz='0'/></inertial>"),
      joint("j", "a", "b")], "joint 'j', line 4: its subtree has no inertia about the axis"),
    ([link("a"), link("b"), joint("j", "a", "b", inside="<dynamics damping='1' friction='2'/>"
                                                        "<limit lower='0' upper='1'/>")],
     "joint 'j', line 4: dry friction is left out"),
    ([link("a"), link("b"), joint("j", "a", "b", inside="")], "joint 'j', line 4: a revolute joint without limits"),
    ([link("a"), link("b"), joint("j", "a", "b", inside="<limit lower='1' upper='0'/>")],
     "joint 'j', line 4: the lower limit 1 lies above the upper 0"),
    ([link("a"), "<spring/>"], "<spring>, line 3: unknown in a <robot>; left out"),
    ([link("a"), "<gazebo>\n<joint/></gazebo>"], "<joint>, line 4: the loop is left open: there is no link"),
    ([link("world", ""), link("b"), joint("j", "world", "b")], "link 'world', line 2: the root link is put on a Free"),
    ([link("a", BODY + "<visual><geometry><torus/></geometry></visual>")],
     "visual of link 'a', line 2: has the unknown"),
    ([link("a", BODY + "<visual><geometry><mesh filename='http://x/y.stl'/></geometry></visual>")],
     "visual of link 'a', line 2: mesh 'http://x/y.stl' not found"),
])
def test_oddities_are_noted_with_file_and_element(write, elements, expected):
    path = write(*elements)
    notes = notes_of(path)
    assert any(note.startswith(f"robot.urdf: {expected}") for note in notes), notes
    with pytest.raises(bk.LoadError, match="strict=True"):
        bk.load(path, strict=True)


def test_warnings_point_to_the_caller(write):
    with pytest.warns(bk.LoadWarning) as caught:
        bk.load(write(link("a"), "<spring/>"))
    assert caught[0].filename == __file__


def test_damping_and_limits_are_kept(write):
    inside = "<axis xyz='0 2 0'/><limit lower='-1.5' upper='inf'/><dynamics damping='0.25'/>"
    mechanism = bk.load(write(link("a"), link("b"), joint("j", "a", "b", "prismatic", inside)), strict=True)
    slider = mechanism.joint("j")
    assert slider.axis.tolist() == [0, 1, 0]
    assert slider.passive[0, [1, 4, 5]].tolist() == [0.25, -1.5, np.inf]


# -- meshes ------------------------------------------------------------------------------------------------------------


def shown(mesh):
    return link("a", BODY + f"<visual><geometry><mesh filename='{mesh}' scale='1 2 3'/></geometry></visual>")


@pytest.mark.parametrize("mesh", ["package://arm_pkg/meshes/a.stl", "package:///arm_pkg/meshes/a.stl",
                                  "../meshes/a.stl", "file://{}/arm_pkg/meshes/a.stl", "model://arm_pkg/meshes/a.stl"])
def test_meshes_beside_the_file_are_found(write, tmp_path, mesh):
    (tmp_path / "arm_pkg/meshes").mkdir(parents=True)
    (tmp_path / "arm_pkg/meshes/a.stl").touch()
    path = write(shown(mesh.format(tmp_path)), name="arm_pkg/urdf/arm.urdf")
    [visual] = bk.load(path, strict=True).link("a").visuals
    assert visual.mesh == str(tmp_path / "arm_pkg/meshes/a.stl")
    assert visual.size == (1, 2, 3)


def test_meshes_are_found_through_the_search_path(write, tmp_path, monkeypatch):
    (tmp_path / "far/pkg").mkdir(parents=True)
    (tmp_path / "far/pkg/a.stl").touch()
    path = write(shown("package://pkg/a.stl"), name="near/robot.urdf")
    with pytest.raises(bk.LoadError, match="not found"):
        bk.load(path, strict=True)
    found = str(tmp_path / "far/pkg/a.stl")
    for search in (tmp_path / "far", str(tmp_path / "far/pkg"), ["/nowhere", tmp_path / "far"]):
        assert bk.load(path, strict=True, search=search).link("a").visuals[0].mesh == found
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "far"))
    assert bk.load(path, strict=True).link("a").visuals[0].mesh == found


def test_shapes_and_colours_are_kept(write):
    shapes = ["<box size='1 2 3'/>", "<sphere radius='1'/>", "<cylinder radius='1' length='2'/>"]
    visuals = "".join(f"<visual><origin xyz='0 0 {k}'/><geometry>{shape}</geometry><material name='red'/></visual>"
                      for k, shape in enumerate(shapes))
    path = write(link("a", BODY + visuals), "<material name='red'><color rgba='1 0 0 0.5'/></material>")
    found = bk.load(path, strict=True).link("a").visuals
    assert [(v.shape, v.size) for v in found] == [("box", (1, 2, 3)), ("sphere", (1,)), ("cylinder", (1, 2))]
    assert all(v.colour == (1, 0, 0, 0.5) for v in found)
    assert [v.position[2] for v in found] == [0, 1, 2]


# -- which file --------------------------------------------------------------------------------------------------------


def test_urdf_in_a_file_called_xml_is_recognised(write):
    assert bk.load(write(link("a"), name="robot.xml")).link_names == ["a"]


def test_unknown_kinds_of_file_are_refused(write, tmp_path):
    with pytest.raises(bk.LoadError, match=r"robot.usd.*only .urdf, .xacro, .xml"):
        bk.load(write(link("a"), name="robot.usd"))
    with pytest.raises(bk.ModelError, match="'free' or 'fixed'"):
        bk.load(write(link("a")), base="floating")
    (tmp_path / "page.xml").write_text("<html/>")
    with pytest.raises(bk.LoadError, match=r"page\.xml: the root element is <html>"):
        bk.load(tmp_path / "page.xml")
