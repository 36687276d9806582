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


# -- arrays by address -------------------------------------------------------------------------------------------------

ADDRESS = 3  # words of an array in a table: address, length, length of its rows


def table_of(arrays) -> np.ndarray:
    """Addresses and shapes of arrays, for `array_by_address`. The caller keeps the arrays alive."""
    return np.array([(x.ctypes.data, *x.shape, 0)[:ADDRESS] for x in arrays], np.int64).reshape(-1)


def array_by_address(kind: types.Array):
    """A function (table, place) -> array of this Numba type, for kernels: C-contiguous, of one or two dimensions."""
    dtype = as_dtype(kind.dtype)

    def read(table, place):
        address, *shape = table[ADDRESS * place:ADDRESS * (place + 1)].tolist()
        shape = shape[:kind.ndim]
        size = dtype.itemsize * int(np.prod(shape))
        raw: Any = (ctypes.c_char * size).from_address(address) if size else b""
        return np.frombuffer(raw, dtype).reshape(shape)

    @intrinsic
    def compiled(typingctx, table, place):
        def generate(context, builder, sig, args):
            data = context.make_array(sig.args[0])(context, builder, args[0]).data
            first = builder.mul(args[1], ir.IntType(64)(ADDRESS))
            words = [builder.load(builder.gep(data, [builder.add(first, ir.IntType(64)(k))])) for k in range(ADDRESS)]
            array, lengths = context.make_array(kind)(context, builder), words[1:1 + kind.ndim]
            strides: list = []
            size = ir.IntType(64)(dtype.itemsize)
            for length in reversed(lengths):
                strides.insert(0, size)
                size = builder.mul(size, length)
            array.meminfo, array.parent = POINTER(None), POINTER(None)
            array.nitems = builder.sdiv(size, ir.IntType(64)(dtype.itemsize))
            array.itemsize = ir.IntType(64)(dtype.itemsize)
            array.data = builder.inttoptr(words[0], array.data.type)
            array.shape = cgutils.pack_array(builder, lengths, ty=ir.IntType(64))
            array.strides = cgutils.pack_array(builder, strides, ty=ir.IntType(64))
            return array._getvalue()
        return kind(table, types.int64), generate

    @overload(read, inline="always")
    def read_compiled(table, place):
        return lambda table, place: compiled(table, place)

    return read
