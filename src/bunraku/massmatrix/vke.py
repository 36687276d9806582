"""Variant of Kane's equation (VKE): the sums of OKE gathered from the tip inwards. O(n^2).

For column i, with the partial momenta of every body beyond it [F, "An O(n^2) Algorithm Based on Kane's Equation"]:

    P_j,i = P_j-1,i + P_j,j-1,    P_j*,i = P_j,i + S_j,    N_j(i) = I_j Z_i,    F_j(i) = m_j (Z_i x P_j*,i)
    f_j(i) = F_j(i) + f_j+1(i),   n_j(i) = N_j(i) + S_j x F_j(i) + n_j+1(i) + P_j+1,j x f_j+1(i),   a_ij = Z_j . n_j(i)

All in the frame of the last body.
"""

from bunraku.massmatrix.frames import on_tip
from bunraku.massmatrix.vectors import add, cross, dot, full, matvec, rotated, scale


def vke(chain, turns):
    n = chain.n
    R, Z, P = on_tip(chain, turns)
    S = [matvec(R[j], chain.S[j]) for j in range(n - 1)] + [chain.S[n - 1]]
    I = [rotated(R[j], full(chain.I[j])) for j in range(n - 1)] + [full(chain.I[n - 1])]
    M: list[list] = [[None] * n for _ in range(n)]
    for i in range(n):
        F: list = [None] * n
        N: list = [None] * n
        arm = None
        for j in range(i, n):
            if j > i:
                arm = P[j - 1] if arm is None else add(arm, P[j - 1])
            if chain.prismatic[i]:
                F[j] = scale(Z[i], chain.m[j])
                N[j] = cross(S[j], F[j])
            else:
                F[j] = scale(cross(Z[i], S[j] if arm is None else add(arm, S[j])), chain.m[j])
                N[j] = add(matvec(I[j], Z[i]), cross(S[j], F[j]))
        f = moment = None
        for j in range(n - 1, i - 1, -1):
            if f is None:
                moment = N[j]
            else:
                moment = add(add(N[j], moment), cross(P[j], f))
            f = F[j] if f is None else add(F[j], f)
            # [F, "An O(n^2) Algorithm Based on Kane's Equation"]
            M[i][j] = M[j][i] = dot(Z[j], f if chain.prismatic[j] else moment)
    return M
