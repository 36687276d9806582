"""Operations by counting: the methods' own code, run on numbers that count.

Multiplications and additions (subtractions too) between numbers that depend on the state count one each. What depends
on the mechanism alone is a constant: arithmetic among constants, negation, sines and cosines count nothing, as in [F].
"""

from __future__ import annotations

import linecache
import sys
from pathlib import Path
from typing import NamedTuple

from bunraku.massmatrix.chain import Chain, Turn, generic_chain
from bunraku.massmatrix.matrix import kernel


class Count(NamedTuple):
    """Multiplications and additions."""

    mul: int
    add: int


class Counter:
    """What has been done so far; by line of the calling method if `lines` is a dictionary."""

    def __init__(self, lines: dict | None = None):
        self.mul = self.add = 0
        self.lines = lines

    def note(self, mul: int, add: int) -> None:
        self.mul += mul
        self.add += add
        if self.lines is not None:
            where = _calling_line()
            before = self.lines.get(where, Count(0, 0))
            self.lines[where] = Count(before.mul + mul, before.add + add)


class Counted:
    """A number that reports to a counter what is done with it."""

    __slots__ = ("counter", "value")

    def __init__(self, value: float, counter: Counter):
        self.value, self.counter = value, counter

    def __add__(self, other):
        self.counter.note(0, 1)
        return Counted(self.value + _plain(other), self.counter)

    def __sub__(self, other):
        self.counter.note(0, 1)
        return Counted(self.value - _plain(other), self.counter)

    def __rsub__(self, other):
        self.counter.note(0, 1)
        return Counted(_plain(other) - self.value, self.counter)

    def __mul__(self, other):
        self.counter.note(1, 0)
        return Counted(self.value * _plain(other), self.counter)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return Counted(-self.value, self.counter)

    def __float__(self):
        return float(self.value)


def _plain(x):
    return x.value if isinstance(x, Counted) else x


def counted(turns: list[Turn], counter: Counter) -> list[Turn]:
    """A state in numbers that count."""
    return [Turn(Counted(c, counter), Counted(s, counter), d) for c, s, d in turns]


def counted_state(chain: Chain, counter: Counter) -> list[Turn]:
    """All joints at 0.3 rad."""
    return counted(chain.turns([0.3] * chain.n), counter)


def count(method: str, n: int, projection: str = "fixed") -> Count:
    """Of one processor, on a chain of n revolute joints without special dimensions."""
    counter, chain = Counter(), generic_chain(n)
    kernel(method, projection)(chain, counted_state(chain, counter))
    return Count(counter.mul, counter.add)


def count_lines(method: str, n: int, projection: str = "fixed") -> list[tuple[str, str, Count]]:
    """The same by line of source: (file, line, operations), as the files have them."""
    lines: dict = {}
    chain = generic_chain(n)
    kernel(method, projection)(chain, counted_state(chain, Counter(lines)))
    return [(Path(name).name, linecache.getline(name, number).strip(), lines[name, number])
            for name, number in sorted(lines, key=lambda key: (Path(key[0]).stem != "frames", key))]


_HELPERS = {str(Path(__file__).with_name(name)) for name in ("vectors.py", "count.py")}
_SHORT = {"rotated", "rotated6", "rotated_xy", "up", "down", "_axis", "_first"}


def _calling_line() -> tuple[str, int]:
    frame = sys._getframe(1)
    while frame.f_code.co_filename in _HELPERS or frame.f_code.co_name in _SHORT or frame.f_code.co_name[0] == "<":
        frame = frame.f_back  # type: ignore[assignment]
    return frame.f_code.co_filename, frame.f_lineno
