"""Weighted sums: the only data of the state for decisions, so that several workers decide alike [J, sec. III.C].

Workers that share an integration run the same solver side by side, each with its own columns of the state and its own
copies of clock and tally. Vector work needs no other worker. A decision depends on clock, tally, totals and an agreed
status only, which are the same for all: so all take identical steps, bit by bit.

A loop that forms sums writes those of each span to a row of `sums`. Then

    agree(context, memory, status) -> status

computes `totals`, the sums over all spans of all workers, and the common status: 0 if all are 0.
It is called after every evaluation. Where an evaluation has failed, the sums are meaningless and the status decides.
"""

import math

import numpy as np

from bunraku.integrate.solver_memory import LARGEST, SIZE, SUMS
from bunraku.jit import inline


@inline
def add_up(sums, totals):
    """Totals of the sums of all spans, a row for each, in this order; the last place is a maximum."""
    for k in range(SUMS):
        total = sums[0, k]
        for s in range(1, sums.shape[0]):
            total += sums[s, k]
        totals[k] = total
    largest = sums[0, LARGEST]
    for s in range(1, sums.shape[0]):
        largest = max(largest, sums[s, LARGEST])
    totals[LARGEST] = largest


@inline
def alone(context, memory, status):
    """The agreement of a single worker."""
    add_up(memory.sums, memory.totals)
    return status


@inline
def root_mean_square(memory, k):  # [J, sec. III.C]
    """Norm whose squares are the total k."""
    return math.sqrt(memory.totals[k] / memory.clock[SIZE])


@inline
def span_start(spans, s):
    """First component of a span, unsigned: loops over indices that cannot be negative are compiled to SIMD code."""
    return np.uint64(spans[s, 0])


@inline
def span_end(spans, s):
    """One past the last component of a span."""
    return np.uint64(spans[s, 1])


@inline
def add_squares(x, weights, memory, k):
    """Sums k: of the squares of x in units of the tolerance."""
    spans = memory.spans
    for s in range(spans.shape[0]):
        total = 0.0
        for i in range(span_start(spans, s), span_end(spans, s)):
            a = x[i] * weights[i]
            total += a * a
        memory.sums[s, k] = total
