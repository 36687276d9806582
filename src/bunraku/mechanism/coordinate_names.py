"""Names of coordinates, velocities and torques, for tables, recordings and plots.

The coordinate of a joint with one degree of freedom has the name of the joint; other joints append a component:
`knee`, `root.x`, `shoulder.qw`. A velocity that is the rate of a coordinate is `knee.rate`; angular velocities are
`shoulder.wx`, linear ones of a Free joint `root.vx`. The torque or force of a degree of freedom is `knee.tau`,
`shoulder.wx.tau`.
"""

from __future__ import annotations

from typing import NamedTuple

from bunraku.mechanism import joints
from bunraku.mechanism.mechanism import Mechanism

QUATERNION, LINEAR, ANGULAR = ("qw", "qx", "qy", "qz"), ("vx", "vy", "vz"), ("wx", "wy", "wz")
PARTS: dict[type[joints.Joint], tuple[str, ...]] = {  # joints whose velocities are the rates of their coordinates
    joints.Cylindrical: ("length", "angle"), joints.Planar: ("x", "y", "angle")}
TURNING = {joints.Spherical: (QUATERNION, ANGULAR),
           joints.Free: (("x", "y", "z", *QUATERNION), (*LINEAR, *ANGULAR))}


class CoordinateNames(NamedTuple):
    """Names of the entries of q, v and tau, in order; those of tau go on with the connections."""

    q: list[str]
    v: list[str]
    tau: list[str]


def coordinate_names(mechanism: Mechanism) -> CoordinateNames:
    """A name for every coordinate, velocity and torque of a mechanism."""
    names = CoordinateNames([], [], [])
    for link in mechanism.links:
        coordinates, freedoms = _of_joint(link.joint_name, link.joint)
        turning = type(link.joint) in TURNING
        names.q.extend(coordinates)
        names.v.extend(freedoms if turning else [f"{name}.rate" for name in freedoms])
        names.tau.extend(f"{name}.tau" for name in freedoms)
    for connection in mechanism.connections.values():
        names.tau.extend(f"{name}.tau" for name in _of_joint(connection.name, connection.joint)[1])
    return names


def _of_joint(name: str, joint: joints.Joint) -> tuple[list[str], list[str]]:
    """Of its coordinates, and of its degrees of freedom."""
    if type(joint) in TURNING:
        q, v = TURNING[type(joint)]
        return [f"{name}.{part}" for part in q], [f"{name}.{part}" for part in v]
    if joint.nv == 1 and not isinstance(joint, joints.Compound):
        return [name], [name]
    parts = PARTS.get(type(joint), tuple(str(k + 1) for k in range(joint.nv)))  # Compound: in the order of its screws
    return [f"{name}.{part}" for part in parts], [f"{name}.{part}" for part in parts]
