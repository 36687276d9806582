"""Derivatives of inverse and forward dynamics of trees: one state, or a batch over lanes and threads; and the parts of
those of closed structures, one state."""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms import inverse_derivatives as inverse
from bunraku.algorithms import loop_derivatives as loop
from bunraku.algorithms.forward_passes import accelerate, accelerate_tree, scratch_sizes
from bunraku.algorithms.tree_factors import factorise, runs_of, solve, subtree_ends
from bunraku.checks import aligned
from bunraku.entries.explain import refuse
from bunraku.entries.forward_entries import forward_batch, forward_one
from bunraku.entries.pool import spread
from bunraku.entries.signatures import FAILED, FINE, PLAN, WRONG_SHAPE, flags, floats, int64, lane_array, table
from bunraku.jit import allocating, entry, inline
from bunraku.plan import fields as f
from bunraku.spatial.lane_memory import gather, scatter
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import clear, constant, load, store

SMALLEST_SHARE = 32  # states worth a thread
DEEP = 100  # joints on the way from a joint to the root, in the mean, from which on recursions solve for columns


@inline
def inverse_in(plan, q, v, a, external, number, outward, dq, dv, mass, work):
    return inverse.inverse_derivatives(plan.body_i, plan.body_f, plan.dof_f, plan.link_i, plan.link_f, plan.spring_i,
                                       plan.spring_f, q, v, a, external, number, outward, dq, dv, mass, work)


@inline
def right_sides(nv, body_i, dq, dv, mass, inertia_inverse):
    """Right-hand sides for the derivatives of accelerations from the derivatives of torques, in their place; those by
    torques in `inertia_inverse`. Where a joint's acceleration is given, that takes the place of its torque."""
    clear(inertia_inverse)
    one, none = constant(mass, 1.0), constant(mass, 0.0)
    for k in range(nv):
        store(inertia_inverse, k * nv + k, one)
    for k in range(nv * nv):
        store(dq, k, -load(dq, k))
        store(dv, k, -load(dv, k))
    for i in range(body_i.shape[0] - 1):
        if body_i[i, f.ELIMINATION] == f.LOCKED:
            for j in range(body_i[i, f.V_INDEX], body_i[i, f.V_INDEX] + body_i[i, f.DOF]):
                lock(body_i, j, nv, dq, dv, mass, inertia_inverse, one, none)


@inline
def lock(body_i, j, nv, dq, dv, mass, inertia_inverse, one, none):
    """Acceleration j is given: its row says so, and the others feel it through the mass matrix."""
    for k in range(nv):
        store(dq, j * nv + k, none)
        store(dv, j * nv + k, none)
        if k != j:
            store(inertia_inverse, k * nv + j, load(inertia_inverse, k * nv + j) - load(mass, k * nv + j))
            store(inertia_inverse, j * nv + k, none)
            store(mass, k * nv + j, none)
            store(mass, j * nv + k, none)
    store(inertia_inverse, j * nv + j, one)
    store(mass, j * nv + j, one)


@entry("derivatives of inverse dynamics", int64(PLAN, floats, floats, floats, floats, table, table, table), seconds=4,
       brief=True)
def inverse_derivatives_one(plan, q, v, a, external, dq, dv, mass):
    n, nv = plan.body_i.shape[0] - 1, plan.dof_f.shape[1]
    if q.shape[0] != plan.body_i[-1, f.HEAD_NQ] or v.shape[0] != nv or a.shape[0] != nv:
        return WRONG_SHAPE
    number, outward = np.empty(nv, np.int64), np.empty(nv, np.int64)
    inverse.number_velocities(plan.body_i, number, outward)
    work = np.empty(inverse.work_sizes(n, nv, plan.spring_i.shape[0]))
    residue = inverse_in(plan, q, v, a, external, number, outward, dq.reshape(-1), dv.reshape(-1), mass.reshape(-1),
                         work)
    return FINE if residue == 0.0 else FAILED


@entry("derivatives of forward dynamics", int64(PLAN, floats, floats, floats, floats, floats, table, table, table),
       seconds=8, brief=True)
def forward_derivatives_one(plan, q, v, tau, external, a, dq, dv, dtau):
    """Accelerations too. dtau: the inverse of the mass matrix; where accelerations are prescribed, their effect."""
    n, nv = plan.body_i.shape[0] - 1, plan.dof_f.shape[1]
    if q.shape[0] != plan.body_i[-1, f.HEAD_NQ] or v.shape[0] != nv or tau.shape[0] != nv:
        return WRONG_SHAPE
    sizes = scratch_sizes(plan.body_i, plan.dof_f, external.shape[0] > 0)
    size = inverse.work_sizes(n, nv, plan.spring_i.shape[0])
    work = np.empty(max(sizes[0] + sizes[1] + sizes[2] + sizes[3], size))
    margin, residue = accelerate_tree(plan, plan.dof_f, q, v, tau, external, a, work)
    if not (margin > 0.0 and residue == 0.0):
        return FAILED
    number, outward = np.empty(nv, np.int64), np.empty(nv, np.int64)
    inverse.number_velocities(plan.body_i, number, outward)
    mass = np.empty(nv * nv)
    dq, dv, dtau = dq.reshape(-1), dv.reshape(-1), dtau.reshape(-1)
    residue = inverse_in(plan, q, v, a, external, number, outward, dq, dv, mass, work[:size])
    right_sides(nv, plan.body_i, dq, dv, mass, dtau)
    run = np.empty(nv, np.int64)
    runs_of(number, outward, run)
    least = factorise(number, outward, run, mass)
    solve_in_lanes(number, outward, mass, dq, dv, dtau)
    return FINE if residue == 0.0 and least > 0.0 else FAILED


@allocating
def solve_in_lanes(number, outward, factors, dq, dv, dtau):
    """M^-1 times three matrices of one state, W columns of all their columns in a lane."""
    nv = number.shape[0]
    columns = (3 * nv + WIDTH - 1) // WIDTH
    end, filled, b = np.empty(nv, np.int64), np.empty(nv, np.int64), lane_array(nv * columns)
    subtree_ends(outward, end)
    rows = b.reshape((nv, columns * WIDTH))
    for i in range(nv):
        for j in range(nv):
            rows[i, j], rows[i, nv + j], rows[i, 2 * nv + j] = dq[i * nv + j], dv[i * nv + j], dtau[i * nv + j]
        for j in range(3 * nv, columns * WIDTH):
            rows[i, j] = 0.0
    solve(number, outward, end, True, factors, b, columns, filled)
    for i in range(nv):
        for j in range(nv):
            dq[i * nv + j], dv[i * nv + j], dtau[i * nv + j] = rows[i, j], rows[i, nv + j], rows[i, 2 * nv + j]


@entry("derivatives of inverse dynamics of batches",
       types.void(PLAN, table, table, table, table, table, table, table, flags, int64, int64), seconds=6)
def inverse_derivatives_batch(plan, q, v, a, external, dq, dv, mass, bad, start, stop):
    n, nq, nv, pushed = plan.body_i.shape[0] - 1, q.shape[1], v.shape[1], external.shape[0] > 0
    number, outward = np.empty(nv, np.int64), np.empty(nv, np.int64)
    inverse.number_velocities(plan.body_i, number, outward)
    q_lanes, v_lanes, a_lanes, judged = lane_array(nq), lane_array(nv), lane_array(nv), lane_array(1)
    external_lanes = lane_array(external.shape[1] if pushed else 0)
    work = lane_array(inverse.work_sizes(n, nv, plan.spring_i.shape[0]))
    dq_lanes, dv_lanes, mass_lanes = lane_array(nv * nv), lane_array(nv * nv), lane_array(nv * nv)
    for first in range(start, stop, WIDTH):
        gather(q, first, q_lanes)
        gather(v, first, v_lanes)
        gather(a, first, a_lanes)
        if pushed:
            gather(external, first, external_lanes)
        store(judged, 0, inverse_in(plan, q_lanes, v_lanes, a_lanes, external_lanes, number, outward, dq_lanes,
                                    dv_lanes, mass_lanes, work))
        scatter(dq_lanes, dq, first)
        scatter(dv_lanes, dv, first)
        scatter(mass_lanes, mass, first)
        for w in range(min(WIDTH, stop - first)):
            bad[first + w] = 0 if judged[0, w] == 0.0 else 1


@entry("derivatives of forward dynamics of batches",
       types.void(PLAN, table, table, table, table, table, table, table, table, flags, int64, int64), seconds=12)
def forward_derivatives_batch(plan, q, v, tau, external, a, dq, dv, dtau, bad, start, stop):
    n, nq, nv, pushed = plan.body_i.shape[0] - 1, q.shape[1], v.shape[1], external.shape[0] > 0
    number, outward = np.empty(nv, np.int64), np.empty(nv, np.int64)
    inverse.number_velocities(plan.body_i, number, outward)
    end, filled = np.empty(nv, np.int64), np.empty(nv, np.int64)
    subtree_ends(outward, end)
    run = np.empty(nv, np.int64)
    runs_of(number, outward, run)
    q_lanes, v_lanes, tau_lanes, a_lanes = lane_array(nq), lane_array(nv), lane_array(nv), lane_array(nv)
    external_lanes, judged = lane_array(external.shape[1] if pushed else 0), lane_array(4)
    sizes = scratch_sizes(plan.body_i, plan.dof_f, pushed)
    own, total, wrench, states = (lane_array(sizes[0]), lane_array(sizes[1]), lane_array(sizes[2]),
                                  lane_array(sizes[3]))
    work = lane_array(inverse.work_sizes(n, nv, plan.spring_i.shape[0]))
    dq_lanes, dv_lanes = lane_array(nv * nv), lane_array(nv * nv)
    mass_lanes, dtau_lanes = lane_array(nv * nv), lane_array(nv * nv)
    for first in range(start, stop, WIDTH):
        gather(q, first, q_lanes)
        gather(v, first, v_lanes)
        gather(tau, first, tau_lanes)
        if pushed:
            gather(external, first, external_lanes)
        margin, residue = accelerate(plan.body_i, plan.body_f, plan.dof_f, plan.link_i, plan.link_f, plan.spring_i,
                                     plan.spring_f, q_lanes, v_lanes, tau_lanes, external_lanes, a_lanes, own, total,
                                     wrench, states)
        store(judged, 0, margin)
        store(judged, 1, residue)
        store(judged, 2, inverse_in(plan, q_lanes, v_lanes, a_lanes, external_lanes, number, outward, dq_lanes,
                                    dv_lanes, mass_lanes, work))
        right_sides(nv, plan.body_i, dq_lanes, dv_lanes, mass_lanes, dtau_lanes)
        store(judged, 3, factorise(number, outward, run, mass_lanes))
        linked = plan.spring_i.shape[0] > 0  # they relate joints that do not carry each other
        solve(number, outward, end, linked, mass_lanes, dq_lanes, nv, filled)
        solve(number, outward, end, linked, mass_lanes, dv_lanes, nv, filled)
        solve(number, outward, end, False, mass_lanes, dtau_lanes, nv, filled)
        scatter(a_lanes, a, first)
        scatter(dq_lanes, dq, first)
        scatter(dv_lanes, dv, first)
        scatter(dtau_lanes, dtau, first)
        for w in range(min(WIDTH, stop - first)):
            fine = judged[0, w] > 0.0 and judged[1, w] == 0.0 and judged[2, w] == 0.0 and judged[3, w] > 0.0
            bad[first + w] = 0 if fine else 1


@entry("derivatives of closed structures",
       int64(PLAN, floats, floats, floats, floats, floats, floats, floats, table, table, table, table, table, table,
             table, table, table, floats), seconds=6, brief=True)
def closed_derivatives_one(plan, q, v, a, external, wrenches, rates, solved, dq, dv, mass, rows, row_rates, row_dq,
                           row_dv, ways, way_rates, seen):
    """Derivatives of the torques that the tree needs besides what its connections do, and of their constraints: see
    `loop_derivatives`. `solved`: work of the forward dynamics that gave `a`."""
    n, nv = plan.body_i.shape[0] - 1, plan.dof_f.shape[1]
    number, outward, owner = np.empty(nv, np.int64), np.empty(nv, np.int64), np.empty(nv, np.int64)
    inverse.number_velocities(plan.body_i, number, outward)
    k = 0
    for i in range(n):
        for _ in range(plan.body_i[i, f.DOF]):
            owner[k] = i
            k += 1
    tree = np.empty(inverse.work_sizes(n, nv, plan.spring_i.shape[0]))
    dq = dq.reshape(-1)
    residue = inverse_in(plan, q, v, a, external, number, outward, dq, dv.reshape(-1), mass.reshape(-1), tree)
    loop.loop_derivatives(plan.body_i, plan.body_f, plan.conn_i, plan.conn_f, number, outward, owner, wrenches, rates,
                          solved, tree, dq, rows.reshape(-1), row_rates.reshape(-1), row_dq.reshape(-1),
                          row_dv.reshape(-1), ways.reshape(-1), way_rates.reshape(-1), seen,
                          np.empty(loop.SIZE * nv))
    return FINE if residue == 0.0 else FAILED


def inverse_derivatives(plan, q, v, a, external, workers) -> np.ndarray:
    """dtau_dq, dtau_dv and dtau_da of one state, (3, nv, nv), or of a batch, (3, B, nv, nv)."""
    nv = plan.nv
    batch, (q, v, a, *rest) = aligned(("q", q, plan.nq), ("v", v, nv), ("a", a, nv), *_pushing(plan, external))
    inputs = {"v": v, "a": a, **({"external": rest[0]} if rest else {})}
    if batch is None:
        one = np.empty((3, nv, nv))
        pushed = rest[0] if rest else plan.nothing
        if inverse_derivatives_one.call(plan.arrays, q, v, a, pushed, one[0], one[1], one[2]) != FINE:
            refuse(plan, q, inputs)
        return one
    out, bad = np.empty((3, batch, nv * nv)), np.zeros(batch, np.uint8)
    pushed = rest[0] if rest else np.zeros((0, 6 * plan.links))
    inverse_derivatives_batch.load()
    spread(lambda start, stop: inverse_derivatives_batch.call(plan.arrays, q, v, a, pushed, out[0], out[1], out[2],
                                                              bad, start, stop), batch, WIDTH, workers, SMALLEST_SHARE)
    result = out.reshape(3, batch, nv, nv)
    if bad.any():
        refuse(plan, q, inputs, bad, result)
    return result


def forward_derivatives(plan, q, v, tau, external, workers) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations; and da_dq, da_dv and da_dtau of one state, (3, nv, nv), or of a batch, (3, B, nv, nv)."""
    nv = plan.nv
    batch, (q, v, tau, *rest) = aligned(("q", q, plan.nq), ("v", v, nv),
                                        ("tau", plan.zero_tau if tau is None else tau, nv), *_pushing(plan, external))
    inputs = {"v": v, "tau": tau, **({"external": rest[0]} if rest else {})}
    if _mean_depth(plan) > DEEP and batch != 0:
        return _of_deep_trees(plan, batch, q, v, tau, rest[0] if rest else None, inputs, workers)
    if batch is None:
        a, one = np.empty(nv), np.empty((3, nv, nv))
        pushed = rest[0] if rest else plan.nothing
        if forward_derivatives_one.call(plan.arrays, q, v, tau, pushed, a, one[0], one[1], one[2]) != FINE:
            refuse(plan, q, inputs)
        return a, one
    a, out, bad = np.empty((batch, nv)), np.empty((3, batch, nv * nv)), np.zeros(batch, np.uint8)
    pushed = rest[0] if rest else np.zeros((0, 6 * plan.links))
    forward_derivatives_batch.load()
    spread(lambda start, stop: forward_derivatives_batch.call(plan.arrays, q, v, tau, pushed, a, out[0], out[1],
                                                              out[2], bad, start, stop), batch, WIDTH, workers,
           SMALLEST_SHARE)
    result = out.reshape(3, batch, nv, nv)
    if bad.any():
        refuse(plan, q, inputs, bad, (a, result))
    return a, result


def _mean_depth(plan) -> float:
    """Velocities on the way from a joint to the root, in the mean."""
    if plan.nv <= DEEP:
        return 0.0
    parents, count = plan.body_i[:-1, f.PARENT].tolist(), plan.body_i[:-1, f.DOF].tolist()
    depth: list[int] = []
    for parent, own in zip(parents, count, strict=True):
        depth.append(own + (depth[parent] if parent >= 0 else 0))
    return float(np.dot(depth, count)) / plan.nv


def _of_deep_trees(plan, batch, q, v, tau, external, inputs, workers):
    """As `forward_derivatives`, state after state. A column of M^-1 by the articulated-body algorithm costs O(bodies),
    by factors of M of a deep tree O(bodies * depth)."""
    nv, light = plan.nv, _inertia_alone(plan)
    shape = () if batch is None else (batch,)
    a, by, bad = np.empty((*shape, nv)), np.empty((3, *shape, nv, nv)), np.zeros(batch or 1, np.uint8)
    for k in range(len(bad)):
        one = k if batch is not None else ...
        pushed = plan.nothing if external is None else external[one]
        bad[k] = not _of_a_deep_tree(plan, light, q[one], v[one], tau[one], pushed, a[one], by[:, one], workers)
    if bad.any():
        refuse(plan, q, inputs, *([] if batch is None else [bad, (a, by)]))
    return a, by


def _of_a_deep_tree(plan, light, q, v, tau, external, a, by, workers) -> bool:
    """Fill a and by; whether all is finite. Columns of M^-1 are accelerations that torques give at rest without weight
    (the plan `light`)."""
    nv, right = plan.nv, np.empty((3, plan.nv, plan.nv))
    if (forward_one.call(plan.arrays, q, v, tau, external, a) != FINE
            or inverse_derivatives_one.call(plan.arrays, q, v, a, external, right[0], right[1], right[2]) != FINE):
        return False
    np.negative(right[:2], out=right[:2])
    for row in plan.body_i[:-1][plan.body_i[:-1, f.ELIMINATION] == f.LOCKED]:
        right[:2, row[f.V_INDEX]:row[f.V_INDEX] + row[f.DOF]] = 0.0
    right[2] = np.eye(nv)
    columns = np.ascontiguousarray(right.swapaxes(1, 2)).reshape(3 * nv, nv)
    found, bad = np.empty_like(columns), np.zeros(3 * nv, np.uint8)
    still, nowhere = np.broadcast_to(q, (3 * nv, plan.nq)).copy(), np.zeros_like(columns)
    forward_batch.load()
    spread(lambda start, stop: forward_batch.call(light, still, nowhere, columns, np.zeros((0, 0)), found, bad, start,
                                                  stop), 3 * nv, WIDTH, workers, SMALLEST_SHARE)
    by[:] = found.reshape(3, nv, nv).swapaxes(1, 2)
    return not bad.any()


def _inertia_alone(plan):
    """Arrays of a plan without springs, dampers, limits and gravity, with armature."""
    body_i, body_f, dof_f = plan.body_i.copy(), plan.body_f.copy(), plan.dof_f.copy()
    body_i[-1, f.HEAD_PASSIVE] = body_i[-1, f.HEAD_SPRINGS] = 0
    body_f[-1, f.GRAVITY:f.GRAVITY + 3] = 0.0
    return plan.arrays._replace(body_i=body_i, body_f=body_f, dof_f=dof_f, spring_i=plan.spring_i[:0],
                                spring_f=plan.spring_f[:0])


def _pushing(plan, external):
    return [] if external is None else [("external", external, 6 * plan.links)]
