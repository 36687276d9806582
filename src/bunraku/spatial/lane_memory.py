"""Between arrays of floats and lanes: W x W blocks, transposed or as products, and conversion from and to batches.

A batch of states is a (B, n) array; lanes are (n, W). Each function has a Python body, used when the JIT is off, and
the larger ones beside it a compiled form, an `instruction`.
"""

import numpy as np
from llvmlite import ir
from numba import types

from bunraku.compiler.numba_inside import signature
from bunraku.jit import inline
from bunraku.spatial.instructions import (
    call,
    diagonal_of,
    instruction,
    lane_pointer,
    load_lane,
    load_rows,
    mirrored,
    moved,
    products,
    store_rows,
    transposed,
    with_diagonal,
)
from bunraku.spatial.lanes import INT32, WIDTH, lane
from bunraku.spatial.scalar import flat, pick

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
            at = min(column, count - WIDTH)  # the last block overlaps the one before
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
    """Copy the W x W block at `start`, transposed, to `target_start`; rows are `stride` apart."""
    _transpose(array, start, stride, array, target_start, stride)


def mirror_floats(array, start, stride):
    """Copy the upper triangle of the W x W block at `start` to its lower triangle."""
    for r in range(WIDTH):
        for c in range(r):
            array[start + r * stride + c] = array[start + c * stride + r]


@instruction(mirror_floats)
def _mirror_floats(array, start, stride):
    def copy(builder, data, start, stride):
        store_rows(builder, data, start, stride, mirrored(builder, load_rows(builder, data, start, stride)))
    return signature(types.void, array, types.intp, types.intp), copy


def tile(left, w, first, right, apart, ends, row, column, matrix, size):
    """The W x W block at (row, column) of a symmetric matrix, and its mirror image.

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
    """The symmetric block at (row, row), from its upper triangle, with `more` added to the diagonal.

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
        start = builder.add(flat(builder, start), w)
    apart = ir.Constant(start.type, 1 if dimensions == 1 else WIDTH)
    return lambda r, p: builder.gep(data, [moved(builder, start, (apart, 6 * r + p))])


def _block(left, w, first, right, apart, ends, row, column):
    across = column + np.arange(WIDTH)
    factors = np.array([[pick(left, first + 6 * r + p, w) for p in range(6)] for r in range(row, row + WIDTH)])
    lanes = np.array([right[p * apart + across] for p in range(6)])
    return np.where(ends[row:row + WIDTH, None] > across, factors @ lanes, 0.0)


# -- between arrays ------------------------------------------------------------------------------------------------


def _stream(target, target_start, source, source_start):
    """Copy W doubles between flattened arrays, bypassing the caches; the target's address is a multiple of 8 W."""
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
    """target[first + k] = source[k] for k < count, bypassing the caches: for results too large to stay in them.

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
    """Prefetch the cache line of element i of the flattened array for writing; i may be beyond the end."""


@instruction(_prefetch)
def _prefetch_compiled(states, i):
    def ask(builder, data, i):
        where = builder.bitcast(builder.gep(data, [i]), ir.IntType(8).as_pointer())
        how = (ir.Constant(INT32, k) for k in (1, 3, 1))  # write, keep close, data
        call(builder, "llvm.prefetch.p0i8", ir.VoidType(), where, *how)
    return signature(types.void, states, types.intp), ask


@inline
def prefetch(states, first):
    """Prefetch the memory of W states during other computations, so that `scatter` does not wait for it."""
    n = states.shape[1]
    for k in range(first * n, (first + WIDTH) * n, 8):
        _prefetch(states, k)


@inline
def gather(states, first, lanes):
    """lanes[i, w] = states[first + w, i]; states beyond the last repeat it."""
    count, n = states.shape
    column = 0
    if first + WIDTH <= count:
        while column + WIDTH <= n:
            _transpose_block(states, first, column, lanes, column, 0)
            column += WIDTH
        if column < n and n >= WIDTH:  # the last block overlaps the one before
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
