"""How far polytopes are in each other, by the axes along which they may part.

Two convex polytopes part along the normal of a face, or along the common perpendicular of two edges; the axis with the
smallest overlap is the shortest way out. Edges count only if their perpendicular is between the normals of the faces on
both sides: then they are the outermost points along it [Gregorius, The separating axis test (2013)]. A segment (axis of
a capsule) is an edge without faces, a point (centre of a sphere) has neither.

Cost: faces times vertices, edges times edges; edges whose faces all look away from the other solid are left out.
"""

import numpy as np

from bunraku.algorithms.tree import row3
from bunraku.contact import contact_fields as c
from bunraku.contact.convex import farthest, is_polytope, lifted, middle_of
from bunraku.jit import inline, inner
from bunraku.spatial.algebra import add, cross, dot, matTvec, matvec, scale, sub

FACE_FIRST = 1e-9
"""[m] By so much an axis of two edges must be better than that of a face: edges of flat contacts are noise."""
PARALLEL = 1e-12
"""Squared sine of the angle between edges, below which they have no common perpendicular."""


@inner
def best_face(s, other, point_f):
    """(gap, outward normal) along the normal of a polytope's face beyond which the other solid is farthest out; the
    first of them if several are equal but for rounding."""
    best, normal = -np.inf, (0.0, 0.0, 1.0)
    for k in range(s.faces):
        o = s.row + s.vertices + c.FACE_ROWS * k
        n = matvec(s.R, row3(point_f, o, 0))
        gap = dot(n, sub(farthest(other, point_f, scale(n, -1.0)), s.x)) - point_f[o + 1, 0]
        if gap > best + (FACE_FIRST if k > 0 else 0.0):
            best, normal = gap, n
    return best, normal


@inline
def segment_points(a, d, b, e):
    """Nearest points of the lines a + s d and b + t e, 0 <= s, t <= 1, which are not parallel."""
    r = sub(a, b)
    dd, ee, de, dr, er = dot(d, d), dot(e, e), dot(d, e), dot(d, r), dot(e, r)
    s = min(max((de * er - dr * ee) / (dd * ee - de * de), 0.0), 1.0)
    t = min(max((de * s + er) / ee, 0.0), 1.0)
    return add(a, scale(d, s)), add(b, scale(e, t))


@inner
def best_edges(a, b, point_f, best):
    """(gap, axis from b to a, points of a and b) of the edges that part the solids best, if better than `best`."""
    n = (0.0, 0.0, 0.0)
    on_a, on_b, gap = n, n, best
    count = a.edges if is_polytope(a) else 1
    into, middle = matTvec(b.R, sub(a.x, b.x)), matTvec(b.R, sub(middle_of(b), b.x))
    for i in range(count):
        o = a.row + a.vertices + c.FACE_ROWS * a.faces + c.EDGE_ROWS * i
        p, q = (0.0, 0.0, -a.size[1]), (0.0, 0.0, a.size[1])
        one = other = (0.0, 0.0, 0.0)
        if is_polytope(a):
            p, q = row3(point_f, o, 0), row3(point_f, o + 1, 0)
            one = matTvec(b.R, matvec(a.R, row3(point_f, o + 2, 0)))
            other = matTvec(b.R, matvec(a.R, row3(point_f, o + 3, 0)))
        p, q = add(into, matTvec(b.R, matvec(a.R, p))), add(into, matTvec(b.R, matvec(a.R, q)))
        d, to = sub(q, p), sub(p, middle)
        if is_polytope(a) and gap < 0.0 and dot(one, to) > -gap and dot(other, to) > -gap:
            continue  # along every axis between these normals the middle of b is deeper in a than the best gap
        for j in range(b.edges):
            r = b.row + b.vertices + c.FACE_ROWS * b.faces + c.EDGE_ROWS * j
            m, k = row3(point_f, r + 2, 0), row3(point_f, r + 3, 0)
            if dot(d, m) * dot(d, k) >= 0.0:  # perpendiculars to d are not between the faces of b
                continue
            u = row3(point_f, r, 0)
            e = sub(row3(point_f, r + 1, 0), u)
            if is_polytope(a) and dot(e, one) * dot(e, other) >= 0.0:
                continue
            axis = cross(d, e)
            length2 = dot(axis, axis)
            if length2 <= PARALLEL * dot(d, d) * dot(e, e):
                continue
            side = dot(axis, m) + dot(axis, k)
            axis = scale(axis, (1.0 if side > 0.0 else -1.0) / np.sqrt(length2))
            if is_polytope(a) and dot(axis, one) + dot(axis, other) >= 0.0:  # a would be on the same side
                continue
            apart = dot(axis, sub(p, u))
            if apart > gap:
                gap, n = apart, axis
                on_a, on_b = segment_points(p, d, u, e)
    return gap, matvec(b.R, n), lifted(b, on_a), lifted(b, on_b)


@inner
def parting(a, b, point_f):
    """(gap, axis from b to a, point of a, point of b) of a polytope b and a polytope, segment or point a."""
    gap, n = best_face(b, a, point_f)
    on_a = farthest(a, point_f, scale(n, -1.0))
    if is_polytope(a):
        other, m = best_face(a, b, point_f)
        if other > gap + FACE_FIRST:
            gap, n = other, scale(m, -1.0)
            on_b = farthest(b, point_f, n)
            on_a = add(on_b, scale(n, gap))
    on_b = sub(on_a, scale(n, gap))
    if a.kind != c.SPHERE:
        apart, m, p, q = best_edges(a, b, point_f, gap + FACE_FIRST)
        if apart > gap + FACE_FIRST:
            gap, n, on_a, on_b = apart, m, p, q
    return gap, n, on_a, on_b
