"""Contacts of two convex solids: the nearest points, and the corners of the part that two flat features share.

A flat feature is a face of a polytope, the end of a cylinder (RIM points of its rim), or a line: the axis of a capsule,
the side of a cylinder. Where the direction of the nearest points is normal to a feature, or nearly so, these are in
contact:

    corners of a within the feature of b, corners of b within that of a, crossings of their edges.

Each has a place of its own, by the number of its corner (or of the corner where a's edge begins; a's edge may enter and
leave), so that contacts keep their identity while solids move. They appear and vanish at the edges, not in the middle
of a face. The nearest points are left out if a corner is as near.
"""

from typing import NamedTuple

import numpy as np

from bunraku.algorithms.tree import row3
from bunraku.contact import contact_fields as c
from bunraku.contact.convex import Convex, convex_at, farthest_vertex, is_polytope, lifted, pick3
from bunraku.contact.nearest import RING
from bunraku.contact.separating_axes import FACE_FIRST
from bunraku.contact.way_out import along, nearest_points
from bunraku.jit import inline, inner
from bunraku.spatial.algebra import add, column_z, cross, dot, matTvec, matvec, norm, scale, sub
from bunraku.spatial.scalar import pick, put_at, width

SNAP = 1e-6
"""[rad] A direction that is closer to the normal of a feature is this normal, if the gap along it is the same."""
ON_FACE = 1e-2
"""[rad] Up to here features touch with corners and crossings; beyond, solids touch at the nearest points."""
STEEP = 0.1
"""Cosine of the angle between a feature and the other's normal, below which it has no contacts of its own."""
INSIDE = 1e-6
"""Part of the smaller solid by which a corner may be outside of a feature."""
SAME = 1e-4
"""The same for contacts that are one; lines that are side by side."""
NEARER = 3.0 * FACE_FIRST
"""[m] By so much the nearest points must be nearer than a corner. By so much they may be farther apart than the gap
along the normal that their direction is snapped to."""
EXACT = 1e-9
"""Cosine by which a face's normal must be closer to a direction than that of the faces before it."""
LISTED = 60  # corners of a face that can be noted as bits


class Flat(NamedTuple):
    """A flat feature of a solid; a named tuple of numbers."""

    corners: int    # 2: a line
    row: int        # loop of a face; of a cylinder's end: 1 upper, -1 lower
    normal: tuple   # outwards
    point: tuple    # its first corner
    end: tuple      # its second


@inner
def flat_towards(s, point_f, d):
    """The feature of a solid whose normal is closest to d, of those that reach out farthest along d."""
    if is_polytope(s):
        u = matTvec(s.R, d)
        best, at = -np.inf, s.row + s.vertices
        out = dot(u, farthest_vertex(s, point_f, u)) - NEARER
        for k in range(s.faces):
            o = s.row + s.vertices + c.FACE_ROWS * k
            cosine = dot(row3(point_f, o, 0), u)
            if cosine > best + EXACT and reaches_to(s, o, u, out, point_f):
                best, at = cosine, o
        row = s.row + int(point_f[at + 1, 1])
        return Flat(int(point_f[at + 1, 2]), row, matvec(s.R, row3(point_f, at, 0)), lifted(s, row3(point_f, row, 0)),
                    lifted(s, row3(point_f, row + c.LOOP_ROWS, 0)))
    axis = column_z(s.R)
    if s.kind == c.CAPSULE:
        return Flat(2, 0, d, sub(s.x, scale(axis, s.size[1])), add(s.x, scale(axis, s.size[1])))
    u = matTvec(s.R, d)
    if u[2] * u[2] > 0.5:
        side = 1 if u[2] > 0.0 else -1
        return Flat(c.RIM, side, scale(axis, float(side)), rim_point(s, 0, side), rim_point(s, 1, side))
    out = np.sqrt(u[0] * u[0] + u[1] * u[1])
    x, y = u[0] / out, u[1] / out
    return Flat(2, 0, matvec(s.R, (x, y, 0.0)), lifted(s, (s.size[0] * x, s.size[0] * y, -s.size[1])),
                lifted(s, (s.size[0] * x, s.size[0] * y, s.size[1])))


@inline
def reaches_to(s, face, u, out, point_f):
    """Whether a corner of a face is as far along u as `out`; the solid's own frame."""
    first, most = s.row + int(point_f[face + 1, 1]), -np.inf
    for i in range(int(point_f[face + 1, 2])):
        most = max(most, dot(u, row3(point_f, first + c.LOOP_ROWS * i, 0)))
    return most >= out


@inline
def rim_point(s, i, side):
    """Point i of a cylinder's rim, anticlockwise seen from outside."""
    k = i if side > 0 or i == 0 else c.RIM - i
    return lifted(s, (s.size[0] * RING[k][0], s.size[0] * RING[k][1], s.size[1] * side))


@inner
def corner(s, f, i, point_f):
    """Corner i of a feature; beyond the last one the first again."""
    if f.corners == 2:
        return f.point if i == 0 else f.end
    k = i if i < f.corners else 0
    if s.kind == c.CYLINDER:
        return rim_point(s, k, f.row)
    return lifted(s, row3(point_f, f.row + c.LOOP_ROWS * k, 0))


@inline
def number(s, f, i, point_f):
    """Number of the contact of corner i."""
    return int(point_f[f.row + c.LOOP_ROWS * i + 1, 0]) if is_polytope(s) else i


@inner
def within(s, f, p, n, point_f, room):
    """Whether the point p, seen along n, is in a feature whose outward normal is along n."""
    if f.corners == 2:
        d = sub(f.end, f.point)
        d = sub(d, scale(n, dot(n, d)))
        length, r = norm(d), sub(p, f.point)
        if not length > room:
            return False
        at, off = dot(r, d) / length, dot(n, cross(d, r)) / length
        return at >= -room and at <= length + room and abs(off) <= SAME / INSIDE * room
    if s.kind == c.CYLINDER:
        r = sub(p, s.x)
        r = sub(r, scale(f.normal, dot(n, r) / dot(n, f.normal)))  # approximately: n is close to the axis
        r = sub(r, scale(f.normal, dot(f.normal, r)))
        return norm(r) <= s.size[0] + room
    before = f.point
    for i in range(f.corners):
        after = corner(s, f, i + 1, point_f)
        d = sub(after, before)
        length = norm(d)
        if dot(n, cross(d, sub(p, before))) < -room * length:
            return False
        before = after
    return True


@inline
def surface(f, p, n):
    """The point of a feature at p, seen along n."""
    if f.corners == 2:
        d = sub(f.end, f.point)
        flat = sub(d, scale(n, dot(n, d)))
        t = dot(flat, sub(p, f.point)) / max(dot(flat, flat), 1e-300)
        return add(f.point, scale(d, min(max(t, 0.0), 1.0)))
    return add(p, scale(n, dot(f.normal, sub(f.point, p)) / dot(f.normal, n)))


@inline
def put_place(found, k, w, gap, n, point):
    o = c.FOUND * k
    put_at(found, o + c.FOUND_GAP, w, gap)
    for i in range(3):
        put_at(found, o + c.FOUND_NORMAL + i, w, n[i])
        put_at(found, o + c.FOUND_POINT + i, w, point[i])


@inline
def put_no_place(found, k, w, origin):
    """No contact in place w; others in the lane may have one, so that numbers must be finite."""
    put_place(found, k, w, np.inf, (0.0, 0.0, 1.0), origin)


@inner
def put_feature_contact(found, k, w, a, b, fa, fb, p, n, gap, first, origin, same):
    """A contact of two features at p, if its place is free, and not that of the nearest points. Returns its gap."""
    if pick(found, c.FOUND * k + c.FOUND_GAP, w) < np.inf:
        return np.inf
    on_a, on_b = surface(fa, p, n), surface(fb, p, n)
    apart = max(dot(n, sub(on_a, on_b)) - a.radius - b.radius, gap)
    x = sub(on_a, scale(n, a.radius + 0.5 * apart))
    if same > 0.0 and norm(sub(x, first)) < same:
        return np.inf
    put_place(found, k, w, apart, n, add(x, origin))
    return apart


@inner
def feature_contacts(found, k, w, a, b, fa, fb, n, gap, first, origin, point_f, corners_a, corners_b, reach, same):
    """Contacts of two features, the direction n between them. Returns the smallest gap."""
    least, room = np.inf, INSIDE * reach
    down = scale(n, -1.0)
    in_a, in_b = 0, 0
    for i in range(fa.corners):
        p = corner(a, fa, i, point_f)
        if within(b, fb, p, n, point_f, room):
            in_b |= 1 << min(i, LISTED)
            place = k + 1 + number(a, fa, i, point_f)
            least = min(least, put_feature_contact(found, place, w, a, b, fa, fb, p, n, gap, first, origin, same))
    for j in range(fb.corners):
        p = corner(b, fb, j, point_f)
        if within(a, fa, p, down, point_f, room):
            taken = False
            for i in range(min(fa.corners, LISTED)):
                if in_b >> i & 1:
                    d = sub(p, corner(a, fa, i, point_f))
                    taken = taken or norm(sub(d, scale(n, dot(n, d)))) < SAME * reach
            in_a |= 1 << min(j, LISTED)
            if not taken:
                place = k + 1 + corners_a + number(b, fb, j, point_f)
                least = min(least, put_feature_contact(found, place, w, a, b, fa, fb, p, n, gap, first, origin, same))
    for i in range(fa.corners if fa.corners > 2 else 1):
        p = corner(a, fa, i, point_f)
        d = sub(corner(a, fa, i + 1, point_f), p)
        for j in range(fb.corners if fb.corners > 2 else 1):
            q = corner(b, fb, j, point_f)
            e = sub(corner(b, fb, j + 1, point_f), q)
            turn = dot(n, cross(d, e))
            length_d, length_e = norm(d), norm(e)
            if abs(turn) <= 1e-9 * length_d * length_e:
                continue
            s, t = dot(n, cross(sub(q, p), e)) / turn, dot(n, cross(sub(q, p), d)) / turn
            if s < 0.0 or s > 1.0 or t < 0.0 or t > 1.0:
                continue
            near_d, near_e = SAME * reach / length_d, SAME * reach / length_e
            i_next, j_next = (i + 1) % fa.corners, (j + 1) % fb.corners
            if ((s < near_d and in_b >> min(i, LISTED) & 1) or (s > 1.0 - near_d and in_b >> min(i_next, LISTED) & 1)
                    or (t < near_e and in_a >> min(j, LISTED) & 1)
                    or (t > 1.0 - near_e and in_a >> min(j_next, LISTED) & 1)):
                continue
            place = k + 1 + corners_a + corners_b + 2 * number(a, fa, i, point_f) + (0 if turn < 0.0 else 1)
            least = min(least, put_feature_contact(found, place, w, a, b, fa, fb, add(p, scale(d, s)), n, gap, first,
                                                   origin, same))
    return least


@inner
def convex_in_place(a, b, origin, corners_a, corners_b, reach, point_f, found, k, w):
    """Contacts of two solids in place w of the states."""
    if not abs(dot(a.x, a.x) + a.R[0] + a.R[4] + a.R[8] + b.R[0] + b.R[4] + b.R[8] + dot(origin, origin)) < np.inf:
        put_at(found, c.FOUND * k + c.FOUND_GAP, w, np.nan)
        return
    apart, n, on_a, _ = nearest_points(a, b, point_f)
    least = np.inf
    if corners_a > 1 and corners_b > 1:
        fa, fb = flat_towards(a, point_f, scale(n, -1.0)), flat_towards(b, point_f, n)
        normal, off = common_normal(a, b, fa, fb, n, point_f)
        snapped = False
        if off < SNAP:
            flat = along(a, b, point_f, normal)
            snapped = flat >= apart - NEARER
            if snapped:
                n, apart = normal, flat
        gap = apart - a.radius - b.radius
        if off < ON_FACE and -dot(fa.normal, normal) > STEEP and dot(fb.normal, normal) > STEEP:
            first = sub(on_a, scale(n, a.radius + 0.5 * gap))
            least = feature_contacts(found, k, w, a, b, fa, fb, normal, gap, first, origin, point_f, corners_a,
                                     corners_b, reach, 0.0 if snapped else SAME * reach)
        if not snapped:
            least = np.inf
    gap = apart - a.radius - b.radius
    if not least <= gap + NEARER:
        put_place(found, k, w, gap, n, add(sub(on_a, scale(n, a.radius + 0.5 * gap)), origin))


@inner
def common_normal(a, b, fa, fb, n, point_f):
    """(normal, sine of its angle to n) of the feature that the direction n belongs to: the closest one; if n is that
    of both, the one along which the solids are farther apart. Two lines have the one at right angles to both, if n is
    close to it."""
    if fa.corners == 2 and fb.corners == 2:
        across = cross(sub(fa.end, fa.point), sub(fb.end, fb.point))
        across = scale(across, (1.0 if dot(n, across) > 0.0 else -1.0) / max(norm(across), 1e-300))
        farther = dot(n, across) > 0.5 and along(a, b, point_f, across) > along(a, b, point_f, n)
        return (across, 0.0) if farther else (n, 0.0)
    of_a = scale(fa.normal, -1.0)
    off_a = norm(cross(n, of_a)) if fa.corners > 2 and dot(n, of_a) > 0.0 else 1.0
    off_b = norm(cross(n, fb.normal)) if fb.corners > 2 and dot(n, fb.normal) > 0.0 else 1.0
    from_a = off_a < off_b
    if off_a < SNAP and off_b < SNAP:
        from_a = along(a, b, point_f, of_a) > along(a, b, point_f, fb.normal) + FACE_FIRST
    return (of_a, off_a) if from_a else (fb.normal, off_b)


@inner
def convex_pair(shape_i, shape_f, point_f, places, one, other, k, count, found):
    """Contacts of two convex solids, one state after the other."""
    corners_a, corners_b = np.int64(shape_i[one, c.SHAPE_CORNERS]), np.int64(shape_i[other, c.SHAPE_CORNERS])
    reach = min(shape_f[one, c.SHAPE_BOUND], shape_f[other, c.SHAPE_BOUND])
    for w in range(width(found)):
        origin = pick3(places, c.PLACE * other + c.PLACE_ORIGIN, w)
        for i in range(count):
            put_no_place(found, k + i, w, origin)
        convex_in_place(convex_at(one, origin, shape_i, shape_f, places, w),
                        convex_at(other, origin, shape_i, shape_f, places, w), origin, corners_a, corners_b, reach,
                        point_f, found, k, w)


@inner
def points_and_solid(shape_i, shape_f, point_f, places, one, other, k, count, found):
    """A contact for each point of shape `one` and a hull or cylinder."""
    reach, still = shape_f[other, c.SHAPE_BOUND], (0.0, 0.0, 0.0)
    for w in range(width(found)):
        origin = pick3(places, c.PLACE * other + c.PLACE_ORIGIN, w)
        points, solid = (convex_at(one, origin, shape_i, shape_f, places, w),
                         convex_at(other, origin, shape_i, shape_f, places, w))
        for i in range(count):
            x = lifted(points, row3(point_f, points.row + i, 0))
            put_no_place(found, k + i, w, origin)
            convex_in_place(Convex(c.SPHERE, points.R, x, still, 0.0, 0, 0, 0, 0), solid, origin, 1, 1, reach, point_f,
                            found, k + i, w)
