"""States in other libraries' conventions: against the libraries where they are, by identities where they are not."""

from __future__ import annotations

import numpy as np
import pytest

import bunraku as bk
from bunraku import convert
from bunraku.convert.blocks import rotations
from bunraku.errors import ModelError, ShapeError, StateError

LIBRARIES = convert.LIBRARIES
INERTIA = np.diag([0.02, 0.03, 0.04])


def everything(helical=False, placed=False) -> bk.Mechanism:
    """A mechanism with every kind of joint."""
    m = bk.Mechanism(name="everything")
    body = {"mass": 1.0, "com": (0.1, 0.0, -0.2), "inertia": INERTIA}
    place = {"position": (1, 2, 3), "rotation": rotations(np.array([1.0, 2.0, 3.0, 4.0]))} if placed else {}
    m.add_link("base", joint=bk.Free(), joint_name="root", **place, **body)
    m.add_link("thigh", "base", bk.Compound(bk.Revolute((1, 0, 0)), bk.Revolute((0, 1, 0)), bk.Prismatic((0, 0, 1))),
               joint_name="hip_x+hip_y+hip_z", position=(0, 0.1, 0), **body)
    m.add_link("shank", "thigh", bk.Revolute((0, 1, 0)), joint_name="knee", position=(0, 0, -0.4), **body)
    m.add_link("plate", "base", bk.Fixed(), **body)
    m.add_link("arm", "plate", bk.Spherical(), joint_name="shoulder", position=(0, 0, 0.5), **body)
    m.add_link("tray", "arm", bk.Planar((0, 0, 1)), joint_name="slide", position=(0.3, 0, 0), **body)
    m.add_link("rod", "arm", bk.Cylindrical((0, 1, 0)), joint_name="rod", **body)
    if helical:
        m.add_link("nut", "rod", bk.Helical((0, 0, 1), 0.1), joint_name="nut", **body)
    return m


def state(m, rng, batch=()):
    q = m.integrate(np.tile(m.neutral(), (*batch, 1)) if batch else m.neutral(), rng.normal(size=(*batch, m.nv)))
    return q, rng.normal(size=(*batch, m.nv)), rng.normal(size=(*batch, m.nv)), rng.normal(size=(*batch, m.nv))


def same_state(m, q0, q1):
    """Equal up to the sign of quaternions and whole turns of angles that went through a cosine and sine."""
    gap = m.difference(q0, q1)
    return np.abs(np.remainder(gap + np.pi, 2 * np.pi) - np.pi).max() < 1e-12


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("batch", [(), (5,)])
@pytest.mark.parametrize("placed", [False, True])
def test_there_and_back(library, batch, placed):
    m = everything(helical=library != "mujoco", placed=placed)
    conv = convert.to(m, library)
    q, v, a, tau = state(m, np.random.default_rng(0), batch)
    x, xv = conv.q(q), conv.v(q, v)
    assert x.shape == (*batch, conv.nq)
    assert xv.shape == (*batch, conv.nv) == (*batch, m.nv)
    assert same_state(m, q, conv.back.q(x))
    assert np.allclose(conv.back.v(x, xv), v, atol=1e-13)
    assert np.allclose(conv.back.a(x, xv, conv.a(q, v, a)), a, atol=1e-12)
    assert np.allclose(conv.back.tau(x, conv.tau(q, tau)), tau, atol=1e-13)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_batch_is_its_states(library):
    m = everything()
    conv = convert.to(m, library)
    q, v, a, tau = state(m, np.random.default_rng(1), (7,))
    for k in range(7):
        assert np.array_equal(conv.q(q)[k], conv.q(q[k]))
        assert np.allclose(conv.v(q, v)[k], conv.v(q[k], v[k]), atol=1e-15)
        assert np.allclose(conv.a(q, v, a)[k], conv.a(q[k], v[k], a[k]), atol=1e-14)
        assert np.allclose(conv.tau(q, tau)[k], conv.tau(q[k], tau[k]), atol=1e-15)
    assert np.allclose(conv.v(q[0], v), [conv.v(q[0], x) for x in v])  # one q for all


@pytest.mark.parametrize("library", LIBRARIES)
def test_power_is_the_same(library):
    m = everything()
    conv = convert.to(m, library)
    q, v, _, tau = state(m, np.random.default_rng(2), (20,))
    assert np.allclose(np.sum(conv.tau(q, tau) * conv.v(q, v), -1), np.sum(tau * v, -1), rtol=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("placed", [False, True])
def test_accelerations_are_the_rate_of_converted_velocities(library, placed):
    """Along q(t + h) = q + h v + h^2/2 a, of which the first order is all that matters."""
    m = everything(placed=placed)
    conv = convert.to(m, library)
    q, v, a, _ = state(m, np.random.default_rng(3), (10,))
    h = 1e-5
    ahead, behind = ((m.integrate(q, s * h * v + 0.5 * h * h * a), v + s * h * a) for s in (1, -1))
    numeric = (conv.v(*ahead) - conv.v(*behind)) / (2 * h)
    assert np.allclose(numeric, conv.a(q, v, a), atol=1e-7)


def expected_rates(library, kind, x, xv):
    """dq/dt of a library's joint from its own q and v, as its documentation has it."""
    cross = np.cross
    if library == "drake" and kind == "free":
        w, u, quaternion = xv[:3], xv[3:], x[:4]
        # w in parent axes
        rate = 0.5 * np.array([-w @ quaternion[1:], *(quaternion[0] * w + cross(w, quaternion[1:]))])
        return np.concatenate([rate, u])
    if library == "drake" and kind == "ball":
        r, p, y = x
        # w = (roll rate) Rz Ry x + (pitch rate) Rz y + (yaw rate) z
        axes = np.array([[np.cos(y) * np.cos(p), -np.sin(y), 0], [np.sin(y) * np.cos(p), np.cos(y), 0],
                         [-np.sin(p), 0, 1]])
        return np.linalg.solve(axes, xv)
    scalar_last = library == "pinocchio"
    quaternion = np.roll(x[-4:], 1) if scalar_last else x[-4:]
    w = xv[-3:]
    rate = 0.5 * np.array([-w @ quaternion[1:], *(quaternion[0] * w + cross(quaternion[1:], w))])  # w in child axes
    rate = np.roll(rate, -1) if scalar_last else rate
    if kind == "ball":
        return rate
    u = xv[:3] if library == "mujoco" else rotations(quaternion) @ xv[:3]
    return np.concatenate([u, rate])


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", ["ball", "free"])
@pytest.mark.parametrize("placed", [False, True])
def test_converted_coordinates_move_as_the_library_says(library, kind, placed):
    m = bk.Mechanism()
    place = {"position": (1, 2, 3), "rotation": rotations(np.array([1.0, 2.0, 3.0, 4.0]))} if placed else {}
    m.add_link("one", joint=bk.Free() if kind == "free" else bk.Spherical(), mass=1, inertia=INERTIA, **place)
    conv = convert.to(m, library)
    rng = np.random.default_rng(4)
    for _ in range(10):
        q, v, _, _ = state(m, rng)
        h = 1e-6
        numeric = (conv.q(m.integrate(q, h * v)) - conv.q(m.integrate(q, -h * v))) / (2 * h)
        if np.abs(numeric).max() < 50:  # roll and yaw jump by whole turns
            assert np.allclose(numeric, expected_rates(library, kind, conv.q(q), conv.v(q, v)), atol=1e-7)


def test_looking_straight_up_is_no_trouble():
    m = bk.Mechanism()
    m.add_link("one", joint=bk.Spherical(), mass=1, inertia=INERTIA)
    conv = convert.to(m, "drake")
    for tilt in (np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9, np.pi / 2 + 1e-13):
        for yaw in (0.0, 0.7, 3.0):
            q = conv.back.q(np.array([0.3, tilt, yaw]))
            assert np.abs(m.difference(q, conv.back.q(conv.q(q)))).max() < 1e-7


# -- against Pinocchio -----------------------------------------------------------------------------------------------


def pinocchio_twin(pin, unbounded, composite):
    """`everything` as Pinocchio has it, joints in another order."""
    model = pin.Model()

    def add(parent, joint, name, position=(0, 0, 0), moves=True):
        i = model.addJoint(parent, joint, pin.SE3(np.eye(3), np.array(position, float)), name)
        if moves:
            model.appendBodyToJoint(i, pin.Inertia(1.0, np.array([0.1, 0.0, -0.2]), INERTIA), pin.SE3.Identity())
        return i

    root = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root_joint")
    for _ in range(2):  # base and plate
        model.appendBodyToJoint(root, pin.Inertia(1.0, np.array([0.1, 0.0, -0.2]), INERTIA), pin.SE3.Identity())
    arm = add(root, pin.JointModelSpherical(), "shoulder", (0, 0, 0.5))
    add(arm, pin.JointModelPlanar(), "slide", (0.3, 0, 0))
    rod = pin.JointModelComposite()
    rod.addJoint(pin.JointModelPY(), pin.SE3.Identity())
    rod.addJoint(pin.JointModelRUBY() if unbounded else pin.JointModelRY(), pin.SE3.Identity())
    add(arm, rod, "rod")
    if composite:
        hip = pin.JointModelComposite()
        for joint in (pin.JointModelRX(), pin.JointModelRY(), pin.JointModelPZ()):
            hip.addJoint(joint, pin.SE3.Identity())
        thigh = add(root, hip, "hip_x+hip_y+hip_z", (0, 0.1, 0))
    else:
        x = add(root, pin.JointModelRX(), "hip_x", (0, 0.1, 0), moves=False)
        y = add(x, pin.JointModelRY(), "hip_y", moves=False)
        thigh = add(y, pin.JointModelPZ(), "hip_z")
    add(thigh, pin.JointModelRUBY() if unbounded else pin.JointModelRY(), "knee", (0, 0, -0.4))
    return model


@pytest.mark.parametrize("unbounded", [False, True])
@pytest.mark.parametrize("composite", [False, True])
def test_dynamics_agree_with_pinocchio(unbounded, composite):
    pin = pytest.importorskip("pinocchio")
    m = everything()
    model = pinocchio_twin(pin, unbounded, composite)
    data = model.createData()
    conv = convert.to(m, "pinocchio", model)
    assert (conv.nq, conv.nv) == (model.nq, model.nv)
    assert conv.joint_names[:3] == ["root", "shoulder", "slide"]
    rng = np.random.default_rng(5)
    for _ in range(5):
        q, v, a, tau = state(m, rng)
        theirs = pin.rnea(model, data, conv.q(q), conv.v(q, v), conv.a(q, v, a))
        ours = bk.inverse_dynamics(m, q, v, a)
        assert np.allclose(conv.tau(q, ours), theirs, atol=1e-11)
        assert np.allclose(conv.back.tau(conv.q(q), theirs), ours, atol=1e-11)
        acceleration = pin.aba(model, data, conv.q(q), conv.v(q, v), conv.tau(q, tau))
        assert np.allclose(conv.a(q, v, bk.forward_dynamics(m, q, v, tau)), acceleration, rtol=1e-9, atol=1e-9)
        # Ours goes straight in x and y, Pinocchio's planar joint along an arc: the same for a short way
        moved = conv.back.q(pin.integrate(model, conv.q(q), 1e-6 * conv.v(q, v)))
        gap = m.difference(m.integrate(q, 1e-6 * v), moved)
        assert np.abs(np.remainder(gap + np.pi, 2 * np.pi) - np.pi).max() < 1e-11


def test_random_pinocchio_states_come_back():
    pin = pytest.importorskip("pinocchio")
    m, model = everything(), pinocchio_twin(pin, True, True)
    conv = convert.to(m, "pinocchio", model)
    rng = np.random.default_rng(6)
    x = np.array([pin.integrate(model, pin.neutral(model), rng.normal(size=model.nv)) for _ in range(20)])
    assert np.allclose(conv.q(conv.back.q(x)), x, atol=1e-12)


def test_pinocchios_own_reading_of_mjcf_is_matched(tmp_path):
    pin = pytest.importorskip("pinocchio")
    pytest.importorskip("mujoco")
    from bunraku.io.mjcf import load_mjcf

    path = tmp_path / "model.xml"
    inertial = '<inertial pos=".1 0 -.2" mass="1" diaginertia=".02 .03 .04"/>'
    path.write_text(f"""<mujoco><worldbody><body name="base"><freejoint name="root"/>{inertial}
        <body name="leg" pos="0 0 1"><joint name="x" axis="1 0 0"/><joint name="y" axis="0 1 0"/>{inertial}
        </body></body></worldbody></mujoco>""")
    m, model = load_mjcf(path), pin.buildModelFromMJCF(str(path))
    model = model[0] if isinstance(model, tuple) else model
    conv = convert.to(m, "pinocchio", model)
    q, v, a, _ = state(m, np.random.default_rng(10))
    theirs = pin.rnea(model, model.createData(), conv.q(q), conv.v(q, v), conv.a(q, v, a))
    assert np.allclose(conv.tau(q, bk.inverse_dynamics(m, q, v, a)), theirs, rtol=1e-9, atol=1e-9)


# -- against MuJoCo: test_mjcf.py does dynamics; here the matching ---------------------------------------------------


def test_a_mechanism_of_ones_own_matches_mujoco():
    mujoco = pytest.importorskip("mujoco")
    inertial = '<inertial pos=".1 0 -.2" mass="1" diaginertia=".02 .03 .04"/>'
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><option><flag constraint="disable"/></option><worldbody>
        <body><freejoint/>{inertial}
          <body pos="0 0 .5"><joint name="shoulder" type="ball"/>{inertial}
            <body pos=".3 0 0"><joint name="slide_x" type="slide" axis="1 0 0"/>
              <joint name="slide_y" type="slide" axis="0 1 0"/><joint name="slide_turn"/>{inertial}</body>
            <body><joint name="rod_y" type="slide" axis="0 1 0"/><joint name="rod_turn" axis="0 1 0"/>{inertial}</body>
          </body>
          <body>{inertial}</body>
          <body pos="0 .1 0"><joint name="hip_x" axis="1 0 0"/><joint name="hip_y" axis="0 1 0"/>
            <joint name="hip_z" type="slide" axis="0 0 1"/>{inertial}
            <body pos="0 0 -.4"><joint name="knee" axis="0 1 0"/>{inertial}</body></body>
        </body></worldbody></mujoco>""")
    m = everything()
    for link, name in (("tray", "slide_x+slide_y+slide_turn"), ("rod", "rod_y+rod_turn")):
        m = m.with_joint(link, joint_name=name)
    conv = convert.to(m, "mujoco", model)
    assert (conv.nq, conv.nv) == (model.nq, model.nv)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(7)
    for _ in range(5):
        q, v, _, tau = state(m, rng)
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = conv.q(q), conv.v(q, v), conv.tau(q, tau)
        mujoco.mj_forward(model, data)
        assert np.allclose(conv.a(q, v, bk.forward_dynamics(m, q, v, tau)), data.qacc, rtol=1e-9, atol=1e-9)


# -- Drake's plant, as far as the converter asks it ------------------------------------------------------------------


class FakeJoint:
    def __init__(self, name, kind, q, v, nv):
        self._name, self._kind, self._q, self._v, self._nv = name, kind, q, v, nv

    def name(self):
        return self._name

    def type_name(self):
        return self._kind

    def position_start(self):
        return self._q

    def velocity_start(self):
        return self._v

    def num_velocities(self):
        return self._nv


class FakePlant:
    """A MultibodyPlant's joints: order of creation is not order of coordinates."""

    def __init__(self, *joints):
        self.joints = joints

    def GetJointIndices(self):
        return range(len(self.joints))

    def get_joint(self, index):
        return self.joints[index]


def test_drake_joints_are_matched_by_name():
    m = bk.Mechanism()
    body = {"mass": 1.0, "inertia": INERTIA}
    m.add_link("base", joint=bk.Free(), **body)
    m.add_link("arm", "base", bk.Revolute((0, 0, 1)), joint_name="elbow", **body)
    m.add_link("ball", "base", bk.Spherical(), joint_name="neck", **body)
    plant = FakePlant(FakeJoint("elbow", "revolute", 10, 9, 1), FakeJoint("weld", "weld", 0, 0, 0),
                      FakeJoint("neck", "ball_rpy", 7, 6, 3), FakeJoint("$world_base", "quaternion_floating", 0, 0, 6))
    conv = convert.to(m, "drake", plant)
    q, v, a, tau = state(m, np.random.default_rng(8))
    plain = convert.to(m, "drake")
    order = [*range(7), *range(8, 11), 7]
    assert np.array_equal(conv.q(q), plain.q(q)[order])
    order = [*range(6), *range(7, 10), 6]
    assert np.array_equal(conv.v(q, v), plain.v(q, v)[order])
    assert np.array_equal(conv.a(q, v, a), plain.a(q, v, a)[order])
    with pytest.raises(ModelError, match="universal_spring"):
        convert.to(m, "drake", FakePlant(FakeJoint("elbow", "universal_spring", 0, 0, 1)))


@pytest.mark.parametrize("floating", ["quaternion", "rpy"])
def test_dynamics_agree_with_drake(floating):
    plants, tree = pytest.importorskip("pydrake.multibody.plant"), pytest.importorskip("pydrake.multibody.tree")
    from pydrake.math import RigidTransform

    m = bk.Mechanism()
    body = {"mass": 1.0, "com": (0.1, 0.0, -0.2), "inertia": INERTIA}
    m.add_link("base", joint=bk.Free(), joint_name="root", **body)
    m.add_link("leg", "base", bk.Revolute((1, 0, 0)), joint_name="hip", position=(0, 0.1, 0), **body)
    m.add_link("arm", "base", bk.Spherical(), joint_name="shoulder", position=(0, 0, 0.5), **body)
    m.add_link("tray", "arm", bk.Planar((0, 0, 1)), joint_name="slide", position=(0.3, 0, 0), **body)
    m.add_link("rod", "arm", bk.Prismatic((0, 1, 0)), joint_name="rod", **body)
    m.add_link("nut", "rod", bk.Helical((0, 0, 1), 0.1), joint_name="nut", **body)
    plant = plants.MultibodyPlant(0.0)
    inertia = tree.SpatialInertia.MakeFromCentralInertia(1.0, np.array(body["com"]),
                                                         tree.RotationalInertia(*np.diag(INERTIA)))
    bodies = {name: plant.AddRigidBody(name, inertia) for name in ("rod", "nut", "base", "tray", "arm", "leg")}

    def ends(name, parent, child, position=(0, 0, 0)):
        frame = tree.FixedOffsetFrame(name=f"{name}_frame", P=bodies[parent].body_frame(),
                                      X_PF=RigidTransform(np.array(position, float)))
        return {"name": name, "frame_on_parent": plant.AddFrame(frame), "frame_on_child": bodies[child].body_frame()}

    plant.AddJoint(tree.PlanarJoint(**ends("slide", "arm", "tray", (0.3, 0, 0)), damping=np.zeros(3)))
    plant.AddJoint(tree.BallRpyJoint(**ends("shoulder", "base", "arm", (0, 0, 0.5))))
    plant.AddJoint(tree.RevoluteJoint(**ends("hip", "base", "leg", (0, 0.1, 0)), axis=np.array([1.0, 0, 0])))
    plant.AddJoint(tree.PrismaticJoint(**ends("rod", "arm", "rod"), axis=np.array([0, 1.0, 0])))
    plant.AddJoint(tree.ScrewJoint(**ends("nut", "rod", "nut"), axis=np.array([0, 0, 1.0]),
                                   screw_pitch=0.1 * 2 * np.pi, damping=0))
    if floating == "rpy":
        plant.AddJoint(tree.RpyFloatingJoint(name="float", frame_on_parent=plant.world_frame(),
                                             frame_on_child=bodies["base"].body_frame()))
    plant.Finalize()
    context = plant.CreateDefaultContext()
    conv = convert.to(m, "drake", plant)
    rng = np.random.default_rng(9)
    for _ in range(5):
        q, v, a, _ = state(m, rng)
        plant.SetPositions(context, conv.q(q))
        plant.SetVelocities(context, conv.v(q, v))
        R, p = bk.poses(m, q)["nut"]
        pose = plant.EvalBodyPoseInWorld(context, bodies["nut"])
        assert np.allclose(pose.translation(), p, atol=1e-12)
        assert np.allclose(pose.rotation().matrix(), R, atol=1e-12)
        forces = tree.MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, forces)
        tau = plant.CalcInverseDynamics(context, conv.a(q, v, a), forces)
        assert np.allclose(conv.tau(q, bk.inverse_dynamics(m, q, v, a)), tau, atol=1e-11)


# -- what is refused -------------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_said():
    pin = pytest.importorskip("pinocchio")
    m = everything()
    model = pinocchio_twin(pin, False, False)
    model.addJoint(0, pin.JointModelRX(), pin.SE3.Identity(), "extra")
    with pytest.raises(ModelError, match="only there 'extra'"):
        convert.to(m, "pinocchio", model)
    m.add_link("more", "base", bk.Revolute((0, 0, 1)), mass=1)
    with pytest.raises(ModelError, match="only here 'more'; only there 'extra'"):
        convert.to(m, "pinocchio", model)
    model = pinocchio_twin(pin, False, False)
    model.addJoint(0, pin.JointModelSpherical(), pin.SE3.Identity(), "more")
    with pytest.raises(ModelError, match=r"joint 'more' is Revolute.* but in the Pinocchio model ball"):
        convert.to(m, "pinocchio", model)
    with pytest.raises(ModelError, match="MuJoCo has no joint like Helical"):
        convert.to(everything(helical=True), "mujoco")
    with pytest.raises(ModelError, match="no converter for 'dart'"):
        convert.to(m, "dart")
    for library in LIBRARIES:
        with pytest.raises(ModelError, match="not int"):
            convert.to(m, library, 3)


def test_states_are_checked():
    m = everything()
    for library in LIBRARIES:
        conv = convert.to(m, library)
        with pytest.raises(ShapeError):
            conv.q(np.zeros(3))
        with pytest.raises(ShapeError):
            conv.back.v(conv.q(m.neutral()), np.zeros(2))
        with pytest.raises(StateError):
            conv.q(np.zeros(m.nq))
        batch = np.tile(m.neutral(), (4, 1))
        batch[[1, 3], 3] = 0
        with pytest.raises(StateError, match=r"states \[1, 3\]") as error:
            conv.q(batch)
        assert error.value.states == (1, 3)
