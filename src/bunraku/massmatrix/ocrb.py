"""Original composite rigid body algorithm (OCR-B): Walker and Orin (1982), method 3, in body frames. O(n^2).

Everything beyond joint i is one rigid body of mass M, centre of mass C and inertia E about it; accelerating it about
joint i takes a force and a moment, which are taken from frame to frame towards the ground. [F] gives no listing.
"""

from bunraku.massmatrix.frames import Links
from bunraku.massmatrix.vectors import add, cross, link_up, link_up6, scale, square, sub, turn_z, turn_z6


def ocrb(chain, turns):
    n = chain.n
    links = Links(chain, turns)
    arms = [chain.to_next(j, turns) for j in range(n - 1)]
    M: list[list] = [[None] * n for _ in range(n)]
    mass = C = E = None
    for i in range(n - 1, -1, -1):
        m, S, I = chain.m[i], chain.S[i], chain.I[i]
        if mass is None:
            mass, C, E = m, S, I
        else:                             # two bodies in one, about their common centre, frame i + 1
            beyond = add(C, arms[i])
            C = add(scale(S, chain.share[i]), scale(beyond, chain.rest[i]))
            E = add(add(add(E, I), _moved(sub(beyond, C), mass)), _moved(sub(S, C), m))
            mass = chain.masses[i]
        if i == n - 1:                    # from frame i + 1 to frame i; the last is a turn about z
            C, E = turn_z(turns[i].c, turns[i].s, C), turn_z6(turns[i].c, turns[i].s, E)
        else:
            C, E = link_up(links.R[i], C), link_up6(links.R[i], E)
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
            f, moment = links.up(j, f), links.up(j, moment)
            M[j][i] = M[i][j] = (f if chain.prismatic[j] else moment)[2]
    return M


def _moved(P, M):
    """-M P^ P^. (9, 3)"""
    return square(P, scale(P, M))
