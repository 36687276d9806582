"""Sampling: states between the steps of a trajectory are as accurate as the steps."""

from __future__ import annotations

import numpy as np

import bunraku as bk
from bunraku.check import Case
from bunraku.check.motions import error, start
from bunraku.simulation.settings import SOLVERS, WITH_STEP

TITLE = "states sampled between steps, beside a run with tight tolerances, are as good as the steps; every solver"
UNIT = "states"
SEEDS, SHORT, LIMIT = 400, 40, 300.0
SAMPLES = 12
WORSE = 10.0         # times the largest error of the steps
FLOOR = 10.0         # times the tolerances, added to it


def case(seed: int) -> Case:
    """One motion by one solver, with its polynomials or (multistep methods) from the recorded states."""
    rng = np.random.default_rng([seed, 2])
    name, m, q, v = start(rng)
    solver = SOLVERS[seed % len(SOLVERS)]
    dense = solver not in ("gear", "bdf", "implicit") or bool(seed // len(SOLVERS) % 2)
    rtol = float(10.0 ** rng.uniform(-9, -4))
    settings: dict = {"solver": solver, "rtol": rtol, "atol": 1e-2 * rtol}
    if solver in WITH_STEP:
        settings = {"solver": solver, "step": float(rng.choice([1e-3, 5e-3]))}
    sim = bk.Simulation(m, q, v, dense=dense, **settings)
    tr = sim.run(float(rng.uniform(0.1, 0.5)))
    times = np.unique(rng.uniform(0.0, tr.t[-1], SAMPLES))
    ends = np.unique(np.concatenate([tr.t[1:][np.searchsorted(tr.t[1:], times)], tr.t[-1:]]))
    every = np.unique(np.concatenate([times, ends]))
    exact = bk.rollout(m, q, v, times=every, solver="gear", rtol=1e-12, atol=1e-13, workers=1)
    states = {t: (exact.q[k], exact.v[k]) for k, t in enumerate(every.tolist())}
    record = {t: (tr.q[k], tr.v[k]) for k, t in enumerate(tr.t.tolist())}
    steps = max(error(m, record[t], states[t]) for t in ends.tolist())
    between = max(error(m, (a, b), states[t]) for t, (_, a, b) in zip(times.tolist(), tr.sample(times), strict=True))
    scale = 1.0 + max(np.abs(exact.q).max(), np.abs(exact.v).max())
    floor = FLOOR * rtol * scale if solver not in WITH_STEP else 1e-9
    if not between <= WORSE * steps + floor:
        raise AssertionError(f"{name}, {solver}, rtol {rtol:.1e}, {'' if dense else 'not '}dense: samples are off by "
                             f"{between:.2e}, steps by {steps:.2e}")
    return Case(len(times), {"error / (error of steps + tolerance)": between / (steps + floor / FLOOR)})
