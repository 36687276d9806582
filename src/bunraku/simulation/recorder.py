"""Recording of motion and actuator torques, during a simulation and afterwards."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bunraku.mechanism import Mechanism
from bunraku.record import Recording
from bunraku.runs.actuation import Actuation
from bunraku.simulation.records.trajectory import Event, Trajectory
from bunraku.simulation.settings import as_actuation
from bunraku.simulation.simulation import Simulation


class Recorder:
    """Writes the motion of a simulation from now on to a recording (.mcap), with the torques of its actuation; must be
    closed. A listener of the simulation's tape.

    For torques the actuation is called once more at every recorded state. A compiled one keeps its state in
    `params`, of which it gets a copy; a plain function may have hidden state, and is called only if `torques`.
    """

    def __init__(self, sim: Simulation, path, *, single: bool = False, torques: bool | None = None):
        self._sim = sim
        self._torques = isinstance(sim._own, Actuation) if torques is None else bool(torques)
        y = np.concatenate([sim.q, sim.v])
        self._drive = _Drive(sim, sim.mechanism, self._torques)
        self.recording = Recording(path, sim.mechanism, sim.t, y, single=single, tau=self._drive.at_one(sim.t, y))
        for text in (*sim._acting.said(), *(f"pull {link!r}" for link in sim._acting.pulls)):
            self.recording.event(Event(sim.t, text))  # what acts already
        sim._tape.listeners.append(self)

    def append(self, t: np.ndarray, y: np.ndarray) -> None:
        self.recording.append(t, y, self._drive.at(t, y))

    def change(self, mechanism: Mechanism, t: float, y: np.ndarray) -> None:
        self._drive = _Drive(self._sim, mechanism, self._torques)
        self.recording.change(mechanism, t, y, tau=self._drive.at_one(t, y))

    def event(self, event: Event) -> None:
        self.recording.event(event)

    def close(self) -> None:
        if self in self._sim._tape.listeners:
            self._sim._tape.listeners.remove(self)
        self.recording.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def with_torques(sim: Simulation) -> Trajectory:
    """The trajectory of a simulation, with the torques that its actuation gives at the recorded states, by the
    parameters that it has now."""
    trajectory = sim.trajectory
    return Trajectory([replace(s, tau=_Drive(sim, s.mechanism).at(s.t, np.hstack([s.q, s.v])))
                       for s in trajectory.segments], trajectory.events)


class _Drive:
    """The actuation of a simulation, for a structure that it has or had."""

    def __init__(self, sim: Simulation, mechanism: Mechanism, wanted: bool = True):
        self.sim, self.mechanism = sim, mechanism
        self.actuation = as_actuation(sim._drive, mechanism.nv) if wanted else None

    def at(self, t, y) -> np.ndarray | None:
        """Torques at states; None without actuation."""
        if self.actuation is None:
            return None
        m, params = self.mechanism, self.sim.params.copy()  # a function may use them as its memory
        tau = np.zeros((len(t), m.nv + m.nc))
        for row, when, state in zip(tau, t, y, strict=True):
            torque = self.actuation.torque(float(when), state[:m.nq].copy(), state[m.nq:].copy(), params, len(row))
            row[:len(torque)] = torque
        return tau

    def at_one(self, t, y) -> np.ndarray | None:
        tau = self.at([t], [y])
        return None if tau is None else tau[0]
