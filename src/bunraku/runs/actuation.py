"""Actuation: the user's torques in a run, as C functions (`integrate/callbacks.py`).

They write nt torques: those of the nv tree joints, then those of the connections. An actuation with six arguments is
given the model (`model.py`): it is compiled once, and bound to the model of each structure (`bound_functions.py`).
"""

from __future__ import annotations

import functools
import threading
import traceback
from pathlib import Path

import numpy as np
from numba import carray, cfunc, types

from bunraku.errors import ModelError, ShapeError
from bunraku.integrate.callbacks import (
    PROTOTYPE,
    READ_ONLY,
    SIGNATURE,
    WRITABLE,
    CFunction,
    address_of,
    bounds_checked,
    call_function,
    compile_for,
    copied,
    in_python,
    read_only_copy,
    view,
)
from bunraku.jit import JIT_OFF, OPTIONS
from bunraku.runs.bound_functions import bind
from bunraku.runs.model import PlanModel
from bunraku.runs.model_calls import CompiledWithModel


class Actuation(CFunction):
    """A function (t, q, v, params, tau) writing tau, compiled and called inside the loop. Made by `@bk.actuation`.

    with_model  whether it takes the model as sixth argument; it is then run through `on(model)`
    """

    more: tuple = ()  # arguments after tau

    def own_params(self) -> np.ndarray | None:
        """Parameters where none are given."""
        return None

    def refuse(self, solver, step: float, alone: bool) -> None:
        """Raise an error if it cannot run with this solver and step; `alone`: no other state has its parameters."""

    def __init__(self, function, with_model: bool = False):
        self.function, self.with_model = getattr(function, "py_func", function), with_model
        functools.update_wrapper(self, function)

    def __call__(self, t, q, v, params, tau, *more):
        return self.function(t, q, v, params, tau, *more)

    def on(self, model: PlanModel) -> Actuation:
        """The actuation for one structure."""
        return ActuationOfModel(self, model) if self.with_model else self

    @functools.cached_property
    def compiled_with_model(self) -> tuple[int, list]:
        """Address of the compiled function, whose last argument is the address of a model's words; and the names in
        it."""
        made = CompiledWithModel(self.function, types.float64, READ_ONLY, READ_ONLY, WRITABLE, WRITABLE)
        if made.answer != types.none:
            raise self._returns(made.answer)
        user, as_model = made.call, made.as_model

        def call(t, q, nq, v, nv, params, np_, tau, nt, words):
            try:
                user(t, carray(q, nq), carray(v, nv), carray(params, np_), carray(tau, nt), as_model(words))
            except Exception:
                return 1
            return 0

        self._kept = cfunc(SIGNATURE.return_type(*SIGNATURE.args, types.int64))(call)
        return self._kept.address, made.names

    @functools.cached_property
    def address(self) -> int:
        """Address of the compiled function; compiles it, which takes about a second."""
        if JIT_OFF:
            self._kept = PROTOTYPE(_callback_writing(self))
            return address_of(self._kept)
        user = bounds_checked(self.function, OPTIONS)
        answer = compile_for(user, types.float64, READ_ONLY, READ_ONLY, WRITABLE, WRITABLE)
        if answer != types.none:
            raise self._returns(answer)

        def call(t, q, nq, v, nv, params, np_, tau, nt):
            try:
                user(t, carray(q, nq), carray(v, nv), carray(params, np_), carray(tau, nt))
            except Exception:
                return 1
            return 0

        self._kept = cfunc(SIGNATURE)(call)
        return self._kept.address

    def _returns(self, kind) -> ModelError:
        return ModelError(f"the actuation {self.__name__!r} returns a value ({kind}), which nothing would use: write "
                          "the torques into tau, as in tau[0] = 1.0 or tau[:] = ..., and return nothing; a plain "
                          "function (t, q, v) that returns tau needs no @bk.actuation")

    def raised(self, t, q, v, params, size) -> Exception:
        """The Python exception behind a failed call: that of the uncompiled function at the same arguments."""
        params, tau = params.copy(), np.zeros(size)
        sizes = f"q has {len(q)} entries, v {len(v)}, params {len(params)}, tau {size}"
        try:
            answer = in_python(self.function)(t, read_only_copy(q), read_only_copy(v), params, tau, *self.more)
        except Exception as error:
            line = traceback.extract_tb(error.__traceback__)[-1]
            error.add_note(f"in {self.__name__!r} ({Path(line.filename).name}, line {line.lineno}); {sizes}")
            return error
        if answer is not None:
            return self._returns(type(answer).__name__)
        return ModelError(f"compiled, {self.__name__!r} raised an exception that it does not raise in plain Python at "
                          f"this state; {sizes}")

    def torque(self, t, q, v, params, size):
        tau = np.zeros(size)
        q, v = np.ascontiguousarray(q), np.ascontiguousarray(v)
        if call_function(self.address, t, q, v, params, tau) != 0:
            raise self.raised(t, q, v, params, size)  # what the compiled one cannot say
        return tau


class ActuationOfModel(Actuation):
    """An actuation with the model of one structure."""

    def __init__(self, actuation: Actuation, model: PlanModel):
        super().__init__(actuation.function, with_model=True)
        self.actuation, self.model, self.more = actuation, model, (model,)

    @functools.cached_property
    def address(self) -> int:
        if JIT_OFF:
            self._kept = PROTOTYPE(_callback_writing(self))
            return address_of(self._kept)
        function, names = self.actuation.compiled_with_model
        self._words = self.model.words(names, self.__name__)
        return bind(self, function, self._words.ctypes.data)


class PlainActuation(CFunction):
    """A Python function (t, q, v) -> tau, called from the compiled loop through a C callback."""

    def __init__(self, function, nv):
        self.function, self.error = function, None
        self.final = False  # whether an error is the last word: no shorter step may hide it
        self.errors: dict[int, list[BaseException]] = {}  # by the thread in which they were raised, in turn

        def call(t, q, nq, v, nv_, params, np_, tau, nt):
            if self.error is not None and (self.final or not isinstance(self.error, Exception)):
                return 1
            try:
                array = self._checked(function(t, copied(q, nq), copied(v, nv_)), nv, nt)
                view(tau, len(array))[:] = array
            except BaseException as error:  # handed over to `Simulation.run`, which raises it
                self.error = error
                self.errors.setdefault(threading.get_ident(), []).append(error)
                return 1
            return 0

        self._nv = nv
        self._kept = PROTOTYPE(call)
        self.address = address_of(self._kept)

    def _checked(self, answer, nv, nt) -> np.ndarray:
        """The returned value of the function as torques, checked."""
        if answer is None:
            raise ShapeError(f"the actuation {_name(self.function)} returned None; it must return tau, an array of "
                             f"{nv} torques: end it with `return tau`, or with `return np.zeros({nv})` for none")
        try:
            array = np.asarray(answer, float)
        except (TypeError, ValueError):
            raise ShapeError(f"the actuation {_name(self.function)} returned {type(answer).__name__}; it must return "
                             f"tau, an array of {nv} torques") from None
        if array.shape not in ((nv,), (nt,)):
            more = f" or, with the connections, ({nt},)" if nt > nv else ""
            raise ShapeError(f"the actuation {_name(self.function)} returned an array of shape {array.shape}; "
                             f"tau must be ({nv},){more}")
        return array

    def begin(self) -> None:
        """Clear earlier errors; the first one from now on is kept."""
        self.error, self.final = None, True
        self.errors.clear()

    def raised(self, t, q, v, params, size):
        return self.error

    def torque(self, t, q, v, params, size):
        return self._checked(self.function(t, q, v), self._nv, size)


def _name(function) -> str:
    return repr(getattr(function, "__name__", function))


def _callback_writing(actuation):
    def call(t, q, nq, v, nv, params, np_, tau, nt):
        try:
            answer = actuation.function(t, read_only_copy(view(q, nq)), read_only_copy(view(v, nv)), view(params, np_),
                                        view(tau, nt), *actuation.more)
            return 0 if answer is None else 1
        except Exception:
            return 1
    return call


