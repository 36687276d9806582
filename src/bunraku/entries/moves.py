"""Motion along the joints: q moved by a velocity, the difference of two q, unit quaternions."""

from __future__ import annotations

import math

import numpy as np
from numba import types

from bunraku.algorithms.states import advance_coordinates, coordinate_difference, coordinate_rates, tangent_rates
from bunraku.algorithms.stepping import unit_length
from bunraku.checks import aligned
from bunraku.entries.explain import refuse
from bunraku.entries.signatures import integers, table
from bunraku.jit import entry
from bunraku.plan import fields as f


@entry("moves along joints", types.void(integers, table, table, table), brief=True)
def integrate_states(body_i, q, dq, out):
    for k in range(q.shape[0]):
        advance_coordinates(body_i, q[k], dq[k], out[k])


@entry("unit quaternions", types.void(integers, table), brief=True)
def normalise_states(body_i, q):
    for k in range(q.shape[0]):
        unit_length(body_i, q[k])


def unit_quaternions(plan, q) -> np.ndarray:
    """A batch of coordinates, with quaternions of unit length; not numbers where one is zero."""
    out = q.copy()
    normalise_states.call(plan.body_i, out)
    return out


@entry("rates of coordinates", types.void(integers, table, table, table), brief=True)
def rates_of_states(body_i, q, v, out):
    for k in range(q.shape[0]):
        coordinate_rates(body_i, q[k], v[k], out[k])


def rates(plan, q, v) -> np.ndarray:
    """Derivatives of the coordinates of a batch of states."""
    out = np.empty(q.shape)
    rates_of_states.call(plan.body_i, q, v, out)
    return out


@entry("velocities from rates of coordinates", types.void(integers, table, table, table), brief=True)
def velocities_of_states(body_i, q, rates, out):
    for k in range(q.shape[0]):
        tangent_rates(body_i, q[k], rates[k], out[k])


def velocities(plan, q, rates) -> np.ndarray:
    """Velocities of a batch of states with these derivatives of the coordinates; quaternions may have any length."""
    out = np.zeros((len(q), plan.nv))
    velocities_of_states.call(plan.body_i, q, rates, out)
    return out


@entry("differences of joints", types.void(integers, table, table, table), brief=True)
def difference_of_states(body_i, q0, q1, out):
    for k in range(q0.shape[0]):
        coordinate_difference(body_i, q0[k], q1[k], out[k])


def _sound(plan, q):
    """Every number finite, every quaternion of some length."""
    turns = [(row[f.Q_INDEX] + (3 if row[f.KIND] == f.FREE else 0)) for row in plan.body_i[:-1]
             if row[f.KIND] in (f.SPHERICAL, f.FREE)]
    return np.isfinite(q).all() and all(np.sum(q[k:k + 4] ** 2) > 0.0 for k in turns)


def _pairwise(plan, kernel, first, second, width_out):
    batch, (a, b) = aligned(first, second)
    a, b = (a, b) if batch is not None else (a[None], b[None])
    out = np.empty((a.shape[0], width_out))
    kernel.call(plan.body_i, a, b, out)
    if not math.isfinite(out.sum()) and not np.isfinite(out).all():
        inputs = {second[0]: b} if second[2] == plan.nv else {}
        for q in (a,) if inputs else (b, a):  # a difference has two states that can be at fault
            if batch is None and (inputs or not _sound(plan, q[0])):
                refuse(plan, q[0], {name: x[0] for name, x in inputs.items()})
        refuse(plan, a, inputs, ~np.isfinite(out).all(axis=1), out)
    return out if batch is not None else out[0]


def integrate(plan, q, dq) -> np.ndarray:
    return _pairwise(plan, integrate_states, ("q", q, plan.nq), ("dq", dq, plan.nv), plan.nq)


def difference(plan, q0, q1) -> np.ndarray:
    return _pairwise(plan, difference_of_states, ("q0", q0, plan.nq), ("q1", q1, plan.nq), plan.nv)
