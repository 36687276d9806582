"""Event location within a step: zeros of functions g(t, y) along the step's own polynomial.

A zero is where g changes its sign, or arrives at 0. Located by Chandrupatla's method (Advances in Engineering Software
28 (1997)): inverse quadratic interpolation where that is safe, else bisection.

A g that has been 0 and is so no longer has changed its sign too (conditions that are True or False, max(0, x)): it
counts where it leaves 0, unless it is just leaving a zero that it was counted for. Where it comes to 0 or leaves it is
found by bisection.

A step is looked at in PARTS. Within a part at whose ends g has one sign it may still touch the other: this is searched
for where g, continued straight from the neighbouring parts, would reach zero. A g that bends away from zero there, or
several times within a part, can be missed; a smaller max_step finds it.
"""

from bunraku.integrate.solver_memory import EPSILON
from bunraku.jit import as_written, inline, inner

PARTS = 3        # of a step
SLACK = 0.1      # error of extrapolating g, as part of its range within a step
NARROW = 1e-9    # of a part: how closely its smallest value is searched for
GOLDEN = 0.6180339887498949


@as_written
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


@inline
def leaves(before, after, direction):
    """Whether g has left zero in the wanted direction (0: any)."""
    return before == 0.0 and ((after > 0.0 and direction >= 0) or (after < 0.0 and direction <= 0))


@inline
def may_touch(g, k, part):
    """Whether g_k may come to zero within a part although it has the same sign s at both ends.

    There s g is at least the larger of its continuations from the left and from the right, if it is convex.
    """
    s = 1.0 if g[part, k] > 0.0 else -1.0
    low, high = s * g[0, k], s * g[0, k]
    for j in range(1, PARTS + 1):
        low, high = min(low, s * g[j, k]), max(high, s * g[j, k])
    a, b = s * g[part, k], s * g[part + 1, k]
    left = s * g[part - 1, k] if part > 0 else 0.0
    right = s * g[part + 2, k] if part + 2 <= PARTS else 0.0
    if part == 0:
        least = 2.0 * b - right
    elif part + 1 == PARTS:
        least = 2.0 * a - left
    else:  # a + (a - left) x and b + (b - right)(1 - x) at the x where they meet, if that is within
        down, up = left - a, right - b
        x = (a - b + up) / (down + up) if down + up > 0.0 else 0.5
        least = a - down * min(max(x, 0.0), 1.0)
    return min(a, b, least) < SLACK * (high - low)


@inner
def extreme(guard, context, k, s, poly, origin, scale, degree, a, b, y, g):
    """Time in [a, b] at which s g_k is smallest, or the first one found where it is not positive: (status, t, g_k)."""
    x1, x2 = b - GOLDEN * (b - a), a + GOLDEN * (b - a)
    narrow = max(NARROW * abs(b - a), 4.0 * EPSILON * max(abs(a), abs(b)))
    evaluate(poly, origin, scale, degree, x1, y)
    status = guard(context, x1, y, g)
    g1 = g[k]
    evaluate(poly, origin, scale, degree, x2, y)
    status = status if status != 0 else guard(context, x2, y, g)
    g2 = g[k]
    while status == 0 and s * g1 > 0.0 and s * g2 > 0.0 and abs(b - a) > narrow:
        if s * g1 < s * g2:
            b, x2, g2 = x2, x1, g1
            x1 = b - GOLDEN * (b - a)
            evaluate(poly, origin, scale, degree, x1, y)
            status = guard(context, x1, y, g)
            g1 = g[k]
        else:
            a, x1, g1 = x1, x2, g2
            x2 = a + GOLDEN * (b - a)
            evaluate(poly, origin, scale, degree, x2, y)
            status = guard(context, x2, y, g)
            g2 = g[k]
    if s * g1 <= 0.0:
        return status, x1, g1
    return status, x2, g2


@inner
def locate(guard, context, k, poly, origin, scale, degree, a, b, ga, gb, y, g):
    """Time in (a, b] at which g_k, of other signs at a and b, is zero: (status, time). `guard(context, t, y, g) ->
    status` fills g."""
    t1, t2, g1, g2 = b, a, gb, ga
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


@inner
def boundary(guard, context, k, poly, origin, scale, degree, a, b, sign, positive, y, g):
    """Time in [a, b] from which on sign g_k is positive (or not), as it is at b and not at a, by bisection: (status,
    time, whether that is at once)."""
    low, high, tolerance = a, b, 2.0 * EPSILON * max(abs(a), abs(b))
    while abs(high - low) > tolerance:
        t = low + 0.5 * (high - low)
        if t == low or t == high:
            break
        evaluate(poly, origin, scale, degree, t, y)
        status = guard(context, t, y, g)
        if status != 0:
            return status, t, False
        if ((g[k] > 0.0 and sign > 0.0) or (g[k] < 0.0 and sign < 0.0)) == positive:
            high = t
        else:
            low = t
    return 0, a if low == a else high, low == a
