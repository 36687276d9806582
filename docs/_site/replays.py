"""Pictures and replays of the motions on a page, computed by its own snippets.

A picture `images/ideas/NAME.png` shows the `trajectory` of the snippet before it, which draws it. The site links it to
the replay, made when the site is built. The picture of the demo leads to that of the motion in the package. The
pictures are kept in the repository:

    python docs/_site/replays.py        draws them again
"""

import re
import warnings
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

DOCS = Path(__file__).parent.parent
PAGE, PICTURES, REPLAYS = "ideas", "images/ideas", "replays"
DEMO, SCENE = "images/demo.png", "highbar"


def motions(folder: Path) -> Iterator[tuple[str, str, object]]:
    """Name, title and trajectory of every picture on the page; the snippets draw into a folder."""
    text = (DOCS / f"{PAGE}.md").read_text("utf-8")
    title = snippet = ""
    for heading, code, name in re.findall(rf"^## ([^\n]+)|^```python\n(.*?)```|^!\[[^\]]*\]\({PICTURES}/(\w+)\.png\)",
                                          text, re.MULTILINE | re.DOTALL):
        title, snippet = heading or title, code or snippet
        if name:
            scope: dict = {}
            with chdir(folder), redirect_stdout(None), warnings.catch_warnings(action="error"):
                exec(compile(snippet, f"{PAGE}.md", "exec"), scope)
            yield name, title, scope["trajectory"]


def make_replays(app) -> None:
    """Replays in the folder of the site; `app.env.replays` has them by picture."""
    from sphinx.util import logging

    from bunraku.replay_file import recorded
    from bunraku.view import replay_html

    if app.builder.format != "html":
        return
    folder, start = Path(app.outdir) / REPLAYS, perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    app.env.replays = {DEMO: f"{SCENE}.html"}
    (folder / f"{SCENE}.html").write_text(recorded(SCENE), "utf-8", newline="\n")
    with TemporaryDirectory() as drawn:
        for name, title, trajectory in motions(Path(drawn)):
            replay = replay_html(trajectory, folder / f"{name}.html", title=title)
            app.env.replays[f"{PICTURES}/{name}.png"] = replay.name
    logging.getLogger(__name__).info("%d replays in %.1f s", len(app.env.replays), perf_counter() - start)


def link_pictures(app, doctree, docname: str) -> None:
    """A picture of a motion leads to its replay; _static/replay.js opens that in the picture's place."""
    from docutils import nodes

    for image in list(doctree.findall(nodes.image)):
        if replay := getattr(app.env, "replays", {}).get(image["uri"]):
            link = nodes.reference("", "", refuri=f"{'../' * docname.count('/')}{REPLAYS}/{replay}", classes=["replay"],
                                   internal=False)
            image.replace_self(link)
            link += image


def setup(app):
    app.connect("builder-inited", make_replays)
    app.connect("doctree-resolved", link_pictures)
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    for name, *_ in motions(DOCS / PICTURES):
        print(f"{PICTURES}/{name}.png")
