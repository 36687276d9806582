"""Python functions as LLVM's intermediate code: internal functions are parts of entries, not machine code of their own.

Numba optimises every compiled function, turns it into machine code and links it into its callers, where all of this
happens once more. Kernels consist of several hundred functions that only some thirty entries call. Here a function
ends as intermediate code (a *part*); `linked` puts an entry and the parts that it needs, each once, into one module.
Parts are compiled for int64 wherever an integer is given, constants and int32 included: LLVM recovers the constants
when it inlines.

`lowering.py` does it with private classes of Numba; here `Dispatcher.get_call_template` and `add_overload` are
replaced. `tests/compiler/test_parts.py` notices if a new version has changed them. Where a private name is missing, or
with BUNRAKU_PARTS=0, Numba itself makes the intermediate code (`Dispatcher.inspect_llvm`), at about three times the
cost.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import warnings

import llvmlite.binding as llvm
import numba
from numba import njit, types

from bunraku.compiler.numba_inside import cpu_target
from bunraku.errors import UnsupportedNumba


def _lowering():
    """The module `lowering`, or None where functions are compiled in Numba's own way."""
    if numba.config.DISABLE_JIT or os.environ.get("BUNRAKU_PARTS", "1") == "0":
        return None
    try:
        from bunraku.compiler import lowering
    except UnsupportedNumba as error:
        warnings.warn(f"{error}; compilation takes about three times as long", RuntimeWarning, stacklevel=2)
        return None
    return lowering


lowering = _lowering()
ON = lowering is not None


def part(options: dict):
    """Decorator for internal functions, with Numba's options."""
    def decorate(function):
        if lowering is None:
            return njit(**options)(function)
        made = njit(pipeline_class=lowering.CompilePart, no_cpython_wrapper=True, no_cfunc_wrapper=True,
                    **options)(function)
        template = made.get_call_template

        def get_call_template(args, kws):
            return template(tuple(map(widened, args)), {name: widened(kind) for name, kind in kws.items()})

        def add_overload(result):
            made.overloads[tuple(result.signature.args)] = result

        @functools.cache
        def plain():
            return njit(**options)(function)

        def compile_for_args(*args, **kws):  # called from Python, as tests do: in Numba's own way
            return plain()._compile_for_args(*args, **kws)

        made.get_call_template, made.add_overload, made._compile_for_args = (
            get_call_template, add_overload, compile_for_args)
        return made
    return decorate


def widened(kind):
    """int64 for every integer; constants are values."""
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) else kind


def linked(function, signature, options: dict) -> tuple[llvm.ModuleRef, str]:
    """A Python function and all that it calls as one module of intermediate code, and its name there."""
    made = part(options)(function)
    with quickly():
        made.compile(signature)
    if lowering is None:
        name = made.get_compile_result(signature).fndesc.llvm_func_name
        return llvm.parse_assembly(made.inspect_llvm(tuple(signature.args))), name
    result = made.overloads[tuple(signature.args)]
    name, module = result.fndesc.llvm_func_name, result.library.own_module().clone()
    module.get_function(name).linkage = "external"
    libraries = lowering.everything_behind([result.library])
    if any(not isinstance(library, lowering.Part) for library in libraries):
        module.link_in(reference_counts(), preserve=True)
    for library in libraries:
        if library is not result.library:
            module.link_in(lowering.module_of(library), preserve=True)
    return module, name


@functools.cache
def reference_counts() -> llvm.ModuleRef:
    """Numba's functions that count references, before they become machine code: those in its own libraries have been
    through that, which has put instructions of this processor in their place. Linked first, these are used."""
    from bunraku.compiler.numba_inside import create_nrt_module

    return llvm.parse_assembly(str(create_nrt_module(cpu_target.target_context)[0]))


@contextlib.contextmanager
def quickly():
    """Context that caches the types of scalar operators (Numba tries dozens of templates at every + and *) and suspends
    garbage collection."""
    context, collecting = cpu_target.typing_context, gc.isenabled()
    resolve, known = context.resolve_function_type, {}
    nested = "resolve_function_type" in vars(context)  # an entry that another one calls is compiled before that
    if nested:
        yield
        return

    def remembered(function, args, kws):
        if kws or not isinstance(function, types.Function) or not all(type(kind) in SCALARS for kind in args):
            return resolve(function, args, kws)
        key = function, tuple(args)
        if key not in known:
            known[key] = resolve(function, args, kws)
        return known[key]

    context.resolve_function_type = remembered
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
        del context.resolve_function_type


SCALARS = {types.Float, types.Integer, types.Boolean}
