"""Convex steps towards the solution of a contact problem: they approach it from anywhere, slowly at its end.

Coulomb's law is f = P(f - r (u + mu |u_t| n)) with the projection P to the cone |f_t| <= mu f_n and any r > 0
[De Saxce, Feng 1998]. With mu |u_t| (the *shift*) and the f on the right-hand side (the *base*) held, and u = Theta g +
b, this is the minimum of

    phi(g) = g . Theta g / 2 + sum |P(base - r (Theta g + b + shift))|^2 / (2 r),                                   (1)

an augmented Lagrangian: convex and smooth, found by Newton's method with a line search. Its step d obeys

    (1 + r P' Theta) d = P - g                                                                                      (2)

which is regular for any Theta. Then base and shift follow. The larger r, the faster contacts with a small mobility
settle, and the more the shift oscillates: no r is best for all problems. `contact/heap.py` does the same without a
full matrix.

DISC contacts only. Cost: a step is a factorisation of 3 K rows.
"""

import numpy as np

from bunraku.contact.contact_newton import DECREASE, newton
from bunraku.contact.coulomb_law import find_velocities, multiply, to_cone, violation
from bunraku.contact.least_norm import least_norm
from bunraku.contact.problem_memory import (
    BASE,
    CHANGE,
    COLUMN,
    FORCE,
    FRICTION,
    KEPT,
    SIDE,
    STEP,
    VELOCITY,
    contact_at,
    matrix_at,
    scratch_at,
    vector_at,
)
from bunraku.contact.spans import add, clear, copy, dot, largest
from bunraku.jit import inline, inner
from bunraku.spatial.scalar import load, store
from bunraku.tolerances import LAW_CLOSE, LAW_RANK

OUTER, INNER = 36, 12  # changes of base and shift; steps for each
HALVINGS = 20          # of a step
NEWTON = 12            # iterations of Newton's method for the law itself, tried after
EVERY = 3              # changes of base and shift
SETTLED = 1e-2         # gradient of (1) that is left, as part of the residual
FINEST = 1e-13         # gradient that rounding leaves, as part of the forces
ROUNDING = 1e-14       # part of (1) that rounding may add


@inner
def convex_steps(count, stiffness, growth, most, kind, slip, mode, work):
    """Approach the solution from FORCE, and try Newton's method for the law again and again: residual, factorisations,
    at most about `most`. r times the diagonal of Theta is `stiffness` at first, and grows by a factor up to
    1/LAW_RANK."""
    n, f, base = 3 * count, vector_at(count, FORCE), vector_at(count, BASE)
    unit, done, least = load(work, contact_at(count, count))**2, 0, np.inf
    copy(n, f, base, work)
    find_velocities(count, 0.0, work)
    residual = min(violation(count, kind, slip, work), 1.0)
    for step in range(OUTER):
        hold_shift(count, work)
        done += minimise(count, stiffness / unit, max(SETTLED * residual, FINEST), work)
        copy(n, vector_at(count, KEPT), base, work)
        copy(n, base, f, work)
        find_velocities(count, 0.0, work)
        residual = min(violation(count, kind, slip, work), 1.0)
        if step % EVERY == EVERY - 1 or residual <= LAW_CLOSE or done >= most:
            least, more = newton(count, NEWTON, 0.0, kind, slip, mode, work)
            done += more
            if least <= LAW_CLOSE or done >= most:
                break
            copy(n, base, f, work)
            find_velocities(count, 0.0, work)
        stiffness = min(stiffness * growth, 1.0 / LAW_RANK)
    return least, done


@inner
def hold_shift(count, work):
    """mu |u_t| of all contacts, into COLUMN."""
    u, shift = vector_at(count, VELOCITY), vector_at(count, COLUMN)
    for k in range(count):
        u_1, u_2 = load(work, u + 3 * k + 1), load(work, u + 3 * k + 2)
        store(work, shift + k, load(work, contact_at(count, k) + FRICTION) * np.sqrt(u_1 * u_1 + u_2 * u_2))


@inline
def pressed(count, k, r, part, work):
    """base - r (u + shift) of a contact, after a part of a step."""
    i = 3 * k
    base, u, du = vector_at(count, BASE) + i, vector_at(count, VELOCITY) + i, vector_at(count, CHANGE) + i
    return (load(work, base) - r * (load(work, u) + part * load(work, du)
                                    + load(work, vector_at(count, COLUMN) + k)),
            load(work, base + 1) - r * (load(work, u + 1) + part * load(work, du + 1)),
            load(work, base + 2) - r * (load(work, u + 2) + part * load(work, du + 2)))


@inner
def minimise(count, r, tolerance, work):
    """Minimum of (1) from FORCE and VELOCITY, to a gradient of a part of the forces; factorisations. Leaves P in
    KEPT."""
    n, done = 3 * count, 0
    f, u, projected = vector_at(count, FORCE), vector_at(count, VELOCITY), vector_at(count, KEPT)
    slope, d, du = vector_at(count, SIDE), vector_at(count, STEP), vector_at(count, CHANGE)
    clear(n, du, work)
    project_to_cones(count, r, work)
    for _ in range(INNER):
        copy(n, projected, slope, work)
        add(n, -1.0, f, slope, work)
        if not largest(n, slope, work) > tolerance * largest(n, f, work):
            break
        copy(n, slope, d, work)
        fill_step_matrix(count, r, work)
        least_norm(n, matrix_at(count), d, scratch_at(count), LAW_RANK, work)
        done += 1
        multiply(count, 0.0, d, du, work)
        decrease, square = dot(n, slope, du, work), dot(n, d, du, work)
        mixed = dot(n, f, du, work)  # Theta is symmetric
        before, part = potential(count, r, 0.0, work), 1.0
        for _ in range(HALVINGS):
            change = potential(count, r, part, work) - before + part * (mixed + 0.5 * part * square)
            if change <= ROUNDING * before - DECREASE * part * decrease:
                break
            part *= 0.5
        add(n, part, d, f, work)
        add(n, part, du, u, work)
        clear(n, du, work)
        project_to_cones(count, r, work)
    return done


@inner
def project_to_cones(count, r, work):
    """P of (1), into KEPT."""
    for k in range(count):
        z_n, z_1, z_2 = pressed(count, k, r, 0.0, work)
        f_n, f_1, f_2, _ = to_cone(z_n, z_1, z_2, load(work, contact_at(count, k) + FRICTION))
        at = vector_at(count, KEPT) + 3 * k
        store(work, at, f_n)
        store(work, at + 1, f_1)
        store(work, at + 2, f_2)


@inner
def potential(count, r, part, work):
    """The second term of (1) after a part of a step."""
    total = 0.0
    for k in range(count):
        z_n, z_1, z_2 = pressed(count, k, r, part, work)
        f_n, f_1, f_2, _ = to_cone(z_n, z_1, z_2, load(work, contact_at(count, k) + FRICTION))
        total += f_n * f_n + f_1 * f_1 + f_2 * f_2
    return 0.5 * total / r


@inner
def fill_step_matrix(count, r, work):
    """1 + r P' Theta, column by column."""
    n, matrix = 3 * count, matrix_at(count)
    for i in range(n * n):
        store(work, matrix + i, 0.0)
    for i in range(n):
        store(work, matrix + (n + 1) * i, 1.0)
    for k in range(count):
        i, mu = 3 * k, load(work, contact_at(count, k) + FRICTION)
        z_n, z_1, z_2 = pressed(count, k, r, 0.0, work)
        f_n, _, _, where = to_cone(z_n, z_1, z_2, mu)
        if where < 0:
            continue
        for j in range(n):
            at = matrix + n * j + i
            x_n, x_1, x_2 = load(work, i * n + j), load(work, (i + 1) * n + j), load(work, (i + 2) * n + j)
            if where == 0:  # along the cone, and around it
                length = np.sqrt(z_1 * z_1 + z_2 * z_2)
                e_1, e_2 = z_1 / length, z_2 / length
                along = (x_n + mu * (e_1 * x_1 + e_2 * x_2)) / (1.0 + mu * mu)
                around = mu * f_n / length * (e_1 * x_2 - e_2 * x_1)
                x_n, x_1, x_2 = along, mu * along * e_1 - around * e_2, mu * along * e_2 + around * e_1
            store(work, at, load(work, at) + r * x_n)
            store(work, at + 1, load(work, at + 1) + r * x_1)
            store(work, at + 2, load(work, at + 2) + r * x_2)
