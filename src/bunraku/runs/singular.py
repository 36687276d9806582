"""Passing through singular configurations, in which a mechanism has more mobility than elsewhere; multistep methods.

Near one (a four-bar that lies flat: its constraint is g = x y, with x along the motion and y off it) y'' is
-2 x' y' / x: constraint errors y' of a predicted state are amplified near the singularity and would enforce ever
smaller steps. So, where the smallest pivot of the constraints falls far below its recent size, accelerations are
evaluated at the nearest state with closed loops; and where accelerations are lost in rounding errors, which grow with 1
/ pivot, a step coasts: the predicted state is accepted.
"""

from bunraku.algorithms.connection_equations import POSITION
from bunraku.algorithms.states import coordinate_rates, normalise_quaternions
from bunraku.integrate.bdf import newton
from bunraku.integrate.gear import corrected, functional
from bunraku.integrate.history import CHANGE, CONVERGED, RATES, TRIAL
from bunraku.integrate.solver_memory import ORDER, WAIT, copy
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.runs.context import (
    COASTED,
    MAY_COAST,
    RATIO,
    RECENT,
    STAYS_OPEN,
    connected,
    coordinates,
    right_hand_side,
    smallest_pivot,
)
from bunraku.runs.loop_closing import largest, right_hand_side_closed, settle, solved
from bunraku.tolerances import BLIND, FADING, STILL_OPEN, WEAK

LONGEST = 3  # steps in a row that may coast
COAST = -2   # answer of the right-hand side: this step should coast


@inner
def right_hand_side_near(context, t, y, dy):
    """As `right_hand_side`; where a constraint is weak, of the nearest state that closes all loops. COAST where it is
    so weak that the step should coast."""
    passing = context.passing
    status = right_hand_side(context, t, y, dy)
    passing[RATIO] = 1.0
    if status == 0 and connected(context) and passing[RECENT] > 0.0:
        passing[RATIO] = smallest_pivot(context) / passing[RECENT]
    if passing[RATIO] < BLIND and passing[MAY_COAST] > 0.0 and passing[COASTED] < LONGEST:
        return COAST
    if passing[RATIO] < WEAK:
        status = right_hand_side_closed(context, t, y, dy)
    return status


@inner
def all_but_closed(context, y):
    """Whether the loop gaps are below the tolerated size."""
    nq = coordinates(context)
    copy(y[:nq], context.factored)
    return solved(POSITION, False, context, y[:nq], y[nq:]) and largest(f.CONN_GAP, context) <= STILL_OPEN


@inner
def settle_near(context, rows, count, h):
    """As `settle`; notes the smallest pivot where steps end. The loops of a step that coasts are closed by the next one
    that does not: so near, the move that closes them is lost in rounding too. Where they are open further they are
    closed at once."""
    passing = context.passing
    if passing[COASTED] > 0.0:
        normalise_quaternions(context.structure.body_i, rows, count)
        passing[STAYS_OPEN] = 0.0
        if all_but_closed(context, rows[0]):
            return 0.0
        passing[COASTED] = 0.0
    gap = settle(context, rows, count, h)
    if connected(context):
        passing[RECENT] = max(smallest_pivot(context), FADING * passing[RECENT])
    return gap


@inner
def follow(context, memory, l0, h):
    """Rates of coordinates with the velocities that the evaluation has led to; see `integrate/gear.py`. Where a
    constraint is weak they stay those of the nearest state that closes all loops."""
    if context.passing[RATIO] >= WEAK:
        corrected(memory, l0, h)
        nq, y, rates = coordinates(context), memory.rows[TRIAL], memory.rows[RATES]
        coordinate_rates(context.structure.body_i, y[:nq], y[nq:], rates[:nq])


@inline
def correct(rhs, agree, context, method, memory, t, h):
    """As `nordsieck.correct`, for a mechanism. A step that ends where accelerations are lost in rounding coasts: it
    stays as predicted, and the steps after it, whose errors are seen again, end elsewhere."""
    passing = context.passing
    passing[MAY_COAST] = 1.0
    if method.newton:
        outcome, size = newton(rhs, agree, context, method, memory, t, h)
    else:
        outcome, size = functional(rhs, agree, follow, context, method, memory, t, h)
    passing[MAY_COAST] = 0.0
    if outcome != COAST:
        passing[COASTED] = 0.0
        return outcome, size
    passing[COASTED] += 1.0
    change = memory.rows[CHANGE]
    for i in range(change.shape[0]):
        change[i] = 0.0
    memory.tally[WAIT] = memory.tally[ORDER] + 2  # no error, no reason for another step
    return CONVERGED, 0.0
