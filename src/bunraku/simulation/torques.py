"""Torques of the actuators at the states of a trajectory."""

from __future__ import annotations

import numpy as np

from bunraku.simulation.settings import as_actuation
from bunraku.simulation.simulation import Simulation
from bunraku.simulation.trajectory import Trajectory


def with_torques(sim: Simulation) -> Trajectory:
    """The trajectory of a simulation, with the torques that its actuation gives at the recorded states, by the
    parameters that it has now."""
    trajectory = sim.trajectory
    for segment in trajectory.segments:
        m = segment.mechanism
        drive, size = as_actuation(sim._drive, m.nv), m.nv + m.nc
        if drive is not None:
            segment.tau = np.array([drive.torque(*state, sim.params, size)
                                    for state in zip(segment.t, segment.q, segment.v, strict=True)]).reshape(-1, size)
    return trajectory
