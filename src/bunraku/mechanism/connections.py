"""Structure changes [YN99]: loop-closing joints, the family of every link, and the mapping of states across a cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bunraku.mechanism.joints import Joint
from bunraku.mechanism.readonly import read_only, sealed

if TYPE_CHECKING:
    from bunraku.mechanism.mechanism import Mechanism


@sealed
@dataclass(frozen=True, eq=False)
class Connection:
    """A joint that closes a loop: link b's joint frame moves in link a's as the joint allows; b is the child side."""

    name: str
    link_a: int             # index of the link, -1 for ground
    link_b: int
    joint: Joint
    actuated: bool
    position_a: np.ndarray  # joint frame in link a's frame [m]
    rotation_a: np.ndarray  # 3x3
    position_b: np.ndarray  # joint frame in link b's frame [m]
    rotation_b: np.ndarray  # 3x3

    def __post_init__(self):
        for name in ("position_a", "rotation_a", "position_b", "rotation_b"):
            self.__dict__[name] = read_only(getattr(self, name), self.how_to_change(name))

    def how_to_change(self, name, value="...") -> str:
        if name in ("joint", "actuated") or name not in self.__dataclass_fields__:
            return (f"connection {self.name!r} is read-only: m = m.with_joint({self.name!r}, {name}={value!r}) returns "
                    "a mechanism with the change")
        return f"connection {self.name!r} is read-only: cut it, and connect anew with another {name}"


@sealed
@dataclass(frozen=True, eq=False)
class Coupling:
    """Two joints of one degree of freedom that move together, as by gears: q = ratio q_to + offset."""

    joint: str     # name of the joint that follows
    to: str        # name of the joint that leads
    ratio: float
    offset: float  # [rad, m]
    follower: int  # index of the link that the joint moves
    leader: int

    @property
    def equation(self) -> str:
        """For example "finger2 = -0.5 finger1 + 0.1"."""
        ratio = {1.0: "", -1.0: "-"}.get(self.ratio, f"{self.ratio:g} ")
        offset = f" {'+' if self.offset > 0 else '-'} {abs(self.offset):g}" if self.offset else ""
        return f"{self.joint} = {ratio}{self.to}{offset}"

    def how_to_change(self, name, value="...") -> str:
        return (f"the coupling of joint {self.joint!r} is read-only: m.uncouple({self.joint!r}), and couple anew with "
                f"another {name}")


class Family(NamedTuple):
    """The pointers of [YN99, sec. 3], by name; None where a link has no such relative.

    A connection is a virtual link: without mass, under link a, named as the connection; `real` is its link b.
    """

    parent: str | None
    child: str | None    # the first
    brother: str | None  # the next child of the same parent
    real: str | None


def families(mechanism: Mechanism) -> dict[str, Family]:
    """The family of every link, of every connection and of the ground; virtual children come after the real ones."""
    names = [*mechanism.link_names, "ground"]
    real: dict[str, str | None] = dict.fromkeys(names)
    parent: dict[str, str | None] = {"ground": None, **{link.name: names[link.parent] for link in mechanism.links}}
    for name, connection in mechanism.connections.items():
        parent[name], real[name] = names[connection.link_a], names[connection.link_b]
    child: dict[str, str] = {}
    youngest: dict[str, str] = {}
    brother: dict[str, str] = {}
    for name, above in parent.items():
        if above is None:
            continue
        if above in youngest:
            brother[youngest[above]] = name
        else:
            child[above] = name
        youngest[above] = name
    return {name: Family(parent[name], child.get(name), brother.get(name), real[name]) for name in parent}


class Carry:
    """Maps states before a cut to states after it: `q, v = carry(q, v)`, one state or a batch.

    Every link keeps its pose and its velocity. `link` is the one now connected to the ground by a Free joint; None
    if a connection was cut, which changes no coordinates.
    """

    def __init__(self, before: Mechanism, link: int | None):
        self._before, self._link = before, link

    def __call__(self, q, v) -> tuple[np.ndarray, np.ndarray]:
        from bunraku.checks import aligned
        from bunraku.entries.kinematics_entries import observation

        before = self._before
        _, (q, v) = aligned(("q", q, before.nq), ("v", v, before.nv))
        if self._link is None:
            return q.copy(), v.copy()
        state = observation(before.plan(), q, v)[0][..., self._link, :]
        turn = state[..., :9].reshape(*state.shape[:-1], 3, 3)
        # the velocity of the link frame, from world axes to its own
        linear = np.einsum("...kj,...k->...j", turn, state[..., 15:18])
        angular = np.einsum("...kj,...k->...j", turn, state[..., 12:15])
        name = before.links[self._link].joint_name
        at_q, at_v = before.q_slice(name), before.v_slice(name)
        return (np.concatenate([q[..., :at_q.start], state[..., 9:12], quaternion(turn), q[..., at_q.stop:]], axis=-1),
                np.concatenate([v[..., :at_v.start], linear, angular, v[..., at_v.stop:]], axis=-1))

    def __repr__(self):
        name = None if self._link is None else self._before.links[self._link].joint_name
        return f"Carry across the cut of {'a connection' if name is None else f'joint {name!r}'}"


def quaternion(R: np.ndarray) -> np.ndarray:
    """Unit quaternions w x y z of rotations (..., 3, 3)."""
    trace = R[..., 0, 0] + R[..., 1, 1] + R[..., 2, 2]
    # 4 times the outer product of the quaternion with itself: the row with the largest diagonal is the safest
    K = np.empty((*R.shape[:-2], 4, 4))
    K[..., 0, 0] = 1.0 + trace
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        K[..., 0, 1 + i] = K[..., 1 + i, 0] = R[..., k, j] - R[..., j, k]
        K[..., 1 + i, 1 + i] = 1.0 - trace + 2.0 * R[..., i, i]
        K[..., 1 + i, 1 + j] = K[..., 1 + j, 1 + i] = R[..., i, j] + R[..., j, i]
    row = np.argmax(np.diagonal(K, axis1=-2, axis2=-1), axis=-1)
    found = np.take_along_axis(K, row[..., None, None], axis=-2)[..., 0, :]
    return found / np.linalg.norm(found, axis=-1, keepdims=True)
