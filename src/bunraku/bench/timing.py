"""Interleaved timing of contestants, so that a slow phase of the machine affects all of them."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

CHUNK = 1e-3  # [s] a contestant is timed in pieces of at least this length
LEAST_ROUNDS = 7


@dataclass
class Contestant:
    """Something to time: `run()` evaluates `states` states. `times` is filled with seconds per state, by round."""

    label: str
    run: Callable[[], object]
    states: int
    against: str = ""            # label of the contestant it is compared with
    target: float | None = None  # how many times faster it should be
    times: np.ndarray = field(default_factory=lambda: np.empty(0))

    @property
    def best(self) -> float:
        return float(self.times.min())

    @property
    def median(self) -> float:
        return float(np.median(self.times))


def each(function: Callable, *columns) -> Callable[[], None]:
    """A function that calls `function` with every state in turn."""
    states = list(zip(*columns, strict=True))

    def run():
        for state in states:
            function(*state)

    return run


def race(contestants: list[Contestant], seconds: float, tick=lambda: None) -> None:
    """Time all, one after the other in every round, for about this long altogether."""
    repeats = []
    for c in contestants:
        c.run()
        start = time.perf_counter()
        c.run()
        repeats.append(max(1, round(CHUNK / (time.perf_counter() - start))))
    rounds: list[list[float]] = []
    collecting = gc.isenabled()
    gc.disable()
    try:
        begin = time.perf_counter()
        while len(rounds) < LEAST_ROUNDS or time.perf_counter() - begin < seconds:
            row = []
            for c, n in zip(contestants, repeats, strict=True):
                start = time.perf_counter()
                for _ in range(n):
                    c.run()
                row.append((time.perf_counter() - start) / (n * c.states))
            rounds.append(row)
            tick()
    finally:
        if collecting:
            gc.enable()
    for c, column in zip(contestants, np.array(rounds).T, strict=True):
        c.times = column


def speedup(slow: Contestant, fast: Contestant) -> tuple[float, float]:
    """How many times faster: at the best moment of each, and the median over rounds, in which both were timed."""
    return slow.best / fast.best, float(np.median(slow.times / fast.times))


class Progress:
    """A line about what is going on, on a terminal only; nothing when piped or without tqdm."""

    def __init__(self, steps: int, quiet: bool = False):
        self.bar = None
        if not quiet and sys.stderr.isatty():
            try:
                from tqdm import tqdm
            except ImportError:
                return
            self.bar = tqdm(total=steps, leave=False, dynamic_ncols=True,
                            bar_format="{desc:<36} {bar:24} {n_fmt}/{total_fmt} [{elapsed}]")

    def __call__(self, what: str) -> None:
        """Show the name of the part that starts."""
        if self.bar is not None:
            self.bar.set_description_str(what)
            self.bar.refresh()

    def done(self) -> None:
        if self.bar is not None:
            self.bar.update()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
