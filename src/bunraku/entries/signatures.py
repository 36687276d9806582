"""Types that entries are compiled for. One state: 1-D arrays; a batch: (B, n) arrays; nothing else."""

import numpy as np
from numba import types

from bunraku.jit import Held, allocating, called_by_address
from bunraku.plan.plan_arrays import Arrays
from bunraku.spatial.lanes import WIDTH

int64 = types.int64
float64 = types.float64
floats = types.float64[::1]
table = types.float64[:, ::1]
integers = types.int32[:, ::1]
flags = types.uint8[::1]
counts = types.int64[::1]

PLAN = Held(types.NamedTuple([integers, table, table, integers, table, integers, table, integers, table,
                              types.int32[::1], integers, integers, integers, counts, types.int64[:, ::1], floats,
                              counts],
                             Arrays))

# Equations of motion as the integrators call them: mode, plan, dof_f, q, v, tau, drives, external, a, work
MOTION = int64(int64, PLAN, table, floats, floats, floats, floats, floats, floats, floats)


def move(address, *args):
    """A mechanism in motion, by the address of `tree_one` or `closed_one`."""
    return address(*args)


called_by_address(move, MOTION)

# An event of the motion itself, as the integrators call it: plan, q, v, tau, drives, external, a, work
SIGNAL = float64(PLAN, floats, floats, floats, floats, floats, floats, floats)


def signal_of_motion(address, *args):
    """A number of the state that is positive where the motion changes its modes, by the address of its entry."""
    return address(*args)


called_by_address(signal_of_motion, SIGNAL)

# What entries answer
FINE, WRONG_SHAPE, FAILED, CLASHED, DOUBTFUL, LOOP_OPEN = range(6)


@allocating
def lane_array(rows):
    """An uninitialised (rows, W) array that starts on a cache line."""
    size = rows * WIDTH
    memory = np.empty(size + 8)
    skip = (-(memory.ctypes.data // 8)) % 8
    return memory[skip:skip + size].reshape((rows, WIDTH))
