"""Random trees as models of Pinocchio, which is given as `pin`: not everyone has it."""

import numpy as np


def pinocchio_model(pin, tree):
    """The same tree as a Pinocchio model. Joints get a frame of their own if they are not at the link's origin."""
    model = pin.Model()
    model.gravity = pin.Motion(tree.m.gravity, np.zeros(3))
    carrier = {-1: (0, pin.SE3.Identity())}
    for k in depth_first(tree):  # the order that its crba relies on
        part = tree.parts[k]
        parent, placed = carrier[part.parent]
        placed = placed * pin.SE3(part.rotation, part.position)
        shift = pin.SE3.Identity()
        if part.kind != "fixed":
            if part.screws:
                shift = pin.SE3(np.eye(3), part.screws[0].at)
            parent = model.addJoint(parent, pinocchio_joint(pin, part), placed * shift, f"joint{k}")
            placed = shift.inverse()
        carrier[k] = parent, placed
        model.appendBodyToJoint(parent, pin.Inertia(part.mass, part.com, part.inertia), placed)
    return model


def depth_first(tree, parent=-1):
    for k, part in enumerate(tree.parts):
        if part.parent == parent:
            yield k
            yield from depth_first(tree, k)


def pinocchio_joint(pin, part):
    if part.kind == "spherical":
        return pin.JointModelSpherical()
    if part.kind == "free":
        return pin.JointModelFreeFlyer()
    screw = part.screws[0]
    if part.kind == "helical":
        return pin.JointModelHelicalUnaligned(screw.axis, screw.linear)
    return (pin.JointModelRevoluteUnaligned if screw.angular else pin.JointModelPrismaticUnaligned)(screw.axis)


def pinocchio_orders(model, tree):
    """Where each of our coordinates and velocities is in Pinocchio's vectors."""
    q, v = [], []
    for k, part in enumerate(tree.parts):
        if part.kind == "fixed":
            continue
        joint = model.joints[model.getJointId(f"joint{k}")]
        places = list(range(joint.idx_q, joint.idx_q + joint.nq))
        if part.kind in ("spherical", "free"):
            places[-4:] = [places[-1], *places[-4:-1]]  # w x y z from x y z w
        q += places
        v += range(joint.idx_v, joint.idx_v + joint.nv)
    return np.array(q), np.array(v)
