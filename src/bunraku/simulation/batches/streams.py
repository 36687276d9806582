"""Random numbers of many copies: each has a stream of its own, so that what one draws does not depend on the others.

Number i of a stream is a hash of (seed, copy, i): SplitMix64 [Steele, Lea and Flood 2014], whose finaliser passes the
usual tests also for consecutive inputs.
"""

from __future__ import annotations

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mixed(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class Streams:
    """Streams of random numbers, one for each of `count` copies; `drawn` is how many each has given."""

    def __init__(self, seed: int, count: int):
        self.drawn = np.zeros(count, np.uint64)
        with np.errstate(over="ignore"):
            copies = np.arange(1, count + 1, dtype=np.uint64)
            self.keys = _mixed(_mixed(np.full(count, np.uint64(seed)) + GOLDEN) + GOLDEN * copies)

    def uniform(self, copies: np.ndarray, size: int) -> np.ndarray:
        """(copies, size) numbers from [0, 1)."""
        with np.errstate(over="ignore"):
            at = self.drawn[copies, None] + np.arange(1, size + 1, dtype=np.uint64)
            bits = _mixed(self.keys[copies, None] + GOLDEN * at)
        self.drawn[copies] += np.uint64(size)
        return (bits >> np.uint64(11)).astype(float) * 2.0**-53
