"""Fixed steps of many states at once: W of them in lanes, which stay in the processor's cache during all their steps.

The loop over states is outside, the loop over steps inside. An entry advances a share of a batch up to its step budget
and returns its progress, so that progress bars and Ctrl-C are served. A state that fails stays at its last
solution; the lanes beside it go on.
"""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.forward_passes import accelerate, scratch_sizes
from bunraku.algorithms.states import coordinate_rates
from bunraku.algorithms.stepping import symplectic_step, unit_length
from bunraku.entries.signatures import PLAN, float64, floats, int64, lane_array, table
from bunraku.integrate.callbacks import call_function
from bunraku.integrate.control import fixed_step
from bunraku.integrate.solver_memory import ACTUATION_FAILED, STATE_FAILED
from bunraku.jit import entry, inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.lane_memory import floats_to_lanes, gather, scatter
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import clear, constant, load, store

counts = types.int64[::1]

TIME, NEXT, TAKEN = 0, 1, 2  # places in `clock`: time, number of the next of the times asked for, steps taken
CLOCK = 3


@inner
def leave(why, w, first, lanes, y, t, done, status, reached, steps):
    """Stop the state in lane w of a tile and store it."""
    k = first + w
    status[k], reached[k] = why, t
    steps[k] += done
    for i in range(y.shape[1]):
        y[k, i] = lanes[i, w]


@inline
def running(first, status):
    """Number of states of a tile that are running."""
    count = 0
    for w in range(min(WIDTH, status.shape[0] - first)):
        if status[first + w] == 0:
            count += 1
    return count


@inner
def keep(lanes, out, first, at, status):
    """out[first + w, at:] = place w of the lanes, for states still running."""
    whole = True
    for w in range(min(WIDTH, status.shape[0] - first)):
        whole = whole and status[first + w] == 0
    if whole:
        scatter(lanes, out, first, at)
        return
    for w in range(min(WIDTH, status.shape[0] - first)):
        if status[first + w] == 0:
            for i in range(lanes.shape[0]):
                out[first + w, at + i] = lanes[i, w]


@inner
def given_lanes(controls, number, first, tau):
    """tau = the torques that are given to a tile: row `number` of each state's, or its last; zero if none are given."""
    count, width, n = controls.shape[0], controls.shape[1], tau.shape[0]
    if count == 0:
        clear(tau)
        return
    at = max(0, min(n * number, width - n))
    if first + WIDTH <= count:
        floats_to_lanes(controls.reshape(-1), first * width + at, width, n, tau, 0)
        return
    for i in range(n):
        for w in range(WIDTH):
            tau[i, w] = controls[min(first + w, count - 1), at + i]


@inner
def drive_lanes(address, when, origin, q, v, params, q_rows, v_rows, tau_rows, tau, first, lanes, y, t, done, status,
                reached, steps):
    """Torques of the actuation at (origin + when, q, v) for the running states of a tile; it finds the given ones in
    tau."""
    scatter(q, q_rows, 0)
    scatter(v, v_rows, 0)
    scatter(tau, tau_rows, 0)
    for w in range(min(WIDTH, status.shape[0] - first)):
        if status[first + w] == 0:
            own = params[first + w if params.shape[0] > 1 else 0]
            began = origin[first + w if origin.shape[0] > 1 else 0]
            if call_function(address, began + when, q_rows[w], v_rows[w], own, tau_rows[w]) != 0:
                leave(ACTUATION_FAILED, w, first, lanes, y, t, done, status, reached, steps)
        if status[first + w] != 0:
            for j in range(tau_rows.shape[1]):
                tau_rows[w, j] = 0.0
    gather(tau_rows, 0, tau)


@inline
def judge(margin, residue, judged, first, lanes, y, t, done, status, reached, steps):
    """Stop states without a solution. Returns the number of running states."""
    store(judged, 0, margin)
    store(judged, 1, residue)
    going = 0
    for w in range(min(WIDTH, status.shape[0] - first)):
        if status[first + w] == 0:
            if judged[0, w] > 0.0 and judged[1, w] == 0.0:
                going += 1
            else:
                leave(STATE_FAILED, w, first, lanes, y, t, done, status, reached, steps)
    return going


@inline
def combine(weights, count, h, lanes, rates, out):
    """out = lanes + h times the sum of weights[j] of the first `count` rates."""
    n = lanes.shape[0]
    for i in range(n):
        total = constant(lanes, 0.0)
        for j in range(count):
            total = total + weights[j] * load(rates, j * n + i)
        store(out, i, load(lanes, i) + h * total)


@entry("rollouts of batches", types.void(
    PLAN, int64, table, table, int64, floats, table, floats, floats, float64, float64, table, floats, table, table,
    counts, floats, counts, floats, int64, int64, int64), seconds=7)
def fixed_steps_lanes(plan, address, params, controls, substeps, origin, A, B, C, step, slack, y, times, q_at, v_at,
                      status, reached, steps, clock, room, start, stop):
    """States start .. stop of y, at most `room` steps, by the explicit Runge-Kutta method (A, B, C); if these are empty
    by symplectic Euler: v <- v + h a(q, v), then q moves by h v along its group.

    y is (B, nq + nv). q_at (B, T nq) and v_at (B, T nv) take the states at T times; rows that a failing state does not
    reach are left unchanged. `status`, `reached` (a time) and `steps` are of each state. All begin at clock[TIME] with
    time number clock[NEXT] after clock[TAKEN] steps, and their final values are stored there.

    controls (B, T nv) are torques, held for `substeps` steps each, or (0, 0); the actuation finds them in tau. Its time
    counts from origin, (B,) or (1,).
    """
    body_i, body_f, dof_f, link_i, link_f = plan.body_i, plan.body_f, plan.dof_f, plan.link_i, plan.link_f
    nq, nv = np.int64(body_i[-1, f.HEAD_NQ]), dof_f.shape[1]
    size_work, size_total, size_wrench, size_states = scratch_sizes(body_i, dof_f, False)
    lanes, tau, a, work = lane_array(nq + nv), lane_array(nv), lane_array(nv), lane_array(size_work)
    total, wrench, states = lane_array(size_total), lane_array(size_wrench), lane_array(size_states)
    judged, nothing = lane_array(2), lane_array(0)
    driven = WIDTH if address != 0 else 0
    q_rows, v_rows, tau_rows = np.empty((driven, nq)), np.empty((driven, nv)), np.zeros((driven, nv))
    q, v = lanes[:nq], lanes[nq:]
    euler, stages = B.shape[0] == 0, max(1, B.shape[0])
    trial, rates = lane_array(0 if euler else nq + nv), lane_array(B.shape[0] * (nq + nv))
    q_now, v_now = (q, v) if euler else (trial[:nq], trial[nq:])
    t, place, taken, most = clock[TIME], np.int64(clock[NEXT]), np.int64(clock[TAKEN]), 0
    for first in range(start, stop, WIDTH):
        gather(y, first, lanes)
        t, place, done, going = clock[TIME], np.int64(clock[NEXT]), 0, running(first, status)
        while place < times.shape[0]:
            if t >= times[place]:
                keep(q, q_at, first, place * nq, status)
                keep(v, v_at, first, place * nv, status)
                place += 1
                continue
            if done == room:
                break
            h, last = fixed_step(t, times[place], step, slack)
            for stage in range(stages if going > 0 else 0):
                when = t
                if not euler:
                    combine(A[stage], stage, h, lanes, rates, trial)
                    when = t + C[stage] * h
                given_lanes(controls, (taken + done) // substeps, first, tau)
                if address != 0:
                    drive_lanes(address, when, origin, q_now, v_now, params, q_rows, v_rows, tau_rows, tau, first,
                                lanes, y, t, done, status, reached, steps)
                margin, residue = accelerate(body_i, body_f, dof_f, link_i, link_f, plan.spring_i, plan.spring_f, q_now,
                                             v_now, tau, nothing, a, work, total, wrench, states)
                going = judge(margin, residue, judged, first, lanes, y, t, done, status, reached, steps)
                if not euler:
                    own = rates[stage * (nq + nv):(stage + 1) * (nq + nv)]
                    coordinate_rates(body_i, q_now, v_now, own[:nq])
                    for j in range(nv):
                        store(own, nq + j, load(a, j))
            if euler and going > 0:
                symplectic_step(body_i, q, v, a, h)
            elif going > 0:
                combine(B, stages, h, lanes, rates, lanes)
                unit_length(body_i, q)
            t = times[place] if last else t + h
            done += 1
        keep(lanes, y, first, 0, status)
        for k in range(first, min(first + WIDTH, stop)):
            if status[k] == 0:
                reached[k] = t
                steps[k] += done
        most = max(most, done)
    clock[TIME], clock[NEXT], clock[TAKEN] = t, place, taken + most
