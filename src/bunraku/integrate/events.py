"""When something happens within a step: zeros of functions g(t, y) along the step's own polynomial.

A zero is where g changes its sign, or arrives at 0; one that a run starts from is not counted again. Located by
Chandrupatla's method (Advances in Engineering Software 28 (1997)): inverse quadratic interpolation where that is
safe, else bisection.
"""

from bunraku.integrate.memory import EPSILON
from bunraku.jit import inline, inner


@inner
def evaluate(poly, origin, scale, degree, t, out):
    """The polynomial at time t."""
    s = (t - origin) / scale
    for i in range(out.shape[0]):
        total = poly[degree, i]
        for p in range(degree - 1, -1, -1):
            total = total * s + poly[p, i]
        out[i] = total


@inline
def crosses(before, after, direction):
    """Whether g has come to zero in the wanted direction (0: any)."""
    return (before < 0.0 <= after and direction >= 0) or (before > 0.0 >= after and direction <= 0)


@inner
def locate(guard, context, k, poly, origin, scale, degree, a, b, ga, gb, y, g):
    """Time in (a, b] at which g_k is zero: (status, time). `guard(context, t, y, g) -> status` fills g."""
    t1, t2, g1, g2 = b, a, gb, ga
    if g1 == 0.0:
        return 0, t1
    t3, g3 = t2, g2
    share = 0.5
    for _ in range(100):
        t = t1 + share * (t2 - t1)
        evaluate(poly, origin, scale, degree, t, y)
        status = guard(context, t, y, g)
        if status != 0:
            return status, t
        gt = g[k]
        if (gt > 0.0) == (g1 > 0.0) and gt != 0.0:
            t3, g3 = t1, g1
        else:
            t3, g3, t2, g2 = t2, g2, t1, g1
        t1, g1 = t, gt
        nearest, value = (t1, g1) if abs(g1) < abs(g2) else (t2, g2)
        width = abs(t2 - t1)
        tolerance = 2.0 * EPSILON * abs(nearest) + 1e-300
        if value == 0.0 or 2.0 * tolerance >= width:
            return 0, nearest
        xi, phi = (t1 - t2) / (t3 - t2), (g1 - g2) / (g3 - g2)
        share = 0.5
        if phi * phi < xi and (1.0 - phi) * (1.0 - phi) < 1.0 - xi:
            share = (g1 / (g2 - g1) * g3 / (g2 - g3)
                     + (t3 - t1) / (t2 - t1) * g1 / (g3 - g1) * g2 / (g3 - g2))
        least = tolerance / width
        share = min(max(share, least), 1.0 - least)
    return 0, t1
