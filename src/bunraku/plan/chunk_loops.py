"""Chunks of a mechanism with connections: the program of one processor, divided among workers.

Idea: the articulated-body algorithm with loops (`tip_to_root.py`) is written down for the whole mechanism, bodies
numbered chunk by chunk. Every operation then belongs to the chunk of the body that it is done at, or to the *ground*.
A worker's program is the operations of its chunks, tips to root. Where a chunk ends its inertia, force and open fronts
leave in a *parcel*, which arrives at the far body of the chunk above; on the way back a parcel brings that body's
acceleration and the forces of the open rows. All chunks wait for those that they carry: there are no far handles, and
axes and groups are those of one worker.

In front of the bodies of each chunk stands its *top*, the link above as the chunk sees it: loops that meet there and
lie in this chunk and those that it carries are closed in it and do not travel on.

Connections: both ends in one chunk are met as ever. Otherwise both workers compute the same record, from the states of
both ends: each sends its own. Loops are closed in the chunk where their sides meet.

`worker_program.py` numbers bodies, rows, fronts and connections anew for each worker.
Reference: docs/structures.md, [YN02, sec. 5.2]. Cost: O(bodies) to write; floats per edge depend on open rows alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bunraku.plan import fields as f
from bunraku.plan.build import Plan
from bunraku.plan.chunk_plan import Assembly, Division, Edge, Part, Read
from bunraku.plan.program import Program, Structure
from bunraku.plan.tip_to_root import tip_to_root
from bunraku.plan.worker_program import Leaving, WorkerProgram


class ClosedDivision(Division):
    """A plan with connections divided among workers. Only `chunk` and `worker` of the assembly matter."""

    def __init__(self, plan: Plan, assembly: Assembly, read: Read | None = None):
        loops = plan.loops
        self.loops, s = loops, loops.structure
        ends = {body for pair in s.ends for body in pair}
        self.springs = [tuple(int(plan.link_i[link, f.LINK_BODY]) if link >= 0 else -1 for link in pair)
                        for pair in plan.spring_i.tolist()]
        pulled = {body for pair in self.springs for body in pair}
        self.slotted = np.array(sorted({*ends, *s.meet, *pulled, *map(s.rotor_ends, s.rotors)} - {-1}), np.int64)
        self.whole = plan
        super().__init__(replace(plan, dof_f=loops.dof_f), assembly._replace(waits=np.ones(len(assembly.worker), bool)),
                         read)
        del self.whole  # teams must not keep plans alive

    def record(self, worker, node) -> int:
        return 0  # no nodes: chunks are not joined

    def _write_passes(self):
        self.ground = self.m                                  # the number of the ground, as if it were a chunk
        self.who = [*self.assembly.worker.tolist(), int(self.assembly.worker[0]) if self.m else 0]
        order = np.concatenate([*self.bodies, np.zeros(0, np.int64)])
        self.tops = [n + k for k, n in enumerate(np.cumsum([0, *map(len, self.bodies)])[:-1].tolist())]
        self.position = np.full(self.whole.bodies + 1, -1)    # of each body, chunk by chunk behind tops; the ground: -1
        self.position[order] = np.arange(len(order)) + 1 + np.sort(self.assembly.chunk)
        self.carrier = [int(self.position[self.parent[bodies[0]]]) for bodies in self.bodies]  # body above each chunk
        self.carried: list[list[int]] = [[] for _ in range(self.m + 1)]
        for k, body in enumerate(self.carrier):
            self.carried[self._chunk_at(body)].append(k)
        program = tip_to_root(self._structure())
        self._place_connections()
        self._place_springs()
        self._place_links()
        self._write_outward()
        self.programs = [WorkerProgram(self, w) for w in range(self.workers)]
        self._divide(program)
        for local in self.programs:
            local.finish(program)
        self._write_ballot()

    # -- bodies ------------------------------------------------------------------------------------------------------

    def _structure(self) -> Structure:
        """The mechanism with its bodies chunk by chunk, and tops; a slot is the body it belongs to."""
        s, at, chunk = self.loops.structure, self.position.tolist(), self.assembly.chunk
        count = self.whole.bodies + self.m
        parent, dof, ball = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, bool)
        parent[self.tops] = self.carrier
        above = np.where(self.parent >= 0, chunk[self.parent], -1)
        tops = np.array(self.tops, np.int64)
        parent[self.position[:-1]] = np.where(above == chunk, self.position[self.parent], tops[chunk])
        dof[self.position[:-1]], ball[self.position[:-1]] = s.dof, s.ball
        ends = [(at[a], at[b]) for a, b in s.ends]
        self.meet = [self._closed_at(at[x], *pair) for x, pair in zip(s.meet, ends, strict=True)]
        there = [(meet if a < 0 else a, meet if b < 0 else b) for (a, b), meet in zip(ends, self.meet, strict=True)]
        return Structure(parent.tolist(), dof.tolist(), range(count), ball.tolist(), there, self.meet, s.first_row,
                         s.rows, {at[body]: held for body, held in s.rotors.items()})

    def _closed_at(self, meet: int, *ends: int) -> int:
        """The place where a loop that meets at a body or the ground is closed: at a chunk's top if that represents
        it."""
        found, upper = set(), self._chunk_at(meet)
        for end in ends:
            k = self._chunk_at(end)
            if k == self.ground:
                continue
            while k not in (upper, self.ground) and self.carrier[k] != meet:
                k = self._chunk_at(self.carrier[k])
            found.add(k if k != upper else -1)
        k = found.pop() if len(found) == 1 else -1
        return self.tops[k] if k >= 0 else meet

    def _chunk_at(self, position: int) -> int:
        return self.ground if position < 0 else bisect_right(self.tops, position) - 1

    def local(self, position: int) -> int:
        """Number of a body at the worker of its chunk."""
        k = self._chunk_at(position)
        table = self.tables[self.who[k]]
        return int(table[self.number[k], f.CHUNK_FIRST]) + position - self.tops[k] - 1

    def slot(self, position: int) -> int:
        """A body's own slot at the worker of its chunk; -1 for the ground."""
        k = self._chunk_at(position)
        if k == self.ground or position == self.tops[k]:
            return -1 if k == self.ground or self.carrier[k] < 0 else self.hang(k)
        return int(self.plans[self.who[self._chunk_at(position)]].body_i[self.local(position), f.OWN_SLOT])

    def hang(self, k: int) -> int:
        """The slot that represents the link above chunk k."""
        return int(self.tables[self.who[k]][self.number[k], f.CHUNK_HANG])

    def take(self, worker: int, size: int) -> int:
        """A place in the work array."""
        place = self.size[worker]
        self.size[worker] += size
        return place

    # -- connections -------------------------------------------------------------------------------------------------

    def _place_connections(self):
        """The connections of every worker and their rows of numbers; `sides`: the chunk of each end.

        The ground as link a adds nothing to a front; as link b it brings the demand, where the loop is closed.
        """
        loops, s = self.loops, self.loops.structure
        self.ends = [tuple(int(self.position[body]) for body in pair) for pair in s.ends]
        self.sides = [tuple(self._chunk_at(x) for x in pair) for pair in self.ends]
        self.mine_c: list[list[int]] = [[] for _ in range(self.workers)]
        for c, chunks in enumerate(self.sides):
            users = {self.who[k] for k in chunks if k != self.ground}
            if chunks[1] == self.ground:
                users.add(self.who[self._chunk_at(self.meet[c])])
            for w in sorted(users):
                self.mine_c[w].append(c)
        self.conn_i, self.conn_f, self.proxies = [], [], []
        for w, mine in enumerate(self.mine_c):
            conn_i = np.concatenate([loops.conn_i[mine], loops.conn_i[-1:]])
            conn_f = loops.conn_f[mine] if mine else np.zeros((1, f.CONN_F))
            conn_f[0, f.ROTOR] = loops.conn_f[0, f.ROTOR] if len(loops.conn_f) else 0.0
            conn_i[-1, f.HEAD_CONN] = self.take(w, f.CONN_RECORD * len(mine))
            proxies: dict[tuple[str, int, int], int] = {}     # (what, number, side): where the state of an end is
            for number, c in enumerate(mine):
                row = conn_i[number]
                inside = self.sides[c][0] == self.sides[c][1] != self.ground
                if inside:
                    row[f.MEET] = -1 if self._chunk_at(int(self.position[s.meet[c]])) != self.sides[c][0] else \
                        self.local(int(self.position[s.meet[c]]))
                for side in (0, 1):
                    k, body = self.sides[c][side], self.ends[c][side]
                    here = k != self.ground and self.who[k] == w
                    row[f.BODY_A + side] = self.local(body) if here else -1
                    if inside:
                        row[f.STATE_A + side], row[f.ORIGIN_A + side] = self.slot(body), -1
                        continue
                    place = 0 if k == self.ground else self.take(w, f.EDGE_STATE)
                    proxies["connection", c, side] = place
                    row[f.STATE_A + side], row[f.ORIGIN_A + side] = place, place + f.ORIGIN_STATE
                if not inside:
                    row[f.MEET] = -1
            counts = conn_i[:-1, f.FREEDOMS]
            conn_i[:-1, f.FIRST_FREEDOM] = np.cumsum(counts) - counts
            conn_i[-1, f.HEAD_FREEDOMS] = counts.sum()
            self.conn_i.append(conn_i)
            self.conn_f.append(conn_f)
            self.proxies.append(proxies)

    def _place_springs(self):
        """Point springs: like connections between chunks, also those inside one."""
        plan = self.whole
        ends = [tuple(int(self.position[body]) for body in pair) for pair in self.springs]
        chunks = [tuple(map(self._chunk_at, pair)) for pair in ends]
        self.pulled = list(zip(ends, chunks, strict=True))
        self.spring_tables = []
        for w in range(self.workers):
            mine = [k for k, pair in enumerate(chunks) if any(x != self.ground and self.who[x] == w for x in pair)]
            table, floats = np.full((len(mine), 4), -1, np.int32), plan.spring_f[mine]
            for n, k in enumerate(mine):
                for side in (0, 1):
                    chunk, link = chunks[k][side], int(plan.spring_i[k, side])
                    if chunk != self.ground and self.who[chunk] == w:
                        table[n, f.SPRING_A + side] = self.local(ends[k][side])
                    place = 0 if chunk == self.ground else self.take(w, f.EDGE_STATE)
                    self.proxies[w]["spring", k, side] = table[n, f.SPRING_STATE_A + side] = place
                    if link >= 0:
                        point = slice(f.POINT_A + 3 * side, f.POINT_A + 3 * side + 3)
                        floats[n, point] = (plan.link_f[link, f.LINK_OFFSET:f.LINK_OFFSET + 3]
                                            + plan.link_f[link, :9].reshape(3, 3) @ floats[n, point])
            self.spring_tables.append((table, floats))

    def _place_links(self):
        """Links of every worker, in the order of its bodies."""
        position = self.position[self.whole.link_i[:, f.LINK_BODY]]
        self.links: list[list[int]] = [[] for _ in range(self.workers)]
        self.link_bodies: list[list[int]] = [[] for _ in range(self.workers)]
        for link in np.argsort(position, kind="stable").tolist():
            if position[link] >= 0:
                w = self.who[self._chunk_at(int(position[link]))]
                self.links[w].append(link)
                self.link_bodies[w].append(self.local(int(position[link])))

    # -- pass 1 ------------------------------------------------------------------------------------------------------

    def _edge(self, source: int, target: int, floats: int, number: int) -> tuple[int, int]:
        """Boxes of a new edge at its sender and its receiver."""
        edge = len(self.edges)
        self.edges.append(Edge(source, target, floats, number))
        return self._box(source, edge), self._box(target, edge)

    def _write_outward(self):
        """Paths first, from the ground on, so that waiting workers can begin; then the ends of connections."""
        waiting: dict[int, Callable] = {}
        for k in range(self.m):
            w, _, first, path, _ = self.chunk(k)
            if self.carrier[k] < 0:
                self.do(w, f.DO_COPY, 0, f.EDGE_STATE, self.hang(k))
            else:
                waiting.pop(k)()
            if path > first:
                self.do(w, f.DO_OUTWARD, self.hang(k), first, path)
            for below in self.carried[k]:
                body = self.carrier[below]
                if below == self.carried[k][0]:
                    self.do(w, f.DO_END, self.local(body), self.hang(k), self.slot(body))
                waiting[below] = self._send_state(w, self.slot(body), self.who[below], self.hang(below))
        for k in range(self.m):
            w, _, _, path, end = self.chunk(k)
            if end > path:
                self.do(w, f.DO_OUTWARD, self.hang(k), path, end)
        arriving = []
        ends = {("connection", c, side): (chunks[side], self.ends[c][side]) for c, chunks in enumerate(self.sides)
                for side in (0, 1) if chunks[0] != chunks[1]}
        ends |= {("spring", n, side): (chunks[side], bodies[side]) for n, (bodies, chunks) in enumerate(self.pulled)
                 for side in (0, 1)}
        for key, (k, body) in ends.items():
            if k == self.ground:
                continue
            w = self.who[k]
            place = self.proxies[w][key]
            self.do(w, f.DO_END, self.local(body), self.hang(k), place)
            for other in range(self.workers):
                if other != w and key in self.proxies[other]:
                    arriving.append(self._send_state(w, place, other, self.proxies[other][key]))
        for arrive in arriving:
            arrive()

    def _send_state(self, source, place, target, to):
        """A state posted now; the receiver takes it when it calls the result."""
        if source == target:
            return lambda: self.do(target, f.DO_COPY, place, f.EDGE_STATE, to)
        out, into = self._edge(source, target, f.EDGE_STATE, 1)
        self.do(source, f.DO_POST, place, f.EDGE_STATE, out)
        return lambda: self.do(target, f.DO_TAKE, to, f.EDGE_STATE, into)

    # -- passes 2 and 3 ----------------------------------------------------------------------------------------------

    def _divide(self, program: Program):
        """Hand every operation to the chunk that it is done in."""
        parts: list[list[tuple[int, tuple]]] = [[] for _ in range(self.m + 1)]  # (body, operation) of each chunk
        leaving: list[list[Leaving]] = [[] for _ in range(self.m)]
        marks = iter([*program.marks, (len(program.ops) + 1, -1)])
        here, (until, body) = -1, next(marks)
        for n, op in enumerate(program.ops):
            while n >= until:
                here, (until, body) = body, next(marks)
            k = self._chunk_at(here)
            if op[0] == f.OP_SWEEP:
                for k, first, last in self._pieces(op[1], op[2]):
                    parts[k].append((first, (f.OP_SWEEP, first, last, *op[3:])))
            elif op[0] == f.OP_STEP and here == self.tops[k]:  # no joint: the chunk ends
                leaving[k].append(Leaving(op[2], op[3], program.lists[op[5]:op[5] + op[3]]))
            elif op[0] != f.OP_START or op[4] == 1 or self.ends[op[3]][0] >= 0:
                parts[k].append((here, op))
        parcels: dict[int, tuple] = {}
        for k in [*range(self.m - 1, -1, -1), self.ground]:
            local = self.programs[self.who[k]]
            local.add((f.OP_BEGIN,))
            below, reached = self.carried[k], False
            far = self.carrier[below[0]] if below else -2
            for body, op in [*parts[k], (-2, ())]:
                if not reached and body <= far:
                    reached = True
                    for child in below:
                        local.parcel(f.OP_ARRIVE, self.slot(far) if k != self.ground else -1, *parcels[child][1])
                if op:
                    local.add(op)
            if k != self.ground:
                parcels[k] = self._parcel(k, leaving[k])
                local.parcel(f.OP_LEAVE, self.hang(k), *parcels[k][0])

    def _pieces(self, first, last):
        """A sweep, divided where chunks begin and below the bodies that carry others."""
        while first >= last:
            k = self._chunk_at(first)
            below = self.carried[k]
            far = self.carrier[below[0]] if below else -1
            stop = max(last, self.tops[k] + 1, far + 1 if far < first else 0)
            if first >= stop:
                yield k, first, stop
            first = stop - 1 if stop > self.tops[k] + 1 else self.tops[k] - 1

    def _parcel(self, k: int, fronts: list[Leaving]):
        """The parcel of chunk k for sender and receiver: place, fronts, boxes up and down."""
        upper = self._chunk_at(self.carrier[k])
        w, above = self.who[k], self.who[upper]
        up = f.PARCEL_SLOT + f.PARCEL_JUDGED + sum(f.row_start(x.rows) for x in fronts)
        down = f.PARCEL_DOWN + sum(x.rows for x in fronts)
        if w == above:
            place = self.take(w, f.PARCEL_SLOT + f.PARCEL_JUDGED)
            return ((place, fronts, -1, -1),) * 2
        out, into = self._edge(w, above, up, 2)
        back, home = self._edge(above, w, down, 3)
        size = max(up, down)
        return (self.take(w, size), fronts, out, home), (self.take(above, size), fronts, into, back)

    # -- pass 4: agreement -------------------------------------------------------------------------------------------

    def _write_ballot(self):
        """Votes go up a binary tree of workers, the result comes back down."""
        for w in range(self.workers):
            self.conn_i[w][-1, f.HEAD_VOTES] = self.take(w, 2 * f.VOTES)
        for w in range(1, self.workers):
            above, place = (w - 1) // 2, (w - 1) % 2
            up, down = self._edge(w, above, f.VOTES, 4), self._edge(above, w, f.VOTES, 4)
            own, theirs = self.conn_i[w][-1], self.conn_i[above][-1]
            own[f.HEAD_BALLOT + 2], theirs[f.HEAD_BALLOT + place] = up[0] + 1, up[1] + 1
            theirs[f.HEAD_BALLOT + 4 + place], own[f.HEAD_BALLOT + 3] = down[0] + 1, down[1] + 1

    def _drives(self, w) -> np.ndarray:
        starts = self.loops.conn_i[self.mine_c[w]][:, [f.FIRST_FREEDOM, f.FREEDOMS]].tolist()
        return np.array([first + d for first, count in starts for d in range(count)], np.int64)

    def _part(self, w) -> Part:
        self.conn_i[w][-1, f.HEAD_TOTAL] = self.size[w]
        table, floats = self.spring_tables[w]
        links = np.array(self.links[w], np.int64)
        plan = replace(self.plans[w], spring_i=table, spring_f=floats, link_f=self.whole.link_f[links],
                       link_i=np.array(self.link_bodies[w], np.int32).reshape(-1, f.LINK_I))
        return replace(super()._part(w), plan=plan, closing=(self.conn_i[w], self.conn_f[w], self.programs[w].array),
                       drive_index=self._drives(w), link_index=links)
