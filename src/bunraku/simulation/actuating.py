"""Actuation and its parameters, as users give them."""

from __future__ import annotations

import inspect

import numpy as np

from bunraku.checks import as_finite
from bunraku.compiler.numba_inside import NumbaError
from bunraku.errors import ModelError, ShapeError
from bunraku.runs.actuation import Actuation, PlainActuation
from bunraku.simulation.failures import cannot_compile


def actuation(function) -> Actuation:
    """Decorator: compile a function (t, q, v, params, tau) that writes tau, to be called inside the loop.

    q and v are read-only; params may be written to, as internal state of the function. An index out of bounds ends the
    run with an error, and so does a returned value.
    """
    try:
        inspect.signature(function).bind(0.0, None, None, None, None)
    except TypeError as error:
        name = getattr(function, "__name__", function)
        raise ModelError(f"@bk.actuation is for functions (t, q, v, params, tau) that write tau, not {name!r}: {error}"
                         "; a plain function (t, q, v) that returns tau is given to bk.Simulation without it") from None
    return Actuation(function)


def as_params(params):
    """Parameters of an actuation; in an array of floats they may change while running."""
    given = as_finite("params", params, infinite=True)
    if isinstance(params, np.ndarray) and params.dtype == float and params.ndim == 1 and params.flags.c_contiguous:
        return params  # shared, so that changes are seen while running
    if given.ndim != 1:
        raise ShapeError(f"params must be a 1-D array of numbers, not of shape {given.shape}")
    return given


def as_actuation(function, nv):
    if function is None or isinstance(function, Actuation):
        return function
    if not callable(function):
        raise ModelError(f"actuation must be a function (t, q, v) -> tau or made by @bk.actuation, not {function!r}")
    return PlainActuation(function, nv)


def address_of(actuation) -> int:
    """Address of an actuation as a C function, 0 for none; compiles it if necessary."""
    try:
        return actuation.address if actuation else 0
    except NumbaError as error:
        raise ModelError(cannot_compile(f"the actuation {actuation.__name__!r}", error)) from error
