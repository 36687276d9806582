"""Seconds to the first result: processes are measured with their children, versions beside each other."""

import json
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import bunraku as bk
from bunraku import cli
from bunraku.bench import bench_start as start
from bunraku.bench.bench_start import Row, Version
from bunraku.bench.timing import Progress
from one_entry import integrate_alone
from processes import PACKAGE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="orphans are only counted on Linux")


def timed(code):
    command = [sys.executable, str(start.TIMER), sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_processor_time_includes_children_that_go_on_alone():
    burn = "import time\\nwhile time.process_time() < 0.6: pass"
    child = f"subprocess.Popen([sys.executable, '-c', '{burn}'], stdout=subprocess.DEVNULL)"
    told = timed(f"import subprocess, sys\n{child}\nprint('done')")
    assert told["stdout"] == "done\n"
    assert told["status"] == 0
    assert told["processor"] > 0.6


def test_a_command_that_fails_is_told():
    told = timed("raise SystemExit('no')")
    assert (told["status"], told["stderr"]) == (1, "no\n")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    root = tmp_path_factory.mktemp("before")
    shutil.copytree(PACKAGE, root / "src" / "bunraku", ignore=shutil.ignore_patterns("__pycache__"))
    return root


def wheel_of(package, folder):
    """A wheel, by hand."""
    path = folder / "bunraku-0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        for source in package.rglob("*.py"):
            file.write(source, f"bunraku/{source.relative_to(package)}")
        about = "bunraku-0.dist-info/"
        file.writestr(about + "METADATA", "Metadata-Version: 2.1\nName: bunraku\nVersion: 0\n")
        file.writestr(about + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(about + "RECORD", "")
    return path


def test_a_first_use_costs_more_than_the_second():
    code = integrate_alone(bk.models.chain(2), [0, 0], [1, 2]).replace("print(*out[0])", "print(out[0].tolist())")
    measured = start._measure(Version("here", PACKAGE.parent), [Row("a move", code)], Progress(1, quiet=True))
    (row,) = measured["rows"]
    assert row["answer"] == [1.0, 2.0]
    assert row["cold"]["processor"] > row["warm"]["processor"] + 0.2


def test_versions_are_measured_beside_each_other(copy, tmp_path, capsys):
    given = ["--before", str(copy), "--wheel", str(wheel_of(copy / "src" / "bunraku", tmp_path))]
    assert cli.main(["bench", "start", "--only", "import", "--json", *given]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [version["shipped"] for version in result["versions"]] == [False, False, True]
    for version in result["versions"]:
        assert [row["row"] for row in version["rows"]] == ["import"]
        assert all(0.0 < row[when][kind] < 60.0 for row in version["rows"] for when in ("cold", "warm")
                   for kind in ("processor", "wall"))
    shown = start.text(result)
    assert str(copy) in shown
    assert shown.count("\n  import ") == 3


def test_an_unknown_row_is_refused(capsys):
    assert cli.main(["bench", "start", "--only", "nonsense"]) != 0
    assert "first forward_dynamics" in capsys.readouterr().err


@pytest.mark.parametrize("given", [["--before", "no-such-revision"], ["--wheel", "no-such.whl"]])
def test_a_version_that_is_not_there_is_refused(given, capsys):
    assert cli.main(["bench", "start", "--only", "import", *given]) != 0
    assert given[1] in capsys.readouterr().err


def made(title, shipped=False, scale=1.0, **answers):
    """A version with 4 s cold and 1 s warm for every row, of which some have these answers."""
    spent = {"cold": {"processor": 4.0 * scale, "wall": 4.0 * scale}, "warm": {"processor": scale, "wall": scale}}
    rows = [{"row": row.name, **spent, "answer": answers.get(row.name.split()[-1], [])} for row in start.ROWS]
    return {"title": title, "shipped": shipped, "rows": rows}


def test_targets_are_judged():
    quick, slow = start._judged(made("this version")), start._judged(made("this version", scale=100.0))
    assert [t["met"] for t in quick] == [True] * 6
    assert not any(t["met"] for t in slow)
    assert {t["what"]: t["measured"] for t in quick}["compilation of the demo, wall"] == 3.0
    wheel = start._judged(made("bunraku.whl", shipped=True))
    assert {t["what"]: t["measured"] for t in wheel}["wheel: first mass_matrix after the import, wall"] == 0.0
    assert start._judged(made("v0.1")) == []


def test_versions_that_disagree_are_not_compared():
    here, same, other = (made(title, forward_dynamics=[1.0, x]) for title, x in (("here", 2.0), ("same", 2.0 + 1e-12),
                                                                                ("other", 2.1)))
    assert start._agreement([here, same], start.ROWS)["first forward_dynamics"] == pytest.approx(5e-13, rel=1e-3)
    with pytest.raises(bk.ModelError, match=r"first forward_dynamics: the answer of other differs by 5.0e-02"):
        start._agreement([here, other], start.ROWS)
    assert start._difference([1.0], [1.0, 2.0]) == np.inf
