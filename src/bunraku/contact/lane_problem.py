"""Contact problems of W states at once, with few contacts: Newton's method of `problem.py` with full steps, in lanes.

A step solves the linear problem of the modes that f - u tells, of each state its own. The force of a contact is B x and
its rows are those of C^T u, with x in three numbers (normal, along the first tangent, along the second or across slip):

    sticking   B = C = 1
    sliding    f = (1, mu e) x_0 + q x_2;   u_n = 0,  u_q + sigma f_q / rho = 0;   e along friction, q across it
    open       f = 0

and 1 on the diagonal of rows that a mode does not have. So A = C^T Theta B + D is of the same size in all states, and
forces are not scaled: rho, 1 / theta_ii, takes velocities to forces. Redundant contacts make A singular. A proximal
term, FIRM theta_ii on the diagonal, makes it regular [Parikh, Boyd, Proximal algorithms (2014), 4.1]: as each step
begins from the residual of the last, velocities converge to those of the exact problem by a factor FIRM / (smallest
eigenvalue that is not zero) a step. The first step tells modes by the forces given and begins without any, so forces
that are redundant are the smallest, with friction distributed as the load is: away from the border of the cone, where
modes change.

A state is finished when its residual is below LAW_AIM; its forces stay, whatever its neighbours still need. Those not
solved after STEPS are left to `solve_contacts`, which shortens steps and has further attempts.

A is factored by blocks of 3 x 3, L U without pivoting, again only if a mode or a direction of slip has changed. Cost:
9 K^3 multiplications of lanes for the factors of K contacts, 27 K^2 for each step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bunraku.entries.signatures import lane_array
from bunraku.jit import allocating, inline, inner
from bunraku.spatial.algebra import add, load3, load9, matmul, matvec, store3, store6, store9, sub
from bunraku.spatial.scalar import constant, largest, load, maximum, sqrt, store, where_positive
from bunraku.tolerances import LAW_AIM, NEGLIGIBLE

STEPS = 8           # of Newton's method
FIRM = 1e-9         # proximal term, part of the diagonal
UNLIKE = 100.0      # most that it is larger for the friction of a lightly loaded contact
LOOSE = 1.1         # part of the radius of friction within which a contact sticks at first

# Scalars of a contact in `modes`: which of its rows there are, and their directions
CLOSED, STICKS, ALONG, ACROSS, YIELD, MODES = 0, 1, 2, 4, 6, 7


class LaneProblem(NamedTuple):
    """Buffers of lanes for the problems of W states, of up to K contacts each."""

    b: Any         # 3 K
    mu: Any        # K
    rho: Any       # 2 K, 1 / theta_ii: normal, mean of the tangents
    firm: Any      # 2 K, proximal term: normal, tangents
    force: Any     # 3 K
    velocity: Any  # 3 K
    step: Any      # 3 K, x
    modes: Any     # MODES K
    factors: Any   # 9 K^2, blocks of 3 x 3
    plain: Any     # K, 1: sticking in all states
    wanted: Any    # 1, positive in states with a problem
    residual: Any  # 1
    size: Any      # 1, the largest of |b| and |theta_ii f_i|


@allocating
def lane_problem(count):
    return LaneProblem(
        lane_array(3 * count), lane_array(count), lane_array(2 * count), lane_array(2 * count),
        lane_array(3 * count), lane_array(3 * count), lane_array(3 * count), lane_array(MODES * count),
        lane_array(9 * count * count), np.empty(count, np.int64), lane_array(1), lane_array(1), lane_array(1))


@inner
def solve_in_lanes(p, theta, count):
    """Solve the problems of the states where `wanted` is positive, from `force`. `residual` is as that of
    `solve_contacts`: above LAW_CLOSE, or not a number, where there is no solution yet."""
    find_mobilities(p, theta, count)
    find_velocities(p, theta, count)
    left, factored = load(p.wanted, 0), False
    for done in range(STEPS + 1):
        changed = find_modes(p, count, left, done > 0)
        left = where_positive(LAW_AIM - load(p.residual, 0), 0.0 * left, left)
        if not largest(left) > 0.0 or done == STEPS:
            break
        if changed or not factored:
            factorise(p, theta, count, left)
            factored = True
        if done == 0:
            forget_forces(p, count, left)
        elif choose_forces(p, count, left):
            find_velocities(p, theta, count)
        take_step(p, theta, count, left)
    obey_law(p, count)


@inner
def find_mobilities(p, theta, count):
    """rho, 1 where nothing moves; and the proximal term, which is larger for the friction of lightly loaded contacts,
    so that it is distributed as the load is."""
    n, most = 3 * count, constant(p.b, 0.0)
    for k in range(count):
        most = maximum(most, load(p.force, 3 * k))
    for k in range(count):
        i = 3 * k
        normal = load(theta, i * n + i)
        tangential = 0.5 * (load(theta, (i + 1) * n + i + 1) + load(theta, (i + 2) * n + i + 2))
        normal, tangential = where_positive(normal, normal, 1.0), where_positive(tangential, tangential, 1.0)
        store(p.rho, 2 * k, 1.0 / normal)
        store(p.rho, 2 * k + 1, 1.0 / tangential)
        share = where_positive(most, most, 1.0) / maximum(load(p.force, i), where_positive(most, most, 1.0) / UNLIKE)
        store(p.firm, 2 * k, FIRM * normal)
        store(p.firm, 2 * k + 1, FIRM * tangential * share)


@inline
def block(theta, count, k, other):
    """Theta of two contacts."""
    o, n = 9 * k * count + 3 * other, 3 * count
    x, y, z = load3(theta, o), load3(theta, o + n), load3(theta, o + 2 * n)
    return (x[0], x[1], x[2], y[0], y[1], y[2], z[0], z[1], z[2])


@inner
def find_velocities(p, theta, count):
    """Theta f + b."""
    for k in range(count):
        u = load3(p.b, 3 * k)
        for other in range(count):
            u = add(u, matvec(block(theta, count, k, other), load3(p.force, 3 * other)))
        store3(p.velocity, 3 * k, u)


@inline
def aim_of(p, k):
    """f - rho u of a contact."""
    f, u = load3(p.force, 3 * k), load3(p.velocity, 3 * k)
    normal, tangential = load(p.rho, 2 * k), load(p.rho, 2 * k + 1)
    return f[0] - normal * u[0], f[1] - tangential * u[1], f[2] - tangential * u[2]


@inner
def find_modes(p, count, left, known):
    """Modes by f - u, and the residual. Returns whether the matrix of a state that is `left` has changed, if it was
    `known`."""
    zero = constant(p.b, 0.0)
    worst, size, change = zero, zero, zero
    for k in range(count):
        o = MODES * k
        f, b, t = load3(p.force, 3 * k), load3(p.b, 3 * k), aim_of(p, k)
        normal, tangential = load(p.rho, 2 * k), load(p.rho, 2 * k + 1)
        closed = where_positive(t[0], zero + 1.0, zero)
        pressed = maximum(t[0], zero)
        radius = load(p.mu, k) * pressed
        length = sqrt(t[1] * t[1] + t[2] * t[2])
        rubs = where_positive(radius, closed, zero)
        sticks = where_positive(length - (radius if known else LOOSE * radius), zero, rubs)
        slips = where_positive(radius - NEGLIGIBLE * length, rubs - sticks, zero)
        to_unit = 1.0 / where_positive(slips, length, 1.0)
        e_1, e_2 = slips * t[1] * to_unit, slips * t[2] * to_unit
        # the law: f = projection of f - rho u
        rest = sub(f, (pressed, sticks * t[1] + radius * e_1, sticks * t[2] + radius * e_2))
        worst = maximum(worst, magnitude(rest[0]) / normal)
        worst = maximum(worst, sqrt(rest[1] * rest[1] + rest[2] * rest[2]) / tangential)
        worst = worst + 0.0 * (rest[0] + rest[1] + rest[2])  # not a number stays
        size = maximum(size, maximum(magnitude(b[0]), magnitude(f[0]) / normal))
        size = maximum(size, maximum(maximum(magnitude(b[1]), magnitude(b[2])),
                                     maximum(magnitude(f[1]), magnitude(f[2])) / tangential))
        # its derivative
        mu = load(p.mu, k)
        yields = slips * (length / where_positive(slips, radius, 1.0) - 1.0) / tangential
        new = (closed, sticks, mu * e_1, mu * e_2, 0.0 - e_2, sticks + e_1, yields)
        if known:
            change = maximum(change, distance(load7(p.modes, o), new))
        store7(p.modes, o, new)
    store(p.size, 0, size)
    store(p.residual, 0, worst / where_positive(size, size, 1.0))
    return largest(where_positive(left, change, zero)) > 0.0


@inline
def magnitude(x):
    return maximum(x, 0.0 - x)


@inline
def load7(array, o):
    return (load(array, o), load(array, o + 1), load(array, o + 2), load(array, o + 3), load(array, o + 4),
            load(array, o + 5), load(array, o + 6))


@inline
def store7(array, o, x):
    store6(array, o, (x[0], x[1], x[2], x[3], x[4], x[5]))
    store(array, o + 6, x[6])


@inline
def distance(x, y):
    """The largest difference of 7 numbers."""
    most = maximum(magnitude(x[0] - y[0]), magnitude(x[1] - y[1]))
    most = maximum(most, maximum(magnitude(x[2] - y[2]), magnitude(x[3] - y[3])))
    return maximum(maximum(most, magnitude(x[4] - y[4])), maximum(magnitude(x[5] - y[5]), magnitude(x[6] - y[6])))


# -- the linear problem ------------------------------------------------------------------------------------------------


@inline
def of_matrix(p, theta, count, k, other):
    """A block of C^T Theta B."""
    M = block(theta, count, k, other)
    if p.plain[other] == 0:
        m = load7(p.modes, MODES * other)
        along = (m[CLOSED], m[ALONG], m[ALONG + 1])
        M = (M[0] * along[0] + M[1] * along[1] + M[2] * along[2], M[1] * m[STICKS],
             M[1] * m[ACROSS] + M[2] * m[ACROSS + 1],
             M[3] * along[0] + M[4] * along[1] + M[5] * along[2], M[4] * m[STICKS],
             M[4] * m[ACROSS] + M[5] * m[ACROSS + 1],
             M[6] * along[0] + M[7] * along[1] + M[8] * along[2], M[7] * m[STICKS],
             M[7] * m[ACROSS] + M[8] * m[ACROSS + 1])
    if p.plain[k] == 0:
        m = load7(p.modes, MODES * k)
        M = (m[CLOSED] * M[0], m[CLOSED] * M[1], m[CLOSED] * M[2],
             m[STICKS] * M[3], m[STICKS] * M[4], m[STICKS] * M[5],
             m[ACROSS] * M[3] + m[ACROSS + 1] * M[6], m[ACROSS] * M[4] + m[ACROSS + 1] * M[7],
             m[ACROSS] * M[5] + m[ACROSS + 1] * M[8])
    return M


@inline
def on_diagonal(p, k):
    """D of a contact."""
    m = load7(p.modes, MODES * k)
    along, across = load(p.firm, 2 * k), load(p.firm, 2 * k + 1)
    return (where_positive(m[CLOSED], along, 1.0), where_positive(m[STICKS], across, 1.0),
            where_positive(m[ACROSS] * m[ACROSS] + m[ACROSS + 1] * m[ACROSS + 1], across + m[YIELD], 1.0))


@inline
def sub9(M, N):
    return (M[0] - N[0], M[1] - N[1], M[2] - N[2], M[3] - N[3], M[4] - N[4], M[5] - N[5], M[6] - N[6], M[7] - N[7],
            M[8] - N[8])


@inner
def factorise(p, theta, count, left):
    """A = L U by blocks: below the diagonal L, on and above it U; on the diagonal the factors of `factor3`."""
    for k in range(count):
        loose = left - where_positive(left, load(p.modes, MODES * k + STICKS), 0.0 * left)
        p.plain[k] = 0 if largest(loose) > 0.0 else 1
    for k in range(count):
        for other in range(count):
            M = of_matrix(p, theta, count, k, other)
            for m in range(min(k, other)):
                M = sub9(M, matmul(load9(p.factors, 9 * (k * count + m)), load9(p.factors, 9 * (m * count + other))))
            if other < k:
                M = divided(M, load9(p.factors, 9 * (other * count + other)))
            elif other == k:
                d = on_diagonal(p, k)
                M = factored((M[0] + d[0], M[1], M[2], M[3], M[4] + d[1], M[5], M[6], M[7], M[8] + d[2]))
            store9(p.factors, 9 * (k * count + other), M)


@inline
def factored(M):
    """L U of a block without pivoting: 1 / u_00, u_01, u_02; l_10, 1 / u_11, u_12; l_20, l_21, 1 / u_22."""
    r_0 = 1.0 / M[0]
    l_10, l_20 = M[3] * r_0, M[6] * r_0
    r_1, u_12 = 1.0 / (M[4] - l_10 * M[1]), M[5] - l_10 * M[2]
    l_21 = (M[7] - l_20 * M[1]) * r_1
    return (r_0, M[1], M[2], l_10, r_1, u_12, l_20, l_21, 1.0 / (M[8] - l_20 * M[2] - l_21 * u_12))


@inline
def divided(M, F):
    """M times the inverse of a factored block, row by row."""
    x, y, z = (divided_row((M[0], M[1], M[2]), F), divided_row((M[3], M[4], M[5]), F),
               divided_row((M[6], M[7], M[8]), F))
    return (x[0], x[1], x[2], y[0], y[1], y[2], z[0], z[1], z[2])


@inline
def divided_row(m, F):
    y_0 = m[0] * F[0]
    y_1 = (m[1] - y_0 * F[1]) * F[4]
    x_2 = (m[2] - y_0 * F[2] - y_1 * F[5]) * F[8]
    x_1 = y_1 - x_2 * F[7]
    return (y_0 - x_1 * F[3] - x_2 * F[6], x_1, x_2)


@inline
def solved(F, b):
    """The inverse of a factored block times b."""
    y_1 = b[1] - F[3] * b[0]
    x_2 = (b[2] - F[6] * b[0] - F[7] * y_1) * F[8]
    x_1 = (y_1 - F[5] * x_2) * F[4]
    return ((b[0] - F[1] * x_1 - F[2] * x_2) * F[0], x_1, x_2)


@inner
def take_step(p, theta, count, left):
    """Forces and velocities after a step of the states that are `left`."""
    for k in range(count):
        u, f, m = load3(p.velocity, 3 * k), load3(p.force, 3 * k), load7(p.modes, MODES * k)
        across = m[ACROSS] * u[1] + m[ACROSS + 1] * u[2] + m[YIELD] * (m[ACROSS] * f[1] + m[ACROSS + 1] * f[2])
        side = (0.0 - m[CLOSED] * u[0], 0.0 - m[STICKS] * u[1], 0.0 - across)
        for other in range(k):
            side = sub(side, matvec(load9(p.factors, 9 * (k * count + other)), load3(p.step, 3 * other)))
        store3(p.step, 3 * k, side)
    for back in range(count):
        k = count - 1 - back
        side = load3(p.step, 3 * k)
        for other in range(k + 1, count):
            side = sub(side, matvec(load9(p.factors, 9 * (k * count + other)), load3(p.step, 3 * other)))
        x, m, f = solved(load9(p.factors, 9 * (k * count + k)), side), load7(p.modes, MODES * k), load3(p.force, 3 * k)
        store3(p.step, 3 * k, x)
        x = (m[CLOSED] * x[0], m[ALONG] * x[0] + m[STICKS] * x[1] + m[ACROSS] * x[2],
             m[ALONG + 1] * x[0] + m[ACROSS + 1] * x[2])
        store3(p.force, 3 * k, chosen(left, add(f, x), f))
    find_velocities(p, theta, count)


@inline
def chosen(left, x, y):
    return (where_positive(left, x[0], y[0]), where_positive(left, x[1], y[1]), where_positive(left, x[2], y[2]))


@inline
def allowed(f, m):
    """The nearest force of a mode."""
    across = m[ACROSS] * f[1] + m[ACROSS + 1] * f[2]
    return (m[CLOSED] * f[0], m[ALONG] * f[0] + m[STICKS] * f[1] + m[ACROSS] * across,
            m[ALONG + 1] * f[0] + m[ACROSS + 1] * across)


@inner
def forget_forces(p, count, left):
    """No forces: what was known of them are the modes."""
    zero = constant(p.b, 0.0)
    for i in range(3 * count):
        store(p.force, i, where_positive(left, zero, load(p.force, i)))
        store(p.velocity, i, where_positive(left, load(p.b, i), load(p.velocity, i)))


@inner
def choose_forces(p, count, left):
    """The part of the step that the modes alone determine. Returns whether there is one in any state."""
    moved = 0.0 * left
    for k in range(count):
        f = load3(p.force, 3 * k)
        g = chosen(left, allowed(f, load7(p.modes, MODES * k)), f)
        store3(p.force, 3 * k, g)
        d = sub(g, f)
        moved = maximum(moved, maximum(magnitude(d[0]), maximum(magnitude(d[1]), magnitude(d[2]))))
    return largest(moved) > 0.0


@inline
def slip_of(p, k):
    """Speed of a sliding contact with friction."""
    return load(p.modes, MODES * k + YIELD) * load(p.mu, k) * maximum(load(p.force, 3 * k), 0.0)


@inner
def obey_law(p, count):
    """Forces that obey the law of forces exactly, as in `finish`."""
    for k in range(count):
        m, f = load7(p.modes, MODES * k), load3(p.force, 3 * k)
        normal = m[CLOSED] * maximum(f[0], 0.0 * f[0])
        radius = load(p.mu, k) * normal
        length = sqrt(f[1] * f[1] + f[2] * f[2])
        held = m[STICKS] * where_positive(length - radius, radius / where_positive(length, length, 1.0), 1.0)
        store3(p.force, 3 * k, (normal, m[ALONG] * normal + held * f[1], m[ALONG + 1] * normal + held * f[2]))
