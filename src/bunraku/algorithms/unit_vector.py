"""Forward dynamics by the unit-vector method: the O(N^3) reference that [YN99] uses and [YN02] is compared with.

Idea: inverse dynamics is linear in the accelerations, tau = M a + h. One call with a = 0 gives h, one call with each
unit vector gives a column of M; then M a = tau - h is solved densely. Reference: Walker and Orin (1982), method 1.
Cost: nv + 1 inverse dynamics and one Cholesky factorisation, O(N^3).

With connections the unit vectors are those of the generalised coordinates, and inverse dynamics is that of the tree
seen by them, tau_G = W^T tau_O [YN99, eq. 3]: nothing but the loops' own factorisation (`generalised.py`) is added.
"""

import numpy as np

from bunraku.algorithms.body_motion import STATE
from bunraku.algorithms.constraint_jacobian import constraints
from bunraku.algorithms.generalised import dependence, factor, reflect, solve_dependent, solve_forces
from bunraku.algorithms.rnea import RECORD, rnea
from bunraku.jit import allocating
from bunraku.plan import fields as f
from bunraku.tolerances import ACCELERATION_FLOOR, CANCELLED, INCONSISTENT

SOLVED, SINGULAR, CONTRADICTION = range(3)


@allocating
def cholesky_solve(M, b):
    """Solve M x = b in place of b, M symmetric positive definite (its lower triangle is overwritten); false if not."""
    n = b.shape[0]
    floor = 0.0
    for j in range(n):
        floor = max(floor, CANCELLED * M[j, j])
    for j in range(n):
        pivot = M[j, j]
        for k in range(j):
            pivot -= M[j, k] * M[j, k]
        if not pivot > floor:
            return False
        M[j, j] = np.sqrt(pivot)
        r = 1.0 / M[j, j]
        for i in range(j + 1, n):
            total = M[i, j]
            for k in range(j):
                total -= M[i, k] * M[j, k]
            M[i, j] = total * r
    for i in range(n):
        total = b[i]
        for k in range(i):
            total -= M[i, k] * b[k]
        b[i] = total / M[i, i]
    for back in range(n):
        i = n - 1 - back
        total = b[i]
        for k in range(i + 1, n):
            total -= M[k, i] * b[k]
        b[i] = total / M[i, i]
    return True


@allocating
def unit_vector(body_i, body_f, dof_f, q, v, tau, wrench, acceleration):
    """Joint accelerations of one state; false if M is not positive definite or something is not finite."""
    n, nv = body_i.shape[0] - 1, dof_f.shape[1]
    work, nothing = np.empty(RECORD * n), np.empty(0)
    a, bias, column = np.zeros(nv), np.empty(nv), np.empty(nv)
    M = np.empty((nv, nv))
    residue = rnea(body_i, body_f, dof_f, q, v, a, wrench, bias, nothing, work)
    for j in range(nv):
        a[j] = 1.0
        residue += rnea(body_i, body_f, dof_f, q, v, a, wrench, column, nothing, work)
        a[j] = 0.0
        for i in range(nv):
            M[i, j] = column[i] - bias[i]  # [F, eqs. 2-3]
    for i in range(nv):
        acceleration[i] = tau[i] - bias[i]  # [F, eq. 1]
        residue += 0.0 * acceleration[i]
    return residue == 0.0 and cholesky_solve(M, acceleration)


@allocating
def unit_vector_closed(body_i, body_f, dof_f, conn_i, conn_f, q, v, tau, drives, wrench, acceleration, multipliers):
    """Joint accelerations of one state of a structure with connections, and the forces along constrained directions.

    `dof_f` is that of the tree. Redundant constraints: the shortest multipliers. Returns SOLVED, SINGULAR, or
    CONTRADICTION if the constraints are inconsistent.
    """
    n, nv = body_i.shape[0] - 1, dof_f.shape[1]
    rows, freedoms = conn_i[-1, f.HEAD_ROWS], conn_i[-1, f.HEAD_FREEDOMS]
    columns, ways, own = np.zeros((nv, rows)), np.zeros((nv, freedoms)), np.zeros(nv)
    bias, gap = np.empty(rows), np.empty(rows)
    size = constraints(body_i, body_f, conn_i, conn_f, q, v, drives, columns, ways, own, bias, gap, np.empty(freedoms),
                       np.empty(freedoms), np.empty(STATE * n), np.empty(conn_i[-1, f.HEAD_TOTAL]))
    order, reflectors = np.empty(nv, np.int64), np.zeros((rows, rows))
    m = factor(columns, order, reflectors)  # [YN99, eqs. 6-7]
    H, free = dependence(columns, m), nv - m  # [YN99, eq. 10]

    # Accelerations that close the loops while the generalised coordinates do not accelerate
    for k in range(m):
        reflect(reflectors, k, bias)
    fits = True
    for k in range(m, rows):
        fits = fits and abs(bias[k]) <= INCONSISTENT * (size + ACCELERATION_FLOOR)
    solve_dependent(columns, m, bias)
    at_rest = np.zeros(nv)
    for k in range(m):
        at_rest[order[k]] = -bias[k]  # [YN99, eq. 8], differentiated

    # Unit vectors of the generalised coordinates [YN99, eq. 3]
    work, nothing = np.empty(RECORD * n), np.empty(0)
    needed, column, a = np.empty(nv), np.empty(nv), np.empty(nv)
    residue = rnea(body_i, body_f, dof_f, q, v, at_rest, wrench, needed, nothing, work)
    M, force = np.empty((free, free)), np.empty(free)
    for i in range(nv):
        column[i] = tau[i] + own[i] - needed[i]
    project(H, order, column, force)  # [YN99, eq. 3]
    for j in range(free):
        a[:] = at_rest
        a[order[m + j]] += 1.0
        for k in range(m):
            a[order[k]] += H[j, k]
        residue += rnea(body_i, body_f, dof_f, q, v, a, wrench, column, nothing, work)
        for i in range(nv):
            column[i] -= needed[i]
        project(H, order, column, M[j])  # [YN99, eq. 3]
    for j in range(free):
        residue += 0.0 * force[j]
    if not (residue == 0.0 and cholesky_solve(M, force)):
        return SINGULAR
    acceleration[:] = at_rest
    for j in range(free):
        acceleration[order[m + j]] += force[j]  # [YN99, eqs. 1, 9]
        for k in range(m):
            acceleration[order[k]] += H[j, k] * force[j]

    # What is left to the constraints: J^T f = M a + h - tau
    rnea(body_i, body_f, dof_f, q, v, acceleration, wrench, needed, nothing, work)
    for k in range(m):
        j = order[k]
        multipliers[k] = needed[j] - tau[j] - own[j]
    solve_forces(columns, reflectors, m, multipliers)
    return SOLVED if fits else CONTRADICTION


@allocating
def project(H, order, force, out):
    """out = W^T force, the rows of W being those of H and of the unit matrix."""
    free, m = H.shape
    for j in range(free):
        total = force[order[m + j]]
        for k in range(m):
            total += H[j, k] * force[order[k]]
        out[j] = total
