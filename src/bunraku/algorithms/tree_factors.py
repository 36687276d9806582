"""Solutions of M x = b with the sparsity of a tree: M = L^T D L, L with the pattern of the lower triangle of M.

Row by row from the tips to the root no entry appears between joints that M does not relate. Reference: Featherstone
(2005), "Efficient factorization of the joint-space inertia matrix for branched kinematic trees". Cost O(sum of squared
depths) once, O(sum of depths) for each right-hand side. Velocities as in `inverse_derivatives`: in the order of bodies,
`number` has their places in M and in b, `outward` the next one towards the root; `end` is the first one behind all that
a velocity carries, which follow it.

Eight columns are solved together: eight scalars of a row stay in registers while those of others are subtracted, where
one at a time would wait for memory.
"""

from bunraku.jit import inline, inner
from bunraku.spatial.scalar import constant, load, minimum, store

BLOCK = 8  # columns solved together


@inline
def subtree_ends(outward, end):
    """Fill `end`."""
    nv = outward.shape[0]
    for k in range(nv):
        end[k] = k + 1
    for back in range(nv):
        k = nv - 1 - back
        if outward[k] >= 0:
            end[outward[k]] = max(end[outward[k]], end[k])


@inline
def runs_of(number, outward, run):
    """Fill `run`: the first of the velocities that lead to this one in a row, each numbered next to the one before, in
    their own order and in v; so that loops over parts of the way to the root are loops over neighbours in memory."""
    for k in range(outward.shape[0]):
        run[k] = run[k - 1] if k > 0 and outward[k] == k - 1 and number[k] == number[k - 1] + 1 else k


@inner
def factorise(number, outward, run, M):
    """Replace the lower triangle of M (nv x nv, by rows) by L, and its diagonal by 1/D; returns the smallest D."""
    nv = number.shape[0]
    least = constant(M, 1e300)
    for back in range(nv):
        k = nv - 1 - back
        row = number[k] * nv
        least = minimum(least, load(M, row + number[k]))
        inverse = 1.0 / load(M, row + number[k])
        store(M, row + number[k], inverse)
        i = outward[k]
        while i >= 0:
            share = load(M, row + number[i]) * inverse
            j = i
            while j >= 0:
                first, count = number[run[j]], j - run[j] + 1
                subtract_row(share, row + first, number[i] * nv + first, count, M)
                j = outward[run[j]]
            store(M, row + number[i], share)
            i = outward[i]
    return least


@inline
def subtract_row(share, source, target, count, M):
    for c in range(count):
        store(M, target + c, load(M, target + c) - share * load(M, source + c))


@inner
def solve(number, outward, end, everywhere, L, b, columns, filled):
    """Replace b (nv rows of `columns` scalars) by M^-1 b. b has entries `everywhere`, or it has a column for each
    velocity and entries only where one of two carries the other. `filled`: scratch.

    Lanes of b belong to the states of L; or L is floats, of one state, and lanes of b are columns.
    """
    nv = number.shape[0]
    first = 0
    while first < columns:
        count = BLOCK if columns - first >= BLOCK else 1
        mark(number, end, first, count, everywhere, filled)
        if count == BLOCK:
            for back in range(nv):  # L^T y = b, tips to root
                gather_beyond(nv - 1 - back, first, number, end, L, b, columns, filled)
            for k in range(nv):     # D L x = y, root to tips
                gather_nearer(k, first, number, outward, L, b, columns)
        else:
            for back in range(nv):
                gather_beyond_one(nv - 1 - back, first, number, end, L, b, columns, filled)
            for k in range(nv):
                gather_nearer_one(k, first, number, outward, L, b, columns)
        first += count


@inline
def mark(number, end, first, count, everywhere, filled):
    """Which rows have entries in these columns, or get some from the rows beyond."""
    nv = number.shape[0]
    for k in range(nv):
        filled[k] = 1 if everywhere else 0
    if everywhere:
        return
    for c in range(nv):
        if first <= number[c] < first + count:
            for k in range(nv):
                if c <= k < end[c] or k <= c < end[k]:
                    filled[k] = 1


@inline
def load8(b, i):
    return (load(b, i), load(b, i + 1), load(b, i + 2), load(b, i + 3), load(b, i + 4), load(b, i + 5), load(b, i + 6),
            load(b, i + 7))


@inline
def store8(b, i, x):
    store(b, i, x[0])
    store(b, i + 1, x[1])
    store(b, i + 2, x[2])
    store(b, i + 3, x[3])
    store(b, i + 4, x[4])
    store(b, i + 5, x[5])
    store(b, i + 6, x[6])
    store(b, i + 7, x[7])


@inline
def less(x, s, y):
    return (x[0] - s * y[0], x[1] - s * y[1], x[2] - s * y[2], x[3] - s * y[3], x[4] - s * y[4], x[5] - s * y[5],
            x[6] - s * y[6], x[7] - s * y[7])


@inline
def gather_beyond(i, first, number, end, L, b, columns, filled):
    """Row i of y: b less what the rows beyond it take."""
    if filled[i] == 0:
        return
    nv, own = number.shape[0], number[i]
    x = load8(b, own * columns + first)
    for k in range(i + 1, end[i]):
        if filled[k] != 0:
            x = less(x, load(L, number[k] * nv + own), load8(b, number[k] * columns + first))
    store8(b, own * columns + first, x)


@inline
def gather_nearer(k, first, number, outward, L, b, columns):
    """Row k of x: y / D less what the rows on the way to the root take."""
    row, at = number[k] * number.shape[0], number[k] * columns + first
    inverse = load(L, row + number[k])
    x = load8(b, at)
    x = (x[0] * inverse, x[1] * inverse, x[2] * inverse, x[3] * inverse, x[4] * inverse, x[5] * inverse,
         x[6] * inverse, x[7] * inverse)
    i = outward[k]
    while i >= 0:
        x = less(x, load(L, row + number[i]), load8(b, number[i] * columns + first))
        i = outward[i]
    store8(b, at, x)


@inline
def gather_beyond_one(i, column, number, end, L, b, columns, filled):
    """As `gather_beyond`, of one column."""
    if filled[i] == 0:
        return
    nv, own = number.shape[0], number[i]
    x = load(b, own * columns + column)
    for k in range(i + 1, end[i]):
        if filled[k] != 0:
            x = x - load(L, number[k] * nv + own) * load(b, number[k] * columns + column)
    store(b, own * columns + column, x)


@inline
def gather_nearer_one(k, column, number, outward, L, b, columns):
    """As `gather_nearer`, of one column."""
    row, at = number[k] * number.shape[0], number[k] * columns + column
    x = load(b, at) * load(L, row + number[k])
    i = outward[k]
    while i >= 0:
        x = x - load(L, row + number[i]) * load(b, number[i] * columns + column)
        i = outward[i]
    store(b, at, x)
