"""Actuation and its parameters, as users give them."""

from __future__ import annotations

import inspect

import numpy as np

from bunraku.checks import as_finite
from bunraku.compiler.numba_inside import NumbaError
from bunraku.errors import ModelError, ShapeError
from bunraku.integrate.callbacks import writes
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.runs.actuation import Actuation, PlainActuation
from bunraku.runs.model import FIRST_Q, LINK, PlanModel
from bunraku.simulation.failures import cannot_compile


def actuation(function) -> Actuation:
    """Decorator: compile a function (t, q, v, params, tau) that writes tau, to be called inside the loop.

    q and v are read-only; params may be written to, as internal state of the function. An index out of bounds ends the
    run with an error, and so does a returned value. A function (t, q, v, params, tau, model) is given the running
    mechanism: `model.gravity(q, tau)`, `model.jacobian("hand", q, out)` (`bk.Model` lists its methods).
    """
    try:
        with_model = takes_model(function, 5)
        inspect.signature(function).bind(0.0, *[None] * (5 if with_model else 4))
    except TypeError as error:
        name = getattr(function, "__name__", function)
        raise ModelError("@bk.actuation is for functions (t, q, v, params, tau) or (t, q, v, params, tau, model) that "
                         f"write tau, not {name!r}: {error}; a plain function (t, q, v) that returns tau is given to "
                         "bk.Simulation without it") from None
    return Actuation(function, with_model)


def takes_model(function, arguments: int) -> bool:
    """Whether a function takes one more positional argument than these: the model."""
    return writes(function, arguments)


def given_params(actuation, params):
    """The parameters, or where there are none the actuation's own."""
    return actuation.own_params() if params is None and isinstance(actuation, Actuation) else params


def as_params(params):
    """Parameters of an actuation; in an array of floats they may change while running."""
    given = as_finite("params", params, infinite=True)
    if isinstance(params, np.ndarray) and params.dtype == float and params.ndim == 1 and params.flags.c_contiguous:
        return params  # shared, so that changes are seen while running
    if given.ndim != 1:
        raise ShapeError(f"params must be a 1-D array of numbers, not of shape {given.shape}")
    return given


def as_actuation(function, mechanism: Mechanism):
    """The actuation for a structure."""
    if function is None:
        return None
    if isinstance(function, Actuation):
        return function.on(model_of(mechanism)) if function.with_model else function
    if not callable(function):
        raise ModelError(f"actuation must be a function (t, q, v) -> tau or made by @bk.actuation, not {function!r}")
    return PlainActuation(function, mechanism.nv)


class Model(PlanModel):
    __doc__ = PlanModel.__doc__

    def __init__(self, mechanism: Mechanism):
        mechanism = as_mechanism(mechanism)

        def find(kind: str, name: str, function: str = "") -> int:
            what = f"the model in {function!r}" if function else "model"
            if kind == LINK:
                return mechanism.find_link(name, what)
            mechanism.find_joint(name, f"{what}: ")
            return (mechanism.q_slice if kind == FIRST_Q else mechanism.v_slice)(name).start

        super().__init__(mechanism.plan("tree"), find, lambda: mechanism.contact_pairs().arrays)


def model_of(mechanism: Mechanism) -> Model:
    """The model of a simulation's present structure, which is kept until it changes."""
    return mechanism.kept("model", lambda: Model(mechanism))


def address_of(actuation) -> int:
    """Address of an actuation as a C function, 0 for none; compiles it if necessary."""
    try:
        return actuation.address if actuation else 0
    except NumbaError as error:
        raise ModelError(cannot_compile(f"the actuation {actuation.__name__!r}", error)) from error
