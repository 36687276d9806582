"""Layout of recordings: topics, schemas and the bytes of a state. docs/recordings.md describes it for other readers.

A state is a message in CDR, the encoding of ROS 2: little-endian, every number aligned to its size, a sequence behind
its length. With the sizes of q, v and tau given, all messages have the same length, so that thousands of them are one
structured array: nothing is encoded or decoded number by number.
"""

from __future__ import annotations

import functools
import json
import struct
from pathlib import Path

import numpy as np

from bunraku.errors import MissingExtra

FORMAT = 1                       # of recordings; a reader refuses others
MAGIC = b"\x89MCAP0\r\n"
NAME = "bunraku"                 # of the metadata record, and the profile
MECHANISM, STATE, EVENT, CONTACT = "/mechanism", "/state", "/event", "/contact"
CHANNELS = {MECHANISM: 1, STATE: 2, EVENT: 3, CONTACT: 4}
MESSAGE, CHUNK = 0x05, 0x06      # opcodes
PREFIX = struct.calcsize("<BQHIQQ")  # of a message: opcode, length, channel, sequence, log and publish time
HEAD = 9                         # opcode and length of any record
CDR_LITTLE_ENDIAN = 0x0100       # the four bytes 00 01 00 00 before the data

STATES = {False: ("bunraku/msg/State", "float64"), True: ("bunraku/msg/StateSingle", "float32")}
STATE_TEXT = """\
float64 t        # time [s]
{kind}[] q      # coordinates, in the order that the last message of /mechanism names
{kind}[] v      # velocities
{kind}[] tau    # torques of the actuators; empty if they are not recorded
"""


def _schema(title: str, **properties: dict) -> str:
    return json.dumps({"title": title, "type": "object", "properties": properties, "required": list(properties)})


_NAMES = {"type": "array", "items": {"type": "string"}}
SCHEMAS = {
    MECHANISM: ("bunraku.Mechanism", "jsonschema", _schema(
        "bunraku.Mechanism", segment={"type": "integer"}, t={"type": "number"}, q=_NAMES, v=_NAMES, tau=_NAMES,
        mechanism={"type": "object"}), "json"),
    EVENT: ("bunraku.Event", "jsonschema", _schema("bunraku.Event", t={"type": "number"}, text={"type": "string"}),
            "json"),
    CONTACT: ("bunraku.Contacts", "jsonschema", _schema(
        "bunraku.Contacts", t={"type": "number"}, contacts={"type": "array", "items": {"type": "object"}}), "json"),
}


def schema_of(topic: str, single: bool) -> tuple[str, str, str, str]:
    """Name, encoding and text of a topic's schema, and the encoding of its messages."""
    if topic != STATE:
        return SCHEMAS[topic]
    name, kind = STATES[single]
    return name, "ros2msg", STATE_TEXT.format(kind=kind), "cdr"


@functools.lru_cache(64)
def state_type(nq: int, nv: int, nt: int, single: bool) -> np.dtype:
    """The whole message record of a state as a structured type."""
    kind, size = ("<f4", 4) if single else ("<f8", 8)
    names = ["opcode", "length", "channel", "sequence", "log_time", "publish_time", "encapsulation", "t"]
    formats: list = ["u1", "<u8", "<u2", "<u4", "<u8", "<u8", "<u4", "<f8"]
    data = PREFIX + 4  # alignment counts from here
    offsets, end = [0, 1, 9, 11, 15, 23, PREFIX, data], 8
    for name, n in (("q", nq), ("v", nv), ("tau", nt)):
        names += [f"n_{name}"]
        formats += ["<u4"]
        end = -(-end // 4) * 4
        offsets += [data + end]
        end += 4
        if n:
            end = -(-end // size) * size
        names += [name]
        formats += [(kind, (n,))]
        offsets += [data + end]
        end += n * size
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": data + end})


def fill(records: np.ndarray, t, q, v, tau, first: int) -> None:
    """Write states, numbered from `first`, to message records (of a `state_type`) that are all zeros."""
    length = records.dtype.itemsize - HEAD
    records["opcode"], records["length"], records["channel"] = MESSAGE, length, CHANNELS[STATE]
    records["sequence"] = (first + np.arange(len(t))) % 2**32
    records["log_time"] = records["publish_time"] = nanoseconds(t)
    records["encapsulation"] = CDR_LITTLE_ENDIAN
    records["t"] = t
    for name, values in (("q", q), ("v", v), ("tau", tau)):
        records[f"n_{name}"] = values.shape[1]
        records[name] = values


def nanoseconds(t):
    """Times in MCAP's unit, in which negative times do not exist; the exact time is in the message."""
    return np.rint(np.clip(np.asarray(t) * 1e9, 0.0, 2.0**63)).astype(np.uint64)


def is_recording(path) -> bool:
    """Whether a file begins as MCAP files do."""
    try:
        with open(Path(path), "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def need_mcap():
    """The parts of the mcap package in use; a MissingExtra if it is not installed."""
    try:
        import mcap.records
        import zstandard
    except ImportError as error:
        raise MissingExtra('recordings (.mcap) need the package mcap: pip install "bunraku[record]"') from error
    return mcap.records, zstandard
