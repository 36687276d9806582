"""`bunraku compile`: everything can be compiled before its first use, once, for any kind of processor."""

import ast
import contextlib
import json
import os
import subprocess
import sys

import pytest

from bunraku import cli, jit
from bunraku.compiler import targets
from processes import PACKAGE

SMALL = [entry.name for entry in jit.all_entries() if entry.name.startswith("plan.assemble.")][1:]


def start(*arguments, **environment):
    return subprocess.Popen([sys.executable, "-m", "bunraku", "compile", *arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "PYTHONPATH": str(PACKAGE.parent), **environment})


def report(process):
    out, said = process.communicate(timeout=900)
    assert process.returncode == 0, said
    return json.loads(out)


def test_all_entries_are_all_functions_with_that_decorator():
    written = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            for decorator in getattr(node, "decorator_list", []):
                if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "entry":
                    written.add(".".join([*path.relative_to(PACKAGE).with_suffix("").parts, node.name]))
    assert {entry.name for entry in jit.all_entries()} == written


def test_what_is_usual_is_some_of_it():
    from bunraku.cli.compile import chosen

    usual, everything = chosen([], False), chosen([], True)
    assert set(usual) < set(everything) == set(jit.all_entries())


def test_programs_that_start_together_compile_each_function_once(tmp_path):
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(start(*SMALL, "--json", NUMBA_CACHE_DIR=str(tmp_path))) for _ in range(2)]
        reports = [report(process) for process in processes]
    assert sorted(name for told in reports for name in told["compiled"]) == sorted(SMALL)
    assert [sorted([*told["compiled"], *told["already"]]) for told in reports] == 2 * [sorted(SMALL)]
    again = report(start(*SMALL, "--json", NUMBA_CACHE_DIR=str(tmp_path)))
    assert again["already"] == sorted(SMALL)
    assert again["compiled"] == {}
    assert [os.path.dirname(folder) for folder in again["folders"]] == [str(tmp_path)]


def test_code_for_another_architecture_is_made_here(tmp_path):
    for level, machine in (("aarch64", 183), ("x86-64-v2", 62)):  # numbers of ELF
        told = report(start(SMALL[0], "--level", level, "--out", str(tmp_path), "--json"))
        assert list(told["compiled"]) == SMALL[:1]
        content = (tmp_path / level / f"{SMALL[0]}.code").read_bytes().split(b"\n", 3)[3]
        assert content[:4] == b"\x7fELF"
        assert int.from_bytes(content[18:20], "little") == machine


def test_the_report_says_how_much_where(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("BUNRAKU_QUIET", "1")
    level = targets.level().name
    assert cli.main(["compile", SMALL[0], "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert f"machine code for {level}" in told
    assert "1 functions in" in told
    assert str(tmp_path / level) in told


def test_a_name_that_is_unknown_is_one_line_with_a_hint(capsys):
    assert cli.main(["compile", SMALL[0] + "x"]) == 1
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert f"did you mean '{SMALL[0]}'" in complaint


def test_a_folder_that_cannot_be_made_is_named(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert cli.main(["compile", SMALL[0], "--out", str(tmp_path / "file")]) == 1
    assert str(tmp_path / "file") in capsys.readouterr().err


@pytest.mark.parametrize("level", ["aarch64", "x86-64-v2"])
def test_functions_that_cannot_be_written_are_named(tmp_path, capsys, monkeypatch, level):
    monkeypatch.setenv("BUNRAKU_QUIET", "1")
    (tmp_path / level / f"{SMALL[0]}.code").mkdir(parents=True)  # a folder in its place
    assert cli.main(["compile", SMALL[0], "--level", level, "--out", str(tmp_path)]) == 1
    complaint = capsys.readouterr().err
    assert f"bunraku: {SMALL[0]} could not be compiled: " in complaint
    assert "Error" in complaint
