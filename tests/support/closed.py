"""Random closed structures, drawn from a seed: a `Tree` whose links are also held together by connections.

A connection (`Tie`) is described like a tree joint of `structures`, by steps, with a frame on each link. Its frames are
chosen so that it is exactly closed at the structure's own state `q`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

import bunraku as bk
import oracle
from structures import (
    KINDS,
    NO_PASSIVE,
    Jointed,
    Part,
    Screw,
    Tree,
    make_joint,
    plane_axes,
    random_inertia,
    random_joint,
    random_quaternion,
    random_rotation,
    random_tree,
)

ALONG_AXIS = ("revolute", "prismatic", "helical", "cylindrical")  # hinges that may be doubled further along their axis


@dataclass
class Tie(Jointed):
    """A connection as the contract describes it."""

    name: str
    a: int  # -1: ground
    b: int
    kind: str
    screws: list[Screw]
    passive: list[dict]
    position_a: np.ndarray
    rotation_a: np.ndarray
    position_b: np.ndarray
    rotation_b: np.ndarray


@dataclass
class Closed(Tree):
    ties: list[Tie] = field(default_factory=list)
    guesses: list = field(default_factory=list)  # of each connection's coordinates: those at `q`
    q: np.ndarray | None = None

    @property
    def nc(self):
        return sum(tie.nv for tie in self.ties)

    def tie(self, tie: Tie, coordinates, connect=True):
        self.ties.append(tie)
        self.guesses.append(np.asarray(coordinates, float))
        if connect:
            self.connect(tie)

    def connect(self, tie: Tie):
        names = [*(part.name for part in self.parts), "ground"]
        self.m.connect(names[tie.a], names[tie.b], joint=make_joint(tie.kind, tie.screws, tie.passive), name=tie.name,
                       position_a=tie.position_a, rotation_a=tie.rotation_a, position_b=tie.position_b,
                       rotation_b=tie.rotation_b)

    def motion(self, rng):
        """Random velocity that keeps the loops closed at `q`, and torques of joints and connections."""
        from closed_oracle import consistent

        v = consistent(self, self.q, rng.normal(size=self.m.nv))
        return v, 5 * rng.normal(size=self.m.nv + self.nc)

    def motions(self, rng, count):
        """A batch of them: q, v, tau."""
        v, tau = (np.array(x) for x in zip(*(self.motion(rng) for _ in range(count)), strict=True))
        return np.tile(self.q, (count, 1)), v, tau


def link_pose(at, link):
    return at.carried[link][0] if link >= 0 else np.eye(4)


def coordinates_of(rng, kind, count):
    """Random coordinates of a connection, angles within half a turn."""
    if kind == "spherical":
        return random_quaternion(rng)
    if kind == "free":
        return np.concatenate([rng.normal(size=3), random_quaternion(rng)])
    return rng.uniform(-1.0, 1.0, count) * (0.6 if kind == "compound" else 1.5)


def closing_tie(rng, at, name, a, b, kind, passive=False) -> tuple[Tie, np.ndarray]:
    """A connection of this kind between two links that holds them where they are, and its coordinates there."""
    _, screws, rows = random_joint(rng, kind, passive)
    for row in rows:
        row["armature"] = 0.0
    rotation_a = random_rotation(rng) if rng.random() < 0.7 else np.eye(3)
    tie = Tie(name, a, b, kind, screws, rows, rng.normal(size=3) * 0.3, rotation_a, np.zeros(3), np.eye(3))
    c = coordinates_of(rng, kind, len(screws))
    frame = oracle.placed((link_pose(at, a),), tie.position_a, tie.rotation_a)[0]
    for T, _ in oracle.steps(tie, c):
        frame = frame @ T
    frame = np.linalg.solve(link_pose(at, b), frame)
    tie.position_b, tie.rotation_b = frame[:3, 3], frame[:3, :3]
    return tie, c


def random_closed(seed, links=None, ties=None, kinds=KINDS, tie_kinds=KINDS, passive=False, springs=False,
                  grounded=True, redundant=False, massless=False, freedom=1, chain=False) -> Closed:
    """A random tree held together by 1 to 6 connections that leave some freedom.

    Without `redundant` all constraints are independent, and not nearly dependent; with it, some are there twice:
    connections doubled, hinges doubled along their axis, tree joints doubled by connections. Without `grounded`
    the tree floats and no connection goes to the ground.
    """
    from closed_oracle import Constraint, loops

    rng = np.random.default_rng(seed + 10**7)
    n = int(rng.integers(3, 10)) if links is None else links
    tree = random_tree(seed, n, kinds, passive, springs, chain, grounded, massless)
    closed = Closed(tree.m, tree.parts, tree.springs)
    closed.q = closed.state(rng)[0]
    wanted = int(rng.integers(1, 7)) if ties is None else ties
    at = oracle.motion(closed, closed.q, np.zeros(closed.m.nv))
    for _ in range(12 * wanted):
        if len(closed.ties) == wanted:
            break
        low = -1 if grounded else 0
        a, b = rng.choice(np.arange(low, n), 2, replace=False)
        kind = tie_kinds[rng.integers(len(tie_kinds))]
        if kind == "free" and rng.random() < 0.8:  # it always fits and holds nothing
            continue
        tie, coordinates = closing_tie(rng, at, f"tie{len(closed.ties)}", int(a), int(b), kind, passive)
        if closed.m.nv - sum(6 - other.nv for other in (*closed.ties, tie)) < freedom:
            continue
        closed.tie(tie, coordinates, connect=False)
        A = loops(closed, closed.q, np.zeros(closed.m.nv), at).A
        constraint = Constraint(A, np.zeros(len(A)))
        if constraint.rank < len(A) or constraint.condition > 100:
            closed.ties.pop()
            closed.guesses.pop()
    if not closed.ties:  # nothing fits
        return random_closed(seed + 1, links, ties, kinds, tie_kinds, passive, springs, grounded, redundant, massless,
                             freedom, chain)
    if redundant:
        double(rng, closed)
    for k in rng.permutation(len(closed.ties)):
        closed.connect(closed.ties[k])
    order = list(closed.m.connections)
    both = sorted(zip(closed.ties, closed.guesses, strict=True), key=lambda pair: order.index(pair[0].name))
    closed.ties, closed.guesses = (list(x) for x in zip(*both, strict=True))
    return closed


def double(rng, closed):
    """Some constraints once more, so that they can never contradict the others."""
    made = list(zip(closed.ties, closed.guesses, strict=True))
    for k, (tie, c) in enumerate(made):
        if k and rng.random() < 0.5:
            continue
        shift = np.zeros(3)
        if tie.kind in ALONG_AXIS and rng.random() < 0.7:
            shift = rng.normal() * tie.screws[0].axis
        closed.tie(Tie(f"{tie.name} again", tie.a, tie.b, tie.kind, tie.screws, no_passive(tie),
                       tie.position_a + tie.rotation_a @ shift, tie.rotation_a,
                       tie.position_b + tie.rotation_b @ shift, tie.rotation_b), c, connect=False)
    k = int(rng.integers(len(closed.parts)))
    part = closed.parts[k]
    where = slice(*(sum(p.nq for p in closed.parts[:j]) for j in (k, k + 1)))
    if part.kind != "compound" and (part.kind in ("spherical", "free") or np.abs(closed.q[where]).max(initial=0) < 3):
        closed.tie(Tie(f"{part.joint_name} again", part.parent, k, part.kind, part.screws, no_passive(part),
                       part.position, part.rotation, np.zeros(3), np.eye(3)), closed.q[where], connect=False)


def no_passive(joint):
    return [dict(NO_PASSIVE) for _ in range(joint.nv)]


def random_planar(seed, loops=2) -> Closed:
    """A planar linkage of three-dimensional hinges: every loop has three constraints more than it needs."""
    rng = np.random.default_rng(seed)
    normal = random_rotation(rng)
    plane = normal[:, :2]
    n = 3 * loops + 1
    closed = Closed(bk.Mechanism(gravity=normal @ [0.0, -9.81, 1.0]))
    axis = normal[:, 2]
    for i in range(n):
        mass = rng.uniform(0.5, 2.0)
        parent = -1 if i == 0 else int(rng.integers(max(-1, i - 3), i))
        screw = Screw(axis, np.zeros(3), 1.0, 0.0)
        rows = [dict(NO_PASSIVE)]
        part = Part(f"link{i}", f"link{i}", parent, "revolute", [screw], rows, plane @ rng.normal(size=2), np.eye(3),
                    mass, rng.normal(size=3) * 0.2, random_inertia(rng, mass))
        closed.add(part, make_joint("revolute", [screw], rows))
    closed.q = closed.state(rng)[0]
    at = oracle.motion(closed, closed.q, np.zeros(closed.m.nv))
    pairs = [(a, b) for a in range(-1, n) for b in range(n) if a < b and apart(closed, a, b)]
    for k, pair in enumerate(rng.permutation(len(pairs))[:loops]):
        a, b = pairs[pair]
        point = plane @ rng.normal(size=2)  # of a, in the plane through its origin
        x = link_pose(at, a)[:3, 3] + link_pose(at, a)[:3, :3] @ point
        turned = link_pose(at, a)[:3, :3].T @ link_pose(at, b)[:3, :3]
        angle = np.arctan2(axis @ oracle.unskew(turned), 0.5 * (np.trace(turned) - 1))
        place_b = link_pose(at, b)[:3, :3].T @ (x - link_pose(at, b)[:3, 3])
        closed.tie(Tie(f"tie{k}", a, b, "revolute", [Screw(axis, np.zeros(3), 1.0, 0.0)], [dict(NO_PASSIVE)], point,
                       np.eye(3), place_b, np.eye(3)), [angle])
    return closed


def apart(tree, a, b):
    """Whether two links are more than a joint away from each other, also by way of a common parent."""
    parents = [part.parent for part in tree.parts]
    up_a = parents[a] if a >= 0 else None
    return parents[b] != a and up_a != b and parents[b] != up_a


def described(m: bk.Mechanism, q=None) -> Closed:
    """A ready-made mechanism as the oracle sees it; `q` closes its loops, with connections near their neutral."""
    closed = Closed(m, q=m.neutral() if q is None else q)
    for link in m.links:
        kind, screws, rows = taken_apart(link.joint)
        closed.parts.append(Part(link.name, link.joint_name, link.parent, kind, screws, rows, link.position,
                                 link.rotation, link.mass, link.com, link.inertia))
    for spring in m.springs:
        closed.springs.append({"a": spring.link_a, "b": spring.link_b, "position_a": spring.position_a,
                               "position_b": spring.position_b, "stiffness": spring.stiffness,
                               "rest_length": spring.rest_length, "damping": spring.damping})
    for name, tie in m.connections.items():
        closed.ties.append(Tie(name, tie.link_a, tie.link_b, *taken_apart(tie.joint), tie.position_a, tie.rotation_a,
                               tie.position_b, tie.rotation_b))
        closed.guesses.append(np.array(tie.joint.neutral()))
    return closed


def taken_apart(joint):
    """Kind, screws and passive rows of a joint."""
    kind, zero = type(joint).__name__.lower(), np.zeros(3)
    rows = [dict(zip(NO_PASSIVE, row, strict=True)) for row in joint.passive]
    if kind == "compound":
        screws = [screw for part in joint.screws for screw in taken_apart(part)[1]]
    elif kind == "cylindrical":
        screws = [Screw(joint.axis, zero, 0.0, 1.0), Screw(joint.axis, zero, 1.0, 0.0)]
    elif kind == "planar":
        x, y = plane_axes(joint.normal)
        screws = [Screw(x, zero, 0.0, 1.0), Screw(y, zero, 0.0, 1.0), Screw(joint.normal, zero, 1.0, 0.0)]
    elif kind in ("spherical", "free", "fixed"):
        screws = []
    else:
        screws = [Screw(joint.axis, joint.at, joint.angular, joint.linear)]
    return kind, screws, rows
