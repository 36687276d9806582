"""Compilation of kernels: five decorators, and `prepare`.

* `@inline` for functions that are inlined into their callers, `@inner` for larger ones that are called,
  `@allocating` for those that allocate arrays, `@as_written` for loops over components that workers divide: parts of
  kernels, never called from Python;
* `@entry(...)` for the functions Python calls. An entry has an explicit signature, so a mechanism or a structure change
  never recompiles it, and arguments of other types are rejected instead of compiled for. Its machine code is loaded on
  first use, from the wheel or the user's cache, or compiled then, which is announced, and kept.

`prepare(entries)` loads several at once; those that have to be compiled are compiled in parallel (`compiler/`).
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import pkgutil
import threading
import warnings
from pathlib import Path

import numba
import numpy as np
from llvmlite import binding as llvm
from numba import types
from numba.extending import lower_builtin
from numba.np.numpy_support import as_dtype

from bunraku.compiler import code_files as files
from bunraku.compiler.calling import ArrayMismatch, python_function
from bunraku.compiler.handles import Held, hold, outlived
from bunraku.compiler.loading import Loaded, missing_symbols
from bunraku.compiler.numba_inside import AbstractTemplate, NumbaExperimentalFeatureWarning, cgutils, infer_global
from bunraku.compiler.numba_inside import signature as typed
from bunraku.compiler.parts import ON, linked, part
from bunraku.compiler.targets import check_runs_here, lane_width, level, object_code
from bunraku.compiler.together import Progress, compile_together, worth_children

__all__ = ["ArrayMismatch", "Entry", "Held", "all_entries", "allocating", "as_written", "call_entry",
           "called_by_address", "compiled_apart", "entry", "hold", "inline", "inner", "lane_width", "outlived",
           "prepare"]

# Everything fast-math allows except assuming that NaN and infinity never happen: kernels test for them.
FASTMATH = {"contract", "nsz", "arcp", "reassoc"}
OPTIONS = {"nogil": True, "fastmath": FASTMATH, "error_model": "numpy"}
KERNEL = "kernel."  # begin of the symbols of entries
JIT_OFF = bool(numba.config.DISABLE_JIT)

# Kernels never own an array, so they need no reference counts (which would cost a call for every array passed on).
inline = part({"forceinline": True, "_nrt": False, **OPTIONS})
"""Decorator for functions used inside kernels: always inlined, never called from Python."""

inner = part({"forceinline": False, "_nrt": False, **OPTIONS})
"""Decorator for larger functions used inside kernels: compiled once, called."""

allocating = part({"forceinline": False, "_nrt": True, **OPTIONS})
"""Decorator for functions of entries that make arrays."""

as_written = part({"forceinline": False, "_nrt": False, **OPTIONS, "fastmath": False})
"""Decorator for loops over the components of a state, which workers divide among them: every operation is rounded as it
is written. With fast-math, SIMD code and the remainder of its loop may round differently, and a component's value would
depend on its place in a worker's part."""

_lock = threading.RLock()       # loading
_compiling = threading.RLock()  # Numba's contexts are of the whole process


class Entry:
    """A function that Python calls, compiled for one signature.

    `entry.call(...)` is the compiled function, without a Python wrapper. Before its first use it is a loader
    that replaces itself.
    """

    def __init__(self, function, label, signature, *, seconds=1.0, brief=False, by_address=False,
                 for_kernels=False):
        self.function, self.label, self.signature = function, label, signature
        self.seconds, self.brief, self.by_address, self.for_kernels = seconds, brief, by_address, for_kernels
        self.name = f"{function.__module__.removeprefix('bunraku.')}.{function.__name__}"
        self.call = self._as_python if JIT_OFF else self._first_call
        self._loaded: Loaded | None = None
        self._made: files.Code | None = None  # by this process
        functools.update_wrapper(self, function)

    def load(self):
        """Load the machine code from disk, or compile it, which is announced."""
        with _lock:
            if self.call == self._first_call:
                check_runs_here()
                made = None if self._made is None else self._loaded_code(self._made)
                self._use(made or self._from_disk(self._read) or self._compile_and_keep())
                self._made = None
        return self

    @functools.cached_property
    def address(self):
        """Address of this entry for kernels that call it (`called_by_address`)."""
        return self.function if JIT_OFF else self.load()._loaded.addresses[self._kernel]

    @property
    def _kernel(self) -> str:
        return KERNEL + self.name

    @property
    def _symbols(self) -> tuple[str, ...]:
        """Symbols of the functions called from Python and by address."""
        if self.for_kernels:
            return (self._kernel,)
        return (f"python.{self.name}", self._kernel)[:2 if self.by_address else 1]

    def _read(self, path: Path) -> Loaded:
        return self._loaded_code(files.read(path, self.key))

    def _loaded_code(self, code: files.Code) -> Loaded:
        """Loaded after the entries that its code calls."""
        for symbol in missing_symbols(code):
            if symbol.startswith(KERNEL):
                entry_of(symbol.removeprefix(KERNEL)).load()
        return Loaded(code, self._symbols)

    def _use(self, loaded: Loaded) -> None:
        self._loaded = loaded
        if self.for_kernels:
            llvm.add_symbol(self._kernel, loaded.addresses[self._kernel])
            self.call = self.function
            return
        self.call = loaded.builtin(self._symbols[0], self.function.__name__, self.label)

    # -- on disk ---------------------------------------------------------------------------------------------------

    @functools.cached_property
    def key(self) -> str:
        """Key that its machine code must have."""
        return files.key(self.function.__module__)

    def path(self, folder: Path | None = None) -> Path:
        """The file of its machine code in the cache, or in another folder that serves as one."""
        return (folder or files.writable_directory()) / f"{self.name}-{self.key}.code"

    def path_in_wheel(self, folder: Path) -> Path:
        """The file of its machine code in a folder of one version."""
        return folder / f"{self.name}.code"

    def on_disk(self) -> Path | None:
        """The file of its machine code, if one can be used."""
        return self._from_disk(lambda path: files.read(path, self.key) and path)

    def _places(self) -> list[Path]:
        places = [files.shipped(self.name), self.path(files.cache_directory())]
        if files.writable_directory.cache_info().currsize:  # something has been written there
            places.append(self.path())
        return list(dict.fromkeys(places))

    def _from_disk(self, use):
        """`use(path)` of the first usable file; a warning if there are only unusable ones."""
        unusable = []
        for path in self._places():
            try:
                result = use(path)
            except FileNotFoundError:
                continue
            except files.Unusable as why:
                unusable.append((path, why))
            else:
                files.mark_used(path)
                return result
        for path, reason in unusable:
            files.say_unusable(path, self.label, reason)
        return None

    def _compile_and_keep(self) -> Loaded:
        """Only one process compiles; the others wait for it."""
        path = self.path()
        with Progress(self.seconds, kept=files.kept()), files.alone(path):
            with contextlib.suppress(FileNotFoundError, files.Unusable):  # meanwhile another process has made it
                return self._read(path)
            code = self.compiled()
            try:
                files.write(path, code, self.key)
            except OSError as error:  # a full disk, a quota
                files.not_kept(error)
        return self._loaded_code(code)

    def compiled(self) -> files.Code:
        """Newly compiled machine code."""
        with _compiling, warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
            module, kernel = linked(self.function, self.signature, OPTIONS)
            module.get_function(kernel).name = self._kernel
            if not self.for_kernels:
                module.link_in(llvm.parse_assembly(python_function(
                    self._symbols[0], self.function.__name__, self.signature, self._kernel, self.brief)))
            self._made = files.Code(*object_code(module, self._symbols, level()))
        return self._made

    def _as_python(self, *args):
        """With the JIT off: array arguments are checked as in compiled code."""
        for k, (given, kind) in enumerate(zip(args, self.signature.args, strict=True)):
            if isinstance(kind, types.Array) and not (isinstance(given, np.ndarray) and given.ndim == kind.ndim
                                                      and given.dtype == as_dtype(kind.dtype)):
                raise ArrayMismatch(f"{self.function.__name__}: argument {k + 1} must be an array of {kind.dtype} with "
                                    f"{kind.ndim} dimensions")
        return self.function(*args)

    def _first_call(self, *args):
        self.load()
        return self.call(*args)


def entry(label, signature, **options):
    """Decorator for functions that Python calls, compiled for a Numba signature.

    seconds     approximate compilation time, for the progress line
    brief       so short that the interpreter's lock is not released
    by_address  also called by kernels, see `called_by_address`
    for_kernels called by kernels only, see `compiled_apart`
    """
    return lambda function: Entry(function, label, signature, **options)


_looked_for: set[Entry] = set()


def prepare(now, later=()) -> None:
    """Load the entries `now`; those that have to be compiled are compiled in parallel first, and so are those for
    `later`, without waiting for them. The files of these are looked up once per process: opening files takes time."""
    now = [entry for entry in dict.fromkeys(now) if entry.call == entry._first_call]
    missing = [entry for entry in now if not entry.on_disk()]
    new = [entry for entry in dict.fromkeys(later) if entry not in _looked_for]
    _looked_for.update(new)
    later = [entry for entry in new
             if entry.call == entry._first_call and entry not in missing and not entry.on_disk()]
    if worth_children((*missing, *later)):
        check_runs_here()
        compile_together(missing, later, files.writable_directory())
    for entry in now:
        entry.load()


def all_entries() -> list[Entry]:
    """Every entry of the package, those of benchmarks and references included."""
    found = {}
    for folder in files.KERNEL_FOLDERS:
        package = importlib.import_module(f"bunraku.{folder}")
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for value in vars(importlib.import_module(info.name)).values():
                if isinstance(value, Entry):
                    found[value.name] = value
    return [found[name] for name in sorted(found)]


def called_by_address(function, signature) -> None:
    """Give kernels the function (address, arguments ...), which calls an entry of this signature by its address."""
    @infer_global(function)
    class Typing(AbstractTemplate):
        def generic(self, args, kws):
            return typed(signature.return_type, types.int64, *signature.args)

    @lower_builtin(function, types.VarArg(types.Any))
    def lower(context, builder, sig, given):
        kind = context.call_conv.get_function_type(signature.return_type, signature.args)
        _, result = context.call_conv.call_function(builder, builder.inttoptr(given[0], kind.as_pointer()),
                                                    signature.return_type, signature.args, given[1:])
        return result


def compiled_apart(function, entries: dict) -> None:
    """Let kernels call entries `for_kernels`, each compiled for itself, by a function: {signature: name of the entry,
    as in `Entry.name`}. Loading a kernel that calls one loads that first. With the JIT off the function is
    `call_entry(function, args)`."""
    _apart[function] = entries

    @infer_global(function)
    class Typing(AbstractTemplate):
        def generic(self, args, kws):
            found = next((sig for sig in entries if all(given == kind or not isinstance(kind, types.Array)
                                                        for given, kind in zip(args, sig.args, strict=True))), None)
            if found is not None and not ON:  # Numba resolves symbols of every function when it has compiled it
                entry_of(entries[found]).load()
            return found

    @lower_builtin(function, types.VarArg(types.Any))
    def lower(context, builder, sig, given):
        kind = context.call_conv.get_function_type(sig.return_type, sig.args)
        name = next(name for signature, name in entries.items() if signature.args == sig.args)
        called = cgutils.get_or_insert_function(builder.module, kind, KERNEL + name)
        return context.call_conv.call_function(builder, called, sig.return_type, sig.args, given)[1]


def call_entry(function, args):
    """What `function` calls if the JIT is off."""
    name = next(name for signature, name in _apart[function].items()
                if all(given.ndim == kind.ndim for given, kind in zip(args, signature.args, strict=True)
                       if isinstance(given, np.ndarray)))
    return entry_of(name).function(*args)


_apart: dict = {}


def entry_of(name: str) -> Entry:
    """The entry of this name."""
    module, function = name.rsplit(".", 1)
    return getattr(importlib.import_module(f"bunraku.{module}"), function)
