"""Jacobians and their rates, centroidal momentum matrix, Coriolis matrix and inertial regressor: batches in lanes.

One state is a batch of one: the latency of a lane's operations is that of a float's, and each quantity is compiled
once.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from bunraku.algorithms import centroidal as momentum
from bunraku.algorithms import coriolis as products
from bunraku.algorithms.body_motion import STATE, body_states
from bunraku.algorithms.moving_axes import jacobian_and_rate
from bunraku.algorithms.regressor import PARAMETERS, regressor
from bunraku.checks import aligned
from bunraku.entries.explain import refuse
from bunraku.entries.pool import spread
from bunraku.entries.signatures import PLAN, int64, lane_array, table
from bunraku.jit import entry
from bunraku.plan import fields as f
from bunraku.spatial.lane_memory import gather, scatter
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import clear

SMALLEST_SHARE = 256


@entry("Jacobians", types.void(PLAN, int64, table, table, table, table, table, int64, int64), seconds=4)
def jacobians_batch(plan, link, place, q, v, out, rate, start, stop):
    q_lanes, v_lanes = lane_array(q.shape[1]), lane_array(v.shape[1])
    states = lane_array(STATE * (plan.body_i.shape[0] - 1))
    out_lanes, rate_lanes = lane_array(out.shape[1]), lane_array(out.shape[1])
    clear(out_lanes)
    clear(rate_lanes)
    for first in range(start, stop, WIDTH):
        gather(q, first, q_lanes)
        gather(v, first, v_lanes)
        body_states(plan.body_i, plan.body_f, q_lanes, v_lanes, v_lanes, states)
        jacobian_and_rate(plan.body_i, plan.body_f, plan.link_i, link, place, states, out_lanes, rate_lanes)
        scatter(out_lanes, out, first)
        scatter(rate_lanes, rate, first)


@entry("centroidal momentum", types.void(PLAN, table, table, table, table, int64, int64), seconds=4)
def centroidal_batch(plan, q, v, out, rate, start, stop):
    q_lanes, v_lanes = lane_array(q.shape[1]), lane_array(v.shape[1])
    states = lane_array(STATE * (plan.body_i.shape[0] - 1))
    out_lanes, rate_lanes = lane_array(out.shape[1]), lane_array(out.shape[1])
    composite = lane_array(momentum.COMPOSITE * (plan.body_i.shape[0] - 1))
    for first in range(start, stop, WIDTH):
        gather(q, first, q_lanes)
        gather(v, first, v_lanes)
        body_states(plan.body_i, plan.body_f, q_lanes, v_lanes, v_lanes, states)
        momentum.centroidal(plan.body_i, plan.body_f, states, composite, out_lanes, rate_lanes)
        scatter(out_lanes, out, first)
        scatter(rate_lanes, rate, first)


@entry("Coriolis matrix", types.void(PLAN, table, table, table, int64, int64), seconds=5)
def coriolis_batch(plan, q, v, out, start, stop):
    q_lanes, v_lanes = lane_array(q.shape[1]), lane_array(v.shape[1])
    states = lane_array(STATE * (plan.body_i.shape[0] - 1))
    out_lanes, composite = lane_array(out.shape[1]), lane_array(products.COMPOSITE * (plan.body_i.shape[0] - 1))
    clear(out_lanes)
    for first in range(start, stop, WIDTH):
        gather(q, first, q_lanes)
        gather(v, first, v_lanes)
        body_states(plan.body_i, plan.body_f, q_lanes, v_lanes, v_lanes, states)
        products.coriolis(plan.body_i, plan.body_f, v.shape[1], states, composite, out_lanes)
        scatter(out_lanes, out, first)


@entry("inertial regressor", types.void(PLAN, table, table, table, table, int64, int64), seconds=4)
def regressor_batch(plan, q, v, a, out, start, stop):
    q_lanes, v_lanes, a_lanes = lane_array(q.shape[1]), lane_array(v.shape[1]), lane_array(v.shape[1])
    states, out_lanes = lane_array(STATE * (plan.body_i.shape[0] - 1)), lane_array(out.shape[1])
    clear(out_lanes)
    for first in range(start, stop, WIDTH):
        gather(q, first, q_lanes)
        gather(v, first, v_lanes)
        gather(a, first, a_lanes)
        body_states(plan.body_i, plan.body_f, q_lanes, v_lanes, a_lanes, states)
        regressor(plan.body_i, plan.body_f, plan.link_i, plan.link_f, states, out_lanes)
        scatter(out_lanes, out, first)


def jacobians(plan, link, point, q, v=None) -> tuple[np.ndarray, np.ndarray]:
    """(6, nv) of a point of a link, given in its frame: J (linear, angular) and dJ/dt."""
    place = plan.link_f[link]
    point = place[f.LINK_ROTATION:f.LINK_OFFSET].reshape(3, 3) @ point + place[f.LINK_OFFSET:f.LINK_OFFSET + 3]
    J, rate = _each(plan, (6, 6), (q, v), lambda q, v, J, rate, start, stop: jacobians_batch.call(
        plan.arrays, link, point[None], q, v, J, rate, start, stop), jacobians_batch)
    return J, rate


def centroidal(plan, q, v=None) -> tuple[np.ndarray, np.ndarray]:
    """(6, nv): centroidal momentum matrix (linear, angular) and its rate."""
    matrix, rate = _each(plan, (6, 6), (q, v), lambda q, v, A, rate, start, stop: centroidal_batch.call(
        plan.arrays, q, v, A, rate, start, stop), centroidal_batch)
    return matrix, rate


def coriolis(plan, q, v) -> np.ndarray:
    """(nv, nv)."""
    return _each(plan, (plan.nv,), (q, v), lambda q, v, C, start, stop: coriolis_batch.call(
        plan.arrays, q, v, C, start, stop), coriolis_batch)[0]


def regressors(plan, q, v, a) -> np.ndarray:
    """(nv, 10 per link)."""
    Y = _each(plan, (PARAMETERS * plan.links,), (q, v, a), lambda q, v, a, Y, start, stop: regressor_batch.call(
        plan.arrays, q, v, a, Y, start, stop), regressor_batch)[0]
    return Y.reshape(*Y.shape[:-2], plan.nv, PARAMETERS * plan.links)


def _each(plan, rows, given, call, entry):
    """Results of `call` for one state or a batch, by threads: an array of nv times each of `rows` numbers per state, as
    (rows, nv)."""
    if _one_state(plan, given):  # straight to compiled code
        results = [np.empty((1, k * plan.nv)) for k in rows]
        call(*(plan.zero_tau[None] if x is None else x[None] for x in given), *results, 0, 1)
        if math.isfinite(sum(x.sum() for x in results)):
            return [x.reshape(k, plan.nv) for x, k in zip(results, rows, strict=True)]
    names = ("q", "v", "a")[:len(given)]
    batch, arrays = aligned(*((name, plan.zero_tau if x is None else x, plan.nq if name == "q" else plan.nv)
                              for name, x in zip(names, given, strict=True)))
    arrays = [np.atleast_2d(x) for x in arrays]
    count = len(arrays[0])
    results = [np.empty((count, k * plan.nv)) for k in rows]
    entry.load()
    spread(lambda start, stop: call(*arrays, *results, start, stop), count, WIDTH, None, SMALLEST_SHARE)
    finite = np.logical_and.reduce([np.isfinite(x).all(axis=1) for x in results])
    if not finite.all():
        inputs = dict(zip(names[1:], arrays[1:], strict=True))
        if batch is None:
            refuse(plan, arrays[0][0], {name: x[0] for name, x in inputs.items()})
        refuse(plan, arrays[0], inputs, ~finite, results[0])
    return [x.reshape(count, k, plan.nv) if batch is not None else x.reshape(k, plan.nv)
            for x, k in zip(results, rows, strict=True)]


def _one_state(plan, given) -> bool:
    """Whether these are plain arrays of one state (None: zeros)."""
    for x, width in zip(given, (plan.nq, plan.nv, plan.nv), strict=False):
        if x is not None and not (type(x) is np.ndarray and x.dtype == float and x.shape == (width,)
                                  and x.flags.carray):
            return False
    return True
