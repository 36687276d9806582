"""A mechanism as flat outlines: every link a rounded shape derived from the positions of its joints and its mass.

No drawing data are needed. A link reaches from its own joint to the joints of its children, a last link to twice the
distance of its centre of mass; its thickness is that of a body of water with the link's mass. A roundish
last link (a head, a bob) is drawn as the ellipsoid that has its inertia. If the mechanism also has a floating base,
parts connected to the ground are fixtures (a bar, a swing): their last links are drawn as boxes with their inertia. A
single free body (a crate, a ball) with contact shapes is drawn by these, and so are shapes on the ground.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from bunraku.evaluate import Kinematics, kinematics
from bunraku.mechanism import Box, Capsule, Cylinder, Fixed, Free, Mechanism, Planar, Points, Prismatic, Sphere
from bunraku.mechanism.links import GROUND
from bunraku.mechanism.shapes import ContactShape
from bunraku.models.solid_inertias import thickness

ROUNDISH = 1.8        # longest over shortest half-axis up to which a last link is drawn as an ellipsoid
TINY = 1e-6           # [m] size of what has none
LEFT, MIDDLE, RIGHT, FIXTURE = 1, 0, -1, 2
_CIRCLE = np.exp(2j * np.pi * np.arange(40) / 40)
CIRCLE = np.stack([_CIRCLE.real, _CIRCLE.imag], axis=1)


class Camera:
    """Parallel projection. `azimuth` turns the view about the vertical (0: the x axis runs to the right and y away
    from the eye), `elevation` looks down from above; both in degrees."""

    def __init__(self, azimuth: float = 24.0, elevation: float = 9.0):
        a, e = np.radians(azimuth), np.radians(elevation)
        self.right = np.array([np.cos(a), -np.sin(a), 0.0])
        away = np.array([np.sin(a) * np.cos(e), np.cos(a) * np.cos(e), -np.sin(e)])
        self.away = away
        self.up = np.cross(self.right, away)

    def project(self, points) -> np.ndarray:
        """(..., 2): to the right and up in the picture."""
        points = np.asarray(points, float)
        return np.stack([points @ self.right, points @ self.up], axis=-1)

    def depth(self, points) -> np.ndarray:
        """Distance from the eye, up to a constant."""
        return np.asarray(points, float) @ self.away


class Shape(NamedTuple):
    """One outline in the picture."""

    outline: np.ndarray  # (n, 2)
    depth: float         # larger is farther away
    side: int            # LEFT, MIDDLE, RIGHT or FIXTURE
    edge: bool           # whether it is set off from what lies behind


@dataclass
class _Part:
    """Drawn shape of a link: the hull of balls, or an ellipsoid, in the link's frame."""

    link: str
    side: int
    centres: np.ndarray               # (k, 3)
    radii: np.ndarray                 # (k,)
    axes: np.ndarray | None = None    # 3x3, columns are half-axes: an ellipsoid about the first centre
    edge: bool = True


class Figure:
    """The shapes of one mechanism, for any of its states.

    fixtures   names of the links drawn as fixtures; by default those connected to the ground if there is also a
               floating base
    """

    def __init__(self, mechanism: Mechanism, fixtures: set[str] | None = None):
        self.mechanism = mechanism
        links = mechanism.links
        children: list[list[int]] = [[] for _ in links]
        for i, link in enumerate(links):
            if link.parent >= 0:
                children[link.parent].append(i)
        ends = [self._ends(i, children[i]) for i in range(len(links))]
        touching: dict[int, list[ContactShape]] = {}
        for shape in mechanism.shapes.values():
            alone = shape.link < 0 or (links[shape.link].parent < 0 and not children[shape.link]
                                       and isinstance(links[shape.link].joint, (Free, Planar, Prismatic)))
            if alone and isinstance(shape.shape, (Sphere, Capsule, Box, Cylinder, Points)):
                touching.setdefault(shape.link, []).append(shape)
        self.fixtures = _fixtures(mechanism) if fixtures is None else fixtures
        self.size = self._size([end for link, end in zip(links, ends, strict=True) if link.name not in self.fixtures])
        if self.size <= TINY:  # a thing by itself
            self.size = max((2.0 * float(_bound(link, touching.get(i, ()))) for i, link in enumerate(links)),
                            default=TINY) or TINY
        thin = 0.009 * self.size
        thick = [max(thin, _thickness(link.mass, end)) for link, end in zip(links, ends, strict=True)]
        places = self._places(mechanism.neutral())
        self.sides = {link.name: self._side(link, *places[link.name]) for link in links}
        self.parts: list[_Part] = []
        for i, link in enumerate(links):
            shapes = touching.get(i, ())
            if len(shapes) != 1:  # several leave something between them
                self.parts += self._draw(i, self.sides[link.name], ends[i], thick, children[i])
            self.parts += [_touching(link.name, self.sides[link.name], shape) for shape in shapes]
        self.parts += [_touching(GROUND, FIXTURE, shape) for shape in touching.get(-1, ())]
        roots = [link for link in links if link.parent < 0 and not isinstance(link.joint, Free)]
        self.anchors = [link.position for link in roots]
        self.hinges = [link.position for link in roots if not isinstance(link.joint, Fixed)]

    @property
    def anchored(self) -> bool:
        """Whether a link is connected to the ground."""
        return bool(self.anchors)

    def _ends(self, i: int, children: list[int]) -> np.ndarray:
        link = self.mechanism.links[i]
        ends = [self.mechanism.links[c].position for c in children]
        if not ends and link.com.any():
            ends = [2.0 * link.com]
        return np.array(ends).reshape(-1, 3)

    def _side(self, link, rotation: np.ndarray, position: np.ndarray) -> int:
        if link.name in self.fixtures:
            return FIXTURE
        sideways = float((position + rotation @ link.com)[1])
        return MIDDLE if abs(sideways) < 0.015 * self.size else (LEFT if sideways > 0 else RIGHT)

    def _size(self, ends) -> float:
        reach = max((float(np.linalg.norm(end, axis=1).max()) for end in ends if len(end)), default=0.0)
        return max(reach * min(len(ends), 4), TINY)

    def _draw(self, i: int, side: int, ends: np.ndarray, thickness: list[float], children: list[int]) -> list[_Part]:
        link, own = self.mechanism.links[i], thickness[i]
        if not children:
            axes = _ellipsoid(link)
            if side == FIXTURE and axes is not None:
                return [_box(link, axes, 0.004 * self.size)]
            if axes is not None:
                half = np.linalg.norm(axes, axis=0)
                if half.max() < ROUNDISH * half.min():
                    neck = _Part(link.name, side, np.array([np.zeros(3), link.com]), np.full(2, 0.42 * half.min()),
                                 edge=False)
                    ball = _Part(link.name, side, link.com[None], np.zeros(1), axes)
                    return [neck, ball] if link.com.any() else [ball]
        if not len(ends):  # a point: a ball of its mass
            return [_Part(link.name, side, np.zeros((1, 3)), np.array([own]))] if link.mass > 0 else []
        if len(children) == 1 and np.linalg.norm(ends[0]) < 1e-9:
            return []  # a step of a joint made of several
        if len(children) <= 1:
            tip = max(0.8 * own, min(own, thickness[children[0]])) if children else 0.85 * own
            radii = np.array([1.1 * own, tip])
        else:
            radii = np.array([0.9 * own, *(min(own, 1.05 * thickness[c]) for c in children)])
        return [_Part(link.name, side, np.concatenate([np.zeros((1, 3)), ends]), radii)]

    def com(self, q) -> np.ndarray:
        """Centre of mass without the fixtures."""
        places = self._places(q)
        moment, mass = np.zeros(3), 1e-300
        for link in self.mechanism.links:
            if link.name not in self.fixtures:
                rotation, position = places[link.name]
                moment += link.mass * (position + rotation @ link.com)
                mass += link.mass
        return moment / mass

    def _places(self, q):
        poses = observed(self.mechanism, q).poses
        return {GROUND: (np.eye(3), np.zeros(3)),
                **{name: (rotation[0], position[0]) for name, (rotation, position) in poses.items()}}

    def place(self, q, link: int) -> tuple[np.ndarray, np.ndarray]:
        """Rotation and position of a link by its index, -1 for the ground."""
        return self._places(q)[GROUND if link < 0 else self.mechanism.links[link].name]

    def shapes(self, q, camera: Camera) -> list[Shape]:
        """Outlines at the state q, the farthest first."""
        places = self._places(q)
        shapes = []
        for part in self.parts:
            rotation, position = places[part.link]
            centres = position + part.centres @ rotation.T
            flat = camera.project(centres)
            if part.axes is not None:
                spread = camera.project((rotation @ part.axes).T)  # (3, 2): shadows of the half-axes
                values, vectors = np.linalg.eigh(spread.T @ spread)
                outline = flat[0] + (CIRCLE * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
            else:
                outline = _hull((flat[:, None] + part.radii[:, None, None] * CIRCLE).reshape(-1, 2))
            shapes.append(Shape(outline, float(camera.depth(centres).mean()), part.side, part.edge))
        return sorted(shapes, key=lambda shape: -shape.depth)


def observed(mechanism: Mechanism, q) -> Kinematics:
    """Kinematics of one state, as a batch of one: energies of trajectories use the batch kernel anyway, so that
    no other kernel has to be compiled for a picture."""
    still = np.zeros((1, mechanism.nv))
    return kinematics(mechanism, np.asarray(q, float)[None], still, still)


def _thickness(mass: float, ends: np.ndarray) -> float:
    """Radius of a link that reaches to these ends."""
    return thickness(mass, float(np.linalg.norm(ends, axis=1).max()) if len(ends) else 0.0)


def _ellipsoid(link) -> np.ndarray | None:
    """Half-axes (as columns) of the homogeneous ellipsoid with the link's inertia."""
    if link.mass <= 0 or not link.inertia.any():
        return None
    moments, axes = np.linalg.eigh(link.inertia)
    squares = 2.5 / link.mass * (moments.sum() - 2.0 * moments)
    if squares.min() <= 1e-9 * max(squares.max(), 0.0):
        return None
    return axes * np.sqrt(squares)


def _fixtures(mechanism: Mechanism) -> set[str]:
    """Names of the links connected to the ground if there is also a floating base."""
    free: list[bool] = []  # whether a link belongs to something that flies
    for link in mechanism.links:
        free.append(isinstance(link.joint, Free) if link.parent < 0 else free[link.parent])
    return {link.name for link, flies in zip(mechanism.links, free, strict=True) if not flies} if any(free) else set()


def _box(link, axes: np.ndarray, thin: float) -> _Part:
    """The homogeneous box with the link's inertia, its edges rounded."""
    half = axes * np.sqrt(0.6)  # an ellipsoid's moments are m/5 (a^2 + b^2), those of a box with these half-edges m/3
    lengths = np.linalg.norm(half, axis=0)
    radius = max(float(lengths.min()), thin)
    inset = half * np.maximum(1.0 - radius / lengths, 0.0)
    signs = np.array(np.meshgrid(*3 * [(-1.0, 1.0)])).reshape(3, -1)
    return _Part(link.name, FIXTURE, link.com + (inset @ signs).T, np.full(8, radius))


def _touching(link: str, side: int, placed: ContactShape) -> _Part:
    """A contact shape."""
    shape, radius = placed.shape, 0.0
    if isinstance(shape, Points):
        centres = shape.corners()
    elif isinstance(shape, Box):
        centres = np.array(shape.size()) * np.array(np.meshgrid(*3 * [(-1.0, 1.0)])).reshape(3, -1).T
    elif isinstance(shape, Cylinder):
        centres = np.concatenate([np.column_stack([shape.radius * CIRCLE, np.full(len(CIRCLE), z)])
                                  for z in (-0.5 * shape.length, 0.5 * shape.length)])
    else:
        radius, half, _ = shape.size()
        centres = np.array([[0.0, 0.0, -half], [0.0, 0.0, half]])
    return _Part(link, side, placed.position + centres @ np.asarray(placed.rotation).T, np.full(len(centres), radius))


def _bound(link, shapes) -> float:
    """Radius of a link without extent: from its contact shapes, or from its inertia."""
    axes = _ellipsoid(link)
    found = [shape.shape.bound()[1] for shape in shapes]
    return max(found, default=0.0 if axes is None else float(np.linalg.norm(axes, axis=0).max()))


def _hull(points: np.ndarray) -> np.ndarray:
    try:
        return points[ConvexHull(points).vertices]
    except QhullError:  # everything on one line: too thin to see
        return points
