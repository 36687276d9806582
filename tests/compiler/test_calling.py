"""Entries take exactly the arguments they are compiled for: whatever else is given is an error, never a crash."""

import contextlib
import functools
import gc
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import types

import all_kinds
import bunraku as bk
from all_kinds import Inner, Tree, example
from bunraku import jit

pytestmark = pytest.mark.skipif(jit.JIT_OFF, reason="nothing is compiled")

compiled = functools.cache(all_kinds.compiled)


def total(*args):
    return compiled(all_kinds.total, brief=True)(*args)


class Derived(np.ndarray):
    pass


class OwnNumber:
    """A number that Python code computes."""

    def __init__(self, value=3, before=lambda: None):
        self.value, self.before = value, before

    def __index__(self):
        self.before()
        return self.value

    def __float__(self):
        self.before()
        return float(self.value)


def read_only(array):
    array.flags.writeable = False
    return array


def tree(**changed):
    """The last argument, with changes in it or in its inner tuple."""
    whole = example()[-1]
    inside = {name: changed.pop(name) for name in Inner._fields if name in changed}
    return whole._replace(**({"inner": whole.inner._replace(**inside)} if inside else {}), **changed)


# -- arguments that fit ----------------------------------------------------------------------------------------------

FITTING = {
    "as it is": {},
    "a subclass of arrays": {"numbers": np.arange(3.0).view(Derived)},
    "a read-only array": {"numbers": read_only(np.arange(3.0))},
    "an empty array": {"numbers": np.zeros(0)},
    "an empty table": {"table": np.zeros((0, 3), np.int32)},
    "a table without columns": {"table": np.zeros((3, 0), np.int32)},
    "one element with an odd stride": {"numbers": np.arange(5.0)[3::7]},
    "one row of a table in Fortran's order": {"table": np.asfortranarray(np.ones((1, 3), np.int32))},
    "part of an array": {"numbers": np.arange(9.0)[2:5]},
    "a byte order spelt out": {"numbers": np.arange(3.0).astype(np.dtype(float).newbyteorder(sys.byteorder))},
    "C's int": {"table": np.ones((2, 2), np.intc)},
    "a NumPy integer": {"count": np.int64(-12)},
    "a small NumPy integer": {"count": np.int8(-1)},
    "a negative integer": {"count": -5},
    "the integer -1": {"count": -1},  # CPython's mark of an error
    "a bool for an integer": {"count": True},
    "an array without dimensions for an integer": {"count": np.array(5)},
    "an integer of a class's own": {"count": OwnNumber()},
    "the smallest integer": {"count": -2**63},
    "the largest integer": {"count": 2**63 - 1},
    "a NumPy float": {"factor": np.float64(0.25)},
    "half precision": {"factor": np.float16(0.25)},
    "an integer for a float": {"factor": 3},
    "the float -1": {"factor": -1.0},
    "a float of a class's own": {"factor": OwnNumber()},
    "infinity": {"factor": float("inf")},
    "an integer for a bool": {"negate": 1},
    "a bool": {"negate": True},
    "a plain tuple for a named one": {"tree": tuple(tree())},
    "an empty array inside": {"tree": tree(marks=np.zeros(0, bool))},
    "numbers inside": {"tree": tree(size=np.int32(-3), weight=2, depth=-1)},
}


@pytest.mark.parametrize("changed", FITTING.values(), ids=FITTING)
def test_arguments_that_fit_are_taken(changed):
    expected = {name: value.value if isinstance(value, OwnNumber) else value for name, value in changed.items()}
    if type(expected.get("tree")) is tuple:
        expected["tree"] = Tree(*expected["tree"])
    assert total(*example(**changed)) == pytest.approx(all_kinds.total(*example(**expected)), rel=1e-14)


def test_a_float_that_is_no_number_is_taken():
    assert np.isnan(total(*example(factor=float("nan"))))


def test_public_functions_take_a_byte_order_spelt_out():
    m = bk.models.chain(2)
    spelt = np.array([1.0, 2.0]).astype(np.dtype(float).newbyteorder(sys.byteorder))
    assert np.array_equal(m.integrate(spelt, spelt), [2.0, 4.0])


# -- arguments that do not -------------------------------------------------------------------------------------------

ARRAY = "argument 1 must be a C-contiguous array of float64 with 1 dimensions"
TABLE = "argument 2 must be a C-contiguous array of int32 with 2 dimensions"
WRONG = {
    "a list": (ARRAY, {"numbers": [1.0, 2.0]}),
    "no array": (ARRAY, {"numbers": None}),
    "a number for an array": (ARRAY, {"numbers": 1.0}),
    "the class of arrays": (ARRAY, {"numbers": np.ndarray}),
    "bytes": (ARRAY, {"numbers": b"12345678"}),
    "single precision": (ARRAY, {"numbers": np.ones(3, np.float32)}),
    "complex numbers": (ARRAY, {"numbers": np.ones(3, complex)}),
    "integers for floats": (ARRAY, {"numbers": np.ones(3, np.int64)}),
    "objects": (ARRAY, {"numbers": np.ones(3, object)}),
    "records": (ARRAY, {"numbers": np.zeros(3, [("x", float)])}),
    "the other byte order": (ARRAY, {"numbers": np.ones(3).astype(np.dtype(float).newbyteorder())}),
    "too many dimensions": (ARRAY, {"numbers": np.ones((3, 1))}),
    "no dimensions": (ARRAY, {"numbers": np.array(1.0)}),
    "every second element": (ARRAY, {"numbers": np.ones(6)[::2]}),
    "backwards": (ARRAY, {"numbers": np.ones(6)[::-1]}),
    "not aligned": (ARRAY, {"numbers": np.zeros(25, np.uint8)[1:].view(float)}),
    "Fortran's order": (TABLE, {"table": np.asfortranarray(np.ones((2, 3), np.int32))}),
    "a transposed table": (TABLE, {"table": np.ones((2, 3), np.int32).T}),
    "unsigned integers": (TABLE, {"table": np.ones((2, 3), np.uint32)}),
    "long integers": (TABLE, {"table": np.ones((2, 3), np.int64)}),
    "too few dimensions": (TABLE, {"table": np.ones(3, np.int32)}),
    "a string for an integer": ("argument 3 must be an integer", {"count": "7"}),
    "a float for an integer": ("argument 3 must be an integer", {"count": 7.0}),
    "no integer": ("argument 3 must be an integer", {"count": None}),
    "an array for an integer": ("argument 3 must be an integer", {"count": np.array([7])}),
    "an integer too large": ("argument 3 is too large", {"count": 2**63}),
    "an integer too negative": ("argument 3 is too large", {"count": -2**63 - 1}),
    "an unsigned integer too large": ("argument 3 is too large", {"count": np.uint64(2**64 - 1)}),
    "a string for a float": ("argument 4 must be a number", {"factor": "0.5"}),
    "a complex number": ("argument 4 must be a number", {"factor": 1j}),
    "no float": ("argument 4 must be a number", {"factor": None}),
    "an integer too large for a float": ("argument 4 is too large", {"factor": 10**400}),
    "a string for a bool": ("argument 5 must be an integer", {"negate": "yes"}),
    "no bool": ("argument 5 must be an integer", {"negate": None}),
    "no tuple": ("argument 6 must be a tuple of 3", {"tree": None}),
    "a list for a tuple": ("argument 6 must be a tuple of 3", {"tree": list(tree())}),
    "an array for a tuple": ("argument 6 must be a tuple of 3", {"tree": np.ones(3)}),
    "too short a tuple": ("argument 6 must be a tuple of 3", {"tree": tree()[:2]}),
    "too long a tuple": ("argument 6 must be a tuple of 3", {"tree": (*tree(), 1)}),
    "an empty tuple": ("argument 6 must be a tuple of 3", {"tree": ()}),
    "a wrong array inside": ("argument 6.coordinates must be a C-contiguous array", {"tree": tree(coordinates=0.0)}),
    "no tuple inside": ("argument 6.inner must be a tuple of 3", {"tree": tree(inner=None)}),
    "a wrong array two deep": ("argument 6.inner.marks must be a C-contiguous array of bool",
                               {"tree": tree(marks=np.ones(2, np.int8))}),
    "a wrong float two deep": ("argument 6.inner.weight must be a number", {"tree": tree(weight="heavy")}),
    "an integer too large inside": ("argument 6.size is too large", {"tree": tree(size=2**64)}),
}


@pytest.mark.parametrize(("message", "changed"), WRONG.values(), ids=WRONG)
def test_an_argument_that_does_not_fit_is_named(message, changed):
    with pytest.raises(OverflowError if "large" in message else TypeError) as caught:
        total(*example(**changed))
    assert str(caught.value).startswith(f"total: {message}")
    assert isinstance(caught.value, jit.ArrayMismatch) == ("contiguous array" in message)


@pytest.mark.parametrize("count", [0, 1, 5, 7, 300])
def test_a_wrong_number_of_arguments_is_refused(count):
    with pytest.raises(TypeError, match="total: takes 6 arguments"):
        total(*(example() * 50)[:count])


def test_arguments_by_name_are_refused():
    with pytest.raises(TypeError, match="no keyword arguments"):
        compiled(all_kinds.total, brief=True)(*example()[:-1], tree=tree())


@pytest.mark.parametrize("name", ["count", "factor", "negate"])
def test_an_error_of_a_numbers_own_code_is_passed_on(name):
    with pytest.raises(KeyError, match="own"):
        total(*example(**{name: OwnNumber(before=lambda: {}["own"])}))


@pytest.mark.parametrize("name", ["count", "factor"])
def test_a_number_whose_code_shrinks_an_array_does_no_harm(name):
    large = np.ones(5_000_000)
    shrinks = OwnNumber(before=lambda: large.resize(2, refcheck=False))
    assert total(*example(numbers=large, **{name: shrinks})) == all_kinds.total(
        *example(numbers=np.ones(2), **{name: 3}))


def test_a_failure_inside_compiled_code_is_an_error():
    entry = compiled(all_kinds.give_up)
    assert entry(*example(count=0)) == 0.0
    with pytest.raises(RuntimeError, match="give_up: failed inside compiled code"):
        entry(*example())


# -- any mixture -----------------------------------------------------------------------------------------------------

numbers = st.one_of(st.integers(-2**64, 2**64), st.floats(), st.booleans(), st.integers(-5, 5).map(np.int64),
                    st.floats(width=32).map(np.float32), st.none(), st.text(max_size=2), st.just(1j))
arrays = st.builds(lambda shape, kind, order, step: np.ones(shape, kind, order)[..., ::step],
                   st.lists(st.sampled_from([0, 2, 3]), min_size=1, max_size=3).map(tuple),
                   st.sampled_from([float, np.float32, np.int32, np.int64, bool, ">f8", object, "S3", "M8[s]"]),
                   st.sampled_from("CF"), st.sampled_from([1, 1, 2, -1]))
things = st.recursive(numbers | arrays, lambda inside: st.lists(inside, max_size=4) | st.lists(inside, max_size=4).map(
    tuple) | st.builds(Inner, inside, inside, inside) | st.builds(Tree, inside, inside, inside), max_leaves=6)
small, real = st.integers(-9, 9), st.floats(-9, 9)


@st.composite
def mixtures(draw):
    """Arguments that fit, of which up to three are changed into anything."""
    values = {"numbers": np.array(draw(st.lists(real, max_size=3))),
              "table": np.full((draw(st.integers(0, 2)), 2), 3, "i4"), "count": draw(small),
              "factor": draw(real), "negate": draw(st.booleans()), "marks": np.ones(2, bool),
              "weight": draw(real), "depth": draw(small), "coordinates": np.ones((2, 1)), "size": draw(small)}
    changes = st.dictionaries(st.sampled_from([*values, "inner", "tree"]), things, max_size=3)
    values |= draw(changes)
    inner = values.get("inner", Inner(values["marks"], values["weight"], values["depth"]))
    whole = values.get("tree", Tree(values["coordinates"], inner, values["size"]))
    return *(values[name] for name in ("numbers", "table", "count", "factor", "negate")), whole


def fits(numbers, table, count, factor, negate, tree) -> bool:
    """What `calling.py` says of arguments, in Python."""
    def array(value, kind, dimensions):
        return isinstance(value, np.ndarray) and value.dtype == kind and value.ndim == dimensions and (
            value.flags.c_contiguous and value.flags.aligned)

    def integer(value):
        return hasattr(type(value), "__index__") and not isinstance(value, np.ndarray) and -2**63 <= value < 2**63

    def real(value):
        return hasattr(type(value), "__float__") and not isinstance(value, np.ndarray)

    def of_three(value):
        return isinstance(value, tuple) and len(value) == 3

    return (array(numbers, float, 1) and array(table, np.int32, 2) and integer(count) and real(factor)
            and integer(negate) and of_three(tree) and array(tree[0], float, 2) and integer(tree[2])
            and of_three(tree[1]) and array(tree[1][0], bool, 1) and real(tree[1][1]) and integer(tree[1][2]))


@given(mixtures())
def test_any_mixture_is_an_answer_or_an_error_that_names_an_argument(args):
    if fits(*args):
        with np.errstate(all="ignore"):
            expected = all_kinds.total(*args[:-1], Tree(args[5][0], Inner(*args[5][1]), args[5][2]))
        assert total(*args) == pytest.approx(expected, rel=1e-12, nan_ok=True)
    else:
        with pytest.raises((TypeError, OverflowError), match=r"total: argument [1-6]"):
            total(*args)


# -- results ---------------------------------------------------------------------------------------------------------


def test_results_are_ints_floats_or_none():
    numbers = np.zeros(3)
    number = float(all_kinds.total(*example(numbers=numbers)))
    for function, kind, expected in ((all_kinds.total, types.float64, number),
                                     (all_kinds.shape, types.int64, all_kinds.shape(*example())),
                                     (all_kinds.fill, types.void, None)):
        found = compiled(function, kind)(*example(numbers=numbers))
        assert type(found) is type(expected)
        assert found == expected
    assert np.array_equal(numbers, np.full(3, 0.5))


def test_negative_results_are_right():
    assert compiled(all_kinds.shape, types.int64)(*example(count=-2**62)) == -2**62 + 220
    assert compiled(all_kinds.shape, types.int64)(*example(count=-221)) == -1


# -- references, threads ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [all_kinds.total, all_kinds.fill])
def test_calls_keep_no_references(function):
    call = compiled(function, types.void if function is all_kinds.fill else types.float64)
    good = example()
    wrong = [example(numbers=[]), example(table=np.ones(3)), example(count="x"), example(count=2**70),
             example(tree=tree(weight="x"))]

    def calls():
        for _ in range(10_000):
            call(*good)
        for args in wrong:
            for _ in range(2_000):
                with contextlib.suppress(TypeError, OverflowError):
                    call(*args)

    def references():
        everything = [thing for args in (good, *wrong) for thing in (*args, *args[-1], *args[-1].inner)]
        return np.array(list(map(sys.getrefcount, (*everything, None, np.ndarray, TypeError, OverflowError))))

    calls()
    before = references()
    calls()
    assert np.abs(references() - before).max() < 100


def test_calls_leave_no_memory_behind():
    call, good = compiled(all_kinds.total), example()

    def blocks(count):
        for _ in range(count):
            call(*good)
            with contextlib.suppress(TypeError):
                call(None)
        gc.collect()
        return sys.getallocatedblocks()

    start = blocks(1000)
    assert blocks(10_000) - start < 1000


def ticks_during(call, *args) -> int:
    """How often another thread gets its turn in the middle of a call that lasts a few tenths of a second."""
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.wait(0.002):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        start = time.perf_counter()
        call(*args)
        end = time.perf_counter()
    finally:
        stop.set()
        thread.join()
    margin = 0.1 * (end - start)
    return sum(start + margin < t < end - margin for t in ticks)


def test_other_threads_go_on_while_an_entry_runs_unless_it_is_brief():
    args = example(count=20_000_000)
    assert ticks_during(compiled(all_kinds.iterate), *args) > 3
    assert ticks_during(compiled(all_kinds.iterate, brief=True), *args) == 0


@pytest.mark.parametrize("brief", [True, False])
def test_many_threads_at_once_get_their_own_results(brief):
    call = compiled(all_kinds.total, brief=brief)

    def many(seed):
        rng = np.random.default_rng(seed)
        for k in range(2000):
            args = example(numbers=rng.normal(size=seed), count=k, tree=tree(weight=rng.normal(), size=-seed))
            assert call(*args) == pytest.approx(all_kinds.total(*args), rel=1e-12)
            if k % 10 == 0:
                with pytest.raises(TypeError, match=f"argument {1 + seed % 6}"):
                    call(*(None if place == seed % 6 else given for place, given in enumerate(args)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(many, range(8)))
