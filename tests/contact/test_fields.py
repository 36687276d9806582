"""Height fields: gaps of solids are those from their triangles, one by one."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.spatial.transform import Rotation

import bunraku as bk
from bunraku.check import attack_contacts as check

X = np.linspace(-1, 1, 9)
HILLS = bk.Heightfield(0.1 * np.sin(5 * X)[:, None] * np.cos(4 * X[:7])[None, :], (2.0, 1.5))


def placed(q, at):
    return Rotation.from_quat(q[[at + 4, at + 5, at + 6, at + 3]]).as_matrix(), q[at:at + 3]


def triangles(q):
    R, x = placed(q, 7)
    nodes, faces = HILLS.surface()
    return (x + nodes @ R.T)[faces]


def poses(rng, count, height=0.3):
    """Solids above the field, or a little in it; the field turned as well."""
    found = []
    for _ in range(count):
        tilt = Rotation.from_rotvec(0.4 * rng.normal(size=3))
        at = np.array([*rng.uniform(-0.7, 0.7, 1), *rng.uniform(-0.5, 0.5, 1), rng.uniform(-0.02, height)])
        x = rng.normal(size=3)
        found.append([*(x + tilt.apply(at)), *Rotation.random(random_state=rng).as_quat()[[3, 0, 1, 2]],
                      *x, *tilt.as_quat()[[3, 0, 1, 2]]])
    return np.array(found)


def distance_to_triangle(p, t):
    """Distance of a point, by the point of the plane or the nearest of the edges."""
    a, b, d = t
    n = np.cross(b - a, d - a)
    u = p - n * ((p - a) @ n) / (n @ n)
    w = np.linalg.lstsq(np.column_stack([b - a, d - a]), u - a, rcond=None)[0]
    if w.min() >= 0 and w.sum() <= 1:
        return np.linalg.norm(p - u)
    ends = ((a, b), (b, d), (d, a))
    return min(np.linalg.norm(p - e - np.clip((p - e) @ (f - e) / ((f - e) @ (f - e)), 0, 1) * (f - e))
               for e, f in ends)


def above(p, q):
    """Whether a point is above the triangle that it is over, seen along the field's z."""
    R, x = placed(q, 7)
    y = (p - x) @ R
    nodes, faces = HILLS.surface()
    for a, b, d in nodes[faces]:
        w = np.linalg.solve(np.column_stack([(b - a)[:2], (d - a)[:2]]), y[:2] - a[:2])
        if w.min() >= -1e-12 and w.sum() <= 1 + 1e-12:
            return y[2] > a[2] + w[0] * (b - a)[2] + w[1] * (d - a)[2]
    return True


def test_spheres_are_as_far_as_the_nearest_triangle():
    ball = bk.Sphere(0.15)
    m = check.pair_of(ball, HILLS)
    Q = poses(np.random.default_rng(0), 40)
    for q, found in zip(Q, bk.contacts(m, Q, 10.0), strict=True):
        apart = min(distance_to_triangle(q[:3], t) for t in triangles(q))
        assert found.gap[0] == pytest.approx((apart if above(q[:3], q) else -apart) - 0.15, abs=1e-12)
        assert np.linalg.norm(found.normal, axis=1) == pytest.approx(1.0)


def along_axis(s, x, axis, t):
    return distance_to_triangle(x + s * axis, t)


def test_capsules_are_as_far_as_the_nearest_triangle():
    """Of axes that do not cross the surface: the distance from a triangle is convex along the axis."""
    m = check.pair_of(bk.Capsule(0.08, 0.3), HILLS)
    Q = poses(np.random.default_rng(1), 30, 0.5)
    tested = 0
    for q, found in zip(Q, bk.contacts(m, Q, 10.0), strict=True):
        (R, x), (S, y) = placed(q, 0), placed(q, 7)
        axis = x + np.linspace(-0.15, 0.15, 9)[:, None] * R[:, 2]
        if not (np.abs((axis - y) @ S)[:, :2] < (1.0, 0.75)).all() or not all(above(p, q) for p in axis):
            continue
        near = [t for t in triangles(q) if np.linalg.norm(t - x, axis=1).min() < found.gap[0] + 0.6]
        apart = min(minimize_scalar(along_axis, (-0.15, 0.15), (-0.15, 0.15), args=(x, R[:, 2], t), method="bounded",
                                    options={"xatol": 1e-9}).fun for t in near)
        assert found.gap[0] == pytest.approx(apart - 0.08, abs=1e-7)
        tested += 1
        if tested == 6:
            return
    raise AssertionError("too few axes are above the surface")


@pytest.mark.parametrize("shape", [bk.Points([(0, 0, 0), (0.2, 0, 0.1)]), bk.Box(0.2, 0.3, 0.1),
                                   bk.Hull(0.1 * np.random.default_rng(2).normal(size=(8, 3))), bk.Cylinder(0.1, 0.2)],
                         ids=lambda shape: type(shape).__name__)
def test_corners_are_above_the_plane_of_the_triangle_below_them(shape):
    m = check.pair_of(shape, HILLS)
    corners = shape.corners()
    if isinstance(shape, bk.Box):
        corners = np.array(shape.size()) * np.array(np.meshgrid(*3 * [(-1, 1)])).reshape(3, -1).T
    elif isinstance(shape, bk.Cylinder):
        corners = np.array([(0.1 * np.cos(a), 0.1 * np.sin(a), z) for z in (-0.1, 0.1)
                            for a in np.arange(8) * np.pi / 4])
    nodes, faces = HILLS.surface()
    for q in poses(np.random.default_rng(3), 20):
        (R, x), (S, y) = placed(q, 0), placed(q, 7)
        expected = []
        for p in ((x + corners @ R.T) - y) @ S:
            for a, b, d in nodes[faces]:
                w = np.linalg.solve(np.column_stack([(b - a)[:2], (d - a)[:2]]), p[:2] - a[:2])
                if w.min() > 0 and w.sum() < 1:
                    n = np.cross(b - a, d - a)
                    expected.append(n @ (p - a) / np.linalg.norm(n))
        assert sorted(bk.contacts(m, q, 100.0).gap) == pytest.approx(sorted(expected), abs=1e-12)


def test_a_flat_field_is_a_plane():
    flat = bk.Heightfield(np.full((5, 4), 0.3), (3.0, 2.0))
    for shape in (bk.Sphere(0.1), bk.Capsule(0.1, 0.3), bk.Box(0.2, 0.3, 0.1), check.random_shape(
            np.random.default_rng(0), check.c.HULL)):
        field, plane = bk.Mechanism(), bk.Mechanism()
        for m in (field, plane):
            m.add_link("a", joint=bk.Free(), mass=1.0, inertia=(0.1, 0.1, 0.1))
            m.add_shape("a", shape)
        field.add_shape("ground", flat)
        plane.add_plane(point=(0, 0, 0.3))
        q = field.neutral()
        q[:3], q[3:7] = (0.1, 0.2, 0.5), Rotation.from_rotvec((0.2, 0.3, 0.4)).as_quat()[[3, 0, 1, 2]]
        ours, theirs = bk.contacts(field, q, 10.0), bk.contacts(plane, q, 10.0)
        assert ours.gap[0] == pytest.approx(theirs.gap[0], abs=1e-14)
        assert ours.normal[0] == pytest.approx(theirs.normal[0], abs=1e-14)
        assert ours.point[0] == pytest.approx(theirs.point[0], abs=1e-14)


def test_a_ball_in_a_valley_touches_both_sides():
    valley = bk.Heightfield(np.abs(np.linspace(-1, 1, 5))[:, None] * np.ones(4), (2.0, 2.0))
    m = check.pair_of(bk.Sphere(0.2), valley)
    q = np.array([0, 0.1, 0.2 * np.sqrt(2), 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0])
    on = bk.contacts(m, q, 1e-6)
    assert len(on) == 2
    assert np.abs(on.gap).max() < 1e-12
    assert sorted(on.normal[:, 0]) == pytest.approx([-np.sqrt(0.5), np.sqrt(0.5)])
    assert np.abs(on.normal[:, 2]) == pytest.approx(np.sqrt(0.5))


def test_bodies_come_to_rest_on_hills():
    m = bk.Mechanism()
    m.add_link("crate", joint=bk.Free(), mass=1.0, inertia=(0.005, 0.007, 0.009))
    m.add_shape("crate", bk.Box(0.2, 0.3, 0.1), friction=0.8)
    m.add_shape("ground", HILLS, friction=0.8)
    q = m.neutral()
    q[2] = 0.4
    tr = bk.Simulation(m, q, [0.1, 0.1, 0, 1, 2, 0], solver="symplectic_euler", step=2e-3).run(3.0)
    assert np.abs(tr.v[-1]).max() < 1e-8
    assert bk.contacts(m, tr.q[-1]).gap.min() > -1e-6
