"""Contact geometry: gaps, normals and nearest points of random pairs of shapes, beside Coal's."""

from __future__ import annotations

import importlib.util

import numpy as np
from scipy.spatial.transform import Rotation

import bunraku as bk
from bunraku.check import Case
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_entries import found_contacts
from bunraku.mechanism.shapes import Plane, Shape

TITLE = "shapes in random poses, apart or in each other: gap, normal, point are Coal's (points on planes: NumPy's)"
UNIT = "pairs"
SEEDS, SHORT, LIMIT = 1125, 45, 300.0  # of nine kinds eight are compared with Coal: 100 000 pairs
PAIRS = 100          # in a case
TOLERANCE = 1e-9     # [m]
KINDS = tuple(c.KIND_OF)


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
    return Plane() if kind == c.PLANE else bk.Points(rng.normal(size=(6, 3)) * x)


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
    return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)


def by_coal(a, b, q) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Gap, normal from b to a and the nearest points of a and b."""
    import coal

    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.gjk_tolerance, request.gjk_max_iterations = 1e-14, 1000
    request.epa_tolerance, request.epa_max_iterations = 1e-12, 1000
    gap = coal.distance(a, _pose(coal, q[:7]), b, _pose(coal, q[7:]), request, result)
    return gap, -np.array(result.normal), np.array(result.getNearestPoint1()), np.array(result.getNearestPoint2())


def _pose(coal, q):
    pose = coal.Transform3s()
    pose.setRotation(Rotation.from_quat(q[[4, 5, 6, 3]]).as_matrix())
    pose.setTranslation(q[:3])
    return pose


def case(seed: int) -> Case:
    """One pair of shapes in many poses, as a batch; one of them also by itself."""
    rng = np.random.default_rng([17, seed])
    kinds = KINDS[seed % len(KINDS)]
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
    worst = {"one state, in a batch": differ, "gap": 0.0, "normal": 0.0, "point": 0.0}
    others = as_coal(a) if kinds[0] != c.POINTS else None, as_coal(b)
    for k in range(PAIRS):
        row = found[k, np.argmin(found[k, :, c.FOUND_GAP])]
        _require(kinds[1] == c.PLANE or found[k, 0, c.FOUND_GAP] <= row[c.FOUND_GAP] + 1e-14,
                 f"pair {k}, {a!r} and {b!r}: a contact is nearer than the nearest points")
        gap, normal, point = row[c.FOUND_GAP], row[c.FOUND_NORMAL:c.FOUND_NORMAL + 3], row[c.FOUND_POINT:]
        if others[0] is None:
            theirs = _points_and_plane(a, q[k])
        else:
            theirs = by_coal(*others, q[k])
        entered = kinds == (c.CAPSULE, c.BOX) and gap < -a.size()[0]
        errors = {"gap": abs(gap - theirs[0]), "normal": float(np.abs(normal - theirs[1]).max()),
                  "point": float(np.abs(point - 0.5 * (theirs[2] + theirs[3])).max())}
        for what, error in errors.items():
            _require(error < TOLERANCE, f"pair {k}, {a!r} and {b!r}: {what} differs by {error:.3g} (gap {gap:.6g}, "
                                        f"Coal's {theirs[0]:.6g})")
            key = f"{what}, axis in a box" if entered else what
            worst[key] = max(worst.get(key, 0.0), float(error))
    return Case(PAIRS, worst)


def _points_and_plane(shape: Shape, q):
    """The lowest of some points above a plane, which Coal does not have."""
    R = Rotation.from_quat(q[[4, 5, 6, 3]]).as_matrix()
    normal = Rotation.from_quat(q[[11, 12, 13, 10]]).as_matrix()[:, 2]
    points = q[:3] + shape.corners() @ R.T
    height = (points - q[7:10]) @ normal
    lowest = points[np.argmin(height)]
    return height.min(), normal, lowest, lowest - height.min() * normal


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)
