"""Gear: Adams-Moulton methods of orders 1 to 12 with functional iteration, for nonstiff problems [J, table II].

References: Gear, Comm. ACM 14 (1971), 176-179 (DIFSUB); Hindmarsh, in Scientific Computing (1983) (LSODE), whose
tests of convergence and error are used. One or two evaluations a step, each with its follow-up (`nordsieck.py`).

The iteration converges at a rate proportional to h l_0. The rate observed in second iterations is stored, so that
steps and orders are chosen for which it converges (as by Petzold, SIAM J. Sci. Stat. Comput. 4 (1983), in
LSODA), and a step that failed to converge is shortened accordingly.

Rates that follow from the rest of the state without an evaluation (of a mechanism's coordinates, q' = N v) are taken
with the just evaluated rest: Gauss-Seidel instead of Jacobi. The equation of a step is the
same. For a swing of frequency w the iteration converges like (h l_0 w)^2 instead of h l_0 w, and with one evaluation
a step order 2 is stable up to h w = 1.1 instead of 0.6, order 4 up to 0.7 instead of 0.2.

Order q: l(x) = sum l_j x^j has l'(x) = (x + 1)(x + 2)...(x + q - 1) / (q - 1)! and l(-1) = 0.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

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
from bunraku.integrate.solver_memory import EVALUATIONS, ORDER, RATE, STEEPNESS, WAIT, add_scaled, copy
from bunraku.integrate.sums import root_mean_square, span_end, span_start
from bunraku.jit import as_written, inline, inner

ORDERS = 12
DIVERGING = 2.0                   # rate that is not worth another iteration
FORGET, FADE = 0.5, 0.98          # of STEEPNESS: how much counts at the next observation, at a step without any


def product(q: int) -> list[Fraction]:
    """Coefficients of (x + 1)(x + 2)...(x + q), ascending."""
    p = [Fraction(1)]
    for k in range(1, q + 1):
        p = [k * a + b for a, b in zip([*p, Fraction(0)], [Fraction(0), *p], strict=True)]
    return p


def coefficients(q: int) -> list[Fraction]:
    """l_0 ... l_q of Adams-Moulton."""
    rest = [a / (j + 1) / math.factorial(q - 1) for j, a in enumerate(product(q - 1))]
    return [-sum((a * (-1) ** (j + 1) for j, a in enumerate(rest)), Fraction(0)), *rest]


def error_constant(q: int) -> Fraction:
    """C of the local error C h^(q+1) y^(q+1): minus the integral of x (x+1)...(x+q-1) / q! from -1 to 0."""
    return sum((a * (-1) ** j / Fraction(j + 2) for j, a in enumerate(product(q - 1))), Fraction(0)) / math.factorial(q)


def family() -> Family:
    L, T = np.zeros((HIGHEST + 1, HIGHEST + 1)), np.zeros((HIGHEST + 1, 3))
    pass_at = [Fraction(0), *(1 / error_constant(q) for q in range(1, ORDERS + 1))]
    for q in range(1, ORDERS + 1):
        L[q, :q + 1] = [float(x) for x in coefficients(q)]
        T[q] = (float(pass_at[q - 1] / math.factorial(q)), float(pass_at[q]),
                float(pass_at[q + 1]) if q < ORDERS else 0.0)
    return Family(L, T, False)


METHOD = family()


@inline
def independent(context, memory, l0, h):
    """All rates must be evaluated."""


@as_written
def corrected(memory, l0, h):
    """The state that the last evaluation leads to: y = z_0 + l_0 (h f - z_1)."""
    z = memory.rows
    for i in range(z.shape[1]):
        z[TRIAL, i] = z[0, i] + l0 * (h * z[RATES, i] - z[1, i])


@inner
def follow_up(method, memory, h, first):
    """Vector work after an evaluation, the first of a step or not [J, sec. III.C]: the correction, and the sums that
    control needs."""
    z, spans, sums = memory.rows, memory.spans, memory.sums
    for s in range(spans.shape[0]):
        moved = changed = 0.0
        if first:
            for i in range(span_start(spans, s), span_end(spans, s)):
                new = h * z[RATES, i] - z[1, i]
                b = new * z[WEIGHTS, i]
                changed += b * b
                z[CHANGE, i] = new
            moved = changed
        else:
            for i in range(span_start(spans, s), span_end(spans, s)):
                new = h * z[RATES, i] - z[1, i]
                a, b = (new - z[CHANGE, i]) * z[WEIGHTS, i], new * z[WEIGHTS, i]
                moved += a * a
                changed += b * b
                z[CHANGE, i] = new
        sums[s, MOVED], sums[s, CHANGED] = moved, changed
    if memory.tally[WAIT] == 1:
        compare_orders(method, memory)


@inner
def functional(rhs, agree, follow, context, method, memory, t, h):
    """y <- z_0 + l_0 (h f(y) - z_1), until it stays: (outcome, size of the change).

    `follow(context, memory, l0, h)` may replace rates that follow from the rest of the state without an evaluation.
    """
    tally, clock, z = memory.tally, memory.clock, memory.rows
    q = tally[ORDER]
    l0, passing = method.L[q, 0], method.T[q, 1]
    change, y = z[CHANGE], z[TRIAL]
    copy(z[0], y)
    before = 0.0
    for iteration in range(ITERATIONS):
        status = rhs(context, t, y, z[RATES])
        tally[EVALUATIONS] += 1
        follow(context, memory, l0, h)
        follow_up(method, memory, h, iteration == 0)
        status = agree(context, memory, status)
        if status != 0:
            return status, 0.0
        moved = root_mean_square(memory, MOVED)
        if iteration > 0:
            rate = moved / before
            clock[RATE] = max(0.2 * clock[RATE], rate)
            known = (FORGET if iteration == 1 else 1.0) * clock[STEEPNESS]
            clock[STEEPNESS] = max(known, min(rate, DIVERGING) / abs(h * l0))
            if rate > DIVERGING:
                break
        if moved * min(1.0, 1.5 * clock[RATE]) <= 0.5 / (q + 2) * passing:
            if iteration == 0:
                clock[STEEPNESS] *= FADE
            return CONVERGED, root_mean_square(memory, CHANGED)
        add_scaled(z[0], l0, change, y)
        before = moved
    return DIVERGED, 0.0
