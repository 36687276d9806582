"""Entries for structures with connections: one state, one state in any mode of `ada`, a batch in lanes.

`closed_plain` exists beside `closed_one` for the call from Python: it takes 11 arguments instead of 17, and each costs
0.1 us. The results an evaluation leaves in its work array (multipliers, records, fronts) are read by
`closed_solution.py`.
"""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.ada import ada, ada_again
from bunraku.algorithms.body_motion import STATE
from bunraku.algorithms.connection_equations import AGAIN, DYNAMICS
from bunraku.algorithms.forward_passes import accelerate_closed, gather_forces, scratch_total
from bunraku.algorithms.passive import passive_torque
from bunraku.algorithms.proximal import doubtful, look_again, make_up, worth_a_second_look
from bunraku.entries.signatures import (
    CLASHED,
    DOUBTFUL,
    FAILED,
    FINE,
    LOOP_OPEN,
    MOTION,
    PLAN,
    WRONG_SHAPE,
    flags,
    floats,
    int64,
    lane_array,
    table,
)
from bunraku.jit import entry, inline
from bunraku.plan import fields as f
from bunraku.spatial.lane_memory import gather, scatter
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import clear, store
from bunraku.tolerances import TOO_OPEN


@entry("forward dynamics of loops", int64(PLAN, floats, floats, floats, floats, floats), seconds=10, brief=True)
def closed_plain(plan, q, v, tau, a, work):
    """One state, no external forces, no point springs. tau holds torques of the tree joints, then of connections if it
    is longer."""
    body_i, body_f, dof_f, conn_i, conn_f, prog = (plan.body_i, plan.body_f, plan.dof_f, plan.conn_i, plan.conn_f,
                                                   plan.prog)
    nv = dof_f.shape[1]
    full = tau.shape[0] == nv + conn_i[-1, f.HEAD_FREEDOMS]
    if q.shape[0] != body_i[-1, f.HEAD_NQ] or v.shape[0] != nv or not (tau.shape[0] == nv or full):
        return WRONG_SHAPE
    acting, end = tau, np.int64(conn_i[-1, f.HEAD_TOTAL])
    if body_i[-1, f.HEAD_PASSIVE] != 0:
        acting = work[end:end + nv]
        passive_torque(body_i, dof_f, q, v, tau, acting)
    margin, residue = ada(None, DYNAMICS, 0.0, body_i, body_f, dof_f, conn_i, conn_f, prog, q, v, acting, tau[nv:],
                          work[:0], a, work)
    if not (margin > 0.0 and residue == 0.0):
        return FAILED
    judged = conn_i[-1, f.HEAD_JUDGED]
    if work[judged + f.JUDGED_GAP] > TOO_OPEN * TOO_OPEN:
        return LOOP_OPEN
    if doubtful(work[judged + f.JUDGED_PIVOT], work[judged + f.JUDGED_DROPPED]) or work[judged + f.JUDGED_MISSED] > 0.0:
        return DOUBTFUL
    return FINE if work[judged + f.JUDGED_CLASH] <= 0.0 else CLASHED


@entry("loops with all forces", MOTION, seconds=14, brief=True, by_address=True)
def closed_one(mode, plan, dof_f, q, v, tau, drives, external, a, work):
    """One state in any mode of `ada`, the general entry for structures with connections. `dof_f` replaces the plan's
    own."""
    body_i, kind = plan.body_i, mode % AGAIN
    if mode == kind + AGAIN:
        return solved_again(None, kind, plan, q, v, tau, a, work)
    acting, wrench = tau, work[:0]
    if kind == DYNAMICS:
        n, nv, end = body_i.shape[0] - 1, dof_f.shape[1], np.int64(plan.conn_i[-1, f.HEAD_TOTAL])
        if external.shape[0] > 0 or body_i[n, f.HEAD_SPRINGS] > 0:
            wrench = work[end + nv:end + nv + 6 * n]
        if body_i[n, f.HEAD_PASSIVE] != 0:
            acting = work[end:end + nv]
        gather_forces(body_i, plan.body_f, dof_f, plan.link_i, plan.link_f, plan.spring_i, plan.spring_f, q, v, tau,
                      external, acting, wrench, work[end + nv + 6 * n:end + nv + (6 + STATE) * n])
    return solved(None, mode, plan, dof_f, q, v, acting, drives, wrench, a, work)


@inline
def solved(team, mode, plan, dof_f, q, v, acting, drives, wrench, a, work):
    """`ada`, refined where pivots are doubtful or accelerations are inconsistent: what an entry answers."""
    body_i, body_f, conn_i, conn_f, prog = plan.body_i, plan.body_f, plan.conn_i, plan.conn_f, plan.prog
    judged, kind = conn_i[-1, f.HEAD_JUDGED], mode % AGAIN
    clash = judged + f.JUDGED_CLASH
    margin, residue = ada(team, kind, 0.0, body_i, body_f, dof_f, conn_i, conn_f, prog, q, v, acting, drives, wrench, a,
                          work)
    if margin > 0.0 and residue == 0.0 and worth_a_second_look(mode, kind, judged, work):
        fits = work[clash] <= 0.0
        margin, residue = look_again(team, kind, body_i, body_f, dof_f, conn_i, conn_f, prog, q, v, acting, drives,
                                     wrench, a, work)
        if fits and work[clash] > 0.0:  # so near a singular configuration that it does not converge
            margin, residue = ada(team, kind, 0.0, body_i, body_f, dof_f, conn_i, conn_f, prog, q, v, acting, drives,
                                  wrench, a, work)
    if not (margin > 0.0 and residue == 0.0):
        return FAILED
    return FINE if work[clash] <= 0.0 else CLASHED


@inline
def solved_again(team, kind, plan, q, v, tau, a, work):
    """The same by the factors in `work`; those of compliant constraints are compensated for."""
    conn_i, prog, judged = plan.conn_i, plan.prog, plan.conn_i[-1, f.HEAD_JUDGED]
    residue = ada_again(team, kind, plan.body_i, plan.body_f, conn_i, plan.conn_f, prog, q, v, tau, a, work)
    if work[judged + f.JUDGED_SOFT] > 0.0:
        residue += make_up(team, work[judged + f.JUDGED_SOFT], plan.body_i, conn_i, prog, a, work)
    return FAILED if residue != 0.0 else FINE if work[judged + f.JUDGED_CLASH] <= 0.0 else CLASHED


@entry("loops of batches", types.void(int64, PLAN, table, table, table, table, table, table, flags, int64, int64),
       seconds=14)
def closed_batch(mode, plan, q, v, tau, drives, external, a, bad, start, stop):
    body_i, body_f, dof_f, conn_i, conn_f, prog = (plan.body_i, plan.body_f, plan.dof_f, plan.conn_i, plan.conn_f,
                                                   plan.prog)
    nq, nv, pushed, driven = q.shape[1], v.shape[1], external.shape[0] > 0, drives.shape[0] > 0
    q_lanes, v_lanes, tau_lanes, a_lanes = lane_array(nq), lane_array(nv), lane_array(nv), lane_array(nv)
    work = lane_array(np.int64(conn_i[-1, f.HEAD_TOTAL]) + scratch_total(body_i, dof_f))
    external_lanes = lane_array(external.shape[1] if pushed else 0)
    drive_lanes = lane_array(drives.shape[1] if driven else 0)
    judged = lane_array(2)
    head = conn_i[-1, f.HEAD_JUDGED]
    clash, pivot = head + f.JUDGED_CLASH, head + f.JUDGED_PIVOT
    dropped, missed, gap = head + f.JUDGED_DROPPED, head + f.JUDGED_MISSED, head + f.JUDGED_GAP
    for first in range(start, stop, WIDTH):
        gather(q, first, q_lanes)
        gather(v, first, v_lanes)
        if tau.shape[0] > 0:
            gather(tau, first, tau_lanes)
        else:
            clear(tau_lanes)
        if driven:
            gather(drives, first, drive_lanes)
        if pushed:
            gather(external, first, external_lanes)
        if mode == DYNAMICS:
            margin, residue = accelerate_closed(body_i, body_f, dof_f, plan.link_i, plan.link_f, plan.spring_i,
                                                plan.spring_f, conn_i, conn_f, prog, q_lanes, v_lanes, tau_lanes,
                                                drive_lanes, external_lanes, a_lanes, work)
        else:
            margin, residue = ada(None, mode, 0.0, body_i, body_f, dof_f, conn_i, conn_f, prog, q_lanes, v_lanes,
                                  tau_lanes, drive_lanes, work[:0], a_lanes, work)
        store(judged, 0, margin)
        store(judged, 1, residue)
        scatter(a_lanes, a, first)
        for w in range(min(WIDTH, stop - first)):
            answer = FINE
            if not (judged[0, w] > 0.0 and judged[1, w] == 0.0):
                answer = FAILED
            elif work[gap, w] > TOO_OPEN * TOO_OPEN:
                answer = LOOP_OPEN
            elif (work[clash, w] > 0.0 or doubtful(work[pivot, w], work[dropped, w])
                  or (mode == DYNAMICS and work[missed, w] > 0.0)):
                answer = DOUBTFUL
            bad[first + w] = answer


