"""Axes and arms of a chain projected on one fixed frame, and vectors taken from frame to frame.

Near the fixed frame rotations are simpler than 9 numbers: None for no turn at all, AboutX and AboutZ for one turn.
"""

from typing import Any, NamedTuple

from bunraku.massmatrix.vectors import (
    column_z,
    matvec,
    matvec_xy,
    rotate6,
    then_x,
    then_z,
    turn_x,
    turn_x6,
    turn_z,
    turn_z6,
    x_z_x,
    z_x_z,
)


class AboutX(NamedTuple):
    c: Any
    s: Any


class AboutZ(NamedTuple):
    c: Any
    s: Any


def rotated(R, a):
    """R a. (9, 6) or less"""
    if R is None:
        return a
    if isinstance(R, AboutX):
        return turn_x(*R, a)
    return turn_z(*R, a) if isinstance(R, AboutZ) else matvec(R, a)


def rotated_xy(R, a):
    """R a of a vector without z. (6, 3) or less"""
    if isinstance(R, AboutX):
        return (a[0], R.c * a[1], R.s * a[1])
    return matvec_xy(R, a)


def rotated6(R, K):
    """R K R^T of a constant K. (33, 24) or less"""
    if R is None:
        return K
    if isinstance(R, AboutX):
        return turn_x6(*R, K)
    return turn_z6(*R, K) if isinstance(R, AboutZ) else rotate6(R, K)


def up(chain, turns, j, a):
    """A vector of frame j + 1 in frame j. (8, 4); (4, 2) for the last"""
    if j < chain.n - 1:
        cx, sx = chain.twist[j]
        a = turn_x(cx, sx, a)
    return turn_z(turns[j].c, turns[j].s, a)


def down(chain, turns, j, a):
    """A vector of frame j in frame j + 1. (8, 4); (4, 2) for the last"""
    a = turn_z(turns[j].c, -turns[j].s, a)
    cx, sx = chain.twist[j]
    return turn_x(cx, -sx, a) if j < chain.n - 1 else a


def on_tip(chain, turns):
    """Rotations R(n, j + 1) of bodies, axes Z(j) and arms P(j + 1, j), all in the frame n of the last body.

    R(n, j) = R(n, j + 1) Rx(-alpha) Rz(-theta): (24, 12). The last axis is (0, 0, 1); the turn of the first joint
    moves the ground only.
    """
    n = chain.n
    R: list[Any] = [None] * n
    Z: list[Any] = [None] * n
    P: list[Any] = [None] * (n - 1)
    T: Any = None
    for j in range(n - 1, -1, -1):
        R[j], (cx, sx), (c, s, _) = T, chain.twist[j], turns[j]
        if j < n - 1:
            P[j] = rotated(T, chain.to_next(j, turns))
        if T is None:
            T, Z[j] = AboutZ(c, -s), (0.0, 0.0, 1.0)
        elif j == 0:
            Z[j] = (-(T.s * sx), T.c * sx, cx) if isinstance(T, AboutZ) else _axis(T, cx, sx)
        elif isinstance(T, AboutZ):
            T = z_x_z(T, cx, -sx, c, -s)
            Z[j] = column_z(T)
        else:
            T = then_x(T, cx, -sx)
            T, Z[j] = then_z(T, c, -s), column_z(T)
    return R, Z, P


def on_base(chain, turns):
    """Rotations R(0, j) of frames, axes Z(j) and arms P(j + 1, j), all in the frame 0 that turns with body 0.

    R(0, j + 1) = R(0, j) Rz(theta) Rx(alpha): (24, 12). The first axis is (0, 0, 1), the first rotation a constant.
    """
    n = chain.n
    R: list[Any] = [None] * n
    Z: list[Any] = [(0.0, 0.0, 1.0)] * n
    P: list[Any] = [None] * (n - 1)
    T: Any = None
    for j in range(n - 1):
        (cx, sx), (c, s, _) = chain.twist[j], turns[j]
        if T is None:
            T, Z[j + 1] = AboutX(cx, sx), (0.0, -sx, cx)
        else:
            T = x_z_x(T, c, s, cx, sx) if isinstance(T, AboutX) else then_x(then_z(T, c, s), cx, sx)
            Z[j + 1] = column_z(T)
        R[j + 1], P[j] = T, rotated(T, chain.to_next(j, turns))
    return R, Z, P


def _axis(T, cx, sx):
    """T (0, sin alpha, cos alpha). (6, 3)"""
    return (T[1] * sx + T[2] * cx, T[4] * sx + T[5] * cx, T[7] * sx + T[8] * cx)
