"""Loop closure in a run: after every step; a step is rejected if its loops do not close near its end. Closed contacts
are kept closed likewise; where that would change a state too much they are left to the next event.

Moves and impulses that close loops are the smallest in the metric of the mass matrix. They are computed with the
factors of the last evaluation in the work memory, if that was at a nearby state, else with new ones.
"""

import numpy as np

from bunraku.algorithms.connection_equations import AGAIN, IMPULSE, POSITION
from bunraku.algorithms.states import advance_coordinates, coordinate_rates, normalise_quaternions
from bunraku.contact.contact_fields import KEEP_CLOSED
from bunraku.entries.signatures import FAILED
from bunraku.integrate import solver_memory as m
from bunraku.integrate.control import smallest_step, weight
from bunraku.integrate.history import WEIGHTS
from bunraku.integrate.solver_memory import copy
from bunraku.jit import as_written, inline, inner
from bunraku.plan import fields as f
from bunraku.runs.context import (
    BEGAN,
    STAYS_OPEN,
    agree,
    connected,
    coordinates,
    evaluate,
    has_loops,
    of_all,
    right_hand_side,
    touches,
)
from bunraku.tolerances import (
    ALLOWED,
    ALLOWED_FIXED,
    CLOSED,
    IN_VAIN,
    LEFT_BY_FACTORS,
    NEAR_FACTORS,
    ONE_MOVE,
    ROUNDING,
    SMALLEST_GAP,
    STILL_OPEN,
)

MOVES, FAR_MOVES = 4, 12  # with factors at hand; with new ones for every move


@inner
def close_loops(context, q, v):
    """Close the gaps after a step: moves (one if the gaps are small) and an impulse, by the existing factors if
    these are of a nearby state. Returns the largest initial gap; infinity if they do not close."""
    if not has_loops(context):
        return 0.0
    gap = move_together(True, context, q, v) if distance(context, q) < NEAR_FACTORS else np.inf
    if gap < np.inf and solved(IMPULSE, True, context, q, v) and largest(f.CONN_GAP, context) <= ROUNDING:
        return gap if close_velocities(context, q, v) else np.inf
    return max(close_anew(context, q, v), gap if gap < np.inf else 0.0)


@inner
def close_anew(context, q, v):
    """The same with new factors. One more move if the last one leaves more than the rounding-error floor."""
    if not has_loops(context):
        return 0.0
    gap = move_together(False, context, q, v)
    if gap == np.inf or not solved(IMPULSE, True, context, q, v):
        return np.inf
    if largest(f.CONN_GAP, context) > ROUNDING:
        if not solved(POSITION, True, context, q, v):
            return np.inf
        fits = not misfit(context)
        advance_coordinates(context.structure.body_i, q, context.change, q)
        if not solved(IMPULSE, True, context, q, v) or (fits and largest(f.CONN_GAP, context) > STILL_OPEN):
            return np.inf
    return gap if close_velocities(context, q, v) else np.inf


@inner
def close_velocities(context, q, v):
    """Add the velocity change of an impulse, with one correction for the error of the factors. Returns whether there is
    a solution."""
    for _ in range(MOVES):
        for j in range(v.shape[0]):
            v[j] += context.change[j]
        if largest(f.CONN_BIAS, context) * part_left(context, q) < SMALLEST_GAP:
            break
        if not solved(IMPULSE, True, context, q, v):
            return False
    return True


@inner
def misfit(context):
    """Whether loops stay open because the frames of redundant connections are slightly inconsistent: the gap is within
    the closing tolerance, and the computed move does not reduce it."""
    gap, most = largest(f.CONN_GAP, context), 0.0
    for j in range(context.change.shape[0]):
        most = max(most, abs(context.change[j]))
    return gap <= CLOSED and of_all(context, most) < IN_VAIN * gap


@inner
def move_together(again, context, q, v):
    """Close the gaps by moves, with the existing factors (`again`) or new ones for every move. Returns the largest gap
    found; infinity if there is no solution, or if new factors have not closed them."""
    gap = now = 0.0
    for _ in range(MOVES if again else FAR_MOVES):
        if not again:
            copy(q, context.factored)
        if not solved(POSITION, again, context, q, v):
            return np.inf
        now = largest(f.CONN_GAP, context)
        gap = max(gap, now)
        advance_coordinates(context.structure.body_i, q, context.change, q)
        if now < (ROUNDING if again else ONE_MOVE) or (again and now * part_left(context, q) < SMALLEST_GAP):
            break
    return gap if again or now < ONE_MOVE else np.inf


@inline
def part_left(context, q):
    """Upper bound of the part of a gap at q that a move by the existing factors leaves open."""
    return LEFT_BY_FACTORS * distance(context, q)


@inline
def solved(mode, again, context, q, v):
    """Put into context.change the move that closes the gaps (POSITION), or the change of velocity that keeps them
    closed (IMPULSE), by new factors or by those at hand (`again`); the gaps are in the records of the connections.
    Whether there is a solution."""
    return evaluate(mode + AGAIN if again else mode, context.structure.dof_f, context.zeros, context.nothing, context,
                    q, v, context.change) != FAILED


@inner
def largest(field, context):
    """Largest entry of a field of the connections with one number for each constrained direction."""
    conn_i, work = context.structure.conn_i, context.work
    most = 0.0
    for c in range(conn_i.shape[0] - 1):
        o = f.connection_record(conn_i, c) + field
        for k in range(conn_i[c, f.ROWS]):
            most = max(most, abs(work[o + k]))
    return of_all(context, most)


@inner
def distance(context, q):
    """Largest difference of the coordinates from those of the existing factors; infinity if there are none (NaN)."""
    most = 0.0
    for k in range(q.shape[0]):
        apart = abs(q[k] - context.factored[k])
        most = max(most, apart if apart == apart else np.inf)
    return of_all(context, most)


@inner
def right_hand_side_closed(context, t, y, dy):
    """As `right_hand_side`, of the nearest state that closes all loops. LOOPS_OPEN if there is none near."""
    closed, nq = context.closed, coordinates(context)
    copy(y, closed)
    if close_loops(context, closed[:nq], closed[nq:]) == np.inf:
        copy(y, context.unclosed)
        return m.LOOPS_OPEN
    return right_hand_side(context, t, closed, dy)


@inner
def keep_contacts(context, y):
    """Project a state to the contacts that are closed, in place (`contact/contact_motion.py`)."""
    nq = coordinates(context)
    evaluate(KEEP_CLOSED, context.structure.dof_f, context.zeros, context.nothing, context, y[:nq], y[nq:],
             context.change)


@inner
def within_tolerance(context, y, before, weights):
    """Whether the change of y is below ALLOWED tolerances, in all workers."""
    for s in range(context.spans.shape[0]):
        total = 0.0
        for i in range(context.spans[s, 0], context.spans[s, 1]):
            x = (y[i] - before[i]) * weights[i]
            total += x * x
        context.sums[s, 0], context.sums[s, 1] = total, float(context.spans[s, 1] - context.spans[s, 0])
    agree(context, context, 0)
    return context.totals[0] <= ALLOWED * ALLOWED * context.totals[1]


@inner
def settle(context, rows, count, h):
    """Unit quaternions, closed loops and contacts, for a state rows[0] and its history; returns the gap there was. For
    multistep methods. passing[STAYS_OPEN] becomes 1 if the loops do not close within the tolerance of the step: see
    `step_back`.

    The equation of a quaternion is linear in it, so scaling its whole history is exact: no order is lost and no error
    estimate disturbed. Closing the loops moves the state, and that changes the rates of the coordinates, which are the
    first derivative; accelerations change by as little as the gap and are left.
    """
    body_i, rates, nq = context.structure.body_i, context.rates, coordinates(context)
    y = rows[0]
    normalise_quaternions(body_i, rows, count)
    context.passing[STAYS_OPEN] = 0.0
    if not (connected(context) or touches(context)):
        return 0.0
    copy(y, context.unclosed)
    coordinate_rates(body_i, y[:nq], y[nq:], rates[0])
    gap = close_loops(context, y[:nq], y[nq:])
    if not within_tolerance(context, y, context.unclosed, rows[WEIGHTS]) or gap == np.inf:
        context.passing[STAYS_OPEN] = 1.0
        return 0.0
    if touches(context):
        copy(y, context.closed)
        keep_contacts(context, y)
        if not within_tolerance(context, y, context.closed, rows[WEIGHTS]):
            copy(context.closed, y)
    coordinate_rates(body_i, y[:nq], y[nq:], rates[1])
    change_rates(rows[1], h, rates)
    return gap


@as_written
def change_rates(slope, h, rates):
    """The scaled first derivative of the coordinates, whose rates have changed from rates[0] to rates[1]."""
    for k in range(rates.shape[1]):
        slope[k] += h * (rates[1, k] - rates[0, k])


# -- steps whose loops do not close --------------------------------------------------------------------------------


@inner
def note_open(context, y, memory):
    """Store the connection with the largest gap at y, and the gap, for the error message."""
    conn_i, work, nq = context.structure.conn_i, context.work, coordinates(context)
    solved(POSITION, False, context, y[:nq], y[nq:])
    context.factored[0] = np.nan  # no factors for later
    memory.clock[m.OPEN_BY] = -1.0
    for c in range(conn_i.shape[0] - 1):
        o = f.connection_record(conn_i, c) + f.CONN_GAP
        for k in range(conn_i[c, f.ROWS]):
            if not abs(work[o + k]) <= memory.clock[m.OPEN_BY]:
                memory.clock[m.OPEN_BY], memory.tally[m.OPEN_AT] = abs(work[o + k]), c
    if not memory.clock[m.OPEN_BY] < np.inf:
        memory.clock[m.OPEN_BY] = np.inf
    worst = of_all(context, max(memory.clock[m.OPEN_BY], 0.0))
    if memory.clock[m.OPEN_BY] < worst:
        memory.clock[m.OPEN_BY], memory.tally[m.OPEN_AT] = worst, -1  # another worker's


@inner
def start_closed(context, memory):
    """Close the small gaps of an initial state within the tolerance, so that they do not burden the first step."""
    y, nq = memory.rows[0], coordinates(context)
    copy(y, context.unclosed)
    if close_loops(context, y[:nq], y[nq:]) < np.inf:
        return 0
    copy(context.unclosed, y)
    note_open(context, y, memory)
    return m.LOOPS_OPEN


@inner
def step_back(context, start, memory):
    """Return to the beginning of the last step, since its loops do not close. Returns whether it was the shortest
    step."""
    clock, tally = memory.clock, memory.tally
    copy(start, memory.rows[0])
    clock[m.TIME] = context.passing[BEGAN]
    tally[m.STEPS] -= 1
    tally[m.REJECTED] += 1
    context.passing[STAYS_OPEN] = 0.0
    if abs(clock[m.TAKEN]) > 1.00001 * smallest_step(clock):
        return False
    note_open(context, context.unclosed, memory)
    return True


@inner
def too_far(context, start, y, memory):
    """Whether closing the loops has changed a step too much: by more than the tolerance; with fixed steps, by more than
    part of the velocities at either end, or of the move that they make (a mechanism may come to rest in a step)."""
    nq, unclosed, spans, sums = coordinates(context), context.unclosed, context.spans, context.sums
    clock, tolerance = memory.clock, memory.tolerance
    if clock[m.MIN_STEP] < clock[m.MAX_STEP]:
        for s in range(spans.shape[0]):
            sums[s, 0] = 0.0
            for i in range(spans[s, 0], spans[s, 1]):
                x = (y[i] - unclosed[i]) / weight(start[i], y[i], tolerance[0, i], tolerance[1, i])
                sums[s, 0] += x * x
        agree(context, memory, 0)
        return not memory.totals[0] <= ALLOWED * ALLOWED * clock[m.SIZE]
    step = move = speed = change = 0.0
    for k in range(nq):
        step, move = max(step, abs(unclosed[k] - start[k])), max(move, abs(y[k] - unclosed[k]))
    for i in range(nq, y.shape[0]):
        speed, change = max(speed, abs(start[i]), abs(unclosed[i])), max(change, abs(y[i] - unclosed[i]))
    step, speed = of_all(context, max(step, abs(clock[m.TAKEN]) * speed)), of_all(context, speed)
    return not (of_all(context, move) <= ALLOWED_FIXED * step + ONE_MOVE
                and of_all(context, change) <= ALLOWED_FIXED * speed + ONE_MOVE)
