"""Order of elimination of the trees of a large island, and places of its fronts (`heap_factors.py`).

Minimum degree [Liu 1992] on the graph of trees, which contacts couple: sets of trees are bits of words, and trees that
couple the same others are eliminated together. Cost: N^2 bits for N trees.
"""

from typing import NamedTuple

import numpy as np

from bunraku.jit import allocating, inline, inner
from bunraku.spatial.lanes import WIDTH

BITS = 62   # of a word that sets of trees use


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


# -- lengths in whole lanes --------------------------------------------------------------------------------------------

@inline
def row_length(m):
    """Floats of a row of a front: a lane of zeros follows the last one at least."""
    return (m + 2 * WIDTH - 1) // WIDTH * WIDTH


@inline
def padded(n):
    """Floats of n unknowns of a tree, in whole lanes."""
    return (n + WIDTH - 1) // WIDTH * WIDTH
