"""A mechanism as plain data (for files) and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from bunraku.checks import as_count, as_rotation, as_vector
from bunraku.errors import ModelError
from bunraku.mechanism import joints, shape_kinds
from bunraku.mechanism.mechanism import GROUND, Mechanism, Visual
from bunraku.mechanism.shape_kinds import Shape

FORMAT = 1


def describe(mechanism: Mechanism) -> dict[str, Any]:
    """Everything needed to build the mechanism again, as numbers, text, lists and dictionaries."""
    names = [*mechanism.link_names, GROUND]
    return {
        "format": FORMAT,
        "name": mechanism.name,
        "gravity": mechanism.gravity.tolist(),
        "length_scale": mechanism.length_scale,
        "links": [{
            "name": link.name, "parent": names[link.parent], "joint": _describe_joint(link.joint),
            "joint_name": link.joint_name, "actuated": link.actuated, "position": link.position.tolist(),
            "rotation": link.rotation.tolist(), "mass": link.mass, "com": link.com.tolist(),
            "inertia": link.inertia.tolist(), "visuals": [_describe_visual(v) for v in link.visuals],
        } for link in mechanism.links],
        "springs": [{
            "name": spring.name, "link_a": names[spring.link_a], "link_b": names[spring.link_b],
            "position_a": spring.position_a.tolist(), "position_b": spring.position_b.tolist(),
            "stiffness": spring.stiffness, "rest_length": spring.rest_length, "damping": spring.damping,
        } for spring in mechanism.springs],
        "connections": [{
            "name": c.name, "link_a": names[c.link_a], "link_b": names[c.link_b], "joint": _describe_joint(c.joint),
            "actuated": c.actuated, "position_a": c.position_a.tolist(), "rotation_a": c.rotation_a.tolist(),
            "position_b": c.position_b.tolist(), "rotation_b": c.rotation_b.tolist(),
        } for c in mechanism.connections.values()],
        "connected": mechanism.connections_made,
        **({"couplings": [{"joint": c.joint, "to": c.to, "ratio": c.ratio, "offset": c.offset}
                          for c in mechanism.couplings.values()]} if mechanism.couplings else {}),
        "shapes": [{
            "name": s.name, "link": names[s.link], "shape": _describe_shape(s.shape), "position": s.position.tolist(),
            "rotation": s.rotation.tolist(), "friction": s.friction, "restitution": s.restitution, "group": s.group,
            "meets": s.meets,
            **({"surface_velocity": s.surface_velocity.tolist()} if s.surface_velocity.any() else {}),
            **{name: value for name, value in (("torsional", s.torsional), ("rolling", s.rolling),
                                                ("stiffness", s.stiffness), ("damping", s.damping)) if value},
        } for s in mechanism.shapes.values()],
        "excluded": [[names[a], names[b], excluded] for (a, b), excluded in mechanism.excluded_pairs.items()],
    }


def rebuild(data: dict[str, Any]) -> Mechanism:
    """The mechanism that `describe` described."""
    if data.get("format") != FORMAT:
        raise ModelError(f"mechanism data of format {data.get('format')!r}; this version reads format {FORMAT}")
    if not isinstance(data["name"], str):
        raise ModelError(f"the name of a mechanism is text, not {data['name']!r}")
    mechanism = Mechanism(gravity=data["gravity"], name=data["name"])
    mechanism.length_scale = data.get("length_scale", 1.0)  # as in files from before it was written
    for link in data["links"]:
        visuals = [Visual(**{**v, "position": as_vector("the position of a visual", v["position"]),
                             "rotation": as_rotation("the rotation of a visual", v["rotation"])})
                   for v in link["visuals"]]
        mechanism.add_link(**{**link, "joint": _rebuild_joint(link["joint"]), "visuals": visuals,
                              "physical": False})  # judged when it was first built
    for spring in data["springs"]:
        mechanism.add_spring(**spring)
    for connection in data.get("connections", ()):  # files from before there were any have none
        mechanism.connect(**{**connection, "joint": _rebuild_joint(connection["joint"])})
    for coupling in data.get("couplings", ()):
        mechanism.couple(**coupling)
    mechanism.connections_made = max(mechanism.connections_made, as_count("connected", data.get("connected", 0), 0))
    for shape in data.get("shapes", ()):  # as above
        mechanism.put_shape(**{**shape, "shape": _rebuild_shape(shape["shape"]), "kind": "shape"})
    for link_a, link_b, excluded in data.get("excluded", ()):
        mechanism.exclude(link_a, link_b, excluded)
    return mechanism


def _describe_shape(shape: Shape) -> dict[str, Any]:
    sizes = {name: np.asarray(value).tolist() for name, value in vars(shape).items()}
    return {"type": type(shape).__name__, **sizes}


def _rebuild_shape(data: dict[str, Any]) -> Shape:
    sizes = dict(data)
    name = sizes.pop("type")
    kind = getattr(shape_kinds, str(name), None)
    if not (isinstance(kind, type) and issubclass(kind, Shape) and kind is not Shape):
        raise ModelError(f"there is no shape of type {name!r}")
    return kind(**sizes)


def _describe_visual(visual: Visual) -> dict[str, Any]:
    return {"shape": visual.shape, "size": list(visual.size), "position": visual.position.tolist(),
            "rotation": visual.rotation.tolist(), "colour": list(visual.colour), "mesh": visual.mesh}


def _describe_joint(joint) -> dict[str, Any]:
    data: dict[str, Any] = {"type": type(joint).__name__}
    if isinstance(joint, joints.Compound):
        return {**data, "screws": [_describe_joint(screw) for screw in joint.screws]}
    for name in ("axis", "normal", "at"):
        if name in vars(joint):  # not hasattr, which would look for what else was meant
            data[name] = getattr(joint, name).tolist()
    if isinstance(joint, joints.Helical):
        data["pitch"] = joint.linear
    for k, name in enumerate(joints.PASSIVE):
        column = joint.passive[:, k]
        if np.any(column != joints.DEFAULTS[name]):
            data[name] = [str(x) if np.isinf(x) else x for x in column.tolist()]  # JSON has no infinity
    return data | joint.given_laws() | joint.given_drive()


def _rebuild_joint(data):
    data = dict(data)
    name = data.pop("type")
    kind = getattr(joints, str(name), None)
    if not (isinstance(kind, type) and issubclass(kind, joints.Joint)):
        raise ModelError(f"there is no joint of type {name!r}")
    if kind is joints.Compound:
        return kind(*[_rebuild_joint(screw) for screw in data["screws"]])
    for name in joints.PASSIVE:
        if name in data:
            data[name] = [float(x) for x in data[name]]
    return kind(**data)
