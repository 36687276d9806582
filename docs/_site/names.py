"""Reference pages: public names in place of `<!-- names: module ... -->`, docstrings as the source has them."""

import inspect
import re

import bunraku

ALIGNED = re.compile(r"(\w[\w, ]*?(?:, \.\.\.)?) {2,}(\S.*)")  # "name, other    meaning" in a docstring


def home(name: str) -> str:
    """The module of a public name, as people would look for it: evaluate, simulation, errors, ..."""
    found = getattr(bunraku, name)
    return (found.__name__ if inspect.ismodule(found) else found.__module__).split(".")[1]


def directive(name: str) -> str:
    found = getattr(bunraku, name)
    if inspect.ismodule(found):
        return f".. automodule:: {found.__name__}\n   :members:\n   :imported-members:\n"
    if inspect.isclass(found) and issubclass(found, BaseException):
        return f".. autoexception:: bunraku.{name}\n   :show-inheritance:\n"
    if inspect.isclass(found):
        return f".. autoclass:: bunraku.{name}\n   :members:\n"
    return f".. autofunction:: bunraku.{name}\n"


def list_names(app, docname: str, source: list[str]) -> None:
    """Each marker lists the names of its modules; `others` those of modules that no marker of the page names."""
    marker = r"(## [^\n]+\n\n)?<!-- names: (.+?) -->"
    named = {module for _, found in re.findall(marker, source[0]) for module in found.split()}

    def block(found):
        heading, modules = found[1] or "", found[2].split()
        names = [name for name in bunraku.__all__
                 if home(name) in modules or ("others" in modules and home(name) not in named)]
        return heading + "```{eval-rst}\n" + "\n".join(map(directive, names)) + "\n```" if names else ""

    source[0] = re.sub(marker, block, source[0])


def as_rst(app, what, name, obj, options, lines: list[str]) -> None:
    """Docstrings are plain text: aligned lists of arguments become definitions, other indented lines stay as they are."""
    if obj.__doc__ and (what in ("attribute", "data") or obj.__doc__.startswith(f"{getattr(obj, '__name__', '')}(")):
        lines[:] = []  # of a builtin type, or generated for a dataclass or named tuple: says nothing
        return
    written: list[str] = []
    indent, literal = None, False  # of the list that a line continues
    for line in lines:
        found = ALIGNED.fullmatch(line)
        depth = len(line) - len(line.lstrip())
        if found and not depth:
            if indent is None:
                written.append("")
            written += [f":{found[1]}: {_marked(found[2])}"]
            indent, literal = found.start(2), False
        elif indent and depth >= indent:
            written.append(f"   {_marked(line.strip())}")
        elif depth and line.strip():
            if not literal:
                written += ["", "::", ""]
            written.append("   " + line)
            literal = True
        else:
            if indent or literal:
                written.append("")
            written.append(_marked(line))
            indent, literal = None, literal and not line
    lines[:] = written


def _marked(text: str) -> str:
    """Code in backticks as code; characters that mean something in reStructuredText as themselves."""
    pieces = re.split(r"(`[^`]+`)", text)
    return "".join(f"`{piece}`" if k % 2 else re.sub(r"([\\*|`]|_(?=\W|$))", r"\\\1", piece)
                   for k, piece in enumerate(pieces))


def setup(app):
    app.connect("source-read", list_names)
    app.connect("autodoc-process-docstring", as_rst)
    return {"parallel_read_safe": True}
