"""The text of a BVH file: hierarchy and frames, in its own axes and units.

Read strictly: every frame has a number for every channel, on one line; errors name the line.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bunraku.io.lines import Lines
from bunraku.io.xml import MAX_NAME, clip
from bunraku.mechanism.links import GROUND

MAX_JOINTS = 10_000


@dataclass
class Node:
    """A joint of the file, or an end site."""

    name: str
    parent: int
    line: int
    end: bool = False
    offset: np.ndarray = field(default_factory=lambda: np.full(3, np.nan))
    rotations: str = ""                                          # axes, in the order of the channels: "ZYX"
    turns: list[int] = field(default_factory=list)               # their columns
    slides: dict[int, int] = field(default_factory=dict)         # axis of a position: its column
    channels: int = -1                                           # -1: not yet read


@dataclass
class Bvh:
    """Contents of the file, in its own axes and units, angles in degrees."""

    path: Path
    nodes: list[Node]       # parents first
    frame_time: float       # [s]
    frames: np.ndarray      # (frames, channels)


def read_bvh(path: str | os.PathLike) -> Bvh:
    """Contents of a BVH file."""
    reader = _Reader(Lines(Path(path)))
    nodes, channels = reader.hierarchy()
    return Bvh(Path(path), nodes, *reader.motion(channels))


class _Reader:
    def __init__(self, lines: Lines):
        self.lines = lines
        self.words = ((k, word) for k, text in enumerate(lines.lines, 1)
                      for word in text.replace("{", " { ").replace("}", " } ").split())
        self.line = 1

    def word(self, expected: str = "") -> str:
        """The next word; an error if another one is expected."""
        try:
            self.line, word = next(self.words)
        except StopIteration:
            raise self.lines.refuse(max(len(self.lines.lines), 1), "the file ends here, but "
                                    f"{expected or 'more'} is expected") from None
        if expected and word.upper() != expected.upper():
            raise self.refuse(f"{clip(word)!r} where {expected} is expected")
        return word

    def refuse(self, text: str):
        return self.lines.refuse(self.line, text)

    def name(self, keyword: str) -> str:
        """All words up to the opening brace."""
        line = self.line
        words: list[str] = []
        while (word := self.word("{" if len(words) > 20 else "")) != "{":
            words.append(word)
        name = " ".join(words)
        if keyword != "End" and not name:
            raise self.lines.refuse(line, f"{keyword} without a name")
        if len(name) > MAX_NAME:
            raise self.lines.refuse(line, f"a name of {len(name)} characters; at most {MAX_NAME} are read")
        return name

    def hierarchy(self) -> tuple[list[Node], list[str]]:
        self.word("HIERARCHY")
        self.word("ROOT")
        nodes: list[Node] = []
        lines: dict[str, int] = {}
        columns: list[str] = []
        open_: list[int] = []
        keyword = "ROOT"
        while True:
            if keyword in ("ROOT", "JOINT", "END"):
                line = self.line
                parent = open_[-1] if open_ else -1
                if keyword == "END":
                    self.word("Site")
                    self.name("End")
                    name = self._end_name(nodes[parent].name, lines)
                else:
                    name = self.name(keyword)
                if name in lines or name == GROUND:
                    where = f"that of line {lines[name]} too" if name in lines else "that of the fixed world here"
                    raise self.lines.refuse(line, f"the name {clip(name)!r} is {where}; rename one of them")
                if len(nodes) == MAX_JOINTS:
                    raise self.lines.refuse(line, f"more than {MAX_JOINTS} joints")
                lines[name] = line
                nodes.append(Node(name, parent, line, keyword == "END"))
                open_.append(len(nodes) - 1)
            elif keyword == "OFFSET":
                node = nodes[open_[-1]]
                if not np.isnan(node.offset[0]):
                    raise self.refuse(f"a second OFFSET of {clip(node.name)!r}")
                node.offset = np.array([self.lines.number(self.line, "an OFFSET", self.word()) for _ in range(3)])
            elif keyword == "CHANNELS":
                self.channels(nodes[open_[-1]], columns)
            elif keyword == "}":
                node = nodes[open_.pop()]
                if np.isnan(node.offset[0]):
                    raise self.refuse(f"{clip(node.name)!r} has no OFFSET")
                if not open_:
                    return nodes, columns
            else:
                raise self.refuse(f"{clip(keyword)!r} where OFFSET, CHANNELS, JOINT, End Site or }} is expected")
            keyword = self.word().upper()
            if keyword == "ROOT":
                raise self.refuse("a second ROOT; braces are not balanced, or split the file")
            if keyword == "MOTION":
                raise self.refuse(f"MOTION begins before the braces of {clip(nodes[open_[-1]].name)!r} are closed")

    @staticmethod
    def _end_name(parent: str, taken) -> str:
        name, k = f"{parent}_end", 2
        while name in taken:
            name, k = f"{parent}_end{k}", k + 1
        return name

    def channels(self, node: Node, columns: list[str]) -> None:
        if node.channels >= 0:
            raise self.refuse(f"a second CHANNELS of {clip(node.name)!r}")
        if node.end:
            raise self.refuse("an End Site has no CHANNELS")
        node.channels = self.lines.whole(self.line, "the number of CHANNELS", self.word())
        for _ in range(node.channels):
            word = self.word()
            axis, kind = "XYZ".find(word[:1].upper()), word[1:].lower()
            if axis < 0 or kind not in ("position", "rotation"):
                raise self.refuse(f"channel {clip(word)!r} of {clip(node.name)!r} is none of Xposition, ..., Zrotation"
                                  f"{'; segments that change their size are not read' if kind == 'scale' else ''}")
            if kind == "position":
                if axis in node.slides:
                    raise self.refuse(f"{word} of {clip(node.name)!r} is there twice")
                node.slides[axis] = len(columns)
            else:
                if node.rotations[-1:] == "XYZ"[axis] or len(node.rotations) == 3:
                    raise self.refuse(f"{word} of {clip(node.name)!r}: at most three rotations, no axis twice in a row")
                node.rotations += "XYZ"[axis]
                node.turns.append(len(columns))
            columns.append(f"{word} of {node.name}")

    def motion(self, channels: list[str]) -> tuple[float, np.ndarray]:
        self.word("MOTION")
        self.word("Frames:")
        declared = self.lines.whole(self.line, "the number of Frames", self.word())
        self.word("Frame")
        self.word("Time:")
        text = self.word()
        step = self.lines.number(self.line, "the Frame Time", text)
        if step <= 0.0:
            raise self.refuse(f"the Frame Time is {clip(text)} s; it must be positive")
        values, where = self.lines.table(self.line + 1, channels)
        if len(values) != declared:
            raise self.lines.refuse(where[-1] if where else self.line,
                                    f"the last of {len(values)} frames, but the file promises {declared}")
        return as_rate(step, text), values


def as_rate(step: float, text: str) -> float:
    """A frame time; 1/N if the given digits are a truncation of it, as 0.033333 of 1/30."""
    digits = len(text.partition(".")[2]) if "e" not in text.lower() else 17
    exact = 1.0 / max(round(1.0 / step), 1)
    return exact if abs(exact - step) < 10.0**-digits and digits >= 4 else step
