"""Mass matrices of trees: one state, or a batch over lanes and threads."""

from __future__ import annotations

import numpy as np

from bunraku.algorithms.crba import FORCE, composites, crba, entries, forces_of, rounded, subtrees, trig_of, turns
from bunraku.checks import aligned
from bunraku.entries.explain import refuse
from bunraku.entries.pool import spread
from bunraku.entries.signatures import FAILED, FINE, PLAN, WRONG_SHAPE, flags, floats, int64, lane_array, table
from bunraku.errors import ShapeError
from bunraku.jit import allocating, entry, inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.lane_memory import gather, scatter, stream_rows, transpose_lanes
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import store

SMALLEST_SHARE = 256
STREAMED = 1 << 22  # bytes: results larger than that go past the caches, which they would only empty


@inline
def in_lanes(body_i, nv):
    """Are W x W entries to be filled in at once? Velocities must be numbered like the bodies, and enough for it."""
    return nv >= 2 * WIDTH and body_i[-1, f.HEAD_ORDERED] == 1


@inner
def one_state(body_i, body_f, dof_f, q, matrix, work):
    """M of one state; `work` of `work_size` floats. Returns zero if all is finite."""
    nv = dof_f.shape[1]
    if not in_lanes(body_i, nv):
        return crba(body_i, body_f, dof_f, q, matrix, work)
    turns(body_i, q, work, trig_of(body_i, nv))
    residue = composites(body_i, body_f, nv, q, work, 1, rounded(nv))
    ends = work[ends_of(body_i, nv):work_size(body_i, nv)]
    one_group = subtrees(body_i, ends)
    return residue + entries(body_i, dof_f, one_group, work, 0, work[forces_of(body_i, nv):], ends, matrix)


@inline
def ends_of(body_i, nv):
    """Where in the work of one state the ends of subtrees are, behind those of at most nv + n coordinates."""
    return trig_of(body_i, nv) + 2 * (nv + body_i.shape[0] - 1)


@inline
def work_size(body_i, nv):
    return ends_of(body_i, nv) + nv + body_i.shape[0] - 1


@allocating
def floats_at_a_line(size):
    """Uninitialised floats that start on a cache line."""
    return lane_array((size + WIDTH - 1) // WIDTH).reshape(-1)


@entry("mass matrix", int64(PLAN, floats, table), seconds=5, brief=True)
def matrix_one(plan, q, matrix):
    body_i, body_f, dof_f = plan.body_i, plan.body_f, plan.dof_f
    nv = dof_f.shape[1]
    if q.shape[0] != body_i[-1, f.HEAD_NQ] or matrix.shape[0] != nv or matrix.shape[1] != nv:
        return WRONG_SHAPE
    work = floats_at_a_line(work_size(body_i, nv))
    return FINE if one_state(body_i, body_f, dof_f, q, matrix.reshape(-1), work) == 0.0 else FAILED


@entry("mass matrices of batches", int64(PLAN, table, table, flags, int64, int64), seconds=6)
def matrix_batch(plan, q, matrix, bad, start, stop):
    """M of states start .. stop - 1; marks those that are not finite in `bad` and returns how many they are.

    Poses and composite inertias of W states at once, then their matrices one by one: while a matrix is filled in,
    it and the forces that it comes from stay in the nearest cache.
    """
    body_i, body_f, dof_f = plan.body_i, plan.body_f, plan.dof_f
    n, nv = body_i.shape[0] - 1, dof_f.shape[1]
    apart, here = rounded(nv), forces_of(body_i, nv)
    streamed = 8 * matrix.size > STREAMED
    misaligned = (matrix.ctypes.data // 8) % WIDTH
    q_lanes, judged = lane_array(q.shape[1]), lane_array(1)
    work = lane_array(work_size(body_i, nv))
    lanes = lane_array(1 if in_lanes(body_i, nv) else nv * nv)
    forces, ends, staged = lane_array(FORCE * apart).reshape((WIDTH, -1)), np.empty(nv + n), np.empty((1, nv * nv))
    one_group, failed = subtrees(body_i, ends), 0
    for first in range(start, stop, WIDTH):
        count = min(WIDTH, stop - first)
        gather(q, first, q_lanes)
        if not in_lanes(body_i, nv):
            store(judged, 0, crba(body_i, body_f, dof_f, q_lanes, lanes, work))
            scatter(lanes, matrix, first)
            for w in range(count):
                bad[first + w] = 0 if judged[0, w] == 0.0 else 1
                failed += bad[first + w]
            continue
        turns(body_i, q_lanes, work, trig_of(body_i, nv))
        store(judged, 0, composites(body_i, body_f, nv, q_lanes, work, 1, apart))
        for k in range(0, FORCE * apart, WIDTH):
            transpose_lanes(work, (here + k) * WIDTH, WIDTH, forces, 0, k)
        for w in range(count):
            to = staged[0] if streamed else matrix[first + w]
            residue = entries(body_i, dof_f, one_group, work, w, forces[w], ends, to)
            bad[first + w] = 0 if judged[0, w] + residue == 0.0 else 1
            failed += bad[first + w]
            if streamed:
                stream_rows(staged, 1, matrix, first + w, misaligned)
    return failed


def mass_matrix(plan, q, workers=None, out=None) -> np.ndarray:
    """M of one state (nv, nv) or of a batch (B, nv, nv), armature on the diagonal; in `out` if given."""
    nv = plan.nv
    batch, (q,) = aligned(("q", q, plan.nq))
    shape = (nv, nv) if batch is None else (batch, nv, nv)
    matrix = np.empty(shape) if out is None else _checked(out, shape)
    if batch is None:
        if matrix_one.call(plan.arrays, q, matrix) != FINE:
            refuse(plan, q, {})
        return matrix
    flat, bad, failed = matrix.reshape(batch, nv * nv), np.empty(batch, np.uint8), []
    matrix_batch.load()

    def piece(start, stop):
        failed.append(matrix_batch.call(plan.arrays, q, flat, bad, start, stop))

    spread(piece, batch, WIDTH, workers, SMALLEST_SHARE)
    if any(failed):
        refuse(plan, q, {}, bad, matrix)
    return matrix


def _checked(out, shape):
    """Memory for the result that kernels can write."""
    if not (isinstance(out, np.ndarray) and out.shape == shape and out.dtype == np.float64
            and out.flags.c_contiguous and out.flags.writeable):
        raise ShapeError(f"out must be a writable C-contiguous float64 array of shape {shape}")
    return out
