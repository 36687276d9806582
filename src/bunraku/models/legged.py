"""Simple figures that move by themselves: a quadruped, a leg with a closed chain, a climber with two arms.

Their numbers are round ones of robots of this size, and of no particular robot. Motors are the joints with an `effort`;
ranges are springs. The leg and the climber move in the plane x z; a positive angle turns from z to x.
"""

from __future__ import annotations

import math

import numpy as np

from bunraku.mechanism import Box, Capsule, Compound, Free, Mechanism, Prismatic, Revolute, Sphere
from bunraku.models.solid_inertias import FIGURE, box

FORWARD, SIDE, UP = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
LEGS = {"front_left": (1, 1), "front_right": (1, -1), "rear_left": (-1, 1), "rear_right": (-1, -1)}


LEG_EFFORT, LEG_SPEED = 15.0, 30.0  # [N m, rad/s] of the motors of `hopping_leg`


def _hinge(axis, lower: float, upper: float, effort: float = math.inf, damping: float = 0.05,
           speed: float = math.inf) -> Revolute:
    """A hinge whose range is a stiff spring."""
    return Revolute(axis, lower=lower, upper=upper, limit_stiffness=300.0, limit_damping=1.0, damping=damping,
                    effort=effort, speed=speed)


def quadruped(friction: float = 0.8) -> Mechanism:
    """A body of 8 kg on four legs of two segments, with three motors each, above the plane z = 0.

    It stands at the neutral position, at a height of 0.31 m: thighs lean back by 0.8 rad and shanks forward by 0.9 from
    the vertical. Motors turn "front_left_side", "front_left_hip", "front_left_knee", ...
    """
    m, thigh, shank, foot = Mechanism(name="quadruped"), 0.22, 0.22, 0.02
    lean, bend = 0.8, 0.9
    height = thigh * math.cos(lean) + shank * math.cos(bend) + foot
    m.add_plane(friction=friction)
    m.add_link("body", joint=Free(), joint_name="root", position=(0.0, 0.0, height),
               **box(8.0, (0.40, 0.20, 0.10))._asdict())
    m.add_shape("body", Box(0.40, 0.20, 0.10), **FIGURE)
    for leg, (front, left) in LEGS.items():
        m.add_link(f"{leg}_hip", "body", _hinge(FORWARD, -0.7, 0.7, 25.0), joint_name=f"{leg}_side",
                   position=(0.18 * front, 0.07 * left, 0.0), **box(0.5, (0.06, 0.06, 0.06))._asdict())
        m.add_link(f"{leg}_thigh", f"{leg}_hip", _hinge(SIDE, -1.3, 1.3, 25.0), joint_name=f"{leg}_hip",
                   position=(0.0, 0.08 * left, 0.0), rotation=_turned(lean),
                   **box(0.8, (0.04, 0.03, thigh), (0.0, 0.0, -0.5 * thigh))._asdict())
        m.add_link(f"{leg}_shank", f"{leg}_thigh", _hinge(SIDE, -0.9, 1.4, 25.0), joint_name=f"{leg}_knee",
                   position=(0.0, 0.0, -thigh), rotation=_turned(-lean - bend),
                   **box(0.2, (0.02, 0.02, shank), (0.0, 0.0, -0.5 * shank))._asdict())
        m.add_shape(f"{leg}_shank", Sphere(foot), position=(0.0, 0.0, -shank), **FIGURE)
        m.add_shape(f"{leg}_thigh", Sphere(foot), position=(0.0, 0.0, -thigh), **FIGURE)
    return m


def hopping_leg(friction: float = 1.0) -> Mechanism:
    """A leg with a closed chain of five bars that hops along a boom: two motors at the hip, "front" and "rear", move a
    foot at the common end of two shanks; "foot" closes the loop.

    The body, 3 kg, moves along x and z and does not turn. At the neutral position it stands 0.33 m above the plane
    z = 0. Shanks are so long that the thighs cannot pull them straight.
    """
    m, apart, thigh, shank, tall, foot = Mechanism(name="hopping leg"), 0.04, 0.16, 0.28, 0.30, 0.03
    m.add_plane(friction=friction)
    m.add_link("body", joint=Compound(Prismatic(FORWARD), Prismatic(UP)), joint_name="boom",
               position=(0.0, 0.0, tall + foot), **box(3.0, (0.16, 0.10, 0.08))._asdict())
    m.add_shape("body", Sphere(0.08), **FIGURE)
    away = math.hypot(apart, tall)
    down, inside = math.atan2(apart, tall), math.acos((thigh**2 + away**2 - shank**2) / (2.0 * thigh * away))
    lean = inside - down                                                       # of the thighs, from the vertical
    knee = np.array([apart + thigh * math.sin(lean), -thigh * math.cos(lean)])
    back = math.atan2(knee[0], knee[1] + tall)                                 # of the shanks, the other way
    for name, side in (("front", 1.0), ("rear", -1.0)):
        m.add_link(f"{name}_thigh", "body", _hinge(SIDE, -0.9, 0.9, LEG_EFFORT, speed=LEG_SPEED), joint_name=name,
                   position=(apart * side, 0.0, 0.0), rotation=_turned(-lean * side),
                   **box(0.3, (0.03, 0.03, thigh), (0.0, 0.0, -0.5 * thigh))._asdict())
        m.add_link(f"{name}_shank", f"{name}_thigh", _hinge(SIDE, -0.9, 0.9), joint_name=f"{name}_knee",
                   position=(0.0, 0.0, -thigh), rotation=_turned((lean + back) * side),
                   **box(0.15, (0.02, 0.02, shank), (0.0, 0.0, -0.5 * shank))._asdict())
    m.connect("front_shank", "rear_shank", Revolute(SIDE), name="foot", position_a=(0.0, 0.0, -shank),
              rotation_a=_turned(-back).T, position_b=(0.0, 0.0, -shank), rotation_b=_turned(back).T)
    m.add_shape("front_shank", Sphere(foot), position=(0.0, 0.0, -shank), **FIGURE)
    return m


def climber() -> Mechanism:
    """A figure of 11 kg with two arms for climbing along bars, in the plane x z: arms of two segments of 0.3 m with
    motors in shoulders and elbows, and legs that swing together.

    The origin of "body" is between the shoulders. At the neutral position arms point up and the figure hangs below the
    origin of the world, at which both hands are; a hand is the point (0, 0, 0.3) of "left_forearm", "right_forearm".
    """
    m, arm = Mechanism(name="climber"), 0.3
    m.add_link("body", joint=Compound(Prismatic(FORWARD), Prismatic(UP), Revolute(SIDE)), joint_name="root",
               position=(0.0, 0.0, -2.0 * arm), **box(6.0, (0.14, 0.24, 0.40), (0.0, 0.0, -0.2))._asdict())
    m.add_shape("body", Capsule(0.08, 0.24), position=(0.0, 0.0, -0.2), **FIGURE)
    m.add_link("legs", "body", _hinge(SIDE, -1.6, 0.5, 40.0, 0.3), joint_name="hip", position=(0.0, 0.0, -0.4),
               **box(3.0, (0.08, 0.16, 0.45), (0.0, 0.0, -0.22))._asdict())
    for side, y in (("left", 0.14), ("right", -0.14)):
        m.add_link(f"{side}_arm", "body", _hinge(SIDE, -2.6, 2.6, 40.0, 0.2), joint_name=f"{side}_shoulder",
                   position=(0.0, y, 0.0), **box(0.6, (0.04, 0.04, arm), (0.0, 0.0, 0.5 * arm))._asdict())
        m.add_link(f"{side}_forearm", f"{side}_arm", _hinge(SIDE, -0.1, 2.6, 30.0, 0.1), joint_name=f"{side}_elbow",
                   position=(0.0, 0.0, arm), **box(0.4, (0.03, 0.03, arm), (0.0, 0.0, 0.5 * arm))._asdict())
    return m


def _turned(angle: float) -> np.ndarray:
    """Rotation about y."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
