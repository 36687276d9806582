"""Collision shapes of model files: their poses, and the warnings for approximated ones."""

import warnings

import numpy as np
import pytest

import bunraku as bk

BODY = "<inertial><mass value='1'/><inertia ixx='.1' iyy='.1' izz='.1'/></inertial>"


def loaded(path, text, **options):
    path.write_text(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return bk.load(path, **options), [str(warning.message) for warning in caught]


def urdf(*shapes, extra=""):
    collisions = "".join(f"<collision><origin xyz='0 0 .5' rpy='0 1.5707963267948966 0'/><geometry>{shape}</geometry>"
                         "</collision>" for shape in shapes)
    return f"<robot name='r'><link name='a'>{BODY}{collisions}</link>{extra}</robot>"


def test_urdf_shapes_are_read_only_on_request(tmp_path):
    text = urdf("<box size='1 2 3'/>", "<sphere radius='.5'/>", "<capsule radius='.1' length='.4'/>")
    assert not loaded(tmp_path / "r.urdf", text)[0].shapes
    m, said = loaded(tmp_path / "r.urdf", text, shapes=True)
    assert [s.shape for s in m.shapes.values()] == [bk.Box(1, 2, 3), bk.Sphere(0.5), bk.Capsule(0.1, 0.4)]
    assert not said
    box = m.shapes["a"]
    assert box.position == pytest.approx((0, 0, 0.5))
    assert box.rotation[:, 2] == pytest.approx((1, 0, 0))


def test_urdf_cylinders_and_what_is_missing_are_findings(tmp_path):
    m, said = loaded(tmp_path / "r.urdf", urdf(
        "<cylinder radius='.1' length='.5'/>", "<cylinder radius='.5' length='.1'/>", "<mesh filename='none.stl'/>",
        "<cone/>"), shapes=True)
    assert [s.shape for s in m.shapes.values()] == [bk.Cylinder(0.1, 0.5), bk.Cylinder(0.5, 0.1)]
    for text in ("none.stl: no such file; left out", "unknown shape <cone>"):
        assert any(text in line and "link 'a'" in line for line in said), text
    with pytest.raises(bk.LoadError, match="is not clean"):
        bk.load(tmp_path / "r.urdf", strict=True, shapes=True)


def test_a_urdf_mesh_is_its_hull(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.icosphere(subdivisions=1).export(tmp_path / "ball.stl")
    m, said = loaded(tmp_path / "r.urdf", urdf("<mesh filename='ball.stl' scale='1 1 2'/>"), shapes=True)
    assert isinstance(m.shapes["a"].shape, bk.Hull)
    corners = m.shapes["a"].shape.points / (1, 1, 2)
    assert len(np.unique(np.round(corners, 6), axis=0)) == 42
    assert np.linalg.norm(corners, axis=1) == pytest.approx(1.0, abs=1e-6)
    assert any("a mesh becomes its convex hull" in line for line in said)


def test_a_fine_mesh_becomes_a_hull_with_fewer_vertices_and_a_flat_one_points(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.icosphere(subdivisions=3).export(tmp_path / "ball.stl")
    trimesh.Trimesh([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)]).export(tmp_path / "sheet.stl")
    m, said = loaded(tmp_path / "r.urdf", urdf("<mesh filename='ball.stl'/>", "<mesh filename='sheet.stl'/>"),
                     shapes=True)
    ball, sheet = (s.shape for s in m.shapes.values())
    assert 64 < len(ball.points) <= 128
    assert type(sheet) is bk.Points
    directions = np.random.default_rng(0).normal(size=(500, 3))
    reach = (directions @ ball.points.T).max(axis=1) / np.linalg.norm(directions, axis=1)
    assert 0.97 < reach.min() < reach.max() < 1.0 + 1e-6
    for text in ("more than 128 vertices", "a flat mesh becomes its vertices"):
        assert any(text in line for line in said), text


def test_a_negative_size_is_refused(tmp_path):
    for shape in ("<sphere radius='-1'/>", "<box size='1 -1 1'/>", "<cylinder radius='-1' length='1'/>"):
        (tmp_path / "r.urdf").write_text(urdf(shape))
        with pytest.raises(bk.LoadError, match="link 'a'"):
            bk.load(tmp_path / "r.urdf", shapes=True)


def test_links_that_overlap_at_the_neutral_pose_are_kept_apart_and_that_is_said(tmp_path):
    joint = "<joint name='{0}' type='continuous'><parent link='{1}'/><child link='{0}'/></joint>"
    boxes = "".join(f"<link name='{name}'>{BODY}<collision><geometry><box size='1 1 1'/></geometry></collision></link>"
                    for name in "bc")
    m, said = loaded(tmp_path / "r.urdf", urdf("<box size='1 1 1'/>", extra=boxes + joint.format("b", "a")
                                               + joint.format("c", "b")), shapes=True)
    assert any("links 'a' and 'c'" in line and "overlap at the neutral pose" in line for line in said)
    m.add_plane()
    assert {pair[1] for pair in bk.contacts(m, m.neutral(), 10.0).pair} == {"ground"}


def test_bvh_has_none(tmp_path):
    with pytest.raises(bk.ModelError, match="no collision shapes"):
        bk.load(tmp_path / "walk.bvh", shapes=True)


MJCF = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 .1" friction="0.9"/>
<body name="a" pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .3" friction="0.4"/>
 <body name="b" pos="0 0 .5"><joint type="ball" pos="0 0 -.1"/><geom type="capsule" size=".05 .2" contype="2"/>
  <body name="c" pos="0 0 .5"><joint axis="0 1 0"/><geom type="ellipsoid" size=".1 .1 .2"/>
   <geom name="disc" type="cylinder" size=".1 .02" pos="0 0 .3"/></body></body></body>
<body name="d" pos="1 0 1"><freejoint/><geom type="sphere" size=".3"/>
 <geom type="sphere" size=".1" contype="0" conaffinity="0"/></body>
</worldbody><contact><exclude body1="a" body2="d"/></contact></mujoco>"""


def test_mjcf_geoms_with_their_masks_and_friction(tmp_path):
    pytest.importorskip("mujoco")
    m, said = loaded(tmp_path / "m.xml", MJCF, shapes=True)
    assert list(m.shapes) == ["floor", "a", "b", "disc", "d"]
    assert [m.shapes[name].shape for name in "abd"] == [bk.Box(0.2, 0.4, 0.6), bk.Capsule(0.05, 0.4), bk.Sphere(0.3)]
    assert (m.shapes["floor"].friction, m.shapes["a"].friction) == (0.9, 0.4)
    assert (m.shapes["b"].group, m.shapes["b"].meets) == (2, 1)
    assert any("ellipsoids cannot touch" in line for line in said)
    assert not any("contacts are left out" in line for line in said)


def test_an_mjcf_height_field_is_where_mujoco_has_it(tmp_path):
    """MuJoCo casts rays down at its own field."""
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><asset><hfield name="h" nrow="3" ncol="4" size="2 1 .5 .1"
        elevation="0 .2 .4 .1  .3 1 .2 .5  .6 .1 .9 .3"/></asset>
        <worldbody><geom name="hills" type="hfield" hfield="h" pos=".1 .2 .3"/>
        <body name="a" pos="0 0 3"><freejoint/><geom type="sphere" size=".3"/></body></worldbody></mujoco>"""
    m, said = loaded(tmp_path / "m.xml", text, shapes=True)
    assert not any("left out" in line and "hills" in line for line in said)
    hills = m.shapes["hills"].shape
    assert (hills.heights.shape, hills.extent) == ((4, 3), (4.0, 2.0))
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    nodes, _ = hills.surface()
    for x, y, z in nodes[(np.abs(nodes[:, 0]) < 1.9) & (np.abs(nodes[:, 1]) < 0.9)]:
        hit = np.zeros(1, np.int32)
        at = np.array([x + 0.1, y + 0.2, 2.0])
        down = mujoco.mj_ray(model, data, at, np.array([0.0, 0.0, -1.0]), None, 1, 1, hit)
        assert 2.0 - down - 0.3 == pytest.approx(z, abs=1e-6)


def test_mjcf_pairs_and_depths_are_mujocos(tmp_path):
    """MuJoCo collides spheres, capsules and boxes with planes by the same closed forms."""
    mujoco = pytest.importorskip("mujoco")
    m, _ = loaded(tmp_path / "m.xml", MJCF, shapes=True)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
    data = mujoco.MjData(model)
    data.qpos[2], data.qpos[-5] = 0.29, 0.25
    data.qpos[-7:-4] = (0.1, 0.0, 0.25)
    mujoco.mj_forward(model, data)
    theirs = sorted((contact.dist, *sorted(model.body(model.geom_bodyid[g]).name for g in contact.geom))
                    for contact in data.contact)
    q = data.qpos.copy()
    ours = sorted((contact.gap, *sorted("world" if link == "ground" else link for link in contact.links))
                  for contact in bk.contacts(m, q, margin=0.0))
    assert [row[1:] for row in ours] == [row[1:] for row in theirs]
    assert [row[0] for row in ours] == pytest.approx([row[0] for row in theirs], abs=1e-12)
    assert len(ours) == 5  # four corners of a box and a ball, which overlap each other but are excluded
