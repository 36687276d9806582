"""States between our coordinates and those of another library: the blocks of all joints, each in its place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bunraku.checks import aligned
from bunraku.convert.blocks import Block, apply
from bunraku.mechanism import Mechanism


@dataclass(frozen=True)
class Placed:
    """A block and where its coordinates start on either side."""

    block: Block
    q: int
    v: int
    q_other: int
    v_other: int


class Converter:
    """From our coordinates to another library's; `back` is the way back.

    library         whose convention
    nq, nv          how many coordinates and velocities there are on that side
    joint_names     our joints, in the order in which that side has their velocities
    """

    def __init__(self, mechanism: Mechanism, library: str, placed: list[Placed]):
        self.mechanism, self.library = mechanism, library
        self.nq = sum(p.block.nq_other for p in placed)
        self.nv = sum(p.block.nv for p in placed)
        plain = [p for p in placed if type(p.block) is Block]
        self._q_pairs = _pairs([(p.q, p.q_other, p.block.nq) for p in plain])
        turning = [p for p in placed if _turns(p.block)]
        self._v_pairs = _pairs([(p.v, p.v_other, p.block.nv) for p in placed if not _turns(p.block)])
        self._shaped = [p for p in placed if type(p.block) is not Block]
        self._turning = turning
        owner = {mechanism.v_slice(link.joint_name).start: link.joint_name for link in mechanism.links if link.joint.nv}
        starts = [start for start in (p.v for p in sorted(placed, key=lambda p: p.v_other)) if start in owner]
        self.joint_names = [owner[start] for start in starts]
        self.back = Back(self)

    def q(self, q) -> np.ndarray:
        """Our q as theirs; quaternions come out of unit length."""
        batch, (q,) = aligned(("q", q, self.mechanism.nq))
        ours, theirs = self._q_pairs
        out = np.empty((*q.shape[:-1], self.nq))
        out[..., theirs] = q[..., ours]
        for p in self._shaped:
            out[..., p.q_other:p.q_other + p.block.nq_other] = p.block.q(q[..., p.q:p.q + p.block.nq])
        return out

    def v(self, q, v) -> np.ndarray:
        """Our v at our q as theirs."""
        return self._turn(q, v, "v")

    def tau(self, q, tau) -> np.ndarray:
        """Our generalised forces at our q as theirs: the same power."""
        return self._turn(q, tau, "tau")

    def a(self, q, v, a) -> np.ndarray:
        """The time derivative of our v's components, at our q and v, as that of theirs."""
        return self._turn(q, a, "a") + self._drift(q, v)

    def _turn(self, q, x, what) -> np.ndarray:
        batch, (q, x) = aligned(("q", q, self.mechanism.nq), (what, x, self.mechanism.nv))
        ours, theirs = self._v_pairs
        out = np.empty((*x.shape[:-1], self.nv))
        out[..., theirs] = x[..., ours]
        for p in self._turning:
            T = p.block.rate(q[..., p.q:p.q + p.block.nq])
            out[..., p.v_other:p.v_other + p.block.nv] = apply(T, x[..., p.v:p.v + p.block.nv])
        return out

    def _drift(self, q, v) -> np.ndarray:
        batch, (q, v) = aligned(("q", q, self.mechanism.nq), ("v", v, self.mechanism.nv))
        out = np.zeros((*v.shape[:-1], self.nv))
        for p in self._turning:
            out[..., p.v_other:p.v_other + p.block.nv] = p.block.drift(q[..., p.q:p.q + p.block.nq],
                                                                       v[..., p.v:p.v + p.block.nv])
        return out

    def __repr__(self):
        return f"Converter of {self.mechanism.name} to {self.library}: nq {self.nq}, nv {self.nv}"


class Back:
    """From another library's coordinates to ours; every argument is theirs."""

    def __init__(self, forth: Converter):
        self.forth = forth

    def q(self, q) -> np.ndarray:
        """Their q as ours."""
        batch, (q,) = aligned(("q", q, self.forth.nq))
        ours, theirs = self.forth._q_pairs
        out = np.empty((*q.shape[:-1], self.forth.mechanism.nq))
        out[..., ours] = q[..., theirs]
        for p in self.forth._shaped:
            out[..., p.q:p.q + p.block.nq] = p.block.q_back(q[..., p.q_other:p.q_other + p.block.nq_other])
        return out

    def v(self, q, v) -> np.ndarray:
        """Their v at their q as ours."""
        return self._turn(self.q(q), v, "v")

    def tau(self, q, tau) -> np.ndarray:
        """Their generalised forces at their q as ours."""
        return self._turn(self.q(q), tau, "tau")

    def a(self, q, v, a) -> np.ndarray:
        """The time derivative of their v's components as that of ours."""
        q = self.q(q)
        batch, (_, a) = aligned(("v", v, self.forth.nv), ("a", a, self.forth.nv))
        return self._turn(q, a - self.forth._drift(q, self._turn(q, v, "v")), "a")

    def _turn(self, q, x, what) -> np.ndarray:
        batch, (q, x) = aligned(("q", q, self.forth.mechanism.nq), (what, x, self.forth.nv))
        ours, theirs = self.forth._v_pairs
        out = np.empty((*x.shape[:-1], self.forth.mechanism.nv))
        out[..., ours] = x[..., theirs]
        for p in self.forth._turning:
            T = np.swapaxes(p.block.rate(q[..., p.q:p.q + p.block.nq]), -1, -2)
            out[..., p.v:p.v + p.block.nv] = apply(T, x[..., p.v_other:p.v_other + p.block.nv])
        return out

    def __repr__(self):
        return f"the way back of {self.forth!r}"


def _turns(block: Block) -> bool:
    return type(block).rate is not Block.rate


def _pairs(places) -> tuple[np.ndarray, np.ndarray]:
    """Index arrays of coordinates that are only moved: ours, theirs."""
    ours = [a + k for a, _, n in places for k in range(n)]
    theirs = [b + k for _, b, n in places for k in range(n)]
    return np.array(ours, int), np.array(theirs, int)
