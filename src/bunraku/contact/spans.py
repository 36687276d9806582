"""Vectors as spans of one array of scalars: n scalars from a place on."""

from bunraku.jit import inline, inner
from bunraku.spatial.scalar import load, store


@inner
def dot(n, a, b, work):
    """Sum of products of two spans."""
    total = 0.0
    for i in range(n):
        total += load(work, a + i) * load(work, b + i)
    return total


@inner
def add(n, factor, a, b, work):
    """Add a multiple of the span a to the span b."""
    for i in range(n):
        store(work, b + i, load(work, b + i) + factor * load(work, a + i))


@inner
def clear(n, a, work):
    for i in range(n):
        store(work, a + i, 0.0)


@inner
def copy(n, a, b, work):
    for i in range(n):
        store(work, b + i, load(work, a + i))


@inner
def largest(n, a, work):
    most = 0.0
    for i in range(n):
        most = max(most, abs(load(work, a + i)))
    return most


@inline
def multiply_at(i, factor, work):
    store(work, i, load(work, i) * factor)
