"""The two sources of a stage: a running simulation, or a recording being played. Both provide the state to show."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bunraku.errors import ShapeError
from bunraku.evaluate.contacts import Contacts
from bunraku.mechanism import Mechanism
from bunraku.simulation import Segment, Simulation, Trajectory, watching
from bunraku.simulation.records.recorded_forces import contacts_at, refuse_unknown_forces


def segment_at(trajectory: Trajectory, t: float) -> Segment:
    return [trajectory.segments[0], *(s for s in trajectory.segments if s.t[0] <= t)][-1]


def state_at(trajectory: Trajectory, t: float):
    """(mechanism, q, v) at any time: in a gap of the recorded motion, and beyond its ends, the nearest earlier one."""
    segment = segment_at(trajectory, t)
    return segment.mechanism, *segment.at(min(max(t, float(segment.t[0])), float(segment.t[-1])))


class Recorded:
    """A recorded motion at any time; whether its forces are known is determined once."""

    def __init__(self, trajectory: Trajectory):
        self.trajectory = trajectory
        self.reason: str | None = None  # why forces are unknown; "" if they are known, None if that is not tried

    def contacts(self, t: float) -> Contacts:
        """Contacts with forces; a ShapeError if the forces are unknown."""
        if self.reason is None:
            try:
                refuse_unknown_forces(self.trajectory)
                self.reason = ""
            except ShapeError as error:
                self.reason = str(error)
        if self.reason:
            raise ShapeError(self.reason)
        return contacts_at(segment_at(self.trajectory, t), t)


class Live:
    """A simulation. The shown state is the present one, or the recorded one at the time `looked_at`."""

    live = True

    def __init__(self, simulation: Simulation):
        self.simulation = simulation
        self.looked_at: float | None = None
        self._start = self.moment()
        self._recorded: Recorded | None = None  # while time is looked at; a new one when the record has changed

    mechanism = property(lambda self: self.simulation.mechanism)
    t = property(lambda self: self.simulation.t)
    state = property(lambda self: (self.simulation.q, self.simulation.v))

    def advance(self, seconds: float) -> bool:
        """Advance; returns whether the simulation continues."""
        self.forget()
        self.simulation.advance(self.simulation.t + seconds)
        return True

    def halted_by(self, halt: Callable[[], bool]):
        """A context in which `advance` asks whether to stop early."""
        return watching.halted_by(self.simulation, halt)

    def moment(self) -> watching.Moment:
        """Structure and state, to come back to."""
        return watching.Moment.of(self.simulation)

    def restore(self, moment: watching.Moment) -> None:
        """Structure and state of an earlier moment; time goes on."""
        self.forget()
        moment.restore(self.simulation, "undo")

    def reset(self) -> None:
        """Return to the start; conditions are armed again."""
        self.looked_at = None
        self.forget()
        self._start.restore(self.simulation, "reset", rewind=True)

    def look_at(self, t: float | None) -> None:
        """Show the record at t; None: the present."""
        self.looked_at = t

    def forget(self) -> None:
        """The record has changed."""
        self._recorded = None

    def span(self) -> tuple[float, float]:
        return watching.recorded_span(self.simulation)

    def acting(self, mechanism: Mechanism, q, v) -> dict:
        """External action at the shown state, as arguments of `bk.dynamics`; unknown for a recorded one."""
        if self.looked_at is not None:
            return {}
        touching = {"contacts": self.simulation.contacts} if mechanism.may_touch() else {}
        return {**watching.acting(self.simulation, mechanism, q, v), **touching}

    def contacts(self) -> Contacts:
        """Contacts of the state shown, with forces."""
        return self.simulation.contacts if self.looked_at is None else self._record().contacts(self.looked_at)

    def shown(self) -> tuple[Mechanism, np.ndarray, np.ndarray]:
        """Structure and state to show."""
        if self.looked_at is None:
            return self.mechanism, *self.state
        return state_at(self._record().trajectory, self.looked_at)

    def _record(self) -> Recorded:
        self._recorded = self._recorded or Recorded(self.simulation.trajectory)
        return self._recorded


class Playback:
    """A recording."""

    live = False
    looked_at = None

    def __init__(self, trajectory: Trajectory):
        if not trajectory.segments:
            raise ShapeError("this trajectory is empty: there is nothing to show")
        self.trajectory = trajectory
        self._recorded = Recorded(trajectory)
        self.t = self.span()[0]

    mechanism = property(lambda self: self.shown()[0])
    state = property(lambda self: self.shown()[1:])

    def advance(self, seconds: float) -> bool:
        end = self.span()[1]
        self.t = min(self.t + seconds, end)
        return self.t < end

    def reset(self) -> None:
        self.t = self.span()[0]

    def look_at(self, t: float | None) -> None:
        """Go to t."""
        if t is not None:
            first, last = self.span()
            self.t = min(max(t, first), last)

    def span(self) -> tuple[float, float]:
        return float(self.trajectory.segments[0].t[0]), float(self.trajectory.segments[-1].t[-1])

    def acting(self, mechanism: Mechanism, q, v) -> dict:
        """External forces of a recording are unknown."""
        return {}

    def contacts(self) -> Contacts:
        return self._recorded.contacts(self.t)

    def shown(self) -> tuple[Mechanism, np.ndarray, np.ndarray]:
        return state_at(self.trajectory, self.t)
