"""A hand lifts a stone given as a mesh: fingers and thumb touch the convex hull of its vertices.

As in `pickup`, with a body without flat sides: what holds it are the friction of the fingertips and the slopes of its
faces.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull

import bunraku as bk
from bunraku.cli.scenes.pickup import CRATE, FRICTION, MASS, Pickup

VERTICES, SEED = 60, 3


class Lift(Pickup):
    title = "A hand lifts a stone"

    def body(self, m: bk.Mechanism) -> None:
        points = stone()
        com, inertia = solid_of(points, MASS)
        m.add_link("box", joint=bk.Free(), mass=MASS, com=com, inertia=inertia)
        m.add_shape("box", bk.Hull(points), friction=FRICTION)


def stone() -> np.ndarray:
    """Vertices of a stone as large as the box of `pickup`: random points of a rounded box, cut flat at its sides."""
    rng = np.random.default_rng(SEED)
    points = rng.normal(size=(VERTICES, 3))
    points *= 0.56 * np.array(CRATE) / np.linalg.norm(points, ord=4, axis=1, keepdims=True)
    half = 0.5 * np.array(CRATE)
    return np.clip(points, -half, half)


def solid_of(points: np.ndarray, mass: float) -> tuple[np.ndarray, np.ndarray]:
    """Centre of mass, and inertia about it, of the convex hull of points, of uniform density."""
    hull = ConvexHull(points)
    inside = points.mean(axis=0)
    corners = points[hull.simplices] - inside                  # tetrahedra with a corner inside
    volumes = np.abs(np.linalg.det(corners)) / 6.0
    density = mass / volumes.sum()
    com = volumes @ corners.sum(axis=1) / 4.0 / volumes.sum()
    sums = corners.sum(axis=1)
    second = density / 20.0 * (np.einsum("t,tci,tcj->ij", volumes, corners, corners)
                               + np.einsum("t,ti,tj->ij", volumes, sums, sums)) - mass * np.outer(com, com)
    return inside + com, np.trace(second) * np.eye(3) - second
