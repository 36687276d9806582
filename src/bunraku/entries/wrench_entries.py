"""Wrenches transmitted by the joints of trees, together with the accelerations: one state, or a batch over lanes and
threads."""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.body_motion import body_states
from bunraku.algorithms.forward_passes import scratch_sizes
from bunraku.algorithms.passive import body_wrenches, passive_torque
from bunraku.algorithms.transmitted import NOTES, aba_with_wrenches
from bunraku.checks import aligned
from bunraku.entries.explain import refuse
from bunraku.entries.pool import spread
from bunraku.entries.signatures import FAILED, FINE, PLAN, WRONG_SHAPE, flags, floats, int64, lane_array, table
from bunraku.jit import entry, inline
from bunraku.plan import fields as f
from bunraku.spatial.lane_memory import gather, scatter
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import clear, store

SMALLEST_SHARE = 256


@inline
def transmit(plan, q, v, tau, external, a, joint_wrench, work, total, wrench, states, notes):
    """Accelerations and joint wrenches with all forces of the mechanism: `accelerate`, by `aba_with_wrenches`."""
    acting = tau
    if wrench.shape[0] > 0:
        body_states(plan.body_i, plan.body_f, q, v, v, states)
        body_wrenches(plan.link_i, plan.link_f, plan.spring_i, plan.spring_f, states, external, wrench)
    if total.shape[0] > 0:
        passive_torque(plan.body_i, plan.dof_f, q, v, tau, total)
        acting = total
    return aba_with_wrenches(plan.body_i, plan.body_f, plan.dof_f, plan.link_i, plan.link_f, q, v, acting, wrench, a,
                             joint_wrench, work, notes)


@entry("joint forces", int64(PLAN, floats, floats, floats, floats, floats), seconds=6, brief=True)
def wrenches_one(plan, q, v, tau, external, joint_wrench):
    """One state; checks the shapes itself."""
    nv, n = plan.dof_f.shape[1], plan.body_i.shape[0] - 1
    if q.shape[0] != plan.body_i[-1, f.HEAD_NQ] or v.shape[0] != nv or tau.shape[0] != nv:
        return WRONG_SHAPE
    work, total, wrench, states = scratch_sizes(plan.body_i, plan.dof_f, external.shape[0] > 0)
    margin, residue = transmit(plan, q, v, tau, external, np.empty(nv), joint_wrench, np.empty(work), np.empty(total),
                               np.empty(wrench), np.empty(states), np.empty(NOTES * n))
    return FINE if margin > 0.0 and residue == 0.0 else FAILED


@entry("joint forces of batches", types.void(PLAN, table, table, table, table, table, flags, int64, int64), seconds=8)
def wrenches_batch(plan, q, v, tau, external, joint_wrench, bad, start, stop):
    nv, n, pushed = plan.dof_f.shape[1], plan.body_i.shape[0] - 1, external.shape[0] > 0
    work, total, wrench, states = scratch_sizes(plan.body_i, plan.dof_f, pushed)
    q_lanes, v_lanes, tau_lanes, a_lanes = lane_array(q.shape[1]), lane_array(nv), lane_array(nv), lane_array(nv)
    external_lanes, out_lanes = lane_array(external.shape[1] if pushed else 0), lane_array(joint_wrench.shape[1])
    work_lanes, total_lanes, wrench_lanes = lane_array(work), lane_array(total), lane_array(wrench)
    state_lanes, note_lanes, judged = lane_array(states), lane_array(NOTES * n), lane_array(2)
    for first in range(start, stop, WIDTH):
        gather(q, first, q_lanes)
        gather(v, first, v_lanes)
        if tau.shape[0] > 0:
            gather(tau, first, tau_lanes)
        else:
            clear(tau_lanes)
        if pushed:
            gather(external, first, external_lanes)
        margin, residue = transmit(plan, q_lanes, v_lanes, tau_lanes, external_lanes, a_lanes, out_lanes, work_lanes,
                                   total_lanes, wrench_lanes, state_lanes, note_lanes)
        store(judged, 0, margin)
        store(judged, 1, residue)
        scatter(out_lanes, joint_wrench, first)
        for w in range(min(WIDTH, stop - first)):
            bad[first + w] = 0 if judged[0, w] > 0.0 and judged[1, w] == 0.0 else 1


def joint_wrenches(plan, q, v, tau, external) -> np.ndarray:
    """6 per link, with a leading axis for a batch: force and moment that each link's joint passes to it, at the link's
    origin in link axes. The plan has a body for every link."""
    pieces = [("q", q, plan.nq), ("v", v, plan.nv), ("tau", plan.zero_tau if tau is None else tau, plan.nv)]
    if external is not None:
        pieces.append(("external", external, 6 * plan.links))
    batch, arrays = aligned(*pieces)
    q, v, tau = arrays[:3]
    inputs = {"v": v, "tau": tau, **({"external": arrays[3]} if external is not None else {})}
    if batch is None:
        out = np.empty(6 * plan.links)
        if wrenches_one.call(plan.arrays, q, v, tau, plan.nothing if external is None else arrays[3], out) != FINE:
            refuse(plan, q, inputs)
        return out
    out, bad = np.empty((batch, 6 * plan.links)), np.zeros(batch, np.uint8)
    pushed = np.zeros((0, 6 * plan.links)) if external is None else arrays[3]
    wrenches_batch.load()
    spread(lambda start, stop: wrenches_batch.call(plan.arrays, q, v, tau, pushed, out, bad, start, stop), batch, WIDTH,
           None, SMALLEST_SHARE)
    if bad.any():
        refuse(plan, q, inputs, bad, out)
    return out
