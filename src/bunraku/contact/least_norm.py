"""Least-norm solutions of small square systems that may be singular.

QR factorisation with column pivoting, A P = Q [R S; 0 0], ends where the columns that are left vanish: rank r. Of the
solutions x = P [y - X z; z] of the first r rows, with R y = (Q^T b)_r and R X = S, the smallest has
(I + X^T X) z = X^T y. X has moderate entries, so this system is well conditioned. If A x = b has no solution, x is one
of smallest residual.

Matrices are stored by columns, in one array with everything else. Reference: Golub, Van Loan, Matrix Computations,
5.4.2 and 5.5. Cost: about 2 r n^2 multiplications, fewer for low rank.
"""

import numpy as np

from bunraku.contact.spans import add, dot
from bunraku.jit import inline, inner
from bunraku.spatial.scalar import load, store


@inline
def least_norm_size(n):
    """Number of scratch scalars for `least_norm`."""
    return n * n + 3 * n


@inner
def least_norm(n, matrix, side, scratch, small, work):
    """Overwrite the right-hand side with the solution, destroy the matrix, and return the rank.

    Columns shorter than `small` times the longest are zero.
    """
    squares, order, diagonal, gram = scratch, scratch + n, scratch + 2 * n, scratch + 3 * n
    rank = reduce(n, matrix, side, squares, order, diagonal, small, work)
    for j in range(rank, n):
        back_substitute(n, rank, matrix, diagonal, matrix + n * j, work)
    back_substitute(n, rank, matrix, diagonal, side, work)
    left = n - rank
    if rank > 0:
        for j in range(left):
            column = matrix + n * (rank + j)
            for i in range(j + 1):
                store(work, gram + left * j + i, dot(rank, matrix + n * (rank + i), column, work))
            store(work, gram + left * j + j, load(work, gram + left * j + j) + 1.0)
            store(work, side + rank + j, dot(rank, column, side, work))
        cholesky_solve(left, gram, side + rank, work)
        for j in range(left):
            add(rank, -load(work, side + rank + j), matrix + n * (rank + j), side, work)
    else:
        for j in range(n):
            store(work, side + j, 0.0)
    for j in range(n):
        store(work, squares + np.int64(load(work, order + j)), load(work, side + j))
    for j in range(n):
        store(work, side + j, load(work, squares + j))
    return rank


@inner
def reduce(n, matrix, side, squares, order, diagonal, small, work):
    """Householder reflections of matrix and right-hand side, the longest column next; the rank."""
    for j in range(n):
        store(work, order + j, float(j))
        store(work, squares + j, dot(n, matrix + n * j, matrix + n * j, work))
    least = 0.0
    for k in range(n):
        longest, square = k, load(work, squares + k)
        for j in range(k + 1, n):
            if load(work, squares + j) > square:
                longest, square = j, load(work, squares + j)
        if k == 0:
            least = small * small * square
        if not square > least:
            return k
        if longest != k:
            swap(n, matrix + n * longest, matrix + n * k, work)
            swap(1, order + longest, order + k, work)
            store(work, squares + longest, load(work, squares + k))
        o, count = matrix + n * k + k, n - k
        first = load(work, o)
        length = np.sqrt(square)
        pivot = -length if first > 0.0 else length
        store(work, diagonal + k, pivot)
        store(work, o, first - pivot)
        factor = 1.0 / (pivot * (pivot - first))
        for j in range(k + 1, n):
            store(work, squares + j, reflect(count, factor, o, matrix + n * j + k, work))
        reflect(count, factor, o, side + k, work)
    return n


@inner
def reflect(n, factor, vector, column, work):
    """Reflect a column, whose first entry is then done; the square of the rest."""
    factor *= dot(n, vector, column, work)
    store(work, column, load(work, column) - factor * load(work, vector))
    square = 0.0
    for i in range(1, n):
        x = load(work, column + i) - factor * load(work, vector + i)
        store(work, column + i, x)
        square += x * x
    return square


@inner
def swap(n, a, b, work):
    for i in range(n):
        x = load(work, a + i)
        store(work, a + i, load(work, b + i))
        store(work, b + i, x)


@inner
def back_substitute(n, rank, matrix, diagonal, side, work):
    """Solve with the first rows and columns of the triangle."""
    for k in range(rank):
        i = rank - 1 - k
        x = load(work, side + i) / load(work, diagonal + i)
        store(work, side + i, x)
        add(i, -x, matrix + n * i, side, work)


@inner
def cholesky_solve(n, matrix, side, work):
    """Solve with a positive definite matrix, of which the upper triangle is given by columns."""
    for j in range(n):
        column = matrix + n * j
        for i in range(j):
            x = load(work, column + i) - dot(i, matrix + n * i, column, work)
            store(work, column + i, x / load(work, matrix + n * i + i))
        store(work, column + j, np.sqrt(load(work, column + j) - dot(j, column, column, work)))
        store(work, side + j, (load(work, side + j) - dot(j, column, side, work)) / load(work, column + j))
    for k in range(n):
        j = n - 1 - k
        x = load(work, side + j) / load(work, matrix + n * j + j)
        store(work, side + j, x)
        add(j, -x, matrix + n * j, side, work)
