"""Factors at hand solve for other right-hand sides as new ones do, for any structure."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bunraku as bk
from bunraku.algorithms.connection_equations import AGAIN, DYNAMICS, IMPULSE, ONCE, POSITION, TWICE
from bunraku.entries.closed_solution import closed_one, velocity_gaps
from bunraku.entries.signatures import FAILED
from bunraku.plan import fields as f
from bunraku.plan.loop_plan import reschedule
from closed import random_closed, random_planar
from oracle import close
from processes import run

SEEDS = st.integers(0, 10**6)


def solve(plan, mode, q, v, work, tau=None):
    """(change, multipliers) by the work array's factors or by new ones; unlike those of people, left where they are."""
    loops, a = plan.loops, np.empty(plan.nv)
    answer = closed_one.call(mode, plan.with_rotors, loops.dof_f, q, v, plan.zero_tau if tau is None else tau,
                             plan.nothing, plan.nothing, a, work)
    assert answer != FAILED
    first = loops.conn_i[-1, f.HEAD_FORCES]
    return a, work[first:first + loops.rows].copy()


def check(plan, q, rng):
    """The factors of an acceleration serve for an impulse and a move at the same configuration, one after the other."""
    n = plan.nv
    work, other = np.full((2, plan.loops.work_size), np.nan)
    for look in (ONCE, TWICE):
        solve(plan, DYNAMICS + look, q, rng.normal(size=n), work, rng.normal(size=n))
        for mode in (IMPULSE, POSITION, IMPULSE):
            v = rng.normal(size=n)
            one, two = solve(plan, mode + AGAIN, q, v, work), solve(plan, mode + look, q, v, other)
            close(one[0], two[0], 1e-9)
            if look == ONCE:  # a second look gives forces of minimum norm where they are not unique
                close(one[1], two[1], 1e-9)


@given(SEEDS)
@settings(max_examples=60)
def test_factors_serve_for_other_right_hand_sides(seed):
    rng = np.random.default_rng(seed)
    closed = random_closed(seed, passive=seed % 2 == 0, springs=seed % 3 == 0, grounded=seed % 5 > 1)
    m = closed.m
    q = m.integrate(closed.q, 1e-2 * rng.normal(size=m.nv))  # loops open
    check(m.plan(), q, rng)
    for closing in ("inside", "together"):
        order = bk.schedule(m, workers=8, closing=closing, exactly=True)
        check(reschedule(m.plan(), order.items(m), closing == "together"), q, rng)


@given(SEEDS)
@example(315)  # without being told, new factors would be looked at twice, those at hand once
@settings(max_examples=40)
def test_factors_serve_for_redundant_and_massless_loops_too(seed):
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        closed = random_planar(seed, 1 + seed % 4)
    elif seed % 3 == 1:
        closed = random_closed(seed, redundant=True)
    else:
        closed = random_closed(seed, massless=True, kinds=("revolute", "helical", "fixed", "spherical", "prismatic"))
    check(closed.m.plan(), closed.q, rng)


def test_factors_from_elsewhere_leave_a_part_that_falls_with_the_distance():
    m = bk.models.bricard()
    plan, rng = m.plan(), np.random.default_rng(1)
    q, v = bk.project(m, m.neutral(), np.ones(m.nv))
    way = bk.impact(m, q, rng.normal(size=m.nv))  # along the motion, so that the loop stays nearly closed
    v = v + 1e-3 * rng.normal(size=m.nv)
    before = velocity_gaps(plan, q, v).max()
    left = []
    for distance in (1e-2, 1e-3, 1e-4):
        work = np.empty(plan.loops.work_size)
        solve(plan, DYNAMICS, m.integrate(q, distance * way), v, work)
        change, _ = solve(plan, IMPULSE + AGAIN, q, v, work)
        left.append(velocity_gaps(plan, q, v + change).max())
    assert left[0] < 0.1 * before
    np.testing.assert_array_less(left[1:], 0.2 * np.array(left[:-1]))


@pytest.mark.parametrize("apart", [1e-6, 1e-9, 1e-12, 1e-16])
@pytest.mark.parametrize("angle", [0.0, *np.arcsin([0.37, 0.5, -0.37, -0.5]), 0.5 * np.pi, -0.5 * np.pi])
def test_any_basis_of_the_constrained_directions_serves(angle, apart):
    """A cardan joint, on both sides of angles at which the basis of its constrained directions may change."""
    m = bk.Mechanism()
    m.add_link("body", joint=bk.Free(), mass=2.0, com=(0.1, -0.2, -0.4), inertia=(0.3, 0.2, 0.1))
    m.connect("ground", "body", bk.Compound(bk.Revolute((0, 0, 1)), bk.Revolute((0, 1, 0))), "cardan")
    plan, v = m.plan(), np.random.default_rng(1).normal(size=m.nv)
    one, other = (m.integrate(m.neutral(), [0, 0, 0, 0, angle + side * apart, 0]) for side in (-1, 1))
    for q, near in ((one, other), (other, one)):
        work, new = np.full((2, plan.loops.work_size), np.nan)
        solve(plan, IMPULSE, q, v, work)
        change, expected = solve(plan, IMPULSE + AGAIN, near, v, work)[0], solve(plan, IMPULSE, near, v, new)[0]
        close(change, expected, 1e3 * apart + 1e-13)
        after = v + change + solve(plan, IMPULSE + AGAIN, near, v + change, work)[0]
        R, motion = bk.poses(m, near)["body"][0], bk.kinematics(m, near, after).velocities["body"]
        assert abs(motion[3:] @ np.cross((0, 0, 1), R[:, 1])) < 1e-12 + 1e6 * apart**2  # no turn about the third axis
        assert np.abs(motion[:3]).max() < 1e-12 + 1e6 * apart**2


LANES = """
import numpy as np, bunraku as bk
from bunraku.algorithms.ada import ada, ada_again
from bunraku.algorithms.connection_equations import *
m = bk.models.n_four_bar(2)
plan = m.plan()
loops, rng, W, nv = plan.loops, np.random.default_rng(0), 3, plan.nv
q = m.neutral()[:, None] + 0.1 * rng.normal(size=(nv, W))
v, zero = rng.normal(size=(2, nv, W)) * [[[1.0]], [[0.0]]]
def solve(q, v, zero, shape):
    work, a = np.full((loops.work_size, *shape), np.nan), np.empty(zero.shape)
    plans = plan.body_i, plan.body_f
    ada(None, DYNAMICS, 0.0, *plans, loops.dof_f, loops.conn_i, loops.conn_f, loops.prog, q, v, zero, zero[:0],
        work[:0], a, work)
    ada_again(None, IMPULSE, *plans, loops.conn_i, loops.conn_f, loops.prog, q, v, zero, a, work)
    return a
together = solve(q, v, zero, (W,))
apart = np.column_stack([solve(q[:, w].copy(), v[:, w].copy(), zero[:, w].copy(), ()) for w in range(W)])
print(abs(together - apart).max() < 1e-12, abs(apart).max() > 0.1)
"""


def test_factors_serve_for_states_side_by_side_in_lanes():
    assert run(LANES, NUMBA_DISABLE_JIT="1")[0].split() == ["True", "True"]
