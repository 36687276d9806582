"""Coriolis matrix and inertial regressor."""

from __future__ import annotations

import numpy as np

from bunraku.entries.motion_matrix_entries import coriolis, regressors
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism


def coriolis_matrix(mechanism: Mechanism, q, v) -> np.ndarray:
    """C(q, v) (nv, nv), or (B, nv, nv): M a + C v + gravity torques = tau, and dM/dt - 2 C is antisymmetric.

    For joints with one degree of freedom these are the Christoffel symbols; Echeandia and Wensing (2021) define C for
    all joints. Connections have no part in it.
    """
    return coriolis(as_mechanism(mechanism).plan(), q, v)


def inertial_regressor(mechanism: Mechanism, q, v, a) -> np.ndarray:
    """Y (nv, 10 links), or (B, nv, 10 links): Y times `inertial_parameters` are the torques of the tree joints that
    give accelerations a, without springs, dampers, limits, armature and connections."""
    return regressors(as_mechanism(mechanism).plan(), q, v, a)


def inertial_parameters(mechanism: Mechanism) -> np.ndarray:
    """Ten numbers of each link, in order: mass, mass times centre of mass (x y z), and inertia about the link's origin
    (xx xy yy xz yz zz), in link axes."""
    parameters = np.empty((len(as_mechanism(mechanism).links), 10))
    for row, link in zip(parameters, mechanism.links, strict=True):
        c = link.com
        about_origin = link.inertia + link.mass * (c @ c * np.eye(3) - np.outer(c, c))
        row[0], row[1:4] = link.mass, link.mass * c
        row[4:] = about_origin[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
    return parameters.reshape(-1)
