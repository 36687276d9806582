"""What connections add to the derivatives of a tree: wrenches move with link b, constraints with both links.

Idea: a connection hands its wrench W from link a to link b. Of two joints, d and e, on different sides, or with d
beyond e on one side, moving d turns W or the axis of e, but not both. With s = 1 for joints that carry b, -1 for those
that carry a, and 0 for those that carry both, S_d x W being the rate of the wrench when it is carried along:

    force on e, Q_e = s_e S_e . W,     dQ_e/dq_d = s_e S_e . (S_d x W) ([d carries b] - [d carries e])

The relative acceleration that the constraint holds at zero, seen from b,

    Z = A_b - A_a - v_b x (v_b - v_a),     c_k = K_k . Z,

has constrained directions K_k, here constant in b's axes; `entries/closed_derivatives.py` adds what is due to those
that turn with the connection's coordinates. Moving d changes velocities and accelerations of what it carries by

    dv/dq_d = S_d x (v - v'),  dA/dq_d = S_d x (A - A') + (v' x S_d) x (v - v'),  dA/dv_d = v_own x S_d + S_d x (v - v')

with v', A' those of the link that joint d is mounted on. All at the origin of b's joint frame, in world axes; floats
only. Cost O(joints on the loop, squared) for each connection. What is derived is in `connection_equations.py`.
"""

from bunraku.algorithms.inverse_derivatives import AXIS, BODY, COLUMN, ORIGIN, load_spatial
from bunraku.algorithms.tree import (
    ground_acceleration,
    load_acceleration,
    load_pose,
    load_velocity,
    row3,
    velocity_product,
    zero3,
)
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import add, cross, dot, load3, matvec, scale, store3, sub

# Record of a velocity that moves b against a: relative motion per unit of it, at the origin of b's joint frame
MOVE = 0     # 6, s S
RATE = 6     # 6, derivative of the relative velocity by its coordinate, seen from b
BEND = 12    # 6, of Z by its coordinate, seen from b
SWEEP = 18   # 6, of Z by its velocity, seen from b
TURNED = 24  # 6, S x W
SIDE = 30    # 1, s; 0 where joints do not move b against a, and all else is undefined
SIZE = 31


@inner
def loop_derivatives(body_i, body_f, conn_i, conn_f, number, outward, owner, wrenches, rates, solved, tree, dq, rows,
                     row_rates, row_dq, row_dv, ways, way_rates, seen, work):
    """Subtract the changes of all wrenches from dq (nv x nv, as `inverse_derivatives` leaves it), and fill, by rows:

    rows (rows x nv)       J, relative motion along the constrained directions per unit of each velocity
    row_rates              derivative of J v by coordinates
    row_dq, row_dv         derivatives of c by coordinates and velocities
    ways (freedoms x nv)   rates of the connections' coordinates per unit of each velocity: what their drives act on
    way_rates              derivative of these rates by coordinates
    seen (connections x 6) Z, world axes

    owner: body of each velocity. wrenches (6 per connection): moment about the origin of b's joint frame, and force, on
    b, world axes. rates (6 per freedom): what a relative motion is multiplied with to give the rate of a coordinate,
    world axes. solved: work of `ada`; tree: that of `inverse_derivatives`; work: SIZE nv.
    """
    nv = number.shape[0]
    for c in range(conn_i.shape[0] - 1):
        if conn_i[c, f.LAW] == f.LAW_COUPLED:
            put(seen, 6 * c, (zero3(tree), zero3(tree)))
            row = conn_i[c, f.FIRST_ROW] * nv
            for table in (rows, row_rates, row_dq, row_dv):
                for k in range(nv):
                    table[row + k] = 0.0
            rows[row + body_i[conn_i[c, f.BODY_A], f.V_INDEX]] = -conn_f[c, f.COUPLED_RATIO]
            rows[row + body_i[conn_i[c, f.BODY_B], f.V_INDEX]] = 1.0
            continue
        put(seen, 6 * c, relative_motions(c, body_i, body_f, conn_i, conn_f, outward, owner, wrenches, tree, work))
        follow_wrench(number, owner, nv, dq, work)
        for k in range(conn_i[c, f.ROWS]):
            o, row = f.connection_record(conn_i, c) + f.CONN_COLUMNS + 6 * k, (conn_i[c, f.FIRST_ROW] + k) * nv
            fill_row(MOVE, solved, o, number, row, rows, work)
            fill_row(RATE, solved, o, number, row, row_rates, work)
            fill_row(BEND, solved, o, number, row, row_dq, work)
            fill_row(SWEEP, solved, o, number, row, row_dv, work)
        for k in range(conn_i[c, f.FIRST_FREEDOM], conn_i[c, f.FIRST_FREEDOM] + conn_i[c, f.FREEDOMS]):
            fill_row(MOVE, rates, 6 * k, number, k * nv, ways, work)
            fill_row(RATE, rates, 6 * k, number, k * nv, way_rates, work)


@inline
def last_of(body, body_i, owner, outward):
    """The last velocity on the way from the root to a body, -1 if there is none."""
    while body >= 0 and body_i[body, f.DOF] == 0:
        body = body_i[body, f.PARENT]
    k = owner.shape[0] - 1
    while body >= 0 and owner[k] != body:
        k -= 1
    return k if body >= 0 else -1


@inline
def motion_at(body, body_f, point, tree):
    """Velocity and acceleration of a body's frame carried to a point (relative to its tree's origin); of the ground."""
    w, v, alpha, a = zero3(tree), zero3(tree), zero3(tree), ground_acceleration(body_f, tree)
    if body >= 0:
        (w, v), (alpha, a) = load_velocity(tree, BODY * body), load_acceleration(tree, BODY * body)
        v, a = add(v, cross(w, point)), add(a, cross(alpha, point))
    return (w, v), (alpha, a)


@inline
def minus(a, b):
    return sub(a[0], b[0]), sub(a[1], b[1])


@inline
def plus(a, b):
    return add(a[0], b[0]), add(a[1], b[1])


@inline
def carried(a, b):
    """a x b of motions: the rate of b when it moves along with a."""
    return velocity_product(a[0], a[1], b[0], b[1])


@inline
def times(a, s):
    return scale(a[0], s), scale(a[1], s)


@inline
def put(work, i, a):
    store3(work, i, a[0])
    store3(work, i + 3, a[1])


@inline
def relative_motions(c, body_i, body_f, conn_i, conn_f, outward, owner, wrenches, tree, work):
    """Fill the records of connection c; returns Z."""
    a, b = conn_i[c, f.BODY_A], conn_i[c, f.BODY_B]
    end = row3(conn_f, c, f.FRAME_B + f.FRAME_ORIGIN)  # in the world
    if b >= 0:
        R, x = load_pose(tree, BODY * b)
        end = add(add(load3(tree, BODY * b + ORIGIN), x), matvec(R, end))
    point_a, point_b = end, end
    if a >= 0:
        point_a = sub(end, load3(tree, BODY * a + ORIGIN))
    if b >= 0:
        point_b = sub(end, load3(tree, BODY * b + ORIGIN))
    v_a, A_a = motion_at(a, body_f, point_a, tree)
    v_b, A_b = motion_at(b, body_f, point_b, tree)
    relative = minus(v_b, v_a)
    Z = minus(minus(A_b, A_a), carried(v_b, relative))
    moment, force = load3(wrenches, 6 * c), load3(wrenches, 6 * c + 3)
    columns = BODY * (body_i.shape[0] - 1)
    for k in range(owner.shape[0]):
        work[SIZE * k + SIDE] = 0.0
    for side in range(2):
        sign = 1.0 if side == 1 else -1.0
        k = last_of(b if side == 1 else a, body_i, owner, outward)
        while k >= 0 and owner[k] > conn_i[c, f.MEET]:
            parent, point, v_end, A_end = body_i[owner[k], f.PARENT], point_a, v_a, A_a
            if side == 1:
                point, v_end, A_end = point_b, v_b, A_b
            s_w, s_v = load_spatial(tree, columns + COLUMN * k + AXIS)
            s = s_w, add(s_v, cross(s_w, point))
            v_own, A_own = motion_at(owner[k], body_f, point, tree)
            v_base, A_base = motion_at(parent, body_f, point, tree)
            beyond = minus(v_end, v_base)
            dv = times(carried(s, beyond), sign)
            dA = times(plus(carried(s, minus(A_end, A_base)), carried(carried(v_base, s), beyond)), sign)
            faster = times(plus(carried(v_own, s), carried(s, beyond)), sign)
            bend = minus(dA, carried(v_b, dv))
            sweep = minus(faster, carried(v_b, times(s, sign)))
            rate = dv
            if side == 1:  # b moves, and what is seen from it
                bend = minus(minus(bend, carried(dv, relative)), carried(s, Z))
                sweep = minus(sweep, carried(s, relative))
                rate = minus(dv, carried(s, relative))
            o = SIZE * k
            work[o + SIDE] = sign
            put(work, o + MOVE, times(s, sign))
            put(work, o + RATE, rate)
            put(work, o + BEND, bend)
            put(work, o + SWEEP, sweep)
            put(work, o + TURNED, (add(cross(s[0], moment), cross(s[1], force)), cross(s[0], force)))
            k = outward[k]
    return Z


@inline
def follow_wrench(number, owner, nv, dq, work):
    """Subtract dQ/dq of the wrench, which moves with b."""
    for e in range(nv):
        side = work[SIZE * e + SIDE]
        if side == 0.0:
            continue
        move_w, move_v = load_spatial(work, SIZE * e + MOVE)
        for d in range(nv):
            share = 1.0 if work[SIZE * d + SIDE] == 1.0 else 0.0
            if work[SIZE * d + SIDE] == side and owner[d] <= owner[e]:
                share -= 1.0
            if share != 0.0:
                turned_w, turned_v = load_spatial(work, SIZE * d + TURNED)
                dq[number[e] * nv + number[d]] -= share * (dot(move_w, turned_w) + dot(move_v, turned_v))


@inline
def fill_row(what, along, o, number, row, out, work):
    """One part of the records along the direction at `o`, to a row of `out`."""
    k_w, k_v = load_spatial(along, o)
    for k in range(number.shape[0]):
        out[row + number[k]] = 0.0
        if work[SIZE * k + SIDE] != 0.0:
            w, v = load_spatial(work, SIZE * k + what)
            out[row + number[k]] = dot(k_w, w) + dot(k_v, v)
