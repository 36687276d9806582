"""Motion over time: simulations and recorded trajectories."""

from bunraku.simulation.acting import Guide
from bunraku.simulation.conditions import force_above, points_meet, points_part
from bunraku.simulation.ensemble import ensemble, load_ensemble
from bunraku.simulation.rollout import Rollout, rollout
from bunraku.simulation.rollout_case import RolloutCase
from bunraku.simulation.simulation import Simulation, Statistics, actuation
from bunraku.simulation.trajectory import Segment, Trajectory, load_trajectory

__all__ = ["Guide", "Rollout", "RolloutCase", "Segment", "Simulation", "Statistics", "Trajectory", "actuation",
           "ensemble", "force_above", "load_ensemble", "load_trajectory", "points_meet", "points_part", "rollout"]
