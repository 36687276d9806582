"""The benchmark of several workers: one mechanism on two threads and in lanes, as a part of what the machine offers.

Cores of shared machines are rarely two whole ones. So every race has a *ceiling*: two independent copies of the serial
run at the same time, in the same rounds. `share` is the speed-up of two workers over that of the two copies, median of
all rounds. What each row measures:

    serial         forward dynamics (`tree_one`) in a compiled loop; or whole Gear steps of a simulation
    same chunks    the chunks of the two-worker schedule, all computed by one worker
    two workers    the same chunks on two threads
    two copies     two serial runs side by side: time for both, divided by two

Results of all are compared with the serial ones first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import bunraku as bk
from bunraku.bench import machine
from bunraku.bench.report import _paint, _targets
from bunraku.bench.timing import Progress
from bunraku.entries.parts import part_one, repeat
from bunraku.evaluate.team import team_for
from bunraku.simulate.context import tree_one

SLICE = 4e-3             # [s] of one turn
AGREEMENT = 1e-9
SHARES = {"mobile": 0.85, "tree of 1000": 0.85, "tree of 128": 0.7, "chain of 1000": 0.65}


@dataclass(frozen=True)
class Options:
    """How much to measure."""

    rounds: int = 40
    links: tuple[int, ...] = (1000, 10_000, 100_000)   # of chains in lanes
    longest: int = 1_000_000                           # of chains on one worker

    @classmethod
    def quick(cls):
        return cls(rounds=12, links=(1000, 10_000), longest=100_000)


def free_tree(n: int, branch: float = 0.25, seed: int = 1) -> bk.Mechanism:
    """A floating tree of hinges: every link hangs from the one before or, now and then, from any earlier one."""
    rng = np.random.default_rng(seed)
    m = bk.Mechanism(name=f"tree of {n}")
    for i in range(n):
        before = i - 1 if rng.random() > branch else int(rng.integers(0, max(i, 1)))
        axis = rng.normal(size=3)
        joint = bk.Revolute(axis / np.linalg.norm(axis)) if i else bk.Free()
        m.add_link(f"link{i}", f"link{before}" if i else "ground", joint, position=(0, 0, -0.2 if i else 0.0), mass=1.0,
                   com=(0, 0, -0.1), inertia=(0.02, 0.02, 0.01))
    return m


def mobile() -> bk.Mechanism:
    """The smaller mobile of [J, fig. 10]: 455 joints."""
    return bk.models.mobile(0.2, 0.1, 0.2, 0.5, 3, 5, 9, 2.0, 2.0)


MODELS: dict[str, Callable[[], bk.Mechanism]] = {
    "mobile": mobile, "tree of 1000": lambda: free_tree(1000), "tree of 128": lambda: free_tree(128),
    "chain of 1000": lambda: bk.models.chain(1000), "32 balls": lambda: bk.models.chain(32, joint="spherical")}


def run(options: Options | None = None, quiet: bool = False) -> dict:
    """Everything, as plain numbers."""
    options = options or Options()
    progress = Progress(len(MODELS), quiet)
    rows = []
    try:
        for name, build in MODELS.items():
            progress(name)
            rows.append({"name": name, **forward(build(), options)})
            progress.done()
    finally:
        progress.close()
    return {"bunraku": bk.__version__, "machine": machine.describe(), "forward": rows, "targets": _verdicts(rows)}


# -- races -------------------------------------------------------------------------------------------------------------


def together(runs: list[Callable[[], object]]) -> float:
    """Seconds until all of them are done, each in a thread of its own."""
    others = [threading.Thread(target=one) for one in runs[1:]]
    start = time.perf_counter()
    for thread in others:
        thread.start()
    runs[0]()
    for thread in others:
        thread.join()
    return time.perf_counter() - start


def raced(contestants: dict[str, list[Callable[[], object]]], rounds: int) -> dict[str, np.ndarray]:
    """Seconds of every contestant in every round; each is a list of runs that go on at the same time."""
    for runs in contestants.values():
        together(runs)
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, runs in contestants.items():
            found[name].append(together(runs))
    return {name: np.array(times) for name, times in found.items()}


def state_of(m: bk.Mechanism, seed: int = 0):
    rng = np.random.default_rng(seed)
    return (m.integrate(m.neutral(), 0.5 * rng.normal(size=m.nv)), 0.3 * rng.normal(size=m.nv),
            rng.normal(size=m.nv))


def _serial(m, state, count):
    plan = m.plan()
    q, v, tau = (x.copy() for x in state)
    a, work = np.empty(plan.nv), np.empty(plan.work_size + 30 * plan.bodies + plan.nv)
    return a, lambda: repeat.call(tree_one.address, plan.arrays, q, v, tau, a, work, count)


def _by_team(m, schedule, workers, state, count):
    """Runs of the workers, one each, and a function that puts their accelerations together."""
    team = team_for(m, m.plan(), schedule, workers)
    assert team is not None
    runs, results = [], []
    for part, arrays in zip(team.parts, team.arrays, strict=True):
        q, v, tau = state[0][part.q_index], state[1][part.v_index], state[2][part.v_index]
        a, work = np.empty(part.plan.nv), np.empty(part.plan.work_size + part.plan.nv)
        results.append((part.v_index, a))
        runs.append(_loop(arrays, q, v, tau, a, work, count))

    def whole():
        out = np.empty(m.nv)
        for index, a in results:
            out[index] = a
        return out

    return runs, whole


def _loop(arrays, q, v, tau, a, work, count):
    return lambda: repeat.call(part_one.address, arrays, q, v, tau, a, work, count)


def forward(m: bk.Mechanism, options: Options) -> dict:
    """Forward dynamics in compiled loops."""
    s = bk.schedule(m, 2, exactly=True)
    state, bodies = state_of(m), m.plan().bodies
    count = max(3, int(SLICE / (80e-9 * bodies)))
    a, one = _serial(m, state, count)
    _, copy = _serial(m, state, count)
    alone, whole_alone = _by_team(m, s, 1, state, count)
    two, whole_two = _by_team(m, s, 2, state, count)
    times = raced({"serial": [one], "same chunks": alone, "two workers": two, "two copies": [one, copy]},
                  options.rounds)
    error = max(float(np.abs(x - a).max() / np.abs(a).max()) for x in (whole_alone(), whole_two()))
    if not error < AGREEMENT:
        raise AssertionError(f"{m.name}: several workers differ from one by {error:.1e}")
    return {"bodies": bodies, "chunks": len(s.chunks), "error": error, "bitwise": bool(
        np.array_equal(whole_alone(), whole_two())), **_ratios(times, count),
        "predicted": s.predicted_speedup}


def _ratios(times, count) -> dict:
    serial, ceiling = times["serial"], 2.0 * times["serial"] / times["two copies"]
    speedup = serial / times["two workers"]
    return {"serial_us": float(serial.min() / count * 1e6), "speedup": float(np.median(speedup)),
            "same_chunks": float(np.median(times["same chunks"] / serial)), "ceiling": float(np.median(ceiling)),
            "share": float(np.median(speedup / ceiling))}


# -- words -------------------------------------------------------------------------------------------------------------


def _verdicts(rows) -> list[dict]:
    found = []
    for row in rows:
        if row["name"] in SHARES:
            target = SHARES[row["name"]]
            found.append({"what": f"forward dynamics, {row['name']}: two threads, share of two copies",
                          "measured": row["share"], "target": target, "unit": "x ceiling",
                          "met": row["share"] >= target})
    return found


def text(result: dict, colour: bool = False) -> str:
    """Tables of times and ratios, then the targets."""
    paint = _paint if colour else lambda code, words: words
    on = result["machine"]
    lines = [paint("1", f"bunraku {result['bunraku']}: one mechanism on several workers"),
             f"{on['processor']}, {on['cores']} core{'s' * (on['cores'] != 1)}, {on['lanes']} lanes; {on['system']}, "
             f"Python {on['python']}, {on['date'][:16].replace('T', ' ')}", "",
             paint("1", "forward dynamics") + "  compiled loops; two threads beside two copies of the serial run", "",
             paint("4", f"  {'':<16}{'bodies':>7}{'chunks':>7}{'serial us':>11}{'one, same chunks':>18}"
                        f"{'two workers':>13}{'predicted':>11}{'ceiling':>9}{'share':>7}{'error':>9}")]
    for row in result["forward"]:
        lines.append(f"  {row['name']:<16}{row['bodies']:>7}{row['chunks']:>7}{row['serial_us']:>11.2f}"
                     f"{row['same_chunks']:>17.2f}x{row['speedup']:>12.2f}x{row['predicted']:>10.2f}x"
                     f"{row['ceiling']:>9.2f}{row['share']:>7.2f}{row['error']:>9.0e}")
    lines += ["", *_targets(result["targets"], paint)]
    return "\n".join(line.rstrip() for line in lines)
