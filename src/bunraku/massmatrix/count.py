"""Operations by counting: the methods' own code, run on numbers that count.

Every multiplication and every addition or subtraction that a method does for a state counts one, also by a constant of
the mechanism. Negation, sines and cosines count nothing, as in [F]; neither do the masses of composite bodies, which
are constants.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from bunraku.massmatrix.by_method import kernel
from bunraku.massmatrix.serial_chain import Chain, Turn, generic_chain


class Count(NamedTuple):
    """Multiplications and additions."""

    mul: int
    add: int


class Counter:
    """Operations counted so far."""

    def __init__(self) -> None:
        self.mul = self.add = 0


class Counted:
    """A number that reports its operations to a counter."""

    __slots__ = ("counter", "value")

    def __init__(self, value: float, counter: Counter):
        self.value, self.counter = value, counter

    def __add__(self, other):
        self.counter.add += 1
        return Counted(self.value + _plain(other), self.counter)

    def __sub__(self, other):
        self.counter.add += 1
        return Counted(self.value - _plain(other), self.counter)

    def __rsub__(self, other):
        self.counter.add += 1
        return Counted(_plain(other) - self.value, self.counter)

    def __mul__(self, other):
        self.counter.mul += 1
        return Counted(self.value * _plain(other), self.counter)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return Counted(-self.value, self.counter)

    def __float__(self):
        return float(self.value)


def _plain(x):
    return x.value if isinstance(x, Counted) else x


def counted(chain: Chain, turns: list[Turn], counter: Counter) -> tuple[Chain, list[Turn]]:
    """A chain and its state in numbers that count."""
    def lift(x):
        return tuple(map(lift, x)) if isinstance(x, tuple) else Counted(x, counter)

    constants = {name: [lift(x) for x in getattr(chain, name)]
                 for name in ("twist", "P", "m", "S", "h", "k", "I", "masses", "share", "rest")}
    return replace(chain, **constants), [Turn(lift(c), lift(s), d) for c, s, d in turns]


def generic(n: int, counter: Counter) -> tuple[Chain, list[Turn]]:
    """A chain of n revolute joints without special dimensions, all at 0.3 rad, in numbers that count."""
    chain = generic_chain(n)
    return counted(chain, chain.turns([0.3] * n), counter)


def count(method: str, n: int, projection: str = "fixed") -> Count:
    """Operations of one processor, on a chain of n revolute joints without special dimensions."""
    counter = Counter()
    kernel(method, projection)(*generic(n, counter))
    return Count(counter.mul, counter.add)
