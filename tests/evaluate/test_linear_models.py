"""Linear models: small changes of motions obey them, in equilibrium and in motion, open and closed."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku as bk
from differences import slope
from loops import parallelogram, posed
from structures import random_tree


@given(st.integers(0, 10**6))
@settings(max_examples=15)
def test_small_moves_change_as_in_motion(seed):
    """Two motions that start a small move and a small change of v apart: how the move changes at first."""
    rng = np.random.default_rng(seed)
    m = random_tree(seed, kinds=("revolute", "spherical", "free", "helical", "planar")).m
    q = m.integrate(m.neutral(), rng.normal(size=m.nv))
    v, move, faster = rng.normal(size=(3, m.nv))

    def apart(h, s):
        other = m.integrate(m.integrate(q, h * move), s * (v + h * faster))
        return m.difference(m.integrate(q, s * v), other)

    model = bk.linearise(m, q, v)
    expected = slope(lambda h: slope(lambda s: apart(h, s)))
    assert np.abs((model.A @ np.concatenate([move, faster]))[:m.nv] - expected).max() < 1e-9 * (1 + abs(expected).max())


def test_a_free_body_precesses_as_its_linear_model():
    """A top in free space, spun about its smallest axis: the rate of precession about steady rotation."""
    m = bk.Mechanism(gravity=(0, 0, 0))
    m.add_link("top", joint=bk.Spherical(), mass=1.0, inertia=(2.0, 2.0, 1.0))
    model = bk.linearise(m, m.neutral(), [0.0, 0.0, 3.0])
    rates = np.linalg.eigvals(model.A[3:, 3:])
    assert np.sort(rates.imag) == pytest.approx([-1.5, 0.0, 1.5], abs=1e-12)  # (I_3 / I_1 - 1) w
    assert np.abs(rates.real).max() < 1e-12


def test_the_reduced_model_of_a_linkage_swings_at_its_frequency():
    m = parallelogram(both=True)
    inertia, weight = 2 * (0.1 + 2.0 * 0.2**2) + 3.0 * 0.5**2, 9.81 * (2 * 2.0 * 0.2 + 3.0 * 0.5)
    model = bk.linearise(m, posed(0.0))
    assert np.abs(model.a).max() < 1e-12
    A, B = model.reduced()
    assert A.shape == (2, 2)
    assert B.shape == (2, 3)
    assert np.sort(np.linalg.eigvals(A).imag) == pytest.approx(np.sqrt(weight / inertia) * np.array([-1, 1]), rel=1e-10)


def test_feedback_from_a_linear_model_holds_a_linkage_upright():
    """LQR by the crank's torque, on the closed chain; then simulated from 0.1 rad beside."""
    m = parallelogram()
    q = posed(np.pi)
    A, B = bk.linearise(m, q).reduced()
    assert np.linalg.eigvals(A).real.max() > 1.0  # it falls
    model = bk.linearise(m, q)
    B = B[:, :1]
    P = scipy.linalg.solve_continuous_are(A, B, np.eye(2), np.eye(1))
    gain = B.T @ P @ np.linalg.pinv(model.basis)

    def hold(t, q_now, v_now):
        tau = np.zeros(m.nv)
        tau[0] = -(gain @ np.concatenate([m.difference(q, q_now), v_now]))[0]
        return tau

    sim = bk.Simulation(m, q=posed(np.pi + 0.1), actuation=hold)
    sim.run(until=4.0)
    assert np.abs(sim.q - q).max() < 1e-3


def test_what_cannot_be_linearised_is_refused():
    m = parallelogram()
    with pytest.raises(bk.ShapeError, match="one state"):
        bk.linearise(m, np.zeros((2, 3)))
    m.connect("crank", "ground", bk.Fixed(), position_b=(0, 0, 0))
    with pytest.raises(bk.StateError, match="free to move"):
        bk.linearise(m, posed(0.0))
