"""bunraku: dynamics of human figures, humanoids and large articulated mechanisms."""

from bunraku.errors import (
    BunrakuError,
    InertiaError,
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

__version__ = "0.1.0"
