"""Damped least-squares steps by levels of priority, within bounds.

Idea: the first level's step is the damped least-squares solution of its rows; every further level solves its own rows
with the part of its Jacobian that moves none before it. Columns whose step would leave its bounds are fixed there, and
all levels are solved again without them. References: Nakamura, Hanafusa and Yoshikawa (1987), eqs. 12-18; Levenberg
(1944). Cost O(rows^2 columns) for each set of fixed columns.

A level's system is written for its rows, A = P P^T + damping 1 with P the projected Jacobian, and step = P^T A^-1
(e - J step so far): A is positive definite for any rank, so redundant and impossible rows need no treatment of their
own.
"""

import math

from bunraku.jit import inline, inner
from bunraku.tolerances import IK_FLOOR, IK_RANK


@inline
def factor_rows(P, A, first, end, damping):
    """Cholesky factor of P P^T + damping 1 of rows first .. end - 1, in the lower triangle of A; damping at least what
    keeps it positive definite in rounding."""
    n, largest = P.shape[1], 0.0
    for a in range(first, end):
        for b in range(first, a + 1):
            total = 0.0
            for j in range(n):
                total += P[a, j] * P[b, j]
            A[a, b] = total
        largest = max(largest, A[a, a])
    damping = max(damping, IK_FLOOR * largest) + 1e-300
    for a in range(first, end):
        for b in range(first, a):
            total = A[a, b]
            for k in range(first, b):
                total -= A[a, k] * A[b, k]
            A[a, b] = total * A[b, b]
        total = A[a, a] + damping
        for k in range(first, a):
            total -= A[a, k] * A[a, k]
        A[a, a] = 1.0 / math.sqrt(max(total, damping))  # the inverse of the diagonal entry


@inline
def solve_rows(A, y, first, end):
    """y = A^-1 y by the factor."""
    for a in range(first, end):
        total = y[a]
        for k in range(first, a):
            total -= A[a, k] * y[k]
        y[a] = total * A[a, a]
    for back in range(end - first):
        a = end - 1 - back
        total = y[a]
        for k in range(a + 1, end):
            total -= A[k, a] * y[k]
        y[a] = total * A[a, a]


@inline
def add_pull(P, y, first, end, step):
    """step += P^T y."""
    for a in range(first, end):
        for j in range(step.shape[0]):
            step[j] += P[a, j] * y[a]


@inline
def without_directions(Z, rank, x):
    """x without its parts along the first `rank` rows of Z, which are orthonormal."""
    for k in range(rank):
        total = 0.0
        for j in range(x.shape[0]):
            total += Z[k, j] * x[j]
        for j in range(x.shape[0]):
            x[j] -= total * Z[k, j]


@inline
def more_directions(P, first, end, Z, rank):
    """Orthonormal directions of rows first .. end - 1 behind the `rank` that Z has; returns how many it has then."""
    n, largest = P.shape[1], 0.0
    for a in range(first, end):
        total = 0.0
        for j in range(n):
            total += P[a, j] * P[a, j]
        largest = max(largest, total)
    for a in range(first, end):
        if rank == Z.shape[0]:
            break
        for j in range(n):
            Z[rank, j] = P[a, j]
        without_directions(Z, rank, Z[rank])
        without_directions(Z, rank, Z[rank])  # twice is enough for orthogonality to rounding
        total = 0.0
        for j in range(n):
            total += Z[rank, j] * Z[rank, j]
        if total > IK_RANK * IK_RANK * largest:
            for j in range(n):
                Z[rank, j] /= math.sqrt(total)
            rank += 1
    return rank


@inner
def bounded_step(J, e, ends, damping, away, posture, least, most, free, P, A, Z, y, step):
    """step (columns) for J step = e by levels of rows that end at ends[k], damped by damping[k].

    least, most   bounds of the step
    posture       weight of a last level, step = away; 0: none, and `away` is not read
    Written besides: free (columns): 1, or 0 where a column is fixed; P, A of the first level, for `correction`.
    """
    n = step.shape[0]
    for j in range(n):
        free[j], step[j] = 1.0, 0.0
    for _ in range(n + 1):
        for j in range(n):
            if free[j] > 0.0:
                step[j] = 0.0
        first, rank = 0, 0
        for level in range(ends.shape[0]):
            end = ends[level]
            for a in range(first, end):
                total = e[a]
                for j in range(n):
                    total -= J[a, j] * step[j]
                    P[a, j] = J[a, j] * free[j]
                y[a] = total
                without_directions(Z, rank, P[a])
            factor_rows(P, A, first, end, damping[level])
            solve_rows(A, y, first, end)
            add_pull(P, y, first, end, step)
            if level + 1 < ends.shape[0] or posture > 0.0:
                rank = more_directions(P, first, end, Z, rank)
            first = end
        if posture > 0.0:
            last = Z[Z.shape[0] - 1]  # never a direction: Z has one row more than there are columns
            for j in range(n):
                last[j] = (away[j] - step[j]) * free[j]
            without_directions(Z, rank, last)
            for j in range(n):
                step[j] += posture * last[j]
        fits = True
        for j in range(n):
            if free[j] > 0.0 and not least[j] <= step[j] <= most[j]:
                step[j] = least[j] if step[j] < least[j] else most[j]
                free[j] = 0.0
                fits = False
        if fits:
            break


@inline
def correction(e, end, least, most, P, A, y, step):
    """Add to a step what the first level lacks after it, by the factor of `bounded_step`."""
    for a in range(end):
        y[a] = e[a]
    solve_rows(A, y, 0, end)
    add_pull(P, y, 0, end, step)
    for j in range(step.shape[0]):
        step[j] = min(max(step[j], least[j]), most[j])
