"""MOT and STO: tables of OpenSim as text.

A header of `key=value` lines up to `endheader` (or SIMM's `key value`), a line with the names of the columns, the first
of which is time, and a row for every time.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bunraku.io.findings import Findings
from bunraku.io.lines import Lines
from bunraku.io.xml import clip
from bunraku.motion.motion_table import MotionTable

ROWS, COLUMNS = ("nrows", "datarows"), ("ncolumns", "datacolumns")
MAX_HEADER = 1000


def read_sto(path: Path, strict: bool = False) -> MotionTable:
    """The table of a MOT or STO file; see `load_motion`."""
    lines, findings = Lines(path), Findings(path, strict)
    header: dict[str, tuple[int, str]] = {}
    end = 0
    for k, text in enumerate(lines.lines[:MAX_HEADER], 1):
        if text.strip().lower() == "endheader":
            end = k
            break
        key, equals, value = text.partition("=") if "=" in text else text.strip().partition(" ")
        header[key.strip().lower()] = (k, value.strip())
    if not end:
        raise lines.refuse(1, f"a {path.suffix} file has a header that ends with endheader")
    first = next((k for k, text in enumerate(lines.lines[end:], end + 1) if text.strip()), None)
    if first is None:
        raise lines.refuse(len(lines.lines), "the names of the columns are missing")
    names = lines.lines[first - 1].split("\t") if "\t" in lines.lines[first - 1] else lines.lines[first - 1].split()
    names = [name.strip() for name in names if name.strip()]
    if names[0].lower() != "time":
        raise lines.refuse(first, f"the first column must be time, not {clip(names[0])!r}")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise lines.refuse(first, f"the column {clip(twice[0])!r} is there twice")
    values, where = lines.table(first + 1, names)
    for keys, found, what in ((ROWS, len(values), "rows"), (COLUMNS, len(names), "columns")):
        for key in keys:
            if key in header:
                line, text = header[key]
                if lines.whole(line, key, text) != found:
                    raise lines.refuse(line, f"{key} promises {text} {what}, but there are {found}")
    if not len(values):
        raise lines.refuse(first, "there are no rows")
    late = np.flatnonzero(np.diff(values[:, 0]) <= 0)
    if len(late):
        raise lines.refuse(where[late[0] + 1], f"the time {values[late[0] + 1, 0]:g} s is not later than that of the "
                                               "row before")
    line, degrees = header.get("indegrees", (0, ""))
    if degrees.lower() not in ("yes", "no"):
        if degrees:
            raise lines.refuse(line, f"inDegrees is {clip(degrees)!r} where yes or no is expected")
        findings.note("inDegrees", "is not said; angles are taken as radians")
    findings.report(stacklevel=4)
    return MotionTable(path.name, values[:, 0].copy(), names[1:], values[:, 1:].copy(), degrees.lower() == "yes")
