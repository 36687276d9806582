"""Decisions depend on totals of sums and an agreed status only: workers that share a run take the same steps."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.integrate import history, runge_kutta
from bunraku.integrate import solver_memory as m
from processes import run

ONE_PER_EVALUATION = ("gear", "tsit5", "rkf", "rki", "rk4")


@pytest.mark.parametrize("solver", [*ONE_PER_EVALUATION, "implicit"])
def test_two_workers_decide_as_one(solver):
    steps, rejected, evaluations, agreements = counted(solver)
    assert steps > 30
    if solver in ONE_PER_EVALUATION:
        assert agreements == evaluations
    else:  # more iterations than one need more
        assert evaluations < agreements < 4 * evaluations


@pytest.mark.parametrize("solver", ["gear", "tsit5", "implicit"])
def test_a_worker_whose_evaluation_fails_stops_all(solver):
    _, rejected, *_ = counted(solver)
    assert counted(solver, fails=True)[1] > rejected


def test_workers_agree_about_the_worst_component():
    assert counted("rkf", largest=True, per_unit=True) != counted("rkf")


def counted(solver, **options):
    shown, _ = run(f"import shared_runs; print(*shared_runs.compare({solver!r}, **{options!r}))", NUMBA_DISABLE_JIT="1")
    return tuple(map(int, shown.split()))


def test_spans_change_no_more_than_rounding():
    for solver, options in (("gear", {}), ("bdf", {}), ("implicit", {}), ("tsit5", {}), ("rk4", {"step": 0.002}),
                            ("symplectic_euler", {"step": 0.002})):
        whole, parts = (simulated(solver, cuts, options) for cuts in ([], [3, 10, 11]))
        assert whole.stats.steps == parts.stats.steps
        assert whole.stats.evaluations == parts.stats.evaluations
        # a step follows from an error estimate, a difference that has lost all but the last 1e-6 of the state: rounding
        # changes a step by 1e-10 to 1e-9, and later steps by more
        np.testing.assert_allclose(whole.trajectory.t, parts.trajectory.t, rtol=1e-7)
        np.testing.assert_allclose(whole.q, parts.q, rtol=1e-9, atol=1e-9)


def simulated(solver, cuts, options):
    """A short motion whose sums are formed between the cuts."""
    mechanism = bk.models.human(dof=16)
    sim = bk.Simulation(mechanism, v=0.5 * np.ones(mechanism.nv), solver=solver, progress=False, **options)
    ends = [0, *cuts, sim._running.memory.rows.shape[1]]
    spans = np.array([ends[:-1], ends[1:]]).T.copy()
    sim._running.local = sim._running.memory._replace(spans=spans, sums=np.full((len(spans), m.PLACES), np.nan))
    sim.run(until=0.1)
    return sim


def test_a_new_structure_has_another_size():
    sim = bk.Simulation(bk.models.human(dof=16), progress=False)
    sim.run(until=0.01)
    before = sim._running.memory.clock[m.SIZE]
    sim.cut(sim.mechanism.links[3].name)
    assert sim._running.memory.clock[m.SIZE] == sim._running.memory.rows.shape[1] > before


@pytest.mark.parametrize("name", ["multiply", "add_scaled", "predict", "shift", "rescale", "correct_history",
                                  "combine"])
def test_vector_work_on_a_part_is_that_on_the_whole(name):
    """A component is computed alike at any place of the loop, in SIMD code or in its remainder."""
    rng = np.random.default_rng(0)
    rows, factors = rng.normal(size=(8, 91)), rng.normal(size=8)
    work = {"multiply": lambda z: m.multiply(factors[0] / 7.0, z[0], z[1]),
            "add_scaled": lambda z: m.add_scaled(z[0], factors[0], z[1], z[2]),
            "predict": lambda z: history.predict(z, 5), "shift": lambda z: history.shift(z, 5, factors[0]),
            "rescale": lambda z: history.rescale(z, 5, factors[0]),
            "correct_history": lambda z: history.correct_history(z, z[7], factors, 5),
            "combine": lambda z: runge_kutta.combine(factors, 6, 0.1, z, z[7])}[name]
    whole = rows.copy()
    work(whole)
    for first, end in ((0, 90), (1, 14), (3, 50), (20, 21), (17, 91)):
        part = rows[:, first:end].copy()
        work(part)
        assert np.array_equal(part, whole[:, first:end])
