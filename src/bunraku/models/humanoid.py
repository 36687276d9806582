"""A generic humanoid robot of human size with revolute joints only.

Sizes and masses are round numbers typical of full-size humanoids; every link is a solid box.
"""

from __future__ import annotations

from bunraku.mechanism import Box, Capsule, Free, Mechanism, Revolute
from bunraku.models.solid_inertias import FIGURE, box

AXES = {"roll": (1.0, 0.0, 0.0), "pitch": (0.0, 1.0, 0.0), "yaw": (0.0, 0.0, 1.0)}

# joint, parent joint ("" the base), place in the parent [m], mass [kg], size of the box and its centre [m]
TRUNK = (
    ("waist_yaw", "", (0.0, 0.0, 0.10), 2.0, (0.12, 0.12, 0.08), (0.0, 0.0, 0.04)),
    ("waist_roll", "waist_yaw", (0.0, 0.0, 0.08), 1.5, (0.10, 0.12, 0.08), (0.0, 0.0, 0.02)),
    ("waist_pitch", "waist_roll", (0.0, 0.0, 0.05), 16.0, (0.20, 0.30, 0.34), (0.0, 0.0, 0.17)),
    ("neck_yaw", "waist_pitch", (0.0, 0.0, 0.37), 0.6, (0.07, 0.07, 0.07), (0.0, 0.0, 0.03)),
    ("neck_pitch", "neck_yaw", (0.0, 0.0, 0.06), 2.8, (0.17, 0.14, 0.20), (0.02, 0.0, 0.10)),
)
LEG = (
    ("hip_yaw", "", (0.0, 0.09, -0.06), 1.8, (0.12, 0.11, 0.12), (0.0, 0.0, -0.04)),
    ("hip_roll", "hip_yaw", (0.0, 0.0, -0.08), 1.8, (0.13, 0.10, 0.12), (-0.01, 0.0, 0.0)),
    ("hip_pitch", "hip_roll", (0.0, 0.0, 0.0), 5.5, (0.13, 0.12, 0.38), (0.0, 0.01, -0.17)),
    ("knee_pitch", "hip_pitch", (0.0, 0.0, -0.36), 3.4, (0.11, 0.10, 0.36), (0.0, 0.0, -0.15)),
    ("ankle_pitch", "knee_pitch", (0.0, 0.0, -0.36), 0.9, (0.09, 0.08, 0.08), (0.0, 0.0, 0.0)),
    ("ankle_roll", "ankle_pitch", (0.0, 0.0, 0.0), 1.4, (0.24, 0.11, 0.05), (0.03, 0.0, -0.075)),
)
ARM = (
    ("shoulder_pitch", "waist_pitch", (0.0, 0.17, 0.30), 1.4, (0.11, 0.11, 0.11), (0.0, 0.03, 0.0)),
    ("shoulder_roll", "shoulder_pitch", (0.0, 0.06, 0.0), 1.2, (0.10, 0.09, 0.12), (0.0, 0.0, -0.03)),
    ("shoulder_yaw", "shoulder_roll", (0.0, 0.0, -0.10), 1.5, (0.09, 0.09, 0.20), (0.0, 0.0, -0.08)),
    ("elbow_pitch", "shoulder_yaw", (0.0, 0.0, -0.18), 1.1, (0.08, 0.08, 0.13), (0.0, 0.0, -0.05)),
    ("wrist_yaw", "elbow_pitch", (0.0, 0.0, -0.11), 0.9, (0.07, 0.07, 0.14), (0.0, 0.0, -0.06)),
    ("wrist_pitch", "wrist_yaw", (0.0, 0.0, -0.13), 0.4, (0.06, 0.06, 0.06), (0.0, 0.0, 0.0)),
    ("wrist_roll", "wrist_pitch", (0.0, 0.0, 0.0), 0.5, (0.05, 0.09, 0.10), (0.0, 0.0, -0.06)),
    ("grip_yaw", "wrist_roll", (0.0, 0.0, -0.11), 0.2, (0.03, 0.08, 0.08), (0.01, 0.0, -0.04)),
)

BOXES = ("waist_pitch", "neck_pitch", "hip_pitch", "knee_pitch", "ankle_roll", "shoulder_yaw", "wrist_yaw")
CAPSULES = ("wrist_roll", "grip_yaw")  # hands
"""Links with a shape for contact: their solid box, or the capsule in it."""


def humanoid(*, armature: float = 0.0, damping: float = 0.0) -> Mechanism:
    """A floating-base humanoid robot: 34 bodies, 33 revolute joints, 39 degrees of freedom.

    Six joints in each leg, seven in each arm and one in each gripper, three in the waist, two in the neck. Every joint
    is named by location and axis ("left_knee_pitch": roll x, pitch y, yaw z), and so is the link it moves; "base" is
    the pelvis. Trunk, head, limbs, hands and feet have shapes for contact, which do not touch each other. It stands on
    the plane z = 0 at the neutral position, x forward, z up.

    armature, damping   of every joint [kg m^2, N m s/rad]
    """
    m = Mechanism(name="humanoid")
    base = box(9.0, (0.18, 0.26, 0.16), (0.0, 0.0, 0.02))
    m.add_link("base", joint=Free(), joint_name="root", position=(0.0, 0.0, 0.96), **base._asdict())
    m.add_shape("base", Box(0.18, 0.26, 0.16), base.com, **FIGURE)
    for prefix, y, limb in (("", 1.0, TRUNK), ("left_", 1.0, ARM), ("right_", -1.0, ARM), ("left_", 1.0, LEG),
                            ("right_", -1.0, LEG)):
        own = {name for name, *_ in limb}
        for name, parent, place, mass, size, centre in limb:
            above = prefix + parent if parent in own else parent or "base"
            joint = Revolute(AXES[name.rsplit("_", 1)[1]], armature=armature, damping=damping)
            solid = box(mass, size, (centre[0], y * centre[1], centre[2]))
            m.add_link(prefix + name, above, joint, position=(place[0], y * place[1], place[2]), **solid._asdict())
            if name in BOXES:
                m.add_shape(prefix + name, Box(*size), solid.com, **FIGURE)
            elif name in CAPSULES:
                r = 0.5 * min(size[:2])
                m.add_shape(prefix + name, Capsule(r, size[2] - 2.0 * r), solid.com, **FIGURE)
    return m
