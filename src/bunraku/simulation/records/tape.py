"""Record of a simulation's motion: all of it, the last seconds, or the present state only."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from bunraku.checks import as_positive
from bunraku.errors import ModelError, ShapeError
from bunraku.integrate import solver_memory as m
from bunraku.mechanism import Mechanism
from bunraku.simulation.records.pages import Block, Reel
from bunraku.simulation.records.trajectory import Event, Trajectory

SAME = 4 * m.EPSILON  # of a time: as near as events are located


class Listener(Protocol):
    """Receiver of the motion while it is computed, such as `record.Recording`."""

    def append(self, t: np.ndarray, y: np.ndarray) -> None: ...
    def change(self, mechanism: Mechanism, t: float, y: np.ndarray) -> None: ...
    def event(self, event: Event) -> None: ...
    def close(self) -> None: ...


class Extent(NamedTuple):
    """How much of a motion is recorded."""

    duration: float  # [s] infinite: all of it; 0: the present state only
    dense: bool      # with the polynomials of the steps

    @classmethod
    def of(cls, record, dense: bool | None, long_steps: bool) -> Extent:
        """From the user's arguments. `long_steps`: whether polynomials are kept if `dense` is not given."""
        if isinstance(record, str) and record == "all":
            return cls(math.inf, long_steps if dense is None else bool(dense))
        if dense:
            raise ModelError(f"dense=True keeps the polynomial of every step: it needs record='all', not {record!r}")
        if record is None:
            return cls(0.0, False)
        if isinstance(record, str):
            raise ModelError(f"record must be 'all', a number of seconds, or None for the present state only, "
                             f"not {record!r}")
        return cls(as_positive("record [s]", record, ShapeError), False)


class Tape:
    """The recorded motion, in blocks as they come; listeners get the same states, each once and in its final form."""

    def __init__(self, extent: Extent, mechanism: Mechanism, t: float, y: np.ndarray):
        self.duration, self.dense = extent
        self.past: list[Reel] = []  # of structures that are no more
        self.present = Reel(mechanism, Block(np.array([t]), y[None].copy()))
        self.events: list[Event] = []
        self.listeners: list[Listener] = []
        self._held = False  # whether the last state has not yet been handed over: it may still change

    @property
    def begin(self) -> float:
        return (self.past[0] if self.past else self.present).begin

    @property
    def end(self) -> float:
        return self.present.end

    def trajectory(self) -> Trajectory:
        self._forget()
        return Trajectory([reel.segment() for reel in (*self.past, self.present)], list(self.events))

    def restore(self, trajectory: Trajectory) -> None:
        """Go on where a recorded motion ended."""
        *self.past, self.present = map(Reel.of, trajectory.segments)
        self.events = trajectory.events

    # -- write -----------------------------------------------------------------------------------------------------

    def append(self, block: Block) -> None:
        """States at the ends of steps."""
        if not len(block.t):
            return
        last = self.present.blocks[-1]
        again = block.t[0] - last.t[-1] <= SAME * abs(block.t[0])  # an event where the last one was: the same state
        if again:
            self.present.drop_last()
        elif self._held:
            self._tell(last.last())
        self.present.blocks.append(block)
        self._tell(replace(block, t=block.t[:-1]))
        self._held = True
        self._forget()

    def replace_last(self, y: np.ndarray) -> None:
        t = np.array([self.end])
        self.present.drop_last()
        self.present.blocks.append(Block(t, y[None].copy()))

    def event(self, event: Event) -> None:
        self.events.append(event)
        for listener in self.listeners:
            listener.event(event)

    def change(self, mechanism: Mechanism, t: float, y: np.ndarray) -> None:
        """Begin a segment with another structure or state here, or at the time t."""
        self.settle()
        if t < self.end:  # times of a record increase
            self.past, self.events = [], []
        else:
            self._forget()
            if self.present.end > self.present.begin and self.duration > 0.0:  # what lasted no time left no trace but
                self.past.append(self.present)                                 # its event
        self.present = Reel(mechanism, Block(np.array([t]), y[None].copy()))
        for listener in self.listeners:
            listener.change(mechanism, t, y)

    def settle(self) -> None:
        """Pass the last state, now final, to the listeners."""
        if self._held:
            self._tell(self.present.blocks[-1].last())
            self._held = False

    def _tell(self, block: Block) -> None:
        if len(block.t) and self.listeners:
            y = block.states()
            for listener in self.listeners:
                listener.append(block.t, y)

    def _forget(self) -> None:
        """Drop blocks older than the duration; whole blocks, so that the cost is negligible."""
        if math.isinf(self.duration):
            return
        before, blocks = self.end - self.duration, self.present.blocks
        self.present.since = before
        if self.duration == 0.0:
            blocks[:], self.past = [blocks[-1].last()], []
        while len(blocks) > 1 and len(blocks[1].t) and blocks[1].t[0] <= before:
            del blocks[0]
        while self.past and self.past[0].end < before:
            del self.past[0]
        while self.events and self.events[0].t < before:
            del self.events[0]
