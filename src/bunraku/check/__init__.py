"""Attacks on the library: random cases, each checked against laws of mechanics or independent solutions.

An attack is a module here with

    TITLE           what one case does and what must hold, in one line
    UNIT            what is counted, in the plural: "structure changes", "files"
    SEEDS           how many cases by default; SHORT of them are enough for continuous integration
    LIMIT           seconds of wall time after which a case counts as hung
    missing()       optional: what it needs and does not find, in words; `check all` then leaves it out
    case(seed)      one case, the same for the same seed; returns a `Case`, raises if anything is wrong

`runner.py` spreads seeds over processes, so that a crash or a hang is one failed case and not the end of the run.
"""

from collections.abc import Mapping
from typing import NamedTuple

ATTACKS = ("marathon", "redundant", "stops", "closed", "sample", "workers", "ranks", "kill", "files", "contacts",
           "problems", "drops")


class Case(NamedTuple):
    """Result of one case: how many things it has tried, and the largest error of each kind that it measured; numbers of
    which the median over all cases is shown, and counts to be added up."""

    tried: int
    worst: dict[str, float]
    measured: Mapping[str, list[float]] = {}
    counts: Mapping[str, int] = {}
