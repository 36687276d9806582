"""How many floating-point operations an algorithm does: its own code, run on numbers that count.

Run as a program with NUMBA_DISABLE_JIT=1: the kernels are then plain Python and take any kind of number. Additions,
subtractions, multiplications, divisions and square roots count one each, a sine with its cosine `SINCOS` (the number of
operations in `spatial/instructions.py`); negations, comparisons and constants folded before a state is known count
nothing.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

SINCOS = 36


class Counting:
    """A number that counts what is done with it."""

    __slots__ = ("value",)
    total = 0

    def __init__(self, value):
        self.value = value

    def _do(self, value, cost=1):
        Counting.total += cost
        return Counting(value)

    def __add__(self, other):
        return self._do(self.value + _plain(other))

    def __sub__(self, other):
        return self._do(self.value - _plain(other))

    def __rsub__(self, other):
        return self._do(_plain(other) - self.value)

    def __mul__(self, other):
        return self._do(self.value * _plain(other))

    def __truediv__(self, other):
        return self._do(self.value / _plain(other))

    def __rtruediv__(self, other):
        return self._do(_plain(other) / self.value)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return Counting(-self.value)

    def __lt__(self, other):
        return self.value < _plain(other)

    def __le__(self, other):
        return self.value <= _plain(other)

    def __gt__(self, other):
        return self.value > _plain(other)

    def __ge__(self, other):
        return self.value >= _plain(other)

    def __eq__(self, other):
        return self.value == _plain(other)

    __hash__ = None  # type: ignore[assignment]

    def sqrt(self):  # NumPy's functions call these on objects
        return self._do(math.sqrt(self.value))

    def sin(self):
        return self._do(math.sin(self.value), SINCOS)

    def cos(self):
        return Counting(math.cos(self.value))


def _plain(x):
    return x.value if isinstance(x, Counting) else x


def forward_dynamics_flops(names) -> dict[str, int]:
    """Operations of one forward dynamics of each of these benchmark models or files, counted in another process."""
    command = [sys.executable, "-m", "bunraku.bench.flops", *names]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def _count(m) -> int:
    import numpy as np

    from bunraku.algorithms.aba import aba

    def counting(array):
        out = np.empty(array.shape, object)
        out.flat[:] = [Counting(float(x)) for x in array.flat]
        return out

    plan, rng = m.plan(), np.random.default_rng(0)
    q, v, tau = m.integrate(m.neutral(), rng.normal(size=m.nv)), rng.normal(size=m.nv), rng.normal(size=m.nv)
    a, work = np.empty(m.nv, object), np.empty(plan.work_size, object)
    Counting.total = 0
    aba(plan.body_i, counting(plan.body_f), counting(plan.dof_f), counting(q), counting(v), counting(tau),
        np.empty(0), a, work)
    return Counting.total


if __name__ == "__main__":
    from bunraku.bench.bench_dynamics import MODELS
    from bunraku.bench.model_files import read

    print(json.dumps({name: _count(MODELS[name]() if name in MODELS else read(Path(name))[0])
                      for name in sys.argv[1:]}))
