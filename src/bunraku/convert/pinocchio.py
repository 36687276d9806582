"""Pinocchio: quaternions x y z w, planar velocities in child axes, unbounded angles as cosine and sine."""

from __future__ import annotations

from bunraku.convert.blocks import Angle, Ball, Block, Floating, PlanarLocal
from bunraku.convert.converter import Converter
from bunraku.convert.match import Piece, Slot, by_convention, by_name, part_names
from bunraku.errors import ModelError
from bunraku.mechanism import Link, Mechanism

KINDS = {
    "RX": "one coordinate", "RY": "one coordinate", "RZ": "one coordinate", "RevoluteUnaligned": "one coordinate",
    "PX": "one coordinate", "PY": "one coordinate", "PZ": "one coordinate", "PrismaticUnaligned": "one coordinate",
    "HX": "one coordinate", "HY": "one coordinate", "HZ": "one coordinate", "HelicalUnaligned": "one coordinate",
    "RUBX": "cosine and sine", "RUBY": "cosine and sine", "RUBZ": "cosine and sine",
    "RevoluteUnboundedUnaligned": "cosine and sine",
    "Spherical": "ball", "FreeFlyer": "free flyer", "Planar": "planar",
}
SEVERAL = {"Translation": 3, "Universal": 2}  # joints of so many plain coordinates


def converter(mechanism: Mechanism, model=None) -> Converter:
    """Between `mechanism` and Pinocchio; `model` is a pinocchio.Model. Without one, every hinge has one angle."""
    if model is None:
        kinds = {"scalar": "one coordinate", "planar": "planar", "ball": "ball", "free": "free flyer"}
        return by_convention(mechanism, "Pinocchio", kinds, join)
    try:
        names, joints = list(model.names), list(model.joints)
    except (AttributeError, TypeError):
        raise ModelError(f"the Pinocchio model must be a pinocchio.Model, not {type(model).__name__}") from None
    theirs = {name: slots(name, joint, joint.idx_q, joint.idx_v)
              for name, joint in zip(names[1:], joints[1:], strict=True)}  # the first is the universe
    return by_name(mechanism, "Pinocchio", {n: s for n, s in theirs.items() if s}, join, aliases)


def join(piece: Piece, kind: str) -> Block | None:
    if piece.kind == "scalar" and kind == "one coordinate":
        return Block(1, 1)
    if piece.kind == "scalar" and kind == "cosine and sine":
        return Angle()
    if piece.kind == "ball" and kind == "ball":
        return Ball(scalar_last=True)
    if piece.kind == "planar" and kind == "planar":
        return PlanarLocal()
    if piece.kind == "free" and kind == "free flyer":
        return Floating("xyzw")
    return None


def aliases(link: Link) -> list[str]:
    """Name that Pinocchio's MJCF reader gives to the joint of a body with several."""
    return [f"Composite_{name}" for name in part_names(link)[:1]]


def slots(name: str, joint, q: int, v: int) -> list[Slot]:
    """The slots of one Pinocchio joint."""
    kind = joint.shortname().removeprefix("JointModel").removesuffix("Tpl")
    if kind in KINDS:
        return [Slot(KINDS[kind], q, v)]
    if kind in SEVERAL:
        return [Slot("one coordinate", q + k, v + k) for k in range(SEVERAL[kind])]
    if kind == "Composite":
        found = []
        for part in (joint.extract() if hasattr(joint, "extract") else joint).joints:
            found += slots(name, part, q, v)
            q, v = q + part.nq, v + part.nv
        return found
    raise ModelError(f"joint {name!r}: Pinocchio's {kind} joint has no counterpart here")
