"""The HTML file of a replay: the page (`view/page/`), three.js and one motion, joined as text.

It needs the standard library alone, so that `bunraku demo` shows its recorded motion before anything else is imported.
`view/replay.py` makes motions.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
import struct
from functools import cache
from importlib.resources import files


def replay_file(motion: bytes) -> str:
    """The page that plays a motion: the length of a JSON header (4 bytes), the header, arrays."""
    (length,) = struct.unpack_from("<I", motion)
    header = json.loads(motion[4:4 + length])
    parts = {name: html.escape(header[name]) for name in ("title", "paper", "ink", "faint")}
    parts |= {"three": _base64(_asset("page/three.min.js.gz")), "script": _asset("page/replay.js").decode(),
              "motion": _base64(gzip.compress(motion, 9, mtime=0))}
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _asset("page/replay.html").decode())


def recorded(scene: str) -> str:
    """The replay of a scene whose motion comes with the package."""
    return replay_file(gzip.decompress(_asset(f"data/{scene}.motion.gz")))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


@cache
def _asset(name: str) -> bytes:
    return (files("bunraku") / "view" / name).read_bytes()
