"""The part of a divided program that one worker executes: its operations, with numbers and places in its own memory.

`chunk_loops.py` hands over operations in the numbers of the whole mechanism, tips to root; `finish` numbers bodies,
rows of constraints, fronts and connections anew and places fronts and columns. Cost: O(operations).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bunraku.plan import fields as f
from bunraku.plan.program import Program

if TYPE_CHECKING:
    from bunraku.plan.chunk_loops import ClosedDivision

FRONT_PLACES = {f.OP_STEP: (2,), f.OP_NEW: (1,), f.OP_START: (1,), f.OP_ATTACH: (1, 3), f.OP_CLOSE: (1,)}
"""Arguments of operations that are fronts."""


class Leaving(NamedTuple):
    """An open front at the top of a chunk: its place, rows, and the numbers of their forces."""

    place: int
    rows: int
    ids: list[int]


class WorkerProgram:
    """Builder of the program of one worker."""

    array: np.ndarray

    def __init__(self, division: ClosedDivision, worker: int):
        self.d, self.worker = division, worker
        self.ops: list[tuple[int, ...]] = []
        self.fronts: dict[int, int] = {}      # rows of each front, by its place in the whole program
        self.ids: dict[int, int] = {}         # numbers of the forces known here, by those in the whole program
        self.parcels: dict[int, list[Leaving]] = {}

    def add(self, op: tuple[int, ...]):
        for column in FRONT_PLACES.get(op[0], ()):
            self.fronts.setdefault(op[column], 0)
        if op[0] == f.OP_NEW:
            self._front(op[1], op[2])
        self.ops.append((*op, *(0,) * (f.PROGRAM_STEP - len(op))))

    def parcel(self, op: int, slot: int, place: int, fronts: list[Leaving], up: int, down: int):
        for x in fronts:
            self._front(x.place, x.rows)
        self.parcels[len(self.ops)] = fronts
        self.ops.append((op, slot, place, 0, len(fronts), up, down, 0))

    def _front(self, place, rows):
        self.fronts[place] = max(self.fronts.get(place, 0), rows)

    def finish(self, program: Program):
        """Number everything anew, and lay out the memory."""
        d, w, conn_i = self.d, self.worker, self.d.conn_i[self.worker]
        places = {place: d.take(w, f.row_start(rows)) for place, rows in self.fronts.items()}
        number = {c: n for n, c in enumerate(d.mine_c[w])}
        self._number_rows(program, number)
        lists = [0]
        start = f.PROGRAM_START + f.PROGRAM_STEP * len(self.ops)

        def listed(numbers) -> int:
            place = len(lists)
            lists.extend(numbers)
            return start + place

        flat = [len(self.ops)]
        for n, op in enumerate(self.ops):
            row = list(op)
            for column in FRONT_PLACES.get(op[0], ()):
                row[column] = places[op[column]]
            if op[0] == f.OP_SWEEP:
                row[1], row[2] = d.local(op[1]), d.local(op[2])
            elif op[0] == f.OP_STEP:
                _, body, _, rows, _, ids, rotors, _ = op
                dof = program.s.dof[body]
                row[1], row[4] = d.local(body), d.take(w, rows * dof)
                row[5] = listed(self.ids[i] for i in program.lists[ids:ids + rows])
                row[6] = listed(program.lists[rotors:rotors + dof]) if rotors else 0
                d.plans[w].body_i[row[1] + 1:row[1] + 2, f.RUNS_ON] = 0  # no run of hinges into a body with columns
            elif op[0] == f.OP_START:
                row[3] = number[op[3]]
            elif op[0] == f.OP_ATTACH:
                row[4] = listed(program.lists[op[4]:op[4] + op[2]])
            elif op[0] == f.OP_CLOSE:
                row[4] = d.slot(op[4])
                row[5], row[7] = listed(self.ids[i] for i in program.lists[op[5]:op[5] + op[2]]), d.take(w, op[3])
            elif op[0] in (f.OP_LEAVE, f.OP_ARRIVE):
                row[3] = listed([i for x in self.parcels[n]
                                 for i in (places[x.place], x.rows, *(self.ids[i] for i in x.ids))])
            flat += row
        conn_i[-1, f.HEAD_FORCES] = d.take(w, len(self.ids))
        conn_i[-1, f.HEAD_JUDGED] = d.take(w, f.JUDGED)
        self.array = np.array(flat + lists, np.int32)

    def _number_rows(self, program: Program, number: dict[int, int]):
        """Rows of the worker's own connections first, then those of others, then those that take rotors away."""
        conn_i, s = self.d.conn_i[self.worker], program.s
        for c, n in number.items():
            conn_i[n, f.FIRST_ROW] = len(self.ids)
            for i in range(s.first_row[c], s.first_row[c] + s.rows[c]):
                self.ids[i] = len(self.ids)
        used = {i for fronts in self.parcels.values() for x in fronts for i in x.ids}
        for op in self.ops:
            if op[0] in (f.OP_STEP, f.OP_CLOSE):
                ids, rows = op[5], op[3] if op[0] == f.OP_STEP else op[2]
                used.update(program.lists[ids:ids + rows])
        conn_i[-1, f.HEAD_ROWS] = len(self.ids) + len({i for i in used if i < s.total} - set(self.ids))
        for i in sorted(used - set(self.ids)):
            self.ids[i] = len(self.ids)
