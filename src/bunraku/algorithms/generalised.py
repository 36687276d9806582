"""Generalised coordinates of a closed chain, chosen automatically: independent and dependent joint velocities.

Idea: J v = 0 with J of rank m leaves nv - m velocities free. QR with column pivoting finds m columns that are as
independent as possible; their joints depend (S), the others are the generalised coordinates (G), and v_S = H v_G with
# [YN99, eq. 10]
H = -J_S^-1 J_G. Reference: [YN99] eqs. 5-10. Cost O(rows^2 nv). Redundant rows and singular positions only lower m.

`columns` is J transposed, (nv, rows), and is overwritten: row k then holds column k of R.
"""

import numpy as np

from bunraku.jit import allocating
from bunraku.tolerances import SINGULAR_VALUE


@allocating
def factor(columns, order, reflectors):
    """J = Q R with pivoting: `order` (nv) lists the joints as chosen, `reflectors` (rows, rows) keep Q. Returns m."""
    nv, rows = columns.shape
    first = 0.0
    for j in range(nv):
        order[j] = j
    for k in range(min(nv, rows)):
        best, largest = k, -1.0
        for j in range(k, nv):
            size = 0.0
            for i in range(k, rows):
                size += columns[j, i] * columns[j, i]
            if size > largest * (1.0 + 1e-12):  # the first of equals: rounding does not choose
                best, largest = j, size
        length = np.sqrt(largest)
        first = max(first, length)
        if not length > SINGULAR_VALUE * first:
            return k
        order[k], order[best] = order[best], order[k]
        for i in range(rows):
            columns[k, i], columns[best, i] = columns[best, i], columns[k, i]
        head = columns[k, k] + (length if columns[k, k] > 0.0 else -length)
        total = head * head
        for i in range(k + 1, rows):
            total += columns[k, i] * columns[k, i]
        root = np.sqrt(2.0 / total)
        reflectors[k, k] = head * root
        for i in range(k + 1, rows):
            reflectors[k, i] = columns[k, i] * root
            columns[k, i] = 0.0
        columns[k, k] = -length if columns[k, k] > 0.0 else length
        for j in range(k + 1, nv):
            reflect(reflectors, k, columns[j])
    return min(nv, rows)


@allocating
def reflect(reflectors, k, x):
    total = 0.0
    for i in range(k, x.shape[0]):
        total += reflectors[k, i] * x[i]
    for i in range(k, x.shape[0]):
        x[i] -= total * reflectors[k, i]


@allocating
def solve_dependent(columns, rank, x):
    """x[:rank] = R_S^-1 x[:rank]."""
    for back in range(rank):
        i = rank - 1 - back
        total = x[i]
        for j in range(i + 1, rank):
            total -= columns[j, i] * x[j]
        x[i] = total / columns[i, i]


@allocating
def solve_forces(columns, reflectors, rank, x):
    """x = the shortest f with J_S^T f = x[:rank]: Q R_S^-T x."""
    for i in range(rank):
        total = x[i]
        for j in range(i):
            total -= columns[i, j] * x[j]
        x[i] = total / columns[i, i]
    x[rank:] = 0.0
    for back in range(rank):
        reflect(reflectors, rank - 1 - back, x)


@allocating
def dependence(columns, rank):
    """H transposed, (nv - m, m)."""
    nv = columns.shape[0]
    H = np.empty((nv - rank, rank))
    for j in range(nv - rank):
        for i in range(rank):
            H[j, i] = -columns[rank + j, i]
        solve_dependent(columns, rank, H[j])
    return H
