"""Types that entries are compiled for. One state: 1-D arrays; a batch: (B, n) arrays; nothing else."""

import numpy as np
from numba import types

from bunraku.jit import allocating
from bunraku.spatial.lanes import WIDTH

int64 = types.int64
float64 = types.float64
floats = types.float64[::1]
table = types.float64[:, ::1]
integers = types.int32[:, ::1]
flags = types.uint8[::1]

PLAN = (integers, table, table)                             # body_i, body_f, dof_f
LINKS = (integers, table)                                   # link_i, link_f
SPRINGS = (integers, table)                                 # spring_i, spring_f
LOOPS = (integers, table, types.int32[::1])                 # conn_i, conn_f, prog

# A mechanism in motion, for whoever integrates it: mode, its arrays, q, v, tau, drives, external, a, work
MOTION = int64(int64, *PLAN, *LINKS, *SPRINGS, *LOOPS, floats, floats, floats, floats, floats, floats, floats)

# What entries answer
FINE, WRONG_SHAPE, FAILED, CLASHED, DOUBTFUL, OPEN = range(6)


@allocating
def lane_array(rows):
    """An uninitialised (rows, W) array that starts on a cache line."""
    size = rows * WIDTH
    memory = np.empty(size + 8)
    skip = (-(memory.ctypes.data // 8)) % 8
    return memory[skip:skip + size].reshape((rows, WIDTH))
