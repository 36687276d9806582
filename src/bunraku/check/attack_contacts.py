"""Contact geometry: gaps, normals and nearest points of random pairs of shapes, beside Coal's."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import bunraku as bk
from bunraku.check import Case
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_entries import found_contacts
from bunraku.mechanism.shape_kinds import Plane, Shape

TITLE = "shapes in random poses, apart or in each other: gap, normal, point are Coal's (points on planes: NumPy's)"
UNIT = "pairs"
SEEDS, SHORT, LIMIT = 2600, 52, 600.0  # 260 000 pairs, 122 000 of them boxes and hulls
PAIRS = 100          # in a case
TOLERANCE = 1e-9     # [m]
NEARLY = 1e-8        # [m] of boxes and hulls, where normals of faces come before those of edges
ROUND = 1e-7         # [m] of cylinders, which Coal approaches by polytopes, up to ten times less
KINDS = tuple(kinds for kinds in c.KIND_OF if c.HEIGHTFIELD not in kinds)  # these: tests/contact/test_fields.py
BOXES_AND_HULLS = tuple(kinds for kinds in KINDS if set(kinds) <= {c.BOX, c.HULL})
LIGHT = 0.25         # overlap as part of the thinner solid, up to which the way out of a cylinder is the shortest
UNKNOWN = 1e300      # [m] from here on a gap is no answer
SMALL = 0.05         # [m] radius of balls that are points for Coal


def missing() -> str:
    return "" if importlib.util.find_spec("coal") else "it compares with Coal (pip install coal)"


def random_shape(rng, kind: int) -> Shape:
    """A shape between a hand and a table in size; some are thin."""
    r, x, y, z = np.exp(rng.uniform(np.log(0.02), np.log(0.8), 4))
    if kind == c.SPHERE:
        return bk.Sphere(r)
    if kind == c.CAPSULE:
        return bk.Capsule(r, x)
    if kind == c.BOX:
        return bk.Box(x, y, z)
    if kind == c.CYLINDER:
        return bk.Cylinder(r, x)
    if kind == c.HULL:
        return bk.Hull(rng.normal(size=(rng.integers(4, 40), 3)) * (x, y, z) + rng.normal(size=3) * x)
    return Plane() if kind == c.PLANE else bk.Points(rng.normal(size=(6, 3)) * x)


def thickness(shape: Shape) -> float:
    """The radius of a ball inside; of points infinite."""
    if isinstance(shape, bk.Hull):
        rows, (vertices, faces, *_) = shape.rows()
        planes = rows[vertices:vertices + 2 * faces]
        return float((planes[1::2, 0] - planes[::2] @ shape.size()).min())
    if isinstance(shape, bk.Points):
        return np.inf
    sizes = shape.size()
    return min(sizes[:2]) if isinstance(shape, bk.Cylinder) else min(sizes) if isinstance(shape, bk.Box) else sizes[0]


def pair_of(a: Shape, b: Shape) -> bk.Mechanism:
    """Two loose bodies with a shape each."""
    m = bk.Mechanism()
    for name, shape in (("a", a), ("b", b)):
        m.add_link(name, joint=bk.Free(), mass=1.0, inertia=(0.1, 0.1, 0.1))
        if isinstance(shape, Plane):
            m.add_plane(name)
        else:
            m.add_shape(name, shape)
    return m


def random_poses(rng, a: Shape, b: Shape, count: int) -> np.ndarray:
    """States of `pair_of`, about half of them in contact."""
    reach = sum(min(shape.bound()[1], 1.0) for shape in (a, b))
    q = np.empty((count, 14))
    q[:, [0, 1, 2, 7, 8, 9]] = rng.normal(size=(count, 6))
    offset = rng.normal(size=(count, 3))
    offset *= (reach * rng.uniform(0.0, 1.5, count) / np.linalg.norm(offset, axis=1))[:, None]
    q[:, 7:10] = q[:, :3] + offset
    for at in (3, 10):
        q[:, at:at + 4] = Rotation.random(count, random_state=rng).as_quat()[:, [3, 0, 1, 2]]
    return q


def as_coal(shape: Shape):
    import coal

    if isinstance(shape, bk.Sphere):
        return coal.Sphere(shape.radius)
    if isinstance(shape, bk.Capsule):
        return coal.Capsule(shape.radius, shape.length)
    if isinstance(shape, bk.Box):
        return coal.Box(shape.x, shape.y, shape.z)
    if isinstance(shape, bk.Cylinder):
        return coal.Cylinder(shape.radius, shape.length)
    if isinstance(shape, bk.Hull):
        points = coal.StdVec_Vec3s()
        points.extend([np.array(x) for x in shape.corners()])
        return coal.Convex.convexHull(points, False, "Qt")
    if isinstance(shape, bk.Points):
        return coal.Sphere(SMALL)
    return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)


def by_coal(a, b, q, rounded=False) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Gap, normal from b to a and the nearest points of a and b; with cylinders Coal fails at smaller tolerances."""
    gap, normal, on_a, on_b = _asked(a, b, q, rounded)
    if abs(gap) < UNKNOWN:
        return gap, normal, on_a, on_b
    gap, normal, on_b, on_a = _asked(b, a, np.concatenate([q[7:], q[:7]]), rounded)  # no answer: the other way round
    return gap, -normal, on_a, on_b


def _asked(a, b, q, rounded: bool) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    import coal

    _first_question()
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.gjk_tolerance, request.gjk_max_iterations = 1e-14, 1000
    request.epa_tolerance, request.epa_max_iterations = 1e-12, 1000
    if rounded:
        request.gjk_tolerance = request.epa_tolerance = 0.1 * ROUND
    gap = coal.distance(a, _pose(coal, q[:7]), b, _pose(coal, q[7:]), request, result)
    return gap, -np.array(result.normal), np.array(result.getNearestPoint1()), np.array(result.getNearestPoint2())


@cache
def _first_question() -> None:
    """Coal's boxes are 1e-10 larger in a process whose first question about a box is along one of its axes, which puts
    normals of boxes off by up to 3e-8 (compared with long doubles). So the first question is about a turned box."""
    import coal

    turned = coal.Transform3s()
    turned.setRotation(Rotation.from_rotvec((0.3, 0.5, 0.7)).as_matrix())
    turned.setTranslation(np.array([0.5, 0.6, 0.7]))
    coal.distance(coal.Capsule(0.1, 0.1), coal.Transform3s(), coal.Box(0.1, 0.1, 0.1), turned, coal.DistanceRequest(),
                  coal.DistanceResult())


def differences(gap, normal, point, theirs, rounded: bool) -> dict[str, float]:
    """From another answer; on round sides normals of an approximation are less exact than gaps."""
    errors = {"gap": abs(gap - theirs[0]), "normal": float(np.abs(normal - theirs[1]).max()),
              "point": float(np.abs(point - 0.5 * (theirs[2] + theirs[3])).max())}
    return {"gap": errors["gap"]} if rounded else errors


def _pose(coal, q):
    pose = coal.Transform3s()
    pose.setRotation(Rotation.from_quat(q[[4, 5, 6, 3]]).as_matrix())
    pose.setTranslation(q[:3])
    return pose


def case(seed: int) -> Case:
    """Two of five cases are boxes and hulls, the others each kind in turn."""
    if seed % 5 < 2:
        return pairs_of(BOXES_AND_HULLS[seed // 5 % len(BOXES_AND_HULLS)], seed)
    return pairs_of(KINDS[seed % len(KINDS)], seed)


def pairs_of(kinds: tuple[int, int], seed: int) -> Case:
    """One pair of shapes in many poses, as a batch; one of them also by itself."""
    rng = np.random.default_rng([17, seed])
    a, b = (random_shape(rng, kind) for kind in kinds)
    m = pair_of(a, b)
    q = random_poses(rng, a, b, PAIRS)
    arrays = m.contact_pairs().arrays
    found = found_contacts(m.plan("tree"), arrays, q, 1e9)
    alone = found_contacts(m.plan("tree"), arrays, q[0], 1e9)
    there = np.isfinite(found[0, :, c.FOUND_GAP])
    differ = float(np.abs(alone[there] - found[0, there]).max())
    _require(differ < 1e-12 and (np.isfinite(alone[:, c.FOUND_GAP]) == there).all(),
             f"a state by itself and in a batch differ by {differ:g}")
    worst = {"one state, in a batch": differ}
    others, rounded = (as_coal(a), as_coal(b)), kinds[1] == c.CYLINDER
    light = LIGHT * min(thickness(a), thickness(b))
    for k in range(PAIRS):
        where = f"pair {k}, {a!r} and {b!r}"
        row = found[k, np.argmin(found[k, :, c.FOUND_GAP])]
        _require(kinds[1] == c.PLANE or kinds[0] == c.POINTS or c.KIND_OF[kinds] == c.CONVEX
                 or found[k, 0, c.FOUND_GAP] <= row[c.FOUND_GAP] + 1e-14,
                 f"{where}: a contact is nearer than the nearest points")
        gap, normal, point = row[c.FOUND_GAP], row[c.FOUND_NORMAL:c.FOUND_NORMAL + 3], row[c.FOUND_POINT:]
        if kinds == (c.POINTS, c.PLANE):
            theirs = _points_and_plane(a, q[k])
        elif kinds == (c.POINTS, c.CYLINDER):
            theirs = _points_and_cylinder(a, b, q[k])
        elif kinds[0] == c.POINTS:
            theirs = _points_and_solid(a, others, q[k])
        else:
            theirs = by_coal(*others, q[k], rounded)
        label, tolerance = "", TOLERANCE
        if kinds == (c.CAPSULE, c.BOX) and gap < -a.size()[0]:
            label = ", axis in a box"
        elif c.KIND_OF[kinds] == c.CONVEX or (kinds[0] == c.POINTS and kinds[1] != c.PLANE):
            label, tolerance = (", cylinders", ROUND) if rounded else (", boxes and hulls", NEARLY)
        if rounded and gap < -light:
            continue
        errors = differences(gap, normal, point, theirs, rounded)
        for what, error in errors.items():
            _require(error < tolerance,
                     f"{where}: {what} differs by {error:.3g} (gap {gap:.6g}, Coal's {theirs[0]:.6g})")
            worst[what + label] = max(worst.get(what + label, 0.0), float(error))
    return Case(PAIRS, worst)


def _points_and_solid(shape: Shape, others: tuple[Any, Any], q):
    """The nearest of some points: balls without their radius."""
    R, best = Rotation.from_quat(q[[4, 5, 6, 3]]).as_matrix(), None
    for x in shape.corners():
        at = q.copy()
        at[:3] = q[:3] + R @ x
        gap, normal, _, on_b = by_coal(others[0], others[1], at)
        if best is None or gap + SMALL < best[0]:
            best = gap + SMALL, normal, at[:3], on_b
    return best


def _points_and_plane(shape: Shape, q):
    """The lowest of some points above a plane, which Coal does not have."""
    R = Rotation.from_quat(q[[4, 5, 6, 3]]).as_matrix()
    normal = Rotation.from_quat(q[[11, 12, 13, 10]]).as_matrix()[:, 2]
    points = q[:3] + shape.corners() @ R.T
    height = (points - q[7:10]) @ normal
    lowest = points[np.argmin(height)]
    return height.min(), normal, lowest, lowest - height.min() * normal


def _points_and_cylinder(shape: Shape, cylinder, q):
    """The nearest of some points; Coal's balls in cylinders are wrong if the centre is inside."""
    R, S = (Rotation.from_quat(q[[i + 4, i + 5, i + 6, i + 3]]).as_matrix() for i in (0, 7))
    points = (q[:3] + shape.corners() @ R.T - q[7:10]) @ S
    out = np.hypot(points[:, 0], points[:, 1]) - cylinder.radius
    up = np.abs(points[:, 2]) - 0.5 * cylinder.length
    gaps = np.where(np.maximum(out, up) < 0, np.maximum(out, up), np.hypot(np.maximum(out, 0), np.maximum(up, 0)))
    return gaps.min(), np.zeros(3), np.zeros(3), np.zeros(3)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)
