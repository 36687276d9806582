"""Time steps in place of contact events, where these are crowded: when, and for how long.

The number of events is not bounded: infinitely many may happen in a finite time (Zeno), rounding errors may make the
contacts of a height field change their modes at one moment without end, rigid bodies may have no acceleration
(Painleve), and a heap of bodies has thousands of events in a second. Time steps always get on, at order 1. So contact
goes

    to time steps    CROWDED  CROWD contact events within CROWD_TIME
                     STUCK    STUCK events at one moment
                     UNSOLVED no forces, impulses or step of the solver are found while contacts are closed
                     SLOW     stability, not accuracy, limits the solver's steps while contacts are closed, and more
                              than 20 000 are left (`integrate/pace.py`)
                     FULL     more contacts at once than events have room for (64, unless `max_contacts` says so)
                     OVERLAP  a start with shapes that overlap by more than 1e-6 m: a state recorded in time steps
    to events        after SHORTEST_STAY at the earliest, if at STEADY looks in a row, LOOK_STEPS steps apart, the same
                     contacts were closed, and nothing overlaps by more than 1e-6 m.

If steps replace events again within ten times their last stay, the next one is twice as long: a run of length T that
stays crowded has at most CROWD log2(T / SHORTEST_STAY) events. All decisions depend on simulated time and states only.
Limits: `tolerances.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bunraku.tolerances import CROWD, CROWD_TIME, LOOK_STEPS, SHORTEST_STAY, STEADY, STUCK

CROWDED, STUCK_AT, UNSOLVED, SLOW, FULL, OVERLAP = "crowded", "stuck", "unsolved", "slow", "full", "overlap"
WORDS = {CROWDED: f"{CROWD} events within {CROWD_TIME:g} s", STUCK_AT: f"{STUCK} events at one moment",
         UNSOLVED: "no motion by events", SLOW: "the solver's steps are too short",
         FULL: "more contacts than events have room for", OVERLAP: "shapes overlap"}


@dataclass
class Crowding:
    """Whether time steps replace contact events now."""

    step: float | None            # [s] their length; None: they never do
    stepping: bool = False
    since: float = 0.0            # [s] time at which they began
    stay: float = 0.0             # [s] how long they last at least
    ended: float = -np.inf        # [s] time at which they last ended
    made: int = 0                 # steps since the last look
    steady: int = 0               # looks in a row at which nothing has changed
    closed: np.ndarray | None = None  # contacts at the last look
    recent: list[float] = field(default_factory=list)  # times of the last events
    moment: int = 0               # further events at the time of the last one

    def event(self, t: float) -> str | None:
        """Count an event; why steps are to replace them from here on, if they are."""
        same = bool(self.recent) and t - self.recent[-1] <= 1e-12 * max(1.0, abs(t))
        self.moment = self.moment + 1 if same else 0
        self.recent = [*self.recent[-(CROWD - 1):], t]
        if self.step is None:
            return None
        if self.moment >= STUCK:
            return STUCK_AT
        return CROWDED if len(self.recent) == CROWD and t - self.recent[0] <= CROWD_TIME else None

    def begin(self, t: float) -> None:
        """Steps replace events from here on."""
        again = t - self.ended < 10.0 * self.stay
        self.stay = 2.0 * self.stay if again else SHORTEST_STAY
        self.stepping, self.since, self.made, self.steady, self.closed = True, t, 0, 0, None

    @property
    def until_look(self) -> int:
        """Steps until the next look."""
        return LOOK_STEPS - self.made

    def look(self, t: float, closed: np.ndarray, fit: bool) -> bool:
        """Whether events are to take over again; `fit`: whether the state is one to start from by events."""
        same = self.closed is not None and np.array_equal(closed, self.closed)
        self.made = 0
        self.steady, self.closed = self.steady + 1 if same else 0, closed
        return fit and self.steady >= STEADY and t - self.since >= self.stay

    def end(self, t: float) -> None:
        """Events take over again."""
        self.stepping, self.ended, self.recent, self.moment = False, t, [], 0

    def to_header(self) -> dict:
        """Its state, for a checkpoint."""
        closed = None if self.closed is None else self.closed.tolist()
        ended = self.ended if np.isfinite(self.ended) else None
        return {"stepping": self.stepping, "since": self.since, "stay": self.stay, "ended": ended,
                "made": self.made, "steady": self.steady, "closed": closed, "recent": list(self.recent),
                "moment": self.moment}

    def restore(self, header: dict) -> None:
        """The state of a checkpoint."""
        closed, ended = header["closed"], header["ended"]
        self.closed = None if closed is None else np.array(closed, np.int64)
        self.ended = -np.inf if ended is None else float(ended)
        self.stepping, self.steady, self.moment = bool(header["stepping"]), int(header["steady"]), int(header["moment"])
        self.made, self.since, self.stay = int(header["made"]), float(header["since"]), float(header["stay"])
        self.recent = [float(t) for t in header["recent"]]
