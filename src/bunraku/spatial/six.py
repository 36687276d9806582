"""Six scalars at once: the columns of a far handle, as one value.

`six_of(x0, ..., x5)` of floats is one SIMD vector (of 8 places, two of them unused; the compiler splits it where
registers are shorter), of lanes six of them. `+ - *` work between sixes, and between a six and a scalar, so that `dot`,
`sub`, `cross`, `solve3` ... of `algebra.py` take tuples of sixes as they are: one source for one state and for lanes.
With the JIT off a six is an array with six rows.
"""

import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import models, register_model

from bunraku.spatial.instructions import instruction
from bunraku.spatial.lanes import DOUBLE, FLAGS, INT32, VECTOR, Lane, lane, splat

PLACES = 8
ROW = ir.VectorType(DOUBLE, PLACES)
LANES = ir.ArrayType(VECTOR, 6)


class Six(types.Type):
    """Numba type of six floats, or of six lanes."""

    def __init__(self, scalar):
        self.scalar = scalar
        super().__init__(name=f"six({scalar})")


six_floats, six_lanes = Six(types.float64), Six(lane)


@register_model(Six)
class _SixModel(models.PrimitiveModel):
    def __init__(self, manager, six):
        super().__init__(manager, six, LANES if six.scalar is lane else ROW)


def _six_for(*kinds):
    """The six that scalars and sixes of these kinds make."""
    wide = any(isinstance(x, Lane) or (isinstance(x, Six) and x.scalar is lane) for x in kinds)
    return six_lanes if wide else six_floats


def _everywhere(builder, kind, value):
    """A scalar in every place of a row; a row as it is."""
    if isinstance(kind, Six):
        return value
    undefined = ir.Constant(ROW, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(INT32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(INT32, PLACES), [0] * PLACES))


def _register(operation, name):
    @infer_global(operation)
    class _Typing(AbstractTemplate):
        def generic(self, args, kws):
            fits = len(args) == 2 and any(isinstance(a, Six) for a in args) and all(
                isinstance(a, (Six, Lane, types.Float)) for a in args)
            return signature(_six_for(*args), *args) if fits else None

    def lower(context, builder, sig, args):
        if sig.return_type is six_floats:
            left, right = (_everywhere(builder, kind, x) for kind, x in zip(sig.args, args, strict=True))
            return getattr(builder, name)(left, right, flags=FLAGS)
        result = ir.Constant(LANES, ir.Undefined)
        for k in range(6):
            pair = [builder.extract_value(x, k) if isinstance(kind, Six) else splat(builder, x)
                    for kind, x in zip(sig.args, args, strict=True)]
            result = builder.insert_value(result, getattr(builder, name)(*pair, flags=FLAGS), k)
        return result

    for pair in ((Six, Six), (Six, types.Float), (types.Float, Six), (Six, Lane), (Lane, Six)):
        lower_builtin(operation, *pair)(lower)


for _operation, _name in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul")):
    _register(_operation, _name)


def six_of(x0, x1, x2, x3, x4, x5):
    """Six scalars as one value."""
    return np.array([x0, x1, x2, x3, x4, x5])


@instruction(six_of)
def _six_of(*scalars):
    kind = _six_for(*scalars)

    def make(builder, *values):
        if kind is six_lanes:
            result = ir.Constant(LANES, ir.Undefined)
            for k, value in enumerate(values):
                result = builder.insert_value(result, splat(builder, value), k)
            return result
        result = ir.Constant(ROW, [0.0] * PLACES)
        for k, value in enumerate(values):
            result = builder.insert_element(result, value, ir.Constant(INT32, k))
        return result
    return signature(kind, *(kind.scalar,) * 6), make


def columns(six):
    """The six scalars, as a tuple."""
    return tuple(six)


@instruction(columns)
def _columns(six):
    def read(builder, value):
        if six is six_lanes:
            return tuple(builder.extract_value(value, k) for k in range(6))
        return tuple(builder.extract_element(value, ir.Constant(INT32, k)) for k in range(6))
    return signature(types.UniTuple(six.scalar, 6), six), read


def store_six(array, i, six):
    """Write a six to scalars i .. i + 5 of an array; those at i + 6 and i + 7 are lost."""
    array[i:i + 6] = six


@instruction(store_six)
def _store_six(array, i, six):
    def write(builder, data, i, value):
        if six is six_floats:
            builder.store(value, builder.bitcast(builder.gep(data, [i]), ROW.as_pointer()), align=8)
            return
        place = builder.mul(i, ir.Constant(i.type, VECTOR.count))
        for k in range(6):
            at = builder.gep(data, [builder.add(place, ir.Constant(i.type, VECTOR.count * k))])
            builder.store(builder.extract_value(value, k), builder.bitcast(at, VECTOR.as_pointer()), align=8)
    return signature(types.void, array, types.intp, six), write


def load_six(array, i):
    """Scalars i .. i + 5 of an array as a six; the array goes on for two more."""
    return array[i:i + 6].copy()


@instruction(load_six)
def _load_six(array, i):
    kind = six_floats if array.ndim == 1 else six_lanes

    def read(builder, data, i):
        if kind is six_floats:
            return builder.load(builder.bitcast(builder.gep(data, [i]), ROW.as_pointer()), align=8)
        place, result = builder.mul(i, ir.Constant(i.type, VECTOR.count)), ir.Constant(LANES, ir.Undefined)
        for k in range(6):
            at = builder.gep(data, [builder.add(place, ir.Constant(i.type, VECTOR.count * k))])
            result = builder.insert_value(
                result, builder.load(builder.bitcast(at, VECTOR.as_pointer()), align=8), k)
        return result
    return signature(kind, array, types.intp), read
