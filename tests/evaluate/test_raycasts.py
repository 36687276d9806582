"""Rays meet shapes where MuJoCo's do, and height fields where their triangles are; sensors of range read them."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import bunraku as bk

PATCH = 0.1 * np.random.default_rng(8).normal(size=(7, 5))


def surroundings(seed=1):
    """A free body with one shape of every kind around it, some on the ground, and two planes."""
    rng = np.random.default_rng(seed)
    corners = rng.normal(size=(12, 3))
    shapes = {"ball": bk.Sphere(0.4), "box": bk.Box(0.5, 0.8, 0.6), "pill": bk.Capsule(0.2, 0.9),
              "can": bk.Cylinder(0.3, 0.7), "stone": bk.Hull(0.4 * corners / np.linalg.norm(corners, axis=1)[:, None])}
    m = bk.Mechanism(name="surroundings")
    m.add_link("body", joint=bk.Free(), mass=1.0, inertia=(1, 1, 1))
    for k, (name, shape) in enumerate(shapes.items()):
        R = Rotation.random(random_state=k).as_matrix()
        m.add_shape("body" if k % 2 else "ground", shape, position=rng.normal(size=3), rotation=R, name=name)
    m.add_plane("ground", (0, 0, -2.5), name="floor")
    m.add_plane("body", (0, 3.0, 0), (0, -1, 0.2), name="wall")
    return m, shapes


def random_rays(count, rng):
    return 3.0 * rng.normal(size=(count, 3)) * (1, 1, 0.5), rng.normal(size=(count, 3))


def test_rays_meet_what_those_of_mujoco_meet():
    mujoco = pytest.importorskip("mujoco")
    m, shapes = surroundings()
    rng = np.random.default_rng(2)
    q = np.concatenate([0.2 * rng.normal(size=3), Rotation.random(random_state=9).as_quat(scalar_first=True)])
    R, x = bk.poses(m, q)["body"]
    world = ""
    for name, placed in m.shapes.items():
        turn, at = placed.rotation, placed.position
        if placed.link == 0:
            turn, at = R @ turn, x + R @ at
        quat = Rotation.from_matrix(turn).as_quat(scalar_first=True)
        kind, size = {"ball": ("sphere", ".4"), "box": ("box", ".25 .4 .3"), "pill": ("capsule", ".2 .45"),
                      "can": ("cylinder", ".3 .35"), "stone": ("mesh", "")}.get(name, ("plane", "0 0 1"))
        size = 'mesh="stone"' if kind == "mesh" else f'size="{size}"'
        world += f'<geom name="{name}" type="{kind}" {size} pos="{spaced(at)}" quat="{spaced(quat)}"/>'
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><asset><mesh name="stone" vertex="{spaced(shapes["stone"].points.ravel())}"/></asset>'
        f"<worldbody>{world}</worldbody></mujoco>")
    # MuJoCo moves a mesh to its centre of mass and principal axes
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    origins, directions = random_rays(300, rng)
    hits = bk.raycast(m, q, origins, directions)
    number, met = np.zeros(1, np.int32), 0
    normals = [m.shapes[name].rotation[:, 2] for name in ("floor", "wall")]
    points = [m.shapes[name].position for name in ("floor", "wall")]
    normals[1], points[1] = R @ normals[1], x + R @ points[1]
    for k in range(300):
        if any(normal @ (origins[k] - point) < 0 for normal, point in zip(normals, points, strict=True)):
            continue  # behind a plane: MuJoCo's are seen from above alone
        distance = mujoco.mj_ray(model, data, origins[k], directions[k] / np.linalg.norm(directions[k]), None, 1, -1,
                                 number, None)
        name = model.geom(number[0]).name if distance >= 0 else None
        assert name == (hits.names[hits.shape[k]] if hits.shape[k] >= 0 else None)
        if name:
            np.testing.assert_allclose(hits.distance[k], distance, rtol=1e-7)
            met += 1
    assert met > 100
    assert set(hits.names) == {*shapes, "floor", "wall"}


def spaced(values):
    return " ".join(f"{x:.17g}" for x in values)


def test_normals_point_out_and_points_are_on_surfaces():
    """Beyond the surface the ray is inside, or outside; a step along the normal is nearer to the other side."""
    m, _ = surroundings(3)
    rng = np.random.default_rng(4)
    q = np.concatenate([0.2 * rng.normal(size=3), Rotation.random(random_state=5).as_quat(scalar_first=True)])
    origins, directions = random_rays(200, rng)
    hits = bk.raycast(m, q, origins, directions)
    d = directions / np.linalg.norm(directions, axis=1)[:, None]
    found = np.isfinite(hits.distance)
    np.testing.assert_allclose(np.linalg.norm(hits.normal[found], axis=1), 1.0, rtol=1e-12)
    for k in np.flatnonzero(found):
        point = origins[k] + hits.distance[k] * d[k]
        others = [name for name in hits.names if name != hits.names[hits.shape[k]]]
        outside, inside = point + 1e-5 * hits.normal[k], point - 1e-5 * hits.normal[k]
        again = bk.raycast(m, q, [outside, inside], [-hits.normal[k], hits.normal[k]], ignore=others)
        np.testing.assert_allclose(again.distance, 1e-5, rtol=1e-3)


def test_height_fields_are_met_where_their_triangles_are():
    m = bk.Mechanism()
    m.add_link("body", joint=bk.Free(), mass=1.0, inertia=(1, 1, 1))
    turn = Rotation.from_rotvec([0.3, -0.2, 0.5]).as_matrix()
    field = bk.Heightfield(PATCH, (2.0, 1.5))
    m.add_shape("ground", field, position=(0.1, 0.2, 0.3), rotation=turn, name="hills")
    nodes, triangles = field.surface()
    nodes = nodes @ turn.T + (0.1, 0.2, 0.3)
    rng = np.random.default_rng(6)
    targets = nodes[triangles].mean(axis=1)[rng.integers(len(triangles), size=150)]
    origins = targets + np.where(np.arange(150)[:, None] % 3 == 0, 0.4, 2.0) * rng.normal(size=(150, 3))
    hits = bk.raycast(m, m.neutral(), origins, targets - origins)
    a, b, c = nodes[triangles].transpose(1, 0, 2)
    for k in range(150):
        d = (targets[k] - origins[k]) / np.linalg.norm(targets[k] - origins[k])
        p = np.cross(d, c - a)                              # of all triangles: intersection by determinants
        det = np.einsum("ij,ij->i", b - a, p)
        u = np.einsum("ij,ij->i", origins[k] - a, p) / det
        w = np.cross(origins[k] - a, b - a)
        v, t = w @ d / det, np.einsum("ij,ij->i", c - a, w) / det
        inside = (u >= -1e-12) & (v >= -1e-12) & (u + v <= 1 + 1e-12) & (t >= 0)
        np.testing.assert_allclose(hits.distance[k], t[inside].min(), rtol=1e-9)
    assert np.isinf(bk.raycast(m, m.neutral(), (5.0, 5.0, 1.0), (0, 0, -1)).distance)


def test_compiled_functions_have_ranges_through_the_model():
    """Beside `bk.raycast`, compiled and not; own shapes are not met."""
    m, _ = surroundings()
    m.add_link("head", "body", bk.Fixed(), position=(0, 0, 0.1), rotation=Rotation.from_rotvec((0.3, 0, 0)).as_matrix())
    q = np.concatenate([(0.1, 0.2, -0.1), Rotation.random(random_state=3).as_quat(scalar_first=True)])
    point, directions = (0.0, 0.1, 0.2), np.random.default_rng(9).normal(size=(4, 3))

    @bk.actuation
    def ranges(t, q, v, params, tau, model):
        for k in range(4):
            tau[k] = model.range("head", q, point, params[3 * k:3 * k + 3])
        tau[4] = model.range("ground", q, (20.0, 0.0, 0.0), (0.0, 0.0, -2.0))
    found = bk.raycast(m, q, point, directions, link="head").distance
    tau, model = np.zeros(6), bk.Model(m)
    ranges(0.0, q, np.zeros(6), directions.ravel(), tau, model)
    np.testing.assert_allclose(tau[:5], [*found, 2.5], rtol=1e-13)
    compiled = ranges.on(model).torque(0.0, q, np.zeros(6), directions.ravel(), 6)
    np.testing.assert_array_equal(compiled, tau)
    assert np.isfinite(found).any()


def test_batches_links_and_limits():
    m, _ = surroundings()
    m.add_link("head", "body", bk.Fixed(), position=(0, 0, 0.1))
    rng = np.random.default_rng(7)
    q = np.tile(m.neutral(), (5, 1))
    q[:, :3] = 0.3 * rng.normal(size=(5, 3))
    origin, directions = (0.0, 0.0, 0.2), rng.normal(size=(4, 3))
    many = bk.raycast(m, q, origin, directions, link="head")
    assert many.distance.shape == (5, 4)
    for k in range(5):
        R, x = bk.poses(m, q[k])["head"]
        one = bk.raycast(m, q[k], x + R @ origin, directions @ R.T, ignore=["body"])
        np.testing.assert_allclose(many.distance[k], one.distance, rtol=1e-12)
    down = bk.raycast(m, m.neutral(), (20.0, 0.0, 0.0), (0, 0, -3.0))
    assert down.name == "floor"
    assert abs(down.distance - 2.5) < 1e-15
    assert np.isinf(bk.raycast(m, m.neutral(), (20.0, 0.0, 0.0), (0, 0, -3.0), most=2.4).distance)
    with pytest.raises(bk.ShapeError, match="not zero"):
        bk.raycast(m, m.neutral(), (0, 0, 0), (0, 0, 0))
    with pytest.raises(bk.NamingError, match="did you mean 'head'"):
        bk.raycast(m, m.neutral(), (0, 0, 0), (1, 0, 0), link="heat")
    with pytest.raises(bk.ModelError, match="no shapes"):
        bk.raycast(bk.models.chain(2), np.zeros(2), (0, 0, 0), (1, 0, 0))
