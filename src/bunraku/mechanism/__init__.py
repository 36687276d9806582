"""Mechanisms, links, joints and connections, with names."""

from bunraku.mechanism.connections import Connection, Coupling, Family
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
from bunraku.mechanism.shape_kinds import Box, Capsule, Cylinder, Heightfield, Hull, Points, Shape, Sphere
from bunraku.mechanism.shapes import ContactShape

__all__ = ["Box", "Capsule", "Compound", "Connection", "ContactShape", "Coupling", "Cylinder", "Cylindrical", "Family",
           "Fixed", "Free", "Heightfield", "Helical", "Hull", "Joint", "Link", "Mechanism", "Planar", "Points",
           "Prismatic", "Revolute", "Shape", "Sphere", "Spherical", "Spring", "Visual"]
