"""run, plot, export and doctor, as people use them: files that other programs read, errors that say what to do."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import av
import numpy as np
import pytest
from mcap.reader import make_reader
from PIL import Image

import bunraku as bk
from bunraku import cli
from bunraku.cli import doctor
from bunraku.view import film as film_module
from moving import pendulum


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A recording of the high bar, and a small one."""
    path = tmp_path_factory.mktemp("recordings")
    assert cli.main(["run", "highbar", "--until", "0.8", "--out", str(path / "highbar.mcap")]) == 0
    bk.Simulation(pendulum(), [1.0]).run(0.5).save(path / "pendulum.npz")
    return path


def told(capsys, *arguments, code=1) -> str:
    """The one line of an error."""
    assert cli.main(list(map(str, arguments))) == code
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err.count("\n") == 1
    assert out.err.startswith("bunraku: ")
    return out.err


# -- run -----------------------------------------------------------------------------------------------------------


def test_a_scene_is_run_with_its_torques_and_events(folder):
    trajectory = bk.load_trajectory(folder / "highbar.mcap")
    assert trajectory.events[0].text == "the right hand slips"
    slip = trajectory.segments[0]
    force = bk.joint_forces(slip.mechanism, slip.q[-1], slip.v[-1], slip.tau[-1])["right_grip"]
    assert np.linalg.norm(force[:3]) == pytest.approx(1050.0, rel=1e-3)  # what the hand can hold


@pytest.mark.parametrize("ending", ["npz", "mcap"])
def test_a_model_is_run_as_in_python(tmp_path, capsys, ending):
    out = tmp_path / f"chain.{ending}"
    assert cli.main(["run", "chain:3", "--until", "0.3", "--rtol", "1e-8", "--solver", "tsit5", "--out", str(out),
                     "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    sim = bk.Simulation(bk.models.chain(3), solver="tsit5", rtol=1e-8)
    expected = sim.run(0.3)
    np.testing.assert_array_equal(bk.load_trajectory(out).q, expected.q)
    assert report["files"] == [str(out)]
    assert report["steps"] == sim.stats.steps
    assert report["states"] == len(expected.t)


def test_a_run_tells_what_it_did(tmp_path, capsys):
    assert cli.main(["run", "four_bar", "--until", "0.2", "--out", str(tmp_path / "a.npz")]) == 0
    said = capsys.readouterr()
    for word in ("solver", "gear", "loops", "never open", "energy", "a.npz"):
        assert word in said.out
    assert said.err == ""


def test_the_command_is_quiet_in_a_pipe(tmp_path):
    done = subprocess.run([sys.executable, "-m", "bunraku", "run", "chain:2", "--until", "0.1", "--out", "a.mcap",
                           "--json"], capture_output=True, text=True, cwd=tmp_path, timeout=900)
    assert done.returncode == 0
    assert json.loads(done.stdout)["name"] == "chain of 2"
    assert done.stderr == "" or done.stderr.startswith("bunraku: compil")


@pytest.mark.parametrize(("arguments", "words"), [
    (["chain:3", "--out", "a.npz"], "pass --until SECONDS, as in --until 2"),
    (["hihgbar", "--out", "a.npz", "--until", "1"], "did you mean 'highbar'?"),
    (["chain:3", "--until", "1", "--out", "a.txt"], "unsupported extension; use .npz or .mcap"),
    (["chain:3", "--until", "1", "--out", "no/a.npz"], "there is no folder 'no'"),
    (["chain:3", "--until", "1", "--out", "a.npz", "--single"], "--single is for recordings that end in .mcap"),
    (["robot.urdf", "--until", "1", "--out", "a.npz"], "robot.urdf"),
    (["chain:3", "--until", "1", "--out", "a.npz", "--workers", "0"], "workers"),
])
def test_wrong_runs_say_what_to_do(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert words in told(capsys, "run", *arguments)
    assert not list(tmp_path.iterdir())


def test_what_a_run_computed_before_it_failed_is_kept(tmp_path, monkeypatch, capsys):
    class Scene:
        seconds = 1.0

        def simulation(self, **settings):
            sim = bk.Simulation(pendulum(), [0.5])

            def fail(sim):
                raise bk.SimulationError("the rope is torn")
            sim.when(lambda t, q, v: t - 0.25, fail, name="tear")
            return sim

    monkeypatch.setattr("bunraku.cli.scenes.highbar.HighBar", Scene)
    assert cli.main(["run", "highbar", "--out", str(tmp_path / "a.mcap")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("bunraku: the rope is torn\n")
    assert "the motion up to 0.25 s is in" in said
    assert bk.load_trajectory(tmp_path / "a.mcap").t[-1] == pytest.approx(0.25)


# -- export --------------------------------------------------------------------------------------------------------


def export(folder, name, *options, of="highbar.mcap"):
    assert cli.main(["export", str(folder / of), "--to", str(folder / name), *options]) == 0
    return folder / name


def test_numpy_reads_an_exported_table(folder):
    trajectory = bk.load_trajectory(folder / "highbar.mcap")
    path = export(folder, "a.csv")
    names = path.read_text().splitlines()[0].split(",")
    data = np.loadtxt(path, delimiter=",", skiprows=1)
    np.testing.assert_array_equal(data[:, 0], trajectory.t)
    knee = trajectory.segments[0].mechanism.q_slice("left_knee").start
    np.testing.assert_array_equal(data[:, names.index("left_knee")], trajectory.q[:, knee])
    assert np.isnan(data[-1, names.index("right_grip.angle.tau")])  # it is cut by then


def test_a_table_at_even_times_is_what_sample_gives(folder):
    trajectory = bk.load_trajectory(folder / "highbar.mcap")
    path = export(folder, "even.csv", "--fps", "50")
    data = np.loadtxt(path, delimiter=",", skiprows=1)
    np.testing.assert_allclose(data[:, 0], np.arange(41) / 50, atol=1e-12)
    names = path.read_text().splitlines()[0].split(",")
    knee = trajectory.segments[0].mechanism.q_slice("left_knee").start
    expected = [q[knee] for _, q, _ in trajectory.sample(data[:-1, 0])]
    np.testing.assert_allclose(data[:-1, names.index("left_knee")], expected, rtol=1e-12)


def test_films_have_their_frames(folder):
    with av.open(str(export(folder, "a.mp4", "--fps", "10", "--width", "200", "--camera", "60,20"))) as file:
        assert sum(1 for _ in file.decode(video=0)) == 9
        assert file.streams.video[0].width == 200
    with Image.open(export(folder, "a.gif", "--fps", "10", "--speed", "0.5", "--width", "200", "--title", "")) as file:
        assert file.n_frames == 17


def test_a_page_is_one_file_with_its_title(folder):
    page = export(folder, "a.html", "--fps", "20", "--title", "The <bar>").read_text("utf-8")
    assert "<title>The &lt;bar&gt;</title>" in page
    assert "src=" not in page.split("</head>")[0]


def test_formats_turn_into_each_other_without_loss(folder):
    first = bk.load_trajectory(folder / "highbar.mcap")
    export(folder, "b.npz")
    with open(export(folder, "c.mcap", of="b.npz"), "rb") as file:
        assert make_reader(file).get_summary().statistics.channel_message_counts[2] == len(first.t)
    again = bk.load_trajectory(folder / "c.mcap")
    for one, other in zip(first.segments, again.segments, strict=True):
        for name in ("t", "q", "v", "tau"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert again.events == first.events
    assert export(folder, "d.mcap", "--single").stat().st_size < 0.6 * (folder / "c.mcap").stat().st_size


@pytest.mark.parametrize(("arguments", "words"), [
    (["pendulum.npz", "--to", "a.avi"], "unsupported extension; use .csv, .gif, .mp4, .html, .npz, .mcap"),
    (["pendulum.npz", "--to", "a.npz", "--fps", "3"], "--fps is for .csv, .gif, .mp4, .html, not for a.npz"),
    (["pendulum.npz", "--to", "a.csv", "--single"], "--single is for .mcap"),
    (["pendulum.npz", "--to", "pendulum.npz"], "is the recording itself"),
    (["pendulum.npz", "--to", "no/a.csv"], "there is no folder 'no'"),
    (["nothing.mcap", "--to", "a.csv"], "nothing.mcap: there is no such file"),
])
def test_wrong_exports_say_what_to_do(folder, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    assert words in told(capsys, "export", *arguments)
    assert sorted(folder.iterdir()) == before


def test_an_interrupted_film_leaves_nothing(folder, tmp_path, monkeypatch):
    def stop(self, k):
        raise KeyboardInterrupt
    monkeypatch.setattr(film_module._Page, "picture", stop)
    assert cli.main(["export", str(folder / "pendulum.npz"), "--to", str(tmp_path / "a.mp4")]) == 130
    assert not list(tmp_path.iterdir())


def test_a_recording_that_was_not_closed_is_exported_with_one_line_of_warning(tmp_path):
    (tmp_path / "a.py").write_text("import numpy as np, bunraku as bk\nfrom bunraku.record import Recording\n"
                                   "r = Recording('open.mcap', bk.models.chain(1), 0.0, np.zeros(2))\n"
                                   "import os; os._exit(0)")
    subprocess.run([sys.executable, "a.py"], cwd=tmp_path, check=True, timeout=900)
    done = subprocess.run([sys.executable, "-m", "bunraku", "export", "open.mcap", "--to", "a.csv"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=900)
    assert done.returncode == 0
    assert done.stderr == "bunraku: open.mcap was not closed: it is read to its last whole block, which ends at 0 s\n"
    assert np.loadtxt(tmp_path / "a.csv", delimiter=",", skiprows=1).shape == (4,)


# -- plot ----------------------------------------------------------------------------------------------------------


def test_a_plot_of_everything_is_drawn(folder, tmp_path, capsys):
    out = tmp_path / "all.png"
    assert cli.main(["plot", str(folder / "highbar.mcap"), "--what", "all", "--out", str(out)]) == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    assert "velocities: the 8 of 22 that vary most" in capsys.readouterr().out


def test_a_plot_is_beside_its_recording(folder):
    assert cli.main(["plot", str(folder / "highbar.mcap"), "--what", "forces", "--joints", "left_grip,right_grip"]) == 0
    assert (folder / "highbar.png").exists()


@pytest.mark.parametrize(("arguments", "words"), [
    (["--what", "energie"], "there is no plot 'energie'; did you mean 'energy'?"),
    (["--joints", "rodd"], "there is no joint or connection 'rodd'; did you mean 'rod'?"),
    (["--what", "loops"], "there are no loops in this recording"),
    (["--what", "tau"], "`bunraku run` records them"),
    (["--out", "a.doc"], "a picture ends in .png, .pdf or .svg"),
    (["--out", "no/a.png"], "there is no folder 'no'"),
])
def test_wrong_plots_say_what_to_do(folder, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(folder)
    assert words in told(capsys, "plot", "pendulum.npz", *arguments)


@pytest.mark.parametrize(("module", "arguments", "extra"), [
    ("matplotlib.figure", ["plot", "pendulum.npz"], "plot"),
    ("matplotlib.figure", ["export", "pendulum.npz", "--to", "a.gif"], "plot"),
    ("av", ["export", "pendulum.npz", "--to", "a.mp4"], "video"),
    ("mcap.records", ["export", "pendulum.npz", "--to", "a.mcap"], "record"),
    ("mcap.records", ["run", "chain:2", "--until", "1", "--out", "a.mcap"], "record"),
])
def test_a_missing_extra_is_named_with_its_command(folder, monkeypatch, capsys, module, arguments, extra):
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, module, None)
    assert f'pip install "bunraku[{extra}]"' in told(capsys, *arguments)


# -- doctor --------------------------------------------------------------------------------------------------------


def test_doctor_knows_the_installation(capsys):
    assert cli.main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["versions"]["numpy"] == np.__version__
    assert report["lanes"] in (2, 4, 8)
    assert report["cores"] >= 1
    assert report["bunraku"] == bk.__version__
    assert "entries.kinematics_entries.observe_batch" in [*report["kernels"]["compiled"], *report["kernels"]["missing"]]
    assert report["cache"]["bytes"] > 0 or not report["cache"]["exists"]
    assert report["extras"]["record"]["installed"]
    assert cli.main(["doctor"]) == 0
    said = capsys.readouterr().out
    for word in ("processor", "lanes", "cache", "kernels", "extras", "mcap"):
        assert word in said


def test_doctor_says_how_to_install_what_is_missing(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "version", lambda extra: None if extra == "video" else "1.0")
    assert cli.main(["doctor"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    (video,) = [line for line in lines if line[:1] == ["video"]]
    assert 'pip install "bunraku[video]"' in " ".join(video)
    assert sum("missing:" in line for line in lines) == 1


def test_doctor_knows_every_extra_for_users():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    assert set(doctor.EXTRAS) == set(extras) - {"demo", "bench", "dev", "docs"}
    for name, (distribution, *_) in doctor.EXTRAS.items():
        assert any(line.startswith(distribution) for line in extras[name]), name


def test_doctor_tells_of_an_empty_cache(tmp_path):
    done = subprocess.run([sys.executable, "-m", "bunraku", "doctor", "--json"], capture_output=True, text=True,
                          env={"NUMBA_CACHE_DIR": str(tmp_path / "none"), "PATH": "/usr/bin",
                               "PYTHONPATH": str(Path(bk.__file__).parents[1])}, timeout=900)
    report = json.loads(done.stdout)
    assert not report["cache"]["exists"]
    assert report["kernels"]["compiled"] == [] or report["cache"]["shipped"]
    assert not (tmp_path / "none").exists()  # it looks, and leaves no trace
