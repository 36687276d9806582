"""What the user knows of the Jacobian of an equation, in SciPy's words, for methods with Newton iterations.

A function or a constant matrix replaces differences. A pattern, given by a sparse matrix or by the widths of a band,
saves evaluations: columns that share no row are varied together, in as few groups as a greedy colouring finds [Curtis,
Powell, Reid 1974]. Factors are those of a full matrix, which leave out what stays zero in a band.
"""

from __future__ import annotations

import warnings

import numpy as np
from numba import carray, njit

from bunraku.checks import as_array
from bunraku.compiler.numba_inside import Dispatcher
from bunraku.errors import ModelError, ShapeError, SimulationWarning
from bunraku.integrate.callbacks import CompiledFunction, PlainFunction
from bunraku.integrate.methods import METHODS
from bunraku.integrate.solver_memory import Memory


class KnownJacobian:
    """Of n equations: a function, or groups of columns and a pattern, or nothing."""

    def __init__(self, method, n, args, jac, jac_sparsity, lband, uband):
        self.function: PlainFunction | CompiledFunction | None = None
        self.group: np.ndarray | None = None
        given = [name for name, value in (("jac", jac), ("jac_sparsity", jac_sparsity), ("lband", lband),
                                          ("uband", uband)) if value is not None]
        if not given:
            return
        if not getattr(METHODS[method], "newton", False):
            warnings.warn(f"method {method!r} solves no linear equations, so it does not use {', '.join(given)}; "
                          "method 'bdf' does", SimulationWarning, stacklevel=4)
            return
        if jac is not None:
            self.function = _written(jac, args, n)
        else:
            self.pattern = _sparsity(jac_sparsity, n) if jac_sparsity is not None else _band(lband, uband, n)
            self.group = groups(self.pattern)

    def put_into(self, memory: Memory) -> Memory:
        """The memory of a solver, with what is known behind its pivots and matrices (`integrate/bdf.py`)."""
        n = len(memory.pivots)
        pivots = np.zeros(2 * n + 1, np.int64)
        if self.function is not None:
            pivots[n] = self.function.address
            return memory._replace(pivots=pivots[:n + 1])
        if self.group is not None:
            pivots[n + 1:] = self.group
            return memory._replace(pivots=pivots, matrix=np.vstack([memory.matrix, self.pattern.astype(float)]))
        return memory


def _dense(matrix, n, what="jac"):
    rows = as_array(what, matrix.toarray() if hasattr(matrix, "toarray") else matrix)
    if rows.shape != (n, n):
        raise ShapeError(f"{what} must be of shape ({n}, {n}), row i for component i of f, not {rows.shape}")
    return rows


def _written(jac, args, n) -> PlainFunction | CompiledFunction:
    """jac as a C function that writes its rows one behind the other."""
    if isinstance(jac, Dispatcher):
        given = njit(lambda t, y: jac(t, y, *args))

        def call(t, y, count, v, zero, params, none, out, size):
            try:
                answer, rows = given(t, carray(y, count)), carray(out, size)
                if answer.shape[0] != count or answer.shape[1] != count:
                    return 1
                for i in range(count):
                    for j in range(count):
                        rows[i * count + j] = answer[i, j]
            except Exception:
                return 1
            return 0
        return CompiledFunction(call)
    if not callable(jac):
        constant = _dense(jac, n).ravel()

        def repeat(t, y, nothing, out):
            out[:] = constant
        return PlainFunction(repeat)

    def fill(t, y, nothing, out):
        out[:] = _dense(jac(t, y, *args), n, "what jac(t, y) returns").ravel()
    return PlainFunction(fill)


def _sparsity(given, n) -> np.ndarray:
    return _dense(given, n, "jac_sparsity") != 0.0


def _band(lower, upper, n) -> np.ndarray:
    widths = [0 if width is None else width for width in (lower, upper)]
    if any(isinstance(width, bool) or not isinstance(width, (int, np.integer)) or width < 0 for width in widths):
        raise ModelError(f"lband and uband are whole numbers of diagonals below and above, not {lower!r} and {upper!r}")
    below = np.subtract.outer(np.arange(n), np.arange(n))
    return (below <= widths[0]) & (-below <= widths[1])


def groups(pattern: np.ndarray) -> np.ndarray:
    """The group of each column: columns of a group have no row in common."""
    group, taken = np.zeros(pattern.shape[1], np.int64), list[np.ndarray]()
    for j, rows in enumerate(pattern.T):
        free = next((k for k, used in enumerate(taken) if not (used & rows).any()), len(taken))
        if free == len(taken):
            taken.append(np.zeros(len(rows), bool))
        taken[free] |= rows
        group[j] = free
    return group
