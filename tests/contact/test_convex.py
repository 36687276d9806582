"""Boxes, hulls and cylinders on each other: contacts at corners that do not jump, stacks that stand."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import bunraku as bk
from bunraku.check import attack_contacts as check
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_entries import found_contacts

BOX, PLATE = bk.Box(0.4, 0.4, 0.2), bk.Box(1.0, 1.0, 0.2)
CUBE = 0.1 * np.array(np.meshgrid(*3 * [(-1.0, 1.0)])).reshape(3, -1).T
LIKE_BOX = bk.Hull(CUBE * (2, 2, 1))


def state(position, turn=None, other=(0.0, 0.0, 0.0)):
    turn = Rotation.identity() if turn is None else turn
    return np.array([*position, *turn.as_quat()[[3, 0, 1, 2]], *other, 1.0, 0.0, 0.0, 0.0])


def touching(m, q, margin=1e-3):
    return bk.contacts(m, q, margin)


@pytest.mark.parametrize("tilt", [0.0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-4])
@pytest.mark.parametrize("height", [0.2 + 1e-4, 0.2, 0.2 - 1e-9, 0.2 - 1e-4])
@pytest.mark.parametrize("shapes", [(BOX, PLATE), (LIKE_BOX, PLATE), (LIKE_BOX, bk.Hull(CUBE * (5, 5, 1)))],
                         ids=["boxes", "hull on box", "hulls"])
def test_a_box_on_a_plate_touches_at_its_four_corners_also_if_tilted_a_little(shapes, height, tilt):
    m = check.pair_of(*shapes)
    for axis in ((1, 0, 0), (1, 2, 0), (0.3, -1, 0.5)):
        on = touching(m, state((0.1, 0.05, height), Rotation.from_rotvec(tilt * np.array(axis) / np.linalg.norm(axis))))
        assert len(on) == 4
        assert on.gap == pytest.approx(height - 0.2, abs=0.6 * tilt + 1e-14)
        corners = on.point[np.lexsort(np.round(on.point[:, :2], 3).T)][:, :2]
        assert corners == pytest.approx(np.array([(-0.1, -0.15), (0.3, -0.15), (-0.1, 0.25), (0.3, 0.25)]),
                                        abs=2 * tilt + 1e-12)
        up = 1.0 if on.pair[0] == ("a", "b") else -1.0
        assert np.abs(on.normal - (0, 0, up)).max() < 2 * tilt + 1e-14


@pytest.mark.parametrize("shift", [(0.0, 0.0), (1e-12, 0.0), (1e-8, -1e-8), (1e-6, 0), (1e-5, 2e-5), (0.01, 0.02),
                                   (0.2, 0.0), (0.25, 0.3)])
def test_equal_boxes_share_a_rectangle(shift):
    """Aligned edges and corners on top of each other are no special case: the corners of the shared part touch."""
    m = check.pair_of(BOX, BOX)
    on = touching(m, state((*shift, 0.2 - 1e-6)))
    low, high = np.maximum(-0.2, -0.2 + np.array(shift)), np.minimum(0.2, 0.2 + np.array(shift))
    assert 4 <= len(on) <= 8
    assert on.gap == pytest.approx(-1e-6)
    assert on.point[:, :2].min(axis=0) == pytest.approx(low, abs=1e-6)
    assert on.point[:, :2].max(axis=0) == pytest.approx(high, abs=1e-6)
    assert len(np.unique(np.round(on.point, 5), axis=0)) == len(on)  # none twice


def test_a_turned_box_shares_an_octagon_with_another():
    m = check.pair_of(BOX, BOX)
    on = touching(m, state((0, 0, 0.2), Rotation.from_euler("z", 45, degrees=True)))
    assert len(on) == 8
    assert np.linalg.norm(on.point[:, :2], axis=1) == pytest.approx(0.2 / np.cos(np.pi / 8))


def test_edges_that_cross_touch_at_one_point():
    turn = Rotation.from_euler("x", 45, degrees=True)
    lower = Rotation.from_euler("y", 45, degrees=True)
    m = check.pair_of(bk.Box(1, 0.2, 0.2), bk.Box(0.2, 1, 0.2))
    for gap in (1e-4, 1e-7, -1e-7, -1e-3):
        q = state((0.03, 0.02, 0.2 * np.sqrt(2) + gap), turn)
        q[10:] = lower.as_quat()[[3, 0, 1, 2]]
        on = touching(m, q, 0.01)
        assert len(on) == 1
        assert on.gap == pytest.approx(gap, abs=1e-12)
        assert on.normal[0] == pytest.approx((0, 0, 1), abs=1e-8)
        assert on.point[0] == pytest.approx((0, 0.02, 0.1 * np.sqrt(2) + 0.5 * gap), abs=1e-9) or \
            on.point[0] == pytest.approx((0.03, 0.02, 0.1 * np.sqrt(2) + 0.5 * gap), abs=0.04)


@pytest.mark.parametrize("shape", [BOX, LIKE_BOX], ids=["box", "hull"])
def test_contacts_keep_their_places_while_a_box_slides_and_tilts(shape):
    """Every contact moves a little when the box does: neither its point nor its place among the contacts jumps."""
    m = check.pair_of(shape, PLATE)
    arrays, plan = m.contact_pairs().arrays, m.plan("tree")
    rng, before = np.random.default_rng(0), None
    q = np.array([0.0, 0.0, 0.2, 0, 0, 0])
    for _ in range(200):
        q += 1e-3 * rng.normal(size=6) * (1, 1, 0.1, 0.1, 0.1, 1)
        q[3:5] = np.clip(q[3:5], -0.005, 0.005)
        rows = found_contacts(plan, arrays, state(q[:3], Rotation.from_rotvec(q[3:])), 1e9)
        there = np.isfinite(rows[:, c.FOUND_GAP])
        if before is not None:
            assert (there == before[1]).all()
            assert np.abs(rows[there, c.FOUND_POINT:] - before[0][there, c.FOUND_POINT:]).max() < 0.02
        before = rows, there


def test_a_box_on_an_edge_and_on_a_corner():
    m = check.pair_of(bk.Box(0.2, 0.2, 0.2), PLATE)
    edge = touching(m, state((0, 0, 0.1 + 0.1 * np.sqrt(2)), Rotation.from_euler("x", 45, degrees=True)))
    assert edge.point[:, 0] == pytest.approx([0.1, -0.1]) or edge.point[:, 0] == pytest.approx([-0.1, 0.1])
    assert np.abs(edge.gap).max() < 1e-12
    corner = touching(m, state((0, 0, 0.1 + 0.1 * np.sqrt(3)), Rotation.align_vectors([(0, 0, 1)], [(1, 1, 1)])[0]))
    assert len(corner) == 1
    assert corner.point[0] == pytest.approx((0, 0, 0.1), abs=1e-9)


def test_a_cylinder_stands_on_its_rim_and_lies_on_a_line():
    for below in (check.Plane(), PLATE, bk.Hull(CUBE * (5, 5, 1)), bk.Cylinder(0.6, 0.2)):
        top = 0.0 if isinstance(below, check.Plane) else 0.1
        m = check.pair_of(bk.Cylinder(0.1, 0.3), below)
        on = touching(m, state((0.01, 0.02, top + 0.15)))
        assert len(on) == c.RIM
        assert np.linalg.norm(on.point[:, :2] - (0.01, 0.02), axis=1) == pytest.approx(0.1)
        assert np.abs(on.gap).max() < 1e-12
        lying = touching(m, state((0.0, 0.0, top + 0.1), Rotation.from_euler("y", 90, degrees=True)))
        assert sorted(lying.point[:, 0]) == pytest.approx([-0.15, 0.15])
        assert np.abs(lying.gap).max() < 1e-9


def test_a_capsule_lies_on_a_hull_with_both_ends():
    m = check.pair_of(bk.Capsule(0.05, 0.3), bk.Hull(CUBE * (5, 1, 1)))
    flat = Rotation.from_euler("y", 90, degrees=True)
    on = touching(m, state((0.4, 0.0, 0.15), flat))  # one end is beyond the edge
    assert sorted(on.point[:, 0]) == pytest.approx([0.25, 0.5])
    assert np.abs(on.gap).max() < 1e-12


def test_a_batch_of_convex_pairs_is_its_states_one_by_one():
    rng = np.random.default_rng(5)
    for shapes in ((BOX, PLATE), (LIKE_BOX, bk.Cylinder(0.2, 0.3))):
        m = check.pair_of(*shapes)
        Q = check.random_poses(rng, *shapes, 11)
        for many, q in zip(bk.contacts(m, Q, 0.2), Q, strict=True):
            one = bk.contacts(m, q, 0.2)
            assert many.gap == pytest.approx(one.gap, abs=1e-14)
            assert many.point == pytest.approx(one.point, abs=1e-14)


def stack(shape, count, shift=0.0):
    m, rng = bk.Mechanism(), np.random.default_rng(1)
    for k in range(count):
        m.add_link(f"part{k}", joint=bk.Free(), mass=1.0, inertia=(0.007, 0.007, 0.007))
        m.add_shape(f"part{k}", shape)
    m.add_plane()
    q = m.neutral()
    for k in range(count):
        q[m.q_slice(f"part{k}")][:3] = *(shift * rng.normal(size=2)), 0.1 + 0.2 * k
    return m, q


@pytest.mark.parametrize(("shape", "count", "shift"), [
    (bk.Box(0.2, 0.2, 0.2), 8, 0.0), (bk.Box(0.2, 0.2, 0.2), 5, 0.01), (bk.Hull(CUBE), 5, 0.01),
    (bk.Cylinder(0.1, 0.2), 3, 0.01)], ids=["boxes", "shifted boxes", "hulls", "cylinders"])
def test_a_stack_stands_still(shape, count, shift):
    m, q = stack(shape, count, shift)
    tr = bk.Simulation(m, q, solver="symplectic_euler", step=2e-3).run(1.0)
    assert np.abs(tr.q - q).max() < 1e-10
    weight = bk.dynamics(m, q, np.zeros(m.nv)).contacts
    on_ground = [k for k in weight if "ground" in k.links]
    assert sum(k.force[2] for k in on_ground) == pytest.approx(9.81 * count, rel=1e-3)


def test_a_stack_that_leans_too_far_falls():
    m, q = stack(bk.Box(0.2, 0.2, 0.2), 4)
    for k in range(4):
        q[m.q_slice(f"part{k}")][0] = 0.06 * k  # three of them lean 0.12 m beyond the middle of the lowest
    tr = bk.Simulation(m, q, solver="symplectic_euler", step=2e-3).run(1.0)
    assert tr.q[-1, m.q_slice("part3")][2] < 0.5


def dropped(shape, ground, solver, until, **options):
    m = bk.Mechanism()
    m.add_link("stone", joint=bk.Free(), mass=1.0, inertia=(0.005, 0.007, 0.009))
    m.add_shape("stone", shape, friction=0.6)
    m.add_shape("ground", ground, (0, 0, -0.1), friction=0.6)
    q = m.neutral()
    q[2], q[3:7] = 0.5, Rotation.random(random_state=2).as_quat()[[3, 0, 1, 2]]
    tr = bk.Simulation(m, q, [0.5, 0.2, 0, 2, 3, 1], solver=solver, **options).run(until)
    energy = [0.5 * v @ bk.mass_matrix(m, q) @ v + 9.81 * q[2] for q, v in zip(tr.q[::20], tr.v[::20], strict=True)]
    return m, tr, np.array(energy)


ROUGH = np.random.default_rng(0).normal(size=(25, 3))
STONE = bk.Hull(np.array([0.15, 0.105, 0.075]) * ROUGH / np.linalg.norm(ROUGH, axis=1)[:, None])


@pytest.mark.parametrize("ground", [bk.Box(4, 4, 0.2), bk.Hull(CUBE * (20, 20, 1))], ids=["box", "hull"])
def test_a_stone_tumbles_and_comes_to_rest(ground):
    m, tr, energy = dropped(STONE, ground, "symplectic_euler", 4.0, step=2e-3)
    assert np.abs(tr.v[-1]).max() < 1e-9
    assert np.diff(energy).max() < 1e-9
    assert len(bk.contacts(m, tr.q[-1])) == 3
    assert min(bk.contacts(m, q).gap.min(initial=0.0) for q in tr.q[::10]) > -1e-4


def test_a_box_falls_on_another_by_events():
    m, tr, energy = dropped(bk.Box(0.2, 0.3, 0.1), bk.Box(4, 4, 0.2), "tsit5", 3.0)
    assert np.abs(tr.v[-1]).max() < 1e-9
    assert np.diff(energy).max() < 1e-6
    assert len(bk.contacts(m, tr.q[-1])) == 4
    assert min(bk.contacts(m, q).gap.min(initial=0.0) for q in tr.q[::10]) > -1e-7


def test_a_box_slides_down_a_box_as_on_a_plane_by_events():
    """Speed on a slope is g (sin - mu cos) t, whatever the contacts are made of."""
    slope, mu = 0.5, 0.3
    turn = Rotation.from_rotvec((0, slope, 0))
    m = bk.Mechanism()
    m.add_link("crate", joint=bk.Free(), mass=2.0, inertia=(0.02, 0.02, 0.02))
    m.add_shape("crate", bk.Box(0.2, 0.2, 0.1), friction=mu)
    m.add_shape("ground", bk.Box(4, 4, 0.2), turn.apply((0, 0, -0.1)), turn.as_matrix(), friction=mu)
    q = m.neutral()
    q[:3], q[3:7] = turn.apply((0, 0, 0.05)), turn.as_quat()[[3, 0, 1, 2]]
    tr = bk.Simulation(m, q, solver="tsit5").run(0.5)
    assert tr.v[-1, 0] == pytest.approx(9.81 * (np.sin(slope) - mu * np.cos(slope)) * 0.5, rel=1e-9)


def test_a_cylinder_rolls_down_a_box_by_events():
    """Without slip, a = g sin / (1 + J / (m r^2)) on a slope."""
    slope, r = 0.2, 0.1
    turn = Rotation.from_rotvec((0, slope, 0))
    m = bk.Mechanism()
    m.add_link("roll", joint=bk.Free(), mass=2.0, inertia=(0.02, 0.02, 0.01))
    m.add_shape("roll", bk.Cylinder(r, 0.3), friction=0.8)
    m.add_shape("ground", bk.Box(8, 4, 0.2), turn.apply((0, 0, -0.1)), turn.as_matrix(), friction=0.8)
    q = m.neutral()
    flat = turn * Rotation.from_euler("x", 90, degrees=True)
    q[:3], q[3:7] = turn.apply((0, 0, r)), flat.as_quat()[[3, 0, 1, 2]]
    tr = bk.Simulation(m, q, solver="tsit5").run(1.0)
    speed = np.linalg.norm(bk.kinematics(m, tr.q[-1], tr.v[-1]).velocities["roll"][:3])
    assert speed == pytest.approx(9.81 * np.sin(slope) / (1 + 0.01 / (2.0 * r * r)), rel=1e-6)


def prism(radius):
    """A flat shape on three corners."""
    angle = 2 * np.pi / 3 * np.arange(3)
    return bk.Hull([(radius * np.cos(x), radius * np.sin(x), z) for x in angle for z in (-0.1, 0.1)])


@pytest.mark.parametrize(("lower", "upper", "friction"), [
    (bk.Box(0.2, 0.2, 0.2), bk.Box(0.2, 0.2, 0.2), 0.0), (prism(0.3), prism(0.1), 0.5)], ids=["boxes", "tripods"])
def test_a_rollout_in_lanes_is_the_simulation(lower, upper, friction):
    """Of motions that the law determines: friction of a box that turns on four corners depends on which of them carry
    it, so that solutions of the law differ by 1e-4 rad/s and rounding chooses one."""
    m = bk.Mechanism()
    for name, shape in (("lower", lower), ("upper", upper)):
        m.add_link(name, joint=bk.Free(), mass=1.0, inertia=(0.007, 0.007, 0.007))
        m.add_shape(name, shape, friction=friction)
    m.add_plane(friction=friction)
    q = m.neutral()
    q[[2, 7, 8, 9]] = 0.11, 0.02, -0.01, 0.35
    rng = np.random.default_rng(3)
    Q, V = np.tile(q, (5, 1)), 0.5 * rng.normal(size=(5, m.nv))
    many = bk.rollout(m, Q, V, until=0.15, solver="symplectic_euler", step=2e-3)
    for k in range(5):
        one = bk.Simulation(m, Q[k], V[k], solver="symplectic_euler", step=2e-3).run(0.15)
        assert many.q[k, -1] == pytest.approx(one.q[-1], abs=1e-9)
