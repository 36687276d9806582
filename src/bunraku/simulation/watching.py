"""Interface of a simulation for viewers: saved moments to return to, and present forces, pulls, record and order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from bunraku.integrate import solver_memory as m
from bunraku.mechanism import Free, Mechanism
from bunraku.simulation.acting import Guide
from bunraku.simulation.simulation import Simulation


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
        return cls(sim.mechanism, sim.t, sim.q.copy(), sim.v.copy(), dict(sim._acting.prescribed),
                   [(watch, watch.holds, watch.active) for watch in sim._watches])

    def restore(self, sim: Simulation, event: str, *, rewind: bool = False) -> None:
        """Structure and state of this moment; with `rewind` its time and its conditions too."""
        sim._acting.prescribed = dict(self.prescribed)
        sim._change(self.mechanism.copy(), self.q, self.v, event, self.t if rewind else None)
        for watch, holds, active in self.armed if rewind else ():
            watch.holds, watch.active = holds, active


@contextmanager
def halted_by(sim: Simulation, halt: Callable[[], bool]) -> Iterator[None]:
    """Context in which `sim.advance` regularly calls the function, stops if it returns true, and shows no progress
    bar."""
    progress, sim.progress, sim._halted = sim.progress, False, halt
    try:
        yield
    finally:
        sim.progress, sim._halted = progress, None


def recorded_span(sim: Simulation) -> tuple[float, float]:
    """First and last time of the record."""
    return sim._tape.begin, sim.t


def acting(sim: Simulation, mechanism: Mechanism, q, v) -> dict:
    """Present external action, as arguments of `bk.dynamics`."""
    return {"tau": sim.torque(sim.t, q, v), **sim._acting.at(mechanism, sim.t, q, v)}


def pulled(sim: Simulation) -> list[str]:
    """Links that are pulled."""
    return list(sim._acting.pulls)


def guides(sim: Simulation) -> dict[str, Guide]:
    """{joint: guide} of Free joints whose motion a guide prescribes."""
    return {name: given for name, given in sim._acting.prescribed.items()
            if isinstance(given, Guide) and isinstance(sim.mechanism.joint(name), Free)}


def order(sim: Simulation) -> int:
    """Order of the solver's last step."""
    return int(sim._local.tally[m.ORDER])
