"""The mechanism people write: links hung from each other by joints, connections that close loops, springs, gravity.

A mechanism is turned into a `Plan` when first used and again after a change; nothing is ever recompiled.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bunraku.errors import ModelError, NamingError
from bunraku.mechanism.checks import as_positive, as_rotation, as_size, as_vector, check_inertia, check_name, hint
from bunraku.mechanism.connections import Carry, Connection, Family, families
from bunraku.mechanism.joints import Free, Joint, as_joint
from bunraku.plan import fields as f
from bunraku.plan.build import Plan, build

GROUND = "ground"
_LOOSE = Free()  # the joint of everything cut off


@dataclass(eq=False)
class Link:
    """A rigid body and the joint that hangs it from its parent."""

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
        self.row = np.concatenate((self.position, self.rotation.ravel(), (self.mass,), self.com, self.inertia.ravel()))


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


@dataclass(eq=False)
class Spring:
    """A spring and damper between two points."""

    name: str
    link_a: int
    link_b: int
    position_a: np.ndarray
    position_b: np.ndarray
    stiffness: float
    rest_length: float
    damping: float


class Mechanism:
    """Links, joints, connections and springs under gravity. "ground" is the fixed world; SI units, radians, z up."""

    def __init__(self, gravity: Sequence[float] = (0.0, 0.0, -9.81), name: str = "mechanism"):
        self.name = name
        self.links: list[Link] = []
        self.springs: list[Spring] = []
        self.connections: dict[str, Connection] = {}
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
        self.links.append(link)
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
        name = f"spring{len(self.springs)}" if name is None else name
        check_name(name, "spring")
        if name in self._spring_index:
            raise NamingError(f"there is already a spring {name!r}; give the new one another name")
        a = self._find_link(link_a, f"link_a of spring {name!r}")
        b = self._find_link(link_b, f"link_b of spring {name!r}")
        if a == b:
            raise ModelError(f"spring {name!r} has both ends on {link_a!r}: it can do nothing")
        what = f"spring {name!r}"
        spring = Spring(name, a, b, as_vector(f"{what}: position_a", position_a),
                        as_vector(f"{what}: position_b", position_b), as_size(f"{what}: stiffness", stiffness),
                        as_size(f"{what}: rest_length", rest_length), as_size(f"{what}: damping", damping))
        self._spring_index[name] = len(self.springs)
        self.springs.append(spring)
        self._changed()
        return spring

    def connect(self, link_a: str, link_b: str, joint: Joint | None = None, name: str | None = None, *,
                position_a=None, rotation_a=None, position_b=None, rotation_b=None,
                actuated: bool | None = None) -> Connection:
        """Close a loop: hold `link_b` to `link_a` by `joint` (Fixed if none is given). Adds no coordinates.

        `position_a`, `rotation_a` place the joint frame on link a, `position_b`, `rotation_b` on link b; each is the
        link's own frame unless given. b is the child side. Either side may be "ground".
        """
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
            raise ModelError(f"{what} has both ends on {link_a!r}: there is nothing to hold together")
        if joint.passive[:, f.ARMATURE].any():
            raise ModelError(f"{what}: a connection has no armature; give it to a joint of the tree")
        connection = Connection(name, a, b, joint, bool(actuated),
                                as_vector(f"{what}: position_a", (0, 0, 0) if position_a is None else position_a),
                                as_rotation(f"{what}: rotation_a", rotation_a),
                                as_vector(f"{what}: position_b", (0, 0, 0) if position_b is None else position_b),
                                as_rotation(f"{what}: rotation_b", rotation_b))
        self.connections[name] = connection
        self._connected += 1
        self._reconnected()
        return connection

    def cut(self, name: str) -> Carry:
        """Take a connection away, or cut a tree joint (by joint name, else by link name): its link then hangs from the
        ground by a Free joint of the same name, whose coordinates are the link's pose in the world.

        Returns `carry`: q, v = carry(q, v) maps states of the old structure, one or a batch, to the new one.
        """
        if isinstance(name, str) and name in self.connections:
            carry = Carry(self._as_tree(), None)
            del self.connections[name]
            self._reconnected()
            return carry
        index = self._find_joint(name, "cut: ", self.connections)
        link = self.links[index]
        if link.parent < 0 and isinstance(link.joint, Free):
            raise ModelError(f"cut: joint {link.joint_name!r} is a Free joint on the ground, so link {link.name!r} is "
                             "loose already")
        carry = Carry(self._as_tree(), index)
        self.links[index] = replace(link, parent=-1, joint=_LOOSE, actuated=False, position=np.zeros(3),
                                    rotation=np.eye(3))
        more_q, more_v = Free.nq - link.joint.nq, Free.nv - link.joint.nv
        self._first_q[index + 1:] = [first + more_q for first in self._first_q[index + 1:]]
        self._first_v[index + 1:] = [first + more_v for first in self._first_v[index + 1:]]
        self.nq += more_q
        self.nv += more_v
        self._changed()
        return carry

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
        self._length_scale = as_positive("length_scale", value)
        self._reconnected()

    @property
    def gravity(self) -> np.ndarray:
        return self._gravity.copy()

    @gravity.setter
    def gravity(self, value):
        self._gravity = as_vector("gravity", value)
        self._changed()

    def copy(self) -> Mechanism:
        """An independent copy; the same links and joints, which are never changed once made."""
        twin = copy.copy(self)
        for name in ("links", "springs", "connections", "_link_index", "_joint_index", "_spring_index", "_first_q",
                     "_first_v"):
            setattr(twin, name, copy.copy(getattr(self, name)))
        twin._variants = dict(self._variants)
        return twin

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
            raise NamingError("the ground is not a link that can be asked for")
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
        from bunraku.run.states import integrate

        return integrate(self, q, dq)

    def difference(self, q0, q1) -> np.ndarray:
        """The dq that leads from q0 to q1: the inverse of `integrate`, the short way round."""
        from bunraku.run.states import difference

        return difference(self, q0, q1)

    def energy(self, q, v):
        """(kinetic, potential). Kinetic: links and rotors (armature), half v' M v. Potential: gravity (zero at the
        world's origin), joint springs, limits and point springs.
        """
        from bunraku.run.motion import energy

        return energy(self, q, v)

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
            raise ModelError(f"{self.name} has nothing to move: no joint has a degree of freedom")
        self._refuse_massless_ends(plan)
        if not self.connections:
            return plan
        from bunraku.plan.closed import close

        return close(plan, list(self.connections.values()), self.length_scale, frozenset(given), passive)

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
            raise NamingError(f"{what}: there is no link {name!r}{hint(name, [GROUND, *self._link_index])}") from None

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
