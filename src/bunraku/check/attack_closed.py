"""Runs of linkages with any solver, step and tolerance: they end with closed loops, or with an explained error."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import numpy as np

import bunraku as bk
from bunraku.check import Case
from bunraku.simulation.settings import SOLVERS, WITH_STEP

TITLE = "a linkage in motion ends with closed loops and its energy, or stops with all that it has"
UNIT = "runs"
SEEDS = 2000
SHORT = 60
LIMIT = 300.0

CLOSED = 1e-9     # [m, rad; per second, times the speed] what may be open at the end of a run
ON_THE_WAY = 1e-6  # the same for recorded states, of which a few pass a singular pose as predicted
ENERGY = 10.0     # relative tolerances of energy that a step may cost
LOOKED_AT = 50    # recorded states


class Setting(NamedTuple):
    """One motion to try."""

    mechanism: bk.Mechanism
    q: np.ndarray
    v: np.ndarray
    until: float
    settings: dict


def linkage(rng) -> bk.Mechanism:
    """A random linkage; some have configurations with more freedom, some constraints that are redundant."""
    kind = rng.integers(6)
    if kind == 0:
        while True:
            with contextlib.suppress(bk.ModelError):  # lengths that do not close
                return bk.models.four_bar((1.2, *rng.uniform(0.3, 1.2, 3)), rng.uniform(0.3, 2.8))
    if kind == 1:
        return bk.models.n_four_bar(int(rng.integers(1, 4)))
    if kind == 2:
        return bk.models.bricard()
    if kind == 3:
        length = rng.uniform(0.3, 1.0)
        return bk.models.slider_crank(length, length, rng.uniform(0.2, 1.4))
    if kind == 4:
        return bk.models.slider_crank(rng.uniform(0.2, 0.5), 1.0, rng.uniform(0.2, 3.0), offset=rng.uniform(-0.2, 0.2))
    return bk.models.chain_held(int(rng.integers(3, 8)), str(rng.choice(["revolute", "spherical"])))


def setting(seed: int) -> Setting:
    rng = np.random.default_rng([11, seed])
    m = linkage(rng)
    q, v = m.neutral(), rng.normal(size=m.nv)
    with contextlib.suppress(bk.ConstraintError):  # too far from closed: neutral is closed
        q = bk.project(m, m.integrate(q, 0.3 * rng.normal(size=m.nv)))
    q, v = bk.project(m, q, v)
    v *= 10.0 ** rng.uniform(-1.0, 1.0) / max(np.abs(v).max(), 1e-3)
    solver = str(rng.choice(SOLVERS))
    settings: dict = {"solver": solver}
    if solver in WITH_STEP:
        settings["step"] = 10.0 ** rng.uniform(-3.0, -0.2)
    else:
        least = {"iec": -7.0, "rki": -8.0}.get(solver, -10.0)
        settings["rtol"] = 10.0 ** rng.uniform(least, -3.0)
        settings["atol"] = settings["rtol"] * 10.0 ** rng.uniform(-3.0, 0.0)
    return Setting(m, q, v, rng.uniform(0.5, 3.0), settings)


def case(seed: int) -> Case:
    s = setting(seed)
    sim, stopped = bk.Simulation(s.mechanism, s.q, s.v, **s.settings, progress=False), ""
    worst: dict[str, float] = {}
    try:
        sim.run(s.until)
    except bk.SimulationError as error:
        stopped = str(error)
        _require(error.trajectory is not None and error.trajectory.t[-1] == sim.t, "an error without its trajectory")
    _require(bool(stopped) or sim.t == s.until, f"ended at {sim.t} s, not at {s.until} s, without a word")
    worst["gap at the end"] = _opening(s.mechanism, sim.q, sim.v)
    _require(worst["gap at the end"] < CLOSED, f"ends open by {worst['gap at the end']:.3g}: {stopped or 'normally'}")
    tr = sim.trajectory
    _require(np.isfinite(tr.q).all() and np.isfinite(tr.v).all(), "recorded states are not finite")
    rows = np.unique(np.linspace(0, len(tr.t) - 1, LOOKED_AT).astype(int))
    worst["gap on the way"] = max(_opening(s.mechanism, tr.q[k], tr.v[k]) for k in rows)
    _require(worst["gap on the way"] < ON_THE_WAY, f"passes states open by {worst['gap on the way']:.3g}")
    if "rtol" in s.settings:
        worst["energy / allowed"] = _energy(tr, s.settings)
        _require(worst["energy / allowed"] < 1.0, f"energy changes by {worst['energy / allowed']:.3g} times what the "
                 f"tolerance allows: {stopped or 'ended normally'}")
    _among_others(s)
    return Case(2, worst)


def _among_others(s: Setting) -> None:
    """In a rollout the motion of a state is unaffected by another state a thousand times as fast."""
    q, v = np.array([s.q, s.q]), np.array([s.v, 1e3 * s.v])
    settings = dict(s.settings)
    until = min(s.until, 0.05) if "rtol" in settings else s.until
    alone = bk.Simulation(s.mechanism, s.q, s.v, **settings, progress=False)
    with contextlib.suppress(bk.SimulationError):
        alone.run(until)
    try:
        result = bk.rollout(s.mechanism, q, v, until, **settings, workers=1, progress=False)
    except bk.SimulationError as error:
        result = error.result
        _require(result is not None and error.states == result.failed, "an error of a rollout without its result")
        _require(all(f"state {k}: " in str(error) for k in error.states), "an error that does not name its states")
    for k in (0, 1):
        lost = k in result.failed
        _require(np.isnan(result.q[k]).all() if lost else _opening(s.mechanism, result.q[k, -1], result.v[k, -1])
                 < CLOSED, f"state {k} of a rollout is open, or was kept though it failed")
    _require(result.reached[0] == alone.t, f"a rollout gets to {result.reached[0]} s, a simulation to {alone.t} s")
    if 0 not in result.failed:
        _require((result.q[0, -1] == alone.q).all(), "a rollout ends elsewhere than a simulation")


def _opening(m, q, v) -> float:
    """Largest loop gap [m, rad], or gap velocity relative to the speed of the motion."""
    c = bk.constraints(m, q, v)
    speed = max(1.0, float(np.abs(v).max()))
    return max(float(np.abs(c.gap).max()), float(np.abs(c.rates).max()) / speed)


def _energy(tr, settings) -> float:
    """Largest change of energy, as part of what the tolerance allows for as many steps."""
    _, kinetic, potential = tr.energy()
    energy = kinetic + potential
    scale = max(float(kinetic.max()), 1e-2 * float(np.ptp(potential)))
    allowed = ENERGY * (settings["rtol"] + settings["atol"]) * (len(tr.t) + 100) * scale
    return float(np.abs(energy - energy[0]).max()) / (allowed + 1e-10 * float(np.abs(energy).max()))


def _require(holds, what: str) -> None:
    if not holds:
        raise AssertionError(what)
