"""Explicit Runge-Kutta methods with an error estimate, each given by its coefficients: a `Tableau`.

    k_i  = f(t + c_i h, y + h sum_j a_ij k_j)        stages; k_0 is the derivative at the start
    y'   = y + h sum_i b_i k_i                       the result
    e    = h sum_i e_i k_i                           its difference to a result of lower order, or to one long step
    y(t + x h) = y + h sum_ip P_ip k_i x^(p+1)       between the two, with one stage more: the derivative at the end

Step doubling is the same thing: one long and two short steps are one tableau (`doubled`).
Cost of a step: the stages less one, since the derivative at the end starts the next step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import types

from bunraku.integrate import solver_memory as m
from bunraku.integrate.control import (
    SLOPE,
    STATE,
    add_scaled_squares,
    first_step,
    fitted_step,
    next_step,
    smallest_step,
    weight,
)
from bunraku.integrate.solver_memory import LARGEST, floats, table
from bunraku.integrate.sums import root_mean_square, span_end, span_start
from bunraku.jit import Held, as_written, inline, inner

ERROR = 0    # place of its sum


class Tableau(NamedTuple):
    """Coefficients of a method with s stages."""

    A: np.ndarray       # (s, s)
    B: np.ndarray       # (s,)
    E: np.ndarray       # (s,)
    C: np.ndarray       # (s,)
    P: np.ndarray       # (s + 1, degree)
    order: int          # of the result
    estimate: int       # the error estimate is of this order in h
    ends: bool          # the last stage is the derivative at the end ("first same as last")
    largest: bool = False   # the error is that of the worst component, in place of the root mean square
    per_unit: bool = False  # it may be the tolerance times the length of the step, in place of the tolerance

    @property
    def rows(self) -> int:
        """Rows of memory: y, the stages, the derivative at the end, a state on trial."""
        return len(self.B) + 3


TABLEAU = Held(types.NamedTuple([table, floats, floats, floats, table, types.int64, types.int64, types.boolean,
                                 types.boolean, types.boolean], Tableau))


def hermite(s: int) -> np.ndarray:
    """P of the cubic through both ends with their derivatives, less what the result itself contributes."""
    P = np.zeros((s + 1, 3))
    P[0], P[s] = (1, -2, 1), (0, -1, 1)
    return P


def with_cubic(A, B, E, order, estimate) -> Tableau:
    """A method with the cubic Hermite polynomial for what is between its steps."""
    A, B, E = (np.array(x, float) for x in (A, B, E))
    P = hermite(len(B))
    P[:-1] += np.outer(B, (0, 3, -2))
    return Tableau(A, B, E, A.sum(axis=1), P, order, estimate, False)


def doubled(A, B, order) -> Tableau:
    """Two steps of half the size; the error from the difference to one whole step.

    The difference of the results is (2^p - 1) times the error of the better one. Between the ends: the quintic
    through the start, the middle and the end with their derivatives.
    """
    A, B = np.array(A, float), np.array(B, float)
    s = len(B)
    first, second = slice(s, 2 * s - 1), slice(2 * s - 1, 3 * s - 1)  # stages; the first half step shares k_0
    big, whole, halves = np.zeros((3 * s - 1, 3 * s - 1)), np.zeros(3 * s - 1), np.zeros(3 * s - 1)
    big[:s, :s] = A
    big[first, 0], big[first, first] = A[1:, 0] / 2, A[1:, 1:] / 2
    whole[:s] = B
    halves[0], halves[first] = B[0] / 2, B[1:] / 2
    middle = halves.copy()
    big[second] = middle
    big[second, second] += A / 2
    halves[second] += B / 2
    P = np.zeros((3 * s, 5))
    # quintic in x with values y0, ym, y1 and derivatives f0, fm, f1 at 0, 1/2, 1, as y0 + h (...)
    P[:-1] = np.outer(middle, (0, 16, -32, 16, 0)) + np.outer(halves, (0, 7, -34, 52, -24))
    P[0] += (1, -6, 13, -12, 4)
    P[2 * s - 1] += (0, -8, 32, -40, 16)
    P[-1] += (0, -1, 5, -8, 4)
    return Tableau(big, halves, (halves - whole) / (2**order - 1), big.sum(axis=1), P, order, order + 1, False)


@inner
def prepare(rhs, agree, context, method, memory):
    """Derivative at the start and a first step."""
    clock, tally, rows = memory.clock, memory.tally, memory.rows
    status = rhs(context, clock[m.TIME], rows[0], rows[1])
    tally[m.EVALUATIONS] += 1
    add_scaled_squares(rows[0], rows[0], memory, STATE)
    add_scaled_squares(rows[0], rows[1], memory, SLOPE)
    status = agree(context, memory, status)
    if status == 0 and clock[m.STEP] == 0.0:
        clock[m.STEP] = first_step(rhs, agree, context, memory, method.order, rows[rows.shape[0] - 1], rows[2])
        tally[m.EVALUATIONS] += 1
    return status


@as_written
def combine(weights, count, h, rows, out):
    """out = y + h sum of weights[j] k_j over the first `count` stages."""
    n = out.shape[0]
    for i in range(n):
        out[i] = 0.0
    for j in range(count):
        w = weights[j]
        if w != 0.0:
            k = rows[1 + j]
            for i in range(n):
                out[i] += w * k[i]
    y = rows[0]
    for i in range(n):
        out[i] = y[i] + h * out[i]


@inner
def add_errors(method, memory, h):
    """Sums of the squares of the error of a step to the state on trial, and their maximum."""
    spans, rows, tolerance, stages = memory.spans, memory.rows, memory.tolerance, method.B.shape[0]
    y, trial = rows[0], rows[stages + 2]
    for s in range(spans.shape[0]):
        total = worst = 0.0
        for i in range(span_start(spans, s), span_end(spans, s)):
            e = 0.0
            for j in range(stages):
                e += method.E[j] * rows[1 + j, i]
            e *= h / weight(y[i], trial[i], tolerance[0, i], tolerance[1, i])
            total += e * e
            worst = max(worst, e * e)
        memory.sums[s, ERROR], memory.sums[s, LARGEST] = total, worst


@inline
def error_of(method, memory, h):
    """Size of the error in units of the tolerance."""
    totals = memory.totals
    error = root_mean_square(memory, ERROR)
    if method.largest:
        error = math.sqrt(totals[LARGEST] + 0.0 * totals[ERROR])  # 0 * total: NaN stays one
    return error / abs(h) if method.per_unit else error


@inline
def attempt(rhs, agree, context, method, memory):
    """One step: y moves and the clock goes on, or the step becomes smaller."""
    clock, tally, rows = memory.clock, memory.tally, memory.rows
    stages, n, t = method.B.shape[0], rows.shape[1], clock[m.TIME]
    power = method.estimate - 1 if method.per_unit else method.estimate  # of h in the error
    y, end, trial = rows[0], rows[stages + 1], rows[stages + 2]
    h, last = fitted_step(clock, clock[m.STEP], False)
    status, stage = 0, 1
    while status == 0 and stage < stages:
        combine(method.A[stage], stage, h, rows, trial)
        status = rhs(context, t + method.C[stage] * h, trial, rows[1 + stage])
        tally[m.EVALUATIONS] += 1
        stage += 1
        if stage < stages:
            status = agree(context, memory, status)
    error = math.inf
    if stage == stages:  # the status of the last stage is agreed together with the error
        combine(method.B, stages, h, rows, trial)
        add_errors(method, memory, h)
        status = agree(context, memory, status)
        error = error_of(method, memory, h)
    if status == 0 and error <= 1.0:
        clock[m.TIME] = clock[m.UNTIL] if last else t + h
        clock[m.TAKEN] = h
        tally[m.STEPS] += 1
        for i in range(n):
            y[i], trial[i] = trial[i], y[i]  # where the step began is kept for `polynomial`
        if method.ends:  # the last stage was at the end
            for i in range(n):
                end[i] = rows[stages, i]
        if not last or error > 0.1:  # a last step cut short says nothing about the next
            clock[m.STEP] = next_step(h, error, power)
        return m.ACCEPTED
    tally[m.REJECTED] += 1
    clock[m.STEP] = next_step(h, error, power) if status == 0 else 0.25 * h
    if abs(h) <= 1.00001 * smallest_step(clock):
        return m.STEP_TOO_SMALL if status == 0 else status
    return m.TRY_AGAIN


@inline
def complete(rhs, agree, context, method, memory):
    """Derivative at the end, where the method has not had it."""
    if method.ends:
        return 0
    memory.tally[m.EVALUATIONS] += 1
    status = rhs(context, memory.clock[m.TIME], memory.rows[0], memory.rows[method.B.shape[0] + 1])
    return agree(context, memory, status)


@inline
def go_on(method, memory):
    """The derivative at the end is that of the next start."""
    rows, end = memory.rows, method.B.shape[0] + 1
    for i in range(rows.shape[1]):
        rows[1, i] = rows[end, i]


@as_written
def polynomial(method, memory, out):
    """The last step as a polynomial of (t - origin) / scale, its coefficients by rows: (origin, scale, degree)."""
    h, rows, stages, degree = memory.clock[m.TAKEN], memory.rows, method.B.shape[0], method.P.shape[1]
    for i in range(rows.shape[1]):
        out[0, i] = rows[stages + 2, i]
        for p in range(degree):
            total = 0.0
            for j in range(stages + 1):
                total += method.P[j, p] * rows[1 + j, i]
            out[p + 1, i] = h * total
    return memory.clock[m.TIME] - h, h, degree
