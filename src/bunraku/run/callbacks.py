"""Functions of (t, y) as C functions for compiled solvers: plain Python through a callback, compiled ones directly.

The C form is that of an actuation (`actuation.py`): y as q, nothing as v, the answer as tau.
"""

from __future__ import annotations

import inspect

import numpy as np
from numba import carray, cfunc, njit
from numba.core.dispatcher import Dispatcher

from bunraku.errors import ShapeError
from bunraku.run.actuation import (
    _PROTOTYPE,
    _SIGNATURE,
    Actuation,
    _address_of,
    _copy,
    _view,
    bounds_checked,
    options_of,
)


class PlainFunction:
    """A Python function called from compiled code. `fill(t, q, v, out)` writes the answer; what it raises is kept."""

    def __init__(self, fill):
        self.error: BaseException | None = None

        def call(t, q, nq, v, nv, params, count, out, size):
            try:
                fill(t, _copy(q, nq), _copy(v, nv), _view(out, size))
            except BaseException as error:  # handed over to whoever called the solver
                self.error = error
                return 1
            return 0

        self._kept = _PROTOTYPE(call)
        self.address = _address_of(self._kept)


class CompiledFunction:
    """A function compiled by Numba, called without Python in between."""

    error: BaseException | None = None

    def __init__(self, call):
        self._kept = cfunc(_SIGNATURE)(call)
        self.address = self._kept.address


def checked(function: Dispatcher):
    """A compiled function, compiled anew with bounds checks."""
    return bounds_checked(function, options_of(function))


def writes(function, arguments: int) -> bool:
    """Whether a function takes one argument more than it is given, to write its answer there."""
    try:
        parameters = inspect.signature(getattr(function, "py_func", function)).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(needed) == arguments + 1


def right_hand_side(f, args: tuple, n: int):
    """f(t, y, *args) -> derivatives, or one that writes them into a further argument, as a C function."""
    if isinstance(f, Actuation):  # (t, q, v, params, tau)
        return f
    in_place = writes(f, 2 + len(args))
    if isinstance(f, Dispatcher):
        return CompiledFunction(_writing(f, args) if in_place else _returning(f, args))

    def fill(t, y, nothing, out):
        if in_place:
            f(t, y, *args, out)
            return
        answer = np.asarray(f(t, y, *args), float)
        if answer.shape != (n,) and not (n == 1 and answer.size == 1):
            raise ShapeError(f"f(t, y) returned an array of shape {answer.shape} at t = {t:.6g}; it must return one "
                             f"derivative for each entry of y, which is of shape ({n},)")
        out[:] = answer.ravel()

    return PlainFunction(fill)


def _writing(f, args):
    given = njit(lambda t, y, out: f(t, y, *args, out))

    def call(t, y, n, v, zero, params, count, out, size):
        try:
            given(t, carray(y, n), carray(out, size))
        except Exception:
            return 1
        return 0
    return call


def _returning(f, args):
    given = njit(lambda t, y: f(t, y, *args))

    def call(t, y, n, v, zero, params, count, out, size):
        try:
            answer = given(t, carray(y, n))
            if len(answer) != size:
                return 1
            for i in range(size):
                out[i] = answer[i]
        except Exception:
            return 1
        return 0
    return call


def event_function(event, args: tuple):
    """event(t, y, *args) -> a number, as a C function."""
    if isinstance(event, Dispatcher):
        event = checked(event)
        given = njit(lambda t, y: event(t, y, *args))

        def call(t, y, n, v, zero, params, count, out, size):
            try:
                out[0] = given(t, carray(y, n))
            except Exception:
                return 1
            return 0
        return CompiledFunction(call)

    def fill(t, y, nothing, out):
        out[0] = float(np.asarray(event(t, y, *args)).item())

    return PlainFunction(fill)
