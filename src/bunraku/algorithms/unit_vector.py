"""Forward dynamics by the unit-vector method: the O(N^3) reference that [YN99] uses and [YN02] is compared with.

Idea: inverse dynamics is linear in the accelerations, tau = M a + h. One call with a = 0 gives h, one call with each
unit vector gives a column of M; then M a = tau - h is solved densely. Reference: Walker and Orin (1982), method 1.
Cost: nv + 1 inverse dynamics and one Cholesky factorisation, O(N^3).
"""

import numpy as np

from bunraku.algorithms.rnea import RECORD, rnea
from bunraku.jit import allocating


@allocating
def cholesky_solve(M, b):
    """Solve M x = b in place of b, M symmetric positive definite (its lower triangle is overwritten); false if not."""
    n = b.shape[0]
    floor = 0.0
    for j in range(n):
        floor = max(floor, 1e-14 * M[j, j])
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
            M[i, j] = column[i] - bias[i]
    for i in range(nv):
        acceleration[i] = tau[i] - bias[i]
        residue += 0.0 * acceleration[i]
    return residue == 0.0 and cholesky_solve(M, acceleration)
