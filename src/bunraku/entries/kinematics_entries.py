"""Kinematics, energy and Jacobians of trees: one state, or a batch over lanes and threads."""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.body_motion import STATE, TOTALS, body_states, jacobian, link_states, totals
from bunraku.algorithms.passive import body_wrenches, passive_energy
from bunraku.checks import aligned
from bunraku.entries.closed_solution import stored_energy
from bunraku.entries.explain import refuse
from bunraku.entries.pool import spread
from bunraku.entries.signatures import PLAN, floats, int64, lane_array, table
from bunraku.jit import entry, inline
from bunraku.plan import fields as f
from bunraku.spatial.algebra import load3
from bunraku.spatial.lane_memory import gather, scatter
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import load, store

SMALLEST_SHARE = 512


@inline
def observe(body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, q, v, a, links, sums, states, wrench):
    """States of all links, and sums over the mechanism, with the energy of rotors, springs and limits added."""
    body_states(body_i, body_f, q, v, a, states)
    link_states(link_i, link_f, states, links)
    totals(body_i, body_f, states, sums)
    spin = load(sums, 9)
    for j in range(dof_f.shape[1]):
        rate = load(v, j)
        spin = spin + 0.5 * dof_f[f.ARMATURE, j] * rate * rate
    store(sums, 9, spin)
    stored = passive_energy(body_i, dof_f, q)
    if spring_i.shape[0] > 0:
        stored = stored + body_wrenches(link_i, link_f, spring_i, spring_f, states, wrench[:0], wrench)
    store(sums, 10, load(sums, 10) + stored)


@entry("kinematics", types.void(PLAN, floats, floats, floats, floats, floats, floats), seconds=3, brief=True)
def observe_one(plan, q, v, a, links, sums, states):
    n = plan.body_i.shape[0] - 1
    observe(plan.body_i, plan.body_f, plan.dof_f, plan.link_i, plan.link_f, plan.spring_i, plan.spring_f, q, v, a,
            links, sums, states, np.empty(6 * n if plan.spring_i.shape[0] > 0 else 0))


@entry("kinematics of batches", types.void(PLAN, table, table, table, table, table, int64, int64), seconds=4)
def observe_batch(plan, q, v, a, links, sums, start, stop):
    body_i, body_f, dof_f, link_i, link_f = plan.body_i, plan.body_f, plan.dof_f, plan.link_i, plan.link_f
    spring_i, spring_f = plan.spring_i, plan.spring_f
    n, nq, nv = body_i.shape[0] - 1, q.shape[1], v.shape[1]
    q_lanes, v_lanes, a_lanes = lane_array(nq), lane_array(nv), lane_array(nv)
    link_lanes, sum_lanes = lane_array(links.shape[1]), lane_array(sums.shape[1])
    states, wrench = lane_array(STATE * n), lane_array(6 * n if spring_i.shape[0] > 0 else 0)
    for first in range(start, stop, WIDTH):
        gather(q, first, q_lanes)
        gather(v, first, v_lanes)
        gather(a, first, a_lanes)
        observe(body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, q_lanes, v_lanes, a_lanes, link_lanes,
                sum_lanes, states, wrench)
        scatter(link_lanes, links, first)
        scatter(sum_lanes, sums, first)


def observation(plan, q, v=None, a=None, workers=None):
    """Link states (links, STATE) and sums (TOTALS), with a leading axis for a batch."""
    zero = plan.zero_tau
    batch, arrays = aligned(("q", q, plan.nq), ("v", zero if v is None else v, plan.nv),
                            ("a", zero if a is None else a, plan.nv))
    if batch is None:
        links, sums = np.empty(STATE * plan.links), np.empty(TOTALS)
        observe_one.call(plan.arrays, *arrays, links, sums, np.empty(STATE * plan.bodies))
        if not np.isfinite(sums).all() or not np.isfinite(links).all():
            refuse(plan, arrays[0], {"v": arrays[1], "a": arrays[2]})
        return links.reshape(plan.links, STATE), sums
    links, sums = np.empty((batch, STATE * plan.links)), np.empty((batch, TOTALS))
    observe_batch.load()
    spread(lambda start, stop: observe_batch.call(plan.arrays, *arrays, links, sums, start, stop), batch, WIDTH,
           workers, SMALLEST_SHARE)
    finite = np.isfinite(sums).all(axis=1) & np.isfinite(links).all(axis=1)
    links = links.reshape(batch, plan.links, STATE)
    if not finite.all():
        refuse(plan, arrays[0], {"v": arrays[1], "a": arrays[2]}, ~finite, links)
    return links, sums


def energy(plan, q, v):
    """(kinetic, potential) of one state, or two arrays for a batch."""
    _, sums = observation(plan, q, v)
    stored = 0.0 if plan.loops is None else stored_energy(plan, q)
    return ((float(sums[9]), float(sums[10]) + stored) if sums.ndim == 1
            else (sums[:, 9].copy(), sums[:, 10] + stored))


@entry("Jacobians", types.void(PLAN, floats, floats, int64, floats), seconds=3, brief=True)
def jacobian_one(plan, q, point, body, out):
    body_i, body_f, dof_f = plan.body_i, plan.body_f, plan.dof_f
    states, zero = np.empty(STATE * (body_i.shape[0] - 1)), np.zeros(dof_f.shape[1])
    body_states(body_i, body_f, q, zero, zero, states)
    jacobian(body_i, body_f, body, load3(point, 0), states, out)


def point_jacobian(plan, q, point, body) -> np.ndarray:
    """6 x nv (linear, angular) for a point of the world moving with a body; zero for the ground."""
    out = np.zeros(6 * plan.nv)
    jacobian_one.call(plan.arrays, q, point, body, out)
    return out.reshape(6, plan.nv)
