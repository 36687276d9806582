"""Actuation inside compiled runs: one C function, whether it was compiled from Python or is Python.

    int32 f(double t, double* q, int64 nq, double* v, int64 nv, double* params, int64 np, double* tau, int64 nt)

writes nt torques (zero beforehand; those of the nv tree joints, then those of the connections) and returns 0. A run
gets its address: calling it costs a few nanoseconds, and the run itself is compiled and cached without knowing it.
"""

from __future__ import annotations

import ctypes
import functools
import threading

import numpy as np
from llvmlite import ir
from numba import carray, cfunc, njit, types
from numba.extending import intrinsic, overload

from bunraku.errors import ShapeError
from bunraku.jit import JIT_OFF, OPTIONS

_POINTER = types.CPointer(types.float64)
_SIGNATURE = types.int32(types.float64, _POINTER, types.int64, _POINTER, types.int64, _POINTER, types.int64, _POINTER,
                         types.int64)
_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p,
                              ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)


class Actuation:
    """A function (t, q, v, params, tau) writing tau, compiled and called inside the loop. Made by `@bk.actuation`."""

    def __init__(self, function):
        self.function = function
        functools.update_wrapper(self, function)

    def __call__(self, t, q, v, params, tau):
        return self.function(t, q, v, params, tau)

    @functools.cached_property
    def address(self) -> int:
        """Address of the compiled function; compiles it, which takes about a second."""
        if JIT_OFF:
            self._kept = _PROTOTYPE(_callback_writing(self.function))
            return _address_of(self._kept)
        user = njit(**OPTIONS)(self.function)

        def call(t, q, nq, v, nv, params, np_, tau, nt):
            try:
                user(t, carray(q, nq), carray(v, nv), carray(params, np_), carray(tau, nt))
            except Exception:
                return 1
            return 0

        self._kept = cfunc(_SIGNATURE)(call)
        return self._kept.address

    def raised(self):
        """The Python error behind a failed call, if there is one."""
        return None

    def torque(self, t, q, v, params, size):
        tau = np.zeros(size)
        q, v = np.ascontiguousarray(q), np.ascontiguousarray(v)
        if call_actuation(self.address, t, q, v, params, tau) != 0:
            self.function(t, q, v, params, tau)  # raises what the compiled one cannot say
        return tau


class PlainActuation:
    """A Python function (t, q, v) -> tau, called from the compiled loop through a C callback."""

    def __init__(self, function, nv):
        self.function, self.error = function, None
        self.errors: dict[int, list[BaseException]] = {}  # by the thread in which they were raised, in turn

        def call(t, q, nq, v, nv_, params, np_, tau, nt):
            try:
                answer = function(t, _copy(q, nq), _copy(v, nv_))
                if answer is not None:
                    array = np.asarray(answer, float)
                    if array.shape not in ((nv,), (nt,)):
                        more = f" or, with the connections, ({nt},)" if nt > nv else ""
                        raise ShapeError(f"the actuation returned an array of shape {array.shape}; tau must be ({nv},)"
                                         + more)
                    _view(tau, len(array))[:] = array
            except BaseException as error:  # handed over to `Simulation.run`, which raises it
                self.error = error
                self.errors.setdefault(threading.get_ident(), []).append(error)
                return 1
            return 0

        self._kept = _PROTOTYPE(call)
        self.address = _address_of(self._kept)

    def raised(self):
        return self.error

    def torque(self, t, q, v, params, size):
        answer = self.function(t, q, v)
        return np.zeros(size) if answer is None else np.asarray(answer, float)


def _address_of(callback) -> int:
    return ctypes.cast(callback, ctypes.c_void_p).value or 0


def _view(pointer, n) -> np.ndarray:
    if n == 0:
        return np.empty(0)
    return np.frombuffer((ctypes.c_double * n).from_address(pointer))


def _copy(pointer, n) -> np.ndarray:
    return _view(pointer, n).copy()


def _callback_writing(function):
    def call(t, q, nq, v, nv, params, np_, tau, nt):
        try:
            function(t, _view(q, nq), _view(v, nv), _view(params, np_), _view(tau, nt))
        except Exception:
            return 1
        return 0
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
