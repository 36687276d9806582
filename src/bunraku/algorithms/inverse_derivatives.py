"""Derivatives of inverse dynamics of a tree by coordinates, velocities and accelerations, in one pass over the bodies.

Idea: moving joint d carries everything beyond it along as one rigid body, so the torque of joint e changes through the
composite inertia beyond the outer of the two joints, its rate, its momentum and the force it needs. With a joint's
axis S and, of the link it is mounted on, velocity v and acceleration a (gravity included):

    S' = v x S,   S'' = a x S + v x S',   and   S* = v_own x S,   v_own being the velocity of the link it carries;

    e beyond d, or both at one joint:    dtau_e/dq_d = S_e . (R S'_d + I S''_d + E S_d)
                                         dtau_e/dv_d = S_e . (R S_d + I (S'_d + S*_d))
    d beyond e, at another joint:        dtau_e/dq_d = S_e . (R S'_d + I S''_d + E S_d + S_d x f)
                                         dtau_e/dv_d = S_e . (R S_d + I (S'_d + S*_d))
    M_ed = S_e . I S_d

with the composites beyond the outer joint: inertia I; R m = (J' m_w - L x m_w, -2 p x m_w) from the rate J' of its
inertia about the origin, its angular momentum L and momentum p; f the force it needs; and E for forces that keep their
direction in the world while their points move along. Coordinates of spherical and free joints are varied by small turns
and shifts in child axes, as their velocities are given. Cost O(sum of depths), the number of related pairs. Reference:
Singh, Russo and Wensing (2022), "Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra".

All quantities are in world axes about the position of the tree's first body, which is where a group of `fields.py`
would start, too; no further groups, since entries relate distant joints anyway. Velocities are numbered here in the
order of bodies: `number` has their places in v, and `outward` the next one towards the root, -1 at its end.
"""

from numba.extending import register_jitable

from bunraku.algorithms.passive import rotation_vector, spring_force
from bunraku.algorithms.tree import (
    ground_acceleration,
    joint_axes,
    joint_column,
    joint_motion,
    load_acceleration,
    load_pose,
    load_velocity,
    place,
    row3,
    row9,
    store_state,
    unit9,
    velocity_product,
    weigh,
    zero3,
)
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import (
    accumulate3,
    add,
    cross,
    dot,
    load3,
    load6,
    load9,
    matTvec,
    matvec,
    norm,
    scale,
    store3,
    store6,
    store9,
    sub,
    symvec,
)
from bunraku.spatial.scalar import clear, constant, load, maximum, sincos, store, where_positive

# Record of a body: its state, then the composite of everything beyond its joint
INERTIA = f.STATE_SIZE       # 6, about the origin
FIRST_MOMENT = INERTIA + 6   # 3, mass times centre
MASS = FIRST_MOMENT + 3      # 1
RATE = MASS + 1              # 6, of the inertia about the origin
SPIN = RATE + 6              # 3, angular momentum about the origin
MOMENTUM = SPIN + 3          # 3
NEEDED = MOMENTUM + 3        # 6, moment about the origin and force it needs
TURNED_MOMENT = NEEDED + 6   # 9, E: moment per turn; only if forces act from outside
TURNED_FORCE = TURNED_MOMENT + 9  # 3, E: the sum of these forces
ORIGIN = TURNED_FORCE + 3    # 3, of the tree, in the world
BODY = ORIGIN + 3
# Record of a velocity
AXIS, AXIS_RATE, AXIS_TURN, AXIS_BOTH = 0, 6, 12, 18  # S, S', S'', S' + S*: 6 each
COLUMN = 24


@inline
def work_sizes(bodies, nv, springs):
    """Scalars of work: records of bodies and of velocities, and three rows of columns for springs."""
    return BODY * bodies + COLUMN * nv + (9 * nv if springs > 0 else 0)


@inner
def inverse_derivatives(body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, q, v, acceleration, external,
                        number, outward, dq, dv, mass, work):
    """Derivatives of the torques that `rnea` and all forces of the mechanism give; returns a residue, zero if all is
    finite.

    dq, dv, mass (nv x nv, by rows: torque) are filled: derivatives by coordinates and velocities, and the mass matrix
    with armature, which is the derivative by accelerations. `external` is empty or 6 per link. `work` has `work_sizes`.
    """
    n, nv = body_i.shape[0] - 1, dof_f.shape[1]
    columns = BODY * n
    pushed = external.shape[0] > 0 or spring_i.shape[0] > 0
    clear(dq)
    clear(dv)
    clear(mass)
    motions(body_i, body_f, q, v, acceleration, columns, work)
    if pushed:
        outer_forces(link_i, link_f, spring_i, spring_f, external, work)
    column = nv
    for back in range(n):  # tips to root: composites are complete when their joint's turn comes
        i = n - 1 - back
        o, parent = BODY * i, body_i[i, f.PARENT]
        column -= body_i[i, f.DOF]
        last = column + body_i[i, f.DOF] - 1
        for e in range(column, last + 1):
            pairs(e, column, last, o, columns, pushed, number, outward, dq, dv, mass, work)
        if parent >= 0:
            for k in range(INERTIA, ORIGIN if pushed else TURNED_MOMENT):
                store(work, BODY * parent + k, load(work, BODY * parent + k) + load(work, o + k))
    if spring_i.shape[0] > 0:
        for k in range(spring_i.shape[0]):
            point_spring(k, body_i, link_i, link_f, spring_i, spring_f, number, outward, columns, dq, dv, work)
    joint_springs(body_i, dof_f, q, v, dq, dv)
    for j in range(nv):
        store(mass, j * nv + j, load(mass, j * nv + j) + dof_f[f.ARMATURE, j])
    residue = constant(q, 0.0)
    for k in range(nv * nv):
        residue = residue + 0.0 * (load(dq, k) + load(dv, k) + load(mass, k))
    return residue


@inline
def motions(body_i, body_f, q, v, acceleration, columns, work):
    """Root to tips: state, axes, inertia and needed force of every body."""
    column = 0
    for i in range(body_i.shape[0] - 1):
        parent, o = body_i[i, f.PARENT], BODY * i
        if parent < 0:
            R, x, w, lin = unit9(q), zero3(q), zero3(q), zero3(q)
            alpha, a = zero3(q), ground_acceleration(body_f, q)
        else:
            p = BODY * parent
            (R, x), (w, lin), (alpha, a) = load_pose(work, p), load_velocity(work, p), load_acceleration(work, p)
        R, x = place(body_i[i, f.KIND], body_i, body_f, i, q, joint_axes(body_f, i, R), x)
        if parent < 0:
            store3(work, o + ORIGIN, x)
            x = zero3(q)
        else:
            store3(work, o + ORIGIN, load3(work, BODY * parent + ORIGIN))
        w_joint, v_joint = joint_motion(body_i[i, f.KIND], body_i, body_f, i, v, R, x)
        alpha_joint, a_joint = joint_motion(body_i[i, f.KIND], body_i, body_f, i, acceleration, R, x)
        w, lin = add(w, w_joint), add(lin, v_joint)
        c_w, c_v = velocity_product(w, lin, w_joint, v_joint)
        alpha, a = add(add(alpha, c_w), alpha_joint), add(add(a, c_v), a_joint)
        store_state(work, o, R, x, w, lin, alpha, a)
        for k in range(INERTIA, ORIGIN):
            store(work, o + k, constant(q, 0.0))
        if body_i[i, f.MASSIVE] != 0:
            own_inertia(body_f, i, o, R, x, w, lin, alpha, a, work)
        axes_and_rates(body_i, body_f, i, column, columns, work)
        column += body_i[i, f.DOF]


@inline
def own_inertia(body_f, i, o, R, x, w, lin, alpha, a, work):
    """Inertia of a body, its rate, its momentum and the force it needs, all about the origin."""
    m = body_f[i, f.MASS]
    I_com, about_origin, h, c = weigh(body_f, i, R, x)
    v_com = add(lin, cross(w, c))
    p = scale(v_com, m)
    L_com = symvec(I_com, w)
    # d/dt (I + m (c^2 1 - c c^T)), the rate of I being w x I + (w x I)^T
    xx, yy, zz = c[0] * p[0], c[1] * p[1], c[2] * p[2]
    rate = (2.0 * (w[1] * I_com[2] - w[2] * I_com[1] + yy + zz),
            w[2] * (I_com[0] - I_com[3]) + w[1] * I_com[4] - w[0] * I_com[2] - c[0] * p[1] - c[1] * p[0],
            w[1] * (I_com[5] - I_com[0]) - w[2] * I_com[4] + w[0] * I_com[1] - c[0] * p[2] - c[2] * p[0],
            2.0 * (w[2] * I_com[1] - w[0] * I_com[4] + xx + zz),
            w[0] * (I_com[3] - I_com[5]) + w[2] * I_com[2] - w[1] * I_com[1] - c[1] * p[2] - c[2] * p[1],
            2.0 * (w[0] * I_com[4] - w[1] * I_com[2] + xx + yy))
    a_com = add(add(a, cross(alpha, c)), cross(w, v_com))
    force = scale(a_com, m)
    moment = add(add(symvec(I_com, alpha), cross(w, L_com)), cross(c, force))
    store6(work, o + INERTIA, about_origin)
    store3(work, o + FIRST_MOMENT, h)
    store(work, o + MASS, constant(work, m))
    store6(work, o + RATE, rate)
    store3(work, o + SPIN, add(L_com, cross(c, p)))
    store3(work, o + MOMENTUM, p)
    store3(work, o + NEEDED, moment)
    store3(work, o + NEEDED + 3, force)


@inline
def axes_and_rates(body_i, body_f, i, column, columns, work):
    """S, S', S'' and S' + S* of the velocities of body i."""
    o, parent = BODY * i, body_i[i, f.PARENT]
    (R, x), (w, lin) = load_pose(work, o), load_velocity(work, o)
    if parent < 0:
        w_p, v_p, alpha_p, a_p = zero3(work), zero3(work), zero3(work), ground_acceleration(body_f, work)
    else:
        (w_p, v_p), (alpha_p, a_p) = load_velocity(work, BODY * parent), load_acceleration(work, BODY * parent)
    for d in range(body_i[i, f.DOF]):
        s_w, s_v = joint_column(body_i[i, f.KIND], body_f[i, f.RATE_ANGULAR], body_f[i, f.RATE_LINEAR], d, R, x)
        r_w, r_v = velocity_product(w_p, v_p, s_w, s_v)
        t_w, t_v = velocity_product(alpha_p, a_p, s_w, s_v)
        u_w, u_v = velocity_product(w_p, v_p, r_w, r_v)
        own_w, own_v = velocity_product(w, lin, s_w, s_v)
        at = columns + COLUMN * (column + d)
        store3(work, at + AXIS, s_w)
        store3(work, at + AXIS + 3, s_v)
        store3(work, at + AXIS_RATE, r_w)
        store3(work, at + AXIS_RATE + 3, r_v)
        store3(work, at + AXIS_TURN, add(t_w, u_w))
        store3(work, at + AXIS_TURN + 3, add(t_v, u_v))
        store3(work, at + AXIS_BOTH, add(r_w, own_w))
        store3(work, at + AXIS_BOTH + 3, add(r_v, own_v))


@inline
def load_spatial(work, i):
    return load3(work, i), load3(work, i + 3)


@inline
def inertia_force(work, o, m_w, m_v):
    """Composite inertia of the body at o times a motion: moment and force."""
    h = load3(work, o + FIRST_MOMENT)
    moment = add(symvec(load6(work, o + INERTIA), m_w), cross(h, m_v))
    return moment, sub(scale(m_v, load(work, o + MASS)), cross(h, m_w))


@inline
def rate_force(work, o, m_w):
    """R times a motion."""
    moment = sub(symvec(load6(work, o + RATE), m_w), cross(load3(work, o + SPIN), m_w))
    return moment, scale(cross(load3(work, o + MOMENTUM), m_w), -2.0)


@inline
def pairs(e, column, last, o, columns, pushed, number, outward, dq, dv, mass, work):
    """Entries that relate velocity e, of the body at `o` whose velocities are column .. last, to the others of its
    joint and to all those nearer to the root."""
    nv = number.shape[0]
    at, own = columns + COLUMN * e, number[e]
    (s_w, s_v), r_w = load_spatial(work, at + AXIS), load3(work, at + AXIS_RATE)
    (t_w, t_v), (b_w, b_v) = load_spatial(work, at + AXIS_TURN), load_spatial(work, at + AXIS_BOTH)
    # as the outer joint's row: S_e . R m = row_R . m_w, S_e . I m = row_I . m, S_e . E m = row_E . m_w
    row_R = add(add(symvec(load6(work, o + RATE), s_w), cross(load3(work, o + SPIN), s_w)),
                scale(cross(load3(work, o + MOMENTUM), s_v), 2.0))
    I_n, I_f = inertia_force(work, o, s_w, s_v)
    # as the outer joint's column: forces per unit of its coordinate (f_q) and of its velocity (f_v)
    (q_n, q_f), (x_n, x_f) = rate_force(work, o, r_w), inertia_force(work, o, t_w, t_v)
    f_n, f_f = load3(work, o + NEEDED), load3(work, o + NEEDED + 3)
    q_n = add(add(q_n, x_n), add(cross(s_w, f_n), cross(s_v, f_f)))
    q_f = add(add(q_f, x_f), cross(s_w, f_f))
    (v_n, v_f), (y_n, y_f) = rate_force(work, o, s_w), inertia_force(work, o, b_w, b_v)
    v_n, v_f = add(v_n, y_n), add(v_f, y_f)
    row_E = zero3(work)
    if pushed:
        E, F = load9(work, o + TURNED_MOMENT), load3(work, o + TURNED_FORCE)
        row_E = add(matTvec(E, s_w), cross(F, s_v))
        q_n, q_f = add(q_n, matvec(E, s_w)), add(q_f, cross(s_w, F))
    d = last
    while d >= 0:
        at, other = columns + COLUMN * d, number[d]
        (s_w, s_v), r_w = load_spatial(work, at + AXIS), load3(work, at + AXIS_RATE)
        (t_w, t_v), (b_w, b_v) = load_spatial(work, at + AXIS_TURN), load_spatial(work, at + AXIS_BOTH)
        m = dot(I_n, s_w) + dot(I_f, s_v)
        store(mass, own * nv + other, m)
        store(mass, other * nv + own, m)
        by_q = dot(row_R, r_w) + dot(I_n, t_w) + dot(I_f, t_v)
        if pushed:
            by_q = by_q + dot(row_E, s_w)
        store(dq, own * nv + other, by_q)
        store(dv, own * nv + other, dot(row_R, s_w) + dot(I_n, b_w) + dot(I_f, b_v))
        if d < column:
            store(dq, other * nv + own, dot(q_n, s_w) + dot(q_f, s_v))
            store(dv, other * nv + own, dot(v_n, s_w) + dot(v_f, s_v))
        d = outward[d]


# -- forces from outside -----------------------------------------------------------------------------------------------


@inline
def outer_forces(link_i, link_f, spring_i, spring_f, external, work):
    """Put what acts on links, and point springs as they pull now, into the records of bodies."""
    if external.shape[0] > 0:
        for link in range(link_i.shape[0]):
            if link_i[link, f.LINK_BODY] >= 0:
                R, x, w, lin = end_motion(link_i, link_f, link, (0.0, 0.0, 0.0), work)
                push(link_i[link, f.LINK_BODY], x, load3(external, 6 * link), load3(external, 6 * link + 3), work)
    for k in range(spring_i.shape[0]):
        a, b = spring_i[k, f.SPRING_A], spring_i[k, f.SPRING_B]
        x_a, v_a = spring_end(link_i, link_f, a, row3(spring_f, k, f.POINT_A), work)
        x_b, v_b = spring_end(link_i, link_f, b, row3(spring_f, k, f.POINT_B), work)
        force = spring_force(spring_f, k, x_a, v_a, x_b, v_b)[0]
        push_end(link_i, a, x_a, force, work)
        push_end(link_i, b, x_b, scale(force, -1.0), work)


@inline
def push(body, x, force, moment, work):
    """A force through the point x of the world, and a moment, which act on a body and keep their directions."""
    o = BODY * body
    r = sub(x, load3(work, o + ORIGIN))
    store3(work, o + NEEDED, sub(load3(work, o + NEEDED), add(moment, cross(r, force))))
    store3(work, o + NEEDED + 3, sub(load3(work, o + NEEDED + 3), force))
    accumulate3(work, o + TURNED_FORCE, force)
    # E m_w = (r x (m_w x force) + m_w x moment, m_w x force)
    along = dot(r, force)
    E = load9(work, o + TURNED_MOMENT)
    store9(work, o + TURNED_MOMENT, (
        E[0] + along - force[0] * r[0], E[1] + moment[2] - force[0] * r[1], E[2] - moment[1] - force[0] * r[2],
        E[3] - moment[2] - force[1] * r[0], E[4] + along - force[1] * r[1], E[5] + moment[0] - force[1] * r[2],
        E[6] + moment[1] - force[2] * r[0], E[7] - moment[0] - force[2] * r[1], E[8] + along - force[2] * r[2]))


@inline
def push_end(link_i, link, x, force, work):
    if link >= 0 and link_i[link, f.LINK_BODY] >= 0:
        push(link_i[link, f.LINK_BODY], x, force, zero3(work), work)


@inline
def end_motion(link_i, link_f, link, point, work):
    """Rotation of the body of a link, position of a point of the link in the world, and the body's velocity."""
    o = BODY * link_i[link, f.LINK_BODY]
    (R, x), (w, lin) = load_pose(work, o), load_velocity(work, o)
    in_body = add(row3(link_f, link, f.LINK_OFFSET), matvec(row9(link_f, link, f.LINK_ROTATION), point))
    return R, add(add(load3(work, o + ORIGIN), x), matvec(R, in_body)), w, lin


@inline
def spring_end(link_i, link_f, link, point, work):
    """Position and velocity of an end of a spring in the world; the point is given in the frame of its link."""
    z = zero3(work)
    if link < 0:
        return add(z, point), z
    if link_i[link, f.LINK_BODY] < 0:
        return add(z, add(row3(link_f, link, f.LINK_OFFSET),
                          matvec(row9(link_f, link, f.LINK_ROTATION), point))), z
    R, x, w, lin = end_motion(link_i, link_f, link, point, work)
    return x, add(lin, cross(w, sub(x, load3(work, BODY * link_i[link, f.LINK_BODY] + ORIGIN))))


@inline
def point_spring(k, body_i, link_i, link_f, spring_i, spring_f, number, outward, columns, dq, dv, work):
    """What a spring between two points adds because its force changes with its length and rate. It is felt by every
    pair of velocities on the ways to its ends."""
    nv = number.shape[0]
    to, rate = columns + COLUMN * nv, columns + COLUMN * nv + 3 * nv  # of its length, and of its rate, per coordinate
    pulled = rate + 3 * nv
    for j in range(to, pulled):
        store(work, j, constant(work, 0.0))
    a, b = spring_i[k, f.SPRING_A], spring_i[k, f.SPRING_B]
    x_a, v_a = spring_end(link_i, link_f, a, row3(spring_f, k, f.POINT_A), work)
    x_b, v_b = spring_end(link_i, link_f, b, row3(spring_f, k, f.POINT_B), work)
    way(-1.0, a, x_a, body_i, link_i, outward, columns, to, rate, work)
    way(1.0, b, x_b, body_i, link_i, outward, columns, to, rate, work)
    direction, pull, per_length, slope = spring_slopes(spring_f, k, x_a, v_a, x_b, v_b)
    damping = spring_f[k, f.SPRING_D]
    for by_velocity in range(2):
        for d in range(nv):
            gap, gap_rate = load3(work, to + 3 * d), load3(work, rate + 3 * d)
            if by_velocity == 0:  # change of the force per unit of coordinate d
                along = dot(slope, gap) + damping * dot(direction, gap_rate)
                across = sub(gap, scale(direction, dot(direction, gap)))
                change = add(scale(direction, along), scale(across, per_length))
            else:
                change = scale(direction, damping * dot(direction, gap))
            store3(work, pulled + 3 * d, change)
        out = dq if by_velocity == 0 else dv
        for e in range(nv):
            arm = load3(work, to + 3 * e)
            for d in range(nv):
                at = number[e] * nv + number[d]
                store(out, at, load(out, at) + dot(arm, load3(work, pulled + 3 * d)))


@inline
def spring_slopes(spring_f, k, x_a, v_a, x_b, v_b):
    """Direction from a to b, the pull, the pull per length (0 if it has none), and the gradient of the pull by the
    position of b."""
    gap, moving = sub(x_b, x_a), sub(v_b, v_a)
    length = norm(gap)
    z = 0.0 * length
    per = where_positive(length - 1e-150, 1.0 / maximum(length, 1e-150), z)
    direction = scale(gap, per)
    speed = dot(moving, direction)
    pull = spring_f[k, f.SPRING_K] * (length - spring_f[k, f.SPRING_LENGTH]) + spring_f[k, f.SPRING_D] * speed
    slope = add(scale(direction, spring_f[k, f.SPRING_K]),
                scale(sub(moving, scale(direction, speed)), spring_f[k, f.SPRING_D] * per))
    return direction, pull, pull * per, slope


@inline
def way(sign, link, x, body_i, link_i, outward, columns, to, rate, work):
    """Add to `to` the displacement of a point of a link per unit of each coordinate, to `rate` that of its velocity."""
    if link < 0 or link_i[link, f.LINK_BODY] < 0:
        return
    body = link_i[link, f.LINK_BODY]
    w, lin = load_velocity(work, BODY * body)
    r = sub(x, load3(work, BODY * body + ORIGIN))
    d = last_velocity(body_i, body)
    while d >= 0:
        at = columns + COLUMN * d
        (s_w, s_v), (r_w, r_v) = load_spatial(work, at + AXIS), load_spatial(work, at + AXIS_RATE)
        own_w, own_v = velocity_product(w, lin, s_w, s_v)
        shift = add(s_v, cross(s_w, r))
        faster = add(add(sub(r_v, own_v), cross(sub(r_w, own_w), r)), cross(w, shift))
        for c in range(3):
            store(work, to + 3 * d + c, load(work, to + 3 * d + c) + sign * shift[c])
            store(work, rate + 3 * d + c, load(work, rate + 3 * d + c) + sign * faster[c])
        d = outward[d]


@inline
def last_velocity(body_i, body):
    """Number, in the order of bodies, of the last velocity on the way from the root to a body; -1 if there is none."""
    while body >= 0 and body_i[body, f.DOF] == 0:
        body = body_i[body, f.PARENT]
    if body < 0:
        return -1
    count = 0
    for i in range(body + 1):
        count += body_i[i, f.DOF]
    return count - 1


@inline
def number_velocities(body_i, number, outward):
    """Fill `number` and `outward`, see above."""
    k = 0
    for i in range(body_i.shape[0] - 1):
        before = last_velocity(body_i, body_i[i, f.PARENT])
        for d in range(body_i[i, f.DOF]):
            number[k] = body_i[i, f.V_INDEX] + d
            outward[k] = before
            before = k
            k += 1


# -- springs, dampers and limits of joints -----------------------------------------------------------------------------


@inline
def joint_springs(body_i, dof_f, q, v, dq, dv):
    """Subtract the derivatives of `passive.passive_torque`."""
    nv = dof_f.shape[1]
    if body_i[body_i.shape[0] - 1, f.HEAD_PASSIVE] == 0:
        return
    for i in range(body_i.shape[0] - 1):
        kind, j, k = body_i[i, f.KIND], body_i[i, f.V_INDEX], body_i[i, f.Q_INDEX]
        if body_i[i, f.ELIMINATION] == f.LOCKED:
            continue
        for d in range(j, j + body_i[i, f.DOF]):
            store(dv, d * nv + d, load(dv, d * nv + d) + dof_f[f.DAMPING, d])
        if kind == f.REVOLUTE or kind == f.SCREW:
            stiffness, damping = constant(q, dof_f[f.STIFFNESS, j]), constant(q, 0.0)
            if dof_f[f.LIMIT_STIFFNESS, j] > 0.0:
                z, at = constant(q, 0.0), load(q, k)
                beyond = maximum(at - dof_f[f.UPPER, j], 0.0) + maximum(dof_f[f.LOWER, j] - at, 0.0)
                stiffness = stiffness + where_positive(beyond, z + dof_f[f.LIMIT_STIFFNESS, j], z)
                damping = where_positive(beyond, z + dof_f[f.LIMIT_DAMPING, j], z)
            store(dq, j * nv + j, load(dq, j * nv + j) + stiffness)
            store(dv, j * nv + j, load(dv, j * nv + j) + damping)
        elif kind == f.SPHERICAL:
            ball_spring(j, k, dof_f, q, dq, dv)


@inline
def ball_spring(j, k, dof_f, q, dq, dv):
    """Spring and limit of a spherical joint: both act along its rotation vector."""
    nv = dof_f.shape[1]
    phi, angle = rotation_vector(load(q, k), load(q, k + 1), load(q, k + 2), load(q, k + 3))
    slopes, brake = ball_slopes(dof_f[f.STIFFNESS, j], dof_f[f.UPPER, j], dof_f[f.LIMIT_STIFFNESS, j],
                                dof_f[f.LIMIT_DAMPING, j], phi, angle)
    for a in range(3):
        for b in range(3):
            at = (j + a) * nv + j + b
            store(dq, at, load(dq, at) + slopes[3 * a + b])
        at = (j + a) * nv + j + a
        store(dv, at, load(dv, at) + brake)


@register_jitable
def ball_slopes(stiffness, upper, limit_stiffness, limit_damping, phi, angle):
    """Minus the derivative of `passive.ball_torque` by a small turn in child axes (9, by rows), and what the limit adds
    to the damping. The rotation vector phi is `angle` long."""
    z = 0.0 * angle
    beyond = maximum(angle - upper, 0.0)
    limit = where_positive(beyond, z + limit_stiffness, z)
    per_angle = 1.0 / maximum(angle, 1e-30)
    k = stiffness + limit * beyond * per_angle
    steeper = limit * (1.0 - beyond * per_angle) * per_angle * per_angle  # more along phi than across
    # change of phi: 1 + phi x / 2 + c phi x (phi x)
    s, c = sincos(0.5 * angle)
    square = angle * angle
    curved = where_positive(angle - 0.01, (1.0 - 0.5 * angle * c / maximum(s, 1e-30)) * per_angle * per_angle,
                            1.0 / 12.0 + square / 720.0 + square * square / 30240.0)
    x, y, w = phi
    xx, xy, xw = k * curved * x * x, (k * curved + steeper) * x * y, (k * curved + steeper) * x * w
    yy, yw, ww = k * curved * y * y, (k * curved + steeper) * y * w, k * curved * w * w
    x, y, w = 0.5 * k * x, 0.5 * k * y, 0.5 * k * w
    return ((k - yy - ww + steeper * phi[0] * phi[0], xy - w, xw + y,
             xy + w, k - xx - ww + steeper * phi[1] * phi[1], yw - x,
             xw - y, yw + x, k - xx - yy + steeper * phi[2] * phi[2]),
            where_positive(limit * beyond, z + limit_damping, z))
