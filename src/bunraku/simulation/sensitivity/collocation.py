"""Propagators of linear differential equations x' = A(t) x + B(t), with error control.

Idea: Gauss's collocation with three stages, of order six and stable for stiff equations, gives the propagator of an
interval from A and B at three times. An interval whose propagator differs from the product of those of its halves is
halved again. All intervals of one depth are computed in one batch, and each time is asked for once.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bunraku.errors import SimulationError

ROOT = np.sqrt(15.0)
NODES = np.array([0.5 - ROOT / 10.0, 0.5, 0.5 + ROOT / 10.0])
WEIGHTS = np.array([5.0, 8.0, 5.0]) / 18.0
STAGES = np.array([[5 / 36, 2 / 9 - ROOT / 15, 5 / 36 - ROOT / 30],
                   [5 / 36 + ROOT / 24, 2 / 9, 5 / 36 - ROOT / 24],
                   [5 / 36 + ROOT / 30, 2 / 9 + ROOT / 15, 5 / 36]])
GAINED = 30.0    # the product of two halves is more exact than the difference to the whole by about this factor
DEEPEST = 40     # halvings of an interval


class Propagator(NamedTuple):
    """x at the end of an interval is `of_state` x + `of_rest`."""

    start: float
    end: float
    of_state: np.ndarray  # (n, n)
    of_rest: np.ndarray   # (n, k)

    def carry(self, S) -> np.ndarray:
        """S (n, m) at the end; its last columns are driven."""
        after = self.of_state @ S
        after[:, S.shape[1] - self.of_rest.shape[1]:] += self.of_rest
        return after


Matrices = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Times -> (A (times, n, n), B (times, n, k))."""


def propagators(matrices: Matrices, breaks, S, tolerance: float) -> list[Propagator]:
    """Of all intervals between the times in `breaks`, halved where that is needed, in order of time.

    S (n, m) is what is to be propagated, its last columns driven by B: the tolerance is for its error, so that where
    coefficients are singular, as where slip comes to an end, directions that have died away do not count.
    """
    parts = _each(matrices, [p for p in pairwise(breaks) if p[1] > p[0]])
    settled = [False] * len(parts)
    for _ in range(DEEPEST):
        if all(settled):
            return parts
        todo = [k for k, done in enumerate(settled) if not done]
        middle = {k: 0.5 * (parts[k].start + parts[k].end) for k in todo}
        halves = _each(matrices, [x for k in todo for x in ((parts[k].start, middle[k]), (middle[k], parts[k].end))])
        pairs = dict(zip(todo, zip(halves[::2], halves[1::2], strict=True), strict=True))
        refined, known, at = [], [], S
        for k, part in enumerate(parts):
            if settled[k]:
                refined.append(part)
                known.append(True)
                at = part.carry(at)
                continue
            after = pairs[k][1].carry(pairs[k][0].carry(at))
            apart = np.abs(after - part.carry(at)).max(initial=0.0) / max(1.0, np.abs(after).max(initial=0.0))
            fine = apart <= GAINED * tolerance or not part.start < middle[k] < part.end
            refined += pairs[k]
            known += [fine, fine]
            at = after
        parts, settled = refined, known
    where = parts[settled.index(False)].start
    raise SimulationError(f"sensitivities: the derivatives of the motion are not smooth near t = {where:g} s")


def _each(matrices: Matrices, intervals) -> list[Propagator]:
    """Propagators of intervals by three stages each."""
    if not intervals:
        return []
    start, end = np.array(intervals).T
    h = end - start
    A, B = matrices((start[:, None] + h[:, None] * NODES).ravel())
    n, k, count = A.shape[-1], B.shape[-1], len(h)
    A, B = A.reshape(count, 3, n, n), B.reshape(count, 3, n, k)
    left = -h[:, None, None, None, None] * np.einsum("ij,cixy->cixjy", STAGES, A)
    left = left.reshape(count, 3 * n, 3 * n) + np.eye(3 * n)
    right = np.concatenate([A, B], axis=-1).reshape(count, 3 * n, n + k)
    slopes = np.linalg.solve(left, right).reshape(count, 3, n, n + k)
    moved = h[:, None, None] * np.einsum("i,cixy->cxy", WEIGHTS, slopes)
    moved[:, :, :n] += np.eye(n)
    return [Propagator(float(a), float(b), x[:, :n], x[:, n:]) for a, b, x in zip(start, end, moved, strict=True)]
