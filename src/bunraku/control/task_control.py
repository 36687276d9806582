"""Operational-space control: a link moves as a unit mass on springs, the rest of the motion keeps a posture.

With J the Jacobian of a point of the link, x'' the acceleration asked for and tau_0 the torques of the posture,

    Lambda = (J M^-1 J^T)^-1                                                            [Khatib 1987, eq. 19]
    tau = h + tau_0 + J^T Lambda (x'' - J' v - J M^-1 tau_0),    x'' = kp e + kd (x'_ref - x')                      (1)

so that the posture's torques do not accelerate the point. Directions in which it cannot move are left out. Cost: mass
matrix, its factors (n^3 / 6), bias, and 6 triangular solutions.
"""

from __future__ import annotations

import math

import numpy as np
from numba.extending import register_jitable

from bunraku.checks import as_array, as_rotation, as_vector, hint
from bunraku.control.controller import Controller, chosen, coordinates_of, gains
from bunraku.control.joint_control import OTHER
from bunraku.control.small_matrices import back_substitution, factorise, forward_substitution
from bunraku.errors import ModelError, ShapeError
from bunraku.evaluate import kinematics
from bunraku.mechanism.mechanism import as_mechanism

ROUNDED = 1e-14   # pivots of the mass matrix below it are those of massless directions
SINGULAR = 1e-9   # pivots of (J M^-1 J^T) below it, relative to their diagonal entries: the point cannot move there
TASKS = {"position": (0, 3), "orientation": (3, 6), "pose": (0, 6)}


def operational_space(mechanism, link: str, kp, kd, target=None, *, task: str = "pose", point=(0.0, 0.0, 0.0),
                      posture=None, posture_kp=0.0, posture_kd=1.0, joints=None) -> Controller:
    """Control of the pose of a link, or of its position or orientation alone, eq. (1).

    kp, kd          [1/s^2, 1/s] a number or 6 (linear, angular); changed by controller["kp"]
    target          (rotation, position) of the link's point in the world, at rest; by default where it is in `posture`;
                    changed by controller["rotation"] and controller["position"]
    task            "pose", "position" or "orientation"
    point           of the link, in its frame
    posture         coordinates that the remaining motion tends to, with posture_kp and posture_kd [N m/rad, N m s/rad]
    joints          that are driven; by default all that are actuated. The law is exact if these are all joints
    """
    m = as_mechanism(mechanism)
    m.find_link(link, "operational_space")
    on, x = chosen(m, joints, "operational_space"), as_vector("operational_space: point", point)
    rest = coordinates_of(m, "operational_space: posture", posture)
    if task not in TASKS:
        raise ModelError(f"operational_space: task {task!r} is not one of {', '.join(TASKS)}"
                         f"{hint(task, TASKS, close=True)}")
    first, end = TASKS[task]
    if target is None:
        R, p = kinematics(m, rest).poses[link] if link != "ground" else (np.eye(3), np.zeros(3))
        target = R, p + R @ x
    try:
        R, p = (as_array("operational_space: target", part) for part in target)
    except (TypeError, ValueError):
        raise ShapeError("operational_space: target must be (rotation, position)") from None
    R = as_rotation("operational_space: rotation of the target", R)
    p = as_vector("operational_space: position of the target", p)
    px, py, pz = map(float, x)
    nv, nq, size = m.nv, m.nq, end - first

    def operational_space(t, q, v, params, tau, model):
        if model.nv != nv or params.shape[0] != 24 + 2 * nv + nq:
            raise ValueError(OTHER)
        pose, motion, drift, e, zero = np.empty(12), np.empty(6), np.empty(6), np.empty(6), np.zeros(nv)
        J, M, push, task_force = np.empty((6, nv)), np.empty((nv, nv)), np.empty(nv), np.empty(size)
        model.pose(link, q, pose, (px, py, pz))
        model.velocity(link, q, v, motion, (px, py, pz))
        model.acceleration(link, q, v, zero, drift, (px, py, pz))
        model.jacobian(link, q, J, (px, py, pz))
        model.mass_matrix(q, M)
        model.bias(q, v, tau)
        for k in range(3):
            e[k] = params[21 + k] - pose[9 + k]
        rotation_error(params[12:21], pose, e)
        model.difference(q, params[24 + 2 * nv:], push)
        for j in range(nv):
            push[j] = params[24 + j] * push[j] - params[24 + nv + j] * v[j]
            tau[j] += push[j]
        factorise(M, ROUNDED)
        forward_substitution(M, push)
        X, Y = np.empty((size, nv)), np.empty((size, size))
        for i in range(size):
            X[i] = J[first + i]
            forward_substitution(M, X[i])
        for i in range(size):
            k = first + i
            task_force[i] = params[k] * e[k] - params[6 + k] * motion[k] - drift[k]
            for j in range(nv):
                task_force[i] -= X[i, j] * push[j]
            for c in range(i + 1):
                Y[i, c] = 0.0
                for j in range(nv):
                    Y[i, c] += X[i, j] * X[c, j]
        factorise(Y, SINGULAR)
        forward_substitution(Y, task_force)
        back_substitution(Y, task_force)
        for j in range(nv):
            for i in range(size):
                tau[j] += J[first + i, j] * task_force[i]
            tau[j] *= on[j]
    return Controller(operational_space, {
        "kp": _six("kp", kp), "kd": _six("kd", kd), "rotation": R, "position": p,
        "posture_kp": gains("operational_space: posture_kp", posture_kp, on),
        "posture_kd": gains("operational_space: posture_kd", posture_kd, on), "posture": rest})


def _six(name: str, value) -> np.ndarray:
    array = as_array(f"operational_space: {name}", value)
    if array.shape not in ((), (6,)) or not np.isfinite(array).all() or (array < 0).any():
        raise ShapeError(f"operational_space: {name} must be a number or 6 of them, not negative")
    return np.broadcast_to(array, 6).astype(float)


@register_jitable
def rotation_error(wanted, pose, e):
    """e[3:6] = the rotation vector, in world axes, that turns the rotation at hand into the one that is wanted."""
    R = np.empty((3, 3))  # wanted times at hand, transposed
    for i in range(3):
        for j in range(3):
            R[i, j] = (wanted[3 * i] * pose[3 * j] + wanted[3 * i + 1] * pose[3 * j + 1]
                       + wanted[3 * i + 2] * pose[3 * j + 2])
    x, y, z = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    sine, cosine = 0.5 * math.sqrt(x * x + y * y + z * z), 0.5 * (R[0, 0] + R[1, 1] + R[2, 2] - 1.0)
    angle = math.atan2(sine, cosine)
    if sine > 1e-6:
        e[3], e[4], e[5] = 0.5 * angle / sine * x, 0.5 * angle / sine * y, 0.5 * angle / sine * z
    elif cosine > 0.0:
        e[3], e[4], e[5] = 0.5 * x, 0.5 * y, 0.5 * z
    else:  # half a turn: the axis from the symmetric part
        k = 0
        for i in range(1, 3):
            if R[i, i] > R[k, k]:
                k = i
        length = math.sqrt(max(0.0, 0.5 * (R[k, k] + 1.0)))
        for i in range(3):
            e[3 + i] = angle * (length if i == k else 0.5 * R[i, k] / length)
