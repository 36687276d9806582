"""Mass matrices of trees: one state, or a batch over lanes and threads."""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.crba import crba, crba_blocks, crba_rows, trig_of
from bunraku.errors import ShapeError
from bunraku.jit import JIT_OFF, allocating, entry, inline, inner
from bunraku.plan.fields import DOF, HEAD_NQ, HEAD_ORDERED, V_INDEX
from bunraku.run.pool import spread
from bunraku.run.signatures import FAILED, FINE, PLAN, WRONG_SHAPE, flags, floats, int64, lane_array, table
from bunraku.run.states import aligned, refuse
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import gather, scatter, store, stream_rows

SMALLEST_SHARE = 256
LONG = 16      # velocities from which one state is faster by W entries at once
HUGE = 56      # velocities from which that is faster than W states at once, whose work leaves the nearer caches
STREAMED = 1 << 22  # bytes: results larger than that go past the caches, which they would only empty


@inline
def ordered(body_i, nv):
    """Are the velocities numbered like the bodies, and enough to fill lanes?"""
    return nv >= WIDTH and body_i[-1, HEAD_ORDERED] == 1


@inner
def one_state(body_i, body_f, dof_f, q, matrix, work):
    """M by the faster way for a mechanism of this size; `work` of `work_size` floats."""
    n, nv = body_i.shape[0] - 1, dof_f.shape[1]
    if nv < LONG or not ordered(body_i, nv):
        return crba(body_i, body_f, dof_f, q, matrix, work)
    return crba_rows(body_i, body_f, dof_f, q, matrix, work, work[work.shape[0] - n:])


@inline
def work_size(body_i, nv):
    n = body_i.shape[0] - 1
    return trig_of(body_i, nv) + 2 * (nv + n) + n  # at most nv + n coordinates


@allocating
def floats_at_a_line(size):
    """Uninitialised floats that start on a cache line."""
    return lane_array((size + WIDTH - 1) // WIDTH).reshape(-1)


@entry("mass matrix", [int64(*PLAN, floats, table)])
def matrix_one(body_i, body_f, dof_f, q, matrix):
    nv = dof_f.shape[1]
    if q.shape[0] != body_i[-1, HEAD_NQ] or matrix.shape[0] != nv or matrix.shape[1] != nv:
        return WRONG_SHAPE
    work = floats_at_a_line(work_size(body_i, nv))
    return FINE if one_state(body_i, body_f, dof_f, q, matrix.reshape(-1), work) == 0.0 else FAILED


@entry("mass matrices of batches", [types.void(*PLAN, table, table, flags, int64, int64)])
def matrix_batch(body_i, body_f, dof_f, q, matrix, bad, start, stop):
    n, nv = body_i.shape[0] - 1, dof_f.shape[1]
    blocks = ordered(body_i, nv)
    streamed = 8 * matrix.size > STREAMED
    misaligned = (matrix.ctypes.data // 8) % WIDTH
    if blocks and nv >= HUGE:
        scratch, single = floats_at_a_line(work_size(body_i, nv)), np.empty((1, nv * nv if streamed else 1))
        for k in range(start, stop):
            to = single[0] if streamed else matrix[k]
            bad[k] = 0 if one_state(body_i, body_f, dof_f, q[k], to, scratch) == 0.0 else 1
            if streamed:
                stream_rows(single, 1, matrix, k, misaligned)
        return
    body_of = np.empty(nv, np.int64)
    for i in range(n):
        body_of[body_i[i, V_INDEX]:body_i[i, V_INDEX] + body_i[i, DOF]] = i
    q_lanes, judged = lane_array(q.shape[1]), lane_array(1)
    work = lane_array(work_size(body_i, nv))
    block = lane_array(WIDTH * nv if blocks else nv * nv)
    staged = np.empty((WIDTH, nv * nv if blocks else 1))
    for first in range(start, stop, WIDTH):
        count = min(WIDTH, stop - first)
        gather(q, first, q_lanes)
        if not blocks:
            store(judged, 0, crba(body_i, body_f, dof_f, q_lanes, block, work))
            scatter(block, matrix, first)
        elif streamed or count < WIDTH:
            store(judged, 0, crba_blocks(body_i, body_f, dof_f, body_of, q_lanes, staged, 0, block, work))
            stream_rows(staged, count, matrix, first, misaligned)
        else:
            store(judged, 0, crba_blocks(body_i, body_f, dof_f, body_of, q_lanes, matrix, first, block, work))
        for w in range(count):
            bad[first + w] = 0 if judged[0, w] == 0.0 else 1


def mass_matrix(mechanism, q, workers=None, out=None) -> np.ndarray:
    """M of one state (nv, nv) or of a batch (B, nv, nv), armature on the diagonal; in `out` if given."""
    plan = mechanism.plan()
    nv = plan.nv
    try:  # plain arrays go straight to compiled code, which looks at their shapes
        if q.ndim == 1 and (out is None or not JIT_OFF):
            matrix = np.empty((nv, nv)) if out is None else out
            if matrix_one.call(plan.body_i, plan.body_f, plan.dof_f, q, matrix) == FINE:
                return matrix
    except (AttributeError, TypeError):
        pass
    batch, (q,) = aligned(("q", q, plan.nq))
    shape = (nv, nv) if batch is None else (batch, nv, nv)
    matrix = np.empty(shape) if out is None else _checked(out, shape)
    if batch is None:
        if matrix_one.call(plan.body_i, plan.body_f, plan.dof_f, q, matrix) != FINE:
            refuse(mechanism, q, {})
        return matrix
    flat, bad = matrix.reshape(batch, nv * nv), np.zeros(batch, np.uint8)
    matrix_batch.load()
    spread(lambda start, stop: matrix_batch.call(plan.body_i, plan.body_f, plan.dof_f, q, flat, bad, start, stop),
           batch, WIDTH, workers, SMALLEST_SHARE)
    if bad.any():
        refuse(mechanism, q, {}, bad, matrix)
    return matrix


def _checked(out, shape):
    """Memory for the result that kernels can write."""
    if not (isinstance(out, np.ndarray) and out.shape == shape and out.dtype == np.float64
            and out.flags.c_contiguous and out.flags.writeable):
        raise ShapeError(f"out must be a writable C-contiguous float64 array of shape {shape}")
    return out
