"""Derivatives by differences of high order, and the small moves they are taken along."""

import numpy as np

import bunraku as bk
from bunraku.plan import fields as f

WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)  # of f(h k) - f(-h k), k = 1 .. 4: exact for polynomials of degree 8
STEP = 8e-3
REACH = 4 * STEP


def slope(function):
    """Derivative at 0 of a function of one number."""
    return sum(w * (function(k * STEP) - function(-k * STEP)) for k, w in enumerate(WEIGHTS, 1)) / STEP


def columns(function, count):
    """Derivatives along each of `count` directions: function(direction times a small number)."""
    return np.stack([slope(lambda h, d=d: function(h * d)) for d in np.eye(count)], axis=-1)


def clear_of_limits(m, q) -> bool:
    """Whether no joint limit begins to act within the reach of the differences."""
    plan = m.plan()
    for name in m.connections:
        at, passive = np.asarray(bk.coordinates(m, name, q), float), m.connections[name].joint.passive
        if len(at) == 4 and len(passive) == 3:
            at = 2.0 * np.arctan2(np.linalg.norm(at[1:]), abs(at[0])) * np.ones(1)
        for x, column in zip(at, passive, strict=False):
            if column[f.LIMIT_STIFFNESS] > 0.0 and np.abs(column[[f.LOWER, f.UPPER]] - x).min() < 2 * REACH:
                return False
    for row in plan.body_i[:-1]:
        j, k = row[f.V_INDEX], row[f.Q_INDEX]
        if not row[f.DOF] or not plan.dof_f[f.LIMIT_STIFFNESS, j] > 0.0:
            continue
        at = q[k]
        if row[f.KIND] == f.SPHERICAL:
            at = 2.0 * np.arctan2(np.linalg.norm(q[k + 1:k + 4]), abs(q[k]))
        if np.abs(plan.dof_f[[f.LOWER, f.UPPER], j] - at).min() < 2 * REACH:
            return False
    return True
