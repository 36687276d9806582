"""Connections: joints that close loops. Coordinates, rates, passive forces and drives, and constraint equations.

Idea: body b's joint frame moves in body a's as the joint allows. With the relative motion V (taken at the origin of
b's joint frame, in its axes), free directions S and constrained directions K (K S = 0), a closed loop has

    K V = 0,     K (A_b - A_a - V_b x V - dS/dt rates) = 0,     force on b = K^T f + (S^+)^T tau

and one that is open by g closes like g'' + 2 c g' + c^2 g = 0 if a rate c is given (Baumgarte).

Moments are divided by a stated length L to be comparable with forces: rows of K are orthonormal in (moment / L, force).
S turns with the coordinates only for planar and compound joints, its complement K only for compound ones.
References: [YN02] sec. 3, [YN99] sec. 2, eq. 5. Cost O(1) per connection, plus the bodies up to where its loop meets.
"""

from bunraku.algorithms.connection_laws import (
    along_axes,
    coordinates,
    directions,
    joint_pose,
    matmul_left,
    rates,
    rotation_vector_of,
    spread_torques,
    turning_axes,
    turns_directions,
)
from bunraku.algorithms.passive import ball_torque, spring_torque
from bunraku.algorithms.tree import (
    is_anchor,
    joint_part_size,
    load_acceleration,
    load_pose,
    load_velocity,
    row3,
    row9,
    velocity_product,
    zero3,
)
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import (
    accumulate3,
    add,
    cross,
    dot,
    load3,
    load9,
    matmul,
    matTvec,
    matvec,
    norm,
    scale,
    store3,
    store9,
    sub,
)
from bunraku.spatial.scalar import clear, load, maximum, store, where_positive
from bunraku.tolerances import TERMS_ROUNDED

DYNAMICS, IMPULSE, POSITION = 0, 1, 2
"""Level of a connection's constraint: acceleration, velocity (an impact), or position (closing a gap)."""
AGAIN = 4
"""Added to IMPULSE or POSITION: by the factors that the work array holds."""
ONCE, TWICE = 8, 16
"""Added to a mode: never, or always, with a second look (`proximal.py`)."""


@inner
def meet_connections(mode, again, body_i, conn_i, conn_f, q, v, tau, drives, work):
    """Fill the record of every connection from the states that pass 1 left in the slots; add its own forces to the
    bodies. `drives`: torques (accelerations if GIVEN) of all free directions, or nothing. `again`: for the factors at
    hand, of an evaluation near by. q, v and tau (accelerations of joints that are LOCKED) are for couplings.
    """
    last = conn_i.shape[0] - 1
    for c in range(last):
        rec, judged = f.connection_record(conn_i, c), conn_i[last, f.HEAD_JUDGED]
        if conn_i[c, f.LAW] == f.LAW_COUPLED:
            meet_coupling(mode, c, body_i, conn_i, conn_f, q, v, tau, work, rec, judged)
        else:
            meet_connection(mode, again, c, body_i, conn_i, conn_f, drives, work, rec, judged)


@inner
def meet_coupling(mode, c, body_i, conn_i, conn_f, q, v, tau, work, rec, judged):
    """The record of a coupling: q_b - ratio q_a - offset = 0, its rate or its acceleration. A gap within rounding of
    its terms, which grow with the turns of a gear, is none. Nothing acts on the bodies: directions and wrench are zero.
    """
    a, b = conn_i[c, f.BODY_A], conn_i[c, f.BODY_B]
    ratio, offset = conn_f[c, f.COUPLED_RATIO], conn_f[c, f.COUPLED_OFFSET]
    clear(work[rec:rec + f.CONN_COLUMNS + 6])
    gap = beyond_rounding(load(q, body_i[b, f.Q_INDEX]), load(q, body_i[a, f.Q_INDEX]) * ratio, offset)
    j_a, j_b = body_i[a, f.V_INDEX], body_i[b, f.V_INDEX]
    rate = beyond_rounding(load(v, j_b), load(v, j_a) * ratio, 0.0)
    bias = gap if mode == POSITION else rate
    if mode == DYNAMICS:
        store(work, judged + f.JUDGED_GAP, maximum(gap * gap, load(work, judged + f.JUDGED_GAP)))
        hold = conn_f[c, f.HOLD]
        bias = rate * (2.0 * hold) + gap * (hold * hold)
        if body_i[b, f.ELIMINATION] == f.LOCKED:
            bias = bias + load(tau, j_b)
        if body_i[a, f.ELIMINATION] == f.LOCKED:
            bias = bias - load(tau, j_a) * ratio
    else:
        store(work, rec + f.CONN_GAP, gap)
    store(work, rec + f.CONN_BIAS, bias)


@inline
def beyond_rounding(x, y, offset):
    """x - y - offset, or zero if that is within the rounding errors of the terms."""
    left = x - y - offset
    size = maximum(maximum(x, 0.0 - x), maximum(y, 0.0 - y)) + abs(offset)
    excess = maximum(left, 0.0 - left) - TERMS_ROUNDED * size
    return where_positive(excess, left, 0.0 * left)


@inline
def meet_connection(mode, again, c, body_i, conn_i, conn_f, drives, work, rec, judged):
    a, b, law = conn_i[c, f.STATE_A], conn_i[c, f.STATE_B], conn_i[c, f.LAW]
    (R_a, x_a), (R_b, x_b) = load_pose(work, a), load_pose(work, b)
    turn_a, turn = matmul(R_a, row9(conn_f, c, f.FRAME_A)), matmul(R_b, row9(conn_f, c, f.FRAME_B))
    end_a = add(x_a, matvec(R_a, row3(conn_f, c, f.FRAME_A + f.FRAME_ORIGIN)))
    arm_b = add(x_b, matvec(R_b, row3(conn_f, c, f.FRAME_B + f.FRAME_ORIGIN)))
    arm_a = add(arm_b, apart(c, body_i, conn_i, work))
    before = load9(work, rec + f.CONN_TURN) if again else turn
    store9(work, rec + f.CONN_TURN, turn)
    store3(work, rec + f.CONN_ARM_A, arm_a)
    store3(work, rec + f.CONN_ARM_B, arm_b)

    # relative pose and the joint's coordinates
    R, x = matmul_left(turn_a, turn), matTvec(turn_a, sub(arm_a, end_a))
    coordinates(law, c, conn_i, conn_f, R, x, work, rec)
    Q, t = joint_pose(law, c, conn_i, conn_f, R, x, work, rec)

    # relative motion at the origin of b's joint frame, in its axes
    (w_a, v_a), (w_b, v_b) = load_velocity(work, a), load_velocity(work, b)
    v_a, v_b = add(v_a, cross(w_a, arm_a)), add(v_b, cross(w_b, arm_b))
    w, v = sub(w_b, w_a), sub(v_b, v_a)  # [YN-HRP, eq. 1]; a sum in [YN02, eq. 1]
    W, V = matTvec(turn, w), matTvec(turn, v)
    rates(law, c, conn_i, conn_f, W, V, work, rec)  # K_J [YN02, eq. 2], [YN-HRP, eq. 2]
    directions(again, law, c, conn_i, conn_f, before, turn, work, rec)

    if mode == DYNAMICS:
        gap = sub(x, t)
        gap = maximum(dot(gap, gap), load(work, judged + f.JUDGED_GAP))
        if law != f.LAW_SPHERICAL and law != f.LAW_FREE:
            gap = maximum(gap, 0.5 * squared_distance(Q, R))
        store(work, judged + f.JUDGED_GAP, gap)
        (alpha_a, a_a), (alpha_b, a_b) = load_acceleration(work, a), load_acceleration(work, b)
        a_a, a_b = add(a_a, cross(alpha_a, arm_a)), add(a_b, cross(alpha_b, arm_b))
        c_w, c_v = velocity_product(w_b, v_b, w, v)  # h of [YN02, eq. 5]
        hold = conn_f[c, f.HOLD]
        hold_w, hold_v = scale(W, 2.0 * hold), scale(V, 2.0 * hold)
        W = matTvec(turn, sub(sub(alpha_b, alpha_a), c_w))
        V = matTvec(turn, sub(sub(a_b, a_a), c_v))
        if hold > 0.0:  # the gap g obeys g'' + 2 hold g' + hold^2 g = 0
            W, V = add(W, hold_w), add(V, hold_v)
            W = add(W, scale(rotation_vector_of(matmul_left(Q, R)), hold * hold))
            V = add(V, scale(matTvec(Q, sub(x, t)), hold * hold))
        if law == f.LAW_COMPOUND or conn_i[c, f.GIVEN] != 0:
            c_w, c_v = turning_axes(conn_i[c, f.ELEMENTS], work, rec)
            W, V = sub(W, c_w), sub(V, c_v)
        if conn_i[c, f.GIVEN] != 0:
            c_w, c_v = given_motion(law, c, conn_i, drives, work, rec)
            W, V = sub(W, c_w), sub(V, c_v)
            store3(work, rec + f.CONN_DRIVE, zero3(work))
            store3(work, rec + f.CONN_DRIVE + 3, zero3(work))
        else:
            own_forces(law, c, body_i, conn_i, conn_f, drives, turn, arm_a, arm_b, work, rec)
    else:
        gap_w, gap_v = rotation_vector_of(matmul_left(Q, R)), matTvec(Q, sub(x, t))
        demand(conn_i[c, f.ROWS], turn, gap_w, gap_v, work, rec, rec + f.CONN_GAP)
        if mode == POSITION:
            W, V = gap_w, gap_v
        elif turns_directions(law, c, conn_i):  # K of the factors at hand has a part along S of this configuration
            c_w, c_v = along_axes(conn_i[c, f.ELEMENTS], work, rec + f.CONN_RATES, work, rec)
            W, V = sub(W, c_w), sub(V, c_v)
    demand(conn_i[c, f.ROWS], turn, W, V, work, rec, rec + f.CONN_BIAS)  # [YN02, eqs. 4-5]; impact: [YN99, eq. 13]


@inline
def apart(c, body_i, conn_i, work):
    """From the origin of a's group to that of b's."""
    if conn_i[c, f.ORIGIN_A] >= 0:
        return sub(load3(work, conn_i[c, f.ORIGIN_B]), load3(work, conn_i[c, f.ORIGIN_A]))
    return sub(group_origin(conn_i[c, f.BODY_B], conn_i[c, f.MEET], body_i, work),
               group_origin(conn_i[c, f.BODY_A], conn_i[c, f.MEET], body_i, work))


@inline
def squared_distance(M, N):
    """Sum of the squares of M - N; twice the square of the angle between two rotations, if it is small."""
    x, y, z = sub(M[:3], N[:3]), sub(M[3:6], N[3:6]), sub(M[6:], N[6:])
    return dot(x, x) + dot(y, y) + dot(z, z)


@inline
def demand(rows, turn, W, V, work, rec, to):
    """Part of a motion in b's axes along each constrained direction."""
    W, V = matvec(turn, W), matvec(turn, V)
    for k in range(rows):
        o = rec + f.CONN_COLUMNS + 6 * k
        store(work, to + k, dot(load3(work, o), W) + dot(load3(work, o + 3), V))


@inline
def group_origin(body, meet, body_i, work):
    """Origin of the body's group in the group of `meet`, a body above it (or the ground, -1)."""
    r = zero3(work)
    i = body
    while i != meet:
        if is_anchor(body_i, i):
            part = joint_part_size(body_i[i, f.ELIMINATION], body_i[i, f.DOF])
            r = add(r, load3(work, body_i[i, f.BODY_RECORD] + f.REC_JOINT + part))
        i = body_i[i, f.PARENT]
    return r


# -- forces of their own -----------------------------------------------------------------------------------------------


@inline
def given_motion(law, c, conn_i, drives, work, rec):
    """S times the given accelerations of the coordinates."""
    first = conn_i[c, f.FIRST_FREEDOM]
    W, V = zero3(work), zero3(work)
    if law == f.LAW_SPHERICAL:
        W = load3(drives, first)
    elif law == f.LAW_FREE:
        V, W = load3(drives, first), load3(drives, first + 3)
    else:
        W, V = along_axes(conn_i[c, f.ELEMENTS], drives, first, work, rec)
    return W, V


@inner
def own_forces(law, c, body_i, conn_i, conn_f, drives, turn, arm_a, arm_b, work, rec):
    """Springs, dampers and drives along the free directions, as wrench on b; added to the bodies' records."""
    first, L, n = conn_i[c, f.FIRST_FREEDOM], conn_f[c, f.LENGTH], conn_i[c, f.FREEDOMS]
    moment, force = zero3(work), zero3(work)
    angle = norm(load3(work, rec + f.CONN_COORDINATES))
    for d in range(n):
        torque = passive_torque(law, c, d, conn_f, load(work, rec + f.CONN_COORDINATES + d),
                                load(work, rec + f.CONN_RATES + d), angle)
        if drives.shape[0] > 0:
            torque = torque + load(drives, first + d)
        if law == f.LAW_SPHERICAL or law == f.LAW_FREE:
            e = unit3(d % 3, torque)
            if law == f.LAW_SPHERICAL or d > 2:
                moment = add(moment, e)
            else:
                force = add(force, e)
        elif law == f.LAW_COMPOUND:
            store(work, rec + f.CONN_BIAS + d, torque)
        else:
            s_w, s_v = load3(work, rec + f.CONN_AXES + 6 * d), load3(work, rec + f.CONN_AXES + 6 * d + 3)
            k = torque / (L * L * dot(s_w, s_w) + dot(s_v, s_v))
            moment, force = add(moment, scale(s_w, L * L * k)), add(force, scale(s_v, k))
    if law == f.LAW_COMPOUND:
        moment, force = spread_torques(n, L, work, rec)
    moment, force = matvec(turn, moment), matvec(turn, force)
    store3(work, rec + f.CONN_DRIVE, moment)
    store3(work, rec + f.CONN_DRIVE + 3, force)
    push(conn_i[c, f.BODY_B], 1.0, arm_b, moment, force, body_i, work)  # K_J^T tau [YN02, eq. 3]
    push(conn_i[c, f.BODY_A], -1.0, arm_a, moment, force, body_i, work)


@inline
def passive_torque(law, c, d, conn_f, q, rate, angle):
    """Spring, damper and limits along free direction d; a ball's limit is on the angle it has turned."""
    o = f.CONN_PASSIVE + f.DOF_F * d
    stiffness, damping, upper = conn_f[c, o + f.STIFFNESS], conn_f[c, o + f.DAMPING], conn_f[c, o + f.UPPER]
    limit_stiffness, limit_damping = conn_f[c, o + f.LIMIT_STIFFNESS], conn_f[c, o + f.LIMIT_DAMPING]
    if law == f.LAW_SPHERICAL:
        return ball_torque(stiffness, damping, upper, limit_stiffness, limit_damping, q, angle, rate)
    return spring_torque(stiffness, conn_f[c, o + f.REST], damping, conn_f[c, o + f.LOWER], upper, limit_stiffness,
                         limit_damping, q, rate)


@inline
def unit3(d, x):
    z = 0.0 * x
    if d == 0:
        return (x, z, z)
    if d == 1:
        return (z, x, z)
    return (z, z, x)


@inline
def push(body, sign, arm, moment, force, body_i, work):
    """A wrench on a body lessens the force it needs."""
    if body >= 0:
        o = body_i[body, f.BODY_RECORD] + f.REC_FORCE
        accumulate3(work, o, scale(add(moment, cross(arm, force)), -sign))
        accumulate3(work, o + 3, scale(force, -sign))
