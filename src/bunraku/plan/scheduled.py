"""The program of any schedule: joints and connections assembled in a given order [YN02, secs. 2, 5.1].

Idea: subchains are joined two at a time. Where the parent is the near body of its subchain the child steps through its
joint and adds up; where it is deep inside, the child is grafted on the handle left there. [docs/structures.md]
Cost: O(joints) operations. Limit: all open rows of a subchain are in one front, so thousands of loops that stay open
together are dense; `tip_to_root` is for those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bunraku.plan import fields as f
from bunraku.plan.program import Front, Group, Program, Structure


@dataclass(eq=False)
class Subchain:
    """Part of the assembly: its near body, its front (none if nothing is open), its bodies."""

    near: int
    front: Front | None
    bodies: set[int]
    started: set[tuple[int, int]] = field(default_factory=set)  # handles of connections that have rows


def scheduled(s: Structure, cluster: Sequence[int], order: Sequence[tuple[str, int]], together: bool) -> Program:
    """Assemble in the given order of ("joint", body) and ("connection", c).

    `cluster` names the top body of the smallest subchain each body can be in: bodies that cannot stand alone (without
    mass, or thin as a rod) are assembled with what they carry first. A connection is closed as soon as its turn has
    come and both its links are in one subchain that hangs together by tree joints. `together` closes every connection
    that a joint has made closable in one elimination with that joint; else one after the other.
    """
    return _Assembly(s, cluster, together).run(order)


class _Assembly:
    def __init__(self, s: Structure, cluster, together: bool):
        self.s, self.cluster, self.together = s, cluster, together
        self.program = Program(s)
        n = len(s.parent)
        self.children: list[list[int]] = [[] for _ in range(n + 1)]  # the last: the ground's
        for i, p in enumerate(s.parent):
            self.children[p].append(i)
        self.handles: dict[int, list[tuple[int, int]]] = {}
        for c, ends in enumerate(s.ends):
            if s.rows[c]:
                for side, body in enumerate(ends):
                    self.handles.setdefault(body, []).append((c, side))
        self.joined = [False] * n                        # joints of bodies
        self.holder: dict[int, Subchain] = {-1: Subchain(-1, None, {-1})}
        self.open = {c for c in range(len(s.ends)) if s.rows[c]}
        self.turn: set[int] = set()                      # connections that may be closed
        self.rotors = dict(s.rotors)
        self.coupled = {c for couplings in s.coupled.values() for c, _ in couplings}

    def run(self, order) -> Program:
        n = len(self.s.parent)
        members: dict[int, list[int]] = {}
        for i in range(n):
            members.setdefault(self.cluster[i], []).append(i)
        for top, bodies in members.items():
            self._leaf(top, bodies)
        rest = [("joint", i) for i in range(n - 1, -1, -1)]
        for kind, k in [*order, *rest]:
            if kind == "connection":
                self.turn.add(k)
                if k in self.open and self._inside(k):
                    self._close(self.holder[self.s.ends[k][0]], [k])
            elif not self.joined[self.cluster[k]] and k == self.cluster[k]:
                self._join(k)
        for c in sorted(self.open):
            self._close(self.holder[-1], [c])
        return self.program

    def _inside(self, c) -> bool:
        a, b = self.s.ends[c]
        return self.holder[a] is self.holder[b]

    def _leaf(self, top: int, bodies: list[int]):
        """Bodies that belong together, by articulated bodies."""
        chain = Subchain(top, None, set(bodies))
        for i in bodies:
            self.holder[i] = chain
        fronts: dict[int, Front | None] = {}
        for i in reversed(bodies):  # children first
            if i == top:
                chain.front = fronts.get(i)
                break
            front = self._exposed(i, fronts.get(i), chain)
            self._step(i, front)
            self.joined[i] = True
            p = self.s.parent[i]
            fronts[p] = self._merged(fronts.get(p), front)

    def _exposed(self, body: int, front: Front | None, chain: Subchain) -> Front | None:
        """The front of `body` with a row for every handle on it that has none: it is about to be out of reach."""
        starts = [h for h in self.handles.get(body, []) if h not in chain.started and h[0] in self.open]
        later = [i for i in self.children[body] if not self.joined[i] and self.cluster[i] == i]
        return self._with(front, starts, later, chain, body if body in self.rotors else None)

    def _with(self, front, starts, later, chain, rotor=None) -> Front | None:
        new = [("connection", c) for c, _ in starts] + [("handle", i) for i in later]
        if rotor is not None:
            new.append(("rotor", rotor))
        old = front.groups if front else []
        if not new:
            return front
        target = self.program.front([*old, *dict.fromkeys(g for g in new if g not in old)])
        if front:
            self.program.attach(front, target)
        for c, side in starts:
            self.program.start(target, c, side)
            chain.started.add((c, side))
        for i in later:
            self.program.handle(target, i)
        return target

    def _step(self, body: int, front: Front | None):
        if front is None:
            self.program.sweep(body, body)
        else:
            self.program.step(body, front)

    def _merged(self, one: Front | None, two: Front | None) -> Front | None:
        if one is None or two is None:
            return one or two
        target = self.program.front([*one.groups, *(g for g in two.groups if g not in one.groups)])
        self.program.attach(one, target)
        self.program.attach(two, target)
        return target

    def _join(self, body: int):
        """Add the joint of `body`: the subchain it is the near body of goes to the one its parent is in."""
        below, above = self.holder[body], self.holder[self.s.parent[body]]
        front = self._exposed(body, below.front, below)
        self.joined[body] = True
        parent = self.s.parent[body]
        ready = [c for c in sorted(self.open)
                 if (self.together or c in self.turn) and self._ends_in(c, above, below)]
        rigid = above.near == parent
        if not rigid:
            self.program.ops.append((f.OP_RESET, self.s.slot[parent], 0, 0, 0, 0, 0, 0))
        self._step(body, front)
        for i in below.bodies:
            self.holder[i] = above
        above.bodies |= below.bodies
        above.started |= below.started
        if rigid:
            above.front = self._merged(above.front, front)
        else:
            assert above.front is not None
            last: list[Group] = []
            if self.together and ready:
                self._start_at_near(above, ready)
                last = [("connection", c) for c in ready]
            above.front = self.program.graft(body, above.front, above.near, front, last)
            above.front = self.program.close(above.front, 1 + len(last), above.near)
            if last:
                self.open -= set(ready)
                self._release(above)
                ready = []
        for some in ([ready] if self.together and ready else [[c] for c in ready]):
            self._close(above, some)
        self._release(above)  # a rotor that came with this joint, after the loops that hold it were closed

    def _ends_in(self, c, one: Subchain, two: Subchain) -> bool:
        if c in self.coupled and not all(self.joined[end] for end in self.s.ends[c]):  # acts on joints
            return False
        return all(self.holder[end] in (one, two) for end in self.s.ends[c])

    def _start_at_near(self, chain: Subchain, connections):
        starts = [h for h in self.handles.get(chain.near, []) if h[0] in connections and h not in chain.started]
        chain.front = self._with(chain.front, starts, [], chain)

    def _close(self, chain: Subchain, connections: list[int]):
        """Close connections that have both ends in the subchain."""
        self._start_at_near(chain, connections)
        last = [("connection", c) for c in connections]
        chain.front = self._last(chain.front, last)
        chain.front = self.program.close(chain.front, len(last), chain.near)
        self.open -= set(connections)
        self._release(chain)

    def _last(self, front, last) -> Front:
        """The front with these groups at the end."""
        if front.groups[-len(last):] == last:
            return front
        target = self.program.front([*(g for g in front.groups if g not in last), *last])
        self.program.attach(front, target)
        return target

    def _release(self, chain: Subchain):
        """Close rotor rows that no open connection depends on."""
        while chain.front is not None:
            free = next((g for g in chain.front.groups
                         if g[0] == "rotor" and not any(c in self.open for c in self.s.rotors[g[1]])), None)
            if free is None:
                return
            chain.front = self.program.close(self._last(chain.front, [free]), 1, chain.near, -1)
