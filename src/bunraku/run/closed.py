"""Structures with connections: accelerations, impulses and moves that make every connection hold; one state or a batch.

What an evaluation leaves in its work array (multipliers, records of connections, fronts) is read by `forces.py`.
"""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.ada import ada
from bunraku.algorithms.connections import DYNAMICS, IMPULSE
from bunraku.algorithms.forward import accelerate_closed, scratch_sizes
from bunraku.algorithms.passive import passive_torque
from bunraku.jit import entry
from bunraku.plan.fields import (
    HEAD_FREEDOMS,
    HEAD_JUDGED,
    HEAD_NQ,
    HEAD_PASSIVE,
    HEAD_TOTAL,
    JUDGED_CLASH,
)
from bunraku.run.pool import spread
from bunraku.run.signatures import (
    CLASHED,
    FAILED,
    FINE,
    LINKS,
    LOOPS,
    PLAN,
    SPRINGS,
    WRONG_SHAPE,
    flags,
    floats,
    int64,
    lane_array,
    table,
)
from bunraku.run.states import aligned
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import clear, gather, scatter, store

SMALLEST_SHARE = 128


@entry("forward dynamics of loops", [int64(*PLAN, *LOOPS, floats, floats, floats, floats, floats)])
def closed_plain(body_i, body_f, dof_f, conn_i, conn_f, prog, q, v, tau, a, work):
    """One state, no external forces, no point springs. tau holds torques of the tree joints, then of connections if it
    is longer."""
    nv = dof_f.shape[1]
    full = tau.shape[0] == nv + conn_i[-1, HEAD_FREEDOMS]
    if q.shape[0] != body_i[-1, HEAD_NQ] or v.shape[0] != nv or not (tau.shape[0] == nv or full):
        return WRONG_SHAPE
    acting, nothing = tau, np.empty(0)
    if body_i[-1, HEAD_PASSIVE] != 0:
        acting = np.empty(nv)
        passive_torque(body_i, dof_f, q, v, tau, acting)
    margin, residue = ada(DYNAMICS, body_i, body_f, dof_f, conn_i, conn_f, prog, q, v, acting, tau[nv:], nothing, a,
                          work)
    if not (margin > 0.0 and residue == 0.0):
        return FAILED
    return FINE if work[conn_i[-1, HEAD_JUDGED] + JUDGED_CLASH] <= 0.0 else CLASHED


@entry("loops with all forces", [int64(int64, *PLAN, *LINKS, *SPRINGS, *LOOPS, floats, floats, floats, floats, floats,
                                       floats, floats)])
def closed_one(mode, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, q, v, tau, drives,
               external, a, work):
    if mode == DYNAMICS:
        _, size_total, size_wrench, size_states = scratch_sizes(body_i, dof_f, external.shape[0] > 0)
        margin, residue = accelerate_closed(body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f,
                                            prog, q, v, tau, drives, external, a, work, np.empty(size_total),
                                            np.empty(size_wrench), np.empty(size_states))
    else:
        margin, residue = ada(mode, body_i, body_f, dof_f, conn_i, conn_f, prog, q, v, tau, drives, np.empty(0), a,
                              work)
    if not (margin > 0.0 and residue == 0.0):
        return FAILED
    return FINE if work[conn_i[-1, HEAD_JUDGED] + JUDGED_CLASH] <= 0.0 else CLASHED


@entry("loops of batches", [types.void(int64, *PLAN, *LINKS, *SPRINGS, *LOOPS, table, table, table, table, table, table,
                                       flags, int64, int64)])
def closed_batch(mode, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, q, v, tau,
                 drives, external, a, bad, start, stop):
    nq, nv, pushed, driven = q.shape[1], v.shape[1], external.shape[0] > 0, drives.shape[0] > 0
    _, size_total, size_wrench, size_states = scratch_sizes(body_i, dof_f, pushed)
    if mode != DYNAMICS:
        size_total = size_wrench = size_states = 0
    q_lanes, v_lanes, tau_lanes = lane_array(nq), lane_array(nv), lane_array(nv)
    a_lanes, work = lane_array(nv), lane_array(conn_i[-1, HEAD_TOTAL])
    external_lanes, total = lane_array(external.shape[1] if pushed else 0), lane_array(size_total)
    drive_lanes = lane_array(drives.shape[1] if driven else 0)
    wrench, states = lane_array(size_wrench), lane_array(size_states)
    judged = lane_array(2)
    clash = conn_i[-1, HEAD_JUDGED] + JUDGED_CLASH
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
            margin, residue = accelerate_closed(body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i,
                                                conn_f, prog, q_lanes, v_lanes, tau_lanes, drive_lanes, external_lanes,
                                                a_lanes, work, total, wrench, states)
        else:
            margin, residue = ada(mode, body_i, body_f, dof_f, conn_i, conn_f, prog, q_lanes, v_lanes, tau_lanes,
                                  drive_lanes, wrench, a_lanes, work)
        store(judged, 0, margin)
        store(judged, 1, residue)
        scatter(a_lanes, a, first)
        for w in range(min(WIDTH, stop - first)):
            fine = judged[0, w] > 0.0 and judged[1, w] == 0.0
            bad[first + w] = (FINE if work[clash, w] <= 0.0 else CLASHED) if fine else FAILED
