"""Pose and motion of every body; energy, momentum, centre of mass and Jacobians from these.

Idea: one sweep from the root, each body about its own origin. Cost O(bodies); a Jacobian O(depth).
State of a body (STATE scalars): rotation 9, position 3, angular velocity 3, velocity of the origin 3, angular
acceleration 3, spatial acceleration 3 (linear part at the origin; add w x v for the origin's own acceleration).
"""

from bunraku.algorithms.tree import (
    joint_axes,
    joint_column,
    joint_motion,
    load_acceleration,
    load_pose,
    load_velocity,
    place,
    row3,
    row6,
    row9,
    store_state,
    unit9,
    velocity_product,
    zero3,
)
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import (
    add,
    cross,
    dot,
    matmul,
    matTvec,
    matvec,
    scale,
    store3,
    sub,
    symvec,
)
from bunraku.spatial.scalar import constant, store

STATE = f.STATE_SIZE
TOTALS = 12  # mass * com 3, linear momentum 3, angular momentum about the world's origin 3, kinetic, weight, mass


@inner
def body_states(body_i, body_f, q, v, acceleration, states):
    """State of every body, without gravity."""
    for i in range(body_i.shape[0] - 1):
        parent = body_i[i, f.PARENT]
        if parent < 0:
            R_p, x_p, w, lin, alpha, a = unit9(q), zero3(q), zero3(q), zero3(q), zero3(q), zero3(q)
        else:
            (R_p, x_p), (w, lin), (alpha, a) = load_state(states, STATE * parent)
        R, x = place(body_i[i, f.KIND], body_i, body_f, i, q, joint_axes(body_f, i, R_p), x_p)
        r, at_origin = sub(x, x_p), zero3(q)
        w_joint, v_joint = joint_motion(body_i[i, f.KIND], body_i, body_f, i, v, R, at_origin)
        lin, a = add(lin, cross(w, r)), add(a, cross(alpha, r))
        w, lin = add(w, w_joint), add(lin, v_joint)
        c_w, c_v = velocity_product(w, lin, w_joint, v_joint)
        alpha_joint, a_joint = joint_motion(body_i[i, f.KIND], body_i, body_f, i, acceleration, R, at_origin)
        alpha, a = add(add(alpha, c_w), alpha_joint), add(add(a, c_v), a_joint)
        o = STATE * i
        store_state(states, o, R, x, w, lin, alpha, a)


@inline
def load_state(states, o):
    """(rotation, position), (angular velocity, velocity), (angular acceleration, acceleration)."""
    return load_pose(states, o), load_velocity(states, o), load_acceleration(states, o)


@inline
def link_state(link_i, link_f, k, states, kind):
    """Rotation, position, angular velocity, velocity, angular acceleration and acceleration of link k's frame."""
    body = link_i[k, f.LINK_BODY]
    turn, shift = row9(link_f, k, f.LINK_ROTATION), row3(link_f, k, f.LINK_OFFSET)
    if body < 0:
        R, x, w, lin, alpha, a = unit9(kind), zero3(kind), zero3(kind), zero3(kind), zero3(kind), zero3(kind)
    else:
        (R, x), (w, lin), (alpha, a) = load_state(states, STATE * body)
    r = matvec(R, shift)
    lin = add(lin, cross(w, r))
    a = add(add(a, cross(alpha, r)), cross(w, lin))
    return matmul(R, turn), add(x, r), w, lin, alpha, a


@inner
def link_states(link_i, link_f, states, out):
    """`link_state` of every link, STATE scalars each: rotation, position, w, v, alpha, a (the frame's own)."""
    for k in range(link_i.shape[0]):
        R, x, w, lin, alpha, a = link_state(link_i, link_f, k, states, states)
        o = STATE * k
        store_state(out, o, R, x, w, lin, alpha, a)


@inner
def totals(body_i, body_f, states, out):
    """Sums over all bodies: see TOTALS. `weight` is the potential energy in gravity, zero at the world's origin."""
    n = body_i.shape[0] - 1
    g = row3(body_f, n, f.GRAVITY)
    first, linear, angular = zero3(states), zero3(states), zero3(states)
    kinetic, weight = constant(states, 0.0), constant(states, 0.0)
    mass = 0.0
    for i in range(n):
        o, m = STATE * i, body_f[i, f.MASS]
        (R, x), (w, v) = load_pose(states, o), load_velocity(states, o)
        r = matvec(R, row3(body_f, i, f.COM))
        c, v_com = add(x, r), add(v, cross(w, r))
        w_body = matTvec(R, w)
        spin = symvec(row6(body_f, i, f.INERTIA), w_body)
        p = scale(v_com, m)
        first, linear = add(first, scale(c, m)), add(linear, p)
        angular = add(angular, add(matvec(R, spin), cross(c, p)))
        kinetic = kinetic + 0.5 * (dot(p, v_com) + dot(w_body, spin))
        weight = weight - m * dot(c, g)
        mass += m
    store3(out, 0, first)
    store3(out, 3, linear)
    store3(out, 6, angular)
    store(out, 9, kinetic)
    store(out, 10, weight)
    store(out, 11, constant(states, mass))


@inline
def jacobian(body_i, body_f, body, x_point, states, out):
    """Velocity of a point of `body` (given in the world) and its angular velocity, per unit of each velocity.

    `out` is 6 x nv by rows (linear, angular), zeroed by the caller.
    """
    nv = out.shape[0] // 6
    i = body
    while i >= 0:
        j, (R, x) = body_i[i, f.V_INDEX], load_pose(states, STATE * i)
        r = sub(x, x_point)
        for d in range(body_i[i, f.DOF]):
            s_w, s_v = joint_column(body_i[i, f.KIND], body_f[i, f.RATE_ANGULAR], body_f[i, f.RATE_LINEAR], d, R, r)
            for k in range(3):
                store(out, k * nv + j + d, s_v[k])
                store(out, (k + 3) * nv + j + d, s_w[k])
        i = body_i[i, f.PARENT]
