"""Original composite rigid body algorithm (OCR-B): Walker and Orin (1982), method 3, in body frames. O(n^2).

Everything beyond joint i is one rigid body of mass M, centre of mass C and inertia E about it; accelerating it about
joint i takes a force and a moment, which are taken from frame to frame towards the ground. [F] gives no listing.
"""

from bunraku.massmatrix.frames import up
from bunraku.massmatrix.vectors import add, add6, cross, scale, shift_square, sub, turn_x, turn_x6, turn_z, turn_z6


def ocrb(chain, turns):
    n = chain.n
    arms = [chain.to_next(j, turns) for j in range(n - 1)]
    M: list[list] = [[None] * n for _ in range(n)]
    mass = C = E = None
    for i in range(n - 1, -1, -1):
        m, S, I = chain.m[i], chain.S[i], chain.I[i]
        if mass is None:
            mass, C, E = m, S, I
        else:                             # two bodies in one, about their common centre, frame i + 1
            total = mass + m
            beyond = add(C, arms[i])
            C = add(scale(S, _share(m, total)), scale(beyond, _share(mass, total)))
            E = add6(add6(add6(E, I), shift_square(sub(beyond, C), mass)), shift_square(sub(S, C), m))
            mass = total
        if i < n - 1:
            cx, sx = chain.twist[i]
            C, E = turn_x(cx, sx, C), turn_x6(cx, sx, E)
        C, E = turn_z(turns[i].c, turns[i].s, C), turn_z6(turns[i].c, turns[i].s, E)
        if chain.prismatic[i]:            # force M Z, moment C x M Z
            f = (0.0, 0.0, mass)
            moment = (C[1] * mass, -(C[0] * mass), 0.0)
            M[i][i] = mass
        else:                             # force Z x M C, moment E Z + C x f
            f = (-(C[1] * mass), C[0] * mass, 0.0)
            moment = (E[2] - C[2] * f[1], E[4] + C[2] * f[0], E[5] + C[0] * f[1] - C[1] * f[0])
            M[i][i] = moment[2]
        for j in range(i - 1, -1, -1):
            moment = add(moment, cross(arms[j], f))
            f, moment = up(chain, turns, j, f), up(chain, turns, j, moment)
            M[j][i] = M[i][j] = (f if chain.prismatic[j] else moment)[2]
    return M


def _share(part, whole):
    return part / whole if whole else 0.0
