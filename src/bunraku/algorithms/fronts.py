"""Fronts: the interface of a subchain (I, p, Y, beta, Theta) and the operations on it. The idea is in `ada.py`.

Y, Theta and the pivots are factors, made from the configuration alone; beta, what the handles demand, and p, the forces
on the near bodies, are the right-hand side. An operation makes the factors and leads the right-hand side through them;
its `.._demands` does the second alone. On the way back come forces and accelerations.
"""

import numpy as np

from bunraku.algorithms.aba import ascend_force, eliminate_column, from_parent, hand_over, subtree, trace
from bunraku.algorithms.tree import factors_of, is_anchor, joint_part_size, load_inertia, store_inertia, zero3
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import (
    accumulate3,
    add,
    cross,
    dot,
    load3,
    scale,
    shift_inertia,
    store3,
    sub,
)
from bunraku.spatial.scalar import clear, constant, load, maximum, minimum, sqrt, store, where_positive
from bunraku.tolerances import FADED, INCONSISTENT, MISSED, NOISE, PIVOT, SURELY_ZERO

# -- NEW, START, ATTACH ----------------------------------------------------------------------------------------------


@inline
def new(front, rows, work):
    clear(work[front:front + f.row_start(rows)])


@inline
def new_demands(front, rows, work):
    for k in range(rows):
        o = front + f.row_start(k)
        store(work, o + f.ROW_BETA, constant(work, 0.0))
        store(work, o + f.ROW_SIZE, constant(work, 0.0))


@inner
def start(front, row, c, side, soft, conn_i, work):
    """Add the handle of a connection: its forces act along the constrained directions on b, against them on a.

    `soft`: how much it yields per force, added to the diagonal of Theta once.
    """
    rec = f.connection_record(conn_i, c)
    arm = load3(work, rec + f.CONN_ARM_B if side == 1 else rec + f.CONN_ARM_A)
    sign = 1.0 if side == 1 else -1.0
    for k in range(conn_i[c, f.ROWS]):
        o, column = front + f.row_start(row + k), rec + f.CONN_COLUMNS + 6 * k
        force = load3(work, column + 3)
        moment = add(load3(work, column), cross(arm, force))
        accumulate3(work, o, scale(moment, sign))  # K_C^T [YN02, eq. 3], [YN-HRP, eqs. 5-6]
        accumulate3(work, o + 3, scale(force, sign))
        if soft > 0.0 and side == 1:
            diagonal = o + f.ROW_THETA + row + k
            store(work, diagonal, load(work, diagonal) + soft)
    start_demands(front, row, c, side, conn_i, work)


@inline
def start_demands(front, row, c, side, conn_i, work):
    """Right-hand side of the connection, counted once: on b."""
    rec = f.connection_record(conn_i, c)
    for k in range(conn_i[c, f.ROWS] if side == 1 else 0):
        o, bias = front + f.row_start(row + k), load(work, rec + f.CONN_BIAS + k)
        store(work, o + f.ROW_BETA, load(work, o + f.ROW_BETA) + bias)
        store(work, o + f.ROW_SIZE, load(work, o + f.ROW_SIZE) + maximum(bias, -bias))


@inner
def attach(source, rows, target, places, prog, work):
    """Add a front to another of the same near body; `places` says which rows are meant."""
    for k in range(rows):
        o, t = source + f.row_start(k), target + f.row_start(prog[places + k])
        for d in range(f.ROW_THETA):
            store(work, t + d, load(work, t + d) + load(work, o + d))
        for m in range(k + 1):
            high, low = max(prog[places + k], prog[places + m]), min(prog[places + k], prog[places + m])
            t = target + f.row_start(high) + f.ROW_THETA + low
            store(work, t, load(work, t) + load(work, o + f.ROW_THETA + m))


@inline
def attach_demands(source, rows, target, places, prog, work):
    for k in range(rows):
        o, t = source + f.row_start(k), target + f.row_start(prog[places + k])
        store(work, t + f.ROW_BETA, load(work, t + f.ROW_BETA) + load(work, o + f.ROW_BETA))
        store(work, t + f.ROW_SIZE, load(work, t + f.ROW_SIZE) + load(work, o + f.ROW_SIZE))


# -- STEP ------------------------------------------------------------------------------------------------------------


@inner
def step(i, front, rows, kept, extra, judged, body_i, dof_f, conn_f, tau, prog, work):
    """Take body i, the near body of a front, through its joint.

    y = S^T Y;   Y - U y^T / D,   beta + y u / D,   Theta + y y^T / D remain. The y are kept for the way back.
    `extra`: list of rows whose force acts on the joint itself, like tau, so that y has a further part: 1 in rows that
    take the joint's rotor away again, qdd - t / rotor = 0; of couplings see `couple`.
    """
    record, j = body_i[i, f.BODY_RECORD], body_i[i, f.V_INDEX]
    elimination, dof = body_i[i, f.ELIMINATION], body_i[i, f.DOF]
    A, B, C, p_w, p_v = subtree(i, body_i, work)
    margin = constant(tau, 1.0)
    if elimination == f.COLUMNS:
        turning, moving = trace(A), trace(C)
        for d in range(dof):
            axis = record + f.REC_JOINT + 6 * d
            result = factors_of(record, dof, d)
            # [J, eqs. 2-3]; W of [YN02, eq. 50] with the parent side held
            A, B, C, p_w, p_v, pivot = eliminate_column(A, B, C, p_w, p_v, turning, moving, dof_f, j + d, tau, work,
                                                        axis, work, result)
            margin = minimum(margin, pivot)
            rotor = np.int64(prog[extra + d]) if extra > 0 else -1
            step_rows(front, rows, kept + d * rows, axis, result, rotor, judged, work)
        if extra > 0:
            couple(front, kept, factors_of(record, dof, 0), extra + dof, conn_f, prog, work)
        # Theta, as few times through memory as there are degrees of freedom over three
        d = 0
        while d + 3 <= dof:
            r0, r1, r2 = (load(work, inverse_pivot(record, dof, d)), load(work, inverse_pivot(record, dof, d + 1)),
                          load(work, inverse_pivot(record, dof, d + 2)))
            y0, y1, y2 = kept + d * rows, kept + (d + 1) * rows, kept + (d + 2) * rows
            o = front + f.ROW_THETA
            for k in range(rows):
                z0, z1, z2 = r0 * load(work, y0 + k), r1 * load(work, y1 + k), r2 * load(work, y2 + k)
                for m in range(k + 1):
                    gain = z0 * load(work, y0 + m) + z1 * load(work, y1 + m) + z2 * load(work, y2 + m)
                    store(work, o + m, load(work, o + m) + gain)
                o += f.ROW_THETA + k + 1
            d += 3
        while d < dof:
            r0, y0 = load(work, inverse_pivot(record, dof, d)), kept + d * rows
            o = front + f.ROW_THETA
            for k in range(rows):
                z0 = r0 * load(work, y0 + k)
                for m in range(k + 1):
                    store(work, o + m, load(work, o + m) + z0 * load(work, y0 + m))
                o += f.ROW_THETA + k + 1
            d += 1
        for d in range(dof if extra > 0 else 0):
            rotor = np.int64(prog[extra + d])
            if rotor >= 0:
                o = front + f.row_start(rotor) + f.ROW_THETA + rotor
                store(work, o, load(work, o) - 1.0 / conn_f[0, f.ROTOR])
    if is_anchor(body_i, i):
        r = load3(work, record + f.REC_JOINT + joint_part_size(elimination, dof))
        A, B = shift_inertia(A, B, C, r)
        p_w = add(p_w, cross(r, p_v))
        o = front
        for k in range(rows):
            accumulate3(work, o, cross(r, load3(work, o + 3)))
            o += f.ROW_THETA + k + 1
    hand_over(i, body_i, work, A, B, C, p_w, p_v)
    return margin


@inline
def inverse_pivot(record, dof, d):
    """Where 1/D of degree of freedom d is."""
    return factors_of(record, dof, d) + f.U_INVERSE


@inline
def step_rows(front, rows, kept, axis, result, rotor, judged, work):
    """y, Y and beta of every row for one degree of freedom."""
    s_w, s_v = load3(work, axis), load3(work, axis + 3)
    U_w, U_v = load3(work, result), load3(work, result + 3)
    r, u = load(work, result + f.U_INVERSE), load(work, result + f.U_PUSH)
    ur = u * r
    o = judged + f.JUDGED_MOBILITY
    store(work, o, load(work, o) + r * (dot(s_w, s_w) + dot(s_v, s_v)))
    o = judged + f.JUDGED_DRIVE
    store(work, o, load(work, o) + ur * u)
    o = front
    for k in range(rows):
        Y_w, Y_v = load3(work, o), load3(work, o + 3)
        y = dot(s_w, Y_w) + dot(s_v, Y_v)
        y = where_positive(maximum(y, 0.0 - y) - FADED, y, 0.0 * r)
        if k == rotor:
            y = y + 1.0
        z = y * r
        store(work, kept + k, y)
        store3(work, o, sub(Y_w, scale(U_w, z)))
        store3(work, o + 3, sub(Y_v, scale(U_v, z)))
        store(work, o + f.ROW_BETA, load(work, o + f.ROW_BETA) + y * ur)  # [YN02, eq. 38]
        o += f.ROW_THETA + k + 1


@inner
def couple(front, kept, result, couplings, conn_f, prog, work):
    """Rows of couplings, qdd_b - ratio qdd_a = .., at a joint of one degree of freedom: y = 1 at b, -ratio at a."""
    U_w, U_v, r = load3(work, result), load3(work, result + 3), load(work, result + f.U_INVERSE)
    ur = load(work, result + f.U_PUSH) * r
    for n in range(prog[couplings]):
        k, which = np.int64(prog[couplings + 1 + 2 * n]), prog[couplings + 2 + 2 * n]
        y = 1.0 if which % 2 == 1 else -conn_f[which // 2, f.COUPLED_RATIO]
        o, z = front + f.row_start(k), r * y
        store(work, kept + k, load(work, kept + k) + y)
        accumulate3(work, o, scale(U_w, 0.0 - z))
        accumulate3(work, o + 3, scale(U_v, 0.0 - z))
        store(work, o + f.ROW_BETA, load(work, o + f.ROW_BETA) + ur * y)


@inner
def step_demands(i, front, rows, kept, judged, body_i, work):
    """p through the joint, and beta + y u / D of every row."""
    ascend_force(i, body_i, work)
    record, dof = body_i[i, f.BODY_RECORD], body_i[i, f.DOF]
    for d in range(dof if body_i[i, f.ELIMINATION] == f.COLUMNS else 0):
        result = factors_of(record, dof, d)
        u = load(work, result + f.U_PUSH)
        ur = u * load(work, result + f.U_INVERSE)
        o = judged + f.JUDGED_DRIVE
        store(work, o, load(work, o) + ur * u)
        o = front + f.ROW_BETA
        for k in range(rows):
            store(work, o, load(work, o) + load(work, kept + d * rows + k) * ur)
            o += f.ROW_THETA + k + 1


@inner
def step_back(i, rows, kept, ids, forces, body_i, tau, acceleration, prog, work):
    """Accelerations of the joint and of body i: qdd = (u + y F - U^T a) / D."""
    to, record, elimination = body_i[i, f.OWN_SLOT], body_i[i, f.BODY_RECORD], body_i[i, f.ELIMINATION]
    dof, j = body_i[i, f.DOF], body_i[i, f.V_INDEX]
    alpha, a, residue = from_parent(i, body_i, tau, work)
    for last in range(dof):
        d = dof - 1 - last
        if elimination == f.LOCKED:
            qdd = load(tau, j + d)
        else:
            o = factors_of(record, dof, d)
            push = load(work, o + f.U_PUSH) - dot(load3(work, o), alpha) - dot(load3(work, o + 3), a)
            for k in range(rows):
                push = push + load(work, kept + d * rows + k) * load(work, forces + prog[ids + k])
            qdd = push * load(work, o + f.U_INVERSE)  # [YN02, eq. 53]; [J, eq. 5]
            o = record + f.REC_JOINT + 6 * d
            alpha = add(alpha, scale(load3(work, o), qdd))  # [J, eq. 4]
            a = add(a, scale(load3(work, o + 3), qdd))
        store(acceleration, j + d, qdd)
        residue = residue + 0.0 * qdd
    store3(work, to, alpha)
    store3(work, to + 3, a)
    return residue


# -- CLOSE -----------------------------------------------------------------------------------------------------------


@inner
def close(front, rows, count, slot, sign, factors, conn_i, work):
    """Eliminate the last `count` forces of a front, whose handles have both sides inside, one after the other.

    0 = Y_k^T a + beta_k + Theta_k F  ->  F_k = -(..) / Theta_kk;  the rest is a Schur complement, I and p included.
    Row by row from the last, each brought up to date by those eliminated before it (`factors`: scratch).
    A pivot that vanishes is left out. `sign` -1: rows that take a rotor away, whose pivots are negative and must not
    vanish: the margin.
    """
    margin, side = constant(work, 1.0), 1.0 if sign > 0 else -1.0
    judged = conn_i[conn_i.shape[0] - 1, f.HEAD_JUDGED]
    worst, feigned = load(work, judged + f.JUDGED_PIVOT), PIVOT * NOISE * load(work, judged + f.JUDGED_MOBILITY)
    weakest, dropped = load(work, judged + f.JUDGED_WEAKEST), load(work, judged + f.JUDGED_DROPPED)
    end = front + f.row_start(rows - 1)  # the last row
    for back in range(rows):
        k = rows - 1 - back
        row = front + f.row_start(k)
        theta_kk = load(work, row + f.ROW_THETA + k)
        done = min(back, count)
        if done > 0:
            update_row(k, row, rows, done, end, slot, factors, work)
            left = load(work, row + f.ROW_THETA + k)
            store(work, row + f.ROW_SCALE, load(work, row + f.ROW_SCALE) + (theta_kk - left))
            theta_kk = left
        if back < count:
            size = maximum(side * (theta_kk + load(work, row + f.ROW_SCALE)), side * theta_kk)
            least = PIVOT * size + feigned
            room = theta_kk * side - least
            # 1 / Gamma [YN02, eqs. 58-59]
            r = where_positive(room, 1.0 / where_positive(room, theta_kk, 0.0 * room + 1.0), 0.0 * room)
            worst = minimum(worst, where_positive(room, side * theta_kk / maximum(size, 1e-300), 0.0 * size + 1.0))
            weakest = minimum(weakest, where_positive(room, side * theta_kk, 0.0 * room + 1e300))
            excess = maximum(theta_kk, 0.0 - theta_kk) - SURELY_ZERO * least
            # indeterminate forces [YN02, sec. 4.3]
            dropped = maximum(dropped, where_positive(room, 0.0 * room - 1.0, excess))
            if sign < 0:
                margin = minimum(margin, room)
            store(work, row + f.ROW_THETA + k, r)
            if slot >= 0:
                absorb(slot, load3(work, row), load3(work, row + 3), r, load(work, row + f.ROW_BETA), work)
    store(work, judged + f.JUDGED_PIVOT, worst)
    store(work, judged + f.JUDGED_WEAKEST, weakest)
    store(work, judged + f.JUDGED_DROPPED, dropped)
    return margin


@inline
def update_row(k, row, rows, done, end, slot, factors, work):
    """Subtract from row k what the last `done` rows, eliminated already, stand for: the sum of r_p Theta_pk row_p."""
    o = end
    beta = load(work, row + f.ROW_BETA)
    for q in range(done):
        p = rows - 1 - q
        z = load(work, o + f.ROW_THETA + p) * load(work, o + f.ROW_THETA + k)
        store(work, factors + q, z)
        beta = beta - z * load(work, o + f.ROW_BETA)
        o -= f.ROW_THETA + p
    store(work, row + f.ROW_BETA, beta)  # [YN02, eq. 38]
    if slot >= 0:
        Y_w, Y_v = load3(work, row), load3(work, row + 3)
        o = end
        for q in range(done):
            z = load(work, factors + q)
            Y_w, Y_v = sub(Y_w, scale(load3(work, o), z)), sub(Y_v, scale(load3(work, o + 3), z))
            o -= f.ROW_THETA + rows - 1 - q
        store3(work, row, Y_w)
        store3(work, row + 3, Y_v)
    m = 0
    while m + 4 <= k + 1:
        t = row + f.ROW_THETA + m
        x0, x1, x2, x3 = load(work, t), load(work, t + 1), load(work, t + 2), load(work, t + 3)
        o = end + f.ROW_THETA + m
        for q in range(done):
            z = load(work, factors + q)
            x0, x1 = x0 - z * load(work, o), x1 - z * load(work, o + 1)  # [YN02, eq. 50]
            x2, x3 = x2 - z * load(work, o + 2), x3 - z * load(work, o + 3)
            o -= f.ROW_THETA + rows - 1 - q
        store(work, t, x0)
        store(work, t + 1, x1)
        store(work, t + 2, x2)
        store(work, t + 3, x3)
        m += 4
    while m < k + 1:
        x0 = load(work, row + f.ROW_THETA + m)
        o = end + f.ROW_THETA + m
        for q in range(done):
            x0 = x0 - load(work, factors + q) * load(work, o)
            o -= f.ROW_THETA + rows - 1 - q
        store(work, row + f.ROW_THETA + m, x0)
        m += 1


@inline
def absorb(slot, Y_w, Y_v, r, beta, work):
    """I + r Y Y^T, p + r Y beta in a slot."""
    y0, y1, y2, y3, y4, y5 = Y_w[0], Y_w[1], Y_w[2], Y_v[0], Y_v[1], Y_v[2]
    z0, z1, z2, z3, z4, z5 = y0 * r, y1 * r, y2 * r, y3 * r, y4 * r, y5 * r
    A, B, C = load_inertia(work, slot)
    store_inertia(
        work, slot,
        (A[0] + y0 * z0, A[1] + y0 * z1, A[2] + y0 * z2, A[3] + y1 * z1, A[4] + y1 * z2, A[5] + y2 * z2),
        (B[0] + y0 * z3, B[1] + y0 * z4, B[2] + y0 * z5, B[3] + y1 * z3, B[4] + y1 * z4, B[5] + y1 * z5,
         B[6] + y2 * z3, B[7] + y2 * z4, B[8] + y2 * z5),
        (C[0] + y3 * z3, C[1] + y3 * z4, C[2] + y3 * z5, C[3] + y4 * z4, C[4] + y4 * z5, C[5] + y5 * z5))
    accumulate3(work, slot + f.SLOT_BIAS, scale((z0, z1, z2), beta))
    accumulate3(work, slot + f.SLOT_BIAS + 3, scale((z3, z4, z5), beta))


@inner
def close_demands(front, rows, count, slot, work):
    """For every force that is eliminated, beta - Theta_k beta_k / Theta_kk and p + Y_k beta_k / Theta_kk remain."""
    for back in range(count):
        k = rows - 1 - back
        row = front + f.row_start(k)
        z = load(work, row + f.ROW_THETA + k) * load(work, row + f.ROW_BETA)
        for m in range(k):
            o = front + f.row_start(m) + f.ROW_BETA
            store(work, o, load(work, o) - z * load(work, row + f.ROW_THETA + m))
        if slot >= 0:
            accumulate3(work, slot + f.SLOT_BIAS, scale(load3(work, row), z))
            accumulate3(work, slot + f.SLOT_BIAS + 3, scale(load3(work, row + 3), z))


@inner
def open_again(front, rows, count, slot, ids, forces, conn_i, prog, work):
    """Forces that were eliminated, from the near body's acceleration and the forces of the other handles."""
    judged = conn_i[conn_i.shape[0] - 1, f.HEAD_JUDGED]
    clash, drive = load(work, judged + f.JUDGED_CLASH), load(work, judged + f.JUDGED_DRIVE)
    missed, exact = load(work, judged + f.JUDGED_MISSED), MISSED + sqrt(load(work, judged + f.JUDGED_GAP))
    alpha, a = zero3(work), zero3(work)
    if slot >= 0:
        alpha, a = load3(work, slot), load3(work, slot + 3)
    for k in range(rows - count, rows):
        row = front + f.row_start(k)
        Y_w, Y_v = load3(work, row), load3(work, row + 3)
        demand = load(work, row + f.ROW_BETA) + dot(Y_w, alpha) + dot(Y_v, a)
        for m in range(k):
            demand = demand + load(work, row + f.ROW_THETA + m) * load(work, forces + prog[ids + m])
        r, size = load(work, row + f.ROW_THETA + k), load(work, row + f.ROW_SIZE)
        size = size + sqrt(maximum(load(work, row + f.ROW_SCALE), 0.0) * drive)
        store(work, forces + prog[ids + k], 0.0 - r * demand)  # [YN02, eqs. 51, 57], [YN-HRP, eq. 7]
        # inconsistent constraints [YN02, sec. 4.3]
        kept, demand = maximum(r, 0.0 - r), maximum(demand, 0.0 - demand)
        clash = maximum(clash, where_positive(kept, 0.0 * r - 1.0, demand - INCONSISTENT * (size + 1.0)))
        missed = maximum(missed, where_positive(kept, 0.0 * r - 1.0, demand - exact * (size + 1.0)))
    store(work, judged + f.JUDGED_CLASH, clash)
    store(work, judged + f.JUDGED_MISSED, missed)
