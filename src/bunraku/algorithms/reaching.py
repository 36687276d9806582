"""Inverse kinematics: coordinates at which frames of links have given poses, loops are closed and limits are kept.

Idea: Gauss-Newton steps on the tangent space of the coordinates, damped by the remaining error (Levenberg-Marquardt).
Levels of priority one after the other: each level moves only what leaves all before it as they are. Joints that would
leave their range are fixed at its end, and the step is solved again without them (active set).
References: Nakamura, Hanafusa and Yoshikawa (1987): priorities; Sugihara (2011): damping by the error. Cost of a step:
O(bodies above the frames) + O(rows^2 columns). Limits: a local method; starts elsewhere are left to the caller.

Rows are ordered by level: those of connections, then of targets, three each for a position and an
orientation. Columns are the velocities that can move any of them. J (rows, columns) is the motion of the frames, e
(rows) what they lack: a full step is J dq = e.
"""

import math
from typing import Any, NamedTuple

from bunraku.algorithms.body_motion import STATE
from bunraku.algorithms.constraint_jacobian import gaps, motion_of_gaps
from bunraku.algorithms.priority_steps import bounded_step, correction
from bunraku.algorithms.states import (
    advance_coordinates,
    coordinate_difference,
    load_quaternion,
    quaternion_of_vector,
    vector_of_quaternion,
)
from bunraku.algorithms.tree import joint_axes, joint_column, load_pose, place, row3, row9, unit9, zero3
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import add, cross, dot, load3, load9, matmul, matvec, norm, scale, store3, store9, sub
from bunraku.tolerances import IK_DAMPING, IK_EXACT, IK_GIVEN_UP, IK_LEVEL, IK_STILL

# task_i (targets, TASK_I) int64
TASK_BODY = 0         # body that carries the link
TASK_POSITION = 1     # first of three rows, -1: free
TASK_ORIENTATION = 2  # the same
TASK_I = 3
# task_f (targets, TASK_F)
TASK_TURN = 0         # 9, rotation of the link in the body
TASK_POINT = 9        # 3, the point in the body [m]
TASK_WEIGHTS = 12     # 2, of position [1/m] and orientation [1/rad]
TASK_F = 14
GOAL = 12             # floats of a goal: rotation 9, position 3
# column_i (columns, 2) int64
COLUMN_DOF, COLUMN_Q = 0, 1   # number of the velocity; its coordinate if it has limits, else -1
# column_f (columns, COLUMN_F)
COLUMN_LOWER, COLUMN_UPPER, COLUMN_FROM, COLUMN_WIDTH, COLUMN_F = 0, 1, 2, 3, 4
"""Limits; range of the starts: from FROM on if the coordinate is limited, else from the given start + FROM on."""

# ball_i (balls) int64: where the quaternion of a spherical joint with a limit is in q; ball_f (balls): its largest turn
# settings
TOLERANCE, POSTURE = 0, 1     # [m, rad]; weight of the posture


class Problem(NamedTuple):
    """What all goals of a batch share: tables as above, and

    chain (bodies)   bodies above the frames (all, if there are connections), parents first
    column_of (nv)   column of a velocity, -1 if it has none
    ends (levels)    one behind the last row of each level
    first (1)        the first of these
    together (1)     the last of these: all rows as one level
    seeds (starts, columns)  numbers from 0 to 1, by which starts are spread over the ranges
    """

    chain: Any
    task_i: Any
    task_f: Any
    ball_i: Any
    ball_f: Any
    column_i: Any
    column_f: Any
    column_of: Any
    ends: Any
    first: Any
    together: Any
    seeds: Any
    settings: Any


class Room(NamedTuple):
    """Scratch of one thread: rows m, columns n."""

    trial: Any    # nq, coordinates after a step
    dq: Any       # nv, the step
    states: Any   # STATE per body: poses
    still: Any    # nv, zero                                 this and the next five: only for connections
    own: Any      # nv
    gap: Any      # rows of connections
    work: Any     # as of `ada`
    columns: Any  # nv, rows of connections
    ways: Any     # nv, freedoms of connections
    e: Any        # m
    e_trial: Any  # m
    J: Any        # m, n
    step: Any     # n
    away: Any     # n, from the wanted coordinates
    least: Any    # n, bounds of the step
    most: Any     # n
    free: Any     # n
    damping: Any  # levels
    P: Any        # m, n
    A: Any        # m, m
    Z: Any        # n + 1, n
    y: Any        # m


@inline
def place_bodies(chain, body_i, body_f, q, states):
    """Rotation and position in the world of the bodies in `chain`, parents first."""
    for k in range(chain.shape[0]):
        i = chain[k]
        parent = body_i[i, f.PARENT]
        if parent < 0:
            R, x = unit9(q), zero3(q)
        else:
            R, x = load_pose(states, STATE * parent)
        R, x = place(body_i[i, f.KIND], body_i, body_f, i, q, joint_axes(body_f, i, R), x)
        store9(states, STATE * i + f.STATE_ROTATION, R)
        store3(states, STATE * i + f.STATE_POSITION, x)


@inline
def rotation_vector(R):
    """Rotation vector of a rotation matrix, at most half a turn, exact to the last digits for small ones."""
    x, y, z = R[7] - R[5], R[2] - R[6], R[3] - R[1]
    trace = R[0] + R[4] + R[8]
    if trace > 0.0:
        return vector_of_quaternion((1.0 + trace, x, y, z))
    if R[0] >= R[4] and R[0] >= R[8]:
        return vector_of_quaternion((x, 1.0 + R[0] - R[4] - R[8], R[1] + R[3], R[2] + R[6]))
    if R[4] >= R[8]:
        return vector_of_quaternion((y, R[1] + R[3], 1.0 + R[4] - R[0] - R[8], R[5] + R[7]))
    return vector_of_quaternion((z, R[2] + R[6], R[5] + R[7], 1.0 + R[8] - R[0] - R[4]))


@inline
def task_errors(task_i, task_f, goal, states, e, miss):
    """Rows of the targets: what their frames lack, weighted; distance and angle of each. Returns the largest."""
    worst = 0.0
    for t in range(task_i.shape[0]):
        R, x = load_pose(states, STATE * task_i[t, TASK_BODY])
        o, k = GOAL * t, task_i[t, TASK_POSITION]
        if k >= 0:
            lack = sub(load3(goal, o + 9), add(x, matvec(R, row3(task_f, t, TASK_POINT))))
            store3(e, k, scale(lack, task_f[t, TASK_WEIGHTS]))
            miss[2 * t] = norm(lack)
            worst = max(worst, miss[2 * t])
        k = task_i[t, TASK_ORIENTATION]
        if k >= 0:
            N, M = matmul(R, row9(task_f, t, TASK_TURN)), load9(goal, o)
            N = (N[0], N[3], N[6], N[1], N[4], N[7], N[2], N[5], N[8])
            lack = rotation_vector(matmul(M, N))
            store3(e, k, scale(lack, task_f[t, TASK_WEIGHTS + 1]))
            miss[2 * t + 1] = norm(lack)
            worst = max(worst, miss[2 * t + 1])
    return worst


@inline
def are_poses(task_i, goal):
    """Whether all goals are finite, and rotations orthonormal and right-handed."""
    for t in range(task_i.shape[0]):
        o = GOAL * t
        if task_i[t, TASK_POSITION] >= 0 and not norm(load3(goal, o + 9)) < math.inf:
            return False
        if task_i[t, TASK_ORIENTATION] >= 0:
            x, y, z = load3(goal, o), load3(goal, o + 3), load3(goal, o + 6)
            wrong = max(abs(dot(x, y)), abs(dot(y, z)), abs(dot(z, x)), abs(dot(x, x) - 1.0), abs(dot(y, y) - 1.0),
                        abs(dot(z, z) - 1.0))
            if not (wrong <= 1e-6 and dot(cross(x, y), z) > 0.0):
                return False
    return True


@inline
def task_columns(task_i, task_f, column_of, body_i, body_f, states, J):
    """J of the targets' rows: velocity of the point and angular velocity per unit of each velocity."""
    for t in range(task_i.shape[0]):
        i = task_i[t, TASK_BODY]
        R, x = load_pose(states, STATE * i)
        point = add(x, matvec(R, row3(task_f, t, TASK_POINT)))
        at, turn = task_i[t, TASK_POSITION], task_i[t, TASK_ORIENTATION]
        w_x, w_R = task_f[t, TASK_WEIGHTS], task_f[t, TASK_WEIGHTS + 1]
        while i >= 0:
            R, x = load_pose(states, STATE * i)
            r = sub(x, point)
            for d in range(body_i[i, f.DOF]):
                c = column_of[body_i[i, f.V_INDEX] + d]
                if c >= 0:
                    s_w, s_v = joint_column(body_i[i, f.KIND], body_f[i, f.RATE_ANGULAR], body_f[i, f.RATE_LINEAR], d,
                                            R, r)
                    for k in range(3):
                        if at >= 0:
                            J[at + k, c] = w_x * s_v[k]
                        if turn >= 0:
                            J[turn + k, c] = w_R * s_w[k]
            i = body_i[i, f.PARENT]


@inner
def errors(problem, plan, room, goal, q, e, miss):
    """All rows e at q; returns the largest error of a target or loop [m, rad]."""
    states, gap = room.states, room.gap
    place_bodies(problem.chain, plan.body_i, plan.body_f, q, states)
    worst, rows = task_errors(problem.task_i, problem.task_f, goal, states, e, miss), gap.shape[0]
    if rows > 0:
        gaps(plan.body_i, plan.body_f, plan.conn_i, plan.conn_f, q, room.still, room.own, gap, room.work)
        for k in range(rows):
            e[k] = -gap[k]
            worst = max(worst, abs(gap[k]))
    return worst


@inner
def jacobians(problem, plan, room):
    """All rows of J, at the poses of the last `errors`. What is zero by structure has been zeroed by the caller."""
    J, column_of, rows = room.J, problem.column_of, room.gap.shape[0]
    task_columns(problem.task_i, problem.task_f, column_of, plan.body_i, plan.body_f, room.states, J)
    if rows > 0:
        columns = room.columns
        motion_of_gaps(plan.body_i, plan.body_f, plan.conn_i, plan.conn_f, room.states, columns, room.ways, room.own,
                       room.work)
        for j in range(column_of.shape[0]):
            if column_of[j] >= 0:
                for k in range(rows):
                    J[k, column_of[j]] = columns[j, k]


@inner
def descend(thorough, most_steps, ends, posture, problem, plan, room, goal, wanted, q, miss):
    """Improve q until the errors are zero or shrink no more. Returns (largest error, weighted sum of squares, steps).

    thorough   also while errors shrink slowly: for the nearest pose to one that cannot be reached
    ends       one behind the last row of each level
    posture    weight of the last level, which pulls q towards `wanted`; 0: none
    """
    column_i, column_f, tolerance = problem.column_i, problem.column_f, problem.settings[TOLERANCE]
    e, e_trial, least, most, step, trial = room.e, room.e_trial, room.least, room.most, room.step, room.trial
    worst = errors(problem, plan, room, goal, q, e, miss)
    merit = merit_of(e, ends) + posture_merit(posture, ends, problem, plan, room, wanted, q)
    strength, before, count = 1.0, merit, 0
    more_levels = ends.shape[0] > 1 or posture > 0.0
    while count < most_steps:
        if posture == 0.0 and (worst <= IK_EXACT or merit <= IK_EXACT * IK_EXACT):
            break
        jacobians(problem, plan, room)
        for j in range(step.shape[0]):
            k = column_i[j, COLUMN_Q]
            least[j] = min(column_f[j, COLUMN_LOWER] - q[k], 0.0) if k >= 0 else -math.inf
            most[j] = max(column_f[j, COLUMN_UPPER] - q[k], 0.0) if k >= 0 else math.inf
        accepted, moved, there, found = False, 0.0, worst, merit
        while count < most_steps:
            count += 1
            first = 0
            for level in range(ends.shape[0]):
                room.damping[level] = IK_DAMPING * strength * squares(e, first, ends[level])
                first = ends[level]
            bounded_step(room.J, e, ends, room.damping, room.away, posture / (1.0 + strength), least, most, room.free,
                         room.P, room.A, room.Z, room.y, step)
            moved = take_step(problem, plan, q, step, room.dq, trial)
            there = errors(problem, plan, room, goal, trial, e_trial, miss)
            if more_levels:
                correction(e_trial, ends[0], least, most, room.P, room.A, room.y, step)
                moved = take_step(problem, plan, q, step, room.dq, trial)
                there = errors(problem, plan, room, goal, trial, e_trial, miss)
            found = merit_of(e_trial, ends) + posture_merit(posture, ends, problem, plan, room, wanted, trial)
            if found < merit:
                accepted = True
                break
            posture_merit(posture, ends, problem, plan, room, wanted, q)
            if moved < IK_STILL or not strength < 1e12:
                break
            strength = max(4.0 * strength, 1e-3)
        if not accepted:
            worst = errors(problem, plan, room, goal, q, e, miss)
            break
        strength *= 0.25
        assign(q, trial)
        assign(e, e_trial)
        hardly = worst <= tolerance and there > 0.5 * worst
        merit, worst = found, there
        if (posture == 0.0 and hardly) or moved < IK_STILL:
            break
        if count % 4 == 0 and not thorough and posture == 0.0:
            if merit > IK_GIVEN_UP * before and worst > tolerance:
                break
            before = merit
    return worst, merit, count


@inner
def search(problem, plan, room, most_steps, thorough_steps, goal, q0, wanted, best, q, miss):
    """From q0 and, as long as the goal is not reached, from further starts; then on from the best of all, for the
    nearest pose. Returns (largest error, starts, steps).

    A goal that can be reached is reached sooner with all rows as one level: levels matter where it cannot, and for the
    posture.
    """
    least_merit, steps, starts = math.inf, 0, problem.seeds.shape[0]
    tolerance, posture = problem.settings[TOLERANCE], problem.settings[POSTURE]
    for s in range(starts):
        start_somewhere(s, problem, plan, room, q0, q)
        worst, merit, count = descend(False, most_steps, problem.together, 0.0, problem, plan, room, goal, wanted, q,
                                      miss)
        steps += count
        if worst <= tolerance and posture == 0.0:
            return worst, s + 1, steps
        if merit < least_merit:
            assign(best, q)
            least_merit = merit
        if worst <= tolerance:
            starts = s + 1
            break
    assign(q, best)
    worst, merit, count = descend(True, thorough_steps, problem.ends, posture, problem, plan, room, goal, wanted, q,
                                  miss)
    steps += count
    if problem.ends.shape[0] > 1 or posture > 0.0:  # what the steps for lower levels have left of the first
        _, _, count = descend(True, most_steps, problem.first, 0.0, problem, plan, room, goal, wanted, q, miss)
        steps += count
        worst = errors(problem, plan, room, goal, q, room.e, miss)
    return worst, starts, steps


@inline
def assign(x, y):
    for k in range(x.shape[0]):
        x[k] = y[k]


@inline
def squares(e, first, end):
    total = 0.0
    for k in range(first, end):
        total += e[k] * e[k]
    return total


@inline
def merit_of(e, ends):
    """Sum of squares; a level counts IK_LEVEL times less than the one before."""
    first, weight, total = 0, 1.0, 0.0
    for level in range(ends.shape[0]):
        total += weight * squares(e, first, ends[level])
        weight *= IK_LEVEL
        first = ends[level]
    return total


@inline
def posture_merit(posture, ends, problem, plan, room, wanted, q):
    """Weighted square of the way from q to the wanted coordinates, which is written to `away`."""
    total, away = 0.0, room.away
    if posture > 0.0:
        coordinate_difference(plan.body_i, q, wanted, room.dq)
        weight = posture
        for _ in range(ends.shape[0]):
            weight *= IK_LEVEL
        for j in range(away.shape[0]):
            away[j] = room.dq[problem.column_i[j, COLUMN_DOF]]
            total += weight * away[j] * away[j]
    return total


@inline
def take_step(problem, plan, q, step, dq, trial):
    """trial = q moved by the step; returns its largest entry."""
    largest, column_i = 0.0, problem.column_i
    for j in range(dq.shape[0]):
        dq[j] = 0.0
    for j in range(step.shape[0]):
        dq[column_i[j, COLUMN_DOF]] = step[j]
        largest = max(largest, abs(step[j]))
    advance_coordinates(plan.body_i, q, dq, trial)
    turn_back(problem.ball_i, problem.ball_f, trial)
    return largest


@inline
def turn_back(ball_i, ball_f, q):
    """Turn spherical joints that are beyond their limit back to it."""
    for k in range(ball_i.shape[0]):
        at = ball_i[k]
        phi = vector_of_quaternion(load_quaternion(q, at))
        angle = norm(phi)
        if angle > ball_f[k]:
            q[at], q[at + 1], q[at + 2], q[at + 3] = quaternion_of_vector(scale(phi, ball_f[k] / angle))


@inline
def start_somewhere(number, problem, plan, room, q0, q):
    """q = start `number`: 0 is q0 within the limits, the others are spread over the range of each joint."""
    dq, column_f = room.dq, problem.column_f
    for j in range(dq.shape[0]):
        dq[j] = 0.0
    for j in range(column_f.shape[0]):
        dof, k = problem.column_i[j, COLUMN_DOF], problem.column_i[j, COLUMN_Q]
        at = q0[k] if k >= 0 else 0.0
        if number > 0:
            dq[dof] = column_f[j, COLUMN_FROM] + column_f[j, COLUMN_WIDTH] * problem.seeds[number, j] - at
        elif k >= 0:
            dq[dof] = min(max(at, column_f[j, COLUMN_LOWER]), column_f[j, COLUMN_UPPER]) - at
    advance_coordinates(plan.body_i, q0, dq, q)
    turn_back(problem.ball_i, problem.ball_f, q)
