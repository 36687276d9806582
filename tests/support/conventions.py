"""A mechanism with every kind of joint, and states of it, to be converted to other conventions."""

import numpy as np

import bunraku as bk
from bunraku.convert.blocks import rotations

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
