"""Equations of motion of linkages with one freedom, as one writes them on paper: rods between points of an angle.

A linkage is a function of the angle, real or complex, that lists its rods: (mass, end, end), where an end is (x, z).
A point mass is a rod without length.
"""

from __future__ import annotations

import numpy as np

STEP = 1e-3


def derivative(f, x):
    """By an imaginary step: exact to the last digit."""
    return np.imag(f(x + 1e-30j)) / 1e-30


def inertia(rods, angle):
    """The angle's effective inertia: a thin rod has kinetic energy m (v0^2 + v0 v1 + v1^2) / 6."""
    total = 0.0
    for k in range(len(rods(angle))):
        mass = rods(angle)[k][0]
        v0, v1 = (np.array([derivative(lambda x, k=k, e=e, i=i: rods(x)[k][e][i], angle) for i in (0, 1)])
                  for e in (1, 2))
        total += mass * (v0 @ v0 + v0 @ v1 + v1 @ v1) / 3
    return total


def potential(rods, angle, gravity=9.81):
    return sum(gravity * mass * (p0[1] + p1[1]) / 2 for mass, p0, p1 in rods(angle))


def acceleration(rods, angle, rate, torque=0.0, gravity=9.81):
    """Lagrange: I a + I' rate^2 / 2 + V' = torque."""
    I = [inertia(rods, angle + k * STEP) for k in (-2, -1, 0, 1, 2)]
    slope = (I[0] - 8 * I[1] + 8 * I[3] - I[4]) / (12 * STEP)
    return (torque - 0.5 * slope * rate**2 - derivative(lambda x: potential(rods, x, gravity), angle)) / I[2]


def four_bar(lengths, mass=1.0):
    """Rods of a four-bar linkage as a function of the crank's angle."""
    ground, crank, coupler, rocker = lengths

    def rods(angle):
        x, z = crank * np.cos(angle), crank * np.sin(angle)
        dx, dz = ground - x, -z
        distance = np.sqrt(dx * dx + dz * dz)
        along = (coupler**2 - rocker**2 + distance**2) / (2 * distance)
        up = np.sqrt(coupler**2 - along**2)
        end = x + (along * dx - up * dz) / distance, z + (along * dz + up * dx) / distance
        return [(mass * crank, (0 * x, 0 * x), (x, z)), (mass * coupler, (x, z), end),
                (mass * rocker, (ground + 0 * x, 0 * x), end)]

    return rods


def slider_crank(crank, rod, offset=0.0, mass=1.0, slider_mass=1.0):
    def rods(angle):
        x, z = crank * np.cos(angle), crank * np.sin(angle)
        end = x + np.sqrt(rod**2 - (offset - z)**2), offset + 0 * x
        return [(mass * crank, (0 * x, 0 * x), (x, z)), (mass * rod, (x, z), end), (slider_mass, end, end)]

    return rods


def n_four_bar(n):
    """Posts turned by an angle from upright towards x; bars stay level."""
    def rods(angle):
        x, z = np.sin(angle), np.cos(angle)
        posts = [(1.0, (i + 0 * x, 0 * x), (i + x, z)) for i in range(n + 1)]
        return posts + [(1.0, (i + x, z), (i + 1 + x, z)) for i in range(n)]

    return rods
