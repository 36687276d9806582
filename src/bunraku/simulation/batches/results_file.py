"""Files to which results are appended one by one: the results of an ensemble.

A file is a sequence of records, each with its length and checksum in front: JSON, then the bytes of its arrays. Nothing
is pickled. A process that is killed while it writes leaves at most one incomplete record at the end, which is removed
when the file is opened again; damage elsewhere is a ModelError. One process at a time may write.

Contents: None, numbers, text, bytes, lists, tuples, dictionaries, arrays and scalars of NumPy, mechanisms,
trajectories, rollouts, and exceptions by type and message. Values are read back with the same types.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import struct
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bunraku.errors import MissingFileError, ModelError, SimulationError
from bunraku.mechanism import Mechanism
from bunraku.mechanism.describe import describe, rebuild
from bunraku.simulation.batches.rollout import Rollout
from bunraku.simulation.records.storage import check
from bunraku.simulation.records.trajectory import Trajectory, from_file, to_file

FORMAT = 1
MAGIC = b"BKR1"
FRAME = struct.Struct("<4sQI")      # mark, length and checksum of a record
TEXT = struct.Struct("<Q")          # length of its JSON
SYNC = 1.0                          # [s] at most between two moments at which the disk has everything
_OPEN: set[Path] = set()             # files that this process writes: locks are between processes
KNOWN = "None, numbers, text, lists, tuples, dicts, NumPy arrays, a Mechanism, a Trajectory or a Rollout"


class Failure(NamedTuple):
    """An exception as it travels between processes and is kept in files; attributes of its own are not kept."""

    module: str
    name: str
    message: str
    arguments: tuple
    trace: str

    @classmethod
    def of(cls, error: BaseException, trace: str) -> Failure:
        arguments = error.args
        if isinstance(error, OSError) and error.filename is not None:
            arguments = (error.errno, error.strerror, error.filename)
        if not all(type(x) in (str, int, float, bool, type(None)) for x in arguments):
            arguments = (str(error),)
        return cls(type(error).__module__, type(error).__qualname__, str(error), arguments, trace)

    def exception(self, case: int) -> Exception:
        """The exception, of its original type if that can be constructed here; the traceback is a note."""
        kind: Any = sys.modules.get(self.module)
        for part in self.name.split("."):
            kind = getattr(kind, part, None)
        error: Exception | None = None
        if isinstance(kind, type) and issubclass(kind, Exception):
            with contextlib.suppress(Exception):
                error = kind(*self.arguments)
        if error is None or str(error) != self.message:
            error = SimulationError(f"{self.name}: {self.message}")
        error.add_note(f"case {case}, where it was computed:\n{self.trace.rstrip()}")
        return error


# -- values as JSON and arrays ---------------------------------------------------------------------------------------


class Unstorable(Exception):
    """A value that cannot be stored in a file."""


def pack(value) -> bytes:
    """A value as bytes, the same in every process; Unstorable names the part that cannot be stored."""
    arrays: list[np.ndarray] = []
    text = json.dumps(_plain(value, arrays), separators=(",", ":")).encode()
    return b"".join([TEXT.pack(len(text)), text, *(array.tobytes() for array in arrays)])


def unpack(data: bytes):
    """The inverse of `pack`; ValueError, KeyError or a BunrakuError for invalid bytes."""
    (length,) = TEXT.unpack_from(data)
    return _value(json.loads(data[TEXT.size:TEXT.size + length]), _Bytes(data, TEXT.size + length))


def digest(value) -> str:
    """A digest of a value."""
    return hashlib.sha256(pack(value)).hexdigest()[:32]


class _Bytes:
    """Arrays, one after the other."""

    def __init__(self, data: bytes, start: int):
        self.data, self.at = data, start

    def take(self, dtype: str, shape: list[int]) -> np.ndarray:
        kind = np.dtype(dtype)
        size = kind.itemsize * math.prod(shape)
        if kind.hasobject or min(shape, default=0) < 0 or self.at + size > len(self.data):
            raise ValueError(f"an array of {dtype} and shape {shape} is not there")
        array = np.frombuffer(self.data, kind, math.prod(shape), self.at).reshape(shape).copy()
        self.at += size
        return array


def _plain(value, arrays: list[np.ndarray]):
    """JSON of a value; its arrays are appended to `arrays`. Types unknown to JSON are lists that begin with a type
    name."""
    def inner(x):
        return _plain(x, arrays)

    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is complex:
        return ["complex", value.real, value.imag]
    if kind is bytes:
        return ["bytes", value.hex()]
    if kind is list or kind is tuple:
        return [kind.__name__, *map(inner, value)]
    if kind is dict:
        if all(type(key) is str for key in value):
            return {key: inner(x) for key, x in value.items()}
        return ["dict", *([inner(key), inner(x)] for key, x in value.items())]
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        if array.dtype.hasobject or array.dtype.names:
            raise Unstorable(f"an array of {array.dtype}")
        arrays.append(np.ascontiguousarray(array))
        return ["array" if isinstance(value, np.ndarray) else "scalar", array.dtype.str, list(array.shape)]
    if isinstance(value, Mechanism):
        return ["mechanism", json.loads(json.dumps(describe(value), default=lambda number: number.item()))]
    if isinstance(value, Trajectory):
        header, parts = to_file(value)
        return ["trajectory", json.loads(json.dumps(header, default=lambda number: number.item())), inner(parts)]
    if isinstance(value, Rollout):
        return ["rollout", {field.name: inner(getattr(value, field.name)) for field in dataclasses.fields(Rollout)}]
    if isinstance(value, Failure):
        return ["failure", inner(tuple(value))]
    raise Unstorable(f"a {kind.__module__}.{kind.__qualname__}".replace("a builtins.", "a "))


def _value(plain, data: _Bytes):
    if isinstance(plain, dict):
        return {key: _value(x, data) for key, x in plain.items()}
    if not isinstance(plain, list):
        return plain
    kind, *rest = plain
    if kind == "list":
        return [_value(x, data) for x in rest]
    if kind == "tuple":
        return tuple(_value(x, data) for x in rest)
    if kind == "dict":
        return {_value(key, data): _value(x, data) for key, x in rest}
    if kind == "array":
        return data.take(*rest)
    if kind == "scalar":
        return data.take(*rest)[()]
    if kind == "complex":
        return complex(*rest)
    if kind == "bytes":
        return bytes.fromhex(rest[0])
    if kind == "mechanism":
        return rebuild(rest[0])
    if kind == "trajectory":
        return _trajectory(rest[0], _value(rest[1], data))
    if kind == "rollout":
        return Rollout(**_value(rest[0], data))
    if kind == "failure":
        return Failure(*_value(rest[0], data))
    raise ValueError(f"a value of the unknown kind {kind!r}")


def _trajectory(header: dict, parts: dict[str, np.ndarray]) -> Trajectory:
    def arrays(name, rule, sizes, what):
        if name not in parts and rule.optional:
            return None
        check(what, parts[name], rule, sizes)
        return parts[name]

    return from_file(header, arrays)


# -- files -----------------------------------------------------------------------------------------------------------


class ResultsFile:
    """A file open for appending. `header` is its first record; `results` maps cases to (digest, value)."""

    def __init__(self, path, header: dict):
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise MissingFileError(f"{self.path}: there is no folder {str(self.path.parent)!r}")
        self._name = self.path.resolve()
        if self._name in _OPEN:
            raise ModelError(f"{self.path}: another ensemble of this process is writing to it")
        self._file = open(self.path, "a+b", buffering=0)  # noqa: SIM115
        _OPEN.add(self._name)
        try:
            self._synced = time.monotonic()
            self._lock()
            self._file.seek(0)
            data = self._file.read()
            self.header, self.results, end = _records(self.path, data)
            if end < len(data):
                self._file.truncate(end)
            if self.header is None:
                self.header = {"kind": "ensemble", "format": FORMAT, **header}
                self._append(self.header)
        except BaseException:
            self.close()
            raise

    def _lock(self) -> None:
        """One process at a time; the lock ends with the process, however that ends."""
        try:
            import fcntl
        except ImportError:  # not on every system
            return
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno is not None and isinstance(error, (BlockingIOError, PermissionError)):
                raise ModelError(f"{self.path}: another process is writing to it; wait for its end, or choose another "
                                 "file") from None
            # file systems without locks

    def add(self, case: int, name: str, value) -> None:
        """Append the result of a case."""
        self._append({"case": case, "digest": name, "value": value})

    def _append(self, record) -> None:
        payload = pack(record)
        data = memoryview(FRAME.pack(MAGIC, len(payload), zlib.crc32(payload)) + payload)
        while data:
            data = data[self._file.write(data):]
        if time.monotonic() - self._synced > SYNC:
            self._sync()

    def _sync(self) -> None:
        with contextlib.suppress(OSError):  # not every kind of file can
            os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def close(self) -> None:
        if not self._file.closed:
            self._sync()
            self._file.close()
            _OPEN.discard(self._name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def read_results(path) -> tuple[dict, dict[int, tuple[str, Any]]]:
    """(header, {case: (digest, value)}) of a file, which another process may be writing."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise MissingFileError(f"{path}: there is no such file") from None
    header, results, _ = _records(path, data)
    if header is None:
        raise ModelError(f"{path} holds no results")
    return header, results


def _records(path: Path, data: bytes) -> tuple[dict | None, dict[int, tuple[str, Any]], int]:
    """(header or None, results, end of the last whole record)."""
    header: dict | None = None
    results: dict[int, tuple[str, Any]] = {}
    end = 0
    try:
        for payload, stop in _payloads(data):
            record = unpack(payload)
            if header is None:
                header = record
                if not isinstance(header, dict) or header.get("kind") != "ensemble":
                    raise ValueError("its header is another one")
                if header["format"] != FORMAT:
                    raise ValueError(f"it has format {header['format']}; this version reads {FORMAT}")
            else:
                results[record["case"]] = record["digest"], record["value"]
            end = stop
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise ModelError(f"{path} is not a file of results, or it is damaged at byte {end}: {error}") from error
    if end == 0 and data and not MAGIC.startswith(data[:len(MAGIC)]):
        raise ModelError(f"{path} is not a file of results; choose another name")
    if _whole_after(data, end):
        raise ModelError(f"{path} is damaged at byte {end}, after {len(results)} results; to keep these and compute "
                         f"the others again, cut it there: truncate -s {end} {path}")
    return header, results, end


def _payloads(data: bytes) -> Iterator[tuple[bytes, int]]:
    """(contents, end) of whole records from the beginning on."""
    at = 0
    while (stop := _end_of_record(data, at)) is not None:
        yield data[at + FRAME.size:stop], stop
        at = stop


def _end_of_record(data: bytes, at: int) -> int | None:
    """Where the record that begins here ends; None if there is no whole one."""
    if at + FRAME.size > len(data):
        return None
    magic, length, checksum = FRAME.unpack_from(data, at)
    stop = at + FRAME.size + length
    if magic != MAGIC or stop > len(data) or zlib.crc32(memoryview(data)[at + FRAME.size:stop]) != checksum:
        return None
    return stop


def _whole_after(data: bytes, at: int) -> bool:
    """Whether whole records follow a damaged one."""
    while (at := data.find(MAGIC, at + 1)) >= 0:
        if _end_of_record(data, at) is not None:
            return True
    return False
