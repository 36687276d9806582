"""SDF (http://sdformat.org): one model as a mechanism, with loops, gearboxes and mimic joints.

Links keep their names and frames, joints their names and zero. A joint carries its child link, the first one in the
file if there are several; further joints to the link are connections, and so is every joint that would close a circle.
Links that no joint carries hang from the ground: by the joint "root" the first of them, by Free joints the others.
Worlds with one model, poses relative to any frame, axes of any frame, springs, <static> and joints to the world are
read; included and nested models are refused. Ball joints away from the origin of their child link move a massless link
"<link>/<joint>" in between. Collision shapes are read with `shapes=True`, dry friction with `friction=True`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bunraku.checks import check_inertia
from bunraku.errors import InertiaError, LoadError, ModelError, NamingError
from bunraku.io.findings import Findings
from bunraku.io.mesh_files import MeshFiles
from bunraku.io.sdf_frames import HERE, Frames, Pose, after, inverse, own_pose
from bunraku.io.sdf_joints import TRUE, JointReader, number, text
from bunraku.io.sdf_shapes import SdfShapes
from bunraku.io.subtree_masses import note_weightless
from bunraku.io.xml import Node, clip, read_xml
from bunraku.mechanism import Fixed, Free, Joint, Mechanism, Spherical
from bunraku.mechanism.links import GROUND

WORLD = "world"
AT_ORIGIN = 1e-12     # [m] of a ball joint
PARALLEL = 1e-6       # of axes of a gearbox
POINT_MASS = 1e-12    # [m^2] inertia over mass below which a body is a point
KNOWN = {"model": {"link", "joint", "frame", "pose", "static", "self_collide", "allow_auto_disable", "enable_wind",
                   "plugin", "drake:ball_constraint"}}


def load_sdf(path: str | os.PathLike, base: str = "free", strict: bool = False,
             search: str | os.PathLike | Sequence[str | os.PathLike] = (), shapes: bool = False,
             friction: bool = False) -> Mechanism:
    """The mechanism of the model in an SDF file; see `bunraku.load`."""
    path = Path(path)
    findings = Findings(path, strict)
    model = _Model(read_xml(path), findings, MeshFiles(path, search), friction)
    mechanism = model.build(base)
    if shapes:
        model.shapes.add_collisions(mechanism, model.links, model.called)
    findings.report(stacklevel=4)
    return mechanism


class _Model:
    """Conversion of one <model> to a mechanism."""

    def __init__(self, root: Node, findings: Findings, meshes: MeshFiles, friction: bool):
        if root.tag != "sdf":
            raise root.refuse("the root element of an SDF file is <sdf>")
        self.findings, self.meshes, self.world = findings, meshes, root.one("world")
        self.node = self._one_model(root)
        self._note_strangers()
        self.frames = Frames(self.node)
        self.links = {node.name(): node for node in self.node.all("link")}
        if WORLD in self.links:
            raise self.links[WORLD].refuse("'world' is the fixed world in SDF; give the link another name")
        if not self.links:
            raise self.node.refuse("the model has no links")
        version = root.get("version") or "1.7"
        old = [int(x) for x in version.split(".")[:2] if x.isdecimal()] < [1, 5]
        self.joints = JointReader(findings, friction, lambda name, node: self.frames.pose(name, node)[0], old)
        self.shapes = SdfShapes(findings, meshes, self.frames)
        self.carried: dict[str, tuple[Node, str]] = {}   # joint and parent of a link
        self.closing: list[tuple[Node, str, str]] = []   # joints that become connections
        self.gearboxes: list[Node] = []
        self.called = {GROUND: f"{GROUND}/link"} if GROUND in self.links else {}

    def build(self, base: str) -> Mechanism:
        mechanism = Mechanism(gravity=self._gravity(), name=clip(self.node.get("name") or self.findings.path.stem))
        self._sort_joints()
        order = self._order()
        placed = own_pose(self.node)
        anchored = base == "fixed" or text(self.node, "static") in TRUE
        roots = [link for link in order if link not in self.carried]
        if not anchored and roots and all(parent != WORLD for _, parent in self.carried.values()):
            placed = inverse(self.frames.pose(roots[0]))  # the free base begins at the origin
        labels: list[str] = []
        for link in order:
            label = self.links[link].label
            if link in self.carried:
                node, parent = self.carried[link]
                label = node.label
                before = len(mechanism.links)
                self._add(mechanism, link, node.name(), node, parent, placed)
                labels += [label] * (len(mechanism.links) - before)
                continue
            at, first = after(placed, self.frames.pose(link)), link == roots[0]
            joint: Joint = Fixed() if anchored and first else Free()
            self._add_link(mechanism, link, GROUND, joint, self._root_name() if first else None, at)
            labels.append(label)
        for node, parent, child in self.closing:
            self._connect(mechanism, node, parent, child, placed)
        for node in self.node.all("drake:ball_constraint"):
            self._ball_constraint(mechanism, node)
        for node in self.node.all("joint"):
            self._couple(mechanism, node)
        self.findings.note_many(self.joints.rubbing, "dry friction is left out; bk.load(file, friction=True) reads "
                                                     "that of joints of the tree")
        self.meshes.note_missing(self.findings)
        note_weightless(mechanism, self.findings, labels)
        return mechanism

    # -- the file ----------------------------------------------------------------------------------------------------

    def _one_model(self, root: Node) -> Node:
        inside = [root, *root.all("world")]
        models = [node for place in inside for node in place.all("model")]
        included = [node for place in inside for node in place.all("include")]
        if len(models) != 1:
            names = ", ".join(repr(clip(node.name())) for node in models[:6])
            raise (models[1] if models else included[0] if included else root).refuse(
                f"a file with one <model> is read, not with {len(models)}{f' ({names})' if names else ''}; models that "
                "are included have files of their own")
        for tag in ("include", "model"):
            for node in models[0].all(tag):
                raise node.refuse("models within models are not read; write its links and joints into the model "
                                  "(gz sdf -p prints a file without <include>)")
        for node in included:
            self.findings.note(node.label, "is left out: one model is read, which it is not part of")
        return models[0]

    def _gravity(self):
        element = None if self.world is None else self.world.one("gravity")
        return (0.0, 0.0, -9.81) if element is None or not element.text else tuple(element.values((3,)))

    def _note_strangers(self) -> None:
        found: dict[str, list[str]] = {}
        for node in self.node.children:
            if node.tag not in KNOWN["model"]:
                found.setdefault(node.tag, []).append(f"<{clip(node.tag)}>, line {node.line}")
            if node.tag == "link" and text(node, "gravity") in ("0", "false"):
                self.findings.note(node.label, "gravity acts on it, although the file says that it does not")
        for labels in found.values():
            self.findings.note_many(labels, "is not read in a <model>; left out")

    # -- the tree ----------------------------------------------------------------------------------------------------

    def _sort_joints(self) -> None:
        """Which joints carry links, which close loops."""
        for node in self.node.all("joint"):
            if node.get("type") == "gearbox":
                self.gearboxes.append(node)
                continue
            parent, child = (self._end(node, tag) for tag in ("parent", "child"))
            if child == WORLD:
                raise node.refuse("its child is the world; turn it round")
            above, circle = parent, False
            while above in self.carried and not circle:
                above = self.carried[above][1]
                circle = above == child
            if child in self.carried or circle or parent == child:
                self.closing.append((node, parent, child))
            else:
                self.carried[child] = node, parent

    def _end(self, node: Node, tag: str) -> str:
        name = text(node, tag)
        seen: set[str] = set()
        while name in self.frames.nodes and self.frames.nodes[name].tag == "frame" and name not in seen:
            seen.add(name)
            name = self.frames.nodes[name].get("attached_to") or name  # a frame on a link
        if name != WORLD and name not in self.links:
            raise node.refuse(f"its {tag} {clip(name)!r} is no link of the model")
        return name

    def _order(self) -> list[str]:
        children: dict[str, list[str]] = {}
        for child, (_, parent) in self.carried.items():
            children.setdefault(parent, []).append(child)
        order: list[str] = []
        stack = [*reversed([name for name in self.links if name not in self.carried
                            or self.carried[name][1] == WORLD])]
        while stack:
            order.append(stack.pop())
            stack += reversed(children.get(order[-1], []))
        return order

    def _root_name(self) -> str:
        name = "root"
        while name in self.frames.nodes:
            name += "_"
        return name

    def _add(self, mechanism: Mechanism, link: str, name: str, node: Node, parent: str, placed: Pose) -> None:
        own = self.frames.pose(link)
        joint_frame = self.frames.pose(name)
        above = inverse(placed) if parent == WORLD else self.frames.pose(parent)
        at = own[0].T @ (joint_frame[1] - own[1])
        joint = self.joints.joint(node, joint_frame[0], own[0], at)
        where = after(inverse(above), own)
        holder = self._name(parent)
        if isinstance(joint, Spherical) and np.abs(at).max() > AT_ORIGIN:
            between = f"{link}/{name}"
            mechanism.add_link(between, holder, joint, name, position=where[1] + where[0] @ at, rotation=where[0])
            self._add_link(mechanism, link, between, Fixed(), None, (np.eye(3), -at))
        else:
            self._add_link(mechanism, link, holder, joint, name, where)

    def _add_link(self, mechanism: Mechanism, link: str, parent: str, joint: Joint, name: str | None,
                  where: Pose) -> None:
        node = self.links[link]
        mass, com, inertia = self._inertial(node, link)
        if isinstance(joint, Free) and name == self._root_name():
            where = HERE
        try:
            mechanism.add_link(self.called.get(link, link), parent, joint, name, position=where[1], rotation=where[0],
                               actuated=False if self._follows(name) else None, mass=mass, com=com, inertia=inertia,
                               visuals=self.shapes.visuals(node, link), physical=False)
        except ModelError as error:
            raise node.refuse(str(error)) from None

    def _follows(self, name: str | None) -> bool:
        node = self.frames.nodes.get(name or "")
        axis = None if node is None or node.tag != "joint" else node.one("axis")
        return axis is not None and axis.one("mimic") is not None

    def _inertial(self, node: Node, link: str):
        """Mass, centre of mass and inertia in link axes; without <inertial> those that the format prescribes."""
        element = node.one("inertial")
        if element is None:
            self.findings.note(node.label, "has no <inertial>: a mass of 1 kg with 1 kg m^2, as the format prescribes")
            return 1.0, np.zeros(3), np.eye(3)
        if element.get("auto") in TRUE:
            raise node.refuse("its inertia is to be computed from shapes (auto), which is not supported; write it out")
        turn, com = self.frames.inside(element, link)
        mass, moments = number(element, "mass", 1.0), element.one("inertia")
        xx, yy, zz = (number(moments, name, 1.0) for name in ("ixx", "iyy", "izz"))
        xy, xz, yz = (number(moments, name, 0.0) for name in ("ixy", "ixz", "iyz"))
        inertia = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
        if mass < 0:
            raise node.refuse(f"the mass is negative ({mass:g} kg)")
        if mass == 0 or np.abs(inertia).max() > POINT_MASS * mass:
            try:
                check_inertia("", mass, com, inertia, advice="")
            except InertiaError as error:
                self.findings.note(node.label, str(error).removeprefix(": "))
        return mass, com, inertia

    def _name(self, link: str) -> str:
        """Name in the mechanism."""
        return GROUND if link == WORLD else self.called.get(link, link)

    # -- loops and couplings -----------------------------------------------------------------------------------------

    def _connect(self, mechanism: Mechanism, node: Node, parent: str, child: str, placed: Pose) -> None:
        own, joint_frame = self.frames.pose(child), self.frames.pose(node.name())
        above = inverse(placed) if parent == WORLD else self.frames.pose(parent)
        joint = self.joints.joint(node, joint_frame[0], own[0], np.zeros(3), laws=False)
        try:
            mechanism.connect(self._name(parent), self._name(child), joint, node.name(),
                              position_a=above[0].T @ (joint_frame[1] - above[1]), rotation_a=above[0].T @ own[0],
                              position_b=own[0].T @ (joint_frame[1] - own[1]))
        except ModelError as error:
            raise node.refuse(str(error)) from None

    def _ball_constraint(self, mechanism: Mechanism, node: Node) -> None:
        tag = "drake:ball_constraint"
        ends = [self._end(node, f"{tag}_body_{k}") for k in "AB"]
        points = [element.values((3,)) for element in (node.one(f"{tag}_p_{k}") for k in ("AP", "BQ")) if element]
        if len(points) != 2:
            raise node.refuse("needs the points p_AP and p_BQ")
        mechanism.connect(self._name(ends[0]), self._name(ends[1]), Spherical(), position_a=points[0],
                          position_b=points[1])

    def _couple(self, mechanism: Mechanism, node: Node) -> None:
        """Mimic joints: q = multiplier (q_leader - reference) + offset; gearboxes: theta_2 = -ratio theta_1."""
        axis = node.one("axis")
        mimic = None if axis is None else axis.one("mimic")
        try:
            if mimic is not None:
                ratio = number(mimic, "multiplier", 1.0)
                mechanism.couple(node.name(), mimic.name("joint"), ratio,
                                 number(mimic, "offset", 0.0) - ratio * number(mimic, "reference", 0.0))
            if node in self.gearboxes:
                mechanism.couple(*self._gears(node))
        except LoadError:
            raise
        except (ModelError, NamingError) as error:
            self.findings.note(node.label, f"is left out, so its joints move independently: {error}")

    def _gears(self, node: Node) -> tuple[str, str, float]:
        """The output joint of a gearbox, the input joint and their ratio."""
        held, frame = self._end(node, "gearbox_reference_body"), self.frames.pose(node.name())[0]
        joints, signs = [], []
        for end, tag in (("child", "axis2"), ("parent", "axis")):
            link = self._end(node, end)
            joint, parent = self.carried.get(link, (None, ""))
            if joint is None or parent != held or joint.get("type") not in ("revolute", "continuous"):
                raise ModelError(f"link {clip(link)!r} is on no hinge of the reference body {clip(held)!r}")
            child = self.frames.pose(link)[0]
            own = self.joints.axis(joint, "axis", self.frames.pose(joint.name())[0], child)
            gear = self.joints.axis(node, tag, frame, child)
            along = float(own @ gear) / float(np.linalg.norm(own) * np.linalg.norm(gear))
            if abs(along) < 1.0 - PARALLEL:
                raise ModelError(f"its {tag} is not that of joint {joint.name()!r}")
            joints.append(joint.name())
            signs.append(np.sign(along))
        return joints[0], joints[1], float(-number(node, "gearbox_ratio", 1.0) * signs[0] * signs[1])
