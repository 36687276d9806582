"""The function that CPython calls: kernel arguments taken from Python objects, in compiled code.

Numba's own way from Python looks up the types of all arguments and counts references, 0.1 us an array. An entry knows
its types, so a few comparisons per argument are enough: a fiftieth of that. The function has the form METH_FASTCALL,

    PyObject *f(PyObject *self, PyObject *const *arguments, Py_ssize_t count)

An array must be a numpy.ndarray (or of a subclass) with the right element type and dimensions, C-contiguous; a named
tuple is a tuple of the right length; a mismatch is a TypeError that names the argument, for an array an ArrayMismatch:
fast paths from Python hand over whatever they are given, and convert it only then. The interpreter's lock is released
while the kernel runs; if the entry is *brief* only if its first array (the bodies) is long.

Rests on CPython's stable interface and on the layout of NumPy's arrays, which every extension compiled against NumPy
relies on. Types and exceptions are found through `self`, an array of their addresses (`objects`).
"""

from __future__ import annotations

import sys

import numpy as np
from llvmlite import ir
from numba import types
from numba.np.numpy_support import as_dtype

from bunraku.compiler.handles import Held, put_in_frame
from bunraku.compiler.numba_inside import cgutils, cpu_target

BYTE, INT, WORD, DOUBLE = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.DoubleType()
OBJECT = BYTE.as_pointer()  # PyObject *


class ArrayMismatch(TypeError):
    """An argument of an entry that is not an array of the type, dimensions and layout that it takes."""


OBJECTS = (np.ndarray, None, TypeError, OverflowError, RuntimeError, ArrayMismatch)
"""Objects that the code refers to, by their places in `self`."""

# Bytes from the start of an object. PyObject ends with its type; PyArrayObject and PyArray_Descr follow it.
HEAD = object.__basicsize__
TYPE = HEAD - 8
DATA, DIMENSIONS_COUNT, DIMENSIONS, DESCRIPTION, FLAGS = HEAD, HEAD + 8, HEAD + 16, HEAD + 40, HEAD + 48
BYTE_ORDER, TYPE_NUMBER = HEAD + 10, HEAD + 12
C_CONTIGUOUS_AND_ALIGNED = 0x0101
MANY = 1000  # bodies: from then on a brief entry is not
OPPOSITE_ORDER = ">" if sys.byteorder == "little" else "<"  # this machine's own has three names: "=", "|", "<"


def python_function(name: str, label: str, signature, kernel: str, brief: bool) -> str:
    """Intermediate code of the function `name`, which calls a kernel of this signature."""
    context = cpu_target.target_context
    module = ir.Module(name)
    kind = ir.FunctionType(OBJECT, [OBJECT, OBJECT.as_pointer(), WORD])
    function = ir.Function(module, kind, name)
    builder = ir.IRBuilder(function.append_basic_block())
    callee = ir.Function(module, context.call_conv.get_function_type(signature.return_type, signature.args), kernel)
    return _Writer(context, builder, label).write(function, callee, signature, brief)


class _Writer:
    """Writes the instructions, argument by argument."""

    def __init__(self, context, builder, label):
        self.context, self.builder, self.label = context, builder, label
        self.objects, self.first_length = builder.function.args[0], None

    def write(self, function, callee, signature, brief) -> str:
        builder, context = self.builder, self.context
        arguments, count = function.args[1:]
        self.refuse_unless(builder.icmp_signed("==", count, WORD(len(signature.args))),
                           f"{self.label}: takes {len(signature.args)} arguments")
        later = []
        for k, kind in enumerate(signature.args):
            given = builder.load(builder.gep(arguments, [WORD(k)]))
            later.append(self.value(kind, given, f"{self.label}: argument {k + 1}"))
        values = [value() for value in later]
        long = builder.icmp_signed(">", self.first_length, WORD(MANY)) if brief else ir.IntType(1)(1)
        thread = cgutils.alloca_once_value(builder, OBJECT(None))
        with builder.if_then(long):
            builder.store(builder.call(self.external("PyEval_SaveThread", OBJECT, []), []), thread)
        status, result = context.call_conv.call_function(builder, callee, signature.return_type, signature.args, values)
        with builder.if_then(long):
            builder.call(self.external("PyEval_RestoreThread", ir.VoidType(), [OBJECT]), [builder.load(thread)])
        self.refuse_unless(builder.not_(status.is_error), f"{self.label}: failed inside compiled code", RuntimeError)
        if signature.return_type == types.float64:
            builder.ret(builder.call(self.external("PyFloat_FromDouble", OBJECT, [DOUBLE]), [result]))
        elif signature.return_type == types.int64:
            builder.ret(builder.call(self.external("PyLong_FromLongLong", OBJECT, [WORD]), [result]))
        else:
            assert signature.return_type == types.void, signature
            nothing = self.object(None)
            builder.call(self.external("Py_IncRef", ir.VoidType(), [OBJECT]), [nothing])
            builder.ret(nothing)
        return str(builder.module)

    # -- from Python objects to values -----------------------------------------------------------------------------

    def value(self, kind, given, where):
        """A function that writes the rest and returns the value. Numbers are converted first, arrays last: an
        `__index__` or `__float__` written in Python may have side effects, such as resizing an array."""
        if isinstance(kind, types.Array):
            return lambda: self.array(kind, given, where)
        if isinstance(kind, Held):
            inside = self.value(kind.fields, given, where)
            return lambda: put_in_frame(self.context, self.builder, kind.fields, inside())
        if isinstance(kind, types.BaseTuple):
            return self.tuple(kind, given, where)
        number = self.scalar(kind, given, where)
        return lambda: number

    def scalar(self, kind, given, where):
        if isinstance(kind, types.Float):
            return self.number("PyFloat_AsDouble", DOUBLE, given, where, "a number")
        number = self.number("PyLong_AsLongLong", WORD, given, where, "an integer")
        if isinstance(kind, types.Boolean):
            return self.builder.icmp_signed("!=", number, WORD(0))
        assert kind == types.int64, kind
        return number

    def number(self, name, kind, given, where, what):
        builder = self.builder
        result = builder.call(self.external(name, kind, [OBJECT]), [given])
        minus_one = builder.fcmp_ordered("==", result, kind(-1.0)) if kind is DOUBLE else (
            builder.icmp_signed("==", result, kind(-1)))
        with builder.if_then(minus_one, likely=False):
            error = builder.call(self.external("PyErr_Occurred", OBJECT, []), [])
            with builder.if_then(cgutils.is_not_null(builder, error)):
                for exception, text in ((TypeError, f"must be {what}"), (OverflowError, "is too large")):
                    matches = builder.call(self.external("PyErr_ExceptionMatches", INT, [OBJECT]),
                                           [self.object(exception)])
                    self.refuse_unless(builder.icmp_signed("==", matches, INT(0)), f"{where} {text}", exception)
                builder.ret(OBJECT(None))  # of its own __index__ or __float__
        return result

    def tuple(self, kind, given, where):
        builder, count = self.builder, len(kind.types)
        size = builder.call(self.external("PyTuple_Size", WORD, [OBJECT]), [given])  # -1: no tuple
        self.refuse_unless(builder.icmp_signed("==", size, WORD(count)), f"{where} must be a tuple of {count}")
        item = self.external("PyTuple_GetItem", OBJECT, [OBJECT, WORD])
        names = getattr(kind, "fields", range(count))
        later = [self.value(inner, builder.call(item, [given, WORD(k)]), f"{where}.{name}")
                 for k, (inner, name) in enumerate(zip(kind.types, names, strict=True))]
        return lambda: self.context.make_tuple(builder, kind, [value() for value in later])

    def array(self, kind, given, where):
        builder, dtype = self.builder, as_dtype(kind.dtype)
        self.refuse_unless(builder.call(self.is_array(), [self.objects, given, INT(kind.ndim), INT(dtype.num)]),
                           f"{where} must be a C-contiguous array of {dtype} with {kind.ndim} dimensions",
                           ArrayMismatch)
        array = self.context.make_array(kind)(self.context, builder)
        shape = self.read(given, DIMENSIONS, WORD.as_pointer())
        lengths = [builder.load(builder.gep(shape, [WORD(k)])) for k in range(kind.ndim)]
        if self.first_length is None:
            self.first_length = lengths[0]
        strides: list = []
        size = WORD(dtype.itemsize)
        for length in reversed(lengths):
            strides.insert(0, size)
            size = builder.mul(size, length)
        array.meminfo, array.parent = OBJECT(None), OBJECT(None)  # borrowed from the caller
        array.nitems, array.itemsize = builder.sdiv(size, WORD(dtype.itemsize)), WORD(dtype.itemsize)
        array.data = self.read(given, DATA, array.data.type)
        array.shape = cgutils.pack_array(builder, lengths, ty=WORD)
        array.strides = cgutils.pack_array(builder, strides, ty=WORD)
        return array._getvalue()

    def is_array(self):
        """The function (self, object, dimensions, type number) -> bool of this module."""
        module, name = self.builder.module, "is_array"
        if name in module.globals:
            return module.globals[name]
        function = ir.Function(module, ir.FunctionType(ir.IntType(1), [OBJECT, OBJECT, INT, INT]), name)
        function.linkage = "internal"
        here = _Writer(self.context, ir.IRBuilder(function.append_basic_block()), self.label)
        builder, (_, given, dimensions, number) = here.builder, function.args
        ndarray = here.object(np.ndarray)
        own = here.read(given, TYPE, OBJECT)
        with builder.if_then(builder.icmp_unsigned("!=", own, ndarray), likely=False):
            derived = builder.call(here.external("PyType_IsSubtype", INT, [OBJECT, OBJECT]), [own, ndarray])
            with builder.if_then(builder.icmp_signed("==", derived, INT(0))):
                builder.ret(ir.Constant(ir.IntType(1), 0))
        description = here.read(given, DESCRIPTION, OBJECT)
        flags, order = here.read(given, FLAGS, INT), here.read(description, BYTE_ORDER, BYTE)
        tests = (
            builder.icmp_signed("==", here.read(given, DIMENSIONS_COUNT, INT), dimensions),
            builder.icmp_signed("==", here.read(description, TYPE_NUMBER, INT), number),
            builder.icmp_signed("==", builder.and_(flags, INT(C_CONTIGUOUS_AND_ALIGNED)),
                                INT(C_CONTIGUOUS_AND_ALIGNED)),
            builder.icmp_signed("!=", order, BYTE(ord(OPPOSITE_ORDER))),
        )
        both = tests[0]
        for test in tests[1:]:
            both = builder.and_(both, test)
        builder.ret(both)
        return function

    # -- words and calls -------------------------------------------------------------------------------------------

    def read(self, pointer, offset, kind):
        builder = self.builder
        return builder.load(builder.bitcast(builder.gep(pointer, [WORD(offset)]), kind.as_pointer()))

    def object(self, which):
        """One of OBJECTS."""
        return self.read(self.read(self.objects, DATA, OBJECT), 8 * OBJECTS.index(which), OBJECT)

    def external(self, name, result, arguments):
        module = self.builder.module
        return module.globals.get(name) or ir.Function(module, ir.FunctionType(result, arguments), name)

    def refuse_unless(self, condition, message, exception=TypeError):
        builder, module = self.builder, self.builder.module
        with builder.if_then(builder.not_(condition), likely=False):
            text = cgutils.global_constant(module, "message", cgutils.make_bytearray(message.encode() + b"\0"))
            builder.call(self.external("PyErr_SetString", ir.VoidType(), [OBJECT, OBJECT]),
                         [self.object(exception), builder.bitcast(text, OBJECT)])
            builder.ret(OBJECT(None))


def objects() -> np.ndarray:
    """The `self` of the functions."""
    addresses = np.array([id(thing) for thing in OBJECTS], np.int64)
    addresses.flags.writeable = False
    return addresses
