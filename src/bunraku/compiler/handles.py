"""Named tuples by address: one pointer in place of all their fields, from function to function.

A run passes a method, a mechanism, memory and a record from function to function: by value, hundreds of words in every
call. `Held(T)` is the type of a pointer to a named tuple of type T; its fields are read where they are used.
`hold(value)` puts a named tuple into the stack frame of the entry that calls it (so only entries may), where it lasts
as long as the entry runs. Arrays in it belong to `value`: `outlived` keeps it until its last argument is computed.
With the JIT off a handle is the tuple itself.
"""

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import infer_getattr, intrinsic, models, overload, register_model
from numba.np.numpy_support import as_dtype

from bunraku.compiler.numba_inside import AttributeTemplate, cgutils, impl_ret_borrowed, lower_getattr_generic

POINTER = ir.IntType(8).as_pointer()


class Held(types.Type):
    """Numba type of a pointer to a named tuple."""

    def __init__(self, fields: types.NamedTuple):
        self.fields = fields
        super().__init__(name=f"Held({fields})")


@register_model(Held)
class _HeldModel(models.PrimitiveModel):
    def __init__(self, manager, held):
        super().__init__(manager, held, POINTER)


@infer_getattr
class _HeldFields(AttributeTemplate):
    key = Held

    def generic_resolve(self, held, name):
        return held.fields.types[held.fields.fields.index(name)] if name in held.fields.fields else None


@lower_getattr_generic(Held)
def _read_field(context, builder, held, pointer, name):
    place = held.fields.fields.index(name)
    struct = builder.bitcast(pointer, context.get_value_type(held.fields).as_pointer())
    value = builder.load(cgutils.gep_inbounds(builder, struct, 0, place))
    return impl_ret_borrowed(context, builder, held.fields.types[place], value)


def put_in_frame(context, builder, fields, value):
    """Store a named tuple in the present stack frame; its address."""
    return builder.bitcast(cgutils.alloca_once_value(builder, value), POINTER)


@intrinsic
def _hold(typingctx, value):
    def generate(context, builder, sig, args):
        return put_in_frame(context, builder, sig.args[0], args[0])
    return Held(value)(value), generate


def hold(value):
    """A handle to a named tuple. For entries only."""
    return value


@overload(hold, inline="always")
def _hold_compiled(value):
    return lambda value: _hold(value)


def outlived(value, result):
    """Returns the result; keeps `value`, from which it was computed, alive until here."""
    return result


@overload(outlived, inline="always")
def _outlived_compiled(value, result):
    return lambda value, result: _outlived(value, result)


@intrinsic
def _outlived(typingctx, value, result):
    return result(value, result), lambda context, builder, sig, args: args[1]


# -- named tuples in memory that Python has laid out -------------------------------------------------------------------

WORDS = {1: 7, 2: 9}  # of an array in compiled code: owner (2), items, bytes of an item, address, shape, strides


def laid_out(arrays) -> np.ndarray:
    """A named tuple of C-contiguous arrays as compiled code has it in memory, in words, for `by_address`. The caller
    keeps the arrays alive."""
    return np.array([word for x in arrays for word in (0, 0, x.size, x.itemsize, x.ctypes.data, *x.shape, *x.strides)],
                    np.int64)


def by_address(kind: types.NamedTuple):
    """A function for kernels: words of `laid_out` -> handle to the named tuple of this Numba type (arrays of one or two
    dimensions)."""
    def read(words):
        arrays, start = [], 0
        for array in kind.types:
            dtype, end = as_dtype(array.dtype), start + WORDS[array.ndim]
            _, _, items, _, address, *shape = words[start:end - array.ndim].tolist()
            raw: Any = (ctypes.c_char * (items * dtype.itemsize)).from_address(address) if items else b""
            arrays.append(np.frombuffer(raw, dtype).reshape(shape))
            start = end
        return kind.instance_class(*arrays)

    @intrinsic
    def compiled(typingctx, words):
        def generate(context, builder, sig, args):
            data = context.make_array(sig.args[0])(context, builder, args[0]).data
            return builder.bitcast(data, POINTER)
        return Held(kind)(words), generate

    @overload(read, inline="always")
    def read_compiled(words):
        return lambda words: compiled(words)

    return read
