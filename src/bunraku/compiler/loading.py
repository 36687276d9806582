"""Object code in this process: its functions as builtin functions of Python, or by address."""

from __future__ import annotations

import ctypes
import functools

import llvmlite.binding as llvm

from bunraku.compiler import calling
from bunraku.compiler.code_files import Code, Unusable
from bunraku.compiler.numba_inside import cpu_target, rtsys
from bunraku.compiler.targets import level, target_machine

METH_FASTCALL = 0x80


class MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p))


class Loaded:
    """Functions of an object file. It is never unloaded: callers may hold pointers to its functions."""

    def __init__(self, code: Code, symbols: tuple[str, ...]):
        if missing := missing_symbols(code):  # LLVM would end the process
            raise Unusable(f"needs functions that are not here ({', '.join(missing)})")
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine(level()))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code.object))
        self._engine.finalize_object()
        self.addresses = {symbol: self._engine.get_function_address(symbol) for symbol in symbols}
        if not all(self.addresses.values()):
            raise Unusable("is that of another function")
        _loaded.append(self)

    def builtin(self, symbol: str, name: str, doc: str):
        """The function as Python calls it."""
        self._method = MethodDef(name.encode(), self.addresses[symbol], METH_FASTCALL, doc.encode())
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        return make(ctypes.addressof(self._method), calling.objects(), None)


_loaded: list[Loaded] = []


def missing_symbols(code: Code) -> list[str]:
    """Symbols that this code needs and that are not in this process."""
    _prepare_process()
    return [name for name in code.needs if llvm.address_of_symbol(name) is None]


@functools.cache
def _prepare_process() -> None:
    """Symbols that machine code refers to: Numba's helpers and memory."""
    cpu_target.target_context.codegen()
    rtsys.initialize(cpu_target.target_context)
