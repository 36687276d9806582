"""What ARCHITECTURE.md and docs/equations.md say of the source is so."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "bunraku"
TAG = r"\[(?:YN02|YN99|YN-HRP|J|F), [^\]]+\]"
EQUATIONS = (ROOT / "docs" / "equations.md").read_text("utf-8")
ROWS = re.findall(rf"^\| ({TAG}) \| .+? \| (.+?) \|$", EQUATIONS, re.MULTILINE)
WALKS = re.findall(r"^### Walk: (.+?)\n(.*?)(?=^##)", (ROOT / "ARCHITECTURE.md").read_text("utf-8"),
                   re.MULTILINE | re.DOTALL)
MOST_FILES = 12


@pytest.mark.parametrize(("tag", "files"), ROWS, ids=[row[0] for row in ROWS])
def test_a_listed_equation_is_found_by_its_tag(tag, files):
    for name in re.findall(r"`(.+?)`", files):
        assert tag in (SOURCE / name).read_text("utf-8"), name


def test_every_paper_has_equations():
    for paper in ("YN02", "YN99", "YN-HRP", "J", "F"):
        assert sum(tag.startswith(f"[{paper},") for tag, _ in ROWS) >= 2, paper


def test_every_numbered_equation_of_the_source_is_listed():
    listed = {tag for tag, _ in ROWS}
    for path in SOURCE.rglob("*.py"):
        for tag in re.findall(TAG, path.read_text("utf-8")):
            assert tag in listed or not re.search(r"eqs?\. \d", tag), f"{tag} in {path.name}"


def test_there_are_six_walks():
    assert len(WALKS) == 6


@pytest.mark.parametrize(("name", "text"), WALKS, ids=[walk[0] for walk in WALKS])
def test_a_walk_goes_through_few_files_and_never_back(name, text):
    files = re.findall(r"^\d+\. `(.+?)`", text, re.MULTILINE)
    assert 3 <= len(files) <= MOST_FILES
    rooms = []
    for file in files:
        assert (SOURCE / file).exists(), file
        room = file.split("/")[0]
        if not rooms or rooms[-1] != room:
            assert room not in rooms, f"back into {room}"
            rooms.append(room)
