"""Recordings while they are written: states are collected and written in blocks, MCAP's chunks.

A block is written when it is large enough, when the structure changes, and at least every second. It is one record with
a checksum of its own: of a file that ends anywhere, everything up to the last whole block can be read.
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
    EVENT,
    FORMAT,
    HEAD,
    MAGIC,
    MECHANISM,
    MESSAGE,
    NAME,
    PREFIX,
    STATE,
    nanoseconds,
    need_mcap,
    schema_of,
    state_records,
)

BLOCK = 1 << 20   # bytes after which a block is written
EVERY = 1.0       # seconds after which it is written in any case


class Recording:
    """A motion that is being written to a file (MCAP).

    path        of the file, which is overwritten
    mechanism   with its first state y = (q, v) at the time t
    single      states in float32: half the size; times stay float64
    tau         torques of the actuators at the first state, if they are to be recorded; then for every state

    Whatever is appended is in the file a second later at the latest. Without `close` the file lacks its index and
    summary, which `bk.load_trajectory` can do without.
    """

    def __init__(self, path, mechanism: Mechanism, t: float, y, *, single: bool = False, tau=None):
        self._records, zstandard = need_mcap()
        self.path, self.single = Path(path), bool(single)
        self._compress = zstandard.ZstdCompressor().compress
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._trouble: OSError | None = None       # of the thread that writes every second
        self._parts: list[tuple[int, np.ndarray, bytes]] = []  # of the block: channel, times, message records
        self._size = self._end = self._crc = 0
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
        with self._lock:
            self._check_open()
            records = state_records(t, y[:, :nq], y[:, nq:], tau, self.single, self._counts[CHANNELS[STATE]])
            self._add(STATE, records["log_time"], records.tobytes())
            if self._size >= BLOCK or time.monotonic() - self._written >= EVERY:
                self.flush()

    def change(self, mechanism: Mechanism, t: float, y, *, tau=None) -> None:
        """From here the structure or the state is another: begins a segment with its first state. If t is before the
        last state, the motion begins anew when the file is read."""
        names = coordinate_names(mechanism)
        with self._lock:
            self._check_open()
            if self._parts:
                self.flush()
            self._sizes = mechanism.nq, mechanism.nv, 0 if tau is None else len(names.tau)
            self._say(MECHANISM, t, {"segment": self._segments, "t": float(t), "q": names.q, "v": names.v,
                                     "tau": names.tau, "mechanism": describe(mechanism)})
            self._segments += 1
            self.append([t], [y], None if tau is None else [tau])
            self.flush()

    def event(self, event) -> None:
        """Something happened: (t, text)."""
        with self._lock:
            self._check_open()
            t, text = event
            self._say(EVENT, t, {"t": float(t), "text": str(text)})

    def flush(self) -> None:
        """Write what is not in the file yet, as a block."""
        with self._lock:
            self._check_open()
            if self._trouble is not None:
                trouble, self._trouble = self._trouble, None
                raise trouble
            if self._parts:
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
        self._add(topic, times, head + data)

    def _add(self, topic: str, times: np.ndarray, records: bytes) -> None:
        self._parts.append((CHANNELS[topic], times, records))
        self._counts[CHANNELS[topic]] += len(times)
        self._size += len(records)

    def _put(self, data: bytes) -> None:
        """Write to the file all of it or nothing."""
        assert self._file is not None
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._file.write(rest):]
        except BaseException as error:
            with contextlib.suppress(OSError):
                self._file.seek(self._end)
                self._file.truncate()
            if isinstance(error, OSError) and not error.filename:
                error.filename = str(self.path)
            raise
        self._end += len(data)
        self._crc = zlib.crc32(data, self._crc)

    def _preamble(self) -> bytes:
        """What comes before the blocks."""
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

        data = b"".join(records for _, _, records in self._parts)
        places: dict[int, list[np.ndarray]] = {}
        offset = 0
        for channel, times, records in self._parts:
            index = np.empty((len(times), 2), "<u8")
            index[:, 0], index[:, 1] = times, offset + len(records) // len(times) * np.arange(len(times))
            places.setdefault(channel, []).append(index)
            offset += len(records)
        times = np.concatenate([times for _, times, _ in self._parts])
        described = CHANNELS[MECHANISM] in places  # text shrinks; floats by a tenth, at three times the cost
        compression, compressed = ("zstd", self._compress(data)) if described else ("", data)
        builder = RecordBuilder()
        chunk = self._records.Chunk(compression=compression, data=compressed, message_start_time=int(times.min()),
                                    message_end_time=int(times.max()), uncompressed_crc=zlib.crc32(data),
                                    uncompressed_size=len(data))
        chunk.write(builder)
        length, offsets = builder.count, {}
        for channel, parts in places.items():
            entries = np.concatenate(parts).tobytes()
            offsets[channel] = self._end + builder.count
            builder.start_record(Opcode.MESSAGE_INDEX)
            builder.write2(channel)
            builder.write4(len(entries))
            builder.write(entries)
            builder.finish_record()
        entry = self._records.ChunkIndex(
            chunk_length=length, chunk_start_offset=self._end, compression=compression, compressed_size=len(compressed),
            message_end_time=chunk.message_end_time, message_index_length=builder.count - length,
            message_index_offsets=offsets, message_start_time=chunk.message_start_time, uncompressed_size=len(data))
        self._put(builder.end())
        self._chunks.append(entry)
        self._parts, self._size = [], 0

    def _summary(self) -> bytes:
        """What comes after the blocks: channels, counts and the index once more, so that tools need not read it all."""
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
    """While nothing is appended (a simulation that is paused), what was appended is written all the same."""
    while not closing.wait(EVERY / 2):
        this = recording()
        if this is None:
            return
        with this._lock:
            if this._file is None:
                return
            if this._parts and time.monotonic() - this._written >= EVERY / 2:
                try:
                    this._put_block()
                    this._written = time.monotonic()
                except OSError as error:
                    this._trouble = error
        del this
