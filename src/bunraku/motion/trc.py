"""TRC (Track Row Column): markers as text, with tabs between the cells.

Line 2 has the names of the values in line 3: rates, numbers of frames and markers, unit. Line 4 has the names of
markers, every third cell; line 5 X1 Y1 Z1 ...; then a row for every frame: its number, time, coordinates. Empty cells
are gaps.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bunraku.io.axes import UNITS, metres, turned
from bunraku.io.findings import Findings
from bunraku.io.lines import Lines
from bunraku.io.xml import clip
from bunraku.motion.markers import Markers

NEEDED = ("NumFrames", "NumMarkers", "Units")


def read_trc(path: Path, strict: bool = False, unit=None, up: str | None = None, forward: str | None = None) -> Markers:
    """The markers of a TRC file; see `load_motion`."""
    lines, findings = Lines(path), Findings(path, strict)
    if len(lines.lines) < 5 or not lines.lines[0].startswith("PathFileType"):
        raise lines.refuse(1, "a TRC file begins with PathFileType and has five lines before its frames")
    header = dict(zip(lines.lines[1].split(), lines.lines[2].split(), strict=False))
    for key in NEEDED:
        if key not in header:
            raise lines.refuse(3, f"{key} is not said")
    count = lines.whole(3, "NumMarkers", header["NumMarkers"])
    names = _names(lines, count)
    if unit is None and header["Units"].lower() not in UNITS:
        raise lines.refuse(3, f"the unit {clip(header['Units'])!r} is none of {', '.join(UNITS)}; set it with unit=")
    scale = metres("unit", header["Units"] if unit is None else unit)
    cells = ["Frame#", "Time", *(f"{axis} of {name}" for name in names for axis in "XYZ")]
    values, where = lines.table(6, cells, "\t", gaps=True)
    if not len(values):
        raise lines.refuse(len(lines.lines), "there are no frames")
    declared = lines.whole(3, "NumFrames", header["NumFrames"])
    if len(values) != declared:
        raise lines.refuse(where[-1], f"the last of {len(values)} frames, but line 3 promises {declared}")
    for k, row in enumerate(values):
        if not np.isfinite(row[:2]).all() or (k and row[1] <= values[k - 1, 1]):
            raise lines.refuse(where[k], f"the time {row[1]:g} s is not later than that of the frame before")
    if up is None and forward is None:
        findings.note("axes", "not specified in the file; OpenSim's are assumed, y up and x forward; "
                              "confirm with up='y', forward='x'")
    positions = values[:, 2:].reshape(len(values), count, 3) * scale @ turned(up or "y", forward or "x").T
    lost = np.isnan(positions).any(axis=2)
    positions[lost] = np.nan  # a marker is there or not
    zero = [name for k, name in enumerate(names) if ((positions[:, k] == 0.0).all(axis=1)).any()]
    if zero:
        findings.note(f"marker {zero[0]!r}", "lies exactly at the origin in some frames, as some programs write gaps; "
                                             "it is taken as it is")
    findings.report(stacklevel=4)
    return Markers(path.name, values[:, 1].copy(), names, positions, int(values[0, 0]))


def _names(lines: Lines, count: int) -> list[str]:
    cells = [cell.strip() for cell in lines.lines[3].rstrip().split("\t")]
    names = cells[2::3]
    if len(names) != count or not all(names) or any(cell for k, cell in enumerate(cells[2:]) if k % 3):
        raise lines.refuse(4, f"{len([x for x in cells[2:] if x])} names of markers, in every third cell from the "
                              f"third on, but line 3 promises {count}")
    if len(set(names)) != count:
        twice = next(name for name in names if names.count(name) > 1)
        raise lines.refuse(4, f"the marker {clip(twice)!r} is there twice; rename one of them")
    return names
