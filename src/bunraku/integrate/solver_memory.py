"""The memory of an integration: flat arrays that outlive a call, and the names of the places in them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from bunraku.jit import Held, as_written, inline

# Places in `clock` (float64). Steps have the sign of the direction; the limits have none.
TIME, UNTIL = 0, 1
STEP = 2                     # the next one to try; 0: find one
MIN_STEP, MAX_STEP = 3, 4
GAP = 5                      # largest that `settle` found and closed
TAKEN = 6                    # the last step that was accepted
# of multistep methods
PENDING = 7                  # by what to scale the history before the next step
GROWTH = 8                   # limit of the next change of step
RATE = 9                     # at which the corrector converges
GAMMA = 10                   # h l0 that the iteration matrix was made for
STEEPNESS = 11               # RATE of functional iteration per h l0, of late; 0: not seen
WISH = 12                    # step that error control would take, where a stop has cut it short; 0: it is STEP
EXTRAPOLATED = 13            # time since the last evaluation, where stops follow each other so closely that none is due
# of runs that stop
LAST_UNTIL = 14                     # the last UNTIL
BEGAN = 15                   # when the method last started anew
OPEN_BY = 16                 # gap of the connection OPEN_AT that ended a run with LOOPS_OPEN [m, rad]
SIZE = 17                    # components of the state over all workers, by which mean squares are formed
CLOCK = 18

# Places in `tally` (int64)
STEPS, REJECTED, EVALUATIONS, RECORDED, JACOBIANS, FACTORISATIONS = range(6)
STARTED = 6                  # 0: begin anew from rows[0]
# of multistep methods
ORDER, NEXT_ORDER, MAX_ORDER = 7, 8, 9
WAIT = 10                    # steps until order and step are reconsidered
FAILURES = 11                # error tests failed in a row
MATRIX_STEP, JACOBIAN_STEP = 12, 13  # number of the step at which each was made; -1: never
TROUBLE = 14                 # why the iteration matrix is to be made anew: see `bdf.py`
LAST_REJECTED = 15           # number of the step that was last tried in vain
OPEN_AT = 16                 # number of a connection, see OPEN_BY
FLIGHT = 17                  # of time steps with contact: 1: mean accelerations of the step (`runs/contact_flight.py`)
TALLY = 18

# Places in `sums` and `totals` (float64): five sums [J, table IX] and a maximum
SUMS = 5
LARGEST = 5                  # combined by the maximum in place of the sum
PLACES = 6

# How a run ends, and (ACCEPTED, REJECTED_STEP) how an attempt does
(REACHED, RECORD_FULL, STATE_FAILED, ACTUATION_FAILED, STEP_TOO_SMALL, LOOPS_CLASH, EVENT, LOOPS_OPEN,
 CONTACTS_FULL) = range(9)
ACCEPTED, TRY_AGAIN = 0, -1

EPSILON = 2.0**-52


class Memory(NamedTuple):
    """Memory of an integration. `rows[0]` is the state, `rows[1]` its derivative (times h for multistep)."""

    clock: np.ndarray        # (CLOCK,)
    tally: np.ndarray        # (TALLY,)
    tolerance: np.ndarray    # (2, n): relative, absolute
    rows: np.ndarray         # (as the method wants, n)
    matrix: np.ndarray       # (2 n, n): Jacobian, factors of the iteration matrix; (0, n) if there is none
    pivots: np.ndarray       # (n,) or (0,)
    spans: np.ndarray        # (k, 2): ranges of components, at least one; sums are formed over each by itself
    sums: np.ndarray         # (k, PLACES): of each span here
    totals: np.ndarray       # (PLACES,): of all spans of all workers; see `sums.py`


floats, table, counts = types.float64[::1], types.float64[:, ::1], types.int64[::1]
MEMORY = Held(types.NamedTuple([floats, counts, table, table, table, counts, types.int64[:, ::1], table, floats],
                               Memory))


def make_memory(y, rtol, atol, rows, *, newton=False) -> Memory:
    """Memory for an integration from y by one worker; tolerances are numbers or arrays like y."""
    n = len(y)
    tolerance = np.empty((2, n))
    tolerance[0], tolerance[1] = rtol, atol
    memory = Memory(np.zeros(CLOCK), np.zeros(TALLY, np.int64), tolerance, np.zeros((rows, n)),
                    np.zeros((2 * n if newton else 0, n)), np.zeros(n if newton else 0, np.int64),
                    np.array([[0, n]], np.int64), np.zeros((1, PLACES)), np.zeros(PLACES))
    memory.rows[0] = y
    memory.clock[MAX_STEP], memory.clock[SIZE] = np.inf, n
    return memory


@inline
def copy(source, target):
    for i in range(source.shape[0]):
        target[i] = source[i]


@as_written
def multiply(factor, x, out):
    """out = factor x"""
    for i in range(x.shape[0]):
        out[i] = factor * x[i]


@as_written
def add_scaled(y, h, x, out):
    """out = y + h x"""
    for i in range(x.shape[0]):
        out[i] = y[i] + h * x[i]
