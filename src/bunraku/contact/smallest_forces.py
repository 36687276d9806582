"""The smallest forces of redundant contacts.

Of all forces that make the same motion, Theta f = Theta f0, and obey the same law (open contacts: none; sliding ones:
along their friction, pushing; sticking ones: in the cone), those of least norm are unique. With Theta = G G^T, where G
has r columns (Cholesky factorisation with pivoting), they are f = P(G y), P the projection to the rays and cones and y
a minimum of the convex function

    1/2 |P(G y)|^2 - c . y,    c = G^T f0

whose gradient G^T P(G y) - c vanishes there. Newton's method with a line search; the generalised Hessian G^T P' G,
made positive definite, has r rows only.
"""

import numpy as np

from bunraku.contact.fields import SLIDING, STICKING
from bunraku.contact.least_norm import add, cholesky_solve, dot
from bunraku.jit import inline, inner
from bunraku.spatial.scalar import load, store

CONVERGED = 1e-13   # gradient, part of |c|
SMALL = 1e-12       # pivots of Theta below this part of their diagonal are zero
ITERATIONS = 40
HALVINGS = 30


@inner
def smallest_forces(count, theta, mu, force, mode, u, work):
    """Replace `force`, 3 K, by the smallest with the same velocities `u` and modes; whether they were found.

    Forces stay as they are if they are unique, or if the iteration does not converge. Sliding contacts keep the
    direction of their friction force, without friction that against `u`. work: 2 n^2 + 8 n scalars with
    n = 3 K, less than `problem_size(K)`.
    """
    n = 3 * count
    factor, hessian, rest = 0, n * n, 2 * n * n
    axes, image, c, gradient, step, y, tried, left = (rest, rest + n, rest + 2 * n, rest + 3 * n, rest + 4 * n,
                                                      rest + 5 * n, rest + 6 * n, rest + 7 * n)
    unknowns = find_axes(count, mu, force, mode, u, axes, work)
    rank = factorise(n, theta, factor, left, work)
    if rank >= unknowns:
        return True
    for j in range(rank):
        store(work, c + j, 0.0)
        for i in range(n):
            store(work, c + j, load(work, c + j) + load(work, factor + n * j + i) * load(force, i))
    size = np.sqrt(dot(rank, c, c, work))
    # begin with the smallest forces of the whole space, G y
    for j in range(rank):
        for i in range(j + 1):
            store(work, hessian + rank * j + i, dot(n, factor + n * i, factor + n * j, work))
        store(work, y + j, load(work, c + j))
    cholesky_solve(rank, hessian, y, work)
    value = evaluate(count, rank, mu, mode, factor, axes, c, y, image, gradient, work)
    for _ in range(ITERATIONS):
        length = np.sqrt(dot(rank, gradient, gradient, work))
        if not length > CONVERGED * size:
            for k in range(count):
                f_n, f_1, f_2 = allowed(k, mu, mode, axes, image, work)
                store(force, 3 * k, f_n)
                store(force, 3 * k + 1, f_1)
                store(force, 3 * k + 2, f_2)
            return True
        curve(count, rank, mu, mode, factor, axes, image, hessian, tried, work)
        for j in range(rank):
            store(work, step + j, -load(work, gradient + j))
        cholesky_solve(rank, hessian, step, work)
        slope = dot(rank, step, gradient, work)
        if not slope < 0.0:
            return False
        part, found = 1.0, False
        for _ in range(HALVINGS):
            for j in range(rank):
                store(work, tried + j, load(work, y + j) + part * load(work, step + j))
            new = evaluate(count, rank, mu, mode, factor, axes, c, tried, image, gradient, work)
            if new <= value + 1e-4 * part * slope or abs(part * slope) < 1e-14 * abs(value):
                found = True
                break
            part *= 0.5
        if not found:
            return False
        value = new
        for j in range(rank):
            store(work, y + j, load(work, tried + j))
    return False


@inner
def find_axes(count, mu, force, mode, u, axes, work):
    """Directions of friction of sliding contacts, and the number of forces that the law leaves free."""
    unknowns = 0
    for k in range(count):
        i = 3 * k
        e_1, e_2 = 0.0, 0.0
        if mode[k] == STICKING:
            unknowns += 3
        elif mode[k] == SLIDING:
            unknowns += 1
            e_1, e_2 = load(force, i + 1), load(force, i + 2)
            length = np.sqrt(e_1 * e_1 + e_2 * e_2)
            if not length > 0.0:
                e_1, e_2 = -load(u, i + 1), -load(u, i + 2)
                length = np.sqrt(e_1 * e_1 + e_2 * e_2)
            if length > 0.0:
                e_1, e_2 = e_1 / length, e_2 / length
        store(work, axes + i, 1.0)
        store(work, axes + i + 1, mu[k] * e_1)
        store(work, axes + i + 2, mu[k] * e_2)
    return unknowns


@inner
def factorise(n, theta, factor, left, work):
    """Columns of G with Theta = G G^T; their number."""
    for i in range(n):
        store(work, left + i, load(theta, i * n + i))
    for k in range(n):
        pivot, most = -1, SMALL
        for i in range(n):
            part = load(work, left + i) / load(theta, i * n + i) if load(theta, i * n + i) > 0.0 else 0.0
            if part > most:
                pivot, most = i, part
        if pivot < 0:
            return k
        column = factor + n * k
        for i in range(n):
            store(work, column + i, load(theta, pivot * n + i))
        for j in range(k):
            add(n, -load(work, factor + n * j + pivot), factor + n * j, column, work)
        root = np.sqrt(load(work, column + pivot))
        for i in range(n):
            x = load(work, column + i) / root if load(work, left + i) > 0.0 else 0.0
            store(work, column + i, x)
            store(work, left + i, load(work, left + i) - x * x)
        store(work, left + pivot, 0.0)
    return n


@inline
def to_cone(z_n, z_1, z_2, mu):
    """Projection to the friction cone; whether inside (1), on the surface (0) or at the tip (-1)."""
    length = np.sqrt(z_1 * z_1 + z_2 * z_2)
    if length <= mu * z_n:
        return z_n, z_1, z_2, 1
    along = (z_n + mu * length) / (1.0 + mu * mu)
    if not along > 0.0:
        return 0.0, 0.0, 0.0, -1
    return along, mu * along * z_1 / length, mu * along * z_2 / length, 0


@inner
def evaluate(count, rank, mu, mode, factor, axes, c, y, image, gradient, work):
    """The convex function at y; its gradient; G y in `image`."""
    n = 3 * count
    for i in range(n):
        store(work, image + i, 0.0)
    for j in range(rank):
        add(n, load(work, y + j), factor + n * j, image, work)
        store(work, gradient + j, -load(work, c + j))
    value = -dot(rank, c, y, work)
    for k in range(count):
        f_n, f_1, f_2 = allowed(k, mu, mode, axes, image, work)
        value += 0.5 * (f_n * f_n + f_1 * f_1 + f_2 * f_2)
        for j in range(rank):
            o = factor + n * j + 3 * k
            store(work, gradient + j, load(work, gradient + j) + f_n * load(work, o) + f_1 * load(work, o + 1)
                  + f_2 * load(work, o + 2))
    return value


@inline
def allowed(k, mu, mode, axes, image, work):
    """The force of a contact: projection of `image`."""
    i = 3 * k
    z_n, z_1, z_2 = load(work, image + i), load(work, image + i + 1), load(work, image + i + 2)
    if mode[k] == STICKING:
        f_n, f_1, f_2, _ = to_cone(z_n, z_1, z_2, mu[k])
        return f_n, f_1, f_2
    if mode[k] == SLIDING:
        a_1, a_2 = load(work, axes + i + 1), load(work, axes + i + 2)
        f_n = max(0.0, (z_n + a_1 * z_1 + a_2 * z_2) / (1.0 + a_1 * a_1 + a_2 * a_2))
        return f_n, a_1 * f_n, a_2 * f_n
    return 0.0, 0.0, 0.0


@inner
def curve(count, rank, mu, mode, factor, axes, image, hessian, column, work):
    """G^T P' G, and a little more on its diagonal."""
    n = 3 * count
    for j in range(rank):
        for i in range(n):
            store(work, column + i, load(work, factor + n * j + i))
        for k in range(count):
            turn(k, mu, mode, axes, image, column + 3 * k, work)
        for i in range(j + 1):
            store(work, hessian + rank * j + i, dot(n, factor + n * i, column, work))
        at = hessian + rank * j + j
        store(work, at, load(work, at) + 1e-10 * dot(n, factor + n * j, factor + n * j, work))


@inner
def turn(k, mu, mode, axes, image, at, work):
    """Three numbers of a column times the derivative of the projection."""
    x_n, x_1, x_2 = load(work, at), load(work, at + 1), load(work, at + 2)
    i = 3 * k
    if mode[k] == SLIDING:
        a_1, a_2 = load(work, axes + i + 1), load(work, axes + i + 2)
        x_n = (x_n + a_1 * x_1 + a_2 * x_2) / (1.0 + a_1 * a_1 + a_2 * a_2)
        f_n, _, _ = allowed(k, mu, mode, axes, image, work)
        x_n = x_n if f_n > 0.0 else 0.0
        x_1, x_2 = a_1 * x_n, a_2 * x_n
    elif mode[k] == STICKING:
        z_n, z_1, z_2 = load(work, image + i), load(work, image + i + 1), load(work, image + i + 2)
        f_n, _, _, where = to_cone(z_n, z_1, z_2, mu[k])
        if where < 0:
            x_n, x_1, x_2 = 0.0, 0.0, 0.0
        elif where == 0:  # along the surface, and around it
            length = np.sqrt(z_1 * z_1 + z_2 * z_2)
            e_1, e_2 = z_1 / length, z_2 / length
            across = (e_1 * x_2 - e_2 * x_1) * mu[k] * f_n / length
            x_n = (x_n + mu[k] * (e_1 * x_1 + e_2 * x_2)) / (1.0 + mu[k] * mu[k])
            x_1, x_2 = mu[k] * x_n * e_1 - across * e_2, mu[k] * x_n * e_2 + across * e_1
    else:
        x_n, x_1, x_2 = 0.0, 0.0, 0.0
    store(work, at, x_n)
    store(work, at + 1, x_1)
    store(work, at + 2, x_2)

