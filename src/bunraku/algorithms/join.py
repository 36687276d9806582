"""Joining nodes of the assembly tree: the star product of two fronts, and its way back.

Idea: B hangs from the far link of A. With the force F_A that B exerts there,

    a_f = Y_A^T a + beta_A + Theta_A F_A,      F_A = -(I_B a_f + p_B - Y_B F)

and so, with T = (1 + Theta_A I_B)^-1,

    a_f = G a + g + H F,     G = T Y_A^T,   g = T (beta_A - Theta_A p_B),   H = T Theta_A Y_B
    I = I_A + Y_A I_B G,     p = p_A + Y_A (p_B + I_B g)
    Y = Y_A (Y_B - I_B H),   beta = beta_B + Y_B^T g,   Theta = Theta_B + Y_B^T H       (B open)

The join is associative: any assembly tree gives the same result to rounding. No inertia is inverted, and 1 + Theta I is
never singular (both are positive semidefinite). Two nodes that hang from the same link add up.
Reference: [YN02, eqs. 36-39, 50]; docs/parallel.md. Cost: a 6 x 6 solution with 7 or 13 right-hand sides, about 1300 or
2900 multiplications, by rows of eight in SIMD vectors. Floats only: joins are few.
"""

from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import add6, add9, load6, load9, store6, store9
from bunraku.spatial.six import columns, load_six, six_of, store_columns, store_eight

G, G_FREE, H = f.NODE_KEPT, f.NODE_KEPT + 36, f.NODE_KEPT + 42
ROW = 24
"""Floats of scratch memory per row of a system: matrix, right-hand sides G and g, right-hand sides H."""
SCRATCH = 6 * ROW + 96
"""Floats of scratch memory that a join needs."""


@inline
def inertia_rows(work, o):
    """The 6 x 6 matrix [A B; B^T C] of 21 numbers, by rows."""
    A, B, C = load6(work, o), load9(work, o + 6), load6(work, o + 15)
    return (six_of(A[0], A[1], A[2], B[0], B[1], B[2]), six_of(A[1], A[3], A[4], B[3], B[4], B[5]),
            six_of(A[2], A[4], A[5], B[6], B[7], B[8]), six_of(B[0], B[3], B[6], C[0], C[1], C[2]),
            six_of(B[1], B[4], B[7], C[1], C[3], C[4]), six_of(B[2], B[5], B[8], C[2], C[4], C[5]))


@inline
def transposed_rows(work, o):
    """The rows of six columns that are one behind the other."""
    return (six_of(work[o], work[o + 6], work[o + 12], work[o + 18], work[o + 24], work[o + 30]),
            six_of(work[o + 1], work[o + 7], work[o + 13], work[o + 19], work[o + 25], work[o + 31]),
            six_of(work[o + 2], work[o + 8], work[o + 14], work[o + 20], work[o + 26], work[o + 32]),
            six_of(work[o + 3], work[o + 9], work[o + 15], work[o + 21], work[o + 27], work[o + 33]),
            six_of(work[o + 4], work[o + 10], work[o + 16], work[o + 22], work[o + 28], work[o + 34]),
            six_of(work[o + 5], work[o + 11], work[o + 17], work[o + 23], work[o + 29], work[o + 35]))


@inline
def load_rows(work, o, apart):
    return (load_six(work, o), load_six(work, o + apart), load_six(work, o + 2 * apart),
            load_six(work, o + 3 * apart), load_six(work, o + 4 * apart), load_six(work, o + 5 * apart))


@inline
def combined(x, rows):
    """x^T times a matrix, given by rows."""
    return ((x[0] * rows[0] + x[1] * rows[1]) + (x[2] * rows[2] + x[3] * rows[3])) + (x[4] * rows[4] + x[5] * rows[5])


@inline
def store_rows(work, o, rows):
    store_eight(work, o, rows[0])
    store_eight(work, o + 8, rows[1])
    store_eight(work, o + 16, rows[2])
    store_eight(work, o + 24, rows[3])
    store_eight(work, o + 32, rows[4])
    store_eight(work, o + 40, rows[5])


@inline
def column(work, o):
    """A column of a matrix in scratch memory."""
    return work[o], work[o + 8], work[o + 16], work[o + 24], work[o + 32], work[o + 40]


@inline
def dot6(x, y):
    return (x[0] * y[0] + x[1] * y[1] + x[2] * y[2]) + (x[3] * y[3] + x[4] * y[4] + x[5] * y[5])


@inline
def theta_row(work, o, i):
    """Row i of a packed lower triangle."""
    k = o + i * (i + 1) // 2
    x0 = work[k]
    x1 = work[k + 1] if i >= 1 else work[o + 1]
    x2 = work[k + 2] if i >= 2 else work[o + 3 + i]
    x3 = work[k + 3] if i >= 3 else work[o + 6 + i]
    x4 = work[k + 4] if i >= 4 else work[o + 10 + i]
    return x0, x1, x2, x3, x4, work[o + 15 + i]


@inner
def solve_rows(work, rows, is_open):
    """Gaussian elimination with row exchanges, for the systems in scratch memory: right-hand sides become solutions."""
    for k in range(6):
        o = rows + ROW * k
        best, pivot = o, abs(work[o + k])
        for i in range(k + 1, 6):
            x = abs(work[rows + ROW * i + k])
            if x > pivot:
                best, pivot = rows + ROW * i, x
        r = 1.0 / work[best + k]
        m, g, h = load_six(work, best) * r, load_six(work, best + 8) * r, load_six(work, best + 16) * r
        if best != o:
            for j in range(ROW):
                work[best + j] = work[o + j]
        store_eight(work, o, m)
        store_eight(work, o + 8, g)
        if is_open:
            store_eight(work, o + 16, h)
        for i in range(k + 1, 6):
            t = rows + ROW * i
            x = work[t + k]
            store_eight(work, t, load_six(work, t) - x * m)
            store_eight(work, t + 8, load_six(work, t + 8) - x * g)
            if is_open:
                store_eight(work, t + 16, load_six(work, t + 16) - x * h)
    for back in range(5):
        k = 5 - back
        g, h = load_six(work, rows + ROW * k + 8), load_six(work, rows + ROW * k + 16)
        for i in range(k):
            t = rows + ROW * i
            x = work[t + k]
            store_eight(work, t + 8, load_six(work, t + 8) - x * g)
            if is_open:
                store_eight(work, t + 16, load_six(work, t + 16) - x * h)


@inner
def join(node, upper, lower, is_open, work, scratch):
    """Assemble: the front of `node` from those of its operands; G, g and H are kept. `scratch`: a place of SCRATCH.
    If the lower operand is not open, `node` may be `upper`."""
    A, B, C = upper + f.NODE_FRONT, lower + f.NODE_FRONT, node + f.NODE_FRONT
    Y_A, Y_B, inertia, side = A + f.FRONT_Y, B + f.FRONT_Y, scratch + 6 * ROW, scratch + 6 * ROW + 48
    I, p = inertia_rows(work, B), load6(work, B + f.FRONT_P)
    lines_B = transposed_rows(work, Y_B) if is_open else I  # of an open one only
    store_rows(work, inertia, I)
    for i in range(6):
        o, t = scratch + ROW * i, theta_row(work, A + f.FRONT_THETA, i)
        store_eight(work, o, combined(t, I))
        work[o + i] += 1.0
        store_eight(work, o + 8, load_six(work, Y_A + 6 * i))
        work[o + 14] = work[A + f.FRONT_BETA + i] - dot6(t, p)
        work[o + 15] = 0.0
        if is_open:
            store_eight(work, o + 16, combined(t, lines_B))
    solve_rows(work, scratch, is_open)
    found = load_rows(work, scratch + 8, ROW)  # G, and in the seventh place g
    for i in range(6):
        store_columns(work, node + G + 6 * i, load_six(work, scratch + ROW * i + 8))
        work[node + G_FREE + i] = work[scratch + ROW * i + 14]
        store_eight(work, side + 8 * i, combined(load6(work, inertia + 8 * i), found))
    columns_A = load_rows(work, Y_A, 6)
    add_inertia(work, A, combined(column(work, side), columns_A), combined(column(work, side + 1), columns_A),
                combined(column(work, side + 2), columns_A), combined(column(work, side + 3), columns_A),
                combined(column(work, side + 4), columns_A), combined(column(work, side + 5), columns_A), C)
    for i in range(6):
        work[side + 8 * i] = work[B + f.FRONT_P + i] + work[side + 8 * i + 6]
    store_columns(work, C + f.FRONT_P, load_six(work, A + f.FRONT_P) + combined(column(work, side), columns_A))
    if is_open:
        found = load_rows(work, scratch + 16, ROW)
        for i in range(6):
            store_columns(work, node + H + 6 * i, load_six(work, scratch + ROW * i + 16))
            store_eight(work, side + 8 * i, combined(load6(work, inertia + 8 * i), found))
        o = 0
        for j in range(6):  # a column of Y_B - I_B H
            x = columns(load_six(work, Y_B + 6 * j))
            y = column(work, side + j)
            rest = (x[0] - y[0], x[1] - y[1], x[2] - y[2], x[3] - y[3], x[4] - y[4], x[5] - y[5])
            store_columns(work, C + f.FRONT_Y + 6 * j, combined(rest, columns_A))
            store_eight(work, scratch, combined(x, found))
            for k in range(j + 1):
                work[C + f.FRONT_THETA + o] = work[B + f.FRONT_THETA + o] + work[scratch + k]
                o += 1
        store_columns(work, C + f.FRONT_BETA,
                      load_six(work, B + f.FRONT_BETA) + combined(load6(work, node + G_FREE), lines_B))


@inline
def add_inertia(work, A, z0, z1, z2, z3, z4, z5, to):
    """I = I_A + Y M by the rows of Y M, of which only the parts that are stored: A 6, B 9, C 6."""
    x0, x1, x2, x3, x4, x5 = columns(z0), columns(z1), columns(z2), columns(z3), columns(z4), columns(z5)
    store6(work, to, add6(load6(work, A), (x0[0], x0[1], x0[2], x1[1], x1[2], x2[2])))
    store9(work, to + 6, add9(load9(work, A + 6), (x0[3], x0[4], x0[5], x1[3], x1[4], x1[5], x2[3], x2[4], x2[5])))
    store6(work, to + 15, add6(load6(work, A + 15), (x3[3], x3[4], x3[5], x4[4], x4[5], x5[5])))


@inner
def pass_up(node, change, to, work):
    """Add to the inertia and force at `to`, of a closed join at the link above, what a change (E, e) of what hangs from
    the far link means there: G^T E G and G^T (e + E g)."""
    A, B, C = load6(work, change), load9(work, change + 6), load6(work, change + 15)
    rows, o = load_rows(work, node + G, 6), node + G
    moved = (combined((A[0], A[1], A[2], B[0], B[1], B[2]), rows), combined((A[1], A[3], A[4], B[3], B[4], B[5]), rows),
             combined((A[2], A[4], A[5], B[6], B[7], B[8]), rows), combined((B[0], B[3], B[6], C[0], C[1], C[2]), rows),
             combined((B[1], B[4], B[7], C[1], C[3], C[4]), rows), combined((B[2], B[5], B[8], C[2], C[4], C[5]), rows))
    force = combined(load6(work, change + f.FRONT_P), rows) + combined(load6(work, node + G_FREE), moved)
    store_columns(work, to + f.FRONT_P, load_six(work, to + f.FRONT_P) + force)
    add_inertia(work, to, combined(strided(work, o), moved), combined(strided(work, o + 1), moved),
                combined(strided(work, o + 2), moved), combined(strided(work, o + 3), moved),
                combined(strided(work, o + 4), moved), combined(strided(work, o + 5), moved), to)


@inline
def strided(work, o):
    """Every sixth of the numbers from `o` on: a column of a matrix that is stored by rows of six."""
    return work[o], work[o + 6], work[o + 12], work[o + 18], work[o + 24], work[o + 30]


@inline
def carried_on(node, a, work):
    """G a."""
    o = node + G
    return (dot6(load6(work, o), a), dot6(load6(work, o + 6), a), dot6(load6(work, o + 12), a),
            dot6(load6(work, o + 18), a), dot6(load6(work, o + 24), a), dot6(load6(work, o + 30), a))


@inline
def accelerate(node, lower, work):
    """The acceleration that the closed lower part of `node` begins with, from that of `node`: G a + g."""
    store6(work, lower + f.NODE_A, add6(carried_on(node, load6(work, node + f.NODE_A), work),
                                        load6(work, node + G_FREE)))


@inner
def split(node, upper, lower, is_open, work):
    """Disassemble: accelerations and far forces of the operands from those of `node`, which may be `upper`."""
    B, far = lower + f.NODE_FRONT, node + f.NODE_F
    a, F = load6(work, node + f.NODE_A), load6(work, far)
    for i in range(6):
        x = work[node + G_FREE + i] + dot6(load6(work, node + G + 6 * i), a)
        if is_open:
            x += dot6(load6(work, node + H + 6 * i), F)
        work[lower + f.NODE_A + i] = x
    force = load_six(work, B + f.FRONT_P) + combined(load6(work, lower + f.NODE_A), inertia_rows(work, B))
    if is_open:
        force = force - combined(F, load_rows(work, B + f.FRONT_Y, 6))
        store6(work, lower + f.NODE_F, F)
    store_columns(work, upper + f.NODE_F, force * -1.0)
    store6(work, upper + f.NODE_A, a)


@inner
def stay_open(front, work):
    """A closed node with the link it hangs from as its far link: Y = 1, beta = Theta = 0. So it is joined where others
    will hang from the same link."""
    for k in range(f.FRONT_CLOSED, f.FRONT_SIZE):
        work[front + k] = 0.0
    for i in range(6):
        work[front + f.FRONT_Y + 7 * i] = 1.0


@inner
def add_nodes(node, one, other, is_open, work):
    """Two nodes that hang from the same link; if `is_open`, the first carries others."""
    for k in range(f.FRONT_CLOSED):
        work[node + f.NODE_FRONT + k] = work[one + f.NODE_FRONT + k] + work[other + f.NODE_FRONT + k]
    if is_open:
        for k in range(f.FRONT_CLOSED, f.FRONT_SIZE):
            work[node + f.NODE_FRONT + k] = work[one + f.NODE_FRONT + k]
