"""Convex polytopes as rows of `point_f`: vertices, faces, edges, and the corners of every face in order.

Triangles of the hull that lie in a plane are merged to one face. Corners of a face have different *numbers* below MOST
as far as possible, and a vertex has the same number in all its faces: contacts keep their identity when another face
takes over. Layout: `contact_fields.py`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from bunraku.contact import contact_fields as c

FLAT = 1e-9
"""Part of the hull's size by which a vertex may be off the plane of its face."""


class Polytope(NamedTuple):
    """Rows of `point_f`, and the numbers of vertices, faces, edges and contacts of a face."""

    rows: np.ndarray
    vertices: int
    faces: int
    edges: int
    corners: int

    def as_rows(self) -> tuple[np.ndarray, tuple[int, ...]]:
        """Rows, and SHAPE_COUNT to SHAPE_CORNERS."""
        return self.rows, (self.vertices, self.faces, self.edges, self.corners)


def hull_of(points: np.ndarray) -> tuple[np.ndarray, list[tuple[np.ndarray, list[int]]]]:
    """Vertices of the convex hull, and its faces: unit normal and vertices, anticlockwise seen from outside."""
    try:
        hull = ConvexHull(points)
    except QhullError:
        raise ValueError("its points lie in a plane, or are fewer than four") from None
    vertices = points[np.sort(hull.vertices)]
    size = float(np.ptp(vertices, axis=0).max())
    left, faces = np.ones(len(hull.equations), bool), []
    for k in np.argsort(-_areas(points, hull), kind="stable"):  # the plane of the largest triangle is the most exact
        if left[k]:
            normal, offset = hull.equations[k, :3], hull.equations[k, 3]
            near = np.abs(vertices @ normal + offset) <= FLAT * size
            left &= ~(np.abs(points[hull.simplices] @ normal + offset) <= FLAT * size).all(axis=1)
            left[k] = False
            faces.append((normal, _around(vertices, np.flatnonzero(near), normal)))
    used = np.unique(np.concatenate([loop for _, loop in faces]))
    if len(used) < len(vertices):  # some are inside of faces
        index = np.full(len(vertices), -1)
        index[used] = np.arange(len(used))
        vertices, faces = vertices[used], [(normal, [int(index[v]) for v in loop]) for normal, loop in faces]
    return vertices, faces


def _areas(points, hull):
    a, b, d = points[hull.simplices].transpose(1, 0, 2)
    return np.linalg.norm(np.cross(b - a, d - a), axis=1)


def _around(vertices, chosen, normal) -> list[int]:
    """Corners of a plane convex polygon in order, without those along its edges."""
    x = np.cross(np.eye(3)[int(np.abs(normal).argmin())], normal)
    x /= np.linalg.norm(x)
    flat = np.column_stack([vertices[chosen] @ x, vertices[chosen] @ np.cross(normal, x)])
    return [int(chosen[k]) for k in ConvexHull(flat).vertices]


def polytope(vertices: np.ndarray, faces: list[tuple[np.ndarray, list[int]]]) -> Polytope:
    """Its rows."""
    numbers = _numbers(len(vertices), [loop for _, loop in faces])
    sides: dict[tuple[int, int], list[np.ndarray]] = {}
    loops: list[Any] = []
    starts = []
    for normal, loop in faces:
        starts.append(len(loops))
        for v, after in zip(loop, [*loop[1:], loop[0]], strict=True):
            loops += [vertices[v], (numbers[v], 0.0, 0.0)]
            sides.setdefault((min(v, after), max(v, after)), []).append(normal)
    edges: list[np.ndarray] = []
    for (v, w), normals in sides.items():
        if len(normals) == 2 and np.linalg.norm(vertices[v] - vertices[w]) > 0.0:
            edges += [vertices[v], vertices[w], *normals]
    first, planes = len(vertices) + c.FACE_ROWS * len(faces) + len(edges), []
    for (normal, loop), start in zip(faces, starts, strict=True):
        planes += [normal, (float(np.mean(vertices[loop] @ normal)), first + start, len(loop))]
    rows = np.array([*vertices, *planes, *edges, *loops], float)
    return Polytope(rows, len(vertices), len(faces), len(edges) // c.EDGE_ROWS, max(numbers) + 1)


def _numbers(count: int, loops: list[list[int]]) -> list[int]:
    """Number of each vertex: different within a face if it has at most MOST corners, else in turn around it."""
    around: list[set[int]] = [set() for _ in range(count)]
    numbers = [-1] * count
    for loop in loops:
        for v in loop:
            around[v] |= set(loop)
    for loop in sorted(loops, key=len, reverse=True):
        for i, v in enumerate(loop):
            if numbers[v] < 0:
                taken = {numbers[w] for w in around[v]}
                free = [n for n in range(c.MOST) if n not in taken]
                numbers[v] = free[0] if free and len(loop) <= c.MOST else i * c.MOST // len(loop)
    return numbers


@lru_cache(maxsize=1024)
def box(half: tuple[float, float, float]) -> Polytope:
    """A box; opposite corners have the same number."""
    signs = np.array([[2 * (i & 1) - 1, (i & 2) - 1, (i & 4) // 2 - 1] for i in range(8)], float)
    faces = []
    for axis in range(3):
        one, other = (axis + 1) % 3, (axis + 2) % 3
        for side in (-1, 1):
            turn = [(-1, -1), (1, -1), (1, 1), (-1, 1)][::side]
            loop = [int(np.flatnonzero((signs[:, axis] == side) & (signs[:, one] == s) & (signs[:, other] == t))[0])
                    for s, t in turn]
            faces.append((side * np.eye(3)[axis], loop))
    return polytope(signs * np.array(half), faces)
