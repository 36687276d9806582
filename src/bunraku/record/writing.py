"""Writing of recordings: states are collected and written in blocks, MCAP's chunks.

A block is written when it is large enough, when the structure changes, and at least every second. It is one record with
its own checksum: a truncated file can be read up to its last whole block.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import struct
import threading
import time
import weakref
import zlib
from io import FileIO
from pathlib import Path

import numpy as np

from bunraku.errors import MissingFileError, ShapeError, SimulationError
from bunraku.mechanism import Mechanism
from bunraku.mechanism.coordinate_names import coordinate_names
from bunraku.mechanism.describe import describe
from bunraku.record.layout import (
    CHANNELS,
    CHUNK,
    CONTACT,
    EVENT,
    FORMAT,
    HEAD,
    MAGIC,
    MECHANISM,
    MESSAGE,
    NAME,
    PREFIX,
    STATE,
    fill,
    nanoseconds,
    need_mcap,
    schema_of,
    state_type,
)

BLOCK = 1 << 20   # bytes after which a block is written
EVERY = 1.0       # seconds after which it is written in any case


class Recording:
    """A motion that is being written to a file (MCAP).

    path        of the file, which is overwritten
    mechanism   with its first state y = (q, v) at the time t
    single      states in float32: half the size; times stay float64
    tau         torques of the actuators at the first state, if they are to be recorded; then for every state

    Appended states are in the file within a second. Without `close` the file lacks its index and
    summary, which `bk.load_trajectory` does not need.
    """

    def __init__(self, path, mechanism: Mechanism, t: float, y, *, single: bool = False, tau=None):
        self._records, zstandard = need_mcap()
        self.path, self.single = Path(path), bool(single)
        self._compress = zstandard.ZstdCompressor().compress
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._trouble: OSError | None = None       # of the thread that writes every second
        self._buffer = np.zeros(BLOCK, np.uint8)   # the block: message records
        self._index: list[tuple[int, np.ndarray, np.ndarray]] = []  # of them: channel, times, places
        self._size = self._end = self._crc = 0     # bytes in the block and in the file; checksum of the file
        self._chunks: list = []                    # index
        self._counts = dict.fromkeys(CHANNELS.values(), 0)
        self._segments = 0
        self._written = time.monotonic()
        if not self.path.parent.is_dir():
            raise MissingFileError(f"{self.path}: there is no folder {str(self.path.parent)!r}")
        self._file: FileIO | None = open(self.path, "wb", buffering=0)  # noqa: SIM115
        try:
            self._put(MAGIC + self._preamble())
            self.change(mechanism, t, y, tau=tau)
        except BaseException:
            self._file.close()
            raise
        threading.Thread(target=_write_every_second, args=(weakref.ref(self), self._closing), daemon=True,
                         name="bunraku recording").start()

    # -- what happens ----------------------------------------------------------------------------------------------

    def append(self, t, y, tau=None) -> None:
        """States y (n, nq + nv) at the times t (n,); with tau (n, nv + nc) if torques are recorded.

        A state at the time of the last one replaces it when the file is read.
        """
        t, y = np.atleast_1d(np.asarray(t, float)), np.atleast_2d(np.asarray(y, float))
        tau = np.zeros((len(t), 0)) if tau is None else np.atleast_2d(np.asarray(tau, float))
        nq, nv, nt = self._sizes
        if y.shape != (len(t), nq + nv) or tau.shape != (len(t), nt):
            raise ShapeError(f"{self.path}: t, y, tau have the shapes {t.shape}, {y.shape}, {tau.shape}; of n states "
                             f"they must have (n,), (n, {nq + nv}), (n, {nt})")
        most = float(np.finfo(np.float32).max) if self.single else np.inf
        for name, array in (("t", t), ("y", y), ("tau", tau)):
            if not (np.isfinite(array).all() and np.abs(array).max(initial=0.0) <= most):
                where = "a finite number" if not np.isfinite(array).all() else "within the range of single precision"
                raise ShapeError(f"{self.path}: {name} has a value that is not {where}; nothing of it is written")
        with self._lock:
            self._check_open()
            kind, done = state_type(nq, nv, nt, self.single), 0
            while done < len(t):
                if self._index and self._size + kind.itemsize > BLOCK:
                    self.flush()
                n = max(1, min(len(t) - done, (BLOCK - self._size) // kind.itemsize))
                here = slice(done, done + n)
                records = self._room(n * kind.itemsize).view(kind)
                fill(records, t[here], y[here, :nq], y[here, nq:], tau[here], self._counts[CHANNELS[STATE]])
                self._add(STATE, records["log_time"].copy(), kind.itemsize)
                done += n
            if self._size >= BLOCK or time.monotonic() - self._written >= EVERY:
                self.flush()

    def change(self, mechanism: Mechanism, t: float, y, *, tau=None) -> None:
        """Change the structure or state: begins a segment with its first state. If t is before the
        last state, the motion read from the file begins there."""
        names = coordinate_names(mechanism)
        with self._lock:
            self._check_open()
            if self._index:
                self.flush()
            self._sizes = mechanism.nq, mechanism.nv, 0 if tau is None else len(names.tau)
            self._say(MECHANISM, t, {"segment": self._segments, "t": float(t), "q": names.q, "v": names.v,
                                     "tau": names.tau, "mechanism": describe(mechanism)})
            self._segments += 1
            self.append([t], [y], None if tau is None else [tau])
            self.flush()

    def event(self, event) -> None:
        """Record an event (t, text)."""
        with self._lock:
            self._check_open()
            t, text = event
            self._say(EVENT, t, {"t": float(t), "text": str(text)})

    def contacts(self, t: float, content: dict) -> None:
        """Record the contacts of a state: see docs/recordings.md."""
        with self._lock:
            self._check_open()
            self._say(CONTACT, t, content)

    def flush(self) -> None:
        """Write the pending states as a block."""
        with self._lock:
            self._check_open()
            if self._trouble is not None:
                trouble, self._trouble = self._trouble, None
                raise trouble
            if self._index:
                self._put_block()
            self._written = time.monotonic()

    def close(self) -> None:
        """Write the rest, the index and the summary. A closed recording may be closed again."""
        with self._lock:
            if self._file is None:
                return
            try:
                self.flush()
                self._put(self._summary())
                with contextlib.suppress(OSError):  # pipes and the like
                    os.fsync(self._file.fileno())
            finally:
                self._closing.set()
                self._file.close()
                self._file = None

    def __del__(self):
        with contextlib.suppress(Exception):  # at the exit of the interpreter there may be nothing left to do it with
            self.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- bytes -----------------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._file is None:
            raise SimulationError(f"{self.path}: this recording is closed")

    def _say(self, topic: str, t: float, content: dict) -> None:
        """Add a message in JSON."""
        data = json.dumps(content, default=lambda number: number.item()).encode()
        channel, times = CHANNELS[topic], nanoseconds([t])
        now = int(times[0])
        head = struct.pack("<BQHIQQ", MESSAGE, PREFIX - HEAD + len(data), channel, self._counts[channel], now, now)
        self._room(len(head) + len(data))[:] = np.frombuffer(head + data, np.uint8)
        self._add(topic, times, len(head) + len(data))

    def _room(self, size: int) -> np.ndarray:
        """Reserve this number of zero bytes after the block."""
        end = self._size + size
        if end > len(self._buffer):
            self._buffer = np.concatenate([self._buffer, np.zeros(end - len(self._buffer), np.uint8)])
        room = self._buffer[self._size:end]
        room[:] = 0
        return room

    def _add(self, topic: str, times: np.ndarray, size: int) -> None:
        """Count messages of this size that are in the room behind the block now."""
        channel = CHANNELS[topic]
        self._index.append((channel, times, self._size + size * np.arange(len(times))))
        self._counts[channel] += len(times)
        self._size += size * len(times)

    def _put(self, *pieces) -> None:
        """Write all bytes to the file, or none."""
        assert self._file is not None
        end, crc = self._end, self._crc
        try:
            for piece in pieces:
                rest = memoryview(piece)
                crc, end = zlib.crc32(rest, crc), end + len(rest)
                while rest:
                    rest = rest[self._file.write(rest):]
        except BaseException as error:
            with contextlib.suppress(OSError):
                self._file.seek(self._end)
                self._file.truncate()
            if isinstance(error, OSError) and not error.filename:
                error.filename = str(self.path)
            raise
        self._end, self._crc = end, crc

    def _preamble(self) -> bytes:
        """Records before the blocks."""
        from mcap.data_stream import RecordBuilder

        version = importlib.import_module("bunraku").__version__
        builder = RecordBuilder()
        self._records.Header(NAME, f"bunraku {version}").write(builder)
        before = builder.count
        self._records.Metadata(NAME, {"format": str(FORMAT), "version": version}).write(builder)
        self._metadata = self._records.MetadataIndex(len(MAGIC) + before, builder.count - before, NAME)
        self._write_channels(builder)
        return builder.end()

    def _write_channels(self, builder) -> list[tuple]:
        """Schemas and channels; where they are, for the summary: (opcode, start, length)."""
        from mcap.opcode import Opcode

        start = builder.count
        for topic, number in CHANNELS.items():
            name, encoding, text, _ = schema_of(topic, self.single)
            self._records.Schema(data=text.encode(), encoding=encoding, id=number, name=name).write(builder)
        middle = builder.count
        for topic, number in CHANNELS.items():
            self._records.Channel(id=number, topic=topic, message_encoding=schema_of(topic, self.single)[-1],
                                  metadata={}, schema_id=number).write(builder)
        return [(Opcode.SCHEMA, start, middle - start), (Opcode.CHANNEL, middle, builder.count - middle)]

    def _put_block(self) -> None:
        """A chunk, and an index of its messages for each channel."""
        from mcap.data_stream import RecordBuilder
        from mcap.opcode import Opcode

        block = self._buffer.data[:self._size]
        described = any(channel == CHANNELS[MECHANISM] for channel, *_ in self._index)
        # Text shrinks; floats do by a tenth only, at three times the cost
        compression, data = (b"zstd", memoryview(self._compress(block))) if described else (b"", block)
        times = np.concatenate([times for _, times, _ in self._index])
        first, last, n = int(times.min()), int(times.max()), len(compression)
        head = struct.pack(f"<BQQQQII{n}sQ", CHUNK, 40 + n + len(data), first, last, len(block), zlib.crc32(block), n,
                           compression, len(data))
        length, offsets, builder = len(head) + len(data), {}, RecordBuilder()
        for channel in dict.fromkeys(channel for channel, *_ in self._index):
            parts = [np.stack([times, places], axis=1) for owner, times, places in self._index if owner == channel]
            entries = np.concatenate(parts).astype("<u8").tobytes()
            offsets[channel] = self._end + length + builder.count
            builder.start_record(Opcode.MESSAGE_INDEX)
            builder.write2(channel)
            builder.write4(len(entries))
            builder.write(entries)
            builder.finish_record()
        index = builder.end()
        entry = self._records.ChunkIndex(
            chunk_length=length, chunk_start_offset=self._end, compression=compression.decode(),
            compressed_size=len(data), message_end_time=last, message_index_length=len(index),
            message_index_offsets=offsets, message_start_time=first, uncompressed_size=len(block))
        self._put(head, data, index)
        self._chunks.append(entry)
        self._index, self._size = [], 0

    def _summary(self) -> bytes:
        """Records after the blocks: channels, counts and the index again, so that tools need not read the whole
        file."""
        from mcap.data_stream import RecordBuilder
        from mcap.opcode import Opcode

        builder = RecordBuilder()
        self._records.DataEnd(self._crc).write(builder)
        end = builder.end()
        start = self._end + len(end)
        groups = self._write_channels(builder)
        before = builder.count
        self._records.Statistics(
            attachment_count=0, channel_count=len(CHANNELS), channel_message_counts=self._counts,
            chunk_count=len(self._chunks), message_count=sum(self._counts.values()), metadata_count=1,
            message_start_time=min(c.message_start_time for c in self._chunks),
            message_end_time=max(c.message_end_time for c in self._chunks),
            schema_count=len(CHANNELS)).write(builder)
        groups.append((Opcode.STATISTICS, before, builder.count - before))
        for opcode, entries in ((Opcode.CHUNK_INDEX, self._chunks), (Opcode.METADATA_INDEX, [self._metadata])):
            before = builder.count
            for entry in entries:
                entry.write(builder)
            groups.append((opcode, before, builder.count - before))
        offsets = start + builder.count
        for opcode, first, length in groups:
            self._records.SummaryOffset(group_opcode=opcode, group_start=start + first,
                                        group_length=length).write(builder)
        summary = builder.end()
        crc = zlib.crc32(struct.pack("<BQQQ", Opcode.FOOTER, 20, start, offsets), zlib.crc32(summary))
        self._records.Footer(summary_start=start, summary_offset_start=offsets, summary_crc=crc).write(builder)
        return end + summary + builder.end() + MAGIC


def _write_every_second(recording: weakref.ref[Recording], closing: threading.Event) -> None:
    """Write pending states every second, also while none are appended (a paused simulation)."""
    while not closing.wait(EVERY / 2):
        this = recording()
        if this is None:
            return
        with this._lock:
            if this._file is None:
                return
            if this._index and time.monotonic() - this._written >= EVERY / 2:
                try:
                    this._put_block()
                    this._written = time.monotonic()
                except OSError as error:
                    this._trouble = error
        del this
