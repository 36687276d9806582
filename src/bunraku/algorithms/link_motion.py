"""Pose, motion and Jacobian of one link, from the bodies that it hangs from alone.

Idea: one sweep along the path from the ground to the link, with the recursion of `body_motion.py`; the bodies beside
the path are not visited. Cost O(depth of the link), the Jacobian too (and zeros for the columns of all others).
"""

from bunraku.algorithms.tree import (
    joint_axes,
    joint_column,
    joint_motion,
    place,
    row3,
    row9,
    unit9,
    velocity_product,
    zero3,
)
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import add, cross, load3, load9, matmul, matvec, store3, store9, sub
from bunraku.spatial.scalar import constant, store

POSE = 12  # scalars per body of a path: rotation, position


@inline
def path_to(body_i, body, path):
    """The bodies from `body` up to the ground, the body first; how many they are."""
    count, i = 0, body
    while i >= 0:
        path[count] = i
        count += 1
        i = body_i[i, f.PARENT]
    return count


@inline
def placed_on(link_f, link, R, x, point):
    """Rotation of a link and place of a point of it, from the pose (R, x) of its body."""
    turn, shift = row9(link_f, link, f.LINK_ROTATION), row3(link_f, link, f.LINK_OFFSET)
    return matmul(R, turn), add(x, matvec(R, add(shift, matvec(turn, point))))


@inner
def link_pose(body_i, body_f, link_i, link_f, link, point, q, path, poses):
    """Rotation of a link and place of a point of it in the world; the poses of the bodies on its path are kept."""
    body = body_of(link_i, link)
    R, x = unit9(q), zero3(q)
    for k in range(path_to(body_i, body, path) - 1, -1, -1):
        i = path[k]
        R, x = place(body_i[i, f.KIND], body_i, body_f, i, q, joint_axes(body_f, i, R), x)
        store9(poses, POSE * k, R)
        store3(poses, POSE * k + 9, x)
    if link < 0:
        return R, (constant(q, point[0]), constant(q, point[1]), constant(q, point[2]))
    return placed_on(link_f, link, R, x, point)


@inline
def body_of(link_i, link):
    """The body of a link, -1 for the ground."""
    return link_i[link, f.LINK_BODY] if link >= 0 else -1


@inner
def link_motion(body_i, body_f, link_i, link_f, link, point, q, v, acceleration, path):
    """Rotation of a link; place, velocity and acceleration of a point of it, and its angular ones, without gravity:
    (rotation, place, angular velocity, velocity, angular acceleration, acceleration)."""
    R, x, w, lin, alpha, a = unit9(q), zero3(q), zero3(q), zero3(q), zero3(q), zero3(q)
    for k in range(path_to(body_i, body_of(link_i, link), path) - 1, -1, -1):  # each body about its own origin
        i, above = path[k], x
        R, x = place(body_i[i, f.KIND], body_i, body_f, i, q, joint_axes(body_f, i, R), x)
        r, at_origin = sub(x, above), zero3(q)
        w_joint, v_joint = joint_motion(body_i[i, f.KIND], body_i, body_f, i, v, R, at_origin)
        alpha_joint, a_joint = joint_motion(body_i[i, f.KIND], body_i, body_f, i, acceleration, R, at_origin)
        lin, a = add(lin, cross(w, r)), add(a, cross(alpha, r))
        w, lin = add(w, w_joint), add(lin, v_joint)
        c_w, c_v = velocity_product(w, lin, w_joint, v_joint)
        alpha, a = add(add(alpha, c_w), alpha_joint), add(add(a, c_v), a_joint)
    if link < 0:
        return R, (constant(q, point[0]), constant(q, point[1]), constant(q, point[2])), w, lin, alpha, a
    R, place_of_point = placed_on(link_f, link, R, x, point)
    r = sub(place_of_point, x)
    lin = add(lin, cross(w, r))
    return R, place_of_point, w, lin, alpha, add(add(a, cross(alpha, r)), cross(w, lin))


@inline
def link_jacobian(body_i, body_f, body, x_point, path, poses, out):
    """Velocity of a point of `body` and its angular velocity, per unit of each velocity, from the poses kept by
    `link_pose`. `out` is 6 x nv by rows (linear, angular), zeroed by the caller."""
    nv = out.shape[0] // 6
    for k in range(path_to(body_i, body, path)):
        i = path[k]
        j, R, x = body_i[i, f.V_INDEX], load9(poses, POSE * k), load3(poses, POSE * k + 9)
        r = sub(x, x_point)
        for d in range(body_i[i, f.DOF]):
            s_w, s_v = joint_column(body_i[i, f.KIND], body_f[i, f.RATE_ANGULAR], body_f[i, f.RATE_LINEAR], d, R, r)
            for c in range(3):
                store(out, c * nv + j + d, s_v[c])
                store(out, (c + 3) * nv + j + d, s_w[c])
