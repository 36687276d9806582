"""States one after the other, as a compiled program would evaluate them: for benchmarks."""

from numba import void

from bunraku.algorithms.aba import aba
from bunraku.entries.mass_matrix_entries import floats_at_a_line, one_state, work_size
from bunraku.entries.signatures import PLAN, float64, floats, table
from bunraku.jit import entry
from bunraku.spatial.lane_memory import stream_rows
from bunraku.spatial.lanes import WIDTH


@entry("forward dynamics in turn", float64(PLAN, table, table, table, floats, table, floats), seconds=4)
def forward_in_turn(plan, q, v, tau, nothing, a, work):
    worst = 0.0
    for k in range(q.shape[0]):
        margin, residue = aba(plan.body_i, plan.body_f, plan.dof_f, q[k], v[k], tau[k], nothing, a[k], work)
        worst = min(worst, margin) + residue
    return worst


@entry("mass matrices in turn", float64(PLAN, table, floats), seconds=5)
def matrices_in_turn(plan, q, matrix):
    worst, work = 0.0, floats_at_a_line(work_size(plan.body_i, plan.dof_f.shape[1]))
    for k in range(q.shape[0]):
        worst += one_state(plan.body_i, plan.body_f, plan.dof_f, q[k], matrix, work)
    return worst


@entry("zeros past the caches", void(table, table))
def zeros_past_the_caches(matrices, nothing):
    for k in range(matrices.shape[0]):
        stream_rows(nothing, 1, matrices, k, (matrices.ctypes.data // 8) % WIDTH)
