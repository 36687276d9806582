"""Compile less: internal functions are parts of entries, not machine code of their own.

Numba optimises every compiled function, turns it into machine code and links it into its callers, where all of this
happens once more. Kernels consist of several hundred functions that only some thirty entries call. Here an internal
function ends as LLVM's intermediate code (a *part*); an entry (a *whole*) links the parts it needs, each once, and is
optimised and turned into machine code in one go. Parts are compiled for int64 wherever an integer is given, constants
and int32 included: LLVM finds the constants again when it inlines.

What this needs of Numba's inside: `JITCodeLibrary` with the methods overridden below, the pass `NativeLowering`, and
`Dispatcher.get_call_template` and `add_overload`. `tests/test_compiler.py` notices if a new version has changed them.
BUNRAKU_PARTS=0 compiles in Numba's own way.
"""

from __future__ import annotations

import functools
import os

import llvmlite.binding as llvm
import numba
from numba import njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

ON = not numba.config.DISABLE_JIT and os.environ.get("BUNRAKU_PARTS", "1") != "0"


class Part(JITCodeLibrary):
    """Intermediate code of an internal function; neither optimised nor turned into machine code."""

    def _optimize_functions(self, ll_module):
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self):
        self._finalized = True

    def own_module(self):
        """The function itself, to be linked into any number of others."""
        return super()._get_module_for_linking()

    def _get_module_for_linking(self):
        """For libraries of Numba's own, which know nothing of parts: with all that it calls."""
        module = self.own_module().clone()
        for library in everything_behind(self._linking_libraries):
            if library is not self:
                module.link_in(module_of(library), preserve=True)
        return module


class Whole(JITCodeLibrary):
    """An entry: all its parts, each once, optimised together."""

    _linking_libraries: list

    def _optimize_functions(self, ll_module):
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self):
        for library in everything_behind(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(module_of(library), preserve=True)
        self._linking_libraries = []
        super().finalize()

    def _optimize_final_module(self):
        """Scalars out of memory first, which makes everything after it cheaper; then Numba's full pipeline."""
        builder = llvm.create_pass_builder(self._codegen._tm, llvm.create_pipeline_tuning_options(2))
        first = llvm.create_new_module_pass_manager()
        first.add_sroa_pass()
        first.add_simplify_cfg_pass()
        first.run(self._final_module, builder)
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


def everything_behind(libraries) -> list:
    """The libraries and, behind those that are parts, all that they call: each once."""
    found: dict = {}
    waiting = list(libraries)
    while waiting:
        library = waiting.pop()
        if library not in found:
            found[library] = None
            if isinstance(library, Part):
                waiting += library._linking_libraries
    return list(found)


def module_of(library):
    return library.own_module() if isinstance(library, Part) else library._get_module_for_linking()


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerPart(NativeLowering):
    """As Numba lowers a function, into a Part. What Numba takes for the compiled function is a mere key."""

    _name = "bunraku_lower_part"

    def run_pass(self, state):
        state.library = Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.flags.no_compile = True
        super().run_pass(state)
        lowered, key = state["cr"], object()
        state.targetctx.insert_user_function(key, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=key)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerWhole(NativeLowering):
    _name = "bunraku_lower_whole"

    def run_pass(self, state):
        state.library = Whole(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().run_pass(state)


class CompilePart(CompilerBase):
    lowering: type = LowerPart

    def define_pipelines(self):
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [(self.lowering if kind is NativeLowering else kind, why) for kind, why in passes.passes]
        passes._finalized = False
        passes.finalize()
        return [passes]


class CompileWhole(CompilePart):
    lowering = LowerWhole


def part(options: dict):
    """Decorator for internal functions, with Numba's options."""
    def decorate(function):
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


WHOLE = {"pipeline_class": CompileWhole} if ON else {}
