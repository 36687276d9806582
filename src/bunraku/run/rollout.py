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
from bunraku.integrate.gear import functional
from bunraku.integrate.history import CHANGE, CONVERGED, FAMILY
from bunraku.integrate.memory import (
    ACTUATION_FAILED,
    EVALUATIONS,
    GAP,
    LOOPS_CLASH,
    MEMORY,
    ORDER,
    REACHED,
    RECORD_FULL,
    RECORDED,
    STATE_FAILED,
    STEP,
    STEPS,
    TAKEN,
    TIME,
    UNTIL,
    WAIT,
    copy,
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
MOVES = 4
NEAR = 1e-4      # [m, rad] distance from the coordinates that factors were made at within which they are tried
PART = 3.0       # [1/m, 1/rad] part of a gap that factors leave, at most, per such distance
CLOSED = 1e-13   # [m, rad; per second] what may stay open by this estimate
ROUNDING = 1e-12 # [m, rad] what may stay open in fact; what is open by less is not closed any better by new factors
WEAKER = 0.25    # part of what the smallest pivot was of late below which constraints count as weak
FADING = 0.99    # how a step long ago counts less
BLIND = 1e-7     # the same for where accelerations are lost in rounding (it grows with 1 / pivot) and steps coast
LONGEST = 3      # steps in a row that may coast
COAST = -2       # what the right-hand side answers there
LATE, NOW, COASTED, ASKED = range(4)  # of `passing`, see `wary`


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
    Returns the largest gap there was; infinity if it cannot be closed. Loops that close by themselves are left alone.

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
    for _ in range(MOVES):
        for j in range(v.shape[0]):
            v[j] += change[j]
        if largest(CONN_BIAS, context) * part_left(context, q) < CLOSED:
            break
        if not solved(IMPULSE, True, context, q, v):
            return np.inf
    return gap


@inner
def move_together(again, context, q, v):
    """Close the gaps by moves, with the factors at hand (`again`) or new ones for every move. Returns the largest there
    was; infinity if there is no answer."""
    gap = 0.0
    for _ in range(MOVES):
        if not again:
            copy(q, context[19][2])
        if not solved(POSITION, again, context, q, v):
            return np.inf
        now = largest(CONN_GAP, context)
        gap = max(gap, now)
        advance_coordinates(context[1], q, context[17], q)
        if now < (ROUNDING if again else ONE_MOVE) or (again and now * part_left(context, q) < CLOSED):
            break
    return gap


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
def settle(context, rows, count, h):
    """Unit quaternions and closed loops, for a state rows[0] and its history; returns the gap there was. For multistep
    methods.

    The equation of a quaternion is linear in it, so scaling its whole history is exact: no order is lost and no error
    estimate disturbed. What closing the loops moves is added to the state, and what that changes in the rates of the
    coordinates to the first derivative; accelerations change by as little as the gap and are left.
    """
    body_i, conn_i, rates = context[1], context[8], context[19]
    nq = rates.shape[1]
    y = rows[0]
    normalise_quaternions(body_i, rows, count)
    if conn_i.shape[0] == 1:
        return 0.0
    coordinate_rates(body_i, y[:nq], y[nq:], rates[0])
    gap = hold_closed(context, y[:nq], y[nq:])
    coordinate_rates(body_i, y[:nq], y[nq:], rates[1])
    for k in range(nq):
        rows[1, k] += h * (rates[1, k] - rates[0, k])
    return gap


@inner
def settle_turns(context, rows, count, h):
    """Unit quaternions only."""
    normalise_quaternions(context[1], rows, count)
    return 0.0


@inline
def complete_and_close(rhs, context, method, memory):
    """The derivative at the end as the method has it, then closed loops, by the factors that it has left."""
    status = runge_kutta.complete(rhs, context, method, memory)
    y, nq = memory.rows[0], context[19].shape[1]
    memory.clock[GAP] = max(memory.clock[GAP], hold_closed(context, y[:nq], y[nq:]))
    return status


MECHANISM = (types.FunctionType(MOTION), *PLAN, *LINKS, *SPRINGS, *LOOPS, int64, floats)
RUN = (MEMORY, NOTES)


@entry("simulation with Runge-Kutta methods", [int64(TABLEAU, *MECHANISM, *RUN)])
def rollout_runge_kutta(method, move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog,
                        address, params, memory, notes):
    context = make_context(move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog,
                           address, params)
    return advance(runge_kutta.prepare, runge_kutta.attempt, complete_and_close, runge_kutta.polynomial,
                   runge_kutta.go_on, mechanism_rhs, settle_turns, write_down, context, method, memory, notes,
                   room_in(notes))


# -- passing by configurations in which a mechanism has more freedom than elsewhere ---------------------------------


@inner
def wary_rhs(whole, t, y, dy):
    """As `mechanism_rhs`; where a constraint is much weaker than it was of late, of the nearest state that closes all
    loops. COAST where it is so weak that a step should do without.

    Near a configuration with more freedom (a four-bar that lies flat: g = x y, x along the motion, y off it) y'' is
    -2 x' y' / x: an error y' of a predicted state, harmless elsewhere, would be met with ever smaller steps.
    """
    context, passing, closed = whole
    status = mechanism_rhs(context, t, y, dy)
    conn_i, work = context[8], context[18]
    last = conn_i.shape[0] - 1
    passing[NOW] = 1.0
    if status == 0 and last > 0 and passing[LATE] > 0.0:
        passing[NOW] = work[conn_i[last, HEAD_JUDGED] + JUDGED_WEAKEST] / passing[LATE]
    if passing[NOW] < BLIND and passing[ASKED] > 0.0 and passing[COASTED] < LONGEST:
        return COAST
    if passing[NOW] < WEAKER:
        nq = context[19].shape[1]
        copy(y, closed)
        hold_closed(context, closed[:nq], closed[nq:])
        status = mechanism_rhs(context, t, closed, dy)
    return status


@inner
def wary_settle(whole, rows, count, h):
    """As `settle`; notes how strong the constraints are where steps end. A step that coasts is closed by the next one
    that does not: so near, what closes the loops is lost in rounding too."""
    context, passing, closed = whole
    if passing[COASTED] > 0.0:
        normalise_quaternions(context[1], rows, count)
        return 0.0
    gap = settle(context, rows, count, h)
    conn_i, work = context[8], context[18]
    last = conn_i.shape[0] - 1
    if last > 0:
        passing[LATE] = max(work[conn_i[last, HEAD_JUDGED] + JUDGED_WEAKEST], FADING * passing[LATE])
    return gap


@allocating
def wary(context, n):
    """The context with `passing` (how strong the weakest constraint was of late, what part of that it is now, how many
    steps in a row have coasted, whether it is a step that asks) and room for a state."""
    return context, np.zeros(4), np.empty(n)


@inner
def follow(whole, y, rates):
    """Rates of coordinates with the velocities that the evaluation has led to; see `integrate/gear.py`. Where a
    constraint is weak they stay those of the nearest state that closes all loops."""
    context, passing, closed = whole
    if passing[NOW] >= WEAKER:
        nq = context[19].shape[1]
        coordinate_rates(context[1], y[:nq], y[nq:], rates[:nq])


@inline
def correct(rhs, whole, method, memory, t, h):
    """As `nordsieck.correct`, for a mechanism. A step that ends where accelerations are lost in rounding coasts: it
    stays as predicted, and the steps after it, whose errors are seen again, end elsewhere."""
    context, passing, closed = whole
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


@inline
def attempt(rhs, whole, method, memory):
    return nordsieck.step(correct, rhs, whole, method, memory)


@entry("simulation with multistep methods", [int64(FAMILY, *MECHANISM, *RUN)])
def rollout_nordsieck(method, move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog,
                      address, params, memory, notes):
    context = make_context(move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog,
                           address, params)
    return advance(nordsieck.prepare, attempt, nordsieck.complete, nordsieck.polynomial, nordsieck.go_on,
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
    a = np.empty(nv)
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
        clock[GAP] = max(clock[GAP], hold_closed(context, q, v))
        clock[TIME], clock[TAKEN] = clock[UNTIL] if last else clock[TIME] + h, h
        tally[STEPS] += 1
        status = write_down(straight_line, context, 0, memory, notes)
        if status != 0:
            return status
    return REACHED
