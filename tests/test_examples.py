"""Every example runs as a script and writes its pictures."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(script, tmp_path):
    answer = subprocess.run([sys.executable, "-W", "error", str(script), str(tmp_path)], capture_output=True, text=True,
                            timeout=900)
    assert answer.returncode == 0, answer.stderr
    pictures = [path for path in tmp_path.iterdir() if path.suffix == ".png"]
    assert pictures
    assert all(str(path) in answer.stdout for path in pictures)
