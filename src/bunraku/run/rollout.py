"""Whole runs in compiled code: a mechanism's right-hand side under an integrator, recorded as it goes.

An entry advances until the time is reached, the record is full, or something fails, and says which; Python only
passes the results on and comes back for more. That is where progress bars and Ctrl-C get their turn.
"""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.connections import DYNAMICS, IMPULSE, POSITION
from bunraku.algorithms.forward import accelerate, scratch_sizes, scratch_total
from bunraku.algorithms.states import advance_coordinates, coordinate_rates, normalise_quaternions
from bunraku.integrate import rkf
from bunraku.integrate.control import first_step, next_step
from bunraku.jit import allocating, entry, inline
from bunraku.plan.fields import (
    CONN_BIAS,
    CONN_F,
    CONN_I,
    CONN_RECORD,
    HEAD_CONN,
    HEAD_FREEDOMS,
    HEAD_TOTAL,
    HEAD_WORK,
    ROWS,
)
from bunraku.run.actuation import call_actuation
from bunraku.run.closed import closed_one
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
    table,
)

counts = types.int64[::1]

# Places in `clock` (float64): where the run is and how it may go on
TIME, UNTIL, STEP, RTOL, ATOL, MIN_STEP, MAX_STEP, GAP = range(8)
CLOCK = 8
# Places in `tally` (int64)
STEPS, REJECTED, EVALUATIONS, RECORDED = range(4)
TALLY = 4
# How an entry ends
REACHED, RECORD_FULL, STATE_FAILED, ACTUATION_FAILED, STEP_TOO_SMALL, LOOPS_CLASH = range(6)


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


def motion(plan) -> tuple:
    """What a solver needs to know of a mechanism: a function and its constant arguments."""
    loops = plan.loops
    if loops is None:
        move, dof_f, arrays = tree_one.load().call, plan.dof_f, NO_LOOPS
    else:
        move, dof_f, arrays = closed_one.load().call, loops.dof_f, (loops.conn_i, loops.conn_f, loops.prog)
    return (move, plan.body_i, plan.body_f, dof_f, plan.link_i, plan.link_f, plan.spring_i, plan.spring_f, *arrays)


@allocating
def make_context(move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, address,
                 params):
    """All that a right-hand side needs, scratch included: tau, drives, nothing, zeros, change, work."""
    nv, nc = dof_f.shape[1], np.int64(conn_i[-1, HEAD_FREEDOMS])
    size = max(np.int64(body_i[-1, HEAD_WORK]), np.int64(conn_i[-1, HEAD_TOTAL])) + scratch_total(body_i, dof_f)
    torques = np.zeros(nv + nc)
    return (move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, address, params,
            torques, torques[nv:], torques[:0], np.zeros(nv), np.empty(nv), np.empty(size))


@inline
def forces_to_accelerations(context, q, v, a):
    """Accelerations under context's torques; a failure if there are none."""
    (move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, address, params, torques,
     drives, nothing, zeros, change, work) = context
    answer = move(DYNAMICS, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, q, v,
                  torques, drives, nothing, a, work)
    return 0 if answer == FINE else LOOPS_CLASH if answer == CLASHED else STATE_FAILED


@inline
def hold_closed(context, q, v):
    """Close what a step has left open: one move and one impulse, the smallest in the mass metric. Returns the largest
    gap there was; infinity if it cannot be closed."""
    (move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, address, params, torques,
     drives, nothing, zeros, change, work) = context
    gap = 0.0
    last = conn_i.shape[0] - 1
    if last > 0:
        answer = move(POSITION, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, q, v,
                      zeros, nothing, nothing, change, work)
        if answer == FAILED:
            return np.inf
        for c in range(last):
            o = conn_i[last, HEAD_CONN] + CONN_RECORD * c + CONN_BIAS
            for k in range(conn_i[c, ROWS]):
                gap = max(gap, abs(work[o + k]))
        advance_coordinates(body_i, q, change, q)
        answer = move(IMPULSE, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, q, v,
                      zeros, nothing, nothing, change, work)
        if answer == FAILED:
            return np.inf
        for j in range(v.shape[0]):
            v[j] += change[j]
    return gap


@inline
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


@inline
def record(clock, tally, y, record_t, record_y):
    k = tally[RECORDED]
    record_t[k] = clock[TIME]
    for i in range(y.shape[0]):
        record_y[k, i] = y[i]
    tally[RECORDED] = k + 1


ROLLOUT = int64(types.FunctionType(MOTION), *PLAN, *LINKS, *SPRINGS, *LOOPS, int64, floats, floats, floats, counts,
                floats, table)


@entry("simulation with RKF", [ROLLOUT])
def rollout_rkf(move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, address,
                params, y, clock, tally, record_t, record_y):
    nv = dof_f.shape[1]
    n, nq = y.shape[0], y.shape[0] - nv
    context = make_context(move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog,
                           address, params)
    k, y_new = np.empty((rkf.STAGES, n)), np.empty(n)
    rtol, atol = clock[RTOL], clock[ATOL]
    status = mechanism_rhs(context, clock[TIME], y, k[0])
    tally[EVALUATIONS] += 1
    if status != 0:
        return status
    if clock[STEP] <= 0.0:
        clock[STEP] = first_step(mechanism_rhs, context, clock[TIME], y, k[0], clock[UNTIL] - clock[TIME], rkf.ORDER,
                                 rtol, atol, y_new, k[1])
        tally[EVALUATIONS] += 1
    while clock[TIME] < clock[UNTIL]:
        if tally[RECORDED] == record_t.shape[0]:
            return RECORD_FULL
        left = clock[UNTIL] - clock[TIME]
        h = min(clock[STEP], clock[MAX_STEP])
        last = h >= left * (1.0 - 1e-12)
        if last:
            h = left
        status, error = rkf.attempt(mechanism_rhs, context, clock[TIME], y, h, rtol, atol, k, y_new)
        tally[EVALUATIONS] += rkf.STAGES - 1
        if status == ACTUATION_FAILED:
            return status
        if status == 0 and error <= 1.0:
            clock[TIME] = clock[UNTIL] if last else clock[TIME] + h
            y[:] = y_new
            normalise_quaternions(body_i, y[:nq])
            clock[GAP] = max(clock[GAP], hold_closed(context, y[:nq], y[nq:]))
            tally[STEPS] += 1
            if not last or error > 0.1:  # a last step cut short says nothing about the next
                clock[STEP] = next_step(h, error, rkf.ORDER)
            record(clock, tally, y, record_t, record_y)
            status = mechanism_rhs(context, clock[TIME], y, k[0])
            tally[EVALUATIONS] += 1
            if status != 0:
                return status
        else:
            tally[REJECTED] += 1
            clock[STEP] = next_step(h, error, rkf.ORDER) if status == 0 else 0.25 * h
            if clock[STEP] < clock[MIN_STEP] or clock[TIME] + clock[STEP] <= clock[TIME]:
                return STEP_TOO_SMALL if status == 0 else status
    return REACHED


@entry("simulation with symplectic Euler", [ROLLOUT])
def rollout_symplectic_euler(move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog,
                             address, params, y, clock, tally, record_t, record_y):
    """v <- v + h a(q, v), then q moves by h v along its group: one evaluation a step, order 1, energy bounded."""
    nv = dof_f.shape[1]
    nq = y.shape[0] - nv
    context = make_context(move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog,
                           address, params)
    a, dq = np.empty(nv), np.empty(nv)
    q, v = y[:nq], y[nq:]
    while clock[TIME] < clock[UNTIL]:
        if tally[RECORDED] == record_t.shape[0]:
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
        for j in range(nv):
            v[j] += h * a[j]
            dq[j] = h * v[j]
        advance_coordinates(body_i, q, dq, q)
        clock[GAP] = max(clock[GAP], hold_closed(context, q, v))
        clock[TIME] = clock[UNTIL] if last else clock[TIME] + h
        tally[STEPS] += 1
        record(clock, tally, y, record_t, record_y)
    return REACHED
