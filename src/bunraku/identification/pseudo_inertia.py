"""Pseudo-inertias: a link's ten inertial parameters as a symmetric 4x4 matrix, positive definite for every real body.

    P = [[Sigma, h], [h^T, m]],     Sigma = tr(I) / 2 - I        (I about the link's origin, h = m c)

P is the integral of (x, 1) (x, 1)^T over the mass, so any distribution of mass with volume makes it positive definite,
and any such P belongs to one. Reference: Wensing, Kim and Slotine (2018). Parameters: m, h (x y z), I (xx xy yy xz yz
zz), as in `bk.inertial_parameters`.
"""

from __future__ import annotations

import numpy as np

from bunraku.mechanism import Link

ROWS, COLUMNS = np.array([0, 0, 1, 0, 1, 2]), np.array([0, 1, 1, 2, 2, 2])  # of I in the parameters
THINNEST = 1e-2   # of the largest second moment about the centre of mass: the least one of a given link
SMALLEST = 1e-3   # [m] radius of gyration of a given link, at least
POINT = 0.3       # radius of gyration of a point mass, of its distance from the link's origin,
POINT_LEAST = 0.05  # [m] and at least


def matrix(parameters) -> np.ndarray:
    """P of ten parameters."""
    inertia = np.zeros((3, 3))
    inertia[ROWS, COLUMNS] = inertia[COLUMNS, ROWS] = parameters[4:]
    P = np.empty((4, 4))
    P[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    P[:3, 3] = P[3, :3] = parameters[1:4]
    P[3, 3] = parameters[0]
    return P


def parameters(P) -> np.ndarray:
    """The ten parameters of P."""
    inertia = np.trace(P[:3, :3]) * np.eye(3) - P[:3, :3]
    return np.concatenate(([P[3, 3]], P[:3, 3], inertia[ROWS, COLUMNS]))


def body(parameters) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass and inertia about it."""
    mass, com = float(parameters[0]), parameters[1:4] / parameters[0]
    inertia = np.zeros((3, 3))
    inertia[ROWS, COLUMNS] = inertia[COLUMNS, ROWS] = parameters[4:]
    return mass, com, inertia - mass * (com @ com * np.eye(3) - np.outer(com, com))


def solid(link: Link, least_mass: float) -> tuple[np.ndarray, np.ndarray]:
    """P of a link, made positive definite: point masses, rods and non-physical inertias get the least extent. And that
    of a ball of the same mass, centre of mass and largest second moment."""
    mass, com = max(link.mass, least_mass), link.com
    second = 0.5 * np.trace(link.inertia) * np.eye(3) - link.inertia  # about the centre of mass
    sizes, axes = np.linalg.eigh(second)
    least = mass * SMALLEST**2
    if sizes[-1] < least:
        least = mass * max(POINT * float(np.linalg.norm(com)), POINT_LEAST) ** 2
    sizes = np.maximum(sizes, max(least, THINNEST * sizes[-1]))
    return _about_origin(mass, com, (axes * sizes) @ axes.T), _about_origin(mass, com, sizes[-1] * np.eye(3))


def _about_origin(mass, com, second) -> np.ndarray:
    P = np.empty((4, 4))
    P[:3, :3] = second + mass * np.outer(com, com)
    P[:3, 3] = P[3, :3] = mass * com
    P[3, 3] = mass
    return P


def _basis() -> np.ndarray:
    """An orthonormal basis (10, 4, 4) of the symmetric matrices."""
    basis = []
    for i in range(4):
        for j in range(i + 1):
            E = np.zeros((4, 4))
            E[i, j] = E[j, i] = 1.0 if i == j else np.sqrt(0.5)
            basis.append(E)
    return np.array(basis)


BASIS = _basis()


def directions(P) -> np.ndarray:
    """(10, 4, 4): changes of P by L E L^T, P = L L^T; E of the basis: relative to P, in whatever units and frame."""
    L = np.linalg.cholesky(P)
    return L @ BASIS @ L.T
