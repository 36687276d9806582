"""Pulls: springs from a point of a link to a target in the world, and torsional springs to a rotation.

A pull is a row of the array that compiled code reads in every evaluation (`plan/fields.py`, external).
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from bunraku.checks import as_rotation, as_size, as_vector
from bunraku.errors import NamingError, ShapeError
from bunraku.mechanism import Mechanism
from bunraku.plan import fields as f

FREQUENCY = 4.0 * np.pi  # [rad/s] of pulls, by default


def as_pull(mechanism: Mechanism, link: str, point, target, stiffness, damping, rotation=None, turn_stiffness=None,
            turn_damping=None) -> np.ndarray:
    """A row of `external`. By default a critically damped spring with a period of half a second for the mass of the
    link (at least a hundredth of the total mass); and likewise a torsional spring."""
    number = mechanism.find_link(link, "pull")
    if number < 0:
        raise NamingError("pull: the ground does not move; name a link")
    mass = max(mechanism.links[number].mass, 0.01 * sum(part.mass for part in mechanism.links))
    k = mass * FREQUENCY**2 if stiffness is None else as_size("stiffness [N/m]", stiffness, ShapeError)
    d = 2.0 * np.sqrt(k * mass) if damping is None else as_size("damping [N s/m]", damping, ShapeError)
    row = np.zeros(f.PULL)
    row[f.PULL_LINK], row[f.PULL_STIFFNESS], row[f.PULL_DAMPING] = number, k, d
    row[f.PULL_POINT:f.PULL_POINT + 3] = as_vector("point", point)
    row[f.PULL_TARGET:f.PULL_TARGET + 3] = as_vector("target", target)
    row[f.PULL_ROTATION:f.PULL_ROTATION + 9] = as_rotation("rotation", rotation).ravel()
    if rotation is not None:
        inertia = _held_inertia(mechanism, number, mass, row[f.PULL_POINT:f.PULL_POINT + 3])
        row[f.PULL_TURN_STIFFNESS], D = _turn_spring(inertia, turn_stiffness, turn_damping)
        row[f.PULL_TURN_DAMPING:f.PULL_TURN_DAMPING + 6] = D[np.triu_indices(3)]
    elif turn_stiffness is not None or turn_damping is not None:
        raise ShapeError(f"pull: turn_stiffness and turn_damping turn {link!r} to a rotation; give rotation=")
    return row


def _turn_spring(inertia: np.ndarray, stiffness, damping) -> tuple[float, np.ndarray]:
    """Stiffness [N m/rad], and a damping matrix in the link's axes [N m s/rad]. By default the spring has a period
    of half a second about the axis of the largest moment of inertia, and is critically damped about each principal
    axis: so thin links have no much faster mode either."""
    moments, axes = np.linalg.eigh(inertia)
    moments = np.maximum(moments, 1e-4 * moments[-1])  # an axis without inertia is damped a little
    k = moments[-1] * FREQUENCY**2 if stiffness is None else as_size("turn_stiffness [N m/rad]", stiffness, ShapeError)
    if damping is not None:
        return k, as_size("turn_damping [N m s/rad]", damping, ShapeError) * np.eye(3)
    return k, (axes * 2.0 * np.sqrt(k * moments)) @ axes.T


def _held_inertia(mechanism: Mechanism, number: int, mass: float, point: np.ndarray) -> np.ndarray:
    """Inertia of a link about a point, in its axes, scaled to this mass; of a link without inertia: a hundredth of the
    mechanism's."""
    link = mechanism.links[number]
    own = _inertia_about(link, point)
    if own.trace() > 0.0:
        return own * (mass / link.mass if link.mass > 0.0 else 1.0)
    return 0.005 * sum(_inertia_about(part, np.zeros(3)).trace() for part in mechanism.links) * np.eye(3)


def _inertia_about(link, point) -> np.ndarray:
    r = link.com - point
    return link.inertia + link.mass * (r @ r * np.eye(3) - np.outer(r, r))


def wrench_of(row: np.ndarray, pose, velocity: np.ndarray) -> np.ndarray:
    """Force and moment of a pull at the origin of its link's frame, world axes; the link's pose is (rotation,
    position)."""
    (R, x), (speed, turn) = pose, np.split(velocity, 2)
    arm = R @ row[f.PULL_POINT:f.PULL_POINT + 3]
    force = (row[f.PULL_STIFFNESS] * (row[f.PULL_TARGET:f.PULL_TARGET + 3] - x - arm)
             - row[f.PULL_DAMPING] * (speed + np.cross(turn, arm)))
    return np.concatenate([force, np.cross(arm, force) + _turning_moment(row, R, turn)])


def _turning_moment(row: np.ndarray, R: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Moment of a pull on a link with the rotation R and the angular velocity `turn`."""
    left = Rotation.from_matrix(row[f.PULL_ROTATION:f.PULL_ROTATION + 9].reshape(3, 3) @ R.T).as_rotvec()
    D = np.zeros((3, 3))
    D[np.triu_indices(3)] = row[f.PULL_TURN_DAMPING:f.PULL_TURN_DAMPING + 6]
    D += np.triu(D, 1).T
    return row[f.PULL_TURN_STIFFNESS] * left - R @ D @ R.T @ turn
