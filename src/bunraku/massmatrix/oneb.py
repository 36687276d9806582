"""Original Newton-Euler based algorithm (ON-EB): inverse dynamics once for every column, in body frames. O(n^2).

Column j of M is the inverse dynamics of a unit acceleration of joint j at rest [F, eqs. 2-3]. Luh, Walker and
Paul (1980), as Walker and Orin (1982) use it in their method 1: every column sweeps the whole chain out and back, and
every step takes vectors to the next body's frame. [F] gives no listing.
"""

from bunraku.massmatrix.frames import Links
from bunraku.massmatrix.vectors import add, cross, scale, symvec


def oneb(chain, turns):
    n = chain.n
    links = Links(chain, turns)
    M: list[list] = [[None] * n for _ in range(n)]
    arms = [chain.to_next(j, turns) for j in range(n - 1)]
    for column in range(n):
        F, N = [], []
        alpha = a = (0.0, 0.0, 0.0)       # angular acceleration, acceleration of O(i); ground
        for i in range(n):                # outwards, body i in frame i + 1
            if i == column and chain.prismatic[i]:
                a = (a[0], a[1], a[2] + 1.0)
            elif i == column:
                alpha = (alpha[0], alpha[1], alpha[2] + 1.0)  # [F, eq. 3]
            alpha, a = links.down(i, alpha), links.down(i, a)
            F.append(scale(add(a, cross(alpha, chain.S[i])), chain.m[i]))
            N.append(add(symvec(chain.I[i], alpha), cross(chain.S[i], F[i])))
            if i < n - 1:
                a = add(a, cross(alpha, arms[i]))
        f = moment = None
        for i in range(n - 1, -1, -1):    # inwards, then on to frame i
            if f is None:
                f, moment = F[i], N[i]
            else:
                moment = add(N[i], add(moment, cross(arms[i], f)))
                f = add(F[i], f)
            f, moment = links.up(i, f), links.up(i, moment)
            if i <= column:               # symmetric: the other half is another column's
                M[i][column] = M[column][i] = (f if chain.prismatic[i] else moment)[2]  # [F, eq. 2]
    return M
