"""MuJoCo: a free joint's position and linear velocity are of the world, in world axes; quaternions as ours."""

from __future__ import annotations

import numpy as np

from bunraku.convert.blocks import Ball, Block, Floating
from bunraku.convert.converter import Converter
from bunraku.convert.match import Piece, Slot, by_convention, by_name
from bunraku.errors import ModelError
from bunraku.mechanism import Helical, Mechanism

KINDS = ("free", "ball", "slide", "hinge")  # mjtJoint


def converter(mechanism: Mechanism, model=None) -> Converter:
    """Between `mechanism` and MuJoCo's qpos, qvel, qacc and qfrc; `model` is a mujoco.MjModel."""
    if model is None:
        kinds = {"scalar": "slide or hinge", "planar": "slide, slide, hinge", "ball": "ball", "free": "free"}
        return by_convention(mechanism, "MuJoCo", kinds, join)
    try:
        names = joint_names(model)
    except (AttributeError, TypeError):
        raise ModelError(f"the MuJoCo model must be a mujoco.MjModel, not {type(model).__name__}") from None
    ours = set(mechanism.joint_names)
    theirs: dict[str, list[Slot]] = {}
    for j, name in enumerate(names):
        kind, q, v = KINDS[model.jnt_type[j]], int(model.jnt_qposadr[j]), int(model.jnt_dofadr[j])
        if kind == "free" and f"{name}/turn" in ours:  # read as three sliders and a ball: see io/mjcf.py
            theirs |= {f"{name}/{x}": [Slot("slide", q + k, v + k)] for k, x in enumerate("xyz")}
            theirs[f"{name}/turn"] = [Slot("ball", q + 3, v + 3)]
        else:
            theirs[name] = [Slot(kind, q, v)]
    return by_name(mechanism, "MuJoCo", theirs, join)


def join(piece: Piece, kind: str) -> Block | None:
    if piece.kind == "scalar" and ("slide" in kind or "hinge" in kind):
        return None if isinstance(piece.link.joint, Helical) else Block(1, 1)
    if piece.kind == "planar" and kind == "slide, slide, hinge":
        return Block(3, 3)
    if piece.kind == "ball" and kind == "ball":
        return Ball(scalar_last=False)
    if piece.kind == "free" and kind == "free":
        link = piece.link
        if link.parent >= 0:
            raise ModelError(f"joint {link.joint_name!r}: MuJoCo's free joints hang from the world only")
        placed = (link.rotation, link.position)
        plain = not link.position.any() and np.array_equal(link.rotation, np.eye(3))
        return Floating("wxyz", linear_in_parent=True, placement=None if plain else placed)
    return None


def body_names(model) -> list[str]:
    """Names of an MjModel's bodies by index; bodies without one are called "body3" by their index."""
    own = [model.body(b).name for b in range(model.nbody)]
    return _unique([name or f"body{b}" for b, name in enumerate(own)], own)


def joint_names(model) -> list[str]:
    """Names of an MjModel's joints; one without a name has its body's, or is called "joint3" if that has several."""
    bodies = body_names(model)
    own = [model.joint(j).name for j in range(model.njnt)]
    bodies_of = [int(b) for b in model.jnt_bodyid]
    return _unique([name or (bodies[b] if model.body_jntnum[b] == 1 else f"joint{j}")
                    for j, (name, b) in enumerate(zip(own, bodies_of, strict=True))], own)


def _unique(names: list[str], own: list[str]) -> list[str]:
    """Made-up names give way to given ones."""
    taken = set(own)
    out = []
    for name, given in zip(names, own, strict=True):
        while not given and name in taken:
            name += "_"
        taken.add(name)
        out.append(name)
    return out
