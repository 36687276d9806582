"""The lane: W doubles in one SIMD register, as a scalar type of Numba.

A kernel written for floats compiles for lanes unchanged: `+ - * /`, negation and the functions of `scalar.py` work
on both. W follows the processor (8 with AVX-512, 4 with AVX, else 2). Lanes hold W states of one mechanism, or W
chunks of one mechanism, and never meet Python: arrays of shape (n, W) hold them outside.

Long because it is one Numba type: its data model, arithmetic, memory access and functions.
"""

import math
import operator
import os

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model

from bunraku.jit import FASTMATH

FLAGS = tuple(sorted(FASTMATH))


def _width() -> int:
    asked = os.environ.get("BUNRAKU_LANE_WIDTH")
    if asked:
        if asked not in ("2", "4", "8"):
            raise ValueError(f"BUNRAKU_LANE_WIDTH is {asked!r}; it can be 2, 4 or 8")
        return int(asked)
    features = llvm.get_host_cpu_features()
    return 8 if features.get("avx512f") else 4 if features.get("avx") else 2


WIDTH = _width()
DOUBLE = ir.DoubleType()
INT32 = ir.IntType(32)
VECTOR = ir.VectorType(DOUBLE, WIDTH)
BITS = ir.VectorType(ir.IntType(64), WIDTH)


class Lane(types.Type):
    """Numba type of W doubles."""

    def __init__(self):
        super().__init__(name=f"f64x{WIDTH}")


lane = Lane()


@register_model(Lane)
class _LaneModel(models.PrimitiveModel):
    def __init__(self, manager, numba_type):
        super().__init__(manager, numba_type, VECTOR)


def constant(value):
    return ir.Constant(VECTOR, [float(value)] * WIDTH)


def splat(builder, value):
    """A scalar in every place; a lane as it is."""
    if isinstance(value.type, ir.VectorType):
        return value
    undefined = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(INT32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(INT32, WIDTH), [0] * WIDTH))


def _is_lane_pair(args):
    return (len(args) == 2 and any(isinstance(a, Lane) for a in args)
            and all(isinstance(a, (Lane, types.Float)) for a in args))


def _register_arithmetic(operation, instruction):
    @infer_global(operation)
    class _Typing(AbstractTemplate):
        def generic(self, args, kws):
            return signature(lane, *args) if _is_lane_pair(args) else None

    def lower(context, builder, sig, args):
        return getattr(builder, instruction)(splat(builder, args[0]), splat(builder, args[1]), flags=FLAGS)

    for pair in ((Lane, Lane), (Lane, types.Float), (types.Float, Lane)):
        lower_builtin(operation, *pair)(lower)


for _operation, _instruction in ((operator.add, "fadd"), (operator.sub, "fsub"),
                                 (operator.mul, "fmul"), (operator.truediv, "fdiv")):
    _register_arithmetic(_operation, _instruction)


@infer_global(operator.neg)
class _NegTyping(AbstractTemplate):
    def generic(self, args, kws):
        return signature(lane, lane) if isinstance(args[0], Lane) else None


@lower_builtin(operator.neg, Lane)
def _neg(context, builder, sig, args):
    return builder.fneg(args[0])


# -- memory ------------------------------------------------------------------------------------------------------

def _pointer(context, builder, array_type, array, index):
    """Address of element `index` of the flattened C-contiguous array, as a pointer to a vector."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), VECTOR.as_pointer())


@intrinsic
def lane_load(typingctx, array, row):
    """Row `row` of a C-contiguous (n, W) array."""
    def generate(context, builder, sig, args):
        index = builder.mul(args[1], ir.Constant(args[1].type, WIDTH))
        load = builder.load(_pointer(context, builder, sig.args[0], args[0], index))
        load.align = 8
        return load
    return lane(array, types.intp), generate


@intrinsic
def lane_store(typingctx, array, row, value):
    """Write a lane (or a float in every place) to row `row` of a C-contiguous (n, W) array."""
    def generate(context, builder, sig, args):
        index = builder.mul(args[1], ir.Constant(args[1].type, WIDTH))
        store = builder.store(splat(builder, args[2]), _pointer(context, builder, sig.args[0], args[0], index))
        store.align = 8
        return context.get_dummy_value()
    return types.void(array, types.intp, value), generate


@intrinsic
def float_load(typingctx, array, i):
    """Element i of a 1-D array, 0 <= i: plain indexing would first ask whether i is negative."""
    def generate(context, builder, sig, args):
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return builder.load(builder.gep(data, [args[1]]))
    return types.float64(array, types.intp), generate


@intrinsic
def float_store(typingctx, array, i, value):
    """Write element i of a 1-D array, 0 <= i."""
    def generate(context, builder, sig, args):
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        builder.store(args[2], builder.gep(data, [args[1]]))
        return context.get_dummy_value()
    return types.void(array, types.intp, types.float64), generate


@intrinsic
def float_claim(typingctx, array, i):
    """Ask for the cache line of element i of the flattened array, to write it soon; harmless beyond its end."""
    def generate(context, builder, sig, args):
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        byte, name = ir.IntType(8).as_pointer(), "llvm.prefetch.p0i8"
        kind = ir.FunctionType(ir.VoidType(), [byte, INT32, INT32, INT32])
        prefetch = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        where = builder.bitcast(builder.gep(data, [args[1]]), byte)
        builder.call(prefetch, [where, *(ir.Constant(INT32, k) for k in (1, 3, 1))])  # write, keep close, data
        return context.get_dummy_value()
    return types.void(array, types.intp), generate


@intrinsic
def lane_places(typingctx):
    """The lane 0, 1, ..., W - 1."""
    return lane(), lambda context, builder, sig, args: ir.Constant(VECTOR, [float(place) for place in range(WIDTH)])


@intrinsic
def lane_splat(typingctx, value):
    """A lane with the float in every place."""
    return lane(types.float64), lambda context, builder, sig, args: splat(builder, args[0])


def _row_pointers(context, builder, array_type, array, start, stride):
    """Addresses of the W rows of a block, given by its flat start and row stride."""
    return [_pointer(context, builder, array_type, array,
                     builder.add(start, builder.mul(stride, ir.Constant(start.type, row)))) for row in range(WIDTH)]


def _load_rows(context, builder, array_type, array, start, stride):
    rows = [builder.load(pointer) for pointer in _row_pointers(context, builder, array_type, array, start, stride)]
    for load in rows:
        load.align = 8
    return rows


def _store_rows(context, builder, array_type, array, start, stride, rows):
    for row, pointer in zip(rows, _row_pointers(context, builder, array_type, array, start, stride), strict=True):
        builder.store(row, pointer).align = 8


def _transposed(builder, rows):
    """A W x W block in registers, transposed: log2(W) stages of shuffles."""
    mask, span = ir.VectorType(INT32, WIDTH), 1
    while span < WIDTH:  # exchange blocks of size span between rows r and r + span
        low = [i if not i & span else WIDTH + i - span for i in range(WIDTH)]
        high = [i + span if not i & span else WIDTH + i for i in range(WIDTH)]
        swapped = list(rows)
        for row in range(WIDTH):
            if not row & span:
                a, b = rows[row], rows[row + span]
                swapped[row] = builder.shuffle_vector(a, b, ir.Constant(mask, low))
                swapped[row + span] = builder.shuffle_vector(a, b, ir.Constant(mask, high))
        rows = swapped
        span *= 2
    return rows


@intrinsic
def lane_transpose(typingctx, source, source_start, source_stride, target, target_start, target_stride):
    """Copy a W x W block, transposed: target[c, r] = source[r, c], both given by flat start and row stride.

    The way between (B, n) arrays of states and (n, W) lanes.
    """
    def generate(context, builder, sig, args):
        source, start, stride, target, target_start, target_stride = args
        rows = _transposed(builder, _load_rows(context, builder, sig.args[0], source, start, stride))
        _store_rows(context, builder, sig.args[3], target, target_start, target_stride, rows)
        return context.get_dummy_value()
    i = types.intp
    return types.void(source, i, i, target, i, i), generate


def _where(builder, chosen, rows, others):
    """The rows of a W x W block where chosen(row, column), else those of others."""
    flag = ir.IntType(1)
    masks = [ir.Constant(ir.VectorType(flag, WIDTH), [flag(chosen(r, c)) for c in range(WIDTH)]) for r in range(WIDTH)]
    return [builder.select(*three) for three in zip(masks, rows, others, strict=True)]


@intrinsic
def lane_mirror(typingctx, array, start, stride):
    """Copy what is right of the diagonal of a W x W block to what is left of it."""
    def generate(context, builder, sig, args):
        array, start, stride = args
        rows = _load_rows(context, builder, sig.args[0], array, start, stride)
        rows = _where(builder, lambda r, c: c < r, _transposed(builder, rows), rows)
        _store_rows(context, builder, sig.args[0], array, start, stride, rows)
        return context.get_dummy_value()
    return types.void(array, types.intp, types.intp), generate


def _tile(context, builder, sig, factors, row, column):
    """Rows of a W x W block in registers: entry (r, c) is the sum over p < 6 of left[left_start + r left_row +
    p left_part] * right[p right_part + column + c], or zero from column + c = ends[row + r] on."""
    left, left_start, left_row, left_part, right, right_part, ends = factors

    def at(first, *steps):
        for stride, count in steps:
            first = builder.add(first, builder.mul(stride, ir.Constant(first.type, count)))
        return first

    def number(array_type, array, index):
        data = context.make_array(array_type)(context, builder, array).data
        return splat(builder, builder.load(builder.gep(data, [index])))

    lanes, one = [], ir.Constant(row.type, 1)
    for p in range(6):
        lanes.append(builder.load(_pointer(context, builder, sig.args[4], right, at(column, (right_part, p)))))
        lanes[-1].align = 8
    here = builder.fadd(splat(builder, builder.sitofp(column, DOUBLE)),
                        ir.Constant(VECTOR, [float(place) for place in range(WIDTH)]))
    rows = []
    for r in range(WIDTH):
        entry = constant(0.0)
        for p in range(6):
            factor = number(sig.args[0], left, at(left_start, (left_row, r), (left_part, p)))
            entry = builder.fadd(entry, builder.fmul(factor, lanes[p], flags=FLAGS), flags=FLAGS)
        reached = builder.fcmp_ordered(">", number(sig.args[6], ends, at(row, (one, r))), here)
        rows.append(builder.select(reached, entry, constant(0.0)))
    return rows


@intrinsic
def lane_tile(typingctx, left, left_start, left_row, left_part, right, right_part, ends, row, column, matrix, size):
    """A W x W block (`_tile`) of a matrix of `size` columns, and transposed on the other side of the diagonal."""
    def generate(context, builder, sig, args):
        *factors, row, column, matrix, size = args
        rows = _tile(context, builder, sig, factors, row, column)
        for block, start in ((rows, (row, column)), (_transposed(builder, rows), (column, row))):
            start = builder.add(builder.mul(start[0], size), start[1])
            _store_rows(context, builder, sig.args[9], matrix, start, size, block)
        return context.get_dummy_value()
    i = types.intp
    return types.void(left, i, i, i, right, i, ends, i, i, matrix, i), generate


@intrinsic
def lane_tile_on_diagonal(typingctx, left, left_start, left_row, left_part, right, right_part, ends, row, more, matrix,
                          size):
    """A W x W block (`_tile`) on the diagonal, made symmetric by what is right of it, plus more[row + r] at (r, r).

    Returns the diagonal.
    """
    def generate(context, builder, sig, args):
        *factors, row, more, matrix, size = args
        rows = _tile(context, builder, sig, factors, row, row)
        more = builder.load(_pointer(context, builder, sig.args[8], more, row))
        more.align = 8
        sums = [builder.fadd(entry, more) for entry in rows]
        rows = _where(builder, lambda r, c: c < r, _transposed(builder, rows), rows)
        rows = _where(builder, lambda r, c: c == r, sums, rows)
        start = builder.add(builder.mul(row, size), row)
        _store_rows(context, builder, sig.args[9], matrix, start, size, rows)
        diagonal = rows[0]
        for r, entry in enumerate(rows):
            chosen = ir.Constant(ir.VectorType(ir.IntType(1), WIDTH), [ir.IntType(1)(c == r) for c in range(WIDTH)])
            diagonal = builder.select(chosen, entry, diagonal)
        return diagonal
    i = types.intp
    return lane(left, i, i, i, right, i, ends, i, more, matrix, i), generate


@intrinsic
def lane_stream(typingctx, target, target_start, source, source_start):
    """Copy W doubles past the caches, between flattened arrays; the target's address must be a multiple of 8 W."""
    def generate(context, builder, sig, args):
        target, target_start, source, source_start = args
        load = builder.load(_pointer(context, builder, sig.args[2], source, source_start))
        load.align = 8
        store = builder.store(load, _pointer(context, builder, sig.args[0], target, target_start))
        store.align = 8 * WIDTH
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(INT32, 1)]))
        return context.get_dummy_value()
    return types.void(target, types.intp, source, types.intp), generate


@intrinsic
def lane_take(typingctx, array, i):
    """W floats of the flattened array, from element i on."""
    def generate(context, builder, sig, args):
        load = builder.load(_pointer(context, builder, sig.args[0], args[0], args[1]))
        load.align = 8
        return load
    return lane(array, types.intp), generate


@intrinsic
def lane_put(typingctx, array, i, value):
    """Write a lane (or a float in every place) from element i of the flattened array on."""
    def generate(context, builder, sig, args):
        store = builder.store(splat(builder, args[2]), _pointer(context, builder, sig.args[0], args[0], args[1]))
        store.align = 8
        return context.get_dummy_value()
    return types.void(array, types.intp, value), generate


# -- functions ---------------------------------------------------------------------------------------------------

def _vector_intrinsic(builder, name):
    name = f"llvm.{name}.v{WIDTH}f64"
    known = builder.module.globals.get(name)
    return known or ir.Function(builder.module, ir.FunctionType(VECTOR, [VECTOR]), name)


@intrinsic
def lane_sqrt(typingctx, x):
    return lane(lane), lambda context, builder, sig, args: builder.call(_vector_intrinsic(builder, "sqrt"), [args[0]])


def _selected(comparison):
    """a if a < b (or >) else b, in every place: one instruction, where LLVM's minnum needs three for NaN."""
    def generate(context, builder, sig, args):
        a, b = (splat(builder, x) for x in args)
        return builder.select(builder.fcmp_ordered(comparison, a, b), a, b)
    return generate


@intrinsic
def lane_minimum(typingctx, a, b):
    return lane(a, b), _selected("<")


@intrinsic
def lane_maximum(typingctx, a, b):
    return lane(a, b), _selected(">")


@intrinsic
def lane_where_positive(typingctx, x, a, b):
    """a where x > 0, else b."""
    def generate(context, builder, sig, args):
        condition = builder.fcmp_ordered(">", splat(builder, args[0]), constant(0.0))
        return builder.select(condition, splat(builder, args[1]), splat(builder, args[2]))
    return lane(x, a, b), generate


@intrinsic
def lane_largest(typingctx, x):
    """The largest of the W numbers; places that are not numbers do not count."""
    def generate(context, builder, sig, args):
        name = f"llvm.vector.reduce.fmax.v{WIDTH}f64"
        known = builder.module.globals.get(name)
        reduce = known or ir.Function(builder.module, ir.FunctionType(DOUBLE, [VECTOR]), name)
        return builder.call(reduce, [args[0]])
    return types.float64(lane), generate


@intrinsic
def lane_total(typingctx, x):
    """The sum of the W numbers."""
    def generate(context, builder, sig, args):
        name = f"llvm.vector.reduce.fadd.v{WIDTH}f64"
        known = builder.module.globals.get(name)
        reduce = known or ir.Function(builder.module, ir.FunctionType(DOUBLE, [DOUBLE, VECTOR]), name)
        return builder.call(reduce, [ir.Constant(DOUBLE, 0.0), args[0]], fastmath=FLAGS)
    return types.float64(lane), generate


@intrinsic
def lane_get(typingctx, x, place):
    return types.float64(lane, types.intp), (
        lambda context, builder, sig, args: builder.extract_element(args[0], builder.trunc(args[1], INT32)))


@intrinsic
def lane_set(typingctx, x, place, value):
    return lane(lane, types.intp, types.float64), (
        lambda context, builder, sig, args: builder.insert_element(args[0], args[2], builder.trunc(args[1], INT32)))


# Cody-Waite reduction of the argument by pi/2 in three parts and minimax polynomials on [-pi/4, pi/4]
# (coefficients of the Cephes library); absolute error below 2e-16 for |x| < 1e5.
_HALF_PI = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
_SINE = (1.58962301576546568060e-10, -2.50507477628578072866e-8, 2.75573136213857245213e-6,
         -1.98412698295895385996e-4, 8.33333333332211858878e-3, -1.66666666666666307295e-1)
_COSINE = (-1.13585365213876817300e-11, 2.08757008419747316778e-9, -2.75573141792967388112e-7,
           2.48015872888517045348e-5, -1.38888888888730564116e-3, 4.16666666666665929218e-2)


def _sincos(builder, x, constant, round_to_integer, integers):
    """Instructions for sine and cosine of a double or a vector of them."""
    fused = {"flags": ("contract",)}

    def times(a, b):
        return builder.fmul(a, b, **fused)

    def plus(a, b):
        return builder.fadd(a, b, **fused)

    quarter = builder.call(round_to_integer, [builder.fmul(x, constant(2 / math.pi))])
    r = x
    for part in _HALF_PI:
        r = builder.fsub(r, times(quarter, constant(part)), **fused)
    z = times(r, r)

    def polynomial(coefficients):
        value = constant(coefficients[0])
        for c in coefficients[1:]:
            value = plus(times(value, z), constant(c))
        return value

    sine = plus(r, times(times(r, z), polynomial(_SINE)))
    cosine = plus(plus(constant(1.0), times(constant(-0.5), z)), times(times(z, z), polynomial(_COSINE)))
    k = builder.fptosi(quarter, integers(0).type)
    odd = builder.icmp_signed("!=", builder.and_(k, integers(1)), integers(0))
    s, c = builder.select(odd, cosine, sine), builder.select(odd, sine, cosine)
    flip_s = builder.icmp_signed("!=", builder.and_(k, integers(2)), integers(0))
    flip_c = builder.icmp_signed("!=", builder.and_(builder.add(k, integers(1)), integers(2)), integers(0))
    return [builder.select(flip_s, builder.fneg(s), s), builder.select(flip_c, builder.fneg(c), c)]


@intrinsic
def lane_sincos(typingctx, x):
    result = types.UniTuple(lane, 2)

    def generate(context, builder, sig, args):
        near = builder.fcmp_ordered("<", builder.fmul(args[0], args[0]), constant(1e24))  # beyond: not a number
        x = builder.select(near, args[0], constant(0.0))
        pair = _sincos(builder, x, constant, _vector_intrinsic(builder, "rint"),
                       lambda value: ir.Constant(BITS, [value] * WIDTH))
        return context.make_tuple(builder, result, [builder.select(near, y, constant(math.nan)) for y in pair])
    return result(lane), generate


@intrinsic
def float_sincos(typingctx, x):
    """The same for one double, without a call; for |x| < 1e5."""
    result = types.UniTuple(types.float64, 2)

    def generate(context, builder, sig, args):
        name = "llvm.rint.f64"
        known = builder.module.globals.get(name)
        rint = known or ir.Function(builder.module, ir.FunctionType(DOUBLE, [DOUBLE]), name)
        pair = _sincos(builder, args[0], lambda value: ir.Constant(DOUBLE, float(value)), rint,
                       lambda value: ir.Constant(ir.IntType(64), value))
        return context.make_tuple(builder, result, pair)
    return result(types.float64), generate
