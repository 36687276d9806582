"""Kinds of shapes that may touch: spheres, capsules, boxes, cylinders, points, hulls, height fields, planes.

A kind states its size, points and bound as contact detection needs them (`contact/contact_fields.py`). `shapes.py`
attaches shapes to links.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from bunraku.checks import as_positive, as_size
from bunraku.contact import contact_fields as c
from bunraku.errors import ModelError
from bunraku.mechanism.readonly import read_only, sealed


class Shape:
    """A collision shape; `add_shape` attaches it to a link. Read-only."""

    kind: ClassVar[int]

    def size(self) -> tuple[float, float, float]:
        """As in SHAPE_SIZE of `contact/contact_fields.py`."""
        return 0.0, 0.0, 0.0

    def corners(self) -> np.ndarray:
        """(n, 3): its points or vertices, if it is made of such."""
        return np.zeros((0, 3))

    def rows(self) -> tuple[np.ndarray, tuple[int, ...]]:
        """Its rows of point_f, and SHAPE_COUNT and the following numbers of `contact/contact_fields.py`."""
        return self.corners(), (len(self.corners()),)

    def bound(self) -> tuple[np.ndarray, float]:
        """Centre and radius of a sphere around it."""
        return np.zeros(3), float(np.linalg.norm(self.size()))

    def how_to_change(self, name, value=None) -> str:
        return (f"a {type(self).__name__} is read-only: make another, m = m.with_shape(name, "
                f"shape=bk.{type(self).__name__}(...))")


@sealed
@dataclass(frozen=True)
class Sphere(Shape):
    """A ball of radius `radius` [m] around its origin."""

    radius: float
    kind = c.SPHERE

    def __post_init__(self):
        self.__dict__["radius"] = as_positive("Sphere: radius", self.radius)

    def size(self):
        return self.radius, 0.0, 0.0


@sealed
@dataclass(frozen=True)
class Capsule(Shape):
    """A cylinder along z with round ends: `radius`, and `length` of its axis without the ends [m]."""

    radius: float
    length: float
    kind = c.CAPSULE

    def __post_init__(self):
        self.__dict__["radius"] = as_positive("Capsule: radius", self.radius)
        self.__dict__["length"] = as_size("Capsule: length", self.length)

    def size(self):
        return self.radius, 0.5 * self.length, 0.0

    def bound(self):
        return np.zeros(3), self.radius + 0.5 * self.length


@sealed
@dataclass(frozen=True)
class Box(Shape):
    """A box around its origin with edges `x`, `y` and `z` [m]: full lengths, not halves."""

    x: float
    y: float
    z: float
    kind = c.BOX

    def __post_init__(self):
        for name in ("x", "y", "z"):
            self.__dict__[name] = as_size(f"Box: {name}", getattr(self, name))
        if not self.x + self.y + self.z > 0:
            raise ModelError("Box: all edges are zero; give at least one a length, or use bk.Points([(0, 0, 0)])")

    def size(self):
        return 0.5 * self.x, 0.5 * self.y, 0.5 * self.z

    def rows(self):
        from bunraku.contact.polytopes import box

        return box(self.size()).as_rows()


@sealed
@dataclass(frozen=True)
class Cylinder(Shape):
    """A cylinder along z with flat ends: `radius` and `length` [m]."""

    radius: float
    length: float
    kind = c.CYLINDER

    def __post_init__(self):
        self.__dict__["radius"] = as_positive("Cylinder: radius", self.radius)
        self.__dict__["length"] = as_positive("Cylinder: length", self.length)

    def size(self):
        return self.radius, 0.5 * self.length, 0.0


@sealed
@dataclass(frozen=True, eq=False)
class Points(Shape):
    """Points (n, 3) [m]: each touches planes and solids, but not other points."""

    points: np.ndarray
    kind = c.POINTS

    def __post_init__(self):
        self._keep(_as_points("Points", self.points))

    def _keep(self, points):
        self.__dict__["points"] = read_only(points, self.how_to_change("points"))

    def corners(self):
        return np.asarray(self.points)

    def bound(self):
        points = self.corners()
        middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
        return middle, float(np.linalg.norm(points - middle, axis=1).max())

    def __repr__(self):
        return f"{type(self).__name__}({len(self.points)} points)"


@sealed
@dataclass(frozen=True, eq=False, repr=False)
class Hull(Points):
    """The convex hull of points (n, 3) [m], for instance of the vertices of a mesh; `points` are its vertices."""

    kind = c.HULL

    def __post_init__(self):
        points = _as_points("Hull", self.points)
        try:
            self._keep(_polytope(points.tobytes())[0])
        except ValueError as error:
            raise ModelError(f"Hull: {error}; give it a thickness, or use bk.Points") from None

    def rows(self):
        return _polytope(self.corners().tobytes())[1].as_rows()

    def size(self):
        x, y, z = self.corners().mean(axis=0)
        return float(x), float(y), float(z)


@sealed
@dataclass(frozen=True, eq=False)
class Heightfield(Shape):
    """Ground of given heights (nx, ny) [m] over a rectangle `extent` = (x, y) [m] around its origin, solid below.

    heights[i, j] is the height at x (i / (nx - 1) - 1/2), y (j / (ny - 1) - 1/2). Each cell is two triangles, with the
    diagonal from (i, j) to (i + 1, j + 1). Nothing touches it beyond its border.
    """

    heights: np.ndarray
    extent: tuple[float, float]
    kind = c.HEIGHTFIELD

    def __post_init__(self):
        try:
            heights = np.array(self.heights, float)
        except (TypeError, ValueError):
            heights = np.empty(0)
        if heights.ndim != 2 or min(heights.shape) < 2:
            raise ModelError(f"Heightfield: heights must be an array (nx, ny), nx and ny at least 2, not "
                             f"{f'one of shape {heights.shape}' if heights.size else repr(self.heights)}")
        if not np.isfinite(heights).all():
            at = np.argwhere(~np.isfinite(heights))[0].tolist()
            raise ModelError(f"Heightfield: heights{at} is {heights[tuple(at)]}; it must be finite")
        try:
            x, y = self.extent
        except (TypeError, ValueError):
            raise ModelError(f"Heightfield: extent must be (x, y), its lengths [m], not {self.extent!r}") from None
        self.__dict__["heights"] = read_only(heights, self.how_to_change("heights"))
        self.__dict__["extent"] = as_positive("Heightfield: extent x", x), as_positive("Heightfield: extent y", y)

    def size(self):
        return 0.5 * self.extent[0], 0.5 * self.extent[1], 0.0

    def rows(self):
        heights = np.asarray(self.heights)
        flat = np.zeros(-(-heights.size // 3) * 3)
        flat[:heights.size] = heights.ravel()
        return flat.reshape(-1, 3), heights.shape

    def bound(self):
        heights, (x, y, _) = np.asarray(self.heights), self.size()
        low, high = float(heights.min()), float(heights.max())
        return np.array([0.0, 0.0, 0.5 * (low + high)]), float(np.linalg.norm((x, y, 0.5 * (high - low))))

    def surface(self) -> tuple[np.ndarray, np.ndarray]:
        """Its nodes (n, 3) and triangles (m, 3), anticlockwise seen from above."""
        heights, (x, y, _) = np.asarray(self.heights), self.size()
        nx, ny = heights.shape
        grid = np.meshgrid(np.linspace(-x, x, nx), np.linspace(-y, y, ny), indexing="ij")
        nodes = np.stack([*grid, heights], axis=-1)
        first = (np.arange(nx - 1)[:, None] * ny + np.arange(ny - 1)).ravel()
        lower = np.column_stack([first, first + ny, first + ny + 1])
        upper = np.column_stack([first, first + ny + 1, first + 1])
        return nodes.reshape(-1, 3), np.concatenate([lower, upper]).astype(np.int32)

    def __repr__(self):
        nx, ny = self.heights.shape
        return f"Heightfield({nx} x {ny} heights, extent={self.extent})"


def _as_points(what: str, given) -> np.ndarray:
    try:
        points = np.array(given, float)
    except (TypeError, ValueError):
        points = np.empty(0)
    if points.ndim != 2 or points.shape[1] != 3 or not len(points):
        raise ModelError(f"{what}: points must be an array (n, 3) of numbers, not "
                         f"{f'one of shape {points.shape}' if points.size else repr(given)}")
    for k in np.flatnonzero(~np.isfinite(points).all(axis=1)):
        raise ModelError(f"{what}: point {k} is {points[k].tolist()}; it must be finite")
    return points


@lru_cache(maxsize=1024)
def _polytope(points: bytes):
    """Vertices and rows of the convex hull of points, given as their bytes."""
    from bunraku.contact.polytopes import hull_of, polytope

    vertices, faces = hull_of(np.frombuffer(points).reshape(-1, 3))
    return vertices, polytope(vertices, faces)


@sealed
@dataclass(frozen=True)
class Plane(Shape):
    """The half-space below the plane z = 0 of its frame; made by `add_plane`."""

    kind = c.PLANE

    def bound(self):
        return np.zeros(3), np.inf
