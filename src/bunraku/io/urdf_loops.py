"""Loops of URDF files, as connections: URDF itself is a tree, but simulators add elements that close loops.

    <loop_joint name type>       with two ends <link1 link xyz rpy/>, <link2 .../> (or <link1> twice) and, for hinges
                                 and sliders, <axis xyz/> in the frame of the first end: Isaac Sim, Drake of old
    <drake:ball_constraint>      bodies A and B and a point of each: Drake
    <gazebo> <joint> </gazebo>   a joint of SDF between links of the robot: Gazebo
    links closing_NAME_1, _2     frames that placo and onshape-to-robot hold together: a finding that names the call

The point of a <gazebo> joint is given in its child link; in the parent it is where it is at zero coordinates.
"""

from __future__ import annotations

import numpy as np

from bunraku.errors import LoadError, ModelError, NamingError
from bunraku.evaluate import poses
from bunraku.io.axes import origin_of, rotation_of_rpy
from bunraku.io.findings import Findings
from bunraku.io.sdf_joints import JointReader, text
from bunraku.io.xml import Node, clip
from bunraku.mechanism import Fixed, Joint, Mechanism, Planar, Prismatic, Revolute, Spherical
from bunraku.mechanism.links import GROUND

BALL = "drake:ball_constraint"
LOOP_TAGS = ("loop_joint", BALL)
KINDS = ("spherical", "ball", "revolute", "continuous", "prismatic", "planar", "fixed")


class UrdfLoops:
    """`links`: of the file, by name; `called`: names of those that have another name in the mechanism."""

    def __init__(self, mechanism: Mechanism, findings: Findings, links: dict[str, Node], called: dict[str, str]):
        self.mechanism, self.findings, self.links, self.called = mechanism, findings, links, called

    def read(self, robot: Node) -> None:
        """Connect what the elements of a <robot> connect; what cannot be understood is left out, with a finding."""
        nodes = [node for node in robot.children if node.tag in LOOP_TAGS]
        nodes += [joint for node in robot.all("gazebo") for joint in node.all("joint")]
        for node in nodes:
            try:
                if node.tag == "joint":
                    self._gazebo_joint(node)
                elif node.tag == BALL:
                    self._ball_constraint(node)
                else:
                    self._loop_joint(node)
            except ModelError as error:
                reason = str(error).partition(f"{node.label}: ")[2] or str(error)
                self.findings.note(node.label, f"the loop is left open: {reason}")
        for name in self.links:
            other = name.removesuffix("_1") + "_2"
            if name.startswith("closing_") and name.endswith("_1") and other in self.links:
                self.findings.note(self.links[name].label, f"seems to close a loop with {other!r}, which is left open; "
                                   f"m.connect({name!r}, {other!r}, bk.Spherical()) closes it")

    def _connect(self, node: Node, a: str, b: str, joint: Joint, **places) -> None:
        ends = []
        for link in (a, b):
            if link not in self.links and link != "world":
                raise ModelError(f"there is no link {clip(link)!r}")
            ends.append(self.called.get(link, link) if link in self.links else GROUND)
        name = node.get("name")
        try:
            self.mechanism.connect(ends[0], ends[1], joint, name, **places)
        except NamingError:  # a link or joint has this name
            self.mechanism.connect(ends[0], ends[1], joint, None, **places)

    def _loop_joint(self, node: Node) -> None:
        ends = [child for child in node.children if child.tag in ("link1", "link2")]
        if len(ends) != 2:
            raise ModelError("needs two ends, <link1 link=\"...\"/> and <link2 link=\"...\"/>")
        ends.sort(key=lambda end: end.tag)
        kind, (place_a, place_b) = node.get("type") or "spherical", [origin_of(end) for end in ends]
        if kind not in KINDS:
            raise ModelError(f"type {clip(kind)!r} is none of {', '.join(KINDS)}")
        axis = node.one("axis")
        xyz = (1.0, 0.0, 0.0) if axis is None else axis.numbers("xyz", (3,), (1.0, 0.0, 0.0))
        joint: Joint
        if kind in ("revolute", "continuous"):
            joint = Revolute(xyz)
        elif kind in ("prismatic", "planar"):
            joint = Prismatic(xyz) if kind == "prismatic" else Planar(xyz)
        else:
            joint = Fixed() if kind == "fixed" else Spherical()
        self._connect(node, ends[0].name("link"), ends[1].name("link"), joint, position_a=place_a[0],
                      rotation_a=place_a[1], position_b=place_b[0], rotation_b=place_b[1])

    def _ball_constraint(self, node: Node) -> None:
        links, points = [], []
        for body, point in (("body_A", "p_AP"), ("body_B", "p_BQ")):
            end, place = node.one(f"{BALL}_{body}"), node.one(f"{BALL}_{point}")
            if end is None or place is None:
                raise ModelError(f"needs <{BALL}_{body} name=\"...\"/> and <{BALL}_{point} value=\"x y z\"/>")
            links.append(end.name())
            points.append(np.array(place.numbers("value", (3,))))
        self._connect(node, links[0], links[1], Spherical(), position_a=points[0], position_b=points[1])

    def _gazebo_joint(self, node: Node) -> None:
        def rotation_of(name: str, asked: Node) -> np.ndarray:
            raise LoadError(f"axes expressed in {clip(name)!r} are not read in a URDF")

        parent, child, pose = text(node, "parent"), text(node, "child"), node.one("pose")
        for link in (parent, child):
            if link not in self.links and link != "world":
                raise ModelError(f"there is no link {clip(link)!r}")
        if child == "world" or (pose is not None and (pose.get("relative_to") or pose.get("frame")) not in (None, "",
                                                                                                        child)):
            raise ModelError("its pose is read relative to its child link alone")
        at = np.zeros(6) if pose is None or not pose.text else np.array(pose.values((6,)))
        found = poses(self.mechanism, self.mechanism.neutral())
        R, x = found[self.called.get(child, child)]
        R_above, x_above = found[self.called.get(parent, parent)] if parent in self.links else (np.eye(3), np.zeros(3))
        reader = JointReader(self.findings, False, rotation_of)
        joint = reader.joint(node, R @ rotation_of_rpy(*at[3:]), R, np.zeros(3), laws=False)
        self._connect(node, parent, child, joint, position_a=R_above.T @ (x + R @ at[:3] - x_above),
                      rotation_a=R_above.T @ R, position_b=at[:3])
