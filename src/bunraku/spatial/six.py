"""Columns of a far handle as one value: six floats in one SIMD vector, or three lanes.

`six_of(x0, ..., x5)` of floats is a vector of 8 places, two of them unused (the compiler splits it where registers are
shorter): all columns at once. `three_of(x0, x1, x2)` of lanes is three lanes: with six, the 36 lanes of Y would not fit
into the registers. `+ - *` work between values of the same kind, and between them and scalars, so that `dot`, `sub`,
`cross` ... of `algebra.py` take tuples of columns as they are: one source for one state and for lanes. With the JIT off
they are arrays.
"""

import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, models, register_model

from bunraku.compiler.numba_inside import AbstractTemplate, infer_global, signature
from bunraku.spatial.instructions import instruction
from bunraku.spatial.lanes import DOUBLE, FLAGS, INT32, VECTOR, Lane, lane, splat

PLACES = 8
ROW = ir.VectorType(DOUBLE, PLACES)
LANES = ir.ArrayType(VECTOR, 3)


class Columns(types.Type):
    """Numba type of six floats, or of three lanes."""

    def __init__(self, scalar, count):
        self.scalar, self.count = scalar, count
        super().__init__(name=f"columns({count} {scalar})")


six_floats, three_lanes = Columns(types.float64, 6), Columns(lane, 3)


@register_model(Columns)
class _ColumnsModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, LANES if kind.scalar is lane else ROW)


def _everywhere(builder, kind, value):
    """Broadcast a scalar to a row; a row is returned unchanged."""
    if isinstance(kind, Columns):
        return value
    undefined = ir.Constant(ROW, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(INT32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(INT32, PLACES), [0] * PLACES))


def _register(operation, name):
    @infer_global(operation)
    class _Typing(AbstractTemplate):
        def generic(self, args, kws):
            kinds = [a for a in args if isinstance(a, Columns)]
            fits = len(args) == 2 and kinds and all(isinstance(a, (Columns, Lane, types.Float)) for a in args)
            return signature(kinds[0], *args) if fits else None

    def lower(context, builder, sig, args):
        if sig.return_type is six_floats:
            left, right = (_everywhere(builder, kind, x) for kind, x in zip(sig.args, args, strict=True))
            return getattr(builder, name)(left, right, flags=FLAGS)
        result = ir.Constant(LANES, ir.Undefined)
        for k in range(three_lanes.count):
            pair = [builder.extract_value(x, k) if isinstance(kind, Columns) else splat(builder, x)
                    for kind, x in zip(sig.args, args, strict=True)]
            result = builder.insert_value(result, getattr(builder, name)(*pair, flags=FLAGS), k)
        return result

    for pair in ((Columns, Columns), (Columns, types.Float), (types.Float, Columns), (Columns, Lane), (Lane, Columns)):
        lower_builtin(operation, *pair)(lower)


for _operation, _name in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul")):
    _register(_operation, _name)


def six_of(x0, x1, x2, x3, x4, x5):
    """Six floats as one value; the two unused places are zero."""
    return np.array([x0, x1, x2, x3, x4, x5, 0.0, 0.0])


@instruction(six_of)
def _six_of(*floats):
    def make(builder, *values):
        result = ir.Constant(ROW, [0.0] * PLACES)
        for k, value in enumerate(values):
            result = builder.insert_element(result, value, ir.Constant(INT32, k))
        return result
    return signature(six_floats, *(types.float64,) * 6), make


def three_of(x0, x1, x2):
    """Three lanes as one value."""
    return np.array([x0, x1, x2])


@instruction(three_of)
def _three_of(*lanes):
    def make(builder, *values):
        result = ir.Constant(LANES, ir.Undefined)
        for k, value in enumerate(values):
            result = builder.insert_value(result, splat(builder, value), k)
        return result
    return signature(three_lanes, *(lane,) * 3), make


def columns(value):
    """The scalars, as a tuple."""
    return tuple(value[:6])


@instruction(columns)
def _columns(kind):
    def read(builder, value):
        if kind is three_lanes:
            return tuple(builder.extract_value(value, k) for k in range(3))
        return tuple(builder.extract_element(value, ir.Constant(INT32, k)) for k in range(6))
    return signature(types.UniTuple(kind.scalar, kind.count), kind), read


def store_columns(array, i, value):
    """Write columns to an array, beginning at scalar i."""
    count = 6 if array.ndim == 1 else 3
    array[i:i + count] = value[:count]


@instruction(store_columns)
def _store_columns(array, i, kind):
    def write(builder, data, i, value):
        if kind is six_floats:
            used = ir.Constant(ir.VectorType(INT32, 6), list(range(6)))
            six = builder.shuffle_vector(value, ir.Constant(ROW, ir.Undefined), used)
            builder.store(six, builder.bitcast(builder.gep(data, [i]), six.type.as_pointer()), align=8)
            return
        place = builder.mul(i, ir.Constant(i.type, VECTOR.count))
        for k in range(3):
            at = builder.gep(data, [builder.add(place, ir.Constant(i.type, VECTOR.count * k))])
            builder.store(builder.extract_value(value, k), builder.bitcast(at, VECTOR.as_pointer()), align=8)
    return signature(types.void, array, types.intp, kind), write


def load_six(array, i):
    """Floats i .. i + 7 of an array, of which the last two are padding."""
    return array[i:i + 8].copy()


@instruction(load_six)
def _load_six(array, i):
    def read(builder, data, i):
        return builder.load(builder.bitcast(builder.gep(data, [i]), ROW.as_pointer()), align=8)
    return signature(six_floats, array, types.intp), read


def store_eight(array, i, six):
    """Write floats i .. i + 7 of an array, padding included."""
    array[i:i + 8] = six


@instruction(store_eight)
def _store_eight(array, i, six):
    def write(builder, data, i, value):
        builder.store(value, builder.bitcast(builder.gep(data, [i]), ROW.as_pointer()), align=8)
    return signature(types.void, array, types.intp, six), write
