"""Inertial regressor: joint torques as a linear function of the inertial parameters of every link.

Idea: the force and moment that give a link its acceleration are linear in its mass, its first moment h = m c and its
inertia about the link's origin:

    f = m a + alpha x h + w x (w x h),     n = h x a + I alpha + w x I w       (a: of the origin, minus gravity)

They are projected on all joints between the link and the ground. Reference: Atkeson, An and Hollerbach (1986). Cost
O(links depth). Parameters of a link: m, h (x y z), I (xx xy yy xz yz zz), in link axes.
"""

from bunraku.algorithms.body_motion import STATE, link_state
from bunraku.algorithms.tree import joint_column, load_pose, row3
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import cross, dot, matTvec, sub
from bunraku.spatial.scalar import store

PARAMETERS = 10


@inner
def regressor(body_i, body_f, link_i, link_f, states, out):
    """Y (nv x PARAMETERS per link, by rows), zeroed by the caller: tau = Y times the parameters."""
    links = link_i.shape[0]
    for k in range(links):
        R, x, w, lin, alpha, a = link_state(link_i, link_f, k, states, states)
        a = matTvec(R, sub(a, row3(body_f, body_i.shape[0] - 1, f.GRAVITY)))
        w, alpha = matTvec(R, w), matTvec(R, alpha)
        i = link_i[k, f.LINK_BODY]
        while i >= 0:
            R_i, x_i = load_pose(states, STATE * i)
            for d in range(body_i[i, f.DOF]):
                s_w, s_v = joint_column(body_i[i, f.KIND], body_f[i, f.RATE_ANGULAR], body_f[i, f.RATE_LINEAR], d, R_i,
                                        sub(x_i, x))
                project(matTvec(R, s_w), matTvec(R, s_v), w, alpha, a,
                        PARAMETERS * (links * (body_i[i, f.V_INDEX] + d) + k), out)
            i = body_i[i, f.PARENT]


@inline
def project(s_w, s_v, w, alpha, a, o, out):
    """s_v . f + s_w . n for a unit of each parameter."""
    store(out, o, dot(s_v, a))
    # h: s_v . (alpha x h + w x (w x h)) + s_w . (h x a) = h . (s_v x alpha + w x (w x s_v) + a x s_w)
    u, t, g = cross(s_v, alpha), cross(w, cross(w, s_v)), cross(a, s_w)
    for c in range(3):
        store(out, o + 1 + c, u[c] + t[c] + g[c])
    # I: s_w . I alpha + (s_w x w) . I w
    b = cross(s_w, w)
    store(out, o + 4, s_w[0] * alpha[0] + b[0] * w[0])
    store(out, o + 5, s_w[0] * alpha[1] + s_w[1] * alpha[0] + b[0] * w[1] + b[1] * w[0])
    store(out, o + 6, s_w[1] * alpha[1] + b[1] * w[1])
    store(out, o + 7, s_w[0] * alpha[2] + s_w[2] * alpha[0] + b[0] * w[2] + b[2] * w[0])
    store(out, o + 8, s_w[1] * alpha[2] + s_w[2] * alpha[1] + b[1] * w[2] + b[2] * w[1])
    store(out, o + 9, s_w[2] * alpha[2] + b[2] * w[2])
