"""Actuation inside compiled runs: one C function, whether it was compiled from Python or is Python.

    int32 f(double t, double* q, int64 nq, double* v, int64 nv, double* params, int64 np, double* tau, int64 nt)

writes nt torques (zero beforehand; those of the nv tree joints, then those of the connections) and returns 0. A run
gets its address: calling it costs a few nanoseconds, and the run itself is compiled and cached without knowing it.

People's functions are compiled with bounds checks, which cost nothing that can be measured: an index out of bounds ends
the run with an error instead of reading or writing other memory. q and v are read-only for them.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import traceback
from pathlib import Path
from types import CellType, FunctionType

import numpy as np
from llvmlite import ir
from numba import carray, cfunc, njit, types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.extending import intrinsic, overload

from bunraku.errors import ModelError, ShapeError
from bunraku.jit import JIT_OFF, OPTIONS

_POINTER = types.CPointer(types.float64)
_SIGNATURE = types.int32(types.float64, _POINTER, types.int64, _POINTER, types.int64, _POINTER, types.int64, _POINTER,
                         types.int64)
_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p,
                              ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)


_WRITABLE = types.Array(types.float64, 1, "C")
READ_ONLY = types.Array(types.float64, 1, "C", readonly=True)


class Actuation:
    """A function (t, q, v, params, tau) writing tau, compiled and called inside the loop. Made by `@bk.actuation`."""

    def __init__(self, function):
        self.function = getattr(function, "py_func", function)
        functools.update_wrapper(self, function)

    def __call__(self, t, q, v, params, tau):
        return self.function(t, q, v, params, tau)

    @functools.cached_property
    def address(self) -> int:
        """Address of the compiled function; compiles it, which takes about a second."""
        if JIT_OFF:
            self._kept = _PROTOTYPE(_callback_writing(self))
            return _address_of(self._kept)
        user = bounds_checked(self.function, OPTIONS)
        answer = compile_for(user, types.float64, READ_ONLY, READ_ONLY, _WRITABLE, _WRITABLE)
        if answer != types.none:
            raise self._returns(answer)

        def call(t, q, nq, v, nv, params, np_, tau, nt):
            try:
                user(t, carray(q, nq), carray(v, nv), carray(params, np_), carray(tau, nt))
            except Exception:
                return 1
            return 0

        self._kept = cfunc(_SIGNATURE)(call)
        return self._kept.address

    def _returns(self, kind) -> ModelError:
        return ModelError(f"the actuation {self.__name__!r} returns a value ({kind}), which nothing would use: write "
                          "the torques into tau, as in tau[0] = 1.0 or tau[:] = ..., and return nothing; a plain "
                          "function (t, q, v) that returns tau needs no @bk.actuation")

    def raised(self, t, q, v, params, size) -> Exception:
        """The Python error behind a call that failed here: that of the function itself, not compiled."""
        params, tau = params.copy(), np.zeros(size)
        sizes = f"q has {len(q)} entries, v {len(v)}, params {len(params)}, tau {size}"
        try:
            answer = in_python(self.function)(t, _locked(q), _locked(v), params, tau)
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
        if call_actuation(self.address, t, q, v, params, tau) != 0:
            raise self.raised(t, q, v, params, size)  # what the compiled one cannot say
        return tau


def bounds_checked(function, options, making=()):
    """The function, compiled with bounds checks, and so are the compiled functions that it calls by name."""
    return njit(boundscheck=True, **options)(
        _rewired(function, lambda f, making: bounds_checked(f, options_of(f), making), making))


def in_python(function, making=()):
    """The function as plain Python, and so are the compiled functions that it calls by name."""
    return _rewired(function, in_python, making)


def _rewired(function, swap, making):
    """The Python function with the compiled functions that it calls by name replaced by `swap` of them. Recursive calls
    stay as they are, and so do functions of Numba's and ours."""
    function = getattr(function, "py_func", function)
    if not isinstance(function, FunctionType):
        return function
    making = (*making, function)

    def other(value):
        return isinstance(value, Dispatcher) and value.py_func not in making and (
            not value.py_func.__module__.startswith(("bunraku.", "numba.")))

    outside, names = function.__globals__, function.__code__.co_names
    swapped = {name: swap(outside[name], making) for name in names if other(outside.get(name))}
    closure = tuple(CellType(swap(value, making)) if other(value := _contents(cell)) else cell
                    for cell in function.__closure__ or ())
    twin = FunctionType(function.__code__, {**outside, **swapped}, function.__name__, function.__defaults__, closure)
    twin.__kwdefaults__, twin.__module__ = function.__kwdefaults__, function.__module__
    return twin


def _contents(cell):
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def options_of(dispatcher) -> dict:
    """The options that a function was compiled with, those that say how its code runs."""
    return {name: value for name, value in dispatcher.targetoptions.items()
            if name in ("nogil", "fastmath", "error_model", "inline", "forceinline") and value is not None}


def compile_for(function, *kinds):
    """Compile for exactly these types; the type it returns. Arrays are read-only where `kinds` says so, unless what
    the function calls was compiled by its author for writable ones."""
    try:
        function.compile(kinds)
    except NumbaError as error:
        if "setitem(readonly" in str(error):
            raise ModelError(f"the function {function.__name__!r} writes into q or v, which are the solver's; work on "
                             "a copy (q = q.copy()), and change the state with sim.set_state between runs or in an "
                             "action of sim.when") from error
        function.compile(tuple(_WRITABLE if kind == READ_ONLY else kind for kind in kinds))
    function.disable_compile()
    return function.nopython_signatures[0].return_type


class PlainActuation:
    """A Python function (t, q, v) -> tau, called from the compiled loop through a C callback."""

    def __init__(self, function, nv):
        self.function, self.error = function, None
        self.final = False  # whether an error is the last word: no shorter step may hide it
        self.errors: dict[int, list[BaseException]] = {}  # by the thread in which they were raised, in turn

        def call(t, q, nq, v, nv_, params, np_, tau, nt):
            if self.error is not None and (self.final or not isinstance(self.error, Exception)):
                return 1
            try:
                array = self._checked(function(t, _copy(q, nq), _copy(v, nv_)), nv, nt)
                _view(tau, len(array))[:] = array
            except BaseException as error:  # handed over to `Simulation.run`, which raises it
                self.error = error
                self.errors.setdefault(threading.get_ident(), []).append(error)
                return 1
            return 0

        self._nv = nv
        self._kept = _PROTOTYPE(call)
        self.address = _address_of(self._kept)

    def _checked(self, answer, nv, nt) -> np.ndarray:
        """What the function has returned, as torques."""
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
        """Forget earlier errors; from now on the first one is final."""
        self.error, self.final = None, True
        self.errors.clear()

    def raised(self, t, q, v, params, size):
        return self.error

    def torque(self, t, q, v, params, size):
        return self._checked(self.function(t, q, v), self._nv, size)


def _name(function) -> str:
    return repr(getattr(function, "__name__", function))


def _locked(array) -> np.ndarray:
    """A plain copy that cannot be written to."""
    twin = np.array(array)
    twin.flags.writeable = False
    return twin


def _address_of(callback) -> int:
    return ctypes.cast(callback, ctypes.c_void_p).value or 0


def _view(pointer, n) -> np.ndarray:
    if n == 0:
        return np.empty(0)
    return np.frombuffer((ctypes.c_double * n).from_address(pointer))


def _copy(pointer, n) -> np.ndarray:
    return _view(pointer, n).copy()


def _callback_writing(actuation):
    def call(t, q, nq, v, nv, params, np_, tau, nt):
        try:
            answer = actuation.function(t, _locked(_view(q, nq)), _locked(_view(v, nv)), _view(params, np_),
                                        _view(tau, nt))
            return 0 if answer is None else 1
        except Exception:
            return 1
    return call


def call_actuation(address, t, q, v, params, tau):
    """Call the C function at `address`; returns its status."""
    return _PROTOTYPE(address)(t, q.ctypes.data, len(q), v.ctypes.data, len(v), params.ctypes.data, len(params),
                               tau.ctypes.data, len(tau))


@intrinsic
def _call_address(typingctx, address, t, q, nq, v, nv, params, np_, tau, nt):
    """Call a C function by its address; arrays are given as addresses too."""
    def generate(context, builder, sig, args):
        i64, double, i32 = ir.IntType(64), ir.DoubleType(), ir.IntType(32)
        kind = ir.FunctionType(i32, [double, i64, i64, i64, i64, i64, i64, i64, i64])
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
    i = types.int64
    return types.int32(i, types.float64, i, i, i, i, i, i, i, i), generate


@overload(call_actuation, jit_options={"nogil": True})
def _call_actuation(address, t, q, v, params, tau):
    return lambda address, t, q, v, params, tau: _call_address(
        address, t, q.ctypes.data, q.shape[0], v.ctypes.data, v.shape[0], params.ctypes.data, params.shape[0],
        tau.ctypes.data, tau.shape[0])
