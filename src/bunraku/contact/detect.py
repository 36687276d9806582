"""All contacts at a state: place the shapes, drop pairs whose bounding spheres are apart, find nearest points.

Cost O(shapes + pairs), with a dozen operations for a pair that is far apart in all states of a lane.
"""

from bunraku.algorithms.body_motion import STATE
from bunraku.algorithms.tree import row3, row9, unit9, zero3
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_calls import solids
from bunraku.contact.nearest import ball_plane, put_none
from bunraku.jit import inline, inner
from bunraku.spatial.algebra import add, column_z, dot, load3, load9, matmul, matvec, norm, scale, store3, store9, sub
from bunraku.spatial.scalar import largest, total


@inner
def place_shapes(shape_i, shape_f, states, places):
    """Pose of every shape, from the states of the bodies (`algorithms/body_motion.py`)."""
    for k in range(shape_i.shape[0]):
        body = shape_i[k, c.SHAPE_BODY]
        if body < 0:
            R, x = unit9(places), zero3(places)
        else:
            R, x = load9(states, STATE * body), load3(states, STATE * body + 9)
        o = c.PLACE * k
        store9(places, o + c.PLACE_ROTATION, matmul(R, row9(shape_f, k, c.SHAPE_ROTATION)))
        store3(places, o + c.PLACE_ORIGIN, add(x, matvec(R, row3(shape_f, k, c.SHAPE_OFFSET))))
        store3(places, o + c.PLACE_MIDDLE, add(x, matvec(R, row3(shape_f, k, c.SHAPE_MIDDLE))))


@inline
def bounds_apart(kind, places, shape_f, a, b):
    """Distance of the bounding spheres, or of a's and the plane b."""
    middle = load3(places, c.PLACE * a + c.PLACE_MIDDLE)
    d = sub(middle, load3(places, c.PLACE * b + c.PLACE_MIDDLE))
    if kind <= c.LAST_PLANE:
        normal = column_z(load9(places, c.PLACE * b + c.PLACE_ROTATION))
        return dot(normal, d) - shape_f[a, c.SHAPE_BOUND]
    return norm(d) - (shape_f[a, c.SHAPE_BOUND] + shape_f[b, c.SHAPE_BOUND])


@inner
def find_contacts(shape_i, shape_f, point_f, pair_i, places, margin, found):
    """Gap, normal and point of every contact closer than the margin; others may be written, or have the gap inf."""
    for p in range(pair_i.shape[0]):
        find_pair(p, shape_i, shape_f, point_f, pair_i, places, margin, found)


@inner
def find_pair(p, shape_i, shape_f, point_f, pair_i, places, margin, found):
    """The same of one pair."""
    kind, a, b = pair_i[p, c.PAIR_KIND], pair_i[p, c.PAIR_A], pair_i[p, c.PAIR_B]
    k = pair_i[p, c.PAIR_CONTACT]
    apart = bounds_apart(kind, places, shape_f, a, b)
    near = largest(margin - apart) >= 0.0 or total(0.0 * apart) != 0.0  # not a number: its gap is none either
    if kind <= c.POINTS_PLANE:
        against_plane(kind, shape_i, shape_f, point_f, places, a, b, k, near, found)
    elif near:
        solids(kind, shape_i, shape_f, point_f, places, a, b, k, pair_i[p, c.PAIR_COUNT], found)
    else:
        for i in range(pair_i[p, c.PAIR_COUNT]):
            put_none(found, k + i)


@inner
def against_plane(kind, shape_i, shape_f, point_f, places, a, b, k, near, found):
    R, x = load9(places, c.PLACE * a + c.PLACE_ROTATION), load3(places, c.PLACE * a + c.PLACE_ORIGIN)
    point = load3(places, c.PLACE * b + c.PLACE_ORIGIN)
    normal = column_z(load9(places, c.PLACE * b + c.PLACE_ROTATION))
    size = row3(shape_f, a, c.SHAPE_SIZE)
    count = 1
    if kind == c.CAPSULE_PLANE:
        count = 2
    elif kind == c.BOX_PLANE:
        count = 8
    elif kind == c.POINTS_PLANE:
        count = shape_i[a, c.SHAPE_COUNT]
    for i in range(count):
        if not near:
            put_none(found, k + i)
        elif kind == c.SPHERE_PLANE:
            ball_plane(found, k, x, size[0], point, normal)
        elif kind == c.CAPSULE_PLANE:
            end = size[1] * (2 * i - 1)
            ball_plane(found, k + i, add(x, scale(column_z(R), end)), size[0], point, normal)
        elif kind == c.BOX_PLANE:
            corner = (size[0] * (2 * (i & 1) - 1), size[1] * ((i & 2) - 1), size[2] * ((i & 4) // 2 - 1))
            ball_plane(found, k + i, add(x, matvec(R, corner)), 0.0, point, normal)
        else:
            corner = row3(point_f, shape_i[a, c.SHAPE_POINT] + i, 0)
            ball_plane(found, k + i, add(x, matvec(R, corner)), 0.0, point, normal)
