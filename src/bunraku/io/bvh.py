"""BVH (Biovision Hierarchy): a skeleton and its recorded motion in one text file.

The text is read by `bvh_file.py`. Rotations are applied in the order of their channels, each about the axes rotated by
the previous ones. Position channels replace the OFFSET, component by component, as in Blender and in the readers of
CMU's and LAFAN1's authors.

Joints: three rotations are a Spherical joint, with positions that vary a Free one; fewer rotations are Revolute joints,
several in a row a Compound. Positions that never change (SOMA, MotionBuilder) are those of the joint. A first joint
that only carries another one with six channels ("Root" above "Hips") has no mass and is Fixed; if it moves, its motion
is added to that of the other. End sites are Fixed links called NAME_end.

Masses are not in the file: see `anatomy.py`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from bunraku.checks import as_positive, as_size, hint
from bunraku.errors import ModelError, NamingError
from bunraku.io.anatomy import solids
from bunraku.io.axes import AXES, UNITS, following, metres, turned
from bunraku.io.bvh_file import Bvh, Node, read_bvh
from bunraku.io.findings import Findings
from bunraku.io.xml import clip
from bunraku.mechanism import Compound, Fixed, Free, Joint, Mechanism, Prismatic, Revolute, Spherical
from bunraku.mechanism.links import GROUND

BASES = ("free", "fixed")
MASS = 70.0          # [kg] of a figure, if not told
REACH = 2.4          # [m] from the fingers to the toes of a person, along the segments
STILL = 1e-6         # [m] positions that vary less are constant
GUESSED = ("m", "cm", "mm", "in", "cmu")
LOOKED_AT = 40       # frames from which the vertical is guessed


@dataclass
class Figure:
    """The file as a mechanism and its coordinates at the times t."""

    mechanism: Mechanism
    t: np.ndarray
    q: np.ndarray


def load_bvh(path: str | os.PathLike, base: str = "free", strict: bool = False, **options) -> Mechanism:
    """The mechanism of a BVH file; see `bunraku.load`."""
    return read_figure(path, base, strict, **options).mechanism


def read_figure(path: str | os.PathLike, base: str = "free", strict: bool = False, *, unit=None, up: str | None = None,
                forward: str | None = None, mass: float | None = None, masses: Mapping[str, float] | None = None,
                rigid: bool = False, stacklevel: int = 5) -> Figure:
    """Mechanism and coordinates of a BVH file; the options are those of `bunraku.load`."""
    findings = Findings(Path(path), strict)
    figure = _Builder(read_bvh(path), findings, base, unit, up, forward, mass, masses, rigid).build()
    findings.report(stacklevel=stacklevel)
    return figure


# -- the figure ----------------------------------------------------------------------------------------------------


class _Builder:
    """Conversion of one file to a mechanism and coordinates."""

    def __init__(self, file: Bvh, findings: Findings, base, unit, up, forward, mass, masses, rigid):
        if base not in BASES:
            raise ModelError(f"base must be 'free' or 'fixed', not {base!r}")
        self.file, self.nodes, self.findings, self.base, self.rigid = file, file.nodes, findings, base, rigid
        self.children: list[list[int]] = [[] for _ in self.nodes]
        for i, node in enumerate(self.nodes[1:], 1):
            self.children[node.parent].append(i)
        self.frames = file.frames if len(file.frames) else self._at_rest()
        self.scale = self._guessed_unit() if unit is None else metres("unit", unit)
        up = self._guessed_up() if up is None else up
        self.axes = turned(up, forward or following(up if up in AXES else "y"))
        self.mass = None if mass is None else as_positive("mass [kg]", mass)
        self.masses = dict(masses or {})
        for name, value in self.masses.items():
            if name not in [node.name for node in self.nodes]:
                raise NamingError(f"masses: there is no joint {name!r}{hint(name, [n.name for n in self.nodes])}")
            as_size(f"masses: that of {name!r} [kg]", value)

    def build(self) -> Figure:
        if not len(self.file.frames):
            self.findings.note("MOTION", "has no frames: a figure without motion")
        carried = self._carries()
        joints, places, pieces = [], [], []
        for i in range(len(self.nodes)):
            joint, place, q = self._joint(i, carried)
            joints.append(joint)
            places.append(place)
            pieces.append(q)
        bodies = self._masses(joints)
        mechanism = Mechanism(name=clip(self.file.path.stem or "figure"))
        for node, joint, place, body in zip(self.nodes, joints, places, bodies, strict=True):
            parent = GROUND if node.parent < 0 else self.nodes[node.parent].name
            mechanism.add_link(node.name, parent, joint, position=place, mass=body.mass, com=body.com,
                               inertia=body.inertia)
        count = len(self.file.frames)
        q = np.concatenate(pieces, axis=1)[:count]
        return Figure(mechanism, np.arange(count) * self.file.frame_time, q)

    # -- what the file does not specify --------------------------------------------------------------------------------

    def _guessed_unit(self) -> float:
        """Unit guessed from the longest path along the segments, from fingers to toes."""
        longest, reach = 0.0, [0.0] * len(self.nodes)
        for i in range(len(self.nodes) - 1, 0, -1):
            parent, far = self.nodes[i].parent, reach[i] + float(np.linalg.norm(self._rest(i)))
            longest, reach[parent] = max(longest, reach[parent] + far), max(reach[parent], far)
        if longest == 0.0:
            self.findings.note("unit", "segments have no length; taken as m. Say which with unit=")
            return 1.0
        unit = min(GUESSED, key=lambda name: abs(np.log(longest * UNITS[name] / REACH)))
        self.findings.note("unit", f"not specified in the file; {unit} ({UNITS[unit]:.4g} m) is assumed, so that the "
                                   f"figure measures {longest * UNITS[unit]:.2f} m along its segments; confirm with "
                                   f"unit={unit!r}")
        return UNITS[unit]

    def _at_rest(self) -> np.ndarray:
        """One frame in the rest pose given by the offsets."""
        frame = np.zeros((1, self.file.frames.shape[1]))
        for node in self.nodes:
            for axis, column in node.slides.items():
                frame[0, column] = node.offset[axis]
        return frame

    def _rest(self, i: int) -> np.ndarray:
        """Position of a joint in its parent: position channels replace the offset."""
        place = self.nodes[i].offset.copy()
        for axis, column in self.nodes[i].slides.items():
            place[axis] = np.median(self.frames[:, column])
        return place

    def _guessed_up(self) -> str:
        """The axis along which the head is farthest from the feet, on average over the motion."""
        place = self._world()
        heads = [i for i, node in enumerate(self.nodes) if "head" in node.name.lower()]
        feet = [i for i, node in enumerate(self.nodes) if any(x in node.name.lower() for x in ("foot", "toe", "ankle"))]
        if not heads or not feet:
            self.findings.note("up axis", "not specified in the file, and there are no head and feet to find it from; "
                                          "y is assumed; confirm with up='y'")
            return "y"
        towards = place[:, heads].mean(axis=(0, 1)) - place[:, feet].mean(axis=(0, 1))
        up = max(AXES, key=lambda axis: AXES[axis] @ towards)
        self.findings.note("up axis", f"not specified in the file; {up} is assumed, towards which the head is above "
                                      f"the feet, and {following(up)} as forward; confirm with up={up!r}")
        return up

    def _world(self) -> np.ndarray:
        """Positions of all joints in some frames, axes and units of the file: (frames, joints, 3)."""
        frames = self.frames[::max(len(self.frames) // LOOKED_AT, 1)]
        places = np.zeros((len(frames), len(self.nodes), 3))
        turns: list[Rotation] = []
        for i, node in enumerate(self.nodes):
            local = np.tile(node.offset, (len(frames), 1))
            for axis, column in node.slides.items():
                local[:, axis] = frames[:, column]
            turn = _rotation(node, frames)
            if node.parent >= 0:
                local = places[:, node.parent] + turns[node.parent].apply(local)
                turn = turns[node.parent] * turn
            places[:, i] = local
            turns.append(turn)
        return places

    # -- joints ----------------------------------------------------------------------------------------------------

    def _carries(self) -> bool:
        """Whether the first joint only carries another one with six channels."""
        if len(self.nodes) < 2 or self.children[0] != [1] or self.nodes[1].end:
            return False
        root, body = self.nodes[0], self.nodes[1]
        if len(body.turns) < 3 or len(body.slides) < 3 or len(root.turns) not in (0, 3):
            return False
        if self._moves(root):
            self.findings.note(f"joint {root.name!r}, line {root.line}",
                               f"carries {body.name!r} only, so it has no mass; its motion is added to that of "
                               f"{body.name!r}, and it stays at the origin")
        return True

    def _moves(self, node: Node) -> bool:
        return bool(self._slides_of(node)) or bool(np.any(np.ptp(self.frames[:, node.turns], axis=0) > 1e-6))

    def _slides_of(self, node: Node) -> list[int]:
        """The axes along which a joint moves."""
        return [axis for axis, column in node.slides.items()
                if np.ptp(self.frames[:, column]) * self.scale > 2 * STILL]

    def _joint(self, i: int, carried: bool) -> tuple[Joint, np.ndarray, np.ndarray]:
        """Joint, its pose in the parent and its coordinates (frames, nq)."""
        node, frames = self.nodes[i], self.frames
        rest = self.axes @ (self._rest(i) * self.scale)
        if carried and i == 0:
            return Fixed(), np.zeros(3) if self._moves(node) else rest, np.zeros((len(frames), 0))
        if node.channels <= 0:
            if i == 0 and self.base == "free":
                return Free(), rest, np.tile(Free().neutral(), (len(frames), 1))
            return Fixed(), rest, np.zeros((len(frames), 0))
        sliding = list(node.slides) if i <= carried else self._slides_of(node)
        if sliding and i > carried:
            label = f"joint {node.name!r}, line {node.line}"
            spread = 1e3 * self.scale * max(np.ptp(frames[:, node.slides[axis]]) for axis in sliding)
            if self.rigid:
                self.findings.note(label, f"its position varies by {spread:.3g} mm and is taken as constant")
                sliding = []
            else:
                self.findings.note(label, f"its position varies by {spread:.3g} mm: the segment stretches, which takes "
                                          "forces; rigid=True takes it as constant")
        if len(node.turns) < 3:
            return self._screws(i, sliding)
        turn = _rotation(node, frames)
        if not sliding:
            return Spherical(), rest, self._quaternions(turn)
        place = self._places(i)
        if carried and i == 1:  # in the Fixed link that stands for the one that carries it
            base = _rotation(self.nodes[0], frames)
            origin = self._places(0) if self._moves(self.nodes[0]) else np.zeros(3)
            place, turn = origin + base.apply(place), base * turn
        return Free(), np.zeros(3), np.column_stack([place @ self.axes.T * self.scale, self._quaternions(turn)])

    def _places(self, i: int) -> np.ndarray:
        """Position of a joint in its parent in every frame, axes and units of the file."""
        place = np.tile(self.nodes[i].offset, (len(self.frames), 1))
        for axis, column in self.nodes[i].slides.items():
            place[:, axis] = self.frames[:, column]
        return place

    def _screws(self, i: int, sliding: list[int]) -> tuple[Joint, np.ndarray, np.ndarray]:
        """Positions along fixed axes, then rotations about turned ones."""
        node, frames, place = self.nodes[i], self.frames, self._rest(i)
        screws: list = []
        columns = []
        for axis in sliding:
            place[axis] = 0.0
            screws.append(Prismatic(self.axes[:, axis]))
            columns.append(frames[:, node.slides[axis]] * self.scale)
        for axis_name, column in zip(node.rotations, node.turns, strict=True):
            screws.append(Revolute(self.axes[:, "XYZ".index(axis_name)]))
            columns.append(np.unwrap(np.radians(frames[:, column])))
        joint = Fixed() if not screws else screws[0] if len(screws) == 1 else Compound(*screws)
        return joint, self.axes @ (place * self.scale), np.array(columns).reshape(len(screws), len(frames)).T

    def _quaternions(self, turn: Rotation) -> np.ndarray:
        """w x y z in the axes of the mechanism, without jumps of the sign."""
        x, y, z, w = turn.as_quat().reshape(-1, 4).T
        quaternions = np.column_stack([w, np.column_stack([x, y, z]) @ self.axes.T])
        flips = np.sum(quaternions[1:] * quaternions[:-1], axis=1) < 0.0
        quaternions[1:][np.logical_xor.accumulate(flips)] *= -1.0
        return quaternions

    # -- masses ----------------------------------------------------------------------------------------------------

    def _masses(self, joints: list[Joint]):
        bones = [np.array([self.axes @ (self._rest(c) * self.scale) for c in self.children[i]]).reshape(-1, 3)
                 for i in range(len(self.nodes))]
        if isinstance(joints[0], Fixed):
            bones[0] = np.zeros((0, 3))  # what carries the figure is not a part of it
        bodies, rule = solids([n.name for n in self.nodes], [n.parent for n in self.nodes], bones,
                              [joint.nv > 0 for joint in joints], self.mass or MASS)
        if self.mass is None:
            self.findings.note("masses", f"BVH files have no masses; {MASS:g} kg are {rule}; set mass= (total) or "
                                         "masses= (by segment name)")
        for i, node in enumerate(self.nodes):
            if node.name in self.masses:
                given, body = float(self.masses[node.name]), bodies[i]
                if body.mass == 0.0 and given > 0.0:
                    raise ModelError(f"masses: {node.name!r} has no length, so its inertia is not known; use "
                                     "Mechanism.with_link")
                share = given / body.mass if body.mass else 0.0
                bodies[i] = body._replace(mass=given, inertia=body.inertia * share)
        return bodies


def _rotation(node: Node, frames: np.ndarray) -> Rotation:
    """Rotation of a joint in every frame, axes of the file."""
    if not node.turns:
        return Rotation.from_quat(np.tile([0.0, 0.0, 0.0, 1.0], (len(frames), 1)))
    return Rotation.from_euler(node.rotations, frames[:, node.turns], degrees=True)
