"""Vectors (3), symmetric matrices (6: xx xy xz yy yz zz) and matrices (9 by rows) as tuples of any scalar.

Multiplications and additions of each function are noted as (m, a).
"""


def add(a, b):
    """(0, 3), or one for each number that the two have"""
    return tuple(x + y for x, y in zip(a, b, strict=True))


def sub(a, b):
    """(0, 3), or one for each number that the two have"""
    return tuple(x - y for x, y in zip(a, b, strict=True))


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


def square(P, G):
    """-P^ G^ of parallel vectors, symmetric. (6, 3)"""
    xx, yy, zz = P[0] * G[0], P[1] * G[1], P[2] * G[2]
    return (yy + zz, -(P[0] * G[1]), -(P[0] * G[2]), xx + zz, -(P[1] * G[2]), xx + yy)


def both(P, H):
    """-P^ H^ - H^ P^, symmetric. (12, 6)"""
    xx, yy, zz = 2.0 * (P[0] * H[0]), 2.0 * (P[1] * H[1]), 2.0 * (P[2] * H[2])
    return (yy + zz, -(P[0] * H[1] + H[0] * P[1]), -(P[0] * H[2] + H[0] * P[2]),
            xx + zz, -(P[1] * H[2] + H[1] * P[2]), xx + yy)


# -- matrices --------------------------------------------------------------------------------------------------------


def matvec(R, a):
    """(9, 6)"""
    return (R[0] * a[0] + R[1] * a[1] + R[2] * a[2],
            R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
            R[6] * a[0] + R[7] * a[1] + R[8] * a[2])


def matmul(R, Q):
    """(27, 18)"""
    rows = (R[0:3], R[3:6], R[6:9])
    columns = (Q[0::3], Q[1::3], Q[2::3])
    return tuple(dot(row, column) for row in rows for column in columns)


def transposed(R):
    return (R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8])


def column_z(R):
    return (R[2], R[5], R[8])


def full(S):
    """All nine elements of a symmetric matrix."""
    return (S[0], S[1], S[2], S[1], S[3], S[4], S[2], S[4], S[5])


def rotated(R, K):
    """R K R^T as it is written: two products of matrices. (54, 36)"""
    return matmul(matmul(R, K), transposed(R))


def hats(a, b):
    """-a^ b^. (9, 3)"""
    xx, yy, zz = a[0] * b[0], a[1] * b[1], a[2] * b[2]
    return (yy + zz, -(b[0] * a[1]), -(b[0] * a[2]),
            -(b[1] * a[0]), xx + zz, -(b[1] * a[2]),
            -(b[2] * a[0]), -(b[2] * a[1]), xx + yy)


# -- from frame to frame: R(j, j + 1) has one zero, a turn about z more of them ---------------------------------------


def link_up(L, a):
    """L a with L = R(j, j + 1). (8, 5)"""
    return (L[0] * a[0] + L[1] * a[1] + L[2] * a[2],
            L[3] * a[0] + L[4] * a[1] + L[5] * a[2],
            L[7] * a[1] + L[8] * a[2])


def link_down(L, a):
    """L^T a. (8, 5)"""
    return (L[0] * a[0] + L[3] * a[1],
            L[1] * a[0] + L[4] * a[1] + L[7] * a[2],
            L[2] * a[0] + L[5] * a[1] + L[8] * a[2])


def link_up6(L, K):
    """L K L^T, symmetric. (39, 24)"""
    x, y = symvec(K, L[0:3]), symvec(K, L[3:6])
    z = (L[7] * K[1] + L[8] * K[2], L[7] * K[3] + L[8] * K[4], L[7] * K[4] + L[8] * K[5])
    return (dot(x, L[0:3]), dot(x, L[3:6]), x[1] * L[7] + x[2] * L[8],
            dot(y, L[3:6]), y[1] * L[7] + y[2] * L[8], z[1] * L[7] + z[2] * L[8])


def turn_z(c, s, a):
    """Rz a. (4, 2)"""
    return (c * a[0] - s * a[1], s * a[0] + c * a[1], a[2])


def turn_z6(c, s, K):
    """Rz K Rz^T. (8, 8): with w = s (xx - yy) + 2 c xy,  xx - s w,  yy + s w,  c w - xy"""
    w = s * (K[0] - K[3]) + c * (K[1] + K[1])
    sw = s * w
    return (K[0] - sw, c * w - K[1], c * K[2] - s * K[4], K[3] + sw, s * K[2] + c * K[4], K[5])
