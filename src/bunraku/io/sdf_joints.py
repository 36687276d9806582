"""Joints of SDF files, also those that a <gazebo> element of a URDF holds: type, axes, limits, dynamics.

Axes are those of the joint's frame, of another frame if the file says so, or with <use_parent_model_frame> (SDF 1.5 and
1.6) and before SDF 1.5 of the model. A joint of the mechanism has its point in the child link's frame.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bunraku.errors import LoadError, ModelError
from bunraku.io.findings import Findings
from bunraku.io.xml import Node, clip
from bunraku.mechanism import Compound, Fixed, Helical, Joint, Prismatic, Revolute, Spherical

TYPES = ("revolute", "continuous", "prismatic", "fixed", "ball", "universal", "revolute2", "screw", "gearbox")
TRUE = ("1", "true")
UNLIMITED = 1e15  # limits beyond it are none
FULL_TURN = 2.0 * np.pi


def number(node: Node | None, tag: str, default: float) -> float:
    """The number that a child holds."""
    child = None if node is None else node.one(tag)
    return default if child is None or not child.text else child.values((1,), infinite=True)[0]


def text(node: Node, tag: str) -> str:
    child = node.one(tag)
    return "" if child is None else child.text


class JointReader:
    """rotation_of(name, node) is the rotation of a frame in the model; `old`: axes are those of the model."""

    def __init__(self, findings: Findings, friction: bool, rotation_of: Callable[[str, Node], np.ndarray],
                 old: bool = False):
        self.findings, self.friction, self.rotation_of, self.old = findings, friction, rotation_of, old
        self.rubbing: list[str] = []

    def joint(self, node: Node, frame: np.ndarray, child: np.ndarray, at: np.ndarray, laws: bool = True) -> Joint:
        """The joint of an element. frame, child: rotations of the joint and its child link in the model; at: place in
        the child link; laws: whether it may have friction."""
        kind = node.get("type")
        if kind not in TYPES or kind == "gearbox":
            raise node.refuse(f"joints of type {clip(str(kind))!r} are not read, only {', '.join(TYPES)}")
        if kind == "fixed":
            return Fixed()
        tags = ("axis", "axis2") if kind in ("universal", "revolute2") else ("axis",)
        axes = [self.axis(node, tag, frame, child) for tag in tags]
        given = [self._passive(node, tag, laws) for tag in tags]
        try:
            if kind == "ball":
                return Spherical()
            if kind == "prismatic":
                return Prismatic(axes[0], **given[0])
            if kind == "screw":
                return Helical(axes[0], self._pitch(node), at=at, **given[0])
            if kind == "continuous":
                given[0] = {key: value for key, value in given[0].items() if key not in ("lower", "upper")}
            hinges = [Revolute(axis, at=at, **passive) for axis, passive in zip(axes, given, strict=True)]
            return hinges[0] if len(hinges) == 1 else Compound(*hinges)
        except LoadError:
            raise
        except ModelError as error:
            raise node.refuse(str(error)) from None

    def axis(self, node: Node, tag: str, frame: np.ndarray, child: np.ndarray) -> np.ndarray:
        """The direction of an <axis> in the child link's frame."""
        element = node.one(tag)
        xyz = None if element is None else element.one("xyz")
        direction = np.array([0.0, 0.0, 1.0] if xyz is None else xyz.values((3,)))
        named = xyz.get("expressed_in") if xyz is not None else None
        if named:
            turn = self.rotation_of(named, node)
        elif self.old or (element is not None and text(element, "use_parent_model_frame") in TRUE):
            turn = np.eye(3)
        else:
            turn = frame
        if not np.any(direction):
            raise node.refuse("its axis is zero")
        return child.T @ turn @ direction

    def _pitch(self, node: Node) -> float:
        """Metres per radian: <screw_thread_pitch> is metres per turn, <thread_pitch> of old files minus radians per
        metre."""
        if node.one("screw_thread_pitch") is None and node.one("thread_pitch") is not None:
            return -1.0 / (number(node, "thread_pitch", 1.0) or 1.0)
        return number(node, "screw_thread_pitch", 1.0) / FULL_TURN

    def _passive(self, node: Node, tag: str, laws: bool) -> dict[str, Any]:
        element = node.one(tag)
        if element is None:
            return {}
        limit, dynamics, found = element.one("limit"), element.one("dynamics"), {}
        lower, upper = number(limit, "lower", -UNLIMITED), number(limit, "upper", UNLIMITED)
        if lower > upper:
            self.findings.note(node.label, f"the lower limit {lower:g} lies above the upper {upper:g}; both left out")
        else:
            found.update({name: value for name, value in (("lower", lower), ("upper", upper))
                          if abs(value) < UNLIMITED})
        for name, called in (("effort", "effort"), ("speed", "velocity")):
            value = number(limit, called, -1.0)
            if 0.0 < value < UNLIMITED:
                found[name] = value
        for name, called in (("damping", "damping"), ("stiffness", "spring_stiffness"), ("rest", "spring_reference")):
            value = number(dynamics, called, 0.0)
            if value:
                found[name] = value
        if "stiffness" not in found:
            found.pop("rest", None)
        rubbing = number(dynamics, "friction", 0.0)
        if rubbing and self.friction and laws:
            found["friction"] = rubbing
        elif rubbing:
            self.rubbing.append(node.label)
        return found
