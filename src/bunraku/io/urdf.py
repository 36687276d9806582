"""URDF (http://wiki.ros.org/urdf/XML): robots as a tree of links and joints.

Links keep their names and frames, joints theirs, in separate namespaces; links on fixed joints stay addressable at
no cost, because the plan merges them. The joint between the root link and the ground is called "root" (with
underscores appended if the file has a joint of that name) and is always that of `mechanism.links[0]`; the other links
follow depth first, siblings in the order of their joints in the file.

Loops, which URDF itself has not, are read in the dialects of `urdf_loops.py`.

Read: inertial, visual; joints of all types with origin, axis, limits (as information) and damping; mimic joints as
couplings (`Mechanism.couple`), not actuated themselves. Dry friction is read with `friction=True` and otherwise
ignored, with a warning. Collision shapes are read with `shapes=True`. Effort and velocity limits are kept as
information (`effort`, `speed`). Elements for control or simulators (QUIET) are ignored silently; elements unknown to
URDF give a warning.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bunraku.checks import check_inertia
from bunraku.errors import InertiaError, LoadError, MissingExtra, ModelError
from bunraku.io.axes import origin_of
from bunraku.io.collision import Notes, mesh_hull
from bunraku.io.findings import Findings
from bunraku.io.mesh_files import MeshFiles
from bunraku.io.meshes import read_mesh
from bunraku.io.subtree_masses import note_weightless
from bunraku.io.urdf_loops import LOOP_TAGS, UrdfLoops
from bunraku.io.xml import Node, clip, read_xml
from bunraku.mechanism import (
    Box,
    Capsule,
    Cylinder,
    Fixed,
    Free,
    Joint,
    Mechanism,
    Planar,
    Prismatic,
    Revolute,
    Shape,
    Sphere,
    Visual,
)
from bunraku.mechanism.links import GROUND

KNOWN = {
    "robot": {"link", "joint", "material", *LOOP_TAGS},
    "link": {"inertial", "visual"},
    "joint": {"origin", "parent", "child", "axis", "limit", "dynamics", "mimic"},
}
"""Elements that are read inside robot, link and joint."""

QUIET = {
    "robot": {"transmission", "gazebo", "ros2_control", "sensor", "version", "group", "group_state", "end_effector",
              "virtual_joint", "disable_collisions"},
    "link": {"collision", "contact", "collision_checking", "self_filter", "self_collision_checking", "verbose"},
    "joint": {"safety_controller", "calibration"},
}
"""Elements without influence on the robot's motion."""

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
SHAPES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length")}
GREY = (0.7, 0.7, 0.7, 1.0)
POINT_MASS = 1e-12
"""[m^2] Inertia over mass below which a body is a point, and the sign of its moments rounding."""


def load_urdf(path: str | os.PathLike, base: str = "free", strict: bool = False,
              search: str | os.PathLike | Sequence[str | os.PathLike] = (), shapes: bool = False,
              friction: bool = False, data: bytes | None = None) -> Mechanism:
    """The mechanism of a URDF file, or of the URDF `data` that was made from it; see `bunraku.load`."""
    path = Path(path)
    findings = Findings(path, strict)
    robot = _Robot(read_xml(path, data), findings, MeshFiles(path, search), friction)
    mechanism = robot.build(base)
    if shapes:
        robot.add_shapes(mechanism)
    findings.report(stacklevel=4)
    return mechanism


@dataclass
class _Hinge:
    """A <joint>: its pose and the two links it connects."""

    node: Node
    name: str
    kind: str
    parent: str
    child: str


class _Robot:
    """Conversion of one <robot> element to a mechanism."""

    def __init__(self, root: Node, findings: Findings, meshes: MeshFiles, friction: bool):
        if root.tag != "robot":
            raise root.refuse("the root element of a URDF is <robot>")
        self.root, self.findings, self.meshes, self.friction = root, findings, meshes, friction
        self._note_strangers()
        self.links = self._read_links()
        self.joints = self._read_joints()
        self.colours: dict[str, tuple] = {}
        self.rubbing: list[str] = []

    def build(self, base: str) -> Mechanism:
        name = self.root.get("name")
        if not name:
            self.findings.note(self.root.label, f"the robot has no name; called {self.findings.path.stem!r}")
        mechanism = Mechanism(name=clip(name or self.findings.path.stem or "robot"))
        for material in self.root.all("material"):
            self._colour(material)
        order = self._order()
        called = self._free_of_ground()
        for link, hinge in order:
            node = self.links[link]
            if hinge is None:
                joint, where, joint_name = self._root_joint(node, base), None, self._root_joint_name()
            else:
                joint, where, joint_name = self._joint(hinge), hinge.node.one("origin"), hinge.name
            follows = hinge is not None and hinge.node.one("mimic") is not None
            position, rotation = origin_of(where)
            mass, com, inertia = self._inertial(node)
            try:
                mechanism.add_link(called.get(link, link), called.get(hinge.parent, hinge.parent) if hinge else GROUND,
                                   joint, joint_name, actuated=False if follows else None, position=position,
                                   rotation=rotation, mass=mass, com=com, inertia=inertia,
                                   visuals=self._visuals(node), physical=False)
            except ModelError as error:
                raise node.refuse(str(error)) from None
        self._couple(mechanism)
        UrdfLoops(mechanism, self.findings, self.links, called).read(self.root)
        self.findings.note_many(self.rubbing, "dry friction is left out; bk.load(file, friction=True) reads that of "
                                              "joints with one degree of freedom")
        self.meshes.note_missing(self.findings)
        note_weightless(mechanism, self.findings,
                        [self.links[name].label if hinge is None else hinge.node.label for name, hinge in order])
        return mechanism

    # -- the tree --------------------------------------------------------------------------------------------------

    def _read_links(self) -> dict[str, Node]:
        links: dict[str, Node] = {}
        for node in self.root.all("link"):
            name = node.name()
            if name in links:
                raise node.refuse(f"there is already a link of this name in line {links[name].line}; give one of them "
                                  "another name")
            links[name] = node
        if not links:
            raise self.root.refuse("the robot has no links")
        return links

    def _read_joints(self) -> list[_Hinge]:
        joints: dict[str, _Hinge] = {}
        mover: dict[str, _Hinge] = {}
        for node in self.root.all("joint"):
            name = node.name()
            if name in joints:
                raise node.refuse(f"there is already a joint of this name in line {joints[name].node.line}")
            kind = node.get("type")
            if kind not in JOINT_TYPES:
                raise node.refuse(f"the type must be one of {', '.join(JOINT_TYPES)}, not {clip(str(kind))!r}")
            hinge = joints[name] = _Hinge(node, name, kind, self._end(node, "parent"), self._end(node, "child"))
            if hinge.child in mover:
                other = mover[hinge.child].node
                raise node.refuse(f"link {clip(hinge.child)!r} is already the child of {other.label}; in a URDF every "
                                  "link has one parent; a <loop_joint> closes a loop")
            mover[hinge.child] = hinge
        return list(joints.values())

    def _end(self, node: Node, tag: str) -> str:
        end = node.one(tag)
        if end is None:
            raise node.refuse(f"needs a <{tag} link=\"...\"/>")
        link = end.name("link")
        if link not in self.links:
            close = difflib.get_close_matches(link, self.links, n=1) if len(self.links) < 500 else []
            hint = f"; did you mean {clip(close[0])!r}?" if close else ""
            raise node.refuse(f"its {tag} link {clip(link)!r} does not exist{hint}")
        return link

    def _order(self) -> list[tuple[str, _Hinge | None]]:
        """Every link with the joint that carries it, parents first."""
        children: dict[str, list[_Hinge]] = {}
        for hinge in self.joints:
            children.setdefault(hinge.parent, []).append(hinge)
        carried = {hinge.child for hinge in self.joints}
        roots = [name for name in self.links if name not in carried]
        if not roots:
            raise self.joints[0].node.refuse("the joints form a loop: no link is the root, and loops cannot be written "
                                             "in a URDF")
        if len(roots) > 1:
            raise self.links[roots[1]].refuse(f"has no parent, and neither has {self.links[roots[0]].label}; a URDF "
                                              "is one tree with one root")
        order: list[tuple[str, _Hinge | None]] = []
        stack: list[tuple[str, _Hinge | None]] = [(roots[0], None)]
        while stack:
            order.append(stack.pop())
            stack += [(hinge.child, hinge) for hinge in reversed(children.get(order[-1][0], []))]
        if len(order) < len(self.links):
            reached = {link for link, _ in order}
            stray = next(hinge for hinge in self.joints if hinge.child not in reached)
            raise stray.node.refuse(f"link {clip(stray.child)!r} is part of a loop that the root {clip(roots[0])!r} "
                                    "does not reach; loops cannot be written in a URDF")
        return order

    def _free_of_ground(self, quiet: bool = False) -> dict[str, str]:
        """Another name for a link whose name is reserved for the fixed world."""
        if GROUND not in self.links:
            return {}
        name = GROUND
        while name in self.links:
            name += "_"
        if not quiet:
            self.findings.note(self.links[GROUND].label, f"{GROUND!r} is the fixed world's name; the link is called "
                                                         f"{name!r}")
        return {GROUND: name}

    def _root_joint(self, node: Node, base: str) -> Joint:
        if base == "fixed":
            return Fixed()
        if node.get("name") == "world":
            self.findings.note(node.label, "the root link is put on a Free joint although its name says that it is the "
                                           "world; base='fixed' holds it")
        return Free()

    def _root_joint_name(self) -> str:
        name, taken = "root", {hinge.name for hinge in self.joints}
        while name in taken:
            name += "_"
        return name

    # -- joints ----------------------------------------------------------------------------------------------------

    def _joint(self, hinge: _Hinge) -> Joint:
        node, kind = hinge.node, hinge.kind
        if kind == "fixed":
            return Fixed()
        passive = self._dynamics(node)
        if kind in ("revolute", "continuous", "prismatic"):
            passive.update(self._drive(node))
        if kind in ("revolute", "prismatic"):
            passive.update(self._limits(node))
        element = node.one("axis")
        axis = (1.0, 0.0, 0.0) if element is None else element.numbers("xyz", (3,), (1.0, 0.0, 0.0))
        try:
            if kind == "floating":
                return Free(**passive)
            if kind == "planar":
                return Planar(axis, **passive)
            return Prismatic(axis, **passive) if kind == "prismatic" else Revolute(axis, **passive)
        except ModelError as error:
            raise node.refuse(str(error)) from None

    def _dynamics(self, node: Node) -> dict[str, float]:
        element = node.one("dynamics")
        if element is None:
            return {}
        friction, found = element.number("friction", 0.0), {"damping": element.number("damping", 0.0)}
        if friction and self.friction and node.get("type") in ("revolute", "continuous", "prismatic"):
            return {**found, "friction": friction}
        if friction:
            self.rubbing.append(node.label)
        return found

    def _drive(self, node: Node) -> dict[str, float]:
        """Limits of the drive; 0, which many files have, says nothing."""
        element, found = node.one("limit"), {}
        for name, called in (("effort", "effort"), ("speed", "velocity")):
            value = 0.0 if element is None else element.number(called, 0.0, infinite=True)
            if value < 0.0:
                self.findings.note(node.label, f"a negative limit of {called} ({value:g}); left out")
            elif value > 0.0:
                found[name] = value
        return found

    def _limits(self, node: Node) -> dict[str, float]:
        element = node.one("limit")
        if element is None or (element.get("lower") is None and element.get("upper") is None):
            self.findings.note(node.label, f"a {node.get('type')} joint without limits; taken as unlimited")
            return {}
        lower, upper = element.number("lower", 0.0, infinite=True), element.number("upper", 0.0, infinite=True)
        if lower > upper:
            self.findings.note(node.label, f"the lower limit {lower:g} lies above the upper {upper:g}; both left out")
            return {}
        return {"lower": lower, "upper": upper}

    def _couple(self, mechanism: Mechanism) -> None:
        """The joints that follow others."""
        for hinge in self.joints:
            node = hinge.node.one("mimic")
            if node is None:
                continue
            if hinge.kind == "fixed":
                self.findings.note(hinge.node.label, "<mimic> has no effect on a fixed joint")
                continue
            to = node.name("joint")
            ratio, offset = node.number("multiplier", 1.0), node.number("offset", 0.0)
            try:
                if to not in {other.name for other in self.joints}:
                    raise ModelError(f"there is no joint {clip(to)!r}")
                mechanism.couple(hinge.name, to, ratio, offset)
            except ModelError as error:
                reason = str(error).removeprefix("couple: ")
                self.findings.note(hinge.node.label, f"<mimic> is left out, so the joint moves independently: {reason}")

    # -- links -----------------------------------------------------------------------------------------------------

    def _inertial(self, node: Node):
        """Mass, centre of mass and inertia in link axes; a warning if they are non-physical."""
        element = node.one("inertial")
        if element is None:
            return 0.0, np.zeros(3), None
        com, turn = origin_of(element.one("origin"))
        mass_element, moments = element.one("mass"), element.one("inertia")
        if mass_element is None:
            raise node.refuse("its <inertial> needs a <mass value=\"...\"/>")
        mass = mass_element.number("value")
        if mass < 0:
            raise node.refuse(f"the mass is negative ({mass:g} kg)")
        if moments is None:
            self.findings.note(node.label, "its <inertial> has no <inertia>; taken as a point mass")
            return mass, com, None
        xx, yy, zz = (moments.number(name) for name in ("ixx", "iyy", "izz"))
        xy, xz, yz = (moments.number(name, 0.0) for name in ("ixy", "ixz", "iyz"))
        inertia = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
        if mass == 0 or np.abs(inertia).max() > POINT_MASS * mass:
            try:
                check_inertia("", mass, com, inertia, advice="")
            except InertiaError as error:
                self.findings.note(node.label, str(error).removeprefix(": "))
        return mass, com, inertia

    def _visuals(self, node: Node) -> list[Visual]:
        visuals = []
        for element in node.all("visual"):
            geometry, material = element.one("geometry"), element.one("material")
            shape = geometry.children[0] if geometry is not None and geometry.children else None
            colour = GREY if material is None else self._colour(material)
            if shape is None or (shape.tag not in SHAPES and shape.tag != "mesh"):
                what = "no shape" if shape is None else f"the unknown shape <{clip(shape.tag)}>"
                self.findings.note(f"visual of {node.label}", f"has {what}; not drawn")
                continue
            position, rotation = origin_of(element.one("origin"))
            if shape.tag == "mesh":
                mesh = self.meshes.resolve(shape.name("filename"), node)
                visuals.append(Visual("mesh", tuple(shape.numbers("scale", (3,), (1.0, 1.0, 1.0))), position, rotation,
                                      colour, mesh))
                continue
            size = shape.numbers("size", (3,)) if shape.tag == "box" else [shape.number(a) for a in SHAPES[shape.tag]]
            if min(size) < 0:
                self.findings.note(f"visual of {node.label}", f"<{shape.tag}> has a negative size; not drawn")
                continue
            visuals.append(Visual(shape.tag, tuple(size), position, rotation, colour))
        return visuals

    def add_shapes(self, mechanism: Mechanism) -> None:
        """Collision shapes, each on its link."""
        notes, called = Notes(self.findings), self._free_of_ground(quiet=True)
        for name, node in self.links.items():
            for element in node.all("collision"):
                label = f"collision of {node.label}"
                position, rotation = origin_of(element.one("origin"))
                try:
                    shape = self._collision(element, node, label, notes)
                    if shape is not None:
                        mechanism.add_shape(called.get(name, name), shape, position, rotation)
                except (LoadError, MissingExtra) as error:
                    notes.note(label, f"{error}; left out")
                except ModelError as error:
                    raise node.refuse(str(error)) from None
        notes.report(mechanism)

    def _collision(self, element: Node, node: Node, label: str, notes: Notes) -> Shape | None:
        geometry = element.one("geometry")
        shape = geometry.children[0] if geometry is not None and geometry.children else None
        if shape is None or (shape.tag not in SHAPES and shape.tag != "mesh"):
            what = "no shape" if shape is None else f"the unknown shape <{clip(shape.tag)}>"
            notes.note(label, f"has {what}; left out")
            return None
        if shape.tag == "mesh":
            vertices, _ = read_mesh(self.meshes.resolve(shape.name("filename"), node))
            return mesh_hull(vertices * np.array(shape.numbers("scale", (3,), (1.0, 1.0, 1.0))), label, notes)
        if shape.tag == "box":
            return Box(*shape.numbers("size", (3,)))
        sizes = [shape.number(name) for name in SHAPES[shape.tag]]
        kinds: dict[str, type[Shape]] = {"sphere": Sphere, "capsule": Capsule, "cylinder": Cylinder}
        return kinds[shape.tag](*sizes)

    def _colour(self, material: Node) -> tuple:
        """The material's own colour, or that of an earlier material of the same name."""
        element, name = material.one("color"), material.get("name") or ""
        if element is None:
            return self.colours.get(name, GREY)
        rgba = [min(max(x, 0.0), 1.0) for x in element.numbers("rgba", (3, 4))]
        self.colours[name] = (*rgba, 1.0)[:4]
        return self.colours[name]

    # -- judgement -------------------------------------------------------------------------------------------------

    def _note_strangers(self) -> None:
        """Warn about elements that are not URDF, once for each kind."""
        found: dict[tuple[str, str], list[Node]] = {}
        for node in (self.root, *self.root.children):
            for child in node.children if node.tag in KNOWN else ():
                if child.tag.startswith("xacro:"):
                    raise child.refuse("this is a xacro file; call it .xacro, and bk.load expands it")
                if child.tag not in KNOWN[node.tag] and child.tag not in QUIET[node.tag]:
                    found.setdefault((node.tag, child.tag), []).append(child)
        for (inside, tag), nodes in found.items():
            self.findings.note_many([f"<{clip(tag)}>, line {node.line}" for node in nodes],
                                    f"unknown in a <{inside}>; left out")
