"""Text files line by line, with errors that name the line."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from bunraku.errors import LoadError
from bunraku.io.xml import MAX_NUMBER, clip, read_bytes

MAX_BYTES = 512 * 2**20


class Lines:
    """The lines of a text file. Numbers of lines count from 1."""

    def __init__(self, path: Path):
        self.path = path
        data = read_bytes(path, MAX_BYTES)
        if b"\0" in data[:4096]:
            raise LoadError(f"{path}: is a binary file where text is expected")
        self.lines = data.decode("utf-8-sig", "replace").splitlines()

    def refuse(self, line: int, text: str) -> LoadError:
        """The error to raise about a line."""
        return LoadError(f"{self.path}: line {line}: {text}")

    def number(self, line: int, what: str, text: str) -> float:
        try:
            value = math.nan if "_" in text else float(text)
        except ValueError:
            value = math.nan
        if not abs(value) <= MAX_NUMBER:
            raise self.refuse(line, f"{what} is {clip(text)!r} where a finite number should be")
        return value

    def whole(self, line: int, what: str, text: str) -> int:
        if not text.isdecimal() or len(text) > 18:
            raise self.refuse(line, f"{what} is {clip(text)!r} where a whole number should be")
        return int(text)

    def table(self, first: int, names: list[str], separator: str | None = None,
              gaps: bool = False) -> tuple[np.ndarray, list[int]]:
        """Numbers from line `first` to the end, a row for each line that is not blank, and the lines they are in.

        With `gaps`, empty cells and cells that say NaN are NaN; without, they are an error.
        """
        rows, where = [], []
        for k, text in enumerate(self.lines[first - 1:], first):
            if text.strip():
                cells = text.split(separator)
                if separator is not None and len(cells) > len(names) and not any(map(str.strip, cells[len(names):])):
                    cells = cells[:len(names)]  # a separator at the end of the line
                if gaps and separator is not None and len(cells) < len(names):
                    cells += [""] * (len(names) - len(cells))  # or none where the last cells are empty
                if len(cells) != len(names):
                    raise self.refuse(k, f"{len(cells)} numbers in place of {len(names)}, one for each of "
                                         f"{clip(', '.join(names))}")
                rows.append(cells)
                where.append(k)
        try:
            if gaps:
                rows = [[cell.strip() or "nan" for cell in cells] for cells in rows]
            if "_" in "".join(self.lines[first - 1:]):
                raise ValueError  # Python takes 1_000 for a number
            values = np.array([list(map(float, cells)) for cells in rows]).reshape(len(rows), len(names))
            wrong = ~(np.abs(values) <= MAX_NUMBER)
            if gaps:
                wrong &= ~np.isnan(values)
            bad = np.argwhere(wrong)
        except ValueError:
            bad = np.array([[r, c] for r, cells in enumerate(rows) for c, cell in enumerate(cells)
                            if not _is_number(cell)][:1])
        if len(bad):
            r, c = bad[0]
            raise self.refuse(where[r], f"{names[c]} is {clip(rows[r][c])!r} where a finite number should be")
        return values, where


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
