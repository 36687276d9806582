"""Recording of motion and actuator torques during a simulation, and torques of a motion afterwards."""

from __future__ import annotations

import numpy as np

from bunraku.mechanism import Mechanism
from bunraku.record import Recording
from bunraku.runs.actuation import Actuation
from bunraku.simulation.actuating import as_actuation
from bunraku.simulation.records.trajectory import Event
from bunraku.simulation.running import Running


class Recorder:
    """Writes the motion of a simulation from now on to a recording (.mcap), with the torques of its actuation; must be
    closed. A listener of the simulation's tape.

    For torques the actuation is called once more at every recorded state. A compiled one keeps its state in
    `params`, of which it gets a copy; a plain function may have hidden state, and is called only if `torques`.
    """

    def __init__(self, run: Running, path, *, single: bool = False, torques: bool | None = None):
        self._run = run
        self._torques = isinstance(run.acting.own, Actuation) if torques is None else bool(torques)
        y = np.concatenate([run.q, run.v])
        self._tau = Torques(run, run.mechanism, self._torques)
        self.recording = Recording(path, run.mechanism, run.t, y, single=single, tau=self._tau.at_one(run.t, y))
        for text in (*run.acting.said(), *(f"pull {link!r}" for link in run.acting.pulls)):
            self.recording.event(Event(run.t, text))  # what acts already
        run.tape.listeners.append(self)

    def append(self, t: np.ndarray, y: np.ndarray) -> None:
        self.recording.append(t, y, self._tau.at(t, y))

    def change(self, mechanism: Mechanism, t: float, y: np.ndarray) -> None:
        self._tau = Torques(self._run, mechanism, self._torques)
        self.recording.change(mechanism, t, y, tau=self._tau.at_one(t, y))

    def event(self, event: Event) -> None:
        self.recording.event(event)

    def close(self) -> None:
        if self in self._run.tape.listeners:
            self._run.tape.listeners.remove(self)
        self.recording.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Torques:
    """Torques of a simulation's actuation at recorded states, for a structure that it has or had."""

    def __init__(self, run: Running, mechanism: Mechanism, wanted: bool = True):
        self.run, self.mechanism = run, mechanism
        self.actuation = as_actuation(run.acting.function, mechanism) if wanted else None

    def at(self, t, y) -> np.ndarray | None:
        """Torques at states; None without actuation."""
        if self.actuation is None:
            return None
        m, params = self.mechanism, self.run.acting.params.copy()  # a function may use them as its memory
        tau = np.zeros((len(t), m.nv + m.nc))
        for row, when, state in zip(tau, t, y, strict=True):
            torque = self.actuation.torque(float(when), state[:m.nq].copy(), state[m.nq:].copy(), params, len(row))
            row[:len(torque)] = torque
        return tau

    def at_one(self, t, y) -> np.ndarray | None:
        tau = self.at([t], [y])
        return None if tau is None else tau[0]
