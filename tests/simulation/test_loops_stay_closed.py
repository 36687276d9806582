"""Loops stay closed while a simulation runs, in position and velocity, by every solver."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.entries.closed import gaps, velocity_gaps

LINKAGES = {"three four-bars": lambda: bk.models.n_four_bar(3), "Bricard": bk.models.bricard,
            "slider-crank": bk.models.slider_crank, "chain of balls": lambda: bk.models.chain_held(6)}


@pytest.mark.parametrize("solver", ["gear", "bdf", "rkf", "tsit5", "implicit", "symplectic_euler"])
@pytest.mark.parametrize("name", LINKAGES)
def test_loops_stay_closed_to_rounding(name, solver):
    m = LINKAGES[name]()
    q, v = bk.project(m, m.neutral(), np.cos(np.arange(m.nv)))
    sim = bk.Simulation(m, q, v, solver=solver, **({"step": 1e-3} if solver == "symplectic_euler" else {}))
    tr = sim.run(until=0.3)
    plan = m.plan()
    some = range(0, len(tr.t), 1 + len(tr.t) // 50)
    left = 1e-11 if solver == "symplectic_euler" else 1e-12  # its steps leave 1e-6 open, and one move the square
    assert max(gaps(plan, tr.q[k])[0].max() for k in some) < left
    assert max(velocity_gaps(plan, tr.q[k], tr.v[k]).max() for k in some) < 1e-12


@pytest.mark.parametrize("solver", ["gear", "rkf", "tsit5"])
@pytest.mark.parametrize("rtol", [1e-3, 1e-6, 1e-9])
def test_velocities_stay_closed_at_any_tolerance(solver, rtol):
    m = bk.models.four_bar()
    q, v = bk.project(m, m.neutral(), np.ones(m.nv))
    sim = bk.Simulation(m, q, v, solver=solver, rtol=rtol, atol=1e-2 * rtol)
    tr = sim.run(until=1.0)
    _, kinetic, potential = tr.energy()
    assert np.abs(kinetic + potential - kinetic[0] - potential[0]).max() < 30 * rtol * kinetic.max()
    assert max(velocity_gaps(m.plan(), x, y).max() for x, y in zip(tr.q, tr.v, strict=True)) < 1e-12
    assert sim.stats.loop_error < 1e-12
