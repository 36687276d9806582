"""What people ask a mechanism: accelerations, torques, forces, matrices, places. Names in, arrays and names out."""

from bunraku.evaluate.dynamics import Dynamics, Report, dynamics, forward_dynamics, inverse_dynamics, joint_forces
from bunraku.evaluate.kinematics import Kinematics, kinematics, poses
from bunraku.evaluate.loops import coordinates, impact, project
from bunraku.evaluate.matrix import mass_matrix
from bunraku.evaluate.schedule import Schedule, schedule

__all__ = ["Dynamics", "Kinematics", "Report", "Schedule", "coordinates", "dynamics", "forward_dynamics", "impact",
           "inverse_dynamics", "joint_forces", "kinematics", "mass_matrix", "poses", "project", "schedule"]
