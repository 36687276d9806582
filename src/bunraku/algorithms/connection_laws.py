"""Joints of connections: coordinates from the relative pose, rates from the relative motion, free and constrained
directions; one law per kind of joint (`plan/fields.py`, LAW). See `connection_equations.py`.
"""

from bunraku.algorithms.passive import constant_like
from bunraku.algorithms.tree import row3, unit9, velocity_product, zero3
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import (
    add,
    cross,
    dot,
    load3,
    matmul,
    matTvec,
    matvec,
    norm,
    scale,
    store3,
    sub,
)
from bunraku.spatial.scalar import atan2, constant, load, maximum, nearest, sincos, sqrt, store, where_positive

NEWTON_STEPS = 16
TURN = 6.283185307179586
SIDE = 0.37
"""A free direction is reflected to the far side of an axis unless it is opposite to it by more than this cosine. Axes
at right angles, or at 30, 45 or 60 degrees, are clear of the border, where rounding would choose the side."""


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
        turn, slide = conn_f[c, f.SCREWS + f.SCREW_TURN], conn_f[c, f.SCREWS + f.SCREW_SLIDE]
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
        turn, slide = conn_f[c, o + f.SCREW_TURN], conn_f[c, o + f.SCREW_SLIDE]
        q = load(work, rec + f.CONN_COORDINATES + i)
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


@inline
def turns_directions(law, c, conn_i):
    """Whether the constrained directions turn with the joint's coordinates."""
    return law == f.LAW_COMPOUND and conn_i[c, f.GIVEN] == 0


@inner
def directions(again, law, c, conn_i, conn_f, before, turn, work, rec):
    """Constrained directions in world axes: constant in b's axes, or the complement of what is free.

    A complement has many bases, and which one comes out depends on rounding. `again`: the factors at hand are in the
    basis in the record, so that is kept, carried with b from its axes `before` to `turn`.
    """
    for k in range(conn_i[c, f.ROWS]):
        o = rec + f.CONN_COLUMNS + 6 * k
        if turns_directions(law, c, conn_i):
            if again:
                K_w, K_v = matTvec(before, load3(work, o)), matTvec(before, load3(work, o + 3))
            else:
                K_w, K_v = complement(conn_i[c, f.ELEMENTS], k, conn_f[c, f.LENGTH], work, rec)
            store3(work, o, matvec(turn, K_w))
            store3(work, o + 3, matvec(turn, K_v))
        else:
            d = f.DIRECTIONS + 6 * k
            store3(work, o, matvec(turn, row3(conn_f, c, d)))
            store3(work, o + 3, matvec(turn, row3(conn_f, c, d + 3)))


@inline
def along_axes(n, rates, o, work, rec):
    """S times the rates (or accelerations) at `o`."""
    W, V = zero3(work), zero3(work)
    for i in range(n):
        rate = load(rates, o + i)
        W = add(W, scale(load3(work, rec + f.CONN_AXES + 6 * i), rate))
        V = add(V, scale(load3(work, rec + f.CONN_AXES + 6 * i + 3), rate))
    return W, V


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
        r = where_positive(x + SIDE * length, -1.0 * length, length)  # |x - r| >= (1 - SIDE) length: no cancellation
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
