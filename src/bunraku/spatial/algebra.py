"""Vectors, rotations and spatial inertias as tuples of scalars.

Conventions: a 3-vector is 3 scalars, a 3x3 matrix 9 (by rows), a symmetric one 6 (xx xy xz yy yz zz). Spatial
vectors are pairs (angular, linear); all are in world axes, about an origin that the calling kernel keeps track of.
An articulated inertia about that origin is

    [ A  B ]   moment about the origin = A alpha + B a        A, C symmetric (6 scalars)
    [ B' C ]   force                   = B' alpha + C a       B general (9 scalars)
"""

from bunraku.jit import inline
from bunraku.spatial.scalar import load, minimum, sqrt, store
from bunraku.tolerances import CANCELLED

# -- 3-vectors and matrices ----------------------------------------------------------------------------------------


@inline
def add(a, b):
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@inline
def sub(a, b):
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@inline
def scale(a, s):
    return (a[0] * s, a[1] * s, a[2] * s)


@inline
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inline
def cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@inline
def matvec(M, a):
    return (M[0] * a[0] + M[1] * a[1] + M[2] * a[2],
            M[3] * a[0] + M[4] * a[1] + M[5] * a[2],
            M[6] * a[0] + M[7] * a[1] + M[8] * a[2])


@inline
def matTvec(M, a):
    return (M[0] * a[0] + M[3] * a[1] + M[6] * a[2],
            M[1] * a[0] + M[4] * a[1] + M[7] * a[2],
            M[2] * a[0] + M[5] * a[1] + M[8] * a[2])


@inline
def matmul(M, N):
    return (M[0] * N[0] + M[1] * N[3] + M[2] * N[6],
            M[0] * N[1] + M[1] * N[4] + M[2] * N[7],
            M[0] * N[2] + M[1] * N[5] + M[2] * N[8],
            M[3] * N[0] + M[4] * N[3] + M[5] * N[6],
            M[3] * N[1] + M[4] * N[4] + M[5] * N[7],
            M[3] * N[2] + M[4] * N[5] + M[5] * N[8],
            M[6] * N[0] + M[7] * N[3] + M[8] * N[6],
            M[6] * N[1] + M[7] * N[4] + M[8] * N[7],
            M[6] * N[2] + M[7] * N[5] + M[8] * N[8])


@inline
def symvec(S, a):
    return (S[0] * a[0] + S[1] * a[1] + S[2] * a[2],
            S[1] * a[0] + S[3] * a[1] + S[4] * a[2],
            S[2] * a[0] + S[4] * a[1] + S[5] * a[2])


@inline
def rotate_symmetric(R, S):
    """R S R^T."""
    t0, t1, t2 = symvec(S, (R[0], R[1], R[2])), symvec(S, (R[3], R[4], R[5])), symvec(S, (R[6], R[7], R[8]))
    return (t0[0] * R[0] + t0[1] * R[1] + t0[2] * R[2],
            t0[0] * R[3] + t0[1] * R[4] + t0[2] * R[5],
            t0[0] * R[6] + t0[1] * R[7] + t0[2] * R[8],
            t1[0] * R[3] + t1[1] * R[4] + t1[2] * R[5],
            t1[0] * R[6] + t1[1] * R[7] + t1[2] * R[8],
            t2[0] * R[6] + t2[1] * R[7] + t2[2] * R[8])


@inline
def rotate_about_z(T, s, c):
    """T R_z(angle), from the sine and cosine of the angle."""
    return (T[0] * c + T[1] * s, T[1] * c - T[0] * s, T[2],
            T[3] * c + T[4] * s, T[4] * c - T[3] * s, T[5],
            T[6] * c + T[7] * s, T[7] * c - T[6] * s, T[8])


@inline
def rotation_of_quaternion(w, x, y, z):
    """Rotation matrix of a quaternion, which need not have unit length."""
    k = 2.0 / (w * w + x * x + y * y + z * z)
    kx, ky, kz = k * x, k * y, k * z
    return (1.0 - (ky * y + kz * z), kx * y - kz * w, kx * z + ky * w,
            kx * y + kz * w, 1.0 - (kx * x + kz * z), ky * z - kx * w,
            kx * z - ky * w, ky * z + kx * w, 1.0 - (kx * x + ky * y))


@inline
def column_z(R):
    return (R[2], R[5], R[8])


# -- symmetric 3x3 systems -----------------------------------------------------------------------------------------


@inline
def factor3(S):
    """S = L D L^T: (l10, l20, l21, 1/d0, 1/d1, 1/d2), and the margin of the smallest d over its rounding."""
    minor = S[0] * S[3] - S[1] * S[1]
    both = 1.0 / (S[0] * minor)  # one division for 1/d0 and 1/d1
    r0, r1 = minor * both, S[0] * S[0] * both
    l10, l20 = S[1] * r0, S[2] * r0
    e = S[4] - S[2] * l10
    l21 = e * r1
    d2 = S[5] - S[2] * l20 - e * l21
    smallest = minimum(minimum(S[0], minor * r0), d2) - CANCELLED * (S[0] + S[3] + S[5])
    return (l10, l20, l21, r0, r1, 1.0 / d2), smallest


@inline
def solve3(F, b):
    """Solution of S x = b from the factors of S."""
    y1 = b[1] - F[0] * b[0]
    y2 = b[2] - F[1] * b[0] - F[2] * y1
    x2 = y2 * F[5]
    x1 = y1 * F[4] - F[2] * x2
    x0 = b[0] * F[3] - F[0] * x1 - F[1] * x2
    return (x0, x1, x2)


# -- memory --------------------------------------------------------------------------------------------------------


@inline
def load3(array, i):
    return (load(array, i), load(array, i + 1), load(array, i + 2))


@inline
def load6(array, i):
    return (load(array, i), load(array, i + 1), load(array, i + 2),
            load(array, i + 3), load(array, i + 4), load(array, i + 5))


@inline
def load9(array, i):
    return (load(array, i), load(array, i + 1), load(array, i + 2),
            load(array, i + 3), load(array, i + 4), load(array, i + 5),
            load(array, i + 6), load(array, i + 7), load(array, i + 8))


@inline
def store3(array, i, a):
    store(array, i, a[0])
    store(array, i + 1, a[1])
    store(array, i + 2, a[2])


@inline
def store6(array, i, a):
    store(array, i, a[0])
    store(array, i + 1, a[1])
    store(array, i + 2, a[2])
    store(array, i + 3, a[3])
    store(array, i + 4, a[4])
    store(array, i + 5, a[5])


@inline
def store9(array, i, a):
    store6(array, i, (a[0], a[1], a[2], a[3], a[4], a[5]))
    store3(array, i + 6, (a[6], a[7], a[8]))


@inline
def accumulate3(array, i, a):
    store3(array, i, add(load3(array, i), a))


@inline
def add6(a, b):
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4], a[5] + b[5])


@inline
def sub6(a, b):
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3], a[4] - b[4], a[5] - b[5])


@inline
def add9(a, b):
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4], a[5] + b[5],
            a[6] + b[6], a[7] + b[7], a[8] + b[8])


# -- spatial inertias ----------------------------------------------------------------------------------------------


@inline
def inertia_times(A, B, C, alpha, a):
    """Moment and force of an articulated inertia under the acceleration (alpha, a)."""
    return add(symvec(A, alpha), matvec(B, a)), add(matTvec(B, alpha), symvec(C, a))


@inline
def shift_inertia(A, B, C, r):
    """The inertia about an origin displaced by -r: the old origin has position r in the new frame.

    B' = B + [r]x C,   A' = A + [r]x B'^T - B [r]x = A + [r]x B^T + ([r]x B^T)^T + [r]x C [r]x^T
    """
    # D = [r]x C, columnwise cross products with the symmetric C
    d0 = cross(r, (C[0], C[1], C[2]))
    d1 = cross(r, (C[1], C[3], C[4]))
    d2 = cross(r, (C[2], C[4], C[5]))
    Bn = (B[0] + d0[0], B[1] + d1[0], B[2] + d2[0],
          B[3] + d0[1], B[4] + d1[1], B[5] + d2[1],
          B[6] + d0[2], B[7] + d1[2], B[8] + d2[2])
    # E = [r]x B'^T: its columns are r x (rows of B');  G = B [r]x: rows of B crossed with r
    e0 = cross(r, (Bn[0], Bn[1], Bn[2]))
    e1 = cross(r, (Bn[3], Bn[4], Bn[5]))
    e2 = cross(r, (Bn[6], Bn[7], Bn[8]))
    g0 = cross((B[0], B[1], B[2]), r)
    g1 = cross((B[3], B[4], B[5]), r)
    g2 = cross((B[6], B[7], B[8]), r)
    An = (A[0] + e0[0] - g0[0], A[1] + e1[0] - g0[1], A[2] + e2[0] - g0[2],
          A[3] + e1[1] - g1[1], A[4] + e2[1] - g1[2], A[5] + e2[2] - g2[2])
    return An, Bn


# -- rotation vectors ----------------------------------------------------------------------------------------------


@inline
def norm(a):
    return sqrt(dot(a, a))
