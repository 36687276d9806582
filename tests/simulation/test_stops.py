"""Stops: a run in pieces of any length costs at most a step more for each, and is as accurate."""

import numpy as np
import pytest

import bunraku as bk


def in_pieces(times, **settings):
    """(steps of a figure that runs to each of the times, steps of one that runs to the last at once, difference)."""
    m = bk.models.human(dof=16)
    v = np.random.default_rng(1).normal(size=m.nv)
    one, sim = bk.Simulation(m, v=v, **settings), bk.Simulation(m, v=v, **settings)
    one.run(times[-1])
    for t in times:
        sim.run(t)
        assert sim.t == t
    return sim.stats.steps, one.stats.steps, np.abs(m.difference(one.q, sim.q)).max()


@pytest.mark.parametrize("solver", ["gear", "bdf", "implicit", "tsit5", "rkf"])
def test_a_run_of_one_rounding_costs_the_next_run_nothing(solver):
    """0.1 + 0.2 is one rounding after 0.3. Such a step must not become the step of the run after it."""
    steps, alone, apart = in_pieces([0.3, 0.1 + 0.2, 1.0], solver=solver)
    assert steps <= 1.3 * alone + 4
    assert apart < 1e-3


@pytest.mark.parametrize("solver", ["gear", "bdf", "implicit", "tsit5"])
def test_many_stops_a_few_roundings_apart_cost_at_most_a_step_each(solver):
    times, t = [], 0.2
    for k in range(200):
        t = float(np.nextafter(t, 1.0)) if k % 3 else t  # also where it is
        times.append(t)
    steps, alone, apart = in_pieces([*times, 0.5], solver=solver)
    assert steps <= 1.3 * alone + 200 + 4
    assert apart < 1e-3


@pytest.mark.parametrize("solver", ["gear", "bdf", "implicit", "tsit5", "iec"])
@pytest.mark.parametrize("first", [5e-324, 1e-310, 1e-160, 1e-30, 1e-14])
def test_a_first_run_however_short_ends(solver, first):
    steps, alone, apart = in_pieces([first, 2 * first, 0.1], solver=solver)
    assert steps <= 1.3 * alone + 12
    assert apart < 1e-4


def test_stops_at_a_tenth_of_a_step_keep_the_accuracy():
    """A stop cuts a step short; the step after it goes on with the length that error control had found."""
    m = bk.models.human(dof=16)
    v = np.random.default_rng(1).normal(size=m.nv)
    states = []
    for settings, times in (({"rtol": 1e-12, "atol": 1e-13}, [1.0]), ({}, [1.0]), ({}, np.arange(1, 101) / 100)):
        sim = bk.Simulation(m, v=v, **settings)
        for t in times:
            sim.run(float(t))
        states.append((sim.q, sim.stats.steps))
    (exact, _), (one, alone), (pieces, steps) = states
    assert np.abs(m.difference(exact, pieces)).max() < 3 * np.abs(m.difference(exact, one)).max() + 1e-6
    assert steps < alone + 250
