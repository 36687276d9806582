"""Whole runs in compiled code: a mechanism's right-hand side under an integrator, recorded as it goes.

An entry advances until the time is reached, the record is full, or something fails, and says which; Python only
passes the results on and comes back for more. That is where progress bars and Ctrl-C get their turn.
"""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.ada import ada
from bunraku.algorithms.connections import IMPULSE, POSITION
from bunraku.algorithms.forward import accelerate, accelerate_closed, scratch_sizes
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
    HEAD_JUDGED,
    HEAD_TOTAL,
    JUDGED_CLASH,
    ROWS,
)
from bunraku.run.actuation import call_actuation
from bunraku.run.signatures import LINKS, LOOPS, PLAN, SPRINGS, float64, floats, int64, table

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

SCRATCH = (floats, floats, floats, floats)  # work, total, wrench, states: see `forward.scratch_sizes`
ACCELERATE = int64(*PLAN, *LINKS, *SPRINGS, *LOOPS, floats, floats, floats, floats, *SCRATCH)
HOLD = float64(*PLAN, *LOOPS, floats, floats, floats, floats, floats)
NO_LOOPS = (np.zeros((1, CONN_I), np.int32), np.zeros((0, CONN_F)), np.zeros(1, np.int32))


@entry("motion of trees", [ACCELERATE])
def accelerate_tree(body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, q, v, tau, a, work,
                    total, wrench, states):
    """Accelerations under tau; STATE_FAILED if they are not finite."""
    margin, residue = accelerate(body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, q, v, tau, q[:0], a, work,
                                 total, wrench, states)
    return 0 if margin > 0.0 and residue == 0.0 else STATE_FAILED


@entry("motion with loops", [ACCELERATE])
def accelerate_loops(body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, q, v, tau, a,
                     work, total, wrench, states):
    """The same with connections, whose torques are at the end of tau."""
    margin, residue = accelerate_closed(body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f,
                                        prog, q, v, tau, tau[dof_f.shape[1]:], q[:0], a, work, total, wrench, states)
    if not (margin > 0.0 and residue == 0.0):
        return STATE_FAILED
    return 0 if work[conn_i[-1, HEAD_JUDGED] + JUDGED_CLASH] <= 0.0 else LOOPS_CLASH


@entry("nothing to hold", [HOLD])
def hold_tree(body_i, body_f, dof_f, conn_i, conn_f, prog, q, v, change, zeros, work):
    return 0.0


@entry("holding loops closed", [HOLD])
def hold_loops(body_i, body_f, dof_f, conn_i, conn_f, prog, q, v, change, zeros, work):
    """Close what a step has left open: one move and one impulse, the smallest in the mass metric. Returns the largest
    gap before; not a number if it cannot be closed."""
    nothing = q[:0]
    margin, residue = ada(POSITION, body_i, body_f, dof_f, conn_i, conn_f, prog, q, v, zeros, nothing, nothing, change,
                          work)
    gap = 0.0
    for c in range(conn_i.shape[0] - 1):
        o = conn_i[-1, HEAD_CONN] + CONN_RECORD * c + CONN_BIAS
        for k in range(conn_i[c, ROWS]):
            gap = max(gap, abs(work[o + k]))
    if not (margin > 0.0 and residue == 0.0):
        return np.nan
    if gap > 0.0:
        advance_coordinates(body_i, q, change, q)
    margin, residue = ada(IMPULSE, body_i, body_f, dof_f, conn_i, conn_f, prog, q, v, zeros, nothing, nothing, change,
                          work)
    if not (margin > 0.0 and residue == 0.0):
        return np.nan
    for j in range(v.shape[0]):
        v[j] += change[j]
    return gap


def functions(plan) -> tuple:
    """What a solver needs to know of a mechanism: (accelerate, hold, arrays of the loops)."""
    if plan.loops is None:
        return accelerate_tree.load().call, hold_tree.load().call, plan.dof_f, NO_LOOPS
    loops = plan.loops
    return (accelerate_loops.load().call, hold_loops.load().call, loops.dof_f,
            (loops.conn_i, loops.conn_f, loops.prog))


@inline
def forces_to_accelerations(context, q, v, a):
    """Accelerations under context's torques; a failure if there are none."""
    (accelerate, hold, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, address, params,
     tau, work, total, wrench, states, change, zeros) = context
    return accelerate(body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, q, v, tau, a,
                      work, total, wrench, states)


@inline
def hold_closed(context, q, v):
    """Keep the loops closed after a step; the largest gap there was."""
    (accelerate, hold, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, address, params,
     tau, work, total, wrench, states, change, zeros) = context
    return hold(body_i, body_f, dof_f, conn_i, conn_f, prog, q, v, change, zeros, work)


@inline
def mechanism_rhs(context, t, y, dy):
    """Right-hand side of y = (q, v)."""
    body_i, dof_f, address, params, tau = context[2], context[4], context[12], context[13], context[14]
    nq = y.shape[0] - dof_f.shape[1]
    q, v = y[:nq], y[nq:]
    status = drive(address, t, q, v, params, tau)
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


ROLLOUT = int64(types.FunctionType(ACCELERATE), types.FunctionType(HOLD), *PLAN, *LINKS, *SPRINGS, *LOOPS, int64,
                floats, floats, floats, counts, floats, table)


@allocating
def make_context(accelerate, hold, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog,
                 address, params):
    """All that a right-hand side needs, scratch included."""
    size_work, size_total, size_wrench, size_states = scratch_sizes(body_i, dof_f, False)
    nv = dof_f.shape[1]
    return (accelerate, hold, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, address,
            params, np.empty(nv + conn_i[-1, HEAD_FREEDOMS]),
            np.empty(max(size_work, np.int64(conn_i[-1, HEAD_TOTAL]))), np.empty(size_total), np.empty(size_wrench),
            np.empty(size_states), np.empty(nv), np.zeros(nv))


@entry("simulation with RKF", [ROLLOUT])
def rollout_rkf(accelerate, hold, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog,
                address, params, y, clock, tally, record_t, record_y):
    nv = dof_f.shape[1]
    n, nq = y.shape[0], y.shape[0] - nv
    context = make_context(accelerate, hold, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f,
                           prog, address, params)
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
def rollout_symplectic_euler(accelerate, hold, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i,
                             conn_f, prog, address, params, y, clock, tally, record_t, record_y):
    """v <- v + h a(q, v), then q moves by h v along its group: one evaluation a step, order 1, energy bounded."""
    nv = dof_f.shape[1]
    nq = y.shape[0] - nv
    context = make_context(accelerate, hold, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f,
                           prog, address, params)
    a, dq = np.empty(nv), np.empty(nv)
    q, v = y[:nq], y[nq:]
    while clock[TIME] < clock[UNTIL]:
        if tally[RECORDED] == record_t.shape[0]:
            return RECORD_FULL
        left = clock[UNTIL] - clock[TIME]
        last = clock[STEP] >= left * (1.0 - 1e-9)
        h = left if last else clock[STEP]
        status = drive(address, clock[TIME], q, v, params, context[14])
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
