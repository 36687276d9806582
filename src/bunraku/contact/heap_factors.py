"""Sparse factors of a large island: H = 1 + sum_k Y_k^T A_k Y_k, one block of unknowns for each tree.

Unknowns are x with |x|^2 / 2 the kinetic energy of a change of motion (`heap.py`); contact k has a row Y_k of blocks
for the one or two trees that it acts on, and a 3 x 3 matrix A_k. The symmetric part of A_k is positive semidefinite or
nearly so, so that factors L U need no pivoting.

Multifrontal method [Liu 1992]: trees are eliminated in an order of minimum degree. The *front* of a tree is the dense
matrix of its unknowns and of those of all trees that its elimination couples; it collects the contacts whose first tree
it is and what is left of the fronts before it, and its own unknowns are eliminated. Fronts are in postorder, so that
what is left lies on a stack.

Storage of a front with m unknowns, p of them its own: p rows of m of U, p columns of m of L, and the remaining square
by rows. Cost: for a heap of N bodies about N^1.5 to N^2 with small factors; the
order costs N^2 bytes.
"""

from typing import NamedTuple

import numpy as np

from bunraku.jit import allocating, inline, inner


class Fronts(NamedTuple):
    """Order of elimination and places of the fronts; F fronts, one for each tree."""

    tree: np.ndarray      # (F,) int64, the tree that a front eliminates
    first: np.ndarray     # (F + 1,) int64, start of its unknowns in `unknown`
    unknown: np.ndarray   # int64, unknowns of the fronts, their own first
    children: np.ndarray  # (F,) int64, number of fronts whose rest it collects
    contact: np.ndarray   # (F + 1,) int64, start of its contacts in `contacts`
    contacts: np.ndarray  # (K,) int64
    at: np.ndarray        # (F + 1,) int64, start of its rows and columns in `upper` and `lower`
    upper: np.ndarray     # float64, rows of U
    lower: np.ndarray     # float64, columns of L, whose diagonal is 1
    stack: np.ndarray     # float64, rests of fronts
    local: np.ndarray     # (unknowns,) int64, place of an unknown in the present front


@allocating
def elimination(trees, side):
    """(trees in an order of small degree, for each the matrix row of trees that its elimination couples).

    side: (2 K,) trees of the contacts, or -1. Row t of the (trees, trees) matrix is of tree t, when it is
    eliminated."""
    near = np.zeros((trees, trees), np.uint8)
    for k in range(side.shape[0] // 2):
        a, b = side[2 * k], side[2 * k + 1]
        if a >= 0 and b >= 0:
            near[a, b] = near[b, a] = 1
    degree, order = np.zeros(trees, np.int64), np.empty(trees, np.int64)
    for t in range(trees):
        degree[t] = near[t].sum()
    for step in range(trees):
        least = 0
        for t in range(1, trees):
            if degree[t] < degree[least]:
                least = t
        order[step], degree[least] = least, 4 * trees  # never again
        for t in range(trees):
            if near[least, t] != 0 and degree[t] <= trees:
                for s in range(trees):
                    near[t, s] |= near[least, s]
                near[t, t] = near[t, least] = 0
                total = 0
                for s in range(trees):
                    total += near[t, s]
                degree[t] = total
    return order, near


@allocating
def postorder(order, near):
    """(the order with children before parents and nothing between, number of children of each, place of each tree)."""
    trees = order.shape[0]
    place, parent = np.empty(trees, np.int64), np.full(trees, -1)
    for step in range(trees):
        place[order[step]] = step
    for step in range(trees):
        for t in range(trees):
            if near[order[step], t] != 0 and (parent[step] < 0 or place[t] < parent[step]):
                parent[step] = place[t]
    head, following, children = np.full(trees + 1, -1), np.full(trees, -1), np.zeros(trees, np.int64)
    for back in range(trees):
        step = trees - 1 - back
        to = parent[step] if parent[step] >= 0 else trees
        following[step], head[to] = head[to], step
        if parent[step] >= 0:
            children[parent[step]] += 1
    ordered, count, stack, depth = np.empty(trees, np.int64), np.empty(trees, np.int64), np.empty(trees, np.int64), 0
    done, root = 0, head[trees]
    while root >= 0:
        stack[0], depth = root, 1
        while depth > 0:
            step = stack[depth - 1]
            if head[step] >= 0:
                stack[depth], head[step] = head[step], following[head[step]]
                depth += 1
            else:
                ordered[done], count[done] = order[step], children[step]
                done += 1
                depth -= 1
        root = following[root]
    for step in range(trees):
        place[ordered[step]] = step
    return ordered, count, place


@allocating
def make_fronts(size, start, side):
    """Fronts for trees with `size` unknowns each, from `start` on, and contacts between the trees in `side`."""
    trees, contacts = size.shape[0], side.shape[0] // 2
    order, near = elimination(trees, side)
    tree, children, place = postorder(order, near)
    first, contact, at = np.zeros(trees + 1, np.int64), np.zeros(trees + 2, np.int64), np.zeros(trees + 1, np.int64)
    for s in range(trees):
        m = size[tree[s]]
        for t in range(trees):
            m += size[t] * near[tree[s], t]
        first[s + 1], at[s + 1] = first[s] + m, at[s] + m * size[tree[s]]
    index, listed = np.empty(first[trees], np.int64), np.empty(trees, np.int64)
    for s in range(trees):
        n = 0
        for later in range(s, trees):
            if later == s or near[tree[s], tree[later]] != 0:
                listed[n] = tree[later]
                n += 1
        o = first[s]
        for i in range(n):
            for j in range(size[listed[i]]):
                index[o] = start[listed[i]] + j
                o += 1
    for k in range(contacts):
        contact[front_of(k, side, place) + 2] += 1
    for s in range(trees):
        contact[s + 2] += contact[s + 1]
    numbers = np.empty(contacts, np.int64)
    for k in range(contacts):
        s = front_of(k, side, place)
        numbers[contact[s + 1]] = k
        contact[s + 1] += 1
    deepest = depth = 0
    waiting, kept = np.empty(trees, np.int64), 0
    for s in range(trees):
        for _ in range(children[s]):
            kept -= 1
            depth -= waiting[kept]
        rest = first[s + 1] - first[s] - size[tree[s]]
        waiting[kept] = rest * rest
        depth += waiting[kept]
        kept += 1
        deepest = max(deepest, depth + rest * rest)
    largest = 0
    for s in range(trees):
        largest = max(largest, first[s + 1] - first[s])
    return Fronts(tree, first, index, children, contact[:trees + 1], numbers, at, np.empty(at[trees]),
                  np.empty(at[trees]), np.empty(deepest + largest * largest),
                  np.zeros(start[trees - 1] + size[trees - 1], np.int64))


@inline
def front_of(k, side, place):
    """The front that collects a contact: that of its tree that is eliminated first."""
    a, b = side[2 * k], side[2 * k + 1]
    if a < 0:
        return place[b]
    if b < 0:
        return place[a]
    return min(place[a], place[b])


@inner
def add_contact(k, A, size, start, side, y, y_at, p, m, local, upper, lower, rest):
    """Add Y_k^T A_k Y_k to a front: unknowns are at `local`; A: 9 k on, by rows."""
    left = m - p
    for u in range(2):
        a = side[2 * k + u]
        if a < 0:
            continue
        n, o, row = size[a], y_at[2 * k + u], local[start[a]]
        for w in range(2):
            b = side[2 * k + w]
            if b < 0:
                continue
            n_b, o_b, column = size[b], y_at[2 * k + w], local[start[b]]
            for i in range(n):
                y_0, y_1, y_2 = y[o + i], y[o + n + i], y[o + 2 * n + i]
                c_0 = A[9 * k] * y_0 + A[9 * k + 3] * y_1 + A[9 * k + 6] * y_2
                c_1 = A[9 * k + 1] * y_0 + A[9 * k + 4] * y_1 + A[9 * k + 7] * y_2
                c_2 = A[9 * k + 2] * y_0 + A[9 * k + 5] * y_1 + A[9 * k + 8] * y_2
                at, target, step = (row + i) * m + column, upper, 1
                if row >= p and column < p:
                    at, target, step = column * m + row + i, lower, m
                elif row >= p:
                    at, target = (row + i - p) * left + column - p, rest
                for j in range(n_b):
                    target[at + step * j] += c_0 * y[o_b + j] + c_1 * y[o_b + n_b + j] + c_2 * y[o_b + 2 * n_b + j]


@inner
def factor(fronts, size, start, side, y, y_at, A):
    """Factors into the panels."""
    top, stack, local = 0, fronts.stack, fronts.local
    for s in range(fronts.tree.shape[0]):
        first, p = fronts.first[s], size[fronts.tree[s]]
        m = fronts.first[s + 1] - first
        left = m - p
        upper, lower = fronts.upper[fronts.at[s]:fronts.at[s + 1]], fronts.lower[fronts.at[s]:fronts.at[s + 1]]
        rest = stack[stack.shape[0] - left * left:]
        for i in range(m):
            local[fronts.unknown[first + i]] = i
        for i in range(p * m):
            upper[i] = lower[i] = 0.0
        for i in range(left * left):
            rest[i] = 0.0
        for i in range(p):
            upper[i * m + i] = 1.0
        for c in range(fronts.contact[s], fronts.contact[s + 1]):
            add_contact(fronts.contacts[c], A, size, start, side, y, y_at, p, m, local, upper, lower, rest)
        child = s - 1
        for _ in range(fronts.children[s]):
            top = collect(child, fronts, size, top, p, m, upper, lower, rest)
            child -= subtree(child, fronts)
        eliminate(p, m, upper, lower, rest)
        for i in range(left * left):
            stack[top + i] = rest[i]
        top += left * left


@inner
def subtree(s, fronts):
    """Number of fronts below a front, and itself."""
    count, open_ends = 0, 1
    while open_ends > 0:
        open_ends += fronts.children[s - count] - 1
        count += 1
    return count


@inner
def collect(child, fronts, size, top, p, m, upper, lower, rest):
    """Add what is left of a front, on top of the stack, to the present one; the new top."""
    first = fronts.first[child] + size[fronts.tree[child]]
    n, left, local, stack = fronts.first[child + 1] - first, m - p, fronts.local, fronts.stack
    top -= n * n
    own = 0  # unknowns that the present front eliminates: the first ones of the child's
    while own < n and local[fronts.unknown[first + own]] < p:
        own += 1
    for i in range(n):
        row, o = local[fronts.unknown[first + i]], top + i * n
        if i < own:
            for j in range(n):
                upper[row * m + local[fronts.unknown[first + j]]] += stack[o + j]
        else:
            for j in range(own):
                lower[local[fronts.unknown[first + j]] * m + row] += stack[o + j]
            to = (row - p) * left - p
            for j in range(own, n):
                rest[to + local[fronts.unknown[first + j]]] += stack[o + j]
    return top


@inner
def eliminate(p, m, upper, lower, rest):
    """Factors of the first p unknowns of a front, and what is left for the others."""
    left = m - p
    for k in range(p):
        pivot = 1.0 / upper[k * m + k]
        for j in range(k + 1, p):  # the square of the first p unknowns lies in `upper` alone
            lower[k * m + j] = x = upper[j * m + k] * pivot
            for i in range(k + 1, m):
                upper[j * m + i] -= x * upper[k * m + i]
        for i in range(p, m):
            lower[k * m + i] *= pivot
        for j in range(k + 1, p):
            x = upper[k * m + j]
            for i in range(p, m):
                lower[j * m + i] -= x * lower[k * m + i]
    k = 0
    while k + 3 <= p:
        a, b, c = k * m + p, (k + 1) * m + p, (k + 2) * m + p
        for i in range(left):
            x, y, z, o = lower[a + i], lower[b + i], lower[c + i], i * left
            for j in range(left):
                rest[o + j] -= x * upper[a + j] + y * upper[b + j] + z * upper[c + j]
        k += 3
    while k < p:
        a = k * m + p
        for i in range(left):
            x, o = lower[a + i], i * left
            for j in range(left):
                rest[o + j] -= x * upper[a + j]
        k += 1


@inner
def solve_with_factors(fronts, size, z):
    """Solve H z = z in place."""
    trees = fronts.tree.shape[0]
    for s in range(trees):
        first, p, o = fronts.first[s], size[fronts.tree[s]], fronts.at[s]
        m = fronts.first[s + 1] - first
        for k in range(p):
            x = z[fronts.unknown[first + k]]
            for i in range(k + 1, m):
                z[fronts.unknown[first + i]] -= x * fronts.lower[o + k * m + i]
    for back in range(trees):
        s = trees - 1 - back
        first, p, o = fronts.first[s], size[fronts.tree[s]], fronts.at[s]
        m = fronts.first[s + 1] - first
        for up in range(p):
            k = p - 1 - up
            x = z[fronts.unknown[first + k]]
            for i in range(k + 1, m):
                x -= z[fronts.unknown[first + i]] * fronts.upper[o + k * m + i]
            z[fronts.unknown[first + k]] = x / fronts.upper[o + k * m + k]
