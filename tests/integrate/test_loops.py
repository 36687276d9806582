"""Loops and quaternions under the integrators: kept closed and unit without more steps, or the run ends."""

import contextlib

import numpy as np
import pytest

import bunraku as bk

# -- quaternions and loops -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["gear", "bdf", "tsit5"])
def test_quaternions_stay_unit_and_energy_stays_over_a_long_run(solver):
    m = bk.models.chain(1, joint="spherical")
    sim = bk.Simulation(m, v=[2.0, 1.0, 3.0], solver=solver, rtol=1e-10, atol=1e-12)
    trajectory = sim.run(60.0)
    np.testing.assert_allclose(np.linalg.norm(trajectory.q, axis=1), 1.0, atol=1e-14)
    _, kinetic, potential = trajectory.energy()
    assert np.ptp(kinetic + potential) < {"gear": 1e-6, "bdf": 1e-5, "tsit5": 1e-6}[solver] * kinetic.max()


@pytest.mark.parametrize("solver", ["gear", "bdf"])
@pytest.mark.parametrize("rtol", [1e-6, 1e-9])
def test_multistep_methods_keep_loops_closed_without_taking_more_steps(solver, rtol):
    m = bk.models.four_bar()
    q, v = bk.project(m, m.neutral(), np.array([3.0, 0.0, 0.0]))
    sim = bk.Simulation(m, q, v, solver=solver, rtol=rtol, atol=1e-2 * rtol)
    _, kinetic, potential = sim.run(5.0).energy()
    assert np.ptp(kinetic + potential) < 300 * rtol * kinetic.max()
    assert sim.stats.loop_drift < 30 * rtol  # what single steps leave open before it is closed
    assert sim.stats.loop_error < 1e-11
    assert np.abs(bk.constraints(m, sim.q).gap).max() < 1e-10
    left_open = bk.solve_ivp(lambda t, y: np.concatenate([y[3:], bk.forward_dynamics(m, y[:3].copy(), y[3:].copy())]),
                             (0.0, 5.0), np.concatenate([q, v]), method=solver, rtol=rtol, atol=1e-2 * rtol)
    assert sim.stats.steps < 1.1 * left_open.steps  # history and error estimate are not disturbed


# -- gaps that close, and configurations with more freedom -----------------------------------------------------------


def test_baumgarte_closes_an_open_loop_at_its_rate():
    """Four-bar opened by a displacement of its coupler: the gap decays like (1 + c t) exp(-c t)."""
    m = bk.models.four_bar()
    m.gravity = (0, 0, 0)
    q, _ = bk.project(m, m.neutral(), np.zeros(3))
    rate = 20.0
    sim = bk.Simulation(m, q, solver="gear", rtol=1e-9, atol=1e-11, baumgarte=rate)
    sim._running.memory.rows[0, 2] += 1e-6
    first = np.abs(bk.constraints(m, sim.q).gap).max()
    assert first > 1e-7
    sim.run(0.2)
    expected = (1 + rate * 0.2) * np.exp(-rate * 0.2)
    assert np.abs(bk.constraints(m, sim.q).gap).max() == pytest.approx(expected * first, rel=0.02)
    with pytest.raises(bk.ShapeError, match="baumgarte"):
        bk.Simulation(m, q, baumgarte=-1.0)


@pytest.mark.parametrize(("rtol", "drift", "steps"), [(1e-6, 1e-3, 1500), (1e-9, 1e-6, 2500)])
def test_gear_passes_by_configurations_with_more_freedom(rtol, drift, steps):
    """Four-bars go round through the flat position, where they could fold the other way, some forty times."""
    m = bk.models.n_four_bar(2)
    q, v = bk.project(m, m.neutral(), np.array([-1.0, -1.0, -1.0, 1.0, 1.0]))
    sim = bk.Simulation(m, q, v, rtol=rtol, atol=1e-2 * rtol)
    trajectory = sim.run(20.0)
    assert abs(trajectory.q[-1, 0]) > 12 * np.pi
    _, kinetic, potential = trajectory.energy()
    assert np.ptp(kinetic + potential) < drift * kinetic.max()
    assert sim.stats.loop_error < 1e-9
    assert sim.stats.steps < steps


def test_gear_passes_by_them_at_a_tight_tolerance_wherever_steps_end():
    """Some 2000 passages in 20 motions of a minute, of which some steps end within 1e-4 rad of the flat position."""
    m = bk.models.n_four_bar(3)
    round_and_round = np.array([-1.0 if name.startswith("post") else 1.0 for name in m.joint_names])
    for speed in np.linspace(1.0, 2.0, 20):
        q, v = bk.project(m, m.neutral(), speed * round_and_round)
        sim = bk.Simulation(m, q, v, rtol=1e-9, atol=1e-11)
        trajectory = sim.run(60.0)
        _, kinetic, potential = trajectory.energy()
        assert abs(trajectory.q[-1, 0]) > 30 * np.pi
        assert np.ptp(kinetic + potential) < 1e-6 * kinetic.max()
        assert sim.stats.loop_error < 1e-9
        assert sim.stats.steps < 6000


@pytest.mark.parametrize("make", [lambda: bk.models.n_four_bar(3), bk.models.bricard], ids=["four-bars", "Bricard"])
def test_linkages_keep_energy_and_loops_at_a_tight_tolerance(make):
    """The four-bars swing below their posts' feet; `bunraku bench conservation` has a minute of them going round."""
    m = make()
    start = np.array([(2.4 if name.startswith("post") else -2.4) for name in m.joint_names])
    q = m.neutral() + start if m.joint_names[0] == "post0" else m.neutral()
    q, v = bk.project(m, q, np.where(start > 0, -1.0, 1.0))
    sim = bk.Simulation(m, q, v, rtol=1e-9, atol=1e-11)
    _, kinetic, potential = sim.run(20.0).energy()
    assert kinetic.max() > 1.0
    assert np.ptp(kinetic + potential) < 1e-6 * kinetic.max()
    assert sim.stats.loop_error < 1e-9


@pytest.mark.parametrize(("solver", "rtol"), [("tsit5", 1e-6), ("tsit5", 1e-9), ("rkf", 1e-6), ("rkf", 1e-9),
                                              ("rkg", 1e-7), ("rki", 1e-7)])
def test_runge_kutta_methods_pass_by_configurations_with_more_freedom(solver, rtol):
    """A slider-crank whose crank is as long as its rod: at right angles the slider could stay and both turn on."""
    for length, angle, speed in ((0.5, np.pi / 3, 1.0), (0.4, 0.9, 2.0), (0.7, 0.5, 4.0)):
        m = bk.models.slider_crank(length, length, angle)
        q, v = bk.project(m, m.neutral(), np.full(3, speed))
        sim = bk.Simulation(m, q, v, solver=solver, rtol=rtol, atol=1e-2 * rtol)
        trajectory = sim.run(6.0)
        _, kinetic, potential = trajectory.energy()
        assert np.ptp(kinetic + potential) < 300 * rtol * kinetic.max()
        assert np.ptp(trajectory.q[:, 0]) > np.pi  # it passed by, more than once
        assert sim.stats.loop_error < 1e-11


def test_redundant_loops_do_not_shorten_runge_kutta_steps():
    m = bk.models.bricard()
    q, v = bk.project(m, m.neutral(), np.ones(5))
    sim = bk.Simulation(m, q, v, solver="tsit5")
    _, kinetic, potential = sim.run(5.0).energy()
    assert np.ptp(kinetic + potential) < 1e-4 * kinetic.max()
    assert sim.stats.steps < 200  # 1652, and as many in vain, when stages were open


# -- loops that do not close -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "solver", "step", "speed"), [
    (bk.models.slider_crank, "symplectic_euler", 0.5, 1.0),
    (bk.models.slider_crank, "symplectic_euler", 0.1, 3.0),
    (lambda: bk.models.n_four_bar(3), "rk4", 0.5, 20.0),
    (bk.models.four_bar, "rk4", 0.5, 20.0),
    (bk.models.bricard, "rk4", 0.4, 10.0)])
def test_a_step_that_leaves_loops_open_ends_the_run_with_all_that_was_closed(make, solver, step, speed):
    m = make()
    q, v = bk.project(m, m.neutral(), np.array([(-1.0) ** (k // 2) for k in range(m.nv)]))
    v *= speed / np.abs(v).max()
    sim = bk.Simulation(m, q, v, solver=solver, step=step)
    with pytest.raises(bk.SimulationError, match=r"closed .* connection '.*' open by .*small") as caught:
        sim.run(300.0)
    trajectory = caught.value.trajectory
    assert trajectory.t[-1] == sim.t < 300.0
    assert len(trajectory.t) == sim.stats.steps + 1
    for at, moving in zip(trajectory.q, trajectory.v, strict=True):
        assert np.abs(bk.constraints(m, at).gap).max() < 1e-9
        assert np.abs(bk.constraints(m, at, moving).rates).max() < 1e-9 * max(1.0, np.abs(moving).max())


@pytest.mark.parametrize("solver", ["gear", "bdf", "implicit", "tsit5", "rk4", "symplectic_euler"])
def test_a_loop_that_is_driven_apart_ends_with_its_last_closed_state(solver):
    """Torques that grow with the speed, without bound: never a failure to look at what is not a number."""
    m = bk.models.four_bar()
    q, v = bk.project(m, m.neutral(), np.ones(3))
    sim = bk.Simulation(m, q, v, solver, actuation=lambda t, q, v: 1e3 * np.arctan(v) * v**2,
                        step=0.002 if solver in ("rk4", "symplectic_euler") else None)
    with pytest.raises(bk.SimulationError, match=r"cannot|too small") as caught:
        sim.run(1.0)
    trajectory = caught.value.trajectory
    assert trajectory.t[-1] == sim.t < 1.0
    assert np.isfinite(trajectory.v).all()
    assert np.abs(bk.constraints(m, sim.q).gap).max() < 1e-9


@pytest.mark.parametrize("rtol", [2e-4, 1e-3])
def test_steps_that_coast_stay_on_the_loops(rtol):
    """A step of the Bricard linkage at a loose tolerance may be predicted to end far off its loops."""
    m = bk.models.bricard()
    for speed in (1.0, 2.0, 3.5, 5.0, 7.0):
        q, v = bk.project(m, m.neutral(), np.full(5, speed))
        sim = bk.Simulation(m, q, v, rtol=rtol, atol=rtol)
        with contextlib.suppress(bk.SimulationError):
            sim.run(3.0)
        assert max(np.abs(bk.constraints(m, at).gap).max() for at in sim.trajectory.q) < 2e-9
