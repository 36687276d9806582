"""Mechanisms with loops: random ones, closed where they are, and a parallelogram."""

import numpy as np

import bunraku as bk
from structures import random_joint, random_rotation, random_tree

KINDS = ("fixed", "revolute", "prismatic", "helical", "cylindrical", "planar", "spherical", "compound", "free")


def connect_here(m, q, a, b, joint, name, position_b=(0, 0, 0), rotation_b=None, **more):
    """Connect two links where they are: the joint at its neutral position."""
    where = {"ground": (np.eye(3), np.zeros(3)), **bk.poses(m, q)}
    (R_a, x_a), (R_b, x_b) = where[a], where[b]
    turn = np.eye(3) if rotation_b is None else rotation_b
    return m.connect(a, b, joint, name, position_a=R_a.T @ (x_b + R_b @ position_b - x_a),
                     rotation_a=R_a.T @ R_b @ turn, position_b=position_b, rotation_b=turn, **more)


def random_loops(seed, connections=2, passive=False, links=7):
    """A random mechanism with loops, and a state that closes them in position and velocity."""
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, links=links, passive=passive)
    m, (q, v, tau) = tree.m, tree.state(rng)
    names = ["ground", *m.link_names]
    for k in range(connections):
        a, b = rng.choice(len(names), 2, replace=False)
        joint = random_joint(rng, KINDS[rng.integers(len(KINDS))], passive)[0]
        joint = joint if not joint.nv else joint.changed(armature=0.0)
        connect_here(m, q, names[a], names[b], joint, f"loop{k}", rng.normal(size=3) * 0.3, random_rotation(rng),
                     actuated=bool(rng.integers(2)))
    chain = bk.closed_chain(m, q)
    return m, q, chain.W @ v[chain.G], tau


def parallelogram(both=False, length=0.5, driven=False, **passive):
    """Two equal cranks about y and a coupler of length 1 that stays level; gravity down."""
    m = bk.Mechanism()
    rod = {"mass": 2.0, "com": (0, 0, -0.2), "inertia": (0.1, 0.1, 0.01)}
    m.add_link("crank", joint=bk.Revolute((0, 1, 0)), **rod)
    m.add_link("coupler", "crank", bk.Revolute((0, 1, 0)), actuated=False, position=(0, 0, -length), mass=3.0,
               com=(0.5, 0, 0), inertia=(0.01, 0.2, 0.2))
    m.add_link("rocker", joint=bk.Revolute((0, 1, 0)), position=(1, 0, 0), actuated=both, **rod)
    m.connect("rocker", "coupler", bk.Revolute((0, 1, 0), **passive), "pin", position_a=(0, 0, -length),
              position_b=(1, 0, 0), actuated=driven)
    return m


def posed(angle):
    """Coordinates of the parallelogram."""
    return np.array([angle, -angle, angle])


def forward(m, q, v, tau, drives=None):
    """Accelerations by assembly and disassembly."""
    return bk.forward_dynamics(m, q, v, tau if drives is None else np.concatenate([tau, drives]))


def unit_vectors(m, q, v, tau, drives=None, external=None):
    """Accelerations by unit vectors."""
    return bk.forward_dynamics(m, q, v, tau if drives is None else np.concatenate([tau, drives]), external=external,
                               method="unit_vector")


def without_connections(m):
    """The tree of a mechanism."""
    twin = m.copy()
    for name in list(twin.connections):
        twin.cut(name)
    return twin
