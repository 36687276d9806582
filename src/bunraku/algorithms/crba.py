"""Mass matrix of a tree: the composite-rigid-body algorithm.

Idea: column j of M holds the torques that keep the ancestors still while joint j alone accelerates the rigid body made
of everything beyond it. In world axes within a group the composite inertias just add and the force needs no
transformation on its way to the root. Reference: Walker and Orin (1982), method 3; Featherstone (2008), sec. 6.2. Cost
O(dof * depth). Record of a body (RECORD scalars): inertia 6, mass times centre 3, mass 1, rotation 9, position 3,
origin of the group in the parent's 3. Then for each velocity (COLUMN scalars) S 6, and the forces, 6 for each velocity;
then sines and cosines, a pair for each coordinate, of which only those of hinges need be filled in.

Long because entries are filled in two ways: in lanes for small matrices, one state at a time for large ones.
"""

from bunraku.algorithms.outward_pass import load_joint_axes
from bunraku.algorithms.tree import joint_axes, joint_column, place, row3, row6, unit9, zero3, zero6
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import (
    accumulate3,
    add,
    add6,
    cross,
    dot,
    load3,
    load6,
    matvec,
    rotate_about_z,
    scale,
    store3,
    store6,
    store9,
    sub,
    symvec,
)
from bunraku.spatial.lane_memory import mirror_floats, tile, tile_on_diagonal, transpose_floats
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import (
    clear,
    constant,
    largest,
    load,
    pick,
    places,
    put_lane,
    sincos,
    sines,
    store,
    take_lane,
    total,
    where_positive,
)

AT_INERTIA, AT_MOMENT, AT_MASS, AT_POSE, AT_ORIGIN = 0, 6, 9, 10, 22  # places in a body's record
RECORD = 25
COLUMN = 6
FORCE = 6


@inner
def crba(body_i, body_f, dof_f, q, matrix, work):
    """M by rows (nv * nv), armature on its diagonal; returns `residue`, zero if all is finite.

    `work` holds RECORD scalars per body, COLUMN + FORCE per velocity and 2 per coordinate.
    """
    n, nv = body_i.shape[0] - 1, dof_f.shape[1]
    turns(body_i, q, work, trig_of(body_i, nv))
    residue = composites(body_i, body_f, nv, q, work, FORCE, 1)
    clear(matrix)
    for i in range(n):  # Pass 3: each joint's force felt by its ancestors
        for d in range(body_i[i, f.DOF]):
            j = body_i[i, f.V_INDEX] + d
            residue = residue + 0.0 * to_root(body_i, dof_f, i, j, work, matrix, j * nv, 1, nv)
    return residue


@inner
def composites(body_i, body_f, nv, q, work, per_velocity, per_component):
    """Passes 1 and 2: S of every joint, and the force that moves everything beyond it by S.

    Forces lie behind the columns; by how much velocities and components are apart is the caller's to say. Sines and
    cosines of hinges are the caller's too.
    """
    n = body_i.shape[0] - 1
    columns, forces, trig = RECORD * n, forces_of(body_i, nv), trig_of(body_i, nv)
    residue = constant(q, 0.0)
    for i in range(n):  # Pass 1: places, inertias, joint axes
        if body_i[i, f.PLAIN] == f.PLAIN_HINGE and not opens(body_i, i):  # the same code, its branches taken out
            descend(f.REVOLUTE, 1, False, body_i[i, f.MASSIVE], i, body_i, body_f, q, trig, work)
        else:
            residue = residue + descend(body_i[i, f.KIND], body_i[i, f.DOF], opens(body_i, i), body_i[i, f.MASSIVE], i,
                                        body_i, body_f, q, trig, work)
    I_beyond, h_beyond, m_beyond = zero6(q), zero3(q), constant(q, 0.0)  # of the body just done, if a child of the next
    for back in range(n):  # Pass 2: composite inertias towards the root
        i = n - 1 - back
        parent, o = body_i[i, f.PARENT], RECORD * i
        I, h = add6(load6(work, o + AT_INERTIA), I_beyond), add(load3(work, o + AT_MOMENT), h_beyond)
        m = load(work, o + AT_MASS) + m_beyond
        k = body_i[i, f.V_INDEX]
        if body_i[i, f.DOF] == 1:
            start(I, h, m, work, columns + COLUMN * k, forces + k * per_velocity, per_component)
        else:
            for j in range(k, k + body_i[i, f.DOF]):
                start(I, h, m, work, columns + COLUMN * j, forces + j * per_velocity, per_component)
        if parent >= 0 and opens(body_i, i):
            r = load3(work, o + AT_ORIGIN)
            # about the parent's origin: I + terms of h and m; h + m r
            g = add(h, scale(r, 0.5 * m))
            xx, yy, zz = 2.0 * r[0] * g[0], 2.0 * r[1] * g[1], 2.0 * r[2] * g[2]
            I = (I[0] + yy + zz, I[1] - r[0] * g[1] - r[1] * g[0], I[2] - r[0] * g[2] - r[2] * g[0],
                 I[3] + xx + zz, I[4] - r[1] * g[2] - r[2] * g[1], I[5] + xx + yy)
            h = add(h, scale(r, m))
        if parent == i - 1:
            I_beyond, h_beyond, m_beyond = I, h, m
        else:
            I_beyond, h_beyond, m_beyond = zero6(q), zero3(q), constant(q, 0.0)
            if parent >= 0:
                p = RECORD * parent
                store6(work, p + AT_INERTIA, add6(load6(work, p + AT_INERTIA), I))
                accumulate3(work, p + AT_MOMENT, h)
                store(work, p + 9, load(work, p + 9) + m)
    return residue


@inline
def opens(body_i, i):
    """Does body i open a group of the mass matrix?"""
    return body_i[i, f.ANCHOR] & f.OPENS_IN_MATRIX != 0


@inline
def rounded(k):
    """The next multiple of W: where a lane of floats can start."""
    return (k + WIDTH - 1) // WIDTH * WIDTH


@inline
def forces_of(body_i, nv):
    """Where in `work` forces are."""
    return rounded(RECORD * (body_i.shape[0] - 1) + COLUMN * nv)


@inline
def trig_of(body_i, nv):
    """Where in `work` sines and cosines are."""
    return forces_of(body_i, nv) + FORCE * rounded(nv)


@inline
def turns(body_i, q, work, trig):
    """Sines and cosines: of all coordinates, W at once, for one state; of hinges for W states."""
    if q.ndim == 1:
        sines(q, work, trig)
        return
    for i in range(body_i.shape[0] - 1):
        if body_i[i, f.KIND] == f.REVOLUTE:
            k = body_i[i, f.Q_INDEX]
            s, c = sincos(load(q, k))
            store(work, trig + k, s)
            store(work, trig + q.shape[0] + k, c)


@inline
def descend(kind, dof, anchor, massive, i, body_i, body_f, q, trig, work):
    """Pass 1 at body i: its place from its parent's, its inertia about the group's origin, its joint axes."""
    parent, o, columns = body_i[i, f.PARENT], RECORD * i, RECORD * (body_i.shape[0] - 1)
    residue = constant(q, 0.0)
    if parent >= 0:
        above = RECORD * parent + AT_POSE
        T, x = load_joint_axes(body_i, body_f, i, work, above), load3(work, above + f.STATE_POSITION)
    else:
        T, x = joint_axes(body_f, i, unit9(q)), zero3(q)
    if kind == f.REVOLUTE:
        k = body_i[i, f.Q_INDEX]
        R = rotate_about_z(T, load(work, trig + k), load(work, trig + q.shape[0] + k))
        x = add(x, matvec(T, row3(body_f, i, f.OFFSET)))
    else:
        R, x = place(kind, body_i, body_f, i, q, T, x)
    if anchor:
        store3(work, o + AT_ORIGIN, x)
        residue = 0.0 * (x[0] + x[1] + x[2])
        x = zero3(q)
    I, h = zero6(q), zero3(q)
    if massive != 0:
        I, h = inertia(body_f, i, R, x)
    store6(work, o + AT_INERTIA, I)
    store3(work, o + AT_MOMENT, h)
    store(work, o + AT_MASS, constant(q, body_f[i, f.MASS]))
    store9(work, o + AT_POSE, R)
    store3(work, o + AT_POSE + f.STATE_POSITION, x)
    for d in range(dof):
        s_w, s_v = joint_column(kind, body_f[i, f.RATE_ANGULAR], body_f[i, f.RATE_LINEAR], d, R, x)
        column = columns + COLUMN * (body_i[i, f.V_INDEX] + d)
        store3(work, column, s_w)
        store3(work, column + 3, s_v)
    return residue


@inline
def inertia(body_f, i, R, x):
    """Inertia about the group's origin (6) and mass times centre of mass (3).

    Two rows of R I R^T and its trace, which no rotation changes.
    """
    c, I = add(x, matvec(R, row3(body_f, i, f.COM))), row6(body_f, i, f.INERTIA)
    h = scale(c, body_f[i, f.MASS])
    X, Y, Z = (R[0], R[1], R[2]), (R[3], R[4], R[5]), (R[6], R[7], R[8])
    t, u = symvec(I, X), symvec(I, Y)
    Ixx, Iyy = dot(t, X), dot(u, Y)
    Izz = (I[0] + I[3] + I[5]) - (Ixx + Iyy)
    xx, yy, zz = h[0] * c[0], h[1] * c[1], h[2] * c[2]
    return (Ixx + (yy + zz), dot(t, Y) - h[0] * c[1], dot(t, Z) - h[0] * c[2],
            Iyy + (xx + zz), dot(u, Z) - h[1] * c[2], Izz + (xx + yy)), h


@inline
def start(I, h, m, work, column, to, step):
    """Momentum of a composite body that moves with S: the force that starts it, its components `step` apart."""
    s_w, s_v = load3(work, column), load3(work, column + 3)
    moment, force = add(symvec(I, s_w), cross(h, s_v)), sub(scale(s_v, m), cross(h, s_w))
    store(work, to, moment[0])
    store(work, to + step, moment[1])
    store(work, to + 2 * step, moment[2])
    store(work, to + 3 * step, force[0])
    store(work, to + 4 * step, force[1])
    store(work, to + 5 * step, force[2])


@inline
def to_root(body_i, dof_f, i, j, work, out, row, stride, mirrored):
    """Force of velocity j (body i) on the joints from i to the root: entry k at out[row + k stride].

    With `mirrored` > 0 also at out[k mirrored + j]. Returns the entry of j itself.
    """
    columns = RECORD * (body_i.shape[0] - 1)
    at_force = forces_of(body_i, dof_f.shape[1]) + FORCE * j
    moment, force = load3(work, at_force), load3(work, at_force + 3)
    at = i
    while at >= 0:
        k = body_i[at, f.V_INDEX]
        if body_i[at, f.DOF] == 1:
            matrix_entry(work, columns + COLUMN * k, moment, force, out, row + k * stride, k * mirrored + j, mirrored)
        else:
            for e in range(k, k + body_i[at, f.DOF]):
                matrix_entry(work, columns + COLUMN * e, moment, force, out, row + e * stride, e * mirrored + j,
                             mirrored)
        if opens(body_i, at):
            moment = add(moment, cross(load3(work, RECORD * at + AT_ORIGIN), force))
        at = body_i[at, f.PARENT]
    diagonal = load(out, row + j * stride) + dof_f[f.ARMATURE, j]
    store(out, row + j * stride, diagonal)
    return diagonal


@inline
def matrix_entry(work, column, moment, force, out, here, there, mirrored):
    """An entry of M: the component of a force along a joint."""
    entry = dot(load3(work, column), moment) + dot(load3(work, column + 3), force)
    store(out, here, entry)
    if mirrored > 0:
        store(out, there, entry)


# -- velocities numbered like their bodies: W entries of a row at once ------------------------------------------------


@inline
def subtrees(body_i, ends):
    """ends[k]: velocities k .. ends[k] - 1 are those of k's body and of everything beyond it. Behind these, a float for
    each body is scratch. Returns whether one group holds everything."""
    n = body_i.shape[0] - 1
    nv, one_group = ends.shape[0] - n, True
    for i in range(n):
        store(ends, nv + i, float(body_i[i, f.V_INDEX] + body_i[i, f.DOF]))
    for back in range(n):
        i = n - 1 - back
        parent, end = body_i[i, f.PARENT], load(ends, nv + i)
        for k in range(body_i[i, f.V_INDEX], body_i[i, f.V_INDEX] + body_i[i, f.DOF]):
            store(ends, k, end)
        if parent >= 0:
            store(ends, nv + parent, max(load(ends, nv + parent), end))
            one_group = one_group and not opens(body_i, i)
    return one_group


@inline
def entries(body_i, dof_f, one_group, work, w, forces, ends, matrix):
    """Pass 3 for one state, from what `composites` left in `work` (in place w of its lanes, if it holds lanes).

    Everything beyond a joint follows it without a gap, so a row of M right of the diagonal is S against forces that lie
    side by side, and what is left of the diagonal comes by turning blocks over. `forces` (6, rounded(nv)) is
    overwritten; `ends` and `one_group` come from `subtrees`; for at least W velocities.
    """
    nv = dof_f.shape[1]
    if one_group:
        return tiles(RECORD * (body_i.shape[0] - 1), dof_f[f.ARMATURE], work, w, forces, ends, matrix)
    rows(body_i, nv, work, w, forces, ends, matrix)
    mirror(matrix, nv, ends)
    residue = 0.0
    for k in range(nv):
        diagonal = load(matrix, k * nv + k) + dof_f[f.ARMATURE, k]
        store(matrix, k * nv + k, diagonal)
        residue = residue + 0.0 * diagonal
    return residue


@inner
def tiles(columns, armature, work, w, forces, ends, matrix):
    """M in blocks of W x W, each together with the one opposite to it; where nothing is coupled, zeros.

    The last block overlaps its neighbour if W does not divide nv; rows from top to bottom leave what is right.
    """
    nv, a, residue = armature.shape[0], 0, 0.0 * places()
    while a < nv:
        top, b = min(a, nv - WIDTH), a + WIDTH
        diagonal = tile_on_diagonal(work, w, columns, forces, rounded(nv), ends, top, armature, matrix, nv)
        residue = residue + 0.0 * diagonal
        reach = largest(take_lane(ends, top)) if b < nv else 0.0
        while b < nv:
            column = min(b, nv - WIDTH)
            if column < reach:
                tile(work, w, columns, forces, rounded(nv), ends, top, column, matrix, nv)
            else:
                for r in range(WIDTH):
                    put_lane(matrix, (top + r) * nv + column, 0.0)
                    put_lane(matrix, (column + r) * nv + top, 0.0)
            b += WIDTH
        a += WIDTH
    return total(residue)


@inner
def rows(body_i, nv, work, w, forces, ends, matrix):
    """M right of the diagonal, row by row: forces move along from group to group."""
    n, apart = body_i.shape[0] - 1, rounded(nv)
    for back in range(n):
        i = n - 1 - back
        first = body_i[i, f.V_INDEX]
        for k in range(first, first + body_i[i, f.DOF]):
            row(k, int(load(ends, k)), nv, apart, pick6(work, RECORD * n + COLUMN * k, w), forces, matrix)
        if body_i[i, f.PARENT] >= 0 and opens(body_i, i):  # from here on about the origin of the parent's group
            move_forces(first, int(load(ends, nv + i)), apart, pick3(work, RECORD * i + AT_ORIGIN, w), forces)


@inline
def pick3(work, i, w):
    return pick(work, i, w), pick(work, i + 1, w), pick(work, i + 2, w)


@inline
def pick6(work, i, w):
    return (pick(work, i, w), pick(work, i + 1, w), pick(work, i + 2, w),
            pick(work, i + 3, w), pick(work, i + 4, w), pick(work, i + 5, w))


@inline
def row(k, end, nv, apart, s, forces, matrix):
    """Entries (k, j): S against the forces of velocities k <= j < end, zeros from there on.

    What is left of the diagonal may be overwritten, so lanes of forces start where they can be read at once.
    """
    j = k // WIDTH * WIDTH
    while j < nv:
        at = min(j, nv - WIDTH)
        if at < end:
            entry = ((take_lane(forces, at) * s[0] + take_lane(forces, apart + at) * s[1]
                      + take_lane(forces, 2 * apart + at) * s[2])
                     + (take_lane(forces, 3 * apart + at) * s[3] + take_lane(forces, 4 * apart + at) * s[4]
                        + take_lane(forces, 5 * apart + at) * s[5]))
            put_lane(matrix, k * nv + at, where_positive(float(end - at) - places(), entry, 0.0))
        else:
            put_lane(matrix, k * nv + at, 0.0)
        j += WIDTH


@inline
def move_forces(first, end, apart, r, forces):
    """moment += r x force, for a range of velocities."""
    for j in range(first, end):
        force = (load(forces, 3 * apart + j), load(forces, 4 * apart + j), load(forces, 5 * apart + j))
        shift = cross(r, force)
        for c in range(3):
            store(forces, c * apart + j, load(forces, c * apart + j) + shift[c])


@inline
def mirror(matrix, nv, ends):
    """Copy what is right of the diagonal to what is left of it; zeros where nothing is coupled.

    Blocks on the diagonal first: the last block overlaps its neighbour if W does not divide nv.
    """
    a = 0
    while a < nv:
        at = min(a, nv - WIDTH)
        mirror_floats(matrix, at * nv + at, nv)
        a += WIDTH
    b = WIDTH
    while b < nv:
        to, a = min(b, nv - WIDTH), 0
        while a < b:
            if largest(take_lane(ends, a)) > to:
                transpose_floats(matrix, a * nv + to, nv, to * nv + a)
            else:
                for r in range(WIDTH):
                    put_lane(matrix, (to + r) * nv + a, 0.0)
            a += WIDTH
        b += WIDTH
