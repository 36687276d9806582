"""Variant of the composite rigid body algorithm (VCR-B): moments about O(i), constants merged, two frames. O(n^2).

[F, "A Variant of Composite Rigid-Body Algorithm"]:

    step 1   M(i) = m(i) + M(i + 1),     H(i) = h(i) + H(i + 1) + M(i + 1) P
             K(i) = k(i) + K(i + 1) - M(i + 1) P^ P^ - P^ H^ - H^ P^       P = P(i + 1, i), H = H(i + 1)
             f(i) = Z(i) x H(i),   n(i) = K(i) Z(i),   a_ii = Z(i) . n(i)
    step 2   n(j) = n(j + 1) + P(j + 1, j) x f(i),     a_ji = Z(j) . n(j)

Step 1 in body frames: there h + M P and k - M P^ P^ are constants and Z is (0, 0, 1), so f, n and a_ii cost nothing.
Step 2 in one fixed frame, the first body's: O(n) rotations. `vcrb_in_body_frames` is the naive projection of both
steps with O(n^2) of them. A prismatic joint has f = M Z, n = H x Z.
"""

from bunraku.massmatrix.frames import on_base, rotated, rotated_xy, up
from bunraku.massmatrix.vectors import (
    add,
    add6,
    cross,
    dot,
    scale,
    shift_by,
    shift_square,
    turn_x,
    turn_x6,
    turn_z,
    turn_z6,
)


def vcrb(chain, turns):
    n = chain.n
    forces, M = composite(chain, turns)
    R, Z, P = on_base(chain, turns)
    for i in range(1, n):
        f, moment = forces[i]
        # f has no z (revolute) or nothing else (prismatic: then the moment has none)
        if chain.prismatic[i]:
            f, moment = scale(Z[i], f[2]), rotated_xy(R[i], moment)
        else:
            f, moment = rotated_xy(R[i], f), rotated(R[i], moment)
        for j in range(i - 1, 0, -1):     # step 2
            moment = add(moment, cross(P[j], f))
            M[j][i] = M[i][j] = dot(Z[j], f if chain.prismatic[j] else moment)
        # the first axis is (0, 0, 1) here
        M[0][i] = M[i][0] = f[2] if chain.prismatic[0] else moment[2] + (P[0][0] * f[1] - P[0][1] * f[0])
    return M


def vcrb_in_body_frames(chain, turns):
    """The same with f and n turned to the next body's frame in every step of step 2."""
    n = chain.n
    forces, M = composite(chain, turns)
    arms = [chain.to_next(j, turns) for j in range(n - 1)]
    for i in range(1, n):
        f, moment = forces[i]
        for j in range(i - 1, -1, -1):
            moment = add(moment, cross(arms[j], f))
            f, moment = up(chain, turns, j, f), up(chain, turns, j, moment)
            M[j][i] = M[i][j] = (f if chain.prismatic[j] else moment)[2]
    return M


def composite(chain, turns):
    """Step 1: f(i) and n(i) of every joint in its own frame i, and M with its diagonal."""
    n = chain.n
    masses = chain.masses()
    forces: list = [None] * n
    A: list[list] = [[None] * n for _ in range(n)]
    H = K = None
    for i in range(n - 1, -1, -1):
        h, k = chain.h[i], chain.k[i]
        revolute_first = i == 0 and not chain.prismatic[0]
        if i < n - 1:
            M, P = masses[i + 1], chain.to_next(i, turns)
            k = add6(k, shift_square(P, M))  # constants, unless the next joint slides
            h = add(h, scale(P, M))
            if revolute_first:
                A[0][0] = _first(chain.twist[0], k, K, P, H)
                break
            K = add6(add6(K, k), shift_by(P, H))
            H = add(H, h)
            cx, sx = chain.twist[i]
            H, K = turn_x(cx, sx, H), turn_x6(cx, sx, K)
        elif revolute_first:  # the only body: its own second moment about its axis
            A[0][0] = k[5]
            break
        else:
            H, K = h, k
        c, s, _ = turns[i]
        H, K = turn_z(c, s, H), turn_z6(c, s, K)
        if chain.prismatic[i]:
            forces[i] = (0.0, 0.0, masses[i]), (H[1], -H[0], 0.0)
            A[i][i] = masses[i]
        else:
            forces[i] = (-H[1], H[0], 0.0), (K[2], K[4], K[5])
            A[i][i] = K[5]
    return forces, A


def _first(twist, k, K, P, H):
    """Second moment of the whole chain about the first axis (0, sin, cos): three elements of K do. (8, 11)"""
    c, s = twist
    xx, yy, zz = (2.0 * P[0]) * H[0], (2.0 * P[1]) * H[1], (2.0 * P[2]) * H[2]
    Kyy, Kzz = K[3] + k[3] + (xx + zz), K[5] + k[5] + (xx + yy)
    Kyz = K[4] + k[4] - (H[1] * P[2] + P[1] * H[2])
    return (s * s) * Kyy + (2.0 * s * c) * Kyz + (c * c) * Kzz
