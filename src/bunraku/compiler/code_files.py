"""Machine code on disk: a file per entry, in the user's cache folder or in the package itself (a wheel's).

A file is only used if its key is ours: a hash of the source files that the entry's kernels can come from (its module
and all that this imports, directly or not), Numba's version (0.68 of 0.68.1), the kind of processor and the width of
lanes. An edit of a helper therefore recompiles the entries that may contain it, and no others. A checksum detects
damaged files, which would crash when they run. Files are written under another name and renamed, so that partial files
never appear.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numba

from bunraku.compiler.calling import HEAD
from bunraku.compiler.parts import ON
from bunraku.compiler.targets import lane_width, level

KERNEL_FOLDERS = ("spatial", "plan", "algorithms", "integrate", "workers", "entries", "runs",
                  "ivp", "contact")  # kernels live here
KERNEL_FILES = ("jit.py", "tolerances.py", "compiler")
UNUSED_DAYS = 30  # caches of other versions of the package that were not used for so long are deleted
MAGIC = b"bunraku machine code 1\n"
PACKAGE = Path(__file__).parents[1]
SHIPPED = PACKAGE / "machine_code"


class Code(NamedTuple):
    """Object code of an entry."""

    object: bytes
    needs: list[str]  # symbols that must be known where it is loaded


class Unusable(Exception):
    """A file that cannot be used; the text says why."""


@functools.cache
def machine_key() -> str:
    """Key of what all entries depend on: compiler, Numba, processor, lanes."""
    versions = ".".join(numba.__version__.split(".")[:2])
    processor = level() if level().name == "native" else level().name
    return _digest([PACKAGE / "jit.py", *(PACKAGE / "compiler").rglob("*.py")],
                   f"{versions} {processor} {lane_width()} {ON} {HEAD}")


@functools.cache
def kernels_key() -> str:
    """Key of the sources of all kernels: processes that compute one mechanism together must have the same."""
    return _digest([path for name in (*KERNEL_FOLDERS, *KERNEL_FILES)
                    for path in ([PACKAGE / name] if name.endswith(".py") else (PACKAGE / name).rglob("*.py"))],
                   machine_key())


@functools.cache
def key(module: str) -> str:
    """Key that machine code of an entry of this module must have to be used here."""
    found, new = {module}, [module]
    while new:
        added = _imported(new.pop()) - found
        found |= added
        new += added
    return _digest([path for name in found if (path := _file_of(name)) is not None], machine_key())


def _digest(paths, text: str) -> str:
    digest = hashlib.blake2b(text.encode(), digest_size=10)
    for path in sorted(paths):
        digest.update(path.name.encode() + b"\n")
        digest.update(path.read_bytes())
    return digest.hexdigest()


IMPORT = re.compile(rb"^[ \t]*(?:from (bunraku[.\w]*) import (\([^)]*\)|[^\n#]*)|import (bunraku[.\w]+))", re.MULTILINE)
_ROOTS = tuple(f"bunraku.{name.removesuffix('.py')}" for name in (*KERNEL_FOLDERS, "tolerances.py"))


@functools.cache
def _imported(module: str) -> frozenset[str]:
    """The modules with kernels or their constants that a module imports, anywhere in its source."""
    found, path = set(), _file_of(module)
    for source, names, whole in IMPORT.findall(path.read_bytes() if path is not None else b""):
        name = (source or whole).decode()
        found.add(name)
        found.update(f"{name}.{part}" for part in re.findall(r"\w+", names.decode()))
    return frozenset(name for name in found if name.startswith(_ROOTS) and _file_of(name) is not None)


@functools.cache
def _file_of(module: str) -> Path | None:
    """Source file of a module; None if there is no such module."""
    if not module.startswith("bunraku."):
        file = getattr(sys.modules.get(module), "__file__", None)
        return Path(file) if file else None
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


# -- one file ------------------------------------------------------------------------------------------------------


def write(path: Path, code: Code, key: str) -> None:
    header = json.dumps({"key": key, "needs": code.needs}).encode() + b"\n"
    content = header + code.object
    partial = path.with_suffix(f".{os.getpid()}.partial")
    try:
        partial.write_bytes(MAGIC + hashlib.blake2b(content, digest_size=16).hexdigest().encode() + b"\n" + content)
        partial.replace(path)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def read(path: Path, key: str) -> Code:
    """The contents of a file; Unusable if they are damaged, or have another key."""
    try:
        magic, checksum, content = path.read_bytes().split(b"\n", 2)
        if magic + b"\n" != MAGIC or hashlib.blake2b(content, digest_size=16).hexdigest().encode() != checksum:
            raise ValueError
        header, code = content.split(b"\n", 1)
        told = json.loads(header)
        made_from, needs = told["key"], list(map(str, told["needs"]))
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(path) from None
    except OSError as error:
        raise Unusable(f"cannot be read ({error.strerror})") from error
    except (ValueError, LookupError, TypeError):
        raise Unusable("is damaged") from None
    if made_from != key:
        raise Unusable("was made from other sources, for another version of Numba or for another kind of processor")
    return Code(code, needs)


def usable(path: Path, key: str) -> bool:
    try:
        read(path, key)
    except (FileNotFoundError, Unusable):
        return False
    return True


# -- folders -------------------------------------------------------------------------------------------------------


def shipped(name: str) -> Path:
    """Path of an entry's machine code in a wheel."""
    return SHIPPED / level().name / f"{name}.code"


def cache_root() -> Path:
    """The user's cache folder, or the one that NUMBA_CACHE_DIR names."""
    if base := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(base).absolute()
    if home := os.environ.get("XDG_CACHE_HOME"):
        return Path(home) / "bunraku"
    try:
        return Path.home() / ".cache" / "bunraku"
    except RuntimeError:  # a user without a home: nothing can be kept
        return Path(os.devnull) / "bunraku"


@functools.cache
def cache_directory() -> Path:
    """Folder of machine code for this compiler and processor; may not exist, or be read-only."""
    return cache_root() / f"kernels-{machine_key()}"


@functools.cache
def writable_directory() -> Path:
    """The cache folder, or, if nothing can be written there, one for this process only."""
    path = cache_directory()
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / "in-use").touch()
        os.utime(path)
    except OSError as error:
        not_kept(error)
        try:
            path = Path(tempfile.mkdtemp(prefix="bunraku-kernels-"))
        except OSError:  # nowhere at all
            return path
        atexit.register(shutil.rmtree, path, ignore_errors=True)
        return path
    _delete_unused(path.parent)
    return path


@functools.cache
def mark_used(path: Path) -> None:
    """Code in this file and folder is in use: other versions of the package do not delete it."""
    if path.parent == cache_directory():
        with contextlib.suppress(OSError):
            os.utime(path)
            os.utime(path.parent)


def _delete_unused(root: Path) -> None:
    def unused(path: Path) -> bool:
        return time.time() - path.stat().st_mtime > UNUSED_DAYS * 86400

    with contextlib.suppress(OSError):
        for folder in root.glob("kernels-*"):
            if unused(folder):
                shutil.rmtree(folder, ignore_errors=True)
        for path in cache_directory().glob("*.code"):
            if unused(path):
                path.unlink()


@contextlib.contextmanager
def alone(path: Path, wait: bool = True):
    """Lock between processes: one compiles, the others wait (or, with wait=False, get False) and read its result.
    On file systems without locks, each compiles for itself."""
    with contextlib.ExitStack() as stack:
        mine = True
        try:
            import fcntl

            file = stack.enter_context(open(path.with_suffix(".lock"), "w"))
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            mine = False
        except (ImportError, OSError):
            pass
        yield mine


# -- notices -------------------------------------------------------------------------------------------------------


def quiet() -> bool:
    return os.environ.get("BUNRAKU_QUIET", "") not in ("", "0")


def say(what: str) -> None:
    """A line on standard error; quiet with BUNRAKU_QUIET=1."""
    if not quiet():
        print(f"bunraku: {what}", file=sys.stderr, flush=True)


def say_unusable(path: Path, label: str, why: Unusable) -> None:
    """Print the reason for not using a file: once for all files of a wheel, once for each damaged one of the cache."""
    shipped_with = SHIPPED in path.parents
    about = SHIPPED if shipped_with else path.parent if isinstance(why.__cause__, OSError) else path
    if about not in _said:
        _said.add(about)
        say(f"the machine code of this installation {why}: what is needed is compiled instead" if shipped_with else
            f"the stored machine code of {label} {why}; it is compiled again")


def not_kept(error: OSError) -> None:
    """Print once that machine code is not stored on disk."""
    if not _kept_nothing:
        _kept_nothing.append(error)
        say(f"compiled code cannot be kept on disk ({error.filename or cache_root()}: {error.strerror}): it serves "
            "this process only, and the next one compiles again; NUMBA_CACHE_DIR chooses another folder")


def kept() -> bool:
    """Whether machine code can be stored on disk, as far as known."""
    return not _kept_nothing


_said: set[Path] = set()
_kept_nothing: list[OSError] = []
