"""C functions with an address bound to them: closures for compiled code.

A user function that reads the model is compiled once, as a C function with one more argument, the address of the model
of one structure. Solvers call functions of the plain form (`integrate/callbacks.py`). A *bound* function is of that
form: a few instructions that load a function and its last argument from a slot and call it (2 ns). Binding writes two
numbers, so that a change of structure compiles nothing. Slots come in blocks; a slot is free again when its owner is
gone.
"""

from __future__ import annotations

import threading
import weakref

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from bunraku.compiler.targets import level, target_machine

BLOCK = 64  # slots
INT, WORD, DOUBLE = ir.IntType(32), ir.IntType(64), ir.DoubleType()
WORDS = 8   # arguments after the time (`callbacks.SIGNATURE`)


def bind(owner, function: int, last: int) -> int:
    """Address of a function that calls the one at address `function` with `last` as additional argument. It lasts as
    long as `owner`, which keeps alive what both addresses point to."""
    with _lock:
        if not _free:
            _free.extend(_new_slots())
        slot, address = _free.pop()
        slot[:] = function, last
    weakref.finalize(owner, _release, slot, address)
    return address


def _release(slot, address) -> None:
    _free.append((slot, address))


_free: list[tuple[np.ndarray, int]] = []
_kept: list = []  # what is never unloaded: callers may hold pointers to it
_lock = threading.Lock()


def _new_slots() -> list[tuple[np.ndarray, int]]:
    """Slots and their functions."""
    slots = np.zeros((BLOCK, 2), np.int64)
    module = ir.Module("bound functions")
    names = [f"bound_{len(_kept)}_{k}" for k in range(BLOCK)]
    for slot, name in zip(slots, names, strict=True):
        _write(module, name, slot.ctypes.data)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(str(module)), target_machine(level()))
    engine.finalize_object()
    _kept.append((slots, engine))
    return [(slot, engine.get_function_address(name)) for slot, name in zip(slots, names, strict=True)]


def _write(module, name: str, slot: int) -> None:
    function = ir.Function(module, ir.FunctionType(INT, [DOUBLE, *[WORD] * WORDS]), name)
    builder = ir.IRBuilder(function.append_basic_block())
    called, last = (builder.load(builder.inttoptr(WORD(slot + 8 * k), WORD.as_pointer())) for k in range(2))
    kind = ir.FunctionType(INT, [DOUBLE, *[WORD] * (WORDS + 1)])
    builder.ret(builder.call(builder.inttoptr(called, kind.as_pointer()), [*function.args, last]))
