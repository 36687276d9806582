"""Trajectories as tables with named columns, for pandas and as CSV; and at even times."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bunraku.errors import MissingExtra, MissingFileError, ShapeError
from bunraku.mechanism.coordinate_names import coordinate_names

if TYPE_CHECKING:
    from bunraku.simulation.records.trajectory import Segment, Trajectory

MOST = 1_000_000  # even times

def table(trajectory: Trajectory, contacts: bool = False) -> tuple[list[str], np.ndarray]:
    """Names of the columns after t and segment, and (states, 2 + columns) numbers: t, segment, q, v, tau, contacts if
    they are asked for. NaN where a segment has no such column."""
    parts = [_columns(segment) for segment in trajectory.segments]
    if contacts:
        from bunraku.simulation.records.contact_columns import contact_columns

        parts = [[*part, columns] for part, columns in zip(parts, contact_columns(trajectory), strict=True)]
    names = [name for kind in range(3 + contacts) for part in parts for name in part[kind]]
    places = {name: 2 + k for k, name in enumerate(dict.fromkeys(names))}
    rows = np.full((sum(len(s.t) for s in trajectory.segments), 2 + len(places)), np.nan)
    first = 0
    for k, (segment, part) in enumerate(zip(trajectory.segments, parts, strict=True)):
        here = slice(first, first + len(segment.t))
        rows[here, 0], rows[here, 1] = segment.t, k
        for kind in part:
            for name, column in kind.items():
                rows[here, places[name]] = column
        first = here.stop
    return list(places), rows


def _columns(segment: Segment) -> list[dict[str, np.ndarray]]:
    names = coordinate_names(segment.mechanism)
    return [dict(zip(names.q, segment.q.T, strict=True)), dict(zip(names.v, segment.v.T, strict=True)),
            {} if segment.tau is None else dict(zip(names.tau, segment.tau.T, strict=True))]


def to_frame(trajectory: Trajectory, contacts: bool = False):
    """See `Trajectory.to_frame`."""
    try:
        import pandas
    except ImportError as error:
        raise MissingExtra('to_frame needs pandas: pip install "bunraku[frame]"') from error
    names, rows = table(trajectory, contacts)
    frame = pandas.DataFrame(rows[:, 2:], columns=names, index=pandas.Index(rows[:, 0], name="t"))
    frame.insert(0, "segment", rows[:, 1].astype(int))
    return frame


def write_csv(trajectory: Trajectory, path, contacts: bool = False) -> Path:
    """Write the table as CSV: a line of names, then numbers with all their digits, `nan` where there is none."""
    path = Path(path)
    if not path.parent.is_dir():
        raise MissingFileError(f"{path}: there is no folder {str(path.parent)!r}")
    names, rows = table(trajectory, contacts)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")  # quotes names that have commas
        writer.writerow(["t", "segment", *names])
        for row in rows.tolist():
            writer.writerow([repr(row[0]), int(row[1]), *map(repr, row[2:])])
    return path


# -- even times ----------------------------------------------------------------------------------------------------


def even_times(trajectory: Trajectory, rate: float) -> np.ndarray:
    """Times from the first state to the last, `rate` per second."""
    if not trajectory.segments:
        raise ShapeError("this trajectory is empty")
    first, last = float(trajectory.segments[0].t[0]), float(trajectory.segments[-1].t[-1])
    if not last > first:
        raise ShapeError("this trajectory has no duration: it is a single state")
    number = int((last - first) * rate + 1e-9) + 1
    if number > MOST:
        raise ShapeError(f"{number} times are too many (at most {MOST}); choose fewer a second")
    return first + np.arange(number) / rate


def evenly(trajectory: Trajectory, rate: float) -> Trajectory:
    """The motion at even times, as `Trajectory.sample` gives it; torques by linear interpolation."""
    segments, ends = [], [*(s.t[0] for s in trajectory.segments[1:]), np.inf]
    times = even_times(trajectory, rate)
    for segment, end in zip(trajectory.segments, ends, strict=True):
        t = times[(times >= segment.t[0]) & (times < end) & (times <= segment.t[-1] * (1 + 1e-12) + 1e-15)]
        if len(t):
            q, v = (np.array(part) for part in zip(*(segment.at(x) for x in t), strict=True))
            tau = None if segment.tau is None else np.array([np.interp(t, segment.t, x) for x in segment.tau.T]).T
            segments.append(type(segment)(segment.mechanism, t, q, v, tau=tau))
    return type(trajectory)(segments, trajectory.events)
