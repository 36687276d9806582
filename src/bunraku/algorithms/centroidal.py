"""Centroidal momentum matrix and its rate: A_G v is the momentum about the centre of mass, A_G' the rate of A_G.

Idea: column j of A_G is the momentum of everything beyond joint j, as one rigid body, when only that joint moves.
Composite inertias are summed from the tips to the root about the centre of mass G, which moves; their rates are summed
with them. References: Orin, Goswami and Lee (2013), eqs. 16-27; Wensing and Orin (2016). Cost O(bodies).
"""

from bunraku.algorithms.body_motion import STATE
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
    matvec,
    rotate_symmetric,
    scale,
    store3,
    store6,
    sub,
    symvec,
)
from bunraku.spatial.scalar import clear, constant, load, store

# Composite body: mass times centre of mass 3, its rate 3, inertia 6, its rate 6, mass 1
MOMENT, MOMENT_RATE, INERTIA, INERTIA_RATE, MASS, COMPOSITE = 0, 3, 6, 12, 18, 19


@inner
def centroidal(body_i, body_f, states, composite, out, rate):
    """A_G and A_G' (6 x nv by rows: linear, angular), world axes. `composite`: scratch, COMPOSITE per body."""
    n, nv = body_i.shape[0] - 1, out.shape[0] // 6
    G, drift = centre_of_mass(body_f, n, states)
    clear(composite)
    for back in range(n):
        i = n - 1 - back
        o = COMPOSITE * i
        add_body(body_f, i, states, G, drift, composite, o)
        h, h_rate = load3(composite, o + MOMENT), load3(composite, o + MOMENT_RATE)
        I, I_rate, m = load6(composite, o + INERTIA), load6(composite, o + INERTIA_RATE), load(composite, o + MASS)
        for d in range(body_i[i, f.DOF]):
            s_w, s_v, r_w, r_v = moving_column(body_i, body_f, i, d, G, drift, states)
            linear = add(scale(s_v, m), cross(s_w, h))
            angular = add(symvec(I, s_w), cross(h, s_v))
            linear_rate = add(scale(r_v, m), add(cross(r_w, h), cross(s_w, h_rate)))
            angular_rate = add(add(symvec(I, r_w), symvec(I_rate, s_w)), add(cross(h, r_v), cross(h_rate, s_v)))
            j = body_i[i, f.V_INDEX] + d
            for k in range(3):
                store(out, k * nv + j, linear[k])
                store(out, (k + 3) * nv + j, angular[k])
                store(rate, k * nv + j, linear_rate[k])
                store(rate, (k + 3) * nv + j, angular_rate[k])
        if body_i[i, f.PARENT] >= 0:
            for k in range(COMPOSITE):
                to = COMPOSITE * body_i[i, f.PARENT] + k
                store(composite, to, load(composite, to) + load(composite, o + k))


@inner
def centre_of_mass(body_f, n, states):
    """Position and velocity of the centre of mass."""
    first, linear, mass = zero3(states), zero3(states), 0.0
    for i in range(n):
        (R, x), (w, v) = load_pose(states, STATE * i), load_velocity(states, STATE * i)
        r = matvec(R, row3(body_f, i, f.COM))
        first = add(first, scale(add(x, r), body_f[i, f.MASS]))
        linear = add(linear, scale(add(v, cross(w, r)), body_f[i, f.MASS]))
        mass += body_f[i, f.MASS]
    return scale(first, 1.0 / mass), scale(linear, 1.0 / mass)


@inner
def add_body(body_f, i, states, G, drift, composite, o):
    """Add body i to a composite: inertia about G, and its rate.

    I = R I_com R^T + m (c.c 1 - c c^T),   I' = [w] J - J [w] + m (2 c.c' 1 - c' c^T - c c'^T),   c from G
    """
    (R, x), (w, v) = load_pose(states, STATE * i), load_velocity(states, STATE * i)
    r, m = matvec(R, row3(body_f, i, f.COM)), body_f[i, f.MASS]
    c, u = sub(add(x, r), G), sub(add(v, cross(w, r)), drift)
    J = rotate_symmetric(R, row6(body_f, i, f.INERTIA))
    cc, cu = dot(c, c), 2.0 * dot(c, u)
    # columns of [w] J
    a, b, e = cross(w, (J[0], J[1], J[2])), cross(w, (J[1], J[3], J[4])), cross(w, (J[2], J[4], J[5]))
    I = (J[0] + m * (cc - c[0] * c[0]), J[1] - m * (c[0] * c[1]), J[2] - m * (c[0] * c[2]),
         J[3] + m * (cc - c[1] * c[1]), J[4] - m * (c[1] * c[2]), J[5] + m * (cc - c[2] * c[2]))
    I_rate = (2.0 * a[0] + m * (cu - 2.0 * (c[0] * u[0])), a[1] + b[0] - m * (c[0] * u[1] + c[1] * u[0]),
              a[2] + e[0] - m * (c[0] * u[2] + c[2] * u[0]), 2.0 * b[1] + m * (cu - 2.0 * (c[1] * u[1])),
              b[2] + e[1] - m * (c[1] * u[2] + c[2] * u[1]), 2.0 * e[2] + m * (cu - 2.0 * (c[2] * u[2])))
    store3(composite, o + MOMENT, add(load3(composite, o + MOMENT), scale(c, m)))
    store3(composite, o + MOMENT_RATE, add(load3(composite, o + MOMENT_RATE), scale(u, m)))
    accumulate6(composite, o + INERTIA, I)
    accumulate6(composite, o + INERTIA_RATE, I_rate)
    store(composite, o + MASS, load(composite, o + MASS) + constant(states, m))


@inner
def accumulate6(array, i, a):
    b = load6(array, i)
    store6(array, i, (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4], a[5] + b[5]))
