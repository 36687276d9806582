"""Distance of two convex solids [Gilbert, Johnson, Keerthi 1988], with the nearest points of their cores.

The difference a - b of all points of the two is convex, and its point nearest to the origin is the vector between the
nearest points. It is approached by simplices of at most four points: in each turn the farthest point of the difference
towards the origin is added, and the simplex is reduced to the face that is nearest to the origin.
"""

import numpy as np

from bunraku.contact.convex import farthest, middle_of
from bunraku.jit import inline, inner
from bunraku.spatial.algebra import add, cross, dot, scale, sub

TURNS = 100
NO_NEARER = 1e-14
"""Part of the squared distance, and of distance times size, by which another turn must come nearer."""


@inline
def with_item(items, i, x):
    """Four items, number i replaced."""
    return (x if i == 0 else items[0], x if i == 1 else items[1], x if i == 2 else items[2], x if i == 3 else items[3])


@inline
def combined(weights, y):
    return add(add(scale(y[0], weights[0]), scale(y[1], weights[1])),
               add(scale(y[2], weights[2]), scale(y[3], weights[3])))


@inner
def on_segment(a, b):
    """Weight of b in the point of a segment that is nearest to the origin."""
    d = sub(b, a)
    length2 = dot(d, d)
    return min(max(-dot(a, d) / length2, 0.0), 1.0) if length2 > 0.0 else 0.0


@inner
def on_triangle(a, b, d):
    """Weights of the point of a triangle that is nearest to the origin."""
    ab, ad = sub(b, a), sub(d, a)
    n = cross(ab, ad)
    area2 = dot(n, n)
    if area2 > 0.0:  # projection into the plane; inside?
        v, w, u = dot(cross(d, a), n), dot(cross(a, b), n), dot(cross(b, d), n)
        if v >= 0.0 and w >= 0.0 and u >= 0.0:
            whole = u + v + w
            return u / whole, v / whole, w / whole
    t, best = on_segment(a, b), np.inf
    weights = (1.0, 0.0, 0.0)
    for k in range(3):
        one, other = (a, b) if k == 0 else (b, d) if k == 1 else (d, a)
        t = on_segment(one, other)
        x = add(scale(one, 1.0 - t), scale(other, t))
        apart = dot(x, x)
        if apart < best:
            best = apart
            weights = (1.0 - t, t, 0.0) if k == 0 else (0.0, 1.0 - t, t) if k == 1 else (t, 0.0, 1.0 - t)
    return weights


@inner
def on_simplex(n, y):
    """Weights of the point of a simplex of n points that is nearest to the origin; all are positive if it is inside of
    a tetrahedron."""
    if n == 1:
        return 1.0, 0.0, 0.0, 0.0
    if n == 2:
        t = on_segment(y[0], y[1])
        return 1.0 - t, t, 0.0, 0.0
    if n == 3:
        u, v, w = on_triangle(y[0], y[1], y[2])
        return u, v, w, 0.0
    # volumes of the tetrahedra with the origin in the place of one corner
    volume = dot(sub(y[1], y[0]), cross(sub(y[2], y[0]), sub(y[3], y[0])))
    w0 = dot(y[1], cross(y[2], y[3]))
    w1 = -dot(y[0], cross(y[2], y[3]))
    w2 = dot(y[0], cross(y[1], y[3]))
    w3 = -dot(y[0], cross(y[1], y[2]))
    sign = 1.0 if volume > 0.0 else -1.0
    least = min(min(w0 * sign, w1 * sign), min(w2 * sign, w3 * sign))
    if least > 0.0:
        return w0 / volume, w1 / volume, w2 / volume, w3 / volume
    best = np.inf
    weights = (1.0, 0.0, 0.0, 0.0)
    for k in range(4):
        i, j, m = (1 if k == 0 else 0), (2 if k < 2 else 1), (3 if k < 3 else 2)
        u, v, w = on_triangle(y[i], y[j], y[m])
        x = add(add(scale(y[i], u), scale(y[j], v)), scale(y[m], w))
        apart = dot(x, x)
        if apart < best:
            best = apart
            weights = with_item(with_item(with_item((0.0, 0.0, 0.0, 0.0), i, u), j, v), m, w)
    return weights


@inner
def distance(a, b, point_f, shift):
    """(distance of the cores, vector to a from b, nearest point of a), a shifted; the distance is 0 if they overlap."""
    start = sub(add(middle_of(a), shift), middle_of(b))
    v = start if dot(start, start) > 0.0 else (1.0, 0.0, 0.0)
    p = add(farthest(a, point_f, scale(v, -1.0)), shift)
    v = sub(p, farthest(b, point_f, v))
    y, points, n = (v, v, v, v), (p, p, p, p), 1
    weights = (1.0, 0.0, 0.0, 0.0)
    near = dot(v, v)
    largest = near
    for _ in range(TURNS):
        if not near > 0.0:
            break
        p = add(farthest(a, point_f, scale(v, -1.0)), shift)
        w = sub(p, farthest(b, point_f, v))
        largest = max(largest, dot(w, w))
        if near - dot(v, w) <= NO_NEARER * near + 0.1 * NO_NEARER * np.sqrt(near * largest):
            break
        again = False
        for i in range(n):
            d = sub(w, y[i])
            again = again or dot(d, d) == 0.0
        if again:
            break
        wider, at = with_item(y, n, w), with_item(points, n, p)
        found = on_simplex(n + 1, wider)
        x = combined(found, wider)
        nearer = dot(x, x)
        if found[0] > 0.0 and found[1] > 0.0 and found[2] > 0.0 and found[3] > 0.0:
            return 0.0, x, p
        if not nearer < near:
            break
        near, v, m = nearer, x, 0
        for i in range(n + 1):  # what the point does not need is dropped
            if found[i] > 0.0:
                y, points, weights = with_item(y, m, wider[i]), with_item(points, m, at[i]), with_item(weights, m,
                                                                                                      found[i])
                m += 1
        for i in range(m, 4):
            weights = with_item(weights, i, 0.0)
        n = m
    return np.sqrt(near), v, combined(weights, points)
