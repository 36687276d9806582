"""Mass matrices of trees: one state, or a batch over lanes and threads."""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.crba import COLUMN, RECORD, crba
from bunraku.jit import entry
from bunraku.run.pool import spread
from bunraku.run.signatures import FAILED, FINE, PLAN, flags, floats, int64, lane_array, table
from bunraku.run.states import aligned, refuse
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import gather, scatter, store

SMALLEST_SHARE = 256


@entry("mass matrix", [int64(*PLAN, floats, floats)])
def matrix_one(body_i, body_f, dof_f, q, matrix):
    work = np.empty(RECORD * (body_i.shape[0] - 1) + COLUMN * dof_f.shape[1])
    return FINE if crba(body_i, body_f, dof_f, q, matrix, work) == 0.0 else FAILED


@entry("mass matrices of batches", [types.void(*PLAN, table, table, flags, int64, int64)])
def matrix_batch(body_i, body_f, dof_f, q, matrix, bad, start, stop):
    q_lanes, matrix_lanes = lane_array(q.shape[1]), lane_array(matrix.shape[1])
    work = lane_array(RECORD * (body_i.shape[0] - 1) + COLUMN * dof_f.shape[1])
    judged = lane_array(1)
    for first in range(start, stop, WIDTH):
        gather(q, first, q_lanes)
        store(judged, 0, crba(body_i, body_f, dof_f, q_lanes, matrix_lanes, work))
        scatter(matrix_lanes, matrix, first)
        for w in range(min(WIDTH, stop - first)):
            bad[first + w] = 0 if judged[0, w] == 0.0 else 1


def mass_matrix(mechanism, q, workers=None) -> np.ndarray:
    """M of one state (nv, nv) or of a batch (B, nv, nv), armature on the diagonal."""
    plan = mechanism.plan()
    nv = plan.nv
    try:  # a plain array goes straight to compiled code
        if q.shape == (plan.nq,):
            matrix = np.empty((nv, nv))
            if matrix_one.call(plan.body_i, plan.body_f, plan.dof_f, q, matrix.reshape(-1)) == FINE:
                return matrix
    except (AttributeError, TypeError):
        pass
    batch, (q,) = aligned(("q", q, plan.nq))
    if batch is None:
        matrix = np.empty(nv * nv)
        if matrix_one.call(plan.body_i, plan.body_f, plan.dof_f, q, matrix) != FINE:
            refuse(mechanism, q, {})
        return matrix.reshape(nv, nv)
    matrix, bad = np.empty((batch, nv * nv)), np.zeros(batch, np.uint8)
    matrix_batch.load()
    spread(lambda start, stop: matrix_batch.call(plan.body_i, plan.body_f, plan.dof_f, q, matrix, bad, start, stop),
           batch, WIDTH, workers, SMALLEST_SHARE)
    if bad.any():
        refuse(mechanism, q, {}, bad, matrix.reshape(batch, nv, nv))
    return matrix.reshape(batch, nv, nv)
