"""Variant of the Newton-Euler based algorithm (VN-EB): only bodies beyond joint j move, all in one frame. O(n^2).

[F, "A Variant of Newton-Euler Based Algorithm"], with V'(j, j) = 0, h x V' in N and a = Z(i) . N(n + 1, i, j):

    step 1   V'(i, j) = V'(i - 1, j) + Z(j) x P(i, i - 1)
             F(i + 1, i, j) = m(i) V'(i, j) + Z(j) x h(i)
             N(i + 1, i, j) = k(i) Z(j) + h(i) x V'(i, j)
    step 2   F(n + 1, i, j) = F(i + 1, i, j) + F(n + 1, i + 1, j)
             N(n + 1, i, j) = N(i + 1, i, j) + N(n + 1, i + 1, j) + P(i + 1, i) x F(n + 1, i + 1, j)
             a_ji = Z(i) . N(n + 1, i, j)

Any fixed frame needs O(n) rotations; the last body's has its own constants ready. `vneb_in_body_frames` is the naive
projection that needs O(n^2) of them. A prismatic joint j has no angular acceleration and V' = Z(j) everywhere.
"""

from typing import Any

from bunraku.massmatrix.frames import Links, on_tip
from bunraku.massmatrix.vectors import add, cross, dot, full, matvec, rotated, scale, symvec


def vneb(chain, turns):
    n = chain.n
    R, Z, P = on_tip(chain, turns)
    h = [matvec(R[i], chain.h[i]) for i in range(n - 1)] + [chain.h[n - 1]]
    k = [rotated(R[i], full(chain.k[i])) for i in range(n - 1)] + [full(chain.k[n - 1])]
    M: list[list] = [[None] * n for _ in range(n)]
    for j in range(n):
        slides = chain.prismatic[j]
        F: list = [None] * n
        N: list = [None] * n
        V = Z[j] if slides else None
        for i in range(j, n):       # step 1
            if slides:
                F[i], N[i] = scale(V, chain.m[i]), cross(h[i], V)
            elif i == j:            # V' = 0
                F[i], N[i] = cross(Z[j], h[i]), matvec(k[i], Z[j])
            else:
                step = cross(Z[j], P[i - 1])  # [F, VN-EB, step 1]
                V = step if V is None else add(V, step)
                F[i] = add(scale(V, chain.m[i]), cross(Z[j], h[i]))
                N[i] = add(matvec(k[i], Z[j]), cross(h[i], V))
        f: Any = None
        moment: Any = None
        for i in range(n - 1, j - 1, -1):  # step 2
            if i == n - 1:
                f, moment = F[i], N[i]
            else:
                moment = add(add(N[i], moment), cross(P[i], f))
                f = add(F[i], f)
            M[j][i] = M[i][j] = dot(Z[i], f if chain.prismatic[i] else moment)  # [F, VN-EB, step 2]
    return M


def vneb_in_body_frames(chain, turns):
    """The same with body i's equations in its own frame: Z(j), V' and the sums are turned at every step."""
    n = chain.n
    links = Links(chain, turns)
    arms = [chain.to_next(i, turns) for i in range(n - 1)]
    M: list[list] = [[None] * n for _ in range(n)]
    for j in range(n):
        slides = chain.prismatic[j]
        F: list = [None] * n
        N: list = [None] * n
        cx, sx = chain.twist[j]
        Z = (0.0, sx, cx)           # in frame j + 1
        V = Z if slides else None
        for i in range(j, n):
            if i > j:
                Z = links.down(i, Z)
                V = Z if slides else links.down(i, V)
            if slides:
                F[i], N[i] = scale(V, chain.m[i]), cross(chain.h[i], V)
            elif i == j:
                F[i], N[i] = cross(Z, chain.h[i]), symvec(chain.k[i], Z)
            else:
                F[i] = add(scale(V, chain.m[i]), cross(Z, chain.h[i]))
                N[i] = add(symvec(chain.k[i], Z), cross(chain.h[i], V))
            if i < n - 1 and not slides:  # acceleration of O(i + 1)
                step = cross(Z, arms[i])
                V = step if V is None else add(V, step)
        f: Any = None
        moment: Any = None
        for i in range(n - 1, j - 1, -1):
            if i == n - 1:
                f, moment = F[i], N[i]
            else:
                moment = add(add(N[i], moment), cross(arms[i], f))
                f = add(F[i], f)
            f, moment = links.up(i, f), links.up(i, moment)
            M[j][i] = M[i][j] = (f if chain.prismatic[i] else moment)[2]
    return M
