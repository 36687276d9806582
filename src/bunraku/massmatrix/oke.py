"""Original Kane's equation (OKE): every element of M is a sum over all bodies beyond it. O(n^3).

a_ij = sum_{k >= j} (Z_i x P_k*,i) . m_k (Z_j x P_k*,j) + Z_i . I_k Z_j

[F, "An O(n^3) Algorithm Based on Kane's Equation"]

All in the frame of the last body. P_k*,i points from O(i) to the centre of mass of body k; Z_i x P_k*,i is the partial
velocity of that centre with joint i (Z_i itself if the joint is prismatic, which then has no partial angular velocity).
"""

from bunraku.massmatrix.frames import on_tip
from bunraku.massmatrix.vectors import add, cross, dot, full, matvec, rotated, scale


def oke(chain, turns):
    n = chain.n
    R, Z, P = on_tip(chain, turns)
    S = [matvec(R[k], chain.S[k]) for k in range(n - 1)] + [chain.S[n - 1]]
    I = [rotated(R[k], full(chain.I[k])) for k in range(n - 1)] + [full(chain.I[n - 1])]
    v: list[list] = [[None] * n for _ in range(n)]  # partial velocities V*_k(i), and partial momenta F_k(j), N_k(j)
    F: list[list] = [[None] * n for _ in range(n)]
    N: list[list] = [[None] * n for _ in range(n)]
    for i in range(n):
        arm = None                      # P_k,i
        for k in range(i, n):
            if k > i:
                arm = P[k - 1] if arm is None else add(arm, P[k - 1])
            if chain.prismatic[i]:
                v[k][i] = Z[i]
            else:
                v[k][i] = cross(Z[i], S[k] if arm is None else add(arm, S[k]))
                N[k][i] = matvec(I[k], Z[i])
            F[k][i] = scale(v[k][i], chain.m[k])
    M: list[list] = [[None] * n for _ in range(n)]
    for i in range(n):
        for j in range(i, n):
            a = None
            for k in range(j, n):
                term = dot(v[k][i], F[k][j])  # [F, "An O(n^3) Algorithm Based on Kane's Equation"]
                if not (chain.prismatic[i] or chain.prismatic[j]):
                    term = term + dot(Z[i], N[k][j])
                a = term if a is None else a + term
            M[i][j] = M[j][i] = a
    return M
