"""Compilation: how Python kernels become machine code, where the result is kept, and what people see meanwhile.

Two decorators are all there is:

* `@inline` for functions that live inside kernels; they are compiled into whoever calls them;
* `@entry(...)` for the functions Python calls. An entry has explicit signatures, so a mechanism or a structure
  change never recompiles it and odd inputs are refused instead of compiled for. It is compiled or loaded on first
  use, announced if it has to be compiled, and kept on disk.

Numba's disk cache watches only the file of the entry, not the files of the helpers it calls. The cache directory
therefore carries a hash of every file that kernels can come from: any edit of one starts a fresh cache.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
from numba import njit, types
from numba.core.errors import NumbaExperimentalFeatureWarning

# Everything fast-math allows except assuming that NaN and infinity never happen: kernels test for them.
FASTMATH = {"contract", "nsz", "arcp", "reassoc"}
OPTIONS = {"nogil": True, "fastmath": FASTMATH, "error_model": "numpy"}
JIT_OFF = bool(numba.config.DISABLE_JIT)
KERNEL_FOLDERS = ("spatial", "plan", "algorithms", "integrate", "run")  # kernels live here, and only here
UNUSED_DAYS = 30  # caches of other versions of the package that were not used for so long are deleted

# Kernels never own an array, so they need no reference counts (which would cost a call for every array passed on).
inline = njit(forceinline=True, _nrt=False, **OPTIONS)
"""Decorator for functions used inside kernels: always inlined, never called from Python."""

inner = njit(_nrt=False, **OPTIONS)
"""Decorator for larger functions used inside kernels: compiled once, called."""

allocating = njit(**OPTIONS)
"""Decorator for functions of entries that make arrays."""

_lock = threading.RLock()


@functools.cache
def package_hash() -> str:
    """Hash of every source file that kernels can come from, of Numba's version and of the processor."""
    here = Path(__file__).parent
    digest = hashlib.blake2b(str(here).encode(), digest_size=10)
    for path in sorted([Path(__file__), *(p for name in KERNEL_FOLDERS for p in (here / name).rglob("*.py"))]):
        digest.update(str(path.relative_to(here)).encode())
        digest.update(path.read_bytes())
    width = os.environ.get("BUNRAKU_LANE_WIDTH", "")
    digest.update(f"{numba.__version__} {llvm.get_host_cpu_name()} {sys.version_info[:2]} {width}".encode())
    return digest.hexdigest()


@functools.cache
def cache_directory() -> Path:
    """Where compiled kernels of exactly this version of the package are kept."""
    base = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = Path(base) if base else home / "bunraku"
    path = root / f"kernels-{package_hash()}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / "in-use").touch()
        os.utime(path)
    except OSError:  # a read-only home: for this process only, rather than in places that would not notice an edit
        path = Path(tempfile.mkdtemp(prefix="bunraku-kernels-"))
        atexit.register(shutil.rmtree, path, ignore_errors=True)
        return path
    with contextlib.suppress(OSError):
        for other in root.glob("kernels-*"):
            if time.time() - other.stat().st_mtime > UNUSED_DAYS * 86400:
                shutil.rmtree(other, ignore_errors=True)
    return path


class Address(types.WrapperAddressProtocol):
    """An entry as an argument of another. Given the entry itself, Numba would look for its address in every call, which
    takes a tenth of a millisecond and keeps other threads from running Python."""

    def __init__(self, dispatcher, kind):
        found = dispatcher.get_compile_result(kind)
        self.kind, self.dispatcher = kind, dispatcher  # kept: an address has no owner
        self.address = found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name)

    def __wrapper_address__(self):
        return self.address

    def signature(self):
        return self.kind


def kept_on_disk(function):
    """The function, to be compiled on first use; its machine code goes where that of the kernels is."""
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_directory())
    try:
        return njit(cache=True, **OPTIONS)(function)
    finally:
        numba.config.CACHE_DIR = previous


class Entry:
    """A function that Python calls and Numba compiles, for the given signatures only.

    `entry.call(...)` is the compiled function: no Python code stands between. Before its first use it is a loader
    that replaces itself.
    """

    def __init__(self, function, label, signatures):
        self.function, self.label = function, label
        self.signatures = signatures
        self.call = function if JIT_OFF else self._first_call
        functools.update_wrapper(self, function)

    def load(self):
        """Make sure that machine code is there: from the disk cache, or by compiling, which is announced."""
        with _lock:
            if self.call != self._first_call:
                return self
            dispatcher = kept_on_disk(self.function)
            marker = cache_directory() / f"{self.function.__module__}.{self.function.__name__}.done"
            with contextlib.nullcontext() if marker.exists() else _alone(marker.with_suffix(".lock")):
                if marker.exists():
                    self._compile(dispatcher)
                else:
                    with _Announced(self.label):
                        self._compile(dispatcher)
                    marker.touch()
            dispatcher.disable_compile()
            self.call = dispatcher
        return self

    @functools.cached_property
    def as_argument(self):
        """What to give to an entry that takes a function."""
        self.load()
        return self.function if JIT_OFF else Address(self.call, self.signatures[0])

    @functools.cached_property
    def trusted(self):
        """The compiled function without a look at the types of its arguments, which takes longer than a short run: for
        callers that make all of them themselves, exactly as the first signature says."""
        dispatcher: Any = self.load().call
        return dispatcher if JIT_OFF else dispatcher.get_compile_result(self.signatures[0]).entry_point

    def _compile(self, dispatcher):
        with warnings.catch_warnings():  # functions as arguments: how solvers get their right-hand side
            warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
            for signature in self.signatures:
                dispatcher.compile(signature)

    def _first_call(self, *args):
        self.load()
        return self.call(*args)


def entry(label, signatures):
    """Decorator for functions that Python calls, compiled for a list of Numba signatures."""
    return lambda function: Entry(function, label, signatures)


@contextlib.contextmanager
def _alone(path):
    """Other processes wait: one compiles, the others then read what it wrote. Where there are no such locks, each
    compiles for itself."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(stack.enter_context(open(path, "w")), fcntl.LOCK_EX)
        yield


class _Announced:
    """Says on standard error what is being compiled and how long it took; quiet with BUNRAKU_QUIET=1."""

    def __init__(self, label):
        self.label = label
        self.quiet = os.environ.get("BUNRAKU_QUIET", "") not in ("", "0")

    def __enter__(self):
        self.start = time.perf_counter()
        if not self.quiet:
            print(f"bunraku: compiling {self.label} (first use on this machine; kept on disk) ...",
                  end="" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)

    def __exit__(self, kind, value, trace):
        if not self.quiet and kind is None:
            done = f" {time.perf_counter() - self.start:.1f} s"
            line = done if sys.stderr.isatty() else f"bunraku: compiled {self.label} in{done}"
            print(line, file=sys.stderr, flush=True)
