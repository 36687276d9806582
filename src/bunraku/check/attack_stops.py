"""Stops: a run in pieces, with stops 1 to 8 roundings apart, tiny first stops and stops at the present time, is the
motion of one run, with about as many steps."""

from __future__ import annotations

import itertools
import math

import numpy as np

import bunraku as bk
from bunraku.check import Case
from bunraku.check.motions import error, start
from bunraku.simulation.settings import SOLVERS, WITH_STEP

TITLE = "a run in pieces, stops 1 to 8 ulps apart, ends as one run does, in as many steps; every solver"
UNIT = "stops"
SEEDS, SHORT, LIMIT = 500, 40, 300.0
EXTRA = 150          # steps that a case may take more than one run and two for each stop
WORSE = 10.0         # times the error of one run
FLOOR = 300.0        # times the tolerances, added to it


def case(seed: int) -> Case:
    """One motion by one solver, in one run and in pieces."""
    rng = np.random.default_rng([seed, 1])
    name, m, q, v = start(rng)
    solver = SOLVERS[seed % len(SOLVERS)]
    rtol = float(10.0 ** rng.uniform(-9, -4))
    settings: dict = {"solver": solver, "rtol": rtol, "atol": 1e-2 * rtol}
    if solver in WITH_STEP:
        settings = {"solver": solver, "step": float(rng.choice([1e-3, 2e-3]))}
    until = float(rng.uniform(0.1, 0.4))
    times = _stops(rng, until)
    one = bk.Simulation(m, q, v, **settings)
    one.run(until)
    if rng.random() < 0.3:
        distinct = np.unique(times)
        done = bk.rollout(m, q, v, times=distinct[distinct > 0.0], workers=1, **settings)
        steps, state = int(done.steps), (done.q[-1], done.v[-1])
        fewer = 0
    else:
        sim = bk.Simulation(m, q, v, **settings)
        for t in times:
            sim.run(t)
            if sim.t != t:
                raise AssertionError(f"{name}, {solver}: stopped at {sim.t!r} instead of {t!r}")
        steps, state = sim.stats.steps, (sim.q, sim.v)
        fewer = sum(a == b for a, b in itertools.pairwise(times))
    allowed = one.stats.steps + 2 * (len(times) - fewer) + EXTRA
    if steps > allowed:
        raise AssertionError(f"{name}, {solver}, rtol {rtol:.1e}: {steps} steps with {len(times)} stops, "
                             f"{one.stats.steps} without")
    exact = bk.Simulation(m, q, v, rtol=1e-11, atol=1e-12)
    exact.run(until)
    here, alone = error(m, state, (exact.q, exact.v)), error(m, (one.q, one.v), (exact.q, exact.v))
    scale = 1.0 + max(np.abs(exact.q).max(), np.abs(exact.v).max())
    floor = FLOOR * rtol * scale if solver not in WITH_STEP else 1e-8
    if not here <= WORSE * alone + floor:
        raise AssertionError(f"{name}, {solver}, rtol {rtol:.1e}: off by {here:.2e} with {len(times)} stops, by "
                             f"{alone:.2e} without")
    return Case(len(times), {"steps more per stop": (steps - one.stats.steps) / len(times),
                             "error / (error of one run + tolerance)": here / (alone + floor / FLOOR)})


def _stops(rng, until) -> list[float]:
    """Times to stop at, the last one `until`: clusters at random times, each of stops that are ulps apart, the same, or
    anything from rounding to a step apart; often a first one that is tiny."""
    times = [0.0] if rng.random() < 0.2 else []
    if rng.random() < 0.5:
        t = 10.0 ** rng.uniform(-323, -3)
        times += [t, *_after(rng, t)]
    for t in np.sort(rng.uniform(0.0, until, rng.integers(1, 4))).tolist():
        if not times or t > times[-1]:
            times += [t, *_after(rng, t)]
    if rng.random() < 0.3:
        times += [until, *[until] * int(rng.integers(1, 3))]
    return [t for t in times if t < until] + [until] * (1 + sum(t == until for t in times))


def _after(rng, t: float) -> list[float]:
    """Stops close after t."""
    out = []
    for _ in range(int(rng.integers(2, 12))):
        kind = rng.random()
        if kind < 0.6:
            for _ in range(int(rng.integers(1, 9))):
                t = math.nextafter(t, math.inf)
        elif kind < 0.9:
            t += 10.0 ** rng.uniform(-17, -3)
        out.append(t)
    return out
