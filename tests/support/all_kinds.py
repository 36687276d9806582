"""Kernels with an argument of every kind. Their machine code is made anew in every process: no cache watches this file.
"""

import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import types

from bunraku import jit

floats, table, integers = types.float64[::1], types.float64[:, ::1], types.int32[:, ::1]


class Inner(NamedTuple):
    marks: np.ndarray  # bool
    weight: float
    depth: int


class Tree(NamedTuple):
    coordinates: np.ndarray  # two dimensions
    inner: Inner
    size: int


INNER = types.NamedTuple([types.boolean[::1], types.float64, types.int64], Inner)
TREE = types.NamedTuple([table, INNER, types.int64], Tree)
KINDS = (floats, integers, types.int64, types.float64, types.boolean, jit.Held(TREE))


def example(**changed) -> tuple:
    """Arguments, some of them changed."""
    tree = Tree(np.arange(4.0).reshape(2, 2), Inner(np.array([True, False]), 2.5, 3), 4)
    return tuple(({"numbers": np.array([1.0, 2.0, 3.0]), "table": np.arange(6, dtype=np.int32).reshape(2, 3),
                   "count": 7, "factor": 0.5, "negate": False, "tree": tree} | changed).values())


def total(numbers, table, count, factor, negate, tree):
    """A sum in which every number of the arguments counts."""
    out = 0.0
    for k in range(len(numbers)):
        out += (k + 1) * numbers[k]
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            out += (row + 2 * column + 1) * table[row, column]
    for row in range(tree.coordinates.shape[0]):
        for column in range(tree.coordinates.shape[1]):
            out += (3 * row + column + 1) * tree.coordinates[row, column]
    for k in range(len(tree.inner.marks)):
        if tree.inner.marks[k]:
            out += (k + 1) * tree.inner.weight
    out = factor * out + count + 10 * tree.inner.depth + 100 * tree.size
    return -out if negate else out


def shape(numbers, table, count, factor, negate, tree):
    return count + 10 * table.shape[0] + 100 * tree.coordinates.shape[1]


def fill(numbers, table, count, factor, negate, tree):
    for k in range(len(numbers)):
        numbers[k] = factor


def iterate(numbers, table, count, factor, negate, tree):
    """`count` steps of Newton's method for the root of 2."""
    for _ in range(count):
        factor = 0.5 * (factor + 2.0 / factor)
    return factor


def give_up(numbers, table, count, factor, negate, tree):
    if count > 0:
        raise ValueError
    return 0.0


def compiled(function, result=types.float64, **options):
    """The function as Python calls an entry."""
    entry = jit.Entry(function, function.__name__, result(*KINDS), **options)
    with tempfile.TemporaryDirectory() as folder:
        entry.path = lambda _=None: Path(folder) / "code"
        return entry.load().call
