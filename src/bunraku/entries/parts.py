"""Forward dynamics by the workers of a team: each has its part of the mechanism (`plan/chunk.py`)."""

from __future__ import annotations

import numpy as np

from bunraku.algorithms.connections import DYNAMICS
from bunraku.algorithms.forward import scratch_sizes
from bunraku.algorithms.passive import passive_torque
from bunraku.entries.signatures import FAILED, FINE, MOTION, PLAN, counts, floats, int64, move
from bunraku.jit import entry
from bunraku.plan import fields as f
from bunraku.spatial.lanes import WIDTH
from bunraku.workers.engine import go_through
from bunraku.workers.lanes import go_through_lanes


@entry("motion of chunks", MOTION, seconds=8, by_address=True)
def part_one(mode, plan, dof_f, q, v, tau, drives, external, a, work):
    """As `tree_one`, for one worker of a team: all of them call it at the same time."""
    first, total, _, _ = scratch_sizes(plan.body_i, dof_f, False)
    acting, rest = tau, work[first:]
    if total > 0:
        acting = rest[:total]
        passive_torque(plan.body_i, dof_f, q, v, tau, acting)
    margin, residue = go_through(plan, dof_f, q, v, acting, work[:0], a, work)
    return FINE if margin > 0.0 and residue == 0.0 else FAILED


@entry("motion in lanes", MOTION, seconds=12, by_address=True)
def lanes_one(mode, plan, dof_f, q, v, tau, drives, external, a, work):
    """As `tree_one`, for a plan with like chunks in lanes (`plan/like.py`). Rotors in lanes are those of the plan,
    whatever `dof_f` says: not for the implicit solver. There are no external forces."""
    size, total, _, _ = scratch_sizes(plan.body_i, dof_f, False)
    acting = tau
    if total > 0:
        acting = work[size:size + total]
        passive_torque(plan.body_i, dof_f, q, v, tau, acting)
    rows, numbers = np.int64(plan.body_i[-1, f.HEAD_SHAPES]), plan.mail
    shape_i, chunk_i = plan.sum_ops[:rows], plan.sum_ops[rows:]
    freedoms, split = np.int64(shape_i[-1, f.HEAD_FREEDOMS_IN_LANES]), rows * f.BODY_F
    first = np.int64(shape_i[-1, f.HEAD_WORK])
    first += (-(work.ctypes.data // 8 + first)) % 8  # lanes start on a cache line
    height = (size - first) // WIDTH
    margin, residue = go_through_lanes(
        plan.ops, chunk_i, plan.boxes, numbers, shape_i, numbers[:split].reshape((rows, f.BODY_F)),
        numbers[split:split + f.DOF_F * freedoms].reshape((f.DOF_F, freedoms)), dof_f, q, v, acting, a, work,
        work[first:first + height * WIDTH].reshape((height, WIDTH)))
    return FINE if margin > 0.0 and residue == 0.0 else FAILED


@entry("forward dynamics by several workers", int64(int64, PLAN, counts, counts, floats, floats, floats, floats),
       seconds=2)
def part_of_state(motion, plan, q_index, v_index, q, v, tau, a):
    """One worker's part of the accelerations of one state of the whole mechanism."""
    own_q, own_v, own_tau = np.empty(q_index.shape[0]), np.empty(v_index.shape[0]), np.empty(v_index.shape[0])
    own_a, work = np.empty(v_index.shape[0]), np.empty(np.int64(plan.body_i[-1, f.HEAD_WORK]) + v_index.shape[0])
    for k in range(q_index.shape[0]):
        own_q[k] = q[q_index[k]]
    for k in range(v_index.shape[0]):
        own_v[k], own_tau[k] = v[v_index[k]], tau[v_index[k]]
    answer = move(motion, DYNAMICS, plan, plan.dof_f, own_q, own_v, own_tau, own_tau[:0], own_tau[:0], own_a, work)
    for k in range(v_index.shape[0]):
        a[v_index[k]] = own_a[k]
    return answer


@entry("forward dynamics, repeated", int64(int64, PLAN, floats, floats, floats, floats, floats, int64), seconds=2)
def repeat(motion, plan, q, v, tau, a, work, count):
    """The same evaluation again and again, for benchmarks: how many have failed."""
    failed = 0
    for _ in range(count):
        if move(motion, DYNAMICS, plan, plan.dof_f, q, v, tau, tau[:0], tau[:0], a, work) != FINE:
            failed += 1
    return failed
