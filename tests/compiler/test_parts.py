"""Internal functions are parts of entries: same results, no machine code of their own, and Numba's way as fallback."""

import numpy as np
import pytest
from numba import float64, int32, int64
from numba.core.errors import TypingError
from numba.core.registry import cpu_target

import answers
from bunraku import jit
from bunraku.compiler import lowering, parts
from one_entry import integrate_alone
from oracle import close
from processes import run
from structures import KINDS, random_tree

PART = {"_nrt": False, **jit.OPTIONS}
only_with_parts = pytest.mark.skipif(not parts.ON, reason="parts are switched off")


@parts.part(PART)
def square(x):
    return x * x


@parts.part(PART)
def power(x, n):
    out = 1.0
    for _ in range(n // 2):
        out = out * square(x)
    return out * x if n % 2 else out


@parts.part(PART)
def half(n):
    return n // 2


def whole(x, n, small):
    return power(x, n) + power(x, 3) + power(x, small[0]) + half(small[0])


def impossible(x):
    return x.no_such_attribute


SIGNATURE = float64(float64, int64, int32[::1])


@only_with_parts
def test_an_entry_is_its_parts_in_one_piece_each_once():
    module, name = parts.linked(whole, SIGNATURE, jit.OPTIONS)
    written = [function.name for function in module.functions if not function.is_declaration]
    assert name in written
    for inner in (square, power, half):
        (found,) = inner.overloads.values()
        assert isinstance(found.library, lowering.Part)
        assert written.count(found.fndesc.llvm_func_name) == 1


@only_with_parts
def test_constants_and_small_integers_share_a_part():
    parts.linked(whole, SIGNATURE, jit.OPTIONS)
    assert list(power.overloads) == [(float64, int64)]


@only_with_parts
def test_parts_are_not_optimised_one_by_one():
    parts.linked(whole, SIGNATURE, jit.OPTIONS)
    (found,) = power.overloads.values()
    assert "alloca" in str(found.library.own_module())  # which any optimisation removes


def test_a_part_can_be_called_from_python():
    assert square(3.0) == 9.0
    assert power(2.0, 5) == 32.0


def test_an_entry_computes_what_its_parts_do(tmp_path):
    entry = jit.Entry(whole, "whole", SIGNATURE)
    entry.path = lambda _=None: tmp_path / "code"
    assert entry.call(2.0, 5, np.array([4], np.int32)) == 32 + 8 + 16 + 2


@only_with_parts
@pytest.mark.parametrize("function", [whole, impossible])
def test_numba_is_left_as_it_was(function):
    """Also by a function that does not compile, which is Numba's error."""
    before = dict(vars(cpu_target.typing_context))
    if function is whole:
        parts.linked(whole, SIGNATURE, jit.OPTIONS)
    else:
        with pytest.raises(TypingError, match="no_such_attribute"):
            parts.linked(impossible, float64(float64), jit.OPTIONS)
    assert vars(cpu_target.typing_context).keys() == before.keys()


def test_numbas_own_way_gives_the_same():
    """The fallback: BUNRAKU_PARTS=0."""
    tree = random_tree(3, links=7)
    q, v, _ = tree.state(np.random.default_rng(3))
    shown, _ = run(integrate_alone(tree.m, q, v), BUNRAKU_PARTS="0")
    close(np.array(shown.split(), float), tree.m.integrate(q, v))


def test_without_compilation_the_answers_are_the_same():
    assert {part.kind for seed in answers.SEEDS for part in random_tree(seed, links=7).parts} == set(KINDS)
    code = "import answers, bunraku.jit\nprint(bunraku.jit.JIT_OFF, *answers.alone_and_in_batches().tolist())"
    shown, _ = run(code, NUMBA_DISABLE_JIT="1")
    off, *numbers = shown.split()
    assert off == "True"
    close(np.array(numbers, float), answers.alone_and_in_batches())
