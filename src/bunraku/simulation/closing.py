"""Where a new connection goes: frames captured from the present pose, and how far given frames are from closed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bunraku.evaluate import kinematics, poses
from bunraku.mechanism import Connection, Joint, Mechanism
from bunraku.mechanism.checks import as_rotation, as_vector
from bunraku.mechanism.mechanism import GROUND

ITERATIONS = 50


class Gap(NamedTuple):
    """How far the two frames of a connection are from where its joint would let them be."""

    length: float  # [m]
    angle: float   # [rad]


def capture(mechanism: Mechanism, q, link_a: str, link_b: str, a, b):
    """Frames (position, rotation) of a connection on both links; those given as (None, None) from the present pose.

    With neither given the joint frame is link b's own.
    """
    what = f"connection of {link_a!r} and {link_b!r}"
    where = {GROUND: (np.eye(3), np.zeros(3)), **poses(mechanism, q)}
    for link, side in ((link_a, "link_a"), (link_b, "link_b")):
        mechanism._find_link(link, f"{side} of the {what}")  # an error for people if there is none
    frames: list[tuple[np.ndarray, np.ndarray] | None] = []
    for (position, rotation), side in ((a, "a"), (b, "b")):
        given = position is not None or rotation is not None
        frames.append((as_vector(f"{what}: position_{side}", (0, 0, 0) if position is None else position),
                       as_rotation(f"{what}: rotation_{side}", rotation)) if given else None)
    first, second = frames
    if first is None:
        second = second or (np.zeros(3), np.eye(3))
        first = _seen_from(where[link_a], where[link_b], second)
    elif second is None:
        second = _seen_from(where[link_b], where[link_a], first)
    return first, second


def _seen_from(link, other, frame):
    """A frame of another link, in a link's own frame; poses as (rotation, position), frames the other way round."""
    (R, x), (R_other, x_other), (position, rotation) = link, other, frame
    return R.T @ (x_other + R_other @ position - x), R.T @ R_other @ rotation


def gap(mechanism: Mechanism, q, connection: Connection) -> Gap:
    """What the pose of the links leaves open in a connection."""
    where = [*poses(mechanism, q).values(), (np.eye(3), np.zeros(3))]
    (R_a, x_a), (R_b, x_b) = where[connection.link_a], where[connection.link_b]
    R_a, x_a = R_a @ connection.rotation_a, x_a + R_a @ connection.position_a
    R_b, x_b = R_b @ connection.rotation_b, x_b + R_b @ connection.position_b
    return _closest(connection.joint, R_a.T @ R_b, R_a.T @ (x_b - x_a))


def _closest(joint: Joint, R, x) -> Gap:
    """Move a body on the joint as near to the pose as it gets: Gauss-Newton steps, from the neutral position."""
    if joint.nv == 0:
        return Gap(float(np.linalg.norm(x)), float(np.linalg.norm(_turn(R))))
    body = Mechanism()
    body.add_link("body", joint=joint, mass=1.0, inertia=(1.0, 1.0, 1.0))
    place, best = body.neutral(), Gap(np.inf, np.inf)
    for _ in range(ITERATIONS):
        at = kinematics(body, place)
        turned, moved = at.poses["body"]
        error = np.concatenate([x - moved, _turn(R @ turned.T)])
        now = Gap(float(np.linalg.norm(error[:3])), float(np.linalg.norm(error[3:])))
        best = min(best, now, key=sum)
        step = np.linalg.lstsq(at.jacobian("body"), error)[0]
        if np.abs(step).max() < 1e-14:
            break
        place = body.integrate(place, step)
    return best


def _turn(R) -> np.ndarray:
    """Rotation vector of a rotation."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(R).as_rotvec()
