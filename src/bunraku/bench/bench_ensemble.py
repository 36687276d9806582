"""The benchmark of ensembles: many small cases on two processes, as a part of what the machine offers.

In every round, one after the other:

    one process      a plain loop over all cases
    two copies       two such loops at once, each in a process of its own: their speed-up is the *ceiling*
    ensemble         `bk.ensemble` with two processes
    with a file      the same, every result appended to a file
    in lanes         the same cases as a `bk.RolloutCase` with the same two processes, fixed steps, in lanes

Processes are started before anything is timed. `share` is the speed-up of the ensemble over the ceiling, median of the
rounds: on two idle cores 1.7x is a share of 0.85. Results of all are compared.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.bench import machine
from bunraku.bench.report import painter, target_lines
from bunraku.bench.timing import Progress

SHARE = 0.85       # 1.7x of two
FEW = 200          # cases before anything is timed
UNTIL, STEP = 0.5, 1e-2
MECHANISM = bk.models.chain(3)


@dataclass(frozen=True)
class Options:
    """How much to measure."""

    cases: int = 10_000
    rounds: int = 3

    @classmethod
    def quick(cls):
        return cls(cases=1500, rounds=2)


def small(case: float) -> np.ndarray:
    """A chain of three links for half a second, in steps of 10 ms."""
    sim = bk.Simulation(MECHANISM, q=[case, 0.3, 0.1], solver="rk4", step=STEP, workers=1, record=None, progress=False)
    sim.advance(UNTIL)
    return np.concatenate([sim.q, sim.v])


def loop(cases) -> list[np.ndarray]:
    return [small(case) for case in cases]


def run(options: Options | None = None, quiet: bool = False) -> dict:
    """Everything, as plain numbers."""
    options = options or Options()
    cases = np.linspace(-2.0, 2.0, options.cases).tolist()
    rolled = bk.RolloutCase(MECHANISM, until=UNTIL, solver="rk4", step=STEP)
    progress = Progress(5 * options.rounds, quiet)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool, \
            tempfile.TemporaryDirectory(prefix="bunraku-bench-") as folder:
        files = iter(range(1000))
        contestants: dict[str, Callable[[], list]] = {
            "one process": lambda: pool.submit(loop, cases).result(),
            "two copies": lambda: _two(pool, cases),
            "ensemble": lambda: bk.ensemble(small, cases, pool, progress=False),
            "with a file": lambda: bk.ensemble(small, cases, pool, Path(folder, str(next(files))), progress=False),
            "in lanes": lambda: bk.ensemble(rolled, [{"q": [x, 0.3, 0.1]} for x in cases], pool, progress=False),
        }
        try:
            _two(pool, cases[:FEW])
            bk.ensemble(rolled, [{"q": [x, 0.3, 0.1]} for x in cases[:FEW]], pool, progress=False)
            times: dict[str, list[float]] = {name: [] for name in contestants}
            found = {}
            for _ in range(options.rounds):
                for name, contestant in contestants.items():
                    progress(name)
                    begin = time.perf_counter()
                    found[name] = contestant()
                    times[name].append(time.perf_counter() - begin)
                    progress.done()
        finally:
            progress.close()
    for name in ("two copies", "ensemble", "with a file"):
        if not all(map(np.array_equal, found["one process"], found[name])):
            raise AssertionError(f"{name}: results differ from those of one process")
    apart = max(float(np.abs(np.concatenate([a.q[-1], a.v[-1]]) - b).max())
                for a, b in zip(found["in lanes"], found["one process"], strict=True))
    if not apart < 1e-9:
        raise AssertionError(f"in lanes: results differ by {apart:.1e}")
    return _result(options, {name: np.array(x) for name, x in times.items()}, apart)


def _two(pool, cases) -> list:
    """Two loops at once, each over all cases; results of one."""
    copies = [pool.submit(loop, cases) for _ in range(2)]
    wait(copies)
    return copies[0].result()


def _result(options: Options, times: dict[str, np.ndarray], apart: float) -> dict:
    serial = times["one process"]
    ceiling = 2.0 * serial / times["two copies"]
    rows = {name: {"seconds": float(t.min()), "us_per_case": float(t.min() / options.cases * 1e6),
                   "speedup": float(np.median((2.0 if name == "two copies" else 1.0) * serial / t)),
                   "share": float(np.median((2.0 if name == "two copies" else 1.0) * serial / t / ceiling))}
            for name, t in times.items()}
    targets = [{"what": f"{options.cases} cases, {name}", "measured": rows[name]["share"], "target": SHARE,
                "unit": "x ceiling", "met": rows[name]["share"] >= SHARE} for name in ("ensemble", "with a file")]
    return {"bunraku": bk.__version__, "machine": machine.describe(), "cases": options.cases, "rounds": options.rounds,
            "rows": rows, "ceiling": float(np.median(ceiling)), "lanes_apart": apart, "targets": targets}


def text(result: dict, colour: bool = False) -> str:
    """The result as a page."""
    paint = painter(colour)
    on = result["machine"]
    lines = [paint("1", f"bunraku {result['bunraku']}: an ensemble of {result['cases']} small cases on two processes"),
             machine.line(on), "",
             "share: speed-up over one process, divided by that of two independent copies at once (the ceiling); "
             f"median of {result['rounds']} rounds.",
             *([] if result["ceiling"] > 1.3 else [paint(
                 "1;31", "This machine has hardly more than one core to spare now: speed-ups cannot be judged.")]), "",
             paint("4", f"  {'':<16}{'best s':>10}{'us a case':>12}{'speed-up':>11}{'share':>8}")]
    lines += [f"  {name:<16}{row['seconds']:>10.3f}{row['us_per_case']:>12.1f}{row['speedup']:>10.2f}x"
              f"{row['share']:>8.2f}" for name, row in result["rows"].items()]
    lines += ["", f"Results are equal to the last bit; in lanes within {result['lanes_apart']:.0e}.", "",
              *target_lines(result["targets"], paint)]
    return "\n".join(line.rstrip() for line in lines)
