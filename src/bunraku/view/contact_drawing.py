"""Drawing of contact: ground planes, and contact forces as arrows.

An arrow begins at the centre of pressure of the contacts of a pair of shapes and shows their total force on the first
shape, on the figure rather than on the floor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bunraku.errors import ContactError, ModelError, ShapeError
from bunraku.evaluate.contacts import Contacts
from bunraku.mechanism import Mechanism
from bunraku.mechanism.shape_kinds import Plane
from bunraku.simulation.records.recorded_forces import contacts_at, refuse_no_shapes, refuse_unknown_forces
from bunraku.view.figure import Camera, Figure

if TYPE_CHECKING:
    from bunraku.simulation import Trajectory

STICKS, SLIDES = "#5b7f3a", "#8a5a9e"  # colours of arrows
WEIGHT = 0.4       # length of the whole weight, as a share of the height of the figure: almost a leg
LONGEST = 2.0      # weights: larger forces, such as those of impacts, are drawn as this
SMALLEST = 0.02    # weights: smaller ones are not drawn
LEVEL = 0.999      # vertical part of the normal of a floor
THICK, HEAD, BARB = 0.014, 0.085, 0.036  # half a shaft, length and half the width of a head: shares of the height


class Arrow(NamedTuple):
    """Force of a pair of shapes."""

    pair: tuple[str, str]
    point: np.ndarray    # (3,) [m]
    force: np.ndarray    # (3,) on the first shape [N]
    sliding: bool        # all contacts that press slide

    @property
    def colour(self) -> str:
        return SLIDES if self.sliding else STICKS


def arrows(contacts: Contacts) -> list[Arrow]:
    """One arrow for each pair of touching shapes."""
    found: dict[tuple[str, str], list] = {}
    for contact in contacts:
        if contact.force is not None and contact.force.any():
            found.setdefault(contact.pair, []).append(contact)
    out = []
    for pair, parts in found.items():
        press = np.array([np.linalg.norm(part.force) for part in parts])
        point = press @ np.array([part.point for part in parts]) / press.sum()
        out.append(Arrow(pair, point, np.sum([part.force for part in parts], axis=0),
                         all(part.mode == "sliding" for part in parts)))
    return out


def recorded_arrows(trajectory: Trajectory, times, wanted: bool | None) -> list[list[Arrow]]:
    """Arrows at times of a motion. wanted: True (an error if forces are unknown), or None: if they are known."""
    nothing: list[list[Arrow]] = [[] for _ in times]
    if wanted is False or (wanted is None and not any(s.mechanism.may_touch() for s in trajectory.segments)):
        return nothing
    try:
        refuse_no_shapes(trajectory)
        refuse_unknown_forces(trajectory)
    except (ModelError, ShapeError):
        if wanted:
            raise
        return nothing
    starts, out = [segment.t[0] for segment in trajectory.segments], []
    for t in times:
        segment = trajectory.segments[max(0, int(np.searchsorted(starts, t, side="right")) - 1)]
        try:
            out.append(arrows(contacts_at(segment, t)))
        except ContactError:  # no forces at this moment, by Painleve's paradox
            out.append([])
    return out


def vector(force: np.ndarray, mechanism: Mechanism, height: float, fixtures=frozenset()) -> np.ndarray:
    """(3,) [m] arrow of a force scaled to a figure of this height; zero if it is too short to be visible."""
    mass = sum(link.mass for link in mechanism.links if link.name not in fixtures)
    weight = max(mass, 1e-9) * (float(np.linalg.norm(mechanism.gravity)) or 9.81)
    size = float(np.linalg.norm(force)) / weight
    return WEIGHT * height / weight * min(1.0, LONGEST / size) * force if size > SMALLEST else np.zeros(3)


def outline(tail: np.ndarray, tip: np.ndarray, height: float) -> np.ndarray:
    """(7, 2): an arrow in the picture."""
    along = tip - tail
    length = float(np.linalg.norm(along))
    along = along / max(length, 1e-300)
    across = np.array([-along[1], along[0]])
    head = min(HEAD * height, 0.6 * length)
    neck, thick, barb = tip - head * along, THICK * height, BARB * height * head / (HEAD * height)
    return np.array([tail - thick * across, neck - thick * across, neck - barb * across, tip, neck + barb * across,
                     neck + thick * across, tail + thick * across])


# -- planes ------------------------------------------------------------------------------------------------------------


def planes(mechanism: Mechanism) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """(link or -1 for the ground, point, normal in the link's frame) of all planes."""
    return [(shape.link, np.array(shape.position), np.array(shape.rotation)[:, 2])
            for shape in mechanism.shapes.values() if isinstance(shape.shape, Plane)]


def floor_height(mechanism: Mechanism) -> float | None:
    """Height of the level plane on the ground, the highest if there are several [m]."""
    heights = [float(point[2]) for link, point, normal in planes(mechanism) if link < 0 and normal[2] > LEVEL]
    return max(heights, default=None)


class Patch(NamedTuple):
    """The part of a plane near a figure."""

    middle: np.ndarray    # (3,) below the figure
    normal: np.ndarray    # (3,)

    def outline(self, camera: Camera, wide: float, deep: float) -> np.ndarray:
        """(4, 2): a rectangle in the plane, with this extent to both sides."""
        along = camera.right - (camera.right @ self.normal) * self.normal
        if np.linalg.norm(along) < 0.3:  # a wall seen from the side
            along = camera.up - (camera.up @ self.normal) * self.normal
        along /= np.linalg.norm(along)
        across = np.cross(self.normal, along)
        return camera.project([self.middle + a * wide * along + b * deep * across
                               for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))])


def patches(figure: Figure, q, reach: float) -> list[Patch]:
    """Planes that are nearer to the figure than `reach` [m]."""
    found = []
    for link, point, normal in planes(figure.mechanism):
        rotation, position = figure.place(q, link)
        normal, point, com = rotation @ normal, position + rotation @ point, figure.com(q)
        distance = float(normal @ (com - point))
        if distance < reach:
            found.append(Patch(com - distance * normal, normal))
    return found
