"""Vectors (3), symmetric matrices (6: xx xy xz yy yz zz) and rotations (9 by rows) as tuples of any scalar.

Operations are written out so that what is known to be zero is never computed; multiplications and additions of each
function are noted as (m, a).
"""


def add(a, b):
    """(0, 3)"""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def sub(a, b):
    """(0, 3)"""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def scale(a, s):
    """(3, 0)"""
    return (a[0] * s, a[1] * s, a[2] * s)


def dot(a, b):
    """(3, 2)"""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a, b):
    """(6, 3)"""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def symvec(S, a):
    """(9, 6)"""
    return (S[0] * a[0] + S[1] * a[1] + S[2] * a[2],
            S[1] * a[0] + S[3] * a[1] + S[4] * a[2],
            S[2] * a[0] + S[4] * a[1] + S[5] * a[2])


def add6(a, b):
    """(0, 6)"""
    return tuple(x + y for x, y in zip(a, b, strict=True))


def shift_terms(P, G, H):
    """-(P^ G^ + H^ P^) with G = H + M P, symmetric: what moving a second moment by P adds to it. (9, 9)"""
    S = add(G, H)
    xx, yy, zz = P[0] * S[0], P[1] * S[1], P[2] * S[2]
    return (yy + zz, -(G[0] * P[1] + P[0] * H[1]), -(G[0] * P[2] + P[0] * H[2]),
            xx + zz, -(G[1] * P[2] + P[1] * H[2]), xx + yy)


def shift_by(P, H):
    """-(P^ H^ + H^ P^), the part of `shift_terms` that is linear in P. (9, 6) with 2 P a constant"""
    xx, yy, zz = (2.0 * P[0]) * H[0], (2.0 * P[1]) * H[1], (2.0 * P[2]) * H[2]
    return (yy + zz, -(H[0] * P[1] + P[0] * H[1]), -(H[0] * P[2] + P[0] * H[2]),
            xx + zz, -(H[1] * P[2] + P[1] * H[2]), xx + yy)


def shift_square(P, M):
    """-M P^ P^."""
    G = scale(P, M)
    xx, yy, zz = P[0] * G[0], P[1] * G[1], P[2] * G[2]
    return (yy + zz, -(P[0] * G[1]), -(P[0] * G[2]), xx + zz, -(P[1] * G[2]), xx + yy)


# -- turns about x and z ---------------------------------------------------------------------------------------------


def turn_z(c, s, a):
    """Rz a. (4, 2)"""
    return (c * a[0] - s * a[1], s * a[0] + c * a[1], a[2])


def turn_x(c, s, a):
    """Rx a. (4, 2)"""
    return (a[0], c * a[1] - s * a[2], s * a[1] + c * a[2])


def turn_z6(c, s, K):
    """Rz K Rz^T. (8, 8): with w = s (xx - yy) + 2 c xy,  xx - s w,  yy + s w,  c w - xy"""
    w = s * (K[0] - K[3]) + c * (K[1] + K[1])
    sw = s * w
    return (K[0] - sw, c * w - K[1], c * K[2] - s * K[4], K[3] + sw, s * K[2] + c * K[4], K[5])


def turn_x6(c, s, K):
    """Rx K Rx^T. (8, 7), with 2 c a constant."""
    w = s * (K[3] - K[5]) + (2.0 * c) * K[4]
    sw = s * w
    return (K[0], c * K[1] - s * K[2], s * K[1] + c * K[2], K[3] - sw, c * w - K[4], K[5] + sw)


# -- rotations -------------------------------------------------------------------------------------------------------


def matvec(R, a):
    """(9, 6)"""
    return (R[0] * a[0] + R[1] * a[1] + R[2] * a[2],
            R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
            R[6] * a[0] + R[7] * a[1] + R[8] * a[2])


def matvec_xy(R, a):
    """R a for a vector without z. (6, 3)"""
    return (R[0] * a[0] + R[1] * a[1], R[3] * a[0] + R[4] * a[1], R[6] * a[0] + R[7] * a[1])


def matmul(R, Q):
    """(27, 18)"""
    rows = (R[0:3], R[3:6], R[6:9])
    columns = (Q[0::3], Q[1::3], Q[2::3])
    return tuple(dot(row, column) for row in rows for column in columns)


def column_z(R):
    return (R[2], R[5], R[8])


def then_z(R, c, s):
    """R Rz. (12, 6)"""
    return (R[0] * c + R[1] * s, R[1] * c - R[0] * s, R[2],
            R[3] * c + R[4] * s, R[4] * c - R[3] * s, R[5],
            R[6] * c + R[7] * s, R[7] * c - R[6] * s, R[8])


def then_x(R, c, s):
    """R Rx. (12, 6)"""
    return (R[0], R[1] * c + R[2] * s, R[2] * c - R[1] * s,
            R[3], R[4] * c + R[5] * s, R[5] * c - R[4] * s,
            R[6], R[7] * c + R[8] * s, R[8] * c - R[7] * s)


def z_x_z(first, cx, sx, c, s):
    """Rz Rx Rz. (14, 4)"""
    c0, s0 = first
    y, z = (-(s0 * cx), c0 * cx), (s0 * sx, -(c0 * sx))
    return (c0 * c + y[0] * s, y[0] * c - c0 * s, z[0],
            s0 * c + y[1] * s, y[1] * c - s0 * s, z[1],
            sx * s, sx * c, cx)


def x_z_x(first, c, s, cx, sx):
    """Rx Rz Rx. (14, 4)"""
    c0, s0 = first
    y, z = (c0 * s, c0 * c), (s0 * s, s0 * c)
    return (c, -(s * cx), s * sx,
            y[0], y[1] * cx - s0 * sx, -(y[1] * sx) - s0 * cx,
            z[0], z[1] * cx + c0 * sx, c0 * cx - z[1] * sx)


def rotate6(R, K):
    """R K R^T of a constant K. (33, 24): two rows, and the trace stays as it is"""
    trace = K[0] + K[3] + K[5]
    t0, t1 = symvec(K, R[0:3]), symvec(K, R[3:6])
    xx, yy = dot(t0, R[0:3]), dot(t1, R[3:6])
    return (xx, dot(t0, R[3:6]), dot(t0, R[6:9]), yy, dot(t1, R[6:9]), trace - xx - yy)
