"""Schedules: in which order a structure is assembled.

A schedule is a binary tree whose leaves are links and whose nodes are joints [YN02, sec. 5.1]; here the order in which
joints and connections are added, from which the tree follows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bunraku.checks import as_count
from bunraku.errors import ModelError, NamingError
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism

CLOSINGS = ("inside", "together")


class Schedule:
    """An order of assembly for `forward_dynamics(..., schedule=)`.

    order    names of all tree joints and connections; None: the order for one processor, tips to root
    closing  how loops are closed [YN02, sec. 4.3]: "inside", a connection within one subchain, each by itself; or
             "together", all connections between two subchains at once with the joint that joins them

    Results do not depend on it beyond rounding. A connection whose turn comes before its links hang together waits
    until they do. `depth` is how many joins lie above the deepest link.
    """

    def __init__(self, mechanism: Mechanism, order: Sequence[str] | None = None, closing: str = "inside"):
        if closing not in CLOSINGS:
            raise ModelError(f"closing {closing!r} is not one of {', '.join(CLOSINGS)}")
        joints = {link.joint_name: k for k, link in enumerate(as_mechanism(mechanism).links)}
        connections = {name: c for c, name in enumerate(mechanism.connections)}
        names = [*reversed(joints), *connections]
        self.serial = order is None
        self.closing = closing
        chosen = list(names if order is None else order)
        if len(set(chosen)) != len(chosen):
            twice = next(name for name in chosen if chosen.count(name) > 1)
            raise ModelError(f"the schedule adds {twice!r} twice")
        for name in chosen:
            if name not in joints and name not in connections:
                raise NamingError(f"the schedule adds {name!r}, which is neither a joint nor a connection of "
                                  f"{mechanism.name}")
        missing = set(names) - set(chosen)
        if missing:
            raise ModelError(f"the schedule leaves out {', '.join(map(repr, sorted(missing)[:5]))}"
                             f"{' ...' if len(missing) > 5 else ''}: every joint and connection must have its turn")
        self.order = tuple(chosen)
        self._ends = {**{name: (mechanism.links[k].parent, k) for name, k in joints.items()},
                      **{c.name: (c.link_a, c.link_b) for c in mechanism.connections.values()}}

    @property
    def depth(self) -> int:
        """Joins above the deepest link: steps that cannot be done at the same time."""
        level: dict[int, int] = {}
        part: dict[int, int] = {}

        def find(link):
            while part.get(link, link) != link:
                link = part[link]
            return link

        for name in self.order:
            a, b = (find(link) for link in self._ends[name])
            level[a] = 1 + max(level.get(a, 0), level.get(b, 0))
            part[b] = a
        return max(level.values(), default=0)

    def items(self, mechanism: Mechanism) -> list[tuple[str, int]]:
        """The order as ("joint", body) and ("connection", index)."""
        plan = mechanism.plan("tree")
        first = np.full(len(mechanism.links), -1)
        first[plan.body_link[::-1]] = np.arange(plan.bodies)[::-1]
        joints = {link.joint_name: k for k, link in enumerate(mechanism.links)}
        connections = {name: c for c, name in enumerate(mechanism.connections)}
        if set(self.order) != {*joints, *connections}:
            raise ModelError(f"this schedule was made for another structure than {mechanism.name} has now; make a new "
                             "one with bk.schedule")
        items = [("joint", int(first[joints[name]])) if name in joints else ("connection", connections[name])
                 for name in self.order]
        return [item for item in items if item[1] >= 0]

    def __repr__(self):
        shown = ", ".join(self.order[:6]) + (", ..." if len(self.order) > 6 else "")
        return f"Schedule of {len(self.order)} joints, depth {self.depth}, loops {self.closing}: {shown}"


def schedule(mechanism: Mechanism, workers: int = 1, *, closing: str = "inside") -> Schedule:
    """A schedule for so many workers: tips to root for one; for more, rounds in which every subchain is joined to at
    most one neighbour, so that the depth grows with the logarithm of the number of links.
    """
    if as_count("workers", workers) == 1:
        return Schedule(mechanism, None, closing)
    return Schedule(mechanism, [*_rounds(mechanism), *mechanism.connections], closing)


def _rounds(mechanism: Mechanism) -> list[str]:
    """Joints in rounds: ends first (each subchain takes one end a round), then every other joint of what is a chain."""
    links = mechanism.links
    parent = [link.parent for link in links]
    top = list(range(len(links)))  # top link of the subchain that a link is in

    def find(k):
        while k >= 0 and top[k] != k:
            top[k] = top[top[k]]
            k = top[k]
        return k

    order: list[str] = []
    left = list(range(len(links)))
    while left:
        children: dict[int, int] = {}
        for k in left:
            above = find(parent[k])
            children[above] = children.get(above, 0) + 1
        busy: set[int] = set()
        rest: list[int] = []
        for rank in (0, 1, 2):  # ends, then chains, then whatever is free
            rest = []
            for k in reversed(left):
                above = find(parent[k])
                degree = children.get(k, 0)
                wanted = degree == 0 if rank == 0 else degree <= 1 if rank == 1 else True
                if wanted and k not in busy and (above < 0 or above not in busy):
                    busy.add(k)
                    if above >= 0:
                        busy.add(above)
                    order.append(links[k].joint_name)
                    top[k] = above if above >= 0 else k
                    if above < 0:
                        parent[k] = -1
                else:
                    rest.append(k)
            left = rest[::-1]
    return order
