"""Machine code on disk: a file per entry, in the user's cache folder or in the package itself (a wheel's).

A file is only used if its key is ours: a hash of every source file that kernels can come from, Numba's version (0.68 of
0.68.1), the kind of processor and the width of lanes. An edit of any helper therefore starts a fresh cache. A checksum
detects damaged files, which would crash when they run. Files are written under another name and renamed, so that
partial files never appear.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import json
import os
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
def key() -> str:
    """Key that machine code must have to be used here."""
    digest = hashlib.blake2b(digest_size=10)
    paths = [path for name in (*KERNEL_FOLDERS, *KERNEL_FILES)
             for path in ([PACKAGE / name] if name.endswith(".py") else (PACKAGE / name).rglob("*.py"))]
    for path in sorted(paths):
        digest.update(path.relative_to(PACKAGE).as_posix().encode())
        digest.update(path.read_bytes())
    versions = ".".join(numba.__version__.split(".")[:2])
    processor = level() if level().name == "native" else level().name
    digest.update(f"{versions} {processor} {lane_width()} {ON} {HEAD}".encode())
    return digest.hexdigest()


# -- one file ------------------------------------------------------------------------------------------------------


def write(path: Path, code: Code) -> None:
    header = json.dumps({"key": key(), "needs": code.needs}).encode() + b"\n"
    content = header + code.object
    partial = path.with_suffix(f".{os.getpid()}.partial")
    try:
        partial.write_bytes(MAGIC + hashlib.blake2b(content, digest_size=16).hexdigest().encode() + b"\n" + content)
        partial.replace(path)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def read(path: Path) -> Code:
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
    if made_from != key():
        raise Unusable("was made from other sources, for another version of Numba or for another kind of processor")
    return Code(code, needs)


def usable(path: Path) -> bool:
    try:
        read(path)
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
    """Folder of machine code of exactly this version of the package; may not exist, or be read-only."""
    return cache_root() / f"kernels-{key()}"


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
def mark_used(folder: Path) -> None:
    """Code in this folder is in use: other versions of the package do not delete it."""
    if folder == cache_directory():
        with contextlib.suppress(OSError):
            os.utime(folder)


def _delete_unused(root: Path) -> None:
    with contextlib.suppress(OSError):
        for other in root.glob("kernels-*"):
            if time.time() - other.stat().st_mtime > UNUSED_DAYS * 86400:
                shutil.rmtree(other, ignore_errors=True)


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
