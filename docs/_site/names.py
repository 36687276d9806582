"""The reference: public names in place of `<!-- names: ... -->`, with docstrings as the source has them."""

import dataclasses
import inspect
import re
from functools import reduce

from sphinx.errors import ExtensionError
from sphinx.util.inspect import stringify_signature

import bunraku

MARKER = re.compile(r"(## [^\n]+\n\n)?<!-- names: (.+?) -->")
ALIGNED = re.compile(r"(\w[\w, ]*?(?:, \.\.\.)?) {2,}(\S.*)")  # "name, other    meaning" in a docstring
FIELD = re.compile(r"^    (\w+): [^#\n]+?  # (.+(?:\n {20,}# .+)*)$", re.MULTILINE)  # with a comment, in a class

CONTINUED = re.compile(r"\s*\n *# ")  # a comment on the next line


def list_names(app, docname: str, source: list[str]) -> None:
    """A marker has names ("load", "evaluate.Report"), folders ("io": its public names that the page does not name
    by themselves; "view.*": all names of bunraku.view), or "others": public names of all folders that it does not name.
    A heading above no names is left out."""
    words = {word for _, found in MARKER.findall(source[0]) for word in found.split()}
    folders = {home(name) for name in bunraku.__all__}
    left = {name: home(name) for name in bunraku.__all__ if name not in words}

    def block(found) -> str:
        names: list[str] = []
        for word in found[2].split():
            if word.endswith(".*"):
                names += [word[:-1] + name for name in getattr(bunraku, word[:-2]).__all__]
            elif word in bunraku.__all__ or "." in word:
                names.append(word)
            elif word in (*folders, "others"):
                names += [name for name, folder in left.items()
                          if word == folder or (word == "others" and folder not in words)]
            else:
                raise ExtensionError(f"{docname}.md: {word!r} is no public name of bunraku, nor a folder of any")
        heading = found[1] or ""
        return heading + "```{eval-rst}\n" + "\n".join(map(directive, names)) + "\n```" if names else ""

    source[0] = MARKER.sub(block, source[0])


def home(name: str) -> str:
    """The folder of a public name: evaluate, simulation, errors, ..."""
    found = getattr(bunraku, name)
    return (found.__name__ if inspect.ismodule(found) else found.__module__).split(".")[1]


def directive(name: str) -> str:
    found = reduce(getattr, name.split("."), bunraku)
    if inspect.ismodule(found):
        return f".. automodule:: {found.__name__}\n   :members:\n   :imported-members:\n"
    if not inspect.isclass(found):
        return f".. autofunction:: bunraku.{name}\n"
    if issubclass(found, BaseException):
        return f".. autoexception:: bunraku.{name}\n   :show-inheritance:\n"
    return f".. autoclass:: bunraku.{name}\n   :members:\n   :exclude-members: changed, elements\n"


def arguments(app, what, name, obj, options, signature, annotation):
    """Classes have the arguments of `__init__`, whatever their metaclass does; results are not made by people."""
    if what != "class" or not signature:
        return None
    if dataclasses.is_dataclass(obj) or issubclass(obj, tuple):
        return "", None
    own = inspect.signature(obj.__init__)
    public = [p for p in list(own.parameters.values())[1:] if not p.name.startswith("_")]
    return stringify_signature(own.replace(parameters=public)), None


def as_rst(app, what, name, obj, options, lines: list[str]) -> None:
    """Aligned lists of arguments become definitions, and so do fields of classes with their comments; other indented
    lines stay as they are."""
    if what == "attribute":
        lines[:] = []  # only the docstring of its type
        return
    written: list[str] = []
    listed, literal = 0, False  # column of the list that a line may continue; whether it may continue a literal block
    for line in lines:
        found, depth = ALIGNED.fullmatch(line), len(line) - len(line.lstrip())
        if found:
            written += [""] * (not listed) + [f"``{found[1]}``", f"   {_marked(found[2])}"]
            listed, literal = found.start(2), False
        elif listed and depth >= listed:
            written.append(f"   {_marked(line.strip())}")
        elif depth and line.strip():
            written += ([] if literal else ["", "::", ""]) + ["   " + line]
            listed, literal = 0, True
        else:
            written += [""] * bool(line and (listed or literal)) + [_marked(line)]
            listed, literal = 0, literal and not line
    if what == "class" and (fields := FIELD.findall(inspect.getsource(obj))):
        written.append("")
        for field, comment in fields:
            written += [f"``{field}``", f"   {_marked(CONTINUED.sub(' ', comment))}"]
        written.append("")
    lines[:] = written


def _marked(text: str) -> str:
    """Code in backticks as code; characters that mean something in reStructuredText as themselves."""
    pieces = re.split(r"(`[^`]+`)", text)
    return "".join(f"`{piece}`" if k % 2 else re.sub(r"([\\*|`]|_(?=\W|$))", r"\\\1", piece)
                   for k, piece in enumerate(pieces))


def setup(app):
    app.connect("source-read", list_names)
    app.connect("autodoc-process-signature", arguments)
    app.connect("autodoc-process-docstring", as_rst)
    return {"parallel_read_safe": True}
