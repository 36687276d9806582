"""Coordinates on their group: moving by a velocity, the difference of two states, rates of coordinates.

Spherical joints turn by the exponential of the rotation vector (Rodrigues' formula [YN99, eqs. 25-29] on unit
quaternions); free joints move along a constant twist, the exponential of SE(3), as Pinocchio's `integrate` does.
One float only: these are not on the hot path of any batch.
"""

import math

from bunraku.jit import inline
from bunraku.plan import fields as f
from bunraku.spatial.algebra import add, cross, dot, matTvec, matvec, rotation_of_quaternion, scale, sub
from bunraku.spatial.scalar import load, store


@inline
def quaternion_product(a, b):
    return (a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
            a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
            a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
            a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0])


@inline
def quaternion_of_vector(phi):
    """Unit quaternion of a rotation vector."""
    angle = math.sqrt(dot(phi, phi))
    half = 0.5 * angle
    k = math.sin(half) / angle if angle > 1e-8 else 0.5 - angle * angle / 48.0
    return (math.cos(half), k * phi[0], k * phi[1], k * phi[2])


@inline
def vector_of_quaternion(p):
    """Rotation vector of a quaternion of any length, the short way (at most half a turn)."""
    sign = 1.0 if p[0] >= 0.0 else -1.0
    sine = math.sqrt(p[1] * p[1] + p[2] * p[2] + p[3] * p[3])
    cosine = sign * p[0]
    angle = 2.0 * math.atan2(sine, cosine)
    k = angle / sine if sine > 1e-12 * cosine else 2.0 / cosine
    return (sign * k * p[1], sign * k * p[2], sign * k * p[3])


@inline
def twist_coefficients(phi):
    """(1 - cos t)/t^2 and (t - sin t)/t^3 for the angle t of a rotation vector."""
    t2 = dot(phi, phi)
    if t2 < 1e-4:
        return (0.5 - t2 / 24.0 + t2 * t2 / 720.0 - t2 * t2 * t2 / 40320.0,
                1.0 / 6.0 - t2 / 120.0 + t2 * t2 / 5040.0 - t2 * t2 * t2 / 362880.0)
    t = math.sqrt(t2)
    half = math.sin(0.5 * t)
    return 2.0 * half * half / t2, (t - math.sin(t)) / (t2 * t)


@inline
def load_quaternion(q, k):
    return (q[k], q[k + 1], q[k + 2], q[k + 3])


@inline
def turn_quaternion(q, k, phi, out):
    """out[k:k+4] = q[k:k+4] turned by the rotation vector phi (child axes), of unit length."""
    p = quaternion_product(load_quaternion(q, k), quaternion_of_vector(phi))
    length = 1.0 / math.sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3])
    for d in range(4):
        out[k + d] = p[d] * length


@inline
def advance_coordinates(body_i, q, dq, out):
    """out = q moved by dq."""
    for i in range(body_i.shape[0] - 1):
        kind, k, j = body_i[i, f.KIND], body_i[i, f.Q_INDEX], body_i[i, f.V_INDEX]
        if kind == f.REVOLUTE or kind == f.SCREW:
            out[k] = q[k] + dq[j]
        elif kind == f.SPHERICAL:
            turn_quaternion(q, k, (dq[j], dq[j + 1], dq[j + 2]), out)
        elif kind == f.FREE:
            d, phi = (dq[j], dq[j + 1], dq[j + 2]), (dq[j + 3], dq[j + 4], dq[j + 5])
            b, c = twist_coefficients(phi)
            # V d = d + b phi x d + c phi x (phi x d): the arc travelled
            turned = cross(phi, d)
            arc = add(add(d, scale(turned, b)), scale(cross(phi, turned), c))
            R = rotation_of_quaternion(q[k + 3], q[k + 4], q[k + 5], q[k + 6])
            x = add((q[k], q[k + 1], q[k + 2]), matvec(R, arc))
            out[k], out[k + 1], out[k + 2] = x
            turn_quaternion(q, k + 3, phi, out)


@inline
def coordinate_difference(body_i, q0, q1, out):
    """out = the dq that leads from q0 to q1."""
    for i in range(body_i.shape[0] - 1):
        kind, k, j = body_i[i, f.KIND], body_i[i, f.Q_INDEX], body_i[i, f.V_INDEX]
        if kind == f.REVOLUTE or kind == f.SCREW:
            out[j] = q1[k] - q0[k]
        elif kind != f.FIXED:
            at = k if kind == f.SPHERICAL else k + 3
            p0 = load_quaternion(q0, at)
            back = (p0[0], -p0[1], -p0[2], -p0[3])
            phi = vector_of_quaternion(quaternion_product(back, load_quaternion(q1, at)))
            if kind == f.SPHERICAL:
                out[j], out[j + 1], out[j + 2] = phi
            else:
                out[j + 3], out[j + 4], out[j + 5] = phi
                R = rotation_of_quaternion(p0[0], p0[1], p0[2], p0[3])
                gap = matTvec(R, sub((q1[k], q1[k + 1], q1[k + 2]), (q0[k], q0[k + 1], q0[k + 2])))
                # V^-1 = 1 - phi/2 x + (1/t^2 - (1 + cos t)/(2 t sin t)) phi x phi x
                b, c = twist_coefficients(phi)
                t2 = dot(phi, phi)
                # (1 - (1 - t^2 c) / (2 b)) / t^2, whose limit at 0 is 1/12
                e = (1.0 - (1.0 - t2 * c) / (2.0 * b)) / t2 if t2 > 1e-4 else 1.0 / 12.0 + t2 / 720.0
                turned = cross(phi, gap)
                d = add(sub(gap, scale(turned, 0.5)), scale(cross(phi, turned), e))
                out[j], out[j + 1], out[j + 2] = d


@inline
def coordinate_rates(body_i, q, v, out):
    """out = dq/dt: quaternion rates 1/2 q (0, w), positions R v."""
    for i in range(body_i.shape[0] - 1):
        kind, k, j = body_i[i, f.KIND], body_i[i, f.Q_INDEX], body_i[i, f.V_INDEX]
        if kind == f.REVOLUTE or kind == f.SCREW:
            store(out, k, load(v, j))
        elif kind != f.FIXED:
            at = k if kind == f.SPHERICAL else k + 3
            to = j if kind == f.SPHERICAL else j + 3
            w, x, y, z = load(q, at), load(q, at + 1), load(q, at + 2), load(q, at + 3)
            a, b, c = 0.5 * load(v, to), 0.5 * load(v, to + 1), 0.5 * load(v, to + 2)
            store(out, at, -(x * a) - y * b - z * c)
            store(out, at + 1, w * a + y * c - z * b)
            store(out, at + 2, w * b + z * a - x * c)
            store(out, at + 3, w * c + x * b - y * a)
            if kind == f.FREE:
                r = matvec(rotation_of_quaternion(w, x, y, z), (load(v, j), load(v, j + 1), load(v, j + 2)))
                store(out, k, r[0])
                store(out, k + 1, r[1])
                store(out, k + 2, r[2])


@inline
def tangent_rates(body_i, q, rates, out):
    """The reverse of `coordinate_rates`: out = the v whose rates of coordinates these are. Quaternions may have any
    length; a change of their length does not count."""
    for i in range(body_i.shape[0] - 1):
        kind, k, j = body_i[i, f.KIND], body_i[i, f.Q_INDEX], body_i[i, f.V_INDEX]
        if kind == f.REVOLUTE or kind == f.SCREW:
            out[j] = rates[k]
        elif kind != f.FIXED:
            at = k if kind == f.SPHERICAL else k + 3
            to = j if kind == f.SPHERICAL else j + 3
            w, x, y, z = load_quaternion(q, at)
            square = w * w + x * x + y * y + z * z
            turned = quaternion_product((w, -x, -y, -z), load_quaternion(rates, at))
            double = 2.0 / square
            out[to], out[to + 1], out[to + 2] = double * turned[1], double * turned[2], double * turned[3]
            if kind == f.FREE:
                length = math.sqrt(square)
                w, x, y, z = w / length, x / length, y / length, z / length
                out[j], out[j + 1], out[j + 2] = matTvec(rotation_of_quaternion(w, x, y, z),
                                                         (rates[k], rates[k + 1], rates[k + 2]))


@inline
def normalise_quaternions(body_i, rows, count):
    """Scale every quaternion of the coordinates rows[0] to unit length, and rows[1:count] by the same numbers."""
    for i in range(body_i.shape[0] - 1):
        kind = body_i[i, f.KIND]
        if kind == f.SPHERICAL or kind == f.FREE:
            k = body_i[i, f.Q_INDEX] + (3 if kind == f.FREE else 0)
            w, x, y, z = rows[0, k], rows[0, k + 1], rows[0, k + 2], rows[0, k + 3]
            length = 1.0 / math.sqrt(w * w + x * x + y * y + z * z)
            for j in range(count):
                for d in range(4):
                    rows[j, k + d] *= length
