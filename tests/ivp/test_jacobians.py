"""Jacobians given to solve_ivp in SciPy's words: the same solution from fewer evaluations; what is wrong is named."""

import numpy as np
import pytest
import scipy.integrate
import scipy.sparse
from numba import njit

import bunraku as bk
from bunraku.ivp.jacobians import groups

N = 40
HEAT = (N + 1) ** 2 * (np.diag(np.full(N, -2.0)) + np.diag(np.ones(N - 1), 1) + np.diag(np.ones(N - 1), -1))


def heat(t, y):
    return HEAT @ y - y**3


def heat_jacobian(t, y):
    return HEAT - np.diag(3.0 * y**2)


START = np.sin(np.pi * np.arange(1, N + 1) / (N + 1))
SPAN, LIMITS = (0.0, 0.1), {"method": "bdf", "rtol": 1e-7, "atol": 1e-10}


@pytest.mark.parametrize("known", [
    {"jac": heat_jacobian}, {"jac": lambda t, y: scipy.sparse.csr_matrix(heat_jacobian(t, y))}, {"jac": HEAT},
    {"jac_sparsity": scipy.sparse.csr_matrix(HEAT != 0)}, {"lband": 1, "uband": 1}],
    ids=["function", "sparse", "constant", "sparsity", "band"])
def test_heat_is_conducted_as_by_differences_with_fewer_evaluations(known):
    plain, found = bk.solve_ivp(heat, SPAN, START, **LIMITS), bk.solve_ivp(heat, SPAN, START, **LIMITS, **known)
    oracle = scipy.integrate.solve_ivp(heat, SPAN, START, "Radau", rtol=1e-10, atol=1e-13).y[:, -1]
    assert np.abs(found.y[:, -1] - oracle).max() < 1e-5
    assert found.nfev < plain.nfev - 30 * plain.njev
    assert found.njev >= 1


def test_a_compiled_equation_takes_a_compiled_jacobian():
    @njit
    def robertson(t, y, k):
        a, b = k * y[1] * y[2], 3e7 * y[1] ** 2
        return np.array([-0.04 * y[0] + a, 0.04 * y[0] - a - b, b])

    @njit
    def jacobian(t, y, k):
        a, b, c = k * y[2], k * y[1], 6e7 * y[1]
        return np.array([[-0.04, a, b], [0.04, -a - c, -b], [0.0, c, 0.0]])

    found = bk.solve_ivp(robertson, (0.0, 400.0), [1.0, 0.0, 0.0], "bdf", args=(1e4,), jac=jacobian, rtol=1e-8,
                         atol=1e-12)
    assert found.y[:, -1] == pytest.approx([0.4505186, 3.2232e-6, 0.5494782], rel=1e-4)
    plain = bk.solve_ivp(robertson, (0.0, 400.0), [1.0, 0.0, 0.0], "bdf", args=(1e4,), rtol=1e-8, atol=1e-12)
    assert found.nfev < plain.nfev


def test_columns_of_a_group_share_no_row():
    pattern = np.random.default_rng(0).uniform(size=(30, 30)) < 0.1
    group = groups(pattern)
    for k in range(group.max() + 1):
        assert pattern[:, group == k].sum(axis=1).max() <= 1
    assert group.max() + 1 < 20


def test_vectorized_functions_get_columns():
    found = bk.solve_ivp(lambda t, y: -y * np.ones((2, y.shape[1])), (0.0, 1.0), [1.0, 2.0], vectorized=True)
    assert found.y[:, -1] == pytest.approx(np.exp(-1.0) * np.array([1.0, 2.0]), rel=1e-5)


def test_what_is_wrong_with_a_jacobian_is_named():
    def decay(t, y):
        return -y

    with pytest.warns(bk.SimulationWarning, match=r"'gear' .* does not use jac, lband"):
        bk.solve_ivp(decay, (0.0, 1.0), [1.0], jac=[[-1.0]], lband=0)
    with pytest.raises(bk.ShapeError, match=r"jac must be of shape \(1, 1\)"):
        bk.solve_ivp(decay, (0.0, 1.0), [1.0], "bdf", jac=np.eye(2))
    with pytest.raises(bk.ModelError, match="whole numbers"):
        bk.solve_ivp(decay, (0.0, 1.0), [1.0], "bdf", lband=-1)

    def broken(t, y):
        raise KeyError("no such thing")

    with pytest.raises(KeyError) as found:
        bk.solve_ivp(decay, (0.0, 1.0), [1.0], "bdf", jac=broken)
    assert "raised by jac(t, y)" in found.value.__notes__[0]
