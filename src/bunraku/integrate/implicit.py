"""Implicit: backward differentiation of orders 1 to 5 for mechanisms, at the cost of forward dynamics.

The formulas, the step and the order are those of `bdf.py`; what differs is how the equation of a step is solved. With
the slope s = y' at the new time, y = z_0 + l_0 (h s - z_1), and gamma = h l_0, Newton's iteration is

    s <- s + (1 - gamma J)^-1 (f(t, y) - s)

`bdf.py` makes J by differences and factors a full matrix. Here the right-hand side itself offers the whole line as
`improve(context, t, gamma, y, slope) -> status`, with the part of J that it knows and can solve with cheaply; the
rest of J is missing from the iteration, not from the equation: it costs convergence, never accuracy or order. With
J = 0 this would be functional iteration.

For mechanisms (`run/implicit.py`) `improve` costs as much as one evaluation. One or two are needed for a step.
"""

from __future__ import annotations

import math

from bunraku.integrate import bdf
from bunraku.integrate.history import CHANGE, CONVERGED, DIVERGED, RATES, TRIAL, WEIGHTS, Family, norm
from bunraku.integrate.memory import EVALUATIONS, FACTORISATIONS, ORDER, RATE
from bunraku.jit import inline

ITERATIONS = 4
CLOSE = 0.1        # the iteration ends this much below the error test
FORGET = 0.3       # by which the rate of convergence may fall from one step to the next

METHOD = Family(bdf.METHOD.L, bdf.METHOD.T, False)


@inline
def solve(improve, context, method, memory, t, h):
    """Solve y = z_0 + l_0 (h s - z_1), s = f(t, y): (outcome, size of the change h s - z_1)."""
    tally, clock, z = memory.tally, memory.clock, memory.rows
    n, q = z.shape[1], tally[ORDER]
    l0, passing = method.L[q, 0], method.T[q, 1]
    change, slope, y, weights = z[CHANGE], z[RATES], z[TRIAL], z[WEIGHTS]
    for i in range(n):
        y[i], slope[i], change[i] = z[0, i], z[1, i] / h, 0.0
    before = 0.0
    for iteration in range(ITERATIONS):
        status = improve(context, t, h * l0, y, slope)
        tally[EVALUATIONS] += 1
        tally[FACTORISATIONS] += 1
        if status != 0:
            return status, 0.0
        total = 0.0
        for i in range(n):
            new = h * slope[i] - z[1, i]
            a = (new - change[i]) * weights[i]
            total += a * a
            change[i] = new
            y[i] = z[0, i] + l0 * new
        moved = math.sqrt(total / n)
        if iteration > 0:
            clock[RATE] = max(FORGET * clock[RATE], moved / before)
            if moved > 2.0 * before:
                break
        if moved * min(1.0, clock[RATE]) <= CLOSE * passing:
            return CONVERGED, norm(change, weights)
        before = moved
    return DIVERGED, 0.0
