"""The mechanism of the public interface: a tree of links and joints, loop-closing connections, springs, gravity.

A mechanism is turned into a `Plan` when first used and again after a change; nothing is ever recompiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from bunraku.checks import as_positive, as_rotation, as_size, as_vector, check_inertia, check_name, hint
from bunraku.errors import ModelError, NamingError, ReadOnlyError
from bunraku.mechanism.changed_copies import ChangedCopies
from bunraku.mechanism.connections import Carry, Connection, Coupling, Family, families
from bunraku.mechanism.couplings import Couplings
from bunraku.mechanism.drives import Drives
from bunraku.mechanism.joint_laws import JointLaws, refuse_laws
from bunraku.mechanism.joints import Free, Joint, as_joint
from bunraku.mechanism.links import GROUND, Link, Spring, Visual
from bunraku.mechanism.names import Names
from bunraku.mechanism.plans import Plans
from bunraku.mechanism.readonly import (
    ReadOnlyCouplings,
    ReadOnlyDict,
    ReadOnlyList,
    ReadOnlySprings,
    read_only,
)
from bunraku.mechanism.shapes import ContactShape, ReadOnlyShapes, Shapes
from bunraku.notebook import html_table
from bunraku.plan import fields as f
from bunraku.plan.build import Plan

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_LOOSE = Free()  # the joint of everything cut off


class Mechanism(Names, Plans, Shapes, JointLaws, Couplings, Drives, ChangedCopies):
    """Links, joints, connections, couplings and springs under gravity. "ground" is the fixed world; SI units, radians,
    z up."""

    def __init__(self, gravity: Sequence[float] = (0.0, 0.0, -9.81), name: str = "mechanism"):
        self.name = name
        self._locked = False  # by a simulation
        self.links: list[Link] = ReadOnlyList()
        self.springs: list[Spring] = ReadOnlySprings()
        self.connections: dict[str, Connection] = ReadOnlyDict()
        self.couplings: dict[str, Coupling] = ReadOnlyCouplings()  # by the joint that follows
        self.shapes: dict[str, ContactShape] = ReadOnlyShapes()
        self.excluded_pairs: dict[tuple[int, int], bool] = {}  # links whose shapes must not touch; False: may touch
        self._link_index: dict[str, int] = {}
        self._joint_index: dict[str, int] = {}
        self._spring_index: dict[str, int] = {}
        self._first_q: list[int] = []
        self._first_v: list[int] = []
        self.connections_made = 0  # connections ever made: automatic names are never given twice
        self._tree_plan: Plan | None = None
        self.ready_plan: Plan | None = None  # with the connections: what most callers want
        self.free_plan: Plan | None = None  # the same if it is known that nothing can touch
        self.free_forces: tuple | None = None  # then, for trees: plan with a body for every link, {joint: number}
        self._variants: dict = {}
        self._length_scale = 1.0
        self.nq = 0
        self.nv = 0
        self.gravity = gravity

    # -- build -----------------------------------------------------------------------------------------------------

    def add_link(self, name: str, parent: str = GROUND, joint: Joint | None = None, joint_name: str | None = None,
                 actuated: bool | None = None, position=(0.0, 0.0, 0.0), rotation=None, mass: float = 0.0,
                 com=(0.0, 0.0, 0.0), inertia=None, visuals: Sequence[Visual] = (), physical: bool = True) -> Link:
        """Add a link, connected to `parent` by `joint` (Fixed if none is given).

        `position` and `rotation` (3x3) place the joint frame in the parent's frame; the link frame is the joint's
        child frame, equal to it at the neutral position. `inertia` (3x3, or three principal moments) is about `com`
        in link axes. `actuated` says whether closed-chain inverse dynamics may use the joint's torque; true except
        for Free and Fixed joints. `physical=False` accepts a non-physical inertia, which is common in model files.
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
        link = Link(name, self.find_link(parent, f"parent of {what}"), joint, joint_name,
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
        a = self.find_link(link_a, f"link_a of spring {name!r}")
        b = self.find_link(link_b, f"link_b of spring {name!r}")
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
        a = self.find_link(link_a, f"link_a of {what}")
        b = self.find_link(link_b, f"link_b of {what}")
        if a == b:
            raise ModelError(f"{what} has both ends on {link_a!r}, so it has no effect; name two links")
        if joint.passive[:, f.ARMATURE].any():
            raise ModelError(f"{what}: a connection has no armature; give it to a joint of the tree")
        refuse_laws(what, joint)
        connection = Connection(name, a, b, joint, bool(actuated),
                                as_vector(f"{what}: position_a", (0, 0, 0) if position_a is None else position_a),
                                as_rotation(f"{what}: rotation_a", rotation_a),
                                as_vector(f"{what}: position_b", (0, 0, 0) if position_b is None else position_b),
                                as_rotation(f"{what}: rotation_b", rotation_b))
        dict.__setitem__(self.connections, name, connection)
        self.connections_made += 1
        self._reconnected()
        return connection

    def cut(self, name: str) -> Carry:
        """Remove a connection, or cut a tree joint (by joint name, else by link name): its link is then connected to
        the ground by a Free joint of the same name, whose coordinates are the link's pose in the world.

        A tree joint loses its couplings. Returns `carry`: q, v = carry(q, v) maps states of the old structure, one or
        a batch, to the new one.
        """
        self._refuse_if_locked("cut")
        if isinstance(name, str) and name in self.connections:
            carry = Carry(self._as_tree(), None)
            dict.__delitem__(self.connections, name)
            self._reconnected()
            return carry
        index = self.find_joint(name, "cut: ", self.connections)
        link = self.links[index]
        if link.parent < 0 and isinstance(link.joint, Free):
            raise ModelError(f"cut: joint {link.joint_name!r} is a Free joint on the ground, so link {link.name!r} is "
                             "loose already")
        carry = Carry(self._as_tree(), index)
        self._drop_couplings(index)
        self._replace(index, replace(link, parent=-1, joint=_LOOSE, actuated=False, position=np.zeros(3),
                                     rotation=np.eye(3)))
        return carry

    def _replace(self, index: int, link: Link):
        """Replace a link; the new joint may have another number of coordinates."""
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
        """This mechanism, made read-only: a simulation and its trajectory rely on it. A copy is not locked."""
        self._locked = True
        return self

    def _refuse_if_locked(self, what: str):
        if self._locked:
            instead = f"use sim.{what}(...), or " if what in ("connect", "cut", "couple", "uncouple") else ""
            raise ReadOnlyError(f"{what}: this mechanism belongs to a simulation, and its recorded motion depends on "
                                f"it; {instead}change a copy, m = sim.mechanism.copy(), and start a new bk.Simulation")

    def _as_tree(self) -> Mechanism:
        """A copy without the connections and couplings, for the kinematics of the tree."""
        twin = self.copy()
        twin.connections, twin.couplings, twin._variants = {}, {}, {}
        twin.ready_plan = self.plan("tree")
        return twin

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
        self.has_joint_laws()  # looked at once, not in every copy
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        for name in ("links", "springs", "connections", "couplings", "shapes", "excluded_pairs", "_link_index",
                     "_joint_index", "_spring_index", "_first_q", "_first_v"):
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
        index = self.find_link(name, "link")
        if index < 0:
            raise NamingError("the ground is the fixed world, which has no mass, joint or place; name a link")
        return self.links[index]

    def joint(self, name: str) -> Joint:
        """The joint of this name, or the joint of the link of this name."""
        return self.links[self.find_joint(name)].joint

    def q_slice(self, name: str) -> slice:
        """Slice of the joint's coordinates in q; by joint name, else by link name."""
        i = self.find_joint(name)
        return slice(self._first_q[i], self._first_q[i] + self.links[i].joint.nq)

    def v_slice(self, name: str) -> slice:
        """Slice of the joint's velocities in v, a and tau; by joint name, else by link name."""
        i = self.find_joint(name)
        return slice(self._first_v[i], self._first_v[i] + self.links[i].joint.nv)

    @property
    def nc(self) -> int:
        """Degrees of freedom of all connections: number of optional entries of tau after the nv torques of the tree."""
        return sum(connection.joint.nv for connection in self.connections.values())

    def drive_slice(self, name: str) -> slice:
        """Slice of a connection's torques in a tau of nv + nc entries; for a tree joint its v_slice."""
        first = self.nv
        for connection in self.connections.values():
            if connection.name == name:
                return slice(first, first + connection.joint.nv)
            first += connection.joint.nv
        i = self.find_joint(name, "", self.connections)
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

    def energy(self, q: ArrayLike, v: ArrayLike) -> tuple[Any, Any]:
        """(kinetic, potential). Kinetic: links and rotors (armature), half v' M v. Potential: gravity (zero at the
        world's origin), joint springs, limits and point springs.
        """
        from bunraku.entries.kinematics_entries import energy

        return energy(self.plan(), q, v)

    def _figures(self) -> str:
        held = [f"{len(table)} {what}{'s' * (len(table) > 1)}"
                for table, what in ((self.connections, "connection"), (self.couplings, "coupling")) if table]
        less = f", minus the constraints of {' and '.join(held)}" if held else ""
        return f"{self.name}: {len(self.links)} links, {self.nv} degrees of freedom{less}, {self.mass:.4g} kg"

    def _by_depth(self) -> Iterator[tuple[int, Link]]:
        """Links with their depth in the tree, each before its children."""
        children: dict[int, list[int]] = {}
        for i, link in enumerate(self.links):
            children.setdefault(link.parent, []).append(i)
        stack = [(i, 1) for i in reversed(children.get(-1, []))]
        while stack:
            i, depth = stack.pop()
            yield depth, self.links[i]
            stack += [(c, depth + 1) for c in reversed(children.get(i, []))]

    def _repr_html_(self) -> str:
        """Links and connections as tables, in notebooks."""
        names = [*self.link_names, GROUND]
        tables = [html_table(self._figures(), ("link", "joint", "type", "mass [kg]"), (
            (f"{'  ' * min(depth - 1, 12)}{link.name}", link.joint_name, repr(link.joint), link.mass)
            for depth, link in self._by_depth()))]
        if self.connections:
            tables.append(html_table("connections", ("connection", "link a", "link b", "type"), (
                (c.name, names[c.link_a], names[c.link_b], repr(c.joint)) for c in self.connections.values())))
        if self.couplings:
            tables.append(html_table("couplings", ("joint", "follows", "ratio", "offset"), (
                (c.joint, c.to, c.ratio, c.offset) for c in self.couplings.values())))
        return "".join(tables)

    def __repr__(self):
        lines = [self._figures()]
        for depth, link in islice(self._by_depth(), 39):
            named = "" if link.joint_name == link.name else f" {link.joint_name!r}"
            lines.append(f"{'  ' * min(depth, 12)}{link.name}: {link.joint!r}{named}, {link.mass:.4g} kg")
        if len(self.links) > len(lines) - 1:
            lines.append(f"  ... and {len(self.links) - len(lines) + 1} more links")
        names = [*self.link_names, GROUND]
        for c in list(self.connections.values())[:20]:
            lines.append(f"  connection {c.name}: {names[c.link_a]} - {names[c.link_b]} by {c.joint!r}")
        if len(self.connections) > 20:
            lines.append(f"  ... and {len(self.connections) - 20} more connections")
        for coupling in list(self.couplings.values())[:20]:
            lines.append(f"  coupling {coupling.equation}")
        if len(self.couplings) > 20:
            lines.append(f"  ... and {len(self.couplings) - 20} more couplings")
        return "\n".join(lines)

def as_mechanism(value) -> Mechanism:
    """The argument `mechanism`, checked."""
    if isinstance(value, Mechanism):
        return value
    if isinstance(value, np.ndarray):
        raise ModelError(f"the first argument must be a bk.Mechanism, not an array of shape {value.shape}: the order "
                         "is (mechanism, q, v, ...)")
    instead = "give its .mechanism" if isinstance(getattr(value, "mechanism", None), Mechanism) else (
        "bk.load reads model files")
    raise ModelError(f"the first argument must be a bk.Mechanism, not {value!r:.60}; {instead}")
