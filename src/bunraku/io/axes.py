"""Axes, units and rotations of files: turned to x forward, y left, z up, in metres."""

from __future__ import annotations

import math

import numpy as np

from bunraku.checks import as_positive, hint
from bunraku.errors import ModelError
from bunraku.io.xml import Node

UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001, "in": 0.0254, "ft": 0.3048, "cmu": 0.0254 / 0.45}
"""[m]; "cmu" is that of the Carnegie Mellon motion capture database, 1/0.45 inch."""

AXES = {sign + "xyz"[k]: (-1.0 if sign else 1.0) * np.eye(3)[k] for sign in ("", "-") for k in range(3)}


def turned(up: str, forward: str) -> np.ndarray:
    """3x3 that takes components in the axes of a file to x forward, y left, z up."""
    for what, axis in (("up", up), ("forward", forward)):
        if axis not in AXES:
            raise ModelError(f"{what} must be one of {', '.join(map(repr, AXES))}, not {axis!r}")
    z, x = AXES[up], AXES[forward]
    if z @ x:
        raise ModelError(f"up={up!r} and forward={forward!r} are one line; name two axes")
    return np.array([x, np.cross(z, x), z])


def following(axis: str) -> str:
    """The next axis in cyclic order: the default forward axis if a file specifies only the vertical."""
    return "xyz"[("xyz".index(axis[-1]) + 1) % 3]


def metres(what: str, unit) -> float:
    """The length of a unit, by its name or as a number of metres."""
    if isinstance(unit, str):
        if unit.lower() not in UNITS:
            raise ModelError(f"{what} must be one of {', '.join(map(repr, UNITS))} or a number of metres, not {unit!r}"
                             f"{hint(unit, list(UNITS), close=True)}")
        return UNITS[unit.lower()]
    return as_positive(f"{what} [m]", unit)


def rotation_of_rpy(x: float, y: float, z: float) -> np.ndarray:
    """The matrix of turns about the fixed axes x, y, z, in this order."""
    cx, sx, cy, sy, cz, sz = math.cos(x), math.sin(x), math.cos(y), math.sin(y), math.cos(z), math.sin(z)
    return np.array([[cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx],
                     [sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx],
                     [-sy, cy * sx, cy * cx]])


def rotation_of_quaternion(quaternion) -> np.ndarray:
    """The matrix of a quaternion w x y z of any length; the null quaternion is no rotation, as in MuJoCo."""
    w, x, y, z = (float(k) for k in quaternion)
    n = w * w + x * x + y * y + z * z
    if n == 0:
        return np.eye(3)
    s = 2.0 / n
    return np.array([[1 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)],
                     [s * (x * y + w * z), 1 - s * (x * x + z * z), s * (y * z - w * x)],
                     [s * (x * z - w * y), s * (y * z + w * x), 1 - s * (x * x + y * y)]])


def origin_of(node: Node | None) -> tuple[np.ndarray, np.ndarray]:
    """Position and rotation of an element with xyz and rpy; none: zero."""
    if node is None:
        return np.zeros(3), np.eye(3)
    turns = node.numbers("rpy", (3,), (0.0, 0.0, 0.0))
    return np.array(node.numbers("xyz", (3,), (0.0, 0.0, 0.0))), rotation_of_rpy(*turns)
