"""Shapes as parts of a mechanism: which pairs may touch, and that they stay through copies, cuts and files."""

import copy
import json
import pickle

import numpy as np
import pytest

import bunraku as bk
from bunraku.contact import contact_fields as c
from bunraku.mechanism.describe import describe, rebuild


def row_of_balls(joint, count=3, **options):
    """Balls of radius 1 in a row, each overlapping the next ones."""
    m = bk.Mechanism()
    for k in range(count):
        m.add_link(f"ball{k}", f"ball{k - 1}" if k else "ground", joint if k else bk.Free(), position=(0.5, 0, 0),
                   mass=1.0, inertia=(0.1, 0.1, 0.1))
        m.add_shape(f"ball{k}", bk.Sphere(1.0), **options)
    return m


def pairs(m):
    return {frozenset(contact.pair) for contact in bk.contacts(m, m.neutral(), margin=10.0)}


def test_links_that_a_joint_joins_do_not_touch():
    assert pairs(row_of_balls(bk.Revolute((0, 1, 0)))) == {frozenset(("ball0", "ball2"))}


def test_links_fixed_to_each_other_are_one_body():
    m = row_of_balls(bk.Fixed(), 2)
    m.add_link("last", "ball1", bk.Spherical(), mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_shape("last", bk.Sphere(1.0))
    assert not pairs(m)  # ball0 and ball1 are one, and the neighbour of last


def test_loose_links_touch_until_a_connection_joins_them():
    m = row_of_balls(bk.Free(), 2)
    assert pairs(m) == {frozenset(("ball0", "ball1"))}
    m.connect("ball0", "ball1", bk.Spherical(), name="tie")
    assert not pairs(m)
    m.cut("tie")
    assert pairs(m) == {frozenset(("ball0", "ball1"))}


def test_the_ground_is_nobodys_neighbour():
    m = bk.Mechanism()
    m.add_link("pendulum", "ground", bk.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    m.add_shape("pendulum", bk.Sphere(0.1), (0, 0, -1))
    m.add_plane()
    assert bk.contacts(m, [0.0], margin=0.0)[0].gap == pytest.approx(-1.1)


def test_a_cut_joint_joins_no_more():
    m = row_of_balls(bk.Revolute((0, 1, 0)), 2)
    assert not m.may_touch()
    m.cut("ball1")
    assert m.may_touch()


def test_exclude_and_its_opposite():
    m = row_of_balls(bk.Revolute((0, 1, 0)))
    m.exclude("ball2", "ball0")
    assert not m.may_touch()
    m.exclude("ball0", "ball1", False)  # neighbours, that touch all the same
    assert pairs(m) == {frozenset(("ball0", "ball1"))}


def test_masks_let_a_group_touch_others_but_not_itself():
    m = row_of_balls(bk.Revolute((0, 1, 0)), group=2, meets=1)
    assert not m.may_touch()
    m.add_plane()
    assert pairs(m) == {frozenset((f"ball{k}", "ground")) for k in range(3)}


def test_surfaces_of_a_pair():
    m = row_of_balls(bk.Free(), 2, friction=0.2, restitution=0.1)
    m.add_plane(friction=0.8, restitution=0.6)
    contact = next(k for k in bk.contacts(m, m.neutral(), 10.0) if "ground" in k.pair)
    assert contact.friction == pytest.approx(0.4)  # geometric mean
    assert contact.restitution == 0.6              # the larger
    assert contact.links[1] == "ground"


def test_pairs_without_contact_are_refused_by_name_and_only_if_they_may_touch(monkeypatch):
    m = bk.Mechanism()
    for name in ("left", "right"):
        m.add_link(name, joint=bk.Free(), mass=1.0, inertia=(0.1, 0.1, 0.1))
        m.add_shape(name, bk.Box(1, 1, 1))
    monkeypatch.setattr(c, "KIND_OF", {})
    with pytest.raises(bk.ModelError, match=r"'left' and 'right'.*a Box and a Box is not supported; m\.exclude"):
        bk.contacts(m, m.neutral())
    m.exclude("left", "right")
    assert len(bk.contacts(m, m.neutral())) == 0


@pytest.mark.parametrize(("make", "text"), [
    (lambda: bk.Hull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]), "Hull: its points lie in a plane.*bk.Points"),
    (lambda: bk.Hull([(0, 0, np.nan)]), r"Hull: point 0 is .*finite"),
    (lambda: bk.Hull("corners"), r"Hull: points must be an array \(n, 3\)"),
    (lambda: bk.Cylinder(0.0, 1.0), "Cylinder: radius"),
    (lambda: bk.Cylinder(1.0, -1.0), "Cylinder: length"),
    (lambda: bk.Heightfield([1.0, 2.0], (1, 1)), r"heights must be an array \(nx, ny\)"),
    (lambda: bk.Heightfield([[0, 0], [np.inf, 0]], (1, 1)), r"heights\[1, 0\] is inf"),
    (lambda: bk.Heightfield(np.zeros((3, 3)), 2.0), r"extent must be \(x, y\)"),
    (lambda: bk.Heightfield(np.zeros((3, 3)), (2.0, 0.0)), "extent y"),
])
def test_wrong_shapes_are_refused_with_the_remedy(make, text):
    with pytest.raises(bk.ModelError, match=text):
        make()


def test_a_hull_is_its_vertices_and_merges_triangles_of_a_face():
    grid = np.array(np.meshgrid(*3 * [(-1.0, 0.0, 1.0)])).reshape(3, -1).T
    hull = bk.Hull(grid)
    assert len(hull.points) == 8
    rows, (vertices, faces, edges, corners) = hull.rows()
    assert (vertices, faces, edges, corners) == (8, 6, 12, 4)
    assert "8 points" in repr(hull)


def test_shapes_stay_through_copies_changes_and_files():
    m = row_of_balls(bk.Revolute((0, 1, 0)))
    m.add_shape("ball1", bk.Points([(0, 0, 1.0), (0, 0.1, 1.0)]), (0, 0, 1), np.diag((1.0, -1.0, -1.0)), 0.9, 0.2)
    m.add_shape("ground", bk.Capsule(0.1, 2.0), (0, 0, 0.5), name="bar", group=4, meets=5)
    m.add_shape("ball1", bk.Hull(np.random.default_rng(0).normal(size=(9, 3))), name="stone")
    m.add_shape("ball0", bk.Cylinder(0.1, 0.3), name="wheel")
    m.add_shape("ground", bk.Heightfield([[0, 1, 0], [0, 0, 0.5]], (2, 3)), name="hills")
    m.add_plane("ball2", (0, 0, -1), (1, 2, 3))
    m.exclude("ball0", "ball2")
    for twin in (m.copy(), copy.deepcopy(m), pickle.loads(pickle.dumps(m)), m.with_link("ball1", mass=3.0),
                 m.with_joint("ball1", damping=1.0), rebuild(json.loads(json.dumps(describe(m))))):
        assert describe(twin)["shapes"] == describe(m)["shapes"]
        assert describe(twin)["excluded"] == describe(m)["excluded"]
        assert pairs(twin) == pairs(m)
    twin = m.copy()
    twin.add_plane(name="floor")
    twin.cut("ball1")
    assert "floor" not in m.shapes
    assert list(twin.shapes) == [*m.shapes, "floor"]


def test_files_from_before_there_were_shapes_are_read():
    data = describe(row_of_balls(bk.Free()))
    del data["shapes"], data["excluded"]
    assert not rebuild(data).shapes


def test_a_changed_copy_of_a_shape():
    m = row_of_balls(bk.Free(), 2)
    twin = m.with_shape("ball0", shape=bk.Sphere(0.25), friction=0.0, position=(0, 0, 5.0))
    assert m.shapes["ball0"].friction == 0.5
    assert twin.shapes["ball0"].friction == 0.0
    assert bk.contacts(twin, m.neutral(), 10.0)[0].gap > 3.0


def test_a_trajectory_file_keeps_the_shapes(tmp_path):
    m = row_of_balls(bk.Revolute((0, 1, 0)), group=2)
    tr = bk.Simulation(m, solver="rk4", step=0.01).run(0.02)
    tr.save(tmp_path / "run.npz")
    again = bk.load_trajectory(tmp_path / "run.npz").segments[0].mechanism
    assert describe(again)["shapes"] == describe(m)["shapes"]


@pytest.mark.parametrize("figure", [bk.models.human(dof=16), bk.models.human(dof=34), bk.models.human(dof=48),
                                    bk.models.human(dof=48, height=1.2, mass=25.0), bk.models.humanoid()],
                         ids=lambda m: m.name)
def test_figures_stand_on_their_soles_and_nothing_else(figure):
    m = figure.copy()
    assert not m.may_touch()  # alone
    m.add_plane()
    standing = bk.contacts(m, m.neutral(), margin=1e-12)
    assert {name.split("_", 1)[1] for name, _ in standing.pair} <= {"foot", "toes", "ankle_roll"}
    assert np.abs(standing.gap).max() < 1e-14
    com = bk.kinematics(m, m.neutral()).com
    assert (standing.point.min(axis=0)[:2] < com[:2]).all()
    assert (com[:2] < standing.point.max(axis=0)[:2]).all()  # above its feet
    assert bk.contacts(m, m.neutral(), margin=10.0).gap.max() < 2.0


def test_a_batch_is_its_states_one_by_one():
    m = bk.models.human(dof=34)
    m.add_plane()
    rng = np.random.default_rng(0)
    Q = np.array([m.integrate(m.neutral(), 0.3 * rng.normal(size=m.nv)) for _ in range(21)])
    for many, q in zip(bk.contacts(m, Q, 0.2), Q, strict=True):
        one = bk.contacts(m, q, 0.2)
        assert many.pair == one.pair
        assert many.gap == pytest.approx(one.gap, abs=1e-13)
        assert many.point == pytest.approx(one.point, abs=1e-13)


def test_contacts_are_listed_by_gap_and_read_as_text():
    m = bk.models.human(dof=34)
    m.add_plane(point=(0, 0, 0.01))
    found = bk.contacts(m, m.neutral())
    assert (np.diff(found.gap) >= 0).all()
    assert "left_foot - ground: gap -0.01 m at (" in repr(found)
    assert repr(bk.contacts(m, m.neutral() + np.eye(m.nq)[2])) == "no contacts within 0.001 m"


def test_a_state_without_an_answer_is_refused():
    m = bk.models.human(dof=34)
    m.add_plane()
    q = m.neutral()
    q[0] = np.nan
    with pytest.raises(bk.StateError, match=r"q\[0\] of joint 'root' is nan"):
        bk.contacts(m, q)
    with pytest.raises(bk.StateError, match=r"1 of 2 states"):
        bk.contacts(m, np.array([m.neutral(), q]))
    q = m.neutral()
    q[3] = 0.0
    with pytest.raises(bk.StateError, match=r"quaternion of joint 'root'.*is zero"):
        bk.contacts(m, q)
    far = m.neutral() + 1e3 * np.eye(m.nq)[2]
    with pytest.raises(bk.StateError, match="1 of 3 states"):  # in a lane with states in which nothing is near
        bk.contacts(m, np.array([far, q, far]))


def test_solvers_that_do_not_resolve_contact_are_refused():
    m = bk.models.human(dof=16)
    bk.Simulation(m, solver="rk4", step=0.01)  # nothing that could touch: nothing to say
    m.add_plane()
    for solver, more in (("rk4", {"step": 0.01}), ("implicit", {})):
        with pytest.raises(bk.ModelError, match=f"'{solver}' does not resolve contact"):
            bk.Simulation(m, solver=solver, **more)
