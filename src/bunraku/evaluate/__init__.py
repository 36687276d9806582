"""What people ask a mechanism: accelerations, torques, forces, matrices, places. Names in, arrays and names out."""

from bunraku.evaluate.closed_chain import ClosedChain, closed_chain
from bunraku.evaluate.constraints import Constraints, constraints
from bunraku.evaluate.dynamics import Dynamics, Report, dynamics, forward_dynamics, inverse_dynamics, joint_forces
from bunraku.evaluate.kinematics import Kinematics, kinematics, poses
from bunraku.evaluate.matrix import mass_matrix

__all__ = ["ClosedChain", "Constraints", "Dynamics", "Kinematics", "Report", "closed_chain", "constraints", "dynamics",
           "forward_dynamics", "inverse_dynamics", "joint_forces", "kinematics", "mass_matrix", "poses"]
