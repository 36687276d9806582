"""Indeterminate contact forces and their minimum-norm choice.

Of all forces that make the same motion, Theta f = Theta f0, and obey the same law (open contacts: none; sliding ones:
along their friction, pushing; sticking ones: in the cone), those of least norm are unique. Let x be the forces that the
law leaves free, three of a sticking contact, one along the unit vector (1, mu e) of a sliding one, f = B x, and
B^T Theta B = G G^T, where G has r columns (Cholesky factorisation with pivoting). Then x = P(G y), P the projection to
cones and positive numbers and y a minimum of the convex function

    1/2 |P(G y)|^2 - c . y,    c = G^T x0

whose gradient G^T P(G y) - c vanishes there. Newton's method with a line search; the generalised Hessian G^T P' G,
made positive definite, has r rows only.
"""

import numpy as np

from bunraku.contact.contact_fields import SLIDING, STICKING
from bunraku.contact.coulomb_law import to_cone
from bunraku.contact.least_norm import cholesky_solve
from bunraku.contact.spans import add, dot
from bunraku.jit import inline, inner
from bunraku.spatial.scalar import load, store

CONVERGED = 1e-13   # gradient, part of |c|
SMALL = 1e-12       # pivots below this part of their diagonal entry are zero
FIRM = 1e-10        # added to the diagonal of the Hessian, part of that of G^T G
DECREASE = 1e-4     # part of the slope by which a step has to decrease the function
ROUNDING = 1e-14    # changes of the function below this part of it
SAME = 1e-11        # part of the size of the problem by which velocities may change
ITERATIONS = 40
HALVINGS = 30

# Vectors in `work`, after two matrices: axes of friction, free forces, G y, and r numbers each of the rest
AXES, FREE, IMAGE, LEFT, SIDE, GRADIENT, STEP, HERE, TRIED = range(9)


@inline
def place(count, which):
    return 18 * count * count + 3 * count * which


@inner
def smallest_forces(count, theta, mu, force, mode, u, work):
    """Replace `force`, 3 K, by the minimum-norm ones with the same velocities `u` and modes; returns success.

    They stay as they are if they are unique, or if the iteration does not converge. Sliding contacts keep the direction
    of their friction force; without one it is against `u`. work: 18 K^2 + 27 K scalars, less than `problem_size(K)`.
    """
    size = find_axes(count, mu, force, mode, u, work)
    factor, matrix = 0, 9 * count * count
    reduce_theta(count, size, theta, mode, matrix, work)
    rank = factorise(size, matrix, factor, place(count, LEFT), work)
    if rank == size:
        return True
    free, side, gradient = place(count, FREE), place(count, SIDE), place(count, GRADIENT)
    step, here, tried = place(count, STEP), place(count, HERE), place(count, TRIED)
    # begin with the smallest forces of the whole space
    for j in range(rank):
        column = factor + size * j
        store(work, side + j, dot(size, column, free, work))
        store(work, here + j, load(work, side + j))
        for i in range(j + 1):
            store(work, matrix + rank * j + i, dot(size, factor + size * i, column, work))
    cholesky_solve(rank, matrix, here, work)
    enough = CONVERGED * np.sqrt(dot(rank, side, side, work))
    value = evaluate(count, size, rank, mu, mode, here, work)
    for _ in range(ITERATIONS):
        if not np.sqrt(dot(rank, gradient, gradient, work)) > enough:
            return take_forces(count, theta, mu, mode, force, work)
        find_curvature(count, size, rank, mu, mode, matrix, work)
        for j in range(rank):
            store(work, step + j, -load(work, gradient + j))
        cholesky_solve(rank, matrix, step, work)
        slope = dot(rank, step, gradient, work)
        part, decreases = 1.0, False
        for _ in range(HALVINGS):
            for j in range(rank):
                store(work, tried + j, load(work, here + j) + part * load(work, step + j))
            new = evaluate(count, size, rank, mu, mode, tried, work)
            if new <= value + DECREASE * part * slope or abs(part * slope) < ROUNDING * abs(value):
                decreases = True
                value = new
                break
            part *= 0.5
        if not decreases:
            return False
        for j in range(rank):
            store(work, here + j, load(work, tried + j))
    return False


@inner
def find_axes(count, mu, force, mode, u, work):
    """AXES of sliding contacts and FREE forces; the number of these."""
    size, axes, free = 0, place(count, AXES), place(count, FREE)
    for k in range(count):
        i = 3 * k
        f_n, f_1, f_2 = load(force, i), load(force, i + 1), load(force, i + 2)
        if mode[k] == STICKING:
            store(work, free + size, f_n)
            store(work, free + size + 1, f_1)
            store(work, free + size + 2, f_2)
            size += 3
        elif mode[k] == SLIDING:
            e_1, e_2 = f_1, f_2
            length = np.sqrt(e_1 * e_1 + e_2 * e_2)
            if not length > 0.0:
                e_1, e_2 = -load(u, i + 1), -load(u, i + 2)
                length = np.sqrt(e_1 * e_1 + e_2 * e_2)
            ratio = mu[k] / length if length > 0.0 else 0.0
            e_1, e_2 = ratio * e_1, ratio * e_2
            length = np.sqrt(1.0 + e_1 * e_1 + e_2 * e_2)
            store(work, axes + i, 1.0 / length)
            store(work, axes + i + 1, e_1 / length)
            store(work, axes + i + 2, e_2 / length)
            store(work, free + size, f_n * length)
            size += 1
    return size


@inner
def reduce_theta(count, size, theta, mode, matrix, work):
    """B^T Theta B."""
    n, column, axes = 3 * count, place(count, IMAGE), place(count, AXES)
    at = 0
    for k in range(count):
        i = 3 * k
        if mode[k] == STICKING:
            for j in range(3):
                for row in range(n):
                    store(work, column + row, load(theta, (i + j) * n + row))
                reduce_column(count, column, matrix + size * at, mode, work)
                at += 1
        elif mode[k] == SLIDING:
            a_n, a_1, a_2 = load(work, axes + i), load(work, axes + i + 1), load(work, axes + i + 2)
            for row in range(n):
                store(work, column + row, a_n * load(theta, i * n + row) + a_1 * load(theta, (i + 1) * n + row)
                      + a_2 * load(theta, (i + 2) * n + row))
            reduce_column(count, column, matrix + size * at, mode, work)
            at += 1


@inner
def reduce_column(count, source, target, mode, work):
    """B^T times a column."""
    at = target
    for k in range(count):
        i = source + 3 * k
        if mode[k] == STICKING:
            store(work, at, load(work, i))
            store(work, at + 1, load(work, i + 1))
            store(work, at + 2, load(work, i + 2))
            at += 3
        elif mode[k] == SLIDING:
            store(work, at, dot(3, place(count, AXES) + 3 * k, i, work))
            at += 1


@inner
def factorise(n, matrix, factor, left, work):
    """Columns of G with G G^T = matrix, the largest pivot next; their number."""
    for i in range(n):
        store(work, left + i, load(work, matrix + n * i + i))
    for k in range(n):
        pivot, most = -1, SMALL
        for i in range(n):
            whole = load(work, matrix + n * i + i)
            if load(work, left + i) > most * whole:
                pivot, most = i, load(work, left + i) / whole
        if pivot < 0:
            return k
        column = factor + n * k
        for i in range(n):
            store(work, column + i, load(work, matrix + n * pivot + i))
        for j in range(k):
            add(n, -load(work, factor + n * j + pivot), factor + n * j, column, work)
        root = np.sqrt(load(work, column + pivot))
        for i in range(n):
            x = load(work, column + i) / root
            store(work, column + i, x)
            store(work, left + i, load(work, left + i) - x * x)
        store(work, left + pivot, 0.0)
    return n


@inner
def evaluate(count, size, rank, mu, mode, y, work):
    """The convex function at y; its GRADIENT; IMAGE = G y."""
    image, side, gradient, left = place(count, IMAGE), place(count, SIDE), place(count, GRADIENT), place(count, LEFT)
    for i in range(size):
        store(work, image + i, 0.0)
    for j in range(rank):
        add(size, load(work, y + j), size * j, image, work)
    at = 0
    for k in range(count):
        if mode[k] == STICKING:
            f_n, f_1, f_2, _ = to_cone(load(work, image + at), load(work, image + at + 1), load(work, image + at + 2),
                                       mu[k])
            store(work, left + at, f_n)
            store(work, left + at + 1, f_1)
            store(work, left + at + 2, f_2)
            at += 3
        elif mode[k] == SLIDING:
            store(work, left + at, max(0.0, load(work, image + at)))
            at += 1
    for j in range(rank):
        store(work, gradient + j, dot(size, size * j, left, work) - load(work, side + j))
    return 0.5 * dot(size, left, left, work) - dot(rank, side, y, work)


@inner
def find_curvature(count, size, rank, mu, mode, matrix, work):
    """G^T P' G at IMAGE, and a little more on its diagonal."""
    image, column = place(count, IMAGE), place(count, TRIED)
    for j in range(rank):
        own = size * j
        at = 0
        for k in range(count):
            if mode[k] == STICKING:
                x_n, x_1, x_2 = derivative(
                    load(work, image + at), load(work, image + at + 1), load(work, image + at + 2), mu[k],
                    load(work, own + at), load(work, own + at + 1), load(work, own + at + 2))
                store(work, column + at, x_n)
                store(work, column + at + 1, x_1)
                store(work, column + at + 2, x_2)
                at += 3
            elif mode[k] == SLIDING:
                store(work, column + at, load(work, own + at) if load(work, image + at) > 0.0 else 0.0)
                at += 1
        for i in range(j + 1):
            store(work, matrix + rank * j + i, dot(size, size * i, column, work))
        at = matrix + rank * j + j
        store(work, at, load(work, at) + FIRM * dot(size, own, own, work))


@inline
def derivative(z_n, z_1, z_2, mu, x_n, x_1, x_2):
    """Derivative of the projection to the cone at z, times x."""
    f_n, _, _, where = to_cone(z_n, z_1, z_2, mu)
    if where > 0:
        return x_n, x_1, x_2
    if where < 0:
        return 0.0, 0.0, 0.0
    length = np.sqrt(z_1 * z_1 + z_2 * z_2)
    e_1, e_2 = z_1 / length, z_2 / length
    along = (x_n + mu * (e_1 * x_1 + e_2 * x_2)) / (1.0 + mu * mu)
    across = (e_1 * x_2 - e_2 * x_1) * mu * f_n / length
    return along, mu * along * e_1 - across * e_2, mu * along * e_2 + across * e_1


@inner
def take_forces(count, theta, mu, mode, force, work):
    """`force` = B P(IMAGE), unless that changes the motion; returns whether it was set."""
    n, image, axes, change = 3 * count, place(count, IMAGE), place(count, AXES), place(count, TRIED)
    at, size = 0, 0.0
    for k in range(count):
        i = 3 * k
        f_n, f_1, f_2 = 0.0, 0.0, 0.0
        if mode[k] == STICKING:
            f_n, f_1, f_2, _ = to_cone(load(work, image + at), load(work, image + at + 1), load(work, image + at + 2),
                                       mu[k])
            at += 3
        elif mode[k] == SLIDING:
            x = max(0.0, load(work, image + at))
            f_n, f_1, f_2 = x * load(work, axes + i), x * load(work, axes + i + 1), x * load(work, axes + i + 2)
            at += 1
        store(work, change + i, f_n - load(force, i))
        store(work, change + i + 1, f_1 - load(force, i + 1))
        store(work, change + i + 2, f_2 - load(force, i + 2))
        for j in range(i, i + 3):
            size = max(size, load(theta, j * n + j) * abs(load(force, j)))
    for i in range(n):
        moved = 0.0
        for j in range(n):
            moved += load(theta, i * n + j) * load(work, change + j)
        if not abs(moved) <= SAME * size:
            return False
    for i in range(n):
        store(force, i, load(force, i) + load(work, change + i))
    return True
