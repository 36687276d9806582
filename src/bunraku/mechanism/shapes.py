"""Shapes of a mechanism that may touch: where they are attached, their masks and excluded neighbours."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bunraku.checks import as_count, as_number, as_positive, as_rotation, as_size, as_vector, check_name, hint
from bunraku.contact import contact_fields as c
from bunraku.errors import ModelError, NamingError
from bunraku.mechanism.joints import Fixed, Free
from bunraku.mechanism.links import GROUND
from bunraku.mechanism.readonly import ReadOnlyDict, read_only, sealed
from bunraku.mechanism.shape_kinds import Plane, Shape

if TYPE_CHECKING:
    from bunraku.contact.contact_arrays import ContactArrays

BITS = 31
"""Groups that a mask can name: its bits."""
APART = ((c.PLANE, c.HEIGHTFIELD), (c.POINTS,))
"""Kinds of shapes that never touch each other."""


@sealed
@dataclass(frozen=True, eq=False)
class ContactShape:
    """A shape on a link, with its surface parameters. Read-only: see `Mechanism.with_shape`."""

    name: str
    link: int               # index of the link, -1 for ground
    shape: Shape
    position: np.ndarray    # of the shape's origin in the link frame [m]
    rotation: np.ndarray    # 3x3; of a plane: its third column is the normal
    friction: float
    restitution: float
    group: int              # bits: the groups that it belongs to
    meets: int              # bits: the groups that it touches
    surface_velocity: np.ndarray = field(default_factory=lambda: np.zeros(3))  # of a belt, in the link's axes [m/s]
    torsional: float = 0.0  # largest moment of friction about the normal per normal force [m]
    rolling: float = 0.0    # the same across the normal [m]
    stiffness: float | None = None  # of its contacts [N/m]; None: rigid
    damping: float = 0.0    # of its contacts, if they are soft [N s/m]
    row: np.ndarray = field(init=False, repr=False)  # of shape_f (`contact/contact_fields.py`), in the link's frame

    def __post_init__(self):
        mine = self.__dict__
        row = mine["row"] = np.zeros(c.SHAPE_F)
        middle, radius = self.shape.bound()
        row[c.SHAPE_ROTATION:c.SHAPE_ROTATION + 9] = np.asarray(self.rotation).ravel()
        row[c.SHAPE_OFFSET:c.SHAPE_OFFSET + 3] = self.position
        row[c.SHAPE_SIZE:c.SHAPE_SIZE + 3] = self.shape.size()
        row[c.SHAPE_MIDDLE:c.SHAPE_MIDDLE + 3] = self.position + np.asarray(self.rotation) @ middle
        row[c.SHAPE_BOUND] = radius
        row[c.SHAPE_FRICTION], row[c.SHAPE_RESTITUTION] = self.friction, self.restitution
        row[c.SHAPE_SURFACE:c.SHAPE_SURFACE + 3] = np.asarray(self.rotation).T @ self.surface_velocity
        row[c.SHAPE_TORSIONAL], row[c.SHAPE_ROLLING] = self.torsional, self.rolling
        row[c.SHAPE_STIFFNESS], row[c.SHAPE_DAMPING] = self.stiffness or 0.0, self.damping
        row.flags.writeable = False
        for name in ("position", "rotation", "surface_velocity"):
            mine[name] = read_only(mine[name], self.how_to_change(name))

    @property
    def kind(self) -> int:
        return self.shape.kind

    def how_to_change(self, name, value="...") -> str:
        value = "..." if isinstance(value, np.ndarray) else value if value == "..." else repr(value)
        if name in ("name", "link"):
            return f"shape {self.name!r} is read-only: build the mechanism with add_shape for another {name}"
        return (f"shape {self.name!r} is read-only: m = m.with_shape({self.name!r}, {name}={value}) returns a "
                "mechanism with the change")


class ReadOnlyShapes(ReadOnlyDict):
    """The shapes of a mechanism by name."""

    remedy = "a mechanism's table of shapes is read-only: use m.add_shape, m.add_plane or m.with_shape(name, ...)"


class Pairs(NamedTuple):
    """Shapes and their arrays, with a list of all pairs that may touch if it is short, otherwise an empty one."""

    shapes: tuple[ContactShape, ...]
    arrays: ContactArrays
    complete: bool


class Shapes:
    """`add_shape`, `add_plane`, `exclude`; part of `Mechanism`."""

    name: str
    links: Any
    connections: Any
    link_names: Any
    shapes: dict[str, ContactShape]
    plan: Any
    excluded_pairs: dict[tuple[int, int], bool]
    _variants: dict
    free_plan: Any
    free_forces: Any
    find_link: Any
    has_joint_laws: Any
    _refuse_if_locked: Any

    def add_shape(self, link: str, shape: Shape, position=None, rotation=None, friction: float = 0.5,
                  restitution: float = 0.0, name: str | None = None, *, group: int = 1, meets: int = 1,
                  surface_velocity=None, torsional: float = 0.0, rolling: float = 0.0,
                  stiffness: float | None = None, damping: float = 0.0) -> ContactShape:
        """Put a shape on a link, or on the ground: `bk.contacts` finds where it touches others.

        shape        bk.Sphere, bk.Capsule, bk.Box, bk.Cylinder, bk.Hull, bk.Heightfield or bk.Points
        position, rotation   of the shape's frame in the link's frame (3x3); the link's own frame unless given
        friction     coefficient; a pair has the geometric mean
        restitution  0 to 1; a pair has the larger value
        name         the link's name unless given, with a number if there are several
        group, meets bits: two shapes may touch if the group of one is among those that the other meets
        surface_velocity  (3,) [m/s] of the surface beside the link, as of a belt, in the link's axes; its part along
                     the normal of a contact has no effect
        torsional, rolling   lengths [m]: the largest moments of friction at a contact, about its normal and across it,
                     per normal force; a pair has the larger values
        stiffness, damping   of its contacts along the normal [N/m, N s/m], in fixed steps: at rest the overlap is
                     force / stiffness. None: rigid. Those of a pair act in series

        Contact between links connected by a joint or connection, and between shapes of one body, is excluded: see
        `exclude`.
        """
        self._refuse_if_locked("add_shape")
        if not isinstance(shape, Shape) or isinstance(shape, Plane):
            raise ModelError(f"add_shape: {link!r} needs a shape such as bk.Sphere(0.1), bk.Capsule(0.05, 0.3), "
                             f"bk.Box(0.2, 0.1, 0.1) or bk.Points(p), not {shape!r:.60}; planes are for add_plane")
        return self.put_shape(link, shape, "shape", name, position, rotation, friction, restitution, group, meets,
                              surface_velocity, torsional, rolling, stiffness, damping)

    def add_plane(self, link: str = GROUND, point=(0.0, 0.0, 0.0), normal=(0.0, 0.0, 1.0), friction: float = 0.5,
                  restitution: float = 0.0, name: str | None = None, *, group: int = 1, meets: int = 1,
                  surface_velocity=None, torsional: float = 0.0, rolling: float = 0.0,
                  stiffness: float | None = None, damping: float = 0.0) -> ContactShape:
        """A plane through `point`, on the ground or on a link: the half-space opposite to its normal is solid.

        `point` and `normal` (of any length) are in the link's frame; the rest is as in `add_shape`. A conveyor belt has
        a `surface_velocity` along the plane.
        """
        self._refuse_if_locked("add_plane")
        z = as_vector("plane: normal", normal)
        length = float(np.linalg.norm(z))
        if not length > 0:
            raise ModelError("plane: normal must not be zero; (0, 0, 1) is upwards")
        if surface_velocity is not None:
            check_belt("plane", surface_velocity, z / length)
        return self.put_shape(link, Plane(), "plane", name, point, _upright(z / length), friction, restitution, group,
                              meets, surface_velocity, torsional, rolling, stiffness, damping)

    def put_shape(self, link, shape, kind, name, position, rotation, friction, restitution, group, meets,
                  surface_velocity=None, torsional=0.0, rolling=0.0, stiffness=None, damping=0.0):
        index = self.find_link(link, f"add_{kind}")
        if name is None:
            name, number = link, 1
            while name in self.shapes:
                number += 1
                name = f"{link} {number}"
        check_name(name, "shape")
        if name in self.shapes:
            raise NamingError(f"there is already a shape {name!r}; give the new one another name")
        what = f"{kind} {name!r}"
        place = as_vector(f"{what}: position", (0, 0, 0) if position is None else position)
        made = ContactShape(name, index, shape, place, as_rotation(f"{what}: rotation", rotation),
                            **surface(what, friction=friction, restitution=restitution, group=group, meets=meets,
                                      surface_velocity=(0, 0, 0) if surface_velocity is None else surface_velocity,
                                      torsional=torsional, rolling=rolling, stiffness=stiffness, damping=damping))
        dict.__setitem__(self.shapes, name, made)
        self.contact_changed()
        return made

    def exclude(self, link_a: str, link_b: str, excluded: bool = True) -> None:
        """Exclude contact between two links. Neighbours are excluded by default: `excluded=False` lets them touch."""
        self._refuse_if_locked("exclude")
        a, b = self.find_link(link_a, "exclude"), self.find_link(link_b, "exclude")
        if a == b:
            raise ModelError(f"exclude: shapes of one link never touch; name two links, not {link_a!r} twice")
        self.excluded_pairs[min(a, b), max(a, b)] = bool(excluded)
        self.contact_changed()

    def contact_changed(self) -> None:
        """Forget what depends on the shapes."""
        self.free_plan = self.free_forces = None
        for name in ("contact", "all contact", "touches"):
            self._variants.pop(name, None)

    def contact_pairs(self) -> Pairs:
        """Shapes and pairs as arrays; kept until something changes."""
        if "contact" not in self._variants:
            from bunraku.contact.contact_build import build
            from bunraku.tolerances import ALL_PAIRS

            shapes, rigid = tuple(self.shapes.values()), self._rigid()
            joints = [link.joint for link in self.links] if self.has_joint_laws() else []
            pairs = Pairs(shapes, build(shapes, rigid, self._links_apart(rigid), self.plan("tree"), joints), False)
            self._variants["contact"] = pairs if len(shapes) > ALL_PAIRS else self._completed(pairs)
        return self._variants["contact"]

    def all_contact_pairs(self) -> Pairs:
        """The same with all pairs, however many there are."""
        pairs = self.contact_pairs()
        if pairs.complete:
            return pairs
        if "all contact" not in self._variants:
            self._variants["all contact"] = self._completed(pairs)
        return self._variants["all contact"]

    def _completed(self, pairs: Pairs) -> Pairs:
        from bunraku.contact.contact_build import with_pairs

        arrays = with_pairs(pairs.arrays, (self._ordered(*pair) for pair in self.meeting_pairs()))
        return Pairs(pairs.shapes, arrays, True)

    def _links_apart(self, rigid: list[int]) -> set[tuple[int, int]]:
        """Pairs of links with shapes that do not touch each other: neighbours, and those that `exclude` names."""
        links: dict[int, set[int]] = {}
        for shape in self.shapes.values():
            links.setdefault(rigid[shape.link], set()).add(shape.link)
        pairs = {(min(a, b), max(a, b)) for one, other in self._neighbours(rigid)
                 for a in links.get(one, ()) for b in links.get(other, ())}
        pairs |= {pair for pair, excluded in self.excluded_pairs.items() if excluded}
        return pairs - {pair for pair, excluded in self.excluded_pairs.items() if not excluded}

    def _ordered(self, a: int, b: int) -> tuple[int, int]:
        """A pair of shapes in the order that kernels expect."""
        shapes = list(self.shapes.values())
        one, other = shapes[a], shapes[b]
        if (one.kind, other.kind) in c.KIND_OF:
            return a, b
        if (other.kind, one.kind) in c.KIND_OF:
            return b, a
        kinds = f"a {type(one.shape).__name__} and a {type(other.shape).__name__}"
        names = [*self.link_names, GROUND]
        raise ModelError(f"shapes {one.name!r} and {other.name!r}: contact between {kinds} is not supported; "
                         f"m.exclude({names[one.link]!r}, {names[other.link]!r}), give them masks (group, meets), or "
                         "describe one of them by spheres and capsules")

    def may_touch(self) -> bool:
        """Whether any two shapes may touch."""
        if not self.shapes:
            return False
        if "touches" not in self._variants:
            self._variants["touches"] = next(self.meeting_pairs(), None) is not None
        return self._variants["touches"]

    def meeting_pairs(self):
        """Pairs of shapes (by number) that may touch, whatever their kinds."""
        shapes = list(self.shapes.values())
        if len(shapes) < 2 or not _masks_meet(shapes):
            return
        rigid = self._rigid()
        near = self._neighbours(rigid)
        for (a, one), (b, other) in combinations(enumerate(shapes), 2):
            if not (one.group & other.meets or other.group & one.meets):
                continue
            if any(one.kind in kinds and other.kind in kinds for kinds in APART):
                continue
            links = (min(one.link, other.link), max(one.link, other.link))
            bodies = rigid[one.link], rigid[other.link]
            if bodies[0] != bodies[1] and not self.excluded_pairs.get(links, bodies in near):
                yield a, b

    def _rigid(self) -> list[int]:
        """For each link, and last for the ground, the first link of its rigid body."""
        found: list[int] = []
        for i, link in enumerate(self.links):
            fixed = isinstance(link.joint, Fixed)
            found.append((found[link.parent] if link.parent >= 0 else -1) if fixed else i)
        return [*found, -1]

    def _neighbours(self, rigid: list[int]) -> set[tuple[int, int]]:
        """Pairs of rigid bodies connected by a joint or a connection; the ground is left out."""
        joined = [(link.parent, i) for i, link in enumerate(self.links) if not isinstance(link.joint, Free)]
        joined += [(tie.link_a, tie.link_b) for tie in self.connections.values() if not isinstance(tie.joint, Free)]
        pairs = {(rigid[a], rigid[b]) for a, b in joined if rigid[a] >= 0 and rigid[b] >= 0}
        return pairs | {(b, a) for a, b in pairs}


def check_belt(what: str, surface_velocity, normal) -> None:
    """Refuse a surface velocity that leaves the plane with this unit normal."""
    velocity = as_vector(f"{what}: surface_velocity", surface_velocity)
    if abs(velocity @ normal) > 1e-9 * np.linalg.norm(velocity):
        raise ModelError(f"{what}: surface_velocity must lie in the plane, at right angles to its normal")


def surface(what: str, **given) -> dict[str, Any]:
    """Surface parameters and masks of a shape, checked."""
    checked: dict[str, Any] = {}
    for name, value in given.items():
        if name in ("friction", "torsional", "rolling", "damping"):
            checked[name] = as_size(f"{what}: {name}", value)
        elif name == "stiffness":
            checked[name] = None if value is None else as_positive(f"{what}: stiffness", value)
        elif name == "surface_velocity":
            checked[name] = as_vector(f"{what}: surface_velocity", value)
        elif name == "restitution":
            checked[name] = as_number(f"{what}: restitution", value)
            if not 0.0 <= checked[name] <= 1.0:
                raise ModelError(f"{what}: restitution must be 0 (no bounce) to 1 (no loss), not {value!r}")
        else:
            checked[name] = as_count(f"{what}: {name}", value, 0)
            if checked[name] >= 2**BITS:
                raise ModelError(f"{what}: {name} is a mask of {BITS} bits, so below {2**BITS}, not {value!r}")
    return checked


def find_shape(shapes: dict[str, ContactShape], name, what: str) -> ContactShape:
    if not isinstance(name, str) or name not in shapes:
        raise NamingError(f"{what}: there is no shape {name!r}{hint(name, list(shapes))}")
    return shapes[name]


def _masks_meet(shapes: list[ContactShape]) -> bool:
    """Whether the masks allow any pair at all."""
    masks = {(shape.group, shape.meets) for shape in shapes}
    return any(a[0] & b[1] for a in masks for b in masks)


def _upright(z: np.ndarray) -> np.ndarray:
    """A rotation whose third column is the unit vector z; the identity if it is upwards."""
    if z[2] == 1.0:
        return np.eye(3)
    x = np.cross(np.eye(3)[int(np.abs(z).argmin())], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])
