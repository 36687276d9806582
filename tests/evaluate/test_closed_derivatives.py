"""Derivatives of closed structures: along motions that keep loops closed they are those of differences."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import bunraku as bk
from bunraku.check.structures import well_conditioned_structure
from differences import clear_of_limits, slope
from loops import parallelogram, posed, random_loops

SEEDS = st.integers(0, 10**6)
EXACT = 1e-14


def near(found, expected, tolerance=1e-8):
    assert np.abs(found - expected).max(initial=0.0) <= tolerance * (1.0 + np.abs(expected).max(initial=0.0))


def check_along_a_motion(m, q, v, tau, rng, **options):
    """Compare with differences along a curve of states that close every loop, in position and velocity; whether there
    is one."""
    q, v = bk.project(m, q, v, tolerance=EXACT)
    d = bk.derivatives(m, q, v, tau, **options)
    near(d.a, bk.forward_dynamics(m, q, v, tau, **options))
    _, values, right = np.linalg.svd(d.jacobian)
    N = right[(values > 1e-8 * values.max(initial=0.0)).sum():].T
    move, faster = N @ rng.normal(size=N.shape[1]), rng.normal(size=m.nv)
    move /= max(1.0, np.linalg.norm(move))

    def state(h):
        return bk.project(m, m.integrate(q, h * move), v + h * faster, tolerance=EXACT)

    dq, dv = slope(lambda h: m.difference(q, state(h)[0])), slope(lambda h: state(h)[1])
    near(d.jacobian @ dq, 0.0 * d.jacobian @ dq)
    near(d.jacobian @ dv, -d.rates_dq @ dq)
    near(d.da_dq @ dq + d.da_dv @ dv, slope(lambda h: bk.forward_dynamics(m, *state(h), tau, **options)))
    more = rng.normal(size=len(tau))
    near(d.da_dtau @ more, slope(lambda h: bk.forward_dynamics(m, q, v, tau + h * more, **options)))
    near(d.jacobian @ d.da_dtau, 0.0 * d.jacobian @ d.da_dtau)


@given(SEEDS, st.booleans())
@settings(max_examples=25)
def test_loops_of_all_joints_with_springs_limits_and_drives(seed, driven):
    m, q, v, tau = random_loops(seed, passive=True)
    assume(clear_of_limits(m, q))
    assume(bk.dynamics(m, q, v, tau).report.condition < 1e3)
    rng = np.random.default_rng(seed)
    tau = np.concatenate([tau, rng.normal(size=m.nc)]) if driven else tau
    check_along_a_motion(m, q, v, tau, rng, external={m.link_names[-1]: rng.normal(size=6)})


@given(SEEDS)
@settings(max_examples=20)
def test_redundant_loops_have_derivatives_of_their_motion(seed):
    structure = well_conditioned_structure(seed, False)
    rng, m = np.random.default_rng(seed), structure.mechanism
    tau = rng.normal(size=m.nv)
    v = bk.impact(m, structure.q, rng.normal(size=m.nv))
    assume(bk.dynamics(m, structure.q, v, tau).report.condition < 1e3)
    check_along_a_motion(m, structure.q, v, tau, rng)


@pytest.mark.parametrize("prescribed", [{"crank": 0.7}, {"pin": 0.3}])
def test_prescribed_joints_and_connections(prescribed):
    """The parallelogram has one freedom: given, it leaves nothing for torques to change."""
    m = parallelogram(stiffness=3.0, damping=0.4)
    q, v = posed(0.4), np.array([1.1, -1.1, 1.1])
    d = bk.derivatives(m, q, v, np.ones(3), prescribed=prescribed)
    along = posed(1.0)  # the motion that keeps the loop closed
    near(d.da_dq @ along, 0.0 * along)
    near(d.da_dv @ along, 0.0 * along)
    (name,) = prescribed
    whole = bk.derivatives(m, q, v, np.ones(3 + m.nc), prescribed=prescribed).da_dtau
    mine = m.v_slice(name) if name in m.joint_names else m.drive_slice(name)
    sign = 1.0 if name == "crank" else bk.forward_dynamics(m, q, v, np.ones(3), prescribed={name: 1.3})[0] / 1.3
    near(whole[:, mine][:, 0], sign * along)
    rest = np.delete(whole, mine, axis=1)
    near(rest, 0.0 * rest)


def test_a_parallelogram_is_a_pendulum():
    """Cranks with inertia I about their pivots, a coupler that translates: (2 I + m l^2) x'' = tau - w sin x."""
    m = parallelogram(both=True)
    x, rate = 0.7, 1.3
    inertia, weight = 2 * (0.1 + 2.0 * 0.2**2) + 3.0 * 0.5**2, 9.81 * (2 * 2.0 * 0.2 + 3.0 * 0.5)
    d = bk.derivatives(m, posed(x), rate * posed(1.0), np.zeros(3))
    along = posed(1.0)
    near(d.da_dq @ along, -weight / inertia * np.cos(x) * along)
    near(d.da_dv @ along, 0.0 * along)
    near(d.da_dtau[:, 0], along / inertia)
    near(d.da_dtau[:, 2], along / inertia)


def test_a_batch_is_its_states():
    m = parallelogram(stiffness=3.0)
    q = np.array([posed(x) for x in (0.1, 0.4, -0.7)])
    many = bk.derivatives(m, q, posed(1.0), np.ones(3 + m.nc))
    for k in range(3):
        for found, expected in zip(many, bk.derivatives(m, q[k], posed(1.0), np.ones(3 + m.nc)), strict=True):
            near(found[k], expected, 1e-12)
    assert bk.derivatives(m, q[:0], posed(1.0)).da_dtau.shape == (0, 3, 3)


def test_open_loops_and_what_cannot_be_asked_are_refused():
    m = parallelogram()
    with pytest.raises(bk.ConstraintError, match="pin"):
        bk.derivatives(m, posed(0.3) + np.array([0.0, 0.0, 0.1]), np.zeros(3))
    with pytest.raises(bk.StateError, match=r"v\[1\]"):
        bk.derivatives(m, posed(0.3), [0, np.nan, 0])
    with pytest.raises(bk.ModelError, match="connections"):
        bk.inverse_derivatives(m, posed(0.3), np.zeros(3), np.zeros(3))
