"""Units of a contact problem, in which Theta has a diagonal of about 1, and forces and velocities are equally large."""

import numpy as np

from bunraku.contact.problem_memory import BEST, BIAS, FORCE, FRICTION, SCALE, contact_at, vector_at
from bunraku.contact.spans import largest, multiply_at
from bunraku.jit import inner
from bunraku.spatial.scalar import load, store
from bunraku.tolerances import NEGLIGIBLE


@inner
def scale_problem(count, theta, b, mu, force, work):
    """Divide forces, multiply velocities by SCALE: the diagonal becomes 1, its tangential entries on the average."""
    n = 3 * count
    scale, bias, forces = vector_at(count, SCALE), vector_at(count, BIAS), vector_at(count, FORCE)
    store(work, contact_at(count, count), 1.0)
    largest = 0.0
    for i in range(n):
        largest = max(largest, load(theta, i * n + i))
    floor = NEGLIGIBLE * largest if largest > 0.0 else 1.0
    for k in range(count):
        i = 3 * k
        normal = load(theta, i * n + i)
        tangential = 0.5 * (load(theta, (i + 1) * n + i + 1) + load(theta, (i + 2) * n + i + 2))
        along = 1.0 / np.sqrt(max(normal, floor))
        across = 1.0 / np.sqrt(max(tangential, floor))
        store(work, scale + i, along)
        store(work, scale + i + 1, across)
        store(work, scale + i + 2, across)
        store(work, contact_at(count, k) + FRICTION, mu[k] * along / across)
    for i in range(n):
        s = load(work, scale + i)
        store(work, bias + i, load(b, i) * s)
        store(work, forces + i, load(force, i) / s)
        for j in range(n):
            store(work, i * n + j, load(theta, i * n + j) * s * load(work, scale + j))


@inner
def rescale(count, factor, work):
    """Divide forces, multiply velocities by a factor."""
    if factor == 1.0:
        return
    n = 3 * count
    at = contact_at(count, count)
    store(work, at, load(work, at) * factor)
    for i in range(n * n):
        store(work, i, load(work, i) * factor * factor)
    for i in range(n):
        multiply_at(vector_at(count, BIAS) + i, factor, work)
        multiply_at(vector_at(count, SCALE) + i, factor, work)
        multiply_at(vector_at(count, FORCE) + i, 1.0 / factor, work)
        multiply_at(vector_at(count, BEST) + i, 1.0 / factor, work)


@inner
def balance(count, work):
    """The power of 2 for `rescale` that makes forces and BIAS about equally large."""
    f = largest(3 * count, vector_at(count, FORCE), work)
    b = largest(3 * count, vector_at(count, BIAS), work)
    factor = 1.0
    if f > 0.0 and b > 0.0 and f < np.inf:
        while f > 4.0 * b:
            factor *= 2.0
            b *= 4.0
        while b > 4.0 * f:
            factor *= 0.5
            f *= 4.0
    return factor
