"""Matching of our joints with those of another library.

Ours are cut into pieces: one per screw, ball, free or planar joint. Theirs are slots of a kind, with a place in q and
in v, under the name of the joint they belong to. A library's table says which block joins a piece to a slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from bunraku.convert.blocks import Block
from bunraku.convert.converter import Converter, Placed
from bunraku.errors import ModelError
from bunraku.mechanism import Compound, Free, Link, Mechanism, Planar, Spherical


class Piece(NamedTuple):
    """Part of one of our joints: "scalar", "planar", "ball" or "free", and where it is in our q and v."""

    kind: str
    q: int
    v: int
    link: Link


class Slot(NamedTuple):
    """Part of one of their joints: a kind of the library's own table, and where it is in their q and v."""

    kind: str
    q: int
    v: int


SIZES = {"scalar": (1, 1), "planar": (3, 3), "ball": (4, 3), "free": (7, 6)}


def pieces(mechanism: Mechanism, link: Link) -> list[Piece]:
    """The pieces of a link's joint, in order."""
    kind = {Free: "free", Spherical: "ball", Planar: "planar"}.get(type(link.joint))
    q, v = mechanism.q_slice(link.joint_name).start, mechanism.v_slice(link.joint_name).start
    if kind:
        return [Piece(kind, q, v, link)]
    return [Piece("scalar", q + k, v + k, link) for k in range(link.joint.nv)]


def part_names(link: Link) -> list[str]:
    """The names of a joint's parts, if its name is made of theirs: "hip_x+hip_z"."""
    names = link.joint_name.split("+")
    count = len(link.joint.screws) if isinstance(link.joint, Compound) else link.joint.nv
    return names if len(names) == count > 1 else []


Join = Callable[[Piece, str], "Block | None"]
"""(our piece, their kind) -> the block between them, or None if they do not fit."""


def by_convention(mechanism: Mechanism, library: str, kinds: dict[str, str], join: Join) -> Converter:
    """A converter that keeps our order; `kinds` says which of their kinds stands for ours."""
    placed, q, v = [], 0, 0
    for link in mechanism.links:
        for piece in pieces(mechanism, link):
            block = join(piece, kinds[piece.kind])
            if block is None:
                raise ModelError(f"joint {link.joint_name!r}: {library} has no joint like {link.joint!r}")
            placed.append(Placed(block, piece.q, piece.v, q, v))
            q, v = q + block.nq_other, v + block.nv
    return Converter(mechanism, library, placed)


def by_name(mechanism: Mechanism, library: str, theirs: dict[str, list[Slot]], join: Join,
            aliases: Callable[[Link], Iterable[str]] = lambda link: ()) -> Converter:
    """A converter between joints of the same name. A free joint that is the only one left over needs no name."""
    left = dict(theirs)
    placed: list[Placed] = []
    unmatched: list[Link] = []
    for link in mechanism.links:
        if not link.joint.nv:
            continue
        slots = None
        for name in (link.joint_name, *aliases(link)):
            if name in left:
                slots = left.pop(name)
                break
        parts = part_names(link)
        if slots is None and parts and all(name in left for name in parts):
            slots = [slot for name in parts for slot in left.pop(name)]
        if slots is None:
            unmatched.append(link)
        else:
            placed += _joined(mechanism, library, link, slots, join)
    ours = [link for link in unmatched if isinstance(link.joint, Free)]
    loose = [name for name, slots in left.items() if len(slots) == 1 and slots[0].kind.startswith("free")]
    if len(ours) == len(loose) == 1:
        unmatched.remove(ours[0])
        placed += _joined(mechanism, library, ours[0], left.pop(loose[0]), join)
    if unmatched or left:
        raise ModelError(f"{mechanism.name} and the {library} model have different joints: "
                         f"only here {_list([link.joint_name for link in unmatched])}; "
                         f"only there {_list(list(left))}")
    return Converter(mechanism, library, placed)


def _joined(mechanism, library, link, slots, join) -> list[Placed]:
    ours = pieces(mechanism, link)
    if len(slots) > len(ours) == 1 and ours[0].kind == "planar":  # as two sliders and a hinge
        ours = [Piece("scalar", ours[0].q + k, ours[0].v + k, link) for k in range(3)]
    blocks = [join(piece, slot.kind) for piece, slot in zip(ours, slots, strict=False)]
    if len(ours) != len(slots) or None in blocks:
        raise ModelError(f"joint {link.joint_name!r} is {link.joint!r} here, but in the {library} model "
                         f"{' and '.join(slot.kind for slot in slots) or 'it does not move'}")
    return [Placed(block, piece.q, piece.v, slot.q, slot.v)
            for block, piece, slot in zip(blocks, ours, slots, strict=True)]


def _list(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:6])) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return shown or "none"
