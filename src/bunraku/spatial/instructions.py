"""Instructions: functions written as a few LLVM instructions, which the compiler neither types nor inlines.

`instruction` gives a Python function its compiled form; a call costs one lookup of the types of its arguments.
Below are the parts of LLVM code that several functions of `scalar.py` share: memory, W x W blocks, sine and cosine.
"""

import functools
import math

from llvmlite import ir
from numba import types
from numba.extending import lower_builtin

from bunraku.compiler.numba_inside import AbstractTemplate, cgutils, infer_global, signature
from bunraku.compiler.targets import level
from bunraku.spatial.lanes import DOUBLE, FLAGS, INT32, VECTOR, WIDTH, Lane, lane, splat

INT64 = ir.IntType(64)
FLAG = ir.IntType(1)


def instruction(function):
    """Decorator for the compiled form of a Python function.

    It takes the types of the arguments and returns a signature, to which Numba casts them, and a function that writes
    the instructions: it takes a builder and the values (of an array, the address of its first element) and returns the
    result, a pair of them, or None.
    """
    def register(form):
        form = functools.cache(form)

        @infer_global(function)
        class _Typing(AbstractTemplate):
            def generic(self, args, kws):
                return form(*args)[0]

        @lower_builtin(function, types.VarArg(types.Any))
        def _lower(context, builder, sig, args):
            values = [context.data_model_manager[kind].get(builder, value, "data") if isinstance(kind, types.Array)
                      else value for kind, value in zip(sig.args, args, strict=True)]
            result = form(*sig.args)[1](builder, *values)
            if isinstance(result, tuple):
                return context.make_tuple(builder, sig.return_type, result)
            return context.get_dummy_value() if result is None else result

        return form
    return register


def kind_of(*scalars):
    """A lane if one of the types is a lane, else a float."""
    return lane if any(isinstance(x, Lane) for x in scalars) else types.float64


def pointwise(*scalars):
    """The signature of a function that takes scalars, some of which may be lanes, and returns one."""
    return signature(kind_of(*scalars), *map(kind_of, scalars))


# -- values --------------------------------------------------------------------------------------------------------

def number(kind, value):
    """A constant of the LLVM type, broadcast to a vector."""
    return ir.Constant(kind, [value] * WIDTH if isinstance(kind, ir.VectorType) else value)


def alike(builder, *values):
    """The values, all as vectors if one of them is a vector."""
    if all(value.type == DOUBLE for value in values):
        return values
    return tuple(splat(builder, value) for value in values)


def counted():
    """The vector 0, 1, ..., W - 1."""
    return ir.Constant(VECTOR, [float(place) for place in range(WIDTH)])


def moved(builder, first, *steps):
    """The index first + sum(stride * count); counts are Python numbers."""
    for stride, count in steps:
        first = builder.add(first, builder.mul(stride, ir.Constant(first.type, count)))
    return first


def call(builder, name, result, *values, **options):
    """Call an LLVM intrinsic whose result has the LLVM type."""
    known = builder.module.globals.get(name)
    function = known or ir.Function(builder.module, ir.FunctionType(result, [x.type for x in values]), name)
    return builder.call(function, values, **options)


def call_pointwise(builder, name, x):
    """Call LLVM's function of a double or of a vector of them."""
    return call(builder, f"llvm.{name}.{'f64' if x.type == DOUBLE else f'v{WIDTH}f64'}", x.type, x)


def call_library(builder, name, *values):
    """Call a function of the C library, of doubles."""
    kind = ir.FunctionType(DOUBLE, [DOUBLE] * len(values))
    return builder.call(cgutils.insert_pure_function(builder.module, kind, name), values)


# -- memory --------------------------------------------------------------------------------------------------------

def lane_pointer(builder, data, index):
    """Address of W doubles, from element `index` on."""
    return builder.bitcast(builder.gep(data, [index]), VECTOR.as_pointer())


def load_lane(builder, data, index):
    return builder.load(lane_pointer(builder, data, index), align=8)


def store_lane(builder, data, index, value):
    builder.store(splat(builder, value), lane_pointer(builder, data, index), align=8)


def load_rows(builder, data, start, stride):
    """A W x W block, given by its flat start and row stride."""
    return [load_lane(builder, data, moved(builder, start, (stride, row))) for row in range(WIDTH)]


def store_rows(builder, data, start, stride, rows):
    for number, row in enumerate(rows):
        store_lane(builder, data, moved(builder, start, (stride, number)), row)


# -- blocks of W x W in registers ----------------------------------------------------------------------------------

def transposed(builder, rows):
    """A block, transposed: log2(W) stages of shuffles."""
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


def mirrored(builder, rows):
    """The symmetric block with the upper triangle of a block."""
    across = transposed(builder, rows)
    return [builder.select(_places(lambda c, r=r: c < r), across[r], rows[r]) for r in range(WIDTH)]


def with_diagonal(builder, rows, others):
    """A block whose diagonal is replaced by that of another."""
    return [builder.select(_places(lambda c, r=r: c == r), others[r], rows[r]) for r in range(WIDTH)]


def diagonal_of(builder, rows):
    diagonal = rows[0]
    for r in range(1, WIDTH):
        diagonal = builder.select(_places(lambda c, r=r: c == r), rows[r], diagonal)
    return diagonal


def _places(chosen):
    return ir.Constant(ir.VectorType(FLAG, WIDTH), [FLAG(chosen(place)) for place in range(WIDTH)])


def products(builder, factors, right, apart, ends, row, column):
    """The rows of a block: entry (r, c) is the sum over p < 6 of the float at factors(r, p) times
    right[p apart + column + c], or zero from column + c = ends[row + r] on."""
    one, zero = ir.Constant(row.type, 1), number(VECTOR, 0.0)
    lanes = [load_lane(builder, right, moved(builder, column, (apart, p))) for p in range(6)]
    here = builder.fadd(splat(builder, builder.sitofp(column, DOUBLE)), counted())
    rows = []
    for r in range(WIDTH):
        entry = zero
        for p in range(6):
            factor = splat(builder, builder.load(factors(r, p)))
            entry = builder.fadd(entry, builder.fmul(factor, lanes[p], flags=FLAGS), flags=FLAGS)
        end = builder.load(builder.gep(ends, [moved(builder, row, (one, r))]))
        rows.append(builder.select(builder.fcmp_ordered(">", splat(builder, end), here), entry, zero))
    return rows


# -- sine and cosine -----------------------------------------------------------------------------------------------

# Cody-Waite reduction of the argument by pi/2 in three parts and minimax polynomials on [-pi/4, pi/4]
# (coefficients of the Cephes library); absolute error below 2e-16 for |x| < 1e5, below 3e-16 for lanes up to 1e12.
_HALF_PI = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
_SINE = (1.58962301576546568060e-10, -2.50507477628578072866e-8, 2.75573136213857245213e-6,
         -1.98412698295895385996e-4, 8.33333333332211858878e-3, -1.66666666666666307295e-1)
_HALF = 2.0**20
_COSINE = (-1.13585365213876817300e-11, 2.08757008419747316778e-9, -2.75573141792967388112e-7,
           2.48015872888517045348e-5, -1.38888888888730564116e-3, 4.16666666666665929218e-2)


def near_sincos(builder, x):
    """Sine and cosine of a double below 1e5, or of a vector of them below 1e12."""
    fused = {"flags": ("contract",)}

    def times(a, b):
        return builder.fmul(a, b, **fused)

    def plus(a, b):
        return builder.fadd(a, b, **fused)

    def real(value):
        return number(x.type, value)

    def whole(value):
        return number(k.type, value)

    quarter = call_pointwise(builder, "rint", builder.fmul(x, real(2 / math.pi)))
    turns = [quarter]
    if x.type != DOUBLE and not level().fuses:  # two halves of 20 bits: their products with 32 bits of pi/2 are exact
        high = times(call_pointwise(builder, "rint", times(quarter, real(1.0 / _HALF))), real(_HALF))
        turns = [high, builder.fsub(quarter, high)]
    r = x
    for part in _HALF_PI:
        for count in turns:
            r = builder.fsub(r, times(count, real(part)), **fused)
    z = times(r, r)

    def polynomial(coefficients):
        value = real(coefficients[0])
        for c in coefficients[1:]:
            value = plus(times(value, z), real(c))
        return value

    sine = plus(r, times(times(r, z), polynomial(_SINE)))
    cosine = plus(plus(real(1.0), times(real(-0.5), z)), times(times(z, z), polynomial(_COSINE)))
    k = builder.fptosi(quarter, INT64 if x.type == DOUBLE else ir.VectorType(INT64, WIDTH))

    def has(value, bit):
        return builder.icmp_signed("!=", builder.and_(value, whole(bit)), whole(0))

    odd = has(k, 1)
    s, c = builder.select(odd, cosine, sine), builder.select(odd, sine, cosine)
    flip_s, flip_c = has(k, 2), has(builder.add(k, whole(1)), 2)
    return builder.select(flip_s, builder.fneg(s), s), builder.select(flip_c, builder.fneg(c), c)
