"""One step of a fixed-step method on the coordinates' group, on one state or on lanes of states.

q moves by h v along its group, as `states.advance_coordinates` does, but quaternions come in with unit length and leave
so: one Newton step holds them there. All that turning needs are entire functions of the squared angle; up to SMALL_TURN
a step (nearly always) their Taylor polynomials serve, without roots, divisions or trigonometry.
Cost: about 70 operations for a quaternion.
"""

import math

from bunraku.algorithms.states import quaternion_product
from bunraku.jit import inline
from bunraku.plan import fields as f
from bunraku.spatial.algebra import add, cross, dot, load3, matvec, rotation_of_quaternion, scale, store3
from bunraku.spatial.scalar import constant, largest, load, maximum, sincos, sqrt, store, where_positive

SMALL_TURN = 1.0  # [rad] where the polynomials leave errors below 1e-17


def _coefficients(first: int, terms: int) -> tuple[float, ...]:
    """(-1)^k / (2 k + first)!, the highest first."""
    return tuple((-1.0) ** k / math.factorial(2 * k + first) for k in range(terms))[::-1]


_COSINE, _SINE, _ARC = _coefficients(0, 8), _coefficients(1, 8), _coefficients(3, 8)


@inline
def polynomial(c, y):
    """Of degree 7, the highest coefficient first."""
    return ((((((c[0] * y + c[1]) * y + c[2]) * y + c[3]) * y + c[4]) * y + c[5]) * y + c[6]) * y + c[7]


@inline
def half_turn(near, t2):
    """cos(t/2) and sin(t/2)/t of the angle t whose square is given."""
    y = 0.25 * t2
    cosine, sine = polynomial(_COSINE, y), 0.5 * polynomial(_SINE, y)
    if not near:
        t = sqrt(t2)
        s, c = sincos(0.5 * t)
        far = t2 - SMALL_TURN * SMALL_TURN
        cosine, sine = where_positive(far, c, cosine), where_positive(far, s / maximum(t, SMALL_TURN), sine)
    return cosine, sine


@inline
def twist(near, t2, k):
    """(1 - cos t)/t^2 and (t - sin t)/t^3; k is sin(t/2)/t."""
    arc = polynomial(_ARC, t2)
    if not near:
        t = sqrt(t2)
        s, c = sincos(t)
        arc = where_positive(t2 - SMALL_TURN * SMALL_TURN, (t - s) / maximum(t * t2, SMALL_TURN), arc)
    return 2.0 * k * k, arc


@inline
def turn(q, k, phi, cosine, sine):
    """Turn the unit quaternion q[k:k+4] by the rotation vector phi (child axes)."""
    p = quaternion_product((load(q, k), load(q, k + 1), load(q, k + 2), load(q, k + 3)),
                           (cosine, sine * phi[0], sine * phi[1], sine * phi[2]))
    length = 1.5 - 0.5 * (p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3])  # 1/sqrt(x) near 1
    store(q, k, length * p[0])
    store(q, k + 1, length * p[1])
    store(q, k + 2, length * p[2])
    store(q, k + 3, length * p[3])


@inline
def unit_length(body_i, q):
    """Scale every quaternion to unit length, in place."""
    for i in range(body_i.shape[0] - 1):
        kind = body_i[i, f.KIND]
        if kind == f.SPHERICAL or kind == f.FREE:
            k = body_i[i, f.Q_INDEX] + (3 if kind == f.FREE else 0)
            w, x, y, z = load(q, k), load(q, k + 1), load(q, k + 2), load(q, k + 3)
            length = 1.0 / sqrt(w * w + x * x + y * y + z * z)
            store(q, k, length * w)
            store(q, k + 1, length * x)
            store(q, k + 2, length * y)
            store(q, k + 3, length * z)


@inline
def fastest_turn(body_i, v):
    """Largest squared angular velocity of a joint with a quaternion."""
    top = constant(v, 0.0)
    for i in range(body_i.shape[0] - 1):
        kind = body_i[i, f.KIND]
        if kind == f.SPHERICAL or kind == f.FREE:
            w = load3(v, body_i[i, f.V_INDEX] + (3 if kind == f.FREE else 0))
            top = maximum(top, dot(w, w))
    return largest(top)


@inline
def step_coordinates(body_i, q, v, h):
    """q <- q moved by h v, in place."""
    near = h * h * fastest_turn(body_i, v) <= SMALL_TURN * SMALL_TURN
    for i in range(body_i.shape[0] - 1):
        kind, k, j = body_i[i, f.KIND], body_i[i, f.Q_INDEX], body_i[i, f.V_INDEX]
        if kind == f.REVOLUTE or kind == f.SCREW:
            store(q, k, load(q, k) + h * load(v, j))
        elif kind == f.SPHERICAL:
            phi = scale(load3(v, j), h)
            cosine, sine = half_turn(near, dot(phi, phi))
            turn(q, k, phi, cosine, sine)
        elif kind == f.FREE:
            d, phi = scale(load3(v, j), h), scale(load3(v, j + 3), h)
            t2 = dot(phi, phi)
            cosine, sine = half_turn(near, t2)
            b, c = twist(near, t2, sine)
            # V d = d + b phi x d + c phi x (phi x d): the arc travelled
            turned = cross(phi, d)
            arc = add(add(d, scale(turned, b)), scale(cross(phi, turned), c))
            R = rotation_of_quaternion(load(q, k + 3), load(q, k + 4), load(q, k + 5), load(q, k + 6))
            store3(q, k, add(load3(q, k), matvec(R, arc)))
            turn(q, k + 3, phi, cosine, sine)


@inline
def symplectic_step(body_i, q, v, a, h):
    """v <- v + h a, then q moves by h v along its group."""
    for j in range(v.shape[0]):
        store(v, j, load(v, j) + h * load(a, j))
    step_coordinates(body_i, q, v, h)
