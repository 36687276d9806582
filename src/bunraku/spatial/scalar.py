"""Functions every scalar has: floats from 1-D arrays, lanes from (n, W) arrays, chosen by the array's dimensions.

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
    diagonal_of,
    instruction,
    kind_of,
    lane_pointer,
    load_lane,
    load_rows,
    mirrored,
    moved,
    near_sincos,
    number,
    pointwise,
    products,
    store_lane,
    store_rows,
    transposed,
    with_diagonal,
)
from bunraku.spatial.lanes import DOUBLE, FLAGS, INT32, VECTOR, WIDTH, Lane, lane, splat

# -- memory --------------------------------------------------------------------------------------------------------


def load(array, i):
    """Scalar i of an array of scalars, 0 <= i: plain indexing would first ask whether i is negative."""
    return array[i] if array.ndim == 1 else array[i].copy()


@instruction(load)
def _load(array, i):
    if array.ndim == 1:
        return signature(types.float64, array, types.intp), _load_float
    return signature(lane, array, types.intp), lambda builder, data, i: load_lane(builder, data, _flat(builder, i))


def _load_float(builder, data, i):
    return builder.load(builder.gep(data, [i]))


def _flat(builder, row):
    """Where a row of an (n, W) array starts."""
    return builder.mul(row, ir.Constant(row.type, WIDTH))


def store(array, i, value):
    """Write scalar i of an array of scalars, 0 <= i; a float goes to every place of a lane."""
    array[i] = value


@instruction(store)
def _store(array, i, value):
    if array.ndim == 1:
        def write(builder, data, i, value):
            builder.store(value, builder.gep(data, [i]))
        return signature(types.void, array, types.intp, types.float64), write

    def write_lane(builder, data, i, value):
        store_lane(builder, data, _flat(builder, i), value)
    return signature(types.void, array, types.intp, kind_of(value)), write_lane


def pick(array, i, w):
    """Scalar i of an array of floats, or the float in place w of scalar i of an array of lanes."""
    return array[i] if array.ndim == 1 else array[i, w]


@instruction(pick)
def _pick(array, i, w):
    def read(builder, data, i, w):
        return _load_float(builder, data, i if array.ndim == 1 else builder.add(_flat(builder, i), w))
    return signature(types.float64, array, types.intp, types.intp), read


def take_lane(array, i):
    """W floats of an array, from element i on, as a lane."""
    return array[i:i + WIDTH].copy()


@instruction(take_lane)
def _take_lane(array, i):
    return signature(lane, array, types.intp), load_lane


def put_lane(array, i, value):
    """Write a lane (or a float in every place) from element i of an array on."""
    array.reshape(-1)[i:i + WIDTH] = value


@instruction(put_lane)
def _put_lane(array, i, value):
    return signature(types.void, array, types.intp, kind_of(value)), store_lane


# -- functions -----------------------------------------------------------------------------------------------------


def constant(array, value):
    """The number as a scalar of the kind the array holds."""
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
    """Sine and cosine without a call; of floats, only of those below 1e5."""
    return np.sin(x), np.cos(x)


@instruction(_direct_sincos)
def _direct_sincos_compiled(x):
    def of_lane(builder, x):
        near = builder.fcmp_ordered("<", builder.fmul(x, x), number(VECTOR, 1e24))  # beyond: not a number
        pair = near_sincos(builder, builder.select(near, x, number(VECTOR, 0.0)))
        return tuple(builder.select(near, y, number(VECTOR, math.nan)) for y in pair)
    kind = kind_of(x)
    return signature(types.UniTuple(kind, 2), kind), of_lane if kind == lane else near_sincos


@inline
def sines(angles, out, first):
    """Sines of floats, W at once, to out[first ...], and behind them their cosines."""
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
    """a if a < b (or >) else b, in every place: one instruction, where LLVM's minnum needs three for NaN."""
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
    """The largest number in a scalar, as a float; what is not a number does not count."""
    return np.fmax.reduce(np.atleast_1d(x))


@instruction(largest)
def _largest(x):
    def reduced(builder, x):
        return x if x.type == DOUBLE else call(builder, f"llvm.vector.reduce.fmax.v{WIDTH}f64", DOUBLE, x)
    return signature(types.float64, kind_of(x)), reduced


def total(x):
    """The sum of the numbers in a scalar, as a float."""
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


# -- blocks of W x W -----------------------------------------------------------------------------------------------


def _transpose(source, start, stride, target, target_start, target_stride):
    """Copy a block, transposed: target[c, r] = source[r, c], both given by flat start and row stride.

    The way between (B, n) arrays of states and (n, W) lanes.
    """
    source, target = source.reshape(-1), target.reshape(-1)
    for r in range(WIDTH):
        for c in range(WIDTH):
            target[target_start + c * target_stride + r] = source[start + r * stride + c]


@instruction(_transpose)
def _transpose_compiled(source, start, stride, target, target_start, target_stride):
    def copy(builder, source, start, stride, target, target_start, target_stride):
        rows = transposed(builder, load_rows(builder, source, start, stride))
        store_rows(builder, target, target_start, target_stride, rows)
    i = types.intp
    return signature(types.void, source, i, i, target, i, i), copy


@inline
def _transpose_block(source, row, column, target, target_row, target_column):
    _transpose(source, row * source.shape[1] + column, source.shape[1],
               target, target_row * target.shape[1] + target_column, target.shape[1])


@inline
def transpose_lanes(lanes, start, stride, states, first, column):
    """states[first + w, column + r] = flattened lanes[start + r stride + w] for r, w = 0 .. W - 1."""
    _transpose(lanes, start, stride, states, first * states.shape[1] + column, states.shape[1])


@inline
def floats_to_lanes(floats, first, apart, count, lanes, row):
    """lanes[row + i, w] = floats[first + w apart + i] for i < count."""
    column = 0
    if count >= WIDTH:
        while column < count:
            at = min(column, count - WIDTH)  # the last block with some a second time
            _transpose(floats, first + at, apart, lanes, (row + at) * WIDTH, WIDTH)
            column += WIDTH
    for i in range(column, count):
        for w in range(WIDTH):
            lanes[row + i, w] = floats[first + w * apart + i]


@inline
def lanes_to_floats(lanes, row, count, floats, first, apart):
    """floats[first + w apart + i] = lanes[row + i, w] for i < count."""
    column = 0
    if count >= WIDTH:
        while column < count:
            at = min(column, count - WIDTH)
            _transpose(lanes, (row + at) * WIDTH, WIDTH, floats, first + at, apart)
            column += WIDTH
    for i in range(column, count):
        for w in range(WIDTH):
            floats[first + w * apart + i] = lanes[row + i, w]


@inline
def transpose_floats(array, start, stride, target_start):
    """Copy the W x W block from `start` on, transposed, to `target_start`; rows are `stride` apart."""
    _transpose(array, start, stride, array, target_start, stride)


def mirror_floats(array, start, stride):
    """Copy what is right of the diagonal of the W x W block from `start` on to what is left of it."""
    for r in range(WIDTH):
        for c in range(r):
            array[start + r * stride + c] = array[start + c * stride + r]


@instruction(mirror_floats)
def _mirror_floats(array, start, stride):
    def copy(builder, data, start, stride):
        store_rows(builder, data, start, stride, mirrored(builder, load_rows(builder, data, start, stride)))
    return signature(types.void, array, types.intp, types.intp), copy


def tile(left, w, first, right, apart, ends, row, column, matrix, size):
    """The W x W block from (row, column) on of a symmetric matrix, and the block opposite to it.

    Entry (r, c) is 6 scalars of `left` from first + 6 r on (place w, if they are lanes) against column c of `right`
    (6, apart); zero from c = ends[r] on. `matrix` has rows of `size` floats; all but `left` are flat.
    """
    block = _block(left, w, first, right, apart, ends, row, column)
    square = matrix[:size * size].reshape(size, size)
    square[row:row + WIDTH, column:column + WIDTH] = block
    square[column:column + WIDTH, row:row + WIDTH] = block.T


@instruction(tile)
def _tile(left, w, first, right, apart, ends, row, column, matrix, size):
    def write(builder, data, w, first, right, apart, ends, row, column, matrix, size):
        factors = _factors(builder, left.ndim, data, w, first, row)
        rows = products(builder, factors, right, apart, ends, row, column)
        for block, (at, across) in ((rows, (row, column)), (transposed(builder, rows), (column, row))):
            store_rows(builder, matrix, builder.add(builder.mul(at, size), across), size, block)
    i = types.intp
    return signature(types.void, left, i, i, right, i, ends, i, i, matrix, i), write


def tile_on_diagonal(left, w, first, right, apart, ends, row, more, matrix, size):
    """The block from (row, row) on, symmetric by its entries right of the diagonal, to which `more` is added.

    Returns a lane: the diagonal."""
    block = np.triu(_block(left, w, first, right, apart, ends, row, row))
    block += np.triu(block, 1).T + np.diag(more[row:row + WIDTH])
    matrix[:size * size].reshape(size, size)[row:row + WIDTH, row:row + WIDTH] = block
    return np.diag(block)


@instruction(tile_on_diagonal)
def _tile_on_diagonal(left, w, first, right, apart, ends, row, more, matrix, size):
    def write(builder, data, w, first, right, apart, ends, row, more, matrix, size):
        rows = products(builder, _factors(builder, left.ndim, data, w, first, row), right, apart, ends, row, row)
        more = load_lane(builder, more, row)
        rows = with_diagonal(builder, mirrored(builder, rows), [builder.fadd(entry, more) for entry in rows])
        store_rows(builder, matrix, builder.add(builder.mul(row, size), row), size, rows)
        return diagonal_of(builder, rows)
    i = types.intp
    return signature(lane, left, i, i, right, i, ends, i, more, matrix, i), write


def _factors(builder, dimensions, data, w, first, row):
    """Addresses of the 6 scalars of each row of a tile, as a function of row and part."""
    start = moved(builder, first, (row, 6))
    if dimensions == 2:
        start = builder.add(_flat(builder, start), w)
    apart = ir.Constant(start.type, 1 if dimensions == 1 else WIDTH)
    return lambda r, p: builder.gep(data, [moved(builder, start, (apart, 6 * r + p))])


def _block(left, w, first, right, apart, ends, row, column):
    across = column + np.arange(WIDTH)
    factors = np.array([[pick(left, first + 6 * r + p, w) for p in range(6)] for r in range(row, row + WIDTH)])
    lanes = np.array([right[p * apart + across] for p in range(6)])
    return np.where(ends[row:row + WIDTH, None] > across, factors @ lanes, 0.0)


# -- between arrays ------------------------------------------------------------------------------------------------


def _stream(target, target_start, source, source_start):
    """Copy W doubles past the caches, between flattened arrays; the target's address must be a multiple of 8 W."""
    target.reshape(-1)[target_start:target_start + WIDTH] = source.reshape(-1)[source_start:source_start + WIDTH]


@instruction(_stream)
def _stream_compiled(target, target_start, source, source_start):
    def copy(builder, target, target_start, source, source_start):
        value = load_lane(builder, source, source_start)
        written = builder.store(value, lane_pointer(builder, target, target_start), align=8 * WIDTH)
        written.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(INT32, 1)]))
    return signature(types.void, target, types.intp, source, types.intp), copy


@inline
def stream_rows(source, count, target, first, misaligned):
    """target[first + k] = source[k] for k < count, past the caches: for results that are too many to stay in them.

    `misaligned`: how many doubles the target's memory starts after a multiple of 8 W bytes.
    """
    n = source.shape[1]
    for k in range(count):
        start = (first + k) * n
        head = min(n, (-(start + misaligned)) % WIDTH)
        for c in range(head):
            target[first + k, c] = source[k, c]
        c = head
        while c + WIDTH <= n:
            _stream(target, start + c, source, k * n + c)
            c += WIDTH
        for rest in range(c, n):
            target[first + k, rest] = source[k, rest]


def _prefetch(states, i):
    """Ask for the cache line of element i of the flattened array, to write it soon; harmless beyond its end."""


@instruction(_prefetch)
def _prefetch_compiled(states, i):
    def ask(builder, data, i):
        where = builder.bitcast(builder.gep(data, [i]), ir.IntType(8).as_pointer())
        how = (ir.Constant(INT32, k) for k in (1, 3, 1))  # write, keep close, data
        call(builder, "llvm.prefetch.p0i8", ir.VoidType(), where, *how)
    return signature(types.void, states, types.intp), ask


@inline
def prefetch(states, first):
    """Fetch the memory of W states while something else is computed, so that `scatter` need not wait for it."""
    n = states.shape[1]
    for k in range(first * n, (first + WIDTH) * n, 8):
        _prefetch(states, k)


@inline
def clear(array):
    """Zero in every place of an array of scalars."""
    for i in range(array.shape[0]):
        store(array, i, constant(array, 0.0))


@inner
def copy(array, source, count, target):
    """Copy `count` scalars of an array to another place of it."""
    for k in range(count):
        store(array, target + k, load(array, source + k))


@inline
def gather(states, first, lanes):
    """lanes[i, w] = states[first + w, i]; states beyond the last are filled with the last."""
    count, n = states.shape
    column = 0
    if first + WIDTH <= count:
        while column + WIDTH <= n:
            _transpose_block(states, first, column, lanes, column, 0)
            column += WIDTH
        if column < n and n >= WIDTH:  # the rest with some columns a second time
            _transpose_block(states, first, n - WIDTH, lanes, n - WIDTH, 0)
            column = n
    for i in range(column, n):
        for w in range(WIDTH):
            lanes[i, w] = states[min(first + w, count - 1), i]


@inline
def scatter(lanes, states, first, at=0):
    """states[first + w, at + i] = lanes[i, w] for the states that exist."""
    count, n = states.shape[0], lanes.shape[0]
    column = 0
    if first + WIDTH <= count:
        while column + WIDTH <= n:
            _transpose_block(lanes, column, 0, states, first, at + column)
            column += WIDTH
        if column < n and n >= WIDTH:
            _transpose_block(lanes, n - WIDTH, 0, states, first, at + n - WIDTH)
            column = n
    for i in range(column, n):
        for w in range(min(WIDTH, count - first)):
            states[first + w, at + i] = lanes[i, w]
