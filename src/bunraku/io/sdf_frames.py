"""Poses in an SDF file: every link, joint and frame has one relative to another, by default as the format says.

Links are placed in the model, joints in their child link, frames where they are attached. `Frames.pose(name)` follows
these relations to the model's own frame.
"""

from __future__ import annotations

import numpy as np

from bunraku.checks import hint
from bunraku.io.axes import rotation_of_quaternion, rotation_of_rpy
from bunraku.io.xml import Node, clip

MODEL, WORLD = "__model__", "world"
Pose = tuple[np.ndarray, np.ndarray]
HERE: Pose = (np.eye(3), np.zeros(3))


def after(a: Pose, b: Pose) -> Pose:
    """Pose b, which is relative to a, relative to the frame of a."""
    return a[0] @ b[0], a[1] + a[0] @ b[1]


def inverse(a: Pose) -> Pose:
    return a[0].T, -a[0].T @ a[1]


def own_pose(node: Node) -> Pose:
    """The numbers of the <pose> of an element; none: where its reference is."""
    pose = node.one("pose")
    if pose is None or not pose.text:
        return HERE
    if pose.get("rotation_format") == "quat_xyzw":
        x, y, z, a, b, c, w = pose.values((7,))
        return rotation_of_quaternion([w, a, b, c]), np.array([x, y, z])
    values = np.array(pose.values((6,)))
    angles = np.radians(values[3:]) if pose.get("degrees") in ("true", "1") else values[3:]
    return rotation_of_rpy(*angles), values[:3]


def reference(node: Node) -> str | None:
    """The frame that the <pose> of an element names, if any."""
    pose = node.one("pose")
    return None if pose is None else pose.get("relative_to") or pose.get("frame") or None


class Frames:
    """All frames of one <model>."""

    def __init__(self, model: Node):
        self.model = model
        self.nodes: dict[str, Node] = {}
        self.found: dict[str, Pose] = {MODEL: HERE}
        for tag in ("link", "joint", "frame"):
            for node in model.all(tag):
                name = node.name()
                if name in self.nodes:
                    raise node.refuse(f"{self.nodes[name].label} has the same name")
                self.nodes[name] = node

    def pose(self, name: str, asked: Node | None = None) -> Pose:
        """Pose of a link, joint or frame in the model's frame. `asked`: the element that names it."""
        chain: list[Node] = []
        while name not in self.found:
            node = self.nodes.get(name)
            if node is None:
                raise (asked or self.model).refuse(f"there is no link, joint or frame {clip(name)!r}"
                                                   f"{hint(name, list(self.nodes))}")
            if node in chain:
                raise node.refuse("its pose depends on itself")
            chain.append(node)
            name, asked = self._base(node), node
        for node in reversed(chain):
            name = node.name()
            self.found[name] = after(self.found[self._base(node)], own_pose(node))
        return self.found[name]

    def _base(self, node: Node) -> str:
        named = reference(node)
        if named:
            return named
        if node.tag == "joint":
            child = node.one("child")
            return MODEL if child is None else child.text
        return node.get("attached_to") or MODEL if node.tag == "frame" else MODEL

    def inside(self, node: Node, link: str) -> Pose:
        """Pose of a part of a link (inertial, visual, ...) in the link's frame."""
        named = reference(node)
        if not named or named == link:
            return own_pose(node)
        return after(inverse(self.pose(link)), after(self.pose(named, node), own_pose(node)))
