"""Environment of a measurement: the machine, the versions, and the peak of one core."""

from __future__ import annotations

import datetime
import functools
import importlib.metadata
import platform
import time
from pathlib import Path

import numba
import numpy as np

from bunraku.entries.pool import available
from bunraku.jit import FASTMATH
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import load, store

ACCUMULATORS = 12  # independent sums: enough to hide the latency of a fused multiply-add


def describe() -> dict:
    """Processor, cores, versions and date."""
    versions = {name: _version(name) for name in ("numpy", "numba", "pin", "mujoco", "drake")}
    return {"date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"), "processor": _processor(),
            "cores": available(), "lanes": WIDTH, "system": platform.system().lower(),
            "python": platform.python_version(), "versions": {k: v for k, v in versions.items() if v}}


def line(on: dict) -> str:
    """What `describe` has found, in a line."""
    return (f"{on['processor']}, {on['cores']} core{'s' * (on['cores'] != 1)}, {on['lanes']} lanes; {on['system']}, "
            f"Python {on['python']}, Numba {on['versions']['numba']}; {on['date'][:16].replace('T', ' ')}")


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return " ".join(line.split(":", 1)[1].replace("(R)", "").replace("(TM)", "").split())
    except OSError:
        pass
    return platform.processor() or platform.machine()


@functools.cache
def _multiply_add():
    def kernel(x, factor, term, rounds):
        a, b = load(factor, 0), load(term, 0)
        x0, x1, x2, x3 = load(x, 0), load(x, 1), load(x, 2), load(x, 3)
        x4, x5, x6, x7 = load(x, 4), load(x, 5), load(x, 6), load(x, 7)
        x8, x9, x10, x11 = load(x, 8), load(x, 9), load(x, 10), load(x, 11)
        for _ in range(rounds):
            x0, x1, x2, x3 = x0 * a + b, x1 * a + b, x2 * a + b, x3 * a + b
            x4, x5, x6, x7 = x4 * a + b, x5 * a + b, x6 * a + b, x7 * a + b
            x8, x9, x10, x11 = x8 * a + b, x9 * a + b, x10 * a + b, x11 * a + b
        store(x, 0, x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9 + x10 + x11)

    return numba.njit(nogil=True, fastmath=FASTMATH)(kernel)


def peak_flops(seconds: float = 0.3) -> float:
    """FLOP/s of one core on fused multiply-adds that never touch memory: the best of many short runs."""
    kernel, rounds = _multiply_add(), 20_000
    x, factor, term = np.ones((ACCUMULATORS, WIDTH)), np.full((1, WIDTH), 0.999), np.full((1, WIDTH), 1e-3)
    kernel(x, factor, term, 1)
    best, end = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        x[:] = 1.0
        start = time.perf_counter()
        kernel(x, factor, term, rounds)
        best = min(best, time.perf_counter() - start)
    return 2.0 * ACCUMULATORS * WIDTH * rounds / best
