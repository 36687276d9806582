"""Actuation of the figures in the scenes: muscles that follow a schedule of poses, and joint limits by torques.

Every joint is pulled towards the pose of the moment by a critically damped spring. Beyond the range of a joint a stiff
one-sided spring pushes back, as in [YN99, sec. 6]; it sets in smoothly, so that solvers of high order can keep their
steps, and dissipates energy.
"""

from __future__ import annotations

import numpy as np

import bunraku as bk
from bunraku.mechanism import Link

ROW = 12             # numbers per joint, before its poses
STRONGEST = 0.7      # muscles are made to move no more inertia than this [kg m^2]
SLACK = 0.15         # a ball's muscles feel at least this share of its largest inertia about every axis
ARMS = {"shoulder": 0.2, "elbow": 0.4}  # of a figure that hangs: they move the body, not the hand [kg m^2]
STOP = 12000.0       # stiffness of the limits [N m/rad]
ONSET = 0.004        # within about so much they have reached it [rad]
YIELD = 0.4          # of what they give back when the joint returns: force times 1 + YIELD * speed [s/rad]

# Middle of a ball's range and the largest turn from it [rad]. The model counts turns from the neutral pose; there an
# arm held straight up is close to half a turn, where a turn has no direction. Other balls: as in the model.
RANGES = {"shoulder": ((0.0, -1.25, 0.0), 2.1), "hip": ((0.0, -0.9, 0.0), 1.35)}


@bk.actuation
def muscles(t, q, v, params, tau):
    """Torques of all joints.

    params: how many poses, frequency of the muscles [rad/s], times of the poses; then for each joint: dof (3: a ball),
    place in q, place in v, inertia felt (3), stiffness of the limit, limit (hinge: lower, upper; ball: quaternion of
    the middle, largest turn), and three numbers (rotation vector, or an angle) per pose.
    """
    poses, frequency = int(params[0]), params[1]
    k = 0
    while k < poses - 2 and t > params[3 + k]:
        k += 1
    s = min(max((t - params[2 + k]) / (params[3 + k] - params[2 + k]), 0.0), 1.0)
    s = s * s * s * (10.0 - 15.0 * s + 6.0 * s * s)  # from pose to pose smoothly
    for row in range(2 + poses, params.shape[0], ROW + 3 * poses):
        i, j, p = int(params[row + 1]), int(params[row + 2]), row + ROW + 3 * k
        x = params[p] + s * (params[p + 3] - params[p])
        if params[row] == 1.0:
            tau[j] = -params[row + 3] * frequency * (frequency * (q[i] - x) + 2.0 * v[j])
            side = 1.0 if 2.0 * q[i] > params[row + 7] + params[row + 8] else -1.0
            beyond = side * (q[i] - params[row + (8 if side > 0.0 else 7)])
            if beyond > 0.0:
                push = params[row + 6] * beyond * beyond / (beyond + ONSET)
                tau[j] -= side * push * max(1.0 + YIELD * side * v[j], 0.0)
            continue
        y = params[p + 1] + s * (params[p + 4] - params[p + 1])
        z = params[p + 2] + s * (params[p + 5] - params[p + 2])
        half = 0.5 * (x * x + y * y + z * z) ** 0.5
        c, f = np.cos(half), 0.5 * np.sinc(half / np.pi)
        x, y, z = f * x, f * y, f * z
        for limit in range(2):  # how far the joint is off the pose, then off the middle of its range
            if limit:
                c, x, y, z = params[row + 7], params[row + 8], params[row + 9], params[row + 10]
            a, b, d, e = q[i], q[i + 1], q[i + 2], q[i + 3]
            w = c * a + x * b + y * d + z * e
            off = (c * b - x * a - y * e + z * d, c * d + x * e - y * a - z * b, c * e - x * d + y * b - z * a)
            sine = (off[0] ** 2 + off[1] ** 2 + off[2] ** 2) ** 0.5
            turn = 2.0 * np.arctan2(sine, abs(w)) / sine if sine > 1e-9 else 2.0  # rotation vector = turn * off
            turn = turn if w >= 0.0 else -turn
            if limit == 0:
                for n in range(3):
                    tau[j + n] = -params[row + 3 + n] * frequency * (frequency * turn * off[n] + 2.0 * v[j + n])
                continue
            beyond = abs(turn) * sine - params[row + 11]
            if beyond > 0.0:
                outward = turn / (abs(turn) * sine)
                rate = outward * (off[0] * v[j] + off[1] * v[j + 1] + off[2] * v[j + 2])
                push = params[row + 6] * beyond * beyond / (beyond + ONSET) * max(1.0 + YIELD * rate, 0.0)
                for n in range(3):
                    tau[j + n] -= push * outward * off[n]


def posed(mechanism: bk.Mechanism, pose: dict) -> np.ndarray:
    """Coordinates of a mechanism in a pose: {joint: rotation vector [rad]}; joints that are not named are neutral.

    Joints are given by name ("left_hip") or, for both sides, by the last part of the name ("hip").
    """
    return np.concatenate([_at(link, _turn(link, pose)) for link in mechanism.links])


def pose_of(mechanism: bk.Mechanism, q: np.ndarray) -> dict:
    """The present pose of a mechanism: the inverse of `posed`, for hinges and balls."""
    pose = {}
    for link in mechanism.links:
        x = q[mechanism.q_slice(link.joint_name)]
        if isinstance(link.joint, bk.Revolute):
            pose[link.joint_name] = x[0] * link.joint.axis
        elif isinstance(link.joint, bk.Spherical):
            sine, x = np.linalg.norm(x[1:]), x if x[0] >= 0.0 else -x
            pose[link.joint_name] = (2.0 * np.arctan2(sine, x[0]) / sine if sine > 1e-9 else 2.0) * x[1:]
    return pose


def schedule(mechanism: bk.Mechanism, first: dict, poses, frequency: float, *, felt_in: dict | None = None,
             weakest: dict | None = None) -> np.ndarray:
    """The `params` of `muscles`: from the pose `first` to each of `poses`, (time, pose); the last one is kept.

    frequency  natural frequency of a limb with its muscles [rad/s]: their stiffness
    felt_in    the pose in which each joint's inertia is measured
    weakest    {joint: lower bound of the inertia [kg m^2] that sets its stiffness}
    """
    q = posed(mechanism, first if felt_in is None else felt_in)
    # A joint that moves alone at unit speed: twice the kinetic energy is the inertia the joint feels
    inertia = np.minimum(2.0 * mechanism.energy(np.tile(q, (mechanism.nv, 1)), np.eye(mechanism.nv))[0], STRONGEST)
    rows: list[float] = []
    for link in figure_links(mechanism):
        if not isinstance(link.joint, (bk.Revolute, bk.Spherical)):
            continue
        i, j = mechanism.q_slice(link.joint_name).start, mechanism.v_slice(link.joint_name).start
        least = (weakest or {}).get(_part(link), 0.0)
        turns = [_turn(link, pose) for pose in (first, *(pose for _, pose in poses))]
        lower, upper = link.joint.passive[0, 4:6]
        if isinstance(link.joint, bk.Spherical):
            felt = np.maximum(inertia[j:j + 3], least)
            middle, reach = RANGES.get(_part(link), ((0.0, 0.0, 0.0), upper))
            rows += [3, i, j, *np.maximum(felt, SLACK * felt.max()), STOP, *_quaternion(np.array(middle)), reach]
            rows += [*np.ravel(turns)]
        else:
            rows += [1, i, j, max(inertia[j], least), 0.0, 0.0, STOP, lower, upper, 0.0, 0.0, 0.0]
            rows += [x for turn in turns for x in (*_at(link, turn), 0.0, 0.0)]
    return np.array([len(poses) + 1, frequency, 0.0, *(time for time, _ in poses), *rows])


def figure_links(mechanism: bk.Mechanism) -> list[Link]:
    """The links moved by muscles: those of floating-base figures, not of fixtures on the ground."""
    flies: list[bool] = []
    for link in mechanism.links:
        flies.append(isinstance(link.joint, bk.Free) if link.parent < 0 else flies[link.parent])
    return [link for link, free in zip(mechanism.links, flies, strict=True) if free]


def beyond_limits(params: np.ndarray, q: np.ndarray) -> float:
    """By how much any joint is beyond its range [rad] in any of the states q (n, nq)."""
    poses, worst = int(params[0]), 0.0
    for row in range(2 + poses, len(params), ROW + 3 * poses):
        i, limit = int(params[row + 1]), params[row + 7:row + ROW]
        if params[row] == 1.0:
            excess = np.maximum(q[:, i] - limit[1], limit[0] - q[:, i])
        else:
            cosine = np.abs(q[:, i:i + 4] @ limit[:4])
            excess = 2.0 * np.arccos(np.minimum(cosine, 1.0)) - limit[4]
        worst = max(worst, float(excess.max()))
    return worst


def _part(link: Link) -> str:
    return link.joint_name.split("_")[-1]


def _turn(link: Link, pose: dict) -> np.ndarray:
    """Rotation vector of the link's joint in a pose."""
    return np.array(pose.get(link.joint_name, pose.get(_part(link), (0, 0, 0))), float)


def _at(link: Link, turn: np.ndarray) -> list[float]:
    """Coordinates of the joint turned by a rotation vector."""
    if isinstance(link.joint, bk.Revolute):
        return [float(turn @ link.joint.axis)]
    if isinstance(link.joint, bk.Spherical):
        return _quaternion(turn)
    if isinstance(link.joint, bk.Free):
        return [0.0, 0.0, 0.0, *_quaternion(turn)]
    return link.joint.neutral()


def _quaternion(turn: np.ndarray) -> list[float]:
    half = 0.5 * float(np.linalg.norm(turn))
    return [np.cos(half), *(0.5 * np.sinc(half / np.pi) * turn)]
