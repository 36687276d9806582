"""Functions of scalars: floats from 1-D arrays or lanes from (n, W) arrays, chosen by the number of dimensions.

Each function below has a Python body, used when the JIT is off (rows of 2-D arrays are then the lanes), and beside it
its compiled form, an `instruction`. Only the sine of a float needs a branch and remains a function.
"""

import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import overload

from bunraku.compiler.numba_inside import signature
from bunraku.jit import inline, inner
from bunraku.spatial.instructions import (
    alike,
    call,
    call_library,
    call_pointwise,
    counted,
    instruction,
    kind_of,
    load_lane,
    near_sincos,
    number,
    pointwise,
    store_lane,
)
from bunraku.spatial.lanes import DOUBLE, FLAGS, INT32, VECTOR, WIDTH, Lane, lane, splat

# -- memory --------------------------------------------------------------------------------------------------------


def load(array, i):
    """Scalar i of an array, 0 <= i; avoids the test for negative indices of plain indexing."""
    return array[i] if array.ndim == 1 else array[i].copy()


@instruction(load)
def _load(array, i):
    if array.ndim == 1:
        return signature(types.float64, array, types.intp), _load_float
    return signature(lane, array, types.intp), lambda builder, data, i: load_lane(builder, data, flat(builder, i))


def _load_float(builder, data, i):
    return builder.load(builder.gep(data, [i]))


def flat(builder, row):
    """Address of a row of an (n, W) array."""
    return builder.mul(row, ir.Constant(row.type, WIDTH))


def store(array, i, value):
    """Write scalar i of an array of scalars, 0 <= i; a float is broadcast to a lane."""
    array[i] = value


@instruction(store)
def _store(array, i, value):
    if array.ndim == 1:
        def write(builder, data, i, value):
            builder.store(value, builder.gep(data, [i]))
        return signature(types.void, array, types.intp, types.float64), write

    def write_lane(builder, data, i, value):
        store_lane(builder, data, flat(builder, i), value)
    return signature(types.void, array, types.intp, kind_of(value)), write_lane


def pick(array, i, w):
    """Scalar i of an array of floats, or element w of lane i of an array of lanes."""
    return array[i] if array.ndim == 1 else array[i, w]


@instruction(pick)
def _pick(array, i, w):
    def read(builder, data, i, w):
        return _load_float(builder, data, i if array.ndim == 1 else builder.add(flat(builder, i), w))
    return signature(types.float64, array, types.intp, types.intp), read


def put_at(array, i, w, value):
    """Write element w of lane i of an array of lanes, or scalar i of an array of floats."""
    array[i if array.ndim == 1 else (i, w)] = value


@instruction(put_at)
def _put_at(array, i, w, value):
    def write(builder, data, i, w, value):
        builder.store(value, builder.gep(data, [i if array.ndim == 1 else builder.add(flat(builder, i), w)]))
    return signature(types.void, array, types.intp, types.intp, types.float64), write


def width(array):
    """Floats in a scalar of this array: 1, or W."""
    return 1 if array.ndim == 1 else array.shape[1]


@instruction(width)
def _width(array):
    places = 1 if array.ndim == 1 else WIDTH
    return signature(types.intp, array), lambda builder, data: ir.Constant(ir.IntType(64), places)


def take_lane(array, i):
    """Elements i .. i + W - 1 of an array as a lane."""
    return array[i:i + WIDTH].copy()


@instruction(take_lane)
def _take_lane(array, i):
    return signature(lane, array, types.intp), load_lane


def put_lane(array, i, value):
    """Write a lane, or a float W times, to elements i .. i + W - 1 of an array."""
    array.reshape(-1)[i:i + WIDTH] = value


@instruction(put_lane)
def _put_lane(array, i, value):
    return signature(types.void, array, types.intp, kind_of(value)), store_lane


# -- functions -----------------------------------------------------------------------------------------------------


def constant(array, value):
    """The number as a float or a lane, whichever the array has."""
    return value if array.ndim == 1 else np.full(array.shape[1], value)


@instruction(constant)
def _constant(array, value):
    if array.ndim == 1:
        return signature(types.float64, array, types.float64), lambda builder, data, value: value
    return signature(lane, array, types.float64), lambda builder, data, value: splat(builder, value)


def places():
    """The lane 0, 1, ..., W - 1."""
    return np.arange(float(WIDTH))


@instruction(places)
def _places():
    return signature(lane), lambda builder: counted()


def sincos(x):
    """Sine and cosine."""
    return np.sin(x), np.cos(x)


@overload(sincos, inline="always")
def _sincos(x):
    if isinstance(x, Lane):
        return lambda x: _direct_sincos(x)
    return lambda x: _float_sincos(x)


@inline
def _float_sincos(x):
    if abs(x) < 1e5:
        return _direct_sincos(x)
    return math.sin(x), math.cos(x)


def _direct_sincos(x):
    """Sine and cosine without a function call; floats must be below 1e5."""
    return np.sin(x), np.cos(x)


@instruction(_direct_sincos)
def _direct_sincos_compiled(x):
    def of_lane(builder, x):
        near = builder.fcmp_ordered("<", builder.fmul(x, x), number(VECTOR, 1e24))  # beyond: NaN
        pair = near_sincos(builder, builder.select(near, x, number(VECTOR, 0.0)))
        return tuple(builder.select(near, y, number(VECTOR, math.nan)) for y in pair)
    kind = kind_of(x)
    return signature(types.UniTuple(kind, 2), kind), of_lane if kind == lane else near_sincos


@inline
def sines(angles, out, first):
    """Sines of floats, W at once, to out[first ...], followed by their cosines."""
    n = angles.shape[0]
    if n >= WIDTH:
        k = 0
        while k < n:
            at = min(k, n - WIDTH)
            s, c = sincos(take_lane(angles, at))
            put_lane(out, first + at, s)
            put_lane(out, first + n + at, c)
            k += WIDTH
    for k in range(n):
        if n < WIDTH or not abs(load(angles, k)) < 1e5:
            s, c = sincos(load(angles, k))
            store(out, first + k, s)
            store(out, first + n + k, c)


def sqrt(x):
    return np.sqrt(x)


@instruction(sqrt)
def _sqrt(x):
    def root(builder, x):
        return call_library(builder, "sqrt", x) if x.type == DOUBLE else call_pointwise(builder, "sqrt", x)
    return pointwise(x), root


def minimum(a, b):
    return np.fmin(a, b)


@instruction(minimum)
def _minimum(a, b):
    return pointwise(a, b), lambda builder, a, b: _chosen(builder, "<", *alike(builder, a, b))


def maximum(a, b):
    return np.fmax(a, b)


@instruction(maximum)
def _maximum(a, b):
    return pointwise(a, b), lambda builder, a, b: _chosen(builder, ">", *alike(builder, a, b))


def _chosen(builder, comparison, a, b):
    """a if a < b (or >) else b, elementwise: one instruction, where LLVM's minnum needs three for NaN."""
    return builder.select(builder.fcmp_ordered(comparison, a, b), a, b)


def where_positive(x, a, b):
    """a where x > 0, else b."""
    return np.where(x > 0, a, b) if isinstance(x, np.ndarray) else (a if x > 0 else b)


@instruction(where_positive)
def _where_positive(x, a, b):
    def choose(builder, *values):
        x, a, b = alike(builder, *values)
        return builder.select(builder.fcmp_ordered(">", x, number(x.type, 0.0)), a, b)
    return pointwise(x, a, b), choose


def largest(x):
    """The largest element of a scalar, as a float; NaN is ignored."""
    return np.fmax.reduce(np.atleast_1d(x))


@instruction(largest)
def _largest(x):
    def reduced(builder, x):
        return x if x.type == DOUBLE else call(builder, f"llvm.vector.reduce.fmax.v{WIDTH}f64", DOUBLE, x)
    return signature(types.float64, kind_of(x)), reduced


def total(x):
    """The sum of the elements of a scalar, as a float."""
    return np.sum(x)


@instruction(total)
def _total(x):
    def reduced(builder, x):
        if x.type == DOUBLE:
            return x
        zero = number(DOUBLE, 0.0)
        return call(builder, f"llvm.vector.reduce.fadd.v{WIDTH}f64", DOUBLE, zero, x, fastmath=FLAGS)
    return signature(types.float64, kind_of(x)), reduced


def atan2(y, x):
    return np.arctan2(y, x)


@instruction(atan2)
def _atan2(y, x):
    def angle(builder, *values):
        y, x = alike(builder, *values)
        if y.type == DOUBLE:
            return call_library(builder, "atan2", y, x)
        result = y
        for place in (ir.Constant(INT32, k) for k in range(WIDTH)):
            each = (builder.extract_element(value, place) for value in (y, x))
            result = builder.insert_element(result, call_library(builder, "atan2", *each), place)
        return result
    return pointwise(y, x), angle


def nearest(x):
    """The nearest whole number."""
    return np.rint(x)


@instruction(nearest)
def _nearest(x):
    return pointwise(x), lambda builder, x: call_pointwise(builder, "floor", builder.fadd(x, number(x.type, 0.5)))


# -- whole arrays ---------------------------------------------------------------------------------------------------


@inline
def clear(array):
    """Fill an array of scalars with zeros."""
    for i in range(array.shape[0]):
        store(array, i, constant(array, 0.0))


@inner
def copy(array, source, count, target):
    """Copy `count` scalars of an array to another position in it."""
    for k in range(count):
        store(array, target + k, load(array, source + k))
