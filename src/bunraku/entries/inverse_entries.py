"""Inverse dynamics of trees and the wrenches transmitted by their joints: one state, or a batch over lanes and
threads."""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.body_motion import STATE, body_states
from bunraku.algorithms.passive import body_wrenches, passive_torque
from bunraku.algorithms.rnea import RECORD, rnea
from bunraku.checks import aligned
from bunraku.entries.explain import refuse
from bunraku.entries.pool import spread
from bunraku.entries.signatures import FAILED, FINE, PLAN, WRONG_SHAPE, flags, floats, int64, lane_array, table
from bunraku.jit import ArrayMismatch, entry, inline
from bunraku.plan import fields as f
from bunraku.spatial.lane_memory import gather, scatter
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import clear, load, store

SMALLEST_SHARE = 256


@inline
def torques(body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, q, v, a, external, tau, joint_wrench,
            work, passive, wrench, states):
    """tau such that the mechanism, with all its own forces, accelerates by a; returns the residue of `rnea`."""
    if wrench.shape[0] > 0:
        body_states(body_i, body_f, q, v, v, states)
        body_wrenches(link_i, link_f, spring_i, spring_f, states, external, wrench)
    residue = rnea(body_i, body_f, dof_f, q, v, a, wrench, tau, joint_wrench, work)
    if passive.shape[0] > 0:  # what springs and dampers give need not be driven
        clear(work[:dof_f.shape[1]])
        passive_torque(body_i, dof_f, q, v, work, passive)
        for j in range(dof_f.shape[1]):
            store(tau, j, load(tau, j) - load(passive, j))
    return residue


@inline
def scratch_sizes(body_i, dof_f, pushed):
    """Scalars needed by `torques`: (work, passive, wrench, states)."""
    n, nv = body_i.shape[0] - 1, dof_f.shape[1]
    pushed = pushed or body_i[n, f.HEAD_SPRINGS] > 0
    return (max(RECORD * n, nv), nv if body_i[n, f.HEAD_PASSIVE] != 0 else 0,
            6 * n if pushed else 0, STATE * n if pushed else 0)


@entry("inverse dynamics", int64(PLAN, floats, floats, floats, floats, floats, floats), seconds=4, brief=True)
def inverse_one(plan, q, v, a, external, tau, joint_wrench):
    nv = plan.dof_f.shape[1]
    if q.shape[0] != plan.body_i[-1, f.HEAD_NQ] or v.shape[0] != nv or a.shape[0] != nv:
        return WRONG_SHAPE
    work, passive, wrench, states = scratch_sizes(plan.body_i, plan.dof_f, external.shape[0] > 0)
    residue = torques(plan.body_i, plan.body_f, plan.dof_f, plan.link_i, plan.link_f, plan.spring_i, plan.spring_f, q,
                      v, a, external, tau, joint_wrench, np.empty(work), np.empty(passive), np.empty(wrench),
                      np.empty(states))
    return FINE if residue == 0.0 else FAILED


@entry("inverse dynamics of batches", types.void(PLAN, table, table, table, table, table, table, flags, int64, int64),
       seconds=5)
def inverse_batch(plan, q, v, a, external, tau, joint_wrench, bad, start, stop):
    body_i, body_f, dof_f, link_i, link_f = plan.body_i, plan.body_f, plan.dof_f, plan.link_i, plan.link_f
    spring_i, spring_f = plan.spring_i, plan.spring_f
    nq, nv, pushed, wanted = q.shape[1], v.shape[1], external.shape[0] > 0, joint_wrench.shape[0] > 0
    q_lanes, v_lanes, a_lanes, tau_lanes = lane_array(nq), lane_array(nv), lane_array(nv), lane_array(nv)
    external_lanes = lane_array(external.shape[1] if pushed else 0)
    wrench_lanes = lane_array(joint_wrench.shape[1] if wanted else 0)
    work, passive, wrench, states = scratch_sizes(body_i, dof_f, pushed)
    work_lanes, passive_lanes = lane_array(work), lane_array(passive)
    body_lanes, state_lanes, judged = lane_array(wrench), lane_array(states), lane_array(1)
    for first in range(start, stop, WIDTH):
        gather(q, first, q_lanes)
        gather(v, first, v_lanes)
        gather(a, first, a_lanes)
        if pushed:
            gather(external, first, external_lanes)
        residue = torques(body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, q_lanes, v_lanes, a_lanes,
                          external_lanes, tau_lanes, wrench_lanes, work_lanes, passive_lanes, body_lanes, state_lanes)
        store(judged, 0, residue)
        scatter(tau_lanes, tau, first)
        if wanted:
            scatter(wrench_lanes, joint_wrench, first)
        for w in range(min(WIDTH, stop - first)):
            bad[first + w] = 0 if judged[0, w] == 0.0 else 1


def inverse_dynamics(plan, q, v, a, external, workers, wrenches=False):
    """Torques of one state or a batch; with `wrenches` also 6 per body: transmitted force and moment, body axes."""
    if external is None and not wrenches:
        tau = np.empty(plan.nv)
        try:  # plain arrays go straight to compiled code
            if inverse_one.call(plan.arrays, q, v, a, plan.nothing, tau, plan.nothing) == FINE:
                return tau
        except ArrayMismatch:  # lists, other types of numbers, batches
            pass
    pieces = [("q", q, plan.nq), ("v", v, plan.nv), ("a", a, plan.nv)]
    if external is not None:
        pieces.append(("external", external, 6 * plan.links))
    batch, arrays = aligned(*pieces)
    q, v, a = arrays[:3]
    inputs = {"v": v, "a": a, **({"external": arrays[3]} if external is not None else {})}
    if batch is None:
        tau, passed = np.empty(plan.nv), np.empty(6 * plan.bodies if wrenches else 0)
        pushed = plan.nothing if external is None else arrays[3]
        if inverse_one.call(plan.arrays, q, v, a, pushed, tau, passed) != FINE:
            refuse(plan, q, inputs)
        return (tau, passed) if wrenches else tau
    tau, bad = np.empty((batch, plan.nv)), np.zeros(batch, np.uint8)
    passed = np.empty((batch if wrenches else 0, 6 * plan.bodies))
    pushed = np.zeros((0, 6 * plan.links)) if external is None else arrays[3]
    inverse_batch.load()
    spread(lambda start, stop: inverse_batch.call(plan.arrays, q, v, a, pushed, tau, passed, bad, start, stop),
           batch, WIDTH, workers, SMALLEST_SHARE)
    if bad.any():
        refuse(plan, q, inputs, bad, tau)
    return (tau, passed) if wrenches else tau
