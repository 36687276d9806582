"""Files of trajectories and checkpoints: a JSON header and arrays in one .npz, never pickled, replaced atomically.
Recordings (`record/`) are read into the same form.

A file is written under a temporary name and then renamed, so that a crash leaves the old file or the new one.
All contents are checked before use: a damaged or tampered file is a ModelError that names it.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import platform
import threading
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bunraku.errors import BunrakuError, MissingExtra, MissingFileError, ModelError, ShapeError
from bunraku.record import is_recording

SUFFIX, RECORDED, PARTIAL = ".npz", ".mcap", ".partial"
DEFLATE = 1032  # no deflated data are longer than this many times their compressed form
KINDS = {"trajectory": "bk.load_trajectory", "checkpoint": "bk.Simulation.load"}


class Rule(NamedTuple):
    """Requirements on an array of a file: its shape, as numbers and names of sizes, and its contents."""

    shape: tuple[str | int, ...]
    dtype: type = float
    finite: bool = True
    rising: bool = False    # never decreases
    optional: bool = False  # files of earlier versions do not have it


def check(what: str, array: np.ndarray, rule: Rule, sizes: dict[str, int]) -> None:
    """A ShapeError if the array is not as the rule says. Sizes that are not known yet are taken from it."""
    if array.dtype != np.dtype(rule.dtype) or array.ndim != len(rule.shape):
        raise ShapeError(f"{what} is an array of {array.ndim} dimensions of {array.dtype}, "
                         f"not of {len(rule.shape)} of {np.dtype(rule.dtype)}")
    for size, name in zip(array.shape, rule.shape, strict=True):
        wanted = sizes.setdefault(name, size) if isinstance(name, str) else name
        if size != wanted:
            raise ShapeError(f"{what} has the shape {array.shape}; {size} should be {wanted}"
                             + (f" ({name})" if isinstance(name, str) else ""))
    if rule.finite and not np.isfinite(array).all():
        place = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
        raise ShapeError(f"{what}{list(place)} is {array[place]}, not a finite number")
    if rule.rising and (np.diff(array) < 0).any():
        k = int(np.argmax(np.diff(array) < 0))
        raise ShapeError(f"{what} decreases from {array[k]:.17g} to {array[k + 1]:.17g}")


def write(path, header: dict, arrays: dict[str, np.ndarray]) -> Path:
    """Write a file; on failure an existing one is unchanged. Returns its path, which ends in .npz."""
    path = _named(path)
    if not path.parent.is_dir():
        raise MissingFileError(f"{path}: there is no folder {str(path.parent)!r}")
    ours = f".{path.name}.{platform.node()}-"
    _clear(path, ours)
    partial = path.with_name(f"{ours}{os.getpid()}-{threading.get_ident()}{PARTIAL}")
    try:
        with open(partial, "wb") as file:
            np.savez_compressed(file, allow_pickle=False, header=np.array(json.dumps(header, default=_plain)), **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
    with contextlib.suppress(OSError):  # the new name too, where folders can be synchronised
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return path


def _named(path) -> Path:
    """The file that is written and read under this name."""
    path = Path(path)
    return path if path.suffix == SUFFIX else path.with_name(path.name + SUFFIX)


def _plain(number):
    """A number of NumPy as one of Python."""
    return number.item()


def _clear(path: Path, ours: str) -> None:
    """Remove partial files that killed processes of this machine have left."""
    with contextlib.suppress(OSError):
        for name in os.listdir(path.parent):
            if name.startswith(ours) and name.endswith(PARTIAL):
                process = name.removeprefix(ours).partition("-")[0]
                if process.isdigit() and not _alive(int(process)):
                    with contextlib.suppress(OSError):
                        path.with_name(name).unlink()


def _alive(process: int) -> bool:
    if os.name == "nt":
        return True  # there os.kill(process, 0) would end it
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def read(path, kind: str, use):
    """`use(header, arrays)` of a file that `write` wrote, where `arrays(name, rule, sizes, what)` gives checked arrays.

    Anything wrong with it is a ModelError; a file that is not there is a MissingFileError.
    """
    path = Path(path) if Path(path).is_file() or Path(path).suffix == RECORDED else _named(path)
    recorded = is_recording(path)
    try:
        header, parts = _recorded(path, kind) if recorded else _saved(path, kind)

        def arrays(name: str, rule: Rule, sizes: dict[str, int], what: str) -> np.ndarray | None:
            if name not in parts:
                if rule.optional:
                    return None
                raise ValueError(f"{what} is missing")
            part = parts.pop(name)
            array = _array(part) if isinstance(part, bytes) else part
            check(what, array, rule, sizes)
            return array

        return use(header, arrays)
    except FileNotFoundError:
        raise MissingFileError(f"{path}: there is no such file") from None
    except Exception as error:  # whatever damaged data make the readers of zip, NumPy, JSON and mechanisms raise
        if isinstance(error, MissingExtra):
            raise
        if isinstance(error, _Refused):
            raise ModelError(f"{path}{error}") from None
        ours = isinstance(error, (BunrakuError, ValueError, KeyError, zipfile.BadZipFile))
        said = str(error) if ours or getattr(error, "filename", None) else ""
        what = f": {said[:300]}" if said and "pickle" not in said else ""  # advice to load it unsafely would be wrong
        kind = "recording" if recorded else kind
        raise ModelError(f"{path} is not a {kind} that bunraku wrote, or it is damaged{what}") from error


def _saved(path, kind) -> tuple[dict, dict]:
    parts = _parts(path)
    return _header(parts, kind), parts


def _recorded(path, kind) -> tuple[dict, dict]:
    from bunraku.record.reading import read_recording

    if kind != "trajectory":
        refuse(f" is a recording, not a {kind}: {KINDS['trajectory']} reads it")
    return read_recording(path)


def _parts(path) -> dict[str, bytes]:
    """Contents of the file, by name. All checksums are compared first, so that damage is found before use."""
    with open(path, "rb") as stream, zipfile.ZipFile(stream) as archive:
        contents = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        length = stream.seek(0, os.SEEK_END)
        if len(contents) < len(archive.infolist()) or sum(i.file_size for i in contents.values()) > DEFLATE * length:
            raise ValueError("its table of contents is damaged")
        return {name: archive.read(info) for name, info in contents.items()}


class _Refused(Exception):
    """Reason for rejecting an intact file: the text that follows its path in the message."""


def refuse(why: str):
    """Make `read` reject an intact file that is not for this use."""
    raise _Refused(why)


def _header(parts, kind) -> dict:
    if "header" not in parts:
        raise ValueError("it has no header")
    array = _array(parts.pop("header"))
    if array.dtype.kind != "U" or array.ndim:
        raise ValueError("its header is not text")
    header = json.loads(str(array))
    if not isinstance(header, dict) or "format" not in header:
        raise ValueError("its header is not that of a file of bunraku")
    found = header.get("kind", "trajectory")
    if found != kind and found in KINDS:
        refuse(f" is a {found}, not a {kind}: {KINDS[found]} reads it")
    if found != kind:
        raise ValueError(f"it is of the kind {found!r}")
    return header


def _array(data: bytes) -> np.ndarray:
    """An array in NumPy's format; no more memory is allocated than the file contains."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"an array of NumPy's format {version}")
    form = np.lib.format
    header = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
    shape, fortran, dtype = header(stream)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(data) - stream.tell() or min(shape, default=0) < 0:
        raise ValueError(f"an array of {dtype} and shape {shape} in {len(data)} bytes")
    return np.frombuffer(data, dtype, offset=stream.tell()).reshape(shape, order="F" if fortran else "C").copy()
