"""Coordinates in other libraries' conventions, both ways, one state or a batch.

    conv = bunraku.convert.to(mechanism, "mujoco", model)     # or "pinocchio", "drake"; model: theirs, or none
    qpos = conv.q(q)                                          # also conv.v(q, v), conv.a(q, v, a), conv.tau(q, tau)
    q = conv.back.q(qpos)                                     # also conv.back.v(qpos, qvel), ... with their arguments

With the other library's model (pin.Model, mujoco.MjModel or Drake's MultibodyPlant) joints are matched by name and
come in its order; without one they keep our order and only the convention changes. See docs/conventions-compared.md.
"""

from __future__ import annotations

from importlib import import_module

from bunraku.convert.converter import Back, Converter
from bunraku.errors import ModelError
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism

__all__ = ["LIBRARIES", "Back", "Converter", "to"]

LIBRARIES = ("pinocchio", "mujoco", "drake")


def to(mechanism: Mechanism, library: str, model=None) -> Converter:
    """A converter between `mechanism` and a library's convention ("pinocchio", "mujoco" or "drake").

    `model` is the same mechanism as that library holds it. Every joint that moves must be in both.
    """
    if library not in LIBRARIES:
        raise ModelError(f"there is no converter for {library!r}; there are {', '.join(map(repr, LIBRARIES))}")
    return import_module(f"bunraku.convert.{library}").converter(as_mechanism(mechanism), model)
