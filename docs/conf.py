"""The site: Sphinx, MyST and Furo, from the Markdown in this folder.

    sphinx-build -W --keep-going docs OUT

Pages are plain Markdown that GitHub shows as well. `_site/` adds the public names in place of `<!-- names: ... -->`
(reference.md), docstrings as the source has them, and replays of the motions that the snippets of ideas.md compute.
"""

import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
os.environ.setdefault("BUNRAKU_QUIET", "1")
sys.path[:0] = [str(HERE.parent / "src"), str(HERE / "_site")]

import bunraku  # noqa: E402
from bunraku.view.filmstrip import FAINT, INK, KINETIC, PAPER, POTENTIAL  # noqa: E402

project = "bunraku"
author = "The bunraku developers"
copyright = author
version = release = bunraku.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "names", "replays"]
exclude_patterns = ["_site", "images"]
highlight_language = "none"
smartquotes = False  # docstrings quote code

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = "bunraku"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["replay.js"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_style = "friendly"
pygments_dark_style = "native"
NIGHT, CHALK = "#1f2226", "#e8e3d8"  # paper and ink after dark
html_theme_options = {
    "light_css_variables": {
        "color-background-primary": PAPER, "color-background-secondary": "#f4f0e6", "color-background-hover": "#ece6d8",
        "color-background-border": "#e2dccd", "color-foreground-primary": INK, "color-foreground-secondary": "#5a5f66",
        "color-foreground-border": FAINT, "color-brand-primary": POTENTIAL, "color-brand-content": "#26696f",
        "color-brand-visited": "#26696f", "color-code-background": "#f4f0e6", "color-highlight-on-target": "#f3e3c8",
        "color-api-name": KINETIC, "color-api-pre-name": "#5a5f66",
    },
    "dark_css_variables": {
        "color-background-primary": NIGHT, "color-background-secondary": "#26292e", "color-background-hover": "#30343a",
        "color-background-border": "#383c43", "color-foreground-primary": CHALK,
        "color-foreground-secondary": "#b5afa2", "color-foreground-border": "#6b675e", "color-brand-primary": "#6fb9bf",
        "color-brand-content": "#7cc4ca", "color-brand-visited": "#7cc4ca", "color-code-background": "#26292e",
        "color-highlight-on-target": "#4a3f2c", "color-api-name": "#e58a6b", "color-api-pre-name": "#b5afa2",
    },
}


def relink(app, path, docname, content):
    """Links of pages that are included from the folder above."""
    pages = {"ARCHITECTURE": "architecture", "CONTRIBUTING": "contributing", "CHANGELOG": "changes"}
    for name, page in pages.items():
        content[0] = content[0].replace(f"]({name}.md", f"]({page}.md")
    content[0] = content[0].replace("](docs/", "](").replace("](src/", "](../src/")


def list_others(app, docname, source):
    """`others` in a table of contents of index.md stands for all pages that none of them names."""
    if docname == "index":
        named = {"index", *re.findall(r"^[\w/-]+$", source[0], re.MULTILINE)}
        source[0] = source[0].replace("\nothers\n", "\n".join(["", *sorted(app.env.found_docs - named), ""]))


def setup(app):
    app.connect("include-read", relink)
    app.connect("source-read", list_others)
