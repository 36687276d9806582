"""Rays: the nearest surface of any shape along a ray.

Idea: a convex solid is met on an interval of the ray, the intersection of those of its slabs, balls or half-spaces; a
ray that begins inside meets the surface from within. Height fields are walked cell by cell, two triangles each. Cost
O(shapes) for a ray, with a dozen operations for a shape whose bounding sphere it misses; a height field O(cells on the
way). Points have no surface and are never met. Rays are given by origin o and direction d; distances are multiples
of d.
"""

import math

from bunraku.algorithms.tree import row3
from bunraku.contact import contact_fields as c
from bunraku.jit import inline, inner
from bunraku.spatial.algebra import add, cross, dot, load3, load9, matvec, norm, scale, sub
from bunraku.tolerances import RAY_EDGE

HIT_DISTANCE, HIT_SHAPE, HIT_NORMAL, HIT = 0, 1, 2, 5
"""Of a ray: multiple of d (inf: nothing is met); number of the shape, -1 for none; outward normal, world axes."""
RAY = 6  # origin, direction


@inline
def back(R, x):
    """R^T x"""
    return (R[0] * x[0] + R[3] * x[1] + R[6] * x[2], R[1] * x[0] + R[4] * x[1] + R[7] * x[2],
            R[2] * x[0] + R[5] * x[1] + R[8] * x[2])


@inline
def slab(o, d, half):
    """Where |o + t d| <= half, in one direction: (enter, leave), enter > leave if nowhere."""
    if d == 0.0:
        if abs(o) <= half:
            return -math.inf, math.inf
        return math.inf, -math.inf
    one, other = (-half - o) / d, (half - o) / d
    return min(one, other), max(one, other)


@inline
def ball(o, d, r):
    """Where |o + t d| <= r. Of the component zero of both, an infinite cylinder."""
    a = dot(d, d)
    if a == 0.0:
        if dot(o, o) <= r * r:
            return -math.inf, math.inf
        return math.inf, -math.inf
    middle = -dot(o, d) / a
    nearest = add(o, scale(d, middle))
    rest = r * r - dot(nearest, nearest)
    if rest < 0.0:
        return math.inf, -math.inf
    half = math.sqrt(rest / a)
    return middle - half, middle + half


@inline
def both(one, other):
    return max(one[0], other[0]), min(one[1], other[1])


@inline
def either(one, other):
    """The interval of two that overlap, or of the one that is met at all."""
    if one[0] > one[1]:
        return other
    if other[0] > other[1]:
        return one
    return min(one[0], other[0]), max(one[1], other[1])


@inline
def polytope_interval(shape_i, point_f, k, o, d):
    first = shape_i[k, c.SHAPE_POINT] + shape_i[k, c.SHAPE_COUNT]
    enter, leave = -math.inf, math.inf
    for face in range(shape_i[k, c.SHAPE_FACES]):
        row = first + c.FACE_ROWS * face
        normal = row3(point_f, row, 0)
        gap, rate = dot(normal, o) - point_f[row + 1, 0], dot(normal, d)
        if rate < 0.0:
            enter = max(enter, -gap / rate)
        elif rate > 0.0:
            leave = min(leave, -gap / rate)
        elif gap > 0.0:
            leave = -math.inf
    return enter, leave


@inner
def interval(shape_i, shape_f, point_f, k, o, d):
    """Where the ray, in the frame of shape k, is within it."""
    kind, size = shape_i[k, c.SHAPE_KIND], row3(shape_f, k, c.SHAPE_SIZE)
    if kind == c.SPHERE:
        return ball(o, d, size[0])
    if kind == c.BOX:
        return both(both(slab(o[0], d[0], size[0]), slab(o[1], d[1], size[1])), slab(o[2], d[2], size[2]))
    if kind == c.CYLINDER or kind == c.CAPSULE:
        round_part = ball((o[0], o[1], 0.0), (d[0], d[1], 0.0), size[0])
        middle = both(round_part, slab(o[2], d[2], size[1]))
        if kind == c.CYLINDER:
            return middle
        ends = either(ball((o[0], o[1], o[2] - size[1]), d, size[0]), ball((o[0], o[1], o[2] + size[1]), d, size[0]))
        return either(middle, ends)
    if kind == c.HULL:
        return polytope_interval(shape_i, point_f, k, o, d)
    if kind == c.PLANE:
        if d[2] == 0.0:
            return math.inf, -math.inf
        at = -o[2] / d[2]
        if d[2] < 0.0:
            return at, math.inf
        return -math.inf, at
    return math.inf, -math.inf


@inline
def height(point_f, first, count, i, j):
    at = i * count + j
    return point_f[first + at // 3, at % 3]


@inner
def field_hit(shape_i, shape_f, point_f, k, o, d, least, most):
    """(distance, normal) at which the ray meets the surface of a height field, between least and most."""
    nx, ny, first = shape_i[k, c.SHAPE_COUNT], shape_i[k, c.SHAPE_FACES], shape_i[k, c.SHAPE_POINT]
    half = row3(shape_f, k, c.SHAPE_SIZE)
    to_u, to_v = 0.5 * (nx - 1) / half[0], 0.5 * (ny - 1) / half[1]
    ou, ov, du, dv = (o[0] + half[0]) * to_u, (o[1] + half[1]) * to_v, d[0] * to_u, d[1] * to_v
    inside = both(slab(o[0], d[0], half[0]), slab(o[1], d[1], half[1]))
    t, last = max(inside[0], least), min(inside[1], most)
    nothing = math.inf, (0.0, 0.0, 1.0)
    if not t <= last:
        return nothing
    i = min(max(math.floor(ou + t * du), 0), nx - 2)
    j = min(max(math.floor(ov + t * dv), 0), ny - 2)
    for _ in range(nx + ny + 2):
        next_u = ((i + 1 if du > 0.0 else i) - ou) / du if du != 0.0 else math.inf
        next_v = ((j + 1 if dv > 0.0 else j) - ov) / dv if dv != 0.0 else math.inf
        end = min(next_u, next_v, last)
        h00, h11 = height(point_f, first, ny, i, j), height(point_f, first, ny, i + 1, j + 1)
        found, normal = nothing
        for lower in range(2):
            if lower == 1:
                h = height(point_f, first, ny, i + 1, j)
                along_u, along_v = h - h00, h11 - h
            else:
                h = height(point_f, first, ny, i, j + 1)
                along_u, along_v = h11 - h, h - h00
            gap = o[2] - h00 - along_u * (ou - i) - along_v * (ov - j)
            rate = d[2] - along_u * du - along_v * dv
            if rate != 0.0:
                at = -gap / rate
                u, v = ou + at * du - i, ov + at * dv - j
                fits = (u - v >= -RAY_EDGE) if lower == 1 else (v - u >= -RAY_EDGE)
                if (fits and -RAY_EDGE <= u <= 1.0 + RAY_EDGE and -RAY_EDGE <= v <= 1.0 + RAY_EDGE
                        and least <= at <= most and at < found):
                    found, normal = at, (-along_u * to_u, -along_v * to_v, 1.0)
        if found < math.inf:
            return found, scale(normal, 1.0 / norm(normal))
        if end >= last:
            return nothing
        if next_u <= next_v:
            i += 1 if du > 0.0 else -1
        else:
            j += 1 if dv > 0.0 else -1
        if i < 0 or j < 0 or i > nx - 2 or j > ny - 2:
            return nothing
    return nothing


@inner
def normal_at(shape_i, shape_f, point_f, k, p):
    """Outward normal of shape k at a point of its surface, in its frame."""
    kind, size = shape_i[k, c.SHAPE_KIND], row3(shape_f, k, c.SHAPE_SIZE)
    best, normal = -math.inf, (0.0, 0.0, 1.0)
    if kind == c.SPHERE:
        normal = p
    elif kind == c.CAPSULE:
        normal = (p[0], p[1], p[2] - min(max(p[2], -size[1]), size[1]))
    elif kind == c.CYLINDER:
        radius = math.sqrt(p[0] * p[0] + p[1] * p[1])
        if radius - size[0] > abs(p[2]) - size[1]:
            normal = (p[0], p[1], 0.0)
        else:
            normal = (0.0, 0.0, p[2])
    elif kind == c.BOX:
        x, y, z = abs(p[0]) - size[0], abs(p[1]) - size[1], abs(p[2]) - size[2]
        if x >= y and x >= z:
            normal = (p[0], 0.0, 0.0)
        elif y >= z:
            normal = (0.0, p[1], 0.0)
        else:
            normal = (0.0, 0.0, p[2])
    elif kind == c.HULL:
        first = shape_i[k, c.SHAPE_POINT] + shape_i[k, c.SHAPE_COUNT]
        for face in range(shape_i[k, c.SHAPE_FACES]):
            row = first + c.FACE_ROWS * face
            outward = row3(point_f, row, 0)
            gap = dot(outward, p) - point_f[row + 1, 0]
            if gap > best:
                best, normal = gap, outward
    length = norm(normal)
    return scale(normal, 1.0 / length) if length > 0.0 else (0.0, 0.0, 1.0)


@inner
def cast(shape_i, shape_f, point_f, places, ignored, o, d, most):
    """(distance, shape, normal) of what a ray of the world meets first within `most`. ignored (shapes): 1: not met."""
    nearest, met, normal = math.inf, -1, (0.0, 0.0, 0.0)
    length = norm(d)
    for k in range(shape_i.shape[0]):
        if ignored[k] != 0:
            continue
        bound = shape_f[k, c.SHAPE_BOUND]
        if bound < math.inf:
            r = sub(load3(places, c.PLACE * k + c.PLACE_MIDDLE), o)
            if norm(cross(r, d)) > (1.0 + RAY_EDGE) * bound * length:
                continue
        R, x = load9(places, c.PLACE * k + c.PLACE_ROTATION), load3(places, c.PLACE * k + c.PLACE_ORIGIN)
        own, along = back(R, sub(o, x)), back(R, d)
        limit = min(most, nearest)
        if shape_i[k, c.SHAPE_KIND] == c.HEIGHTFIELD:
            at, out = field_hit(shape_i, shape_f, point_f, k, own, along, 0.0, limit)
            if at < nearest:
                nearest, met, normal = at, k, matvec(R, out)
            continue
        enter, leave = interval(shape_i, shape_f, point_f, k, own, along)
        at = enter if enter >= 0.0 else leave
        if enter <= leave and 0.0 <= at <= limit and at < nearest:
            nearest, met = at, k
            normal = matvec(R, normal_at(shape_i, shape_f, point_f, k, add(own, scale(along, at))))
    return nearest, met, normal


@inner
def ray_of_body(states, place, body, ray, o):
    """Origin and direction, in the world, of a ray at ray[o] that is given in a body (-1: the world)."""
    origin, direction = load3(ray, o), load3(ray, o + 3)
    if body < 0:
        return origin, direction
    R, x = load9(states, place * body), load3(states, place * body + 9)
    return add(x, matvec(R, origin)), matvec(R, direction)
