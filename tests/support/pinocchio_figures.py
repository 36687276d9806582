"""Any tree of ours with Free, Spherical, Revolute and Fixed joints as a model of Pinocchio, given as `pin`."""

import numpy as np

import bunraku as bk


def model_of(pin, m):
    """(model, {link: (joint of the model, placement in it)}, places of q, places of v)."""
    model = pin.Model()
    model.gravity = pin.Motion(np.array(m.gravity), np.zeros(3))
    carrier, of_q, of_v = {-1: (0, pin.SE3.Identity())}, [], []
    for k, link in enumerate(m.links):
        parent, placed = carrier[link.parent]
        placed = placed * pin.SE3(np.array(link.rotation), np.array(link.position))
        joint = {bk.Free: pin.JointModelFreeFlyer, bk.Spherical: pin.JointModelSpherical}.get(type(link.joint))
        if isinstance(link.joint, bk.Revolute):
            hinge = pin.JointModelRevoluteUnaligned(np.array(link.joint.axis))
            parent = model.addJoint(parent, hinge, placed, link.name)
        elif joint is not None:
            parent = model.addJoint(parent, joint(), placed, link.name)
        if not isinstance(link.joint, bk.Fixed):
            placed = pin.SE3.Identity()
            made = model.joints[parent]
            places = list(range(made.idx_q, made.idx_q + made.nq))
            if joint is not None:
                places[-4:] = [places[-1], *places[-4:-1]]  # w x y z from x y z w
            of_q += places
            of_v += range(made.idx_v, made.idx_v + made.nv)
        carrier[k] = parent, placed
        model.appendBodyToJoint(parent, pin.Inertia(link.mass, np.array(link.com), np.array(link.inertia)), placed)
    return model, {link.name: carrier[k] for k, link in enumerate(m.links)}, np.array(of_q), np.array(of_v)
