"""Elementary joints of which every joint is composed: one per body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bunraku.plan import fields as f

ORIGIN = np.zeros(3)


class Element(NamedTuple):
    """One body's worth of a joint: kind, axis and a point on it (joint frame), turn and slide per unit of q."""

    kind: int
    axis: np.ndarray
    point: np.ndarray
    angular: float
    linear: float
    nq: int
    nv: int




def rotation_from_z(axis: Sequence[float] | np.ndarray) -> np.ndarray:
    """The shortest rotation that takes z to the unit vector `axis`."""
    x, y, z = (float(v) for v in axis)
    side = x * x + y * y
    if z < 0.0 and side == 0.0:  # opposite: every half turn is as short; take the one about x
        return np.diag([1.0, -1.0, -1.0])
    k = (1.0 - z) / side if z < 0.0 else 1.0 / (1.0 + z)  # the same, without cancellation
    return np.array([[1.0 - k * x * x, -k * x * y, x], [-k * x * y, 1.0 - k * y * y, y], [-x, -y, z]])


RENAMED = (np.eye(3), np.eye(3)[[2, 0, 1]], np.eye(3)[[1, 2, 0]])
"""Rotations that rename axes in turn; column 0 of RENAMED[k] is axis k."""


def body_rotation(axis: np.ndarray) -> np.ndarray:
    """A rotation that takes z to the unit vector `axis`: one that only renames axes if there is one."""
    for rotation in RENAMED:
        if np.array_equal(rotation[:, 2], axis):
            return rotation
    return rotation_from_z(axis)


# -- rows that `build` reads (float64) ------------------------------------------------------------------------------
# of an element of a joint
E_KIND, E_NQ, E_NV, E_ANGULAR, E_LINEAR = range(5)
E_POINT = 5      # 3, on the axis, joint frame [m]
E_TURN = 8       # 9, rotation that takes z to the axis, joint frame
ELEMENT = 17
# of a link
L_POSITION = 0   # 3, joint frame in the parent's frame [m]
L_ROTATION = 3   # 9
L_MASS = 12      # 1, [kg]
L_COM = 13       # 3, link frame [m]
L_INERTIA = 16   # 9, about the centre of mass, link axes [kg m^2]
LINK = 25


def element_rows(elements: Sequence[Element]) -> np.ndarray:
    """(elements, ELEMENT)"""
    rows = [(e.kind, e.nq, e.nv, e.angular, e.linear, *e.point, *body_rotation(e.axis).ravel()) for e in elements]
    return np.array(rows, float).reshape(-1, ELEMENT)


FIXED_ROWS = element_rows([Element(f.FIXED, np.array([0.0, 0.0, 1.0]), ORIGIN, 0.0, 0.0, 0, 0)])
"""A Fixed joint that keeps its body."""
