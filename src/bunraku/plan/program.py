"""Programs: the sequence of operations of `algorithms/ada.py` in forward dynamics of a closed structure.

A `Program` collects operations and the memory they need, and becomes the array that kernels read. Programs are written
by `tip_to_root.py`, in the order for one processor, and by `scheduled.py`, in any given order; nothing else differs
between schedules.

Groups of rows that travel together: ("connection", c), ("handle", body of the joint to come), ("joint", body: forces of
a graft), ("rotor", body).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bunraku.plan import fields as f

Group = tuple[str, int]


@dataclass(eq=False)
class Front:
    """A front of a program: its place and its rows."""

    place: int
    groups: list[Group]
    rows: int
    ids: int                # list of the global numbers of its rows
    first: dict[Group, int]  # first row of each group


@dataclass(eq=False)
class Structure:
    """Structure of a mechanism for writing a program."""

    parent: Sequence[int]                  # of bodies, parents first
    dof: Sequence[int]
    slot: Sequence[int]                    # place of each body's own slot in the work array
    ball: Sequence[bool]                   # spherical joint: passes on three forces only
    ends: Sequence[tuple[int, int]]        # of connections: body a, body b
    meet: Sequence[int]
    first_row: Sequence[int]
    rows: Sequence[int]
    rotors: dict[int, list[int]] = field(default_factory=dict)  # body without mass: connections that hold it up
    coupled: dict[int, list[tuple[int, int]]] = field(default_factory=dict)  # body: couplings of its joint, and side

    def rotor_ends(self, body: int) -> int:
        """Where, from the tips to the root, the rotor of a body is taken away: beyond its joint, when all loops that
        hold it up are closed."""
        return min(self.parent[body], *(self.meet[c] for c in self.rotors[body]))

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
        self.pressed: set[int] = set()  # near bodies of subchains that loops are closed in
        self.marks: list[tuple[int, int]] = []  # (operations so far, body): from here on those at this body

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
                count = 6 if kind == "handle" else self.s.dof[k] if kind == "rotor" else self.passed_on(k)
                found = range(self.ids_used, self.ids_used + count)
                self.ids_used += count
            self.numbers[group] = found
        return found

    def passed_on(self, body: int) -> int:
        """Number of force components that the joint of a body may transmit: a ball no moments, unless it has a
        rotor."""
        return 3 if self.s.ball[body] and body not in self.s.rotors else 6

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
        dof, extra = self.s.dof[body], 0
        couplings = [(c, side) for c, side in self.s.coupled.get(body, ()) if ("connection", c) in front.groups]
        if ("rotor", body) in front.groups or couplings:
            first = front.first.get(("rotor", body))
            rotors = [-1] * dof if first is None else list(range(first, first + dof))
            rows = [n for c, side in couplings for n in (front.first["connection", c], 2 * c + side)]
            extra = self.listed([*rotors, len(couplings), *rows])
        self.ops.append((f.OP_STEP, body, front.place, front.rows, kept, front.ids, extra, 0))
        self.stepped.add(body)

    def sweep(self, first: int, last: int):
        if first >= last:
            self.ops.append((f.OP_SWEEP, first, last, 0, 0, 0, 0, 0))

    def close(self, front: Front, groups: int, near: int, sign: int = 1) -> Front | None:
        """Eliminate the last so many groups; what remains of the front."""
        kept = len(front.groups) - groups
        count = sum(map(self.count, front.groups[kept:]))
        slot = -1 if near < 0 else self.s.slot[near]
        self.pressed.add(near)
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
                   self.take(f.KEPT_ROWS + 12 * target.rows), self.ids(handle)[0], self.passed_on(body)]
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
        grafts = any(op[0] == f.OP_GRAFT for op in self.ops)
        for op in self.ops:
            row = list(op)
            for column in PLACES.get(op[0], ()):
                row[column] += base
            for column in LISTS.get(op[0], ()):
                if row[column]:
                    row[column] += start
            if grafts and op[0] in MEASURED:
                row[MEASURED[op[0]]] = 1
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
MEASURED = {f.OP_SWEEP: 3, f.OP_STEP: 7}
"""The argument that asks for the size of an inertia, which grafts compare what is left of it with."""
