"""Sparse factors of a large island: H = 1 + sum_k Y_k^T A_k Y_k, one block of unknowns for each tree.

Unknowns are x with |x|^2 / 2 the kinetic energy of a change of motion (`heap.py`); contact k has a row Y_k of blocks
for the one or two trees that it acts on, and a 3 x 3 matrix A_k. The symmetric part of A_k is positive semidefinite or
nearly so, so that factors L U need no pivoting.

Multifrontal method [Liu 1992]: trees are eliminated in an order of minimum degree, those that couple the same others
together. The *front* of such trees is the dense matrix of their unknowns and of those of all trees coupled to them; it
collects the contacts whose first tree is among them and what is left of the fronts before it, and their own
unknowns are eliminated, six at a time. Fronts are in postorder, so that what is left lies on a stack.

Storage: a front with m unknowns, p of them its own, leaves p rows of m of U, p columns of m of L, and the remaining
square by rows. `heap_order.py` finds order and places. Cost: for a heap of N bodies about N^1.5 to N^2 with small
factors.
"""

from bunraku.contact.heap_order import padded, row_length
from bunraku.jit import inline, inner
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import load, put_lane, store, take_lane, total

BLOCK = 6   # unknowns that are eliminated together


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
