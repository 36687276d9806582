"""User functions as C functions, which compiled code calls by address.

    int32 f(double t, double* q, int64 nq, double* v, int64 nv, double* params, int64 np, double* out, int64 n)

writes n numbers (zero beforehand) and returns 0. A function of (t, y) gets y as q and nothing as v. Calling one costs a
few nanoseconds, and solvers are compiled and cached independently of it.

User functions are compiled with bounds checks, at no measurable cost: an index out of bounds ends
the run with an error instead of reading or writing other memory. q and v are read-only for them.
"""

from __future__ import annotations

import ctypes
import inspect
from types import CellType, FunctionType

import numpy as np
from llvmlite import ir
from numba import cfunc, njit, types
from numba.extending import intrinsic, overload

from bunraku.compiler.numba_inside import Dispatcher, NumbaError
from bunraku.errors import ModelError

POINTER = types.CPointer(types.float64)
SIGNATURE = types.int32(types.float64, POINTER, types.int64, POINTER, types.int64, POINTER, types.int64, POINTER,
                         types.int64)
PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p,
                              ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)


WRITABLE = types.Array(types.float64, 1, "C")
READ_ONLY = types.Array(types.float64, 1, "C", readonly=True)


class CFunction:
    """Anything with the `address` of a function of this form."""

    @property
    def event_address(self) -> int:
        """Its address as an event of a run; negative for events of the motion itself (`integrate/record.py`)."""
        return int(self.address)


class PlainFunction(CFunction):
    """A Python function called from compiled code. `fill(t, q, v, out)` writes the result; its exception is kept."""

    def __init__(self, fill):
        self.error: BaseException | None = None

        def call(t, q, nq, v, nv, params, count, out, size):
            try:
                fill(t, copied(q, nq), copied(v, nv), view(out, size))
            except BaseException as error:  # raised again by the caller of the solver
                self.error = error
                return 1
            return 0

        self._kept = PROTOTYPE(call)
        self.address = address_of(self._kept)


class CompiledFunction(CFunction):
    """A function compiled by Numba, called without Python in between."""

    error: BaseException | None = None

    def __init__(self, call):
        self._kept = cfunc(SIGNATURE)(call)
        self.address = self._kept.address


def checked(function: Dispatcher):
    """A compiled function, compiled anew with bounds checks."""
    return bounds_checked(function, options_of(function))


def writes(function, arguments: int) -> bool:
    """Whether a function takes one additional argument for its result."""
    try:
        parameters = inspect.signature(getattr(function, "py_func", function)).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(needed) == arguments + 1


# -- compiled with checks, or not at all --------------------------------------------------------------------------


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
        function.compile(tuple(WRITABLE if kind == READ_ONLY else kind for kind in kinds))
    function.disable_compile()
    return function.nopython_signatures[0].return_type


# -- pointers and calls -------------------------------------------------------------------------------------------


def read_only_copy(array) -> np.ndarray:
    """A plain copy that cannot be written to."""
    twin = np.array(array)
    twin.flags.writeable = False
    return twin


def address_of(callback) -> int:
    return ctypes.cast(callback, ctypes.c_void_p).value or 0


def view(pointer, n) -> np.ndarray:
    if n == 0:
        return np.empty(0)
    return np.frombuffer((ctypes.c_double * n).from_address(pointer))


def copied(pointer, n) -> np.ndarray:
    return view(pointer, n).copy()


def call_function(address, t, q, v, params, tau):
    """Call the C function at `address`; returns its status."""
    return PROTOTYPE(address)(t, q.ctypes.data, len(q), v.ctypes.data, len(v), params.ctypes.data, len(params),
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


@overload(call_function, jit_options={"nogil": True})
def _call_function(address, t, q, v, params, tau):
    return lambda address, t, q, v, params, tau: _call_address(
        address, t, q.ctypes.data, q.shape[0], v.ctypes.data, v.shape[0], params.ctypes.data, params.shape[0],
        tau.ctypes.data, tau.shape[0])
