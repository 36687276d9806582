"""A mechanism cut at joints: the plan of every worker, and its operations in an evaluation.

Idea: bodies of a chunk are rows of the plan, numbered depth first with the path to its far body first. A worker's plan
is those rows of its chunks, one chunk behind the other, with coordinates and slots of its own: the sweeps of
`algorithms/aba.py` run on it unchanged. `Division` goes through the assembly tree in the order of the passes and writes
the operations of each worker (`ops`), with a message wherever a result is needed elsewhere. The same chunks on fewer
workers give the same numbers, bit by bit, with fewer messages.
Reference: [YN02, sec. 5.2], [J, sec. III]; docs/parallel.md. Cost: O(bodies).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from bunraku.plan import fields as f
from bunraku.plan.build import Plan, lay_out_records, mark_slots
from bunraku.plan.chunk_operations import write_passes
from bunraku.plan.plan_arrays import NO_CONTACT, NO_LOOPS, Arrays

SCRATCH = 240  # floats that a join needs (`algorithms/join.py`)
LINE = 8       # floats of a cache line


class Assembly(NamedTuple):
    """Chunks of a plan and the tree in which they are joined (`scheduling/`). Nodes 0 .. m - 1 are the chunks, the
    others joins, operands before joins."""

    chunk: np.ndarray    # (bodies,) the chunk of every body; chunks are numbered parents first
    worker: np.ndarray   # (m,) who computes it
    waits: np.ndarray    # (m,) whether it waits for the chunks it carries; if not, it has a far handle
    left: np.ndarray     # (m - 1,) operands of joins; in series, `left` is the upper one
    right: np.ndarray
    series: np.ndarray   # (m - 1,) whether the right operand hangs from the left one, else both from the same link
    open: np.ndarray     # (2 m - 1,) whether the node carries others
    owner: np.ndarray    # (m - 1,) the chunk whose worker computes the join; a chunk that waits computes its own


class Read(NamedTuple):
    """Entries of the state that an actuation reads: indices of coordinates and velocities of the whole mechanism."""

    q: np.ndarray
    v: np.ndarray


class Edge(NamedTuple):
    """A message channel between two workers."""

    sender: int
    receiver: int
    floats: int
    number: int          # of the pass, 1 to 4


@dataclass(eq=False)
class Part:
    """One worker's part: the plan of its chunks, its operations, and its share of the state."""

    plan: Plan
    chunk_i: np.ndarray
    ops: np.ndarray
    sum_ops: np.ndarray
    whole: np.ndarray        # see `fields.py`; empty if no function reads the whole state
    boxes: list[int]         # numbers of the edges it uses, in the order of its boxes
    q_index: np.ndarray      # its coordinates among those of the whole mechanism
    v_index: np.ndarray
    spans: np.ndarray        # (2 chunks, 2) of its state: coordinates, then velocities, of each chunk
    closing: tuple[np.ndarray, np.ndarray, np.ndarray] = NO_LOOPS                   # connections (`chunk_loops.py`)
    drive_index: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # its drives among all connections'
    link_index: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))   # its links, for external forces

    def arrays(self, mail: np.ndarray, places: np.ndarray, others: np.ndarray, dof_f=None) -> Arrays:
        """For one team: with its mail, and counts of messages of its own; `others` at the ends of the edges."""
        boxes = np.zeros((len(self.boxes), f.BOX), np.int64)
        boxes[:, f.BOX_PLACE], boxes[:, f.BOX_OTHER], boxes[:, f.BOX_EDGE] = places[self.boxes], others, self.boxes
        p = self.plan
        return Arrays(p.body_i, p.body_f, p.dof_f if dof_f is None else dof_f, p.link_i, p.link_f, p.spring_i,
                      p.spring_f, *self.closing, self.chunk_i, self.ops, self.sum_ops, self.whole, boxes, mail,
                      NO_CONTACT)


class Division:
    """A plan divided among workers. `read`: the part of the whole state that is gathered in every evaluation."""

    slotted = np.zeros(0, np.int64)  # bodies that need a slot of their own

    def __init__(self, plan: Plan, assembly: Assembly, read: Read | None = None):
        self.assembly, self.gathers = assembly, read is not None
        self.m = len(assembly.worker)
        self.workers = int(assembly.worker.max(initial=0)) + 1
        self.edges: list[Edge] = []
        self._order_bodies(plan)
        self._place_nodes()
        self._ops: list[list[tuple[int, ...]]] = [[] for _ in range(self.workers)]
        self._sums: list[list[tuple[int, ...]]] = [[] for _ in range(self.workers)]
        self._boxes: list[dict[int, int]] = [{} for _ in range(self.workers)]
        self._lay_out(plan)
        self._write_passes()
        self._write_sums()
        self._whole = [np.zeros(0, np.int64)] * self.workers if read is None else self._gathering(plan, read)
        self.parts = [self._part(w) for w in range(self.workers)]

    # -- bodies ------------------------------------------------------------------------------------------------------

    def _order_bodies(self, plan):
        """Bodies of each chunk, the path first; the far body of each chunk."""
        chunk, parent = self.assembly.chunk, plan.body_i[:-1, f.PARENT]
        m, n = self.m, plan.bodies
        above = np.where(parent >= 0, chunk[parent], -1)
        tops = np.flatnonzero(above != chunk)
        far = np.full(m, -1)
        for top in tops[parent[tops] >= 0]:
            carrier = int(parent[top])
            k = int(chunk[carrier])
            if far[k] >= 0 and far[k] != carrier:
                raise ValueError("the children of a chunk are attached to two different bodies of it")
            far[k] = carrier
        on_path = np.zeros(n, bool)
        for k in np.flatnonzero(far >= 0).tolist():
            body = int(far[k])
            while body >= 0 and chunk[body] == k:
                on_path[body] = True
                body = int(parent[body])
        # depth first with the path first: a stable order by (chunk, not on the path, body) keeps each depth first
        order = np.lexsort((np.arange(n), ~on_path, chunk))
        self.bodies = np.split(order, np.searchsorted(chunk[order], np.arange(1, m))) if m else []
        self.path = np.array([int(on_path[b].sum()) for b in self.bodies])
        self.far, self.parent = far, parent

    # -- memory ------------------------------------------------------------------------------------------------------

    def _place_nodes(self):
        """The worker of every node: of a join, that of its owner, or of the chunk that waits."""
        s = self.assembly
        owner = [s.left[j] if self.waiting(j) else k for j, k in enumerate(s.owner.tolist())]
        self.place = [*s.worker.tolist(), *(int(s.worker[k]) for k in owner)]

    def _lay_out(self, plan):
        """Plans of the workers: rows of the bodies of their chunks; places of chunks and nodes in the work array."""
        s = self.assembly
        self.mine = [np.flatnonzero(s.worker == w) for w in range(self.workers)]   # chunks
        self.number = np.zeros(self.m, np.int64)                                   # of a chunk at its worker
        self.plans, self.tables, self.indices, self.spans = [], [], [], []
        self.size: list[int] = []
        self._records: list[dict[int, int]] = [{} for _ in range(self.workers)]
        for w, chunks in enumerate(self.mine):
            self.number[chunks] = np.arange(len(chunks))
            bodies = np.concatenate([self.bodies[k] for k in chunks]) if len(chunks) else np.zeros(0, np.int64)
            self._plan_of(plan, w, chunks, bodies)

    def _plan_of(self, plan, w, chunks, bodies):
        s, far = self.assembly, self.far[chunks]
        rows = plan.body_i[bodies]
        nq_of = coordinates_of(rows)
        q_index = ranges(rows[:, f.Q_INDEX], nq_of)
        v_index = ranges(rows[:, f.V_INDEX], rows[:, f.DOF])
        body_i, table, size = rows_of(plan, [self.bodies[k] for k in chunks], self.path[chunks], far,
                                      (far >= 0) & ~s.waits[chunks], self.slotted)
        n, nq = len(bodies), len(q_index)
        q_ends, v_ends = np.cumsum(nq_of), np.cumsum(rows[:, f.DOF])
        body_i[:n, f.Q_INDEX], body_i[:n, f.V_INDEX] = q_ends - nq_of, v_ends - rows[:, f.DOF]
        spans = np.zeros((2 * len(chunks), 2), np.int64)
        for c, (begin, end) in enumerate(table[:, [f.CHUNK_FIRST, f.CHUNK_END]].tolist()):
            first_q, first_v = (0, 0) if begin == 0 else (int(q_ends[begin - 1]), int(v_ends[begin - 1]))
            spans[2 * c] = first_q, q_ends[end - 1]
            spans[2 * c + 1] = nq + first_v, nq + v_ends[end - 1]
        body_i[n, f.HEAD_SCRATCH] = size
        body_i[n, f.HEAD_NQ] = nq
        body_i[n, f.HEAD_SPRINGS] = 0
        self.size.append(size + SCRATCH)
        self.tables.append(table)
        self.indices.append((q_index, v_index))
        self.spans.append(spans)
        self.plans.append(replace(
            plan, nq=nq, nv=len(v_index), body_i=body_i, body_f=np.concatenate([plan.body_f[bodies], plan.body_f[-1:]]),
            dof_f=np.ascontiguousarray(plan.dof_f[:, v_index]), link_i=plan.link_i[:0], link_f=plan.link_f[:0],
            spring_i=plan.spring_i[:0], spring_f=plan.spring_f[:0], neutral=plan.neutral[q_index],
            body_link=plan.body_link[bodies], dof_link=plan.dof_link[v_index],
            coordinate_link=plan.coordinate_link[q_index], loops=None, ties={}))
        for c, k in enumerate(chunks.tolist()):
            table[c, f.CHUNK_NODE] = self.record(w, k)

    def record(self, worker, node) -> int:
        """Where a worker keeps a node. The join of a chunk that waits is the chunk itself."""
        s = self.assembly
        while node >= self.m and self.waiting(node - self.m):
            node = int(s.left[node - self.m])
        known = self._records[worker]
        if node not in known:
            known[node] = self.size[worker]
            self.size[worker] += f.NODE_SIZE
        return known[node]

    def waiting(self, j) -> bool:
        """Whether the upper operand of join j is a chunk that waits for the lower one."""
        s, a = self.assembly, int(self.assembly.left[j])
        return bool(s.series[j]) and a < self.m and bool(s.waits[a])

    # -- operations --------------------------------------------------------------------------------------------------

    def do(self, worker, *op):
        self._ops[worker].append((*map(int, op), *(0,) * (f.CHUNK_OP - len(op))))

    def _box(self, worker, edge) -> int:
        return self._boxes[worker].setdefault(edge, len(self._boxes[worker]))

    def send(self, source, target, node, field, floats, number):
        """A message about a node, if its worker and the one who needs it are different ones: posted now. The receiver
        takes it when it calls the result."""
        if source == target:
            return lambda: None
        edge = len(self.edges)
        self.edges.append(Edge(source, target, floats, number))
        self.do(source, f.DO_POST, self.record(source, node) + field, floats, self._box(source, edge))
        return lambda: self.do(target, f.DO_TAKE, self.record(target, node) + field, floats, self._box(target, edge))

    def chunk(self, k):
        """Operands that denote a chunk: worker, number within that worker, bodies."""
        w, c = self.place[k], int(self.number[k])
        return w, c, *self.tables[w][c, [f.CHUNK_FIRST, f.CHUNK_PATH, f.CHUNK_END]].tolist()

    def _write_passes(self):
        if self.m:
            write_passes(self)

    # -- the solver's sums, and the whole ----------------------------------------------------------------------------

    def _write_sums(self):
        """Pass 4: sums of the chunks up the assembly tree, in an order that does not depend on the workers, and the
        totals back to all of them."""
        m, s, place = self.m, self.assembly, self.place
        self.first_sums = list(self.size)
        known: list[dict[int, int]] = [{} for _ in range(self.workers)]

        def at(worker, node):
            if node not in known[worker]:
                known[worker][node] = self.size[worker]
                self.size[worker] += f.EDGE_SUMS
            return known[worker][node]

        def send(source, target, node):
            if source != target:
                edge = len(self.edges)
                self.edges.append(Edge(source, target, f.EDGE_SUMS, 4))
                self._sums[source].append((f.DO_POST, at(source, node), f.EDGE_SUMS, self._box(source, edge), 0))
                self._sums[target].append((f.DO_TAKE, at(target, node), f.EDGE_SUMS, self._box(target, edge), 0))

        for k in range(m):
            at(place[k], k)
        for j in range(m - 1):
            node, w = m + j, place[m + j]
            for x in (int(s.left[j]), int(s.right[j])):
                send(place[x], w, x)
            self._sums[w].append((f.DO_ADD, at(w, node), at(w, int(s.left[j])), at(w, int(s.right[j])), 0))
        root = 2 * m - 2
        reached, self.totals = {place[root]} if m else set(), [0] * self.workers
        for node in range(root, -1, -1):  # each worker gets the totals once, from where it meets them first
            for x in (int(s.left[node - m]), int(s.right[node - m])) if node >= m else ():
                if place[x] not in reached:
                    reached.add(place[x])
                    send(place[node], place[x], root)
        for w in range(self.workers):
            self.totals[w] = at(w, root) if m else self.size[w]

    def _drives(self, w) -> np.ndarray:
        """Free directions of the connections of a worker, among those of the whole mechanism."""
        return np.zeros(0, np.int64)

    def _gathering(self, plan, read: Read) -> list[np.ndarray]:
        """Messages that gather the state read by the actuation at worker 0 and return the torques: `whole`."""
        shares = []  # places in the worker's q and v; numbers in the whole of coordinates, velocities, torques
        for w, (q_index, v_index) in enumerate(self.indices):
            here_q, here_v = (np.flatnonzero(np.isin(index, numbers)) for index, numbers in
                              zip((q_index, v_index), read, strict=True))
            shares.append((here_q, here_v, q_index[here_q], v_index[here_v],
                           np.concatenate([v_index, plan.nv + self._drives(w)])))
        size = plan.nq + 2 * plan.nv + (0 if plan.loops is None else plan.loops.freedoms)
        masked = len(read.q) < plan.nq or len(read.v) < plan.nv
        first = [self.workers, self.size[0], plan.nq, plan.nv, size - plan.nq - plan.nv, int(masked)]
        self.size[0] += size + max(sum(map(len, share[2:])) for share in shares)
        found = []
        for w, (here_q, here_v, *numbers) in enumerate(shares):
            up = down = -1
            if w > 0:
                edge = len(self.edges)
                self.edges += [Edge(w, 0, len(here_q) + len(here_v), f.GATHER), Edge(0, w, len(numbers[2]), f.GATHER)]
                up, down = self._box(0, edge), self._box(0, edge + 1)
                found.append(np.array([-1, self._box(w, edge), self._box(w, edge + 1), self.size[w], len(here_q),
                                       len(here_v), *here_q, *here_v], np.int64))
                self.size[w] += len(here_q) + len(here_v)
            first += [up, down, *map(len, numbers), *np.concatenate(numbers)]
            if w == 0:
                first += [*here_q, *here_v]
        return [np.array(first, np.int64), *found]

    def _part(self, w) -> Part:
        body_i = self.plans[w].body_i
        body_i[-1, f.HEAD_WORK] = self.size[w]
        body_i[-1, f.HEAD_SUMS] = self.first_sums[w]
        body_i[-1, f.HEAD_TOTALS] = self.totals[w]
        q_index, v_index = self.indices[w]
        return Part(self.plans[w], self.tables[w], operations(self._ops[w]), operations(self._sums[w]), self._whole[w],
                    list(self._boxes[w]), q_index, v_index, self.spans[w])

    def arrays(self) -> list[Arrays]:
        """Of all workers, with mail that they share."""
        mail, places = self._mail()
        return [part.arrays(mail, places, self._others(w)) for w, part in enumerate(self.parts)]

    def arrays_apart(self, w: int) -> Arrays:
        """Of one worker, with mail for its own messages only."""
        mail, places = self._mail(self.parts[w].boxes)
        return self.parts[w].arrays(mail, places, self._others(w))

    def _others(self, w: int) -> np.ndarray:
        ends = [self.edges[e] for e in self.parts[w].boxes]
        return np.array([e.receiver if e.sender == w else e.sender for e in ends], np.int64)

    def _mail(self, own=None) -> tuple[np.ndarray, np.ndarray]:
        """Empty mail, and the place of every edge in it; with room for some of the edges only."""
        sizes = np.array([-(-(f.BOX_HEAD + e.floats) // LINE) * LINE for e in self.edges], np.int64)
        if own is not None:
            kept = np.zeros(len(sizes), bool)
            kept[list(own)] = True
            sizes *= kept
        places = f.MAIL_START + np.cumsum(sizes) - sizes
        memory = np.zeros(int(sizes.sum()) + f.MAIL_START + LINE)
        skip = (-(memory.ctypes.data // 8)) % LINE  # boxes begin with a cache line
        return memory[skip:skip + int(sizes.sum()) + f.MAIL_START], places


def rows_of(plan, chunks, path, far, handle, slotted=()) -> tuple[np.ndarray, np.ndarray, int]:
    """Rows of body_i for chunks, one behind the other, with slots and records of their own; their rows of chunk_i; and
    the size of the work array so far.

    chunks   bodies of each, the path first        path     number of bodies on the path
    far      far body, -1 if it carries nothing    handle   whether the path is swept with a far handle
    slotted  bodies that need a slot of their own
    """
    bodies = np.concatenate(chunks) if len(chunks) else np.zeros(0, np.int64)
    n, counts = len(bodies), np.array([len(b) for b in chunks], np.int64)
    rows, ends = plan.body_i[bodies], np.cumsum(counts)
    body_i = np.concatenate([rows, plan.body_i[-1:]])
    where, member = np.full(plan.bodies + 1, -1), np.full(plan.bodies + 1, -1)
    where[bodies], member[bodies] = np.arange(n), np.repeat(np.arange(len(chunks)), counts)
    parent, own_chunk = rows[:, f.PARENT], member[bodies]
    top = member[parent] != own_chunk  # the last entry of member stands for the ground
    body_i[:n, f.PARENT] = np.where(top, -1, where[parent])
    body_i[:n, f.ANCHOR][top] |= f.OPENS
    keep = np.zeros(n, bool)
    keep[where[far[far >= 0]]] = True
    known = where[slotted] if len(slotted) else where[:0]
    keep[known[known >= 0]] = True
    first = ends - counts
    for c in np.flatnonzero(handle).tolist():  # with a far handle free joints go column by column
        elimination = body_i[first[c]:first[c] + path[c], f.ELIMINATION]
        elimination[elimination == f.LOOSE] = f.COLUMNS
    mark_slots(body_i, keep)
    slots = int(body_i[n, f.HEAD_SLOTS])
    body_i[:n, f.PARENT_SLOT][top] = (slots + own_chunk[top]) * f.SLOT_SIZE
    body_i[:n, f.ADDS][top] = 1
    body_i[n, f.HEAD_SLOTS] = slots + len(chunks)
    lay_out_records(body_i)
    own = body_i[:n, f.OWN_SLOT]
    size = int(body_i[n, f.HEAD_WORK])
    table = np.zeros((len(chunks), f.CHUNK_I), np.int32)
    for c in range(len(chunks)):
        begin, end = int(first[c]), int(ends[c])
        places = own[begin:end][own[begin:end] > f.SLOT_CARRY]
        table[c, f.CHUNK_FIRST], table[c, f.CHUNK_PATH] = begin, begin + path[c]
        table[c, f.CHUNK_END], table[c, f.CHUNK_HANG] = end, (slots + c) * f.SLOT_SIZE
        if len(places):
            table[c, f.CHUNK_SLOTS], table[c, f.CHUNK_SLOTS_END] = places.min(), places.max() + f.SLOT_SIZE
        if far[c] >= 0:
            table[c, f.CHUNK_FAR] = own[where[far[c]]]
            table[c, f.CHUNK_STATE] = size
            size += 24
        if handle[c]:
            table[c, f.CHUNK_KEPT] = size
            size += f.FAR_SIZE * int(rows[begin:begin + path[c], f.DOF].sum())
    return body_i, table, size


def operations(rows) -> np.ndarray:
    return np.array(rows, np.int32).reshape(-1, f.CHUNK_OP)


def coordinates_of(rows) -> np.ndarray:
    """How many coordinates the joints of these rows of body_i have."""
    kind = rows[:, f.KIND]
    return np.where(kind == f.SPHERICAL, 4, np.where(kind == f.FREE, 7, rows[:, f.DOF])).astype(np.int64)


def ranges(first, count) -> np.ndarray:
    """first, first + 1, ... of each row, one behind the other."""
    total = int(count.sum())
    begin = np.cumsum(count) - count
    return np.repeat(first - begin, count) + np.arange(total)
