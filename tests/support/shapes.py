"""Shapes of trees as lists of parents, parents first; -1 is the ground."""

import random

from hypothesis import strategies as st


def chain(n):
    return list(range(-1, n - 1))


def randomly(n, seed=1):
    rng = random.Random(seed)
    return [-1, *(rng.randrange(i) for i in range(1, n))]


def caterpillar(n):
    return [-1, *(i - 1 if i % 2 else max(i - 2, 0) for i in range(1, n))]


def binary(n):
    return [(i + 1) // 2 - 1 for i in range(n)]


def broom(n):
    return [-1, *(i - 1 if i < n // 2 else n // 2 - 1 for i in range(1, n))]


def branching(n, seed=2):
    rng = random.Random(seed)
    return [-1, *(i - 1 if rng.random() < 0.9 else rng.randrange(max(0, i - 1000), i) for i in range(1, n))]


def star(n):
    return [-1] + [0] * (n - 1)


def roots(n):
    return [-1] * n


def mobile(s=3, l=5, o=9):
    """The tree of `bk.models.mobile`."""
    parents = []
    ends = [-1]
    for _ in range(s):
        below = []
        for end in ends:
            for _ in range(l):
                parents.append(end)
                end = len(parents) - 1
            below += [end] * o
        ends = below
    return parents


SHAPES = {f.__name__: f for f in (chain, randomly, caterpillar, binary, broom, branching, star, roots)}


@st.composite
def forests(draw, most=40):
    """Any forest; how far up a parent may be decides between chains and bushes."""
    n = draw(st.integers(1, most))
    reach = draw(st.integers(1, n))
    return [draw(st.integers(max(-1, i - reach), i - 1)) for i in range(n)]


def children(parents):
    out = [[] for _ in parents]
    for i, p in enumerate(parents):
        if p >= 0:
            out[p].append(i)
    return out
