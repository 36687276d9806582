"""Motion over time: simulations and recorded trajectories."""

from bunraku.simulation.acting import Guide
from bunraku.simulation.actuating import Model, actuation
from bunraku.simulation.batches.ensemble import ensemble, load_ensemble
from bunraku.simulation.batches.rollout import Rollout, rollout
from bunraku.simulation.batches.rollout_case import RolloutCase
from bunraku.simulation.batches.worlds import Snapshot, Worlds
from bunraku.simulation.conditions import force_above, points_meet, points_part
from bunraku.simulation.records.trajectory import Segment, Trajectory, load_trajectory
from bunraku.simulation.running import Statistics
from bunraku.simulation.sensitivity import EventSensitivity, Sensitivities, sensitivities
from bunraku.simulation.simulation import Simulation

__all__ = ["EventSensitivity", "Guide", "Model", "Rollout", "RolloutCase", "Segment", "Sensitivities", "Simulation",
           "Snapshot", "Statistics", "Trajectory", "Worlds", "actuation", "ensemble", "force_above", "load_ensemble",
           "load_trajectory", "points_meet", "points_part", "rollout", "sensitivities"]
