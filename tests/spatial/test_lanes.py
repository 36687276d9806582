"""Lanes: W numbers at once behave like one number W times."""

import math

import numpy as np
import pytest
from numba import njit

from bunraku.jit import OPTIONS
from bunraku.spatial import algebra, lane_memory, scalar
from bunraku.spatial.lanes import WIDTH
from structures import random_inertia, random_rotation, skew


def compiled(function):
    return njit(**OPTIONS)(function)


@compiled
def sincos_each(x, out):
    for i in range(x.shape[0]):
        s, c = scalar.sincos(scalar.load(x, i))
        scalar.store(out, 2 * i, s)
        scalar.store(out, 2 * i + 1, c)


@compiled
def functions_each(x, y, out):
    """Everything a lane can do, in rows of eight."""
    for i in range(x.shape[0]):
        a, b = scalar.load(x, i), scalar.load(y, i)
        scalar.store(out, 8 * i, a + b * a - b / a)
        scalar.store(out, 8 * i + 1, -a * 2.0 + 1.0 / b)
        scalar.store(out, 8 * i + 2, scalar.sqrt(a * a))
        scalar.store(out, 8 * i + 3, scalar.minimum(a, b))
        scalar.store(out, 8 * i + 4, scalar.maximum(a, 0.5))
        scalar.store(out, 8 * i + 5, scalar.where_positive(a, b, 7.0 * b))
        scalar.store(out, 8 * i + 6, scalar.atan2(a, b))
        scalar.store(out, 8 * i + 7, scalar.constant(x, 3.25))


@compiled
def of_integers(x, out, i):
    """Whole numbers where floats belong, and an index that may be short."""
    scalar.store(out, i, 3)
    scalar.store(out, i + 1, scalar.maximum(scalar.load(x, i), 1))
    scalar.store(out, i + 2, scalar.where_positive(scalar.load(x, i), 2, 5))
    scalar.store(out, i + 3, scalar.constant(x, 7))


@compiled
def reduced(x, out):
    """What becomes of the numbers in a scalar."""
    for i in range(x.shape[0]):
        out[4 * i] = scalar.largest(scalar.load(x, i))
        out[4 * i + 1] = scalar.total(scalar.load(x, i))
        out[4 * i + 2] = scalar.total(scalar.nearest(scalar.load(x, i)))
        out[4 * i + 3] = scalar.pick(x, i, 1)


@compiled
def through_lanes(states, first, lanes, back):
    lane_memory.gather(states, first, lanes)
    lane_memory.scatter(lanes, back, first)


@compiled
def solve_symmetric(S, b, out):
    F, margin = algebra.factor3(algebra.load6(S, 0))
    algebra.store3(out, 0, algebra.solve3(F, algebra.load3(b, 0)))
    scalar.store(out, 3, margin)


@compiled
def shifted(A, B, C, r, out):
    A6, B9 = algebra.shift_inertia(algebra.load6(A, 0), algebra.load9(B, 0), algebra.load6(C, 0), algebra.load3(r, 0))
    algebra.store6(out, 0, A6)
    algebra.store9(out, 6, B9)


def arguments():
    rng = np.random.default_rng(0)
    quarters = np.arange(-6000, 6000) * (math.pi / 2)  # where reduction loses most
    near = np.concatenate([quarters, np.nextafter(quarters, np.inf), quarters + rng.normal(size=quarters.size) * 1e-6])
    x = np.concatenate([rng.uniform(-1e4, 1e4, 40_000), rng.normal(size=20_000), near, [0.0, -0.0, 1e-300, 1e4, -1e4]])
    return x[:x.size // WIDTH * WIDTH]


def exactly(function, x):
    """By the C library, right to the last bit; NumPy's own functions are less so on some processors."""
    return np.array([function(value) for value in x])


@pytest.mark.parametrize("lanes", [False, True], ids=["float", "lane"])
def test_sine_and_cosine_are_right_to_the_last_bits(lanes):
    x = arguments()
    if lanes:
        out = np.empty((2 * x.size // WIDTH, WIDTH))
        sincos_each(x.reshape(-1, WIDTH), out)
        sine, cosine = out[0::2].ravel(), out[1::2].ravel()
    else:
        out = np.empty(2 * x.size)
        sincos_each(x, out)
        sine, cosine = out[0::2], out[1::2]
    assert np.abs(sine - exactly(math.sin, x)).max() < 4e-16
    assert np.abs(cosine - exactly(math.cos, x)).max() < 4e-16


def test_one_number_may_be_as_large_as_it_likes():
    x = np.array([1e5, -1e6, 1e10, 1e22, -1e300])
    out = np.empty(10)
    sincos_each(x, out)
    assert np.abs(out[0::2] - exactly(math.sin, x)).max() < 4e-16


def test_lanes_compute_what_floats_compute():
    x, y = np.random.default_rng(1).normal(size=(2, 5, WIDTH))
    lanes = np.empty((40, WIDTH))
    functions_each(x, y, lanes)
    for w in range(WIDTH):
        one = np.empty(40)
        functions_each(x[:, w].copy(), y[:, w].copy(), one)
        assert np.allclose(lanes[:, w], one, rtol=1e-14, atol=1e-14)
        a, b = x[:, w], y[:, w]
        expected = [a + b * a - b / a, -2 * a + 1 / b, abs(a), np.minimum(a, b), np.maximum(a, 0.5),
                    np.where(a > 0, b, 7 * b), np.arctan2(a, b), np.full(5, 3.25)]
        assert np.allclose(one.reshape(5, 8).T, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("shape", [(4,), (4, WIDTH)], ids=["float", "lane"])
def test_whole_numbers_become_floats(shape):
    x, out = np.full(shape, -0.5), np.empty(shape)
    of_integers(x, out, np.int32(0))
    assert np.array_equal(out.reshape(4, -1)[:, 0], [3, 1, 5, 7])
    assert np.array_equal(out, np.broadcast_to(out.reshape(4, -1)[:, :1], (4, out.size // 4)).reshape(shape))


@pytest.mark.parametrize("shape", [(5,), (5, WIDTH)], ids=["float", "lane"])
def test_a_scalar_is_reduced_to_one_number(shape):
    x, out = 10 * np.random.default_rng(5).normal(size=shape), np.empty(20)
    reduced(x, out)
    each = x.reshape(5, -1)
    expected = [each.max(axis=1), each.sum(axis=1), np.rint(each).sum(axis=1), each[:, 1 if x.ndim == 2 else 0]]
    assert np.allclose(out.reshape(5, 4).T, expected, rtol=1e-14)
    assert [scalar.largest(row) for row in x] == list(expected[0])  # the Python bodies say the same


@pytest.mark.parametrize("n", [1, 3, WIDTH - 1, WIDTH, WIDTH + 1, 2 * WIDTH + 3])
@pytest.mark.parametrize("count", [1, WIDTH - 1, WIDTH, WIDTH + 1, 3 * WIDTH - 1])
def test_states_survive_the_way_into_lanes_and_back(count, n):
    states = np.random.default_rng(2).normal(size=(count, n))
    back = np.full((count, n), np.nan)
    for first in range(0, count, WIDTH):
        lanes = np.full((n, WIDTH), np.nan)
        through_lanes(states, first, lanes, back)
        present = min(WIDTH, count - first)
        assert np.array_equal(lanes[:, :present], states[first:first + present].T)
        assert np.array_equal(lanes[:, present:], np.repeat(states[-1:], WIDTH - present, axis=0).T)
    assert np.array_equal(back, states)


def test_symmetric_systems_are_solved_and_judged():
    rng = np.random.default_rng(3)
    for _ in range(50):
        S, b, out = random_inertia(rng, 1.0), rng.normal(size=3), np.empty(4)
        solve_symmetric(S[np.triu_indices(3)], b, out)
        assert np.allclose(S @ out[:3], b, rtol=1e-10)
        assert out[3] > 0
        R = random_rotation(rng)
        solve_symmetric((R @ np.diag([1.0, 1.0, 0.0]) @ R.T)[np.triu_indices(3)], b, out)
        assert not out[3] > 0


def test_an_inertia_moved_to_another_origin_is_the_congruent_one():
    rng = np.random.default_rng(4)
    upper = np.triu_indices(3)
    for _ in range(20):
        G = rng.normal(size=(6, 6))
        whole = G @ G.T
        r, out = rng.normal(size=3), np.empty(15)
        shifted(whole[:3, :3][upper], whole[:3, 3:].ravel(), whole[3:, 3:][upper], r, out)
        X = np.block([[np.eye(3), skew(r)], [np.zeros((3, 3)), np.eye(3)]])  # moment' = moment + r x force
        expected = X @ whole @ X.T
        assert np.allclose(out[:6], expected[:3, :3][upper])
        assert np.allclose(out[6:].reshape(3, 3), expected[:3, 3:])
