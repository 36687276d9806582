"""Implicit: backward differentiation of orders 1 to 5 for mechanisms, at the cost of forward dynamics.

The formulas, the step and the order are those of `bdf.py`; what differs is how the equation of a step is solved. With
the slope s = y' at the new time, y = z_0 + l_0 (h s - z_1), and gamma = h l_0, Newton's iteration is

    s <- s + (1 - gamma J)^-1 (f(t, y) - s)

`bdf.py` makes J by differences and factors a full matrix. Here the right-hand side itself offers the whole line as
`improve(context, t, gamma, y, slope) -> status`, with the part of J that it knows and can solve with cheaply; the
rest of J is missing from the iteration, not from the equation: it costs convergence, never accuracy or order. With
J = 0 this would be functional iteration.

Where one iteration is not enough, Anderson acceleration is used (Anderson, J. ACM 12 (1965), 547-560): the
combination of earlier iterates with the smallest predicted residual is taken. For a linear equation that is GMRES with
`improve` as its preconditioner (Walker, Ni, SIAM J. Numer. Anal. 49 (2011)), so r stiff directions that the known
part of J has missed cost r iterations more, instead of small steps. RATE is the error that an answer may still have
per unit of its residual: |difference of answers| / |difference of residuals|, which is rho / |1 - rho| for an
iteration that multiplies errors by rho.

For mechanisms (`runs/implicit_run.py`) `improve` costs as much as one evaluation. Usually one per step is enough.
"""

from __future__ import annotations

import math

from bunraku.integrate import bdf, history
from bunraku.integrate.history import (
    CHANGE,
    CHANGED,
    CONVERGED,
    DIVERGED,
    MOVED,
    RATES,
    TRIAL,
    WEIGHTS,
    Family,
    compare_orders,
)
from bunraku.integrate.solver_memory import EVALUATIONS, FACTORISATIONS, ORDER, RATE, SIZE, WAIT, add_scaled, multiply
from bunraku.integrate.sums import add_squares, root_mean_square, span_end, span_start
from bunraku.jit import as_written, inline, inner

ITERATIONS = 7
CLOSE = 0.1        # the iteration ends this much below the error test
FORGET = 0.3       # least ratio of RATE to that of the step before
DEPTH = 5          # iterations that are remembered
# Rows of memory after those of `history.py`
RESIDUAL, ANSWER = history.ROWS, history.ROWS + 1      # of the iteration before: g(e) - e and g(e)
SHOWN = history.ROWS + 2                               # differences of residuals, orthonormal: DEPTH rows
MEANT = SHOWN + DEPTH                                  # the differences of answers that belong to them
ROWS = MEANT + DEPTH
# Places of sums, where those of the orders have nothing to say yet
WITH_RESIDUAL, WITH_NEW = 0, 1                         # inner products of a difference
DIFFERENCE, EFFECT = 2, 3                              # squares of a new one of residuals, of answers

METHOD = Family(bdf.METHOD.L, bdf.METHOD.T, False)


@inner
def follow_up(method, memory, h, first):
    """Vector work after an evaluation [J, sec. III.C]: y becomes the residual, slope the answer; the sums that control
    needs, should the `first` iteration be the last."""
    z, spans, sums = memory.rows, memory.spans, memory.sums
    for s in range(spans.shape[0]):
        moved = changed = 0.0
        for i in range(span_start(spans, s), span_end(spans, s)):
            answer = h * z[RATES, i] - z[1, i]
            residual = answer - z[CHANGE, i]
            a, b = residual * z[WEIGHTS, i], answer * z[WEIGHTS, i]
            moved += a * a
            changed += b * b
            z[TRIAL, i], z[RATES, i], z[CHANGE, i] = residual, answer, answer
        sums[s, MOVED], sums[s, CHANGED] = moved, changed
    if first and memory.tally[WAIT] == 1:
        compare_orders(method, memory)


@inner
def compare(memory, count):
    """How residual and answer differ from those of the iteration before, and how much."""
    z, spans, sums = memory.rows, memory.spans, memory.sums
    shown, meant = z[SHOWN + count], z[MEANT + count]
    for s in range(spans.shape[0]):
        total = total_meant = 0.0
        for i in range(span_start(spans, s), span_end(spans, s)):
            shown[i], meant[i] = z[TRIAL, i] - z[RESIDUAL, i], z[RATES, i] - z[ANSWER, i]
            a, b = shown[i] * z[WEIGHTS, i], meant[i] * z[WEIGHTS, i]
            total += a * a
            total_meant += b * b
        sums[s, DIFFERENCE], sums[s, EFFECT] = total, total_meant


@inner
def add_products(memory, along, x, y):
    """Sums of the inner products of a row with the rows x and y."""
    z, spans, sums = memory.rows, memory.spans, memory.sums
    for s in range(spans.shape[0]):
        with_x = with_y = 0.0
        for i in range(span_start(spans, s), span_end(spans, s)):
            a = z[along, i] * z[WEIGHTS, i] * z[WEIGHTS, i]
            with_x += a * z[x, i]
            with_y += a * z[y, i]
        sums[s, WITH_RESIDUAL], sums[s, WITH_NEW] = with_x, with_y


@inner
def combine(agree, context, memory, count, learning, size):
    """Change the answer by the `count` differences known, so that the least residual is left: how many there are now.

    A new difference (`learning`), of the given size, is made orthogonal to those known and counts as one of them,
    unless it is a combination of them.
    """
    z, totals, components = memory.rows, memory.totals, memory.clock[SIZE]
    residual, answer, new = z[TRIAL], z[RATES], min(count, DEPTH - 1)
    shown, meant = z[SHOWN + new], z[MEANT + new]
    for k in range(count):
        add_products(memory, SHOWN + k, TRIAL, SHOWN + new)
        agree(context, memory, 0)
        part, common = totals[WITH_RESIDUAL] / components, totals[WITH_NEW] / components
        add_scaled(residual, -part, z[SHOWN + k], residual)
        add_scaled(answer, -part, z[MEANT + k], answer)
        if learning:
            add_scaled(shown, -common, z[SHOWN + k], shown)
            add_scaled(meant, -common, z[MEANT + k], meant)
    if not learning:
        return count
    add_products(memory, SHOWN + new, TRIAL, SHOWN + new)
    agree(context, memory, 0)
    left = root_mean_square(memory, WITH_NEW)
    if not left > 1e-6 * size:
        return count
    part = totals[WITH_RESIDUAL] / components / left
    multiply(1.0 / left, shown, shown)
    multiply(1.0 / left, meant, meant)
    add_scaled(residual, -part, shown, residual)
    add_scaled(answer, -part, meant, answer)
    return count + 1


@as_written
def try_change(z, l0, h):
    """State and slope that a change leads to: y = z_0 + l_0 e, s = (z_1 + e) / h."""
    for i in range(z.shape[1]):
        z[TRIAL, i], z[RATES, i] = z[0, i] + l0 * z[CHANGE, i], (z[1, i] + z[CHANGE, i]) / h


@inline
def solve(improve, agree, context, method, memory, t, h):
    """Solve y = z_0 + l_0 (h s - z_1), s = f(t, y): (outcome, size of the change e = h s - z_1).

    One agreement if one iteration is enough; another one, after it, for every difference known, two more for the new
    one and the combined answer.
    """
    tally, clock, z = memory.tally, memory.clock, memory.rows
    n, q = z.shape[1], tally[ORDER]
    l0, passing = method.L[q, 0], method.T[q, 1]
    change, slope, y = z[CHANGE], z[RATES], z[TRIAL]
    for i in range(n):
        change[i] = 0.0
    try_change(z, l0, h)
    before, known = 0.0, 0
    for iteration in range(ITERATIONS):
        status = improve(context, t, h * l0, y, slope)
        tally[EVALUATIONS] += 1
        tally[FACTORISATIONS] += 1
        learning, size = iteration > 0 and known < DEPTH, 0.0
        follow_up(method, memory, h, iteration == 0)
        if learning:
            compare(memory, known)
        status = agree(context, memory, status)
        if status != 0:
            return status, 0.0
        moved = root_mean_square(memory, MOVED)
        if not moved < math.inf or (iteration > 1 and moved > 2.0 * before):
            break
        if learning:
            size = root_mean_square(memory, DIFFERENCE)
            ratio = root_mean_square(memory, EFFECT) / size if size > 0.0 else 0.0
            clock[RATE] = max(FORGET * clock[RATE] if iteration == 1 else clock[RATE], ratio)
        done = moved * clock[RATE] <= CLOSE * passing
        if done and iteration == 0:
            return CONVERGED, root_mean_square(memory, CHANGED)
        if not done:
            for i in range(n):
                z[RESIDUAL, i], z[ANSWER, i] = y[i], slope[i]
        if iteration > 0:
            known = combine(agree, context, memory, known, learning, size)
            for i in range(n):
                change[i] = slope[i]
        if done:
            add_squares(change, z[WEIGHTS], memory, CHANGED)
            if tally[WAIT] == 1:
                compare_orders(method, memory)
            agree(context, memory, 0)
            return CONVERGED, root_mean_square(memory, CHANGED)
        try_change(z, l0, h)
        before = moved
    return DIVERGED, 0.0
