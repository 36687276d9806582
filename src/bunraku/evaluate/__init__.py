"""Evaluation of states: accelerations, torques, forces, matrices and poses; arguments and results by name."""

from bunraku.evaluate.closed_chain import ClosedChain, closed_chain
from bunraku.evaluate.constraints import Constraints, constraints
from bunraku.evaluate.contact_resultants import Resultant
from bunraku.evaluate.contacts import Contact, Contacts, contacts
from bunraku.evaluate.derivatives import (
    Derivatives,
    ForceDerivatives,
    InverseDerivatives,
    connection_force_derivatives,
    derivatives,
    inverse_derivatives,
)
from bunraku.evaluate.dynamics import (
    connection_forces,
    dynamics,
    forward_dynamics,
    inverse_dynamics,
    joint_forces,
)
from bunraku.evaluate.dynamics_results import Dynamics, Report
from bunraku.evaluate.gradients import Gradient, gradient
from bunraku.evaluate.inverse_kinematics import InverseKinematics, inverse_kinematics
from bunraku.evaluate.kinematics import Kinematics, kinematics, poses
from bunraku.evaluate.linear_models import LinearModel, StepDerivatives, linearise, step_derivatives
from bunraku.evaluate.loop_closure import coordinates, impact, project
from bunraku.evaluate.mass_matrices import ProcessorArray, mass_matrix, operation_count, processor_array
from bunraku.evaluate.mobility import Singularity, operational_inertia
from bunraku.evaluate.motion_matrices import coriolis_matrix, inertial_parameters, inertial_regressor
from bunraku.evaluate.parameter_derivatives import ParameterDerivatives, parameter_derivatives
from bunraku.evaluate.raycasts import Hits, raycast
from bunraku.evaluate.schedules import Schedule, schedule

__all__ = ["ClosedChain", "Constraints", "Contact", "Contacts", "Derivatives", "Dynamics", "ForceDerivatives",
           "Gradient", "Hits", "InverseDerivatives", "InverseKinematics", "Kinematics", "LinearModel",
           "ParameterDerivatives", "ProcessorArray", "Report", "Resultant", "Schedule", "Singularity",
           "StepDerivatives", "closed_chain", "connection_force_derivatives", "connection_forces", "constraints",
           "contacts", "coordinates", "coriolis_matrix", "derivatives", "dynamics", "forward_dynamics", "gradient",
           "impact", "inertial_parameters", "inertial_regressor", "inverse_derivatives", "inverse_dynamics",
           "inverse_kinematics", "joint_forces", "kinematics", "linearise", "mass_matrix", "operation_count",
           "operational_inertia", "parameter_derivatives", "poses", "processor_array", "project", "raycast",
           "schedule", "step_derivatives"]
