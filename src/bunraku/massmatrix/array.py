"""A step-accurate array of processors that work in lock step and can only read a partner's memory by a message.

A step of arithmetic takes as long as its busiest processor. A step of communication moves one message per processor; a
message over distance d takes one step on a network made for it (shuffle-exchange with nearest neighbours, [F]), d steps
where there are only nearest neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

from bunraku.massmatrix.count import Count, Counter


class Step(NamedTuple):
    """Cost of a step: operations of the busiest processor, messages on either network."""

    label: str
    mul: int
    add: int
    exchange: int    # shuffle-exchange and nearest neighbour
    neighbour: int   # nearest neighbour alone


class Array:
    """Processors by place, each with memory of its own."""

    def __init__(self, places: Iterable[Hashable], counter: Counter | None = None):
        self.memory: dict = {place: {} for place in places}
        self.counter = counter or Counter()
        self.steps: list[Step] = []

    def compute(self, label: str, work: Callable) -> None:
        """`work(place, memory)` on every processor at once, each with nothing but its own memory."""
        worst = Count(0, 0)
        for place, memory in self.memory.items():
            before = self.counter.mul, self.counter.add
            work(place, memory)
            cost = Count(self.counter.mul - before[0], self.counter.add - before[1])
            worst = max(worst, cost, key=sum)
        self.steps.append(Step(label, *worst, 0, 0))

    def fetch(self, label: str, partner: Callable, names: tuple[str, ...], distance: int = 1) -> None:
        """Every processor gets these values of `partner(place)` (None: no partner) as memory["in"]."""
        got = {place: self.memory.get(partner(place)) for place in self.memory}
        answers = {place: None if other is None else {name: other[name] for name in names}
                   for place, other in got.items()}
        for place, answer in answers.items():
            self.memory[place]["in"] = answer
        self.steps.append(Step(label, 0, 0, 1, distance))

    @property
    def operations(self) -> Count:
        return Count(sum(s.mul for s in self.steps), sum(s.add for s in self.steps))

    @property
    def messages(self) -> dict[str, int]:
        return {"exchange": sum(s.exchange for s in self.steps), "neighbour": sum(s.neighbour for s in self.steps)}


def spans(n: int) -> list[int]:
    """Distances of recursive doubling over n places: 1, 2, 4, ...; ceil(log2 n) of them."""
    out, span = [], 1
    while span < n:
        out.append(span)
        span *= 2
    return out
