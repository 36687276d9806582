"""Implicit: backward differentiation of orders 1 to 5 for mechanisms, at the cost of forward dynamics.

The formulas, the step and the order are those of `bdf.py`; what differs is how the equation of a step is solved. With
the slope s = y' at the new time, y = z_0 + l_0 (h s - z_1), and gamma = h l_0, Newton's iteration is

    s <- s + (1 - gamma J)^-1 (f(t, y) - s)

`bdf.py` makes J by differences and factors a full matrix. Here the right-hand side itself offers the whole line as
`improve(context, t, gamma, y, slope) -> status`, with the part of J that it knows and can solve with cheaply; the
rest of J is missing from the iteration, not from the equation: it costs convergence, never accuracy or order. With
J = 0 this would be functional iteration.

Where one iteration is not enough, what the earlier ones have shown is used (Anderson, J. ACM 12 (1965), 547-560): of
all combinations of them the one is taken whose residual would be smallest. For a linear equation that is GMRES with
`improve` as its preconditioner (Walker, Ni, SIAM J. Numer. Anal. 49 (2011)), so r stiff directions that the known
part of J has missed cost r iterations more, instead of small steps. RATE is the error that an answer may still have
per unit of its residual: |difference of answers| / |difference of residuals|, which is rho / |1 - rho| for an
iteration that multiplies errors by rho.

For mechanisms (`simulate/implicit.py`) `improve` costs as much as one evaluation. Mostly one is needed for a step.
"""

from __future__ import annotations

import math

from bunraku.integrate import bdf, history
from bunraku.integrate.history import CHANGE, CONVERGED, DIVERGED, RATES, TRIAL, WEIGHTS, Family, norm
from bunraku.integrate.memory import EVALUATIONS, FACTORISATIONS, ORDER, RATE
from bunraku.jit import inline, inner

ITERATIONS = 7
CLOSE = 0.1        # the iteration ends this much below the error test
FORGET = 0.3       # by which RATE may fall from one step to the next
DEPTH = 5          # iterations that are remembered
# Rows of memory after those of `history.py`
RESIDUAL, ANSWER = history.ROWS, history.ROWS + 1      # of the iteration before: g(e) - e and g(e)
SHOWN = history.ROWS + 2                               # differences of residuals, orthonormal: DEPTH rows
MEANT = SHOWN + DEPTH                                  # the differences of answers that belong to them
ROWS = MEANT + DEPTH

METHOD = Family(bdf.METHOD.L, bdf.METHOD.T, False)


@inline
def inner_product(x, y, weights):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i] * weights[i] * weights[i]
    return total / x.shape[0]


@inner
def remember(z, count, residual, answer):
    """Add what changed since the iteration before to the `count` differences known: (how many there are now, size of
    the change of the answer per unit of residual)."""
    shown, meant, weights = z[SHOWN + count], z[MEANT + count], z[WEIGHTS]
    for i in range(z.shape[1]):
        shown[i], meant[i] = residual[i] - z[RESIDUAL, i], answer[i] - z[ANSWER, i]
    size, ratio = norm(shown, weights), norm(meant, weights)
    ratio = ratio / size if size > 0.0 else 0.0
    for k in range(count):
        part = inner_product(z[SHOWN + k], shown, weights)
        for i in range(z.shape[1]):
            shown[i] -= part * z[SHOWN + k, i]
            meant[i] -= part * z[MEANT + k, i]
    left = norm(shown, weights)
    if not left > 1e-6 * size:
        return count, ratio
    for i in range(z.shape[1]):
        shown[i] /= left
        meant[i] /= left
    return count + 1, ratio


@inner
def combine(z, count, residual, answer):
    """Change the answer by the differences known, so that the least residual is left."""
    for k in range(count):
        part = inner_product(z[SHOWN + k], residual, z[WEIGHTS])
        for i in range(z.shape[1]):
            residual[i] -= part * z[SHOWN + k, i]
            answer[i] -= part * z[MEANT + k, i]


@inline
def solve(improve, context, method, memory, t, h):
    """Solve y = z_0 + l_0 (h s - z_1), s = f(t, y): (outcome, size of the change e = h s - z_1)."""
    tally, clock, z = memory.tally, memory.clock, memory.rows
    n, q = z.shape[1], tally[ORDER]
    l0, passing = method.L[q, 0], method.T[q, 1]
    change, slope, y, weights = z[CHANGE], z[RATES], z[TRIAL], z[WEIGHTS]
    for i in range(n):
        y[i], slope[i], change[i] = z[0, i], z[1, i] / h, 0.0
    before, known = 0.0, 0
    for iteration in range(ITERATIONS):
        status = improve(context, t, h * l0, y, slope)
        tally[EVALUATIONS] += 1
        tally[FACTORISATIONS] += 1
        if status != 0:
            return status, 0.0
        for i in range(n):  # y serves as the residual, slope as the answer
            slope[i] = h * slope[i] - z[1, i]
            y[i] = slope[i] - change[i]
        moved = norm(y, weights)
        if not moved < math.inf or (iteration > 1 and moved > 2.0 * before):
            break
        if iteration > 0 and known < DEPTH:
            known, ratio = remember(z, known, y, slope)
            clock[RATE] = max(FORGET * clock[RATE] if iteration == 1 else clock[RATE], ratio)
        done = moved * clock[RATE] <= CLOSE * passing
        if not done:
            for i in range(n):
                z[RESIDUAL, i], z[ANSWER, i] = y[i], slope[i]
        combine(z, known, y, slope)
        for i in range(n):
            change[i] = slope[i]
        if done:
            return CONVERGED, norm(change, weights)
        for i in range(n):
            y[i], slope[i] = z[0, i] + l0 * change[i], (z[1, i] + change[i]) / h
        before = moved
    return DIVERGED, 0.0
