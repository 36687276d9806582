"""ARCHITECTURE.md and docs/equations.md agree with the source."""

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
        assert tag in tagged_file(name).read_text("utf-8"), name


def test_every_equation_has_one_row():
    tags = [tag for tag, _ in ROWS]
    assert len(set(tags)) == len(tags)
    assert len(ROWS) == EQUATIONS.count("\n| [")


@pytest.mark.parametrize(("paper", "last"), [("YN02", 62), ("YN99", 29), ("YN-HRP", 7), ("J", 6), ("F", 3)])
def test_every_number_of_a_paper_occurs(paper, last):
    found = {number for tag, _ in ROWS if tag.startswith(f"[{paper},") for number in numbers(tag, r"eqs?\.")}
    assert found == {str(n) for n in range(1, last + 1)}


def test_every_step_of_the_parallel_listing_occurs():
    found = {number for tag, _ in ROWS if tag.startswith("[F, parallel") for number in numbers(tag, "steps?")}
    assert found == {"1.1", "1.2", "1.3", "1.4", "2.1", "2.2", "3.1", "3.2", "3.3", "3.4"}


def test_every_numbered_tag_of_a_file_is_listed_with_the_file():
    listed = {(tag, tagged_file(name)) for tag, files in ROWS for name in re.findall(r"`(.+?)`", files)}
    for path in (*SOURCE.rglob("*.py"), *ROOT.glob("tests/support/paper_*.py")):
        for tag in re.findall(TAG, path.read_text("utf-8")):
            assert (tag, path) in listed or not re.search(r"eqs?\. \d|, steps? \d", tag), f"{tag} in {path.name}"


def tagged_file(name):
    return ROOT / name if name.startswith("tests/") else SOURCE / name


def numbers(tag, after):
    """Numbers of a tag, ranges written out: "eqs. 11-14, 20", "steps 3.1-3.3"."""
    match = re.search(rf"{after} ([\d.,\s-]+)\]", tag)
    for part in match.group(1).split(", ") if match else ():
        first, *last = part.split("-")
        head, dot, count = first.rpartition(".")
        for n in range(int(count), int(last[0].rpartition(".")[2] if last else count) + 1):
            yield f"{head}{dot}{n}"


def test_there_are_eleven_walks():
    assert len(WALKS) == 11


@pytest.mark.parametrize(("name", "text"), WALKS, ids=[walk[0] for walk in WALKS])
def test_a_walk_goes_through_few_files(name, text):
    files = re.findall(r"^\d+\. `(.+?)`", text, re.MULTILINE)
    assert 3 <= len(files) <= MOST_FILES
    for file in files:
        assert (SOURCE / file).exists(), file
