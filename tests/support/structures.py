"""Random mechanisms and states, drawn from a seed.

A `Tree` holds the mechanism and, independent of the package, what it was made of: `parts` in terms of the table of
joints in the contract (a joint is a sequence of steps: screws, a ball, or a free step).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

import numpy as np

import bunraku as bk
from bunraku.check.structures import quaternion as random_quaternion
from bunraku.check.structures import rotation as random_rotation

ONE_DOF = ("revolute", "prismatic", "helical")
KINDS = (*ONE_DOF, "cylindrical", "planar", "spherical", "free", "compound", "fixed")
NO_PASSIVE = {"armature": 0.0, "damping": 0.0, "stiffness": 0.0, "rest": 0.0, "lower": -np.inf, "upper": np.inf,
              "limit_stiffness": 0.0, "limit_damping": 0.0}


@dataclass
class Screw:
    """One degree of freedom: turn `angular` rad and slide `linear` m per unit of q about an axis through `at`."""

    axis: np.ndarray
    at: np.ndarray
    angular: float
    linear: float


class Jointed:
    """What has a joint of some kind: how many coordinates and velocities that has."""

    kind: str
    screws: list[Screw]

    @property
    def nq(self):
        return {"spherical": 4, "free": 7}.get(self.kind, len(self.screws))

    @property
    def nv(self):
        return {"spherical": 3, "free": 6}.get(self.kind, len(self.screws))


@dataclass
class Part(Jointed):
    """A link and its joint as the contract describes them."""

    name: str
    joint_name: str
    parent: int  # -1: ground
    kind: str
    screws: list[Screw]
    passive: list[dict]  # one per degree of freedom
    position: np.ndarray
    rotation: np.ndarray
    mass: float
    com: np.ndarray
    inertia: np.ndarray


@dataclass
class Tree:
    m: bk.Mechanism
    parts: list[Part] = field(default_factory=list)
    springs: list[dict] = field(default_factory=list)

    def add(self, part: Part, joint):
        parent = "ground" if part.parent < 0 else self.parts[part.parent].name
        self.m.add_link(part.name, parent, joint, part.joint_name, position=part.position, rotation=part.rotation,
                        mass=part.mass, com=part.com, inertia=part.inertia)
        self.parts.append(part)

    def state(self, rng, spread=1.0):
        """Random q, v, tau."""
        q = []
        for part in self.parts:
            if part.kind == "free":
                q.append(rng.normal(size=3))
            if part.kind in ("free", "spherical"):
                q.append(random_quaternion(rng))
            else:
                q.append(rng.normal(size=part.nq) * spread)
        return np.concatenate([*q, np.empty(0)]), rng.normal(size=self.m.nv), 5 * rng.normal(size=self.m.nv)

    def states(self, rng, count):
        """A batch of random q, v, tau."""
        return tuple(np.array(x) for x in zip(*(self.state(rng) for _ in range(count)), strict=True))

    def external(self, rng, count=None):
        """Random wrenches on about half of the links."""
        chosen = [part.name for part in self.parts if rng.random() < 0.5]
        return {name: 10 * rng.normal(size=6 if count is None else (count, 6)) for name in chosen}


def skew(a) -> np.ndarray:
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def random_axis(rng, generic=False) -> np.ndarray:
    """Any direction; often one along a coordinate axis, of either sign, unless `generic`."""
    if not generic and rng.random() < 0.3:
        return np.eye(3)[rng.integers(3)] * rng.choice([-1.0, 1.0])
    axis = rng.normal(size=3)
    return axis / np.linalg.norm(axis)


def random_inertia(rng, mass) -> np.ndarray:
    """Inertia about the centre of mass of a cloud of points: always that of a real body."""
    points = rng.normal(size=(6, 3)) * rng.uniform(0.1, 0.3)
    points -= points.mean(axis=0)
    return mass / 6 * (np.sum(points * points) * np.eye(3) - points.T @ points)


def plane_axes(normal):
    """x and y of a Planar joint: the parent's, turned with z the short way to the normal."""
    z = np.array([0.0, 0.0, 1.0])
    axis, cosine = np.cross(z, normal), float(z @ normal)
    sine = np.linalg.norm(axis)
    if sine < 1e-12:
        turn = np.eye(3) if cosine > 0 else np.diag([1.0, -1.0, -1.0])
    else:
        K = skew(axis / sine)
        turn = np.eye(3) + sine * K + (1 - cosine) * K @ K
    return turn[:, 0], turn[:, 1]


def random_passive(rng, kind, nv) -> list[dict]:
    """Passive parameters of each degree of freedom, each present about every other time."""
    def maybe(low, high, size=None):
        return rng.uniform(low, high, size) * (rng.random() < 0.5)

    rows = [dict(NO_PASSIVE) for _ in range(nv)]
    shared = {"stiffness": maybe(1, 20), "upper": rng.uniform(0.2, 2.0), "limit_stiffness": maybe(10, 50),
              "limit_damping": rng.uniform(0.1, 2.0)}
    for row in rows:
        row.update(armature=maybe(0.1, 1.0), damping=maybe(0.1, 2.0))
        if kind == "spherical":
            row.update(shared)
        elif kind != "free":
            row.update(stiffness=maybe(1, 20), rest=rng.normal(), lower=rng.uniform(-1.0, 0.0),
                       upper=rng.uniform(0.0, 1.0), limit_stiffness=maybe(10, 50), limit_damping=rng.uniform(0.1, 2.0))
    return rows


def random_joint(rng, kind, passive, generic=False):
    """(joint, screws, passive rows) of a kind; `generic` keeps its axis from being parallel to another one."""
    zero = np.zeros(3)
    at = rng.normal(size=3) * 0.3
    screws = []
    if kind == "compound":
        for _ in range(rng.integers(1, 4)):
            screws += random_joint(rng, ONE_DOF[rng.integers(3)], False, generic=True)[1]
    elif kind in ONE_DOF:
        at = at if rng.random() < 0.5 else zero
        pitch = rng.normal() * 0.3
        angular, linear = {"revolute": (1.0, 0.0), "prismatic": (0.0, 1.0), "helical": (1.0, pitch)}[kind]
        screws = [Screw(random_axis(rng, generic), at, angular, linear)]
    elif kind == "cylindrical":
        axis = random_axis(rng)
        screws = [Screw(axis, zero, 0.0, 1.0), Screw(axis, zero, 1.0, 0.0)]
    elif kind == "planar":
        normal = random_axis(rng)
        x, y = plane_axes(normal)
        screws = [Screw(x, zero, 0.0, 1.0), Screw(y, zero, 0.0, 1.0), Screw(normal, zero, 1.0, 0.0)]
    nv = {"spherical": 3, "free": 6}.get(kind, len(screws))
    rows = random_passive(rng, kind, nv) if passive else [dict(NO_PASSIVE) for _ in range(nv)]
    return make_joint(kind, screws, rows), screws, rows


def make_joint(kind, screws, rows):
    """The joint that people would write."""
    if kind == "compound":
        return bk.Compound(*(one_screw(s, row) for s, row in zip(screws, rows, strict=True)))
    if kind == "fixed":
        return bk.Fixed()
    if kind in ONE_DOF:
        return one_screw(screws[0], rows[0])
    columns = {name: [row[name] for row in rows] for name in NO_PASSIVE}
    if kind == "cylindrical":
        return bk.Cylindrical(3.0 * screws[0].axis, **columns)
    if kind == "planar":
        return bk.Planar(screws[2].axis, **columns)
    if kind == "free":
        return bk.Free(armature=columns["armature"], damping=columns["damping"])
    shared = {name: rows[0][name] for name in ("stiffness", "upper", "limit_stiffness", "limit_damping")}
    return bk.Spherical(armature=columns["armature"], damping=columns["damping"], **shared)


def one_screw(screw, passive):
    if screw.angular == 0.0:
        return bk.Prismatic(screw.axis, at=screw.at, **passive)
    if screw.linear == 0.0:
        return bk.Revolute(2.0 * screw.axis, at=screw.at, **passive)
    return bk.Helical(screw.axis, screw.linear, at=screw.at, **passive)


def random_tree(seed, links=None, kinds=KINDS, passive=False, springs=False, chain=False, grounded=True,
                massless=True) -> Tree:
    """A mechanism with the given kinds of joints: branching, several roots, massless links inside.

    `chain` makes it deep; without `grounded` it has one root, on a Free joint; without `massless` all links weigh.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9)) if links is None else links
    reach = 2 if chain else n
    parents = [-1] + [int(rng.integers(max(0, i - reach), i)) if chain or not grounded or rng.random() < 0.85 else -1
                      for i in range(1, n)]
    chosen = [kinds[rng.integers(len(kinds))] for _ in range(n)]
    if not grounded:
        chosen[0] = "free"
    if all(kind == "fixed" for kind in chosen):
        chosen[-1] = "revolute"
    tree = Tree(bk.Mechanism(gravity=rng.normal(size=3) * 5))
    weightless = choose_massless(rng, parents, chosen) if massless else [False] * n
    for i in range(n):
        joint, screws, rows = random_joint(rng, chosen[i], passive, generic=parents[i] >= 0 and weightless[parents[i]])
        mass = 0.0 if weightless[i] else rng.uniform(0.5, 2.0)
        rotation = random_rotation(rng) if rng.random() < 0.7 else np.eye(3)
        tree.add(Part(f"link{i}", f"joint{i}" if rng.random() < 0.5 else f"link{i}", parents[i], chosen[i], screws,
                      rows, rng.normal(size=3) * 0.3, rotation, mass, rng.normal(size=3) * 0.2,
                      random_inertia(rng, mass)), joint)
    if springs:
        add_springs(rng, tree)
    return tree


def choose_massless(rng, parents, kinds):
    """Links without mass: some inside a run of one-degree-of-freedom joints, some at the end of Fixed joints."""
    massless = [False] * len(kinds)
    for i in reversed(range(len(kinds))):
        children = [c for c, p in enumerate(parents) if p == i]
        carries = any(kinds[c] in ONE_DOF and not massless[c] for c in children)
        if rng.random() < 0.4:
            massless[i] = (kinds[i] in ONE_DOF and carries) or (kinds[i] == "fixed" and not children)
    return massless


def add_springs(rng, tree):
    names = ["ground", *(part.name for part in tree.parts)]
    for _ in range(rng.integers(1, 4)):
        a, b = rng.choice(len(names), 2, replace=False)
        spring = {"position_a": rng.normal(size=3), "position_b": rng.normal(size=3),
                  "stiffness": rng.uniform(1, 20), "rest_length": rng.uniform(0, 2), "damping": rng.uniform(0, 2)}
        tree.m.add_spring(names[a], names[b], **spring)
        tree.springs.append({**spring, "a": int(a) - 1, "b": int(b) - 1})


BODY = {"mass": 1.0, "inertia": (1.0, 1.0, 1.0)}


def arm(links=3, joint=None) -> bk.Mechanism:
    """A plain chain of hinges named link0, link1, ..."""
    m = bk.Mechanism()
    for i in range(links):
        m.add_link(f"link{i}", f"link{i - 1}" if i else "ground", joint or bk.Revolute((0, 1, 0)),
                   position=(0, 0, -0.5) if i else (0, 0, 0), mass=1.0, com=(0.1, 0, -0.25), inertia=(0.1, 0.1, 0.05))
    return m


def some_joint(m, rng):
    """A joint that can be cut without leaving a massless end; None if there is none."""
    names = []
    for link in m.links:
        if not (link.parent < 0 and isinstance(link.joint, bk.Free)):
            twin = m.copy()
            twin.cut(link.joint_name)
            with contextlib.suppress(bk.ModelError):
                twin.plan()
                names.append(link.joint_name)
    return names[rng.integers(len(names))] if names else None


def random_chain(n, seed=0, joints=(bk.Revolute,), parallel=False):
    """n joints in any direction (or all parallel), bodies of any shape."""
    rng = np.random.default_rng(seed)
    m, parent = bk.Mechanism(), "ground"
    for i in range(n):
        turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        turn *= np.sign(np.linalg.det(turn))
        axis = (0, 0, 1) if parallel else rng.normal(size=3)
        m.add_link(f"link{i}", parent, joints[rng.integers(len(joints))](axis), position=0.3 * rng.normal(size=3),
                   rotation=None if parallel else turn, mass=rng.uniform(0.5, 2.0), com=0.2 * rng.normal(size=3),
                   inertia=turn @ np.diag(rng.uniform(0.1, 0.15, 3)) @ turn.T)
        parent = f"link{i}"
    return m, rng.normal(size=n)
