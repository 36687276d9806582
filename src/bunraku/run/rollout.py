"""Whole runs in compiled code: a mechanism's right-hand side under an integrator, recorded as it goes.

An entry advances until the time is reached, the record is full, or something fails, and says which; Python only
passes the results on and comes back for more. That is where progress bars and Ctrl-C get their turn.
"""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.forward import accelerate, scratch_sizes
from bunraku.algorithms.states import advance_coordinates, coordinate_rates, normalise_quaternions
from bunraku.integrate import rkf
from bunraku.integrate.control import first_step, next_step
from bunraku.jit import entry, inline
from bunraku.run.actuation import call_actuation
from bunraku.run.signatures import LINKS, PLAN, SPRINGS, floats, int64, table

counts = types.int64[::1]

# Places in `clock` (float64): where the run is and how it may go on
TIME, UNTIL, STEP, RTOL, ATOL, MIN_STEP, MAX_STEP = range(7)
CLOCK = 7
# Places in `tally` (int64)
STEPS, REJECTED, EVALUATIONS, RECORDED = range(4)
TALLY = 4
# How an entry ends
REACHED, RECORD_FULL, STATE_FAILED, ACTUATION_FAILED, STEP_TOO_SMALL = range(5)


@inline
def drive(address, t, q, v, params, tau):
    """Torques of the actuation into tau; its status."""
    for j in range(tau.shape[0]):
        tau[j] = 0.0
    if address != 0 and call_actuation(address, t, q, v, params, tau) != 0:
        return ACTUATION_FAILED
    return 0


@inline
def forces_to_accelerations(context, q, v, a):
    """Accelerations under context's torques; STATE_FAILED if they are not finite."""
    (body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, address, params, tau, nothing, work, total, wrench,
     states) = context
    margin, residue = accelerate(body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, q, v, tau, nothing, a,
                                 work, total, wrench, states)
    return 0 if margin > 0.0 and residue == 0.0 else STATE_FAILED


@inline
def mechanism_rhs(context, t, y, dy):
    """Right-hand side of y = (q, v)."""
    body_i, dof_f, address, params, tau = context[0], context[2], context[7], context[8], context[9]
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


@entry("simulation with RKF", [int64(*PLAN, *LINKS, *SPRINGS, int64, floats, floats, floats, counts, floats, table)])
def rollout_rkf(body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, address, params, y, clock, tally, record_t,
                record_y):
    size_work, size_total, size_wrench, size_states = scratch_sizes(body_i, dof_f, False)
    nv = dof_f.shape[1]
    n, nq = y.shape[0], y.shape[0] - nv
    context = (body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, address, params, np.empty(nv), np.empty(0),
               np.empty(size_work), np.empty(size_total), np.empty(size_wrench), np.empty(size_states))
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


@entry("simulation with symplectic Euler",
       [int64(*PLAN, *LINKS, *SPRINGS, int64, floats, floats, floats, counts, floats, table)])
def rollout_symplectic_euler(body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, address, params, y, clock,
                             tally, record_t, record_y):
    """v <- v + h a(q, v), then q moves by h v along its group: one evaluation a step, order 1, energy bounded."""
    size_work, size_total, size_wrench, size_states = scratch_sizes(body_i, dof_f, False)
    nv = dof_f.shape[1]
    nq = y.shape[0] - nv
    context = (body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, address, params, np.empty(nv), np.empty(0),
               np.empty(size_work), np.empty(size_total), np.empty(size_wrench), np.empty(size_states))
    a, dq = np.empty(nv), np.empty(nv)
    q, v = y[:nq], y[nq:]
    while clock[TIME] < clock[UNTIL]:
        if tally[RECORDED] == record_t.shape[0]:
            return RECORD_FULL
        left = clock[UNTIL] - clock[TIME]
        last = clock[STEP] >= left * (1.0 - 1e-9)
        h = left if last else clock[STEP]
        status = drive(address, clock[TIME], q, v, params, context[9])
        if status == 0:
            status = forces_to_accelerations(context, q, v, a)
        tally[EVALUATIONS] += 1
        if status != 0:
            return status
        for j in range(nv):
            v[j] += h * a[j]
            dq[j] = h * v[j]
        advance_coordinates(body_i, q, dq, q)
        clock[TIME] = clock[UNTIL] if last else clock[TIME] + h
        tally[STEPS] += 1
        record(clock, tally, y, record_t, record_y)
    return REACHED
