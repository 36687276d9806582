"""States in Drake's conventions: joints matched by name, and dynamics that agree where it is installed."""

from __future__ import annotations

import numpy as np
import pytest

import bunraku as bk
from bunraku import convert
from bunraku.errors import ModelError
from conventions import INERTIA, state


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
