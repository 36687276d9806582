"""Mechanisms, links, joints and connections, with names."""

from bunraku.mechanism.connections import Connection, Family
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
from bunraku.mechanism.shapes import (
    Box,
    Capsule,
    ContactShape,
    Cylinder,
    Heightfield,
    Hull,
    Points,
    Shape,
    Sphere,
)

__all__ = ["Box", "Capsule", "Compound", "Connection", "ContactShape", "Cylinder", "Cylindrical", "Family", "Fixed",
           "Free", "Heightfield", "Helical", "Hull", "Joint", "Link", "Mechanism", "Planar", "Points", "Prismatic",
           "Revolute", "Shape", "Sphere", "Spherical", "Spring", "Visual"]
