"""Films: as many frames as the motion lasts, all different, read back by other readers."""

import struct
import sys
from itertools import pairwise

import av
import numpy as np
import pytest
from PIL import Image

import bunraku as bk
from bunraku.simulation import Segment, Trajectory
from bunraku.simulation.records.trajectory import Event
from bunraku.view.film import film
from bunraku.view.filmstrip import PAPER
from moving import pendulum

ROOM = {"width": 240}


@pytest.fixture(scope="module")
def swing():
    trajectory = bk.Simulation(pendulum(), [1.0]).run(1.0)
    trajectory.events.append(Event(0.5, "half time"))
    return trajectory


def frames_of_mp4(path):
    with av.open(str(path)) as file:
        return [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]


def samples_in_mp4(path):
    """Frames by the sample table of the file (stsz), found without a library."""
    data = path.read_bytes()
    at = data.index(b"stsz")
    return struct.unpack(">I", data[at + 12:at + 16])[0]


@pytest.mark.parametrize(("fps", "speed", "count"), [(30, 1.0, 31), (10, 0.5, 21), (24, 2.0, 13)])
def test_an_mp4_has_the_frames_of_the_motion(swing, tmp_path, fps, speed, count):
    path = film(swing, tmp_path / "swing.mp4", fps=fps, speed=speed, **ROOM)
    frames = frames_of_mp4(path)
    assert len(frames) == samples_in_mp4(path) == count
    with av.open(str(path)) as file:
        assert float(file.streams.video[0].average_rate) == fps
    assert all(np.abs(a.astype(int) - b).max() > 20 for a, b in pairwise(frames))
    assert list(tmp_path.iterdir()) == [path]


def test_a_gif_has_frames_time_and_paper(swing, tmp_path):
    path = film(swing, tmp_path / "swing.gif", fps=30, **ROOM)
    with Image.open(path) as picture:
        assert picture.n_frames == 31
        durations = []
        for k in range(picture.n_frames):
            picture.seek(k)
            durations.append(picture.info["duration"])
        corner = picture.convert("RGB").getpixel((2, 2))
    assert sum(durations) == pytest.approx(31 / 30 * 1000, abs=10)  # GIF counts hundredths of a second
    assert corner == tuple(int(PAPER[k:k + 2], 16) for k in (1, 3, 5))


def test_the_figure_is_where_the_motion_has_it(swing, tmp_path):
    """The dark rod in the picture turns as far as the pendulum does."""
    frames = frames_of_mp4(film(swing, tmp_path / "a.mp4", title="", width=480, camera=bk.view.Camera(0, 0)))
    for k in (0, 10, 20):
        rows, columns = np.nonzero(frames[k][:-70].sum(axis=2) < 300)
        q = swing.sample(k / 30)[0][1]
        rotation, _ = bk.poses(swing.segments[0].mechanism, q)["rod"]
        com = swing.segments[0].mechanism.links[0].com
        expected = np.abs((rotation @ com)[[0, 2]] / np.linalg.norm(com))
        main = np.linalg.svd(np.stack([columns - columns.mean(), rows - rows.mean()]), full_matrices=False)[0][:, 0]
        np.testing.assert_allclose(np.abs(main), expected, atol=0.05)


def test_the_view_follows_what_travels_far(tmp_path):
    m = bk.Mechanism()
    m.add_link("ball", joint=bk.Free(), mass=1.0, inertia=(0.01, 0.01, 0.01))
    thrown = bk.Simulation(m, v=[6.0, 0, 2.0, 0, 0, 0]).run(1.0)
    frames = frames_of_mp4(film(thrown, tmp_path / "ball.mp4", fps=5, title="", **ROOM))
    places = [np.nonzero(frame[:-70].sum(axis=2) < 300)[1].mean() for frame in frames]
    np.testing.assert_allclose(places, places[0], atol=3)


def test_a_structure_that_changes_and_a_gap_are_shown(tmp_path):
    one, two = pendulum(), bk.models.chain(2)
    first, second = bk.Simulation(one, [0.5]).run(0.4), bk.Simulation(two, q=[0.3, 0.3]).run(0.4)
    moved = Trajectory([*first.segments, Segment(two, second.t + 0.6, second.q, second.v)], [])
    frames = frames_of_mp4(film(moved, tmp_path / "a.mp4", fps=10, title="", **ROOM))
    assert len(frames) == 11
    above = [frame[:-70].astype(int) for frame in frames]
    assert np.abs(above[5] - above[4]).max() < 30   # where it was last
    assert np.abs(above[6] - above[5]).max() > 100


@pytest.mark.parametrize(("options", "words"), [
    ({"fps": 0}, "fps"), ({"speed": -1.0}, "speed"), ({"fps": 1e9}, "too many"),
    ({"width": 5}, "64 to 8192 pixels")])
def test_impossible_films_are_refused(swing, tmp_path, options, words):
    with pytest.raises(bk.ShapeError, match=words):
        film(swing, tmp_path / "a.gif", **options)
    assert not list(tmp_path.iterdir())


def test_other_endings_and_folders_are_refused(swing, tmp_path):
    with pytest.raises(bk.ShapeError, match=r"ends in \.gif or \.mp4"):
        film(swing, tmp_path / "a.avi")
    with pytest.raises(bk.MissingFileError, match="there is no folder"):
        film(swing, tmp_path / "no" / "a.gif")


def test_without_pyav_the_error_says_what_to_install(swing, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(bk.MissingExtra, match=r'pip install "bunraku\[video\]"'):
        film(swing, tmp_path / "a.mp4")
    assert film(swing, tmp_path / "a.gif", fps=5, **ROOM).exists()
