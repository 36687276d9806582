"""Whether and how a simulation is shared by workers: into which chunks it is divided, and for how many.

The same chunks give the same motion, bit by bit, on any number of workers; so when `workers` is not given, their number
may change between stretches, for example to one while other programs occupy the processors.
"""

from __future__ import annotations

import numpy as np

from bunraku.checks import as_count
from bunraku.entries.pool import available
from bunraku.errors import ModelError
from bunraku.evaluate.schedules import Schedule, schedule
from bunraku.evaluate.team import divide
from bunraku.integrate import solver_memory as m
from bunraku.integrate.history import Family
from bunraku.integrate.methods import method_of
from bunraku.mechanism import Mechanism
from bunraku.plan.build import Plan
from bunraku.plan.chunk_plan import Read
from bunraku.simulation.acting import Acting
from bunraku.simulation.crew.crews import Crew, Processes, Threads
from bunraku.simulation.crew.divided_memory import DividedMemory
from bunraku.simulation.crew.mpi_ranks import ranks
from bunraku.simulation.settings import Settings

WORTHWHILE = 1.25     # smallest predicted speed-up for which workers are used by default
SMALLEST = 100        # bodies of a mechanism that is looked at for it
ENOUGH = 2000         # steps after which it is looked at: a schedule takes as long as some hundred of them


class Sharing:
    """Whether and how the workers of a simulation share it."""

    def __init__(self, settings: Settings, mechanism: Mechanism, workers: int | None, given: Schedule | None):
        self.asked = None if workers is None else as_count("workers", workers)
        if given is not None:
            if not isinstance(given, Schedule):
                raise ModelError(f"schedule must be made by bk.schedule or bk.Schedule, not {given!r}")
            given.fits(mechanism)
        self.given, self.settings = given, settings
        method = method_of(settings.solver)
        several = (self.asked or 1) > 1 or (given is not None and self.asked is None and given.workers > 1)
        self.full_matrix = isinstance(method, Family) and method.newton
        if self.full_matrix and several:
            raise ModelError("solver 'bdf' factors one matrix of the whole state, which one worker has to do: take "
                             "'implicit' or 'gear' for several workers, or workers=1")
        self.in_lanes = workers is None and given is None and not settings.structured  # lanes have rotors of their own
        self.links_in_lanes = 0
        self.schedule: Schedule | None = given
        self.left_alone = workers is None and given is None  # the number of workers is chosen here
        self.workers, self.gathers = 1, False
        self.shared: DividedMemory | None = None                    # of the present run
        self.holder: DividedMemory | None = None                    # who has the solver's memory; None: it is whole
        self._shared: tuple | None = None

    def stay_alone(self) -> None:
        """Compute with one worker, without lanes."""
        self.asked, self.in_lanes, self.left_alone = 1, False, False

    @property
    def request(self) -> list:
        """For checkpoints: workers, and the arguments of the schedule."""
        return [self.asked, None if self.given is None else self.given.request]

    def changed(self, mechanism: Mechanism) -> None:
        """After a change of structure and memory: repeat the request for a schedule; if its cuts are no longer
        possible, make one for the same number of workers."""
        given = self.given
        if given is not None:
            try:
                given = given.rebuilt(mechanism)
            except ModelError:
                given = schedule(mechanism, given.workers, exactly=True)
        self._retire()
        self.left_alone = self.asked is None and given is None
        self.given = self.schedule = given

    def _retire(self) -> None:
        """Release everything of the workers but their records."""
        if self._shared is not None and self._shared[2] is not None:
            for crew in self._shared[2].crews:
                crew.retire()
        self._shared = self.shared = self.holder = None

    def __getstate__(self):
        """State without threads, of a simulation whose memory has been gathered."""
        return {**self.__dict__, "shared": None, "holder": None, "_shared": None}

    def may_begin(self, steps: int) -> bool:
        """Whether enough steps have been made for an automatic schedule to pay. (Counted in steps, not in seconds:
        repeated runs agree bit by bit.)"""
        return self.left_alone and steps >= ENOUGH

    def divided(self, mechanism: Mechanism, plan: Plan, memory: m.Memory, acting: Acting, watched: bool,
                begin: bool = False) -> DividedMemory | None:
        """The crews for the next steps; None if one worker does everything: where nothing is gained; where an
        actuation would be called beyond an event (it may have a memory) or by a number of probes that depends on the
        worker (`runs/implicit_run.py`); where forces on links are functions of time."""
        self.workers, self.gathers, self.shared = 1, False, None
        driven = acting.own is not None or bool(acting.courses)
        several = ranks() is not None and self.asked != 1  # started under MPI
        alone = self.full_matrix or acting.functions or (driven and (watched or self.settings.structured))
        if alone or (self.given is None and (self.asked or 2) < 2):
            return None
        if self.left_alone and not several and (driven or watched or not (begin or self._shared is not None)):
            return None
        key = id(plan), driven, acting.array.size > 0
        if self._shared is None or self._shared[0] != key:
            read = acting.read_by_actuation(mechanism) if driven else None
            self.collect(memory)
            self._retire()
            self._shared = key, plan, self._make(mechanism, plan, acting.array.size > 0, read)
        self.shared = self._shared[2]
        if self.shared is None:
            self.left_alone = False  # looked at: nothing is gained
        return self.shared

    def collect(self, memory: m.Memory) -> None:
        """Gather the whole memory; it is distributed again before the next steps."""
        if self.holder is not None:
            memory.rows[:] = self.holder.crew.joined("history")
            self.holder = None

    def collect_state(self, memory: m.Memory) -> None:
        """Gather the state in memory.rows[0]; workers keep the rest."""
        if self.holder is not None and not self.holder.state_is_here:
            memory.rows[:1] = self.holder.crew.joined("state")
            self.holder.state_is_here = True

    def _make(self, mechanism: Mechanism, plan: Plan, pushed: bool, read: Read | None) -> DividedMemory | None:
        chosen, most, others = self.given, self.asked, ranks()
        if others:
            most = min(most or others.size, others.size)
        if chosen is None:
            if most is None and (plan.bodies < SMALLEST or available() < 2 or (self.in_lanes and plan.lanes)):
                return None
            most_used = min(most or available(), others.size if others else available())  # more would only wait
            chosen = (schedule(mechanism, most_used) if most is not None else
                      schedule(mechanism, most_used, passes=4, far=False))
            if most is None and not chosen.predicted_speedup >= WORTHWHILE:
                return None
        assembly = chosen.assembly(plan)
        if assembly is None or len(assembly.worker) < 2:
            return None
        self.schedule = chosen
        worker = assembly.worker
        if most is not None and most < chosen.workers:  # the same chunks on fewer
            worker = worker * most // chosen.workers
        ways = [worker]
        if most is None and self.given is None and worker.any():
            ways.insert(0, np.zeros_like(worker))
        divisions = [divide(plan, assembly._replace(worker=w), pushed, read) for w in ways]
        crews: list[Crew] = ([Processes(divisions[0], self.settings, plan.nq, others)] if others else
                             [Threads(division, self.settings, plan.nq) for division in divisions])
        return DividedMemory(crews, len(plan.link_i), self)
