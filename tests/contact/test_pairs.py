"""Pairs of shapes: gaps, normals and points are Coal's, and do not jump where nearest points do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import bunraku as bk
from bunraku.check import attack_contacts as check
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_entries import found_contacts
from bunraku.contact.separating_axes import FACE_FIRST
from bunraku.mechanism.shape_kinds import Plane

SHAPES = {c.SPHERE: bk.Sphere(0.25), c.CAPSULE: bk.Capsule(0.125, 1.0), c.BOX: bk.Box(1.0, 0.5, 0.25),
          c.POINTS: bk.Points([(0, 0, 0), (0.5, 0, 0), (0, 0.5, 0.5)]), c.PLANE: Plane(),
          c.HULL: bk.Hull([(0, 0, 0), (1, 0, 0), (0, 0.5, 0), (0.25, 0.25, 0.5), (1, 0.5, 0), (0.5, 0.25, 0.5)]),
          c.CYLINDER: bk.Cylinder(0.25, 0.5)}
MECHANISMS = {kinds: check.pair_of(*(SHAPES[kind] for kind in kinds)) for kinds in check.KINDS}
ROUNDED = 2.0 * check.ROUND  # [m] two gaps with cylinders: nearest points of curved sides are approached
UP = (1.0, 0.0, 0.0, 0.0)


def state(position, turn=UP, other=(0.0, 0.0, 0.0), other_turn=UP):
    return np.array([*position, *turn, *other, *other_turn], float)


def turned(axis, angle):
    return Rotation.from_rotvec(angle * np.array(axis, float)).as_quat()[[3, 0, 1, 2]]


def found(kinds, q):
    m = MECHANISMS[kinds]
    rows = found_contacts(m.plan("tree"), m.contact_pairs().arrays, q, 1e9)
    return rows[np.isfinite(rows[:, c.FOUND_GAP])]


def smallest(kinds, q):
    return found(kinds, q)[:, c.FOUND_GAP].min()


@pytest.mark.parametrize("kinds", check.KINDS, ids=lambda kinds: f"{kinds[0]}-{kinds[1]}")
def test_random_pairs_are_as_coal_has_them(kinds):
    pytest.importorskip("coal")
    for seed in (0, 1, 2) if c.KIND_OF[kinds] == c.CONVEX else (0, 1):
        assert max(check.pairs_of(kinds, seed).worst.values()) < (check.ROUND if c.CYLINDER in kinds else 1e-9)


def test_no_contact_of_a_capsule_is_nearer_than_its_nearest_points():
    """A contact beside the nearest ones was 1e-8 m nearer than they."""
    pytest.importorskip("coal")
    assert max(check.pairs_of((c.CAPSULE, c.BOX), 746).worst.values()) < 1e-9


def test_the_command_takes_every_kind_of_pair_and_boxes_and_hulls_most():
    pytest.importorskip("coal")
    for seed in (0, 1, 4):
        assert check.case(seed).worst


GRID = st.sampled_from([-1.0, -0.5, -0.25, -0.125, 0.0, 0.125, 0.25, 0.5, 1.0])
ANGLES = (0.25 * np.pi, 0.5 * np.pi, np.pi)
TURNS = st.sampled_from([UP, *(turned(axis, angle) for axis in np.eye(3) for angle in ANGLES), turned((1, 2, 3), 0.3)])
SMALL = st.sampled_from([1e-15, 1e-12, 1e-9, 1e-6, 1e-3])


@pytest.mark.parametrize("kinds", check.KINDS, ids=lambda kinds: f"{kinds[0]}-{kinds[1]}")
@settings(max_examples=60, deadline=None)
@given(place=st.tuples(GRID, GRID, GRID), turn=TURNS, way=st.tuples(GRID, GRID, GRID), size=SMALL)
def test_gaps_change_no_faster_than_shapes_move(kinds, place, turn, way, size):
    """Distance and depth are Lipschitz in shifts and turns, also where nearest points jump (aligned shapes)."""
    q = state(place, turn)
    moved, tilted = q.copy(), q.copy()
    moved[:3] += size * np.array(way)
    before, rounding = smallest(kinds, q), ROUNDED if kinds[1] == c.CYLINDER else 1e-13
    if c.KIND_OF[kinds] == c.CONVEX:  # faces come before edges that part as well to this accuracy
        rounding = max(rounding, 2.0 * FACE_FIRST)
    assert abs(smallest(kinds, moved) - before) <= size * np.linalg.norm(way) * (1 + 1e-9) + rounding
    tilt = Rotation.from_rotvec(size * np.array(way)) * Rotation.from_quat(q[[4, 5, 6, 3]])
    tilted[3:7] = tilt.as_quat()[[3, 0, 1, 2]]
    assert abs(smallest(kinds, tilted) - before) <= size * np.linalg.norm(way) * 2.0 + rounding


def test_an_axis_that_just_reaches_an_edge_of_a_box_is_at_the_edge():
    """The slope of the distance along the axis was exactly zero there: the contact was 6 cm away from it."""
    tilted = Rotation.from_rotvec(0.3 * np.array([1.0, 2.0, 3.0])).as_quat()[[3, 0, 1, 2]]
    for way in (0.0, -1e-15, 1e-15):
        gap = smallest((c.CAPSULE, c.BOX), state((-0.5 + way, 0.125, 0.125), tilted))
        assert gap == pytest.approx(-0.125, abs=1e-12)


@pytest.mark.parametrize("turn", [UP, turned((0, 0, 1), 0.5 * np.pi)])
def test_the_way_out_of_a_cylinder_with_the_same_axis_is_sideways(turn):
    for off in (0.0, 1e-12, 1e-6):
        gap = smallest((c.CAPSULE, c.CYLINDER), state((off, 0.0, 0.0), turn))
        assert gap == pytest.approx(off - 0.375, abs=1e-7)


@pytest.mark.parametrize("apart", [1e-9, 1.25e-7, 1e-6, 1e-4])
def test_a_capsule_just_above_the_side_of_a_cylinder_has_one_normal(apart):
    """From nearest points so close to each other it was 1e-4 off, and the end of the capsule 1e-4 m nearer."""
    turn = turned((1, 0, 0), 0.25 * np.pi)
    rows = found((c.CAPSULE, c.CYLINDER), state((-0.25 - apart, -0.5e-6, -0.25), turn))
    assert rows[:, c.FOUND_GAP] == pytest.approx(apart - 0.125, abs=1e-8)
    assert rows[:, c.FOUND_NORMAL] == pytest.approx(-1.0, abs=1e-9)


@pytest.mark.parametrize("kinds", check.KINDS, ids=lambda kinds: f"{kinds[0]}-{kinds[1]}")
@settings(max_examples=40, deadline=None)
@given(place=st.tuples(GRID, GRID, GRID), turn=TURNS)
def test_every_answer_is_finite_and_every_normal_a_unit_vector(kinds, place, turn):
    rows = found(kinds, state(place, turn))
    assert len(rows)
    assert np.isfinite(rows).all()
    assert np.abs(np.linalg.norm(rows[:, c.FOUND_NORMAL:c.FOUND_NORMAL + 3], axis=1) - 1.0).max() < 1e-12


@pytest.mark.parametrize("angle", [0.0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-4])
def test_parallel_capsules_touch_at_both_ends_of_the_part_they_share(angle):
    """A little tilt moves them a little; the nearest points alone would jump from end to end."""
    for sign in (-1.0, 1.0):
        rows = found((c.CAPSULE, c.CAPSULE), state((0.3, 0.0, 0.4), turned((0, 1, 0), sign * angle)))
        assert rows[:, c.FOUND_GAP] == pytest.approx(0.05, abs=2 * angle + 1e-14)
        assert np.abs(rows[:, c.FOUND_NORMAL:c.FOUND_NORMAL + 3] - (1, 0, 0)).max() < 2 * angle + 1e-14
        heights = rows[:, c.FOUND_POINT + 2]
        assert (heights.min(), heights.max()) == pytest.approx((-0.1, 0.5), abs=2 * angle + 1e-14)


@pytest.mark.parametrize("angle", [0.0, 1e-15, 1e-12, 1e-9, 1e-6])
@pytest.mark.parametrize("height", [0.25, 0.25 - 0.01, 0.1])  # touching, a little in it, with its axis in it
def test_a_capsule_on_a_box_touches_above_both_edges_of_the_face(angle, height):
    flat = Rotation.from_rotvec([0.0, angle, 0.0]) * Rotation.from_rotvec([0.5 * np.pi, 0.0, 0.0])  # along y
    rows = found((c.CAPSULE, c.BOX), state((0.0, 0.1, height), flat.as_quat()[[3, 0, 1, 2]]))
    assert rows[:, c.FOUND_GAP] == pytest.approx(height - 0.25, abs=2 * angle + 1e-14)
    y = rows[:, c.FOUND_POINT + 1]
    assert (y.min(), y.max()) == pytest.approx((-0.25, 0.25), abs=2 * angle + 1e-14)


def test_crossing_capsules_part_along_their_common_perpendicular():
    for height in (1e-3, 1e-9, 1e-11, 0.0):
        rows = found((c.CAPSULE, c.CAPSULE), state((0, 0, 0), turned((0, 1, 0), 1.0), (0, -height, 0)))
        assert rows[0, c.FOUND_GAP] == pytest.approx(height - 0.25, abs=1e-14)
        assert abs(rows[0, c.FOUND_NORMAL + 1]) == pytest.approx(1.0)


def test_concentric_spheres_and_a_sphere_on_an_axis_have_a_normal():
    assert smallest((c.SPHERE, c.SPHERE), state((0, 0, 0))) == -0.5
    row = found((c.SPHERE, c.CAPSULE), state((0, 0, 0.2)))[0]
    assert row[c.FOUND_GAP] == pytest.approx(-0.375)
    assert row[c.FOUND_NORMAL + 2] == pytest.approx(0.0)  # out of the side, not along the axis


@pytest.mark.parametrize("depth", [1e-3, 1e-9, 1e-11, 1e-15, 0.0, -1e-15, -1e-11, -1e-9, -1e-3])
def test_a_ball_goes_through_a_face_with_the_same_normal(depth):
    row = found((c.SPHERE, c.BOX), state((0.1, 0.1, 0.125 - depth)))[0]
    assert row[c.FOUND_GAP] == pytest.approx(-depth - 0.25, abs=1e-14)
    assert row[c.FOUND_NORMAL:c.FOUND_NORMAL + 3] == pytest.approx((0, 0, 1), abs=1e-12)


def test_a_box_flat_on_a_plane_touches_with_four_corners_and_a_plate_with_eight():
    for shape, corners in ((bk.Box(1.0, 0.5, 0.25), 4), (bk.Box(1.0, 0.5, 0.0), 8)):
        m = check.pair_of(shape, Plane())
        on = bk.contacts(m, state((0, 0, 0.5 * shape.z)))
        assert len(on) == corners
        assert np.abs(on.gap).max() < 1e-14
        assert np.abs(np.abs(on.point) - (0.5, 0.25, 0.0)).max() < 1e-14


def test_points_of_a_tilted_plane_and_of_one_on_a_moving_link():
    m = bk.Mechanism()
    m.add_link("tray", joint=bk.Revolute((0, 1, 0)), mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_link("stone", joint=bk.Free(), mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_plane("tray", (0, 0, 0.1), (0, 0, 2.0))
    m.add_shape("stone", bk.Points([(0, 0, 0), (0, 0, 1)]))
    q = m.neutral()
    q[0], q[1:4] = 0.3, (0.5, 0.2, 0.4)
    normal = np.array([np.sin(0.3), 0.0, np.cos(0.3)])
    touching = bk.contacts(m, q, margin=10.0)
    assert touching.gap == pytest.approx([q[1:4] @ normal - 0.1, q[1:4] @ normal + normal[2] - 0.1])
    assert touching.normal == pytest.approx(np.array([normal, normal]))
    on_stone, on_tray = touching[0].points
    assert on_stone == pytest.approx(q[1:4])
    assert on_tray @ normal == pytest.approx(0.1)


def test_pairs_that_are_far_apart_are_dropped_and_near_ones_are_not():
    """The margin changes which contacts are listed, never what they are."""
    rng = np.random.default_rng(3)
    for kinds, m in MECHANISMS.items():
        q = check.random_poses(rng, SHAPES[kinds[0]], SHAPES[kinds[1]], 40)
        for margin in (0.0, 0.05, 0.4):
            for near, all_of_them in zip(bk.contacts(m, q, margin), bk.contacts(m, q, 1e3), strict=True):
                expected = [k for k in all_of_them if k.gap <= margin]
                assert near.gap == pytest.approx([k.gap for k in expected], abs=1e-14)
                assert near.pair == [k.pair for k in expected]
