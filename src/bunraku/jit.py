"""Compilation: how Python kernels become machine code, where the result is kept, and what people see meanwhile.

Two decorators are all there is:

* `@inline` for functions that live inside kernels; they are compiled into whoever calls them;
* `@entry(...)` for the functions Python calls. An entry has explicit signatures, so a mechanism or a structure
  change never recompiles it and odd inputs are refused instead of compiled for. It is compiled or loaded on first
  use, announced if it has to be compiled, and kept on disk.

Numba's disk cache watches only the file of the entry, not the files of the helpers it calls. The cache directory
therefore carries a hash of every file that kernels can come from: any edit of one starts a fresh cache. Nor does
Numba check what it reads: each entry has a marker with the checksums of its files, and what does not match is compiled
again.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import glob
import hashlib
import json
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
from numba.extending import typeof_impl

from bunraku.compiler import ON, WHOLE, part

# Everything fast-math allows except assuming that NaN and infinity never happen: kernels test for them.
FASTMATH = {"contract", "nsz", "arcp", "reassoc"}
OPTIONS = {"nogil": True, "fastmath": FASTMATH, "error_model": "numpy"}
JIT_OFF = bool(numba.config.DISABLE_JIT)
KERNEL_FOLDERS = ("spatial", "plan", "algorithms", "integrate", "entries", "simulate", "ivp")  # kernels live here
UNUSED_DAYS = 30  # caches of other versions of the package that were not used for so long are deleted

# Kernels never own an array, so they need no reference counts (which would cost a call for every array passed on).
inline = part({"forceinline": True, "_nrt": False, **OPTIONS})
"""Decorator for functions used inside kernels: always inlined, never called from Python."""

inner = part({"_nrt": False, **OPTIONS})
"""Decorator for larger functions used inside kernels: compiled once, called."""

allocating = part(OPTIONS)
"""Decorator for functions of entries that make arrays."""

_lock = threading.RLock()


@functools.cache
def package_hash() -> str:
    """Hash of every source file that kernels can come from, of Numba's version and of the processor."""
    here = Path(__file__).parent
    digest = hashlib.blake2b(str(here).encode(), digest_size=10)
    kernels = (path for name in KERNEL_FOLDERS for path in (here / name).rglob("*.py"))
    for path in sorted([Path(__file__), here / "compiler.py", here / "tolerances.py", *kernels]):
        digest.update(str(path.relative_to(here)).encode())
        digest.update(path.read_bytes())
    width = os.environ.get("BUNRAKU_LANE_WIDTH", "")
    processor = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    digest.update(f"{numba.__version__} {processor} {sys.version_info[:2]} {width} {ON}".encode())
    return digest.hexdigest()


def cache_root() -> Path:
    """The user's cache folder, or the one that NUMBA_CACHE_DIR names."""
    base = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(base) if base else home / "bunraku"


@functools.cache
def cache_directory() -> Path:
    """Where compiled kernels of exactly this version of the package are kept."""
    root = cache_root()
    path = root / f"kernels-{package_hash()}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / "in-use").touch()
        os.utime(path)
    except OSError as error:  # a read-only home: for this process only, not in places that would not notice an edit
        _not_kept(error)
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
        self.type = types.FunctionType(kind)
        self.address = found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name)

    def __wrapper_address__(self):
        return self.address

    def signature(self):
        return self.kind


@typeof_impl.register(Address)
def _type_of_address(address, _):
    """Made once: Numba would make the type anew in every call, which takes as long as a hundred steps."""
    return address.type


def kept_on_disk(function):
    """The function, to be compiled on first use; its machine code goes where that of the kernels is. If nothing can be
    written there it is not kept: Numba would write beside the source, where no edit of a helper is noticed."""
    previous = numba.config.CACHE_DIR
    try:
        folder = numba.config.CACHE_DIR = str(cache_directory())
        dispatcher = njit(cache=True, **WHOLE, **OPTIONS)(function)
        if Path(dispatcher.stats.cache_path).parent == Path(folder):
            return dispatcher
        _not_kept(f"{folder} cannot be written to")
    except OSError as error:
        _not_kept(error)
    except RuntimeError:  # Numba's word for a place to which nothing can be written
        _not_kept(f"{folder} cannot be written to")
    finally:
        numba.config.CACHE_DIR = previous
    return njit(**WHOLE, **OPTIONS)(function)


class Stored:
    """The files of an entry: Numba's index and machine code, and a marker with their checksums, which is written last.

    Damaged machine code may be read without an error and crash when it runs, so checksums are compared first.
    """

    def __init__(self, dispatcher, function):
        cache = dispatcher._cache
        self.kept = hasattr(cache, "_cache_file")  # not if nothing can be written
        if self.kept:
            self.pattern = os.path.join(glob.escape(cache.cache_path), glob.escape(cache._impl.filename_base) + ".*")
            self.marker = cache_directory() / f"{function.__module__}.{function.__name__}.done"
            self.lock = self.marker.with_suffix(".lock")

    def checksums(self) -> dict[str, str]:
        return {os.path.basename(path): hashlib.blake2b(Path(path).read_bytes(), digest_size=16).hexdigest()
                for path in sorted(glob.glob(self.pattern)) if path.endswith((".nbi", ".nbc"))}

    def state(self) -> str:
        """Either "whole", "damaged", or "absent": never compiled, or interrupted while it was."""
        try:
            return "whole" if json.loads(self.marker.read_bytes()) == self.checksums() else "damaged"
        except FileNotFoundError:
            return "damaged" if self.marker.exists() else "absent"
        except (OSError, ValueError):
            return "damaged"

    def seal(self) -> None:
        """Everything is written: say so in the marker."""
        partial = self.marker.with_suffix(f".{os.getpid()}.partial")
        try:
            partial.write_text(json.dumps(self.checksums()))
            partial.replace(self.marker)
        except OSError as error:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
            self.discard()
            _not_kept(error)

    def discard(self) -> None:
        for path in (self.marker, *glob.glob(self.pattern)):
            with contextlib.suppress(OSError):
                os.unlink(path)


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
            dispatcher = self._obtain()
            dispatcher.disable_compile()
            self.call = dispatcher
        return self

    def _obtain(self):
        dispatcher = kept_on_disk(self.function)
        stored = Stored(dispatcher, self.function)
        if not stored.kept:
            with _Announced(self.label, kept=False):
                self._compile(dispatcher)
            return dispatcher
        if stored.state() == "whole" and self._read(dispatcher, stored):
            return dispatcher
        with _alone(stored.lock):
            state = stored.state()  # meanwhile another process may have compiled it, or mended it
            dispatcher = kept_on_disk(self.function)
            if state == "whole" and self._read(dispatcher, stored):
                return dispatcher
            stored.discard()
            dispatcher = kept_on_disk(self.function)
            with _Announced(self.label):
                kept = self._compile(dispatcher)
            if kept:
                stored.seal()
            else:
                stored.discard()
            if state != "absent":
                _say(f"the stored machine code of {self.label} was damaged; compiled again")
        return dispatcher

    def _read(self, dispatcher, stored) -> bool:
        """Load the machine code; False if that cannot be done."""
        try:
            kept = self._compile(dispatcher)
        except Exception:  # files as they were written, but not for Numba as it is now
            return False
        if kept and sum(dispatcher.stats.cache_misses.values()):  # compiled after all, and added to the files
            stored.seal()
        return True

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

    def _compile(self, dispatcher) -> bool:
        """Compile or load all signatures; whether the result could be written."""
        kept = True
        with warnings.catch_warnings():  # functions as arguments: how solvers get their right-hand side
            warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
            for signature in self.signatures:
                try:
                    dispatcher.compile(signature)
                except OSError as error:  # a full disk, a quota: Numba writes when all else is done
                    if signature.args not in dispatcher.overloads:
                        raise
                    kept = False
                    _not_kept(error)
        return kept

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


def _say(what: str) -> None:
    """A line on standard error; quiet with BUNRAKU_QUIET=1."""
    if os.environ.get("BUNRAKU_QUIET", "") in ("", "0"):
        print(f"bunraku: {what}", file=sys.stderr, flush=True)


def _not_kept(why) -> None:
    """Say once that machine code is not kept on disk."""
    if not _not_kept_said:
        _not_kept_said.append(why)
        why = f"{why.filename or cache_root()}: {why.strerror}" if isinstance(why, OSError) else why
        _say(f"compiled code cannot be kept on disk ({why}): it serves this process only, and the next one compiles "
             "again; NUMBA_CACHE_DIR chooses another folder")


_not_kept_said: list = []


class _Announced:
    """Says on standard error what is being compiled and how long it took; quiet with BUNRAKU_QUIET=1."""

    def __init__(self, label, kept=True):
        self.label, self.where = label, "; kept on disk" if kept else ""
        self.quiet = os.environ.get("BUNRAKU_QUIET", "") not in ("", "0")

    def __enter__(self):
        self.start = time.perf_counter()
        if not self.quiet:
            print(f"bunraku: compiling {self.label} (first use on this machine{self.where}) ...",
                  end="" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)

    def __exit__(self, kind, value, trace):
        if not self.quiet and kind is None:
            done = f" {time.perf_counter() - self.start:.1f} s"
            line = done if sys.stderr.isatty() else f"bunraku: compiled {self.label} in{done}"
            print(line, file=sys.stderr, flush=True)
