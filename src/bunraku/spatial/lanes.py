"""The lane: W doubles in one SIMD register, as a scalar type of Numba.

A kernel written for floats compiles for lanes unchanged: `+ - * /`, negation and the functions of `scalar.py` work
on both. W follows the processor (8 with AVX-512, 4 with AVX, else 2). Lanes hold W states of one mechanism, or W
chunks of one mechanism, and never meet Python: arrays of shape (n, W) hold them outside.
"""

import operator

from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, models, register_model

from bunraku.compiler.numba_inside import AbstractTemplate, infer_global, signature
from bunraku.jit import FASTMATH, lane_width

FLAGS = tuple(sorted(FASTMATH))
WIDTH = lane_width()
DOUBLE = ir.DoubleType()
INT32 = ir.IntType(32)
VECTOR = ir.VectorType(DOUBLE, WIDTH)


class Lane(types.Type):
    """Numba type of W doubles."""

    def __init__(self):
        super().__init__(name=f"f64x{WIDTH}")


lane = Lane()


@register_model(Lane)
class _LaneModel(models.PrimitiveModel):
    def __init__(self, manager, numba_type):
        super().__init__(manager, numba_type, VECTOR)


def splat(builder, value):
    """Broadcast a scalar to a lane; a lane is returned unchanged."""
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
