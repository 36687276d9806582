"""Speed-ups of several workers, for the experiments of the papers: measured on the cores at hand, predicted beyond.

Measured: evaluations in compiled loops, all contestants in turn in every round, the best round of each, beside two
independent copies of the serial run at once: what they reach is the ceiling of this machine. Predicted: the passes
played through on idle cores (`scheduling/predict.py`), with the costs of single operations measured on this machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

import bunraku as bk
from bunraku.bench.bench_parallel import SLICE, by_team, raced, serial, state_of, stretch
from bunraku.entries.pool import available
from bunraku.evaluate.measured_costs import measured_costs, message_seconds
from bunraku.integrate.solver_memory import EVALUATIONS
from bunraku.scheduling import Costs
from bunraku.simulation.simulation import running

AGREEMENT = 1e-9
ENOUGH = 1.3           # of two copies: below, the machine is busy
BUSY = 1.6             # times of messages, in the stated ones
SIZES = (6, 90)        # floats of a short and of a long message
TRIES, PAUSE = 30, 0.1  # [s] to find two idle cores


def nothing(what: str) -> None:
    """Progress callback that does nothing."""


def idle_costs() -> Costs:
    """Costs of this machine. Messages are timed again and again, so that two cores are idle once; if they never are,
    the stated times are taken, and `source` says so."""
    found, stated = measured_costs(), Costs()
    times = np.full(len(SIZES), np.inf)   # of a short and of a long message
    bound = BUSY * np.array([stated.message(floats) for floats in SIZES])
    for attempt in range(TRIES):
        latency, per_float = message_seconds(SIZES)
        times = np.minimum(times, [latency + floats * per_float for floats in SIZES])
        if (times < bound).all():
            per_float = max(times[1] - times[0], 0.0) / (SIZES[1] - SIZES[0])
            return replace(found, latency=float(times[0] - SIZES[0] * per_float), per_float=float(per_float))
        if attempt < TRIES - 1:
            time.sleep(PAUSE)
    return replace(found, latency=stated.latency, per_float=stated.per_float, source="measured, messages stated",
                   assumed=(*found.assumed, "latency", "per_float"))


def told(costs: Mapping) -> str:
    """The costs of a prediction in a line."""
    whence = "measured" if costs["source"] == "measured" else "stated (cores too busy to time it)"
    return (f"Costs: {costs['cmptm'] * 1e9:.0f} ns a hinge in all four passes, measured; a message "
            f"{costs['latency'] * 1e6:.2g} us + {costs['per_float'] * 1e9:.2g} ns a float, {whence}.")


def warning(ceiling: float) -> list[str]:
    """A line if measured speed-ups say nothing."""
    return [] if ceiling > ENOUGH else [f"Two serial runs at once are {ceiling:.2f}x one: this machine has hardly more "
                                        "than one core to spare now,", "so measured speed-ups cannot be judged."]


def measurable(workers: int) -> bool:
    """Whether so many workers have a core each."""
    return workers <= available()


def forward(m: bk.Mechanism, schedules: Mapping[str, bk.Schedule], rounds: int) -> dict:
    """Forward dynamics of a tree by one worker, and by the workers of each schedule for which there are cores."""
    state = state_of(m)
    count = max(3, int(SLICE / (80e-9 * m.plan().bodies)))
    a, one = serial(m, state, count)
    _, copy = serial(m, state, count)
    runs, wholes = {"serial": [one], "copies": [one, copy]}, {}
    for name, s in schedules.items():
        if measurable(s.workers) and s.workers > 1:
            runs[name], wholes[name] = by_team(m, s, s.workers, state, count)
    times = raced(runs, rounds)
    for name, whole in wholes.items():
        error = float(np.abs(whole() - a).max() / np.abs(a).max())
        if not error < AGREEMENT:
            raise AssertionError(f"{m.name}, {name}: several workers differ from one by {error:.1e}")
    return _rates(times, count)


def gear(m: bk.Mechanism, rounds: int, workers: int = 2) -> dict:
    """Evaluations of a Gear simulation, the solver's part included (all four passes of [J])."""
    state, s = state_of(m), bk.schedule(m, workers, exactly=True, passes=4)
    given: dict[str, tuple[int, bk.Schedule | None]] = {"serial": (1, None), "copy": (1, None)}
    if measurable(s.workers) and s.workers > 1:
        given[str(workers)] = s.workers, s
    sims = {name: bk.Simulation(m, state[0], 0.1 * state[1], workers=p, schedule=own, progress=False)
            for name, (p, own) in given.items()}
    runs = {name: stretch(sim) for name, sim in sims.items()}
    tally = running(sims["serial"]).memory.tally
    before = tally[EVALUATIONS]
    runs["serial"]()
    evaluations = int(tally[EVALUATIONS] - before)
    contestants: dict[str, list[Callable[[], object]]] = {
        "serial": [runs["serial"]], "copies": [runs["serial"], runs["copy"]]}
    contestants |= {name: [run] for name, run in runs.items() if name not in ("serial", "copy")}
    return _rates(raced(contestants, rounds), evaluations)


def steps(sims: Mapping[str, bk.Simulation], seconds: float, rounds: int) -> dict:
    """Seconds per evaluation of simulations that go on side by side, one after the other in every round."""
    times: dict[str, list[float]] = {name: [] for name in sims}
    for _ in range(rounds):
        for name, sim in sims.items():
            before, begin = sim.stats.evaluations, time.perf_counter()
            sim.advance(sim.t + seconds)
            times[name].append((time.perf_counter() - begin) / max(1, sim.stats.evaluations - before))
    return {name: np.array(x) for name, x in times.items()}


def _rates(times: dict[str, np.ndarray], count: int) -> dict:
    """{name: {us, speedup}}, both of the best round: a speed-up is the quotient of two times that are shown. Of two
    `copies` at once the time is halved: their speed-up is the ceiling."""
    us = {name: float(t.min() / count * 1e6 / (2 if name == "copies" else 1)) for name, t in times.items()}
    return {name: {"us": own, "speedup": us["serial"] / own} for name, own in us.items()}


def logarithm(x, y) -> dict:
    """The line a + b ln x nearest to y, its largest distance, and that of the nearest line in x itself; both relative
    to the largest y."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    found = {}
    for name, column in (("log", np.log(x)), ("linear", x)):
        matrix = np.column_stack([np.ones_like(column), column])
        solution = np.linalg.lstsq(matrix, y, rcond=None)[0]
        found[name] = solution, float(np.abs(matrix @ solution - y).max() / y.max())
    (a, b), off = found["log"]
    return {"a": float(a), "b": float(b), "off": off, "off_linear": found["linear"][1]}


def heading(first: str, whose: str = "the paper") -> list[str]:
    """Two lines above rows of the paper's times, measured and predicted ones."""
    return [f"{'':{len(first)}} |{whose:^20} |{'measured':^28} |{'predicted':^20}",
            f"{first} |{'ms':>9}{'speed-up':>10}  |{'us':>9}{'speed-up':>10}{'ceiling':>9} |{'us':>10}{'speed-up':>10}"]


def line(first: str, row: Mapping) -> str:
    """A row below `heading`."""
    ceiling = f"{row['ceiling']:9.2f}" if row["ceiling"] else " " * 9
    return (f"{first} |{cell(row['paper_ms'], 9, 3)}{cell(row['paper_speedup'], 10)}  |{cell(row['measured_us'], 9)}"
            f"{cell(row['measured_speedup'], 10)}{ceiling} |{cell(row['predicted_us'], 10)}"
            f"{cell(row['predicted_speedup'], 10)}")


def cell(value: float | None, width: int, digits: int = 2) -> str:
    return " " * (width - 1) + "-" if value is None else f"{value:{width}.{digits}f}"


Progress = Callable[[str], None]
