"""A simulation from inside: the parts of which it consists, and the few operations that change them together.

`Simulation` is the interface for users; everything else that works on a simulation (solver loop, changes of state,
structure and forces, contact events, checkpoints, recorders, viewers, benchmarks) is given its `Running`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bunraku.errors import ModelError, SimulationError
from bunraku.integrate import solver_memory as m
from bunraku.integrate.pace import MOTION, Pace
from bunraku.mechanism import Mechanism
from bunraku.mechanism.readonly import StateArray
from bunraku.simulation.acting import Acting
from bunraku.simulation.conditions import Watch
from bunraku.simulation.contact_events import Contact
from bunraku.simulation.contact_settling import Settling
from bunraku.simulation.crew.sharing import Sharing
from bunraku.simulation.needed_kernels import prepare_simulation
from bunraku.simulation.records.pages import misfit
from bunraku.simulation.records.tape import Extent, Tape
from bunraku.simulation.records.trajectory import Event, Trajectory
from bunraku.simulation.settings import Settings


@dataclass
class Statistics:
    """Statistics of a simulation so far."""

    steps: int = 0
    rejected: int = 0
    evaluations: int = 0      # of the right-hand side
    jacobians: int = 0        # of it, by differences; their evaluations are counted too
    factorisations: int = 0   # of full matrices; for "implicit" the evaluations with springs and dampers in them
    loop_error: float = 0.0   # how far loops are from closed [m, rad], at most; a tree has none
    loop_drift: float = 0.0   # what a single step has left open, at most, before it was closed [m, rad]
    wall_time: float = 0.0    # [s]
    workers: int = 1          # threads that computed the last steps
    in_lanes: int = 0         # links that one worker computes in lanes, several at a time
    contact_problems: int = 0    # solved
    contact_iterations: int = 0  # of all of them
    contact_residual: float = 0.0  # largest violation of the law of contact, over the size of its problem
    contact_switches: int = 0    # from contact events to time steps (`simulation/crowding.py`), for these reasons:
    switches_crowded: int = 0    # many events in a short time
    switches_stuck: int = 0      # events at one moment
    switches_unsolved: int = 0   # no forces, impulses or step of the solver
    switches_slow: int = 0       # steps of the solver limited by stability
    switches_full: int = 0       # more contacts than events have room for
    switches_overlap: int = 0    # a start with shapes that overlap
    contact_stepped: float = 0.0  # [s] simulated by time steps in place of events
    gathers: int = 0          # evaluations for which one worker had to collect the whole state, for the actuation


class Follower(Protocol):
    """Observer of a run from event to event, such as `sensitivity.following.Tangent`."""

    def departs(self, run: Running) -> None: ...
    def arrives(self, run: Running, watch: Watch, moved: bool) -> None: ...
    def changes(self, run: Running, mechanism: Mechanism, q, v, t: float | None, by: object) -> None: ...
    def settles(self, run: Running, before: np.ndarray, found: Settling) -> None: ...


class Running:
    """A mechanism in motion.

    mechanism   its present structure
    settings    of the solver
    acting      actuation, external forces, pulls, prescribed motion
    sharing     workers, and whether they hold the solver's memory
    contact     contacts; None if no shapes may touch and no joint has friction or hard limits
    tape        the record
    stats       statistics
    pace        monitor that warns of slow runs; None with fixed steps
    watches     conditions of `when`; `awaited`: states of those that a checkpoint had, until `when` names them again
    impulses    of the last impact: {connection: six numbers}
    in_step     whether compiled code is running, which calls actuation and conditions
    halted      called now and then by `advance`, which stops if it returns true
    follower    is told of every stretch of smooth motion, event and change of state or structure
    """

    local: m.Memory  # this process's part of the solver's memory: clock and tally are there, rows may be with workers
    tape: Tape

    def __init__(self, mechanism: Mechanism, settings: Settings, acting: Acting, sharing: Sharing):
        self.mechanism, self.settings, self.acting, self.sharing = mechanism, settings, acting, sharing
        self.contact = self._contact_of(mechanism)
        self.stats = Statistics()
        self.pace = None if settings.fixed_step else Pace(settings.explicit, MOTION, misfit)
        self.watches: list[Watch] = []
        self.awaited: list[dict] = []
        self.impulses: dict[str, np.ndarray] = {}
        self.in_step = False
        self.halted: Callable[[], bool] | None = None
        self.follower: Follower | None = None
        prepare_simulation(settings, loops=mechanism.constrained, contact=self.contact is not None)

    def begin(self, memory: m.Memory, extent: Extent) -> None:
        """Start from the state in a solver's memory, with an empty record."""
        self.local = memory
        self.tape = Tape(extent, self.mechanism, self.t, memory.rows[0])

    def _contact_of(self, mechanism: Mechanism) -> Contact | None:
        """Contact, if any shapes may touch, or joints have friction or hard limits."""
        if not mechanism.needs_contact():
            return None
        if (self.sharing.asked or 1) > 1 or self.sharing.given is not None:
            remedy = ", or keep shapes from touching (masks, m.exclude)" if mechanism.may_touch() else ""
            raise ModelError(f"{mechanism.why_contact()}, and contact problems are computed by one worker: leave "
                             f"workers and schedule out{remedy}")
        self.sharing.stay_alone()
        return Contact(mechanism, self.settings, self.acting.locked)

    # -- ask -------------------------------------------------------------------------------------------------------

    @property
    def t(self) -> float:
        return float(self.local.clock[m.TIME])

    @property
    def q(self) -> np.ndarray:
        return StateArray.of(self.state[:self.mechanism.nq])

    @property
    def v(self) -> np.ndarray:
        return StateArray.of(self.state[self.mechanism.nq:])

    @property
    def state(self) -> np.ndarray:
        """q and v; not to be written to."""
        self.sharing.collect_state(self.local)
        return self.local.rows[0]

    @property
    def memory(self) -> m.Memory:
        """The solver's memory, gathered, to read and to change."""
        self.sharing.collect(self.local)
        return self.local

    @property
    def trajectory(self) -> Trajectory:
        return self.tape.trajectory()

    def torque(self, t: float, q, v) -> np.ndarray:
        """Torques of the user's actuation."""
        return self.acting.own_torque(self.mechanism, t, q, v)

    def acts(self) -> dict:
        """External action at the present state, as arguments of `bk.dynamics`."""
        return self.acting.at(self.mechanism, self.t, self.q, self.v)

    def __getstate__(self) -> dict:
        """State of a copy: gathered, without workers."""
        self.sharing.collect(self.local)
        return self.__dict__

    # -- change ----------------------------------------------------------------------------------------------------

    def refuse_within_a_step(self, what: str) -> None:
        if self.in_step:
            raise SimulationError(f"{what}: not allowed during a step: actuation and conditions must not change the "
                                  "state. Change it between runs, or from an action of `when`")

    def restart(self) -> None:
        """Discard the solver's history: the motion may have a discontinuity here."""
        self.local.tally[m.STARTED] = 0
        if not self.settings.fixed_step:
            self.local.clock[m.STEP] = 0.0

    def change(self, mechanism: Mechanism, q, v, event: str, t: float | None = None, cut: int | None = None,
               by: object = None) -> None:
        """Continue with another structure or state from here, or from the time t; `cut`: the link whose joint was
        cut; `by`: the map of states, for the follower."""
        self.refuse_within_a_step(event.partition(":")[0])
        if self.follower is not None:
            self.follower.changes(self, mechanism, q, v, t, by)
        self.acting.fit(mechanism, cut)
        self.sharing.changed(mechanism)
        self.mechanism = mechanism.locked()
        self.contact = self._contact_of(mechanism)
        clock, self.local = self.local.clock, self.settings.memory(np.concatenate([q, v]))
        self.local.clock[:m.SIZE] = clock[:m.SIZE]
        if t is not None:
            self.local.clock[m.TIME] = t
        self.restart()  # what was a good step before says nothing now
        self.tape.change(self.mechanism, self.t, self.local.rows[0])
        self.acting.drive(self.mechanism)
        self.tape.event(Event(self.t, event))
