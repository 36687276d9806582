"""Interface of a simulation for viewers and scenes: saved moments to return to; forces, pulls, record and order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bunraku.integrate import solver_memory as m
from bunraku.mechanism import Free, Mechanism
from bunraku.simulation.acting import Guide
from bunraku.simulation.recorder import Torques
from bunraku.simulation.records.trajectory import Trajectory
from bunraku.simulation.simulation import Simulation, running


class Moment(NamedTuple):
    """A saved moment: structure, state, prescribed motion, and the armed conditions."""

    mechanism: Mechanism
    t: float
    q: np.ndarray
    v: np.ndarray
    prescribed: dict
    armed: list[tuple]

    @classmethod
    def of(cls, sim: Simulation) -> Moment:
        """The present one."""
        run = running(sim)
        return cls(run.mechanism, run.t, run.q.copy(), run.v.copy(), dict(run.acting.prescribed),
                   [(watch, watch.holds, watch.active) for watch in run.watches])

    def restore(self, sim: Simulation, event: str, *, rewind: bool = False) -> None:
        """Structure and state of this moment; with `rewind` its time and its conditions too."""
        run = running(sim)
        run.acting.prescribed = dict(self.prescribed)
        run.change(self.mechanism.copy(), self.q, self.v, event, self.t if rewind else None)
        for watch, holds, active in self.armed if rewind else ():
            watch.holds, watch.active = holds, active


@contextmanager
def halted_by(sim: Simulation, halt: Callable[[], bool]) -> Iterator[None]:
    """Context in which `sim.advance` regularly calls the function, stops if it returns true, and shows no progress
    bar."""
    run = running(sim)
    progress, sim.progress, run.halted = sim.progress, False, halt
    try:
        yield
    finally:
        sim.progress, run.halted = progress, None


def recorded_span(sim: Simulation) -> tuple[float, float]:
    """First and last time of the record."""
    return running(sim).tape.begin, sim.t


def acting(sim: Simulation, mechanism: Mechanism, q, v) -> dict:
    """Present external action, as arguments of `bk.dynamics`."""
    return {"tau": sim.torque(sim.t, q, v), **running(sim).acting.at(mechanism, sim.t, q, v)}


def pulled(sim: Simulation) -> list[str]:
    """Links that are pulled."""
    return list(running(sim).acting.pulls)


def guides(sim: Simulation) -> dict[str, Guide]:
    """{joint: guide} of Free joints whose motion a guide prescribes."""
    return {name: given for name, given in running(sim).acting.prescribed.items()
            if isinstance(given, Guide) and isinstance(sim.mechanism.joint(name), Free)}


def order(sim: Simulation) -> int:
    """Order of the solver's last step."""
    return int(running(sim).local.tally[m.ORDER])


def with_torques(sim: Simulation) -> Trajectory:
    """The trajectory of a simulation, with the torques that its actuation gives at the recorded states, by the
    parameters that it has now."""
    run, trajectory = running(sim), sim.trajectory
    return Trajectory([replace(s, tau=Torques(run, s.mechanism).at(s.t, np.hstack([s.q, s.v])))
                       for s in trajectory.segments], trajectory.events)


def prescribed_at(sim: Simulation, t: float, q, v) -> dict[str, np.ndarray]:
    """{joint: acceleration} of the joints whose motion is prescribed, at any state."""
    return {course.name: course.acceleration(t, q, v) for course in running(sim).acting.courses}
