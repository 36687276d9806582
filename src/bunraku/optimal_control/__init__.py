"""Optimal control: motions planned by iterative LQR, and regulators of equilibria.

goals.py            costs of states: coordinates and velocities, points and poses of links, the centre of mass
feedback_motion.py  motion of trees and of closed chains under feedback, and its derivatives, for the planner
planner.py          `plan_motion`: iterative LQR with limits
planned.py          its result
regulator.py        `lqr`: the regulator of an equilibrium, closed chains included
"""

from bunraku.optimal_control.goals import CentreGoal, Goal, Knots, PointGoal, PoseGoal, StateGoal
from bunraku.optimal_control.planned import PlannedMotion
from bunraku.optimal_control.planner import plan_motion
from bunraku.optimal_control.regulator import Regulator, lqr

__all__ = ["CentreGoal", "Goal", "Knots", "PlannedMotion", "PointGoal", "PoseGoal", "Regulator", "StateGoal", "lqr",
           "plan_motion"]
