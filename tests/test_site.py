"""The pages of docs/: their snippets run, and Sphinx builds the site without a warning: links, anchors, docstrings."""

import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import bunraku as bk
from browser import browser_page

DOCS = Path(__file__).parent.parent / "docs"
# The build runs ideas.md; recordings.md and motion.md run beside what they describe
RUNNABLE = [*(DOCS / f"{name}.md" for name in ("index", "start", "replay", "viewing")),
            DOCS / "contact.md", DOCS / "worlds.md", *sorted((DOCS / "howto").glob("*.md"))]


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.stem)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    """All blocks of a page, one after the other; a traceback shows lines of the page."""
    monkeypatch.chdir(tmp_path)
    text, scope = page.read_text("utf-8"), {}
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert blocks
    for block in blocks:
        lines = text[:block.start(1)].count("\n")
        exec(compile("\n" * lines + block[1], str(page), "exec"), scope)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for name in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(name, reason='the site needs pip install "bunraku[docs]"')
    folder = tmp_path_factory.mktemp("site")
    answer = subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", DOCS, folder],
                            capture_output=True, text=True, timeout=900)
    assert answer.returncode == 0, answer.stderr
    return folder


def test_the_reference_has_every_public_name(site):
    lines = zlib.decompress((site / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode().splitlines()
    listed = {line.split()[0] for line in lines if " py:" in line}
    assert {f"bunraku.{name}" for name in bk.__all__} <= listed
    assert {"bunraku.Simulation.pull", "bunraku.models.human", "bunraku.view.filmstrip"} <= listed


def test_docstrings_keep_their_lists_of_arguments(site):
    text = re.sub(r"<[^>]+>", "", (site / "reference.html").read_text("utf-8"))
    assert re.search(r"baumgarte\s*loops are closed after every step by the smallest move", text)
    assert re.search(r"rank\s*how many of them are independent", text)  # the comment of a field


def test_each_idea_has_a_picture_that_leads_to_its_replay(site):
    ideas, page = (DOCS / "ideas.md").read_text("utf-8"), (site / "ideas.html").read_text("utf-8")
    names = re.findall(r"\(images/ideas/(\w+)\.png\)", ideas)
    assert len(names) == len(re.findall(r"^## ", ideas, re.MULTILINE)) == 5
    for name in names:
        assert re.search(rf'<a class="[^"]*\breplay\b[^"]*" href="replays/{name}\.html"><img', page), name
        assert "three" in (site / "replays" / f"{name}.html").read_text("utf-8")
        assert (site / "_images" / f"{name}.png").exists()


@pytest.mark.parametrize("page", ["index", "ideas"])
def test_a_click_on_a_picture_plays_it_in_its_place(site, page):
    with browser_page(offline=True) as browser:
        browser.goto(f"file://{site}/{page}.html")
        browser.locator("a.replay").first.click()
        frame = browser.locator("iframe.replay").element_handle().content_frame()
        frame.wait_for_function("window.replay && replay.time > 0.3")
        assert browser.url.endswith(f"{page}.html")
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
