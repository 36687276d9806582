"""Mass matrix of a tree: the composite-rigid-body algorithm.

Idea: column j of M is what holds the ancestors still while joint j alone accelerates the rigid body made of everything
beyond it. In world axes within a group the composite inertias just add and the force needs no transformation on its
way to the root. Reference: Walker and Orin (1982), method 3; Featherstone (2008), sec. 6.2. Cost O(dof * depth).
Record of a body (RECORD scalars): inertia 6, mass times centre 3, mass 1, rotation 9, position 3, origin of the
group in the parent's 3.
"""

from bunraku.algorithms.tree import is_anchor, joint_axes, joint_column, place, unit9, weigh, zero3, zero6
from bunraku.jit import inner
from bunraku.plan.fields import (
    ARMATURE,
    DOF,
    KIND,
    MASS,
    MASSIVE,
    PARENT,
    RATE_ANGULAR,
    RATE_LINEAR,
    V_INDEX,
)
from bunraku.spatial.algebra import (
    accumulate3,
    add,
    add6,
    cross,
    dot,
    load3,
    load6,
    load9,
    scale,
    store3,
    store6,
    store9,
    sub,
    symvec,
)
from bunraku.spatial.scalar import clear, constant, load, store

RECORD = 25
COLUMN = 6


@inner
def crba(body_i, body_f, dof_f, q, matrix, work):
    """M by rows (nv * nv), armature on its diagonal; returns `residue`, zero if all is finite.

    `work` holds RECORD scalars per body and COLUMN per velocity.
    """
    n, nv = body_i.shape[0] - 1, dof_f.shape[1]
    columns = RECORD * n
    residue = constant(q, 0.0)
    clear(matrix)
    for i in range(n):  # Pass 1: places, inertias, joint axes
        parent, o = body_i[i, PARENT], RECORD * i
        R, x = unit9(q), zero3(q)
        if parent >= 0:
            R, x = load9(work, RECORD * parent + 10), load3(work, RECORD * parent + 19)
        R, x = place(body_i[i, KIND], body_i, body_f, i, q, joint_axes(body_f, i, R), x)
        if is_anchor(body_i, i):
            store3(work, o + 22, x)
            residue = residue + 0.0 * (x[0] + x[1] + x[2])
            x = zero3(q)
        I, h = zero6(q), zero3(q)
        if body_i[i, MASSIVE] != 0:
            I_com, I, h, c = weigh(body_f, i, R, x)
        store6(work, o, I)
        store3(work, o + 6, h)
        store(work, o + 9, constant(q, body_f[i, MASS]))
        store9(work, o + 10, R)
        store3(work, o + 19, x)
        for d in range(body_i[i, DOF]):
            s_w, s_v = joint_column(body_i[i, KIND], body_f[i, RATE_ANGULAR], body_f[i, RATE_LINEAR], d, R, x)
            store3(work, columns + COLUMN * (body_i[i, V_INDEX] + d), s_w)
            store3(work, columns + COLUMN * (body_i[i, V_INDEX] + d) + 3, s_v)
    for back in range(n):  # Pass 2: composite inertias towards the root, and each joint's column of M
        i = n - 1 - back
        parent, o = body_i[i, PARENT], RECORD * i
        I, h, m = load6(work, o), load3(work, o + 6), load(work, o + 9)
        for d in range(body_i[i, DOF]):
            j = body_i[i, V_INDEX] + d
            s_w, s_v = load3(work, columns + COLUMN * j), load3(work, columns + COLUMN * j + 3)
            # momentum of the composite body moving with S: the force that starts it
            force = sub(scale(s_v, m), cross(h, s_w))
            moment = add(symvec(I, s_w), cross(h, s_v))
            at = i
            while at >= 0:
                for e in range(body_i[at, DOF]):
                    k = body_i[at, V_INDEX] + e
                    c = columns + COLUMN * k
                    entry = dot(load3(work, c), moment) + dot(load3(work, c + 3), force)
                    store(matrix, j * nv + k, entry)
                    store(matrix, k * nv + j, entry)
                if is_anchor(body_i, at):
                    moment = add(moment, cross(load3(work, RECORD * at + 22), force))
                at = body_i[at, PARENT]
            diagonal = load(matrix, j * nv + j) + dof_f[ARMATURE, j]
            store(matrix, j * nv + j, diagonal)
            residue = residue + 0.0 * diagonal
        if parent >= 0:
            if is_anchor(body_i, i):
                r = load3(work, o + 22)
                # about the parent's origin: I + terms of h and m; h + m r
                k = add(h, scale(r, 0.5 * m))
                xx, yy, zz = 2.0 * r[0] * k[0], 2.0 * r[1] * k[1], 2.0 * r[2] * k[2]
                I = (I[0] + yy + zz, I[1] - r[0] * k[1] - r[1] * k[0], I[2] - r[0] * k[2] - r[2] * k[0],
                     I[3] + xx + zz, I[4] - r[1] * k[2] - r[2] * k[1], I[5] + xx + yy)
                h = add(h, scale(r, m))
            p = RECORD * parent
            store6(work, p, add6(load6(work, p), I))
            accumulate3(work, p + 6, h)
            store(work, p + 9, load(work, p + 9) + m)
    return residue
