"""The path of a chunk between two boundary links: the articulated-body sweep with a far handle, in registers.

Idea: while the bodies between the link above and the far link are eliminated, six more columns say how a force F on the
far link is passed on, and the same six how the far link is accelerated:

    force needed above = I a + p - Y F,      acceleration of the far link = Y^T a + beta + Theta F

Start: Y = the far link's frame, beta = Theta = 0. A joint with axis S, U = I S, D = S^T U, u = tau - S^T p (as in
`aba.py`) and y = Y^T S gives

    Y - U y^T / D,      beta + y u / D,      Theta + y y^T / D

and y is kept for the way back, where qdd = (u + y^T F - U^T a) / D. A ball joint is the same with three axes at once.
Accelerations are relative to those at zero joint acceleration, whose part at the far link is added to beta at the end.
Reference: [YN02, eqs. 36-39] with Lambda = I^-1 at the link above, so that no inertia is inverted; docs/parallel.md.
Cost: 1.2 to 1.3 times the plain sweep for hinges (`bunraku bench parallel`). Limits: free joints on the path go column
by column.
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
    solve3,
    store3,
    store6,
    store9,
    sub,
)
from bunraku.spatial.scalar import constant, load, minimum, store
from bunraku.spatial.six import columns, six_of, store_six

KEPT = f.CHUNK_Y


@inner
def far_sweep(first, end, state, kept, front, body_i, dof_f, tau, work):
    """Pass 2 of the bodies end - 1 .. first, a path, with a far handle at the last. `state`: where the far body's state
    is; `kept`: where y is kept, KEPT per degree of freedom; `front`: where the result goes. Returns the margin."""
    z = constant(tau, 0.0)
    A, B, C, p_w, p_v = zero6(tau), zero9(tau), zero6(tau), zero3(tau), zero3(tau)
    # Y: what unit moments and forces along the axes R of the far body, at its origin x, are at the group's origin
    R, x = load9(work, state), load3(work, state + 9)
    m0, m1, m2 = cross(x, (R[0], R[3], R[6])), cross(x, (R[1], R[4], R[7])), cross(x, (R[2], R[5], R[8]))
    Y_w = (six_of(R[0], R[1], R[2], m0[0], m1[0], m2[0]), six_of(R[3], R[4], R[5], m0[1], m1[1], m2[1]),
           six_of(R[6], R[7], R[8], m0[2], m1[2], m2[2]))
    Y_v = (six_of(z, z, z, R[0], R[1], R[2]), six_of(z, z, z, R[3], R[4], R[5]), six_of(z, z, z, R[6], R[7], R[8]))
    none = six_of(z, z, z, z, z, z)
    beta, T0, T1, T2, T3, T4, T5 = none, none, none, none, none, none, none
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
                record, j = body_i[i, f.BODY_RECORD], body_i[i, f.V_INDEX]
                A, B, C, p_w, p_v = join_body(A, B, C, p_w, p_v, work, record)
                axis, result, place = record + f.REC_JOINT, record + f.REC_U, kept + KEPT * (j - begin)
                A, B, C, p_w, p_v, pivot = eliminate_column(A, B, C, p_w, p_v, trace(A), trace(C), dof_f, j, tau, work,
                                                            axis, result)
                margin = minimum(margin, pivot)
                Y_w, Y_v, beta, T0, T1, T2, T3, T4, T5 = through_column(Y_w, Y_v, beta, T0, T1, T2, T3, T4, T5, axis,
                                                                        result, place, work)
                running = body_i[i, f.HINGE_RUN] != 0 and i > first
                i -= 1
            continue
        record, j, elimination = body_i[i, f.BODY_RECORD], body_i[i, f.V_INDEX], body_i[i, f.ELIMINATION]
        dof, place = body_i[i, f.DOF], kept + KEPT * (j - begin)
        A, B, C, p_w, p_v = join_body(A, B, C, p_w, p_v, work, record)
        if elimination == f.BALL:
            B_here = B
            A, B, C, p_w, p_v, pivot, F = reduce_ball(i, A, B, C, p_w, p_v, body_i, tau, work)
            margin = minimum(margin, pivot)
            k, r = load3(work, record + f.REC_BALL_K), load3(work, record + f.REC_JOINT + 9)
            y, beta = Y_w, beta + dot(k, Y_w)
            s = solve3(F, y)  # A^-1 Y
            store_six(work, place, s[0])
            store_six(work, place + KEPT, s[1])
            store_six(work, place + 2 * KEPT, s[2])
            for d in range(3):
                T0, T1, T2, T3, T4, T5 = more_theta(T0, T1, T2, T3, T4, T5, y[d], s[d])
            Y_v = sub(Y_v, matTvec(B_here, s))
            Y_w = cross(r, Y_v)  # it passes on no moment
        else:
            turning, moving = trace(A), trace(C)
            for d in range(dof if elimination == f.COLUMNS else 0):
                axis = record + f.REC_JOINT + 6 * d
                result = record + f.REC_U if d == 0 else record + f.REC_JOINT + 6 * dof + 3 + f.REC_U_SIZE * (d - 1)
                A, B, C, p_w, p_v, pivot = eliminate_column(A, B, C, p_w, p_v, turning, moving, dof_f, j + d, tau,
                                                            work, axis, result)
                margin = minimum(margin, pivot)
                Y_w, Y_v, beta, T0, T1, T2, T3, T4, T5 = through_column(Y_w, Y_v, beta, T0, T1, T2, T3, T4, T5, axis,
                                                                        result, place + KEPT * d, work)
            if is_anchor(body_i, i):  # about the origin of the parent's group, in which this one sits at r
                r = load3(work, record + f.REC_JOINT + joint_part_size(elimination, dof))
                A, B = shift_inertia(A, B, C, r)
                p_w = add(p_w, cross(r, p_v))
                Y_w = add(Y_w, cross(r, Y_v))
        i -= 1
    store6(work, front, A)
    store9(work, front + 6, B)
    store6(work, front + 15, C)
    store3(work, front + f.FRONT_P, p_w)
    store3(work, front + f.FRONT_P + 3, p_v)
    store_columns(work, front + f.FRONT_Y, Y_w, Y_v)
    alpha, a = far_bias(state, work)
    store6(work, front + f.FRONT_BETA, columns(beta + six_of(alpha[0], alpha[1], alpha[2], a[0], a[1], a[2])))
    o = front + f.FRONT_THETA
    t0, t1, t2, t3, t4, t5 = columns(T0), columns(T1), columns(T2), columns(T3), columns(T4), columns(T5)
    store6(work, o, (t0[0], t1[0], t1[1], t2[0], t2[1], t2[2]))
    store6(work, o + 6, (t3[0], t3[1], t3[2], t3[3], t4[0], t4[1]))
    store9(work, o + 12, (t4[2], t4[3], t4[4], t5[0], t5[1], t5[2], t5[3], t5[4], t5[5]))
    return margin


@inline
def through_column(Y_w, Y_v, beta, T0, T1, T2, T3, T4, T5, axis, result, place, work):
    """All six columns through one degree of freedom that has just been eliminated."""
    s_w, s_v = load3(work, axis), load3(work, axis + 3)
    U_w, U_v = load3(work, result), load3(work, result + 3)
    r, u = load(work, result + 6), load(work, result + 7)
    y = dot(s_w, Y_w) + dot(s_v, Y_v)
    z = y * r
    store_six(work, place, y)
    T0, T1, T2, T3, T4, T5 = more_theta(T0, T1, T2, T3, T4, T5, y, z)
    # [YN02, eqs. 36, 38]
    return sub(Y_w, scale(U_w, z)), sub(Y_v, scale(U_v, z)), beta + z * u, T0, T1, T2, T3, T4, T5


@inline
def more_theta(T0, T1, T2, T3, T4, T5, y, z):
    """Theta + y z^T, by rows."""
    c = columns(y)
    return T0 + z * c[0], T1 + z * c[1], T2 + z * c[2], T3 + z * c[3], T4 + z * c[4], T5 + z * c[5]


@inline
def store_columns(work, o, Y_w, Y_v):
    """Y column by column, (moment, force) each."""
    w0, w1, w2, v0, v1, v2 = (columns(Y_w[0]), columns(Y_w[1]), columns(Y_w[2]), columns(Y_v[0]), columns(Y_v[1]),
                              columns(Y_v[2]))
    store6(work, o, (w0[0], w1[0], w2[0], v0[0], v1[0], v2[0]))
    store6(work, o + 6, (w0[1], w1[1], w2[1], v0[1], v1[1], v2[1]))
    store6(work, o + 12, (w0[2], w1[2], w2[2], v0[2], v1[2], v2[2]))
    store6(work, o + 18, (w0[3], w1[3], w2[3], v0[3], v1[3], v2[3]))
    store6(work, o + 24, (w0[4], w1[4], w2[4], v0[4], v1[4], v2[4]))
    store6(work, o + 30, (w0[5], w1[5], w2[5], v0[5], v1[5], v2[5]))


@inline
def far_bias(state, work):
    """Acceleration of the far body at zero joint acceleration, about its origin, in its axes."""
    R, x, alpha = load9(work, state), load3(work, state + 9), load3(work, state + 18)
    return matTvec(R, alpha), matTvec(R, add(load3(work, state + 21), cross(alpha, x)))


@inner
def far_sweep_back(first, end, kept, force, body_i, tau, acceleration, work):
    """Pass 3 of the path, with the force on the far link at the place `force`. Returns zero, or NaN if not finite."""
    f0, f1, f2 = load(work, force), load(work, force + 1), load(work, force + 2)
    f3, f4, f5 = load(work, force + 3), load(work, force + 4), load(work, force + 5)
    residue, begin = constant(tau, 0.0), body_i[first, f.V_INDEX]
    for i in range(first, end):
        to, record, elimination = body_i[i, f.OWN_SLOT], body_i[i, f.BODY_RECORD], body_i[i, f.ELIMINATION]
        dof, j = body_i[i, f.DOF], body_i[i, f.V_INDEX]
        alpha, a, unfit = from_parent(i, body_i, tau, work)
        residue = residue + unfit
        place = kept + KEPT * (j - begin)
        if elimination == f.COLUMNS:  # qdd = (u + y^T F - U^T a) / D [YN02, eq. 53]
            for last in range(dof):
                d = dof - 1 - last
                y = load6(work, place + KEPT * d)
                push = y[0] * f0 + y[1] * f1 + y[2] * f2 + y[3] * f3 + y[4] * f4 + y[5] * f5
                o = record + f.REC_U if d == 0 else record + f.REC_JOINT + 6 * dof + 3 + f.REC_U_SIZE * (d - 1)
                bias = dot(load3(work, o), alpha) + dot(load3(work, o + 3), a)
                qdd = (load(work, o + 7) + push - bias) * load(work, o + 6)
                store(acceleration, j + d, qdd)
                residue = residue + 0.0 * qdd
                o = record + f.REC_JOINT + 6 * d
                alpha = add(alpha, scale(load3(work, o), qdd))
                a = add(a, scale(load3(work, o + 3), qdd))
        elif elimination == f.BALL:  # alpha = k - G a + z F
            y, z, x = load6(work, place), load6(work, place + KEPT), load6(work, place + 2 * KEPT)
            push = (y[0] * f0 + y[1] * f1 + y[2] * f2 + y[3] * f3 + y[4] * f4 + y[5] * f5,
                    z[0] * f0 + z[1] * f1 + z[2] * f2 + z[3] * f3 + z[4] * f4 + z[5] * f5,
                    x[0] * f0 + x[1] * f1 + x[2] * f2 + x[3] * f3 + x[4] * f4 + x[5] * f5)
            turned = add(sub(load3(work, record + f.REC_BALL_K), matvec(load9(work, record + f.REC_BALL_G), a)), push)
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
