"""The contact problem: forces of contacts with Coulomb friction, without softness or pyramids.

K contacts, three rows each (normal, two tangents). Contact velocities depend on contact forces by u = Theta f + b,
Theta symmetric and positive semidefinite, singular if contacts are redundant. Law of each contact:

    0 <= u_n,  0 <= f_n,  u_n f_n = 0                                                  (Signorini)
    DISC:   |f_t| <= mu f_n,  and  f_t = -mu f_n u_t / |u_t|  where u_t != 0           (Coulomb)
    GIVEN:  f_t = -mu f_n slip, the direction of slip being known; u_t is free

The same for accelerations of contacts that are closed and at rest (DISC) or slide (GIVEN).

Method: the law is the fixed point of a projection [Alart, Curnier 1991]. With t = f - u, in units in which the
diagonal of Theta is 1,

    f_n = max(0, t_n),    f_t = projection of t_t to the disc of radius mu max(0, t_n)

which is piecewise smooth, so Newton's method works: t tells which contacts are open (f = 0), sticking (u = 0) or
sliding. In a sliding contact with e = t_t / |t_t| the new force along e is mu f_n, while across e, the direction q,

    u_q + sigma f_q = 0,    sigma = |t_t| / (mu t_n) - 1

So three rows are left for a sticking contact, two for a sliding one, one for a frictionless or GIVEN one. Forces of
redundant contacts change as little as possible (`least_norm.py`). Steps are shortened until the residual decreases.
It is a sum of forces and velocities: a common factor makes these equally large (`balance`).

Where this fails, further attempts are made (`fall_back`), a fixed number of them, up to CONTACT_WORK
(`tolerances.py`); the best forces of all are kept, and their residual is reported. They try combinations of open
and closed GIVEN contacts, continuation in decreasing compliance, sweeps over single contacts (block Gauss-Seidel,
`single.py`), or other initial forces and factors.

Coulomb friction may have several solutions; GIVEN directions may have none (Painleve). Forces of redundant contacts
are not unique: `smallest_forces.py`.

Reference: Acary, Bremond, Huber, "On solving contact problems with Coulomb friction: formulations and numerical
comparisons" (2018). Cost: an iteration is a factorisation of at most 3K rows; sweeps cost a few rows of one.
"""

import numpy as np

from bunraku.contact.contact_calls import PROBLEM
from bunraku.contact.contact_fields import (
    FORCES,
    GIVEN,
    MODES,
    NO_SOLUTION,
    NONE,
    OPEN,
    ROUGH,
    SLIDING,
    SOLVED,
    STICKING,
)
from bunraku.contact.least_norm import add, dot, least_norm
from bunraku.contact.problem_memory import (
    BASE,
    BEST,
    BIAS,
    CHANGE,
    COLUMN,
    FIRST,
    FORCE,
    FRICTION,
    KEPT,
    SCALE,
    SIDE,
    SIGMA,
    STEP,
    TOWARDS,
    VELOCITY,
    contact_at,
    matrix_at,
    scratch_at,
    vector_at,
)
from bunraku.contact.single import solve_single
from bunraku.jit import entry, inline, inner
from bunraku.spatial.scalar import load, store
from bunraku.tolerances import CONTACT_WORK

AIM = 1e-12          # residual at which iterations end
CLOSE = 3e-11        # residual without further attempts
ENOUGH = 1e-10       # residual of a solution
ITERATIONS = 30      # of Newton's method
HALVINGS = 12        # of a step
SHORTEST = 0.75 * 0.5 ** (HALVINGS - 1)
PATIENCE = 3         # steps
DECREASE = 1e-3      # part of the step by which squares have to decrease
SMALL = 1e-12        # columns below this part of the longest are zero: directions that nothing can move
VAGUE = 1e-9         # the same far from a solution
NEGLIGIBLE = 1e-13   # mobility below this part of the largest counts as this part; friction below this part of slip
FLAT = 1e-9          # curvature that counts as none
ATTEMPTS = 60        # of the fallback
FEW = 6              # of them, where a better solution is looked for or there may be none (Painleve)
SWEEPS = 20          # at least
MANY_SWEEPS = 200    # where work is short: they cost as much as a factorisation or two
MOST_CHOICES = 64    # combinations of open and closed GIVEN contacts
PLENTY = 500         # factorisations allowed, from which on the order of attempts is that of small problems
YIELDING = 12        # solutions with contacts that yield
LESS = 0.25          # by how much less each time
FACTORS = (0.0625, 0.25, 1.0, 4.0, 16.0)  # of forces and velocities, beside that of `balance`


@entry("contact problems", PROBLEM, seconds=6, for_kernels=True)
def contact_problem(count, theta, b, mu, kind, slip, start, force, mode, work):
    return solve_contacts(count, theta, b, mu, kind, slip, start, force, mode, work)


@inner
def solve_contacts(count, theta, b, mu, kind, slip, start, force, mode, work):
    """Solve the contact problem: (residual, iterations, status).

    theta: (3K)^2 by rows; b, force: 3K; mu, kind, mode: K; slip: 2K, unit directions of GIVEN; work: `problem_size(K)`.
    start: NONE, from the smallest sticking forces; FORCES, from `force`; MODES, from the linear solution of `mode` that
    is closest to `force`, along which is the friction of sliding contacts (GIVEN: against `slip`).
    residual: largest violation of the law in units of u, divided by the largest of |b| and |theta_ii f_i|.
    iterations: factorisations, and sweeps. status: SOLVED, residual at most 1e-10; ROUGH, more; NO_SOLUTION, more, and
    GIVEN contacts with negative curvature, of which all combinations of open and closed ones were tried, up to 64.
    """
    scale_problem(count, theta, b, mu, force, work)
    iterations = 0
    if start != FORCES:
        first_forces(count, start, kind, slip, mode, work)
        iterations += 1
    rescale(count, balance(count, work), work)
    residual, more = newton(count, ITERATIONS, 0.0, kind, slip, mode, work)
    iterations += more
    doubtful = False
    if residual <= CLOSE:
        residual = finish(count, kind, slip, force, mode, work)
    if not residual <= CLOSE:
        residual, more, doubtful = fall_back(count, residual, kind, slip, mode, work)
        iterations += more
        residual = finish(count, kind, slip, force, mode, work)
    return residual, iterations, SOLVED if residual <= ENOUGH else NO_SOLUTION if doubtful else ROUGH


# -- scaling -----------------------------------------------------------------------------------------------------------

@inner
def scale_problem(count, theta, b, mu, force, work):
    """Divide forces, multiply velocities by SCALE: the diagonal becomes 1, its tangential entries on the average."""
    n = 3 * count
    scale, bias, forces = vector_at(count, SCALE), vector_at(count, BIAS), vector_at(count, FORCE)
    store(work, contact_at(count, count), 1.0)
    largest = 0.0
    for i in range(n):
        largest = max(largest, load(theta, i * n + i))
    floor = NEGLIGIBLE * largest if largest > 0.0 else 1.0
    for k in range(count):
        i = 3 * k
        normal = load(theta, i * n + i)
        tangential = 0.5 * (load(theta, (i + 1) * n + i + 1) + load(theta, (i + 2) * n + i + 2))
        along = 1.0 / np.sqrt(max(normal, floor))
        across = 1.0 / np.sqrt(max(tangential, floor))
        store(work, scale + i, along)
        store(work, scale + i + 1, across)
        store(work, scale + i + 2, across)
        store(work, contact_at(count, k) + FRICTION, mu[k] * along / across)
    for i in range(n):
        s = load(work, scale + i)
        store(work, bias + i, load(b, i) * s)
        store(work, forces + i, load(force, i) / s)
        for j in range(n):
            store(work, i * n + j, load(theta, i * n + j) * s * load(work, scale + j))


@inner
def rescale(count, factor, work):
    """Divide forces, multiply velocities by a factor."""
    if factor == 1.0:
        return
    n = 3 * count
    at = contact_at(count, count)
    store(work, at, load(work, at) * factor)
    for i in range(n * n):
        store(work, i, load(work, i) * factor * factor)
    for i in range(n):
        multiply_at(vector_at(count, BIAS) + i, factor, work)
        multiply_at(vector_at(count, SCALE) + i, factor, work)
        multiply_at(vector_at(count, FORCE) + i, 1.0 / factor, work)
        multiply_at(vector_at(count, BEST) + i, 1.0 / factor, work)


@inline
def multiply_at(i, factor, work):
    store(work, i, load(work, i) * factor)


@inner
def balance(count, work):
    """The power of 2 for `rescale` that makes forces and BIAS about equally large."""
    f = largest(3 * count, vector_at(count, FORCE), work)
    b = largest(3 * count, vector_at(count, BIAS), work)
    factor = 1.0
    if f > 0.0 and b > 0.0 and f < np.inf:
        while f > 4.0 * b:
            factor *= 2.0
            b *= 4.0
        while b > 4.0 * f:
            factor *= 0.5
            f *= 4.0
    return factor


@inner
def largest(n, a, work):
    most = 0.0
    for i in range(n):
        most = max(most, abs(load(work, a + i)))
    return most


# -- the law -----------------------------------------------------------------------------------------------------------

@inline
def project(f_n, f_1, f_2, u_n, u_1, u_2, mu, given, slip_1, slip_2):
    """Mode and force of the projection of f - u; for a sliding contact the direction e and sigma (-1: no row)."""
    t_n, t_1, t_2 = f_n - u_n, f_1 - u_1, f_2 - u_2
    if not t_n > 0.0:
        return OPEN, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0
    radius = mu * t_n
    if given == GIVEN:
        return SLIDING, t_n, -radius * slip_1, -radius * slip_2, -slip_1, -slip_2, -1.0
    length = np.sqrt(t_1 * t_1 + t_2 * t_2)
    if length <= radius and mu > 0.0:
        return STICKING, t_n, t_1, t_2, 0.0, 0.0, -1.0
    if radius <= NEGLIGIBLE * length or length == 0.0:
        return SLIDING, t_n, 0.0, 0.0, 0.0, 0.0, -1.0
    e_1, e_2 = t_1 / length, t_2 / length
    return SLIDING, t_n, radius * e_1, radius * e_2, e_1, e_2, length / radius - 1.0


@inner
def merit(count, step, kind, slip, work):
    """Sum of squares of the residual after a part of a step."""
    f, u = vector_at(count, FORCE), vector_at(count, VELOCITY)
    df, du = vector_at(count, STEP), vector_at(count, CHANGE)
    total = 0.0
    for k in range(count):
        i = 3 * k
        f_n = load(work, f + i) + step * load(work, df + i)
        f_1 = load(work, f + i + 1) + step * load(work, df + i + 1)
        f_2 = load(work, f + i + 2) + step * load(work, df + i + 2)
        _, p_n, p_1, p_2, _, _, _ = project(
            f_n, f_1, f_2, load(work, u + i) + step * load(work, du + i),
            load(work, u + i + 1) + step * load(work, du + i + 1),
            load(work, u + i + 2) + step * load(work, du + i + 2),
            load(work, contact_at(count, k) + FRICTION), kind[k], slip[2 * k], slip[2 * k + 1])
        total += (f_n - p_n) * (f_n - p_n) + (f_1 - p_1) * (f_1 - p_1) + (f_2 - p_2) * (f_2 - p_2)
    return total


@inner
def classify(count, kind, slip, mode, work):
    """Modes, directions and sigma of the forces at hand; sum of squares of the residual."""
    f, u = vector_at(count, FORCE), vector_at(count, VELOCITY)
    total = 0.0
    for k in range(count):
        i, o = 3 * k, contact_at(count, k)
        f_n, f_1, f_2 = load(work, f + i), load(work, f + i + 1), load(work, f + i + 2)
        state, p_n, p_1, p_2, e_1, e_2, sigma = project(
            f_n, f_1, f_2, load(work, u + i), load(work, u + i + 1), load(work, u + i + 2),
            load(work, o + FRICTION), kind[k], slip[2 * k], slip[2 * k + 1])
        mode[k] = state
        store(work, o + TOWARDS, e_1)
        store(work, o + TOWARDS + 1, e_2)
        store(work, o + SIGMA, sigma)
        total += (f_n - p_n) * (f_n - p_n) + (f_1 - p_1) * (f_1 - p_1) + (f_2 - p_2) * (f_2 - p_2)
    return total


@inner
def violation(count, kind, slip, work):
    """Residual as `solve_contacts` defines it: of the projection in the units in which the diagonal of Theta is 1."""
    f, u, scale = vector_at(count, FORCE), vector_at(count, VELOCITY), vector_at(count, SCALE)
    factor = load(work, contact_at(count, count))
    to_force, worst = factor * factor, 0.0
    for k in range(count):
        i, o = 3 * k, contact_at(count, k)
        f_n, f_1, f_2 = (to_force * load(work, f + i), to_force * load(work, f + i + 1),
                         to_force * load(work, f + i + 2))
        u_n, u_1, u_2 = load(work, u + i), load(work, u + i + 1), load(work, u + i + 2)
        _, p_n, p_1, p_2, _, _, _ = project(f_n, f_1, f_2, u_n, u_1, u_2, load(work, o + FRICTION), kind[k],
                                            slip[2 * k], slip[2 * k + 1])
        wrong = max(abs(f_n - p_n) / load(work, scale + i),
                    np.sqrt((f_1 - p_1) * (f_1 - p_1) + (f_2 - p_2) * (f_2 - p_2)) / load(work, scale + i + 1))
        if not (wrong < np.inf and abs(u_n) < np.inf and abs(u_1) < np.inf and abs(u_2) < np.inf):
            return np.inf
        worst = max(worst, wrong)
    size = extent(count, work)
    return worst / size if size > 0.0 else 0.0


@inner
def extent(count, work):
    """Size of the problem: the largest of |b| and |theta_ii f_i|."""
    f, bias, scale = vector_at(count, FORCE), vector_at(count, BIAS), vector_at(count, SCALE)
    factor = load(work, contact_at(count, count))
    size = 0.0
    for i in range(3 * count):
        size = max(size, max(abs(load(work, bias + i)), factor * factor * abs(load(work, f + i)))
                   / load(work, scale + i))
    return size


# -- Newton's method ---------------------------------------------------------------------------------------------------

@inner
def multiply(count, epsilon, x, y, work):
    """y = (Theta + epsilon) x."""
    n = 3 * count
    for i in range(n):
        store(work, y + i, dot(n, i * n, x, work) + epsilon * load(work, x + i))


@inner
def find_velocities(count, epsilon, work):
    """VELOCITY of FORCE; with epsilon contacts are compliant relative to BASE."""
    u, bias, base = vector_at(count, VELOCITY), vector_at(count, BIAS), vector_at(count, BASE)
    multiply(count, epsilon, vector_at(count, FORCE), u, work)
    for i in range(3 * count):
        store(work, u + i, load(work, u + i) + load(work, bias + i))
    if epsilon > 0.0:
        add(3 * count, -epsilon, base, u, work)


@inner
def newton(count, limit, epsilon, kind, slip, mode, work):
    """Newton's method from FORCE; residual and iterations.

    A step must reduce the squared residual below one of the last two; if no fraction of it does, the full step is
    taken, as a restart elsewhere. The best of all forces is KEPT; once close to a solution, PATIENCE steps without
    improvement end the iteration.
    """
    n, kept = 3 * count, vector_at(count, KEPT)
    f, df, du = vector_at(count, FORCE), vector_at(count, STEP), vector_at(count, CHANGE)
    find_velocities(count, epsilon, work)
    square, residual = classify(count, kind, slip, mode, work), violation(count, kind, slip, work)
    before, improves, least, vain, done = square, True, residual, 0, 0
    copy(n, f, kept, work)
    while done < limit and residual > AIM and residual < np.inf and not (least <= CLOSE and vain >= PATIENCE):
        done += 1
        small = max(SMALL, min(residual, VAGUE)) if improves else SMALL
        find_step(count, epsilon, small, mode, work)
        multiply(count, epsilon, df, du, work)
        step, allowed = 1.0, max(square, before)
        for _ in range(HALVINGS):
            if merit(count, step, kind, slip, work) < (1.0 - DECREASE * step) * allowed:
                break
            step *= 0.5
        if step < SHORTEST:
            step = 1.0
        add(n, step, df, f, work)
        find_velocities(count, epsilon, work)
        before, last = square, residual
        square, residual = classify(count, kind, slip, mode, work), violation(count, kind, slip, work)
        improves = residual < 0.5 * last
        if residual < least:
            least, vain = residual, 0
            copy(n, f, kept, work)
        else:
            vain += 1
    if least < residual:
        copy(n, kept, f, work)
    return least, done


@inner
def find_step(count, epsilon, small, mode, work):
    """STEP of FORCE: least-norm solution of the linear problem of `mode`, directions and sigma."""
    n = 3 * count
    f, u, df, side, column = (vector_at(count, FORCE), vector_at(count, VELOCITY), vector_at(count, STEP),
                              vector_at(count, SIDE), vector_at(count, COLUMN))
    size = number_rows(count, mode, work)
    if decide_by_modes(count, mode, work):
        multiply(count, epsilon, df, column, work)
        add(n, 1.0, u, column, work)
        restrict(count, -1.0, column, side, mode, work)
    else:
        restrict(count, -1.0, u, side, mode, work)
    for k in range(count):
        o = contact_at(count, k)
        sigma = load(work, o + SIGMA)
        if mode[k] == SLIDING and sigma >= 0.0:
            at = side + np.int64(load(work, o + FIRST)) + 1
            across = (load(work, o + TOWARDS) * load(work, f + 3 * k + 2)
                      - load(work, o + TOWARDS + 1) * load(work, f + 3 * k + 1))
            store(work, at, load(work, at) - sigma * across)
    fill_matrix(count, size, epsilon, mode, work)
    least_norm(size, matrix_at(count), side, scratch_at(count), small, work)
    for k in range(count):
        i, o = 3 * k, contact_at(count, k)
        at = side + np.int64(load(work, o + FIRST))
        if mode[k] == STICKING:
            for j in range(3):
                store(work, df + i + j, load(work, at + j))
        elif mode[k] == SLIDING:
            e_1, e_2, sigma = load(work, o + TOWARDS), load(work, o + TOWARDS + 1), load(work, o + SIGMA)
            normal = load(work, at)
            along = load(work, o + FRICTION) * normal
            across = load(work, at + 1) if sigma >= 0.0 else 0.0
            store(work, df + i, normal)
            store(work, df + i + 1, load(work, df + i + 1) + along * e_1 - across * e_2)
            store(work, df + i + 2, load(work, df + i + 2) + along * e_2 + across * e_1)


@inner
def number_rows(count, mode, work):
    """FIRST of every contact; the number of rows."""
    size = 0
    for k in range(count):
        o = contact_at(count, k)
        store(work, o + FIRST, float(size))
        if mode[k] == STICKING:
            size += 3
        elif mode[k] == SLIDING:
            size += 2 if load(work, o + SIGMA) >= 0.0 else 1
    return size


@inner
def decide_by_modes(count, mode, work):
    """The part of STEP determined by the modes alone; returns whether there is one."""
    f, df = vector_at(count, FORCE), vector_at(count, STEP)
    moved = False
    for k in range(count):
        i, o = 3 * k, contact_at(count, k)
        f_n, f_1, f_2 = load(work, f + i), load(work, f + i + 1), load(work, f + i + 2)
        d_n, d_1, d_2 = -f_n, -f_1, -f_2
        if mode[k] == STICKING:
            d_n, d_1, d_2 = 0.0, 0.0, 0.0
        elif mode[k] == SLIDING:
            e_1, e_2 = load(work, o + TOWARDS), load(work, o + TOWARDS + 1)
            along = load(work, o + FRICTION) * f_n
            if load(work, o + SIGMA) >= 0.0:
                along -= e_1 * f_1 + e_2 * f_2
                f_1, f_2 = 0.0, 0.0
            d_n, d_1, d_2 = 0.0, along * e_1 - f_1, along * e_2 - f_2
        store(work, df + i, d_n)
        store(work, df + i + 1, d_1)
        store(work, df + i + 2, d_2)
        moved = moved or d_n != 0.0 or d_1 != 0.0 or d_2 != 0.0
    return moved


@inner
def fill_matrix(count, size, epsilon, mode, work):
    """The linear problem of `mode`, column by column."""
    n, matrix, column = 3 * count, matrix_at(count), vector_at(count, COLUMN)
    for k in range(count):
        i, o = 3 * k, contact_at(count, k)
        first = np.int64(load(work, o + FIRST))
        if mode[k] == STICKING:
            for j in range(3):
                restrict(count, 1.0, (i + j) * n, matrix + (first + j) * size, mode, work)
                at = matrix + (first + j) * (size + 1)
                store(work, at, load(work, at) + epsilon)
        elif mode[k] == SLIDING:
            e_1, e_2, sigma = load(work, o + TOWARDS), load(work, o + TOWARDS + 1), load(work, o + SIGMA)
            mu = load(work, o + FRICTION)
            for j in range(n):
                store(work, column + j, load(work, i * n + j) + mu * (e_1 * load(work, (i + 1) * n + j)
                                                                      + e_2 * load(work, (i + 2) * n + j)))
            restrict(count, 1.0, column, matrix + first * size, mode, work)
            at = matrix + first * (size + 1)
            store(work, at, load(work, at) + epsilon)
            if sigma >= 0.0:
                for j in range(n):
                    store(work, column + j, e_1 * load(work, (i + 2) * n + j) - e_2 * load(work, (i + 1) * n + j))
                restrict(count, 1.0, column, matrix + (first + 1) * size, mode, work)
                at = matrix + (first + 1) * (size + 1)
                store(work, at, load(work, at) + epsilon + sigma)


@inner
def restrict(count, sign, source, target, mode, work):
    """The rows that are solved for: all of a sticking contact; normal and q of a sliding one."""
    for k in range(count):
        i, o = source + 3 * k, contact_at(count, k)
        at = target + np.int64(load(work, o + FIRST))
        if mode[k] == STICKING:
            store(work, at, sign * load(work, i))
            store(work, at + 1, sign * load(work, i + 1))
            store(work, at + 2, sign * load(work, i + 2))
        elif mode[k] == SLIDING:
            store(work, at, sign * load(work, i))
            if load(work, o + SIGMA) >= 0.0:
                store(work, at + 1, sign * (load(work, o + TOWARDS) * load(work, i + 2)
                                            - load(work, o + TOWARDS + 1) * load(work, i + 1)))


# -- starts ------------------------------------------------------------------------------------------------------------

@inner
def set_modes(count, start, kind, slip, mode, work):
    """Modes of a first solution, directions of friction in sliding contacts."""
    f = vector_at(count, FORCE)
    for k in range(count):
        i, o = 3 * k, contact_at(count, k)
        e_1, e_2 = 0.0, 0.0
        if start == NONE:
            mode[k] = STICKING
        if mode[k] == STICKING and (kind[k] == GIVEN or load(work, o + FRICTION) == 0.0):
            mode[k] = SLIDING
        if kind[k] == GIVEN:
            e_1, e_2 = -slip[2 * k], -slip[2 * k + 1]
        elif mode[k] == SLIDING:
            f_1, f_2 = load(work, f + i + 1), load(work, f + i + 2)
            length = np.sqrt(f_1 * f_1 + f_2 * f_2)
            if length > 0.0:
                e_1, e_2 = f_1 / length, f_2 / length
        store(work, o + TOWARDS, e_1)
        store(work, o + TOWARDS + 1, e_2)
        store(work, o + SIGMA, -1.0)


@inner
def first_forces(count, start, kind, slip, mode, work):
    """FORCE that holds all contacts, the smallest (NONE), or that `mode` needs, changed as little as possible (MODES).
    None if all contacts open by themselves."""
    n, f, bias = 3 * count, vector_at(count, FORCE), vector_at(count, BIAS)
    set_modes(count, start, kind, slip, mode, work)
    opening = start == NONE
    for k in range(count):
        opening = opening and load(work, bias + 3 * k) >= 0.0
    if start == NONE:
        clear(n, f, work)
        copy(n, bias, vector_at(count, VELOCITY), work)
    else:
        find_velocities(count, 0.0, work)
    if not opening:
        find_step(count, 0.0, SMALL, mode, work)
        add(n, 1.0, vector_at(count, STEP), f, work)


# -- fallback ----------------------------------------------------------------------------------------------------------

@inner
def clear(n, a, work):
    for i in range(n):
        store(work, a + i, 0.0)


@inner
def copy(n, a, b, work):
    for i in range(n):
        store(work, b + i, load(work, a + i))


@inner
def fall_back(count, residual, kind, slip, mode, work):
    """Further attempts at a solution, a fixed number, within CONTACT_WORK; leaves the best forces. Returns residual,
    iterations, and whether the problem may be infeasible. Large problems begin with sweeps, which are cheap."""
    n, f, best = 3 * count, vector_at(count, FORCE), vector_at(count, BEST)
    least, iterations, seed, factored, allowed = residual, 0, 1, 0, factorisations_allowed(count)
    large = allowed < PLENTY
    usual, size = load(work, contact_at(count, count)), largest(n, f, work)
    if not residual < np.inf:
        size = 1.0
        clear(n, f, work)
    copy(n, f, best, work)
    choices, doubtful = count_choices(count, kind), negative_curvature(count, kind, slip, mode, work)
    for attempt in range(1 if large else -choices, FEW if doubtful else ATTEMPTS):
        if attempt < 0:  # GIVEN contacts closed or open
            choose(count, -1 - attempt, kind, mode)
            clear(n, f, work)
            first_forces(count, MODES, kind, slip, mode, work)
        elif attempt % 4 == 0:  # contacts that yield less and less
            seed = other_forces(count, size if attempt > 0 else 0.0, seed, work)
            more = yield_less(count, usual * usual, allowed - factored, kind, slip, mode, work)
            iterations += more
            factored += more
        elif attempt % 4 == 1:  # one contact after the other
            copy(n, best, f, work)
            find_velocities(count, 0.0, work)
            sweeps = MANY_SWEEPS if large else SWEEPS + attempt
            for _ in range(sweeps):
                sweep(count, kind, slip, work)
            iterations += sweeps
        else:  # other forces, other units
            seed = other_forces(count, size, seed, work)
            rescale(count, FACTORS[attempt % 5] * usual / load(work, contact_at(count, count)), work)
        residual, more = newton(count, min(ITERATIONS, max(1, allowed - factored)), 0.0, kind, slip, mode, work)
        iterations += more
        factored += more
        if residual < least:
            least = residual
            copy(n, f, best, work)
        if least <= CLOSE or (least <= ENOUGH and attempt >= FEW) or factored >= allowed:
            break
        rescale(count, usual / load(work, contact_at(count, count)), work)
    copy(n, best, f, work)
    return least, iterations, doubtful


@inline
def factorisations_allowed(count):
    """Total budget of factorisations for the attempts of `fall_back`."""
    n = 3.0 * count
    return np.int64(min(CONTACT_WORK / (n * n * n), 1e6)) + ITERATIONS


@inner
def count_choices(count, kind):
    """How many combinations of open and closed GIVEN contacts are tried."""
    choices = 1
    for k in range(count):
        if kind[k] == GIVEN and choices < MOST_CHOICES:
            choices *= 2
    return choices if choices > 1 else 0


@inner
def choose(count, choice, kind, mode):
    """Modes of a choice, by its bits; the highest has all closed."""
    for k in range(count):
        mode[k] = STICKING
        if kind[k] == GIVEN:
            mode[k] = SLIDING if choice % 2 == 1 else OPEN
            choice //= 2


@inner
def yield_less(count, epsilon, most, kind, slip, mode, work):
    """Continuation with contacts of decreasing compliance epsilon, up to an iteration budget; returns the
    iterations."""
    copy(3 * count, vector_at(count, FORCE), vector_at(count, BASE), work)
    iterations = 0
    for _ in range(YIELDING):
        if iterations >= most:
            break
        _, more = newton(count, YIELDING, epsilon, kind, slip, mode, work)
        iterations += more
        epsilon *= LESS
    return iterations


@inner
def other_forces(count, size, seed, work):
    """FORCE from pseudo-random numbers between 0 and `size`, tangential ones of both signs; the next seed."""
    f = vector_at(count, FORCE)
    for i in range(3 * count):
        seed = (1103515245 * seed + 12345) % 2147483648
        part = seed / 2147483648.0
        store(work, f + i, size * (part if i % 3 == 0 else part - 0.5))
    return seed


@inner
def sweep(count, kind, slip, work):
    """One contact after the other, the others being held: FORCE and VELOCITY."""
    n = 3 * count
    f, u = vector_at(count, FORCE), vector_at(count, VELOCITY)
    for k in range(count):
        i, W, mu = 3 * k, 3 * k * n + 3 * k, load(work, contact_at(count, k) + FRICTION)
        old_n, old_1, old_2 = load(work, f + i), load(work, f + i + 1), load(work, f + i + 2)
        if not load(work, W) > NEGLIGIBLE:
            continue
        b_n = load(work, u + i) - dot(3, W, f + i, work)
        if kind[k] == GIVEN:
            curvature = load(work, W) - mu * (load(work, W + 1) * slip[2 * k] + load(work, W + 2) * slip[2 * k + 1])
            new_n = -b_n / curvature if b_n < 0.0 and curvature > NEGLIGIBLE else 0.0
            new_1, new_2 = -mu * new_n * slip[2 * k], -mu * new_n * slip[2 * k + 1]
        else:
            b_1 = load(work, u + i + 1) - dot(3, W + n, f + i, work)
            b_2 = load(work, u + i + 2) - dot(3, W + 2 * n, f + i, work)
            new_n, new_1, new_2 = solve_single(W, n, b_n, b_1, b_2, mu, work)
        store(work, f + i, new_n)
        store(work, f + i + 1, new_1)
        store(work, f + i + 2, new_2)
        add(n, new_n - old_n, i * n, u, work)
        add(n, new_1 - old_1, (i + 1) * n, u, work)
        add(n, new_2 - old_2, (i + 2) * n, u, work)


@inner
def negative_curvature(count, kind, slip, mode, work):
    """Whether pushing may increase an approach: the form f . u of all contacts, friction of GIVEN ones following, DISC
    ones sticking, is not positive semidefinite. Then there may be no solution (Painleve)."""
    given = False
    for k in range(count):
        given = given or (kind[k] == GIVEN and load(work, contact_at(count, k) + FRICTION) > 0.0)
    if not given:
        return False
    set_modes(count, NONE, kind, slip, mode, work)
    size, matrix = number_rows(count, mode, work), matrix_at(count)
    fill_matrix(count, size, 0.0, mode, work)
    for j in range(size):
        column = matrix + size * j
        for i in range(j + 1):
            store(work, column + i, 0.5 * (load(work, column + i) + load(work, matrix + size * i + j)))
    floor = FLAT * load(work, contact_at(count, count))**2
    for j in range(size):
        column = matrix + size * j
        for i in range(j):
            x = load(work, column + i) - dot(i, matrix + size * i, column, work)
            store(work, column + i, x / load(work, matrix + size * i + i))
        pivot = load(work, column + j) + floor - dot(j, column, column, work)
        if not pivot > 0.0:
            return True
        store(work, column + j, np.sqrt(pivot))
    return False


# -- results -----------------------------------------------------------------------------------------------------------

@inner
def finish(count, kind, slip, force, mode, work):
    """Modes, and forces in the units of the caller that obey the law of forces exactly; the residual."""
    f, scale = vector_at(count, FORCE), vector_at(count, SCALE)
    rescale(count, 1.0 / load(work, contact_at(count, count)), work)
    find_velocities(count, 0.0, work)
    classify(count, kind, slip, mode, work)
    for k in range(count):
        i, o = 3 * k, contact_at(count, k)
        f_n, f_1, f_2 = max(load(work, f + i), 0.0), load(work, f + i + 1), load(work, f + i + 2)
        radius = load(work, o + FRICTION) * f_n
        if mode[k] == OPEN:
            f_n, f_1, f_2 = 0.0, 0.0, 0.0
        elif mode[k] == SLIDING:
            f_1, f_2 = radius * load(work, o + TOWARDS), radius * load(work, o + TOWARDS + 1)
        else:
            length = np.sqrt(f_1 * f_1 + f_2 * f_2)
            if length > radius:
                f_1, f_2 = f_1 * radius / length, f_2 * radius / length
        store(work, f + i, f_n)
        store(work, f + i + 1, f_1)
        store(work, f + i + 2, f_2)
    find_velocities(count, 0.0, work)
    still = AIM * extent(count, work)
    for k in range(count):
        i = vector_at(count, VELOCITY) + 3 * k
        u_1, u_2 = load(work, i + 1), load(work, i + 2)
        if (mode[k] == SLIDING and kind[k] != GIVEN and load(work, contact_at(count, k) + FRICTION) > 0.0
                and np.sqrt(u_1 * u_1 + u_2 * u_2) <= still * load(work, scale + 3 * k + 1)):
            mode[k] = STICKING  # at the border of the cone
    for i in range(3 * count):
        store(force, i, load(work, f + i) * load(work, scale + i))
    return violation(count, kind, slip, work)
