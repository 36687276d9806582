"""XML of model files, read safely: bounded, without entities or network, every element with its line.

Built on the standard library's expat. Elements are `Node`s, which know their line and read their own attributes, so
that errors name file, element and line.
"""

from __future__ import annotations

import contextlib
import math
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from xml.parsers import expat

from bunraku.errors import LoadError, MissingFileError

MAX_BYTES = 32 * 2**20
MAX_ELEMENTS = 150_000
MAX_DEPTH = 1000
MAX_NAME = 500
MAX_NUMBER = 1e50   # what is larger overflows somewhere later


class Node:
    """One element: its tag, attributes, children, pieces of text and line."""

    __slots__ = ("attributes", "children", "line", "path", "pieces", "tag")

    def __init__(self, path: Path, tag: str, attributes: dict[str, str], line: int):
        self.path, self.tag, self.attributes, self.line = path, tag, attributes, line
        self.children: list[Node] = []
        self.pieces: list[str] = []

    @property
    def text(self) -> str:
        """The text between its tags, without that of children."""
        return "".join(self.pieces).strip()

    @property
    def label(self) -> str:
        """Name of the element in messages: "joint 'elbow', line 12", or "<origin>, line 12"."""
        name = self.attributes.get("name")
        return f"{clip(self.tag)} {clip(name)!r}, line {self.line}" if name else f"<{clip(self.tag)}>, line {self.line}"

    def refuse(self, text: str) -> LoadError:
        """The error to raise about this element."""
        return LoadError(f"{self.path}: {self.label}: {text}")

    def all(self, tag: str) -> list[Node]:
        return [child for child in self.children if child.tag == tag]

    def one(self, tag: str) -> Node | None:
        """The child of this tag, if there is one; more than one is an error."""
        found = self.all(tag)
        if len(found) > 1:
            raise found[1].refuse(f"{self.label} already has a <{tag}>, line {found[0].line}")
        return found[0] if found else None

    def get(self, attribute: str) -> str | None:
        return self.attributes.get(attribute)

    def name(self, attribute: str = "name") -> str:
        """A required attribute that holds a name."""
        text = self.attributes.get(attribute)
        if text is None or not text.strip():
            raise self.refuse(f"needs the attribute {attribute!r}")
        if len(text) > MAX_NAME:
            raise self.refuse(f"{attribute} is {len(text)} characters long; at most {MAX_NAME} are read")
        return text

    def number(self, attribute: str, default: float | None = None, infinite: bool = False) -> float:
        """One number; an error if it is missing and there is no default."""
        text = self.attributes.get(attribute)
        if text is None:
            if default is None:
                raise self.refuse(f"needs the attribute {attribute!r}")
            return default
        return self._float(attribute, text, infinite)

    def numbers(self, attribute: str, counts: Sequence[int], default: Sequence[float] | None = None) -> list[float]:
        """A list of numbers whose length is one of `counts`."""
        text = self.attributes.get(attribute)
        if text is None:
            if default is None:
                raise self.refuse(f"needs the attribute {attribute!r}")
            return list(default)
        parts = text.split(maxsplit=max(counts))
        if len(parts) not in counts:
            raise self.refuse(f"{attribute} must be {' or '.join(map(str, counts))} numbers, not {clip(text)!r}")
        return [self._float(attribute, part) for part in parts]

    def values(self, counts: Sequence[int], infinite: bool = False) -> list[float]:
        """The numbers that are its text; their number is one of `counts`."""
        parts = self.text.split(maxsplit=max(counts))
        if len(parts) not in counts:
            raise self.refuse(f"must be {' or '.join(map(str, counts))} numbers, not {clip(self.text)!r}")
        return [self._float("it", part, infinite) for part in parts]

    def _float(self, attribute, text, infinite=False) -> float:
        try:
            value = math.nan if "_" in text else float(text)
        except ValueError:
            value = math.nan
        if math.isnan(value) or (abs(value) > MAX_NUMBER and not infinite):
            raise self.refuse(f"{attribute} has {clip(text)!r} where a finite number should be")
        return value


def clip(text: str, length: int = 60) -> str:
    """Text short enough for a message."""
    return text if len(text) <= length else text[:length - 3] + "..."


def read_xml(path: str | os.PathLike, data: bytes | None = None) -> Node:
    """The root element of a file, or of `data` that was made from it."""
    path = Path(path)
    reader = _Reader(path)
    reader.feed(read_bytes(path) if data is None else data)
    return reader.root


def root_tag(path: str | os.PathLike) -> str:
    """The tag of a file's root element; the rest of the file is not read."""
    path = Path(path)
    reader = _Reader(path, only_root=True)
    with contextlib.suppress(_Enough):
        reader.feed(read_bytes(path))
    return reader.root.tag


def read_bytes(path: Path, limit: int = MAX_BYTES) -> bytes:
    """The content of a regular file that is not larger than `limit`."""
    try:
        status = os.stat(path)
        mode = status.st_mode
        if not stat.S_ISREG(mode):
            kind = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
            raise LoadError(f"{path}: is {kind}; give the model file itself")
        with open(path, "rb") as file:
            data = file.read(min(limit, status.st_size) + 1)
    except FileNotFoundError:
        raise MissingFileError(f"{path}: there is no such file") from None
    except (OSError, ValueError) as error:
        raise LoadError(f"{str(path)!r}: cannot be read: {error}") from None
    if max(len(data), status.st_size) > limit:
        raise LoadError(f"{path}: is larger than {limit // 2**20} MiB; model files of that size are not read")
    if not data.strip():
        raise LoadError(f"{path}: the file is empty")
    return data


class _Enough(Exception):
    """Raised once the root element has been read."""


class _Reader:
    def __init__(self, path: Path, only_root: bool = False):
        self.path, self.only_root = path, only_root
        self.root: Node = Node(path, "", {}, 0)
        self.open: list[Node] = []
        self.count = 0

    def feed(self, data: bytes) -> None:
        if not self.only_root and data.count(b"<") > MAX_ELEMENTS:   # perhaps too many: count before building them
            self.count_elements(data)
        self.parser = parser = expat.ParserCreate()
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.characters
        parser.StartDoctypeDeclHandler = self.doctype
        parser.EntityDeclHandler = self.doctype
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            inside = f" inside {self.open[-1].label}" if self.open else ""
            reason = expat.ErrorString(error.code)
            raise LoadError(f"{self.path}: line {error.lineno}: not well-formed XML{inside}: {reason}") from None
        except LoadError:
            raise
        except (ValueError, LookupError) as error:  # an encoding that Python cannot decode
            raise LoadError(f"{self.path}: line {parser.CurrentLineNumber}: cannot be decoded: "
                            f"{clip(str(error), 200)}") from None
        finally:
            parser.StartElementHandler = parser.EndElementHandler = None  # they refer to the parser in a circle
            parser.CharacterDataHandler = None
            parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = None

    def count_elements(self, data: bytes) -> None:
        """Reject a file of too many elements, in a tenth of the time of building them."""
        count = 0

        def start(tag, attributes):
            nonlocal count
            count += 1
            if count > MAX_ELEMENTS:
                raise LoadError(f"{self.path}: <{clip(tag)}>, line {parser.CurrentLineNumber}: the file has more than "
                                f"{MAX_ELEMENTS} elements")

        self.parser = parser = expat.ParserCreate()
        parser.StartElementHandler, parser.StartDoctypeDeclHandler = start, self.doctype
        try:
            parser.Parse(data, True)
        except LoadError:
            raise
        except (expat.ExpatError, ValueError, LookupError):
            pass   # building the elements meets the same and says where
        finally:
            parser.StartElementHandler = parser.StartDoctypeDeclHandler = None

    def start(self, tag, attributes):
        node = Node(self.path, tag, attributes, self.parser.CurrentLineNumber)
        self.count += 1
        if self.count == 1:
            self.root = node
            if self.only_root:
                raise _Enough
        else:
            self.open[-1].children.append(node)
        if len(self.open) >= MAX_DEPTH:
            raise node.refuse(f"elements are nested more than {MAX_DEPTH} deep")
        self.open.append(node)

    def end(self, tag):
        self.open.pop()

    def characters(self, text):
        if self.open and not text.isspace():
            self.open[-1].pieces.append(text)

    def doctype(self, *ignored):
        raise LoadError(f"{self.path}: line {self.parser.CurrentLineNumber}: document type and entity declarations are "
                        "not read (they can make a small file unfold to gigabytes); remove the <!DOCTYPE ...>")
