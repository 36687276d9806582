"""Pass 1 of forward dynamics, root to tips: pose and velocity of every body, and the force it needs at zero joint
acceleration.

Each body takes the state of its parent from a slot, leaves its own in one, and fills its record (`plan/fields.py`).
The passes that follow are in `aba.py`. Cost: O(bodies).
"""

from bunraku.algorithms.tree import (
    COMPUTE,
    is_anchor,
    joint_axes,
    joint_column,
    joint_motion,
    joint_part_size,
    load_acceleration,
    load_pose,
    load_velocity,
    needed_force,
    place_noting,
    store_motion,
    store_state,
    unit9,
    velocity_product,
    weigh,
    zero3,
    zero6,
    zero9,
)
from bunraku.jit import inline
from bunraku.plan import fields as f
from bunraku.spatial.algebra import accumulate3, add, cross, load3, load9, matvec, scale, store3, store6, store9
from bunraku.spatial.scalar import constant, load, store


@inline
def outward(body_i, body_f, q, v, tau, wrench, ground, work):
    """Pass 1, root to tips: positions, velocities, and the force each body needs at zero joint acceleration."""
    store_state(work, f.SLOT_STATE, unit9(q), zero3(q), zero3(q), zero3(q), zero3(q), ground)
    outward_over(COMPUTE, 0, body_i.shape[0] - 1, body_i, body_f, q, v, tau, wrench, work)


@inline
def outward_over(turns, first, end, body_i, body_f, q, v, tau, wrench, work):
    """Pass 1 of bodies first .. end - 1, whose parents' motion is in their slots."""
    for i in range(first, end):
        if body_i[i, f.PLAIN] == f.PLAIN_HINGE:  # the same code with the branches taken out by the compiler
            descend(turns, f.REVOLUTE, f.COLUMNS, 1, False, body_i[i, f.MASSIVE], i, body_i, body_f, q, v, tau, work)
        elif body_i[i, f.PLAIN] == f.PLAIN_BALL:
            descend(turns, f.SPHERICAL, f.BALL, 3, True, 1, i, body_i, body_f, q, v, tau, work)
        else:
            descend(turns, body_i[i, f.KIND], body_i[i, f.ELIMINATION], body_i[i, f.DOF], is_anchor(body_i, i),
                    body_i[i, f.MASSIVE], i, body_i, body_f, q, v, tau, work)
        if wrench.shape[0] > 0:
            record, force = body_i[i, f.BODY_RECORD] + f.REC_FORCE, load3(wrench, 6 * i)
            _, x = load_pose(work, body_i[i, f.OWN_SLOT])
            accumulate3(work, record, scale(add(load3(wrench, 6 * i + 3), cross(x, force)), -1.0))
            accumulate3(work, record + 3, scale(force, -1.0))


@inline
def follow(body_i, body_f, q, v, work):
    """Of pass 1 positions and velocities only. The records stay as they are, but for the origins of groups."""
    store_state(work, f.SLOT_STATE, unit9(q), zero3(q), zero3(q), zero3(q), zero3(q), zero3(q))
    follow_over(0, body_i.shape[0] - 1, body_i, body_f, q, v, work)


@inline
def follow_over(first, end, body_i, body_f, q, v, work):
    """The same for bodies first .. end - 1, whose parents' motion is in their slots."""
    for i in range(first, end):
        R, x, w, lin, _, _, _ = carry_motion(COMPUTE, body_i[i, f.KIND], body_i[i, f.ELIMINATION], body_i[i, f.DOF],
                                             is_anchor(body_i, i), i, body_i, body_f, q, v, work)
        store_motion(work, body_i[i, f.OWN_SLOT], R, x, w, lin)


@inline
def descend(turns, kind, elimination, dof, anchor, massive, i, body_i, body_f, q, v, tau, work):
    """Pass 1 at body i: take the parent's motion from its slot, leave the body's own, and fill its record."""
    above, to, record = body_i[i, f.PARENT_SLOT], body_i[i, f.OWN_SLOT], body_i[i, f.BODY_RECORD]
    R, x, w, lin, r, w_joint, v_joint = carry_motion(turns, kind, elimination, dof, anchor, i, body_i, body_f, q, v,
                                                         work)
    alpha, a = load_acceleration(work, above)
    if anchor:
        a = add(a, cross(alpha, r))
    if elimination == f.BALL:
        alpha, a = add(alpha, cross(w, w_joint)), add(a, cross(lin, w_joint))
    else:
        c_w, c_v = velocity_product(w, lin, w_joint, v_joint)
        alpha, a = add(alpha, c_w), add(a, c_v)
    if elimination == f.COLUMNS:
        for d in range(dof):
            s_w, s_v = joint_column(kind, body_f[i, f.RATE_ANGULAR], body_f[i, f.RATE_LINEAR], d, R, x)
            store3(work, record + f.REC_JOINT + 6 * d, s_w)
            store3(work, record + f.REC_JOINT + 6 * d + 3, s_v)
    elif elimination == f.LOCKED:
        given_w, given_v = joint_motion(kind, body_i, body_f, i, tau, R, x)
        alpha, a = add(alpha, given_w), add(a, given_v)
    else:
        store9(work, record + f.REC_JOINT, R)
    store_state(work, to, R, x, w, lin, alpha, a)
    if massive != 0:
        I_com, I, h, c = weigh(body_f, i, R, x)
        moment, force = needed_force(body_f[i, f.MASS], I_com, c, w, lin, alpha, a)
        store6(work, record + f.REC_INERTIA, I)
        store3(work, record + f.REC_MOMENT, h)
        store(work, record + f.REC_MASS, constant(q, body_f[i, f.MASS]))
        store3(work, record + f.REC_FORCE, moment)
        store3(work, record + f.REC_FORCE + 3, force)
    else:
        store9(work, record + f.REC_INERTIA, zero9(q))
        store(work, record + f.REC_MASS, constant(q, 0.0))
        store6(work, record + f.REC_FORCE, zero6(q))


@inline
def carry_motion(turns, kind, elimination, dof, anchor, i, body_i, body_f, q, v, work):
    """Rotation, position and velocity of body i, from its parent's in a slot; then where in the parent's group its own
    begins, which an anchor notes, and the joint's part of the velocity."""
    o = body_i[i, f.PARENT_SLOT]
    w, lin = load_velocity(work, o)
    return carry_on(turns, kind, elimination, dof, anchor, i, load_joint_axes(body_i, body_f, i, work, o),
                    load3(work, o + f.STATE_POSITION), w, lin, body_i, body_f, q, v, work)


@inline
def carry_on(turns, kind, elimination, dof, anchor, i, T, x, w, lin, body_i, body_f, q, v, work):
    """The same, from the axes of the joint and the parent's position and velocity [J, eq. 1]."""
    record = body_i[i, f.BODY_RECORD]
    R, x = place_noting(turns, kind, body_i, body_f, i, q, T, x, work)
    r = zero3(q)
    if anchor:
        store3(work, record + f.REC_JOINT + joint_part_size(elimination, dof), x)
        lin, x, r = add(lin, cross(w, x)), r, x
    if elimination == f.BALL:  # an anchor: the joint is at the origin, where its turning moves nothing
        w_joint, v_joint = matvec(R, load3(v, body_i[i, f.V_INDEX])), zero3(q)
        w = add(w, w_joint)
    else:
        w_joint, v_joint = joint_motion(kind, body_i, body_f, i, v, R, x)
        w, lin = add(w, w_joint), add(lin, v_joint)
    return R, x, w, lin, r, w_joint, v_joint


@inline
def load_joint_axes(body_i, body_f, i, work, slot):
    """Rotation of body i's joint frame from its parent's in a slot: columns in another order, or a product."""
    first = body_i[i, f.COLUMN]
    if first < 0:
        return joint_axes(body_f, i, load9(work, slot))
    x = slot + first
    y = x + (1 if first < 2 else -2)
    z = x + (2 if first < 1 else -1)
    return (load(work, x), load(work, y), load(work, z), load(work, x + 3), load(work, y + 3), load(work, z + 3),
            load(work, x + 6), load(work, y + 6), load(work, z + 6))
