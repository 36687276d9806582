"""Links, their visuals, and springs between points: immutable values."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bunraku.mechanism.joints import PARAMETERS, Joint
from bunraku.mechanism.readonly import ReadOnlyArray, read_only, sealed

GROUND = "ground"


@sealed
@dataclass(frozen=True, eq=False)
class Link:
    """A rigid body and the joint to its parent. Read-only: see `Mechanism.with_link`."""

    name: str
    parent: int            # index of the parent link, -1 for ground
    joint: Joint
    joint_name: str        # the link's name unless given
    actuated: bool
    position: np.ndarray   # joint frame in the parent's frame [m]
    rotation: np.ndarray   # 3x3
    mass: float            # [kg]
    com: np.ndarray        # in the link frame [m]
    inertia: np.ndarray    # 3x3 about com, link axes [kg m^2]
    visuals: tuple[Visual, ...] = ()
    row: np.ndarray = field(init=False, repr=False)  # the numbers above, as `build` reads them

    def __post_init__(self):
        mine = self.__dict__
        position, rotation, com, inertia = map(np.asarray, (self.position, self.rotation, self.com, self.inertia))
        mine["row"] = np.concatenate((position, rotation.ravel(), (self.mass,), com, inertia.ravel()))
        for name in ("position", "rotation", "com", "inertia"):
            if not isinstance(mine[name], ReadOnlyArray):
                mine[name] = read_only(mine[name], self.how_to_change(name))

    def how_to_change(self, name, value="...") -> str:
        value = "..." if isinstance(value, np.ndarray) else value if value == "..." else repr(value)
        if name in ("name", "parent"):
            return f"link {self.name!r} is read-only: build the mechanism with add_link for another {name}"
        of_joint = name in ("joint", "joint_name") or name in PARAMETERS
        call = f"with_joint({self.joint_name!r}" if of_joint else f"with_link({self.name!r}"
        return (f"link {self.name!r} is read-only: m = m.{call}, {name}={value}) returns a mechanism with the change")


@dataclass(frozen=True, eq=False)
class Visual:
    """A shape to draw, fixed to a link."""

    shape: str             # "box", "sphere", "cylinder", "capsule", "ellipsoid" or "mesh"
    size: tuple[float, ...]  # box: sides; sphere: radius; cylinder, capsule: radius, length along z;
                             # ellipsoid: semi-axes; mesh: scale per axis
    position: np.ndarray   # in the link frame [m]
    rotation: np.ndarray   # 3x3
    colour: tuple[float, float, float, float] = (0.7, 0.7, 0.7, 1.0)
    mesh: str | None = None  # file of a mesh


@sealed
@dataclass(frozen=True, eq=False)
class Spring:
    """A spring and damper between two points. Read-only: see `Mechanism.with_spring`."""

    name: str
    link_a: int
    link_b: int
    position_a: np.ndarray
    position_b: np.ndarray
    stiffness: float
    rest_length: float
    damping: float

    def __post_init__(self):
        for name in ("position_a", "position_b"):
            self.__dict__[name] = read_only(getattr(self, name), self.how_to_change(name))

    def how_to_change(self, name, value="...") -> str:
        value = value if isinstance(value, str) else repr(value)
        return (f"spring {self.name!r} is read-only: m = m.with_spring({self.name!r}, {name}={value}) returns a "
                "mechanism with the change")
