"""Torques of the actuators at the states of a trajectory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bunraku.simulation.settings import as_actuation
from bunraku.simulation.simulation import Simulation
from bunraku.simulation.trajectory import Segment, Trajectory


def with_torques(sim: Simulation) -> Trajectory:
    """The trajectory of a simulation, with the torques that its actuation gives at the recorded states, by the
    parameters that it has now."""
    return Trajectory([replace(segment, tau=_torques(sim, segment)) for segment in sim.trajectory.segments],
                      sim.trajectory.events)


def _torques(sim: Simulation, segment: Segment) -> np.ndarray | None:
    m = segment.mechanism
    drive = as_actuation(sim._drive, m.nv)
    if drive is None:
        return None
    tau, params = np.zeros((len(segment.t), m.nv + m.nc)), sim.params.copy()  # a function may use them as its memory
    for row, state in zip(tau, zip(segment.t, segment.q, segment.v, strict=True), strict=True):
        torque = drive.torque(*state, params, len(row))
        row[:len(torque)] = torque
    return tau
