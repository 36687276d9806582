"""Forward dynamics of trees: one state, or a batch over lanes and threads."""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.aba import aba
from bunraku.algorithms.forward_passes import accelerate, accelerate_tree, scratch_sizes
from bunraku.checks import aligned
from bunraku.entries.explain import refuse
from bunraku.entries.pool import spread
from bunraku.entries.signatures import (
    FAILED,
    FINE,
    MOTION,
    PLAN,
    WRONG_SHAPE,
    flags,
    floats,
    int64,
    lane_array,
    table,
)
from bunraku.jit import entry
from bunraku.plan import fields as f
from bunraku.spatial.lane_memory import gather, prefetch, scatter
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import clear, store

SMALLEST_SHARE = 256  # states worth a thread


@entry("motion of trees", MOTION, seconds=5, brief=True, by_address=True)
def tree_one(mode, plan, dof_f, q, v, tau, drives, external, a, work):
    """As `closed_one`, for a mechanism without connections."""
    margin, residue = accelerate_tree(plan, dof_f, q, v, tau, external, a, work)
    return FINE if margin > 0.0 and residue == 0.0 else FAILED


@entry("forward dynamics", int64(PLAN, floats, floats, floats, floats, floats), seconds=5, brief=True)
def forward_one(plan, q, v, tau, external, a):
    """One state; checks the shapes itself, so that the user's arrays can be passed directly."""
    nv = plan.dof_f.shape[1]
    if q.shape[0] != plan.body_i[-1, f.HEAD_NQ] or v.shape[0] != nv or tau.shape[0] != nv:
        return WRONG_SHAPE
    sizes = scratch_sizes(plan.body_i, plan.dof_f, external.shape[0] > 0)
    margin, residue = accelerate_tree(plan, plan.dof_f, q, v, tau, external, a,
                                      np.empty(sizes[0] + sizes[1] + sizes[2] + sizes[3]))
    return FINE if margin > 0.0 and residue == 0.0 else FAILED


@entry("forward dynamics of batches", types.void(PLAN, table, table, table, table, table, flags, int64, int64),
       seconds=6)
def forward_batch(plan, q, v, tau, external, a, bad, start, stop):
    body_i, body_f, dof_f = plan.body_i, plan.body_f, plan.dof_f
    nq, nv = q.shape[1], v.shape[1]
    pushed = external.shape[0] > 0
    size_work, size_total, size_wrench, size_states = scratch_sizes(body_i, dof_f, pushed)
    q_lanes, v_lanes, tau_lanes, work = lane_array(nq), lane_array(nv), lane_array(nv), lane_array(size_work)
    external_lanes, total = lane_array(external.shape[1] if pushed else 0), lane_array(size_total)
    wrench, states = lane_array(size_wrench), lane_array(size_states)
    a_lanes = tau_lanes if size_total == 0 else lane_array(nv)  # aba reads a torque before it writes the acceleration
    judged = lane_array(2)
    for first in range(start, stop, WIDTH):
        gather(q, first, q_lanes)
        gather(v, first, v_lanes)
        if tau.shape[0] > 0:
            gather(tau, first, tau_lanes)
        else:
            clear(tau_lanes)
        prefetch(a, first)
        if size_total == 0 and size_wrench == 0:
            margin, residue = aba(body_i, body_f, dof_f, q_lanes, v_lanes, tau_lanes, wrench, a_lanes, work)
        else:
            if pushed:
                gather(external, first, external_lanes)
            margin, residue = accelerate(body_i, body_f, dof_f, plan.link_i, plan.link_f, plan.spring_i, plan.spring_f,
                                         q_lanes, v_lanes, tau_lanes, external_lanes, a_lanes, work, total, wrench,
                                         states)
        store(judged, 0, margin)
        store(judged, 1, residue)
        scatter(a_lanes, a, first)
        for w in range(min(WIDTH, stop - first)):
            bad[first + w] = 0 if judged[0, w] > 0.0 and judged[1, w] == 0.0 else 1


def forward_dynamics(plan, q, v, tau, external, workers):
    """Accelerations of one state or of a batch; `external` is None or (links * 6) floats per state."""
    nothing = tau is None
    pieces = [("q", q, plan.nq), ("v", v, plan.nv), ("tau", plan.zero_tau if nothing else tau, plan.nv)]
    if external is not None:
        pieces.append(("external", external, 6 * plan.links))
    batch, arrays = aligned(*pieces)
    q, v, tau = arrays[:3]
    if batch is None:
        a = np.empty(plan.nv)
        answer = forward_one.call(plan.arrays, q, v, tau, plan.nothing if external is None else arrays[3], a)
        if answer != FINE:
            refuse(plan, q, _named(plan, v, tau, arrays))
        return a
    a, bad = np.empty((batch, plan.nv)), np.zeros(batch, np.uint8)
    pushed = np.zeros((0, 6 * plan.links)) if external is None else arrays[3]
    acting = tau[:0] if nothing else tau

    def work(start, stop):
        forward_batch.call(plan.arrays, q, v, acting, pushed, a, bad, start, stop)

    forward_batch.load()
    spread(work, batch, WIDTH, workers, SMALLEST_SHARE)
    if bad.any():
        refuse(plan, q, _named(plan, v, tau, arrays), bad, a)
    return a


def _named(plan, v, tau, arrays):
    locked = np.zeros(plan.nv, bool)
    for row in plan.body_i[:-1][plan.body_i[:-1, f.ELIMINATION] == f.LOCKED]:
        locked[row[f.V_INDEX]:row[f.V_INDEX] + row[f.DOF]] = True
    return {"v": v, "tau": np.where(locked, 0.0, tau), "prescribed": np.where(locked, tau, 0.0),
            **({"external": arrays[3]} if len(arrays) > 3 else {})}
