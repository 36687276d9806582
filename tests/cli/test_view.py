"""`bunraku view`: the shown source, the printed address, and the error messages."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import numpy as np
import pytest

import bunraku as bk
from bunraku import cli
from bunraku.cli import view
from processes import start

pytest.importorskip("viser")


def asked(*words):
    return cli.parser().parse_args(["view", *words])


def refused(capsys, *words):
    assert cli.main(["view", *words]) == cli.FAILED
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    return text


VIEW = [sys.executable, "-m", "bunraku", "view", "chain:3", "--port", "0", "--no-browser"]


@pytest.mark.parametrize(("deaf", "by", "says"), [
    (False, signal.SIGINT, "(Ctrl-C ends)"), (False, signal.SIGTERM, "(Ctrl-C ends)"),
    (True, signal.SIGTERM, "(kill {} ends)")], ids=["Ctrl-C", "SIGTERM", "SIGTERM under nohup"])
def test_the_page_is_served_where_it_says_until_it_is_ended(deaf, by, says):
    with start(VIEW, deaf=deaf, stderr=subprocess.PIPE, env=os.environ | {"PYTHONUNBUFFERED": "1"}) as process:
        try:
            said = ""
            while "http" not in said:
                said = process.stderr.readline()
                assert process.poll() is None, said
            url = re.search(r"http://\S+", said).group()
            assert says.format(process.pid) in said
            with urllib.request.urlopen(url, timeout=100) as answer:
                assert answer.status == 200
            process.send_signal(by)
            assert process.wait(20) == 0
            assert process.stderr.read() == ""
        finally:
            process.kill()


def test_a_port_in_use_is_one_line(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert re.search(rf"port {port} .* choose another", refused(capsys, "chain:2", "--no-browser", "--port",
                                                                    str(port)))


@pytest.mark.parametrize(("words", "says"), [
    (("nonsense",), "neither a file"), (("lost.npz",), "lost.npz"), (("chain:2", "--port", "70000"), "port 70000"),
    (("chain:2", "--host", "no.such.host.invalid"), "no such address"), (("chain:2", "--solver", "magic"), "magic")])
def test_wrong_words_are_one_line(capsys, words, says):
    assert says in refused(capsys, *words, "--no-browser")


def test_a_missing_extra_is_said_with_its_command():
    code = "import sys; sys.modules['viser'] = None; from bunraku.cli import main; sys.exit(main(['view', 'chain:2']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == cli.FAILED
    assert done.stderr == 'bunraku: the viewer needs viser: pip install "bunraku[view]"\n'


def test_scenes_models_and_recordings_are_found(tmp_path):
    sim, title = view._find(asked("highbar"))
    assert title == "High bar"
    assert set(sim.mechanism.connections) == {"left_grip", "right_grip"}
    floating, _ = view._find(asked("human:16"))
    assert not floating.mechanism.gravity.any()
    hanging, _ = view._find(asked("chain:4"))
    assert hanging.mechanism.gravity[2] < 0
    trajectory, title = view._find(asked(str(bk.Simulation(bk.models.chain(2)).run(0.1).save(tmp_path / "two.npz"))))
    assert isinstance(trajectory, bk.Trajectory)
    assert title == "two"


def test_a_mobile_hangs_from_a_suspension_that_can_be_moved():
    plain, (sim, _) = bk.models.mobile(a=0.2, b=0.3, c=0.2, h=1.0, s=2, l=2, o=3, p=3.0, rho=2.0), view._find(
        asked("mobile:2:2:3"))
    assert sim.mechanism.nv == plain.nv + 6
    sim.advance(0.1)
    assert np.abs(sim.q[7:]).max() < 1e-6  # at rest, as without it
    assert np.allclose(bk.poses(sim.mechanism, sim.q)["0/plateau"][1], bk.poses(plain, plain.neutral())["0/plateau"][1],
                       atol=1e-6)
