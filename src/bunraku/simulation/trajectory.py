"""What a simulation recorded: segments of constant structure, events between them, save and load."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bunraku.errors import MissingFileError, ModelError, ShapeError
from bunraku.mechanism import Mechanism
from bunraku.mechanism.describe import describe, rebuild

FORMAT = 1


class Event(NamedTuple):
    """Something that happened."""

    t: float
    text: str


@dataclass(eq=False)
class Segment:
    """A stretch of motion during which the structure stayed the same: n states at times t."""

    mechanism: Mechanism
    t: np.ndarray   # (n,)
    q: np.ndarray   # (n, nq)
    v: np.ndarray   # (n, nv)

    def at(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """State at a time within the segment, between the recorded ones (cubic in q, linear in v)."""
        k = int(np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, max(len(self.t) - 2, 0)))
        if len(self.t) == 1 or t == self.t[k]:
            return self.q[k].copy(), self.v[k].copy()
        m, h = self.mechanism, self.t[k + 1] - self.t[k]
        s = (t - self.t[k]) / h
        # Hermite in the tangent at the start: through both places, with both velocities
        gap, v0, v1 = m.difference(self.q[k], self.q[k + 1]), h * self.v[k], h * self.v[k + 1]
        dq = s * v0 + s * s * (3 * gap - 2 * v0 - v1) + s ** 3 * (v0 + v1 - 2 * gap)
        return m.integrate(self.q[k], dq), (1 - s) * self.v[k] + s * self.v[k + 1]


@dataclass(eq=False)
class Trajectory:
    """Motion in segments; `t`, `q`, `v` are all of it at once where the number of coordinates never changes."""

    segments: list[Segment] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    @property
    def t(self) -> np.ndarray:
        return np.concatenate([s.t for s in self.segments]) if self.segments else np.empty(0)

    @property
    def q(self) -> np.ndarray:
        return self._joined("q")

    @property
    def v(self) -> np.ndarray:
        return self._joined("v")

    def _joined(self, name):
        parts = [getattr(s, name) for s in self.segments]
        if len({part.shape[1] for part in parts}) > 1:
            raise ShapeError(f"the structure changes during this motion, so {name} has no single width; "
                             "go through trajectory.segments")
        return np.concatenate(parts) if parts else np.empty((0, 0))

    def sample(self, times) -> list[tuple[Mechanism, np.ndarray, np.ndarray]]:
        """(mechanism, q, v) at each time; at a change of structure, the state after it."""
        out = []
        for t in np.atleast_1d(np.asarray(times, float)):
            if not self.segments or not self.segments[0].t[0] <= t <= self.segments[-1].t[-1]:
                raise ShapeError(f"time {t:g} s is outside the recorded motion{self._extent()}")
            segment = [s for s in self.segments if s.t[0] <= t][-1]
            out.append((segment.mechanism, *segment.at(min(t, segment.t[-1]))))
        return out

    def _extent(self) -> str:
        return f", which goes from {self.segments[0].t[0]:g} to {self.segments[-1].t[-1]:g} s" if self.segments else ""

    def energy(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(t, kinetic, potential) at every recorded state."""
        parts = [s.mechanism.energy(s.q, s.v) for s in self.segments]
        return self.t, np.concatenate([k for k, _ in parts]), np.concatenate([p for _, p in parts])

    def save(self, path) -> Path:
        """Write everything, mechanisms included, to one file (NumPy's .npz; no pickles). Returns its path.

        A name that does not end in .npz gets that ending, here and in `load`.
        """
        path = _as_file(path)
        header = {"format": FORMAT, "mechanisms": [describe(s.mechanism) for s in self.segments],
                  "events": [list(event) for event in self.events]}
        arrays = {f"{name}{k}": getattr(s, name) for k, s in enumerate(self.segments) for name in ("t", "q", "v")}
        partial = path.with_name(path.name + ".partial")  # never leave half a file under the real name
        with open(partial, "wb") as file:
            np.savez_compressed(file, header=np.array(json.dumps(header)), **arrays)
        partial.replace(path)
        return path

    @classmethod
    def load(cls, path) -> Trajectory:
        """Read what `save` wrote, under the name that it was given."""
        path = Path(path) if Path(path).is_file() else _as_file(path)
        try:
            with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
                header = json.loads(str(file["header"]))
                if header["format"] != FORMAT:
                    raise ModelError(f"{path}: trajectory of format {header['format']}; this version reads {FORMAT}")
                segments = [Segment(rebuild(data), file[f"t{k}"], file[f"q{k}"], file[f"v{k}"])
                            for k, data in enumerate(header["mechanisms"])]
        except FileNotFoundError:
            raise MissingFileError(f"{path}: there is no such file") from None
        except (OSError, KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile) as error:
            if isinstance(error, ModelError):
                raise
            what = "" if "pickle" in str(error) else f": {error}"  # NumPy's advice to load it unsafely would be wrong
            raise ModelError(f"{path} is not a trajectory that bunraku wrote{what}") from error
        return cls(segments, [Event(*event) for event in header["events"]])

    def __repr__(self):
        if not self.segments:
            return "Trajectory: empty"
        t = self.t
        return (f"Trajectory of {self.segments[-1].mechanism.name}: {len(t)} states, {t[0]:g} to {t[-1]:g} s, "
                f"{len(self.segments)} segment{'s' * (len(self.segments) > 1)}, {len(self.events)} events")


def _as_file(path) -> Path:
    """The file of a trajectory: the same for what is saved and for what is loaded."""
    path = Path(path)
    return path if path.suffix == ".npz" else path.with_name(path.name + ".npz")


def load_trajectory(path) -> Trajectory:
    """Read a trajectory file."""
    return Trajectory.load(path)
