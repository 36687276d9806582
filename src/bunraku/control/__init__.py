"""Ready-made controllers: compiled actuations that know the model, with named parameters, to be added up.

controller.py           class `Controller`: a compiled actuation and its parameters by name; sums of controllers
joint_control.py        gravity compensation, PD control, computed torque
references.py           motion for them to follow: a goal, or a table of coordinates
task_control.py         operational-space control of a link
state_feedback.py       linear feedback of the state, about an equilibrium or along a motion
actuators.py            motors and servos of an MJCF file
differential_ik.py      velocities toward targets within limits, in compiled functions and as a controller
held.py                 zero-order hold of a sequence of torques; sampled controllers with period and delay; measured
                        states
small_matrices.py       factors of small symmetric matrices, for user functions
"""

from bunraku.control.actuators import from_file
from bunraku.control.controller import Controller, total
from bunraku.control.differential_ik import DifferentialIK, differential_ik
from bunraku.control.held import hold, measured, sampled
from bunraku.control.joint_control import computed_torque, gravity_compensation, pd
from bunraku.control.state_feedback import state_feedback
from bunraku.control.task_control import operational_space

__all__ = ["Controller", "DifferentialIK", "computed_torque", "differential_ik", "from_file", "gravity_compensation",
           "hold", "measured", "operational_space", "pd", "sampled", "state_feedback", "total"]
