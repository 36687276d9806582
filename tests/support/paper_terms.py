"""A `Closed` structure at a state in the terms of `paper_ada`, by the oracle's kinematics.

Spatial quantities of links are in world axes about the world's origin, those of a joint in the axes of its child side
at that frame's origin. A motion is a 4x4 matrix first: the velocity of a frame with pose X is X' X^-1.
"""

from __future__ import annotations

import numpy as np

import oracle
import paper_ada
from closed import Closed
from closed_oracle import carried, loops
from oracle import at_rest, onward, placed
from structures import skew


def vee(V):
    """(linear, angular) of a motion matrix."""
    return np.concatenate([V[:3, 3], oracle.unskew(V[:3, :3])])


def velocity(frame):
    X, X1, *_ = frame
    return X1 @ np.linalg.inv(X)


def paper_link(part, frame, gravity) -> paper_ada.Link:
    R, x, V = frame[0][:3, :3], frame[0][:3, 3], vee(velocity(frame))
    C = skew(x + R @ part.com)
    M = np.block([[part.mass * np.eye(3), -part.mass * C],
                  [part.mass * C, R @ part.inertia @ R.T - part.mass * C @ C]])
    crossed = np.block([[skew(V[3:]), skew(V[:3])], [np.zeros((3, 3)), skew(V[3:])]])
    weight = M @ np.concatenate([gravity, np.zeros(3)])
    return paper_ada.Link(M, -crossed.T @ M @ V - weight)


def paper_joint(part, p, c, above, below, q, v, tau) -> paper_ada.Joint:
    """`above`, `below`: the two frames of the joint, with their time derivatives."""
    R, x = below[0][:3, :3], below[0][:3, 3]
    J = np.block([[R.T, -R.T @ skew(x)], [np.zeros((3, 3)), R.T]])
    X, X1, X2, U = onward(at_rest(part.nv), part, q, v, 0)
    own = np.linalg.solve(X, X1)                                              # S q', in child axes
    bend = vee(np.linalg.solve(X, X2) - own @ own)                            # S' q'
    S = np.array([vee(np.linalg.solve(X, u)) for u in U]).reshape(part.nv, 6).T
    V_p, V_c = velocity(above), velocity(below)
    product = V_c @ (V_c - V_p) - (V_c - V_p) @ V_c                           # V_c x (V_c - V_p)
    span = np.linalg.svd(S)[0] if part.nv else np.eye(6)
    return paper_ada.Joint(p, c, J, span[:, part.nv:].T, np.linalg.pinv(S) if part.nv else np.empty((0, 6)),
                           J @ vee(product) + bend, tau)


def paper_terms(closed: Closed, q, v, tau) -> tuple[list, list]:
    """(links, joints): those of the tree in order, then the connections."""
    nv = closed.m.nv
    at = oracle.motion(closed, q, v)
    links = [paper_link(part, frame, closed.m.gravity) for part, frame in zip(closed.parts, at.carried, strict=True)]
    joints, i_v = [], 0
    for k, (part, q_j, v_j) in enumerate(oracle.by_joint(closed, q, v)):
        above = placed(carried(at, part.parent, nv), part.position, part.rotation)
        joints.append(paper_joint(part, part.parent, k, above, at.carried[k], q_j, v_j, tau[i_v:i_v + part.nv]))
        i_v += part.nv
    ring = loops(closed, q, v, at) if closed.ties else None
    for tie, q_j in zip(closed.ties, ring.q if ring else (), strict=True):
        a = placed(carried(at, tie.a, nv), tie.position_a, tie.rotation_a)
        b = placed(carried(at, tie.b, nv), tie.position_b, tie.rotation_b)
        joints.append(paper_joint(tie, tie.a, tie.b, a, b, q_j, ring.v[i_v - nv:][:tie.nv], tau[i_v:i_v + tie.nv]))
        i_v += tie.nv
    return links, joints


def random_schedule(rng, joints) -> list[list[int]]:
    """Any order; sometimes all joints left between two subchains are added at once."""
    owner = {k: k for joint in joints for k in (joint.p, joint.c)}
    left, steps = [int(i) for i in rng.permutation(len(joints))], []
    while left:
        ends = {owner[joints[left[0]].p], owner[joints[left[0]].c]}
        same = [i for i in left if {owner[joints[i].p], owner[joints[i].c]} == ends]
        added = same if rng.random() < 0.5 else same[:1]
        steps.append(added)
        left = [i for i in left if i not in added]
        owner = {k: min(ends) if own in ends else own for k, own in owner.items()}
    return steps
