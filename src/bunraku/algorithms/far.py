"""The path of a chunk between two boundary links: the articulated-body sweep with a far handle.

Idea: while the bodies between the link above and the far link are eliminated, six more columns say how a force F on the
far link is passed on, and the same six how the far link is accelerated:

    force needed above = I a + p - Y F,      acceleration of the far link = Y^T a + beta + Theta F

Start: Y = the far link's frame, beta = Theta = 0. A joint with axis S, U = I S, D = S^T U, u = tau - S^T p (as in
`aba.py`) and y = Y^T S gives

    Y - U y^T / D,      beta + y u / D,      Theta + y y^T / D

and y is kept for the way back, where qdd = (u + y^T F - U^T a) / D. A ball joint, A = L diag(D) L^T, is three such axes
at once with y = L^-1 Y_w, so that Theta is the same sum for all joints. Accelerations are relative to those at zero
joint acceleration, whose part at the far link is added to beta at the end.

One sweep for I and p, one for Y and beta, one for Theta: each keeps its running values in registers (of lanes, Y in two
halves). Past a ball joint there is no moment left, and Y = Y_3 W with the three forces W there: where the far link
hangs by a ball, lanes pass on three columns, y_3, and have y = y_3 W, Theta = Theta_far + W^T Theta_3 W, all in one
sweep. (Floats have six columns for the price of three.) Reference: [YN02, eqs. 36-39] with Lambda = I^-1 at the link
above, so that no inertia is inverted; docs/parallel.md. Cost: 1.2 times the plain sweep for hinges. Limits: free joints
on the path go column by column.
"""

from bunraku.algorithms.aba import (
    eliminate_column,
    from_parent,
    join_body,
    joint_part_size,
    not_finite,
    reduce_ball,
    trace,
)
from bunraku.algorithms.tree import is_anchor, zero3, zero6, zero9
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import (
    add,
    add6,
    add9,
    cross,
    dot,
    load3,
    load6,
    load9,
    matTvec,
    matvec,
    scale,
    shift_inertia,
    store3,
    store6,
    store9,
    sub,
)
from bunraku.spatial.scalar import constant, load, minimum, store
from bunraku.spatial.six import columns, load_six, six_of, store_columns, three_of

SIZE, FAR_R, FAR_U = f.FAR_SIZE, f.FAR_R, f.FAR_U


@inner
def far_sweep(first, end, state, kept, front, body_i, dof_f, tau, far, work):
    """Pass 2 of the bodies end - 1 .. first, a path, with a far handle at the last. `state`: where the far body's state
    is; `kept`: where in `far` y and the results of the joints are kept, FAR_SIZE per degree of freedom; `front`: where
    the result goes. Returns the margin."""
    few = few_columns(first, end, body_i, work)
    begin = end - 1 if few else first
    margin = sweep_path(begin, end, kept, front, body_i, dof_f, tau, far, work)
    # Y: unit moments, then unit forces, along the axes R of the far body, at its origin x
    z = constant(work, 0.0)
    R, x = load9(work, state), load3(work, state + 9)
    m0, m1, m2 = cross(x, (R[0], R[3], R[6])), cross(x, (R[1], R[4], R[7])), cross(x, (R[2], R[5], R[8]))
    to = front + f.FRONT_Y
    if work.ndim == 1:
        Y_w = (six_of(R[0], R[1], R[2], m0[0], m1[0], m2[0]), six_of(R[3], R[4], R[5], m0[1], m1[1], m2[1]),
               six_of(R[6], R[7], R[8], m0[2], m1[2], m2[2]))
        Y_v = (six_of(z, z, z, R[0], R[1], R[2]), six_of(z, z, z, R[3], R[4], R[5]), six_of(z, z, z, R[6], R[7], R[8]))
        Y_w, Y_v, beta = pass_on(first, end, kept, 0, Y_w, Y_v, six_of(z, z, z, z, z, z), body_i, far, work)
        w0, w1, w2, v0, v1, v2 = (columns(Y_w[0]), columns(Y_w[1]), columns(Y_w[2]), columns(Y_v[0]), columns(Y_v[1]),
                                  columns(Y_v[2]))
        store6(work, to, (w0[0], w1[0], w2[0], v0[0], v1[0], v2[0]))
        store6(work, to + 6, (w0[1], w1[1], w2[1], v0[1], v1[1], v2[1]))
        store6(work, to + 12, (w0[2], w1[2], w2[2], v0[2], v1[2], v2[2]))
        store6(work, to + 18, (w0[3], w1[3], w2[3], v0[3], v1[3], v2[3]))
        store6(work, to + 24, (w0[4], w1[4], w2[4], v0[4], v1[4], v2[4]))
        store6(work, to + 30, (w0[5], w1[5], w2[5], v0[5], v1[5], v2[5]))
        b = columns(beta)
        store_beta(state, front, (b[0], b[1], b[2]), (b[3], b[4], b[5]), work)
    else:
        if few:
            return minimum(margin, few_column_sweep(first, end, state, kept, front, body_i, dof_f, tau, far, work))
        none = three_of(z, z, z)
        Y_w = three_of(R[0], R[1], R[2]), three_of(R[3], R[4], R[5]), three_of(R[6], R[7], R[8])
        Y_w, Y_v, turning = pass_on(first, end, kept, 0, Y_w, (none, none, none), none, body_i, far, work)
        store_half(work, to, Y_w, Y_v)
        Y_v = three_of(R[0], R[1], R[2]), three_of(R[3], R[4], R[5]), three_of(R[6], R[7], R[8])
        Y_w = three_of(m0[0], m1[0], m2[0]), three_of(m0[1], m1[1], m2[1]), three_of(m0[2], m1[2], m2[2])
        Y_w, Y_v, moving = pass_on(first, end, kept, 3, Y_w, Y_v, none, body_i, far, work)
        store_half(work, to + 18, Y_w, Y_v)
        store_beta(state, front, columns(turning), columns(moving), work)
    freedoms = body_i[end - 1, f.V_INDEX] + body_i[end - 1, f.DOF] - body_i[first, f.V_INDEX]
    sum_theta(kept, kept + SIZE * freedoms, front + f.FRONT_THETA, far, work)
    return margin


@inline
def few_columns(first, end, body_i, work):
    """Whether three columns are passed on: of lanes, and the far link hangs by a ball."""
    return work.ndim == 2 and end - 1 > first and body_i[end - 1, f.ELIMINATION] == f.BALL


@inner
def few_column_sweep(first, end, state, kept, front, body_i, dof_f, tau, far, work):
    """The rest of `far_sweep` with three columns past the far ball, to which I and p are known. Returns the margin."""
    R, x, z, one = load9(work, state), load3(work, state + 9), constant(work, 0.0), constant(work, 1.0)
    m0, m1, m2 = cross(x, (R[0], R[3], R[6])), cross(x, (R[1], R[4], R[7])), cross(x, (R[2], R[5], R[8]))
    last, none, to = end - 1, three_of(z, z, z), front + f.FRONT_Y
    axes = three_of(R[0], R[1], R[2]), three_of(R[3], R[4], R[5]), three_of(R[6], R[7], R[8])
    _, W_m, turning = pass_on(last, end, kept, 0, axes, (none, none, none), none, body_i, far, work)
    arms = three_of(m0[0], m1[0], m2[0]), three_of(m0[1], m1[1], m2[1]), three_of(m0[2], m1[2], m2[2])
    _, W_f, moving = pass_on(last, end, kept, 3, arms, axes, none, body_i, far, work)
    sum_theta(kept, kept + 3 * SIZE, front + f.FRONT_THETA, far, work)
    unit = three_of(one, z, z), three_of(z, one, z), three_of(z, z, one)
    Y_w = cross(load3(work, body_i[last, f.BODY_RECORD] + f.REC_JOINT + 9), unit)
    Y_w, Y_v, beta, theta, margin = sweep_few(first, last, kept, front, Y_w, unit, none, body_i, dof_f, tau, far, work)
    store_half(work, to, by_rows(Y_w, W_m), by_rows(Y_v, W_m))
    store_half(work, to + 18, by_rows(Y_w, W_f), by_rows(Y_v, W_f))
    b = columns(beta)
    store_beta(state, front, columns(turning + dot(b, W_m)), columns(moving + dot(b, W_f)), work)
    add_theta(theta, W_m, W_f, front + f.FRONT_THETA, work)
    return margin


@inline
def by_rows(Y, W):
    """The product of two matrices, by rows of three columns each."""
    return dot(columns(Y[0]), W), dot(columns(Y[1]), W), dot(columns(Y[2]), W)


@inner
def sweep_few(first, end, kept, front, Y_w, Y_v, beta, body_i, dof_f, tau, far, work):
    """`sweep_path` from the I and p in `front` on, and `pass_on` of three columns with it; y_3 is not kept, but the sum
    of y_3 y_3^T / D: (00, 10, 11, 20, 21, 22)."""
    A, B, C = load6(work, front), load9(work, front + 6), load6(work, front + 15)
    p_w, p_v = load3(work, front + f.FRONT_P), load3(work, front + f.FRONT_P + 3)
    z, margin = constant(work, 0.0), constant(tau, 1.0)
    theta = z, z, z, z, z, z
    for back in range(end - first):
        i = end - 1 - back
        o, record, elimination = body_i[i, f.OWN_SLOT], body_i[i, f.BODY_RECORD], body_i[i, f.ELIMINATION]
        if o > f.SLOT_CARRY:  # other subtrees hang from it
            A, B, C = add6(A, load6(work, o)), add9(B, load9(work, o + 6)), add6(C, load6(work, o + 15))
            p_w, p_v = add(p_w, load3(work, o + f.SLOT_BIAS)), add(p_v, load3(work, o + f.SLOT_BIAS + 3))
        A, B, C, p_w, p_v = join_body(A, B, C, p_w, p_v, work, record)
        if elimination == f.BALL:
            A, B, C, p_w, p_v, pivot, F, k, G = reduce_ball(i, A, B, C, p_w, p_v, body_i, tau, work)
            margin = minimum(margin, pivot)
            y1 = Y_w[1] - F[0] * Y_w[0]
            theta = add_square(theta, Y_w[0], F[3])
            theta = add_square(theta, y1, F[4])
            theta = add_square(theta, Y_w[2] - F[1] * Y_w[0] - F[2] * y1, F[5])
            beta = beta + dot(k, Y_w)
            Y_v = sub(Y_v, matTvec(G, Y_w))
            Y_w = cross(load3(work, record + f.REC_JOINT + 9), Y_v)  # it passes on no moment
            continue
        turning, moving, dof = trace(A), trace(C), body_i[i, f.DOF]
        for d in range(dof):
            axis, result = record + f.REC_JOINT + 6 * d, kept + FAR_U
            A, B, C, p_w, p_v, pivot = eliminate_column(A, B, C, p_w, p_v, turning, moving, dof_f,
                                                        body_i[i, f.V_INDEX] + d, tau, work, axis, far, result)
            margin = minimum(margin, pivot)
            y = dot(load3(work, axis), Y_w) + dot(load3(work, axis + 3), Y_v)
            theta = add_square(theta, y, load(far, result + 6))
            y = y * load(far, result + 6)
            Y_w, Y_v = sub(Y_w, scale(load3(far, result), y)), sub(Y_v, scale(load3(far, result + 3), y))
            beta = beta + y * load(far, result + 7)
        if is_anchor(body_i, i):
            r = load3(work, record + f.REC_JOINT + joint_part_size(elimination, dof))
            A, B = shift_inertia(A, B, C, r)
            p_w, Y_w = add(p_w, cross(r, p_v)), add(Y_w, cross(r, Y_v))
    store6(work, front, A)
    store9(work, front + 6, B)
    store6(work, front + 15, C)
    store3(work, front + f.FRONT_P, p_w)
    store3(work, front + f.FRONT_P + 3, p_v)
    return Y_w, Y_v, beta, theta, margin


@inline
def add_square(theta, columns_y, r):
    """Theta + y y^T r."""
    y = columns(columns_y)
    z0, z1, z2 = y[0] * r, y[1] * r, y[2] * r
    return add6(theta, (z0 * y[0], z1 * y[0], z1 * y[1], z2 * y[0], z2 * y[1], z2 * y[2]))


@inner
def add_theta(t, W_m, W_f, o, work):
    """Theta + W^T T W, packed lower triangle, W = (W_m, W_f) by rows."""
    T0, T1, T2 = (t[0], t[1], t[3]), (t[1], t[2], t[4]), (t[3], t[4], t[5])
    V_m, V_f = (dot(T0, W_m), dot(T1, W_m), dot(T2, W_m)), (dot(T0, W_f), dot(T1, W_f), dot(T2, W_f))
    a0, a1, a2 = by_columns(W_m)
    a3, a4, a5 = by_columns(W_f)
    b0, b1, b2 = by_columns(V_m)
    b3, b4, b5 = by_columns(V_f)
    store6(work, o, add6(load6(work, o), (dot(a0, b0), dot(a1, b0), dot(a1, b1), dot(a2, b0), dot(a2, b1),
                                          dot(a2, b2))))
    store6(work, o + 6, add6(load6(work, o + 6), (dot(a3, b0), dot(a3, b1), dot(a3, b2), dot(a3, b3), dot(a4, b0),
                                                  dot(a4, b1))))
    store9(work, o + 12, add9(load9(work, o + 12), (dot(a4, b2), dot(a4, b3), dot(a4, b4), dot(a5, b0), dot(a5, b1),
                                                    dot(a5, b2), dot(a5, b3), dot(a5, b4), dot(a5, b5))))


@inline
def by_columns(W):
    """The columns of a matrix that is given by rows of three."""
    x, y, z = columns(W[0]), columns(W[1]), columns(W[2])
    return (x[0], y[0], z[0]), (x[1], y[1], z[1]), (x[2], y[2], z[2])


@inline
def store_half(work, to, Y_w, Y_v):
    """Three columns of Y, (moment, force) each."""
    w0, w1, w2, v0, v1, v2 = (columns(Y_w[0]), columns(Y_w[1]), columns(Y_w[2]), columns(Y_v[0]), columns(Y_v[1]),
                              columns(Y_v[2]))
    store6(work, to, (w0[0], w1[0], w2[0], v0[0], v1[0], v2[0]))
    store6(work, to + 6, (w0[1], w1[1], w2[1], v0[1], v1[1], v2[1]))
    store6(work, to + 12, (w0[2], w1[2], w2[2], v0[2], v1[2], v2[2]))


@inline
def store_beta(state, front, turning, moving, work):
    alpha, a = far_bias(state, work)
    store3(work, front + f.FRONT_BETA, add(turning, alpha))
    store3(work, front + f.FRONT_BETA + 3, add(moving, a))


@inline
def sweep_path(first, end, kept, front, body_i, dof_f, tau, far, work):
    """I and p of the path, as in the plain sweep. Results of the joints are left in `far`: the records of the bodies
    stay as they are, for another sweep once it is known what hangs from the far link."""
    A, B, C, p_w, p_v = zero6(tau), zero9(tau), zero6(tau), zero3(tau), zero3(tau)
    margin, begin = constant(tau, 1.0), body_i[first, f.V_INDEX]
    i = end - 1
    while i >= first:
        o = body_i[i, f.OWN_SLOT]
        if o > f.SLOT_CARRY:  # other subtrees hang from it
            A, B, C = add6(A, load6(work, o)), add9(B, load9(work, o + 6)), add6(C, load6(work, o + 15))
            p_w, p_v = add(p_w, load3(work, o + f.SLOT_BIAS)), add(p_v, load3(work, o + f.SLOT_BIAS + 3))
        if body_i[i, f.PLAIN] == f.PLAIN_HINGE:  # up a run of hinges in registers
            running = True
            while running:
                record = body_i[i, f.BODY_RECORD]
                A, B, C, p_w, p_v = join_body(A, B, C, p_w, p_v, work, record)
                A, B, C, p_w, p_v, pivot = eliminate_column(A, B, C, p_w, p_v, trace(A), trace(C), dof_f,
                                                            body_i[i, f.V_INDEX], tau, work, record + f.REC_JOINT,
                                                            far, kept + SIZE * (body_i[i, f.V_INDEX] - begin) + FAR_U)
                margin = minimum(margin, pivot)
                running = body_i[i, f.RUNS_ON] != 0 and i > first
                i -= 1
            continue
        record, j, elimination = body_i[i, f.BODY_RECORD], body_i[i, f.V_INDEX], body_i[i, f.ELIMINATION]
        dof, place = body_i[i, f.DOF], kept + SIZE * (j - begin)
        A, B, C, p_w, p_v = join_body(A, B, C, p_w, p_v, work, record)
        if elimination == f.BALL:
            A, B, C, p_w, p_v, pivot, F, k, G = reduce_ball(i, A, B, C, p_w, p_v, body_i, tau, work)
            margin = minimum(margin, pivot)
            store6(far, place + f.FAR_BALL_G[0], (G[0], G[1], G[2], G[3], G[4], G[5]))
            store3(far, place + f.FAR_BALL_G[1], (G[6], G[7], G[8]))
            store3(far, place + f.FAR_BALL_K, k)
            store3(far, place + f.FAR_BALL_L, (F[0], F[1], F[2]))
            store(far, place + FAR_R, F[3])
            store(far, place + SIZE + FAR_R, F[4])
            store(far, place + 2 * SIZE + FAR_R, F[5])
        else:
            turning, moving = trace(A), trace(C)
            for d in range(dof):
                if elimination == f.LOCKED:
                    store(far, place + SIZE * d + FAR_R, 0.0)
                    continue
                A, B, C, p_w, p_v, pivot = eliminate_column(A, B, C, p_w, p_v, turning, moving, dof_f, j + d, tau,
                                                            work, record + f.REC_JOINT + 6 * d, far,
                                                            place + SIZE * d + FAR_U)
                margin = minimum(margin, pivot)
            if is_anchor(body_i, i):  # about the origin of the parent's group, in which this one sits at r
                r = load3(work, record + f.REC_JOINT + joint_part_size(elimination, dof))
                A, B = shift_inertia(A, B, C, r)
                p_w = add(p_w, cross(r, p_v))
        i -= 1
    store6(work, front, A)
    store9(work, front + 6, B)
    store6(work, front + 15, C)
    store3(work, front + f.FRONT_P, p_w)
    store3(work, front + f.FRONT_P + 3, p_v)
    return margin


@inline
def load_ball(far, place):
    """L, k and G of a ball joint."""
    x, y = load6(far, place + f.FAR_BALL_G[0]), load3(far, place + f.FAR_BALL_G[1])
    return (load3(far, place + f.FAR_BALL_L), load3(far, place + f.FAR_BALL_K),
            (x[0], x[1], x[2], x[3], x[4], x[5], y[0], y[1], y[2]))


@inner
def pass_on(first, end, kept, half, Y_w, Y_v, beta, body_i, far, work):
    """Columns of Y and beta through the joints of the path, tip to root, by what `sweep_path` has left; y is kept,
    from its place `half` on."""
    begin = body_i[first, f.V_INDEX]
    for back in range(end - first):
        i = end - 1 - back
        record, elimination, dof = body_i[i, f.BODY_RECORD], body_i[i, f.ELIMINATION], body_i[i, f.DOF]
        place = kept + SIZE * (body_i[i, f.V_INDEX] - begin)
        if elimination == f.BALL:
            L, k, G = load_ball(far, place)
            r = load3(work, record + f.REC_JOINT + 9)
            y1 = Y_w[1] - L[0] * Y_w[0]
            store_columns(far, place + half, Y_w[0])
            store_columns(far, place + SIZE + half, y1)
            store_columns(far, place + 2 * SIZE + half, Y_w[2] - L[1] * Y_w[0] - L[2] * y1)
            beta = beta + dot(k, Y_w)
            Y_v = sub(Y_v, matTvec(G, Y_w))
            Y_w = cross(r, Y_v)  # it passes on no moment
        else:
            for d in range(dof):
                if elimination == f.LOCKED:
                    store_columns(far, place + SIZE * d + half, Y_w[0] * 0.0)
                    continue
                axis, result = record + f.REC_JOINT + 6 * d, place + SIZE * d + FAR_U
                y = dot(load3(work, axis), Y_w) + dot(load3(work, axis + 3), Y_v)
                z = y * load(far, result + 6)
                store_columns(far, place + SIZE * d + half, y)
                # [YN02, eqs. 36, 38]
                Y_w, Y_v = sub(Y_w, scale(load3(far, result), z)), sub(Y_v, scale(load3(far, result + 3), z))
                beta = beta + z * load(far, result + 7)
            if is_anchor(body_i, i):
                r = load3(work, record + f.REC_JOINT + joint_part_size(elimination, dof))
                Y_w = add(Y_w, cross(r, Y_v))
    return Y_w, Y_v, beta


@inner
def sum_theta(kept, end, to, far, work):
    """Theta = sum of y y^T / D over the degrees of freedom, packed lower triangle."""
    z = constant(work, 0.0)
    if work.ndim == 1:
        none = six_of(z, z, z, z, z, z)
        T0, T1, T2, T3, T4, T5 = none, none, none, none, none, none
        for o in range(kept, end, SIZE):
            y, row = load6(far, o), load_six(far, o)
            scaled = row * load(far, o + FAR_R)
            T0, T1, T2 = T0 + scaled * y[0], T1 + scaled * y[1], T2 + scaled * y[2]
            T3, T4, T5 = T3 + scaled * y[3], T4 + scaled * y[4], T5 + scaled * y[5]
        r0, r1, r2, r3, r4, r5 = columns(T0), columns(T1), columns(T2), columns(T3), columns(T4), columns(T5)
        store6(work, to, (r0[0], r1[0], r1[1], r2[0], r2[1], r2[2]))
        store6(work, to + 6, (r3[0], r3[1], r3[2], r3[3], r4[0], r4[1]))
        store9(work, to + 12, (r4[2], r4[3], r4[4], r5[0], r5[1], r5[2], r5[3], r5[4], r5[5]))
        return
    t00, t10, t11, t20, t21, t22, t30, t31, t32, t33 = z, z, z, z, z, z, z, z, z, z
    t40, t41, t42, t43, t44, t50, t51, t52, t53, t54, t55 = z, z, z, z, z, z, z, z, z, z, z
    for o in range(kept, end, SIZE):
        y, r = load6(far, o), load(far, o + FAR_R)
        z0, z1, z2, z3, z4, z5 = y[0] * r, y[1] * r, y[2] * r, y[3] * r, y[4] * r, y[5] * r
        t00, t10, t11 = t00 + z0 * y[0], t10 + z1 * y[0], t11 + z1 * y[1]
        t20, t21, t22 = t20 + z2 * y[0], t21 + z2 * y[1], t22 + z2 * y[2]
        t30, t31, t32, t33 = t30 + z3 * y[0], t31 + z3 * y[1], t32 + z3 * y[2], t33 + z3 * y[3]
        t40, t41, t42, t43 = t40 + z4 * y[0], t41 + z4 * y[1], t42 + z4 * y[2], t43 + z4 * y[3]
        t50, t51, t52, t53 = t50 + z5 * y[0], t51 + z5 * y[1], t52 + z5 * y[2], t53 + z5 * y[3]
        t44, t54, t55 = t44 + z4 * y[4], t54 + z5 * y[4], t55 + z5 * y[5]
    store6(work, to, (t00, t10, t11, t20, t21, t22))
    store6(work, to + 6, (t30, t31, t32, t33, t40, t41))
    store9(work, to + 12, (t42, t43, t44, t50, t51, t52, t53, t54, t55))


@inline
def far_bias(state, work):
    """Acceleration of the far body at zero joint acceleration, about its origin, in its axes."""
    R, x, alpha = load9(work, state), load3(work, state + 9), load3(work, state + 18)
    return matTvec(R, alpha), matTvec(R, add(load3(work, state + 21), cross(alpha, x)))


@inline
def push_on(place, F, work):
    """y^T F: what the force on the far link adds to the torque of a joint."""
    y = load6(work, place)
    return y[0] * F[0] + y[1] * F[1] + y[2] * F[2] + y[3] * F[3] + y[4] * F[4] + y[5] * F[5]


@inner
def far_sweep_back(first, end, kept, force, body_i, tau, acceleration, work):
    """Pass 3 of the path, with the force on the far link at the place `force`. Returns zero, or NaN if not finite."""
    F, residue, begin = load6(work, force), constant(tau, 0.0), body_i[first, f.V_INDEX]
    for i in range(first, end):
        to, record, elimination = body_i[i, f.OWN_SLOT], body_i[i, f.BODY_RECORD], body_i[i, f.ELIMINATION]
        dof, j = body_i[i, f.DOF], body_i[i, f.V_INDEX]
        alpha, a, unfit = from_parent(i, body_i, tau, work)
        residue = residue + unfit
        place = kept + SIZE * (j - begin)
        if elimination == f.COLUMNS:  # qdd = (u + y^T F - U^T a) / D [YN02, eq. 53]
            for last in range(dof):
                d = dof - 1 - last
                o = place + SIZE * d + FAR_U
                push = load(work, o + 7) + push_on(place + SIZE * d, F, work)
                bias = dot(load3(work, o), alpha) + dot(load3(work, o + 3), a)
                qdd = (push - bias) * load(work, o + 6)
                store(acceleration, j + d, qdd)
                residue = residue + 0.0 * qdd
                o = record + f.REC_JOINT + 6 * d
                alpha = add(alpha, scale(load3(work, o), qdd))
                a = add(a, scale(load3(work, o + 3), qdd))
        elif elimination == f.BALL:  # alpha = k - G a + A^-1 Y_w F
            L, k, G = load_ball(work, place)
            x2 = push_on(place + 2 * SIZE, F, work) * load(work, place + 2 * SIZE + FAR_R)
            x1 = push_on(place + SIZE, F, work) * load(work, place + SIZE + FAR_R) - L[2] * x2
            push = push_on(place, F, work) * load(work, place + FAR_R) - L[0] * x1 - L[1] * x2, x1, x2
            turned = add(sub(k, matvec(G, a)), push)
            turn = matTvec(load9(work, record + f.REC_JOINT), sub(turned, alpha))
            store3(acceleration, j, turn)
            residue = residue + not_finite(turn)
            alpha = turned
        else:  # locked
            for d in range(dof):
                qdd = load(tau, j + d)
                store(acceleration, j + d, qdd)
                residue = residue + 0.0 * qdd
        store3(work, to, alpha)
        store3(work, to + 3, a)
    return residue
