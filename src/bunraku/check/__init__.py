"""Randomised tests ("attacks") of the library, each case checked against laws of mechanics or independent solutions.

An attack is a module `attack_NAME.py` here with

    TITLE           description of a case and its criterion, in one line
    UNIT            the counted items, in the plural: "structure changes", "files"
    SEEDS           default number of cases; SHORT of them are enough for continuous integration
    LIMIT           seconds of wall time after which a case counts as hung
    missing()       optional: missing requirements as text; `check all` then skips it
    case(seed)      one case, the same for the same seed; returns a `Case`, raises if anything is wrong

`runner.py` spreads seeds over processes, so that a crash or a hang is one failed case and not the end of the run.
"""

from collections.abc import Mapping
from typing import NamedTuple

ATTACKS = ("marathon", "redundant", "stops", "closed", "sample", "workers", "ranks", "kill", "files", "contacts",
           "problems", "drops", "worlds")


class Case(NamedTuple):
    """Result of one case: number of tried items, largest error of each kind, numbers whose median over all cases is
    shown, and counts to be summed."""

    tried: int
    worst: dict[str, float]
    measured: Mapping[str, list[float]] = {}
    counts: Mapping[str, int] = {}
