"""Markers: named points over time, with gaps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.interpolate import CubicSpline

from bunraku.checks import as_count, hint
from bunraku.errors import NamingError, ShapeError
from bunraku.motion.plates import ForcePlate
from bunraku.motion.smoothing import low_pass, sampling_rate


@dataclass(eq=False)
class Markers:
    """Positions of markers, world axes (x forward, y left, z up) [m]; and other recorded data."""

    name: str
    t: np.ndarray              # (frames,) [s]
    names: list[str]
    positions: np.ndarray      # (frames, markers, 3); NaN in gaps
    first_frame: int = 1       # number of the first frame, as the file counts
    analog_t: np.ndarray = field(default_factory=lambda: np.empty(0))         # (samples,)
    analog: dict[str, np.ndarray] = field(default_factory=dict)               # {channel: (samples,)} in its own unit
    analog_units: dict[str, str] = field(default_factory=dict)
    plates: list[ForcePlate] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Frames a second."""
        return sampling_rate(self.t)

    def __getitem__(self, name: str) -> np.ndarray:
        """Positions (frames, 3) of one marker."""
        if name not in self.names:
            raise NamingError(f"{self.name}: there is no marker {name!r}{hint(name, self.names)}")
        return self.positions[:, self.names.index(name)]

    @property
    def gaps(self) -> list[tuple[str, int, int]]:
        """(marker, first frame, last frame) of every gap, frames counted as in the file."""
        found = []
        for k, name in enumerate(self.names):
            missing = np.isnan(self.positions[:, k]).any(axis=1)
            edges = np.flatnonzero(np.diff(np.concatenate([[False], missing, [False]]).astype(int)))
            found += [(name, int(a) + self.first_frame, int(b) - 1 + self.first_frame)
                      for a, b in zip(edges[::2], edges[1::2], strict=True)]
        return found

    def filled(self, longest: int) -> Markers:
        """A copy with gaps of up to `longest` frames filled by cubic splines; a longer one, or one at an end, is an
        error."""
        longest = as_count("longest", longest)
        positions = self.positions.copy()
        last = self.first_frame + len(self.t) - 1
        for name, start, end in self.gaps:
            if end - start + 1 > longest or start == self.first_frame or end == last:
                raise ShapeError(f"{self.name}: {_told(name, start, end)}, "
                                 + ("at an end of the recording; cut it, or leave the marker out"
                                    if start == self.first_frame or end == last else
                                    f"longer than {longest}; fill more with markers.filled({end - start + 1})"))
            k = self.names.index(name)
            known = ~np.isnan(self.positions[:, k]).any(axis=1)
            missing = slice(start - self.first_frame, end + 1 - self.first_frame)
            positions[missing, k] = CubicSpline(self.t[known], self.positions[known, k])(self.t[missing])
        return replace(self, positions=positions)

    def smooth(self, cutoff: float) -> Markers:
        """Low-pass filtered at `cutoff` [Hz]: see `Motion.smooth`. Gaps are an error."""
        self.refuse_gaps()
        flat = self.positions.reshape(len(self.t), -1)
        return replace(self, positions=low_pass(self.t, flat, cutoff).reshape(self.positions.shape))

    def refuse_gaps(self) -> None:
        """An error that names the first gap, if there is one."""
        gaps = self.gaps
        if gaps:
            more = f" (and {len(gaps) - 1} more gaps)" if len(gaps) > 1 else ""
            raise ShapeError(f"{self.name}: {_told(*gaps[0])}{more}; fill it with markers.filled(longest=...)")

    def __repr__(self):
        beside = f", {len(self.analog)} analog channels, {len(self.plates)} force plates" if self.analog else ""
        return (f"Markers {self.name!r}: {len(self.names)} markers, {len(self.t)} frames, {self.t[0]:g} to "
                f"{self.t[-1]:g} s, {len(self.gaps)} gaps{beside}")


def _told(name: str, start: int, end: int) -> str:
    frames = f"frame {start}" if start == end else f"frames {start} to {end}"
    return f"marker {name!r} has a gap in {frames}"
