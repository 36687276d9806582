"""Python functions as LLVM's intermediate code: internal functions are parts of entries, not machine code of their own.

Numba optimises every compiled function, turns it into machine code and links it into its callers, where all of this
happens once more. Kernels consist of several hundred functions that only some thirty entries call. Here a function
ends as intermediate code (a *part*); `linked` puts an entry and the parts that it needs, each once, into one module.
Parts are compiled for int64 wherever an integer is given, constants and int32 included: LLVM finds the constants again
when it inlines.

What this needs of Numba's inside: `JITCodeLibrary` with the methods overridden below, the pass `NativeLowering`, and
`Dispatcher.get_call_template` and `add_overload`. `tests/compiler/test_parts.py` notices if a new version has changed
them. BUNRAKU_PARTS=0 takes the intermediate code that Numba itself makes (`Dispatcher.inspect_llvm`), at about three
times the cost.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os

import llvmlite.binding as llvm
import numba
from numba import njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.registry import cpu_target
from numba.core.runtime.nrtdynmod import create_nrt_module
from numba.core.typed_passes import NativeLowering

ON = not numba.config.DISABLE_JIT and os.environ.get("BUNRAKU_PARTS", "1") != "0"


class Part(JITCodeLibrary):
    """Intermediate code of an internal function; neither optimised nor turned into machine code."""

    _linking_libraries: list
    called: str | None = None  # name of a function that is not to be inlined

    def _optimize_functions(self, ll_module):
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self):
        self._finalized = True

    def own_module(self):
        """The function itself, to be linked into any number of others."""
        module = super()._get_module_for_linking()
        if self.called is not None:
            module.get_function(self.called).add_function_attribute("noinline")
        return module

    def _get_module_for_linking(self):
        """For libraries of Numba's own, which know nothing of parts: with all that it calls."""
        module = self.own_module().clone()
        for library in everything_behind(self._linking_libraries):
            if library is not self:
                module.link_in(module_of(library), preserve=True)
        return module


def everything_behind(libraries) -> list:
    """The libraries and, behind those that are parts, all that they call: each once, callers first, Numba's own last,
    since linking drops what nobody has called so far."""
    found: dict = {}
    waiting = list(libraries)
    while waiting:
        library = waiting.pop()
        if library not in found:
            found[library] = None
            if isinstance(library, Part):
                waiting += library._linking_libraries
    return sorted(found, key=lambda library: not isinstance(library, Part))


def module_of(library):
    return library.own_module() if isinstance(library, Part) else library._get_module_for_linking()


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerPart(NativeLowering):
    """As Numba lowers a function, into a Part. What Numba takes for the compiled function is a mere key."""

    _name = "bunraku_lower_part"

    def run_pass(self, state):
        state.library = Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered, key = state["cr"], object()
        if state.func_id.func in CALLED:
            state.library.called = lowered.fndesc.llvm_func_name
        state.targetctx.insert_user_function(key, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=key)
        return True


class CompilePart(CompilerBase):
    def define_pipelines(self):
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [(LowerPart if kind is NativeLowering else kind, why) for kind, why in passes.passes]
        passes._finalized = False
        passes.finalize()
        return [passes]


CALLED: set = set()  # functions that are not to be inlined


def part(options: dict, called: bool = False):
    """Decorator for internal functions, with Numba's options. `called`: never inlined."""
    def decorate(function):
        if called:
            CALLED.add(function)
        if not ON:
            return njit(**options)(function)
        made = njit(pipeline_class=CompilePart, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)(function)
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
    if not ON:
        name = made.get_compile_result(signature).fndesc.llvm_func_name
        return llvm.parse_assembly(made.inspect_llvm(tuple(signature.args))), name
    result = made.overloads[tuple(signature.args)]
    name, module = result.fndesc.llvm_func_name, result.library.own_module().clone()
    module.get_function(name).linkage = "external"
    libraries = everything_behind([result.library])
    if any(not isinstance(library, Part) for library in libraries):
        module.link_in(reference_counts(), preserve=True)
    for library in libraries:
        if library is not result.library:
            module.link_in(module_of(library), preserve=True)
    return module, name


@functools.cache
def reference_counts() -> llvm.ModuleRef:
    """Numba's functions that count references, before they become machine code: those in its own libraries have been
    through that, which has put instructions of this processor in their place. Linked first, these are used."""
    return llvm.parse_assembly(str(create_nrt_module(cpu_target.target_context)[0]))


@contextlib.contextmanager
def quickly():
    """Remember what operators make of scalars (Numba asks each of dozens of templates again at every + and *), and let
    Python's garbage lie."""
    context, collecting = cpu_target.typing_context, gc.isenabled()
    resolve, known = context.resolve_function_type, {}

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
