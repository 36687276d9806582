"""Axes and arms of a chain projected on one fixed frame, and vectors taken from frame to frame.

Rotations are matrices, as in [F]: R(j, j + 1) is made of four products, and has one zero.
"""

from typing import Any

from bunraku.massmatrix.vectors import column_z, link_down, link_up, matmul, matvec, transposed


def outwards(chain, turns, j):
    """R(j, j + 1) = Rz(theta) Rx(alpha). (4, 0)"""
    (c, s, _), (cx, sx) = turns[j], chain.twist[j]
    return (c, -(s * cx), s * sx, s, c * cx, -(c * sx), 0.0, sx, cx)


def inwards(chain, turns, j):
    """R(j + 1, j). (4, 0)"""
    return transposed(outwards(chain, turns, j))


class Links:
    """R(j, j + 1) of all joints. (4 n, 0)"""

    def __init__(self, chain, turns):
        self.R = [outwards(chain, turns, j) for j in range(chain.n)]

    def up(self, j, a):
        """A vector of frame j + 1 in frame j. (8, 5)"""
        return link_up(self.R[j], a)

    def down(self, j, a):
        """A vector of frame j in frame j + 1. (8, 5)"""
        return link_down(self.R[j], a)


def on_tip(chain, turns):
    """Rotations R(n, j + 1) of bodies, axes Z(j) and arms P(j + 1, j), all in the frame n of the last body.

    4 m for every joint, 36 m 24 a for every one but the last, whose body is in that frame already (R is None).
    """
    n = chain.n
    R: list[Any] = [None] * n
    Z: list[Any] = [None] * n
    P: list[Any] = [None] * (n - 1)
    T = inwards(chain, turns, n - 1)
    Z[n - 1] = column_z(T)
    for j in range(n - 2, -1, -1):
        R[j], P[j] = T, matvec(T, chain.to_next(j, turns))
        T = matmul(T, inwards(chain, turns, j))
        Z[j] = column_z(T)
    return R, Z, P


def on_base(chain, turns, links):
    """Rotations R(0, j) of frames (j > 0), axes Z(j) and arms P(j + 1, j), all in the frame 0 of the first joint.

    9 m 6 a for every joint but the last, 27 m 18 a for every one but the first and the last.
    """
    n = chain.n
    R: list[Any] = [None] * n
    Z: list[Any] = [(0.0, 0.0, 1.0)] * n
    P: list[Any] = [None] * (n - 1)
    for j in range(n - 1):
        R[j + 1] = links[0] if j == 0 else matmul(R[j], links[j])
        Z[j + 1], P[j] = column_z(R[j + 1]), matvec(R[j + 1], chain.to_next(j, turns))
    return R, Z, P
