"""GRAFT: a subchain goes to a handle deep inside another. One of the operations of `ada.py`, on the fronts of
`fronts.py`.

The handle accelerates by h = Y_A^T a + beta + Theta F_A and carries the force F_h = -(I h + p - Y F_B) of subchain B
(through its joint already: inertia I, force p, rows Y). With I = L L^T the joint passes on L x, where x obeys
(1 + L^T Theta L) x + L^T (h at x = 0) = 0: rows like any other, to CLOSE.
Every row of the result acts on the handle by alpha (Y for B's rows, L for x) and moves it by
t = Theta_hh alpha + Theta_h,row, both kept. [docs/structures.md]

A joint leaves of I what it does not let go: three slides leave no mass, a free joint nothing at all but rounding noise.
What is noise cannot be seen from I then, so L takes it from the size I had before the joint (`measure`).
"""

from bunraku.algorithms.aba import trace
from bunraku.algorithms.tree import is_anchor, joint_part_size, load_inertia, zero3
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import accumulate3, dot, load3, load6, scale, store6
from bunraku.spatial.scalar import constant, load, maximum, sqrt, store, where_positive
from bunraku.tolerances import CANCELLED


@inner
def measure(i, body_i, work):
    """Leave to the parent of body i how large the inertia is from which its joint is about to take a part.

    A massless body adds what was measured beyond it: several joints in a row take their parts from one inertia.
    """
    above, to, record = body_i[i, f.CHILD_SLOT], body_i[i, f.PARENT_SLOT], body_i[i, f.BODY_RECORD]
    elimination = body_i[i, f.ELIMINATION]
    if to > f.SLOT_CARRY and elimination != f.LOOSE:  # which leaves exactly nothing
        A, _, C = load_inertia(work, above)
        turning = trace(A) + trace(load6(work, record + f.REC_INERTIA))
        moving = trace(C) + 3.0 * load(work, record + f.REC_MASS)
        if body_i[i, f.MASSIVE] == 0:
            turning = turning + load(work, above + f.SLOT_TURNING)
            moving = moving + load(work, above + f.SLOT_MOVING)
        if elimination == f.BALL:
            turning = constant(work, 0.0)
        if is_anchor(body_i, i):
            r = load3(work, record + f.REC_JOINT + joint_part_size(elimination, body_i[i, f.DOF]))
            turning = turning + dot(r, r) * moving
        store(work, to + f.SLOT_TURNING, load(work, to + f.SLOT_TURNING) + turning)
        store(work, to + f.SLOT_MOVING, load(work, to + f.SLOT_MOVING) + moving)


@inner
def graft(g, prog, work):
    """alpha, t, Y, Theta and beta of every row of the result."""
    A, first = prog[g + f.GRAFT_FRONT], prog[g + f.GRAFT_HANDLE]
    target, B = prog[g + f.GRAFT_TARGET], prog[g + f.GRAFT_OTHER]
    kept = prog[g + f.GRAFT_KEPT]
    factor_inertia(prog[g + f.GRAFT_SLOT], prog[g + f.GRAFT_RANK], kept + f.KEPT_FACTOR, work)
    for k in range(prog[g + f.GRAFT_COUNT]):
        graft_row(k, g, A, first, target, B, kept, prog, work)
    graft_demands(g, prog, work)


@inner
def graft_demands(g, prog, work):
    """beta of every row of the result, under the force -p of B on the handle, which goes to A's near body."""
    A, first = prog[g + f.GRAFT_FRONT], prog[g + f.GRAFT_HANDLE]
    target, B = prog[g + f.GRAFT_TARGET], prog[g + f.GRAFT_OTHER]
    kept, slot, near = prog[g + f.GRAFT_KEPT], prog[g + f.GRAFT_SLOT], prog[g + f.GRAFT_NEAR]
    for d in range(6):
        store(work, kept + f.KEPT_PUSH + d, load(work, slot + f.SLOT_BIAS + d))
    for d in range(6):  # beta of the handle
        x = load(work, A + f.row_start(first + d) + f.ROW_BETA)
        for m in range(6):
            x = x - theta(A, first + d, first + m, work) * load(work, kept + f.KEPT_PUSH + m)
        store(work, kept + f.KEPT_FREE + d, x)
    if near >= 0:
        for d in range(6):
            push, o = load(work, kept + f.KEPT_PUSH + d), A + f.row_start(first + d)
            accumulate3(work, near + f.SLOT_BIAS, scale(load3(work, o), push))
            accumulate3(work, near + f.SLOT_BIAS + 3, scale(load3(work, o + 3), push))
    for k in range(prog[g + f.GRAFT_COUNT]):
        entry, alpha = g + f.GRAFT_ROWS + f.GRAFT_ROW * k, kept + f.KEPT_ROWS + f.KEPT_ROW * k
        own, other = prog[entry], prog[entry + 1]
        beta, size = constant(work, 0.0), constant(work, 0.0)
        for d in range(6):
            beta = beta + load(work, alpha + d) * load(work, kept + f.KEPT_FREE + d)
        if own >= 0:
            o = A + f.row_start(own)
            beta, size = beta + load(work, o + f.ROW_BETA), size + load(work, o + f.ROW_SIZE)
            for m in range(6):
                beta = beta - theta(A, first + m, own, work) * load(work, kept + f.KEPT_PUSH + m)
        if other >= 0:
            o = B + f.row_start(other)
            beta, size = beta + load(work, o + f.ROW_BETA), size + load(work, o + f.ROW_SIZE)
        o = target + f.row_start(k)
        store(work, o + f.ROW_BETA, beta)  # [YN02, eq. 38]
        store(work, o + f.ROW_SIZE, size)


@inline
def graft_row(k, g, A, first, target, B, kept, prog, work):
    entry = g + f.GRAFT_ROWS + f.GRAFT_ROW * k
    own, other, joint = prog[entry], prog[entry + 1], prog[entry + 2]
    alpha, row = kept + f.KEPT_ROWS + f.KEPT_ROW * k, target + f.row_start(k)
    t = alpha + f.KEPT_MOVE
    for d in range(6):
        x = constant(work, 0.0)
        if other >= 0:
            x = load(work, B + f.row_start(other) + d)
        elif joint >= 0:
            x = load(work, kept + f.KEPT_FACTOR + 6 * d + joint)
        store(work, alpha + d, x)
    for d in range(6):
        x = constant(work, 0.0)
        if own >= 0:
            x = theta(A, first + d, own, work)
        for m in range(6):
            x = x + theta(A, first + d, first + m, work) * load(work, alpha + m)
        store(work, t + d, x)
    for d in range(6):  # Y
        x = load(work, A + f.row_start(own) + d) if own >= 0 else constant(work, 0.0)
        for m in range(6):
            x = x + load(work, A + f.row_start(first + m) + d) * load(work, alpha + m)
        store(work, row + d, x)
    lost = constant(work, 0.0)
    if own >= 0:
        lost = lost + load(work, A + f.row_start(own) + f.ROW_SCALE)
    if other >= 0:
        lost = lost + load(work, B + f.row_start(other) + f.ROW_SCALE)
    store(work, row + f.ROW_SCALE, lost)
    for m in range(k + 1):
        partner = g + f.GRAFT_ROWS + f.GRAFT_ROW * m
        own_m, other_m = prog[partner], prog[partner + 1]
        x = constant(work, 1.0 if joint >= 0 and m == k else 0.0)  # Gamma, after [YN02, eq. 36]
        if own >= 0 and own_m >= 0:
            x = x + theta(A, own, own_m, work)
        if other >= 0 and other_m >= 0:
            x = x + theta(B, other, other_m, work)
        for d in range(6):
            x = x + load(work, kept + f.KEPT_ROWS + f.KEPT_ROW * m + d) * load(work, t + d)
        if own_m >= 0:
            for d in range(6):
                x = x + load(work, alpha + d) * theta(A, first + d, own_m, work)
        store(work, row + f.ROW_THETA + m, x)  # [YN02, eq. 50]


@inline
def theta(front, i, j, work):
    """Theta_ij of a front."""
    if i < j:
        return load(work, front + f.row_start(j) + f.ROW_THETA + i)
    return load(work, front + f.row_start(i) + f.ROW_THETA + j)


@inline
def factor_inertia(slot, rank, factor, work):
    """L (6 x 6, by rows angular, linear) with L L^T = the inertia in a slot, which may be singular: Cholesky, linear
    part first, where a pivot that is noise beside the size of the inertia before its joint gives an empty column. The
    first `rank` columns are enough.
    """
    A, B, C = load_inertia(work, slot)
    store6(work, factor, (A[0], A[1], A[2], B[0], B[1], B[2]))
    store6(work, factor + 6, (A[1], A[3], A[4], B[3], B[4], B[5]))
    store6(work, factor + 12, (A[2], A[4], A[5], B[6], B[7], B[8]))
    store6(work, factor + 18, (B[0], B[3], B[6], C[0], C[1], C[2]))
    store6(work, factor + 24, (B[1], B[4], B[7], C[1], C[3], C[4]))
    store6(work, factor + 30, (B[2], B[5], B[8], C[2], C[4], C[5]))
    for c in range(6):  # column c belongs to coordinate (c + 3) % 6; finished columns replace the matrix from there on
        i = (c + 3) % 6
        pivot = load(work, factor + 6 * i + i)
        noise = CANCELLED * load(work, slot + (f.SLOT_MOVING if i > 2 else f.SLOT_TURNING))
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
    A, first, kept = prog[g + f.GRAFT_FRONT], prog[g + f.GRAFT_HANDLE], prog[g + f.GRAFT_KEPT]
    near, slot, id = prog[g + f.GRAFT_NEAR], prog[g + f.GRAFT_SLOT], prog[g + f.GRAFT_ID]
    alpha, a = zero3(work), zero3(work)
    if near >= 0:
        alpha, a = load3(work, near), load3(work, near + 3)
    for d in range(6):
        o = A + f.row_start(first + d)
        # [YN02, eq. 52]
        h = load(work, kept + f.KEPT_FREE + d) + dot(load3(work, o), alpha) + dot(load3(work, o + 3), a)
        push = 0.0 - load(work, kept + f.KEPT_PUSH + d)  # [YN02, eq. 51]
        for k in range(prog[g + f.GRAFT_COUNT]):
            force = load(work, forces + prog[g + f.GRAFT_ROWS + f.GRAFT_ROW * k + 3])
            h = h + load(work, kept + f.KEPT_ROWS + f.KEPT_ROW * k + f.KEPT_MOVE + d) * force
            push = push + load(work, kept + f.KEPT_ROWS + f.KEPT_ROW * k + d) * force
        store(work, slot + d, h)
        store(work, forces + id + d, push)
