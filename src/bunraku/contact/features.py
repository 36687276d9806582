"""Features in contact, and how fast the normal and the point of a contact move.

A *feature* is the part of a shape's surface on which a contact is: a point (vertex, centre of a sphere, end of a
capsule), a line (edge, axis of a capsule, side of a cylinder), a face, or the rim of a cylinder; points and lines have
a radius around them. Its surface point for the outward normal N moves by

    dx = rho dN,    rho = r 1 of points,  r 1 (infinite along the axis e) of lines,  infinite of faces,
                    R / |N across the axis| t t^T of a rim with its tangent t,

beside the motion of its body: rho is the inverse of its curvature [Montana 1988]. With the gap g, the normal n from b
to a, and the relative velocity u of the material points, the tangential part of the rates of both surface points gives

    (rho_a + rho_b + g) dn/dt = u + rho_a (w_a x n) + rho_b (w_b x n).                                              (1)

A face holds the normal in its body, dn/dt = w x n. A line keeps it at right angles, n . e = 0:

    e . dn/dt = -n . (w x e).                                                                                       (2)

So a line replaces one component of (1) by (2), two lines that cross replace both.

While a contact is closed, its gap, normal and point are those of the pair of features on which it was when the contact
modes were determined (*kept* features), also beyond their ends: a smooth function of the state. That other features
have taken over is an event (`contact_motion.py`).
"""

from typing import Any, NamedTuple

import numpy as np

from bunraku.algorithms.body_motion import STATE
from bunraku.algorithms.tree import row3, unit9, zero3
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_memory import FEATURE, FEATURES
from bunraku.contact.field_contacts import corners_above, field_feature
from bunraku.contact.nearest import across
from bunraku.jit import inline, inner
from bunraku.spatial.algebra import (
    add,
    column_z,
    cross,
    dot,
    load3,
    load9,
    matTvec,
    matvec,
    norm,
    scale,
    store3,
    sub,
)
from bunraku.tolerances import AT_END, CROSSING, FLUSH, NO_RADIUS, OTHER_FEATURE, SHARP, SMOOTH_TURN, TAKEN_OVER


class Feature(NamedTuple):
    """A feature in world axes; a named tuple of numbers."""

    kind: Any      # POINT, LINE, FACE, CIRCLE
    point: tuple   # 3, [m] the point, or one of the line or face; centre of a rim
    axis: tuple    # 3, direction of the line, outward normal of the face, axis of the rim
    radius: Any    # [m]


# -- which feature a contact is on -------------------------------------------------------------------------------------


@inner
def feature_of(touch, shape, x, n):
    """The feature of a shape with the outward normal n at the point x of its surface."""
    kind, o = np.int64(touch.shape_i[shape, c.SHAPE_KIND]), c.PLACE * shape
    size = row3(touch.shape_f, shape, c.SHAPE_SIZE)
    R, at = load9(touch.places, o + c.PLACE_ROTATION), load3(touch.places, o + c.PLACE_ORIGIN)
    if kind == c.PLANE:
        return Feature(c.FACE, at, n, 0.0)
    if kind == c.SPHERE:
        return Feature(c.POINT, at, n, size[0])
    if kind == c.CAPSULE or kind == c.CYLINDER:
        return round_feature(kind, size, R, at, x, n)
    if kind == c.BOX:
        return box_feature(size, R, at, n)
    if kind == c.HULL:
        return hull_feature(touch.point_f, touch.shape_i[shape, c.SHAPE_POINT], touch.shape_i[shape, c.SHAPE_COUNT], R,
                            at, n)
    if kind == c.HEIGHTFIELD:
        which, axis = field_feature(touch.shape_i, touch.shape_f, touch.point_f, touch.places, shape, x, n)
        return Feature(which, x, axis, 0.0)
    return Feature(c.POINT, x, n, 0.0)


@inner
def round_feature(kind, size, R, at, x, n):
    """Of a capsule or a cylinder."""
    axis = column_z(R)
    along, height = dot(axis, n), dot(axis, sub(x, at))
    side = 1.0 if height > 0.0 else -1.0
    end = add(at, scale(axis, side * size[1]))
    between = abs(height) < size[1] * (1.0 - AT_END) and abs(along) * 2.0 * size[1] < FLUSH
    if kind == c.CAPSULE:
        return Feature(c.LINE if between else c.POINT, at if between else end, axis, size[0])
    level = sub(n, scale(axis, along))
    if norm(level) * 2.0 * size[0] < FLUSH:
        return Feature(c.FACE, end, scale(axis, 1.0 if along > 0.0 else -1.0), 0.0)
    return Feature(c.LINE if between else c.CIRCLE, at if between else end, axis, size[0])


@inner
def box_feature(size, R, at, n):
    """Its axes at right angles to n are those along which the feature extends."""
    u, free = matTvec(R, n), 0
    p = (0.0, 0.0, 0.0)
    axis = n
    for i in range(3):
        e = (1.0 if i == 0 else 0.0, 1.0 if i == 1 else 0.0, 1.0 if i == 2 else 0.0)
        if abs(u[i]) * 2.0 * size[i] < FLUSH:
            free += 1
        else:
            p = add(p, scale(e, size[i] if u[i] > 0.0 else -size[i]))
    for i in range(3):
        e = (R[i], R[3 + i], R[6 + i])
        if free == 1 and abs(u[i]) * 2.0 * size[i] < FLUSH:
            axis = e
        elif free == 2 and not abs(u[i]) * 2.0 * size[i] < FLUSH:
            axis = scale(e, 1.0 if u[i] > 0.0 else -1.0)
    return Feature(c.POINT if free == 0 else c.LINE if free == 1 else c.FACE, add(at, matvec(R, p)), axis, 0.0)


@inner
def hull_feature(point_f, first, count, R, at, n):
    """The vertices that are farthest along n, up to FLUSH."""
    u = matTvec(R, n)
    best, most = u, -np.inf
    for k in range(first, first + count):
        p = row3(point_f, k, 0)
        if dot(p, u) > most:
            best, most = p, dot(p, u)
    others, end = 0, best
    for k in range(first, first + count):
        p = row3(point_f, k, 0)
        apart = norm(sub(p, best))
        if apart > 0.0 and most - dot(p, u) < FLUSH:
            others, end = others + 1, p
    axis = n
    if others == 1:
        d = sub(end, best)
        axis = matvec(R, scale(d, 1.0 / norm(d)))
    return Feature(c.POINT if others == 0 else c.LINE if others == 1 else c.FACE, add(at, matvec(R, best)), axis, 0.0)


@inner
def edge_at(touch, shape, x):
    """The edge of a polytope that is nearest to the point x."""
    row, o = np.int64(touch.shape_i[shape, c.SHAPE_POINT]), c.PLACE * shape
    R, at = load9(touch.places, o + c.PLACE_ROTATION), load3(touch.places, o + c.PLACE_ORIGIN)
    p, first = matTvec(R, sub(x, at)), row + touch.shape_i[shape, c.SHAPE_COUNT]
    first += c.FACE_ROWS * touch.shape_i[shape, c.SHAPE_FACES]
    best, axis, least = p, p, np.inf
    for k in range(touch.shape_i[shape, c.SHAPE_EDGES]):
        one = row3(touch.point_f, first + c.EDGE_ROWS * k, 0)
        d, r = sub(row3(touch.point_f, first + c.EDGE_ROWS * k + 1, 0), one), sub(p, one)
        off = sub(r, scale(d, min(max(dot(r, d) / dot(d, d), 0.0), 1.0)))
        if dot(off, off) < least:
            best, axis, least = one, scale(d, 1.0 / norm(d)), dot(off, off)
    return Feature(c.LINE, add(at, matvec(R, best)), matvec(R, axis), 0.0)


@inline
def corner_at(x, n):
    return Feature(c.POINT, x, n, 0.0)


@inline
def face_at(x, n):
    return Feature(c.FACE, x, n, 0.0)


@inline
def has_edges(touch, shape):
    return touch.shape_i[shape, c.SHAPE_KIND] == c.BOX or touch.shape_i[shape, c.SHAPE_KIND] == c.HULL


@inner
def features_found(touch, k):
    """Features of both shapes for a contact that was found."""
    pair, o = touch.contact_i[k, c.CONTACT_PAIR], c.FOUND * k
    one, other = np.int64(touch.pair_i[pair, c.PAIR_A]), np.int64(touch.pair_i[pair, c.PAIR_B])
    n, x = load3(touch.found, o + c.FOUND_NORMAL), load3(touch.found, o + c.FOUND_POINT)
    half, place = 0.5 * touch.found[o + c.FOUND_GAP], k - touch.pair_i[pair, c.PAIR_CONTACT]
    on_a, on_b, kind = add(x, scale(n, half)), sub(x, scale(n, half)), touch.pair_i[pair, c.PAIR_KIND]
    fa, fb = feature_of(touch, one, on_a, scale(n, -1.0)), feature_of(touch, other, on_b, n)
    if (kind == c.CYLINDER_PLANE and place % (1 + c.RIM) > 0) or (kind == c.FIELD and corners_above(
            touch.shape_i[one, c.SHAPE_KIND])):
        return corner_at(on_a, n), fb  # fixed points of a
    if kind == c.CONVEX and place == 0 and has_edges(touch, one) and has_edges(touch, other):
        if fb.kind == c.FACE:  # all by itself: the edge or face above it tilts about this point
            return corner_at(on_a, n), fb
        if fa.kind == c.FACE:
            return fa, corner_at(on_b, n)
    if kind == c.CONVEX and place > 0:  # of flat features (`face_points.py`)
        corners, whole_a, whole_b = touch.shape_i[one, c.SHAPE_CORNERS], has_edges(touch, one), has_edges(touch, other)
        if place <= corners:
            return (corner_at(on_a, n) if whole_a or fa.kind == c.FACE else fa), (face_at(on_b, n) if whole_b else fb)
        if place <= corners + touch.shape_i[other, c.SHAPE_CORNERS]:
            return ((face_at(on_a, scale(n, -1.0)) if whole_a else fa),
                    (corner_at(on_b, n) if whole_b or fb.kind == c.FACE else fb))
        if whole_a and whole_b:
            return edge_at(touch, one, on_a), edge_at(touch, other, on_b)
    return fa, fb


@inner
def features_at(touch, k):
    """The same of any contact: the kept features, if there are any."""
    if is_kept(touch, k):
        return kept_feature(touch, k, 0), kept_feature(touch, k, 1)
    pair, o = touch.contact_i[k, c.CONTACT_PAIR], c.FOUND * k
    kind = touch.pair_i[pair, c.PAIR_KIND]
    if kind > c.POINTS_PLANE:
        return features_found(touch, k)
    n, x = load3(touch.found, o + c.FOUND_NORMAL), load3(touch.found, o + c.FOUND_POINT)
    ball = kind == c.SPHERE_PLANE or kind == c.CAPSULE_PLANE
    radius = touch.shape_f[touch.pair_i[pair, c.PAIR_A], c.SHAPE_SIZE] if ball else 0.0
    return Feature(c.POINT, x, n, radius), Feature(c.FACE, x, n, 0.0)


# -- rates -------------------------------------------------------------------------------------------------------------


@inline
def yields(f, n, y):
    """rho y of a feature, y across n; without the infinite part."""
    z = scale(y, f.radius if f.kind == c.POINT or f.kind == c.LINE else 0.0)
    if f.kind == c.CIRCLE:
        t = cross(f.axis, n)
        sine2 = dot(t, t)
        if sine2 > SHARP * SHARP:
            z = scale(t, f.radius * dot(t, y) / (sine2 * np.sqrt(sine2)))
    return z


@inner
def rates(fa, fb, n, gap, x, v_a, w_a, v_b, w_b):
    """(dn/dt, dx/dt) of a contact between two features, by (1) and (2); velocities are those of the material points at
    x, half-way between the surfaces."""
    turn_a, turn_b = cross(w_a, n), cross(w_b, n)
    turning = turn_b if fb.kind == c.FACE else turn_a
    crossing = 0.0
    if fa.kind != c.FACE and fb.kind != c.FACE:
        if fa.kind == c.LINE and fb.kind == c.LINE:
            crossing = dot(fa.axis, cross(fb.axis, n))
        u = add(sub(v_a, v_b), scale(add(turn_a, turn_b), 0.5 * gap))
        u = add(sub(u, scale(n, dot(n, u))), add(yields(fa, n, turn_a), yields(fb, n, turn_b)))
        if abs(crossing) > CROSSING:
            one, other = cross(fb.axis, n), cross(fa.axis, n)
            turning = add(scale(one, -dot(n, cross(w_a, fa.axis)) / crossing),
                          scale(other, dot(n, cross(w_b, fb.axis)) / crossing))
        else:
            crossing = 0.0
            turning = turning_by_curvature(fa, fb, n, gap, u, turn_b, w_a, w_b)
    off_a, off_b = sub(turning, turn_a), sub(turning, turn_b)
    going_a = sub(v_a, add(yields(fa, n, off_a), scale(off_a, 0.5 * gap)))
    going_b = add(v_b, add(yields(fb, n, off_b), scale(off_b, 0.5 * gap)))
    if crossing != 0.0:
        return turning, add(going_a, scale(fa.axis, dot(sub(going_b, going_a), cross(fb.axis, n)) / crossing))
    fixed_b = fb.kind == c.POINT or fb.kind == c.CIRCLE or fa.kind == c.FACE
    return turning, (going_b if fixed_b and fb.kind != c.FACE else going_a)


@inner
def turning_by_curvature(fa, fb, n, gap, u, turn_b, w_a, w_b):
    """dn/dt by (1), and (2) of one line at most; u is the right-hand side of (1)."""
    e, w, line = across(n), w_b, fa.kind == c.LINE or fb.kind == c.LINE
    if line:
        axis = fa.axis if fa.kind == c.LINE else fb.axis
        w = w_a if fa.kind == c.LINE else w_b
        e = sub(axis, scale(n, dot(n, axis)))
        e = scale(e, 1.0 / max(norm(e), SHARP))
    t = cross(n, e)
    of_e, of_t = add(yields(fa, n, e), yields(fb, n, e)), add(yields(fa, n, t), yields(fb, n, t))
    ee, et, tt = dot(e, of_e) + gap, dot(e, of_t), dot(t, of_t) + gap
    if line:
        along = -dot(n, cross(w, e))
        side = (dot(t, u) - et * along) / tt if tt > NO_RADIUS else dot(t, turn_b)
        return add(scale(e, along), scale(t, side))
    whole = ee * tt - et * et
    if not whole > NO_RADIUS * max(ee + tt, NO_RADIUS):  # two vertices: the normal has no rate
        return turn_b
    p, q = dot(e, u), dot(t, u)
    return add(scale(e, (tt * p - et * q) / whole), scale(t, (ee * q - et * p) / whole))


# -- kept features -----------------------------------------------------------------------------------------------------


@inline
def body_place(touch, body):
    """(R, origin) of a body."""
    if body < 0:
        return unit9(touch.states), zero3(touch.states)
    return load9(touch.states, STATE * body), load3(touch.states, STATE * body + 9)


@inner
def keep_feature(touch, k, side, f):
    """Note a feature, in the axes of its body."""
    R, at = body_place(touch, np.int64(touch.contact_i[k, c.CONTACT_A + side]))
    o = FEATURES * k + FEATURE * side
    touch.features[o], touch.features[o + 1] = f.kind, f.radius
    store3(touch.features, o + 2, matTvec(R, sub(f.point, at)))
    store3(touch.features, o + 5, matTvec(R, f.axis))


@inner
def kept_feature(touch, k, side):
    """A kept feature where its body is now; its kind is 0 if there is none."""
    R, at = body_place(touch, np.int64(touch.contact_i[k, c.CONTACT_A + side]))
    o = FEATURES * k + FEATURE * side
    return Feature(np.int64(touch.features[o]), add(at, matvec(R, load3(touch.features, o + 2))),
                   matvec(R, load3(touch.features, o + 5)), touch.features[o + 1])


@inline
def is_kept(touch, k):
    return touch.features[FEATURES * k] > 0.0


@inline
def is_round(kind):
    return kind == c.SPHERE or kind == c.CAPSULE


@inner
def keep_features(touch, k):
    """Keep the features of a contact that was found, if gap and normal follow from them in closed form: those of solids
    with edges. Elsewhere what is found is smooth, or nearly so."""
    touch.features[FEATURES * k] = 0.0
    pair = touch.contact_i[k, c.CONTACT_PAIR]
    kind, one, other = touch.pair_i[pair, c.PAIR_KIND], touch.pair_i[pair, c.PAIR_A], touch.pair_i[pair, c.PAIR_B]
    if ((kind != c.CONVEX and kind != c.POINTS_SOLID) or is_round(touch.shape_i[one, c.SHAPE_KIND])
            or is_round(touch.shape_i[other, c.SHAPE_KIND])):
        return
    fa, fb = features_found(touch, k)
    if fa.kind == c.LINE and fb.kind == c.LINE:
        crossing = dot(load3(touch.found, c.FOUND * k + c.FOUND_NORMAL), cross(fa.axis, fb.axis))
        if abs(crossing) <= CROSSING:
            return
        if crossing < 0.0:
            fa = Feature(fa.kind, fa.point, scale(fa.axis, -1.0), fa.radius)
    elif not ((fa.kind == c.POINT and fb.kind == c.FACE) or (fa.kind == c.FACE and fb.kind == c.POINT)):
        return
    keep_feature(touch, k, 0, fa)
    keep_feature(touch, k, 1, fb)


@inner
def kept_contact(touch, k):
    """(gap, normal, point) of a contact by its kept features."""
    fa, fb = kept_feature(touch, k, 0), kept_feature(touch, k, 1)
    d = sub(fa.point, fb.point)
    on_a, n = fa.point, fb.axis
    if fa.kind == c.LINE:
        n = cross(fa.axis, fb.axis)
        sine = norm(n)
        n = scale(n, 1.0 / max(sine, SHARP))
        on_a = add(on_a, scale(fa.axis, -dot(d, cross(fb.axis, n)) / max(sine, SHARP)))
    elif fa.kind == c.FACE:
        n = scale(fa.axis, -1.0)
        gap = dot(n, d) - fb.radius
        return gap, n, add(fb.point, scale(n, fb.radius + 0.5 * gap))
    gap = dot(n, d) - fa.radius - fb.radius
    return gap, n, sub(on_a, scale(n, fa.radius + 0.5 * gap))


@inner
def put_kept(touch, k):
    """Write a contact by its kept features."""
    gap, n, x = kept_contact(touch, k)
    o = c.FOUND * k
    touch.found[o + c.FOUND_GAP] = gap
    store3(touch.found, o + c.FOUND_NORMAL, n)
    store3(touch.found, o + c.FOUND_POINT, x)


@inner
def taken_over(touch, k):
    """Whether other features have taken over from the kept ones, by what is found: the gaps differ by more than noise,
    or the normal has turned a little. (Contacts of flat features are found with a common normal, not their own.)"""
    o, pair = c.FOUND * k, touch.contact_i[k, c.CONTACT_PAIR]
    found = touch.found[o + c.FOUND_GAP]
    if not found < np.inf:
        return True
    gap, n, _ = kept_contact(touch, k)
    if abs(found - gap) > TAKEN_OVER:
        return True
    if touch.pair_i[pair, c.PAIR_KIND] == c.CONVEX and k > touch.pair_i[pair, c.PAIR_CONTACT]:
        return False
    turned = norm(sub(n, load3(touch.found, o + c.FOUND_NORMAL)))
    return turned > OTHER_FEATURE and turned < SMOOTH_TURN
