"""The plan of a mechanism with like chunks in lanes: memory and operations of a partition (`like.py`).

The operations (`workers/chunks_in_lanes.py`) go bundle by bundle: motion across paths, root to tips; passes 1 and 2,
tips to root; pass 3, root to tips.
Cost: O(bodies). Limits: trees whose joints are all driven by torque, without springs between points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bunraku.plan import fields as f
from bunraku.plan import like
from bunraku.plan.build import Plan
from bunraku.plan.chunk_plan import LINE, SCRATCH, coordinates_of, operations, ranges, rows_of
from bunraku.plan.like import LONGEST, Partition
from bunraku.plan.plan_arrays import Arrays
from bunraku.spatial.lanes import WIDTH

LARGEST = 8e6     # bytes of lane memory: a larger mechanism keeps nothing and does passes 1 and 2 once more
UNEVEN = 1e4      # times the median mass: the heaviest body of a mechanism in lanes

# Times in units of that of a body in the plain sweep: measured (AMD EPYC, 8 lanes, 18 November 2026)
PLAIN, SERIES = 0.25, 0.42        # per body in lanes: of a branch, or of a series of chunks with far handles
PER_CHUNK, PER_JOIN = 1.4, 5.0    # per chunk, and more for one in a series


@dataclass(eq=False)
class InLanes:
    """A plan with equal chunks in lanes: `arrays` for `lanes_one`, and its parts."""

    arrays: Arrays
    bodies: int           # of the mechanism
    in_lanes: int         # of them in lanes
    chunks: int
    bundles: int
    joins: int
    work_size: int        # floats of the work array, passive torques apart
    predicted: float      # speed-up over one sweep of the whole

    @property
    def worthwhile(self) -> bool:
        return self.predicted > 1.05


def in_lanes(plan: Plan, longest: int = LONGEST) -> InLanes | None:
    """The plan in lanes, or None if it has too few equal chunks or features that lanes do not support."""
    rows = plan.body_i[:-1]
    if (plan.loops is not None or len(plan.spring_i) or plan.bodies < like.FEWEST
            or (rows[:, f.ELIMINATION] == f.LOCKED).any()):
        return None
    mass = plan.body_f[:-1, f.MASS]
    if mass.max() > UNEVEN * np.median(mass):  # joins next to so heavy a body would lose digits
        return None
    marks = plan.body_f[:-1, f.INERTIA:] @ np.sqrt(np.arange(2.0, 2.0 + f.BODY_F - f.INERTIA))
    if len(np.unique(marks)) > plan.bodies // 2:  # hardly two bodies are equal: no need to look closer
        return None
    partition = Partition(plan, longest)
    return Writer(plan, partition).result() if partition.bundles else None


class Writer:
    """The plan of the shapes, places in memory, and operations of a partition."""

    def __init__(self, plan: Plan, partition: Partition):
        self.plan, self.chunks, self.bundles = plan, partition.chunks, partition.bundles
        self.number = [-1] * len(self.chunks)     # row of chunk_i, of the chunk or of its bundle
        self.node = [0] * len(self.chunks)
        self.rows: list[np.ndarray] = []          # of body_i: ordinary chunks, then shapes
        self.tables: list[np.ndarray] = []        # of chunk_i: ordinary chunks, then bundles
        self.runs: list[tuple[int, ...]] = []
        self.ops: list[tuple[int, ...]] = []
        self._ordinary()
        self._shapes()
        self._write()

    # -- memory ------------------------------------------------------------------------------------------------------

    def _ordinary(self):
        """Chunks that are not in lanes: coordinates and velocities are those of the mechanism."""
        mine = [k for k, chunk in enumerate(self.chunks) if chunk.shape < 0]
        chunks = [self.chunks[k] for k in mine]
        far = np.array([c.bodies[c.path - 1] if c.path else -1 for c in chunks], np.int64)
        path = np.array([c.path for c in chunks], np.int64)
        body_i, table, size = rows_of(self.plan, [c.bodies for c in chunks], path, far, np.zeros(len(chunks), bool))
        for number, k in enumerate(mine):
            self.number[k] = number
        self.scratch = size
        size += SCRATCH
        for k in [*mine, *(k for bundle in self.bundles for k in bundle)]:
            self.node[k] = size
            size += f.NODE_SIZE
        table[:, f.CHUNK_NODE] = [self.node[k] for k in mine]
        self.floats = size + LINE    # loads of eight at the end
        self.rows.append(body_i[:-1])
        self.bodies = [c.bodies for c in chunks]
        self.tables.append(table)

    def _shapes(self):
        """A plan for each shape, and memory for each bundle."""
        plan, first, nq, nv, most = self.plan, sum(map(len, self.bodies)), 0, 0, 0
        dofs, poses, bundle_rows = [], [], []
        shapes: dict[int, tuple] = {}
        for bundle in self.bundles:  # the state of all shapes comes first in lane memory
            chunk = self.chunks[bundle[-1]]
            if chunk.shape in shapes:
                continue
            path, bodies = chunk.path, chunk.bodies
            far = bodies[path - 1] if path else -1
            body_i, table, size = rows_of(plan, [bodies], np.array([path]), np.array([far]), np.array([path > 0]))
            rows = body_i[:-1]
            nq_of, dof = coordinates_of(rows), rows[:, f.DOF]
            dofs.append(plan.dof_f[:, ranges(rows[:, f.V_INDEX], dof)])
            rows[:, f.Q_INDEX], rows[:, f.V_INDEX] = nq + np.cumsum(nq_of) - nq_of, nv + np.cumsum(dof) - dof
            top = rows[:, f.PARENT] < 0
            rows[top, f.COLUMN] = 0
            table[0, [f.CHUNK_FIRST, f.CHUNK_PATH, f.CHUNK_END]] += first
            freedoms = int(dof[:path].sum())
            most, size = max(most, freedoms), size - f.FAR_SIZE * freedoms  # far sweeps: all in one place
            table[0, f.CHUNK_NODE] = size
            shapes[chunk.shape] = table[0], size + f.NODE_FRONT + f.FRONT_SIZE, nq, nv
            self.rows.append(rows)
            self.bodies.append(bodies)
            first, nq, nv = first + len(rows), nq + int(nq_of.sum()), nv + int(dof.sum())
        self.body_f = np.concatenate([*(plan.body_f[b] for b in self.bodies), plan.body_f[-1:]])
        ordinary = len(self.rows[0])
        for rows, begin in zip(self.rows[1:], np.cumsum([ordinary, *map(len, self.rows[1:])])[:-1], strict=True):
            tops = begin + np.flatnonzero(rows[:, f.PARENT] < 0)
            self.body_f[tops, f.ROTATION:f.INERTIA] = (1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0)
        self.dof_f = np.concatenate([*dofs, np.zeros((f.DOF_F, 0))], axis=1)
        self.nq, self.nv, self.height = nq, nv, nq + 2 * nv + f.FAR_SIZE * most
        place, start = self.body_f.size + self.dof_f.size, self.height
        rows_in_all = sum(shapes[self.chunks[bundle[0]].shape][1] for bundle in self.bundles)
        self.again = 8 * WIDTH * rows_in_all > LARGEST
        for b, bundle in enumerate(self.bundles):
            table, size, q_row, v_row = shapes[self.chunks[bundle[0]].shape]
            row = table.copy()
            begin = start if self.again else self.height
            row[[f.BUNDLE_ROWS, f.BUNDLE_ROWS_END]] = begin, begin + size
            self.height = max(self.height, begin + size)
            row[f.BUNDLE_NODES], row[f.BUNDLE_POSE] = self.node[bundle[0]], place + 12 * WIDTH * b
            poses.append(self._poses(bundle))
            members = [plan.body_i[self.chunks[k].bodies] for k in bundle]
            row[f.BUNDLE_Q_RUNS] = len(self.runs)
            self._add_runs([ranges(rows[:, f.Q_INDEX], coordinates_of(rows)) for rows in members], q_row)
            row[f.BUNDLE_V_RUNS] = len(self.runs)
            self._add_runs([ranges(rows[:, f.V_INDEX], rows[:, f.DOF]) for rows in members], v_row)
            row[f.BUNDLE_RUNS_END] = len(self.runs)
            bundle_rows.append(row)
            for k in bundle:
                self.number[k] = len(self.tables[0]) + b
        self.tables.append(np.array(bundle_rows, np.int32))
        self.numbers = np.concatenate([self.body_f.ravel(), self.dof_f.ravel(), *(pose.ravel() for pose in poses)])

    def _poses(self, bundle):
        """Of the first joint of each chunk on the link above: rotation, then position in axes of that link."""
        tops = [self.chunks[k].bodies[0] for k in bundle]
        rotation = self.plan.body_f[tops, f.ROTATION:f.OFFSET]
        position = np.einsum("wij,wj->wi", rotation.reshape(-1, 3, 3), self.plan.body_f[tops, f.OFFSET:f.INERTIA])
        return np.column_stack([rotation, position]).T

    def _add_runs(self, members, row):
        """Runs of numbers that are one behind the other in all places, and as far from place to place."""
        index = np.column_stack(members)
        apart = index[:, 1] - index[:, 0]
        even = (np.diff(index, axis=1) == apart[:, None]).all(axis=1)
        goes_on = (np.diff(index, axis=0) == 1).all(axis=1)
        starts = np.flatnonzero(np.concatenate([[True], ~goes_on]))
        for begin, end in zip(starts.tolist(), [*starts[1:].tolist(), len(index)], strict=True):
            if even[begin]:
                self.runs.append((index[begin, 0], apart[begin], end - begin, row + begin, -1))
            else:
                self.runs += [(index[begin, w], 0, end - begin, row + begin, w) for w in range(WIDTH)]

    # -- operations --------------------------------------------------------------------------------------------------

    def _do(self, *op):
        self.ops.append((*map(int, op), *(0,) * (f.CHUNK_OP - len(op))))

    def _to_others(self, carried, floats):
        """Copy the data of the first chunk at a link to the others there."""
        for k in carried[1:]:
            self._do(f.DO_COPY, self.node[carried[0]] + floats, 6, self.node[k] + floats)

    def _write(self):
        chunks, node, number = self.chunks, self.node, self.number
        table = np.concatenate(self.tables)
        spans = table[:, [f.CHUNK_FIRST, f.CHUNK_PATH, f.CHUNK_END]].tolist()
        last = {bundle[-1]: b for b, bundle in enumerate(self.bundles)}
        first_of = {bundle[0] for bundle in self.bundles}
        for k, chunk in enumerate(chunks):  # passes 1 and 2 of ordinary chunks, but for what waits for others
            c, carried = number[k], chunk.carried
            first, path, end = spans[c]
            if chunk.above < 0:
                self._do(f.DO_GROUND, node[k])
            if chunk.shape < 0:
                self._do(f.DO_OUTWARD, c, first, path if carried else end, 1)
                if carried:
                    self._do(f.DO_FOLLOW, c, node[carried[0]])
                    if end > path:
                        self._do(f.DO_OUTWARD, c, path, end)
                self._do(f.DO_BEGIN, c)
                if end > path:
                    self._do(f.DO_INWARD, end - 1, path)
                if not carried and chunk.above >= 0:
                    self._do(f.DO_CLOSED, c)
            else:
                if k in first_of and chunk.path:
                    self._do(f.DO_LANES_ACROSS, c)
                if carried:
                    self._do(f.DO_ONWARD, node[k], node[carried[0]])
            self._to_others(carried, f.NODE_V)
        for k in range(len(chunks) - 1, -1, -1):  # what is left of them
            chunk, c = chunks[k], number[k]
            first, path, _ = spans[c]
            for other in chunk.carried[1:]:
                self._do(f.DO_ADD, node[chunk.carried[0]], node[chunk.carried[0]], node[other])
            if chunk.carried and chunk.shape < 0:
                self._do(f.DO_RECEIVE, c, node[chunk.carried[0]])
                self._do(f.DO_INWARD, path - 1, first)
                if chunk.above >= 0:
                    self._do(f.DO_CLOSED, c)
            elif k in last:
                noted = chunk.path > 0 and not self.again
                self._do(f.DO_LANES_IN, c, noted, node[chunk.carried[0]] if chunk.carried else 0)
        for k, chunk in enumerate(chunks):  # pass 3
            c, carried = number[k], chunk.carried
            first, path, end = spans[c]
            if chunk.shape < 0:
                self._do(f.DO_DOWN, c, first, path if carried else end, 1)
                if carried:
                    self._do(f.DO_CARRY, c, node[carried[0]])
                    if end > path:
                        self._do(f.DO_DOWN, c, path, end)
            if k in last:
                self._do(f.DO_LANES_AGAIN if self.again else f.DO_LANES_DOWN, c)
                if carried:
                    self._do(f.DO_COPY, node[k] + f.NODE_REACHED, 6, node[carried[0]] + f.NODE_A)
            self._to_others(carried, f.NODE_A)
        self.chunk_i = table

    # -- the whole ---------------------------------------------------------------------------------------------------

    def result(self) -> InLanes:
        plan = self.plan
        header = plan.body_i[-1:].copy()
        header[0, f.HEAD_SCRATCH], header[0, f.HEAD_WORK] = self.scratch, self.floats
        header[0, f.HEAD_NQ], header[0, f.HEAD_FREEDOMS_IN_LANES] = self.nq, self.nv
        body_i, size = plan.body_i.copy(), self.floats + LINE + WIDTH * self.height
        body_i[-1, f.HEAD_WORK] = size
        body_i[-1, f.HEAD_SHAPES] = sum(map(len, self.rows)) + 1
        wide = np.pad(np.concatenate([*self.rows, header]), ((0, 0), (0, f.CHUNK_I - f.BODY_I)))
        arrays = plan.arrays._replace(
            body_i=body_i, ops=operations(self.ops), sum_ops=np.concatenate([wide, self.chunk_i]),
            boxes=np.array(self.runs, np.int64).reshape(-1, f.RUN), mail=self.numbers)
        lanes = [c for c in self.chunks if c.shape >= 0]
        series = [c for c in lanes if c.path]
        return InLanes(arrays, plan.bodies, sum(len(c.bodies) for c in lanes), len(self.chunks), len(self.bundles),
                       sum(bool(c.carried) for c in series), size, self._speed_up(lanes, series))

    def _speed_up(self, lanes, series) -> float:
        n, far = sum(len(c.bodies) for c in lanes), sum(len(c.bodies) for c in series)
        once = PLAIN * (n - far) + SERIES * far + (PLAIN * n if self.again else 0.0)
        time = self.plan.bodies - n + 8 / WIDTH * once + PER_CHUNK * len(self.chunks) + PER_JOIN * len(series)
        return self.plan.bodies / time
