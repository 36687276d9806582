"""GRAFT: a subchain goes to a handle deep inside another. One of the operations of `ada.py`, on the fronts of
`fronts.py`.

The handle accelerates by h = Y_A^T a + beta + Theta F_A and carries the force F_h = -(I h + p - Y F_B) of subchain B
(through its joint already: inertia I, force p, rows Y). With I = L L^T the joint passes on L x, where x obeys
(1 + L^T Theta L) x + L^T (h at x = 0) = 0: rows like any other, to CLOSE.
Every row of the result acts on the handle by alpha (Y for B's rows, L for x) and moves it by
t = Theta_hh alpha + Theta_h,row, both kept. [docs/structures.md]
"""

from bunraku.algorithms.fronts import row_start
from bunraku.algorithms.tree import zero3
from bunraku.jit import inline, inner
from bunraku.plan.fields import (
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
    KEPT_FACTOR,
    KEPT_FREE,
    KEPT_PUSH,
    KEPT_ROWS,
    ROW_BETA,
    ROW_SCALE,
    ROW_SIZE,
    ROW_THETA,
    SLOT_BIAS,
)
from bunraku.spatial.algebra import accumulate3, dot, load3, load6, load9, scale, store6
from bunraku.spatial.scalar import constant, load, maximum, sqrt, store, where_positive


@inner
def graft(g, prog, work):
    """alpha, t, Y, Theta and beta of every row of the result."""
    A, first, target, B = prog[g + GRAFT_FRONT], prog[g + GRAFT_HANDLE], prog[g + GRAFT_TARGET], prog[g + GRAFT_OTHER]
    kept = prog[g + GRAFT_KEPT]
    factor_inertia(prog[g + GRAFT_SLOT], prog[g + GRAFT_RANK], kept + KEPT_FACTOR, work)
    for k in range(prog[g + GRAFT_COUNT]):
        graft_row(k, g, A, first, target, B, kept, prog, work)
    graft_demands(g, prog, work)


@inner
def graft_demands(g, prog, work):
    """beta of every row of the result, under the force -p of B on the handle, which goes to A's near body."""
    A, first, target, B = prog[g + GRAFT_FRONT], prog[g + GRAFT_HANDLE], prog[g + GRAFT_TARGET], prog[g + GRAFT_OTHER]
    kept, slot, near = prog[g + GRAFT_KEPT], prog[g + GRAFT_SLOT], prog[g + GRAFT_NEAR]
    for d in range(6):
        store(work, kept + KEPT_PUSH + d, load(work, slot + SLOT_BIAS + d))
    for d in range(6):  # beta of the handle
        x = load(work, A + row_start(first + d) + ROW_BETA)
        for m in range(6):
            x = x - theta(A, first + d, first + m, work) * load(work, kept + KEPT_PUSH + m)
        store(work, kept + KEPT_FREE + d, x)
    if near >= 0:
        for d in range(6):
            push, o = load(work, kept + KEPT_PUSH + d), A + row_start(first + d)
            accumulate3(work, near + SLOT_BIAS, scale(load3(work, o), push))
            accumulate3(work, near + SLOT_BIAS + 3, scale(load3(work, o + 3), push))
    for k in range(prog[g + GRAFT_COUNT]):
        entry, alpha = g + GRAFT_ROWS + GRAFT_ROW * k, kept + KEPT_ROWS + 12 * k
        own, other = prog[entry], prog[entry + 1]
        beta, size = constant(work, 0.0), constant(work, 0.0)
        for d in range(6):
            beta = beta + load(work, alpha + d) * load(work, kept + KEPT_FREE + d)
        if own >= 0:
            o = A + row_start(own)
            beta, size = beta + load(work, o + ROW_BETA), size + load(work, o + ROW_SIZE)
            for m in range(6):
                beta = beta - theta(A, first + m, own, work) * load(work, kept + KEPT_PUSH + m)
        if other >= 0:
            o = B + row_start(other)
            beta, size = beta + load(work, o + ROW_BETA), size + load(work, o + ROW_SIZE)
        o = target + row_start(k)
        store(work, o + ROW_BETA, beta)
        store(work, o + ROW_SIZE, size)


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
    lost = constant(work, 0.0)
    if own >= 0:
        lost = lost + load(work, A + row_start(own) + ROW_SCALE)
    if other >= 0:
        lost = lost + load(work, B + row_start(other) + ROW_SCALE)
    store(work, row + ROW_SCALE, lost)
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
