"""Inverse dynamics of a tree: the recursive Newton-Euler algorithm.

Idea: compute the acceleration of every body, sum the required forces from the tips to the root, project on the axes.
Reference: Luh, Walker and Paul (1980); Featherstone (2008), sec. 5.3. Cost O(bodies), two passes.
Record of a body (RECORD scalars): rotation 9, position 3, force 6 (moment about the group's origin, force).
"""

from bunraku.algorithms.tree import (
    ground_acceleration,
    is_anchor,
    joint_axes,
    joint_force,
    joint_motion,
    load_acceleration,
    load_pose,
    load_velocity,
    needed_force,
    place,
    row3,
    row6,
    store_state,
    unit9,
    velocity_product,
    zero3,
)
from bunraku.jit import inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import (
    accumulate3,
    add,
    cross,
    load3,
    matTvec,
    matvec,
    rotate_symmetric,
    store3,
    sub,
)
from bunraku.spatial.scalar import constant, load, store

AT_MOMENT, AT_FORCE, AT_ORIGIN = f.STATE_SIZE, f.STATE_SIZE + 3, f.STATE_SIZE + 6
RECORD = f.STATE_SIZE + 9
"""State, moment about the group's origin and force, origin of the group in the parent's."""


@inner
def rnea(body_i, body_f, dof_f, q, v, acceleration, wrench, tau, joint_wrench, work):
    """Joint torques for the given accelerations; returns `residue`, zero if all is finite.

    `wrench`: forces on bodies as in `aba`, or nothing. `joint_wrench`: nothing, or 6 per body for the total wrench that
    each joint passes to its body: force and moment at the body's origin, in body axes.
    """
    n = body_i.shape[0] - 1
    for i in range(n):  # Pass 1, root to tips: motion, and the force each body needs
        parent, o = body_i[i, f.PARENT], RECORD * i
        if parent < 0:
            R, x, w, lin = unit9(q), zero3(q), zero3(q), zero3(q)
            alpha, a = zero3(q), ground_acceleration(body_f, q)
        else:
            p = RECORD * parent
            (R, x), (w, lin), (alpha, a) = load_pose(work, p), load_velocity(work, p), load_acceleration(work, p)
        R, x = place(body_i[i, f.KIND], body_i, body_f, i, q, joint_axes(body_f, i, R), x)
        if is_anchor(body_i, i):
            store3(work, o + AT_ORIGIN, x)
            lin, a = add(lin, cross(w, x)), add(a, cross(alpha, x))
            x = zero3(q)
        w_joint, v_joint = joint_motion(body_i[i, f.KIND], body_i, body_f, i, v, R, x)
        alpha_joint, a_joint = joint_motion(body_i[i, f.KIND], body_i, body_f, i, acceleration, R, x)
        w, lin = add(w, w_joint), add(lin, v_joint)
        c_w, c_v = velocity_product(w, lin, w_joint, v_joint)
        alpha, a = add(add(alpha, c_w), alpha_joint), add(add(a, c_v), a_joint)
        store_state(work, o, R, x, w, lin, alpha, a)
        moment, force = zero3(q), zero3(q)
        if body_i[i, f.MASSIVE] != 0:
            I_com = rotate_symmetric(R, row6(body_f, i, f.INERTIA))
            c = add(x, matvec(R, row3(body_f, i, f.COM)))
            moment, force = needed_force(body_f[i, f.MASS], I_com, c, w, lin, alpha, a)
        if wrench.shape[0] > 0:
            external = load3(wrench, 6 * i)
            force = sub(force, external)
            moment = sub(moment, add(load3(wrench, 6 * i + 3), cross(x, external)))
        store3(work, o + AT_MOMENT, moment)
        store3(work, o + AT_FORCE, force)
    residue = constant(q, 0.0)
    for back in range(n):  # Pass 2, tips to root: forces summed and projected on the joint axes
        i = n - 1 - back
        parent, o = body_i[i, f.PARENT], RECORD * i
        R, x = load_pose(work, o)
        moment, force = load3(work, o + AT_MOMENT), load3(work, o + AT_FORCE)
        joint_force(body_i, body_f, i, moment, force, R, x, tau)
        if joint_wrench.shape[0] > 0:
            store3(joint_wrench, 6 * i, matTvec(R, force))
            store3(joint_wrench, 6 * i + 3, matTvec(R, sub(moment, cross(x, force))))
        if is_anchor(body_i, i):
            r = load3(work, o + AT_ORIGIN)
            moment = add(moment, cross(r, force))
            residue = residue + 0.0 * (r[0] + r[1] + r[2] + moment[0] + moment[1] + moment[2])
        if parent >= 0:
            accumulate3(work, RECORD * parent + AT_MOMENT, moment)
            accumulate3(work, RECORD * parent + AT_FORCE, force)
    for j in range(dof_f.shape[1]):
        t = load(tau, j) + dof_f[f.ARMATURE, j] * load(acceleration, j)
        store(tau, j, t)
        residue = residue + 0.0 * t
    return residue
