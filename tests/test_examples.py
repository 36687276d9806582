"""Every example runs as a script and writes its pictures."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(script, tmp_path, monkeypatch, capsys):
    """In this process, which saves its start; pytest makes warnings errors."""
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path)])
    runpy.run_path(str(script), run_name="__main__")
    shown = capsys.readouterr().out
    pictures = [path for path in tmp_path.iterdir() if path.suffix == ".png"]
    assert pictures
    assert all(str(path) in shown for path in pictures)
