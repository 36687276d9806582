"""The program for one processor: articulated bodies from the tips to the root, loops closed where they meet.

Idea: columns are carried only on the bodies between a connection and the body where its two sides meet; the rest is
swept as a tree. Where several loops meet they are closed in the order of a sparse elimination, smallest front first.
Reference: docs/structures.md. Cost: O(bodies on loops) to write; a tree is one operation.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from bunraku.plan.program import Front, Group, Program, Structure


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
    for body in s.rotors:
        closing["rotor", body] = end = s.rotor_ends(body)
        while body != end:
            involved.add(body)
            body = s.parent[body]
        involved.add(end)
    busy = {*starts, *s.meet, *closing.values()}  # bodies where handles are or loops meet
    arrived: dict[int, list[Front]] = {}

    def key(group: Group):  # order of rows: the last are closed first, rotors after the connections of one place
        kind, k = group
        return (s.meet[k], 1, k) if kind == "connection" else (closing[group], 0, k)

    bodies = len(s.parent)
    for body in sorted(involved, reverse=True):
        program.sweep(bodies - 1, body + 1)
        program.marks.append((len(program.ops), body))
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
