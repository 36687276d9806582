"""Internal functions are parts of entries: same results, no machine code of their own, and Numba's way as fallback."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numba import float64, int64, njit

from bunraku import compiler, jit

PART = {"_nrt": False, **jit.OPTIONS}
pytestmark = pytest.mark.skipif(not compiler.ON, reason="parts are switched off")


@compiler.part(PART)
def square(x):
    return x * x


@compiler.part(PART)
def power(x, n):
    out = 1.0
    for _ in range(n // 2):
        out = out * square(x)
    return out * x if n % 2 else out


def whole(x, n):
    return power(x, n) + power(x, 3)


def test_an_entry_is_its_parts_in_one_piece():
    made = njit(**compiler.WHOLE, **jit.OPTIONS)(whole)
    made.compile(float64(float64, int64))
    assert made(2.0, 5) == 40.0
    library = made.get_compile_result(float64(float64, int64)).library
    assert isinstance(library, compiler.Whole)
    for inner in (square, power):
        assert inner.overloads
        for found in inner.overloads.values():
            assert isinstance(found.library, compiler.Part)


def test_constants_and_small_integers_share_a_part():
    njit(**compiler.WHOLE, **jit.OPTIONS)(whole).compile(float64(float64, int64))
    assert len(power.overloads) == 1


def test_a_part_can_be_called_from_python():
    assert square(3.0) == 9.0


CODE = """
import numpy as np, bunraku as bk
m = bk.Mechanism()
m.add_link("a", joint=bk.Revolute((0, 1, 0)), mass=1.0, com=(0.1, 0, -0.2), inertia=(0.1, 0.1, 0.1))
m.add_link("b", "a", bk.Spherical(), position=(0, 0, -0.5), mass=2.0, com=(0, 0, -0.2), inertia=(0.1, 0.1, 0.1))
q = m.integrate(m.neutral(), np.linspace(-1, 1, m.nv))
print(repr(bk.forward_dynamics(m, q, np.linspace(0, 1, m.nv)).tolist()))
"""


def test_numbas_own_way_gives_the_same(tmp_path):
    """The fallback: BUNRAKU_PARTS=0."""
    answers = []
    for switch in ("1", "0"):
        environment = {**os.environ, "BUNRAKU_PARTS": switch, "BUNRAKU_QUIET": "1"}
        done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, env=environment, check=True)
        answers.append(eval(done.stdout))
    assert np.allclose(*answers, rtol=1e-13, atol=1e-13)
