"""Random structures with loops, drawn from a seed, every loop closed exactly.

A tree of links gets a random pose; connections are then put where the links are, so that they fit by construction. Most
structures are redundant: hinges doubled along their axis, planar linkages of three-dimensional hinges, hinges through
one point, parallel bars, several connections between the same two links.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bunraku.evaluate import constraints, poses
from bunraku.mechanism import (
    Compound,
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Joint,
    Mechanism,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
)

KINDS = ("revolute", "prismatic", "helical", "cylindrical", "planar", "spherical", "free", "compound", "fixed")
FAMILIES = ("mixed", "planar", "pointed", "bars")
KEPT, DROPPED = 1e-3, 1e-12
"""A structure is well conditioned if every singular value of its constraint Jacobian is above the first or below the
second of these parts of the largest."""


@dataclass(frozen=True, eq=False)
class Structure:
    """A mechanism with connections and a configuration in which every loop is closed."""

    mechanism: Mechanism
    q: np.ndarray
    family: str


def rotation(rng) -> np.ndarray:
    """A random rotation matrix."""
    w, x, y, z = quaternion(rng)
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                     [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                     [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])


def quaternion(rng) -> np.ndarray:
    x = rng.normal(size=4)
    return x / np.linalg.norm(x)


def unit(rng) -> np.ndarray:
    """A random direction, often along an axis."""
    if rng.random() < 0.3:
        return np.eye(3)[rng.integers(3)]
    x = rng.normal(size=3)
    return x / np.linalg.norm(x)


def joint_of(rng, kind: str) -> Joint:
    """A random joint of this kind."""
    if kind == "helical":
        return Helical(unit(rng), rng.uniform(0.05, 0.3))
    if kind == "compound":
        makers = [Revolute, Prismatic]
        return Compound(*(makers[rng.random() < 0.3](axis) for axis in rotation(rng)[:rng.integers(2, 4)]))
    if kind in ("spherical", "free", "fixed"):
        return {"spherical": Spherical, "free": Free, "fixed": Fixed}[kind]()
    return {"revolute": Revolute, "prismatic": Prismatic, "cylindrical": Cylindrical, "planar": Planar}[kind](unit(rng))


def coordinates(rng, joint: Joint) -> np.ndarray:
    """Random coordinates of a joint."""
    if isinstance(joint, Spherical):
        return quaternion(rng)
    if isinstance(joint, Free):
        return np.concatenate([rng.normal(size=3), quaternion(rng)])
    return rng.uniform(-1.5, 1.5, joint.nq)


def solid(rng) -> dict:
    """Mass, centre of mass and inertia of a random link."""
    mass = rng.uniform(0.5, 2.0)
    spread = rng.uniform(0.01, 0.1, 3) * mass
    R = rotation(rng)
    inertia = R @ np.diag([spread[1] + spread[2], spread[0] + spread[2], spread[0] + spread[1]]) @ R.T
    return {"mass": mass, "com": rng.normal(size=3) * 0.2, "inertia": 0.5 * (inertia + inertia.T)}


class Builder:
    """Builder of a structure: a posed tree whose links are then connected at their poses."""

    def __init__(self, rng, family: str, links: int):
        self.rng, self.family = rng, family
        self.frame = rotation(rng)  # of a planar structure: its normal is z
        self.m = Mechanism(gravity=5.0 * rng.normal(size=3))
        self.parents: list[int] = []
        q = []
        for i in range(links):
            parent = -1 if i == 0 or rng.random() < 0.12 else int(rng.integers(max(-1, i - 4), i))
            joint, position, turn = self.hung(i)
            self.m.add_link(f"link{i}", self.name(parent), joint, position=position, rotation=turn, **solid(rng))
            self.parents.append(parent)
            q.append(coordinates(rng, joint))
        self.q = np.concatenate(q)
        self.where = {"ground": (np.eye(3), np.zeros(3)), **poses(self.m, self.q)}

    def name(self, link: int) -> str:
        return "ground" if link < 0 else f"link{link}"

    def hung(self, i: int) -> tuple[Joint, np.ndarray, np.ndarray]:
        """Joint of link i, and its pose on the parent."""
        rng = self.rng
        if self.family == "mixed":
            kind = KINDS[rng.choice(len(KINDS), p=(0.4, 0.1, 0.05, 0.1, 0.05, 0.15, 0.05, 0.07, 0.03))]
            if i == 0 and kind == "fixed":
                kind = "revolute"
            turn = rotation(rng) if rng.random() < 0.7 else np.eye(3)
            return joint_of(rng, kind), rng.normal(size=3) * 0.4, turn
        if self.family == "pointed":  # every axis goes through one point: the links' frames all lie there
            return Revolute(unit(rng)), np.zeros(3), rotation(rng)
        axis, plane = self.frame[:, 2], self.frame[:, :2]
        slides = self.family == "planar" and i > 0 and rng.random() < 0.1
        joint = Prismatic(plane @ (lambda x: x / np.linalg.norm(x))(rng.normal(size=2))) if slides else Revolute(axis)
        return joint, plane @ rng.normal(size=2) * 0.5, np.eye(3)

    def tie(self, a: int, b: int, joint: Joint, point, turn, moved=None) -> None:
        """Connect two links by a joint whose frame (point, turn) is given in the world; `moved` = (rotation,
        translation) is the pose of b's side in a's, one that the joint allows."""
        Q, t = (np.eye(3), np.zeros(3)) if moved is None else moved
        (R_a, x_a), (R_b, x_b) = self.where[self.name(a)], self.where[self.name(b)]
        self.m.connect(self.name(a), self.name(b), joint, position_a=R_a.T @ (point - x_a), rotation_a=R_a.T @ turn,
                       position_b=R_b.T @ (point + turn @ t - x_b), rotation_b=R_b.T @ turn @ Q)

    def connect(self) -> None:
        """One more connection, or several that belong together."""
        rng, n = self.rng, len(self.parents)
        a, b = (int(x) for x in rng.choice(np.arange(-1, n), 2, replace=False))
        if self.family == "mixed":
            self.connect_mixed(a, b)
        elif self.family == "pointed":
            axis = unit(rng)
            self.tie(a, b, Revolute(axis), np.zeros(3), np.eye(3), (turned(axis, rng.uniform(-1.5, 1.5)), np.zeros(3)))
        else:
            axis, plane = self.frame[:, 2], self.frame[:, :2]
            point = plane @ rng.normal(size=2)
            if self.family == "bars" and n > 2:
                self.connect_bar(a, b, plane, axis)
                return
            joint = Spherical() if rng.random() < 0.15 else Revolute(axis)
            self.tie(a, b, joint, point, np.eye(3))
            if rng.random() < 0.3:  # the hinge once more, further along its axis
                self.tie(a, b, Revolute(axis), point + rng.normal() * axis, np.eye(3))

    def connect_mixed(self, a: int, b: int) -> None:
        rng = self.rng
        kind = KINDS[rng.choice(len(KINDS), p=(0.25, 0.07, 0.06, 0.12, 0.1, 0.25, 0.02, 0.1, 0.03))]
        joint, turn, point = joint_of(rng, kind), rotation(rng), rng.normal(size=3)
        moved = None
        if isinstance(joint, (Revolute, Cylindrical)):
            slide = rng.normal() * joint.axis if kind == "cylindrical" else np.zeros(3)
            moved = turned(joint.axis, rng.uniform(-1.5, 1.5)), slide
        elif isinstance(joint, Prismatic):
            moved = np.eye(3), rng.normal() * joint.axis
        elif isinstance(joint, Spherical):
            moved = rotation(rng), np.zeros(3)
        self.tie(a, b, joint, point, turn, moved)
        for _ in range(rng.integers(0, 3) if rng.random() < 0.5 else 0):  # the same once more, or further along
            shift = rng.normal() * joint.axis if isinstance(joint, (Revolute, Cylindrical, Prismatic)) else 0.0
            self.tie(a, b, joint, point + turn @ (shift * np.ones(3)), turn, moved)

    def connect_bar(self, a: int, b: int, plane, axis) -> None:
        """Bars of the same length and direction between two links: a parallelogram, with more bars than it needs."""
        rng = self.rng
        bar, count = plane @ rng.normal(size=2) * 0.5, int(rng.integers(1, 4))
        for _ in range(count):
            point = plane @ rng.normal(size=2)
            name = self.name(len(self.parents))
            R_a, x_a = self.where[self.name(a)]
            self.m.add_link(name, self.name(a), Revolute(axis), position=R_a.T @ (point - x_a), **solid(rng))
            self.parents.append(a)
            self.q = np.append(self.q, 0.0)
            self.where[name] = R_a, point
            self.m.connect(name, self.name(b), Revolute(axis), position_a=R_a.T @ bar,
                           position_b=self.where[self.name(b)][0].T @ (point + bar - self.where[self.name(b)][1]))

    def double(self) -> None:
        """Hold the links of a tree joint together once more by a connection of the same kind."""
        i = int(self.rng.integers(len(self.m.links)))
        link = self.m.links[i]
        if isinstance(link.joint, (Compound, Free)):
            return
        parent = self.m.links[link.parent].name if link.parent >= 0 else "ground"
        self.m.connect(parent, link.name, link.joint, position_a=link.position, rotation_a=link.rotation)


def turned(axis, angle) -> np.ndarray:
    """Rotation by an angle about an axis."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K


def draw(rng, large: bool) -> Structure:
    """A random structure: 2 to 10 links with 1 to 5 loops, or 12 to 30 links with 2 to 20."""
    family = FAMILIES[rng.choice(len(FAMILIES), p=(0.5, 0.25, 0.1, 0.15))]
    links = int(rng.integers(12, 31) if large else rng.integers(2, 11))
    loops = int(rng.integers(2, 21) if large else rng.integers(1, 6))
    builder = Builder(rng, family, links)
    while len(builder.m.connections) < loops:
        builder.connect()
    if rng.random() < 0.3:
        builder.double()
    return Structure(builder.m, builder.q, family)


def well_conditioned(structure: Structure) -> bool:
    """Whether the rank of the constraint Jacobian is numerically unambiguous, and not zero."""
    J = constraints(structure.mechanism, structure.q).jacobian
    values = np.linalg.svd(J, compute_uv=False)
    largest = values.max(initial=0.0)
    part = values / max(largest, 1e-300)
    return largest > 1e-3 and bool(np.all((part > KEPT) | (part < DROPPED)))


def well_conditioned_structure(seed: int, large: bool) -> Structure:
    """The first well-conditioned structure that is drawn from a seed."""
    rng = np.random.default_rng(seed)
    while True:
        structure = draw(rng, large)
        if well_conditioned(structure):
            return structure
