"""What a simulation remembers of its motion: all of it, the last seconds, or the present state only."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from bunraku.checks import as_positive
from bunraku.errors import ModelError, ShapeError
from bunraku.integrate import memory as m
from bunraku.mechanism import Mechanism
from bunraku.simulation.interpolation import Steps, join
from bunraku.simulation.trajectory import Event, Segment, Trajectory

SAME = 4 * m.EPSILON  # of a time: as near as events are located


class Listener(Protocol):
    """Somebody who writes the motion down elsewhere while it goes on, such as `record.Recording`."""

    def append(self, t: np.ndarray, y: np.ndarray) -> None: ...
    def change(self, mechanism: Mechanism, t: float, y: np.ndarray) -> None: ...
    def event(self, event: Event) -> None: ...
    def close(self) -> None: ...


def as_duration(record, dense: bool) -> float:
    """Seconds to be remembered, from what people give: "all", a number of seconds, or None."""
    if isinstance(record, str) and record == "all":
        return math.inf
    if dense:
        raise ModelError(f"dense=True keeps the polynomial of every step: it needs record='all', not {record!r}")
    if record is None:
        return 0.0
    if isinstance(record, str):
        raise ModelError(f"record must be 'all', a number of seconds, or None for the present state only, "
                         f"not {record!r}")
    return as_positive("record [s]", record, ShapeError)


class Tape:
    """The recorded motion, in blocks as they come; listeners get the same states, each once and in its final form."""

    def __init__(self, duration: float, mechanism: Mechanism, t: float, y: np.ndarray):
        self.duration, self.mechanism = duration, mechanism
        self.past: list[Segment] = []  # of structures that are no more
        self.blocks: list[tuple[np.ndarray, np.ndarray]] = [(np.array([t]), y[None].copy())]
        self.steps: list[Steps] = []   # polynomials since the structure last changed
        self.events: list[Event] = []
        self.listeners: list[Listener] = []
        self._held = False  # whether the last state has not yet been handed over: it may still change

    @property
    def end(self) -> float:
        return float(self.blocks[-1][0][-1])

    def segment(self) -> Segment:
        """Since the structure last changed."""
        if len(self.blocks) > 1:
            times, states = zip(*self.blocks, strict=True)
            self.blocks = [(np.concatenate(times), np.concatenate(states))]
        t, y = self.blocks[0]
        nq, steps = self.mechanism.nq, join(self.steps)
        self.steps = [] if steps is None else [steps]
        if math.isfinite(self.duration):
            first = max(int(np.searchsorted(t, self.end - self.duration, side="right")) - 1, 0)  # one before that
            t, y = t[first:], y[first:]
        return Segment(self.mechanism, t, y[:, :nq], y[:, nq:], steps)

    def trajectory(self) -> Trajectory:
        self._forget()
        return Trajectory([*self.past, self.segment()], list(self.events))

    def restore(self, trajectory: Trajectory) -> None:
        """Go on where a recorded motion ended."""
        *self.past, present = trajectory.segments
        self.blocks = [(present.t, np.hstack([present.q, present.v]))]
        self.steps = [] if present.steps is None else [present.steps]
        self.events = trajectory.events

    # -- write -----------------------------------------------------------------------------------------------------

    def append(self, t: np.ndarray, y: np.ndarray, steps: Steps | None = None) -> None:
        """States at the ends of steps."""
        if not len(t):
            return
        times, states = self.blocks[-1]
        again = t[0] - times[-1] <= SAME * abs(t[0])  # an event where the last one was: the same state once more
        if again:
            self.blocks[-1] = times[:-1], states[:-1]
        elif self._held:
            self._tell(times[-1:], states[-1:])
        self.blocks.append((t.copy(), y.copy()))
        self._tell(t[:-1], y[:-1])
        self._held = True
        if steps is not None:
            self.steps.append(steps)
        self._forget()

    def replace_last(self, y: np.ndarray) -> None:
        self.blocks[-1][1][-1] = y

    def event(self, event: Event) -> None:
        self.events.append(event)
        for listener in self.listeners:
            listener.event(event)

    def change(self, mechanism: Mechanism, t: float, y: np.ndarray) -> None:
        """Another structure or state from here, or from the time t."""
        self.settle()
        if t < self.end:  # times of a record increase
            self.past, self.events = [], []
        else:
            segment = self.segment()
            if segment.t[-1] > segment.t[0] and self.duration > 0.0:  # what lasted no time left no trace but its event
                self.past.append(segment)
        self.mechanism, self.blocks, self.steps = mechanism, [(np.array([t]), y[None].copy())], []
        for listener in self.listeners:
            listener.change(mechanism, t, y)

    def settle(self) -> None:
        """The last state is final: hand it over."""
        if self._held:
            times, states = self.blocks[-1]
            self._tell(times[-1:], states[-1:])
            self._held = False

    def _tell(self, t: np.ndarray, y: np.ndarray) -> None:
        if len(t):
            for listener in self.listeners:
                listener.append(t, y)

    def _forget(self) -> None:
        """What is older than the duration; whole blocks, so that it costs nothing."""
        if math.isinf(self.duration):
            return
        before = self.end - self.duration
        if self.duration == 0.0:
            times, states = self.blocks[-1]
            self.blocks, self.past = [(times[-1:].copy(), states[-1:].copy())], []
        while len(self.blocks) > 1 and len(self.blocks[1][0]) and self.blocks[1][0][0] <= before:
            del self.blocks[0]
        while self.past and self.past[0].t[-1] < before:
            del self.past[0]
        while self.events and self.events[0].t < before:
            del self.events[0]
