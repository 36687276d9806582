"""Sparse factors of a large island: H = 1 + sum_k Y_k^T A_k Y_k, one block of unknowns for each tree.

Unknowns are x with |x|^2 / 2 the kinetic energy of a change of motion (`heap.py`); contact k has a row Y_k of blocks
for the one or two trees that it acts on, and a 3 x 3 matrix A_k. The symmetric part of A_k is positive semidefinite or
nearly so, so that factors L U need no pivoting.

Multifrontal method [Liu 1992]: trees are eliminated in an order of minimum degree, those that couple the same others
together. The *front* of such trees is the dense matrix of their unknowns and of those of all trees coupled to them; it
collects the contacts whose first tree is among them and what is left of the fronts before it, and their own
unknowns are eliminated, six at a time. Fronts are in postorder, so that what is left lies on a stack.

Storage: a front with m unknowns, p of them its own, leaves p rows of m of U, p columns of m of L, and the remaining
square by rows. Cost: for a heap of N bodies about N^1.5 to N^2 with small factors; the order costs N^2 bits.
"""

from typing import NamedTuple

import numpy as np

from bunraku.jit import allocating, inline, inner
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import load, put_lane, store, take_lane, total

BITS = 62   # of a word that sets of trees use
BLOCK = 6   # unknowns that are eliminated together


class Fronts(NamedTuple):
    """Order of elimination and places of the fronts; F fronts."""

    own: np.ndarray       # (F,) int64, number of unknowns that a front eliminates
    first: np.ndarray     # (F + 1,) int64, start of its unknowns in `unknown`
    unknown: np.ndarray   # int64, unknowns of the fronts, their own first
    children: np.ndarray  # (F,) int64, number of fronts whose rest it collects
    below: np.ndarray     # (F,) int64, number of fronts below it, and itself
    contact: np.ndarray   # (F + 1,) int64, start of its contacts in `contacts`
    contacts: np.ndarray  # (K,) int64
    run: np.ndarray       # (F + 1,) int64, start in `runs` of the places of its rest in the front that collects it
    runs: np.ndarray      # int64, threes: place in the rest, place there, length
    at: np.ndarray        # (F + 1,) int64, start of its rows and columns in `upper` and `lower`
    upper: np.ndarray     # float64, rows of U
    lower: np.ndarray     # float64, columns of L, whose diagonal is 1
    front: np.ndarray     # float64, the present front
    stack: np.ndarray     # float64, rests of fronts
    place: np.ndarray     # (2 K,) int64, place of the trees of a contact in its front
    vector: np.ndarray    # float64, as long as the longest front and a lane


# -- sets of trees -----------------------------------------------------------------------------------------------------

@inline
def members(x):
    """Number of bits of a word that are set."""
    x = x - ((x >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
    return (x * 0x0101010101010101) >> 56


@inner
def list_members(row, listed):
    """Numbers in a set, in ascending order; how many."""
    n = 0
    for w in range(row.shape[0]):
        left = row[w]
        while left != 0:
            lowest = left & -left
            listed[n] = BITS * w + members(lowest - 1)
            left ^= lowest
            n += 1
    return n


@inline
def put_in(row, t):
    row[t // BITS] |= np.int64(1) << (t % BITS)


@inline
def take_out(row, t):
    row[t // BITS] &= ~(np.int64(1) << (t % BITS))


# -- order -------------------------------------------------------------------------------------------------------------

@allocating
def elimination(trees, side):
    """(trees in an order of small degree, for each the set of trees that its elimination couples, their number).

    side: (2 K,) trees of the contacts, or -1."""
    near, degree = np.zeros((trees, (trees - 1) // BITS + 1), np.int64), np.zeros(trees, np.int64)
    for k in range(side.shape[0] // 2):
        a, b = side[2 * k], side[2 * k + 1]
        if a >= 0 and b >= 0:
            put_in(near[a], b)
            put_in(near[b], a)
    order, coupled = np.empty(trees, np.int64), np.empty(trees, np.int64)
    for t in range(trees):
        degree[t] = list_members(near[t], coupled)
    for step in range(trees):
        least = 0
        for t in range(1, trees):
            if degree[t] < degree[least]:
                least = t
        order[step] = least
        n = list_members(near[least], coupled)
        for i in range(n):
            row, total = near[coupled[i]], 0
            for w in range(row.shape[0]):
                row[w] |= near[least, w]
            take_out(row, coupled[i])
            take_out(row, least)
            for w in range(row.shape[0]):
                total += members(row[w])
            degree[coupled[i]] = total
        degree[least] = 2 * trees  # never again
    return order, near


@allocating
def postorder(order, near):
    """(the order with children before parents and nothing between, place of the parent of each, place of each tree).
    The parent is the first tree coupled to a tree that is eliminated after it; -1: none."""
    trees = order.shape[0]
    place, parent, coupled = np.empty(trees, np.int64), np.full(trees, -1), np.empty(trees, np.int64)
    for step in range(trees):
        place[order[step]] = step
    for step in range(trees):
        for i in range(list_members(near[order[step]], coupled)):
            if parent[step] < 0 or place[coupled[i]] < parent[step]:
                parent[step] = place[coupled[i]]
    head, following = np.full(trees + 1, -1), np.full(trees, -1)
    for back in range(trees):
        step = trees - 1 - back
        to = parent[step] if parent[step] >= 0 else trees
        following[step], head[to] = head[to], step
    ordered, moved, stack, done = np.empty(trees, np.int64), np.empty(trees, np.int64), np.empty(trees, np.int64), 0
    root = head[trees]
    while root >= 0:
        stack[0], depth = root, 1
        while depth > 0:
            step = stack[depth - 1]
            if head[step] >= 0:
                stack[depth], head[step] = head[step], following[head[step]]
                depth += 1
            else:
                ordered[done], moved[step] = order[step], done
                done += 1
                depth -= 1
        root = following[root]
    for step in range(trees):
        place[order[step]] = moved[step]
    parents = np.full(trees, -1)
    for step in range(trees):
        if parent[step] >= 0:
            parents[moved[step]] = moved[parent[step]]
    return ordered, parents, place


@allocating
def list_fronts(size, order, parent, place, near):
    """(number of fronts, first place of each, front of each place, start of the trees of each, these trees): trees that
    couple the same others are one front."""
    trees = order.shape[0]
    begin, front_at, coupled = np.zeros(trees + 1, np.int64), np.empty(trees, np.int64), np.empty(trees, np.int64)
    count, before = 0, -1
    for s in range(trees):
        n = list_members(near[order[s]], coupled)
        if s > 0 and parent[s - 1] == s and before == n + 1:
            begin[count] = s + 1
        else:
            count += 1
            begin[count] = s + 1
        front_at[s], before = count - 1, n
    start, total = np.zeros(count + 1, np.int64), 0
    for s in range(count):
        total += begin[s + 1] - begin[s] + list_members(near[order[begin[s + 1] - 1]], coupled)
        start[s + 1] = total
    listed = np.empty(total, np.int64)
    for s in range(count):
        o = start[s]
        for i in range(begin[s], begin[s + 1]):
            listed[o] = order[i]
            o += 1
        for i in range(list_members(near[order[begin[s + 1] - 1]], coupled)):
            t, j = coupled[i], o + i
            while j > o and place[listed[j - 1]] > place[t]:
                listed[j] = listed[j - 1]
                j -= 1
            listed[j] = t
    return count, begin, front_at, start, listed


@allocating
def make_fronts(size, start, side):
    """Fronts for trees with `size` unknowns each, from `start` on, and contacts between the trees in `side`."""
    trees, contacts = size.shape[0], side.shape[0] // 2
    order, near = elimination(trees, side)
    order, parent, place = postorder(order, near)
    fronts, begin, front_at, listed_at, listed = list_fronts(size, order, parent, place, near)
    own, first, at = np.zeros(fronts, np.int64), np.zeros(fronts + 1, np.int64), np.zeros(fronts + 1, np.int64)
    unknown = np.empty(sum_of_sizes(listed, size), np.int64)
    o = longest = 0
    for s in range(fronts):
        for i in range(listed_at[s], listed_at[s + 1]):
            t = listed[i]
            if i - listed_at[s] < begin[s + 1] - begin[s]:
                own[s] += size[t]
            for j in range(size[t]):
                unknown[o] = start[t] + j
                o += 1
        first[s + 1], at[s + 1] = o, at[s] + row_length(o - first[s]) * own[s]
        longest = max(longest, o - first[s])
    run, runs = places_of_rests(fronts, begin, front_at, parent, listed_at, listed, size, place)
    children, below = np.zeros(fronts, np.int64), np.ones(fronts, np.int64)
    for s in range(fronts):
        above = parent[begin[s + 1] - 1]
        if above >= 0:
            children[front_at[above]] += 1
            below[front_at[above]] += below[s]
    contact, numbers, at_front = contacts_of_fronts(contacts, fronts, side, size, place, front_at, listed_at, listed)
    deepest = depth = 0
    waiting, kept = np.empty(fronts, np.int64), 0
    for s in range(fronts):
        for _ in range(children[s]):
            kept -= 1
            depth -= waiting[kept]
        rest = first[s + 1] - first[s] - own[s]
        waiting[kept] = rest * padded(rest)
        depth += waiting[kept]
        kept += 1
        deepest = max(deepest, depth)
    return Fronts(own, first, unknown, children, below, contact, numbers, run, runs, at, np.empty(at[fronts]),
                  np.zeros(at[fronts]), np.empty(longest * row_length(longest) + WIDTH), np.empty(deepest + WIDTH),
                  at_front, np.zeros(longest + WIDTH))


@inner
def sum_of_sizes(listed, size):
    total = 0
    for i in range(listed.shape[0]):
        total += size[listed[i]]
    return total


@allocating
def places_of_rests(fronts, begin, front_at, parent, listed_at, listed, size, place):
    """`run` and `runs` of the fronts: both lists are in the order of elimination."""
    run, runs, n = np.zeros(fronts + 1, np.int64), np.empty(3 * listed.shape[0], np.int64), 0
    for s in range(fronts):
        above = parent[begin[s + 1] - 1]
        if above >= 0:
            to = listed_at[front_at[above]]
            here, there, last = 0, 0, -1
            for i in range(listed_at[s] + begin[s + 1] - begin[s], listed_at[s + 1]):
                while listed[to] != listed[i]:
                    there += size[listed[to]]
                    to += 1
                if last == there:
                    runs[3 * n - 1] += size[listed[i]]
                else:
                    runs[3 * n], runs[3 * n + 1], runs[3 * n + 2] = here, there, size[listed[i]]
                    n += 1
                here += size[listed[i]]
                last = there + size[listed[i]]
        run[s + 1] = n
    return run, runs


@allocating
def contacts_of_fronts(contacts, fronts, side, size, place, front_at, listed_at, listed):
    """`contact`, `contacts` and `place`: each is collected by the front of its tree that is eliminated first."""
    contact, numbers = np.zeros(fronts + 2, np.int64), np.empty(contacts, np.int64)
    for k in range(contacts):
        contact[front_of(k, side, place, front_at) + 2] += 1
    for s in range(fronts):
        contact[s + 2] += contact[s + 1]
    for k in range(contacts):
        s = front_of(k, side, place, front_at)
        numbers[contact[s + 1]] = k
        contact[s + 1] += 1
    at_front = np.zeros(2 * contacts, np.int64)
    for k in range(contacts):
        s = front_of(k, side, place, front_at)
        for u in range(2):
            i = listed_at[s]
            while side[2 * k + u] >= 0 and listed[i] != side[2 * k + u]:
                at_front[2 * k + u] += size[listed[i]]
                i += 1
    return contact[:fronts + 1], numbers, at_front


@inline
def front_of(k, side, place, front_at):
    a, b = side[2 * k], side[2 * k + 1]
    if a < 0:
        return front_at[place[b]]
    if b < 0:
        return front_at[place[a]]
    return front_at[min(place[a], place[b])]


# -- factors -----------------------------------------------------------------------------------------------------------

@inline
def row_length(m):
    """Floats of a row of a front: a lane of zeros follows the last one at least."""
    return (m + 2 * WIDTH - 1) // WIDTH * WIDTH


@inline
def padded(n):
    """Floats of n unknowns of a tree, in whole lanes."""
    return (n + WIDTH - 1) // WIDTH * WIDTH


@inline
def add_contact(k, A, size, side, y, y_at, place, front, length):
    """Add Y_k^T A_k Y_k to a front: unknowns of its trees are at `place`; A: 9 k on, by rows."""
    for w in range(2):
        b = side[2 * k + w]
        if b < 0:
            continue
        apart = padded(size[b])
        for j in range(0, size[b], WIDTH):
            o = y_at[2 * k + w] + j
            y_0, y_1, y_2 = take_lane(y, o), take_lane(y, o + apart), take_lane(y, o + 2 * apart)
            c_0 = load(A, 9 * k) * y_0 + load(A, 9 * k + 1) * y_1 + load(A, 9 * k + 2) * y_2
            c_1 = load(A, 9 * k + 3) * y_0 + load(A, 9 * k + 4) * y_1 + load(A, 9 * k + 5) * y_2
            c_2 = load(A, 9 * k + 6) * y_0 + load(A, 9 * k + 7) * y_1 + load(A, 9 * k + 8) * y_2
            for u in range(2):
                a = side[2 * k + u]
                if a < 0:
                    continue
                o, wide, at = y_at[2 * k + u], padded(size[a]), place[2 * k + u] * length + place[2 * k + w] + j
                for i in range(size[a]):
                    put_lane(front, at, take_lane(front, at) + load(y, o + i) * c_0 + load(y, o + wide + i) * c_1
                             + load(y, o + 2 * wide + i) * c_2)
                    at += length


@inner
def factor(fronts, size, side, y, y_at, A):
    """Factors into the panels."""
    top, stack, front = 0, fronts.stack, fronts.front
    for s in range(fronts.own.shape[0]):
        p, m = fronts.own[s], fronts.first[s + 1] - fronts.first[s]
        length, rest = row_length(m), m - p
        for i in range(0, m * length, WIDTH):
            put_lane(front, i, 0.0)
        for i in range(p):
            store(front, i * length + i, 1.0)
        for c in range(fronts.contact[s], fronts.contact[s + 1]):
            add_contact(fronts.contacts[c], A, size, side, y, y_at, fronts.place, front, length)
        child = s - 1
        for _ in range(fronts.children[s]):
            n = fronts.first[child + 1] - fronts.first[child] - fronts.own[child]
            top -= n * padded(n)
            collect(3 * fronts.run[child], 3 * fronts.run[child + 1], fronts.runs, padded(n), top, stack, front, length)
            child -= fronts.below[child]
        lower, upper = fronts.lower[fronts.at[s]:fronts.at[s + 1]], fronts.upper[fronts.at[s]:fronts.at[s + 1]]
        eliminate(p, m, length, front, lower)
        for i in range(0, p * length, WIDTH):
            put_lane(upper, i, take_lane(front, i))
        for i in range(p, m):
            for j in range(0, rest, WIDTH):
                put_lane(stack, top + j, take_lane(front, i * length + p + j))
            top += padded(rest)


@inner
def collect(begin, end, runs, apart, first, stack, front, length):
    """Add what is left of a front, on the stack from `first` on, to the present one."""
    for a in range(begin, end, 3):
        for i in range(runs[a + 2]):
            source, to = first + (runs[a] + i) * apart, (runs[a + 1] + i) * length
            for b in range(begin, end, 3):
                o, at, n = source + runs[b], to + runs[b + 1], runs[b + 2]
                j = 0
                while j + WIDTH <= n:
                    put_lane(front, at + j, take_lane(front, at + j) + take_lane(stack, o + j))
                    j += WIDTH
                while j < n:
                    store(front, at + j, load(front, at + j) + load(stack, o + j))
                    j += 1


@inner
def eliminate(p, m, length, front, lower):
    """Factors of the first p unknowns of a front, and what is left for the others; zeros end each row."""
    k = 0
    while k + BLOCK <= p:
        factor_block(k, length, front, lower)
        eliminate_block(k, m, length, front, lower)
        k += BLOCK
    while k < p:
        pivot = 1.0 / load(front, k * length + k)
        for i in range(k + 1, m):
            o = i * length
            x = load(front, o + k) * pivot
            store(lower, k * length + i, x)
            for j in range(k + 1, m, WIDTH):
                put_lane(front, o + j, take_lane(front, o + j) - x * take_lane(front, k * length + j))
        k += 1


@inline
def factor_block(k, length, front, lower):
    """Factors of a BLOCK on the diagonal, from unknown k on."""
    for c in range(BLOCK):
        row = (k + c) * length + k
        pivot = 1.0 / load(front, row + c)
        for i in range(c + 1, BLOCK):
            o = (k + i) * length + k
            x = load(front, o + c) * pivot
            store(front, o + c, x)
            store(lower, (k + c) * length + k + i, x)
            for j in range(c + 1, BLOCK):
                store(front, o + j, load(front, o + j) - x * load(front, row + j))


@inner
def eliminate_block(k, m, length, front, lower):
    """Rows of U and columns of L beside a BLOCK that is factorised, and what it leaves of the others."""
    r_0, r_1, r_2 = k * length, (k + 1) * length, (k + 2) * length
    r_3, r_4, r_5 = (k + 3) * length, (k + 4) * length, (k + 5) * length
    end = k + BLOCK
    rows_of_block(k, r_0, r_1, r_2, r_3, r_4, r_5, end, m, front)
    d_0, d_1, d_2 = 1.0 / load(front, r_0 + k), 1.0 / load(front, r_1 + k + 1), 1.0 / load(front, r_2 + k + 2)
    d_3, d_4, d_5 = 1.0 / load(front, r_3 + k + 3), 1.0 / load(front, r_4 + k + 4), 1.0 / load(front, r_5 + k + 5)
    u_01, u_02, u_03 = load(front, r_0 + k + 1), load(front, r_0 + k + 2), load(front, r_0 + k + 3)
    u_04, u_05, u_12 = load(front, r_0 + k + 4), load(front, r_0 + k + 5), load(front, r_1 + k + 2)
    u_13, u_14, u_15 = load(front, r_1 + k + 3), load(front, r_1 + k + 4), load(front, r_1 + k + 5)
    u_23, u_24, u_25 = load(front, r_2 + k + 3), load(front, r_2 + k + 4), load(front, r_2 + k + 5)
    u_34, u_35, u_45 = load(front, r_3 + k + 4), load(front, r_3 + k + 5), load(front, r_4 + k + 5)
    for i in range(end, m):
        o = i * length
        at = o + k
        x_0 = load(front, at) * d_0
        x_1 = (load(front, at + 1) - x_0 * u_01) * d_1
        x_2 = (load(front, at + 2) - x_0 * u_02 - x_1 * u_12) * d_2
        x_3 = (load(front, at + 3) - x_0 * u_03 - x_1 * u_13 - x_2 * u_23) * d_3
        x_4 = (load(front, at + 4) - x_0 * u_04 - x_1 * u_14 - x_2 * u_24 - x_3 * u_34) * d_4
        x_5 = (load(front, at + 5) - x_0 * u_05 - x_1 * u_15 - x_2 * u_25 - x_3 * u_35 - x_4 * u_45) * d_5
        store(lower, r_0 + i, x_0)
        store(lower, r_1 + i, x_1)
        store(lower, r_2 + i, x_2)
        store(lower, r_3 + i, x_3)
        store(lower, r_4 + i, x_4)
        store(lower, r_5 + i, x_5)
        for j in range(end, m, WIDTH):
            put_lane(front, o + j, take_lane(front, o + j) - (
                x_0 * take_lane(front, r_0 + j) + x_1 * take_lane(front, r_1 + j) + x_2 * take_lane(front, r_2 + j)
                + x_3 * take_lane(front, r_3 + j) + x_4 * take_lane(front, r_4 + j) + x_5 * take_lane(front, r_5 + j)))


@inline
def rows_of_block(k, r_0, r_1, r_2, r_3, r_4, r_5, end, m, front):
    """The inverse of L on the rows of a block, which start at r_0 to r_5."""
    l_10, l_20, l_21 = load(front, r_1 + k), load(front, r_2 + k), load(front, r_2 + k + 1)
    l_30, l_31, l_32 = load(front, r_3 + k), load(front, r_3 + k + 1), load(front, r_3 + k + 2)
    l_40, l_41, l_42 = load(front, r_4 + k), load(front, r_4 + k + 1), load(front, r_4 + k + 2)
    l_43, l_50, l_51 = load(front, r_4 + k + 3), load(front, r_5 + k), load(front, r_5 + k + 1)
    l_52, l_53, l_54 = load(front, r_5 + k + 2), load(front, r_5 + k + 3), load(front, r_5 + k + 4)
    for j in range(end, m, WIDTH):
        x_0 = take_lane(front, r_0 + j)
        x_1 = take_lane(front, r_1 + j) - l_10 * x_0
        x_2 = take_lane(front, r_2 + j) - l_20 * x_0 - l_21 * x_1
        x_3 = take_lane(front, r_3 + j) - l_30 * x_0 - l_31 * x_1 - l_32 * x_2
        x_4 = take_lane(front, r_4 + j) - l_40 * x_0 - l_41 * x_1 - l_42 * x_2 - l_43 * x_3
        x_5 = take_lane(front, r_5 + j) - l_50 * x_0 - l_51 * x_1 - l_52 * x_2 - l_53 * x_3 - l_54 * x_4
        put_lane(front, r_1 + j, x_1)
        put_lane(front, r_2 + j, x_2)
        put_lane(front, r_3 + j, x_3)
        put_lane(front, r_4 + j, x_4)
        put_lane(front, r_5 + j, x_5)


@inner
def solve_with_factors(fronts, z):
    """Solve H z = z in place."""
    count, vector, lower, upper = fronts.own.shape[0], fronts.vector, fronts.lower, fronts.upper
    for s in range(count):
        first, p, o = fronts.first[s], fronts.own[s], fronts.at[s]
        m = fronts.first[s + 1] - first
        length = row_length(m)
        for i in range(m):
            store(vector, i, load(z, fronts.unknown[first + i]))
        for k in range(p):
            x = load(vector, k)
            for i in range(k + 1, m, WIDTH):
                put_lane(vector, i, take_lane(vector, i) - x * take_lane(lower, o + i))
            o += length
        for i in range(m):
            store(z, fronts.unknown[first + i], load(vector, i))
    for back in range(count):
        s = count - 1 - back
        first, p = fronts.first[s], fronts.own[s]
        m = fronts.first[s + 1] - first
        length = row_length(m)
        for i in range(m):
            store(vector, i, load(z, fronts.unknown[first + i]))
        put_lane(vector, m, 0.0)
        for up in range(p):
            k = p - 1 - up
            o = fronts.at[s] + k * length
            products = take_lane(vector, k + 1) * take_lane(upper, o + k + 1)
            for i in range(k + 1 + WIDTH, m, WIDTH):
                products = products + take_lane(vector, i) * take_lane(upper, o + i)
            store(vector, k, (load(vector, k) - total(products)) / load(upper, o + k))
        for i in range(p):
            store(z, fronts.unknown[first + i], load(vector, i))
