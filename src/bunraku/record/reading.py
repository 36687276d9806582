"""Reading of recordings: every whole block, in the order of the file.

A file that was not closed (the process was killed, or is still writing) is read to its last whole block, with a
warning. A closed file with wrong checksums is damaged.
"""

from __future__ import annotations

import io
import json
import os
import struct
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bunraku.errors import LoadWarning, ShapeError
from bunraku.mechanism.describe import rebuild
from bunraku.record.layout import (
    CDR_LITTLE_ENDIAN,
    CHUNK,
    EVENT,
    FORMAT,
    HEAD,
    MAGIC,
    MECHANISM,
    MESSAGE,
    NAME,
    PREFIX,
    STATE,
    STATES,
    need_mcap,
    state_type,
)

SAME = 2.0**-50         # of a time: a state this near to the one before it replaces it
LARGEST = 1 << 30       # bytes in a block, decompressed: a claim of more is damage
METADATA, SCHEMA, CHANNEL, DATA_END = 0x0C, 0x03, 0x04, 0x0F  # opcodes


def read_recording(path) -> tuple[dict, dict[str, np.ndarray]]:
    """Header and arrays, by the names that files of trajectories have. With another format: the header only."""
    path, motion = Path(path), _Motion(*need_mcap())
    with open(path, "rb") as file:
        closed = _ends_with_magic(file)
        whole = True
        for opcode, body in _records(file, closed):
            if opcode == DATA_END:
                break
            if not motion.take(opcode, body, closed):
                return {"kind": "recording", "format": motion.format}, {}
        else:
            whole = False
    header, arrays = motion.result()
    if not whole:
        end = arrays[f"t{len(header['mechanisms']) - 1}"][-1]
        warnings.warn(f"{path} was not closed: it is read to its last whole block, which ends at {end:g} s",
                      LoadWarning, stacklevel=6)
    return header, arrays


def _ends_with_magic(file) -> bool:
    length = file.seek(0, os.SEEK_END)
    file.seek(max(length - len(MAGIC), 0))
    closed = length >= 2 * len(MAGIC) and file.read() == MAGIC
    file.seek(0)
    return closed


def _records(file, closed: bool) -> Iterator[tuple[int, bytes]]:
    """Opcode and body of every whole record up to the end of the data."""
    length, crc = os.fstat(file.fileno()).st_size, zlib.crc32(file.read(len(MAGIC)))
    while True:
        head = file.read(HEAD)
        opcode, size = struct.unpack("<BQ", head) if len(head) == HEAD else (0, 0)
        if not opcode or size > length - file.tell():
            if closed:
                raise ValueError("a record does not fit the file")
            return
        body = file.read(size)
        if opcode == DATA_END and struct.unpack_from("<I", body)[0] not in (0, crc):
            raise ValueError("its checksum is wrong")
        crc = zlib.crc32(body, zlib.crc32(head, crc))
        yield opcode, body


class _Motion:
    """The motion collected from the messages read so far."""

    def __init__(self, records, zstandard):
        self.records, self.zstandard = records, zstandard  # modules
        self.format: int | None = None
        self.topics: dict[int, str] = {}      # of channels
        self.singles: dict[int, bool] = {}    # of schemas: whether states are in single precision
        self.single = False
        self.segments: list[_Segment] = []
        self.events: list[list] = []
        self.broken: Exception | None = None  # of the last block, where a file was not closed

    def take(self, opcode: int, body: bytes, closed: bool) -> bool:
        """Process a record; False if the rest is in another format."""
        read = lambda kind: kind.read(_stream(body))  # noqa: E731
        if opcode == METADATA:
            metadata = read(self.records.Metadata)
            if metadata.name == NAME:
                self.format = int(metadata.metadata["format"])
                return self.format == FORMAT
        elif opcode == CHUNK:
            if self.broken is not None:
                raise self.broken
            try:
                data = self._decompressed(read(self.records.Chunk))
            except Exception as error:
                if closed:
                    raise
                self.broken = error
            else:
                self._messages(data)
        elif opcode in (SCHEMA, CHANNEL, MESSAGE):
            self._messages(struct.pack("<BQ", opcode, len(body)) + body)
        return True

    def _decompressed(self, chunk) -> bytes:
        data = chunk.data
        if chunk.compression == "zstd":
            size = self.zstandard.frame_content_size(data)
            if size not in (-1, chunk.uncompressed_size) or chunk.uncompressed_size > LARGEST:
                raise ValueError("the size of a block is wrong")
            data = self.zstandard.ZstdDecompressor().decompress(data, max_output_size=chunk.uncompressed_size)
        elif chunk.compression == "lz4":  # other tools write it
            import lz4.frame

            data = lz4.frame.decompress(data)
        elif chunk.compression:
            raise ValueError(f"its blocks are compressed by {chunk.compression!r}; zstd and lz4 can be read")
        if len(data) != chunk.uncompressed_size or chunk.uncompressed_crc not in (0, zlib.crc32(data)):
            raise ValueError("the checksum of a block is wrong")
        return data

    def _messages(self, data: bytes) -> None:
        place = 0
        while place < len(data):
            opcode, size = struct.unpack_from("<BQ", data, place)
            end = place + HEAD + size
            if end > len(data):
                raise ValueError("a message does not fit its block")
            body = data[place + HEAD:end]
            if opcode == SCHEMA:
                schema = self.records.Schema.read(_stream(body))
                self.singles[schema.id] = schema.name == STATES[True][0]
            elif opcode == CHANNEL:
                channel = self.records.Channel.read(_stream(body))
                self.topics[channel.id] = channel.topic
                if channel.topic == STATE:
                    self.single = self.singles[channel.schema_id]
            elif opcode == MESSAGE:
                topic = self.topics.get(struct.unpack_from("<H", body)[0])
                if topic == STATE:
                    place = self._states(data, place)
                    continue
                if topic in (MECHANISM, EVENT):
                    self._say(topic, json.loads(body[PREFIX - HEAD:]))
            place = end

    def _say(self, topic: str, content: dict) -> None:
        if self.format is None:
            raise ValueError(f"it has no metadata named {NAME!r}")
        if topic == EVENT:
            self.events.append([content["t"], content["text"]])
            return
        begin = float(content["t"])
        if self.segments and begin < self.segments[-1].end:  # set back to an earlier time: what was is no more
            self.segments, self.events = [], []
        elif self.segments and self.segments[-1].short():
            self.segments.pop()  # it lasted no time
        self.segments.append(_Segment(content["mechanism"], begin))

    def _states(self, data: bytes, place: int) -> int:
        """Process the consecutive states from here on; returns the position after them."""
        if not self.segments:
            raise ValueError("a state comes before its mechanism")
        segment = self.segments[-1]
        length = struct.unpack_from("<Q", data, place + 1)[0] + HEAD
        kind = next((kind for kind in segment.types(self.single) if kind.itemsize == length), None)
        if kind is None:
            raise ShapeError(f"a state of segment {len(self.segments) - 1} does not fit its mechanism")
        records = np.frombuffer(data, kind, (len(data) - place) // length, place)
        first = records[0]
        alike = np.ones(len(records), bool)
        for name in ("opcode", "length", "channel"):
            alike &= records[name] == first[name]
        records = records[:len(records) if alike.all() else int(np.argmin(alike))]
        sizes = all((records[f"n_{name}"] == kind[name].shape[0]).all() for name in ("q", "v", "tau"))
        if not sizes or (records["encapsulation"] != CDR_LITTLE_ENDIAN).any():
            raise ShapeError(f"a state of segment {len(self.segments) - 1} is not encoded as its schema says")
        segment.add(records)
        return place + length * len(records)

    def result(self) -> tuple[dict, dict[str, np.ndarray]]:
        if self.format is None:
            raise ValueError(f"it has no metadata named {NAME!r}")
        if self.segments and not self.segments[-1].states:
            self.segments.pop()
        if not self.segments:
            raise ValueError("there is no whole block in it")
        arrays: dict[str, np.ndarray] = {}
        for k, segment in enumerate(self.segments):
            arrays |= {f"{name}{k}": array for name, array in segment.arrays(self.single).items()}
        return {"kind": "recording", "format": self.format, "events": self.events,
                "mechanisms": [segment.data for segment in self.segments]}, arrays


class _Segment:
    """A mechanism as data, and blocks of states."""

    def __init__(self, data: dict, begin: float):
        self.data, self.begin, self.end = data, begin, begin
        self.mechanism = rebuild(data)
        self.states: list[np.ndarray] = []

    def types(self, single: bool) -> list[np.dtype]:
        """Structured types of states without and with torques."""
        m = self.mechanism
        return [state_type(m.nq, m.nv, nt, single) for nt in (0, m.nv + m.nc)]

    def add(self, records: np.ndarray) -> None:
        self.states.append(records)
        self.end = float(records["t"][-1])

    def short(self) -> bool:
        return self.end <= self.begin

    def arrays(self, single: bool) -> dict[str, np.ndarray]:
        t = np.concatenate([part["t"] for part in self.states])
        last = np.append(np.abs(np.diff(t)) > SAME * np.abs(t[1:]), True)  # of those at one time
        join = lambda name: np.concatenate([part[name] for part in self.states])[last].astype(float)  # noqa: E731
        out = {"t": t[last], "q": join("q"), "v": join("v")}
        if single and np.isfinite(out["q"]).all():
            out["q"] = self.mechanism.integrate(out["q"], np.zeros_like(out["v"]))  # unit quaternions
        widths = {part["tau"].shape[1] for part in self.states}
        if len(widths) > 1:
            raise ShapeError("some states of a segment have torques, others not")
        return out | ({"tau": join("tau")} if widths != {0} else {})


def _stream(body: bytes):
    from mcap.data_stream import ReadDataStream

    return ReadDataStream(io.BytesIO(body))
