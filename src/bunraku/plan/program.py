"""What forward dynamics of a closed structure does, in which order: the operations of `algorithms/ada.py`.

`tip_to_root` is the order for one processor: articulated bodies from the tips to the root, with columns only on the
bodies between a connection and the place where its loop meets. `scheduled` assembles the joints in any given order.
Both return a `Program`; nothing else differs between schedules.

Groups of rows that travel together: ("connection", c), ("handle", body of the joint to come), ("joint", body: forces of
a graft), ("rotor", body).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bunraku.plan import fields as f

Group = tuple[str, int]


@dataclass(eq=False)
class Front:
    """A front in the making: where it is and which rows it has."""

    place: int
    groups: list[Group]
    rows: int
    ids: int                # list of the global numbers of its rows
    first: dict[Group, int]  # first row of each group


@dataclass(eq=False)
class Structure:
    """What a program needs to know of a mechanism."""

    parent: Sequence[int]                  # of bodies, parents first
    dof: Sequence[int]
    slot: Sequence[int]                    # place of each body's own slot in the work array
    ball: Sequence[bool]                   # spherical joint: passes on three forces only
    ends: Sequence[tuple[int, int]]        # of connections: body a, body b
    meet: Sequence[int]
    first_row: Sequence[int]
    rows: Sequence[int]
    rotors: dict[int, list[int]] = field(default_factory=dict)  # body without mass: connections that hold it up

    @property
    def total(self) -> int:
        return self.first_row[-1] + self.rows[-1] if self.rows else 0


class Program:
    """Operations and the memory they need. Places are counted from the first front."""

    def __init__(self, structure: Structure):
        self.s = structure
        self.size = 0
        self.ids_used = structure.total
        self.ops: list[tuple[int, ...]] = []
        self.lists: list[int] = [0]  # so that no list is at 0, which means none
        self.numbers: dict[Group, range] = {}
        self.stepped: set[int] = set()  # bodies taken through their joint with columns

    # -- memory ------------------------------------------------------------------------------------------------------

    def take(self, size: int) -> int:
        place = self.size
        self.size += size
        return place

    def listed(self, numbers) -> int:
        place = len(self.lists)
        self.lists += numbers
        return place

    def count(self, group: Group) -> int:
        return len(self.ids(group))

    def ids(self, group: Group) -> range:
        """Global numbers of the rows of a group."""
        found = self.numbers.get(group)
        if found is None:
            kind, k = group
            if kind == "connection":
                found = range(self.s.first_row[k], self.s.first_row[k] + self.s.rows[k])
            else:
                count = 6 if kind == "handle" else self.s.dof[k] if kind == "rotor" else 3 if self.s.ball[k] else 6
                found = range(self.ids_used, self.ids_used + count)
                self.ids_used += count
            self.numbers[group] = found
        return found

    def front(self, groups: list[Group], zero=True) -> Front:
        first: dict[Group, int] = {}
        ids: list[int] = []
        for g in groups:
            first[g] = len(ids)
            ids += self.ids(g)
        rows = len(ids)
        place = self.take(f.ROW_THETA * rows + rows * (rows + 1) // 2)
        if zero:
            self.ops.append((f.OP_NEW, place, rows, 0, 0, 0, 0, 0))
        return Front(place, groups, rows, self.listed(ids), first)

    # -- operations --------------------------------------------------------------------------------------------------

    def start(self, front: Front, c: int, side: int):
        self.ops.append((f.OP_START, front.place, front.first[("connection", c)], c, side, 0, 0, 0))

    def handle(self, front: Front, body: int):
        self.ops.append((f.OP_HANDLE, front.place, front.first[("handle", body)], 0, 0, 0, 0, 0))

    def attach(self, source: Front, target: Front):
        places: list[int] = []
        for g in source.groups:
            start = target.first[g]
            places += range(start, start + self.count(g))
        self.ops.append((f.OP_ATTACH, source.place, source.rows, target.place, self.listed(places), 0, 0, 0))

    def step(self, body: int, front: Front):
        kept = self.take(front.rows * self.s.dof[body])
        rotors = 0
        if ("rotor", body) in front.groups:
            first = front.first[("rotor", body)]
            rotors = self.listed(list(range(first, first + self.s.dof[body])))
        self.ops.append((f.OP_STEP, body, front.place, front.rows, kept, front.ids, rotors, 0))
        self.stepped.add(body)

    def sweep(self, first: int, last: int):
        if first >= last:
            self.ops.append((f.OP_SWEEP, first, last, 0, 0, 0, 0, 0))

    def close(self, front: Front, groups: int, near: int, sign: int = 1) -> Front | None:
        """Eliminate the last so many groups; what remains of the front."""
        kept = len(front.groups) - groups
        count = sum(map(self.count, front.groups[kept:]))
        slot = -1 if near < 0 else self.s.slot[near]
        self.ops.append((f.OP_CLOSE, front.place, front.rows, count, slot, front.ids, sign, self.take(count)))
        if kept == 0:
            return None
        return Front(front.place, front.groups[:kept], front.rows - count, front.ids, front.first)

    def graft(self, body: int, front: Front, near: int, other: Front | None, last: list[Group]) -> Front:
        """Attach what is beyond the joint of `body` at its handle in `front`; rows of `last` come last."""
        handle, joint = ("handle", body), ("joint", body)
        rest = [g for g in front.groups if g != handle]
        groups = rest + [g for g in (other.groups if other else []) if g not in rest]
        groups = [g for g in groups if g not in last] + [joint] + [g for g in groups if g in last]
        target = self.front(groups, zero=False)
        parent = self.s.parent[body]
        entries = [front.place, front.first[handle], target.place, target.rows, other.place if other else 0,
                   self.s.slot[parent], -1 if near < 0 else self.s.slot[near],
                   self.take(f.KEPT_ROWS + 12 * target.rows), self.ids(handle)[0], 3 if self.s.ball[body] else 6]
        for g in groups:
            own = front.first[g] if g in rest else None
            far = other.first[g] if other and g in other.groups else None
            for d, i in enumerate(self.ids(g)):
                entries += [-1 if own is None else own + d, -1 if far is None else far + d,
                            (d + 3) % 6 if g == joint else -1, i]
        self.ops.append((f.OP_GRAFT, self.listed(entries), 0, 0, 0, 0, 0, 0))
        return target

    def array(self, base: int) -> np.ndarray:
        """The program as the machine reads it, with fronts from `base` on in the work array."""
        start = f.PROGRAM_START + f.PROGRAM_STEP * len(self.ops)
        flat = [len(self.ops)]
        for op in self.ops:
            row = list(op)
            for column in PLACES.get(op[0], ()):
                row[column] += base
            for column in LISTS.get(op[0], ()):
                if row[column]:
                    row[column] += start
            flat += row
        lists = self.lists.copy()
        for op in self.ops:
            if op[0] == f.OP_GRAFT:
                for column in (f.GRAFT_FRONT, f.GRAFT_TARGET, f.GRAFT_OTHER, f.GRAFT_KEPT):
                    lists[op[1] + column] += base
        return np.array(flat + lists, np.int32)


PLACES = {f.OP_STEP: (2, 4), f.OP_NEW: (1,), f.OP_START: (1,), f.OP_HANDLE: (1,), f.OP_ATTACH: (1, 3),
          f.OP_CLOSE: (1, 7)}
LISTS = {f.OP_STEP: (5, 6), f.OP_ATTACH: (4,), f.OP_CLOSE: (5,), f.OP_GRAFT: (1,)}
"""Arguments of operations that are places of fronts, and of lists."""


# -- one processor -------------------------------------------------------------------------------------------------


def tip_to_root(s: Structure) -> Program:
    """Articulated bodies from the tips to the root; loops are closed where they meet."""
    program = Program(s)
    starts: dict[int, list[tuple[int, int]]] = {}
    involved = set()
    for c, (ends, meet) in enumerate(zip(s.ends, s.meet, strict=True)):
        if s.rows[c] == 0:
            continue
        involved.add(meet)
        for side, body in enumerate(ends):
            starts.setdefault(body, []).append((c, side))
            while body != meet:
                involved.add(body)
                body = s.parent[body]
    closing: dict[Group, int] = {}  # where each group is closed: bodies above each other, the deepest first
    for body, held in s.rotors.items():
        closing["rotor", body] = min(s.meet[c] for c in held)
    busy = {*starts, *s.meet, *closing.values()}  # bodies where handles are or loops meet
    arrived: dict[int, list[Front]] = {}

    def key(group: Group):  # order of rows: the last are closed first, rotors after the connections of one place
        kind, k = group
        return (s.meet[k], 1, k) if kind == "connection" else (closing[group], 0, k)

    bodies = len(s.parent)
    for body in sorted(involved, reverse=True):
        program.sweep(bodies - 1, body + 1)
        bodies = body
        left = arrived.pop(body, [])
        if body in busy:
            left = _closed_at(program, body, left, starts.get(body, []), key)
        if body < 0:
            break
        if body in s.rotors:
            left.append(program.front([("rotor", body)]))
        if not left:
            bodies = body + 1  # an ordinary body again
            continue
        front = left[0] if len(left) == 1 else _gathered(program, left, key)
        program.step(body, front)
        arrived.setdefault(s.parent[body], []).append(front)
    program.sweep(bodies - 1, 0)
    return program


def _closed_at(program: Program, body: int, fronts: list[Front], handles: list[tuple[int, int]], key) -> list[Front]:
    """Close the loops that meet at this body; the fronts that are left.

    One connection after the other, the one that needs the smallest front first (as in a sparse elimination), so that
    loops that have little to do with each other stay apart.
    """
    pool: dict[int, Front] = dict(enumerate(fronts))
    holders: dict[Group, set[int]] = {}
    for number, front in pool.items():
        for g in front.groups:
            holders.setdefault(g, set()).add(number)
    sides: dict[Group, list[tuple[int, int]]] = {}
    for c, side in handles:
        sides.setdefault(("connection", c), []).append((c, side))

    def closes(g: Group) -> bool:
        return key(g)[0] == body

    def cost(g: Group) -> int:
        groups = {g, *(other for number in holders.get(g, ()) for other in pool[number].groups)}
        return sum(map(program.count, groups))

    waiting = sorted((cost(g), g) for g in {*holders, *sides} if g[0] == "connection" and closes(g))
    heapq.heapify(waiting)
    ended: set[Group] = set()
    while waiting:
        price, g = heapq.heappop(waiting)
        if g in ended:
            continue
        now = cost(g)
        if now > price:
            heapq.heappush(waiting, (now, g))
            continue
        front = _merge(program, pool, holders, sides, [g], key)
        number = max(pool, default=-1) + 1
        done = {x for x in front.groups if x[0] == "connection" and closes(x) and holders[x] <= {-1} and x not in sides}
        rest = _close_groups(program, front, done, body, 1)
        ended |= done
        for x in front.groups:
            holders[x].discard(-1)
        if rest is not None:
            pool[number] = rest
            for x in rest.groups:
                holders[x].add(number)
    for g in list(sides):  # handles of loops that meet further up
        front = _merge(program, pool, holders, sides, [g], key)
        number = max(pool, default=-1) + 1
        pool[number] = front
        for x in front.groups:
            holders[x].discard(-1)
            holders[x].add(number)
    left = []
    for front in pool.values():  # rotors that hang on nothing any more
        rotors = {x for x in front.groups if x[0] == "rotor" and closes(x)}
        rest = _close_groups(program, front, rotors, body, -1) if rotors else front
        if rest is not None:
            left.append(rest)
    return left


def _merge(program: Program, pool, holders, sides, groups: list[Group], key) -> Front:
    """Take the fronts that hold these groups out of the pool, and the handles that start here: one front."""
    numbers = sorted({number for g in groups for number in holders.get(g, ())})
    front = _gathered(program, [pool.pop(number) for number in numbers], key, groups)
    for g in front.groups:
        for c, side in sides.pop(g, []):
            program.start(front, c, side)
    for g in front.groups:
        holders.setdefault(g, set()).difference_update(numbers)
        holders[g].add(-1)  # in hand
    return front


def _gathered(program: Program, fronts: list[Front], key, groups: Sequence[Group] = ()) -> Front:
    """One front with the rows of all, and of `groups`; an only front with nothing new stays as it is."""
    if len(fronts) == 1 and set(groups) <= set(fronts[0].groups):
        return fronts[0]
    target = program.front(sorted({*groups, *(g for x in fronts for g in x.groups)}, key=key))
    for x in fronts:
        program.attach(x, target)
    return target


def _close_groups(program: Program, front: Front, groups: set[Group], near: int, sign: int) -> Front | None:
    """Close these groups, brought to the end if they are not there."""
    if set(front.groups[len(front.groups) - len(groups):]) != groups:
        target = program.front(sorted(front.groups, key=lambda g: g in groups))
        program.attach(front, target)
        front = target
    return program.close(front, len(groups), near, sign)


# -- any order -----------------------------------------------------------------------------------------------------


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

    def _ends_in(self, c, one: Subchain, two: Subchain) -> bool:
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
