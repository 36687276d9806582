"""BDF: backward differentiation of orders 1 to 5 with a modified Newton iteration, for stiff equations [J, table II].

References: Gear (1971), ch. 11; Byrne, Hindmarsh, ACM TOMS 1 (1975); the handling of the Jacobian is that of CVODE
(Hindmarsh et al., ACM TOMS 31 (2005)): it is kept, and only the matrix 1 - h l_0 J is made anew when h or the order
has changed much. The Jacobian comes from differences: n evaluations; factors cost n^3/3. The matrix is of the whole
state: for one worker.

What is known of the Jacobian of an equation (`ivp/jacobians.py`) is behind the pivots and the matrices in memory:
pivots[n] is the address of a C function that writes it, or 0; else pivots[n + 1:] are the groups of columns that are
varied together, and matrix[2 n:] is 1 where an entry may differ from zero.

Order q: l(x) = sum l_j x^j is proportional to (x + 1)(x + 2)...(x + q), and l_1 = 1.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from bunraku.integrate import solver_memory as m
from bunraku.integrate.callbacks import call_function
from bunraku.integrate.dense import factor, solve
from bunraku.integrate.gear import product
from bunraku.integrate.history import (
    CHANGE,
    CHANGED,
    CONVERGED,
    DIVERGED,
    HIGHEST,
    ITERATIONS,
    MOVED,
    RATES,
    TRIAL,
    WEIGHTS,
    Family,
    compare_orders,
)
from bunraku.integrate.sums import add_squares, root_mean_square
from bunraku.jit import inner

ORDERS = 5
MATRIX_AGE, JACOBIAN_AGE = 20, 50  # steps after which each is made anew
DRIFT = 0.3                        # change of h l_0 that asks for a new matrix
CLOSE = 0.1                        # the iteration ends this much below the error test
NONE, STEP_FAILED, STALE = 0, 1, 2    # TROUBLE


def coefficients(q: int) -> list[Fraction]:
    """l_0 ... l_q of BDF."""
    p = product(q)
    return [a / p[1] for a in p]


def family() -> Family:
    L, T = np.zeros((HIGHEST + 1, HIGHEST + 1)), np.zeros((HIGHEST + 1, 3))
    for q in range(1, ORDERS + 1):
        l = coefficients(q)
        L[q, :q + 1] = [float(x) for x in l]
        T[q] = 1 / math.factorial(q - 1), float((q + 1) / l[0]), float((q + 2) / l[0])
    return Family(L, T, True)


METHOD = family()


@inner
def differentiate(rhs, agree, context, memory, t, h):
    """Jacobian at (t, z_0), whose derivatives are RATES, by a given function or by differences; the status of the
    right-hand side."""
    z, J = memory.rows, memory.matrix
    n = z.shape[1]
    rates, y, weights, moved = z[RATES], z[TRIAL], z[WEIGHTS], z[CHANGE]
    known = memory.pivots.shape[0] > n
    if known and memory.pivots[n] != 0:
        nothing = z[0, :0]
        failed = call_function(memory.pivots[n], t, z[0], nothing, nothing, J[:n].reshape(-1))
        return agree(context, memory, m.ACTUATION_FAILED if failed != 0 else 0)
    add_squares(rates, weights, memory, MOVED)
    agree(context, memory, 0)
    least = 1000.0 * abs(h) * m.EPSILON * n * root_mean_square(memory, MOVED)  # a move that rounding cannot hide
    for j in range(n):
        y[j] = z[0, j]
    if known:
        return differentiate_together(rhs, agree, context, memory, t, least)
    for j in range(n):
        delta = max(math.sqrt(m.EPSILON) * abs(y[j]), (least if least > 0.0 else 1.0) / weights[j])
        y[j] = z[0, j] + delta
        delta = y[j] - z[0, j]
        status = agree(context, memory, rhs(context, t, y, moved))
        y[j] = z[0, j]
        memory.tally[m.EVALUATIONS] += 1
        if status != 0:
            return status
        for i in range(n):
            J[i, j] = (moved[i] - rates[i]) / delta
    return 0


@inner
def differentiate_together(rhs, agree, context, memory, t, least):
    """The same for a Jacobian of a known pattern: columns of a group, which share no row, in one evaluation."""
    z, J = memory.rows, memory.matrix
    n = z.shape[1]
    rates, y, weights, moved = z[RATES], z[TRIAL], z[WEIGHTS], z[CHANGE]
    group, pattern = memory.pivots[n + 1:], J[2 * n:]
    count = 0
    for j in range(n):
        count = max(count, group[j] + 1)
    for number in range(count):
        for j in range(n):
            if group[j] == number:
                y[j] = z[0, j] + max(math.sqrt(m.EPSILON) * abs(z[0, j]), (least if least > 0.0 else 1.0) / weights[j])
        status = agree(context, memory, rhs(context, t, y, moved))
        memory.tally[m.EVALUATIONS] += 1
        if status != 0:
            return status
        for j in range(n):
            if group[j] == number:
                delta = y[j] - z[0, j]
                for i in range(n):
                    J[i, j] = (moved[i] - rates[i]) / delta if pattern[i, j] != 0.0 else 0.0
                y[j] = z[0, j]
    return 0


@inner
def renew(rhs, agree, context, method, memory, t, h):
    """Factors of 1 - h l_0 J, with a new Jacobian if the old one is outdated: (status, new Jacobian)."""
    tally, clock, M = memory.tally, memory.clock, memory.matrix
    n, steps = M.shape[1], tally[m.STEPS]
    gamma = h * method.L[tally[m.ORDER], 0]
    fresh = (tally[m.JACOBIAN_STEP] < 0 or steps > tally[m.JACOBIAN_STEP] + JACOBIAN_AGE
             or tally[m.TROUBLE] == STEP_FAILED
             or (tally[m.TROUBLE] == STALE and abs(gamma / clock[m.GAMMA] - 1.0) < 0.2))
    if fresh:
        status = differentiate(rhs, agree, context, memory, t, h)
        if status != 0:
            return status, fresh
        tally[m.JACOBIANS] += 1
        tally[m.JACOBIAN_STEP] = steps
    for i in range(n):
        for j in range(n):
            M[n + i, j] = -gamma * M[i, j]
        M[n + i, i] += 1.0
    tally[m.FACTORISATIONS] += 1
    clock[m.GAMMA], clock[m.RATE], tally[m.MATRIX_STEP] = gamma, 0.7, steps
    return (0 if factor(M[n:2 * n], memory.pivots) else DIVERGED), fresh


@inner
def newton(rhs, agree, context, method, memory, t, h):
    """Solve y = z_0 + l_0 (h f(y) - z_1), with an old matrix as long as that converges: (outcome, size of change)."""
    tally, clock, z = memory.tally, memory.clock, memory.rows
    n, q = z.shape[1], tally[m.ORDER]
    l0, passing = method.L[q, 0], method.T[q, 1]
    change, rates, y, weights = z[CHANGE], z[RATES], z[TRIAL], z[WEIGHTS]
    renewed = (tally[m.MATRIX_STEP] < 0 or tally[m.TROUBLE] != NONE
               or tally[m.STEPS] >= tally[m.MATRIX_STEP] + MATRIX_AGE
               or abs(h * l0 / clock[m.GAMMA] - 1.0) > DRIFT)
    fresh = False
    for i in range(n):
        y[i] = z[0, i]
    status = agree(context, memory, rhs(context, t, y, rates))
    tally[m.EVALUATIONS] += 1
    while status == 0:
        if renewed:
            status, fresh = renew(rhs, agree, context, method, memory, t, h)
            if status != 0:
                break
        for i in range(n):
            y[i], change[i] = z[0, i], 0.0
        scale = 2.0 / (1.0 + h * l0 / clock[m.GAMMA])  # makes up for a matrix of another h
        before = 0.0
        for iteration in range(ITERATIONS):
            if iteration > 0:
                status = agree(context, memory, rhs(context, t, y, rates))
                tally[m.EVALUATIONS] += 1
                if status != 0:
                    return status, 0.0
            for i in range(n):
                y[i] = scale * (h * rates[i] - (z[1, i] + change[i]))
            solve(memory.matrix[n:2 * n], memory.pivots, y)
            add_squares(y, weights, memory, MOVED)
            agree(context, memory, 0)
            moved = root_mean_square(memory, MOVED)
            for i in range(n):
                change[i] += y[i]
                y[i] = z[0, i] + l0 * change[i]
            if iteration > 0:
                clock[m.RATE] = max(0.3 * clock[m.RATE], moved / before)
                if moved > 2.0 * before:
                    break
            if moved * min(1.0, clock[m.RATE]) <= CLOSE * passing:
                tally[m.TROUBLE] = NONE
                add_squares(change, weights, memory, CHANGED)
                if tally[m.WAIT] == 1:
                    compare_orders(method, memory)
                agree(context, memory, 0)
                return CONVERGED, root_mean_square(memory, CHANGED)
            before = moved
        if fresh:
            break
        renewed = True
        tally[m.TROUBLE] = STALE
        for i in range(n):
            y[i] = z[0, i]
        status = agree(context, memory, rhs(context, t, y, rates))
        tally[m.EVALUATIONS] += 1
    tally[m.TROUBLE] = STEP_FAILED
    return (DIVERGED if status == 0 else status), 0.0
