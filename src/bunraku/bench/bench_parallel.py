"""Benchmark of several workers: one mechanism on two threads and in lanes, relative to the machine's capacity.

Two cores of a shared machine rarely have their full speed. So every comparison has a *ceiling*: two independent copies
of the serial run at the same time, in the same rounds. `share` is the speed-up of two workers over that of the two
copies, median of all rounds. What each row measures:

    serial         forward dynamics (`tree_one`) in a compiled loop; or whole Gear steps of a simulation
    same chunks    the chunks of the two-worker schedule, all computed by one worker
    two workers    the same chunks on two threads
    two copies     two serial runs side by side: time for both, divided by two

All results are compared with the serial ones first. The table "automatic workers" is a simulation for which `workers`
is not given, relative to one worker: on a quiet machine, and while another process occupies a core.
"""

from __future__ import annotations

import contextlib
import functools
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np

import bunraku as bk
from bunraku.bench import machine
from bunraku.bench.bench_dynamics import NEARLY_STRAIGHT, SPACE, TARGETS, round_trip
from bunraku.bench.report import painter, target_lines
from bunraku.bench.timing import Progress
from bunraku.entries.part_entries import lanes_one, part_one, repeat
from bunraku.evaluate.measured_costs import measured_costs
from bunraku.evaluate.team import team_for
from bunraku.integrate.record import empty_record
from bunraku.integrate.solver_memory import RECORDED, UNTIL
from bunraku.plan.lane_plan import in_lanes
from bunraku.runs.context import structure_of, tree_one
from bunraku.simulation.crew.sharing import ENOUGH
from bunraku.simulation.simulation import running

SLICE = 1e-2             # [s] of one turn
STEPS = 200              # of one turn of Gear steps
PATIENCE, FEWEST = 10.0, 3  # [s] of a race, after which a busy machine has no more rounds than these
AGREEMENT = 1e-9
SHARES = {"mobile": 0.85, "tree of 1000": 0.85, "tree of 128": 0.7, "chain of 1000": 0.65}


@dataclass(frozen=True)
class Options:
    """How much to measure."""

    rounds: int = 40
    links: tuple[int, ...] = (1000, 10_000)                    # of chains in lanes
    returned: tuple[int, ...] = (100, 1000, 10_000, 100_000)   # of chains whose torques are to return

    @classmethod
    def quick(cls):
        return cls(rounds=12, returned=(100, 1000, 10_000))


def free_tree(n: int, branch: float = 0.25, seed: int = 1) -> bk.Mechanism:
    """A floating tree of hinges: the parent of a link is the previous one or, occasionally, any earlier one."""
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
    """All results as plain data."""
    options = options or Options()
    progress = Progress(2 * len(MODELS) + len(SHARES) + 2 * len(options.links) + 2 * len(options.returned) + 3, quiet)
    result: dict = {"bunraku": bk.__version__, "machine": machine.describe(), "forward": [], "gear": [], "lanes": [],
                    "left_alone": [], "returned": []}

    def measured(what, kind, function, *args):
        progress(what)
        result[kind].append({"name": what, **function(*args, options)})
        progress.done()

    try:
        for name, build in MODELS.items():
            measured(name, "forward", forward, build())
        for name in SHARES:
            measured(name, "gear", gear, MODELS[name]())
        for links in options.links:
            for joint in ("revolute", "spherical"):
                measured(f"{links} {joint}", "lanes", lanes, bk.models.chain(links, joint))
        measured("mobile", "lanes", lanes, mobile())
        for links in options.returned:
            for joint in ("revolute", "spherical"):
                measured(f"{links} {joint}", "returned", returned, bk.models.chain(links, joint, axes=SPACE))
        for name in ("mobile", "tree of 1000"):
            measured(name, "returned", returned, MODELS[name]())
        for name, build in MODELS.items():
            measured(name, "left_alone", left_alone, build())
        result["far"] = measured_costs().far
    finally:
        progress.close()
    return {**result, "targets": _verdicts(result)}


# -- races -------------------------------------------------------------------------------------------------------------


def together(runs: list[Callable[[], object]]) -> float:
    """Seconds until all are done, each in its own thread (threads are reused: new ones start on the same core)."""
    start = time.perf_counter()
    others = [_pool().submit(one) for one in runs[1:]]
    runs[0]()
    wait(others)
    return time.perf_counter() - start


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(8)


def raced(contestants: dict[str, list[Callable[[], object]]], rounds: int) -> dict[str, np.ndarray]:
    """Seconds of every contestant in every round; each is a list of runs that go on at the same time. Fewer rounds
    where they take long: threads that wait for each other wait for the cores too."""
    begin = time.perf_counter()
    for runs in contestants.values():
        together(runs)
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for done in range(rounds):
        if done >= FEWEST and time.perf_counter() - begin > PATIENCE:
            break
        for name, runs in contestants.items():
            found[name].append(together(runs))
    return {name: np.array(times) for name, times in found.items()}


def state_of(m: bk.Mechanism, seed: int = 0):
    rng = np.random.default_rng(seed)
    return (m.integrate(m.neutral(), 0.5 * rng.normal(size=m.nv)), 0.3 * rng.normal(size=m.nv),
            rng.normal(size=m.nv))


def serial(m, state, count):
    plan = m.plan()
    q, v, tau = (x.copy() for x in state)
    a, work = np.empty(plan.nv), np.empty(plan.work_size + 30 * plan.bodies + plan.nv)
    return a, lambda: repeat.call(tree_one.address, plan.arrays, q, v, tau, a, work, count)


def by_team(m, schedule, workers, state, count):
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
    a, one = serial(m, state, count)
    _, copy = serial(m, state, count)
    alone, whole_alone = by_team(m, s, 1, state, count)
    two, whole_two = by_team(m, s, 2, state, count)
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


# -- Gear steps --------------------------------------------------------------------------------------------------------


def gear(m: bk.Mechanism, options: Options) -> dict:
    """Whole steps: prediction, evaluation, correction, sums, record; stretches of STEPS, one after the other."""
    state, s = state_of(m), bk.schedule(m, 2, exactly=True, passes=4)
    sims = {name: bk.Simulation(m, state[0], 0.1 * state[1], workers=workers, schedule=given, progress=False)
            for name, workers, given in (("serial", 1, None), ("copy", 1, None), ("same chunks", 1, s),
                                         ("two workers", 2, s))}
    runs = {name: stretch(sim) for name, sim in sims.items()}
    times = raced({"serial": [runs["serial"]], "same chunks": [runs["same chunks"]],
                   "two workers": [runs["two workers"]], "two copies": [runs["serial"], runs["copy"]]}, options.rounds)
    same = np.array_equal(*(running(sims[name]).memory.rows[0] for name in ("same chunks", "two workers")))
    return {"bodies": m.plan().bodies, "chunks": len(s.chunks), "bitwise": bool(same), **_ratios(times, STEPS),
            "predicted": s.predicted_speedup}


def stretch(sim: bk.Simulation) -> Callable[[], None]:
    """The next STEPS steps of compiled code, as `Simulation.advance` makes them."""
    sim.advance(0.01)
    run, plan = running(sim), sim.mechanism.plan()
    (entry, method), memory, structure, nothing = run.settings.entry(), run.memory, structure_of(plan), np.zeros(0)
    memory.clock[UNTIL] = 1e9
    record = empty_record(STEPS, memory.rows.shape[1])
    shared = run.sharing.divided(sim.mechanism, plan, memory, run.acting, False)

    def go():
        memory.tally[RECORDED] = 0
        if shared is None:
            entry.call(*method, *structure, 0, nothing, nothing, memory, record)
        else:
            shared.run(0, nothing, nothing, memory, record)

    return go


# -- automatic workers ------------------------------------------------------------------------------------------------


def left_alone(m: bk.Mechanism, options: Options) -> dict:
    """Steps of a simulation with workers=None beside workers=1: how many times as fast."""
    state = state_of(m)
    sims = {name: bk.Simulation(m, state[0], 0.1 * state[1], "rk4", step=1e-5, workers=workers, record=None,
                                progress=False) for name, workers in (("one", 1), ("any", None))}
    for sim in sims.values():
        sim.advance(1e-5 * (ENOUGH + STEPS))
    if not np.allclose(sims["one"].q, sims["any"].q, rtol=1e-8, atol=1e-10):
        raise AssertionError(f"{m.name}: workers=None differs from one worker")
    rows = {}
    for words, others in (("quiet", 0), ("busy", 1)):
        with _busy(others):
            times = raced({name: [_onward(sim)] for name, sim in sims.items()}, options.rounds)
        rows[words] = float(np.median(times["one"] / times["any"]))
    return {"bodies": m.plan().bodies, "workers": sims["any"].stats.workers, "in_lanes": sims["any"].stats.in_lanes,
            **rows}


def _onward(sim: bk.Simulation) -> Callable[[], None]:
    return lambda: sim.advance(sim.t + 1e-5 * STEPS)


@contextlib.contextmanager
def _busy(count: int):
    """Context in which `count` other processes occupy a core each."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


# -- lanes ------------------------------------------------------------------------------------------------------------


def lanes(m: bk.Mechanism, options: Options) -> dict:
    """Equal chunks in lanes on one core, compared with one body after the other."""
    found = in_lanes(m.plan())
    assert found is not None
    state, plan = state_of(m), m.plan()
    count = max(2, int(SLICE / (80e-9 * plan.bodies)))
    a, one = serial(m, state, count)
    q, v, tau = state
    ours, work = np.empty(plan.nv), np.empty(found.work_size + plan.nv)
    times = raced({"serial": [one], "lanes": [lambda: repeat.call(
        lanes_one.address, found.arrays, q, v, tau, ours, work, count)]}, max(5, options.rounds // 2))
    error = float(np.abs(ours - a).max() / np.abs(a).max())
    if not error < AGREEMENT:
        raise AssertionError(f"{m.name}: lanes differ by {error:.1e}")
    return {"bodies": plan.bodies, "serial_us": float(times["serial"].min() / count * 1e6), "error": error,
            "lanes_us": float(times["lanes"].min() / count * 1e6), "predicted": found.predicted,
            "speedup": float(np.median(times["serial"] / times["lanes"]))}


def returned(m: bk.Mechanism, _: Options) -> dict:
    """Error of the torques recovered by inverse dynamics from forward dynamics, with default settings: in a random
    pose, and with all joint angles near zero."""
    found = m.plan().lanes
    return {"bodies": m.plan().bodies, "in_lanes": 0 if found is None else found.in_lanes, "difference": round_trip(m),
            "straight": max(round_trip(m, spread) for spread in NEARLY_STRAIGHT)}


# -- words -------------------------------------------------------------------------------------------------------------


def _verdicts(result) -> list[dict]:
    found = []

    def judge(what, measured, target, unit, most=False):
        found.append({"what": what, "measured": measured, "target": target, "unit": unit,
                      "met": measured <= target if most else measured >= target})

    for kind, words in (("forward", "forward dynamics"), ("gear", "Gear steps")):
        for row in result[kind]:
            if row["name"] in SHARES:
                judge(f"{words}, {row['name']}: two threads", row["share"], SHARES[row["name"]], "x two copies")
            elif row["name"] == "32 balls":
                judge("32 balls, chunks of two workers on one", row["same_chunks"], 1.3, "of serial", most=True)
    for row in result["lanes"]:
        judge(f"lanes, {row['name']}", row["speedup"], 2.5, "x one core")
    judge("inverse dynamics returns tau", max(max(row["difference"], row["straight"]) for row in result["returned"]),
          TARGETS["returned"], "of the largest", most=True)
    for row in result["left_alone"]:
        judge(f"automatic workers, {row['name']}: the slower of quiet and busy", min(row["quiet"], row["busy"]), 0.95,
              "x one worker")
    judge("a sweep with a far handle", result["far"], 1.3, "of a plain one", most=True)
    return found


HEADER = (f"  {'':<16}{'bodies':>7}{'chunks':>7}{'serial us':>11}{'same chunks on one':>20}{'speed-up':>13}"
          f"{'predicted':>11}{'ceiling':>9}{'share':>7}")


def _row(row) -> str:
    return (f"  {row['name']:<16}{row['bodies']:>7}{row['chunks']:>7}{row['serial_us']:>11.2f}"
            f"{row['same_chunks']:>20.2f}{row['speedup']:>12.2f}x{row['predicted']:>10.2f}x"
            f"{row['ceiling']:>9.2f}{row['share']:>7.2f}")


def text(result: dict, colour: bool = False) -> str:
    """Tables of times and ratios, then the targets."""
    paint = painter(colour)
    on = result["machine"]
    lines = [paint("1", f"bunraku {result['bunraku']}: one mechanism on several workers"),
             machine.line(on), "",
             "share: speed-up of two workers, divided by that of two independent serial runs at once (ceiling).",
             "same chunks on one: time of the chunks of two workers on one, in serial times. predicted: on idle cores.",
             *([] if min(row["ceiling"] for row in result["forward"]) > 1.3 else [paint(
                 "1;31", "This machine has hardly more than one core to spare now: speed-ups cannot be judged.")]), "",
             paint("1", "forward dynamics") + "  compiled loops; 32 balls are there to show the overhead", "",
             paint("4", f"{HEADER}{'error':>9}")]
    lines += [f"{_row(row)}{row['error']:>9.0e}" for row in result["forward"]]
    lines += ["", paint("1", "Gear steps") + "  everything included; the same chunks have the same bits on one and two "
              f"workers: {'yes' if all(row['bitwise'] for row in result['gear']) else 'NO'}", "", paint("4", HEADER)]
    lines += [_row(row) for row in result["gear"]]
    lines += ["", paint("1", "lanes") + "  like chunks of one mechanism, one core", "",
              paint("4", f"  {'':<20}{'serial us':>11}{'lanes us':>11}{'speed-up':>10}{'predicted':>11}{'error':>9}")]
    lines += [f"  {row['name']:<20}{row['serial_us']:>11.1f}{row['lanes_us']:>11.1f}{row['speedup']:>9.2f}x"
              f"{row['predicted']:>10.2f}x{row['error']:>9.0e}" for row in result["lanes"]]
    lines += ["", paint("1", "torques that return") + "  inverse dynamics of forward dynamics: largest difference over "
              "the largest torque", "", paint("4", f"  {'':<20}{'bodies':>8}{'in lanes':>10}{'difference':>12}"
                                          f"{'nearly straight':>17}")]
    lines += [f"  {row['name']:<20}{row['bodies']:>8}{row['in_lanes']:>10}{row['difference']:>12.0e}"
              f"{row['straight']:>17.0e}"
              for row in result["returned"]]
    lines += ["", paint("1", "automatic workers") + "  steps of a simulation with workers=None, times as fast as with "
              "workers=1; busy: another process occupies a core", "",
              paint("4", f"  {'':<16}{'bodies':>7}{'in lanes':>10}{'workers':>9}{'quiet':>8}{'busy':>8}")]
    lines += [f"  {row['name']:<16}{row['bodies']:>7}{row['in_lanes']:>10}{row['workers']:>9}{row['quiet']:>7.2f}x"
              f"{row['busy']:>7.2f}x" for row in result["left_alone"]]
    lines += ["", *target_lines(result["targets"], paint)]
    return "\n".join(line.rstrip() for line in lines)
