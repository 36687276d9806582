"""Gravity torques, centre of mass and its Jacobian, from masses and first moments of subtrees.

Idea: the weight of what hangs from a joint is one force at its centre of mass. One pass to the tips for the rotations
of bodies, one back that sums masses M and first moments h, each about the origin of the body itself,

    tau = - S^T [h x g, M g],        J_com = (w x h + v M) / total mass     for a joint's column S = [w, v],         (1)

so that no digits are lost on long chains. Cost: O(bodies), about half of inverse dynamics.
Record of a body (RECORD scalars): rotation 9, origin from the parent's 3, first moment 3, mass.
"""

from bunraku.algorithms.tree import joint_axes, joint_column, joint_force, place, row3, unit9, zero3
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import add, cross, load3, load9, matvec, scale, store3, store9
from bunraku.spatial.scalar import constant, load, store

AT_PLACE, AT_MOMENT, AT_MASS, RECORD = 9, 12, 15, 16


@inner
def subtree_moments(body_i, body_f, q, work):
    """Records of all bodies, with mass and first moment of the subtree. Returns those of the whole mechanism, about the
    world's origin."""
    n = body_i.shape[0] - 1
    for i in range(n):
        parent, o = body_i[i, f.PARENT], RECORD * i
        R = unit9(q)
        if parent >= 0:
            R = load9(work, RECORD * parent)
        R, r = place(body_i[i, f.KIND], body_i, body_f, i, q, joint_axes(body_f, i, R), zero3(q))
        store9(work, o, R)
        store3(work, o + AT_PLACE, r)
        store3(work, o + AT_MOMENT, scale(matvec(R, row3(body_f, i, f.COM)), body_f[i, f.MASS]))
        store(work, o + AT_MASS, constant(q, body_f[i, f.MASS]))
    h, mass = zero3(q), constant(q, 0.0)
    for back in range(n):
        i = n - 1 - back
        parent, o = body_i[i, f.PARENT], RECORD * i
        own = load(work, o + AT_MASS)
        moment = add(load3(work, o + AT_MOMENT), scale(load3(work, o + AT_PLACE), own))
        if parent >= 0:
            p = RECORD * parent
            store3(work, p + AT_MOMENT, add(load3(work, p + AT_MOMENT), moment))
            store(work, p + AT_MASS, load(work, p + AT_MASS) + own)
        else:
            h, mass = add(h, moment), mass + own
    return h, mass


@inline
def gravity_torque(body_i, body_f, work, tau):
    """Torques that hold the mechanism at rest, eq. (1), from the records."""
    n = body_i.shape[0] - 1
    g = row3(body_f, n, f.GRAVITY)
    for i in range(n):
        o = RECORD * i
        moment, mass = load3(work, o + AT_MOMENT), load(work, o + AT_MASS)
        joint_force(body_i, body_f, i, cross(g, moment), (-g[0] * mass, -g[1] * mass, -g[2] * mass), load9(work, o),
                    zero3(work), tau)


@inline
def com_jacobian(body_i, body_f, total, work, out):
    """Velocity of the centre of mass per unit of each velocity, eq. (1); `out` is 3 x nv by rows."""
    nv = out.shape[0] // 3
    for i in range(body_i.shape[0] - 1):
        o, j = RECORD * i, body_i[i, f.V_INDEX]
        R, h, mass = load9(work, o), load3(work, o + AT_MOMENT), load(work, o + AT_MASS)
        for d in range(body_i[i, f.DOF]):
            w, v = joint_column(body_i[i, f.KIND], body_f[i, f.RATE_ANGULAR], body_f[i, f.RATE_LINEAR], d, R,
                                zero3(work))
            column = scale(add(cross(w, h), scale(v, mass)), 1.0 / total)
            for k in range(3):
                store(out, k * nv + j + d, column[k])
