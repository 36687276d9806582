"""Copies of a batch as users name them, by masks or numbers; mechanisms that the copies of one batch may have; all that
worlds remember of their copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bunraku.errors import ModelError, ShapeError
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism

MOST_LANES = 8    # of any processor: copies of several mechanisms are never in the same lanes
NAMED = 5         # copies that a message names


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Everything that `Worlds` remembers of its copies; plain arrays, which can be pickled."""

    y: np.ndarray
    params: np.ndarray
    steps: np.ndarray
    status: np.ndarray
    drawn: np.ndarray
    contacts: Any
    reasons: dict[int, str]
    form: tuple  # of the mechanism

    def __len__(self):
        return len(self.y)


def alike(mechanisms: list[Mechanism], n: int) -> list[Mechanism]:
    """The mechanisms, if worlds can have them all."""
    mechanisms = [as_mechanism(mechanism) for mechanism in mechanisms]
    if not mechanisms:
        raise ModelError("Worlds: no mechanism is given")
    count, first = len(mechanisms), form(mechanisms[0])
    for k, other in enumerate(mechanisms[1:], 1):
        if form(other) != first:
            raise ModelError(f"mechanism {k} ({other.name}) has other links, joints or shapes than the first; several "
                             "mechanisms of one Worlds may differ in numbers only")
    if count > 1 and (n % count or n // count % MOST_LANES):
        raise ShapeError(f"{n} copies of {count} mechanisms: each needs the same number of copies, a multiple of "
                         f"{MOST_LANES}, such as n={MOST_LANES * count * max(1, round(n / MOST_LANES / count))}")
    return mechanisms


def form(mechanism: Mechanism) -> tuple:
    """What several mechanisms must have in common."""
    links = tuple((link.name, link.parent, type(link.joint).__name__, link.joint.nq) for link in mechanism.links)
    return links, len(mechanism.connections), len(mechanism.contact_pairs().arrays.contact_i)


def listed(copies) -> str:
    return ", ".join(map(str, copies[:NAMED])) + (", ..." if len(copies) > NAMED else "")


def numbers_of(what: str, which, n: int, unique: bool = True) -> np.ndarray:
    """Numbers of copies, from a mask or from numbers."""
    array = np.asarray(which)
    if array.dtype == bool:
        if array.shape != (n,):
            raise ShapeError(f"{what}: a mask must have the shape ({n},), not {array.shape}")
        return np.flatnonzero(array)
    array = np.atleast_1d(array)
    if array.ndim != 1 or not (array.dtype.kind in "iu" or array.size == 0):
        raise ShapeError(f"{what} must be a mask of bools, or numbers of copies, not {which!r:.60}")
    numbers = array.astype(np.int64)
    if ((numbers < -n) | (numbers >= n)).any():
        beyond = numbers[(numbers < -n) | (numbers >= n)][0]
        raise ShapeError(f"{what}: there is no copy {beyond}: there are {n}, from 0 on")
    numbers = np.where(numbers < 0, numbers + n, numbers)
    if unique and len(np.unique(numbers)) < len(numbers):
        raise ShapeError(f"{what} names a copy twice; a mask is an array of {n} bools")
    return numbers
