"""Inverse kinematics of a batch of goals: one after the other, threads share the batch."""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.body_motion import STATE
from bunraku.algorithms.reaching import Problem, Room, are_poses, search
from bunraku.entries.signatures import PLAN, counts, floats, int64, table
from bunraku.jit import Held, allocating, entry, hold, inner, outlived
from bunraku.plan import fields as f

numbers = types.int64[:, ::1]
PROBLEM = Held(types.NamedTuple([counts, numbers, table, counts, floats, numbers, table, counts, counts, counts, counts,
                                 table, floats], Problem))
WORST, STARTS, STEPS, GAP, INFO = 0, 1, 2, 3, 4  # of a goal: largest error [m, rad]; starts and steps; largest gap
MOST_STEPS = 100      # of one start
THOROUGH_STEPS = 500  # of the last search, from the best of all


@allocating
def room_for(plan, problem, nq):
    """Scratch of one thread."""
    body_i, nv, n = plan.body_i, plan.dof_f.shape[1], problem.column_i.shape[0]
    head, ends = plan.conn_i.shape[0] - 1, problem.ends
    m, levels, rows = ends[ends.shape[0] - 1], ends.shape[0], np.int64(plan.conn_i[head, f.HEAD_ROWS])
    loops = nv if rows > 0 else 0
    return Room(np.zeros(nq), np.zeros(nv), np.zeros(STATE * (body_i.shape[0] - 1)), np.zeros(loops),
                np.zeros(loops), np.zeros(rows), np.zeros(np.int64(plan.conn_i[head, f.HEAD_TOTAL]) if rows > 0 else 0),
                np.zeros((loops, rows)), np.zeros((loops, np.int64(plan.conn_i[head, f.HEAD_FREEDOMS]))), np.zeros(m),
                np.zeros(m), np.zeros((m, n)), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n),
                np.zeros(levels), np.zeros((m, n)), np.zeros((m, m)), np.zeros((n + 1, n)), np.zeros(m))


@entry("inverse kinematics", int64(PLAN, PROBLEM, table, table, table, table, table, table, int64, int64), seconds=8)
def reach(plan, problem, goals, q0, wanted, q, miss, info, start, stop):
    """q of goals start .. stop - 1, from q0; `wanted`: coordinates for the posture, one row or one per goal."""
    room = room_for(plan, problem, q.shape[1])
    best = np.zeros(q.shape[1])
    return outlived(room, reach_each(problem, plan, hold(room), goals, q0, wanted, best, q, miss, info, start, stop))


@inner
def reach_each(problem, plan, room, goals, q0, wanted, best, q, miss, info, start, stop):
    for k in range(start, stop):
        if not are_poses(problem.task_i, goals[k]):
            info[k, WORST] = np.nan
            continue
        posture = wanted[min(k, wanted.shape[0] - 1)]
        info[k, WORST], info[k, STARTS], info[k, STEPS] = search(
            problem, plan, room, MOST_STEPS, THOROUGH_STEPS, goals[k], q0[k], posture, best, q[k], miss[k])
        info[k, GAP] = 0.0
        for row in range(room.gap.shape[0]):
            info[k, GAP] = max(info[k, GAP], abs(room.gap[row]))
    return stop - start
