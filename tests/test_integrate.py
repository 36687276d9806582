"""Integrators on their own: coefficients, measured order, and error against the tolerance."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import bunraku as bk
from bunraku.integrate import rkf


def test_coefficients_of_rkf_satisfy_their_order_conditions():
    A, B, C = np.pad(rkf.METHOD.A, 0), rkf.METHOD.B, rkf.METHOD.C
    fourth = B - rkf.METHOD.E
    np.testing.assert_allclose(A.sum(axis=1), C, atol=1e-15)
    for b, order in ((B, 5), (fourth, 4)):
        for k in range(1, order + 1):  # quadrature conditions
            assert b @ C ** (k - 1) == pytest.approx(1 / k, abs=1e-14)
        assert b @ A @ C == pytest.approx(1 / 6, abs=1e-14)
        assert b @ (C * (A @ C)) == pytest.approx(1 / 8, abs=1e-14)
        assert b @ A @ C**2 == pytest.approx(1 / 12, abs=1e-14)
        assert b @ A @ A @ C == pytest.approx(1 / 24, abs=1e-14)
    assert abs(fourth @ C**4 - 1 / 5) > 1e-4  # the other result is of lower order, so the difference says something


def spinning_top():
    """A ball joint with a fast, unsymmetrical top on it: everything about quaternions matters."""
    m = bk.Mechanism()
    m.add_link("top", joint=bk.Spherical(), mass=1.0, com=(0.05, 0.0, 0.3), inertia=(0.02, 0.03, 0.012))
    m.add_link("arm", "top", joint=bk.Revolute((0, 1, 0)), position=(0, 0, 0.3), mass=0.4, com=(0.1, 0, 0),
               inertia=(0.001, 0.002, 0.002))
    return m, np.array([1.0, 0.3, 0.0, 0.0, 0.4]), np.array([1.0, -0.5, 4.0, 0.5])


@pytest.fixture(scope="module")
def reference():
    """The same motion by SciPy's DOP853 on our accelerations, tightly."""
    m, q, v = spinning_top()
    q = m.integrate(q, np.zeros(m.nv))

    def rates(t, y):
        w, (a, b, c, d) = y[5:8], y[:4]
        turn = 0.5 * np.array([-b * w[0] - c * w[1] - d * w[2], a * w[0] + c * w[2] - d * w[1],
                               a * w[1] + d * w[0] - b * w[2], a * w[2] + b * w[1] - c * w[0]])
        return np.concatenate([turn, y[8:9], bk.forward_dynamics(m, y[:5].copy(), y[5:].copy())])

    y = solve_ivp(rates, (0, 0.5), np.concatenate([q, v]), method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    y[:4] /= np.linalg.norm(y[:4])
    return m, q, v, y


def error_at_the_end(reference, **options):
    m, q, v, expected = reference
    sim = bk.Simulation(m, q, v, **options)
    sim.run(0.5)
    return np.abs(np.concatenate([m.difference(expected[:5], sim.q), sim.v - expected[5:]])).max()


def test_rkf_has_order_5_on_a_spherical_joint(reference):
    loose = {"rtol": 1e6, "atol": 1e6}  # every step is accepted, so max_step is the step
    errors = [error_at_the_end(reference, solver="rkf", step=h, max_step=h, **loose) for h in (0.01, 0.005, 0.0025)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders == pytest.approx([5, 5], abs=0.4)


def test_symplectic_euler_has_order_1_on_a_spherical_joint(reference):
    errors = [error_at_the_end(reference, solver="symplectic_euler", step=h) for h in (1e-3, 5e-4, 2.5e-4)]
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx([1, 1], abs=0.1)


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8, 1e-10])
def test_the_error_follows_the_tolerance(reference, rtol):
    assert error_at_the_end(reference, rtol=rtol, atol=rtol) < 300 * rtol  # errors of the steps add up over the motion


def test_symplectic_euler_keeps_energy_bounded_where_explicit_euler_gains():
    m = bk.Mechanism()
    m.add_link("bob", joint=bk.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -1), inertia=(0.01, 0.01, 0.01))
    sim = bk.Simulation(m, [1.0], solver="symplectic_euler", step=0.01)
    _, kinetic, potential = sim.run(200.0).energy()
    energy = kinetic + potential
    first, last = np.ptp(energy[:2000]), np.ptp(energy[-2000:])
    assert last < 1.05 * first  # over thirty times as long it swings no wider
    assert abs(energy[-2000:].mean() - energy[:2000].mean()) < 0.02 * first
