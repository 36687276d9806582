"""Problem sets: solved to the order of the tolerance, as cheaply as by CVODE; few steps fail."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.bench import bench_integrators as integrators
from bunraku.bench import detest
from bunraku.integrate.methods import METHODS

PAIRS = {"iec": 2, "rki": 3, "rkg": 4, "rkf": 5, "tsit5": 5}  # and their orders


@pytest.mark.parametrize("rtol", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize(("name", "problems", "method", "theirs"), [s[:4] for s in integrators.SETS])
def test_problem_sets_are_solved_to_the_order_of_the_tolerance_as_cheaply_as_by_cvode(name, problems, method, theirs,
                                                                                     rtol):
    mine = integrators.measure(problems, lambda *p: integrators.ours(method, *p), rtol)
    errors = [row["error"] for row in mine]
    assert np.median(errors) < 30
    assert max(errors) < 5000  # the orbits multiply what comes early
    pytest.importorskip("sksundae")
    other = integrators.measure(problems, lambda *p: integrators.cvode(theirs, *p), rtol)
    ratio = sum(row["evaluations"] for row in mine) / sum(row["evaluations"] for row in other)
    assert ratio < integrators.MOST
    typical = [np.exp(np.mean(np.log([row["error"] + 0.01 for row in rows]))) for rows in (mine, other)]
    assert typical[0] < 4 * typical[1]  # and not by being careless


@pytest.mark.parametrize("method", PAIRS)
def test_explicit_methods_solve_the_problem_set_too(method):
    rtol = 1e-3 if method in ("iec", "rki") else 1e-6
    errors = [row["error"] for row in integrators.measure(detest.NON_STIFF, lambda *p: integrators.ours(method, *p),
                                                          rtol)]
    assert np.median(errors) < 30
    assert max(errors) < 5000


def test_coordinates_that_follow_velocities_save_evaluations():
    """A chain that swings needs fewer evaluations in a simulation than the same equation as any other."""
    m = bk.models.mobile(0.2, 0.3, 0.2, 10 / 6, 1, 6, None, None, 2.0)
    n, q = m.nv, m.neutral()
    q[0] = 0.8

    def rates(t, y):
        return np.concatenate([y[n:], bk.forward_dynamics(m, y[:n].copy(), y[n:].copy())])

    exact = bk.Simulation(m, q, rtol=1e-12, atol=1e-12).run(until=4.0).q[-1]
    for tolerance in (1e-4, 1e-6, 1e-8, 1e-10):
        sim = bk.Simulation(m, q, solver="gear", rtol=tolerance, atol=tolerance)
        end = sim.run(until=4.0).q[-1]
        plain = bk.solve_ivp(rates, (0.0, 4.0), np.concatenate([q, np.zeros(n)]), method="gear", rtol=tolerance,
                             atol=tolerance)
        assert sim.stats.evaluations < 0.85 * plain.nfev
        assert np.abs(end - exact).max() < 2 * np.abs(plain.y[:n, -1] - exact).max()


@pytest.mark.parametrize("damping", [2.5, 10.0])
def test_where_the_iteration_limits_steps_few_fail(damping):
    m = bk.models.mobile(0.2, 0.3, 0.2, 1.0, 1, 4, None, None, 2.0, damping=damping)
    q = m.neutral()
    q[0] = 0.8
    sim = bk.Simulation(m, q, solver="gear", rtol=1e-3, atol=1e-3)
    sim.run(until=2.0)
    assert sim.stats.rejected < 0.1 * sim.stats.steps


def test_the_error_per_unit_of_time_takes_shorter_steps_and_errs_less():
    """Shorter steps, since they are shorter than a second, and so a smaller error at the end."""
    m, q = bk.models.chain(2), np.array([0.8, 0.0])
    exact = bk.Simulation(m, q, solver="gear", rtol=1e-11, atol=1e-11)
    exact.run(until=2.0)
    runs = [bk.Simulation(m, q, solver=METHODS["rkf"]._replace(per_unit=unit, largest=unit), rtol=1e-4, atol=1e-4)
            for unit in (False, True)]
    errors = [np.abs(sim.run(until=2.0).q[-1] - exact.q).max() for sim in runs]
    assert runs[1].stats.steps > runs[0].stats.steps
    assert errors[1] < errors[0]
    assert "a tableau of order 5" in repr(runs[0])
