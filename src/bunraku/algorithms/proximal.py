"""The proximal method: refinement for loops whose constraints are nearly dependent.

Idea: `ada` eliminates constraint forces in a fixed order and has to decide which pivots are zero. Where rows are nearly
dependent a small pivot carries rounding errors on to the others, and no threshold is right. Rows that are kept may be a
poor basis of those that are dropped although no pivot is small: large forces cancel then. Here every constraint
has a small compliance mu, so that no pivot is smaller than mu and no rank decision is needed; the forces F_before
of the previous solution compensate for it:

    M a = tau - h + J^T F,      J a + bias + mu (F - F_before) = 0

The error along an eigenvector of Theta = J M^-1 J^T with eigenvalue s shrinks by mu / (s + mu) each time. The
right-hand side along immobile directions (s = 0) remains, and shows whether the constraints are inconsistent. With mu
the same for all rows the forces are those of minimum norm.

Reference: Carpentier, Budhiraja, Mansard (2021), "Proximal and sparse resolution of constrained dynamic equations".
Cost: one `ada`, and for each further solution (2 to 4 as a rule) about half of one. One state only, not lanes.
"""

import numpy as np

from bunraku.algorithms.ada import ada, answer_demands
from bunraku.algorithms.connection_equations import DYNAMICS, ONCE, TWICE
from bunraku.algorithms.votes import largest
from bunraku.jit import allocating, inline, inner
from bunraku.plan import fields as f
from bunraku.tolerances import INCONSISTENT, PROXIMAL, PROXIMAL_GAP, PROXIMAL_PROGRESS, PROXIMAL_RESIDUAL, SURE

SOLUTIONS = 40


@inline
def doubtful(pivot, dropped):
    """Whether the smallest pivot that was kept, or the largest that was dropped, is too near the threshold."""
    return pivot < SURE or dropped > 0.0


@inline
def worth_a_second_look(mode, kind, judged, work):
    """Whether to refine the result of `ada`: on request, or in doubt; not if the loops are open."""
    if mode == kind + ONCE or not work[judged + f.JUDGED_GAP] < PROXIMAL_GAP * PROXIMAL_GAP:
        return False
    return (mode == kind + TWICE or doubtful(work[judged + f.JUDGED_PIVOT], work[judged + f.JUDGED_DROPPED])
            or (kind == DYNAMICS and (work[judged + f.JUDGED_CLASH] > 0.0 or work[judged + f.JUDGED_MISSED] > 0.0)))


@inline
def look_again(team, mode, body_i, body_f, dof_f, conn_i, conn_f, prog, q, v, tau, drives, wrench, acceleration, work):
    """As `ada`, after it and from its results in `work`: margin, residue. The decisions on pivots stay."""
    judged = conn_i[-1, f.HEAD_JUDGED]
    pivot, weakest = work[judged + f.JUDGED_PIVOT], work[judged + f.JUDGED_WEAKEST]
    mobility, _ = largest(team, largest_mobility(conn_i[-1, f.HEAD_ROWS], prog, work), 0.0, conn_i, work)
    mu = PROXIMAL * (mobility if mobility > 0.0 else 1.0)
    margin, residue = ada(team, mode, mu, body_i, body_f, dof_f, conn_i, conn_f, prog, q, v, tau, drives, wrench,
                          acceleration, work)
    residue += make_up(team, mu, body_i, conn_i, prog, acceleration, work)
    work[judged + f.JUDGED_PIVOT], work[judged + f.JUDGED_WEAKEST] = pivot, weakest
    return margin, residue


@allocating
def make_up(team, mu, body_i, conn_i, prog, acceleration, work):
    """Compensate for the compliance mu of the constraints, after a solution in `work`: correct accelerations and
    forces until convergence. Returns `residue`."""
    rows = np.int64(conn_i[-1, f.HEAD_ROWS])
    judged, forces = conn_i[-1, f.HEAD_JUDGED], conn_i[-1, f.HEAD_FORCES]
    n = acceleration.shape[0]
    bias, total, change, nothing = np.zeros(rows), np.zeros(rows), np.empty(n), np.zeros(n)
    copy_bias(False, bias, conn_i, work)
    size, _ = largest(team, size_of_demands(mu, bias, judged, work), 0.0, conn_i, work)
    left, before, residue = 0.0, np.inf, 0.0
    for _ in range(SOLUTIONS):
        left, residue = largest(team, mu * add_forces(total, forces, work), residue, conn_i, work)
        if not worth_more(left, before, size, residue):
            break
        before = left
        demand_rest(mu, conn_i, work)
        residue = answer_demands(team, body_i, conn_i, prog, nothing, change, work)
        for j in range(n):
            acceleration[j] += change[j]
    _, residue = largest(team, 0.0, residue, conn_i, work)
    for k in range(rows):
        work[forces + k] = total[k]
    copy_bias(True, bias, conn_i, work)
    work[judged + f.JUDGED_CLASH] = left - INCONSISTENT * (size + 1.0)
    return residue


@inner
def size_of_demands(mu, bias, judged, work):
    """Largest acceleration involved: of the right-hand sides of connections, and of the effect of forces."""
    size = np.sqrt(mu / PROXIMAL * work[judged + f.JUDGED_DRIVE])
    for k in range(bias.shape[0]):
        size = max(size, abs(bias[k]))
    return size


@inner
def add_forces(total, forces, work):
    """Add the forces of the last solution to those before; the largest."""
    most = 0.0
    for k in range(total.shape[0]):
        total[k] += work[forces + k]
        most = max(most, abs(work[forces + k]))
    return most


@inline
def worth_more(left, before, size, residue):
    """Whether a further solution is worth it."""
    return left > PROXIMAL_RESIDUAL * size and left < PROXIMAL_PROGRESS * before and residue == 0.0


@inner
def demand_rest(mu, conn_i, work):
    """Right-hand side of the next solution: the displacement of the compliant constraints."""
    last = conn_i.shape[0] - 1
    for c in range(last):
        o = f.connection_record(conn_i, c) + f.CONN_BIAS
        for k in range(conn_i[c, f.ROWS]):
            work[o + k] = -mu * work[conn_i[last, f.HEAD_FORCES] + conn_i[c, f.FIRST_ROW] + k]


@inner
def largest_mobility(count, prog, work):
    """Largest acceleration of a constrained direction per force, as if no other were held."""
    most = 0.0
    for n in range(prog[0]):
        o = f.PROGRAM_START + f.PROGRAM_STEP * n
        if prog[o] == f.OP_CLOSE:
            front, rows, ids = prog[o + 1], prog[o + 2], prog[o + 5]
            for k in range(rows - prog[o + 3], rows):
                row = front + f.row_start(k)
                r = work[row + f.ROW_THETA + k]
                if prog[ids + k] < count:  # of a connection
                    most = max(most, work[row + f.ROW_SCALE] + (1.0 / r if r > 0.0 else 0.0))
    return most


@inner
def copy_bias(back, bias, conn_i, work):
    """Copy the right-hand sides of the connections from their records or back into them."""
    last = conn_i.shape[0] - 1
    for c in range(last):
        o = f.connection_record(conn_i, c) + f.CONN_BIAS
        for k in range(conn_i[c, f.ROWS]):
            if back:
                work[o + k] = bias[conn_i[c, f.FIRST_ROW] + k]
            else:
                bias[conn_i[c, f.FIRST_ROW] + k] = work[o + k]
