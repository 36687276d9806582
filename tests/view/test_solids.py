"""Surfaces of links: closed, seen from outside, and of the size that their shapes have."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.mechanism import Visual
from bunraku.view import Figure, shape_solids, solids
from bunraku.view.figure import FIXTURE, LEFT, MIDDLE, RIGHT


def volume(solid):
    """By the divergence theorem; positive only if faces are seen from outside."""
    a, b, c = solid.vertices[solid.faces].transpose(1, 0, 2)
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)


def edges_are_shared_by_two(solid):
    edges = np.concatenate([solid.faces[:, [0, 1]], solid.faces[:, [1, 2]], solid.faces[:, [2, 0]]])
    return {tuple(e) for e in edges} == {tuple(e[::-1]) for e in edges} and len({tuple(e) for e in edges}) == len(edges)


@pytest.mark.parametrize("mechanism", [bk.models.human(dof=34), bk.models.chain(150), bk.models.humanoid()],
                         ids=["human", "long chain", "humanoid"])
def test_every_solid_is_closed_and_seen_from_outside(mechanism):
    found = solids(mechanism)
    assert [s.link for s in found] == [part.link for part in Figure(mechanism).parts]
    for solid in found:
        assert edges_are_shared_by_two(solid)
        assert volume(solid) > 0
        assert solid.faces.dtype == np.int32
        assert solid.faces.max() == len(solid.vertices) - 1


def test_vertices_lie_on_the_balls_that_the_filmstrip_outlines():
    figure = bk.models.human(dof=16)
    for part, solid in zip(Figure(figure).parts, solids(figure), strict=True):
        if part.axes is None:
            away = np.linalg.norm(solid.vertices[:, None] - part.centres, axis=2) - part.radii
            assert np.abs(away).min(axis=1).max() < 1e-12
        else:
            inside = np.linalg.solve(part.axes, (solid.vertices - part.centres[0]).T)
            assert np.allclose(np.linalg.norm(inside, axis=0), 1)


def test_sides_are_those_of_the_figure():
    sides = {s.link: s.side for s in solids(bk.models.human(dof=16))}
    assert sides["left_hand"] == LEFT
    assert sides["right_hand"] == RIGHT
    assert sides["head"] == MIDDLE
    m = bk.Mechanism()
    m.add_link("bar", "ground", bk.Revolute((0, 1, 0)), mass=1, com=(0, 0, -1))
    m.add_link("ball", "ground", bk.Free(), mass=1, inertia=(0.1, 0.1, 0.1))
    assert [s.side for s in solids(m)] == [FIXTURE, MIDDLE]


def drawn(*visuals):
    m = bk.Mechanism()
    m.add_link("a", "ground", bk.Free(), mass=1, inertia=(0.1, 0.1, 0.1), visuals=visuals)
    m.add_link("frame", "a", bk.Fixed(), mass=0.1, position=(1, 0, 0))
    return m


ROUND = 0.93  # a polyhedron with its corners on the surface has less volume


@pytest.mark.parametrize(("shape", "size", "exact", "least"), [
    ("box", (1.0, 2.0, 3.0), 6.0, 1.0),
    ("sphere", (0.5,), 4 / 3 * np.pi * 0.5**3, ROUND),
    ("cylinder", (0.5, 2.0), np.pi * 0.5**2 * 2, ROUND),
    ("capsule", (0.5, 2.0), np.pi * 0.5**2 * 2 + 4 / 3 * np.pi * 0.5**3, ROUND),
    ("ellipsoid", (0.5, 1.0, 2.0), 4 / 3 * np.pi, ROUND),
])
def test_visuals_have_the_volume_of_their_shape_and_their_place(shape, size, exact, least):
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    (solid,) = solids(drawn(Visual(shape, size, np.array([1.0, 2.0, 3.0]), turn, (1.0, 0.0, 0.0, 1.0))))
    assert least * exact - 1e-12 <= volume(solid) <= exact + 1e-12
    assert np.allclose((solid.vertices.min(axis=0) + solid.vertices.max(axis=0)) / 2, [1, 2, 3])
    assert solid.colour == (1.0, 0.0, 0.0, 1.0)
    assert edges_are_shared_by_two(solid)


def test_a_mesh_is_read_with_its_scale_and_mirrored_faces_stay_outside(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    file = tmp_path / "box.stl"
    trimesh.creation.box((1, 1, 1)).export(file)
    (solid,) = solids(drawn(Visual("mesh", (-1.0, 2.0, 3.0), np.zeros(3), np.eye(3), mesh=str(file))))
    assert np.isclose(volume(solid), 6)


@pytest.mark.parametrize("content", [None, b"no mesh"])
def test_a_mesh_that_cannot_be_read_is_said_and_drawn_round(tmp_path, content):
    file = tmp_path / "arm.stl"
    if content is not None:
        file.write_bytes(content)
    with pytest.warns(bk.LoadWarning, match=r"arm\.stl.*drawn as rounded"):
        found = solids(drawn(Visual("mesh", (1.0, 1.0, 1.0), np.zeros(3), np.eye(3), mesh=str(file))))
    assert {s.link for s in found} == {"a"}


def test_shapes_for_contact_as_surfaces():
    m = bk.Mechanism()
    m.add_link("a", "ground", bk.Free(), mass=1, inertia=(0.1, 0.1, 0.1))
    m.add_shape("a", bk.Box(1, 2, 3), (0, 0, 1))
    m.add_shape("a", bk.Sphere(0.5))
    m.add_shape("ground", bk.Capsule(0.1, 1.0))
    m.add_shape("a", bk.Points([*np.eye(3).tolist(), (0, 0, 0)]))
    m.add_plane()
    box, ball, capsule, corner = shape_solids(m)
    assert (box.link, ball.link, capsule.link) == ("a", "a", "ground")
    assert [volume(s) for s in (box, ball, capsule, corner)] == pytest.approx(
        [6.0, np.pi / 6, np.pi * 0.01 * (1 + 4 * 0.1 / 3), 1 / 6], rel=0.1)
    assert box.vertices.mean(axis=0) == pytest.approx((0, 0, 1))


def test_cylinders_hulls_and_height_fields_as_surfaces():
    m = bk.Mechanism()
    m.add_link("a", "ground", bk.Free(), mass=1, inertia=(0.1, 0.1, 0.1))
    m.add_shape("a", bk.Cylinder(0.5, 2.0), (0, 0, 1))
    m.add_shape("a", bk.Hull([*np.eye(3).tolist(), (0, 0, 0)]))
    m.add_shape("ground", bk.Heightfield([[0, 1], [1, 0], [0, 0]], (2, 1)), (0, 0, 3))
    cylinder, corner, hills = shape_solids(m)
    assert [volume(s) for s in (cylinder, corner)] == pytest.approx([np.pi / 2, 1 / 6], rel=0.1)
    assert hills.vertices.min(axis=0) == pytest.approx((-1, -0.5, 3))
    assert hills.vertices.max(axis=0) == pytest.approx((1, 0.5, 4))
    a, b, c = hills.vertices[hills.faces].transpose(1, 0, 2)
    assert (np.cross(b - a, c - a)[:, 2] > 0).all()
    assert sum(s.link == "ground" and len(s.faces) == 4 for s in solids(m)) == 1


def test_a_link_with_one_cylinder_is_drawn_as_it():
    m = bk.Mechanism()
    m.add_link("a", "ground", bk.Free(), mass=1, inertia=(0.1, 0.1, 0.1))
    m.add_shape("a", bk.Cylinder(0.5, 2.0))
    (drawn_link,) = solids(m)
    assert volume(drawn_link) == pytest.approx(np.pi / 2, rel=0.1)
