"""The claims of the README hold."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = ('pip install ".[demo]" && bunraku demo', 'pip install -e ".[dev]" && pytest')
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def test_the_readme_shows_the_two_commands():
    lines = [line.strip() for line in README.splitlines()]
    assert all(command in lines for command in COMMANDS)


def test_the_python_of_the_readme_runs(tmp_path):
    code = "".join(re.findall(r"```python\n(.*?)```", README, re.DOTALL))
    answer = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, cwd=tmp_path,
                            timeout=900)
    assert answer.returncode == 0, answer.stderr
    assert "Trajectory of" in answer.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target
