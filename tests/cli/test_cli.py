"""The command line, run as people run it."""

import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import bunraku
from bunraku import cli, reproduce
from bunraku.cli import scenes
from bunraku.cli.scenes.scene import Scene


def bunraku_command(*arguments, cwd=None):
    return subprocess.run([sys.executable, "-m", "bunraku", *map(str, arguments)], capture_output=True, text=True,
                          cwd=cwd, timeout=900)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo of the README, in an empty folder."""
    folder = tmp_path_factory.mktemp("demo")
    return folder, bunraku_command("demo", "--json", cwd=folder)


def test_demo_writes_what_it_says(demo):
    folder, answer = demo
    assert answer.returncode == 0, answer.stderr
    files = [folder / name for name in json.loads(answer.stdout)["files"]]
    assert sorted(path.suffix for path in files) == [".html", ".npz", ".png"]
    assert all(path.stat().st_size > 10_000 for path in files)
    assert files[2].read_bytes().startswith(b"\x89PNG")


def test_demo_alone_is_the_high_bar(demo):
    report = json.loads(demo[1].stdout)
    assert [Path(name).name for name in report["files"]] == ["highbar.npz", "highbar.html", "highbar.png"]


def test_demo_trajectory_can_be_read_back(demo):
    folder, answer = demo
    report = json.loads(answer.stdout)
    trajectory = bunraku.load_trajectory(folder / report["files"][0])
    assert [len(s.mechanism.connections) for s in trajectory.segments] == [2, 1]
    assert [event.text for event in trajectory.events] == [event["text"] for event in report["events"]]
    assert trajectory.t[-1] == pytest.approx(report["seconds"])


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_demo_opens_its_replay_at_once_with_an_empty_cache(tmp_path):
    """A browser of our own, on a terminal: it is asked long before anything is compiled."""
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "SSH_CONNECTION"}
    environment |= {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "DISPLAY": ":0", "BROWSER": str(browser)}
    control, terminal = os.openpty()
    begin = time.monotonic()
    command = subprocess.Popen([sys.executable, "-m", "bunraku", "demo", "--no-picture"], cwd=tmp_path, env=environment,
                               stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, start_new_session=True)
    try:
        while not (opened.exists() and opened.read_text().endswith("\n")) and time.monotonic() < begin + 60:
            time.sleep(0.02)
        address = opened.read_text().strip()
    finally:
        os.killpg(command.pid, signal.SIGKILL)
        command.wait()
        os.close(control)
        os.close(terminal)
    assert address == (tmp_path / "bunraku-demo" / "highbar.html").as_uri()


def test_demo_without_a_display_says_where_its_replay_is(tmp_path, monkeypatch, capsys):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert cli.main(["demo", "--seconds", "0.05", "--no-picture", "--out", str(tmp_path)]) == 0
    assert f"{tmp_path / 'highbar.html'} (open it in a browser)" in capsys.readouterr().err


@pytest.mark.parametrize("dof", [16, 48])
def test_the_demo_tells_of_other_figures_too(tmp_path, capsys, dof):
    assert cli.main(["demo", "somersault", "--dof", str(dof), "--seconds", "0.1", "--no-picture", "--out",
                     str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "degrees of freedom" in told
    assert "angular" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["somersault.html", "somersault.npz"]


def test_demo_help_says_what_happens_in_each_scene(capsys):
    with pytest.raises(SystemExit):
        cli.main(["demo", "--help"])
    told = [line.split() for line in capsys.readouterr().out.splitlines()]
    for name in ("highbar", "swing", "release", "somersault"):
        assert any(words[:1] == [name] and len(words) > 5 for words in told)


def listed(verb, capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        cli.main([verb, "--list"])
    return set(capsys.readouterr().out.split())


def modules(package):
    return {part.name: importlib.import_module(f"{package.__name__}.{part.name}")
            for part in pkgutil.iter_modules(package.__path__)}


def test_every_experiment_and_scene_is_listed(capsys):
    """`.ci/run` runs those that are."""
    with_options = {name for name, own in modules(reproduce).items() if hasattr(own, "Options")}
    experiments = with_options | {"jung_tables", "yn99"}
    assert {name.replace("-", "_") for name in listed("reproduce", capsys)} == experiments
    kinds = {name: [kind for kind in vars(own).values() if isinstance(kind, type) and kind.__module__ == own.__name__]
             for name, own in modules(scenes).items() if name not in ("scene", "contact_scene", "planned_scene")}
    assert listed("demo", capsys) == {name for name, own in kinds.items() if any(issubclass(k, Scene) for k in own)}


def test_help_loads_nothing_but_the_command_line():
    """Neither libraries nor benchmarks, experiments, attacks and scenes; names of attacks are in `bunraku.check`."""
    for words in ([], ["bench"], ["check"], ["reproduce"], ["demo"]):
        code = ("import sys; from bunraku.cli import parser\n"
                f"try: parser().parse_args({[*words, '--help']})\n"
                "except SystemExit: print([name for name in sys.modules if name.startswith(("
                "'numpy', 'numba', 'scipy', 'matplotlib', 'bunraku.bench', 'bunraku.reproduce', 'bunraku.check.', "
                "'bunraku.cli.scenes', 'bunraku.mechanism', 'bunraku.simulation'))])")
        answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert answer.stdout.splitlines()[-1] == "[]"


def test_every_verb_has_help_with_an_example(capsys):
    assert "demo" in cli.verbs()
    for verb in cli.verbs():
        with pytest.raises(SystemExit) as stop:
            cli.main([verb, "--help"])
        assert stop.value.code == 0
        assert f"example: bunraku {verb}" in capsys.readouterr().out


def test_the_version_is_told(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.strip() == f"bunraku {bunraku.__version__}"


@pytest.mark.parametrize("arguments", [[], ["dance"], ["demo", "waltz"], ["demo", "--seconds", "-1"],
                                       ["demo", "--dof", "7"]])
def test_wrong_usage_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize(("error", "code", "told"), [
    (bunraku.ModelError("link 'arm' has no mass"), 1, "bunraku: link 'arm' has no mass"),
    (FileExistsError(17, "File exists", "here"), 1, "bunraku: File exists: here"),
    (KeyboardInterrupt(), 130, "bunraku: interrupted"),
])
def test_errors_are_one_clean_line(monkeypatch, capsys, error, code, told):
    def fail(args):
        raise error

    monkeypatch.setattr("bunraku.cli.demo.run", fail)
    assert cli.main(["demo"]) == code
    assert capsys.readouterr().err == f"{told}\n"


def test_an_error_says_which_event_it_came_from(monkeypatch, capsys):
    def fail(args):
        error = bunraku.NamingError("there is no link 'arm'")
        error.add_note("raised by the action of 'grab' at t = 0.5 s")
        raise error

    monkeypatch.setattr("bunraku.cli.demo.run", fail)
    assert cli.main(["demo"]) == 1
    assert capsys.readouterr().err == "bunraku: there is no link 'arm'\n  raised by the action of 'grab' at t = 0.5 s\n"


def test_output_that_nobody_reads_to_the_end_is_no_error(tmp_path):
    links = "".join(f'<link name="l{k}"/><joint name="j{k}" type="fixed"><parent link="{f"l{k - 1}" if k else "b"}"/>'
                    f'<child link="l{k}"/></joint>' for k in range(2000))
    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    (tmp_path / "long.urdf").write_text(f'<robot name="long"><link name="b">{body}</link>{links}</robot>')
    with subprocess.Popen([sys.executable, "-m", "bunraku", "info", str(tmp_path / "long.urdf")],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as command:
        assert command.stdout.readline() == "long\n"
        command.stdout.close()
        assert command.stderr.read() == ""
        assert command.wait(60) == 141


@pytest.mark.parametrize("columns", [60, 200])
def test_reports_fit_the_terminal(tmp_path, monkeypatch, capsys, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert cli.main(["demo", "--seconds", "0.05", "--no-picture", "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.split("wrote")[0].splitlines()
    assert max(map(len, lines)) <= min(columns, 110)
    assert all(line.startswith(" ") for line in lines[1:])


@pytest.mark.parametrize("verb", cli.verbs())
def test_help_fits_a_terminal_of_80_columns(verb, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        cli.main([verb, "--help"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_demo_without_matplotlib_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert cli.main(["demo", "--out", str(tmp_path / "new")]) == 1
    assert 'pip install "bunraku[plot]"' in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_an_output_folder_that_cannot_be_made_is_named(tmp_path, capsys):
    (tmp_path / "taken").write_text("a file")
    assert cli.main(["demo", "--out", str(tmp_path / "taken")]) == 1
    assert "taken" in capsys.readouterr().err
