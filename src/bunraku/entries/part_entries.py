"""Forward dynamics by the workers of a team: each has its part of the mechanism (`plan/chunk_plan.py`)."""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.connection_equations import AGAIN, DYNAMICS
from bunraku.algorithms.forward_passes import scratch_sizes
from bunraku.algorithms.passive import passive_torque
from bunraku.entries.loop_entries import solved, solved_again
from bunraku.entries.signatures import (
    DOUBTFUL,
    FAILED,
    FINE,
    LOOP_OPEN,
    MOTION,
    PLAN,
    WRONG_SHAPE,
    counts,
    floats,
    int64,
    move,
    table,
)
from bunraku.jit import entry
from bunraku.plan import fields as f
from bunraku.spatial.lanes import WIDTH
from bunraku.tolerances import TOO_OPEN
from bunraku.workers.chunks_in_lanes import go_through_lanes
from bunraku.workers.engine import go_through
from bunraku.workers.loops_across_chunks import team_of


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


@entry("motion of chunks with loops", MOTION, seconds=16, by_address=True)
def part_closed(mode, plan, dof_f, q, v, tau, drives, external, a, work):
    """As `closed_one`, for one worker of a team: all of them call it at the same time, and get the same answer."""
    kind = mode % AGAIN
    if mode == kind + AGAIN:
        return solved_again(team_of(plan), kind, plan, q, v, tau, a, work)
    acting, end = tau, np.int64(plan.conn_i[-1, f.HEAD_TOTAL])
    if kind == DYNAMICS and plan.body_i[-1, f.HEAD_PASSIVE] != 0:
        acting = work[end:end + dof_f.shape[1]]
        passive_torque(plan.body_i, dof_f, q, v, tau, acting)
    pushed = external if kind == DYNAMICS else external[:0]
    return solved(team_of(plan), mode, plan, dof_f, q, v, acting, drives, pushed, a, work)


@entry("forward dynamics by several workers", int64(int64, int64, PLAN, counts, counts, counts, counts, floats,
                                                     floats, floats, floats, floats, floats), seconds=2)
def part_of_state(motion, mode, plan, q_index, v_index, drive_index, link_index, q, v, tau, drives, external, a):
    """One worker's part of the accelerations of one state of the whole mechanism, or of another `mode`; `drives` of
    the connections and forces on the links, or nothing. DOUBTFUL after a second look, LOOP_OPEN if a loop is open."""
    own_drives = np.empty(drive_index.shape[0] if drives.shape[0] > 0 else 0)
    pushed = np.empty(6 * link_index.shape[0] if external.shape[0] > 0 else 0)
    for k in range(pushed.shape[0]):
        pushed[k] = external[6 * link_index[k // 6] + k % 6]
    for k in range(own_drives.shape[0]):
        own_drives[k] = drives[drive_index[k]]
    own_q, own_v, own_tau = np.empty(q_index.shape[0]), np.empty(v_index.shape[0]), np.empty(v_index.shape[0])
    own_a, work = np.empty(v_index.shape[0]), np.empty(np.int64(plan.body_i[-1, f.HEAD_WORK]) + v_index.shape[0])
    for k in range(q_index.shape[0]):
        own_q[k] = q[q_index[k]]
    for k in range(v_index.shape[0]):
        own_v[k], own_tau[k] = v[v_index[k]], tau[v_index[k]]
    answer = move(motion, mode, plan, plan.dof_f, own_q, own_v, own_tau, own_drives, pushed, own_a, work)
    for k in range(v_index.shape[0]):
        a[v_index[k]] = own_a[k]
    judged = plan.conn_i[-1, f.HEAD_JUDGED]
    if judged > 0 and answer == FINE and work[judged + f.JUDGED_SOFT] > 0.0:
        answer = DOUBTFUL
    if judged > 0 and mode == DYNAMICS and work[judged + f.JUDGED_GAP] > TOO_OPEN * TOO_OPEN:
        answer = LOOP_OPEN
    return answer


@entry("states of several workers", types.void(table, types.int64[:, ::1], table), seconds=1)
def put_columns(part, runs, whole):
    """Write a worker's columns to their places in the whole; `runs`: first column here, first there, how many."""
    for r in range(part.shape[0]):
        for k in range(runs.shape[0]):
            here, there = np.uint64(runs[k, 0]), np.uint64(runs[k, 1])
            for i in range(np.uint64(runs[k, 2])):
                whole[r, there + i] = part[r, here + i]


@entry("forward dynamics in lanes", int64(int64, PLAN, floats, floats, floats, floats, int64), seconds=2)
def lanes_of_state(motion, plan, q, v, tau, a, size):
    """As `forward_one`, for a plan in lanes, by the address of `lanes_one` and the size of its work array."""
    nv = plan.dof_f.shape[1]
    if q.shape[0] != plan.body_i[-1, f.HEAD_NQ] or v.shape[0] != nv or tau.shape[0] != nv:
        return WRONG_SHAPE
    return move(motion, DYNAMICS, plan, plan.dof_f, q, v, tau, tau[:0], tau[:0], a, np.empty(size + nv))


@entry("forward dynamics, repeated", int64(int64, PLAN, floats, floats, floats, floats, floats, int64), seconds=2)
def repeat(motion, plan, q, v, tau, a, work, count):
    """The same evaluation again and again, for benchmarks: how many have failed."""
    failed = 0
    for _ in range(count):
        if move(motion, DYNAMICS, plan, plan.dof_f, q, v, tau, tau[:0], tau[:0], a, work) != FINE:
            failed += 1
    return failed
