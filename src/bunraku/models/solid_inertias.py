"""Inertias of simple solids, and sums and differences of bodies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

DENSITY = 850.0  # of figures as they are drawn and touch [kg/m^3]: a little stout reads better

FIGURE: dict[str, Any] = {"group": 2, "meets": 1}
"""Masks of a figure's shapes: they touch everything in the default group 1, but not each other."""


class Solid(NamedTuple):
    """Mass, centre of mass, and inertia about that centre (3x3)."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray

    def __add__(self, other):
        """Both as one body."""
        return _combined(self, other, 1.0)

    def __sub__(self, other):
        """The body with `other` removed."""
        return _combined(self, other, -1.0)

    def seen_from(self, point) -> Solid:
        """The same body in a frame with the same axes and its origin at `point`."""
        return Solid(self.mass, self.com - np.asarray(point, float), self.inertia)


def _combined(a: Solid, b: Solid, sign: float) -> Solid:
    mass = a.mass + sign * b.mass
    com = (a.mass * a.com + sign * b.mass * b.com) / mass
    inertia = a.inertia + _about(a, com) + sign * (b.inertia + _about(b, com))
    return Solid(mass, com, inertia)


def _about(solid: Solid, point) -> np.ndarray:
    d = solid.com - point
    return solid.mass * (d @ d * np.eye(3) - np.outer(d, d))


def gyrated(mass: float, com, radii) -> Solid:
    """A solid from its radii of gyration about the axes x, y, z through the centre of mass."""
    return Solid(float(mass), np.array(com, float), mass * np.diag(np.square(np.array(radii, float))))


def box(mass: float, size, com=(0.0, 0.0, 0.0)) -> Solid:
    """A solid box of edges `size` along x, y, z."""
    xx, yy, zz = np.square(np.array(size, float))
    return Solid(float(mass), np.array(com, float), mass / 12.0 * np.diag([yy + zz, xx + zz, xx + yy]))


def rod(mass: float, length: float) -> Solid:
    """A thin rod along x that begins at the origin; its moment of inertia about its own axis is zero."""
    across = mass * length**2 / 12.0
    return Solid(float(mass), np.array([0.5 * length, 0.0, 0.0]), np.diag([0.0, across, across]))


def thickness(mass: float, length: float) -> float:
    """Radius of a rod of this length and mass, as it is drawn; a body without length is a ball."""
    volume = mass / DENSITY
    ball = (0.75 * volume / np.pi) ** (1.0 / 3.0)
    if length < 1e-9:
        return ball
    return min(ball, float(np.sqrt(volume / (np.pi * length))), 0.32 * length)
