"""A kernel that is quickly compiled, to see what becomes of its machine code on disk."""

import math

from numba import types

from bunraku.jit import entry

floats = types.float64[::1]


@entry("half a turn", types.void(floats, floats))
def quaternion_of(turn, out):
    """A turn by an axis times an angle, as a quaternion."""
    angle = math.sqrt(turn[0] ** 2 + turn[1] ** 2 + turn[2] ** 2)
    out[0] = math.cos(0.5 * angle)
    for k in range(3):
        out[k + 1] = math.sin(0.5 * angle) * turn[k] / angle
