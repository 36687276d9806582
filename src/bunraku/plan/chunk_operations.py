"""Operations of the workers of a team: passes 1, 2 and 3 of a tree cut into chunks (`chunk_plan.py`).

The assembly tree is walked three times, and every operation is written to the list of the worker that has the node; a
node whose operand has another worker sends a message. Pass 1: motion across chunks with a far handle up, velocities
down. Pass 2: inertias and forces up. Pass 3: accelerations and forces down. [docs/parallel.md]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bunraku.plan import fields as f

if TYPE_CHECKING:
    from bunraku.plan.chunk_plan import Division


def write_passes(division: Division) -> None:
    """Write the operations of all workers; there is at least one chunk."""
    writer = _Writer(division)
    writer.moves()
    writer.velocities()
    writer.inertias()
    writer.accelerations()


class _Writer:
    """The assembly tree as lists: chunks are nodes 0 .. m - 1, join j is node m + j."""

    def __init__(self, division: Division):
        d, s = division, division.assembly
        self.d, self.m, self.place = d, d.m, d.place
        self.left, self.right, self.series = s.left.tolist(), s.right.tolist(), s.series.tolist()
        self.is_open, self.waits = s.open.tolist(), s.waits.tolist()
        self.upper = [-1] * (2 * d.m - 1)
        for j in range(d.m - 1):
            self.upper[self.left[j]] = self.upper[self.right[j]] = d.m + j
        self.root = 2 * d.m - 2

    def has_far_handle(self, k) -> bool:
        """Whether chunk k is swept with a far handle; one that waits for what it carries is not."""
        return self.is_open[k] and not self.waits[k]

    def up(self, take):
        """Joins from the tips on: number, node, operands, worker; `take`: messages about nodes that are under way."""
        for j in range(self.m - 1):
            a, b = self.left[j], self.right[j]
            for x in (a, b):
                if x in take:
                    take.pop(x)()
            yield j, self.m + j, a, b, self.place[self.m + j]

    def down(self, take):
        """Joins from the root on."""
        for node in range(self.root, self.m - 1, -1):
            if node in take:
                take.pop(node)()
            yield node - self.m, node, self.left[node - self.m], self.right[node - self.m], self.place[node]

    # -- pass 1 ------------------------------------------------------------------------------------------------------

    def moves(self):
        """Motion across the chunks with a far handle, composed up the tree."""
        d, record, take = self.d, self.d.record, {}

        def send(w, node):
            take[node] = d.send(w, self.place[self.upper[node]], node, f.NODE_MOVE, f.EDGE_MOVE, 1)

        for k in reversed([k for k in range(self.m) if self.has_far_handle(k)]):
            w, c, *_ = d.chunk(k)
            d.do(w, f.DO_ACROSS, c)
            send(w, k)
        for j, node, a, b, w in self.up(take):
            if self.is_open[node]:
                if self.series[j] and self.is_open[b]:
                    d.do(w, f.DO_COMPOSE, record(w, node), record(w, a), record(w, b))
                else:
                    x = a if self.is_open[a] else b
                    d.do(w, f.DO_COPY, record(w, x) + f.NODE_MOVE, f.EDGE_MOVE, record(w, node) + f.NODE_MOVE)
                send(w, node)

    def velocities(self):
        """Velocities down the tree, and pass 1 of the chunks' bodies."""
        d, record, take = self.d, self.d.record, {}

        def send(w, node):
            take[node] = d.send(w, self.place[node], node, f.NODE_V, f.EDGE_VELOCITY, 1)

        d.do(self.place[self.root], f.DO_GROUND, record(self.place[self.root], self.root))
        for j, node, a, b, w in self.down(take):
            if d.waiting(j):
                _, c, first, path, _ = d.chunk(a)
                d.do(w, f.DO_OUTWARD, c, first, path, 1)
                d.do(w, f.DO_FOLLOW, c, record(w, b))
            else:
                d.do(w, f.DO_COPY, record(w, node) + f.NODE_V, 6, record(w, a) + f.NODE_V)
                send(w, a)
                if self.series[j]:
                    d.do(w, f.DO_ONWARD, record(w, a), record(w, b))
                else:
                    d.do(w, f.DO_COPY, record(w, node) + f.NODE_V, 6, record(w, b) + f.NODE_V)
            send(w, b)
        for k in range(self.m):
            w, c, first, path, end = d.chunk(k)
            if k in take:
                take.pop(k)()
            if self.is_open[k] and self.waits[k]:
                if end > path:
                    d.do(w, f.DO_OUTWARD, c, path, end)
                continue
            if path > first:
                d.do(w, f.DO_OUTWARD, c, first, path, 1)
            if end > path:
                d.do(w, f.DO_OUTWARD, c, path, end, int(path == first))

    # -- pass 2 ------------------------------------------------------------------------------------------------------

    def inertias(self):
        """Inertias and forces of the chunks, joined up the tree."""
        d, record, take = self.d, self.d.record, {}

        def send(node):
            if self.upper[node] >= 0:
                take[node] = d.send(self.place[node], self.place[self.upper[node]], node, f.NODE_FRONT,
                                    f.EDGE_FAR if self.is_open[node] else f.EDGE_INERTIA, 2)

        for k in range(self.m - 1, -1, -1):
            w, c, _, path, end = d.chunk(k)
            d.do(w, f.DO_BEGIN, c)
            if end > path:
                d.do(w, f.DO_INWARD, end - 1, path)
            if self.is_open[k] and self.waits[k]:
                continue
            if self.is_open[k]:
                d.do(w, f.DO_FAR, c)
            elif self.m > 1:
                d.do(w, f.DO_CLOSED, c)
            send(k)
        for j, node, a, b, w in self.up(take):
            if d.waiting(j):
                _, c, first, path, _ = d.chunk(a)
                d.do(w, f.DO_RECEIVE, c, record(w, b))
                d.do(w, f.DO_INWARD, path - 1, first)
                if self.upper[node] >= 0:
                    d.do(w, f.DO_CLOSED, c)
            elif self.series[j]:
                if self.is_open[node] and not self.is_open[b]:
                    d.do(w, f.DO_STAY, record(w, b))
                d.do(w, f.DO_JOIN_OPEN if self.is_open[node] else f.DO_JOIN, record(w, node), record(w, a),
                     record(w, b))
            else:
                one, other = (b, a) if self.is_open[b] else (a, b)
                d.do(w, f.DO_ADD, record(w, node), record(w, one), record(w, other), int(self.is_open[one]))
            send(node)

    # -- pass 3 ------------------------------------------------------------------------------------------------------

    def accelerations(self):
        """Accelerations and forces on far links down the tree."""
        d, record, take = self.d, self.d.record, {}

        def send(w, node):
            waits = node < self.m and self.waits[node]
            take[node] = d.send(w, self.place[node], node, f.NODE_A,
                                f.EDGE_FAR_DOWN if self.is_open[node] and not waits else f.EDGE_ACCELERATION, 3)

        for j, node, a, b, w in self.down(take):
            if d.waiting(j):
                _, c, first, path, _ = d.chunk(a)
                d.do(w, f.DO_DOWN, c, first, path, 1)
                d.do(w, f.DO_CARRY, c, record(w, b))
            else:
                if self.series[j]:
                    d.do(w, f.DO_SPLIT_OPEN if self.is_open[node] else f.DO_SPLIT, record(w, node), record(w, a),
                         record(w, b))
                else:
                    for x in (a, b):
                        d.do(w, f.DO_COPY, record(w, node) + f.NODE_A, 12 if self.is_open[x] else 6,
                             record(w, x) + f.NODE_A)
                send(w, a)
            send(w, b)
        for k in range(self.m):
            w, c, first, path, end = d.chunk(k)
            if k in take:
                take.pop(k)()
            if self.has_far_handle(k):
                d.do(w, f.DO_DOWN_FAR, c)
            if end > path:
                d.do(w, f.DO_DOWN, c, path, end, int(path == first))
