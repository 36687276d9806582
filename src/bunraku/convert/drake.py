"""Drake: rotation before translation, floating velocities in parent axes, balls as roll, pitch, yaw.

From Drake's documentation of QuaternionFloatingJoint (q: quaternion w x y z, position; v: w_FM, v_FM, both expressed in
the parent's frame F), RpyFloatingJoint (roll, pitch, yaw instead of the quaternion), BallRpyJoint (q: roll, pitch, yaw;
v: w_FM in F), PlanarJoint (x, y, theta and their rates) and ScrewJoint (the angle).
"""

from __future__ import annotations

from bunraku.convert.blocks import BallRpy, Block, Floating
from bunraku.convert.converter import Converter
from bunraku.convert.match import Piece, Slot, by_convention, by_name
from bunraku.errors import ModelError
from bunraku.mechanism import Mechanism

SCALARS = {"revolute": 1, "prismatic": 1, "screw": 1, "planar": 3, "universal": 2}
OTHERS = {"ball_rpy": "ball in roll, pitch, yaw", "quaternion_floating": "free with quaternion",
          "rpy_floating": "free with roll, pitch, yaw"}


def converter(mechanism: Mechanism, model=None) -> Converter:
    """Between `mechanism` and Drake; `model` is a finalized MultibodyPlant that holds nothing else."""
    if model is None:
        kinds = {"scalar": "coordinates", "planar": "coordinates", "ball": OTHERS["ball_rpy"],
                 "free": OTHERS["quaternion_floating"]}
        return by_convention(mechanism, "Drake", kinds, join)
    try:
        joints = [model.get_joint(index) for index in model.GetJointIndices()]
    except (AttributeError, TypeError):
        raise ModelError(f"the Drake model must be a MultibodyPlant, not {type(model).__name__}") from None
    theirs: dict[str, list[Slot]] = {}
    for joint in joints:
        kind, name = joint.type_name(), joint.name()
        q, v = joint.position_start(), joint.velocity_start()
        if joint.num_velocities() == 0:
            continue
        if kind in SCALARS:
            theirs[name] = [Slot("coordinates", q + k, v + k) for k in range(SCALARS[kind])]
        elif kind in OTHERS:
            theirs[name] = [Slot(OTHERS[kind], q, v)]
        else:
            raise ModelError(f"joint {name!r}: Drake's {kind} joint has no counterpart here")
    return by_name(mechanism, "Drake", theirs, join)


def join(piece: Piece, kind: str) -> Block | None:
    if kind == "coordinates" and piece.kind in ("scalar", "planar"):
        return Block(1, 1) if piece.kind == "scalar" else Block(3, 3)
    if piece.kind == "ball" and kind == OTHERS["ball_rpy"]:
        return BallRpy()
    if piece.kind == "free" and kind in (OTHERS["quaternion_floating"], OTHERS["rpy_floating"]):
        orientation = "wxyz" if kind == OTHERS["quaternion_floating"] else "rpy"
        return Floating(orientation, orientation_first=True, linear_in_parent=True, angular_in_parent=True)
    return None
