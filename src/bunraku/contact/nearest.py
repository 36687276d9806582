"""Nearest points of two shapes in closed form: the contacts of every kind of pair.

Idea: spheres and capsules are points and segments with a radius, so a contact is a point c with radius r, a direction n
from the other shape and the gap along it; the point in the middle of the gap is then c - (r + gap/2) n (`put`). Cost:
some 20 to 300 operations a pair. Everything is free of branches on data, so that a lane holds W states.

Where nearest points are not unique, one of them is chosen, and gap and normal stay those of the limit: parallel
segments meet in the middle of the part that they share; crossing segments part along their common perpendicular. Where
no direction is distinguished (concentric spheres) the normal is some unit vector.
"""

import numpy as np

from bunraku.contact import contact_fields as c
from bunraku.jit import inline
from bunraku.spatial.algebra import (
    add,
    column_z,
    cross,
    dot,
    matTvec,
    matvec,
    norm,
    scale,
    store3,
    sub,
)
from bunraku.spatial.scalar import constant, maximum, minimum, sqrt, store, where_positive

SHORT = 1e-10
"""[m] A shorter vector has no direction: its rounding error is no longer small beside it."""
PARALLEL = 1e-26
"""Squared sine of the angle between two segments, below which they are parallel."""
SAME = 1e-4
"""Contacts of a pair that are closer than this part of a capsule's length are one."""
FLAT = 1e-15
"""[m] Slope of half the squared distance along a segment, below which it is zero."""
LEAST = 1e-300
"""[m] Less than every slope that is not zero."""
ON_FACE = 1.0 - 1e-6
"""Squared component of a box's normal along an axis, above which a face touches and no edge."""

LEVEL = 1e-5
"""Sine of the tilt below which the lowest point of a cylinder's rim has no direction."""
NEARLY_LEVEL = 0.02
"""Sine of the tilt up to which fixed points of a cylinder's rim touch a plane."""
RING = tuple((float(np.cos(2.0 * np.pi * k / c.RIM)), float(np.sin(2.0 * np.pi * k / c.RIM))) for k in range(c.RIM))
"""Fixed points of a rim of radius 1."""


# -- scalars and vectors -----------------------------------------------------------------------------------------------


@inline
def magnitude(x):
    return maximum(x, 0.0 - x)


@inline
def sign(x):
    """-1 or 1; 1 of zero."""
    return where_positive(0.0 - x, 0.0 * x - 1.0, 0.0 * x + 1.0)


@inline
def clamp(x, limit):
    return maximum(minimum(x, limit), 0.0 - limit)


@inline
def choose3(x, a, b):
    """a where x > 0, else b."""
    return (where_positive(x, a[0], b[0]), where_positive(x, a[1], b[1]), where_positive(x, a[2], b[2]))


@inline
def direction(d, length, other):
    """d / length; the unit vector `other` where d has no direction."""
    room = length - SHORT
    return choose3(room, scale(d, 1.0 / where_positive(room, length, 0.0 * length + 1.0)), other)


@inline
def across(u):
    """A unit vector at right angles to the unit vector u."""
    upright = magnitude(u[2]) - 0.7
    zero = 0.0 * u[0]
    d = choose3(upright, (zero, 0.0 - u[2], u[1]), (u[1], 0.0 - u[0], zero))
    return scale(d, 1.0 / norm(d))


# -- contacts ----------------------------------------------------------------------------------------------------------


@inline
def put(found, k, centre, r, normal, gap):
    """Write contact k: of a ball of radius r, whose gap along the normal is known."""
    o = c.FOUND * k
    store(found, o + c.FOUND_GAP, gap)
    store3(found, o + c.FOUND_NORMAL, normal)
    store3(found, o + c.FOUND_POINT, sub(centre, scale(normal, r + 0.5 * gap)))


@inline
def put_none(found, k):
    store(found, c.FOUND * k + c.FOUND_GAP, constant(found, np.inf))


@inline
def put_if(room, found, k, centre, r, normal, gap):
    """Write contact k where room > 0; elsewhere it has the gap inf, and a finite point: in lanes, its rows may be used
    by the state beside."""
    put(found, k, centre, r, normal, gap)
    store(found, c.FOUND * k + c.FOUND_GAP, where_positive(room, gap, 0.0 * gap + np.inf))


@inline
def ball_plane(found, k, centre, r, point, normal):
    put(found, k, centre, r, normal, dot(normal, sub(centre, point)) - r)


@inline
def cylinder_plane(found, k, R, x, r, h, point, normal):
    """A cylinder above a plane: of each end the lowest point of its rim, unless it is level, and fixed points, if it
    is nearly level: those of a tilted one are above the lowest."""
    u = column_z(R)
    up = sub(normal, scale(u, dot(normal, u)))
    sine = norm(up)
    tilted = sine - LEVEL
    lowest = scale(choose3(tilted, scale(up, 1.0 / where_positive(tilted, sine, 0.0 * sine + 1.0)), (R[0], R[3], R[6])),
                   0.0 - r)
    for end in range(2):
        middle, o = add(x, scale(u, h * (2 * end - 1))), k + (1 + c.RIM) * end
        _rim_point(tilted, found, o, add(middle, lowest), point, normal)
        for i in range(c.RIM):
            there = (r * RING[i][0], r * RING[i][1], 0.0)
            _rim_point(NEARLY_LEVEL - sine, found, o + 1 + i, add(middle, matvec(R, there)), point, normal)


@inline
def _rim_point(room, found, k, x, point, normal):
    put_if(room, found, k, x, 0.0, normal, dot(normal, sub(x, point)))


@inline
def ball_ball(found, k, a, r_a, b, r_b, other):
    """Two balls; `other` is the normal if they are concentric."""
    d = sub(a, b)
    length = norm(d)
    put(found, k, a, r_a, direction(d, length, other), length - (r_a + r_b))


@inline
def ball_capsule(found, k, a, r_a, b, u, r_b, h):
    """A ball and a capsule with centre b, axis u and half-length h."""
    at = clamp(dot(u, sub(a, b)), h)
    ball_ball(found, k, a, r_a, add(b, scale(u, at)), r_b, across(u))


@inline
def capsule_capsule(found, k, a, u_a, r_a, h_a, b, u_b, r_b, h_b):
    """Two capsules: the nearest points of their axes a + s u_a, b + t u_b, and both ends of the part they share.

    At the nearest points of the lines, the vector between them is along n = u_a x u_b [Ericson, Real-Time Collision
    Detection (2005), sec. 5.1.9, with cross products, which keep the digits of nearly parallel axes].
    """
    d = sub(b, a)
    n = cross(u_a, u_b)
    sine2, cosine = dot(n, n), dot(u_a, u_b)
    apart = sine2 - PARALLEL
    along = dot(u_a, d)                                   # b, seen along axis a
    reach = magnitude(cosine) * h_b
    middle = 0.5 * (maximum(along - reach, 0.0 * along - h_a) + minimum(along + reach, 0.0 * along + h_a))
    crossing = dot(cross(d, u_b), n) / where_positive(apart, sine2, 0.0 * sine2 + 1.0)
    s = clamp(where_positive(apart, crossing, middle), h_a)
    t = clamp(cosine * s - dot(u_b, d), h_b)
    s = clamp(along + cosine * t, h_a)
    perpendicular = choose3(apart, scale(n, 1.0 / sqrt(maximum(sine2, PARALLEL))), across(u_a))
    ball_ball(found, k, add(a, scale(u_a, s)), r_a, add(b, scale(u_b, t)), r_b, perpendicular)
    first = clamp(along - cosine * h_b, h_a)              # nearest to both ends of axis b
    last = clamp(along + cosine * h_b, h_a)
    _capsule_point(found, k + 1, a, u_a, r_a, h_a, b, u_b, r_b, h_b, first, s, perpendicular)
    _capsule_point(found, k + 2, a, u_a, r_a, h_a, b, u_b, r_b, h_b, last, s, perpendicular)


@inline
def _capsule_point(found, k, a, u_a, r_a, h_a, b, u_b, r_b, h_b, at, nearest, other):
    """The ball of capsule a at a place of its axis, beside capsule b, unless it is the nearest."""
    centre = add(a, scale(u_a, at))
    d = sub(centre, add(b, scale(u_b, clamp(dot(u_b, sub(centre, b)), h_b))))
    length = norm(d)
    put_if(magnitude(at - nearest) - SAME * (h_a + h_b), found, k, centre, r_a, direction(d, length, other),
           length - (r_a + r_b))


@inline
def nearest_face(x, half):
    """Of a point x in a box: the outward normal of the nearest face, and how deep below it x is."""
    dx, dy, dz = half[0] - magnitude(x[0]), half[1] - magnitude(x[1]), half[2] - magnitude(x[2])
    zero = 0.0 * dx
    not_x, not_y = dx - minimum(dy, dz), dy - dz
    normal = choose3(not_x, choose3(not_y, (zero, zero, sign(x[2])), (zero, sign(x[1]), zero)),
                     (sign(x[0]), zero, zero))
    return normal, minimum(dx, minimum(dy, dz))


@inline
def outside(x, half):
    """Vector from the nearest point of a box to the point x; zero inside."""
    return (x[0] - clamp(x[0], half[0]), x[1] - clamp(x[1], half[1]), x[2] - clamp(x[2], half[2]))


@inline
def ball_box(found, k, centre, r, R, origin, half):
    """A ball and a box: from the nearest point of the box, or, with its centre inside, out of the nearest face."""
    x = matTvec(R, sub(centre, origin))
    d = outside(x, half)
    length = norm(d)
    face, depth = nearest_face(x, half)
    gap = where_positive(length - SHORT, length, 0.0 - depth) - r
    put(found, k, centre, r, matvec(R, direction(d, length, face)), gap)


@inline
def slope(x, u, half):
    """Half the derivative of the squared distance between a box and a point that moves along u."""
    return dot(u, outside(x, half))


@inline
def capsule_box(found, k, a, u_world, r, h, R, origin, half):
    """A capsule and a box: the nearest points, and both ends of the part above a face.

    Along the axis a + t u the slope of the squared distance grows, linear between the places where the axis crosses the
    six planes of the box: its zero is found from its values there (`nearest_on_axis`). An axis that enters the box is
    taken out along the shortest way: through a face, or past an edge (`way_out`).
    """
    a, u = matTvec(R, sub(a, origin)), matTvec(R, u_world)
    crossings = (*_crossings(a[0], u[0], h, half[0]), *_crossings(a[1], u[1], h, half[1]),
                 *_crossings(a[2], u[2], h, half[2]))
    t = nearest_on_axis(a, u, h, half, crossings)
    d = outside(add(a, scale(u, t)), half)
    length = norm(d)
    within, depth, at = way_out(a, u, h, half, t)
    free = length - SHORT
    n = direction(d, length, within)
    t = where_positive(free, t, at)
    gap = where_positive(free, length, 0.0 - depth) - r
    put(found, k, matvec_plus(R, add(a, scale(u, t)), origin), r, matvec(R, n), gap)
    # the part of the axis above the face that n is normal to: within the planes of the other faces
    xx, yy, zz = n[0] * n[0] - ON_FACE, n[1] * n[1] - ON_FACE, n[2] * n[2] - ON_FACE
    end = 0.0 * t + h
    first = maximum(where_positive(xx, 0.0 - end, crossings[0]),
                    maximum(where_positive(yy, 0.0 - end, crossings[2]), where_positive(zz, 0.0 - end, crossings[4])))
    last = minimum(where_positive(xx, end, crossings[1]),
                   minimum(where_positive(yy, end, crossings[3]), where_positive(zz, end, crossings[5])))
    on_face = minimum(maximum(xx, maximum(yy, zz)), last - first)
    face = choose3(xx, (sign(n[0]), 0.0 * t, 0.0 * t),
                   choose3(yy, (0.0 * t, sign(n[1]), 0.0 * t), (0.0 * t, 0.0 * t, sign(n[2]))))
    _point_above_face(found, k + 1, a, u, r, R, origin, half, face, first, t, gap, minimum(on_face, h - SHORT), h)
    _point_above_face(found, k + 2, a, u, r, R, origin, half, face, last, t, gap, minimum(on_face, h - SHORT), h)


@inline
def matvec_plus(R, x, origin):
    return add(matvec(R, x), origin)


@inline
def _point_above_face(found, k, a, u, r, R, origin, half, face, at, nearest, gap, on_face, h):
    """The ball at a place of the axis, above (or below) a face; not nearer than the nearest points, whose normal may be
    a little off the face's."""
    x = add(a, scale(u, at))
    height = dot(face, x) - (magnitude(face[0]) * half[0] + magnitude(face[1]) * half[1] + magnitude(face[2]) * half[2])
    put_if(minimum(on_face, magnitude(at - nearest) - SAME * h), found, k, matvec_plus(R, x, origin), r,
           matvec(R, face), maximum(height - r, gap))


@inline
def _crossings(a, u, h, half):
    """Where on an axis one coordinate, a + t u, enters and leaves -half .. half; between -h and h."""
    slow = 1e-30 - magnitude(u)
    rate = 1.0 / where_positive(slow, 0.0 * u + 1e-30, u)
    one, other = clamp((0.0 - half - a) * rate, h), clamp((half - a) * rate, h)
    return minimum(one, other), maximum(one, other)


@inline
def nearest_on_axis(a, u, h, half, crossings):
    """t at which a + t u, -h <= t <= h, is nearest to a box; the middle, if it is equally near along a part."""
    low, high = 0.0 * a[0] - h, 0.0 * a[0] + h
    slope_low, slope_high = slope(add(a, scale(u, low)), u, half), slope(add(a, scale(u, high)), u, half)
    flat_low, flat_high = _flat(low, slope_low, high, low)
    flat_low, flat_high = _flat(high, slope_high, flat_low, flat_high)
    for t in crossings:
        g = slope(add(a, scale(u, t)), u, half)
        below, above = minimum(LEAST - g, t - low), minimum(LEAST + g, high - t)  # both where g is zero
        low, slope_low = where_positive(below, t, low), where_positive(below, g, slope_low)
        high, slope_high = where_positive(above, t, high), where_positive(above, g, slope_high)
        flat_low, flat_high = _flat(t, g, flat_low, flat_high)
    rise = maximum(slope_high - slope_low, 1e-300)
    zero = maximum(minimum(low - slope_low * (high - low) / rise, high), low)
    return where_positive(flat_high - flat_low, 0.5 * (flat_low + flat_high), zero)


@inline
def _flat(t, g, low, high):
    """The part of an axis along which the slope is zero, t included if it is zero there."""
    zero = FLAT - magnitude(g)
    return where_positive(zero, minimum(low, t), low), where_positive(zero, maximum(high, t), high)


@inline
def way_out(a, u, h, half, t):
    """The shortest way of a segment a + t u out of a box: its direction, its length, and t where it is deepest.

    The difference of a segment and a box is a convex body whose faces are normal to the box's axes, or to one of them
    and the segment; the way out is the one through the nearest of these faces.
    """
    zero = 0.0 * t
    one = zero + 1.0
    best, n, at = zero + np.inf, (one, zero, zero), t
    for axis in ((one, zero, zero), (zero, one, zero), (zero, zero, one)):
        a_n, u_n = dot(axis, a), dot(axis, u)
        side = sign(a_n)
        depth = dot(axis, half) + h * magnitude(u_n) - magnitude(a_n)
        deepest = where_positive(magnitude(u_n) - SHORT, 0.0 - side * sign(u_n) * h, t)
        nearer = best - depth
        best, n, at = minimum(best, depth), choose3(nearer, scale(axis, side), n), where_positive(nearer, deepest, at)
    for axis in ((one, zero, zero), (zero, one, zero), (zero, zero, one)):
        p = cross(axis, u)
        sine2 = dot(p, p)
        apart = sine2 - SHORT * SHORT
        p = scale(p, 1.0 / sqrt(maximum(sine2, SHORT * SHORT)))
        p = scale(p, sign(dot(p, a)))
        corner = (sign(p[0]) * half[0], sign(p[1]) * half[1], sign(p[2]) * half[2])
        depth = dot(p, corner) - dot(p, a)
        v = sub(u, scale(axis, dot(axis, u)))             # the segment, seen along the edge
        past = clamp(dot(v, sub(corner, a)) / maximum(dot(v, v), SHORT * SHORT), h)
        # a face is as good as an edge unless it is clearly farther: edges of boxes that only touch are noise
        nearer = minimum(apart, best - depth - SHORT)
        best, n, at = where_positive(nearer, depth, best), choose3(nearer, p, n), where_positive(nearer, past, at)
    return n, best, at
