"""Steps common to all algorithms on a tree: pose, motion and inertia of a body.

World axes throughout. Positions, velocities (angular, linear at the group's origin) and accelerations (spatial) are
relative to the origin of the body's group; see `plan/fields.py`. References: Featherstone, Rigid Body Dynamics
Algorithms (2008), ch. 2 and 5.
"""

from bunraku.jit import inline
from bunraku.plan import fields as f
from bunraku.spatial.algebra import (
    add,
    column_z,
    cross,
    dot,
    load3,
    load6,
    load9,
    matmul,
    matTvec,
    matvec,
    rotate_about_z,
    rotate_symmetric,
    rotation_of_quaternion,
    scale,
    store3,
    store6,
    store9,
    sub,
    symvec,
)
from bunraku.spatial.scalar import constant, load, sincos, store


@inline
def row3(array, i, j):
    return (array[i, j], array[i, j + 1], array[i, j + 2])


@inline
def row6(array, i, j):
    return (array[i, j], array[i, j + 1], array[i, j + 2], array[i, j + 3], array[i, j + 4], array[i, j + 5])


@inline
def row9(array, i, j):
    return (array[i, j], array[i, j + 1], array[i, j + 2], array[i, j + 3], array[i, j + 4], array[i, j + 5],
            array[i, j + 6], array[i, j + 7], array[i, j + 8])


@inline
def zero3(kind):
    z = constant(kind, 0.0)
    return (z, z, z)


@inline
def zero6(kind):
    z = constant(kind, 0.0)
    return (z, z, z, z, z, z)


@inline
def zero9(kind):
    z = constant(kind, 0.0)
    return (z, z, z, z, z, z, z, z, z)


@inline
def unit9(kind):
    z, o = constant(kind, 0.0), constant(kind, 1.0)
    return (o, z, z, z, o, z, z, z, o)


@inline
def store_state(array, i, R, x, w, v, alpha, a):
    """The state of a body: rotation, position, angular velocity, velocity, angular acceleration, acceleration."""
    store_motion(array, i, R, x, w, v)
    store3(array, i + f.STATE_ALPHA, alpha)
    store3(array, i + f.STATE_ACCELERATION, a)


@inline
def store_motion(array, i, R, x, w, v):
    """The same without accelerations."""
    store9(array, i + f.STATE_ROTATION, R)
    store3(array, i + f.STATE_POSITION, x)
    store3(array, i + f.STATE_OMEGA, w)
    store3(array, i + f.STATE_VELOCITY, v)


@inline
def load_pose(array, i):
    """Rotation and position in the state at place i."""
    return load9(array, i + f.STATE_ROTATION), load3(array, i + f.STATE_POSITION)


@inline
def load_velocity(array, i):
    """Angular and linear velocity in the state at place i."""
    return load3(array, i + f.STATE_OMEGA), load3(array, i + f.STATE_VELOCITY)


@inline
def load_acceleration(array, i):
    """Angular and linear acceleration in the state at place i."""
    return load3(array, i + f.STATE_ALPHA), load3(array, i + f.STATE_ACCELERATION)


@inline
def load_inertia(work, i):
    """A, B, C of the articulated inertia at place i."""
    return load6(work, i + f.INERTIA_A), load9(work, i + f.INERTIA_B), load6(work, i + f.INERTIA_C)


@inline
def store_inertia(work, i, A, B, C):
    store6(work, i + f.INERTIA_A, A)
    store9(work, i + f.INERTIA_B, B)
    store6(work, i + f.INERTIA_C, C)


@inline
def joint_part_size(elimination, dof):
    """Scalars of the joint part of a record (`plan/fields.py`, REC_JOINT)."""
    return 6 * dof if elimination == f.COLUMNS else 9 if elimination != f.LOCKED else 0


@inline
def factors_of(record, dof, d):
    """Place of U, 1/D and u of degree of freedom d in the record of a joint that is eliminated column by column."""
    return record + f.REC_U if d == 0 else record + f.REC_JOINT + 6 * dof + 3 + f.REC_U_SIZE * (d - 1)


@inline
def ground_acceleration(body_f, kind):
    """Minus gravity: an upward acceleration of the world is equivalent to weight."""
    g = row3(body_f, body_f.shape[0] - 1, f.GRAVITY)
    return (constant(kind, -g[0]), constant(kind, -g[1]), constant(kind, -g[2]))


@inline
def joint_axes(body_f, i, R_parent):
    """Rotation of the joint frame of body i in world axes."""
    return matmul(R_parent, row9(body_f, i, f.ROTATION))


COMPUTE, NOTE, RECALL = 0, 1, 2
"""Treatment of joint rotations: compute them; also store them in the body's record; load the stored ones."""


@inline
def place(kind, body_i, body_f, i, q, T, x_parent):
    """Rotation and position of body i in world axes, in its parent's group; its joint has this kind and axes T."""
    return place_noting(COMPUTE, kind, body_i, body_f, i, q, T, x_parent, q)


@inline
def place_noting(turns, kind, body_i, body_f, i, q, T, x_parent, work):
    """The same; of hinges sine and cosine may be noted, and of spherical joints two columns of the rotation. The latter
    are anchors, which note the position in any case."""
    k, record = body_i[i, f.Q_INDEX], body_i[i, f.BODY_RECORD]
    if turns == RECALL and kind == f.SPHERICAL and body_i[i, f.ELIMINATION] == f.BALL:
        x = load3(work, record + f.REC_JOINT + 9)
    else:
        x = add(x_parent, matvec(T, row3(body_f, i, f.OFFSET)))
    R = T
    if kind == f.REVOLUTE:
        if turns == RECALL:
            s, c = load(work, record), load(work, record + 1)
        else:
            s, c = sincos(load(q, k))
        if turns == NOTE:
            store(work, record, s)
            store(work, record + 1, c)
        R = rotate_about_z(T, s, c)
    elif kind == f.SCREW:
        angle = load(q, k)
        s, c = sincos(angle * body_f[i, f.RATE_ANGULAR])
        R = rotate_about_z(T, s, c)
        x = add(x, scale(column_z(T), angle * body_f[i, f.RATE_LINEAR]))
    elif kind == f.SPHERICAL:
        if turns == RECALL:
            X, Y = load3(work, record), load3(work, record + 3)
            Z = cross(X, Y)
            R = (X[0], Y[0], Z[0], X[1], Y[1], Z[1], X[2], Y[2], Z[2])
        else:
            R = matmul(T, rotation_of_quaternion(load(q, k), load(q, k + 1), load(q, k + 2), load(q, k + 3)))
        if turns == NOTE:
            store3(work, record, (R[0], R[3], R[6]))
            store3(work, record + 3, (R[1], R[4], R[7]))
    elif kind == f.FREE:
        x = add(x, matvec(T, load3(q, k)))
        R = matmul(T, rotation_of_quaternion(load(q, k + 3), load(q, k + 4), load(q, k + 5), load(q, k + 6)))
    return R, x


@inline
def joint_motion(kind, body_i, body_f, i, rates, R, x):
    """S times the joint's entries of `rates` (velocities or accelerations): (angular, linear at the group's origin)."""
    k = body_i[i, f.V_INDEX]
    w = zero3(rates)
    v = zero3(rates)
    if kind == f.REVOLUTE:
        w = scale(column_z(R), load(rates, k))
        v = cross(x, w)
    elif kind == f.SCREW:
        axis, rate = column_z(R), load(rates, k)
        w = scale(axis, rate * body_f[i, f.RATE_ANGULAR])
        v = add(cross(x, w), scale(axis, rate * body_f[i, f.RATE_LINEAR]))
    elif kind == f.SPHERICAL:
        w = matvec(R, load3(rates, k))
        v = cross(x, w)
    elif kind == f.FREE:
        w = matvec(R, load3(rates, k + 3))
        v = add(cross(x, w), matvec(R, load3(rates, k)))
    return w, v


@inline
def joint_force(body_i, body_f, i, moment, force, R, x, tau):
    """S^T times a force (moment about the group's origin): written to the joint's entries of `tau`."""
    kind, k = body_i[i, f.KIND], body_i[i, f.V_INDEX]
    n = sub(moment, cross(x, force))
    if kind == f.REVOLUTE:
        store(tau, k, dot(column_z(R), n))
    elif kind == f.SCREW:
        axis = column_z(R)
        store(tau, k, dot(axis, n) * body_f[i, f.RATE_ANGULAR] + dot(axis, force) * body_f[i, f.RATE_LINEAR])
    elif kind == f.SPHERICAL:
        store3(tau, k, matTvec(R, n))
    elif kind == f.FREE:
        store3(tau, k, matTvec(R, force))
        store3(tau, k + 3, matTvec(R, n))


@inline
def joint_column(kind, rate_angular, rate_linear, d, R, x):
    """Column d of S: (angular, linear at the group's origin)."""
    z = x[0] * 0.0
    if kind == f.REVOLUTE:
        a = column_z(R)
        return a, cross(x, a)
    if kind == f.SCREW:
        axis = column_z(R)
        a = scale(axis, rate_angular)
        return a, add(cross(x, a), scale(axis, rate_linear))
    j = d if kind == f.SPHERICAL else d - 3
    if j == 0 or j == -3:
        c = (R[0], R[3], R[6])
    elif j == 1 or j == -2:
        c = (R[1], R[4], R[7])
    else:
        c = (R[2], R[5], R[8])
    if j < 0:
        return (z, z, z), c
    return c, cross(x, c)


@inline
def velocity_product(w, v, w_joint, v_joint):
    """v x v_joint: the acceleration due to the motion of the joint's axes [Featherstone, eq. 5.14]."""
    return cross(w, w_joint), add(cross(w, v_joint), cross(v, w_joint))


@inline
def weigh(body_f, i, R, x):
    """Inertia about the group's origin (6), mass times centre of mass (3), and that centre [J, eq. 6]."""
    m = body_f[i, f.MASS]
    c = add(x, matvec(R, row3(body_f, i, f.COM)))
    h = scale(c, m)
    I = rotate_symmetric(R, row6(body_f, i, f.INERTIA))
    xx, yy, zz = h[0] * c[0], h[1] * c[1], h[2] * c[2]
    about_origin = (I[0] + yy + zz, I[1] - h[0] * c[1], I[2] - h[0] * c[2],
                    I[3] + xx + zz, I[4] - h[1] * c[2], I[5] + xx + yy)
    return I, about_origin, h, c


@inline
def needed_force(m, I_com, c, w, v, alpha, a):
    """Newton and Euler: moment about the group's origin and force that give the body the acceleration (alpha, a);
    p^v of [J, eq. 1] is its part at zero acceleration; M r'' + c of [YN-HRP, eq. 4].

    f = m (acceleration of the centre of mass),   n = I alpha + w x I w + c x f
    """
    v_com = add(v, cross(w, c))
    a_com = add(add(a, cross(alpha, c)), cross(w, v_com))
    force = scale(a_com, m)
    n = add(add(symvec(I_com, alpha), cross(w, symvec(I_com, w))), cross(c, force))
    return n, force


@inline
def is_anchor(body_i, i):
    return body_i[i, f.ANCHOR] & f.OPENS != 0
