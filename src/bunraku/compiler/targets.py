"""Target processors, and object code for one of them.

On x86-64 code is made for one of three *levels* of the architecture (with SSE4, AVX2, AVX-512) rather than for the
exact model: that is as fast here, and machine code in a wheel is then, bit by bit, what this machine would make itself.
The level also sets the width of lanes. BUNRAKU_LEVEL chooses another level, BUNRAKU_LANE_WIDTH another width.
"""

from __future__ import annotations

import functools
import os
import platform
import sys
from dataclasses import dataclass

import llvmlite.binding as llvm

from bunraku.errors import SettingError


@dataclass(frozen=True)
class Level:
    """A kind of processor."""

    name: str
    triple: str
    processor: str               # LLVM's name
    features: str                # LLVM's features, where the name does not say enough
    width: int                   # doubles in a register: lanes
    needs: tuple[str, ...] = ()  # features that its code may use

    @property
    def fuses(self) -> bool:
        """Whether a product and a sum are one instruction that rounds once."""
        return not self.triple.startswith("x86") or "fma" in (*self.needs, *self.features.replace("+", "").split(","))


LINUX = "x86_64-unknown-linux-gnu"
SSE4 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
AVX2 = (*SSE4, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
AVX512 = (*AVX2, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
LEVELS = (  # the best first
    Level("x86-64-v4", LINUX, "x86-64-v4", "-prefer-256-bit", 8, AVX512),
    Level("x86-64-v3", LINUX, "x86-64-v3", "", 4, AVX2),
    Level("x86-64-v2", LINUX, "x86-64-v2", "", 2, SSE4),
    Level("aarch64", "aarch64-unknown-linux-gnu", "generic", "+neon", 2),
)
SHIPPED = tuple(level.name for level in LEVELS)


@functools.cache
def level() -> Level:
    """The kind of processor that code is made for: this machine's, or BUNRAKU_LEVEL."""
    asked = os.environ.get("BUNRAKU_LEVEL", "")
    if not asked:
        return levels_here()[0]
    known = {level.name: level for level in LEVELS}
    if asked not in known:
        raise SettingError(f"BUNRAKU_LEVEL is {asked!r}; it can be {', '.join(known)}")
    return known[asked]


@functools.cache
def levels_here() -> tuple[Level, ...]:
    """Those whose code this machine can run, the best first; elsewhere than on Linux, code is for the exact model."""
    has = llvm.get_host_cpu_features()
    known = tuple(level for level in LEVELS if sys.platform == "linux"
                  and level.triple.split("-")[0] == platform.machine() and all(has.get(name) for name in level.needs))
    width = 8 if has.get("avx512f") else 4 if has.get("avx") else 2
    return known or (Level("native", llvm.get_process_triple(), llvm.get_host_cpu_name(), has.flatten(), width),)


@functools.cache
def check_runs_here() -> None:
    """Refuse to run code of a level that is not this machine's: its first unknown instruction would end the process.
    Compiling for such a level is allowed."""
    if level() not in levels_here():
        here = [known.name for known in levels_here() if known in LEVELS]
        raise SettingError(f"BUNRAKU_LEVEL is {level().name!r}, whose code this machine cannot run; here it can be "
                           f"{', '.join(here) if here else 'left out only'}")


@functools.cache
def lane_width() -> int:
    asked = os.environ.get("BUNRAKU_LANE_WIDTH")
    if asked:
        if asked not in ("2", "4", "8"):
            raise SettingError(f"BUNRAKU_LANE_WIDTH is {asked!r}; it can be 2, 4 or 8")
        return int(asked)
    return level().width


def target_machine(target: Level):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    reloc = "static" if target.triple.startswith("x86") else "default"
    return llvm.Target.from_triple(target.triple).create_target_machine(
        opt=3, cpu=target.processor, features=target.features, reloc=reloc, codemodel="jitdefault", jit=True)


def object_code(module: llvm.ModuleRef, exported: tuple[str, ...], target: Level) -> tuple[bytes, list[str]]:
    """Optimise a module in which only the `exported` functions are called from outside; its object code, and the
    symbols that it needs."""
    machine = target_machine(target)
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    for function in module.functions:
        if not function.is_declaration:
            function.linkage = "external" if function.name in exported else "internal"
    _clean(module, machine)
    _optimise(module, machine)
    needed = [function.name for function in module.functions
              if function.is_declaration and not function.name.startswith("llvm.")]
    needed += [variable.name for variable in module.global_variables if variable.is_declaration]
    return machine.emit_object(module), sorted(needed)


def _clean(module, machine) -> None:
    """Promote memory to scalars first, which makes all later passes cheaper."""
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(2))
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, builder)


def _optimise(module, machine) -> None:
    """LLVM's full pipeline, then pairs of reference counts that cancel."""
    options = llvm.create_pipeline_tuning_options(3)
    options.loop_vectorization, options.slp_vectorization, options.loop_interleaving = True, False, True
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    passes.add_refprune_pass()
    passes.run(module, builder)
