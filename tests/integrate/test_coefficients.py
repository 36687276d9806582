"""Coefficients of the methods: order conditions, generating polynomials, published values."""

from fractions import Fraction

import numpy as np
import pytest

from bunraku.integrate import bdf, gear
from bunraku.integrate.methods import METHODS

POWERS = (1, 2, 3, 3, 4, 4, 4, 4)  # of the step, in the order conditions
PAIRS = {"iec": 2, "rki": 3, "rkg": 4, "rkf": 5, "tsit5": 5}  # and their orders


def conditions(A, C, order):
    """Order conditions: rows r with r @ b = right side, up to order 5."""
    one = np.ones_like(C)
    trees = [(one, 1), (C, 2), (C**2, 3), (A @ C, 6), (C**3, 4), (C * (A @ C), 8), (A @ C**2, 12), (A @ A @ C, 24),
             (C**4, 5), (C**2 * (A @ C), 10), ((A @ C) ** 2, 20), (C * (A @ C**2), 15), (A @ C**3, 20),
             (C * (A @ A @ C), 30), (A @ (C * (A @ C)), 40), (A @ A @ C**2, 60), (A @ A @ A @ C, 120)]
    return trees[:[0, 1, 2, 4, 8, 17][order]]


@pytest.mark.parametrize(("name", "order"), PAIRS.items())
def test_pairs_satisfy_their_order_conditions(name, order):
    method = METHODS[name]
    np.testing.assert_allclose(method.A.sum(axis=1), method.C, atol=1e-14)
    assert np.all(np.triu(method.A) == 0)
    assert method.order == order
    for row, denominator in conditions(method.A, method.C, order):
        assert method.B @ row == pytest.approx(1 / denominator, abs=2e-14)
    if order < 5:
        assert max(abs(method.B @ r - 1 / d) for r, d in conditions(method.A, method.C, order + 1)) > 1e-4
    worst = [abs(method.E @ r) for r, _ in conditions(method.A, method.C, method.estimate)]
    vanishing = len(conditions(method.A, method.C, method.estimate - 1))
    assert max(worst[:vanishing]) < 1e-14
    assert max(worst[vanishing:]) > 1e-5  # the estimate is of this order and no smaller one: it says something


@pytest.mark.parametrize(("name", "order"), {"iec": 2, "rki": 3, "rkg": 4, "rkf": 4, "tsit5": 4}.items())
def test_polynomials_between_steps_satisfy_the_order_conditions_everywhere(name, order):
    method = METHODS[name]
    s, degree = len(method.B), method.P.shape[1]
    A = np.zeros((s + 1, s + 1))
    A[:s, :s], A[s, :s] = method.A, method.B
    C = A.sum(axis=1)
    powers = np.arange(1, degree + 1)
    for x in (0.2, 0.5, 0.77, 1.0):
        b = method.P @ x**powers
        for row, denominator, power in zip(*zip(*conditions(A, C, order), strict=True), POWERS, strict=False):
            assert b @ row == pytest.approx(x**power / denominator, abs=1e-12)
    last = np.zeros(s + 1)
    last[-2 if method.ends else -1] = 1.0
    np.testing.assert_allclose(method.P[:, 0], np.eye(s + 1)[0], atol=1e-13)      # starts along the derivative
    np.testing.assert_allclose(method.P @ powers, last, atol=1e-13)               # and ends along it
    np.testing.assert_allclose(method.P.sum(axis=1), np.append(method.B, 0.0), atol=2e-14)


def polynomial(coefficients, x):
    return sum(c * Fraction(x) ** j for j, c in enumerate(coefficients))


@pytest.mark.parametrize("q", range(1, 13))
def test_adams_vectors_come_from_their_generating_polynomial(q):
    l = gear.coefficients(q)
    assert l[1] == 1
    assert polynomial(l, -1) == 0
    slope = [j * c for j, c in enumerate(l)][1:]
    assert all(polynomial(slope, -i) == 0 for i in range(1, q))  # derivatives at the last q - 1 points stay
    np.testing.assert_array_equal(gear.METHOD.L[q, :q + 1], [float(x) for x in l])
    assert not gear.METHOD.L[q, q + 1:].any()


@pytest.mark.parametrize("q", range(1, 6))
def test_bdf_vectors_come_from_their_generating_polynomial(q):
    l = bdf.coefficients(q)
    assert l[1] == 1
    assert all(polynomial(l, -i) == 0 for i in range(1, q + 1))  # values at the last q points stay
    assert l[0] == 1 / sum(Fraction(1, i) for i in range(1, q + 1))


def test_multistep_coefficients_are_the_published_ones():
    assert gear.coefficients(4) == [Fraction(3, 8), 1, Fraction(11, 12), Fraction(1, 3), Fraction(1, 24)]  # Gear 1971
    assert bdf.coefficients(3) == [Fraction(6, 11), 1, Fraction(6, 11), Fraction(1, 11)]
    assert [gear.coefficients(q)[0] for q in (5, 6)] == [Fraction(251, 720), Fraction(95, 288)]
    # error constants of Adams-Moulton: 1/2, 1/12, 1/24, 19/720, 3/160
    assert [gear.error_constant(q) for q in range(1, 6)] == [
        Fraction(1, 2), Fraction(1, 12), Fraction(1, 24), Fraction(19, 720), Fraction(3, 160)]
