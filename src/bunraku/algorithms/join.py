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
2900 multiplications. Floats only: joins are few.
"""

from bunraku.jit import inline, inner
from bunraku.plan import fields as f

G, G_FREE, H = f.NODE_KEPT, f.NODE_KEPT + 36, f.NODE_KEPT + 42
SCRATCH = 186
"""Floats of scratch memory that a join needs."""


@inline
def unpack_inertia(work, front, to):
    """The 6 x 6 matrix [A B; B^T C] of 21 numbers."""
    A, B, C = front, front + 6, front + 15
    k = 0
    for i in range(3):
        for j in range(i, 3):
            work[to + 6 * i + j] = work[to + 6 * j + i] = work[A + k]
            work[to + 6 * (3 + i) + 3 + j] = work[to + 6 * (3 + j) + 3 + i] = work[C + k]
            k += 1
        for j in range(3):
            work[to + 6 * i + 3 + j] = work[to + 6 * (3 + j) + i] = work[B + 3 * i + j]


@inline
def unpack_theta(work, theta, to):
    k = 0
    for i in range(6):
        for j in range(i + 1):
            work[to + 6 * i + j] = work[to + 6 * j + i] = work[theta + k]
            k += 1


@inline
def product(work, left, right, to):
    """6 x 6 matrices by rows: to = left right."""
    for i in range(6):
        x0, x1, x2, x3, x4, x5 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(6):
            z, o = work[left + 6 * i + k], right + 6 * k
            x0, x1, x2 = x0 + z * work[o], x1 + z * work[o + 1], x2 + z * work[o + 2]
            x3, x4, x5 = x3 + z * work[o + 3], x4 + z * work[o + 4], x5 + z * work[o + 5]
        o = to + 6 * i
        work[o], work[o + 1], work[o + 2] = x0, x1, x2
        work[o + 3], work[o + 4], work[o + 5] = x3, x4, x5


@inline
def dot6(work, a, b):
    return (work[a] * work[b] + work[a + 1] * work[b + 1] + work[a + 2] * work[b + 2]
            + work[a + 3] * work[b + 3] + work[a + 4] * work[b + 4] + work[a + 5] * work[b + 5])


@inner
def solve_rows(work, matrix, rows, width):
    """Gaussian elimination with row exchanges: `rows` (6 x width, by rows) becomes matrix^-1 rows."""
    for k in range(6):
        best, pivot = k, abs(work[matrix + 7 * k])
        for i in range(k + 1, 6):
            x = abs(work[matrix + 6 * i + k])
            if x > pivot:
                best, pivot = i, x
        if best != k:
            for j in range(k, 6):
                o, t = matrix + 6 * k + j, matrix + 6 * best + j
                work[o], work[t] = work[t], work[o]
            for j in range(width):
                o, t = rows + width * k + j, rows + width * best + j
                work[o], work[t] = work[t], work[o]
        r = 1.0 / work[matrix + 7 * k]
        work[matrix + 7 * k] = r
        for i in range(k + 1, 6):
            z = work[matrix + 6 * i + k] * r
            for j in range(k + 1, 6):
                work[matrix + 6 * i + j] -= z * work[matrix + 6 * k + j]
            for j in range(width):
                work[rows + width * i + j] -= z * work[rows + width * k + j]
    for back in range(6):
        k = 5 - back
        r = work[matrix + 7 * k]
        for j in range(width):
            work[rows + width * k + j] *= r
        for i in range(k):
            z = work[matrix + 6 * i + k]
            for j in range(width):
                work[rows + width * i + j] -= z * work[rows + width * k + j]


@inner
def join(node, upper, lower, is_open, work, scratch):
    """Assemble: the front of `node` from those of its operands; G, g and H are kept. `scratch`: a place of SCRATCH."""
    A, B, C = upper + f.NODE_FRONT, lower + f.NODE_FRONT, node + f.NODE_FRONT
    inertia, theta, matrix, rows = scratch, scratch + 36, scratch + 72, scratch + 108
    Y_A, Y_B, p_B = A + f.FRONT_Y, B + f.FRONT_Y, B + f.FRONT_P
    unpack_inertia(work, B, inertia)
    unpack_theta(work, A + f.FRONT_THETA, theta)
    product(work, theta, inertia, matrix)
    width = 13 if is_open else 7
    for i in range(6):
        work[matrix + 7 * i] += 1.0
        for j in range(6):
            work[rows + width * i + j] = work[Y_A + 6 * i + j]
        work[rows + width * i + 6] = work[A + f.FRONT_BETA + i] - dot6(work, theta + 6 * i, p_B)
        if is_open:
            for j in range(6):
                work[rows + width * i + 7 + j] = dot6(work, theta + 6 * i, Y_B + 6 * j)
    solve_rows(work, matrix, rows, width)
    for i in range(6):
        for j in range(6):
            work[node + G + 6 * i + j] = work[rows + width * i + j]
            if is_open:
                work[node + H + 6 * i + j] = work[rows + width * i + 7 + j]
        work[node + G_FREE + i] = work[rows + width * i + 6]
    # I and p
    product(work, inertia, node + G, matrix)
    for i in range(6):
        work[rows + i] = work[p_B + i] + dot6(work, inertia + 6 * i, node + G_FREE)
    for i in range(6):
        x = 0.0
        for k in range(6):
            x += work[Y_A + 6 * k + i] * work[rows + k]
        work[C + f.FRONT_P + i] = work[A + f.FRONT_P + i] + x
    add_inertia(work, A, Y_A, matrix, C)
    if is_open:
        product(work, inertia, node + H, matrix)  # Y_B - I_B H, whose columns are those of F
        for j in range(6):
            for i in range(6):
                work[rows + i] = work[Y_B + 6 * j + i] - work[matrix + 6 * i + j]
            for i in range(6):
                x = 0.0
                for k in range(6):
                    x += work[Y_A + 6 * k + i] * work[rows + k]
                work[C + f.FRONT_Y + 6 * j + i] = x
            work[C + f.FRONT_BETA + j] = work[B + f.FRONT_BETA + j] + dot6(work, Y_B + 6 * j, node + G_FREE)
        o = 0
        for i in range(6):
            for j in range(i + 1):
                x = 0.0
                for k in range(6):
                    x += work[Y_B + 6 * i + k] * work[node + H + 6 * k + j]
                work[C + f.FRONT_THETA + o] = work[B + f.FRONT_THETA + o] + x
                o += 1


@inline
def add_inertia(work, A, Y, matrix, to):
    """I = I_A + Y M, of which only the parts that are stored: A 6, B 9, C 6."""
    o = 0
    for i in range(3):
        for j in range(i, 3):
            x, y = 0.0, 0.0
            for k in range(6):
                x += work[Y + 6 * k + i] * work[matrix + 6 * k + j]
                y += work[Y + 6 * k + 3 + i] * work[matrix + 6 * k + 3 + j]
            work[to + o] = work[A + o] + x
            work[to + 15 + o] = work[A + 15 + o] + y
            o += 1
        for j in range(3):
            x = 0.0
            for k in range(6):
                x += work[Y + 6 * k + i] * work[matrix + 6 * k + 3 + j]
            work[to + 6 + 3 * i + j] = work[A + 6 + 3 * i + j] + x


@inner
def split(node, upper, lower, is_open, work, scratch):
    """Disassemble: accelerations and far forces of the operands from those of `node`."""
    B, a, far = lower + f.NODE_FRONT, node + f.NODE_A, node + f.NODE_F
    unpack_inertia(work, B, scratch)
    for i in range(6):
        x = work[node + G_FREE + i] + dot6(work, node + G + 6 * i, a)
        if is_open:
            x += dot6(work, node + H + 6 * i, far)
        work[lower + f.NODE_A + i] = x
    for i in range(6):
        x = work[B + f.FRONT_P + i] + dot6(work, scratch + 6 * i, lower + f.NODE_A)
        if is_open:
            for k in range(6):
                x -= work[B + f.FRONT_Y + 6 * k + i] * work[far + k]
            work[lower + f.NODE_F + i] = work[far + i]
        work[upper + f.NODE_F + i] = -x
        work[upper + f.NODE_A + i] = work[a + i]


@inner
def stay_open(node, work):
    """A node that carries nothing, as one whose far link is the link above: Y = 1, beta = Theta = 0. Joined to another,
    it leaves the other's far link open for those that hang there too."""
    front = node + f.NODE_FRONT
    for k in range(f.FRONT_CLOSED, f.FRONT_SIZE):
        work[front + k] = 0.0
    for k in range(6):
        work[front + f.FRONT_Y + 7 * k] = 1.0


@inner
def add_nodes(node, one, other, is_open, work):
    """Two nodes that hang from the same link; if `is_open`, the first carries others."""
    for k in range(f.FRONT_CLOSED):
        work[node + f.NODE_FRONT + k] = work[one + f.NODE_FRONT + k] + work[other + f.NODE_FRONT + k]
    if is_open:
        for k in range(f.FRONT_CLOSED, f.FRONT_SIZE):
            work[node + f.NODE_FRONT + k] = work[one + f.NODE_FRONT + k]
