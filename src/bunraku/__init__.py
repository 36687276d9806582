"""bunraku: dynamics of human figures, humanoids and large articulated mechanisms.

Importing this package costs next to nothing: each name below is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from bunraku.errors import (
    ActuationError,
    BunrakuError,
    ConstraintError,
    ContactError,
    ForcePlateWarning,
    InertiaError,
    LoadError,
    LoadWarning,
    MissingExtra,
    MissingFileError,
    ModelError,
    NamingError,
    ReadOnlyError,
    SettingError,
    ShapeError,
    SimulationError,
    SimulationWarning,
    StateError,
    ViewerError,
)

if TYPE_CHECKING:
    from bunraku import control, convert, differentiable, models, optimal_control, sensors
    from bunraku.evaluate import (
        Schedule,
        closed_chain,
        connection_force_derivatives,
        constraints,
        contacts,
        coordinates,
        coriolis_matrix,
        derivatives,
        dynamics,
        forward_dynamics,
        gradient,
        impact,
        inertial_parameters,
        inertial_regressor,
        inverse_derivatives,
        inverse_dynamics,
        inverse_kinematics,
        joint_forces,
        kinematics,
        linearise,
        mass_matrix,
        operation_count,
        operational_inertia,
        parameter_derivatives,
        poses,
        processor_array,
        project,
        raycast,
        schedule,
        step_derivatives,
    )
    from bunraku.evaluate.parting import part
    from bunraku.identification import exciting_motion, identify
    from bunraku.io import load
    from bunraku.ivp import solve_ivp
    from bunraku.mechanism import (
        Box,
        Capsule,
        Compound,
        Cylinder,
        Cylindrical,
        Fixed,
        Free,
        Heightfield,
        Helical,
        Hull,
        Mechanism,
        Planar,
        Points,
        Prismatic,
        Revolute,
        Sphere,
        Spherical,
    )
    from bunraku.motion import ForcePlate, JointMoments, Markers, Motion, MotionTable, load_motion
    from bunraku.optimal_control import lqr, plan_motion
    from bunraku.simulation import (
        Guide,
        Model,
        Rollout,
        RolloutCase,
        Simulation,
        Trajectory,
        Worlds,
        actuation,
        ensemble,
        force_above,
        load_ensemble,
        load_trajectory,
        points_meet,
        points_part,
        rollout,
        sensitivities,
    )

__version__ = "0.1.0"
__all__ = [
    "ActuationError", "Box", "BunrakuError", "Capsule", "Compound", "ConstraintError", "ContactError", "Cylinder",
    "Cylindrical", "Fixed", "ForcePlate", "ForcePlateWarning", "Free", "Guide", "Heightfield", "Helical", "Hull",
    "InertiaError", "JointMoments", "LoadError", "LoadWarning", "Markers", "Mechanism", "MissingExtra",
    "MissingFileError", "Model", "ModelError", "Motion", "MotionTable", "NamingError", "Planar", "Points", "Prismatic",
    "ReadOnlyError", "Revolute", "Rollout", "RolloutCase", "Schedule", "SettingError", "ShapeError", "Simulation",
    "SimulationError", "SimulationWarning", "Sphere", "Spherical", "StateError", "Trajectory", "ViewerError", "Worlds",
    "actuation", "closed_chain", "connection_force_derivatives", "constraints", "contacts", "control", "convert",
    "coordinates", "coriolis_matrix", "derivatives", "differentiable", "dynamics", "ensemble", "exciting_motion",
    "force_above", "forward_dynamics", "gradient", "identify", "impact", "inertial_parameters", "inertial_regressor",
    "inverse_derivatives", "inverse_dynamics", "inverse_kinematics", "joint_forces", "kinematics", "linearise", "load",
    "load_ensemble", "load_motion", "load_trajectory", "lqr", "mass_matrix", "models", "operation_count",
    "operational_inertia", "optimal_control", "parameter_derivatives", "part", "plan_motion", "points_meet",
    "points_part", "poses", "processor_array", "project", "raycast", "rollout", "schedule", "sensitivities", "sensors",
    "solve_ivp", "step_derivatives",
]

_HOMES = {  # where each name lives; the same list as above, for the interpreter
    "evaluate": ("Schedule", "closed_chain", "connection_force_derivatives", "constraints", "contacts", "coordinates",
                 "coriolis_matrix", "derivatives", "dynamics", "forward_dynamics", "gradient", "impact",
                 "inertial_parameters", "inertial_regressor", "inverse_derivatives", "inverse_dynamics",
                 "inverse_kinematics", "joint_forces", "kinematics", "linearise", "mass_matrix", "operation_count",
                 "operational_inertia", "parameter_derivatives", "poses", "processor_array", "project", "raycast",
                 "schedule", "step_derivatives"),
    "evaluate.parting": ("part",),
    "identification": ("exciting_motion", "identify"),
    "io": ("load",),
    "ivp": ("solve_ivp",),
    "mechanism": ("Box", "Capsule", "Compound", "Cylinder", "Cylindrical", "Fixed", "Free", "Heightfield", "Helical",
                  "Hull", "Mechanism", "Planar", "Points", "Prismatic", "Revolute", "Sphere", "Spherical"),
    "motion": ("ForcePlate", "JointMoments", "Markers", "Motion", "MotionTable", "load_motion"),
    "optimal_control": ("lqr", "plan_motion"),
    "simulation": ("Guide", "Model", "Rollout", "RolloutCase", "Simulation", "Trajectory", "Worlds", "actuation",
                   "ensemble", "force_above", "load_ensemble", "load_trajectory", "points_meet", "points_part",
                   "rollout", "sensitivities"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str):
    if name in ("control", "convert", "differentiable", "models", "motion", "optimal_control", "sensors", "view"):
        return import_module(f"bunraku.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'bunraku' has no attribute {name!r}")
    value = getattr(import_module(f"bunraku.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
