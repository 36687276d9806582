"""Issues in a model file: warnings with file and element, or errors if `strict`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path

from bunraku.errors import LoadError, LoadWarning

MAX_NOTES = 200
"""How many notes about one file are kept; further ones are counted."""


@dataclass
class Findings:
    """Collects the issues of one file; `report` warns about all of them, or raises if `strict`."""

    path: Path
    strict: bool
    notes: list[str] = field(default_factory=list)
    dropped: int = 0

    def note(self, element: str, text: str) -> None:
        """Note a suspicious or ignored element. `element` names it: "joint 'elbow'", "link 'hand', line 12"."""
        if len(self.notes) < MAX_NOTES:
            self.notes.append(f"{self.path.name}: {element}: {text}")
        else:
            self.dropped += 1

    def note_many(self, elements: list[str], text: str) -> None:
        """One warning for all elements with the same issue."""
        if elements:
            more = f" and {len(elements) - 3} more" if len(elements) > 3 else ""
            self.note("; ".join(elements[:3]) + more, text)

    def refuse(self, element: str, text: str) -> LoadError:
        """The error to raise for an unsupported element."""
        return LoadError(f"{self.path}: {element}: {text}")

    def report(self, stacklevel: int = 3) -> None:
        if self.dropped:
            self.notes.append(f"{self.path.name}: and {self.dropped} more oddities")
        if self.strict and self.notes:
            raise LoadError(f"{self.path} is not clean (strict=True):\n  " + "\n  ".join(self.notes))
        for text in self.notes:
            warnings.warn(text, LoadWarning, stacklevel=stacklevel)
