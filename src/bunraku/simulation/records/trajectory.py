"""Trajectories: segments of constant structure, events between them, save and load."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bunraku.checks import as_number
from bunraku.errors import ShapeError, SimulationWarning
from bunraku.evaluate.contacts import Contacts
from bunraku.mechanism import Mechanism
from bunraku.mechanism.describe import describe, rebuild
from bunraku.record import FORMAT as RECORDING_FORMAT
from bunraku.record import Recording
from bunraku.simulation.records.contact_columns import contact_messages
from bunraku.simulation.records.data_frame import to_frame
from bunraku.simulation.records.interpolation import Steps, as_steps, between
from bunraku.simulation.records.recorded_forces import (
    as_names,
    contacts_at,
    contacts_in,
    refuse_no_shapes,
    refuse_unknown_forces,
    total,
)
from bunraku.simulation.records.storage import RECORDED, Rule, check, read, refuse, write

FORMAT = 1

# Arrays of a segment, in memory and (numbered by segments) in files; a new one is a line here. Sizes are nq, nv, ny =
# nq + nv, nt = nv + nc of the mechanism, and those that the first array has which names them.
ARRAYS = {
    "t": Rule(("states",), rising=True),
    "q": Rule(("states", "nq")),
    "v": Rule(("states", "nv")),
}
TORQUES = {"tau": Rule(("states", "nt"), optional=True)}
STEPS = {  # of `dense` simulations
    "steps": Rule(("steps", 4), optional=True),  # origin, scale, degree, end of each step
    "rows": Rule(("rows", "ny"), optional=True),  # degree + 1 rows of coefficients for each
}


class Event(NamedTuple):
    """An event of the motion."""

    t: float
    text: str


@dataclass(eq=False)
class Segment:
    """A stretch of motion during which the structure stayed the same: n states at times t."""

    mechanism: Mechanism
    t: np.ndarray   # (n,)
    q: np.ndarray   # (n, nq)
    v: np.ndarray   # (n, nv)
    steps: Steps | None = None  # between the states, as the solver saw it; None without `dense`
    tau: np.ndarray | None = None  # (n, nv + nc): torques of the actuators, if they were recorded

    def at(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """State at a time within the segment; between the recorded ones as `interpolation.py` says."""
        k = int(np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 1))
        if k == len(self.t) - 1 or t <= self.t[k]:
            return self.q[k].copy(), self.v[k].copy()
        return between(self.mechanism, self.t, self.q, self.v, self.steps, k, t)


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
            raise ShapeError(f"the structure changes during this motion, so {name} has different sizes per segment; "
                             "go through trajectory.segments")
        return np.concatenate(parts) if parts else np.empty((0, 0))

    def sample(self, times) -> list[tuple[Mechanism, np.ndarray, np.ndarray]]:
        """(mechanism, q, v) at each time; at a change of structure, the state after it.

        Between two steps: the polynomial of the solver, if the simulation was `dense`, as with adaptive Runge-Kutta
        methods by default; else a polynomial through the neighbouring recorded states, which is as accurate for
        the steps of a smooth motion. Across a kink without an event the error is of the order of the step.
        """
        return [(segment.mechanism, *segment.at(min(t, segment.t[-1]))) for t, segment in self._at(times)]

    def _at(self, times) -> list[tuple[float, Segment]]:
        """(time, segment) of one time or several."""
        try:
            times = np.atleast_1d(np.asarray(times, float))
        except (TypeError, ValueError):
            raise ShapeError(f"times must be numbers, not {times!r}") from None
        if times.ndim > 1:
            raise ShapeError(f"times has shape {times.shape}; it must be one number or (n,)")
        out = []
        for t in times:
            if not self.segments or not self.segments[0].t[0] <= t <= self.segments[-1].t[-1]:
                raise ShapeError(f"time {t:g} s is outside the recorded motion{self._extent()}")
            segment = [s for s in self.segments if s.t[0] <= t][-1]
            end = float(segment.t[-1])
            if t - end > 1e-12 * abs(end) and segment is not self.segments[-1]:
                raise ShapeError(f"time {t:g} s lies in a gap of the recorded motion, which set_state has left: "
                                 f"nothing is known after {end:g} s")
            out.append((t, segment))
        return out

    def contacts(self, t) -> Contacts | list[Contacts]:
        """Contacts at a time, with forces and modes; a list for several times.

        Evaluated again from the states and the recorded torques; a ShapeError if these are missing, or if something
        acted that is not recorded. With fixed steps: those of the step that contains the time, impulses divided by
        the step, so that impacts show as large forces. Otherwise instantaneous forces, with gaps up to 1e-5 m closed
        and slip below 1e-4 m/s counted as sticking; impacts have no force, their impulses are among the `events`.
        """
        at = self._at(t)
        refuse_no_shapes(self)
        refuse_unknown_forces(self)
        found = [contacts_at(segment, when) for when, segment in at]
        return found if np.ndim(t) else found[0]

    def contact_forces(self, of: str | tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
        """(t, force (n, 3)) [N] at every recorded state: the total contact force on a link or shape, world axes.

        of    the name of a link or shape; or two, ("left_foot", "floor"): the force on the first by the second

        Evaluated as by `contacts`.
        """
        names = as_names(self, of)
        refuse_no_shapes(self)
        refuse_unknown_forces(self)
        return self.t, np.array([total(contacts_in(s, k), names) for s in self.segments
                                 for k in range(len(s.t))]).reshape(-1, 3)

    def _extent(self) -> str:
        return f", which goes from {self.segments[0].t[0]:g} to {self.segments[-1].t[-1]:g} s" if self.segments else ""

    def energy(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(t, kinetic, potential) at every recorded state."""
        parts = [s.mechanism.energy(s.q, s.v) for s in self.segments]
        return self.t, np.concatenate([k for k, _ in parts]), np.concatenate([p for _, p in parts])

    def to_frame(self, *, contacts: bool = False):
        """All recorded states as a pandas DataFrame: time as its index, `segment`, and a column for every coordinate,
        velocity and (if recorded) torque, named as in docs/recordings.md: `knee`, `knee.rate`, `root.x`, `root.vx`.
        Columns that a structure does not have are NaN in its segment.

        contacts  also columns for every pair of shapes that comes near each other, evaluated as by `contacts`:
                  `foot - floor.normal` and `.friction` [N], `.mode` (0 open, 1 sticking, 2 sliding), `.gap` [m], and
                  `.x`, `.y`, `.z`, the centre of pressure [m]; NaN where they are apart
        """
        return to_frame(self, contacts)

    def save(self, path) -> Path:
        """Write everything, mechanisms included, to one file (NumPy's .npz; no pickles), atomically: a crash leaves
        the previous file. Returns its path: .npz is appended to a name without it, here and in
        `load`; a name that ends in .mcap becomes a recording (docs/recordings.md).
        """
        if Path(path).suffix == RECORDED:
            return record(self, path)
        header, arrays = to_file(self)
        return write(path, {"format": FORMAT, **header}, arrays)

    @classmethod
    def load(cls, path) -> Trajectory:
        """Read a file of `save`, or a recording, to the last whole block if it was not closed. A damaged file, wrong
        shapes, NaN or infinity, or decreasing times are a ModelError."""
        def use(header, arrays):
            kind = header.get("kind", "trajectory")
            ours = RECORDING_FORMAT if kind == "recording" else FORMAT
            if header["format"] != ours:
                refuse(f": {kind} of format {header['format']}; this version reads {ours}")
            return from_file(header, arrays)

        return read(path, "trajectory", use)

    def __repr__(self):
        if not self.segments:
            return "Trajectory: empty"
        t = self.t
        return (f"Trajectory of {self.segments[-1].mechanism.name}: {len(t)} states, {t[0]:g} to {t[-1]:g} s, "
                f"{len(self.segments)} segment{'s' * (len(self.segments) > 1)}, {len(self.events)} events")

    def _repr_html_(self) -> str | None:
        """In notebooks a trajectory shows as its replay; an empty one as text."""
        if not self.segments:
            return None
        from bunraku.view.replay import notebook_html  # the one look upwards, see .importlinter

        return notebook_html(self)


def as_trajectory(value) -> Trajectory:
    """A trajectory, or that of a simulation."""
    found = getattr(value, "trajectory", value)
    if isinstance(found, Trajectory):
        return found
    instead = "give motion.trajectory()" if callable(found) else "sim.run and bk.load_trajectory return one"
    raise ShapeError(f"a trajectory or a simulation is needed, not {type(value).__name__}; {instead}")


def to_file(trajectory: Trajectory) -> tuple[dict, dict[str, np.ndarray]]:
    """A trajectory as the part of a header and arrays."""
    arrays = {}
    for k, segment in enumerate(trajectory.segments):
        sizes = _sizes(segment.mechanism)
        parts = {name: (getattr(segment, name), rule) for name, rule in ARRAYS.items()}
        if segment.tau is not None:
            parts |= {name: (segment.tau, rule) for name, rule in TORQUES.items()}
        if segment.steps is not None:
            parts |= {name: (part, rule) for part, (name, rule) in zip(segment.steps, STEPS.items(), strict=True)}
        for name, (array, rule) in parts.items():
            check(f"cannot be saved: {name} of segment {k}", array, rule, sizes)
            arrays[f"{name}{k}"] = array
    return {"mechanisms": [describe(s.mechanism) for s in trajectory.segments],
            "events": [list(event) for event in trajectory.events]}, arrays


def from_file(header: dict, arrays) -> Trajectory:
    """A trajectory from the result of `to_file`, checked."""
    segments: list[Segment] = []
    for k, data in enumerate(header["mechanisms"]):
        mechanism = rebuild(data)
        mechanism.plan()  # refuses what cannot move
        sizes = _sizes(mechanism)
        parts = {name: arrays(f"{name}{k}", rule, sizes, f"{name} of segment {k}")
                 for name, rule in (ARRAYS | TORQUES | STEPS).items()}
        table, rows = parts.pop("steps"), parts.pop("rows")
        if (table is None) != (rows is None):
            raise ShapeError(f"segment {k} has one of steps and rows without the other")
        segment = Segment(mechanism, **parts, steps=None if table is None else as_steps(table, rows))
        if not len(segment.t):
            raise ShapeError(f"segment {k} is empty")
        if segments and segment.t[0] < segments[-1].t[-1]:
            raise ShapeError(f"segment {k} begins at {segment.t[0]:g} s; the one before it ends at "
                             f"{segments[-1].t[-1]:g} s")
        segments.append(segment)
    return Trajectory(segments, [Event(as_number("the time of an event", t), _text(text))
                                 for t, text in header["events"]])


def _sizes(mechanism: Mechanism) -> dict[str, int]:
    nq, nv = mechanism.nq, mechanism.nv
    return {"nq": nq, "nv": nv, "ny": nq + nv, "nt": nv + mechanism.nc}


def _text(text) -> str:
    if not isinstance(text, str):
        raise ShapeError(f"an event is text, not {text!r}")
    return text


def record(trajectory: Trajectory, path, *, single: bool = False, contacts: bool = False) -> Path:
    """Write a trajectory as a recording; `single` in float32; `contacts`: those of every state, for other readers."""
    to_file(trajectory)  # refuses what could not be read again
    if any(segment.steps is not None for segment in trajectory.segments):
        warnings.warn(f"{path}: a recording has the states of a dense simulation, not its polynomials; save it as .npz "
                      "to keep them", SimulationWarning, stacklevel=3)
    if contacts:
        refuse_unknown_forces(trajectory)
    first, *later = trajectory.segments
    with Recording(path, first.mechanism, first.t[0], _states(first)[0], single=single, tau=_row(first.tau, 0)) as file:
        for segment in (first, *later):
            if segment is not first:
                file.change(segment.mechanism, segment.t[0], _states(segment)[0], tau=_row(segment.tau, 0))
            file.append(segment.t[1:], _states(segment)[1:], None if segment.tau is None else segment.tau[1:])
            for t, content in contact_messages(segment) if contacts else ():
                file.contacts(t, content)
        for event in trajectory.events:
            file.event(event)
    return Path(path)


def _states(segment: Segment) -> np.ndarray:
    return np.hstack([segment.q, segment.v])


def _row(array, k):
    return None if array is None else array[k]


def load_trajectory(path) -> Trajectory:
    """Read a trajectory (.npz) or a recording (.mcap)."""
    return Trajectory.load(path)
