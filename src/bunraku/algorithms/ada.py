"""Forward dynamics of any structure: assembly and disassembly over any schedule [YN02].

Idea: a subchain is known to the outside by its *front*: how the force at its near body (the one closest to the root)
and the accelerations at its other open handles depend on the near body's acceleration a and the handle forces F,

    force needed at the near body  =  I a + p - Y F
    accelerations at the handles   =  Y^T a + beta + Theta F                              [docs/algorithms.md]

(I, p) is what articulated bodies carry anyway; Y, beta, Theta exist only where a handle is open. Everything the
assembly does is one of a few operations on fronts:

    STEP    take the near body through its joint; without handles this is one body of the articulated-body algorithm
    ATTACH  fronts that meet at one body add up
    CLOSE   both sides of a handle are inside: its force is eliminated, one direction after the other
    GRAFT   attach a subchain at a handle deep inside another: six handle rows become joint forces, then CLOSE

and the disassembly runs them backwards. A schedule is only the order of operations (`plan/program.py`): tip to root
it is the articulated-body algorithm with loops; a balanced tree is [YN02]'s; each operation touches its own fronts
only. No inverse inertia is needed, so massless links are allowed.

Redundant constraints: the pivot of a direction that nothing can move vanishes; its force is set to zero (any value is
right), its demand must vanish too (`clash`). A direction whose joints are all massless is held up by loop forces alone:
such joints get a rotor, and a row that takes the rotor's torque away again.

Cost: O(bodies) + (columns per body on a loop) x that; CLOSE k^3/3 for k coupled rows. [Checked with 1-6 loops against
dense solutions in tests/test_closed.py.]
"""

import numpy as np

from bunraku.algorithms.aba import (
    deliver,
    eliminate_column,
    hand_over,
    inward,
    joint_part_size,
    not_finite,
    outward,
    subtree,
)
from bunraku.algorithms.connections import DYNAMICS, meet_connections
from bunraku.algorithms.tree import ground_acceleration, is_anchor, zero3, zero6
from bunraku.jit import inline, inner
from bunraku.plan.fields import (
    COLUMNS,
    CONN_ARM_A,
    CONN_ARM_B,
    CONN_BIAS,
    CONN_COLUMNS,
    CONN_RECORD,
    DOF,
    ELIMINATION,
    FROM,
    GRAFT_COUNT,
    GRAFT_FRONT,
    GRAFT_HANDLE,
    GRAFT_ID,
    GRAFT_KEPT,
    GRAFT_NEAR,
    GRAFT_OTHER,
    GRAFT_RANK,
    GRAFT_ROW,
    GRAFT_ROWS,
    GRAFT_SLOT,
    GRAFT_TARGET,
    HEAD_CONN,
    HEAD_FORCES,
    HEAD_JUDGED,
    HEAD_SLOTS,
    JUDGED_CLASH,
    JUDGED_DRIVE,
    JUDGED_MOBILITY,
    JUDGED_PIVOT,
    KEPT_FACTOR,
    KEPT_FREE,
    KEPT_PUSH,
    KEPT_ROWS,
    LOCKED,
    OP_ATTACH,
    OP_CLOSE,
    OP_GRAFT,
    OP_HANDLE,
    OP_NEW,
    OP_RESET,
    OP_START,
    OP_STEP,
    OP_SWEEP,
    PROGRAM_START,
    PROGRAM_STEP,
    REC_FORCE,
    REC_JOINT,
    REC_U,
    REC_U_SIZE,
    RECORD,
    ROTOR,
    ROW_BETA,
    ROW_SCALE,
    ROW_SIZE,
    ROW_THETA,
    ROWS,
    SLOT_BIAS,
    SLOT_SIZE,
    TO,
    V_INDEX,
)
from bunraku.spatial.algebra import (
    accumulate3,
    add,
    cross,
    dot,
    load3,
    load6,
    load9,
    scale,
    shift_inertia,
    store3,
    store6,
    store9,
    sub,
)
from bunraku.spatial.scalar import clear, constant, load, maximum, minimum, sqrt, store, where_positive

RANK = 1e-11
"""A pivot below this part of its size is no pivot: nothing can move in this direction."""
NOISE = 1e-11
"""Part of all mobility there is that counts as size of every direction; times RANK, the square of what rounding can
feign."""
CLASH = 1e-7
"""What a direction that nothing can move may still demand, as part of the accelerations involved."""


@inner
def ada(mode, body_i, body_f, dof_f, conn_i, conn_f, prog, q, v, tau, drives, wrench, acceleration, work):
    """Joint accelerations of a structure with connections, and `margin`, `residue` as in `aba`.

    mode DYNAMICS: as `aba`; `drives` are torques (accelerations if prescribed) of the connections, or nothing.
    mode IMPULSE, POSITION: the change of velocity, or the small move, that makes every connection hold, by impulses
    at the connections alone (tau must be zeros). Multipliers are left in `work`, as are two scalars to judge by.
    """
    n, last = body_i.shape[0] - 1, conn_i.shape[0] - 1
    first_pass(body_i, body_f, q, v, tau, wrench, work)
    meet_connections(mode, body_i, conn_i, conn_f, drives, work)
    if mode != DYNAMICS:
        for i in range(n):
            store6(work, body_i[i, RECORD] + REC_FORCE, zero6(q))
    clear(work[:body_i[n, HEAD_SLOTS] * SLOT_SIZE])
    judged = conn_i[last, HEAD_JUDGED]
    store(work, judged + JUDGED_PIVOT, constant(q, 1.0))
    store(work, judged + JUDGED_CLASH, constant(q, -1.0))
    store(work, judged + JUDGED_MOBILITY, constant(q, 0.0))
    store(work, judged + JUDGED_DRIVE, constant(q, 0.0))
    margin, residue = constant(q, 1.0), constant(q, 0.0)
    for k in range(prog[0]):
        o = PROGRAM_START + PROGRAM_STEP * k
        margin = minimum(margin, assemble(prog[o], o, body_i, dof_f, conn_i, conn_f, prog, tau, work))
    store6(work, 0, zero6(q))  # the ground does not accelerate
    for back in range(prog[0]):
        o = PROGRAM_START + PROGRAM_STEP * (prog[0] - 1 - back)
        residue = residue + disassemble(prog[o], o, body_i, conn_i, prog, tau, acceleration, work)
    return margin, residue


@inner
def first_pass(body_i, body_f, q, v, tau, wrench, work):
    """`outward`, compiled once."""
    outward(body_i, body_f, q, v, tau, wrench, ground_acceleration(body_f, q), work)


@inner
def sweep(first, last, body_i, dof_f, tau, work):
    """`inward`, compiled once."""
    return inward(first, last, body_i, dof_f, tau, work)


@inner
def sweep_back(first, last, body_i, tau, acceleration, work):
    """`deliver` for bodies first, first - 1, .. last."""
    residue = constant(tau, 0.0)
    for i in range(last, first + 1):
        residue = residue + deliver(i, body_i, tau, acceleration, work)
    return residue


@inline
def assemble(op, o, body_i, dof_f, conn_i, conn_f, prog, tau, work):
    """One operation of the program on its fronts. Returns the margin of its pivots."""
    margin = constant(tau, 1.0)
    if op == OP_SWEEP:
        margin = sweep(prog[o + 1], prog[o + 2], body_i, dof_f, tau, work)
    elif op == OP_STEP:
        judged = conn_i[conn_i.shape[0] - 1, HEAD_JUDGED]
        rotor = conn_f[0, ROTOR] if conn_f.shape[0] > 0 else 1.0
        margin = step(prog[o + 1], prog[o + 2], prog[o + 3], prog[o + 4], prog[o + 6], rotor, judged, body_i, dof_f,
                      tau, prog, work)
    elif op == OP_NEW:
        front, end = prog[o + 1], prog[o + 1] + row_start(prog[o + 2])
        clear(work[front:end])
    elif op == OP_START:
        start(prog[o + 1], prog[o + 2], prog[o + 3], prog[o + 4], conn_i, work)
    elif op == OP_HANDLE:
        for d in range(6):
            store(work, prog[o + 1] + row_start(prog[o + 2] + d) + d, constant(work, 1.0))
    elif op == OP_ATTACH:
        attach(prog[o + 1], prog[o + 2], prog[o + 3], prog[o + 4], prog, work)
    elif op == OP_CLOSE:
        margin = close(prog[o + 1], prog[o + 2], prog[o + 3], prog[o + 4], prog[o + 6], prog[o + 7], conn_i, work)
    elif op == OP_RESET:
        clear(work[prog[o + 1]:prog[o + 1] + SLOT_SIZE])
    elif op == OP_GRAFT:
        graft(prog[o + 1], prog, work)
    return margin


@inline
def disassemble(op, o, body_i, conn_i, prog, tau, acceleration, work):
    """The same operation backwards: accelerations and forces. Returns zero, or NaN if not finite."""
    forces = conn_i[conn_i.shape[0] - 1, HEAD_FORCES]
    residue = constant(tau, 0.0)
    if op == OP_SWEEP:
        residue = sweep_back(prog[o + 1], prog[o + 2], body_i, tau, acceleration, work)
    elif op == OP_STEP:
        residue = step_back(prog[o + 1], prog[o + 3], prog[o + 4], prog[o + 5], forces, body_i, tau, acceleration,
                            prog, work)
    elif op == OP_CLOSE:
        open_again(prog[o + 1], prog[o + 2], prog[o + 3], prog[o + 4], prog[o + 5], forces, conn_i, prog, work)
    elif op == OP_GRAFT:
        ungraft(prog[o + 1], forces, prog, work)
    return residue


@inline
def row_start(row):
    """Place of a row in its front: rows before it, packed as lower triangle."""
    return ROW_THETA * row + (row * (row + 1)) // 2


# -- STEP ----------------------------------------------------------------------------------------------------------


@inner
def step(i, front, rows, kept, rotors, rotor_size, judged, body_i, dof_f, tau, prog, work):
    """Take body i, the near body of a front, through its joint.

    y = S^T Y;   Y - U y^T / D,   beta + y u / D,   Theta + y y^T / D remain. The y are kept for the way back.
    `rotors`: rows that take the joint's rotor away again, qdd - t / rotor = 0; the torque t acts like tau, so y = 1.
    """
    record, j = body_i[i, RECORD], body_i[i, V_INDEX]
    elimination, dof = body_i[i, ELIMINATION], body_i[i, DOF]
    A, B, C, p_w, p_v = subtree(i, body_i, work)
    margin = constant(tau, 1.0)
    if elimination == COLUMNS:
        for d in range(dof):
            axis = record + REC_JOINT + 6 * d
            result = record + REC_U if d == 0 else record + REC_JOINT + 6 * dof + 3 + REC_U_SIZE * (d - 1)
            A, B, C, p_w, p_v, pivot = eliminate_column(A, B, C, p_w, p_v, dof_f, j + d, tau, work, axis, result)
            margin = minimum(margin, pivot)
            rotor = np.int64(prog[rotors + d]) if rotors > 0 else -1
            step_rows(front, rows, kept + d * rows, axis, result, rotor, judged, work)
        # Theta, as few times through memory as there are degrees of freedom over three
        d = 0
        while d + 3 <= dof:
            r0, r1, r2 = (load(work, inverse_pivot(record, dof, d)), load(work, inverse_pivot(record, dof, d + 1)),
                          load(work, inverse_pivot(record, dof, d + 2)))
            y0, y1, y2 = kept + d * rows, kept + (d + 1) * rows, kept + (d + 2) * rows
            o = front + ROW_THETA
            for k in range(rows):
                z0, z1, z2 = r0 * load(work, y0 + k), r1 * load(work, y1 + k), r2 * load(work, y2 + k)
                for m in range(k + 1):
                    gain = z0 * load(work, y0 + m) + z1 * load(work, y1 + m) + z2 * load(work, y2 + m)
                    store(work, o + m, load(work, o + m) + gain)
                o += ROW_THETA + k + 1
            d += 3
        while d < dof:
            r0, y0 = load(work, inverse_pivot(record, dof, d)), kept + d * rows
            o = front + ROW_THETA
            for k in range(rows):
                z0 = r0 * load(work, y0 + k)
                for m in range(k + 1):
                    store(work, o + m, load(work, o + m) + z0 * load(work, y0 + m))
                o += ROW_THETA + k + 1
            d += 1
        if rotors > 0:
            for d in range(dof):
                rotor = np.int64(prog[rotors + d])
                o = front + row_start(rotor) + ROW_THETA + rotor
                store(work, o, load(work, o) - 1.0 / rotor_size)
    if is_anchor(body_i, i):
        r = load3(work, record + REC_JOINT + joint_part_size(elimination, dof))
        A, B = shift_inertia(A, B, C, r)
        p_w = add(p_w, cross(r, p_v))
        o = front
        for k in range(rows):
            accumulate3(work, o, cross(r, load3(work, o + 3)))
            o += ROW_THETA + k + 1
    hand_over(i, body_i, work, A, B, C, p_w, p_v)
    return margin


@inline
def inverse_pivot(record, dof, d):
    """Where 1/D of degree of freedom d is."""
    return (record + REC_U if d == 0 else record + REC_JOINT + 6 * dof + 3 + REC_U_SIZE * (d - 1)) + 6


@inline
def step_rows(front, rows, kept, axis, result, rotor, judged, work):
    """y, Y and beta of every row for one degree of freedom."""
    s_w, s_v = load3(work, axis), load3(work, axis + 3)
    U_w, U_v = load3(work, result), load3(work, result + 3)
    r, u = load(work, result + 6), load(work, result + 7)
    ur = u * r
    o = judged + JUDGED_MOBILITY
    store(work, o, load(work, o) + r * (dot(s_w, s_w) + dot(s_v, s_v)))
    o = judged + JUDGED_DRIVE
    store(work, o, load(work, o) + ur * u)
    o = front
    for k in range(rows):
        Y_w, Y_v = load3(work, o), load3(work, o + 3)
        y = dot(s_w, Y_w) + dot(s_v, Y_v)
        if k == rotor:
            y = y + 1.0
        z = y * r
        store(work, kept + k, y)
        store3(work, o, sub(Y_w, scale(U_w, z)))
        store3(work, o + 3, sub(Y_v, scale(U_v, z)))
        store(work, o + ROW_BETA, load(work, o + ROW_BETA) + y * ur)
        o += ROW_THETA + k + 1


@inner
def step_back(i, rows, kept, ids, forces, body_i, tau, acceleration, prog, work):
    """Accelerations of the joint and of body i: qdd = (u + y F - U^T a) / D."""
    above, to, record, elimination = body_i[i, FROM], body_i[i, TO], body_i[i, RECORD], body_i[i, ELIMINATION]
    dof, j = body_i[i, DOF], body_i[i, V_INDEX]
    alpha, a = load3(work, above), load3(work, above + 3)
    residue = constant(tau, 0.0)
    if is_anchor(body_i, i):
        r = load3(work, record + REC_JOINT + joint_part_size(elimination, dof))
        residue = not_finite(r)
        a = add(a, cross(alpha, r))
    for last in range(dof):
        d = dof - 1 - last
        if elimination == LOCKED:
            qdd = load(tau, j + d)
        else:
            o = record + REC_U if d == 0 else record + REC_JOINT + 6 * dof + 3 + REC_U_SIZE * (d - 1)
            push = load(work, o + 7) - dot(load3(work, o), alpha) - dot(load3(work, o + 3), a)
            for k in range(rows):
                push = push + load(work, kept + d * rows + k) * load(work, forces + prog[ids + k])
            qdd = push * load(work, o + 6)
            o = record + REC_JOINT + 6 * d
            alpha = add(alpha, scale(load3(work, o), qdd))
            a = add(a, scale(load3(work, o + 3), qdd))
        store(acceleration, j + d, qdd)
        residue = residue + 0.0 * qdd
    store3(work, to, alpha)
    store3(work, to + 3, a)
    return residue


# -- START, ATTACH -------------------------------------------------------------------------------------------------


@inner
def start(front, row, c, side, conn_i, work):
    """Add the handle of a connection: its forces act along the constrained directions on b, against them on a."""
    rec = conn_i[conn_i.shape[0] - 1, HEAD_CONN] + CONN_RECORD * c
    arm = load3(work, rec + CONN_ARM_B if side == 1 else rec + CONN_ARM_A)
    sign = 1.0 if side == 1 else -1.0
    for k in range(conn_i[c, ROWS]):
        o, column = front + row_start(row + k), rec + CONN_COLUMNS + 6 * k
        force = load3(work, column + 3)
        moment = add(load3(work, column), cross(arm, force))
        accumulate3(work, o, scale(moment, sign))
        accumulate3(work, o + 3, scale(force, sign))
        if side == 1:
            bias = load(work, rec + CONN_BIAS + k)
            store(work, o + ROW_BETA, load(work, o + ROW_BETA) + bias)
            store(work, o + ROW_SIZE, load(work, o + ROW_SIZE) + maximum(bias, -bias))


@inner
def attach(source, rows, target, places, prog, work):
    """Add a front to another of the same near body; `places` says which rows are meant."""
    for k in range(rows):
        o, t = source + row_start(k), target + row_start(prog[places + k])
        for d in range(ROW_THETA):
            store(work, t + d, load(work, t + d) + load(work, o + d))
        for m in range(k + 1):
            high, low = max(prog[places + k], prog[places + m]), min(prog[places + k], prog[places + m])
            t = target + row_start(high) + ROW_THETA + low
            store(work, t, load(work, t) + load(work, o + ROW_THETA + m))


# -- CLOSE ---------------------------------------------------------------------------------------------------------


@inner
def close(front, rows, count, slot, sign, factors, conn_i, work):
    """Eliminate the last `count` forces of a front, whose handles have both sides inside, one after the other.

    0 = Y_k^T a + beta_k + Theta_k F  ->  F_k = -(..) / Theta_kk;  the rest is a Schur complement, I and p included.
    Row by row from the last, each brought up to date by those eliminated before it (`factors`: scratch).
    A pivot that vanishes is left out. `sign` -1: rows that take a rotor away, whose pivots are negative and must not
    vanish: the margin.
    """
    margin, side = constant(work, 1.0), 1.0 if sign > 0 else -1.0
    judged = conn_i[conn_i.shape[0] - 1, HEAD_JUDGED]
    worst, feigned = load(work, judged + JUDGED_PIVOT), RANK * NOISE * load(work, judged + JUDGED_MOBILITY)
    end = front + row_start(rows - 1)  # the last row
    for back in range(rows):
        k = rows - 1 - back
        row = front + row_start(k)
        theta_kk = load(work, row + ROW_THETA + k)
        done = min(back, count)
        if done > 0:
            update_row(k, row, rows, done, end, slot, factors, work)
            left = load(work, row + ROW_THETA + k)
            store(work, row + ROW_SCALE, load(work, row + ROW_SCALE) + (theta_kk - left))
            theta_kk = left
        if back < count:
            size = maximum(side * (theta_kk + load(work, row + ROW_SCALE)), side * theta_kk)
            room = theta_kk * side - RANK * size - feigned
            r = where_positive(room, 1.0 / where_positive(room, theta_kk, 0.0 * room + 1.0), 0.0 * room)
            worst = minimum(worst, where_positive(room, side * theta_kk / maximum(size, 1e-300), 0.0 * size + 1.0))
            if sign < 0:
                margin = minimum(margin, room)
            store(work, row + ROW_THETA + k, r)
            if slot >= 0:
                absorb(slot, load3(work, row), load3(work, row + 3), r, load(work, row + ROW_BETA), work)
    store(work, judged + JUDGED_PIVOT, worst)
    return margin


@inline
def update_row(k, row, rows, done, end, slot, factors, work):
    """Subtract from row k what the last `done` rows, eliminated already, stand for: the sum of r_p Theta_pk row_p."""
    o = end
    beta = load(work, row + ROW_BETA)
    for q in range(done):
        p = rows - 1 - q
        z = load(work, o + ROW_THETA + p) * load(work, o + ROW_THETA + k)
        store(work, factors + q, z)
        beta = beta - z * load(work, o + ROW_BETA)
        o -= ROW_THETA + p
    store(work, row + ROW_BETA, beta)
    if slot >= 0:
        Y_w, Y_v = load3(work, row), load3(work, row + 3)
        o = end
        for q in range(done):
            z = load(work, factors + q)
            Y_w, Y_v = sub(Y_w, scale(load3(work, o), z)), sub(Y_v, scale(load3(work, o + 3), z))
            o -= ROW_THETA + rows - 1 - q
        store3(work, row, Y_w)
        store3(work, row + 3, Y_v)
    m = 0
    while m + 4 <= k + 1:
        t = row + ROW_THETA + m
        x0, x1, x2, x3 = load(work, t), load(work, t + 1), load(work, t + 2), load(work, t + 3)
        o = end + ROW_THETA + m
        for q in range(done):
            z = load(work, factors + q)
            x0, x1 = x0 - z * load(work, o), x1 - z * load(work, o + 1)
            x2, x3 = x2 - z * load(work, o + 2), x3 - z * load(work, o + 3)
            o -= ROW_THETA + rows - 1 - q
        store(work, t, x0)
        store(work, t + 1, x1)
        store(work, t + 2, x2)
        store(work, t + 3, x3)
        m += 4
    while m < k + 1:
        x0 = load(work, row + ROW_THETA + m)
        o = end + ROW_THETA + m
        for q in range(done):
            x0 = x0 - load(work, factors + q) * load(work, o)
            o -= ROW_THETA + rows - 1 - q
        store(work, row + ROW_THETA + m, x0)
        m += 1


@inline
def absorb(slot, Y_w, Y_v, r, beta, work):
    """I + r Y Y^T, p + r Y beta in a slot."""
    y0, y1, y2, y3, y4, y5 = Y_w[0], Y_w[1], Y_w[2], Y_v[0], Y_v[1], Y_v[2]
    z0, z1, z2, z3, z4, z5 = y0 * r, y1 * r, y2 * r, y3 * r, y4 * r, y5 * r
    A, B, C = load6(work, slot), load9(work, slot + 6), load6(work, slot + 15)
    store6(work, slot, (A[0] + y0 * z0, A[1] + y0 * z1, A[2] + y0 * z2, A[3] + y1 * z1, A[4] + y1 * z2, A[5] + y2 * z2))
    store9(work, slot + 6, (B[0] + y0 * z3, B[1] + y0 * z4, B[2] + y0 * z5, B[3] + y1 * z3, B[4] + y1 * z4,
                            B[5] + y1 * z5, B[6] + y2 * z3, B[7] + y2 * z4, B[8] + y2 * z5))
    store6(work, slot + 15, (C[0] + y3 * z3, C[1] + y3 * z4, C[2] + y3 * z5, C[3] + y4 * z4, C[4] + y4 * z5,
                             C[5] + y5 * z5))
    accumulate3(work, slot + SLOT_BIAS, scale((z0, z1, z2), beta))
    accumulate3(work, slot + SLOT_BIAS + 3, scale((z3, z4, z5), beta))


@inner
def open_again(front, rows, count, slot, ids, forces, conn_i, prog, work):
    """Forces that were eliminated, from the near body's acceleration and the forces of the other handles."""
    judged = conn_i[conn_i.shape[0] - 1, HEAD_JUDGED]
    clash, drive = load(work, judged + JUDGED_CLASH), load(work, judged + JUDGED_DRIVE)
    alpha, a = zero3(work), zero3(work)
    if slot >= 0:
        alpha, a = load3(work, slot), load3(work, slot + 3)
    for k in range(rows - count, rows):
        row = front + row_start(k)
        Y_w, Y_v = load3(work, row), load3(work, row + 3)
        demand = load(work, row + ROW_BETA) + dot(Y_w, alpha) + dot(Y_v, a)
        for m in range(k):
            demand = demand + load(work, row + ROW_THETA + m) * load(work, forces + prog[ids + m])
        r, size = load(work, row + ROW_THETA + k), load(work, row + ROW_SIZE)
        size = size + sqrt(maximum(load(work, row + ROW_SCALE), 0.0) * drive)
        store(work, forces + prog[ids + k], 0.0 - r * demand)
        excess = maximum(demand, 0.0 - demand) - CLASH * (size + 1.0)
        clash = maximum(clash, where_positive(maximum(r, 0.0 - r), 0.0 * r - 1.0, excess))
    store(work, judged + JUDGED_CLASH, clash)


# -- GRAFT ---------------------------------------------------------------------------------------------------------


@inner
def graft(g, prog, work):
    """Attach subchain B (through its joint already: inertia I, force p, rows Y) at handle rows of front A.

    The handle accelerates by h = Y_A^T a + beta + Theta F_A and carries the force F_h = -(I h + p - Y F_B). With
    I = L L^T the joint passes on L x, where x obeys (1 + L^T Theta L) x + L^T (h at x = 0) = 0: rows like any other,
    to CLOSE.
    Every row of the result acts on the handle by alpha (Y for B's rows, L for x) and moves it by
    t = Theta_hh alpha + Theta_h,row, both kept for the way back.
    """
    A, first, target, B = prog[g + GRAFT_FRONT], prog[g + GRAFT_HANDLE], prog[g + GRAFT_TARGET], prog[g + GRAFT_OTHER]
    kept, slot, near = prog[g + GRAFT_KEPT], prog[g + GRAFT_SLOT], prog[g + GRAFT_NEAR]
    count = prog[g + GRAFT_COUNT]
    factor_inertia(slot, prog[g + GRAFT_RANK], kept + KEPT_FACTOR, work)
    for d in range(6):
        store(work, kept + KEPT_PUSH + d, load(work, slot + SLOT_BIAS + d))
    for d in range(6):  # beta of the handle under the force -p
        x = load(work, A + row_start(first + d) + ROW_BETA)
        for m in range(6):
            x = x - theta(A, first + d, first + m, work) * load(work, kept + KEPT_PUSH + m)
        store(work, kept + KEPT_FREE + d, x)
    if near >= 0:
        for d in range(6):
            push, o = load(work, kept + KEPT_PUSH + d), A + row_start(first + d)
            accumulate3(work, near + SLOT_BIAS, scale(load3(work, o), push))
            accumulate3(work, near + SLOT_BIAS + 3, scale(load3(work, o + 3), push))
    for k in range(count):
        graft_row(k, g, A, first, target, B, kept, prog, work)


@inline
def graft_row(k, g, A, first, target, B, kept, prog, work):
    entry = g + GRAFT_ROWS + GRAFT_ROW * k
    own, other, joint = prog[entry], prog[entry + 1], prog[entry + 2]
    alpha, t, row = kept + KEPT_ROWS + 12 * k, kept + KEPT_ROWS + 12 * k + 6, target + row_start(k)
    for d in range(6):
        x = constant(work, 0.0)
        if other >= 0:
            x = load(work, B + row_start(other) + d)
        elif joint >= 0:
            x = load(work, kept + KEPT_FACTOR + 6 * d + joint)
        store(work, alpha + d, x)
    for d in range(6):
        x = constant(work, 0.0)
        if own >= 0:
            x = theta(A, first + d, own, work)
        for m in range(6):
            x = x + theta(A, first + d, first + m, work) * load(work, alpha + m)
        store(work, t + d, x)
    for d in range(6):  # Y
        x = load(work, A + row_start(own) + d) if own >= 0 else constant(work, 0.0)
        for m in range(6):
            x = x + load(work, A + row_start(first + m) + d) * load(work, alpha + m)
        store(work, row + d, x)
    beta, size, lost = constant(work, 0.0), constant(work, 0.0), constant(work, 0.0)
    for d in range(6):
        beta = beta + load(work, alpha + d) * load(work, kept + KEPT_FREE + d)
    if own >= 0:
        o = A + row_start(own)
        beta, size, lost = beta + load(work, o + ROW_BETA), load(work, o + ROW_SIZE), load(work, o + ROW_SCALE)
        for m in range(6):
            beta = beta - theta(A, first + m, own, work) * load(work, kept + KEPT_PUSH + m)
    if other >= 0:
        o = B + row_start(other)
        beta, size = beta + load(work, o + ROW_BETA), size + load(work, o + ROW_SIZE)
        lost = lost + load(work, o + ROW_SCALE)
    store(work, row + ROW_BETA, beta)
    store(work, row + ROW_SCALE, lost)
    store(work, row + ROW_SIZE, size)
    for m in range(k + 1):
        partner = g + GRAFT_ROWS + GRAFT_ROW * m
        own_m, other_m = prog[partner], prog[partner + 1]
        x = constant(work, 1.0 if joint >= 0 and m == k else 0.0)
        if own >= 0 and own_m >= 0:
            x = x + theta(A, own, own_m, work)
        if other >= 0 and other_m >= 0:
            x = x + theta(B, other, other_m, work)
        for d in range(6):
            x = x + load(work, kept + KEPT_ROWS + 12 * m + d) * load(work, t + d)
        if own_m >= 0:
            for d in range(6):
                x = x + load(work, alpha + d) * theta(A, first + d, own_m, work)
        store(work, row + ROW_THETA + m, x)


@inline
def theta(front, i, j, work):
    """Theta_ij of a front."""
    if i < j:
        return load(work, front + row_start(j) + ROW_THETA + i)
    return load(work, front + row_start(i) + ROW_THETA + j)


@inline
def factor_inertia(slot, rank, factor, work):
    """L (6 x 6, by rows angular, linear) with L L^T = the inertia in a slot, which may be singular: Cholesky, linear
    part first, where a vanishing pivot gives an empty column. The first `rank` columns are enough.
    """
    A, B, C = load6(work, slot), load9(work, slot + 6), load6(work, slot + 15)
    store6(work, factor, (A[0], A[1], A[2], B[0], B[1], B[2]))
    store6(work, factor + 6, (A[1], A[3], A[4], B[3], B[4], B[5]))
    store6(work, factor + 12, (A[2], A[4], A[5], B[6], B[7], B[8]))
    store6(work, factor + 18, (B[0], B[3], B[6], C[0], C[1], C[2]))
    store6(work, factor + 24, (B[1], B[4], B[7], C[1], C[3], C[4]))
    store6(work, factor + 30, (B[2], B[5], B[8], C[2], C[4], C[5]))
    for c in range(6):  # column c belongs to coordinate (c + 3) % 6; finished columns replace the matrix from there on
        i = (c + 3) % 6
        pivot = load(work, factor + 6 * i + i)
        noise = 1e-14 * (load(work, slot + (15 if i > 2 else 0)) + load(work, slot + (18 if i > 2 else 3))
                         + load(work, slot + (20 if i > 2 else 5)))
        root = sqrt(maximum(pivot, 1e-300))
        r = where_positive(pivot - noise, 1.0 / root, 0.0 * pivot) if c < rank else constant(work, 0.0)
        for later in range(c, 6):
            m = (later + 3) % 6
            store(work, factor + 6 * m + i, load(work, factor + 6 * m + i) * r)
        for later in range(c + 1, 6):
            m = (later + 3) % 6
            for latest in range(c + 1, later + 1):
                l = (latest + 3) % 6
                x = load(work, factor + 6 * m + l) - load(work, factor + 6 * m + i) * load(work, factor + 6 * l + i)
                store(work, factor + 6 * m + l, x)
    for c in range(6):  # what is left of the matrix above the pivots
        for earlier in range(c):
            store(work, factor + 6 * ((earlier + 3) % 6) + (c + 3) % 6, constant(work, 0.0))


@inner
def ungraft(g, forces, prog, work):
    """Acceleration of the body that the handle is on, and the force on the handle."""
    A, first, kept = prog[g + GRAFT_FRONT], prog[g + GRAFT_HANDLE], prog[g + GRAFT_KEPT]
    near, slot, id = prog[g + GRAFT_NEAR], prog[g + GRAFT_SLOT], prog[g + GRAFT_ID]
    alpha, a = zero3(work), zero3(work)
    if near >= 0:
        alpha, a = load3(work, near), load3(work, near + 3)
    for d in range(6):
        o = A + row_start(first + d)
        h = load(work, kept + KEPT_FREE + d) + dot(load3(work, o), alpha) + dot(load3(work, o + 3), a)
        push = 0.0 - load(work, kept + KEPT_PUSH + d)
        for k in range(prog[g + GRAFT_COUNT]):
            force = load(work, forces + prog[g + GRAFT_ROWS + GRAFT_ROW * k + 3])
            h = h + load(work, kept + KEPT_ROWS + 12 * k + 6 + d) * force
            push = push + load(work, kept + KEPT_ROWS + 12 * k + d) * force
        store(work, slot + d, h)
        store(work, forces + id + d, push)
