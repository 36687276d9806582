"""The mechanism people write: links hung from each other by joints, connections that close loops, springs, gravity.

A mechanism is turned into a `Plan` when first used and again after a change; nothing is ever recompiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bunraku.checks import as_positive, as_rotation, as_size, as_vector, check_inertia, check_name, hint
from bunraku.errors import ModelError, NamingError, ReadOnlyError
from bunraku.mechanism.connections import Carry, Connection, Family, families
from bunraku.mechanism.joints import PASSIVE, Free, Joint, as_joint
from bunraku.mechanism.readonly import (
    ReadOnlyArray,
    ReadOnlyDict,
    ReadOnlyList,
    ReadOnlySprings,
    read_only,
    sealed,
)
from bunraku.plan import fields as f
from bunraku.plan.build import Plan, build

GROUND = "ground"
_LOOSE = Free()  # the joint of everything cut off


@sealed
@dataclass(frozen=True, eq=False)
class Link:
    """A rigid body and the joint that hangs it from its parent. Read-only: see `Mechanism.with_link`."""

    name: str
    parent: int            # index of the parent link, -1 for ground
    joint: Joint
    joint_name: str        # the link's name unless given
    actuated: bool
    position: np.ndarray   # joint frame in the parent's frame [m]
    rotation: np.ndarray   # 3x3
    mass: float            # [kg]
    com: np.ndarray        # in the link frame [m]
    inertia: np.ndarray    # 3x3 about com, link axes [kg m^2]
    visuals: tuple[Visual, ...] = ()
    row: np.ndarray = field(init=False, repr=False)  # the numbers above, as `build` reads them

    def __post_init__(self):
        mine = self.__dict__
        position, rotation, com, inertia = map(np.asarray, (self.position, self.rotation, self.com, self.inertia))
        mine["row"] = np.concatenate((position, rotation.ravel(), (self.mass,), com, inertia.ravel()))
        for name in ("position", "rotation", "com", "inertia"):
            if not isinstance(mine[name], ReadOnlyArray):
                mine[name] = read_only(mine[name], self.how_to_change(name))

    def how_to_change(self, name, value="...") -> str:
        value = "..." if isinstance(value, np.ndarray) else value if value == "..." else repr(value)
        if name in ("name", "parent"):
            return f"link {self.name!r} is read-only: build the mechanism with add_link for another {name}"
        of_joint = name in ("joint", "joint_name") or name in PASSIVE
        call = f"with_joint({self.joint_name!r}" if of_joint else f"with_link({self.name!r}"
        return (f"link {self.name!r} is read-only: m = m.{call}, {name}={value}) returns a mechanism with the change")


@dataclass(frozen=True, eq=False)
class Visual:
    """A shape to draw, fixed to a link."""

    shape: str             # "box", "sphere", "cylinder", "capsule", "ellipsoid" or "mesh"
    size: tuple[float, ...]  # box: sides; sphere: radius; cylinder, capsule: radius, length along z;
                             # ellipsoid: semi-axes; mesh: scale per axis
    position: np.ndarray   # in the link frame [m]
    rotation: np.ndarray   # 3x3
    colour: tuple[float, float, float, float] = (0.7, 0.7, 0.7, 1.0)
    mesh: str | None = None  # file of a mesh


@sealed
@dataclass(frozen=True, eq=False)
class Spring:
    """A spring and damper between two points. Read-only: see `Mechanism.with_spring`."""

    name: str
    link_a: int
    link_b: int
    position_a: np.ndarray
    position_b: np.ndarray
    stiffness: float
    rest_length: float
    damping: float

    def __post_init__(self):
        for name in ("position_a", "position_b"):
            self.__dict__[name] = read_only(getattr(self, name), self.how_to_change(name))

    def how_to_change(self, name, value="...") -> str:
        value = value if isinstance(value, str) else repr(value)
        return (f"spring {self.name!r} is read-only: m = m.with_spring({self.name!r}, {name}={value}) returns a "
                "mechanism with the change")


class Mechanism:
    """Links, joints, connections and springs under gravity. "ground" is the fixed world; SI units, radians, z up."""

    def __init__(self, gravity: Sequence[float] = (0.0, 0.0, -9.81), name: str = "mechanism"):
        self.name = name
        self._locked = False  # by a simulation
        self.links: list[Link] = ReadOnlyList()
        self.springs: list[Spring] = ReadOnlySprings()
        self.connections: dict[str, Connection] = ReadOnlyDict()
        self._link_index: dict[str, int] = {}
        self._joint_index: dict[str, int] = {}
        self._spring_index: dict[str, int] = {}
        self._first_q: list[int] = []
        self._first_v: list[int] = []
        self._connected = 0  # connections ever made: automatic names are never given twice
        self._tree_plan: Plan | None = None
        self._plan: Plan | None = None  # with the connections: what most callers want
        self._variants: dict = {}
        self._length_scale = 1.0
        self.nq = 0
        self.nv = 0
        self.gravity = gravity

    # -- build -----------------------------------------------------------------------------------------------------

    def add_link(self, name: str, parent: str = GROUND, joint: Joint | None = None, joint_name: str | None = None,
                 actuated: bool | None = None, position=(0.0, 0.0, 0.0), rotation=None, mass: float = 0.0,
                 com=(0.0, 0.0, 0.0), inertia=None, visuals: Sequence[Visual] = (), physical: bool = True) -> Link:
        """Hang a new link from `parent` by `joint` (Fixed if none is given).

        `position` and `rotation` (3x3) place the joint frame in the parent's frame; the link frame is the joint's
        child frame, equal to it at the neutral position. `inertia` (3x3, or three principal moments) is about `com`
        in link axes. `actuated` says whether closed-chain inverse dynamics may use the joint's torque; true except
        for Free and Fixed joints. `physical=False` takes an inertia that no real body has (files are full of them).
        """
        self._refuse_if_locked("add_link")
        what = f"link {name!r}"
        check_name(name, "link")
        if name == GROUND or name in self._link_index:
            raise NamingError(f"there is already a link {name!r}; give the new one another name")
        if name in self.connections:
            raise NamingError(f"there is already a connection {name!r}; give the new link another name")
        joint = as_joint(what, joint)
        joint_name = name if joint_name is None else joint_name
        check_name(joint_name, "joint")
        if joint_name in self._joint_index or joint_name in self.connections:
            kind = "joint" if joint_name in self._joint_index else "connection"
            raise NamingError(f"{what}: there is already a {kind} {joint_name!r}; give this one another joint_name")
        mass, com, inertia = check_inertia(what, mass, com, inertia, physical)
        link = Link(name, self._find_link(parent, f"parent of {what}"), joint, joint_name,
                    joint.default_actuated if actuated is None else bool(actuated),
                    as_vector(f"{what}: position", position), as_rotation(f"{what}: rotation", rotation),
                    mass, com, inertia, tuple(visuals))
        self._link_index[name] = self._joint_index[joint_name] = len(self.links)
        list.append(self.links, link)
        self._first_q.append(self.nq)
        self._first_v.append(self.nv)
        self.nq += joint.nq
        self.nv += joint.nv
        self._changed()
        return link

    def add_spring(self, link_a: str, link_b: str, *, position_a=(0.0, 0.0, 0.0), position_b=(0.0, 0.0, 0.0),
                   stiffness: float = 0.0, rest_length: float = 0.0, damping: float = 0.0,
                   name: str | None = None) -> Spring:
        """A spring and damper between a point of one link and a point of another (each in its link's frame)."""
        self._refuse_if_locked("add_spring")
        name = f"spring{len(self.springs)}" if name is None else name
        check_name(name, "spring")
        if name in self._spring_index:
            raise NamingError(f"there is already a spring {name!r}; give the new one another name")
        a = self._find_link(link_a, f"link_a of spring {name!r}")
        b = self._find_link(link_b, f"link_b of spring {name!r}")
        if a == b:
            raise ModelError(f"spring {name!r} has both ends on {link_a!r}, so it can do nothing; name two links")
        what = f"spring {name!r}"
        spring = Spring(name, a, b, as_vector(f"{what}: position_a", position_a),
                        as_vector(f"{what}: position_b", position_b), as_size(f"{what}: stiffness", stiffness),
                        as_size(f"{what}: rest_length", rest_length), as_size(f"{what}: damping", damping))
        self._spring_index[name] = len(self.springs)
        list.append(self.springs, spring)
        self._changed()
        return spring

    def connect(self, link_a: str, link_b: str, joint: Joint | None = None, name: str | None = None, *,
                position_a=None, rotation_a=None, position_b=None, rotation_b=None,
                actuated: bool | None = None) -> Connection:
        """Close a loop: hold `link_b` to `link_a` by `joint` (Fixed if none is given). Adds no coordinates.

        `position_a`, `rotation_a` place the joint frame on link a, `position_b`, `rotation_b` on link b; each is the
        link's own frame unless given. b is the child side. Either side may be "ground".
        """
        self._refuse_if_locked("connect")
        name = self._free_name() if name is None else name
        check_name(name, "connection")
        taken = self._owner(name)
        if taken:
            raise NamingError(f"there is already a {taken} {name!r}; give the new connection another name")
        what = f"connection {name!r}"
        joint = as_joint(what, joint)
        a = self._find_link(link_a, f"link_a of {what}")
        b = self._find_link(link_b, f"link_b of {what}")
        if a == b:
            raise ModelError(f"{what} has both ends on {link_a!r}, so it has no effect; name two links")
        if joint.passive[:, f.ARMATURE].any():
            raise ModelError(f"{what}: a connection has no armature; give it to a joint of the tree")
        connection = Connection(name, a, b, joint, bool(actuated),
                                as_vector(f"{what}: position_a", (0, 0, 0) if position_a is None else position_a),
                                as_rotation(f"{what}: rotation_a", rotation_a),
                                as_vector(f"{what}: position_b", (0, 0, 0) if position_b is None else position_b),
                                as_rotation(f"{what}: rotation_b", rotation_b))
        dict.__setitem__(self.connections, name, connection)
        self._connected += 1
        self._reconnected()
        return connection

    def cut(self, name: str) -> Carry:
        """Take a connection away, or cut a tree joint (by joint name, else by link name): its link then hangs from the
        ground by a Free joint of the same name, whose coordinates are the link's pose in the world.

        Returns `carry`: q, v = carry(q, v) maps states of the old structure, one or a batch, to the new one.
        """
        self._refuse_if_locked("cut")
        if isinstance(name, str) and name in self.connections:
            carry = Carry(self._as_tree(), None)
            dict.__delitem__(self.connections, name)
            self._reconnected()
            return carry
        index = self._find_joint(name, "cut: ", self.connections)
        link = self.links[index]
        if link.parent < 0 and isinstance(link.joint, Free):
            raise ModelError(f"cut: joint {link.joint_name!r} is a Free joint on the ground, so link {link.name!r} is "
                             "loose already")
        carry = Carry(self._as_tree(), index)
        self._replace(index, replace(link, parent=-1, joint=_LOOSE, actuated=False, position=np.zeros(3),
                                     rotation=np.eye(3)))
        return carry

    def with_link(self, name: str, *, physical: bool = True, **changes) -> Mechanism:
        """A copy in which a link has another mass, com, inertia, position, rotation, visuals or actuated.

        What is not named stays: with another mass alone the inertia is the same. States stay valid.
        """
        index = self._find_link(name, "with_link")
        if index < 0:
            raise NamingError("with_link: the ground has nothing to change; name a link")
        link, what = self.links[index], f"link {name!r}"
        known = ("mass", "com", "inertia", "position", "rotation", "visuals", "actuated")
        for given in changes:
            if given == "joint" or given in PASSIVE:
                raise ModelError(f"with_link: {given} belongs to the joint; use with_joint({link.joint_name!r}, "
                                 f"{given}=...)")
            if given not in known:
                meant = hint(given, known, close=True) or f"; there are {', '.join(known)}"
                raise ModelError(f"with_link: {what} has no {given!r} to change{meant}")
        body = {"mass": link.mass, "com": link.com, "inertia": link.inertia}
        if changes.keys() & body.keys():
            mass, com, inertia = ({**body, **changes}[key] for key in body)
            changes.update(zip(body, check_inertia(what, mass, com, inertia, physical), strict=True))
        return self._with(index, changes)

    def with_joint(self, name: str, *, joint: Joint | None = None, **changes) -> Mechanism:
        """A copy in which a joint (by joint name, else by link name) or connection has other parameters.

        They are those the joint was made with (lower, upper, damping, stiffness, axis, ...), `joint` for another one
        altogether, and `actuated`, `position`, `rotation` and `joint_name`. With another kind of joint q and v may
        change length.
        """
        if isinstance(name, str) and name in self.connections:
            connection = self.connections[name]
            actuated = bool(changes.pop("actuated", connection.actuated))
            made = _changed_joint(f"connection {name!r}", connection.joint, joint, changes)
            if made.passive[:, f.ARMATURE].any():
                raise ModelError(f"connection {name!r}: a connection has no armature; give it to a joint of the tree")
            twin = self.copy()
            dict.__setitem__(twin.connections, name, replace(connection, joint=made, actuated=actuated))
            twin._reconnected()
            return twin
        index = self._find_joint(name, "with_joint: ", self.connections)
        link = self.links[index]
        own = {key: changes.pop(key) for key in ("actuated", "position", "rotation") if key in changes}
        for given in changes:
            if given in ("mass", "com", "inertia", "visuals"):
                raise ModelError(f"with_joint: {given} belongs to the link; use with_link({link.name!r}, {given}=...)")
        called = changes.pop("joint_name", link.joint_name)
        made = _changed_joint(f"joint {link.joint_name!r}", link.joint, joint, changes)
        twin = self._with(index, {**own, "joint": made, "joint_name": called})
        if called != link.joint_name:
            check_name(called, "joint")
            if called in self._joint_index or called in self.connections:
                raise NamingError(f"with_joint: there is already a joint or connection {called!r}; give another "
                                  "joint_name")
            twin._joint_index = {called if i == index else other: i for other, i in self._joint_index.items()}
        return twin

    def with_spring(self, name: str, **changes) -> Mechanism:
        """A copy in which a spring has another stiffness, rest_length, damping, position_a or position_b."""
        if not isinstance(name, str) or name not in self._spring_index:
            raise NamingError(f"with_spring: there is no spring {name!r}{hint(name, list(self._spring_index))}")
        checks: dict[str, Callable] = {"stiffness": as_size, "rest_length": as_size, "damping": as_size,
                                       "position_a": as_vector, "position_b": as_vector}
        for given, value in changes.items():
            if given not in checks:
                raise ModelError(f"with_spring: spring {name!r} has no {given!r} to change; there are "
                                 f"{', '.join(checks)}")
            changes[given] = checks[given](f"spring {name!r}: {given}", value)
        twin, place = self.copy(), self._spring_index[name]
        list.__setitem__(twin.springs, place, replace(self.springs[place], **changes))
        twin._changed()
        return twin

    def _with(self, index: int, changes: dict) -> Mechanism:
        """A copy with one link changed."""
        link, twin = self.links[index], self.copy()
        what = f"link {link.name!r}"
        if "position" in changes:
            changes["position"] = as_vector(f"{what}: position", changes["position"])
        if "rotation" in changes:
            changes["rotation"] = as_rotation(f"{what}: rotation", changes["rotation"])
        if "actuated" in changes:
            changes["actuated"] = bool(changes["actuated"])
        if "visuals" in changes:
            changes["visuals"] = tuple(changes["visuals"])
        twin._replace(index, replace(link, **changes))
        return twin

    def _replace(self, index: int, link: Link):
        """Put a link in the place of another, whose joint may have had another number of coordinates."""
        old = self.links[index].joint
        list.__setitem__(self.links, index, link)
        more_q, more_v = link.joint.nq - old.nq, link.joint.nv - old.nv
        if more_q or more_v:
            self._first_q[index + 1:] = [first + more_q for first in self._first_q[index + 1:]]
            self._first_v[index + 1:] = [first + more_v for first in self._first_v[index + 1:]]
            self.nq += more_q
            self.nv += more_v
        self._changed()

    def locked(self) -> Mechanism:
        """This mechanism, to be changed no more: a simulation and its trajectory rely on it. A copy is not locked."""
        self._locked = True
        return self

    def _refuse_if_locked(self, what: str):
        if self._locked:
            instead = f"use sim.{what}(...), or " if what in ("connect", "cut") else ""
            raise ReadOnlyError(f"{what}: this mechanism belongs to a simulation, and its recorded motion depends on "
                                f"it; {instead}change a copy, m = sim.mechanism.copy(), and start a new bk.Simulation")

    def _as_tree(self) -> Mechanism:
        """A copy without the connections, for the kinematics of the tree as it is."""
        twin = self.copy()
        twin.connections, twin._variants = {}, {}
        twin._plan = self.plan("tree")
        return twin

    def _owner(self, name) -> str | None:
        """What has this name already, of those that a connection must not be mistaken for."""
        if name in self.connections:
            return "connection"
        if name in self._joint_index:
            return "joint"
        return "link" if name == GROUND or name in self._link_index else None

    def _free_name(self) -> str:
        number = self._connected
        while self._owner(f"connection{number}"):
            number += 1
        return f"connection{number}"

    @property
    def length_scale(self) -> float:
        """Length by which moments are divided to be compared with forces, where forces in loops are not unique [m]."""
        return self._length_scale

    @length_scale.setter
    def length_scale(self, value):
        self._refuse_if_locked("length_scale")
        self._length_scale = as_positive("length_scale", value)
        self._reconnected()

    @property
    def gravity(self) -> np.ndarray:
        """Acceleration of gravity [m/s^2]: read-only; set it as a whole, m.gravity = (0, 0, -1.62)."""
        return self._gravity

    @gravity.setter
    def gravity(self, value):
        self._refuse_if_locked("gravity")
        self._gravity = read_only(as_vector("gravity", value), "gravity is read-only in parts; set it as a whole: "
                                  "m.gravity = (0, 0, -1.62)")
        self._changed()

    def copy(self) -> Mechanism:
        """An independent copy; the same links and joints, which are never changed once made."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        for name in ("links", "springs", "connections", "_link_index", "_joint_index", "_spring_index", "_first_q",
                     "_first_v"):
            mine = getattr(self, name)
            setattr(twin, name, type(mine)(mine))
        twin._variants, twin._locked = dict(self._variants), False
        return twin

    __copy__ = copy

    def __deepcopy__(self, memo) -> Mechanism:
        return self.copy()

    # -- ask -------------------------------------------------------------------------------------------------------

    @property
    def link_names(self) -> list[str]:
        return [link.name for link in self.links]

    @property
    def joint_names(self) -> list[str]:
        return [link.joint_name for link in self.links]

    @property
    def mass(self) -> float:
        """Total mass of all links, those fixed to the ground included."""
        return float(sum(link.mass for link in self.links))

    def link(self, name: str) -> Link:
        index = self._find_link(name, "link")
        if index < 0:
            raise NamingError("the ground is the fixed world, which has no mass, joint or place; name a link")
        return self.links[index]

    def joint(self, name: str) -> Joint:
        """The joint of this name, or the joint of the link of this name."""
        return self.links[self._find_joint(name)].joint

    def q_slice(self, name: str) -> slice:
        """Where the joint's coordinates are in q; by joint name, else by link name."""
        i = self._find_joint(name)
        return slice(self._first_q[i], self._first_q[i] + self.links[i].joint.nq)

    def v_slice(self, name: str) -> slice:
        """Where the joint's velocities are in v, a and tau; by joint name, else by link name."""
        i = self._find_joint(name)
        return slice(self._first_v[i], self._first_v[i] + self.links[i].joint.nv)

    @property
    def nc(self) -> int:
        """Degrees of freedom of all connections: what tau may hold after the nv torques of the tree."""
        return sum(connection.joint.nv for connection in self.connections.values())

    def drive_slice(self, name: str) -> slice:
        """Where the torques of a connection are in a tau of nv + nc entries; for a tree joint its v_slice."""
        first = self.nv
        for connection in self.connections.values():
            if connection.name == name:
                return slice(first, first + connection.joint.nv)
            first += connection.joint.nv
        i = self._find_joint(name, "", self.connections)
        return slice(self._first_v[i], self._first_v[i] + self.links[i].joint.nv)

    def family(self, name: str) -> Family:
        """Parent, first child, next brother of a link, of the ground or of a connection, which is a virtual link."""
        everybody = families(self)
        if not isinstance(name, str) or name not in everybody:
            raise NamingError(f"family: there is no link or connection {name!r}{hint(name, list(everybody))}")
        return everybody[name]

    @property
    def virtual_links(self) -> dict[str, str]:
        """{connection: the real link that its virtual link stands for}, which is link b."""
        names = [*self.link_names, GROUND]
        return {name: names[connection.link_b] for name, connection in self.connections.items()}

    def neutral(self) -> np.ndarray:
        """The coordinates at which every joint frame coincides with its child frame."""
        return np.array([x for link in self.links for x in link.joint.neutral()], float)

    def integrate(self, q, dq) -> np.ndarray:
        """Move from q by dq (velocity components times a time): along the group, quaternions stay unit."""
        from bunraku.entries.moves import integrate

        return integrate(self.plan(), q, dq)

    def difference(self, q0, q1) -> np.ndarray:
        """The dq that leads from q0 to q1: the inverse of `integrate`, the short way round."""
        from bunraku.entries.moves import difference

        return difference(self.plan(), q0, q1)

    def energy(self, q, v):
        """(kinetic, potential). Kinetic: links and rotors (armature), half v' M v. Potential: gravity (zero at the
        world's origin), joint springs, limits and point springs.
        """
        from bunraku.entries.kinematics import energy

        return energy(self.plan(), q, v)

    def __repr__(self):
        held = len(self.connections)
        less = f", less what {held} connection{' takes' if held == 1 else 's take'}" if held else ""
        figures = f"{len(self.links)} links, {self.nv} degrees of freedom{less}, {self.mass:.4g} kg"
        lines = [f"{self.name}: {figures}"]
        children: dict[int, list[int]] = {}
        for i, link in enumerate(self.links):
            children.setdefault(link.parent, []).append(i)
        stack = [(i, 1) for i in reversed(children.get(-1, []))]
        while stack and len(lines) < 40:
            i, depth = stack.pop()
            link = self.links[i]
            named = "" if link.joint_name == link.name else f" {link.joint_name!r}"
            lines.append(f"{'  ' * min(depth, 12)}{link.name}: {link.joint!r}{named}, {link.mass:.4g} kg")
            stack += [(c, depth + 1) for c in reversed(children.get(i, []))]
        if len(self.links) > len(lines) - 1:
            lines.append(f"  ... and {len(self.links) - len(lines) + 1} more links")
        names = [*self.link_names, GROUND]
        for c in list(self.connections.values())[:20]:
            lines.append(f"  connection {c.name}: {names[c.link_a]} - {names[c.link_b]} by {c.joint!r}")
        if len(self.connections) > 20:
            lines.append(f"  ... and {len(self.connections) - 20} more connections")
        return "\n".join(lines)

    # -- machine ---------------------------------------------------------------------------------------------------

    def plan(self, variant=None) -> Plan:
        """The flat arrays. Variants: None, "bare" (no passive forces), "apart" (a body for every link), "tree" (without
        the connections; not checked for massless ends)."""
        if variant is None:
            if self._plan is None:
                self._plan = self._closed(self.plan("tree"))
            return self._plan
        if variant == "tree":
            if self._tree_plan is None:
                self._tree_plan = build(self.links, self.springs, self._gravity)
            return self._tree_plan
        if variant not in self._variants:
            if variant == "bare":
                self._variants[variant] = self.driven_plan(passive=False)
            elif variant == "apart":
                self._variants[variant] = build(self.links, self.springs, self._gravity, keep_fixed=True)
            else:
                raise ValueError(f"no plan variant {variant!r}")
        return self._variants[variant]

    def driven_plan(self, locked=frozenset(), given=frozenset(), passive=True) -> Plan:
        """The plan with the joints of some links (`locked`, by index) and some connections (`given`, by name) driven by
        acceleration; not `passive`: without springs, dampers, limits and armature."""
        key = ("driven", frozenset(locked), frozenset(given), passive)
        if key not in self._variants:
            tree = self.plan("tree")
            tree = tree if passive else tree.without_passive()
            self._variants[key] = self._closed(tree.with_locked(locked) if locked else tree, given, passive)
        return self._variants[key]

    def yielding_plan(self, driven: bool) -> Plan:
        """The plan in which every degree of freedom whose torque may depend on its own motion can take a rotor's place:
        joints with springs, dampers or limits and, if they are `driven`, those that are actuated."""
        key = ("yielding", driven)
        if key not in self._variants:
            own = [f.DAMPING, f.STIFFNESS, f.LIMIT_STIFFNESS]
            links = [i for i, link in enumerate(self.links)
                     if link.joint.nv > 1 and ((driven and link.actuated) or link.joint.passive[:, own].any())]
            tree = self.plan("tree")
            self._variants[key] = self._closed(tree.with_columns(links)) if links else self.plan()
        return self._variants[key]

    def _closed(self, plan: Plan, given=frozenset(), passive=True) -> Plan:
        """The plan of the tree with its loops closed, if it is one that can be moved."""
        if self.nv == 0:
            raise ModelError(f"{self.name} has nothing to move: no joint has a degree of freedom; hang a link by a "
                             "joint that moves, such as bk.Revolute((0, 1, 0)) or bk.Free()")
        self._refuse_massless_ends(plan)
        if not self.connections:
            return plan
        from bunraku.plan.closed import with_connections

        return with_connections(plan, list(self.connections.values()), self.length_scale, frozenset(given), passive)

    def _refuse_massless_ends(self, plan):
        """Every joint must move some mass, or be held by a loop: a massless end would accelerate without bound."""
        n = plan.bodies
        massive = plan.body_i[:n, f.MASSIVE]
        if massive.all():
            return
        parent = plan.body_i[:n, f.PARENT].tolist()
        held = [*map(bool, massive.tolist()), True]
        for connection in self.connections.values():
            for link in (connection.link_a, connection.link_b):
                if link >= 0 and not isinstance(connection.joint, Free):
                    held[plan.link_i[link, f.LINK_BODY]] = True
        for i in range(n - 1, -1, -1):
            if held[i]:
                held[parent[i]] = True
        if all(held):
            return
        armature = plan.dof_f[f.ARMATURE] > 0
        for i in range(n):
            j, dof = plan.body_i[i, f.V_INDEX], plan.body_i[i, f.DOF]
            if not held[i] and not armature[j:j + dof].all():
                link = self.links[plan.body_link[i]]
                raise ModelError(f"joint {link.joint_name!r} moves no mass: link {link.name!r} and all beyond it are "
                                 "massless. Give one of them mass, the joint an armature, or use a Fixed joint")

    def _changed(self):
        self._tree_plan = None
        self._reconnected()

    def _reconnected(self):
        """Only connections have changed: the plan of the tree stays."""
        self._plan = None
        self._variants = {}

    def _find_link(self, name, what) -> int:
        if name == GROUND:
            return -1
        try:
            return self._link_index[name]
        except (KeyError, TypeError):
            raise NamingError(f"{what}: {self.no_link(name)}") from None

    def no_link(self, name) -> str:
        """What to say of a name that is no link's."""
        if isinstance(name, str) and name in self._joint_index:
            link = self.links[self._joint_index[name]].name
            return f"{name!r} is a joint where a link is meant; the link that it moves is {link!r}"
        if isinstance(name, str) and name in self.connections:
            names, found = [*self.link_names, GROUND], self.connections[name]
            return (f"{name!r} is a connection where a link is meant; it holds {names[found.link_b]!r} to "
                    f"{names[found.link_a]!r}")
        if name == GROUND:
            return "the ground has no entry: it stays where it is, with its frame at the origin of the world"
        return f"there is no link {name!r}{hint(name, [GROUND, *self._link_index])}"

    def no_joint(self, name) -> str:
        """What to say of a name that is neither a joint's nor a connection's."""
        if isinstance(name, str) and name in self._link_index:
            joint = self.links[self._link_index[name]].joint_name
            return f"{name!r} is a link where a joint is meant; the joint that it hangs by is {joint!r}"
        return f"there is no joint or connection {name!r}{hint(name, [*self._joint_index, *self.connections])}"

    def _find_joint(self, name, what="", others=None) -> int:
        """Index of the link whose joint has this name, else of the link of this name; `others` could be meant too."""
        index = self._joint_index.get(name) if isinstance(name, str) else None
        if index is None:
            index = self._link_index.get(name) if isinstance(name, str) else None
        if index is None:
            if isinstance(name, str) and name in self.connections:
                raise NamingError(f"{what}{name!r} is a connection: it closes a loop and adds no coordinates")
            kinds = "joint, connection or link" if others is not None else "joint or link"
            others = others or ()
            raise NamingError(f"{what}there is no {kinds} {name!r}{hint(name, [*self._joint_index, *others])}")
        return index


def _changed_joint(what: str, old: Joint, new: Joint | None, changes: dict) -> Joint:
    joint = old if new is None else as_joint(what, new)
    try:
        return joint.changed(**changes) if changes else joint
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from None


def as_mechanism(value) -> Mechanism:
    """What is given as a mechanism, if it is one."""
    if isinstance(value, Mechanism):
        return value
    if isinstance(value, np.ndarray):
        raise ModelError(f"the first argument must be a bk.Mechanism, not an array of shape {value.shape}: the order "
                         "is (mechanism, q, v, ...)")
    instead = "give its .mechanism" if isinstance(getattr(value, "mechanism", None), Mechanism) else (
        "bk.load reads model files")
    raise ModelError(f"the first argument must be a bk.Mechanism, not {value!r:.60}; {instead}")
