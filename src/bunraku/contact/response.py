"""Response of a tree to forces on bodies, by the factors of the articulated-body algorithm in its work array.

Idea: I, U and D depend on the configuration alone, so a further force costs one inward and one outward sweep. The
inward sweep visits only the bodies between the loaded body and the ground. *Handles* are bodies that contacts act on:
the acceleration of every handle per unit of force and moment on every handle is the Theta of the assembly (`ada.py`)
with the handles open, six rows each; any number of contacts at a body share them. References: Featherstone, Rigid Body
Dynamics Algorithms (2008), sec. 7.3. Cost O(depth) for each of the six columns of a handle and each handle.

Needs joints that are eliminated column by column (`Plan.with_columns`): others keep no factors. Forces and motions are
(angular, linear) in world axes about the origin of the body's group, as in `algorithms/aba.py`.
"""

from bunraku.algorithms.aba import joint_part_size
from bunraku.algorithms.body_motion import STATE
from bunraku.algorithms.tree import is_anchor, zero3
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import accumulate3, add, cross, dot, load3, scale, store3
from bunraku.spatial.scalar import constant, load, store

MARKED = -2  # on `on`: a body between ground and a handle


@inline
def factors_of(record, dof, d):
    """Places of U, 1/D and u of degree of freedom d."""
    return record + f.REC_U if d == 0 else record + f.REC_JOINT + 6 * dof + 3 + f.REC_U_SIZE * (d - 1)


@inline
def origin_in_parent(i, body_i, work):
    return load3(work, body_i[i, f.BODY_RECORD] + f.REC_JOINT + joint_part_size(body_i[i, f.ELIMINATION],
                                                                               body_i[i, f.DOF]))


@inline
def up_through(i, p_w, p_v, body_i, work, up):
    """The force that body i needs, as its parent sees it; u = -S^T p of its joint is left in `up`."""
    record, dof, j = body_i[i, f.BODY_RECORD], body_i[i, f.DOF], body_i[i, f.V_INDEX]
    if body_i[i, f.ELIMINATION] == f.COLUMNS:
        for d in range(dof):
            axis, result = record + f.REC_JOINT + 6 * d, factors_of(record, dof, d)
            u = 0.0 - (dot(load3(work, axis), p_w) + dot(load3(work, axis + 3), p_v))
            store(up, j + d, u)
            e = u * load(work, result + 6)
            p_w, p_v = add(p_w, scale(load3(work, result), e)), add(p_v, scale(load3(work, result + 3), e))
    if is_anchor(body_i, i):
        p_w = add(p_w, cross(origin_in_parent(i, body_i, work), p_v))
    return p_w, p_v


@inline
def down_through(i, pushed, body_i, work, up, bodies, out):
    """Acceleration of body i from its parent's; of the joint's degrees of freedom into `out`, if that has room.
    `pushed`: whether the inward sweep has visited it."""
    record, dof, j, parent = body_i[i, f.BODY_RECORD], body_i[i, f.DOF], body_i[i, f.V_INDEX], body_i[i, f.PARENT]
    alpha, a = zero3(bodies), zero3(bodies)
    if parent >= 0:
        alpha, a = load3(bodies, 6 * parent), load3(bodies, 6 * parent + 3)
    if is_anchor(body_i, i):
        a = add(a, cross(alpha, origin_in_parent(i, body_i, work)))
    if body_i[i, f.ELIMINATION] == f.COLUMNS:
        for last in range(dof):
            d = dof - 1 - last
            axis, result = record + f.REC_JOINT + 6 * d, factors_of(record, dof, d)
            push = 0.0 - (dot(load3(work, result), alpha) + dot(load3(work, result + 3), a))
            if pushed:
                push = push + load(up, j + d)
            qdd = push * load(work, result + 6)
            if out.shape[0] > 0:
                store(out, j + d, qdd)
            alpha, a = add(alpha, scale(load3(work, axis), qdd)), add(a, scale(load3(work, axis + 3), qdd))
    elif out.shape[0] > 0:
        for d in range(dof):
            store(out, j + d, constant(out, 0.0))
    store3(bodies, 6 * i, alpha)
    store3(bodies, 6 * i + 3, a)


@inner
def between_ground_and(first, end, length, handles, tree, body_i, on, path):
    """Add the bodies between the ground and the handles from `first` to `end` to `path`, tree by tree, parents first;
    its length."""
    begin = length
    for h in range(first, end):
        i = handles[h]
        while i >= 0 and on[i] != MARKED:
            on[i] = MARKED
            i = np_int(body_i[i, f.PARENT])
    for h in range(first, end):
        root = tree[handles[h]]
        if on[root] == MARKED:  # a tree that is not listed yet
            i = root
            while i < tree.shape[0] and tree[i] == root:
                if on[i] == MARKED:
                    path[length] = i
                    length += 1
                i += 1
            on[root] = -1
    for k in range(begin, length):
        on[path[k]] = -1
    return length


@inline
def np_int(x):
    """An index as a machine word."""
    return int(x)


@inner
def handle_responses(count, handles, length, path, body_i, work, on, up, six, theta):
    """theta[6 h + d, 6 k + e] = acceleration e of handle k per unit of force d on handle h; (6 count)^2 by rows.

    The six columns of a handle go together: `six` holds 36 scalars for every body, and for the force; `up` 6 for every
    degree of freedom.
    """
    size = 6 * count
    for h in range(count):
        for d in range(6):
            for e in range(6):
                store(six, 6 * d + e, constant(six, -1.0 if d == e else 0.0))
        i = handles[h]
        while i >= 0:
            on[i] = h
            six_up(i, body_i, work, up, six)
            i = np_int(body_i[i, f.PARENT])
        for k in range(length):
            six_down(path[k], on[path[k]] == h, body_i, work, up, six)
        for k in range(count):
            o = 36 * (handles[k] + 1)
            for d in range(6):
                row = (6 * h + d) * size + 6 * k
                for e in range(6):
                    store(theta, row + e, load(six, o + 6 * d + e))
    for k in range(length):
        on[path[k]] = -1


@inline
def six_up(i, body_i, work, up, six):
    """`up_through` for six forces at once, which are at the head of `six`."""
    record, dof, j = body_i[i, f.BODY_RECORD], body_i[i, f.DOF], body_i[i, f.V_INDEX]
    if body_i[i, f.ELIMINATION] == f.COLUMNS:
        for n in range(dof):
            axis, result = record + f.REC_JOINT + 6 * n, factors_of(record, dof, n)
            s_w, s_v = load3(work, axis), load3(work, axis + 3)
            U_w, U_v, r = load3(work, result), load3(work, result + 3), load(work, result + 6)
            for d in range(6):
                p_w, p_v = load3(six, 6 * d), load3(six, 6 * d + 3)
                u = 0.0 - (dot(s_w, p_w) + dot(s_v, p_v))
                store(up, 6 * (j + n) + d, u)
                e = u * r
                store3(six, 6 * d, add(p_w, scale(U_w, e)))
                store3(six, 6 * d + 3, add(p_v, scale(U_v, e)))
    if is_anchor(body_i, i):
        x = origin_in_parent(i, body_i, work)
        for d in range(6):
            store3(six, 6 * d, add(load3(six, 6 * d), cross(x, load3(six, 6 * d + 3))))


@inline
def six_down(i, pushed, body_i, work, up, six):
    """`down_through` for six accelerations at once."""
    record, dof, j, parent = body_i[i, f.BODY_RECORD], body_i[i, f.DOF], body_i[i, f.V_INDEX], body_i[i, f.PARENT]
    to, above = 36 * (np_int(i) + 1), 36 * (np_int(parent) + 1)
    anchor = is_anchor(body_i, i)
    x = zero3(six)
    if anchor:
        x = origin_in_parent(i, body_i, work)
    for d in range(6):
        alpha, a = zero3(six), zero3(six)
        if parent >= 0:
            alpha, a = load3(six, above + 6 * d), load3(six, above + 6 * d + 3)
            if anchor:
                a = add(a, cross(alpha, x))
        store3(six, to + 6 * d, alpha)
        store3(six, to + 6 * d + 3, a)
    if body_i[i, f.ELIMINATION] == f.COLUMNS:
        for last in range(dof):
            n = dof - 1 - last
            axis, result = record + f.REC_JOINT + 6 * n, factors_of(record, dof, n)
            s_w, s_v = load3(work, axis), load3(work, axis + 3)
            U_w, U_v, r = load3(work, result), load3(work, result + 3), load(work, result + 6)
            for d in range(6):
                o = to + 6 * d
                alpha, a = load3(six, o), load3(six, o + 3)
                push = 0.0 - (dot(U_w, alpha) + dot(U_v, a))
                if pushed:
                    push = push + load(up, 6 * (j + n) + d)
                qdd = push * r
                store3(six, o, add(alpha, scale(s_w, qdd)))
                store3(six, o + 3, add(a, scale(s_v, qdd)))


@inner
def respond(body_i, work, up, forces, bodies, out):
    """Accelerations that forces on bodies cause, into `out`. `forces` holds them, 6 per body with the sign changed, and
    is used up."""
    n = body_i.shape[0] - 1
    for back in range(n):
        i = n - 1 - back
        p_w, p_v = up_through(i, load3(forces, 6 * i), load3(forces, 6 * i + 3), body_i, work, up)
        parent = body_i[i, f.PARENT]
        if parent >= 0:
            accumulate3(forces, 6 * parent, p_w)
            accumulate3(forces, 6 * parent + 3, p_v)
    for i in range(n):
        down_through(i, True, body_i, work, up, bodies, out)


@inline
def group_origin(body, body_i, states):
    """Origin of a body's group in the world."""
    i = body
    while i >= 0 and not is_anchor(body_i, i):
        i = np_int(body_i[i, f.PARENT])
    return load3(states, STATE * i + 9) if i >= 0 else zero3(states)
