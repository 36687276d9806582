"""Derivatives of one step, and of whole motions of many: differences of rollouts, and a closed form."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import bunraku as bk
from differences import clear_of_limits, columns
from structures import random_tree

STEP = 0.01


@given(st.integers(0, 10**6))
@settings(max_examples=12)
def test_a_step_changes_as_the_rollout_of_it(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, passive=True, springs=seed % 2 == 0)
    m, ((q,), (v,), _) = tree.m, tree.states(rng, 1)
    assume(clear_of_limits(m, q))
    d = bk.step_derivatives(m, q, v, step=STEP)
    end = bk.rollout(m, q, v, until=STEP, solver="symplectic_euler", step=STEP)
    assert np.abs(m.difference(end.q, d.q)).max() < 1e-12
    assert np.abs(end.v - d.v).max() < 1e-10 * (1 + np.abs(d.v).max())

    def after(x):
        run = bk.rollout(m, m.integrate(q, x[:m.nv]), v + x[m.nv:], until=STEP, solver="symplectic_euler", step=STEP)
        return np.concatenate([m.difference(d.q, run.q[0]), run.v[0]])

    expected = columns(after, 2 * m.nv)
    assert np.abs(d.A - expected).max() < 1e-9 * (1 + np.abs(expected).max())


def test_the_gradient_of_a_whole_motion_comes_from_its_end():
    """Kinetic energy after 50 steps, by the torque at each of them: products from the end to the start, beside
    differences."""
    m = bk.models.human(dof=16)
    rng = np.random.default_rng(0)
    q, v, tau = m.integrate(m.neutral(), 0.2 * rng.normal(size=m.nv)), np.zeros(m.nv), rng.normal(size=(50, m.nv))

    def motion(tau):
        states = [(q, v)]
        w.reset([0], q, v)
        for now in tau:
            w.step(now)
            states.append((w.q[0].copy(), w.v[0].copy()))
        return states

    def cost(tau):
        return m.energy(*motion(tau)[-1])[0]

    w = bk.Worlds(m, 1, step=0.002, solver="symplectic_euler")
    states = motion(tau)
    d = bk.step_derivatives(m, np.array([x for x, _ in states[:-1]]), np.array([y for _, y in states[:-1]]), tau,
                            step=0.002)
    assert np.abs(d.v[-1] - states[-1][1]).max() < 1e-9
    last_q, last_v = states[-1]
    M = bk.mass_matrix(m, last_q)
    by_move = columns(lambda x: m.energy(m.integrate(last_q, x), last_v)[0], m.nv)
    slope, gradient = np.concatenate([by_move, M @ last_v]), np.empty_like(tau)
    for k in reversed(range(len(tau))):
        gradient[k] = d.B[k].T @ slope
        slope = d.A[k].T @ slope
    direction = rng.normal(size=tau.shape)
    expected = columns(lambda h: cost(tau + h[0] * direction), 1)[0]
    assert np.sum(gradient * direction) == pytest.approx(expected, rel=1e-7)


def test_a_batch_is_its_states_and_bad_steps_are_refused():
    m = bk.models.human(dof=16)
    rng = np.random.default_rng(1)
    q, v = m.integrate(np.tile(m.neutral(), (3, 1)), rng.normal(size=(3, m.nv))), rng.normal(size=(3, m.nv))
    many = bk.step_derivatives(m, q, v, np.ones(m.nv), step=STEP)
    for k in range(3):
        for found, expected in zip(many, bk.step_derivatives(m, q[k], v[k], np.ones(m.nv), step=STEP), strict=True):
            assert np.abs(found[k] - expected).max() < 1e-10 * (1 + np.abs(expected).max())
    with pytest.raises(bk.SettingError, match="step"):
        bk.step_derivatives(m, q, v, step=-1.0)
    with pytest.raises(bk.SettingError, match="smaller"):
        bk.step_derivatives(m, q, 1e4 * v, step=STEP)
