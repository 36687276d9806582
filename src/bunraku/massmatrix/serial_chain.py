"""A serial chain in the frames of [F]: axes of joints along z, neighbours a turn about z and a twist about x apart.

Body j (0 to n - 1) hangs on joint j. Frame j sits at O(j) on the axis of joint j, its z along it, and belongs to body
j - 1; frame j + 1 belongs to body j, so what is constant in body j is given there:

    R(j, j + 1) = Rz(theta_j) Rx(alpha_j),    Z(j) = (0, sin alpha_j, cos alpha_j) in frame j + 1

The twist of the last body is zero. [F] numbers bodies from 1; its P(j + 1, j) is `P[j]` here.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bunraku.plan import fields as f
from bunraku.plan.build import Plan


class Unsuitable(Exception):
    """A mechanism is not a serial chain of revolute and prismatic joints: the body, and the reason."""

    def __init__(self, body: int, branches: bool):
        super().__init__("branches off" if branches else "is neither")
        self.body, self.branches = body, branches


class Turn(NamedTuple):
    """State of one joint: cosine and sine of theta, and its displacement."""

    c: Any
    s: Any
    d: Any


@dataclass(eq=False)
class Chain:
    """Constants of a chain, bodies from the ground outwards."""

    prismatic: list[bool]
    angle: list[float]      # theta at q = 0
    twist: list[tuple]      # cosine and sine of alpha
    P: list[tuple]          # from O(j) to O(j + 1), frame j + 1 [m]; before joint j + 1 slides; of all but the last
    m: list[float]          # mass [kg]
    S: list[tuple]          # centre of mass from O(j) [m]
    h: list[tuple]          # first moment about O(j) [kg m]
    k: list[tuple]          # second moment about O(j) [kg m^2]
    I: list[tuple]          # inertia about the centre of mass [kg m^2]
    place: list[int]        # which velocity the joint is
    masses: list[float] = field(default_factory=list)  # of the bodies j to n - 1 together
    share: list[float] = field(default_factory=list)   # of them, the part that body j has
    rest: list[float] = field(default_factory=list)    # and the part of those beyond it

    def turns(self, q) -> list[Turn]:
        """Joint states of a state (n,), or of a batch (B, n) as arrays."""
        q = np.asarray(q, float)
        out = []
        for j, v in enumerate(self.place):
            x = q[..., v]
            x = float(x) if x.ndim == 0 else np.ascontiguousarray(x)
            if self.prismatic[j]:
                out.append(Turn(math.cos(self.angle[j]), math.sin(self.angle[j]), x))
            else:
                theta = self.angle[j] + x
                c, s = (math.cos(theta), math.sin(theta)) if isinstance(x, float) else (np.cos(theta), np.sin(theta))
                out.append(Turn(c, s, 0.0))
        return out

    def to_next(self, j: int, turns) -> tuple:
        """P(j + 1, j) in frame j + 1 at this state: the next joint may have slid along its z."""
        if not self.prismatic[j + 1]:
            return self.P[j]
        x, y, z = self.P[j]
        return (x, y, z + turns[j + 1].d)

    @property
    def n(self) -> int:
        return len(self.m)

    def compose(self) -> Chain:
        """Fill in the masses of composite bodies."""
        self.masses = list(itertools.accumulate(reversed(self.m)))[::-1]
        self.share = [part / whole if whole else 0.0 for part, whole in zip(self.m, self.masses, strict=True)]
        self.rest = [1.0 - share for share in self.share]
        return self


def chain_of(plan: Plan) -> Chain:
    """A plan as a serial chain in the frames of [F]; `Unsuitable` if it is not one."""
    body_i, body_f = plan.body_i, plan.body_f
    n = plan.bodies
    for i in range(n):
        kind, turn, slide = body_i[i, f.KIND], body_f[i, f.RATE_ANGULAR], body_f[i, f.RATE_LINEAR]
        if body_i[i, f.PARENT] != i - 1:
            raise Unsuitable(i, branches=True)
        if kind != f.REVOLUTE and not (kind == f.SCREW and turn == 0.0 and slide == 1.0):
            raise Unsuitable(i, branches=False)
    # Rotation of joint frame i in body i - 1:  Rz(before) Rx(alpha) Rz(after)
    before, alpha, after = np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1)
    for i in range(1, n):
        before[i], alpha[i], after[i] = _zxz(body_f[i, f.ROTATION:f.ROTATION + 9].reshape(3, 3))
    chain = Chain([], [], [], [], [], [], [], [], [], [])
    for i in range(n):
        row = body_f[i]
        G = (_about_z(before[i + 1]) @ _about_x(alpha[i + 1])).T  # from body axes to those of frame i + 1
        S, inertia = G @ row[f.COM:f.COM + 3], G @ _full(row[f.INERTIA:f.INERTIA + 6]) @ G.T
        m = float(row[f.MASS])
        k = inertia + m * (S @ S * np.eye(3) - np.outer(S, S))
        chain.prismatic.append(bool(body_i[i, f.KIND] != f.REVOLUTE))
        chain.angle.append(float(after[i] + before[i + 1]))
        chain.twist.append((math.cos(alpha[i + 1]), math.sin(alpha[i + 1])))
        if i + 1 < n:
            offset = body_f[i + 1, f.OFFSET:f.OFFSET + 3]
            chain.P.append(tuple(map(float, _about_z(after[i + 1]) @ offset)))
        chain.m.append(m)
        chain.S.append(tuple(map(float, S)))
        chain.h.append(tuple(map(float, m * S)))
        chain.k.append(_six(k))
        chain.I.append(_six(inertia))
        chain.place.append(int(body_i[i, f.V_INDEX]))
    return chain.compose()


def generic_chain(n: int, seed: int = 0) -> Chain:
    """A chain of n revolute joints in which no constant is zero, for counting operations."""
    rng = np.random.default_rng(seed)
    chain = Chain([False] * n, rng.normal(size=n).tolist(), [], [], [], [], [], [], [], list(range(n)))
    for j in range(n):
        alpha = rng.uniform(0.3, 1.2) if j < n - 1 else 0.0
        shape = rng.normal(size=(3, 3))
        inertia, m, S = shape @ shape.T + np.eye(3), rng.uniform(1.0, 2.0), rng.normal(size=3)
        chain.twist.append((math.cos(alpha), math.sin(alpha)))
        if j < n - 1:
            chain.P.append(tuple(rng.normal(size=3).tolist()))
        chain.m.append(m)
        chain.S.append(tuple(S.tolist()))
        chain.h.append(tuple((m * S).tolist()))
        chain.k.append(_six(inertia + m * (S @ S * np.eye(3) - np.outer(S, S))))
        chain.I.append(_six(inertia))
    return chain.compose()


def _zxz(C):
    """Angles of Rz Rx Rz = C. The last is found first and the others from what remains, so all digits stay even
    where the axes are almost parallel."""
    last = math.atan2(C[2, 0], C[2, 1]) if C[2, 0] or C[2, 1] else 0.0
    C = C @ _about_z(-last)
    middle = math.atan2(C[2, 1], C[2, 2])
    C = C @ _about_x(-middle)
    return math.atan2(C[1, 0], C[0, 0]), middle, last


def _about_z(angle):
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _about_x(angle):
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def _full(six):
    xx, xy, xz, yy, yz, zz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _six(K):
    return tuple(map(float, (K[0, 0], K[0, 1], K[0, 2], K[1, 1], K[1, 2], K[2, 2])))
