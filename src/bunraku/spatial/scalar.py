"""Functions every scalar has: floats from 1-D arrays, lanes from (n, W) arrays, chosen by the array's dimensions.

Each function below has a Python body, used when the JIT is off (rows of 2-D arrays are then the lanes), and an
overload for compiled code.

Long because every function stands twice, for floats and for lanes, beside each other.
"""

import math

import numpy as np
from numba import types
from numba.extending import overload

from bunraku.jit import inline, inner
from bunraku.spatial.lanes import (
    WIDTH,
    Lane,
    float_claim,
    float_load,
    float_sincos,
    float_store,
    lane_get,
    lane_largest,
    lane_load,
    lane_maximum,
    lane_minimum,
    lane_mirror,
    lane_places,
    lane_put,
    lane_set,
    lane_sincos,
    lane_splat,
    lane_sqrt,
    lane_store,
    lane_stream,
    lane_take,
    lane_tile,
    lane_tile_on_diagonal,
    lane_total,
    lane_transpose,
    lane_where_positive,
)

ALWAYS = {"inline": "always"}


def load(array, i):
    """Scalar i of an array of scalars."""
    return array[i] if array.ndim == 1 else array[i].copy()


@overload(load, **ALWAYS)
def _load(array, i):
    if array.ndim == 1:
        return lambda array, i: float_load(array, i)
    return lambda array, i: lane_load(array, i)


def store(array, i, value):
    """Write scalar i of an array of scalars."""
    array[i] = value


@overload(store, **ALWAYS)
def _store(array, i, value):
    if array.ndim == 1:
        return lambda array, i, value: float_store(array, i, value)
    return lambda array, i, value: lane_store(array, i, value)


def constant(array, value):
    """The number as a scalar of the kind the array holds."""
    return value if array.ndim == 1 else np.full(array.shape[1], value)


@overload(constant, **ALWAYS)
def _constant(array, value):
    if array.ndim == 1:
        return lambda array, value: value
    return lambda array, value: lane_splat(value)


def sincos(x):
    """Sine and cosine."""
    return np.sin(x), np.cos(x)


@inline
def _float_sincos(x):
    if abs(x) < 1e5:
        return float_sincos(x)
    return math.sin(x), math.cos(x)


@overload(sincos, **ALWAYS)
def _sincos(x):
    if isinstance(x, Lane):
        return lambda x: lane_sincos(x)
    return lambda x: _float_sincos(x)


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


@overload(sqrt, **ALWAYS)
def _sqrt(x):
    if isinstance(x, Lane):
        return lambda x: lane_sqrt(x)
    return lambda x: math.sqrt(x)


@inline
def _smaller(a, b):
    return a if a < b else b


@inline
def _larger(a, b):
    return a if a > b else b


@inline
def _if_positive(x, a, b):
    return a if x > 0.0 else b


def minimum(a, b):
    return np.fmin(a, b)


@overload(minimum, **ALWAYS)
def _minimum(a, b):
    if isinstance(a, Lane) or isinstance(b, Lane):
        return lambda a, b: lane_minimum(a, b)
    return lambda a, b: _smaller(a, b)


def maximum(a, b):
    return np.fmax(a, b)


@overload(maximum, **ALWAYS)
def _maximum(a, b):
    if isinstance(a, Lane) or isinstance(b, Lane):
        return lambda a, b: lane_maximum(a, b)
    return lambda a, b: _larger(a, b)


def largest(x):
    """The largest number in a scalar, as a float; what is not a number does not count."""
    return np.fmax.reduce(np.atleast_1d(x))


@overload(largest, **ALWAYS)
def _largest(x):
    if isinstance(x, Lane):
        return lambda x: lane_largest(x)
    return lambda x: x


def total(x):
    """The sum of the numbers in a scalar, as a float."""
    return np.sum(x)


@overload(total, **ALWAYS)
def _total(x):
    if isinstance(x, Lane):
        return lambda x: lane_total(x)
    return lambda x: x


def where_positive(x, a, b):
    """a where x > 0, else b."""
    return np.where(x > 0, a, b) if isinstance(x, np.ndarray) else (a if x > 0 else b)


@overload(where_positive, **ALWAYS)
def _where_positive(x, a, b):
    if isinstance(x, Lane):
        return lambda x, a, b: lane_where_positive(x, a, b)
    return lambda x, a, b: _if_positive(x, a, b)


def atan2(y, x):
    return np.arctan2(y, x)


@inner
def _lane_atan2(y, x):
    result = y
    for place in range(WIDTH):
        result = lane_set(result, place, math.atan2(lane_get(y, place), lane_get(x, place)))
    return result


@overload(atan2, **ALWAYS)
def _atan2(y, x):
    if isinstance(y, Lane):
        return lambda y, x: _lane_atan2(y, x)
    return lambda y, x: math.atan2(y, x)


def nearest(x):
    """The nearest whole number."""
    return np.rint(x)


@inline
def _float_nearest(x):
    return math.floor(x + 0.5)


@inner
def _lane_nearest(x):
    result = x
    for place in range(WIDTH):
        result = lane_set(result, place, _float_nearest(lane_get(x, place)))
    return result


@overload(nearest, **ALWAYS)
def _nearest(x):
    if isinstance(x, Lane):
        return lambda x: _lane_nearest(x)
    return lambda x: _float_nearest(x)


def _transpose_block(source, row, column, target, target_row, target_column):
    block = source[row:row + WIDTH, column:column + WIDTH].T
    target[target_row:target_row + WIDTH, target_column:target_column + WIDTH] = block


@overload(_transpose_block, **ALWAYS)
def _transpose_block_compiled(source, row, column, target, target_row, target_column):
    if not isinstance(source, types.Array):
        return None
    return lambda source, row, column, target, target_row, target_column: lane_transpose(
        source, row * source.shape[1] + column, source.shape[1],
        target, target_row * target.shape[1] + target_column, target.shape[1])


def transpose_lanes(lanes, start, stride, states, first, column):
    """states[first + w, column + r] = flattened lanes[start + r stride + w] for r, w = 0 .. W - 1."""
    for r in range(WIDTH):
        states[first:first + WIDTH, column + r] = lanes.reshape(-1)[start + r * stride:start + r * stride + WIDTH]


@overload(transpose_lanes, **ALWAYS)
def _transpose_lanes(lanes, start, stride, states, first, column):
    return lambda lanes, start, stride, states, first, column: lane_transpose(
        lanes, start, stride, states, first * states.shape[1] + column, states.shape[1])


def transpose_floats(array, start, stride, target_start):
    """Copy the W x W block from `start` on, transposed, to `target_start`; rows are `stride` apart."""
    for r in range(WIDTH):
        for c in range(WIDTH):
            array[target_start + c * stride + r] = array[start + r * stride + c]


@overload(transpose_floats, **ALWAYS)
def _transpose_floats(array, start, stride, target_start):
    return lambda array, start, stride, target_start: lane_transpose(array, start, stride, array, target_start, stride)


def mirror_floats(array, start, stride):
    """Copy what is right of the diagonal of the W x W block from `start` on to what is left of it."""
    for r in range(WIDTH):
        for c in range(r):
            array[start + r * stride + c] = array[start + c * stride + r]


@overload(mirror_floats, **ALWAYS)
def _mirror_floats(array, start, stride):
    return lambda array, start, stride: lane_mirror(array, start, stride)


def tile(left, w, first, right, apart, ends, row, column, matrix, size):
    """The W x W block from (row, column) on of a symmetric matrix, and the block opposite to it.

    Entry (r, c) is 6 scalars of `left` from first + 6 r on (place w, if they are lanes) against column c of `right`
    (6, apart); zero from c = ends[r] on. `matrix` has rows of `size` floats; all but `left` are flat.
    """
    block = _block(left, w, first, right, apart, ends, row, column)
    square = matrix[:size * size].reshape(size, size)
    square[row:row + WIDTH, column:column + WIDTH] = block
    square[column:column + WIDTH, row:row + WIDTH] = block.T


def tile_on_diagonal(left, w, first, right, apart, ends, row, more, matrix, size):
    """The block from (row, row) on, symmetric by its entries right of the diagonal, to which `more` is added.

    Returns a lane: the diagonal."""
    block = np.triu(_block(left, w, first, right, apart, ends, row, row))
    block += np.triu(block, 1).T + np.diag(more[row:row + WIDTH])
    matrix[:size * size].reshape(size, size)[row:row + WIDTH, row:row + WIDTH] = block
    return np.diag(block)


def _block(left, w, first, right, apart, ends, row, column):
    across = column + np.arange(WIDTH)
    factors = np.array([[pick(left, first + 6 * r + p, w) for p in range(6)] for r in range(row, row + WIDTH)])
    lanes = np.array([right[p * apart + across] for p in range(6)])
    return np.where(ends[row:row + WIDTH, None] > across, factors @ lanes, 0.0)


@overload(tile, **ALWAYS)
def _tile(left, w, first, right, apart, ends, row, column, matrix, size):
    if left.ndim == 1:
        return lambda left, w, first, right, apart, ends, row, column, matrix, size: lane_tile(
            left, first + 6 * row, 6, 1, right, apart, ends, row, column, matrix, size)
    return lambda left, w, first, right, apart, ends, row, column, matrix, size: lane_tile(
        left, (first + 6 * row) * WIDTH + w, 6 * WIDTH, WIDTH, right, apart, ends, row, column, matrix, size)


@overload(tile_on_diagonal, **ALWAYS)
def _tile_on_diagonal(left, w, first, right, apart, ends, row, more, matrix, size):
    if left.ndim == 1:
        return lambda left, w, first, right, apart, ends, row, more, matrix, size: lane_tile_on_diagonal(
            left, first + 6 * row, 6, 1, right, apart, ends, row, more, matrix, size)
    return lambda left, w, first, right, apart, ends, row, more, matrix, size: lane_tile_on_diagonal(
        left, (first + 6 * row) * WIDTH + w, 6 * WIDTH, WIDTH, right, apart, ends, row, more, matrix, size)


def places():
    """The lane 0, 1, ..., W - 1."""
    return np.arange(float(WIDTH))


@overload(places, **ALWAYS)
def _places():
    return lambda: lane_places()


def pick(array, i, w):
    """Scalar i of an array of floats, or the float in place w of scalar i of an array of lanes."""
    return array[i] if array.ndim == 1 else array[i, w]


@overload(pick, **ALWAYS)
def _pick(array, i, w):
    if array.ndim == 1:
        return lambda array, i, w: float_load(array, i)
    return lambda array, i, w: float_load(array, i * WIDTH + w)


def take_lane(array, i):
    """W floats of an array, from element i on, as a lane."""
    return array[i:i + WIDTH].copy()


@overload(take_lane, **ALWAYS)
def _take_lane(array, i):
    return lambda array, i: lane_take(array, i)


def put_lane(array, i, value):
    """Write a lane (or a float in every place) from element i of an array on."""
    array.reshape(-1)[i:i + WIDTH] = value


@overload(put_lane, **ALWAYS)
def _put_lane(array, i, value):
    return lambda array, i, value: lane_put(array, i, value)


def _stream(target, target_start, source, source_start):
    target.reshape(-1)[target_start:target_start + WIDTH] = source.reshape(-1)[source_start:source_start + WIDTH]


@overload(_stream, **ALWAYS)
def _stream_compiled(target, target_start, source, source_start):
    return lambda target, target_start, source, source_start: lane_stream(target, target_start, source, source_start)


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
    pass


@overload(_prefetch, **ALWAYS)
def _claim_compiled(states, i):
    return lambda states, i: float_claim(states, i)


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
