"""A mechanism as triangles: one source of shapes for viewer and replay, the same that filmstrips outline.

A link with visuals (URDF, MJCF) is drawn by them; a link without is drawn as by `Figure`, unless other links of the
mechanism have visuals: then it is a frame without a body.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from bunraku.errors import LoadError, LoadWarning, MissingExtra
from bunraku.io.meshes import read_mesh
from bunraku.mechanism import Box, Capsule, Cylinder, Heightfield, Mechanism, Points, Sphere, Visual
from bunraku.mechanism.links import GROUND
from bunraku.view.contact_drawing import LEVEL, planes
from bunraku.view.figure import FIXTURE, MIDDLE, Figure
from bunraku.view.filmstrip import TONES

GREY = Visual.colour  # of visuals whose file names no colour: they get the colour of their side
AROUND, RINGS = 16, 4        # points of a ball: on a circle, circles from pole to equator
MANY = 100                   # links, from which on balls have fewer points
SLAB = 0.004                 # thickness of a plane, as a share of the size of the mechanism
SMALLEST = 1e-9              # [m]: what is thinner cannot be seen


class Solid(NamedTuple):
    """A closed surface that moves with a link."""

    link: str
    vertices: np.ndarray  # (n, 3) in the link's frame [m]
    faces: np.ndarray     # (m, 3) of int32, anticlockwise seen from outside
    side: int             # LEFT, MIDDLE, RIGHT or FIXTURE, as in `figure`
    colour: tuple[float, float, float, float]  # red, green, blue, opacity: 0 to 1


def solids(mechanism: Mechanism) -> list[Solid]:
    """Shapes of all links, in the order of the links; a link may have none, or several. Last come contact shapes on the
    ground; planes are thin slabs, except level ones on the ground, which are drawn as the floor; height fields are
    their surface."""
    figure = Figure(mechanism)
    drawn = any(link.visuals for link in mechanism.links)
    fine = len(mechanism.links) < MANY
    found: dict[str, list[Solid]] = {name: [] for name in (*mechanism.link_names, GROUND)}
    unread: list[str] = []
    rounded = {GROUND} if drawn else set(found)
    for link in mechanism.links:
        side = figure.sides[link.name]
        for visual in link.visuals:
            surface = _visual(visual, fine, unread)
            if surface is not None:
                colour = rgba(TONES[side]) if visual.colour == GREY else visual.colour
                found[link.name].append(Solid(link.name, *surface, side, colour))
        if link.visuals and not found[link.name]:
            rounded.add(link.name)
    for part in figure.parts:
        if part.link in rounded:
            surface = _ellipsoid(part.centres[0], part.axes, fine) if part.axes is not None else \
                _balls(part.centres, part.radii, fine)
            if surface is not None:
                found[part.link].append(Solid(part.link, *surface, part.side, rgba(TONES[part.side])))
    for index, point, normal in planes(mechanism):
        if index >= 0 or normal[2] <= LEVEL:
            name, half = ([*mechanism.link_names, GROUND])[index], figure.size * (0.5 if index >= 0 else 3.0)
            thick = SLAB * figure.size
            slab = _visual(Visual("box", (2 * half, 2 * half, thick), point - 0.5 * thick * normal, _towards(normal)),
                           True, [])
            if slab is not None:
                found[name].append(Solid(name, *slab, FIXTURE, (*rgba(TONES[FIXTURE])[:3], 0.5)))
    for placed in mechanism.shapes.values():
        if isinstance(placed.shape, Heightfield):
            name = ([*mechanism.link_names, GROUND])[placed.link]
            nodes, faces = placed.shape.surface()
            found[name].append(Solid(name, placed.position + nodes @ placed.rotation.T, faces, FIXTURE,
                                     rgba(TONES[FIXTURE])))
    if unread:
        more = f" (and {len(unread) - 1} more)" if len(unread) > 1 else ""
        warnings.warn(f"mesh {unread[0]}{more}; drawn as rounded shapes where a link has no other visual",
                      LoadWarning, stacklevel=2)
    return [solid for part in found.values() for solid in part]


def shape_solids(mechanism: Mechanism, colour=(0.85, 0.45, 0.15, 0.5)) -> list[Solid]:
    """Surfaces of the shapes that may touch (`add_shape`), in addition to `solids`; infinite planes are left out."""
    names, found = [*mechanism.link_names, GROUND], []
    for placed in mechanism.shapes.values():
        shape, surface = placed.shape, None
        if isinstance(shape, Points):
            hull = _hull(shape.corners())
            surface = None if hull is None else (placed.position + hull[0] @ placed.rotation.T, hull[1])
        elif isinstance(shape, Heightfield):
            nodes, faces = shape.surface()
            surface = placed.position + nodes @ placed.rotation.T, faces
        elif isinstance(shape, (Sphere, Capsule, Box, Cylinder)):
            size = tuple(float(x) for x in vars(shape).values())
            surface = _visual(Visual(type(shape).__name__.lower(), size, placed.position, placed.rotation), True, [])
        if surface is not None:
            found.append(Solid(names[placed.link], *surface, MIDDLE, colour))
    return found


def rgba(colour: str) -> tuple[float, float, float, float]:
    """A colour "#rrggbb" as numbers from 0 to 1."""
    red, green, blue = (int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue, 1.0


Surface = tuple[np.ndarray, np.ndarray]  # vertices, faces


@cache
def _sphere(fine: bool) -> Surface:
    """Unit sphere with its poles on the z axis."""
    around, rings = (AROUND, RINGS) if fine else (AROUND // 2, RINGS // 2 + 1)
    heights = np.arange(1, 2 * rings) * np.pi / (2 * rings)
    turns = np.arange(around) * 2 * np.pi / around
    ring = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    points = [np.column_stack([np.sin(h) * ring, np.full(around, np.cos(h))]) for h in heights]
    surface = _hull(np.concatenate([[[0.0, 0.0, 1.0]], *points, [[0.0, 0.0, -1.0]]]))
    assert surface is not None
    return surface


def ball() -> Surface:
    """Unit sphere with few points."""
    return _sphere(False)


def _hull(points: np.ndarray) -> Surface | None:
    """Convex hull: its corners, and triangles seen anticlockwise from outside. None if it has no volume."""
    try:
        hull = ConvexHull(points)
    except QhullError:
        return None
    index = np.full(len(points), -1, np.int32)
    index[hull.vertices] = np.arange(len(hull.vertices))
    a, b, c = points[hull.simplices].transpose(1, 0, 2)
    outside = (np.cross(b - a, c - a) * hull.equations[:, :3]).sum(axis=1) > 0
    faces = np.where(outside[:, None], hull.simplices, hull.simplices[:, ::-1])
    return points[hull.vertices], index[faces]


def _balls(centres, radii, fine: bool) -> Surface | None:
    """Convex hull of balls: capsules, tapered ones, boxes with round edges."""
    radii = np.maximum(radii, 0.0)
    if len(centres) > 3 and not radii.any():
        return _hull(np.asarray(centres))
    if max(np.ptp(centres, axis=0).max(initial=0.0), radii.max()) < SMALLEST:
        return None
    sphere = _sphere(fine)[0] @ _towards(centres[-1] - centres[0]).T
    return _hull((np.asarray(centres)[:, None] + radii[:, None, None] * sphere).reshape(-1, 3))


def _ellipsoid(centre, axes, fine: bool) -> Surface:
    vertices, faces = _sphere(fine)
    faces = faces if np.linalg.det(axes) > 0 else faces[:, ::-1]
    return centre + vertices @ np.asarray(axes).T, faces


def _towards(direction) -> np.ndarray:
    """A rotation that takes z to a direction."""
    length = float(np.linalg.norm(direction))
    if length < SMALLEST:
        return np.eye(3)
    z = direction / length
    x = np.cross(np.eye(3)[int(np.abs(z).argmin())], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def _visual(visual: Visual, fine: bool, unread: list[str]) -> Surface | None:
    """A visual in the link's frame."""
    size = np.asarray(visual.size, float)
    surface: Surface | None
    if visual.shape == "mesh":
        surface = _mesh(visual, unread)
    elif visual.shape == "box":
        surface = _hull(0.5 * size * np.array(np.meshgrid(*3 * [(-1.0, 1.0)])).reshape(3, -1).T)
    elif visual.shape == "cylinder":
        ring = np.exp(2j * np.pi * np.arange(AROUND) / AROUND) * size[0]
        surface = _hull(np.concatenate([np.column_stack([ring.real, ring.imag, np.full(AROUND, z)])
                                        for z in (-0.5 * size[1], 0.5 * size[1])]))
    elif visual.shape == "capsule":
        surface = _balls(np.array([[0.0, 0.0, -0.5 * size[1]], [0.0, 0.0, 0.5 * size[1]]]), np.full(2, size[0]), fine)
    else:  # sphere, ellipsoid
        surface = _ellipsoid(np.zeros(3), np.diag(np.broadcast_to(size, 3)), fine) if size.min() > SMALLEST else None
    if surface is None:
        return None
    vertices, faces = surface
    return visual.position + vertices @ visual.rotation.T, faces


def _mesh(visual: Visual, unread: list[str]) -> Surface | None:
    """A mesh file; None, and a note, if it cannot be read."""
    try:
        vertices, faces = read_mesh(visual.mesh)
    except (LoadError, MissingExtra) as error:
        unread.append(str(error))
        return None
    mirrored = np.prod(visual.size) < 0
    return vertices * np.asarray(visual.size), faces[:, ::-1] if mirrored else faces
