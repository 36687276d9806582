"""Connections: joints that close loops. Coordinates, rates, forces of their own, and what they demand.

Idea: body b's joint frame moves in body a's as the joint allows. With the relative motion V (taken at the origin of
b's joint frame, in its axes), free directions S and constrained directions K (K S = 0), a closed loop has

    K V = 0,     K (A_b - A_a - V_b x V - dS/dt rates) = 0,     force on b = K^T f + (S^+)^T tau

and one that is open by g closes like g'' + 2 c g' + c^2 g = 0 if a rate c is given (Baumgarte).

Moments are divided by a stated length L to be comparable with forces: rows of K are orthonormal in (moment / L, force).
S turns with the coordinates only for planar and compound joints, its complement K only for compound ones.
References: [YN02] sec. 3, [YN99] sec. 2, eq. 5. Cost O(1) per connection, plus the bodies up to where its loop meets.
"""

from bunraku.algorithms.aba import joint_part_size
from bunraku.algorithms.passive import constant_like
from bunraku.algorithms.tree import is_anchor, row3, row9, unit9, velocity_product, zero3
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
from bunraku.spatial.scalar import atan2, constant, load, maximum, nearest, sincos, sqrt, store, where_positive

DYNAMICS, IMPULSE, POSITION = 0, 1, 2
"""What a connection demands: acceleration, velocity (an impact), or position (closing a gap)."""
AGAIN = 4
"""Added to IMPULSE or POSITION: by the factors that the work array holds."""
ONCE, TWICE = 8, 16
"""Added to a mode: never, or always, with a second look (`proximal.py`)."""

NEWTON_STEPS = 16
TURN = 6.283185307179586


@inner
def meet_connections(mode, body_i, conn_i, conn_f, drives, work):
    """Fill the record of every connection from the states that pass 1 left in the slots; add its own forces to the
    bodies. `drives`: torques (accelerations if GIVEN) of all free directions, or nothing.
    """
    last = conn_i.shape[0] - 1
    for c in range(last):
        meet_connection(mode, c, body_i, conn_i, conn_f, drives, work, f.connection_record(conn_i, c),
                        conn_i[last, f.HEAD_JUDGED])


@inline
def meet_connection(mode, c, body_i, conn_i, conn_f, drives, work, rec, judged):
    a, b, law = conn_i[c, f.STATE_A], conn_i[c, f.STATE_B], conn_i[c, f.LAW]
    R_a, R_b = load9(work, a), load9(work, b)
    turn_a, turn = matmul(R_a, row9(conn_f, c, f.FRAME_A)), matmul(R_b, row9(conn_f, c, f.FRAME_B))
    end_a = add(load3(work, a + 9), matvec(R_a, row3(conn_f, c, f.FRAME_A + 9)))
    arm_b = add(load3(work, b + 9), matvec(R_b, row3(conn_f, c, f.FRAME_B + 9)))
    apart = sub(group_origin(conn_i[c, f.BODY_B], conn_i[c, f.MEET], body_i, work),
                group_origin(conn_i[c, f.BODY_A], conn_i[c, f.MEET], body_i, work))
    arm_a = add(arm_b, apart)
    store9(work, rec + f.CONN_TURN, turn)
    store3(work, rec + f.CONN_ARM_A, arm_a)
    store3(work, rec + f.CONN_ARM_B, arm_b)

    # relative pose and the joint's coordinates
    R, x = matmul_left(turn_a, turn), matTvec(turn_a, sub(arm_a, end_a))
    coordinates(law, c, conn_i, conn_f, R, x, work, rec)
    Q, t = joint_pose(law, c, conn_i, conn_f, R, x, work, rec)

    # relative motion at the origin of b's joint frame, in its axes
    w_a, w_b = load3(work, a + 12), load3(work, b + 12)
    v_a, v_b = add(load3(work, a + 15), cross(w_a, arm_a)), add(load3(work, b + 15), cross(w_b, arm_b))
    w, v = sub(w_b, w_a), sub(v_b, v_a)  # [YN-HRP, eq. 1]; a sum in [YN02, eq. 1]
    W, V = matTvec(turn, w), matTvec(turn, v)
    rates(law, c, conn_i, conn_f, W, V, work, rec)  # K_J [YN02, eq. 2], [YN-HRP, eq. 2]
    directions(law, c, conn_i, conn_f, turn, work, rec)

    if mode == DYNAMICS:
        gap = sub(x, t)
        gap = maximum(dot(gap, gap), load(work, judged + f.JUDGED_GAP))
        if law != f.LAW_SPHERICAL and law != f.LAW_FREE:
            gap = maximum(gap, 0.5 * squared_distance(Q, R))
        store(work, judged + f.JUDGED_GAP, gap)
        alpha_a, alpha_b = load3(work, a + 18), load3(work, b + 18)
        a_a = add(load3(work, a + 21), cross(alpha_a, arm_a))
        a_b = add(load3(work, b + 21), cross(alpha_b, arm_b))
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
    demand(conn_i[c, f.ROWS], turn, W, V, work, rec, rec + f.CONN_BIAS)  # [YN02, eqs. 4-5]; impact: [YN99, eq. 13]


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
            r = add(r, load3(work, body_i[i, f.RECORD] + f.REC_JOINT + part))
        i = body_i[i, f.PARENT]
    return r


@inline
def matmul_left(M, N):
    """M^T N."""
    return matmul((M[0], M[3], M[6], M[1], M[4], M[7], M[2], M[5], M[8]), N)


@inner
def rotation_vector_of(R):
    """Rotation vector of a rotation matrix (short of half a turn)."""
    half = (0.5 * (R[7] - R[5]), 0.5 * (R[2] - R[6]), 0.5 * (R[3] - R[1]))
    sine, cosine = norm(half), 0.5 * (R[0] + R[4] + R[8] - 1.0)
    k = where_positive(sine - 1e-9, atan2(sine, cosine) / maximum(sine, 1e-30), constant_like(sine, 1.0))
    return scale(half, k)


# -- coordinates ---------------------------------------------------------------------------------------------------


@inner
def coordinates(law, c, conn_i, conn_f, R, x, work, rec):
    """The joint's coordinates from the pose (R, x) of b's joint frame in a's; rotations as a vector."""
    o = rec + f.CONN_COORDINATES
    if law == f.LAW_SCREW:
        turn, slide = conn_f[c, f.SCREWS + 6], conn_f[c, f.SCREWS + 7]
        if turn == 0.0:
            store(work, o, x[2] / slide)
        else:
            angle = atan2(R[3] - R[1], R[0] + R[4])
            if slide != 0.0:  # how many turns, the slide tells
                angle = angle + TURN * nearest((x[2] / slide * turn - angle) / TURN)
            store(work, o, angle / turn)
    elif law == f.LAW_CYLINDRICAL:
        store(work, o, x[2])
        store(work, o + 1, atan2(R[3] - R[1], R[0] + R[4]))
    elif law == f.LAW_PLANAR:
        store(work, o, x[0])
        store(work, o + 1, x[1])
        store(work, o + 2, atan2(R[3] - R[1], R[0] + R[4]))
    elif law == f.LAW_SPHERICAL:
        store3(work, o, rotation_vector_of(R))
    elif law == f.LAW_FREE:
        store3(work, o, x)
        store3(work, o + 3, rotation_vector_of(R))
    elif law == f.LAW_COMPOUND:
        n = conn_i[c, f.ELEMENTS]
        for i in range(n):
            store(work, o + i, constant(work, 0.0))
        for _ in range(NEWTON_STEPS):
            Q, t = chain_pose(c, n, conn_f, work, rec)
            factor_axes(n, conn_f[c, f.LENGTH], work, rec)
            solve_rates(n, conn_f[c, f.LENGTH], rotation_vector_of(matmul_left(Q, R)), matTvec(Q, sub(x, t)), work, rec,
                        rec + f.CONN_RATES)
            for i in range(n):
                store(work, o + i, load(work, o + i) + load(work, rec + f.CONN_RATES + i))


@inline
def joint_pose(law, c, conn_i, conn_f, R, x, work, rec):
    """Pose of b's joint frame in a's at the joint's coordinates; fills the free directions of screws."""
    Q, t = unit9(work), zero3(work)
    if law == f.LAW_SPHERICAL:
        Q = R
    elif law == f.LAW_FREE:
        Q, t = R, x
    elif conn_i[c, f.ELEMENTS] > 0:
        Q, t = chain_pose(c, conn_i[c, f.ELEMENTS], conn_f, work, rec)
    return Q, t


@inner
def chain_pose(c, n, conn_f, work, rec):
    """Screws in a row: pose of the last frame in the first, and each free direction in axes of the last.

    A screw is the same in the frames before and after itself; those behind it carry it on.
    """
    Q, t = unit9(work), zero3(work)
    for back in range(n):
        i = n - 1 - back
        o = f.SCREWS + f.SCREW_SIZE * i
        axis, point = row3(conn_f, c, o), row3(conn_f, c, o + 3)
        turn, slide, q = conn_f[c, o + 6], conn_f[c, o + 7], load(work, rec + f.CONN_COORDINATES + i)
        s_w = scale(axis, turn)
        s_v = add(scale(axis, slide), cross(point, s_w))
        store3(work, rec + f.CONN_AXES + 6 * i, matTvec(Q, s_w))
        store3(work, rec + f.CONN_AXES + 6 * i + 3, matTvec(Q, add(s_v, cross(s_w, t))))
        s, k = sincos(q * turn)
        e = 1.0 - k
        xx, xy, xz = e * (axis[0] * axis[0]), e * (axis[0] * axis[1]), e * (axis[0] * axis[2])
        yy, yz, zz = e * (axis[1] * axis[1]), e * (axis[1] * axis[2]), e * (axis[2] * axis[2])
        sx, sy, sz = s * axis[0], s * axis[1], s * axis[2]
        T = (k + xx, xy - sz, xz + sy, xy + sz, k + yy, yz - sx, xz - sy, yz + sx, k + zz)
        shift = add(sub(point, matvec(T, point)), scale(axis, q * slide))
        Q, t = matmul(T, Q), add(matvec(T, t), shift)
    return Q, t


@inner
def rates(law, c, conn_i, conn_f, W, V, work, rec):
    """Rates of the coordinates from the relative motion (W, V)."""
    o, L = rec + f.CONN_RATES, conn_f[c, f.LENGTH]
    if law == f.LAW_SPHERICAL:
        store3(work, o, W)
    elif law == f.LAW_FREE:
        store3(work, o, V)
        store3(work, o + 3, W)
    elif law == f.LAW_COMPOUND:
        factor_axes(conn_i[c, f.ELEMENTS], L, work, rec)
        solve_rates(conn_i[c, f.ELEMENTS], L, W, V, work, rec, o)
    else:  # free directions at right angles
        for i in range(conn_i[c, f.ELEMENTS]):
            s_w, s_v = load3(work, rec + f.CONN_AXES + 6 * i), load3(work, rec + f.CONN_AXES + 6 * i + 3)
            size = L * L * dot(s_w, s_w) + dot(s_v, s_v)
            store(work, o + i, (L * L * dot(s_w, W) + dot(s_v, V)) / size)


@inner
def directions(law, c, conn_i, conn_f, turn, work, rec):
    """Constrained directions in world axes: constant in b's axes, or the complement of what is free."""
    for k in range(conn_i[c, f.ROWS]):
        o = rec + f.CONN_COLUMNS + 6 * k
        if law == f.LAW_COMPOUND and conn_i[c, f.GIVEN] == 0:
            K_w, K_v = complement(conn_i[c, f.ELEMENTS], k, conn_f[c, f.LENGTH], work, rec)
            store3(work, o, matvec(turn, K_w))
            store3(work, o + 3, matvec(turn, K_v))
        else:
            d = f.DIRECTIONS + 6 * k
            store3(work, o, matvec(turn, row3(conn_f, c, d)))
            store3(work, o + 3, matvec(turn, row3(conn_f, c, d + 3)))


@inline
def turning_axes(n, work, rec):
    """dS/dt times the rates: each free direction is carried by the motion of those behind it."""
    W, V, c_w, c_v = zero3(work), zero3(work), zero3(work), zero3(work)
    for back in range(n):
        i = n - 1 - back
        rate = load(work, rec + f.CONN_RATES + i)
        s_w = scale(load3(work, rec + f.CONN_AXES + 6 * i), rate)
        s_v = scale(load3(work, rec + f.CONN_AXES + 6 * i + 3), rate)
        d_w, d_v = velocity_product(W, V, s_w, s_v)
        c_w, c_v = sub(c_w, d_w), sub(c_v, d_v)
        W, V = add(W, s_w), add(V, s_v)
    return c_w, c_v


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
        for i in range(conn_i[c, f.ELEMENTS]):
            qdd = load(drives, first + i)
            W = add(W, scale(load3(work, rec + f.CONN_AXES + 6 * i), qdd))
            V = add(V, scale(load3(work, rec + f.CONN_AXES + 6 * i + 3), qdd))
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
    torque = -conn_f[c, o + f.DAMPING] * rate - conn_f[c, o + f.STIFFNESS] * (q - conn_f[c, o + f.REST])
    stiffness = conn_f[c, o + f.LIMIT_STIFFNESS]
    if stiffness > 0.0:
        if law == f.LAW_SPHERICAL:
            beyond = maximum(angle - conn_f[c, o + f.UPPER], 0.0)
            back = -1.0 * beyond * q / maximum(angle, 1e-30)
        else:
            over, under = maximum(q - conn_f[c, o + f.UPPER], 0.0), maximum(conn_f[c, o + f.LOWER] - q, 0.0)
            beyond, back = over + under, under - over
        brake = where_positive(beyond, conn_f[c, o + f.LIMIT_DAMPING] * rate, constant_like(rate, 0.0))
        torque = torque + stiffness * back - brake
    return torque


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
        o = body_i[body, f.RECORD] + f.REC_FORCE
        accumulate3(work, o, scale(add(moment, cross(arm, force)), -sign))
        accumulate3(work, o + 3, scale(force, -sign))


# -- orthogonal factors of the free directions of a compound joint (Householder), moments over L --------------------
# In CONN_SCRATCH: 6 per direction (reflectors below the diagonal, R above), then diagonal of R 6 and scale of the
# reflectors 6, then one vector of 6.


@inner
def factor_axes(n, L, work, rec):
    o, diagonal = rec + f.CONN_SCRATCH, rec + f.CONN_SCRATCH + 36
    for j in range(n):
        for k in range(6):
            x = load(work, rec + f.CONN_AXES + 6 * j + k)
            store(work, o + 6 * j + k, x * L if k < 3 else x)
    for j in range(n):
        x = load(work, o + 6 * j + j)
        rest = 0.0 * x
        for k in range(j + 1, 6):
            y = load(work, o + 6 * j + k)
            rest = rest + y * y
        length = sqrt(x * x + rest)
        r = where_positive(x, -1.0 * length, length)
        head = x - r
        factor = 2.0 / (head * head + rest)
        store(work, o + 6 * j + j, head)
        store(work, diagonal + j, r)
        store(work, diagonal + 6 + j, factor)
        for m in range(j + 1, n):
            reflect(j, o + 6 * m, work, o, diagonal)


@inner
def reflect(j, vector, work, o, diagonal):
    """Reflect a vector of six by reflector j."""
    total = 0.0 * load(work, vector)
    for k in range(j, 6):
        total = total + load(work, o + 6 * j + k) * load(work, vector + k)
    total = total * load(work, diagonal + 6 + j)
    for k in range(j, 6):
        store(work, vector + k, load(work, vector + k) - total * load(work, o + 6 * j + k))


@inner
def solve_rates(n, L, W, V, work, rec, out):
    """Least-squares rates of the coordinates for the relative motion (W, V)."""
    o, diagonal, vector = rec + f.CONN_SCRATCH, rec + f.CONN_SCRATCH + 36, rec + f.CONN_SCRATCH + 48
    store3(work, vector, scale(W, L))
    store3(work, vector + 3, V)
    for j in range(n):
        reflect(j, vector, work, o, diagonal)
    for back in range(n):
        j = n - 1 - back
        x = load(work, vector + j)
        for m in range(j + 1, n):
            x = x - load(work, o + 6 * m + j) * load(work, out + m)
        store(work, out + j, x / load(work, diagonal + j))


@inner
def from_factors(n, L, work, rec):
    """Q times the vector: a wrench or direction (angular, linear)."""
    o, diagonal, vector = rec + f.CONN_SCRATCH, rec + f.CONN_SCRATCH + 36, rec + f.CONN_SCRATCH + 48
    for back in range(n):
        reflect(n - 1 - back, vector, work, o, diagonal)
    return scale(load3(work, vector), L), load3(work, vector + 3)


@inline
def complement(n, k, L, work, rec):
    """Constrained direction k: column n + k of Q."""
    for d in range(6):
        store(work, rec + f.CONN_SCRATCH + 48 + d, constant(work, 1.0 if d == n + k else 0.0))
    return from_factors(n, L, work, rec)


@inline
def spread_torques(n, L, work, rec):
    """The wrench that does the work of the torques in CONN_BIAS and none along constrained directions: Q R^-T tau."""
    o, diagonal, vector = rec + f.CONN_SCRATCH, rec + f.CONN_SCRATCH + 36, rec + f.CONN_SCRATCH + 48
    for d in range(6):
        store(work, vector + d, constant(work, 0.0))
    for j in range(n):
        x = load(work, rec + f.CONN_BIAS + j)
        for m in range(j):
            x = x - load(work, o + 6 * j + m) * load(work, vector + m)
        store(work, vector + j, x / load(work, diagonal + j))
    return from_factors(n, L, work, rec)
