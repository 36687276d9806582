"""Variant of the composite rigid body algorithm (VCR-B): moments about O(i), two frames. O(n^2).

[F, "A Variant of Composite Rigid-Body Algorithm"]:

    step 1   M(i) = m(i) + M(i + 1),     H(i) = h(i) + H(i + 1) + M(i + 1) P
             K(i) = k(i) + K(i + 1) - M(i + 1) P^ P^ - P^ H^ - H^ P^       P = P(i + 1, i), H = H(i + 1)
             f(i) = Z(i) x H(i),   n(i) = K(i) Z(i),   a_ii = Z(i) . n(i)
    step 2   n(j) = n(j + 1) + P(j + 1, j) x f(i),     a_ji = Z(j) . n(j)

Step 1 in body frames: Z is (0, 0, 1) there, so f, n and a_ii cost nothing. Step 2 in one fixed frame, the first
joint's: O(n) rotations. `vcrb_in_body_frames` is the naive projection of both steps with O(n^2) of them. A prismatic
joint has f = M Z, n = H x Z.
"""

from bunraku.massmatrix.frames import Links, on_base, outwards
from bunraku.massmatrix.vectors import (
    add,
    both,
    cross,
    dot,
    link_up,
    link_up6,
    matvec,
    scale,
    square,
    turn_z,
    turn_z6,
)


def vcrb(chain, turns):
    n = chain.n
    links = [outwards(chain, turns, j) for j in range(n - 1)]
    forces, M = composite(chain, turns, links)
    R, Z, P = on_base(chain, turns, links)
    for i in range(1, n):
        f, moment = matvec(R[i], forces[i][0]), matvec(R[i], forces[i][1])
        for j in range(i - 1, 0, -1):     # step 2
            moment = add(moment, cross(P[j], f))  # [F, VCR-B, step 2]
            M[j][i] = M[i][j] = dot(Z[j], f if chain.prismatic[j] else moment)
        # the first axis is (0, 0, 1) here
        M[0][i] = M[i][0] = f[2] if chain.prismatic[0] else moment[2] + (P[0][0] * f[1] - P[0][1] * f[0])
    return M


def vcrb_in_body_frames(chain, turns):
    """The same with f and n turned to the next body's frame in every step of step 2."""
    n = chain.n
    links = Links(chain, turns)
    forces, M = composite(chain, turns, links.R)
    arms = [chain.to_next(j, turns) for j in range(n - 1)]
    for i in range(1, n):
        f, moment = forces[i]
        for j in range(i - 1, -1, -1):
            moment = add(moment, cross(arms[j], f))
            f, moment = links.up(j, f), links.up(j, moment)
            M[j][i] = M[i][j] = (f if chain.prismatic[j] else moment)[2]
    return M


def composite(chain, turns, links):
    """Step 1: f(i) and n(i) of every joint in its own frame i, and M with its diagonal."""
    n = chain.n
    masses = chain.masses
    forces: list = [None] * n
    A: list[list] = [[None] * n for _ in range(n)]
    H, K = chain.h[n - 1], chain.k[n - 1]
    for i in range(n - 1, -1, -1):
        if i < n - 1:
            M, P = masses[i + 1], chain.to_next(i, turns)
            MP = scale(P, M)
            K = add(add(add(chain.k[i], K), square(P, MP)), both(P, H))  # [F, VCR-B, step 1]
            H = add(add(chain.h[i], H), MP)
        if chain.prismatic[i]:
            A[i][i] = masses[i]
        if i == 0 and not chain.prismatic[0]:
            A[0][0] = K[5] if n == 1 else _along(chain.twist[0], K)
            break
        # from frame i + 1 to frame i; the last is a turn about z
        if i == n - 1:
            H, K = turn_z(turns[i].c, turns[i].s, H), turn_z6(turns[i].c, turns[i].s, K)
        else:
            H, K = link_up(links[i], H), link_up6(links[i], K)
        if chain.prismatic[i]:
            forces[i] = (0.0, 0.0, masses[i]), (H[1], -H[0], 0.0)
        else:
            forces[i] = (-H[1], H[0], 0.0), (K[2], K[4], K[5])
            A[i][i] = K[5]
    return forces, A


def _along(twist, K):
    """Z . K Z of the first axis, Z = (0, sin, cos) in frame 1. (6, 3)"""
    c, s = twist
    return s * (s * K[3] + c * K[4]) + c * (s * K[4] + c * K[5])
