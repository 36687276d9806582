"""Coriolis matrix: C v are the centrifugal and Coriolis torques, and M' - 2 C is antisymmetric.

Idea: a body of inertia I and velocity v has the matrix B = (v x* I + (I v) x~* - I v x) / 2, and C is the sum of
J^T (I J' + B J) over all bodies. Composite I and B are summed from the tips to the root about a fixed point, the
present centre of mass; each pair of joints then needs one product. For joints with one degree of freedom these are the
Christoffel symbols. Reference: Echeandia and Wensing (2021), eqs. 18-27. Cost O(dof depth).

In blocks (angular, linear), with momentum (k, l) and first moment h,

    B = [ U 0; -[l] 0 ],     U = ([w] I - I [w] - [k] - [v][h] - [h][v]) / 2
"""

from bunraku.algorithms.body_motion import STATE
from bunraku.algorithms.centroidal import accumulate6, centre_of_mass
from bunraku.algorithms.moving_axes import moving_column
from bunraku.algorithms.tree import load_pose, load_velocity, row3, row6, zero3
from bunraku.jit import inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import (
    add,
    cross,
    dot,
    load3,
    load6,
    load9,
    matTvec,
    matvec,
    rotate_symmetric,
    scale,
    store3,
    store9,
    sub,
    symvec,
)
from bunraku.spatial.scalar import clear, constant, load, store

# Composite body: first moment 3, momentum 3, inertia 6, U 9, mass 1
FIRST, MOMENTUM, INERTIA, UPPER, MASS, COMPOSITE = 0, 3, 6, 12, 21, 22


@inner
def coriolis(body_i, body_f, nv, states, composite, C):
    """C (nv x nv by rows), zeroed by the caller. `composite`: scratch, COMPOSITE per body."""
    n = body_i.shape[0] - 1
    O, _ = centre_of_mass(body_f, n, states)
    still = zero3(states)
    clear(composite)
    for back in range(n):
        i = n - 1 - back
        o = COMPOSITE * i
        add_body(body_f, i, states, O, composite, o)
        h, l, m = load3(composite, o + FIRST), load3(composite, o + MOMENTUM), load(composite, o + MASS)
        I, U = load6(composite, o + INERTIA), load9(composite, o + UPPER)
        for d in range(body_i[i, f.DOF]):
            s_w, s_v, r_w, r_v = moving_column(body_i, body_f, i, d, O, still, states)
            j = body_i[i, f.V_INDEX] + d
            # I s' + B s, I s, B^T s
            n_1 = add(add(symvec(I, r_w), cross(h, r_v)), matvec(U, s_w))
            f_1 = sub(add(scale(r_v, m), cross(r_w, h)), cross(l, s_w))
            n_2, f_2 = add(symvec(I, s_w), cross(h, s_v)), add(scale(s_v, m), cross(s_w, h))
            n_3 = add(matTvec(U, s_w), cross(l, s_v))
            for e in range(body_i[i, f.DOF]):
                t_w, t_v, _, _ = moving_column(body_i, body_f, i, e, O, still, states)
                store(C, (body_i[i, f.V_INDEX] + e) * nv + j, dot(t_w, n_1) + dot(t_v, f_1))
            above = body_i[i, f.PARENT]
            while above >= 0:
                for e in range(body_i[above, f.DOF]):
                    t_w, t_v, u_w, u_v = moving_column(body_i, body_f, above, e, O, still, states)
                    k = body_i[above, f.V_INDEX] + e
                    store(C, k * nv + j, dot(t_w, n_1) + dot(t_v, f_1))
                    store(C, j * nv + k, dot(u_w, n_2) + dot(u_v, f_2) + dot(t_w, n_3))
                above = body_i[above, f.PARENT]
        if body_i[i, f.PARENT] >= 0:
            for k in range(COMPOSITE):
                to = COMPOSITE * body_i[i, f.PARENT] + k
                store(composite, to, load(composite, to) + load(composite, o + k))


@inner
def add_body(body_f, i, states, O, composite, o):
    """Add body i to a composite."""
    (R, x), (w, v) = load_pose(states, STATE * i), load_velocity(states, STATE * i)
    r, m = matvec(R, row3(body_f, i, f.COM)), body_f[i, f.MASS]
    c = sub(add(x, r), O)
    v = sub(v, cross(w, sub(x, O)))  # of the body's point at O
    J, h, cc = rotate_symmetric(R, row6(body_f, i, f.INERTIA)), scale(c, m), dot(c, c)
    I = (J[0] + m * (cc - c[0] * c[0]), J[1] - m * (c[0] * c[1]), J[2] - m * (c[0] * c[2]),
         J[3] + m * (cc - c[1] * c[1]), J[4] - m * (c[1] * c[2]), J[5] + m * (cc - c[2] * c[2]))
    k, l = add(symvec(I, w), cross(h, v)), add(scale(v, m), cross(w, h))
    # [w] I - I [w]: columns of [w] I and their transpose; [v][h] = h v^T - (v.h) 1
    a, b, e = cross(w, (I[0], I[1], I[2])), cross(w, (I[1], I[3], I[4])), cross(w, (I[2], I[4], I[5]))
    twice = 2.0 * dot(v, h)
    p, q, s = h[0] * v[1] + v[0] * h[1], h[0] * v[2] + v[0] * h[2], h[1] * v[2] + v[1] * h[2]
    U = (a[0] + a[0] - 2.0 * (h[0] * v[0]) + twice, b[0] + a[1] - p + k[2], e[0] + a[2] - q - k[1],
         a[1] + b[0] - p - k[2], b[1] + b[1] - 2.0 * (h[1] * v[1]) + twice, e[1] + b[2] - s + k[0],
         a[2] + e[0] - q + k[1], b[2] + e[1] - s - k[0], e[2] + e[2] - 2.0 * (h[2] * v[2]) + twice)
    store3(composite, o + FIRST, add(load3(composite, o + FIRST), h))
    store3(composite, o + MOMENTUM, add(load3(composite, o + MOMENTUM), l))
    accumulate6(composite, o + INERTIA, I)
    before = load9(composite, o + UPPER)
    store9(composite, o + UPPER, (before[0] + 0.5 * U[0], before[1] + 0.5 * U[1], before[2] + 0.5 * U[2],
                                  before[3] + 0.5 * U[3], before[4] + 0.5 * U[4], before[5] + 0.5 * U[5],
                                  before[6] + 0.5 * U[6], before[7] + 0.5 * U[7], before[8] + 0.5 * U[8]))
    store(composite, o + MASS, load(composite, o + MASS) + constant(states, m))
