"""Gradients of costs of whole motions: differences of motions, whatever is kept on the way."""

import numpy as np
import pytest

import bunraku as bk
from differences import WEIGHTS

STEPS, STEP = 90, 0.01


def slope(function, h=1e-3):
    return sum(w * (function(k * h) - function(-k * h)) for k, w in enumerate(WEIGHTS, 1)) / h


def arm():
    m = bk.Mechanism()
    m.add_link("base", joint=bk.Free(), mass=2.0, inertia=(0.1, 0.2, 0.15))
    m.add_link("upper", "base", bk.Spherical(damping=0.1), position=(0, 0, 0.3), mass=1.0, com=(0, 0.05, 0.2),
               inertia=(0.02, 0.03, 0.01))
    m.add_link("lower", "upper", bk.Revolute((0, 1, 0), stiffness=2.0), position=(0, 0, 0.4), mass=0.7,
               com=(0, 0, 0.2), inertia=(0.02, 0.02, 0.01))
    return m


def final(q, v):
    by_v = v + np.cos(np.arange(len(v)))
    return 0.5 * v @ v + np.cos(np.arange(len(v))) @ v + q[-1] ** 2, 2.0 * q[-1] * np.eye(len(v))[-1], by_v


def running(k, q, v, tau):
    weight = 0.1 + 0.01 * k[:, None]
    return (weight * v**2 + tau**2).sum(axis=1), 0.0, 2.0 * weight * v, 2.0 * tau


def cost(m, q, v, tau):
    """The same by the steps of a simulation, as they are."""
    w, total = bk.Worlds(m, 1, step=STEP, solver="symplectic_euler", q=q, v=v), 0.0
    for k, row in enumerate(tau):
        total += running(np.array([k]), w.q, w.v, row[None])[0][0]
        w.step(row)
    return total + final(w.q[0], w.v[0])[0]


def test_the_gradient_is_that_of_differences():
    m, rng = arm(), np.random.default_rng(0)
    q, v, tau = m.integrate(m.neutral(), 0.3 * rng.normal(size=10)), rng.normal(size=10), rng.normal(size=(STEPS, 10))
    wanted = [("mass", "lower"), ("damping", "upper"), "gravity", ("stiffness", "lower")]
    g = bk.gradient(m, q, v, tau, step=STEP, final=final, running=running, parameters=wanted)
    assert g.cost == pytest.approx(cost(m, q, v, tau), rel=1e-12)
    assert g.kept <= 20

    def near(found, function):
        expected = slope(function)
        assert abs(found - expected) <= 1e-9 * (1.0 + abs(expected))

    move, change = rng.normal(size=10), rng.normal(size=(STEPS, 10))
    near(g.by_q @ move, lambda h: cost(m, m.integrate(q, h * move), v, tau))
    near(g.by_v @ move, lambda h: cost(m, q, v + h * move, tau))
    near((g.by_tau * change).sum(), lambda h: cost(m, q, v, tau + h * change))
    near(g.by_parameters[0], lambda h: cost(m.with_link("lower", mass=0.7 + h), q, v, tau))
    near(g.by_parameters[1], lambda h: cost(m.with_joint("upper", damping=0.1 + h), q, v, tau))
    near(g.by_parameters[5], lambda h: cost(m.with_joint("lower", stiffness=2.0 + h), q, v, tau))
    for kept in (1, 3, STEPS):
        other = bk.gradient(m, q, v, tau, step=STEP, final=final, running=running, checkpoints=kept)
        assert np.abs(other.by_tau - g.by_tau).max() <= 1e-12 * np.abs(g.by_tau).max()


def test_what_has_no_gradient_is_refused():
    m = arm()
    state = m.neutral(), np.zeros(10)
    with pytest.raises(bk.ShapeError, match="steps"):
        bk.gradient(m, *state, np.zeros(10), step=0.01)
    with pytest.raises(bk.SimulationError, match="step 0"):
        bk.gradient(m, *state, np.full((3, 10), np.nan), step=0.01)
    m.add_shape("base", bk.Sphere(0.1))
    m.add_plane()
    with pytest.raises(bk.ModelError, match="contact"):
        bk.gradient(m, *state, np.zeros((3, 10)), step=0.01)
