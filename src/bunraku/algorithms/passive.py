"""Passive forces: joint springs, dampers and soft limits; springs between two points.

Cost O(joints + springs). Spherical springs act on the rotation vector from the neutral pose (isotropic), their limit
on its length. A limit acts once it has a stiffness: a one-sided spring and, while beyond, a damper.
"""

import numpy as np
from numba.extending import register_jitable

from bunraku.algorithms.body_motion import link_state
from bunraku.algorithms.tree import row3, zero3
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import (
    accumulate3,
    add,
    cross,
    dot,
    load3,
    load9,
    matTvec,
    matvec,
    norm,
    scale,
    sub,
)
from bunraku.spatial.scalar import atan2, clear, constant, load, maximum, sqrt, store, where_positive


@inline
def rotation_vector(w, x, y, z):
    """Rotation vector of a quaternion of any length, angle in [0, pi], and the angle."""
    sign = where_positive(w, constant_like(w, 1.0), constant_like(w, -1.0))
    cosine, sine = sign * w, sqrt(x * x + y * y + z * z)
    angle = 2.0 * atan2(sine, cosine)
    k = sign * where_positive(sine - 1e-12 * cosine, angle / maximum(sine, 1e-300), 2.0 / cosine)
    return (k * x, k * y, k * z), angle


@inline
def constant_like(x, value):
    return 0.0 * x + value


@inline
def turn_between(R, S):
    """Rotation vector, in the world, of the turn that takes a frame with the rotation R to S; half turns included.

    Each row of 4 p p^T, with p the quaternion of S R^T, is a multiple of p: the one with the largest diagonal is used.
    """
    xx, xy, xz = _row_products(S, R, 0)
    yx, yy, yz = _row_products(S, R, 3)
    zx, zy, zz = _row_products(S, R, 6)
    p, most = (1.0 + xx + yy + zz, zy - yz, xz - zx, yx - xy), 1.0 + xx + yy + zz
    p, most = _longer(1.0 + xx - yy - zz, most, (zy - yz, 1.0 + xx - yy - zz, xy + yx, xz + zx), p)
    p, most = _longer(1.0 - xx + yy - zz, most, (xz - zx, xy + yx, 1.0 - xx + yy - zz, yz + zy), p)
    p, most = _longer(1.0 - xx - yy + zz, most, (yx - xy, xz + zx, yz + zy, 1.0 - xx - yy + zz), p)
    return rotation_vector(p[0], p[1], p[2], p[3])[0]


@inline
def _row_products(S, R, k):
    """Row k / 3 of S R^T."""
    row = (S[k], S[k + 1], S[k + 2])
    return dot(row, (R[0], R[1], R[2])), dot(row, (R[3], R[4], R[5])), dot(row, (R[6], R[7], R[8]))


@inline
def _longer(size, most, row, p):
    """The row, if its size exceeds that of p, and the larger size."""
    more = size - most
    return ((where_positive(more, row[0], p[0]), where_positive(more, row[1], p[1]),
             where_positive(more, row[2], p[2]), where_positive(more, row[3], p[3])), maximum(size, most))


# -- the law of springs, dampers and limits, for joints of the tree and for connections -----------------------------


@inline
def spring_torque(stiffness, rest, damping, lower, upper, limit_stiffness, limit_damping, q, v):
    """Torque of one degree of freedom."""
    torque = -(stiffness * (q - rest)) - damping * v
    if limit_stiffness > 0.0:
        over, under = maximum(q - upper, 0.0), maximum(lower - q, 0.0)
        torque = torque + limit_stiffness * (under - over)
        torque = torque - where_positive(over + under, limit_damping * v, constant_like(v, 0.0))
    return torque


@inline
def ball_torque(stiffness, damping, upper, limit_stiffness, limit_damping, turned, angle, rate):
    """One component of the torque of a spherical joint; `turned` is that of the rotation vector, of length `angle`."""
    acting = limit_stiffness * maximum(angle - upper, 0.0)
    brake = where_positive(acting, limit_damping * rate, constant_like(rate, 0.0))
    return -(stiffness + acting / maximum(angle, 1e-30)) * turned - damping * rate - brake


@register_jitable
def spring_energy(stiffness, rest, lower, upper, limit_stiffness, q):
    stretch = q - rest
    energy = 0.5 * stiffness * stretch * stretch
    if limit_stiffness > 0.0:
        beyond = maximum(q - upper, 0.0) + maximum(lower - q, 0.0)
        energy = energy + 0.5 * limit_stiffness * beyond * beyond
    return energy


@register_jitable
def ball_energy(stiffness, upper, limit_stiffness, angle):
    beyond = maximum(angle - upper, 0.0)
    return 0.5 * (stiffness * angle * angle + limit_stiffness * beyond * beyond)


# -- joints of the tree ----------------------------------------------------------------------------------------------


@inner
def passive_torque(body_i, dof_f, q, v, tau, out):
    """out = tau + the passive torques of every joint that is driven by torque."""
    for i in range(body_i.shape[0] - 1):
        kind, j, k = body_i[i, f.KIND], body_i[i, f.V_INDEX], body_i[i, f.Q_INDEX]
        if body_i[i, f.ELIMINATION] == f.LOCKED:
            for d in range(body_i[i, f.DOF]):
                store(out, j + d, load(tau, j + d))
        elif kind == f.REVOLUTE or kind == f.SCREW:
            store(out, j, load(tau, j) + spring_torque(
                dof_f[f.STIFFNESS, j], dof_f[f.REST, j], dof_f[f.DAMPING, j], dof_f[f.LOWER, j], dof_f[f.UPPER, j],
                dof_f[f.LIMIT_STIFFNESS, j], dof_f[f.LIMIT_DAMPING, j], load(q, k), load(v, j)))
        elif kind == f.SPHERICAL:
            phi, angle = rotation_vector(load(q, k), load(q, k + 1), load(q, k + 2), load(q, k + 3))
            for d in range(3):
                store(out, j + d, load(tau, j + d) + ball_torque(
                    dof_f[f.STIFFNESS, j], dof_f[f.DAMPING, j + d], dof_f[f.UPPER, j], dof_f[f.LIMIT_STIFFNESS, j],
                    dof_f[f.LIMIT_DAMPING, j], phi[d], angle, load(v, j + d)))
        else:
            for d in range(body_i[i, f.DOF]):
                store(out, j + d, load(tau, j + d) - dof_f[f.DAMPING, j + d] * load(v, j + d))


@inner
def joint_slopes(body_i, dof_f, q, given, out):
    """out = given + damping (row 0) and stiffness (row 1) of every degree of freedom: minus the derivatives of its
    passive torque by its own rate and coordinate; zero at joints that are not eliminated column by column. One float
    only.

    A ball's spring is taken as if the turn were small; its limit acts along the turn n, with n_d^2 on axis d.
    """
    for i in range(body_i.shape[0] - 1):
        kind, j, k = body_i[i, f.KIND], body_i[i, f.V_INDEX], body_i[i, f.Q_INDEX]
        if body_i[i, f.ELIMINATION] != f.COLUMNS:
            for d in range(body_i[i, f.DOF]):
                out[0, j + d] = out[1, j + d] = 0.0
            continue
        for d in range(body_i[i, f.DOF]):
            out[0, j + d] = given[0, j + d] + dof_f[f.DAMPING, j + d]
            out[1, j + d] = given[1, j + d] + (dof_f[f.STIFFNESS, j + d] if kind != f.FREE else 0.0)
        if kind == f.FREE or not dof_f[f.LIMIT_STIFFNESS, j] > 0.0:
            continue
        if kind == f.SPHERICAL:
            phi, angle = rotation_vector(q[k], q[k + 1], q[k + 2], q[k + 3])
            if angle > dof_f[f.UPPER, j]:
                for d in range(3):
                    out[0, j + d] += dof_f[f.LIMIT_DAMPING, j]
                    out[1, j + d] += dof_f[f.LIMIT_STIFFNESS, j] * phi[d] * phi[d] / (angle * angle)
        elif q[k] > dof_f[f.UPPER, j] or q[k] < dof_f[f.LOWER, j]:
            out[0, j] += dof_f[f.LIMIT_DAMPING, j]
            out[1, j] += dof_f[f.LIMIT_STIFFNESS, j]


@inner
def passive_energy(body_i, dof_f, q):
    """Energy stored in joint springs and limits."""
    energy = constant(q, 0.0)
    for i in range(body_i.shape[0] - 1):
        kind, j, k = body_i[i, f.KIND], body_i[i, f.V_INDEX], body_i[i, f.Q_INDEX]
        if kind == f.REVOLUTE or kind == f.SCREW:
            energy = energy + spring_energy(dof_f[f.STIFFNESS, j], dof_f[f.REST, j], dof_f[f.LOWER, j],
                                            dof_f[f.UPPER, j], dof_f[f.LIMIT_STIFFNESS, j], load(q, k))
        elif kind == f.SPHERICAL and dof_f[f.STIFFNESS, j] + dof_f[f.LIMIT_STIFFNESS, j] > 0.0:
            phi, angle = rotation_vector(load(q, k), load(q, k + 1), load(q, k + 2), load(q, k + 3))
            energy = energy + ball_energy(dof_f[f.STIFFNESS, j], dof_f[f.UPPER, j], dof_f[f.LIMIT_STIFFNESS, j], angle)
    return energy


@inline
def spring_ends(link_i, link_f, link, point, states):
    """Position and velocity of a point fixed to a link (-1: to the ground), in the world."""
    if link < 0:
        z = zero3(states)
        return add(z, point), z
    R, x, w, lin, alpha, a = link_state(link_i, link_f, link, states, states)
    r = matvec(R, point)
    return add(x, r), add(lin, cross(w, r))


@inline
def spring_force(spring_f, k, x_a, v_a, x_b, v_b):
    """Force on end a, and the energy stored. A spring of zero length exerts no force."""
    gap = sub(x_b, x_a)
    length = norm(gap)
    stretch = length - spring_f[k, f.SPRING_LENGTH]
    direction = scale(gap, 1.0 / maximum(length, 1e-300))
    rate = dot(sub(v_b, v_a), direction)
    pull = spring_f[k, f.SPRING_K] * stretch + spring_f[k, f.SPRING_D] * rate
    return scale(direction, pull), 0.5 * spring_f[k, f.SPRING_K] * stretch * stretch


@inline
def push_link(link_i, link, states, point, force, wrench):
    """Add a force acting at a point of the world on a link to the wrench of its body (about the body's origin)."""
    if link >= 0 and link_i[link, f.LINK_BODY] >= 0:
        body = link_i[link, f.LINK_BODY]
        accumulate3(wrench, 6 * body, force)
        arm = sub(point, load3(states, f.STATE_SIZE * body + f.STATE_POSITION))
        accumulate3(wrench, 6 * body + 3, cross(arm, force))


@inline
def turn_link(link_i, link_f, link, o, states, external, wrench):
    """Add the moment of the pull at `o` on a link to the wrench of its body."""
    if link_i[link, f.LINK_BODY] >= 0:
        R, x, w, lin, alpha, a = link_state(link_i, link_f, link, states, states)
        accumulate3(wrench, 6 * link_i[link, f.LINK_BODY] + 3, pull_moment(external, o, R, w))


@inline
def pull_force(external, o, x, v):
    """Force of the pull at `o` on its point at x with the velocity v."""
    stretch = sub(load3(external, o + f.PULL_TARGET), x)
    return sub(scale(stretch, external[o + f.PULL_STIFFNESS]), scale(v, external[o + f.PULL_DAMPING]))


@inline
def pull_moment(external, o, R, w):
    """Moment of the pull at `o` on its link with the rotation R and the angular velocity w: minus the gradient of
    k/2 angle^2, and a damper."""
    stiffness, d = external[o + f.PULL_TURN_STIFFNESS], o + f.PULL_TURN_DAMPING
    if not stiffness + external[d] > 0.0:
        return zero3(external)
    D = (external[d], external[d + 1], external[d + 2], external[d + 1], external[d + 3], external[d + 4],
         external[d + 2], external[d + 4], external[d + 5])
    spring = scale(turn_between(R, load9(external, o + f.PULL_ROTATION)), stiffness)
    return sub(spring, matvec(R, matvec(D, matTvec(R, w))))


@inner
def body_wrenches(link_i, link_f, spring_i, spring_f, states, external, wrench):
    """Forces on bodies from point springs and from `external` (`plan/fields.py`: on links, and pulls).

    `external` may be empty. Written to `wrench`: 6 per body, force and moment about the body's origin, world axes.
    Returns the energy in the springs.
    """
    clear(wrench)
    if external.shape[0] > 0:
        for link in range(link_i.shape[0]):
            body = link_i[link, f.LINK_BODY]
            if body >= 0:
                R, x, w, lin, alpha, a = link_state(link_i, link_f, link, states, states)
                push_link(link_i, link, states, x, load3(external, 6 * link), wrench)
                accumulate3(wrench, 6 * body + 3, load3(external, 6 * link + 3))
    if external.ndim == 1:
        for o in range(6 * link_i.shape[0], external.shape[0], f.PULL):
            pulled = np.int64(external[o + f.PULL_LINK])
            x, v = spring_ends(link_i, link_f, pulled, load3(external, o + f.PULL_POINT), states)
            push_link(link_i, pulled, states, x, pull_force(external, o, x, v), wrench)
            turn_link(link_i, link_f, pulled, o, states, external, wrench)
    energy = constant(states, 0.0)
    for k in range(spring_i.shape[0]):
        a, b = spring_i[k, f.SPRING_A], spring_i[k, f.SPRING_B]
        x_a, v_a = spring_ends(link_i, link_f, a, row3(spring_f, k, f.POINT_A), states)
        x_b, v_b = spring_ends(link_i, link_f, b, row3(spring_f, k, f.POINT_B), states)
        force, stored = spring_force(spring_f, k, x_a, v_a, x_b, v_b)
        push_link(link_i, a, states, x_a, force, wrench)
        push_link(link_i, b, states, x_b, scale(force, -1.0), wrench)
        energy = energy + stored
    return energy
