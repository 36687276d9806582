"""Lowering of internal functions to parts: subclasses of Numba's own classes (`numba_inside.LOWERING`).

Imported by `parts.py` if this version of Numba has them. Needs `JITCodeLibrary` with the methods overridden below and
the pass `NativeLowering`.
"""

from __future__ import annotations

from bunraku.compiler.numba_inside import (
    CompilerBase,
    DefaultPassBuilder,
    JITCodeLibrary,
    NativeLowering,
    register_pass,
)


class Part(JITCodeLibrary):
    """Intermediate code of an internal function; neither optimised nor turned into machine code."""

    _linking_libraries: list

    def _optimize_functions(self, ll_module):
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self):
        self._finalized = True

    def own_module(self):
        """The function itself, to be linked into any number of others."""
        return super()._get_module_for_linking()

    def _get_module_for_linking(self):
        """Module for Numba's own libraries, which do not support parts: with all callees."""
        module = self.own_module().clone()
        for library in everything_behind(self._linking_libraries):
            if library is not self:
                module.link_in(module_of(library), preserve=True)
        return module


def everything_behind(libraries) -> list:
    """The libraries and, behind those that are parts, all that they call: each once, callers first, Numba's own last,
    since linking drops functions that have no caller so far."""
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
    """As Numba lowers a function, into a Part. The compiled function that Numba expects is a mere key."""

    _name = "bunraku_lower_part"

    def run_pass(self, state):
        state.library = Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered, key = state["cr"], object()
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
