"""What people write: mechanisms, links and joints."""

from bunraku.mechanism.joints import (
    Compound,
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
)
from bunraku.mechanism.mechanism import Link, Mechanism, Spring, Visual

__all__ = ["Compound", "Cylindrical", "Fixed", "Free", "Helical", "Joint", "Link", "Mechanism", "Planar", "Prismatic",
           "Revolute", "Spherical", "Spring", "Visual"]
