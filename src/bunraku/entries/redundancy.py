"""Redundant connections: indeterminate forces and their minimum-norm choice.

Immobile directions lose their pivot when they are eliminated (`algorithms/ada.py`). Each such row gives
one vector of the null space: forces that balance among themselves. The forces reported are those of minimum norm over
all multipliers of all connections together, moments divided by the mechanism's length scale; so they do not depend on
the schedule. Vectors that share no connection are treated apart, which keeps many loops cheap.
"""

from __future__ import annotations

import numpy as np

from bunraku.plan import fields as f
from bunraku.tolerances import BALANCED, SINGULAR_VALUE, TAKES_PART


def _eliminations(loops, work):
    """Every elimination of a connection's force, in the reverse order: row, ids of the rows before it, their Theta,
    inverse pivot, slot of the near body."""
    for front, rows, count, slot, ids, _ in reversed(loops.closings()):
        for k in range(rows - count, rows):
            row = front + f.row_start(k)
            listed = loops.prog[ids:ids + k + 1]
            yield row, listed, work[row + f.ROW_THETA:row + f.ROW_THETA + k], work[row + f.ROW_THETA + k], slot


def pivots(loops, work) -> np.ndarray:
    """Inverse pivots of all multipliers; zero for immobile directions."""
    out = np.ones(loops.rows)
    for front, rows, count, _, ids, _ in loops.closings():
        k = np.arange(rows - count, rows)
        listed = loops.prog[ids + k]
        values = work[front + f.row_start(k) + f.ROW_THETA + k]
        mine = listed < loops.rows
        out[listed[mine]] = values[mine]
    return out


def _null_space(loops, work, dropped) -> list[dict[int, float]]:
    """For every row {vector: entry}: vectors of forces that move nothing."""
    vectors: dict[int, dict[int, float]] = {}
    number = {int(row): k for k, row in enumerate(np.flatnonzero(dropped))}
    for _, listed, theta, inverse, _ in _eliminations(loops, work):
        own = int(listed[-1])
        entries: dict[int, float] = {}
        if own in number:
            entries[number[own]] = 1.0
        elif inverse != 0.0:
            for other, coupling in zip(listed[:-1].tolist(), theta.tolist(), strict=True):
                for vector, value in vectors.get(other, {}).items():
                    entries[vector] = entries.get(vector, 0.0) - inverse * coupling * value
            entries = {vector: value for vector, value in entries.items() if abs(value) > BALANCED}
        if entries:
            vectors[own] = entries
    return [vectors.get(row, {}) for row in range(loops.rows)]


def indeterminate(loops, work, multipliers, dropped):
    """(multipliers of minimum norm, orthonormal basis of the null space as a sparse matrix of rows x vectors)."""
    from scipy.sparse import csc_matrix
    from scipy.sparse.csgraph import connected_components

    entries = _null_space(loops, work, dropped)
    count = int(dropped.sum())
    row, column, value = [], [], []
    for k, found in enumerate(entries):
        for vector, x in found.items():
            row.append(k)
            column.append(vector)
            value.append(x)
    N = csc_matrix((value, (row, column)), shape=(loops.rows, count))
    number, label = connected_components(abs(N).T @ abs(N), directed=False)
    multipliers, basis = multipliers.copy(), []
    members: list[list[int]] = [[] for _ in range(number)]
    for vector, part in enumerate(label):
        members[part].append(vector)
    for vectors in members:
        block = N[:, vectors]
        rows = np.unique(block.indices)
        Q, _ = np.linalg.qr(block[rows].toarray())
        multipliers[rows] -= Q @ (Q.T @ multipliers[rows])
        basis.append((rows, Q))
    return multipliers, basis


def balanced(jacobian) -> np.ndarray:
    """Orthonormal vectors of forces that balance among themselves, (rows, n): J^T f = 0. For structures in which pivots
    are in doubt; O(rows^2 nv)."""
    left, values, _ = np.linalg.svd(jacobian)
    return left[:, int(np.sum(values > SINGULAR_VALUE * values.max(initial=0.0))):]


def clashing(loops, work) -> tuple[list[str], float]:
    """Connections of the largest inconsistent constraint, and its residual."""
    dropped = pivots(loops, work) == 0.0
    entries = _null_space(loops, work, dropped)
    forces = work[loops.conn_i[-1, f.HEAD_FORCES]:]
    worst, chosen = 0.0, -1
    for row, listed, theta, inverse, slot in _eliminations(loops, work):
        if inverse != 0.0 or listed[-1] >= loops.rows:
            continue
        demand = work[row + f.ROW_BETA] + theta @ forces[listed[:-1]]
        if slot >= 0:
            demand += work[row:row + 6] @ work[slot:slot + 6]
        if abs(demand) > worst:
            worst, chosen = abs(float(demand)), int(listed[-1])
    if chosen < 0:
        return list(loops.names), worst
    vector = int(dropped[:chosen].sum())
    size = max(abs(found[vector]) for found in entries if vector in found)
    names = []
    for name, first, count in zip(loops.names, *loops.conn_i[:-1, [f.FIRST_ROW, f.ROWS]].T, strict=True):
        if any(abs(entries[k].get(vector, 0.0)) > TAKES_PART * size for k in range(first, first + count)):
            names.append(name)
    return names, worst
