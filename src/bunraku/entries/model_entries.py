"""The mechanism as user functions see it that are compiled themselves (`runs/model.py`): one state, all by address.

Every entry allocates its own memory, so that threads share none, and checks the sizes of what it is given. Results are
those of the tree: connections, contacts and external forces are not in them.
"""

from __future__ import annotations

import numpy as np

from bunraku.algorithms.body_motion import STATE, TOTALS, body_states, totals
from bunraku.algorithms.gravity_torque import RECORD as MOMENTS
from bunraku.algorithms.gravity_torque import com_jacobian, gravity_torque, subtree_moments
from bunraku.algorithms.link_motion import POSE, body_of, link_jacobian, link_motion, link_pose
from bunraku.algorithms.rnea import RECORD, rnea
from bunraku.algorithms.states import coordinate_difference
from bunraku.entries.inverse_entries import scratch_sizes, torques
from bunraku.entries.mass_matrix_entries import floats_at_a_line, one_state, work_size
from bunraku.entries.signatures import FINE, PLAN, WRONG_SHAPE, float64, floats, int64, table
from bunraku.jit import entry, inline
from bunraku.plan import fields as f
from bunraku.spatial.algebra import store3, store9

BIAS, INVERSE = range(2)
"""Torques of zero acceleration, without springs, dampers and limits; those of an acceleration, with them."""

POSE_OF, VELOCITY_OF, ACCELERATION_OF = range(3)


@inline
def coordinates(plan):
    return np.int64(plan.body_i[plan.body_i.shape[0] - 1, f.HEAD_NQ])


@entry("torques for controllers", int64(PLAN, int64, floats, floats, floats, floats), seconds=4, by_address=True,
       brief=True)
def torques_of_model(plan, mode, q, v, a, out):
    """`out`, which may be longer (drives of connections), is written last: it may be v or a."""
    nv = plan.dof_f.shape[1]
    if (q.shape[0] != coordinates(plan) or v.shape[0] != nv or (mode == INVERSE and a.shape[0] != nv)
            or out.shape[0] < nv):
        return WRONG_SHAPE
    if mode == INVERSE:
        size, passive, wrench, states = scratch_sizes(plan.body_i, plan.dof_f, False)
        ends = nv + size, nv + size + passive, nv + size + passive + wrench
        memory = np.empty(ends[2] + states)
        tau = memory[:nv]
        torques(plan.body_i, plan.body_f, plan.dof_f, plan.link_i, plan.link_f, plan.spring_i, plan.spring_f, q, v, a,
                memory[:0], tau, memory[:0], memory[nv:ends[0]], memory[ends[0]:ends[1]], memory[ends[1]:ends[2]],
                memory[ends[2]:])
    else:
        memory = np.empty(2 * nv + RECORD * (plan.body_i.shape[0] - 1))
        tau, zero = memory[:nv], memory[nv:2 * nv]
        zero[:] = 0.0
        rnea(plan.body_i, plan.body_f, plan.dof_f, q, v, zero, memory[:0], tau, memory[:0],
             memory[2 * nv:])
    out[:nv] = tau
    return FINE


@entry("gravity torques for controllers", int64(PLAN, floats, floats), seconds=2, by_address=True, brief=True)
def gravity_of_model(plan, q, out):
    if q.shape[0] != coordinates(plan) or out.shape[0] < plan.dof_f.shape[1]:
        return WRONG_SHAPE
    work = np.empty(MOMENTS * (plan.body_i.shape[0] - 1))
    subtree_moments(plan.body_i, plan.body_f, q, work)
    gravity_torque(plan.body_i, plan.body_f, work, out)
    return FINE


@entry("Jacobians of the centre of mass for controllers", int64(PLAN, floats, table), seconds=2, by_address=True,
       brief=True)
def com_jacobian_of_model(plan, q, out):
    if q.shape[0] != coordinates(plan) or out.shape[0] != 3 or out.shape[1] != plan.dof_f.shape[1]:
        return WRONG_SHAPE
    work = np.empty(MOMENTS * (plan.body_i.shape[0] - 1))
    _, mass = subtree_moments(plan.body_i, plan.body_f, q, work)
    com_jacobian(plan.body_i, plan.body_f, mass, work, out.reshape(-1))
    return FINE


@entry("mass matrices for controllers", int64(PLAN, floats, table), seconds=5, by_address=True, brief=True)
def matrix_of_model(plan, q, out):
    nv = plan.dof_f.shape[1]
    if q.shape[0] != coordinates(plan) or out.shape[0] != nv or out.shape[1] != nv:
        return WRONG_SHAPE
    one_state(plan.body_i, plan.body_f, plan.dof_f, q, out.reshape(-1), floats_at_a_line(work_size(plan.body_i, nv)))
    return FINE


@entry("links for controllers", int64(PLAN, int64, int64, float64, float64, float64, floats, floats, floats, floats),
       seconds=3, by_address=True, brief=True)
def link_of_model(plan, mode, link, x, y, z, q, v, a, out):
    """Pose, velocity or acceleration of a link's point (x, y, z), in its frame: rotation 9, position 3; or linear and
    angular."""
    nv, n = plan.dof_f.shape[1], plan.body_i.shape[0] - 1
    if (q.shape[0] != coordinates(plan) or (mode >= VELOCITY_OF and v.shape[0] != nv)
            or (mode >= ACCELERATION_OF and a.shape[0] != nv) or out.shape[0] != (12 if mode == POSE_OF else 6)):
        return WRONG_SHAPE
    path = np.empty(n, np.int64)
    body_i, body_f, link_i, link_f = plan.body_i, plan.body_f, plan.link_i, plan.link_f
    if mode == POSE_OF:
        R, place = link_pose(body_i, body_f, link_i, link_f, link, (x, y, z), q, path, np.empty(POSE * n))
        store9(out, 0, R)
        store3(out, 9, place)
        return FINE
    change = a
    if mode == VELOCITY_OF:
        change = np.zeros(nv)
    _, _, w, lin, alpha, accelerated = link_motion(body_i, body_f, link_i, link_f, link, (x, y, z), q, v, change, path)
    store3(out, 0, lin if mode == VELOCITY_OF else accelerated)
    store3(out, 3, w if mode == VELOCITY_OF else alpha)
    return FINE


@entry("Jacobians for controllers", int64(PLAN, int64, float64, float64, float64, floats, table), seconds=3,
       by_address=True, brief=True)
def jacobian_of_model(plan, link, x, y, z, q, out):
    nv, n = plan.dof_f.shape[1], plan.body_i.shape[0] - 1
    if q.shape[0] != coordinates(plan) or out.shape[0] != 6 or out.shape[1] != nv:
        return WRONG_SHAPE
    path, poses = np.empty(n, np.int64), np.empty(POSE * n)
    _, place = link_pose(plan.body_i, plan.body_f, plan.link_i, plan.link_f, link, (x, y, z), q, path, poses)
    out[:] = 0.0
    link_jacobian(plan.body_i, plan.body_f, body_of(plan.link_i, link), place, path, poses, out.reshape(-1))
    return FINE


@entry("centre of mass for controllers", int64(PLAN, floats, floats, floats), seconds=3, by_address=True, brief=True)
def sums_of_model(plan, q, v, out):
    """Centre of mass, its velocity, angular momentum about it, mass; without velocities (v of length 0) the first
    alone."""
    nv, moving = plan.dof_f.shape[1], v.shape[0] > 0
    if q.shape[0] != coordinates(plan) or (moving and v.shape[0] != nv) or out.shape[0] != (10 if moving else 3):
        return WRONG_SHAPE
    states, zero, sums = np.empty(STATE * (plan.body_i.shape[0] - 1)), np.zeros(nv), np.empty(TOTALS)
    body_states(plan.body_i, plan.body_f, q, v if moving else zero, zero, states)
    totals(plan.body_i, plan.body_f, states, sums)
    mass = sums[11]
    for k in range(6 if moving else 3):
        out[k] = sums[k] / mass
    if moving:
        c, p = out, sums[3:6]
        out[6] = sums[6] - (c[1] * p[2] - c[2] * p[1])
        out[7] = sums[7] - (c[2] * p[0] - c[0] * p[2])
        out[8] = sums[8] - (c[0] * p[1] - c[1] * p[0])
        out[9] = mass
    return FINE


@entry("differences for controllers", int64(PLAN, floats, floats, floats), by_address=True, brief=True)
def difference_of_model(plan, q0, q1, out):
    """The velocity that leads from q0 to q1 in one second."""
    nq = coordinates(plan)
    if q0.shape[0] != nq or q1.shape[0] != nq or out.shape[0] < plan.dof_f.shape[1]:
        return WRONG_SHAPE
    coordinate_difference(plan.body_i, q0, q1, out)
    return FINE


MODEL_ENTRIES = (torques_of_model, matrix_of_model, link_of_model, jacobian_of_model, sums_of_model,
                 difference_of_model, gravity_of_model, com_jacobian_of_model)
