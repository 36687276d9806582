"""Forward dynamics of a tree: the articulated-body algorithm.

Idea: first find the forces the bodies would need if no joint accelerated, then correct for the joints, eliminating
each one from tip to root so that its subtree looks like one articulated inertia to its parent. Velocity products
enter the first part only, which leaves nothing but S, I and p in the recursion.
Reference: Featherstone, Rigid Body Dynamics Algorithms (2008), sec. 7.3; with one handle per subchain this is
[YN02] written with inertias instead of their inverses.
Cost: O(bodies); about 300 multiplications for a revolute joint. Three passes, one record of 22 scalars per hinge.
Limits: every joint must move some inertia (a massless leaf without armature is a failure, reported through `margin`).

Symbols: S joint axes, A B C articulated inertia, p force, U = I S, D = S^T U, u = tau - S^T p; accelerations in
passes 2 and 3 are relative to those at zero joint acceleration.

Pass 1 is in `outward_pass.py`. Long because one recursion is written out for four eliminations and two plain cases, all
in registers.
"""

from bunraku.algorithms.outward_pass import outward
from bunraku.algorithms.tree import (
    factors_of,
    ground_acceleration,
    is_anchor,
    joint_part_size,
    load_inertia,
    store_inertia,
    zero3,
    zero6,
    zero9,
)
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import (
    accumulate3,
    add,
    add6,
    add9,
    cross,
    dot,
    factor3,
    inertia_times,
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
from bunraku.spatial.scalar import clear, constant, load, minimum, store
from bunraku.tolerances import CANCELLED


@inner
def aba(body_i, body_f, dof_f, q, v, tau, wrench, acceleration, work):
    """Joint accelerations, and two quality measures: `margin` > 0 and `residue` == 0 on success.

    `tau` holds torques, or accelerations at LOCKED joints; it may be the same array as `acceleration`. `wrench` holds
    forces on the bodies (force, moment about the body's origin, world axes; 6 per body) or nothing. `work` is scratch
    of size body_i[-1, HEAD_WORK].
    """
    n = body_i.shape[0] - 1
    residue = constant(q, 0.0)
    outward(body_i, body_f, q, v, tau, wrench, ground_acceleration(body_f, q), work)
    clear(work[:body_i[n, f.HEAD_SLOTS] * f.SLOT_SIZE])
    margin = inward(False, n - 1, 0, body_i, dof_f, tau, work)
    for i in range(n):  # Pass 3, root to tips: joint accelerations
        residue = residue + deliver(i, body_i, tau, acceleration, work)
    return margin, residue


@inline
def inward(repeated, first, last, body_i, dof_f, tau, work):
    """Pass 2, tips to root, bodies first, first - 1, .. last: articulated inertias and forces; joints eliminated.

    `repeated`: without a margin, and with factors of ball joints kept for `push_again`. Returns how far the smallest
    pivot is from rounding noise.
    """
    margin = constant(tau, 1.0)
    i = first
    while i >= last:
        if body_i[i, f.PLAIN] == f.PLAIN_HINGE:  # up a run of hinges in registers
            above = body_i[i, f.CHILD_SLOT]
            A, B, C = load_inertia(work, above)
            p_w, p_v = load3(work, above + f.SLOT_BIAS), load3(work, above + f.SLOT_BIAS + 3)
            running = True
            while running:
                record = body_i[i, f.BODY_RECORD]
                A, B, C, p_w, p_v = join_body(A, B, C, p_w, p_v, work, record)
                A, B, C, p_w, p_v, pivot = eliminate_column(A, B, C, p_w, p_v, trace(A), trace(C), dof_f,
                                                            body_i[i, f.V_INDEX], tau, work, record + f.REC_JOINT,
                                                            work, record + f.REC_U)
                if not repeated:
                    margin = minimum(margin, pivot)
                running = body_i[i, f.RUNS_ON] != 0
                i -= 1
            hand_over(i + 1, body_i, work, A, B, C, p_w, p_v)
        elif body_i[i, f.PLAIN] == f.PLAIN_BALL:
            above = body_i[i, f.CHILD_SLOT]
            A, B, C = load6(work, above), load9(work, above + 6), load6(work, above + 15)
            p_w, p_v = load3(work, above + f.SLOT_BIAS), load3(work, above + f.SLOT_BIAS + 3)
            running = True
            while running:
                A, B, C, p_w, p_v = join_body(A, B, C, p_w, p_v, work, body_i[i, f.BODY_RECORD])
                A, B, C, p_w, p_v, pivot = eliminate_ball(repeated, i, A, B, C, p_w, p_v, body_i, tau, work)
                if not repeated:
                    margin = minimum(margin, pivot)
                running = body_i[i, f.RUNS_ON] != 0
                i -= 1
            hand_over(i + 1, body_i, work, A, B, C, p_w, p_v)
        else:
            margin = minimum(margin, ascend(repeated, i, body_i, dof_f, tau, work))
            i -= 1
    return margin


@inline
def ascend(factors, i, body_i, dof_f, tau, work):
    """Pass 2 at body i: join the subtrees beyond it with the body, eliminate its joint, leave the rest to the parent.

    Returns how far the smallest pivot is from rounding noise.
    """
    record, j = body_i[i, f.BODY_RECORD], body_i[i, f.V_INDEX]
    elimination, dof = body_i[i, f.ELIMINATION], body_i[i, f.DOF]
    A, B, C, p_w, p_v = subtree(i, body_i, work)
    margin = constant(tau, 1.0)
    if elimination == f.BALL:
        A, B, C, p_w, p_v, margin = eliminate_ball(factors, i, A, B, C, p_w, p_v, body_i, tau, work)
    elif elimination == f.COLUMNS:
        turning, moving = trace(A), trace(C)
        for d in range(dof):
            # [J, eqs. 2-3]
            A, B, C, p_w, p_v, pivot = eliminate_column(A, B, C, p_w, p_v, turning, moving, dof_f, j + d, tau, work,
                                                        record + f.REC_JOINT + 6 * d, work, factors_of(record, dof, d))
            margin = minimum(margin, pivot)
    elif elimination == f.LOOSE:
        A, B, C, p_w, p_v, margin = eliminate_loose(A, B, C, p_w, p_v, tau, j, work, record)
    if elimination != f.BALL and is_anchor(body_i, i):  # about the origin of the parent's group, where it sits at r
        r = load3(work, record + f.REC_JOINT + joint_part_size(elimination, dof))
        A, B = shift_inertia(A, B, C, r)
        p_w = add(p_w, cross(r, p_v))
    hand_over(i, body_i, work, A, B, C, p_w, p_v)
    return margin


@inline
def ascend_force(i, body_i, work):
    """Pass 2 at body i once more, for other forces: of all it does only u and p change.

    No force acts on the bodies themselves. None may come to joints that are eliminated all at once, which keep no
    factors.
    """
    above, record = body_i[i, f.CHILD_SLOT], body_i[i, f.BODY_RECORD]
    elimination, dof = body_i[i, f.ELIMINATION], body_i[i, f.DOF]
    p_w, p_v = load3(work, above + f.SLOT_BIAS), load3(work, above + f.SLOT_BIAS + 3)
    if elimination == f.COLUMNS:  # u = -S^T p;  p + U u / D remains
        for d in range(dof):
            axis = record + f.REC_JOINT + 6 * d
            result = factors_of(record, dof, d)
            u = 0.0 - (dot(load3(work, axis), p_w) + dot(load3(work, axis + 3), p_v))
            store(work, result + f.U_PUSH, u)
            e = u * load(work, result + f.U_INVERSE)
            p_w, p_v = add(p_w, scale(load3(work, result), e)), add(p_v, scale(load3(work, result + 3), e))
    elif elimination == f.BALL:
        store3(work, record + f.REC_BALL_K, zero3(work))
    elif elimination == f.LOOSE:
        store6(work, record + f.REC_LOOSE, zero6(work))
    if is_anchor(body_i, i):
        r = load3(work, record + f.REC_JOINT + joint_part_size(elimination, dof))
        p_w = add(p_w, cross(r, p_v))
    hand_over_force(body_i[i, f.ADDS], body_i[i, f.PARENT_SLOT], work, p_w, p_v)


@inline
def push_again(first, end, p_w, p_v, body_i, work):
    """Pass 2 of a path once more, bodies end - 1 .. first, for one more force that the last body needs: u of columns
    and k of balls, of which the factors are kept, change by its part."""
    for back in range(end - first):
        i = end - 1 - back
        record, elimination, dof = body_i[i, f.BODY_RECORD], body_i[i, f.ELIMINATION], body_i[i, f.DOF]
        if elimination == f.BALL:  # k - A^-1 p_w;  p_v - G^T p_w remains, without moment
            L, o = load3(work, record + f.REC_BALL_F[0]), record + f.REC_BALL_F[1]
            F = L[0], L[1], L[2], load(work, record + f.REC_BALL_F[0] + 3), load(work, o), load(work, o + 1)
            accumulate3(work, record + f.REC_BALL_K, scale(solve3(F, p_w), -1.0))
            p_v = sub(p_v, matTvec(load9(work, record + f.REC_BALL_G), p_w))
            p_w = cross(load3(work, record + f.REC_JOINT + 9), p_v)
            continue
        for d in range(dof):  # u - S^T p;  p - U S^T p / D remains
            axis = record + f.REC_JOINT + 6 * d
            result = factors_of(record, dof, d)
            e = dot(load3(work, axis), p_w) + dot(load3(work, axis + 3), p_v)
            store(work, result + 7, load(work, result + 7) - e)
            e = e * load(work, result + 6)
            p_w, p_v = sub(p_w, scale(load3(work, result), e)), sub(p_v, scale(load3(work, result + 3), e))
        if is_anchor(body_i, i):
            p_w = add(p_w, cross(load3(work, record + f.REC_JOINT + joint_part_size(elimination, dof)), p_v))


@inline
def from_parent(i, body_i, tau, work):
    """Acceleration of the parent about the origin of body i's group, and zero, or NaN if that is not finite."""
    above = body_i[i, f.PARENT_SLOT]
    alpha, a, residue = load3(work, above), load3(work, above + 3), constant(tau, 0.0)
    if is_anchor(body_i, i):
        part = joint_part_size(body_i[i, f.ELIMINATION], body_i[i, f.DOF])
        r = load3(work, body_i[i, f.BODY_RECORD] + f.REC_JOINT + part)
        residue = not_finite(r)
        a = add(a, cross(alpha, r))
    return alpha, a, residue


@inline
def deliver(i, body_i, tau, acceleration, work):
    """Pass 3 at body i: take the parent's acceleration from its slot, find the joint's, leave the body's own.

    Accelerations of bodies are relative to those at zero joint acceleration. Returns zero, or NaN if not finite.
    """
    to, record, elimination = body_i[i, f.OWN_SLOT], body_i[i, f.BODY_RECORD], body_i[i, f.ELIMINATION]
    dof, j = body_i[i, f.DOF], body_i[i, f.V_INDEX]
    alpha, a, residue = from_parent(i, body_i, tau, work)
    if elimination == f.COLUMNS:  # qdd = (u - U^T a) / D
        for last in range(dof):
            d = dof - 1 - last
            o = factors_of(record, dof, d)
            bias = dot(load3(work, o), alpha) + dot(load3(work, o + 3), a)
            qdd = (load(work, o + f.U_PUSH) - bias) * load(work, o + f.U_INVERSE)  # [J, eq. 5]
            store(acceleration, j + d, qdd)
            residue = residue + 0.0 * qdd
            o = record + f.REC_JOINT + 6 * d
            alpha = add(alpha, scale(load3(work, o), qdd))  # [J, eq. 4]
            a = add(a, scale(load3(work, o + 3), qdd))
    elif elimination == f.BALL:  # alpha = k - G a
        turned = sub(load3(work, record + f.REC_BALL_K), matvec(load9(work, record + f.REC_BALL_G), a))
        turn = matTvec(load9(work, record + f.REC_JOINT), sub(turned, alpha))
        store3(acceleration, j, turn)
        residue = residue + not_finite(turn)
        alpha = turned
    elif elimination == f.LOOSE:
        R = load9(work, record + f.REC_JOINT)
        own_w, own_v = load3(work, record + f.REC_LOOSE), load3(work, record + f.REC_LOOSE + 3)
        slide, turn = matTvec(R, sub(own_v, a)), matTvec(R, sub(own_w, alpha))
        store3(acceleration, j, slide)
        store3(acceleration, j + 3, turn)
        residue = residue + (not_finite(slide) + not_finite(turn))
        alpha, a = own_w, own_v
    else:
        for d in range(dof):
            qdd = load(tau, j + d)
            store(acceleration, j + d, qdd)
            residue = residue + 0.0 * qdd
    store3(work, to, alpha)
    store3(work, to + 3, a)
    return residue


@inline
def not_finite(x):
    """Zero for a finite vector, else NaN (x - x would be folded to zero)."""
    return 0.0 * x[0] + 0.0 * x[1] + 0.0 * x[2]


@inline
def hand_over(i, body_i, work, A, B, C, p_w, p_v):
    """Pass an articulated inertia and force to the parent of body i: in the carry, or added to those of siblings."""
    shares, o = body_i[i, f.ADDS], body_i[i, f.PARENT_SLOT]
    if shares != 0:
        A_others, B_others, C_others = load_inertia(work, o)
        store_inertia(work, o, add6(A_others, A), add9(B_others, B), add6(C_others, C))
    else:
        store_inertia(work, f.SLOT_CARRY, A, B, C)
    hand_over_force(shares, o, work, p_w, p_v)


@inline
def hand_over_force(shares, slot, work, p_w, p_v):
    """The force alone."""
    if shares != 0:
        accumulate3(work, slot + f.SLOT_BIAS, p_w)
        accumulate3(work, slot + f.SLOT_BIAS + 3, p_v)
    else:
        store3(work, f.SLOT_CARRY + f.SLOT_BIAS, p_w)
        store3(work, f.SLOT_CARRY + f.SLOT_BIAS + 3, p_v)


@inline
def subtree(i, body_i, work):
    """Articulated inertia and force of body i and everything beyond it."""
    above = body_i[i, f.CHILD_SLOT]
    A, B, C = load_inertia(work, above)
    p_w, p_v = load3(work, above + f.SLOT_BIAS), load3(work, above + f.SLOT_BIAS + 3)
    return join_body(A, B, C, p_w, p_v, work, body_i[i, f.BODY_RECORD])


@inline
def join_body(A, B, C, p_w, p_v, work, record):
    """Add a body to the articulated inertia and force of the subtrees beyond it."""
    m, h = load(work, record + f.REC_MASS), load3(work, record + f.REC_MOMENT)
    A = add6(A, load6(work, record + f.REC_INERTIA))
    B = (B[0], B[1] - h[2], B[2] + h[1], B[3] + h[2], B[4], B[5] - h[0], B[6] - h[1], B[7] + h[0], B[8])
    C = (C[0] + m, C[1], C[2], C[3] + m, C[4], C[5] + m)
    return A, B, C, add(p_w, load3(work, record + f.REC_FORCE)), add(p_v, load3(work, record + f.REC_FORCE + 3))


@inline
def trace(A):
    """Of a symmetric 3x3 matrix, six numbers."""
    return A[0] + A[3] + A[5]


@inline
def eliminate_column(A, B, C, p_w, p_v, turning, moving, dof_f, j, tau, work, column, kept, result):
    """Eliminate one degree of freedom: U = I S, D = S^T U, u = tau - S^T p; I - U U^T / D and p + U u / D
    remain. The last result says how far D is from the rounding noise of an inertia that was of the size (turning,
    moving) before the first degree of freedom of this joint. The axis is at `column` in `work`; U, 1/D and u go to
    `result` in `kept`.
    """
    s_w, s_v = load3(work, column), load3(work, column + 3)
    U_w, U_v = inertia_times(A, B, C, s_w, s_v)
    D = dot(s_w, U_w) + dot(s_v, U_v) + dof_f[f.ARMATURE, j]
    noise = CANCELLED * (turning + moving * dot(s_v, s_v))
    r = 1.0 / D
    u = load(tau, j) - dot(s_w, p_w) - dot(s_v, p_v)
    store3(kept, result, U_w)
    store3(kept, result + 3, U_v)
    store(kept, result + f.U_INVERSE, r)
    store(kept, result + f.U_PUSH, u)
    e = u * r
    d0, d1, d2 = U_w[0] * r, U_w[1] * r, U_w[2] * r
    d3, d4, d5 = U_v[0] * r, U_v[1] * r, U_v[2] * r
    A = (A[0] - U_w[0] * d0, A[1] - U_w[0] * d1, A[2] - U_w[0] * d2,
         A[3] - U_w[1] * d1, A[4] - U_w[1] * d2, A[5] - U_w[2] * d2)
    B = (B[0] - U_w[0] * d3, B[1] - U_w[0] * d4, B[2] - U_w[0] * d5,
         B[3] - U_w[1] * d3, B[4] - U_w[1] * d4, B[5] - U_w[1] * d5,
         B[6] - U_w[2] * d3, B[7] - U_w[2] * d4, B[8] - U_w[2] * d5)
    C = (C[0] - U_v[0] * d3, C[1] - U_v[0] * d4, C[2] - U_v[0] * d5,
         C[3] - U_v[1] * d4, C[4] - U_v[1] * d5, C[5] - U_v[2] * d5)
    return A, B, C, add(p_w, scale(U_w, e)), add(p_v, scale(U_v, e)), D - noise


@inline
def reduce_ball(i, A, B, C, p_w, p_v, body_i, tau, work):
    """A spherical joint transmits no moment but its torque: about it only a 3x3 mass C' remains.

    A alpha + B a + p_w = tau      ->  alpha = k - G a,  k = A^-1 (tau - p_w),  G = A^-1 B
    force = B^T alpha + C a + p_v  ->  C' = C - B^T G,  p_v' = p_v + B^T k;  moment = tau
    About the parent's origin, in which the joint is at r: B = [r] C', A = [r] C' [r]^T, moment tau + r x p_v'.
    Returns these, the margin of the pivots, the factors of A, k and G.
    """
    record = body_i[i, f.BODY_RECORD]
    torque = matvec(load9(work, record + f.REC_JOINT), load3(tau, body_i[i, f.V_INDEX]))
    r = load3(work, record + f.REC_JOINT + 9)
    F, margin = factor3(A)
    b0, b1, b2 = (B[0], B[3], B[6]), (B[1], B[4], B[7]), (B[2], B[5], B[8])
    g0, g1, g2 = solve3(F, b0), solve3(F, b1), solve3(F, b2)
    k = solve3(F, sub(torque, p_w))
    C = (C[0] - dot(b0, g0), C[1] - dot(b0, g1), C[2] - dot(b0, g2),
         C[3] - dot(b1, g1), C[4] - dot(b1, g2), C[5] - dot(b2, g2))
    p_v = add(p_v, matTvec(B, k))
    d0, d1, d2 = cross(r, (C[0], C[1], C[2])), cross(r, (C[1], C[3], C[4])), cross(r, (C[2], C[4], C[5]))
    B = (d0[0], d1[0], d2[0], d0[1], d1[1], d2[1], d0[2], d1[2], d2[2])
    e0, e1, e2 = cross(r, (B[0], B[1], B[2])), cross(r, (B[3], B[4], B[5])), cross(r, (B[6], B[7], B[8]))
    A = (e0[0], e1[0], e2[0], e1[1], e2[1], e2[2])
    G = (g0[0], g1[0], g2[0], g0[1], g1[1], g2[1], g0[2], g1[2], g2[2])
    return A, B, C, add(torque, cross(r, p_v)), p_v, margin, F, k, G


@inline
def eliminate_ball(factors, i, A, B, C, p_w, p_v, body_i, tau, work):
    """`reduce_ball`, with k and G, and the `factors` of A if asked for, left in the record."""
    A, B, C, p_w, p_v, margin, F, k, G = reduce_ball(i, A, B, C, p_w, p_v, body_i, tau, work)
    record = body_i[i, f.BODY_RECORD]
    store3(work, record + f.REC_BALL_K, k)
    store9(work, record + f.REC_BALL_G, G)
    if factors:
        store3(work, record + f.REC_BALL_F[0], (F[0], F[1], F[2]))
        store(work, record + f.REC_BALL_F[0] + 3, F[3])
        store(work, record + f.REC_BALL_F[1], F[4])
        store(work, record + f.REC_BALL_F[1] + 1, F[5])
    return A, B, C, p_w, p_v, margin


@inline
def eliminate_loose(A, B, C, p_w, p_v, tau, j, work, record):
    """A free joint transmits only its own force: the body's acceleration follows at once from 6 equations.

    [A B; B^T C] (alpha, a) = joint force - p, solved by blocks: E = C^-1 B^T, (A - B E) alpha = n - E^T f.
    """
    R = load9(work, record + f.REC_JOINT)
    push, twist = matvec(R, load3(tau, j)), matvec(R, load3(tau, j + 3))
    n, force = sub(twist, p_w), sub(push, p_v)
    F, margin = factor3(C)
    b0, b1, b2 = (B[0], B[1], B[2]), (B[3], B[4], B[5]), (B[6], B[7], B[8])
    e0, e1, e2 = solve3(F, b0), solve3(F, b1), solve3(F, b2)
    G, margin_turn = factor3((A[0] - dot(b0, e0), A[1] - dot(b0, e1), A[2] - dot(b0, e2),
                              A[3] - dot(b1, e1), A[4] - dot(b1, e2), A[5] - dot(b2, e2)))
    margin_turn = margin_turn - CANCELLED * (A[0] + A[3] + A[5])  # the digits that the subtraction lost
    alpha = solve3(G, (n[0] - dot(e0, force), n[1] - dot(e1, force), n[2] - dot(e2, force)))
    a = solve3(F, sub(force, matTvec(B, alpha)))
    store3(work, record + f.REC_LOOSE, alpha)
    store3(work, record + f.REC_LOOSE + 3, a)
    return zero6(tau), zero9(tau), zero6(tau), twist, push, minimum(margin, margin_turn)
