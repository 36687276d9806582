"""The functions of an initial value problem, f(t, y) and events, as C functions."""

from __future__ import annotations

import numpy as np
from numba import carray, njit

from bunraku.compiler.numba_inside import Dispatcher
from bunraku.errors import ShapeError
from bunraku.integrate.callbacks import CFunction, CompiledFunction, PlainFunction, checked, writes


def right_hand_side(f, args: tuple, n: int):
    """f(t, y, *args) -> derivatives, or one that writes them into a further argument, as a C function."""
    if isinstance(f, CFunction):  # such as one made by @bk.actuation
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
