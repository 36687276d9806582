"""Velocities toward goals: one damped least-squares step of inverse kinematics as a velocity, for control loops.

Idea: targets lack e of their goals; velocities are sought with J v = gain e + the goals' own motion, by the levels and
the active set of `algorithms/priority_steps.py`. Loops come first, and are kept closed: J_loops v = -gain gap. Joints
stay within their range, v <= limit_gain (upper - q); where one would be faster than its speed, all are slowed down in
proportion, so that frames keep their directions. Damping by the error, as in inverse kinematics, is none at the goal:
errors decay as exp(-gain t) as they become small, and far or unreachable goals ask for no large speeds. References:
Nakamura, Hanafusa and Yoshikawa (1987): levels; Sugihara (2011): damping. Cost: of one step of inverse kinematics.
"""

from __future__ import annotations

import math

import numpy as np

from bunraku.algorithms.priority_steps import bounded_step
from bunraku.algorithms.reaching import (
    COLUMN_DOF,
    COLUMN_LOWER,
    COLUMN_Q,
    COLUMN_UPPER,
    GOAL,
    TASK_ORIENTATION,
    TASK_POSITION,
    TASK_WEIGHTS,
    are_poses,
    errors,
    jacobians,
    squares,
)
from bunraku.algorithms.states import coordinate_difference
from bunraku.entries.inverse_kinematics_entries import PROBLEM, room_for
from bunraku.entries.model_entries import coordinates
from bunraku.entries.signatures import FAILED, FINE, PLAN, WRONG_SHAPE, floats, int64
from bunraku.jit import called_by_address, entry, hold, inner, outlived

GAIN, POSTURE_GAIN, LIMIT_GAIN, DAMPING, SETTINGS = 0, 1, 2, 3, 4
"""Settings: [1/s], [1/s], [1/s], part of the sum of squares of the errors."""
MOTION = 6  # of a goal: linear, angular velocity

# plan, problem, goal, motion, posture, speeds, settings, exact, q, out
SIGNATURE = int64(PLAN, PROBLEM, floats, floats, floats, floats, floats, int64, floats, floats)


@entry("velocities toward goals", SIGNATURE, seconds=8, by_address=True)
def velocity_toward(plan, problem, goal, motion, posture, speeds, settings, exact, q, out):
    """`out` (nv) toward one goal, whose frames move by `motion`. `speeds`: the largest of each column; `exact`: number
    of levels at the beginning that are not damped (loops, held links)."""
    tasks, nq = problem.task_i.shape[0], coordinates(plan)
    if (goal.shape[0] != GOAL * tasks or motion.shape[0] != MOTION * tasks or q.shape[0] != nq
            or out.shape[0] < plan.dof_f.shape[1] or posture.shape[0] != nq or settings.shape[0] != SETTINGS):
        return WRONG_SHAPE
    if not are_poses(problem.task_i, goal):
        return FAILED
    room, miss = room_for(plan, problem, nq), np.zeros(2 * tasks)
    return outlived(room, seek(problem, plan, hold(room), goal, motion, posture, speeds, settings, exact, q, miss, out))


@inner
def seek(problem, plan, room, goal, motion, posture, speeds, settings, exact, q, miss, out):
    e, J, ends, task_i = room.e, room.J, problem.ends, problem.task_i
    column_i, column_f, gain = problem.column_i, problem.column_f, settings[GAIN]
    errors(problem, plan, room, goal, q, e, miss)
    jacobians(problem, plan, room)
    first = 0
    for level in range(ends.shape[0]):
        room.damping[level] = 0.0 if level < exact else settings[DAMPING] * squares(e, first, ends[level])
        first = ends[level]
    for k in range(e.shape[0]):
        e[k] *= gain
    for t in range(task_i.shape[0]):
        for part in range(2):
            at = task_i[t, TASK_POSITION if part == 0 else TASK_ORIENTATION]
            if at >= 0:
                for k in range(3):
                    e[at + k] += problem.task_f[t, TASK_WEIGHTS + part] * motion[MOTION * t + 3 * part + k]
    rest = settings[POSTURE_GAIN]
    if rest > 0.0:
        coordinate_difference(plan.body_i, q, posture, room.dq)
    for j in range(column_i.shape[0]):
        k = column_i[j, COLUMN_Q]
        room.away[j] = rest * room.dq[column_i[j, COLUMN_DOF]]
        room.least[j], room.most[j] = -math.inf, math.inf
        if k >= 0:
            room.least[j] = settings[LIMIT_GAIN] * (column_f[j, COLUMN_LOWER] - q[k])
            room.most[j] = settings[LIMIT_GAIN] * (column_f[j, COLUMN_UPPER] - q[k])
    bounded_step(J, e, ends, room.damping, room.away, 1.0 if rest > 0.0 else 0.0, room.least, room.most, room.free,
                 room.P, room.A, room.Z, room.y, room.step)
    for j in range(plan.dof_f.shape[1]):
        out[j] = 0.0
    size, slower = 0.0, 1.0
    for j in range(column_i.shape[0]):
        size += abs(room.step[j])
        slower = max(slower, abs(room.step[j]) / speeds[j])
    for j in range(column_i.shape[0]):
        out[column_i[j, COLUMN_DOF]] = room.step[j] / slower
    return FINE if size < math.inf else FAILED


def toward(address, *args):
    """Velocities for compiled functions of users, by the address of `velocity_toward`."""
    return velocity_toward.function(*args)


called_by_address(toward, SIGNATURE)
