"""Newton's method for a contact problem: linear problems of modes, shortened steps.

The projection of `coulomb_law.py` is piecewise smooth: t = f - u tells which contacts are open (f = 0), sticking
(u = 0) or sliding. In a sliding contact with e = t_t / |t_t| the new force along e is mu f_n, while across e, the
direction q,

    u_q + sigma f_q = 0,    sigma = |t_t| / (mu t_n) - 1

So three rows are left for a sticking contact, two for a sliding one, one for a frictionless or GIVEN one. Forces of
redundant contacts change as little as possible (`least_norm.py`). Cost: an iteration is a factorisation of at most
3 K rows.
"""

import numpy as np

from bunraku.contact.contact_fields import OPEN, SLIDING, STICKING
from bunraku.contact.coulomb_law import classify, find_velocities, loaded_by, merit, multiply, violation
from bunraku.contact.least_norm import least_norm
from bunraku.contact.problem_memory import (
    CHANGE,
    COLUMN,
    FIRST,
    FORCE,
    FRICTION,
    KEPT,
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
from bunraku.contact.spans import add, copy
from bunraku.jit import inner
from bunraku.spatial.scalar import load, store
from bunraku.tolerances import LAW_AIM, LAW_CLOSE, LAW_RANK, LAW_RANK_FAR

HALVINGS = 12        # of a step
SHORTEST = 0.75 * 0.5 ** (HALVINGS - 1)
PATIENCE = 3         # steps
DECREASE = 1e-3      # part of the step by which squares have to decrease


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
    while done < limit and residual > LAW_AIM and residual < np.inf and not (least <= LAW_CLOSE and vain >= PATIENCE):
        done += 1
        small = max(LAW_RANK, min(residual, LAW_RANK_FAR)) if improves else LAW_RANK
        find_step(count, epsilon, small, kind, mode, work)
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
def find_step(count, epsilon, small, kind, mode, work):
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
    fill_matrix(count, size, epsilon, kind, mode, work)
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
def fill_matrix(count, size, epsilon, kind, mode, work):
    """The linear problem of `mode`, column by column, from the rows of Theta: symmetric but for loads of moments."""
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
    for k in range(count):
        point = loaded_by(k, kind)
        if point != k and mode[k] != OPEN and mode[point] != OPEN:
            row = np.int64(load(work, contact_at(count, k) + FIRST))
            column = np.int64(load(work, contact_at(count, point) + FIRST))
            x = load(work, 3 * k * n + 3 * point)
            at, mirrored = matrix + column * size + row, matrix + row * size + column
            store(work, at, load(work, at) + x)
            store(work, mirrored, load(work, mirrored) - x)


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
