"""Named tuples by address: fields as in the tuple itself."""

from typing import NamedTuple

import numpy as np
import pytest
from numba import float64, int64, types
from numba.core.errors import TypingError

from bunraku import jit


class Pair(NamedTuple):
    values: np.ndarray
    count: int


class Memory(NamedTuple):
    pair: Pair
    factor: float
    out: np.ndarray


floats = float64[::1]
PAIR = types.NamedTuple([floats, int64], Pair)
MEMORY = types.NamedTuple([PAIR, float64, floats], Memory)


@jit.inner
def scale(memory):
    """Writes into the arrays of a handle."""
    for k in range(memory.pair.count):
        memory.out[k] = memory.factor * memory.pair.values[k]
    return memory.factor + memory.pair.count


def through_a_handle(memory, values):
    return scale(memory)


def of_its_own(memory, values):
    """A handle made here, to arrays of which one is made here too."""
    made = np.ones(2)
    own = Memory(Pair(values, 2), 3.0, made)
    result = scale(jit.hold(own))
    return jit.outlived(own, result + made[0] + made[1])


def wrong_field(memory, values):
    return memory.no_such_field


def entry_of(function, folder):
    entry = jit.Entry(function, "handles", float64(jit.Held(MEMORY), floats))
    entry.path = lambda _=None: folder / "code"
    return entry


def example():
    return Memory(Pair(np.array([1.0, 2.0]), 2), 0.5, np.zeros(2))


def test_kernels_read_and_write_through_a_handle(tmp_path):
    memory = example()
    assert entry_of(through_a_handle, tmp_path).call(memory, np.ones(2)) == 2.5
    assert np.array_equal(memory.out, [0.5, 1.0])


def test_an_entry_can_hold_a_tuple_of_its_own(tmp_path):
    entry = entry_of(of_its_own, tmp_path)
    for k in range(1000):  # arrays made on the way are gone afterwards, not before
        assert entry.call(example(), np.array([k, 5.0])) == 5.0 + 3.0 * k + 15.0


@pytest.mark.skipif(jit.JIT_OFF, reason="nothing is compiled")
def test_a_field_that_is_not_there_is_an_error_of_compilation(tmp_path):
    with pytest.raises(TypingError, match="no_such_field"):
        entry_of(wrong_field, tmp_path).call(example(), np.ones(2))


def test_in_plain_python_a_handle_is_the_tuple_itself():
    memory = example()
    assert jit.hold(memory) is memory
    assert jit.outlived(memory, 3.0) == 3.0
