"""Pictures: shapes follow from the mechanism, and a file comes out."""

import sys

import numpy as np
import pytest

import bunraku as bk
from bunraku.simulation import Segment, Trajectory
from bunraku.simulation.records.trajectory import Event
from bunraku.view import Camera, Figure, filmstrip, replay_html
from bunraku.view.figure import FIXTURE, LEFT, MIDDLE, RIGHT
from bunraku.view.filmstrip import covered, round_times


def pair():
    """A trunk with an arm on each side."""
    m = bk.Mechanism()
    m.add_link("trunk", joint=bk.Free(), mass=20, com=(0, 0, 0.2), inertia=(1, 1, 0.5))
    for side, y in (("left", 0.2), ("right", -0.2)):
        m.add_link(f"{side} arm", "trunk", bk.Spherical(), position=(0, y, 0.4), mass=3, com=(0, 0, -0.2),
                   inertia=(0.05, 0.05, 0.004))
    return m


def still(m, seconds=1.0):
    q = np.tile(m.neutral(), (3, 1))
    return Trajectory([Segment(m, np.linspace(0, seconds, 3), q, np.zeros((3, m.nv)))])


def test_camera_axes_are_orthonormal():
    camera = Camera(azimuth=33, elevation=12)
    axes = np.array([camera.right, camera.up, camera.away])
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    assert camera.up[2] > 0


def test_a_camera_from_the_side_sees_x_and_z():
    camera = Camera(azimuth=0, elevation=0)
    np.testing.assert_allclose(camera.project([1.0, 2.0, 3.0]), [1.0, 3.0], atol=1e-12)
    assert camera.depth([0, 2.0, 0]) > camera.depth([0, 1.0, 0])


def test_what_is_farther_away_is_drawn_first():
    m = pair()
    shapes = Figure(m).shapes(m.neutral(), Camera(azimuth=0, elevation=0))
    assert {shape.side for shape in shapes} == {LEFT, MIDDLE, RIGHT}
    assert shapes[0].side == LEFT  # y runs away from the eye, and the farthest is drawn first
    assert shapes[-1].side == RIGHT


def test_outline_covers_joint_and_end():
    m = bk.Mechanism()
    m.add_link("rod", joint=bk.Revolute((0, 1, 0)), mass=1, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.001))
    (shape,) = Figure(m).shapes(m.neutral(), Camera(0, 0))
    low, high = shape.outline.min(axis=0), shape.outline.max(axis=0)
    assert low[1] < -1.0 < 0.0 < high[1]
    assert high[0] - low[0] < 0.2


def test_fixtures_stand_beside_what_flies():
    m = pair()
    m.add_link("bar", joint=bk.Fixed(), position=(0, 0, 1), mass=6, inertia=(0.5, 1e-3, 0.5))  # 1 m long, along y
    figure, camera = Figure(m), Camera(azimuth=90, elevation=0)
    (bar,) = (shape for shape in figure.shapes(m.neutral(), camera) if shape.side == FIXTURE)
    assert np.ptp(bar.outline[:, 0]) == pytest.approx(1.0, abs=0.05)
    np.testing.assert_allclose(figure.com(m.neutral()), [0, 0, 0.2], atol=1e-9)  # of the flyer alone
    assert figure.anchored
    assert Figure(bk.models.chain(2)).fixtures == set()  # nothing flies: all of it is the figure


def point():
    m = bk.Mechanism(name="point")
    m.add_link("bead", joint=bk.Prismatic((0, 0, 1)), mass=1)
    return m


@pytest.mark.parametrize("mechanism", [pair(), point(), bk.models.chain(4), bk.models.human(16)], ids=lambda m: m.name)
def test_filmstrip_writes_a_picture(tmp_path, mechanism):
    path = filmstrip(still(mechanism), tmp_path / "strip.png", frames=3, title="still")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_panels_and_changes_of_structure_are_in_the_picture(tmp_path):
    motion = still(pair())
    motion.events += [Event(0.5, "the left arm lets go"), Event(0.5, "cut 'left_grip': ..."), Event(0.52, "cut 'b'")]
    times = np.linspace(0, 1, 5)
    forces = {"left grip": (times, np.array([1.0, 2.0, 3.0, np.nan, np.nan])), "rope": (times, times)}
    plain = filmstrip(motion, tmp_path / "plain.png").read_bytes()
    assert filmstrip(motion, tmp_path / "panels.png", panels={"force [N]": forces}).read_bytes() != plain


def test_too_few_frames_are_refused(tmp_path):
    with pytest.raises(bk.ShapeError, match="at least 2 frames"):
        filmstrip(still(pair()), tmp_path / "strip.png", frames=1)


def test_a_motion_of_no_duration_is_refused(tmp_path):
    with pytest.raises(bk.ShapeError, match="no duration"):
        filmstrip(still(pair(), seconds=0.0), tmp_path / "strip.png")


def test_missing_matplotlib_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(bk.MissingExtra, match=r'pip install "bunraku\[plot\]"'):
        filmstrip(still(pair()), tmp_path / "strip.png")


def test_marks_of_time_are_round_numbers():
    rng = np.random.default_rng(2)
    for first, length in zip(rng.uniform(-5, 5, 40), 10.0 ** rng.uniform(-6, 6, 40), strict=True):
        ticks = round_times(first, first + length)
        assert 4 <= len(ticks) <= 11
        assert ticks[0] >= first - 1e-9 * length
        assert ticks[-1] <= first + length * (1 + 1e-9)
        step = np.diff(ticks).mean()
        assert min(abs(step / 10.0 ** np.floor(np.log10(step * 1.0001)) - k) for k in (1, 2, 5, 10)) < 1e-3


def test_a_curve_that_covers_another_is_found():
    t = np.linspace(0, 1, 50)
    curves = {"left": (t, np.sin(t)), "right": (t[:30], np.sin(t[:30]) + 1e-4), "other": (t, t**2)}
    assert covered(curves) == {"right"}
    assert covered({"left": (t, np.full(50, np.nan)), "right": (t, t)}) == set()


def test_pictures_are_of_simulations_too(tmp_path):
    sim = bk.Simulation(bk.models.chain(2), q=[0.3, 0.0])
    sim.run(0.2)
    assert filmstrip(sim, tmp_path / "a.png").exists()
    assert replay_html(sim, tmp_path / "a.html").exists()
    with pytest.raises(bk.ShapeError, match="a trajectory or a simulation is needed"):
        filmstrip(sim.mechanism, tmp_path / "b.png")
