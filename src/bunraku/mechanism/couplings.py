"""Couplings of two joints of a mechanism, as by gears, belts or mimic joints: `couple` and `uncouple`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bunraku.checks import as_number, hint
from bunraku.errors import ModelError, NamingError
from bunraku.mechanism.connections import Coupling


class Couplings:
    """`couple` and `uncouple`; part of `Mechanism`."""

    links: Any
    connections: Any
    couplings: dict[str, Coupling]
    find_joint: Any
    _refuse_if_locked: Any
    _reconnected: Any

    def couple(self, joint: str, to: str, ratio: float = 1.0, offset: float = 0.0) -> Coupling:
        """Make a joint follow another one: q = ratio * q_to + offset, exactly, as by gears without play.

        Both are joints of the tree with one degree of freedom, anywhere in it, by joint name, else by link name; units
        of ratio and offset are those of the joints (rad, m). A joint follows at most one other; chains are allowed.
        The coupling passes a torque to the joint, and -ratio times that to the one it follows.
        """
        self._refuse_if_locked("couple")
        follower, leader = self._end(joint, "couple"), self._end(to, "couple")
        joint, to = self.links[follower].joint_name, self.links[leader].joint_name
        ratio, offset = (as_number(f"couple: {what} of joint {joint!r}", x)
                         for what, x in (("ratio", ratio), ("offset", offset)))
        if follower == leader:
            raise ModelError(f"couple: joint {joint!r} cannot follow itself; name another joint to follow")
        if joint in self.couplings:
            raise ModelError(f"couple: joint {joint!r} already follows {self.couplings[joint].to!r}; a joint follows "
                             f"one other: m.uncouple({joint!r}) first, or couple {to!r} to {joint!r}")
        path = [to]
        while path[-1] in self.couplings:
            path.append(self.couplings[path[-1]].to)
            if path[-1] == joint:
                raise ModelError(f"couple: joint {joint!r} would follow itself through "
                                 f"{', '.join(map(repr, path[:-1]))}; uncouple one of them")
        coupling = Coupling(joint, to, ratio, offset, follower, leader)
        dict.__setitem__(self.couplings, joint, coupling)
        self._reconnected()
        return coupling

    def uncouple(self, joint: str) -> None:
        """Remove the coupling by which a joint follows another one."""
        self._refuse_if_locked("uncouple")
        follower = self.find_joint(joint, "uncouple: ")
        found = next((name for name, c in self.couplings.items() if c.follower == follower), None)
        if found is None:
            name = self.links[follower].joint_name
            led = [c.joint for c in self.couplings.values() if c.leader == follower]
            raise NamingError(f"uncouple: joint {name!r} follows no other joint" + (
                f"; it leads: uncouple {', '.join(map(repr, led))}" if led else hint(name, list(self.couplings))))
        dict.__delitem__(self.couplings, found)
        self._reconnected()

    def _end(self, name: str, what: str) -> int:
        index = self.find_joint(name, f"{what}: ")
        link = self.links[index]
        if link.joint.nv != 1:
            raise ModelError(f"{what}: joint {link.joint_name!r} is a {type(link.joint).__name__} with {link.joint.nv} "
                             "degrees of freedom; couplings are of joints with one, such as bk.Revolute")
        return index

    def _drop_couplings(self, index: int) -> None:
        """Forget the couplings of a joint that is no longer there."""
        for name in [name for name, c in self.couplings.items() if index in (c.follower, c.leader)]:
            dict.__delitem__(self.couplings, name)

    def rename_coupled(self, index: int, name: str) -> None:
        """A joint has another name."""
        renamed = [replace(c, joint=name if c.follower == index else c.joint, to=name if c.leader == index else c.to)
                   for c in self.couplings.values()]
        dict.clear(self.couplings)
        for c in renamed:
            dict.__setitem__(self.couplings, c.joint, c)
