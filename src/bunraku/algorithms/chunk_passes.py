"""A chunk: the articulated-body algorithm on a part of a mechanism whose ground moves.

Idea: the sweeps of `aba.py` run unchanged on the bodies of a chunk, in the axes of the link above it. They begin with
that link's velocity and no acceleration; its acceleration, gravity included, arrives in pass 3 and is the only
influence of the rest of the mechanism on the chunk. In pass 2 the chunk hands its articulated inertia and force to the
link above. Messages across the edge are therefore 6, 27 and 6 floats, for any size of the chunk [J, table IX].

A chunk that carries others at its far body either waits for their inertia (`receive`) and is swept plainly, or is swept
at once with a far handle (`far.py`) and joined later (`join.py`).
Cost: that of `aba`, and some hundred operations per edge. Symbols: `plan/fields.py`, "chunks".
"""

from bunraku.algorithms.aba import deliver, inward, joint_part_size, not_finite, push_again
from bunraku.algorithms.far import far_bias
from bunraku.algorithms.outward_pass import carry_on, outward_over
from bunraku.algorithms.tree import NOTE, is_anchor, joint_axes, store_state, unit9, zero3
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import (
    accumulate3,
    add,
    add6,
    add9,
    cross,
    dot,
    inertia_times,
    load3,
    load6,
    load9,
    matmul,
    matTvec,
    matvec,
    rotate_symmetric,
    scale,
    shift_inertia,
    store3,
    store6,
    store9,
    sub,
)
from bunraku.spatial.scalar import clear, constant, load, store

# -- pass 1 ----------------------------------------------------------------------------------------------------------


@inline
def hang(slot, w, v, work):
    """The link above as a chunk sees it: where it is, with this velocity, without acceleration."""
    hang_at(slot, unit9(work), zero3(work), w, v, work)


@inline
def hang_at(slot, R, x, w, v, work):
    """The same, with the frame that the first joint is given in elsewhere on the link above."""
    store_state(work, slot, R, x, w, v, zero3(work), zero3(work))


@inner
def sweep_outward(turns, first, end, body_i, body_f, q, v, tau, wrench, work):
    """`outward_over`, compiled once."""
    outward_over(turns, first, end, body_i, body_f, q, v, tau, wrench, work)


@inner
def keep_state(source, target, work):
    """Keep the state of a far body, whose slot pass 2 uses for something else."""
    for k in range(24):
        store(work, target + k, load(work, source + k))


@inline
def about_origin(state, w, v, work):
    """A motion about the origin of the far body's group, in the chunk's axes, as one of the far body itself: about its
    own origin, in its own axes."""
    R, x = load9(work, state), load3(work, state + 9)
    return matTvec(R, w), matTvec(R, add(v, cross(w, x)))


@inner
def far_velocity(state, to, work):
    """Velocity of the far body, for the chunks attached to it."""
    w, v = about_origin(state, load3(work, state + 12), load3(work, state + 15), work)
    store3(work, to, w)
    store3(work, to + 3, v)


@inner
def across(first, end, slot, to, body_i, body_f, q, v, work):
    """Pose and velocity of the last body of a path, as seen from the link above, which is at rest in the slot; all in
    registers. Turns of the joints are noted."""
    R, x, w, lin = load9(work, slot), load3(work, slot + 9), load3(work, slot + 12), load3(work, slot + 15)
    place = zero3(q)
    for i in range(first, end):
        T = turned_axes(body_i[i, f.COLUMN], body_f, i, R)
        if body_i[i, f.PLAIN] == f.PLAIN_HINGE:
            R, x, w, lin, r, _, _ = carry_on(NOTE, f.REVOLUTE, f.COLUMNS, 1, False, i, T, x, w, lin, body_i, body_f, q,
                                             v, work)
        elif body_i[i, f.PLAIN] == f.PLAIN_BALL:
            R, x, w, lin, r, _, _ = carry_on(NOTE, f.SPHERICAL, f.BALL, 3, True, i, T, x, w, lin, body_i, body_f, q, v,
                                             work)
        else:
            R, x, w, lin, r, _, _ = carry_on(NOTE, body_i[i, f.KIND], body_i[i, f.ELIMINATION], body_i[i, f.DOF],
                                             is_anchor(body_i, i), i, T, x, w, lin, body_i, body_f, q, v, work)
        place = add(place, r)
    store9(work, to, R)
    store3(work, to + 9, add(place, x))
    store3(work, to + 12, matTvec(R, w))
    store3(work, to + 15, matTvec(R, add(lin, cross(w, x))))


@inline
def turned_axes(column, body_f, i, R):
    """Rotation of body i's joint frame from its parent's: columns in another order, or a product."""
    if column == 0:
        return R
    if column == 1:
        return (R[1], R[2], R[0], R[4], R[5], R[3], R[7], R[8], R[6])
    if column == 2:
        return (R[2], R[0], R[1], R[5], R[3], R[4], R[8], R[6], R[7])
    return joint_axes(body_f, i, R)


@inline
def onward_motion(move, w, v, work):
    """Velocity of the far link of a node, from that of the link above and the motion across."""
    R, x = load9(work, move), load3(work, move + 9)
    return (add(matTvec(R, w), load3(work, move + 12)),
            add(matTvec(R, add(v, cross(w, x))), load3(work, move + 15)))


@inner
def onward(move, above, to, work):
    w, v = onward_motion(move, load3(work, above), load3(work, above + 3), work)
    store3(work, to, w)
    store3(work, to + 3, v)


@inner
def compose(upper, lower, to, work):
    """The motion across two nodes, one behind the other."""
    R, x = load9(work, upper), load3(work, upper + 9)
    w, v = onward_motion(lower, load3(work, upper + 12), load3(work, upper + 15), work)
    place = add(x, matvec(R, load3(work, lower + 9)))
    store9(work, to, matmul(R, load9(work, lower)))
    store3(work, to + 9, place)
    store3(work, to + 12, w)
    store3(work, to + 15, v)


# -- pass 2 ----------------------------------------------------------------------------------------------------------


@inner
def empty_slots(c, chunk_i, work):
    """Make room for inertias."""
    o = chunk_i[c, f.CHUNK_HANG]
    clear(work[o:o + f.SLOT_SIZE])
    clear(work[chunk_i[c, f.CHUNK_SLOTS]:chunk_i[c, f.CHUNK_SLOTS_END]])


@inner
def sweep_inward(first, last, body_i, dof_f, tau, work):
    """`inward`, compiled once."""
    return inward(False, first, last, body_i, dof_f, tau, work)


@inner
def sweep_inward_again(first, last, body_i, dof_f, tau, work):
    """The same after a sweep with a far handle, from which the margin is known."""
    inward(True, first, last, body_i, dof_f, tau, work)


@inline
def rotate_general(R, B):
    """R B R^T."""
    return matmul(matmul(R, B), (R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8]))


@inner
def receive(state, front, slot, work):
    """Add what hangs from a far body, (I, p) in its frame, to the slot of that body: with the force that it needs at
    zero joint acceleration of the chunk, turned, and about the origin of the far body's group."""
    A, B, C = load6(work, front), load9(work, front + 6), load6(work, front + 15)
    p_w, p_v = load3(work, front + f.FRONT_P), load3(work, front + f.FRONT_P + 3)
    alpha, a = far_bias(state, work)
    n, force = inertia_times(A, B, C, alpha, a)
    R, x = load9(work, state), load3(work, state + 9)
    A, B, C = rotate_symmetric(R, A), rotate_general(R, B), rotate_symmetric(R, C)
    p_w, p_v = matvec(R, add(p_w, n)), matvec(R, add(p_v, force))
    A, B = shift_inertia(A, B, C, x)
    store6(work, slot, add6(load6(work, slot), A))
    store9(work, slot + 6, add9(load9(work, slot + 6), B))
    store6(work, slot + 15, add6(load6(work, slot + 15), C))
    accumulate3(work, slot + f.SLOT_BIAS, add(p_w, cross(x, p_v)))
    accumulate3(work, slot + f.SLOT_BIAS + 3, p_v)


@inner
def pull(state, force, slot, work):
    """Leave a known force on the far body, in its axes, in the slot of that body."""
    R, x = load9(work, state), load3(work, state + 9)
    p_v = scale(matvec(R, load3(work, force + 3)), -1.0)
    store3(work, slot + f.SLOT_BIAS, sub(cross(x, p_v), matvec(R, load3(work, force))))
    store3(work, slot + f.SLOT_BIAS + 3, p_v)


@inner
def push_far(first, end, state, force, body_i, work):
    """Pass 2 of a path once more for one more force that its far body needs: in its axes, about its origin."""
    R, x = load9(work, state), load3(work, state + 9)
    p_v = matvec(R, load3(work, force + 3))
    push_again(first, end, add(matvec(R, load3(work, force)), cross(x, p_v)), p_v, body_i, work)


# -- pass 3 ----------------------------------------------------------------------------------------------------------


@inner
def sweep_down(first, end, body_i, tau, acceleration, work):
    """`deliver` for bodies first .. end - 1."""
    residue = constant(tau, 0.0)
    for i in range(first, end):
        residue = residue + deliver(i, body_i, tau, acceleration, work)
    return residue


@inner
def far_acceleration(slot, state, to, work):
    """Acceleration of the far body, gravity included, for the chunks attached to it."""
    alpha, a = far_bias(state, work)
    turn, slide = about_origin(state, load3(work, slot), load3(work, slot + 3), work)
    store3(work, to, add(alpha, turn))
    store3(work, to + 3, add(a, slide))


@inner
def sweep_down_path(correct, first, end, slot, state, to, body_i, acceleration, work):
    """`sweep_down` of a path, and `far_acceleration`. If `correct`, of a change of the acceleration of the link above:
    all results change by its part, which is small, and so are the rounding errors. Returns zero, or NaN."""
    alpha, a = load3(work, slot), load3(work, slot + 3)
    residue = constant(work, 0.0)
    for i in range(first, end):
        record, elimination, dof = body_i[i, f.BODY_RECORD], body_i[i, f.ELIMINATION], body_i[i, f.DOF]
        j = body_i[i, f.V_INDEX]
        if is_anchor(body_i, i):
            a = add(a, cross(alpha, load3(work, record + f.REC_JOINT + joint_part_size(elimination, dof))))
        if elimination == f.BALL:  # alpha = k - G a
            turned = matvec(load9(work, record + f.REC_BALL_G), scale(a, -1.0))
            if not correct:
                turned = add(load3(work, record + f.REC_BALL_K), turned)
            turn = matTvec(load9(work, record + f.REC_JOINT), sub(turned, alpha))
            if correct:
                turn = add(load3(acceleration, j), turn)
            store3(acceleration, j, turn)
            residue = residue + not_finite(turn)
            alpha = turned
            continue
        for last in range(dof):  # qdd = (u - U^T a) / D
            d = dof - 1 - last
            o = record + f.REC_U if d == 0 else record + f.REC_JOINT + 6 * dof + 3 + f.REC_U_SIZE * (d - 1)
            push = 0.0 - dot(load3(work, o), alpha) - dot(load3(work, o + 3), a)
            if not correct:
                push = load(work, o + 7) + push
            qdd = push * load(work, o + 6)
            o = record + f.REC_JOINT + 6 * d
            alpha, a = add(alpha, scale(load3(work, o), qdd)), add(a, scale(load3(work, o + 3), qdd))
            if correct:
                qdd = load(acceleration, j + d) + qdd
            store(acceleration, j + d, qdd)
            residue = residue + 0.0 * qdd
    turn, slide = about_origin(state, alpha, a, work)
    if correct:
        accumulate3(work, to, turn)
        accumulate3(work, to + 3, slide)
    else:
        bias_w, bias_v = far_bias(state, work)
        store3(work, to, add(bias_w, turn))
        store3(work, to + 3, add(bias_v, slide))
    return residue
