"""Whole runs in compiled code: a mechanism's right-hand side under an integrator, recorded as it goes.

An entry advances until the time is reached, the record is full, or something fails, and says which; Python only
passes the results on and comes back for more. That is where progress bars and Ctrl-C get their turn.
"""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.connections import AGAIN, DYNAMICS, IMPULSE, POSITION
from bunraku.algorithms.forward import accelerate, scratch_sizes, scratch_total
from bunraku.algorithms.states import advance_coordinates, coordinate_rates, normalise_quaternions
from bunraku.algorithms.stepping import step_coordinates
from bunraku.integrate import nordsieck, runge_kutta
from bunraku.integrate.advance import advance
from bunraku.integrate.bdf import newton
from bunraku.integrate.control import smallest_step, weight
from bunraku.integrate.gear import functional
from bunraku.integrate.history import CHANGE, CONVERGED, FAMILY, WEIGHTS
from bunraku.integrate.memory import (
    ACTUATION_FAILED,
    EVALUATIONS,
    EXTRAPOLATED,
    FAILURES,
    GAP,
    GROWTH,
    LAST_REJECTED,
    LOOPS_CLASH,
    LOOPS_OPEN,
    MAX_STEP,
    MEMORY,
    MIN_STEP,
    OPEN_AT,
    OPEN_BY,
    ORDER,
    PENDING,
    REACHED,
    RECORD_FULL,
    RECORDED,
    REJECTED,
    STATE_FAILED,
    STEP,
    STEPS,
    TAKEN,
    TIME,
    UNTIL,
    WAIT,
    WISH,
    copy,
)
from bunraku.integrate.memory import (
    AGAIN as TRY_AGAIN,
)
from bunraku.integrate.runge_kutta import TABLEAU
from bunraku.jit import allocating, entry, inline, inner
from bunraku.plan.fields import (
    CONN_BIAS,
    CONN_F,
    CONN_GAP,
    CONN_I,
    CONN_RECORD,
    HEAD_CONN,
    HEAD_FREEDOMS,
    HEAD_JUDGED,
    HEAD_NQ,
    HEAD_TOTAL,
    HEAD_WORK,
    HOLD,
    JUDGED_WEAKEST,
    ROWS,
)
from bunraku.run.actuation import call_actuation
from bunraku.run.closed import closed_one
from bunraku.run.notes import NOTES, room_in, write_down
from bunraku.run.signatures import (
    CLASHED,
    FAILED,
    FINE,
    LINKS,
    LOOPS,
    MOTION,
    PLAN,
    SPRINGS,
    floats,
    int64,
)

ONE_MOVE = 1e-6  # [m, rad] what is open by less is closed by one move up to its square
MOVES, FAR_MOVES = 4, 12  # with factors at hand; with new ones for every move
NEAR = 1e-4      # [m, rad] distance from the coordinates that factors were made at within which they are tried
PART = 3.0       # [1/m, 1/rad] part of a gap that factors leave, at most, per such distance
CLOSED = 1e-13   # [m, rad; per second] what may stay open by this estimate
ROUNDING = 1e-12 # [m, rad] what may stay open in fact; what is open by less is not closed any better by new factors
STILL_OPEN = 1e-9  # [m, rad] what may stay open at most: a step that leaves more has failed, unless ...
COUNTS_AS_CLOSED, IN_VAIN = 1e-6, 0.01  # ... it is no more than this, and moves close less than this part of it
ALLOWED = 10.0   # tolerances by which closing the loops may change a state
FAR = 0.5        # the same for fixed steps, as part of the step and of the velocities
WEAKER = 0.25    # part of what the smallest pivot was of late below which constraints count as weak
FADING = 0.99    # how a step long ago counts less
BLIND = 1e-7     # the same for where accelerations are lost in rounding (it grows with 1 / pivot) and steps coast
LONGEST = 3      # steps in a row that may coast
COAST = -2       # what the right-hand side answers there
LATE, NOW, COASTED, ASKED, OPEN, HELD, BEGAN, PASSING = range(8)  # of `passing`, see `wary`
HELD_STEPS = 16  # Runge-Kutta steps with closed stages after one that needed them


@inline
def drive(address, t, q, v, params, tau):
    """Torques of the actuation into tau; its status."""
    for j in range(tau.shape[0]):
        tau[j] = 0.0
    if address != 0 and call_actuation(address, t, q, v, params, tau) != 0:
        return ACTUATION_FAILED
    return 0


# -- the mechanism as a function: compiled once for all solvers, which only get its address --------------------------


@entry("motion of trees", [MOTION])
def tree_one(mode, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, q, v, tau, drives,
             external, a, work):
    """As `closed_one`, for a mechanism without connections."""
    size_work, size_total, size_wrench, size_states = scratch_sizes(body_i, dof_f, external.shape[0] > 0)
    first = size_work + size_total
    margin, residue = accelerate(body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, q, v, tau, external, a,
                                 work[:size_work], work[size_work:first], work[first:first + size_wrench],
                                 work[first + size_wrench:first + size_wrench + size_states])
    return FINE if margin > 0.0 and residue == 0.0 else FAILED


NO_LOOPS = (np.zeros((1, CONN_I), np.int32), np.zeros((0, CONN_F)), np.zeros(1, np.int32))


def motion(plan, hold: float = 0.0) -> tuple:
    """What a solver needs to know of a mechanism: a function and its constant arguments. Loops are closed after every
    step, or with a rate `hold` [1/s] by themselves."""
    loops = plan.loops
    if loops is None:
        move, dof_f, arrays = tree_one.as_argument, plan.dof_f, NO_LOOPS
    else:
        conn_f = loops.conn_f
        if hold > 0.0:
            conn_f = conn_f.copy()
            conn_f[:, HOLD] = hold
        move, dof_f, arrays = closed_one.as_argument, loops.dof_f, (loops.conn_i, conn_f, loops.prog)
    return (move, plan.body_i, plan.body_f, dof_f, plan.link_i, plan.link_f, plan.spring_i, plan.spring_f, *arrays)


@allocating
def make_context(move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, address,
                 params):
    """All that a right-hand side needs, scratch included: tau, drives, nothing, zeros, change, work, and three rows of
    coordinates: rates before and after closing loops, and where the factors that work holds were made, or NaN."""
    nv, nc = dof_f.shape[1], np.int64(conn_i[-1, HEAD_FREEDOMS])
    size = max(np.int64(body_i[-1, HEAD_WORK]), np.int64(conn_i[-1, HEAD_TOTAL])) + scratch_total(body_i, dof_f)
    torques = np.zeros(nv + nc)
    return (move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, address, params,
            torques, torques[nv:], torques[:0], np.zeros(nv), np.empty(nv), np.empty(size),
            np.full((3, np.int64(body_i[-1, HEAD_NQ])), np.nan))


@inline
def forces_to_accelerations(context, q, v, a):
    """Accelerations under context's torques; a failure if there are none."""
    (move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, address, params, torques,
     drives, nothing, zeros, change, work, rates) = context
    answer = move(DYNAMICS, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, q, v,
                  torques, drives, nothing, a, work)
    copy(q, rates[2])
    return 0 if answer == FINE else LOOPS_CLASH if answer == CLASHED else STATE_FAILED


@inner
def hold_closed(context, q, v):
    """Close what a step has left open: moves (one if they are small) and an impulse, the smallest in the mass metric.
    Returns the largest gap there was; infinity if they do not close. Loops that close by themselves are left alone.

    The factors at hand serve if they were made near q and succeed; if not, new ones are made, and serve for both.
    """
    conn_i, conn_f, change, factored = context[8], context[9], context[17], context[19][2]
    if conn_i.shape[0] == 1 or conn_f[0, HOLD] != 0.0:
        return 0.0
    gap = move_together(True, context, q, v) if distance(q, factored) < NEAR else np.inf
    if gap == np.inf or not solved(IMPULSE, True, context, q, v) or largest(CONN_GAP, context) > ROUNDING:
        gap = max(move_together(False, context, q, v), gap if gap < np.inf else 0.0)
        if gap == np.inf or not solved(IMPULSE, True, context, q, v):
            return np.inf
        if largest(CONN_GAP, context) > STILL_OPEN and not (
                misfit(context, q, v) and solved(IMPULSE, True, context, q, v)):
            return np.inf
    for _ in range(MOVES):
        for j in range(v.shape[0]):
            v[j] += change[j]
        if largest(CONN_BIAS, context) * part_left(context, q) < CLOSED:
            break
        if not solved(IMPULSE, True, context, q, v):
            return np.inf
    return gap


@inner
def misfit(context, q, v):
    """Whether what is open is so because frames of redundant connections do not quite fit each other: little enough to
    count as closed, and no move closes it any better."""
    if not solved(POSITION, True, context, q, v):
        return False
    gap, most = largest(CONN_GAP, context), 0.0
    for j in range(v.shape[0]):
        most = max(most, abs(context[17][j]))
    return gap <= COUNTS_AS_CLOSED and most < IN_VAIN * gap


@inner
def move_together(again, context, q, v):
    """Close the gaps by moves, with the factors at hand (`again`) or new ones for every move. Returns the largest there
    was; infinity if there is no answer, or if new factors have not closed them."""
    gap = now = 0.0
    for _ in range(MOVES if again else FAR_MOVES):
        if not again:
            copy(q, context[19][2])
        if not solved(POSITION, again, context, q, v):
            return np.inf
        now = largest(CONN_GAP, context)
        gap = max(gap, now)
        advance_coordinates(context[1], q, context[17], q)
        if now < (ROUNDING if again else ONE_MOVE) or (again and now * part_left(context, q) < CLOSED):
            break
    return gap if again or now < ONE_MOVE else np.inf


@inline
def part_left(context, q):
    """Part of a gap at q that the factors at hand leave open, at most."""
    return PART * distance(q, context[19][2])


@inline
def solved(mode, again, context, q, v):
    """Put into context's `change` what closes the gaps, or stops their growth, by new factors or by those at hand; what
    there was is in the records of the connections. Whether there is an answer."""
    (move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, address, params, torques,
     drives, nothing, zeros, change, work, rates) = context
    return move(mode + AGAIN if again else mode, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i,
                conn_f, prog, q, v, zeros, nothing, nothing, change, work) != FAILED


@inner
def largest(what, context):
    """Largest entry of a field of the connections with one number for each constrained direction."""
    conn_i, work = context[8], context[18]
    last, most = conn_i.shape[0] - 1, 0.0
    for c in range(last):
        o = conn_i[last, HEAD_CONN] + CONN_RECORD * c + what
        for k in range(conn_i[c, ROWS]):
            most = max(most, abs(work[o + k]))
    return most


@inner
def distance(q, other):
    """Largest difference of two sets of coordinates; infinity if there are none to compare with (NaN)."""
    most = 0.0
    for k in range(q.shape[0]):
        apart = abs(q[k] - other[k])
        most = max(most, apart if apart == apart else np.inf)
    return most


@inner
def mechanism_rhs(context, t, y, dy):
    """Right-hand side of y = (q, v)."""
    body_i, dof_f, address, params, torques = context[1], context[3], context[11], context[12], context[13]
    nq = y.shape[0] - dof_f.shape[1]
    q, v = y[:nq], y[nq:]
    status = drive(address, t, q, v, params, torques)
    if status == 0:
        status = forces_to_accelerations(context, q, v, dy[nq:])
        coordinate_rates(body_i, q, v, dy[:nq])
    return status


@inner
def settle(context, passing, unclosed, rows, count, h):
    """Unit quaternions and closed loops, for a state rows[0] and its history; returns the gap there was. For multistep
    methods. passing[OPEN] becomes 1 if the loops do not close within the tolerance of the step; see `step_back`.

    The equation of a quaternion is linear in it, so scaling its whole history is exact: no order is lost and no error
    estimate disturbed. What closing the loops moves is added to the state, and what that changes in the rates of the
    coordinates to the first derivative; accelerations change by as little as the gap and are left.
    """
    body_i, conn_i, rates = context[1], context[8], context[19]
    nq = rates.shape[1]
    y = rows[0]
    normalise_quaternions(body_i, rows, count)
    passing[OPEN] = 0.0
    if conn_i.shape[0] == 1:
        return 0.0
    copy(y, unclosed)
    coordinate_rates(body_i, y[:nq], y[nq:], rates[0])
    gap = hold_closed(context, y[:nq], y[nq:])
    total = 0.0
    for i in range(y.shape[0]):
        x = (y[i] - unclosed[i]) * rows[WEIGHTS, i]
        total += x * x
    if gap == np.inf or not total <= ALLOWED * ALLOWED * y.shape[0]:
        passing[OPEN] = 1.0
        return 0.0
    coordinate_rates(body_i, y[:nq], y[nq:], rates[1])
    for k in range(nq):
        rows[1, k] += h * (rates[1, k] - rates[0, k])
    return gap


@inner
def whole_turns(whole, rows, count, h):
    """Unit quaternions only."""
    normalise_quaternions(whole[0][1], rows, count)
    return 0.0


# -- steps whose loops do not close --------------------------------------------------------------------------------


@allocating
def wary(context, n):
    """The context with `passing` and room for three states: a closed one, the end of a step before its loops were
    closed, its start.

    passing: how strong the weakest constraint was of late, what part of that it is now, how many steps in a row have
    coasted, whether something is asked of this step or by it, whether its loops are open, how many more steps have
    closed stages, when it began.
    """
    return context, np.zeros(PASSING), np.empty((3, n))


@inner
def note_open(context, y, memory):
    """Which connection is open at y, and by how much: for the error."""
    conn_i, work, nq = context[8], context[18], context[19].shape[1]
    solved(POSITION, False, context, y[:nq], y[nq:])
    context[19][2, 0] = np.nan  # no factors for later
    last, memory.clock[OPEN_BY] = conn_i.shape[0] - 1, -1.0
    for c in range(last):
        o = conn_i[last, HEAD_CONN] + CONN_RECORD * c + CONN_GAP
        for k in range(conn_i[c, ROWS]):
            if not abs(work[o + k]) <= memory.clock[OPEN_BY]:
                memory.clock[OPEN_BY], memory.tally[OPEN_AT] = abs(work[o + k]), c
    if not memory.clock[OPEN_BY] < np.inf:
        memory.clock[OPEN_BY] = np.inf


@inner
def start_closed(context, unclosed, memory):
    """Close what a start has left open within what counts as closed, so that no step has to account for it."""
    y, nq = memory.rows[0], context[19].shape[1]
    copy(y, unclosed)
    if hold_closed(context, y[:nq], y[nq:]) < np.inf:
        return 0
    copy(unclosed, y)
    note_open(context, unclosed, memory)
    return LOOPS_OPEN


@inner
def step_back(context, passing, unclosed, start, memory):
    """Back to where the last step began, since its loops do not close. Whether that was the shortest step there is."""
    clock, tally, y = memory.clock, memory.tally, memory.rows[0]
    copy(start, y)
    clock[TIME] = passing[BEGAN]
    tally[STEPS] -= 1
    tally[REJECTED] += 1
    passing[OPEN] = 0.0
    if abs(clock[TAKEN]) > 1.00001 * smallest_step(clock):
        return False
    note_open(context, unclosed, memory)
    return True


@inner
def too_far(nq, start, unclosed, y, memory):
    """Whether closing the loops has changed a state by more than a step may be wrong: more than the tolerance; with
    fixed steps, more than part of the step or of the velocities."""
    n, clock, tolerance = y.shape[0], memory.clock, memory.tolerance
    if clock[MIN_STEP] < clock[MAX_STEP]:
        total = 0.0
        for i in range(n):
            x = (y[i] - unclosed[i]) / weight(start[i], y[i], tolerance[0, i], tolerance[1, i])
            total += x * x
        return not total <= ALLOWED * ALLOWED * n
    step = change = 0.0
    for k in range(nq):
        step, change = max(step, abs(unclosed[k] - start[k])), max(change, abs(y[k] - unclosed[k]))
    if not change <= FAR * step + ONE_MOVE:
        return True
    speed = change = 0.0
    for i in range(nq, n):
        speed, change = max(speed, abs(unclosed[i])), max(change, abs(y[i] - unclosed[i]))
    return not change <= FAR * speed + ONE_MOVE


# -- Runge-Kutta methods -------------------------------------------------------------------------------------------


@inner
def closed_rhs(context, states, t, y, dy):
    """As `mechanism_rhs`, of the nearest state that closes all loops. LOOPS_OPEN if there is none near."""
    closed, nq = states[0], context[19].shape[1]
    copy(y, closed)
    if hold_closed(context, closed[:nq], closed[nq:]) == np.inf:
        copy(y, states[1])
        return LOOPS_OPEN
    return mechanism_rhs(context, t, closed, dy)


@inner
def staged_rhs(whole, t, y, dy):
    """As `mechanism_rhs`; in steps that need it, of the nearest state that closes all loops.

    Stages lie off the loops by the square of the step. There redundant constraints clash, and close to a configuration
    with more freedom accelerations grow without bound (see `wary_rhs`). f(nearest closed state) is as good a
    right-hand side as f: it equals f where loops are closed, and is smooth beside them, so that no order is lost as
    long as all stages of a step take the same.
    """
    context, passing, states = whole
    conn_i, conn_f, work = context[8], context[9], context[18]
    if passing[HELD] > 0.0:
        return closed_rhs(context, states, t, y, dy)
    status, last = mechanism_rhs(context, t, y, dy), conn_i.shape[0] - 1
    if last > 0 and conn_f[0, HOLD] == 0.0 and (status == LOOPS_CLASH or (
            status == 0 and work[conn_i[last, HEAD_JUDGED] + JUDGED_WEAKEST] < WEAKER * passing[LATE])):
        passing[ASKED] = 1.0
        return LOOPS_CLASH
    return status


@inner
def prepare_stages(rhs, whole, method, memory):
    context, passing, states = whole
    status = start_closed(context, states[1], memory)
    return status if status != 0 else runge_kutta.prepare(rhs, whole, method, memory)


@inline
def attempt_stages(rhs, whole, method, memory):
    """One step; the same again with closed stages if one of them asked for it."""
    context, passing, states = whole
    clock = memory.clock
    passing[ASKED], passing[BEGAN], step = 0.0, clock[TIME], clock[STEP]
    status = runge_kutta.attempt(rhs, whole, method, memory)
    if passing[ASKED] > 0.0:
        passing[HELD], clock[STEP] = HELD_STEPS, step
        return TRY_AGAIN
    if status == LOOPS_OPEN:
        clock[TAKEN] = min(step, clock[MAX_STEP])
        note_open(context, states[1], memory)
    return status


@inline
def complete_and_close(rhs, whole, method, memory):
    """The derivative at the end as the method has it, then closed loops, by the factors that it has left. A step whose
    loops do not close is taken back."""
    context = whole[0]
    status = runge_kutta.complete(rhs, whole, method, memory)
    if context[8].shape[0] == 1 or context[9][0, HOLD] != 0.0:
        return status
    return close_step(whole, memory.rows[method.B.shape[0] + 2], status, memory)


@inner
def close_step(whole, start, status, memory):
    context, passing, states = whole
    clock, y, nq = memory.clock, memory.rows[0], context[19].shape[1]
    conn_i, work, unclosed, last = context[8], context[18], states[1], context[8].shape[0] - 1
    copy(y, unclosed)
    if status == 0 or status == ACTUATION_FAILED:
        gap = hold_closed(context, y[:nq], y[nq:])
        if gap < np.inf and not too_far(nq, start, unclosed, y, memory):
            clock[GAP] = max(clock[GAP], gap)
            weakest = work[conn_i[last, HEAD_JUDGED] + JUDGED_WEAKEST]
            passing[HELD] = HELD_STEPS if weakest < WEAKER * passing[LATE] else passing[HELD] - 1.0
            passing[LATE] = max(weakest, FADING * passing[LATE])
            return status
    h = clock[TAKEN]
    shortest = step_back(context, passing, unclosed, start, memory)
    if passing[ASKED] > 0.0:
        passing[HELD], clock[STEP] = HELD_STEPS, h
        return TRY_AGAIN
    clock[STEP] = 0.5 * h
    return TRY_AGAIN if not shortest else status if status != 0 else LOOPS_OPEN


MECHANISM = (types.FunctionType(MOTION), *PLAN, *LINKS, *SPRINGS, *LOOPS, int64, floats)
RUN = (MEMORY, NOTES)


@entry("simulation with Runge-Kutta methods", [int64(TABLEAU, *MECHANISM, *RUN)])
def rollout_runge_kutta(method, move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog,
                        address, params, memory, notes):
    context = make_context(move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog,
                           address, params)
    return advance(prepare_stages, attempt_stages, complete_and_close, runge_kutta.polynomial, runge_kutta.go_on,
                   staged_rhs, whole_turns, write_down, wary(context, memory.rows.shape[1]), method, memory, notes,
                   room_in(notes))


# -- passing by configurations in which a mechanism has more freedom than elsewhere ---------------------------------


@inner
def wary_rhs(whole, t, y, dy):
    """As `mechanism_rhs`; where a constraint is much weaker than it was of late, of the nearest state that closes all
    loops. COAST where it is so weak that a step should do without.

    Near a configuration with more freedom (a four-bar that lies flat: g = x y, x along the motion, y off it) y'' is
    -2 x' y' / x: an error y' of a predicted state, harmless elsewhere, would be met with ever smaller steps.
    """
    context, passing, states = whole
    status = mechanism_rhs(context, t, y, dy)
    conn_i, work = context[8], context[18]
    last = conn_i.shape[0] - 1
    passing[NOW] = 1.0
    if status == 0 and last > 0 and passing[LATE] > 0.0:
        passing[NOW] = work[conn_i[last, HEAD_JUDGED] + JUDGED_WEAKEST] / passing[LATE]
    if passing[NOW] < BLIND and passing[ASKED] > 0.0 and passing[COASTED] < LONGEST:
        return COAST
    if passing[NOW] < WEAKER:
        status = closed_rhs(context, states, t, y, dy)
    return status


@inner
def all_but_closed(context, y):
    """Whether loops are open by no more than may stay."""
    q, v = y[:context[19].shape[1]], y[context[19].shape[1]:]
    copy(q, context[19][2])
    return solved(POSITION, False, context, q, v) and largest(CONN_GAP, context) <= STILL_OPEN


@inner
def wary_settle(whole, rows, count, h):
    """As `settle`; notes how strong the constraints are where steps end. A step that coasts is closed by the next one
    that does not: so near, what closes the loops is lost in rounding too. One that has left them open further is not
    near."""
    context, passing, states = whole
    if passing[COASTED] > 0.0:
        normalise_quaternions(context[1], rows, count)
        passing[OPEN] = 0.0
        if all_but_closed(context, rows[0]):
            return 0.0
        passing[COASTED] = 0.0
    gap = settle(context, passing, states[1], rows, count, h)
    conn_i, work = context[8], context[18]
    last = conn_i.shape[0] - 1
    if last > 0:
        passing[LATE] = max(work[conn_i[last, HEAD_JUDGED] + JUDGED_WEAKEST], FADING * passing[LATE])
    return gap


@inner
def follow(whole, y, rates):
    """Rates of coordinates with the velocities that the evaluation has led to; see `integrate/gear.py`. Where a
    constraint is weak they stay those of the nearest state that closes all loops."""
    context, passing, states = whole
    if passing[NOW] >= WEAKER:
        nq = context[19].shape[1]
        coordinate_rates(context[1], y[:nq], y[nq:], rates[:nq])


@inline
def correct(rhs, whole, method, memory, t, h):
    """As `nordsieck.correct`, for a mechanism. A step that ends where accelerations are lost in rounding coasts: it
    stays as predicted, and the steps after it, whose errors are seen again, end elsewhere."""
    context, passing, states = whole
    passing[ASKED] = 1.0
    if method.newton:
        outcome, size = newton(rhs, whole, method, memory, t, h)
    else:
        outcome, size = functional(rhs, follow, whole, method, memory, t, h)
    passing[ASKED] = 0.0
    if outcome != COAST:
        passing[COASTED] = 0.0
        return outcome, size
    passing[COASTED] += 1.0
    change = memory.rows[CHANGE]
    for i in range(change.shape[0]):
        change[i] = 0.0
    memory.tally[WAIT] = memory.tally[ORDER] + 2  # no error, no reason for another step
    return CONVERGED, 0.0


@inner
def prepare(rhs, whole, method, memory):
    status = start_closed(whole[0], whole[2][1], memory)
    return status if status != 0 else nordsieck.prepare(rhs, whole, method, memory)


@inline
def attempt(rhs, whole, method, memory):
    context, passing, states = whole
    passing[BEGAN] = memory.clock[TIME]
    copy(memory.rows[0], states[2])
    status = nordsieck.step(correct, rhs, whole, method, memory)
    if status == LOOPS_OPEN:
        memory.clock[TAKEN] = memory.clock[STEP]
        note_open(context, states[1], memory)
    return status


@inline
def complete(rhs, whole, method, memory):
    """A step whose loops do not close is taken back."""
    context, passing, states = whole
    return 0 if passing[OPEN] == 0.0 else begin_again(rhs, whole, context, passing, states, memory)


@inner
def begin_again(rhs, whole, context, passing, states, memory):
    """Begin anew where a step began that was taken back, with a shorter one."""
    clock, tally = memory.clock, memory.tally
    passing[COASTED] = 0.0
    if step_back(context, passing, states[1], states[2], memory):
        return LOOPS_OPEN
    clock[PENDING], clock[GROWTH], tally[FAILURES], tally[LAST_REJECTED] = 1.0, 2.0, 0, tally[STEPS]
    clock[WISH], clock[EXTRAPOLATED] = 0.0, 0.0
    status = nordsieck.begin_again(rhs, whole, memory)
    return TRY_AGAIN if status == 0 else status


@entry("simulation with multistep methods", [int64(FAMILY, *MECHANISM, *RUN)])
def rollout_nordsieck(method, move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog,
                      address, params, memory, notes):
    context = make_context(move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog,
                           address, params)
    return advance(prepare, attempt, complete, nordsieck.polynomial, nordsieck.go_on,
                   wary_rhs, wary_settle, write_down, wary(context, memory.rows.shape[1]), method, memory, notes,
                   room_in(notes))


@inner
def straight_line(method, memory, out):
    """The last step of a method of order 1, which kept its start in rows[1]: (origin, scale, degree)."""
    rows = memory.rows
    for i in range(rows.shape[1]):
        out[0, i] = rows[1, i]
        out[1, i] = rows[0, i] - rows[1, i]
    return memory.clock[TIME] - memory.clock[TAKEN], memory.clock[TAKEN], 1


@entry("simulation with symplectic Euler", [int64(*MECHANISM, *RUN)])
def rollout_symplectic_euler(move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog,
                             address, params, memory, notes):
    """v <- v + h a(q, v), then q moves by h v along its group: one evaluation a step, order 1, energy bounded."""
    nv = dof_f.shape[1]
    clock, tally, y = memory.clock, memory.tally, memory.rows[0]
    nq = y.shape[0] - nv
    context = make_context(move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog,
                           address, params)
    a, unclosed = np.empty(nv), np.empty(nq + nv)
    loops = conn_i.shape[0] > 1 and conn_f[0, HOLD] == 0.0
    q, v = y[:nq], y[nq:]
    while clock[TIME] < clock[UNTIL]:
        if tally[RECORDED] == notes.t.shape[0]:
            return RECORD_FULL
        left = clock[UNTIL] - clock[TIME]
        last = clock[STEP] >= left * (1.0 - 1e-9)
        h = left if last else clock[STEP]
        status = drive(address, clock[TIME], q, v, params, context[13])
        if status == 0:
            status = forces_to_accelerations(context, q, v, a)
        tally[EVALUATIONS] += 1
        if status != 0:
            return status
        copy(y, memory.rows[1])
        for j in range(nv):
            v[j] += h * a[j]
        step_coordinates(body_i, q, v, h)
        if loops:
            copy(y, unclosed)
            gap = hold_closed(context, q, v)
            if gap == np.inf or too_far(nq, memory.rows[1], unclosed, y, memory):
                copy(memory.rows[1], y)
                clock[TAKEN] = h
                note_open(context, unclosed, memory)
                return LOOPS_OPEN
            clock[GAP] = max(clock[GAP], gap)
        clock[TIME], clock[TAKEN] = clock[UNTIL] if last else clock[TIME] + h, h
        tally[STEPS] += 1
        status = write_down(straight_line, context, 0, memory, notes)
        if status != 0:
            return status
    return REACHED
