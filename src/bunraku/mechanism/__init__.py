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

__all__ = ["Compound", "Connection", "Cylindrical", "Family", "Fixed", "Free", "Helical", "Joint", "Link", "Mechanism",
           "Planar", "Prismatic", "Revolute", "Spherical", "Spring", "Visual"]
