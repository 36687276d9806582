"""Copies of a mechanism in which a link, a joint, a connection, a spring or a shape has other parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bunraku.checks import as_rotation, as_size, as_vector, check_inertia, check_name, hint
from bunraku.contact.contact_fields import PLANE
from bunraku.errors import ModelError, NamingError
from bunraku.mechanism.joint_laws import refuse_laws
from bunraku.mechanism.joints import PARAMETERS, Joint, as_joint
from bunraku.mechanism.shape_kinds import Plane, Shape
from bunraku.mechanism.shapes import check_belt, find_shape, surface
from bunraku.plan import fields as f

if TYPE_CHECKING:
    from bunraku.mechanism.mechanism import Mechanism


class ChangedCopies:
    """`with_link`, `with_joint`, `with_spring`, `with_shape`; part of `Mechanism`."""

    links: Any
    springs: Any
    connections: Any
    couplings: Any
    shapes: Any
    copy: Any
    find_link: Any
    find_joint: Any
    _changed: Any
    _reconnected: Any
    _joint_index: dict[str, int]
    _spring_index: dict[str, int]

    def with_link(self, name: str, *, physical: bool = True, **changes) -> Mechanism:
        """A copy in which a link has another mass, com, inertia, position, rotation, visuals or actuated.

        Other parameters keep their values: with another mass alone the inertia is the same. States stay valid.
        """
        index = self.find_link(name, "with_link")
        if index < 0:
            raise NamingError("with_link: the ground has nothing to change; name a link")
        link, what = self.links[index], f"link {name!r}"
        known = ("mass", "com", "inertia", "position", "rotation", "visuals", "actuated")
        for given in changes:
            if given == "joint" or given in PARAMETERS:
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

        Parameters are the arguments of the joint's constructor (lower, upper, damping, stiffness, axis, ...), `joint`
        to replace the joint, and `actuated`, `position`, `rotation` and `joint_name`. With another kind of joint q and
        v may change length.
        """
        if isinstance(name, str) and name in self.connections:
            connection = self.connections[name]
            actuated = bool(changes.pop("actuated", connection.actuated))
            made = _changed_joint(f"connection {name!r}", connection.joint, joint, changes)
            if made.passive[:, f.ARMATURE].any():
                raise ModelError(f"connection {name!r}: a connection has no armature; give it to a joint of the tree")
            refuse_laws(f"connection {name!r}", made)
            twin = self.copy()
            dict.__setitem__(twin.connections, name, replace(connection, joint=made, actuated=actuated))
            twin._reconnected()
            return twin
        index = self.find_joint(name, "with_joint: ", self.connections)
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
            twin.rename_coupled(index, called)
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

    def with_shape(self, name: str, **changes) -> Mechanism:
        """A copy in which a shape has another shape, position, rotation, friction, restitution, group, meets,
        surface_velocity, torsional or rolling friction, stiffness or damping."""
        old, what = find_shape(self.shapes, name, "with_shape"), f"shape {name!r}"
        known = ("shape", "position", "rotation", "friction", "restitution", "group", "meets", "surface_velocity",
                 "torsional", "rolling", "stiffness", "damping")
        for given in changes:
            if given not in known:
                meant = hint(given, known, close=True) or f"; there are {', '.join(known)}"
                raise ModelError(f"with_shape: {what} has no {given!r} to change{meant}")
        made = {key: value for key, value in changes.items() if key == "shape"}
        if made and (not isinstance(made["shape"], Shape) or isinstance(made["shape"], Plane) != (old.kind == PLANE)):
            raise ModelError(f"with_shape: {what} cannot become {made['shape']!r:.60}; give a shape such as "
                             "bk.Sphere(0.1), and leave planes planes")
        if "position" in changes:
            made["position"] = as_vector(f"{what}: position", changes["position"])
        if "rotation" in changes:
            made["rotation"] = as_rotation(f"{what}: rotation", changes["rotation"])
        made |= surface(what, **{key: value for key, value in changes.items() if key in known[3:]})
        new = replace(old, **made)
        if new.kind == PLANE:
            check_belt(what, new.surface_velocity, new.rotation[:, 2])
        twin = self.copy()
        dict.__setitem__(twin.shapes, name, new)
        twin.contact_changed()
        return twin

    def _with(self, index: int, changes: dict) -> Mechanism:
        """A copy with one link changed."""
        link, twin = self.links[index], self.copy()
        what = f"link {link.name!r}"
        if "joint" in changes and changes["joint"].nv != 1:
            for coupling in self.couplings.values():
                if index in (coupling.follower, coupling.leader):
                    raise ModelError(f"with_joint: joint {link.joint_name!r} is coupled ({coupling.equation}), and "
                                     "couplings are of joints with one degree of freedom; use m.uncouple first")
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


def _changed_joint(what: str, old: Joint, new: Joint | None, changes: dict) -> Joint:
    joint = old if new is None else as_joint(what, new)
    try:
        return joint.changed(**changes) if changes else joint
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from None
