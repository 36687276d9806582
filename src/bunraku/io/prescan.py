"""Security check of an MJCF file before MuJoCo opens it: bounded size, depth and counts, no entities, local includes.

MuJoCo reads every file that a model names and builds any number of elements. This pass reads the XML of the file, of
its includes and of attached models, without building anything, and rejects abnormal models in a time proportional to
the size of the files; every error names file and line.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from xml.parsers import expat

from bunraku.io.findings import Findings

MAX_BYTES = 32_000_000        # of one XML file
MAX_ASSET_BYTES = 500_000_000  # of one mesh or height field
MAX_DEPTH = 499               # of nested elements, as MuJoCo
MAX_ELEMENTS = 50_000         # in all files together, copies included: MuJoCo's time grows with their square
MAX_BODIES = 10_000           # likewise
MAX_ATTRIBUTES = 200          # of one element
MAX_NAME = 500                # characters of a tag or name
MAX_FILES = 200               # included or attached
MAX_CHAIN = 20                # depth of includes within includes
MAX_COPIES = 5_000            # by replicate, composite and flexcomp
MAX_NUMBER = 10_000           # for attributes that only say how much memory to take

BOUNDED = {"composite": ("count",), "flexcomp": ("count", "cellcount"), "replicate": ("count",),
           "mesh": ("params", "octree_maxdepth", "maxhullvert"), "hfield": ("nrow", "ncol"), "numeric": ("size",),
           "user": ("dim",), "texture": ("width", "height"),
           "size": ("nkey", "nuserdata", "nuser_body", "nuser_jnt", "nuser_geom", "nuser_site", "nuser_cam",
                    "nuser_tendon", "nuser_actuator", "nuser_sensor")}
"""Attributes that count or allocate, by element. Those that size MuJoCo's own stacks are set aside by the reader."""

ASSETS = {"mesh": "meshdir", "hfield": "meshdir", "skin": "meshdir", "flexcomp": "meshdir", "composite": "meshdir",
          "geom": "meshdir"}
"""Elements whose `file` MuJoCo will open, and the compiler setting of its directory."""


def prescan(path: Path, findings: Findings) -> dict[str, str]:
    """Raise a LoadError for a file that is unsafe for MuJoCo; else return {file: the element that names it}."""
    scan = _Scan(findings)
    scan.model(Path(os.path.abspath(path)))
    return scan.named


class _Scan:
    """One pass over a model and everything it names."""

    def __init__(self, findings: Findings):
        self.findings = findings
        self.elements = self.bodies = 0.0
        self.files = 0
        self.named: dict[str, str] = {}
        self.chain: list[Path] = []  # files being read, each named by the one before

    def model(self, path: Path) -> None:
        """A whole model: `path` and its includes, which may set mesh directories in any order."""
        folders: dict[str, str] = {}
        assets: list[tuple[str, str, str]] = []
        self.file(path, path.parent, ("mujoco",), folders, assets)
        for where, tag, name in assets:
            self.asset(path.parent, folders, where, tag, name)

    def file(self, path: Path, home: Path, roots, folders, assets) -> None:
        if self.files >= MAX_FILES:
            raise self.findings.refuse(path.name, f"more than {MAX_FILES} files are included")
        self.files += 1
        data = read_bounded(path, self.findings, MAX_BYTES)
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise self.findings.refuse(f"{path.name}, line {line}", "is not UTF-8 text") from None
        self.chain.append(path)
        _Reader(self, path, home, roots, folders, assets).read(without_comments(data))
        self.chain.pop()

    def include(self, where: str, name: str, path: Path, home: Path, roots, folders, assets) -> None:
        """MuJoCo looks beside the main file; newer versions also beside the including one."""
        found = False
        for folder in dict.fromkeys((home, path.parent)):
            target = Path(os.path.normpath(folder / name))
            if os.path.isabs(name) or not target.is_relative_to(home.parent):
                raise self.findings.refuse(where, f"{name!r} lies outside {home.parent}, which a model may not leave")
            if os.path.lexists(target):
                found = True
                if target in self.chain or len(self.chain) > MAX_CHAIN:
                    raise self.findings.refuse(where, f"{name!r} includes itself, or files nest too deep")
                if roots:
                    self.file(target, home, roots, folders, assets)
                else:
                    self.model(target)
        if not found:
            raise self.findings.refuse(where, f"there is no file {name!r} in {home}")

    def asset(self, home: Path, folders, where: str, tag: str, name: str) -> None:
        directory = folders.get(ASSETS[tag], folders.get("assetdir", ""))
        self.named[name] = where
        if folders.get("strippath") == "true":
            name = re.split(r"[\\/]", name)[-1]
        for target in (home / directory / name, home / name):
            if os.path.lexists(target):
                check_regular(target, self.findings, where, MAX_ASSET_BYTES)


class _Reader:
    """Reads one XML file with expat."""

    def __init__(self, scan: _Scan, path: Path, home: Path, roots, folders, assets):
        self.scan, self.path, self.home = scan, path, home
        self.roots, self.folders, self.assets = roots, folders, assets
        self.copies: list[float] = [1.0]  # how often the elements at each depth will be made
        self.later: list[tuple[str, str, bool]] = []
        self.parser = expat.ParserCreate(namespace_separator=None)
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.EntityDeclHandler = self.doctype

    def read(self, data: bytes) -> None:
        try:
            self.parser.Parse(data, True)
        except expat.ExpatError as error:
            text = expat.ErrorString(error.code)
            raise self.scan.findings.refuse(f"{self.path.name}, line {error.lineno}", f"is not XML: {text}") from None
        for where, name, model in self.later:
            self.scan.include(where, name, self.path, self.home, () if model else ("mujocoinclude", "mujoco"),
                              self.folders, self.assets)

    def refuse(self, tag: str, text: str):
        tag = tag if len(tag) < 60 else tag[:57] + "..."
        return self.scan.findings.refuse(f"{self.path.name}, <{tag}>, line {self.parser.CurrentLineNumber}", text)

    def doctype(self, *_):
        raise self.refuse("!DOCTYPE", "document types and entities are not read; write the model out in full")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        depth = len(self.copies)
        if depth == 1 and self.roots and tag not in self.roots:
            raise self.refuse(tag, f"an MJCF file starts with <{self.roots[0]}>")
        if depth > MAX_DEPTH:
            raise self.refuse(tag, f"nested more than {MAX_DEPTH} deep")
        if len(attributes) > MAX_ATTRIBUTES:
            raise self.refuse(tag, f"has {len(attributes)} attributes; at most {MAX_ATTRIBUTES} are read")
        if max(len(tag), len(attributes.get("name", "")), len(attributes.get("class", ""))) > MAX_NAME:
            raise self.refuse(tag, f"has a name of more than {MAX_NAME} characters")
        for name, value in attributes.items():
            if "%" in value and name not in ("data", "info"):
                raise self.refuse(tag, f"{name} holds a '%', which MuJoCo takes for formatting")  # and may crash on
        copies = self.copies[-1]
        for name in BOUNDED.get(tag, ()):
            if name in attributes:
                product = self.bounded(tag, name, attributes[name])
                copies *= max(product, 1.0) if name in ("count", "cellcount") else 1.0
        if copies > MAX_COPIES:
            raise self.refuse(tag, f"makes {copies:.3g} copies; at most {MAX_COPIES} are read")
        self.scan.elements += copies
        self.scan.bodies += copies if tag in ("body", "composite", "flexcomp") else 0
        if self.scan.elements > MAX_ELEMENTS or self.scan.bodies > MAX_BODIES:
            raise self.refuse(tag, f"the model has more than {MAX_ELEMENTS} elements or {MAX_BODIES} bodies")
        self.copies.append(copies)
        where = f"{self.path.name}, <{tag}>, line {self.parser.CurrentLineNumber}"
        if tag == "compiler":
            self.folders.update({key: attributes[key] for key in ("meshdir", "assetdir", "strippath")
                                 if key in attributes})
        elif tag in ("include", "model") and "file" in attributes:
            self.later.append((where, attributes["file"], tag == "model"))
        elif tag in ASSETS and "file" in attributes:
            self.assets.append((where, tag, attributes["file"]))

    def bounded(self, tag: str, name: str, text: str) -> float:
        """The product of the numbers of an attribute, each within its bound."""
        product = 1.0
        for word in text.split():
            try:
                number = float(word)
            except ValueError:
                continue  # MuJoCo says what is wrong with it
            limit = MAX_COPIES if name == "count" else MAX_NUMBER
            if not math.isfinite(number) or abs(number) > limit:
                raise self.refuse(tag, f"{name} is {word}; at most {limit} is read")
            product *= max(abs(number), 1.0)
        return product

    def end(self, tag: str) -> None:
        self.copies.pop()


def without_comments(data: bytes) -> bytes:
    """XML with comments replaced by their line ends: MuJoCo allows "--" within them, expat does not."""
    kept, at = [], 0
    while (start := data.find(b"<!--", at)) >= 0 and (stop := data.find(b"-->", start + 4)) >= 0:
        kept += [data[at:start], b" ", b"\n" * data.count(b"\n", start, stop)]
        at = stop + 3
    return b"".join([*kept, data[at:]])


def check_regular(path: Path, findings: Findings, where: str, limit: int) -> None:
    """Reject anything but a regular file of bounded size: reading a pipe or device would never end."""
    try:
        regular, size = path.is_file(), path.stat().st_size
    except (OSError, ValueError) as error:
        raise findings.refuse(where, f"{path} cannot be read: {error}") from None
    if not regular:
        raise findings.refuse(where, f"{path} is not a file")
    if size > limit:
        raise findings.refuse(where, f"{path} is larger than {limit // 1_000_000} MB")


def read_bounded(path: Path, findings: Findings, limit: int) -> bytes:
    """The bytes of an ordinary file of bounded size."""
    check_regular(path, findings, path.name, limit)
    try:
        with open(path, "rb") as stream:
            return stream.read(limit + 1)
    except OSError as error:
        raise findings.refuse(path.name, f"cannot be read: {error.strerror}") from None
