"""Normal random numbers by seed, sample and channel: no state, so that solvers may try a step twice, and copies of a
batch differ by their seeds alone.

A number is made of two hashes (SplitMix64 [Steele, Lea and Flood 2014]) by the transformation of Box and Muller.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types
from numba.extending import overload

GOLDEN = 0x9E3779B97F4A7C15
FIRST, SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
UNIT = 2.0**-53


def _mixed(x):
    x = (x ^ (x >> np.uint64(30))) * np.uint64(FIRST)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(SECOND)
    return x ^ (x >> np.uint64(31))


def normal(seed, sample, channel):
    """A standard normal number (or an array) that depends on three integers; also for compiled functions."""
    seed, sample, channel = (np.asarray(x).astype(np.int64).view(np.uint64) for x in (seed, sample, channel))
    with np.errstate(over="ignore"):
        key = _mixed(_mixed(seed + np.uint64(GOLDEN)) + np.uint64(GOLDEN) * sample)
        key = _mixed(key + np.uint64(GOLDEN) * channel)
        pair = _mixed(key + np.uint64(GOLDEN)), _mixed(key + np.uint64(2 * GOLDEN % 2**64))
    u, angle = (((x >> np.uint64(11)).astype(float) + 0.5) * UNIT for x in pair)
    return np.sqrt(-2.0 * np.log(u)) * np.cos(2.0 * math.pi * angle)


@overload(normal)
def _normal_compiled(seed, sample, channel):
    if not all(isinstance(kind, types.Number) for kind in (seed, sample, channel)):
        return None
    golden, twice, first, second = (np.uint64(x) for x in (GOLDEN, 2 * GOLDEN % 2**64, FIRST, SECOND))
    a, b, c, d = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)

    def compiled(seed, sample, channel):
        x = np.uint64(np.int64(seed)) + golden
        x = (x ^ (x >> a)) * first
        x = (x ^ (x >> b)) * second
        x = (x ^ (x >> c)) + golden * np.uint64(np.int64(sample))
        x = (x ^ (x >> a)) * first
        x = (x ^ (x >> b)) * second
        x = (x ^ (x >> c)) + golden * np.uint64(np.int64(channel))
        x = (x ^ (x >> a)) * first
        x = (x ^ (x >> b)) * second
        x = x ^ (x >> c)
        y = x + golden
        y = (y ^ (y >> a)) * first
        y = (y ^ (y >> b)) * second
        y = y ^ (y >> c)
        z = x + twice
        z = (z ^ (z >> a)) * first
        z = (z ^ (z >> b)) * second
        z = z ^ (z >> c)
        u, angle = (np.float64(y >> d) + 0.5) * UNIT, (np.float64(z >> d) + 0.5) * UNIT
        return math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * angle)
    return compiled
