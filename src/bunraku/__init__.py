"""bunraku: dynamics of human figures, humanoids and large articulated mechanisms."""

from bunraku import models
from bunraku.errors import (
    BunrakuError,
    InertiaError,
    LoadError,
    LoadWarning,
    MissingExtra,
    ModelError,
    NamingError,
    ShapeError,
    SimulationError,
    StateError,
)
from bunraku.evaluate import (
    dynamics,
    forward_dynamics,
    inverse_dynamics,
    joint_forces,
    kinematics,
    mass_matrix,
    poses,
)
from bunraku.io import load
from bunraku.mechanism import (
    Compound,
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Mechanism,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
)
from bunraku.simulation import Simulation, Trajectory, actuation, load_trajectory

__version__ = "0.1.0"
__all__ = [
    "BunrakuError", "Compound", "Cylindrical", "Fixed", "Free", "Helical", "InertiaError", "LoadError",
    "LoadWarning", "Mechanism", "MissingExtra", "ModelError", "NamingError", "Planar", "Prismatic", "Revolute",
    "ShapeError", "Simulation", "SimulationError", "Spherical", "StateError", "Trajectory", "actuation",
    "dynamics", "forward_dynamics", "inverse_dynamics", "joint_forces", "kinematics", "load", "load_trajectory",
    "mass_matrix", "models", "poses",
]
