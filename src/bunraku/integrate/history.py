"""The Nordsieck array: the past of a multistep method as scaled derivatives z_j = h^j y^(j) / j!, one to a row.

Predicting is a Taylor step (a product with Pascal's triangle), a change of step scales row j by r^j, and the corrector
adds l_j times one vector to row j. References: Nordsieck, Math. Comp. 16 (1962); Gear: Numerical Initial Value
Problems in Ordinary Differential Equations (1971), ch. 9.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from bunraku.integrate.solver_memory import ORDER, table
from bunraku.integrate.sums import span_end, span_start
from bunraku.jit import Held, as_written, inner

HIGHEST = 12                                # order
# Rows of memory after z_0 ... z_12
CHANGE = HIGHEST + 1                        # what the corrector adds, once multiplied by l_j
LAST_CHANGE = HIGHEST + 2                   # the same of the step before, for the order above
RATES = HIGHEST + 3                         # derivatives
TRIAL = HIGHEST + 4                         # a state
WEIGHTS = HIGHEST + 5                       # 1 / tolerance of each component
ROWS = HIGHEST + 6

# Places of the five sums of squares that control needs [J, table IX], each in units of the tolerance
MOVED = 0                                   # last correction
CHANGED = 1                                 # all corrections: the error of this order
ABOVE = 2                                   # difference to the change of the step before: that of the next order
BELOW, BELOW_IF_REJECTED = 3, 4             # z_q after and before its correction: that of the order below

CONVERGED, DIVERGED = 0, -1                 # what correctors answer; anything else is from the right-hand side
ITERATIONS = 3


class Family(NamedTuple):
    """Coefficients of multistep methods of all orders q, in row q."""

    L: np.ndarray       # (13, 13): l_j
    T: np.ndarray       # (13, 3): tolerance of the change, if order q - 1, q, q + 1 is to just pass the error test
    newton: bool        # how the corrector is solved: Newton's iteration with a full matrix, or without any matrix

    @property
    def rows(self) -> int:
        return ROWS

    @property
    def orders(self) -> int:
        """Highest order there is."""
        return int(np.flatnonzero(self.L[:, 1])[-1])


FAMILY = Held(types.NamedTuple([table, table, types.boolean], Family))


@as_written
def predict(z, q):
    """Taylor step: z_i <- sum_j binomial(j, i) z_j."""
    for k in range(q):
        for j in range(q - 1, k - 1, -1):
            for i in range(z.shape[1]):
                z[j, i] += z[j + 1, i]


@as_written
def retract(z, q):
    """The reverse of `predict`."""
    for k in range(q):
        for j in range(q - 1, k - 1, -1):
            for i in range(z.shape[1]):
                z[j, i] -= z[j + 1, i]


@as_written
def shift(z, q, x):
    """Taylor step of x steps: `predict` is that of one. (Horner's scheme.)"""
    for k in range(q):
        for j in range(q - 1, k - 1, -1):
            for i in range(z.shape[1]):
                z[j, i] += x * z[j + 1, i]


@as_written
def rescale(z, q, ratio):
    """Change of step."""
    power = 1.0
    for j in range(1, q + 1):
        power *= ratio
        for i in range(z.shape[1]):
            z[j, i] *= power


@as_written
def correct_history(z, change, factors, q):
    """Add the change that the corrector has found, l_j times to z_j."""
    for j in range(q + 1):
        part = factors[j]
        for i in range(z.shape[1]):
            z[j, i] += part * change[i]


@inner
def compare_orders(method, memory):
    """Sums ABOVE and BELOW, for a step at whose end the order is reconsidered."""
    z, spans, q = memory.rows, memory.spans, memory.tally[ORDER]
    part = method.L[q, q]
    for s in range(spans.shape[0]):
        above = below = 0.0
        for i in range(span_start(spans, s), span_end(spans, s)):
            a = (z[CHANGE, i] - z[LAST_CHANGE, i]) * z[WEIGHTS, i]
            b = (z[q, i] + part * z[CHANGE, i]) * z[WEIGHTS, i]
            above += a * a
            below += b * b
        memory.sums[s, ABOVE], memory.sums[s, BELOW] = above, below
