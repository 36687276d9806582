"""Convex solids by their farthest points: the view that distance and penetration have of them.

A solid is its *core* and a radius around it: a sphere is a point, a capsule a segment; boxes, hulls and cylinders are
their own core, with the radius 0. One state at a time: places in lanes are read one by one.
"""

from typing import Any, NamedTuple

import numpy as np

from bunraku.algorithms.tree import row3
from bunraku.contact import contact_fields as c
from bunraku.jit import inline, inner
from bunraku.spatial.algebra import add, matTvec, matvec, sub
from bunraku.spatial.scalar import pick


class Convex(NamedTuple):
    """A solid at a place; a named tuple of numbers, also in kernels."""

    kind: Any        # SHAPE_KIND
    R: tuple         # 9, its axes
    x: tuple         # 3, its origin, from that of the pair's second solid
    size: tuple      # 3, SHAPE_SIZE
    radius: Any      # around the core
    row: Any         # SHAPE_POINT, SHAPE_COUNT, SHAPE_FACES, SHAPE_EDGES
    vertices: Any
    faces: Any
    edges: Any


@inline
def pick3(places, o, w):
    return pick(places, o, w), pick(places, o + 1, w), pick(places, o + 2, w)


@inline
def pick9(places, o, w):
    return (pick(places, o, w), pick(places, o + 1, w), pick(places, o + 2, w), pick(places, o + 3, w),
            pick(places, o + 4, w), pick(places, o + 5, w), pick(places, o + 6, w), pick(places, o + 7, w),
            pick(places, o + 8, w))


@inner
def convex_at(s, origin, shape_i, shape_f, places, w):
    """Shape s in place w of the states, seen from `origin`."""
    kind = np.int64(shape_i[s, c.SHAPE_KIND])
    size, o = row3(shape_f, s, c.SHAPE_SIZE), c.PLACE * s
    radius = size[0] if kind == c.SPHERE or kind == c.CAPSULE else 0.0
    return Convex(kind, pick9(places, o + c.PLACE_ROTATION, w), sub(pick3(places, o + c.PLACE_ORIGIN, w), origin), size,
                  radius, np.int64(shape_i[s, c.SHAPE_POINT]), np.int64(shape_i[s, c.SHAPE_COUNT]),
                  np.int64(shape_i[s, c.SHAPE_FACES]), np.int64(shape_i[s, c.SHAPE_EDGES]))


@inline
def is_polytope(s):
    return s.kind == c.BOX or s.kind == c.HULL


@inline
def lifted(s, p):
    """A point or direction's end of the solid's frame, seen from the pair's origin."""
    return add(s.x, matvec(s.R, p))


@inline
def middle_of(s):
    """A point inside."""
    return lifted(s, s.size) if s.kind == c.HULL else s.x


@inner
def farthest_vertex(s, point_f, d):
    """The vertex of a polytope that is farthest along d; its own frame."""
    best, at = -np.inf, s.row
    for k in range(s.row, s.row + s.vertices):
        along = point_f[k, 0] * d[0] + point_f[k, 1] * d[1] + point_f[k, 2] * d[2]
        if along > best:
            best, at = along, k
    return row3(point_f, at, 0)


@inner
def farthest(s, point_f, d):
    """The point of the core that is farthest along d."""
    u = matTvec(s.R, d)
    if s.kind == c.SPHERE:
        return s.x
    if s.kind == c.BOX:
        p = (s.size[0] if u[0] >= 0.0 else -s.size[0], s.size[1] if u[1] >= 0.0 else -s.size[1],
             s.size[2] if u[2] >= 0.0 else -s.size[2])
    elif s.kind == c.HULL:
        p = farthest_vertex(s, point_f, u)
    else:
        end = s.size[1] if u[2] >= 0.0 else -s.size[1]
        p = (0.0, 0.0, end)
        if s.kind == c.CYLINDER:
            out = np.sqrt(u[0] * u[0] + u[1] * u[1])
            if out > 0.0:
                p = (s.size[0] * u[0] / out, s.size[0] * u[1] / out, end)
    return lifted(s, p)
