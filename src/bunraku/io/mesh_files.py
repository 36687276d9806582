"""Mesh files that a URDF names: where they are on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from bunraku.io.findings import Findings
from bunraku.io.xml import Node, clip


def places_of(search) -> list[str]:
    """Folders to search for packages: those given, then those of ROS_PACKAGE_PATH."""
    places = [search] if isinstance(search, (str, os.PathLike)) else list(search)
    ros = os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)
    return [os.path.abspath(os.fspath(place)) for place in [*places, *filter(None, ros)]]


class MeshFiles:
    """Locates mesh files without opening them or accessing a network."""

    def __init__(self, path: Path, search):
        self.folder = os.path.dirname(os.path.abspath(path))
        self.places = places_of(search)
        self.packages: dict[str, list[str]] = {}
        self.missing: list[tuple[str, str]] = []

    def resolve(self, name: str, node: Node) -> str:
        """The file's path, or the unchanged name if there is no such file."""
        for candidate in self._candidates(name):
            if os.path.isfile(candidate):
                return os.path.normpath(candidate)
        self.missing.append((node.label, name))
        return name

    def _candidates(self, name: str) -> Iterator[str]:
        scheme, separator, rest = name.partition("://")
        if not separator:
            yield from (os.path.join(place, name) for place in (self.folder, *self.places))
        elif scheme in ("package", "model"):
            package, _, inner = rest.lstrip("/").partition("/")
            yield from (os.path.join(folder, inner) for folder in self._package(package))
        elif scheme == "file":
            yield os.path.join(self.folder, rest)

    def _package(self, package: str) -> list[str]:
        """Folders the package may be in: around the file, going up, then the search path."""
        if package not in self.packages:
            around, folder = [], self.folder
            while folder != os.path.dirname(folder):
                around.append(folder)
                folder = os.path.dirname(folder)
            found = []
            for place in (*around, *self.places) if package not in ("", ".", "..") else ():
                found += [place] if os.path.basename(place) == package else []
                inside = os.path.join(place, package)
                found += [inside] if os.path.isdir(inside) else []
            self.packages[package] = found
        return self.packages[package]

    def note_missing(self, findings: Findings) -> None:
        if self.missing:
            label, name = self.missing[0]
            more = f" (and {len(self.missing) - 1} more)" if len(self.missing) > 1 else ""
            findings.note(f"visual of {label}", f"mesh {clip(name, 120)!r}{more} not found; "
                                                "name the folder of its package in search=...")
