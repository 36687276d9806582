"""Contacts of solids above a height field: triangles over a grid, solid below.

Nodes lie on a grid in the field's frame; each cell is two triangles, parted by the diagonal from its node of smallest x
and y. Contacts:

    points, corners of boxes and hulls, points on the rims of cylinders: each above the triangle that it is over;
    spheres: the nearest point, and up to two more where the ball touches other triangles within (valleys);
    capsules: both ends as spheres; the nearest of the edges that the axis passes over between them.

Nothing touches beyond the border of the grid, nor do faces of boxes and hulls touch peaks between their corners.
"""

import numpy as np

from bunraku.algorithms.tree import row3
from bunraku.contact import contact_fields as c
from bunraku.contact.convex import convex_at, lifted, pick3
from bunraku.contact.face_points import put_no_place, put_place
from bunraku.contact.gjk import on_triangle
from bunraku.contact.nearest import RING
from bunraku.contact.separating_axes import segment_points
from bunraku.jit import inline, inner
from bunraku.spatial.algebra import add, cross, dot, matTvec, matvec, norm, scale, sub
from bunraku.spatial.scalar import width

OTHER = 0.995
"""Cosine of the angle between the normals of two contacts of a ball, above which they are one."""
BESIDE = 0.5
"""Part of a ball's radius up to which further contacts are looked for."""
AT_EDGE = 1e-6
"""Part of a field's size within which a contact is on an edge."""
ON_TRIANGLE = 1e-9
"""[rad] Angle up to which a normal is that of a triangle."""
SHORT = 1e-12
"""[m] At smaller distances of its centre from the surface, the ball's normal is that of the triangle."""


@inline
def corners_above(kind):
    """Whether a shape touches a height field with points that are fixed in it."""
    return kind != c.SPHERE and kind != c.CAPSULE


@inline
def node(s, i, j, point_f):
    """A node of the grid, in the field's frame. The numbers of nodes along x and y are `vertices` and `faces`."""
    n = i * s.faces + j
    return (s.size[0] * (2.0 * i / (s.vertices - 1) - 1.0), s.size[1] * (2.0 * j / (s.faces - 1) - 1.0),
            point_f[s.row + n // 3, n % 3])


@inline
def cell(x, half, count):
    """The cell along one axis that x is in, or nearest to."""
    return min(max(int(np.floor((x / half + 1.0) * 0.5 * (count - 1))), 0), count - 2)


@inline
def triangle(s, i, j, upper, point_f):
    """Corners of one of the triangles of a cell, anticlockwise seen from above."""
    if upper:
        return node(s, i, j, point_f), node(s, i + 1, j + 1, point_f), node(s, i, j + 1, point_f)
    return node(s, i, j, point_f), node(s, i + 1, j, point_f), node(s, i + 1, j + 1, point_f)


@inner
def ground_below(s, p, point_f):
    """(height of p above the plane of the triangle below it, its normal), own frame; inf beyond the border."""
    if not (abs(p[0]) <= s.size[0] and abs(p[1]) <= s.size[1]):
        return np.inf, (0.0, 0.0, 1.0)
    i, j = cell(p[0], s.size[0], s.vertices), cell(p[1], s.size[1], s.faces)
    low, high = node(s, i, j, point_f), node(s, i + 1, j + 1, point_f)
    x, y = (p[0] - low[0]) / (high[0] - low[0]), (p[1] - low[1]) / (high[1] - low[1])
    a, b, d = triangle(s, i, j, y > x, point_f)
    n = cross(sub(b, a), sub(d, a))
    n = scale(n, 1.0 / norm(n))
    return dot(n, sub(p, a)), n


@inner
def ball_above(s, x, r, rank, point_f, first, second):
    """(gap, normal) of a ball with centre x: of the nearest point (rank 0), or of the nearest triangle that it touches
    within, with another normal than the first ones. In the field's frame; the gap is inf if there is none."""
    height, below = ground_below(s, x, point_f)
    inside = height < 0.0
    far = (1.0 + BESIDE) * r
    if rank == 0 and height < np.inf:
        far = max(far, abs(height) / max(below[2], 1e-3))  # the point straight below is no farther
    elif rank == 0:
        far = np.inf
    i_low, i_high = 0, s.vertices - 2
    j_low, j_high = 0, s.faces - 2
    if far < np.inf:
        i_low, i_high = cell(x[0] - far, s.size[0], s.vertices), cell(x[0] + far, s.size[0], s.vertices)
        j_low, j_high = cell(x[1] - far, s.size[1], s.faces), cell(x[1] + far, s.size[1], s.faces)
    best, normal = np.inf, (0.0, 0.0, 1.0)
    for i in range(i_low, i_high + 1):
        for j in range(j_low, j_high + 1):
            for upper in range(2):
                a, b, d = triangle(s, i, j, upper == 1, point_f)
                a, b, d = sub(a, x), sub(b, x), sub(d, x)
                u, v, w = on_triangle(a, b, d)
                q = add(add(scale(a, u), scale(b, v)), scale(d, w))
                apart = norm(q)
                n = cross(sub(b, a), sub(d, a))
                n = scale(n, 1.0 / norm(n))
                face = u > 0.0 and v > 0.0 and w > 0.0
                if rank > 0 and (not face or dot(n, first) > OTHER or (rank > 1 and dot(n, second) > OTHER)
                                 or (dot(n, q) > 0.0) != inside):
                    continue
                if apart < best:
                    best = apart
                    normal = n if face or apart < SHORT else scale(q, (1.0 if inside else -1.0) / apart)
    if not best < np.inf:
        return np.inf, normal
    return (best if not inside else -best) - r, normal


@inner
def put_ball(s, x, r, origin, point_f, found, k, slots, w):
    """Contacts of a ball, x its centre in the field's frame. Returns the smallest gap."""
    gap, n = ball_above(s, x, r, 0, point_f, x, x)
    put_above(s, x, r, gap, n, origin, found, k, w)
    if slots == 1 or gap > BESIDE * r:
        return gap
    other, m = ball_above(s, x, r, 1, point_f, n, n)
    put_above(s, x, r, other, m, origin, found, k + 1, w)
    if other < np.inf:
        third, o = ball_above(s, x, r, 2, point_f, n, m)
        put_above(s, x, r, third, o, origin, found, k + 2, w)
    return gap


@inline
def put_above(s, x, r, gap, n, origin, found, k, w):
    """A contact of a ball; x, n in the field's frame."""
    if gap < np.inf:
        put_place(found, k, w, gap, matvec(s.R, n), add(origin, matvec(s.R, sub(x, scale(n, r + 0.5 * gap)))))


@inner
def axis_above(s, p, q, r, gap, origin, point_f, found, k, w):
    """The contact of a capsule between its ends p and q with the nearest edge of the field."""
    d = sub(q, p)
    far = max(gap, 0.0) + 2.0 * r
    i_low = cell(min(p[0], q[0]) - far, s.size[0], s.vertices)
    i_high = cell(max(p[0], q[0]) + far, s.size[0], s.vertices)
    j_low = cell(min(p[1], q[1]) - far, s.size[1], s.faces)
    j_high = cell(max(p[1], q[1]) + far, s.size[1], s.faces)
    best, on_axis, on_edge = np.inf, p, p
    for i in range(i_low, i_high + 2):
        for j in range(j_low, j_high + 2):
            a = node(s, i, j, point_f)
            for e in range(3):
                i_to, j_to = i + (1 if e != 1 else 0), j + (1 if e != 0 else 0)
                if i_to <= s.vertices - 1 and j_to <= s.faces - 1:
                    edge = sub(node(s, i_to, j_to, point_f), a)
                    n = cross(d, edge)
                    if dot(n, n) > 1e-16 * dot(d, d) * dot(edge, edge):
                        x, y = segment_points(p, d, a, edge)
                        apart = norm(sub(x, y))
                        if apart < best:
                            best, on_axis, on_edge = apart, x, y
    part = dot(sub(on_axis, p), d) / max(dot(d, d), 1e-300)
    if not (best < np.inf and part > 1e-9 and part < 1.0 - 1e-9):
        return
    height, below = ground_below(s, on_axis, point_f)
    side = -1.0 if height < 0.0 else 1.0
    n = below if best < SHORT else scale(sub(on_axis, on_edge), side / best)
    if n[2] > 0.0:
        put_above(s, on_axis, r, side * best - r, n, origin, found, k, w)


@inner
def fixed_point(kind, size, row, i, point_f):
    """Point i of a shape, that touches fields; its own frame."""
    if kind == c.BOX:
        return (size[0] * (2 * (i & 1) - 1), size[1] * ((i & 2) - 1), size[2] * ((i & 4) // 2 - 1))
    if kind == c.CYLINDER:
        k = i % c.RIM
        return size[0] * RING[k][0], size[0] * RING[k][1], size[1] if i < c.RIM else -size[1]
    return row3(point_f, row + i, 0)


@inner
def field_feature(shape_i, shape_f, point_f, places, shape, x, n):
    """(kind, axis) of the feature of a field with the normal n at x: a triangle, an edge or a node."""
    s = convex_at(shape, (0.0, 0.0, 0.0), shape_i, shape_f, places, 0)
    p, u = matTvec(s.R, sub(x, s.x)), matTvec(s.R, n)
    near = AT_EDGE * shape_f[shape, c.SHAPE_BOUND]
    i_low, j_low = cell(p[0] - near, s.size[0], s.vertices), cell(p[1] - near, s.size[1], s.faces)
    i_high, j_high = cell(p[0] + near, s.size[0], s.vertices), cell(p[1] + near, s.size[1], s.faces)
    kind, axis = c.POINT, n
    for i in range(i_low, i_high + 1):
        for j in range(j_low, j_high + 1):
            for upper in range(2):
                a, b, d = triangle(s, i, j, upper == 1, point_f)
                m = cross(sub(b, a), sub(d, a))
                m = scale(m, 1.0 / norm(m))
                if norm(sub(m, u)) < ON_TRIANGLE and abs(dot(m, sub(p, a))) < near:
                    return c.FACE, matvec(s.R, m)
                for side in range(3):
                    one, other = (a, b) if side == 0 else (b, d) if side == 1 else (d, a)
                    e = sub(other, one)
                    length = norm(e)
                    e, r = scale(e, 1.0 / length), sub(p, one)
                    along = dot(r, e)
                    if along > near and along < length - near and norm(sub(r, scale(e, along))) < near:
                        kind, axis = c.LINE, matvec(s.R, e)
    return kind, axis


@inner
def above_field(shape_i, shape_f, point_f, places, one, other, k, count, found):
    """Contacts of a solid and a height field, one state after the other."""
    for w in range(width(found)):
        origin = pick3(places, c.PLACE * other + c.PLACE_ORIGIN, w)
        a, s = (convex_at(one, origin, shape_i, shape_f, places, w),
                convex_at(other, origin, shape_i, shape_f, places, w))
        for i in range(count):
            put_no_place(found, k + i, w, origin)
        if not abs(dot(a.x, a.x) + a.R[0] + a.R[4] + a.R[8] + s.R[0] + s.R[4] + s.R[8]) < np.inf:
            put_place(found, k, w, np.nan, a.x, a.x)
        elif a.kind == c.SPHERE:
            put_ball(s, matTvec(s.R, a.x), a.radius, origin, point_f, found, k, count, w)
        elif a.kind == c.CAPSULE:
            p = matTvec(s.R, lifted(a, (0.0, 0.0, -a.size[1])))
            q = matTvec(s.R, lifted(a, (0.0, 0.0, a.size[1])))
            gap = put_ball(s, p, a.radius, origin, point_f, found, k + 1, 1, w)
            gap = min(gap, put_ball(s, q, a.radius, origin, point_f, found, k + 2, 1, w))
            axis_above(s, p, q, a.radius, gap, origin, point_f, found, k, w)
        else:
            for i in range(count):
                x = matTvec(s.R, lifted(a, fixed_point(a.kind, a.size, a.row, i, point_f)))
                gap, n = ground_below(s, x, point_f)
                put_above(s, x, 0.0, gap, n, origin, found, k + i, w)
