"""Nearest points of two convex solids that are apart or in each other.

Apart: `gjk.py`. Polytopes in each other: `separating_axes.py`. With a cylinder, the shortest way out is approached from
a direction: shift one solid along it until a small gap is left, and take the direction of the nearest points from
there. The gap along this direction is no smaller, so the depth decreases from turn to turn, to a local minimum. The
first direction is that of cylinders made so much thinner and shorter that the solids are apart: for light overlaps the
minimum is the smallest depth. For deeper ones the smallest of the minima from several directions is taken.
"""

import numpy as np

from bunraku.contact import contact_fields as c
from bunraku.contact.convex import Convex, farthest, is_polytope, middle_of
from bunraku.contact.gjk import distance
from bunraku.contact.nearest import across
from bunraku.contact.separating_axes import best_face, parting
from bunraku.jit import inline, inner
from bunraku.spatial.algebra import add, column_z, cross, dot, norm, scale, sub

TOUCHING = 1e-9
"""[m] At smaller distances the vector between nearest points has too few digits for a direction."""
BESIDE = 1e-6
"""[m] Up to here it has 6 to 9 digits, and the normals of faces and edges are tried: the one with this gap, but for"""
SAME_GAP = 1e-12
"""[m] rounding."""
TURNS = 60
APART = 1e-2
"""Gap that is left, as part of a cylinder's radius or length."""
STARTS = 12
LIGHT = 1e-3
"""Depth, as part of a cylinder's radius or length, up to which the first direction leads to the shortest way out."""
SETTLED = 1e-13
"""Part of that gap by which nearest points may be farther apart than the planes normal to the direction."""


@inline
def along(a, b, point_f, n):
    """Gap of the cores along n."""
    return dot(n, sub(farthest(a, point_f, scale(n, -1.0)), farthest(b, point_f, n)))


@inline
def thinner(s, part):
    """A cylinder without a part of its radius, all around."""
    if s.kind != c.CYLINDER:
        return s
    less = part * min(s.size[0], s.size[1])
    return Convex(s.kind, s.R, s.x, (s.size[0] - less, s.size[1] - less, 0.0), s.radius, s.row, s.vertices, s.faces,
                  s.edges)


@inner
def start_direction(k, a, b, point_f):
    """Direction k of those from which a way out is looked for; zero if there is none."""
    nothing = (0.0, 0.0, 0.0)
    if k < 4:  # cylinders made thinner until the solids are apart
        part = 0.05 if k == 0 else 0.25 if k == 1 else 0.6 if k == 2 else 0.999
        apart, v, _ = distance(thinner(a, part), thinner(b, part), point_f, nothing)
        return v if apart > TOUCHING else nothing
    d = sub(middle_of(a), middle_of(b))
    s = b if k < 7 or k == 11 else a
    if k < 10:
        if s.kind != c.CYLINDER:
            return nothing
        u = column_z(s.R)
        side = (k - 4) % 3  # its axis, both ways, and its radius towards the other solid, or any if that is on the axis
        if side < 2:
            return u if side == 0 else scale(u, -1.0)
        out = sub(d, scale(u, dot(d, u)))
        return out if norm(out) > TOUCHING else across(u)
    if k == 10:
        if a.kind == c.CYLINDER or a.kind == c.CAPSULE:
            n = cross(column_z(a.R), column_z(b.R))
            return n if dot(n, d) > 0.0 else scale(n, -1.0)
        if is_polytope(a):
            _, n = best_face(a, b, point_f)
            return scale(n, -1.0)
    return d


@inner
def shortest_from(start, a, b, point_f):
    """(gap, direction, point of a) of the way out that is approached from a direction."""
    n = scale(start, 1.0 / norm(start))
    gap, on_a = along(a, b, point_f, n), farthest(a, point_f, scale(n, -1.0))
    left, before = APART * min(b.size[0], b.size[1]), 0.0
    for _ in range(TURNS):
        shift = scale(n, left - gap)
        apart, v, p = distance(a, b, point_f, shift)
        if not apart > 0.0:
            break
        on_a = sub(p, shift)
        if apart <= left * (1.0 + SETTLED):
            break
        m = scale(v, 1.0 / apart)
        found = along(a, b, point_f, m)
        if not found > gap:
            break
        step = sub(m, n)
        length = norm(step)
        gap, n = found, m
        if length < before:  # turns come nearer by a constant factor: go to their limit, if that is better
            further = add(m, scale(step, length / (before - length)))
            further = scale(further, 1.0 / norm(further))
            found = along(a, b, point_f, further)
            if found > gap:
                gap, n = found, further
        before = length
    return gap, n, on_a


@inner
def round_way_out(a, b, point_f):
    """(gap, direction from b to a, point of a, point of b) of solids that overlap, b a cylinder."""
    gap, n, on_a = -np.inf, (0.0, 0.0, 1.0), a.x
    light = LIGHT * min(b.size[0], b.size[1])
    for k in range(STARTS):
        start = start_direction(k, a, b, point_f)
        if dot(start, start) > 0.0:
            found, m, x = shortest_from(start, a, b, point_f)
            if found > gap + TOUCHING:
                gap, n, on_a = found, m, x
            if gap > -light:
                break
    return gap, n, on_a, sub(on_a, scale(n, gap))


@inner
def nearest_points(a, b, point_f):
    """(gap, direction from b to a, point of a, point of b) of the cores."""
    apart, v, on_a = distance(a, b, point_f, (0.0, 0.0, 0.0))
    if apart > TOUCHING:
        if b.kind == c.CYLINDER and apart < LIGHT * min(b.size[0], b.size[1]):
            gap, n, on_a = shortest_from(v, a, b, point_f)
            return gap, n, on_a, sub(on_a, scale(n, gap))
        n = scale(v, 1.0 / apart)
        if apart < BESIDE and is_polytope(a) and is_polytope(b):  # normals of faces and edges, to all digits
            gap, m, p, q = parting(a, b, point_f)
            if gap > apart - SAME_GAP and dot(m, n) > 0.0:
                return gap, m, p, q
        return apart, n, on_a, sub(on_a, v)
    if b.kind == c.CYLINDER:
        return round_way_out(a, b, point_f)
    return parting(a, b, point_f)
