"""Small mechanisms to simulate."""

import numpy as np

import bunraku as bk


def pendulum(**joint):
    """One link "rod" on a hinge 1 m above the ground."""
    m = bk.Mechanism(name="pendulum")
    m.add_link("rod", joint=bk.Revolute((0, 1, 0), **joint), position=(0, 0, 1), mass=1.0, com=(0, 0, -0.5),
               inertia=(0.02, 0.02, 0.001))
    return m


def double(**joint):
    """A double pendulum: "upper" and "lower"."""
    m = bk.Mechanism()
    for name, parent, z in (("upper", "ground", 1.2), ("lower", "upper", -0.5)):
        m.add_link(name, parent, bk.Revolute((0, 1, 0), **joint), joint_name=f"{name}_joint", position=(0, 0, z),
                   mass=1.0, com=(0, 0, -0.25), inertia=(0.02, 0.02, 0.001))
    return m


def tumbling():
    """A free body, quick and unsymmetrical: everything about quaternions matters."""
    m = bk.Mechanism(gravity=(0, 0, -9.81))
    m.add_link("body", joint=bk.Free(), mass=2.0, com=(0.02, 0.0, 0.05), inertia=np.diag([0.03, 0.05, 0.02]))
    return m, m.neutral(), np.array([1.0, 0.0, 2.0, 4.0, 0.3, 3.0])


def linkage():
    """A four-bar linkage in motion."""
    m = bk.models.four_bar()
    return m, m.neutral(), bk.project(m, m.neutral(), np.full(m.nv, 3.0))[1]


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
