"""Stiff mechanisms: cost of a step of the implicit method over the number of links, compared with BDF and Gear.

The problem is one and the same for all numbers of links: an elastic rod, 1 m and 1 kg, bending stiffness and internal
damping given, held level at one end and let go under its weight. It is modelled by n
links with springs and dampers between them; the fastest decay rates grow as n^4. The tolerance of angles is
proportional to 1/n, as the angles are. The second problem is a branching tree of hinges and balls, 1 kg in total, each
with the same spring and damper whatever the mass of its link.

`equivalents`: time of a step (rejected ones, recording, history and all) in times of one forward dynamics of the same
mechanism, one call from Python. Both in processor time of this thread, the best of a few rounds in turn, so that other
programs have little influence. `error`: root mean square at the end in units of the tolerance, against the implicit
method with a tolerance a thousand times tighter, which is itself compared with SciPy's Radau where that is affordable.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

import bunraku as bk
from bunraku.bench import machine
from bunraku.bench.order import STEPS, problems, rates
from bunraku.bench.report import painter, target_lines
from bunraku.bench.timing import Progress

UNTIL = 0.5
RTOL = 1e-5
TIGHTER = 1e-3
LINKS = (10, 30, 100, 300, 1000, 10_000)
MOST = {"bdf": 300, "gear": 10, "radau": 10}  # links
FROM = 30                                     # degrees of freedom from which BDF should be slower
HALF = np.sqrt(0.5)
TURNS = (np.array([[HALF, -HALF, 0], [HALF, HALF, 0], [0, 0, 1]]),   # of branches from their link
         np.array([[HALF, 0, HALF], [0, 1, 0], [-HALF, 0, HALF]]))
ORDERS = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Options:
    """How much to measure."""

    links: tuple[int, ...] = LINKS
    full: int = MOST["bdf"]      # most links with full matrices
    rounds: int = 5
    gear: bool = True

    @classmethod
    def quick(cls):
        return cls(links=(10, 30, 100, 1000), full=100, rounds=3, gear=False)


def rod(n: int, joint: str = "revolute", *, bending: float = 50.0, damping: float = 0.05, length: float = 1.0,
        mass: float = 1.0) -> bk.Mechanism:
    """An elastic rod along x of n links; `bending` is E I [N m^2], `damping` the time over which stress relaxes [s]."""
    m = bk.Mechanism(name=f"rod of {n}")
    size, weight = length / n, mass / n
    acts = {"stiffness": bending / size, "damping": damping * bending / size}
    inertia = weight * np.array([1e-4, size**2 / 12 + 1e-4, size**2 / 12 + 1e-4])
    parent, position = "ground", (0.0, 0.0, 0.0)
    for i in range(n):
        m.add_link(f"link{i}", parent, bk.Spherical(**acts) if joint == "spherical" else bk.Revolute((0, 1, 0), **acts),
                   position=position, mass=weight, com=(0.5 * size, 0.0, 0.0), inertia=np.diag(inertia))
        parent, position = f"link{i}", (size, 0.0, 0.0)
    return m


def tree(n: int) -> bk.Mechanism:
    """n links, two on each; every fifth joint is a ball, the others are hinges about x, y, z in turn."""
    m = bk.Mechanism(name=f"tree of {n}")
    acts = {"stiffness": 20.0, "damping": 1.0}
    weight = 1.0 / n
    for i in range(n):
        joint = bk.Spherical(**acts) if i % 5 == 2 else bk.Revolute(np.eye(3)[i % 3], **acts)
        m.add_link(f"link{i}", f"link{(i - 1) // 2}" if i else "ground", joint, position=(0.1 if i else 0.0, 0.0, 0.0),
                   rotation=TURNS[i % 2], mass=weight, com=(0.05, 0.0, 0.0), inertia=weight * 1e-3 * np.eye(3))
    return m


PROBLEMS = {"rod": rod, "tree": tree}


def tolerances(m: bk.Mechanism, tighter: float = 1.0) -> tuple[float, float]:
    """rtol, atol."""
    small = 1.0 / m.nv if m.name.startswith("rod") else 1.0
    return RTOL * tighter, 0.1 * RTOL * tighter * small


def simulate(m: bk.Mechanism, solver: str, tighter: float = 1.0) -> tuple[bk.Simulation, float]:
    """A finished simulation, and the processor time it took."""
    rtol, atol = tolerances(m, tighter)
    sim = bk.Simulation(m, solver=solver, rtol=rtol, atol=atol, progress=False)
    sim.run(0.0)
    start = time.thread_time()
    sim.run(UNTIL)
    return sim, time.thread_time() - start


def state(sim: bk.Simulation) -> np.ndarray:
    return np.concatenate([sim.q, sim.v])


def distance(m: bk.Mechanism, y: np.ndarray, reference: np.ndarray) -> float:
    """Root mean square in units of the tolerance."""
    rtol, atol = tolerances(m)
    return float(np.sqrt(np.mean(((y - reference) / (atol + rtol * np.abs(reference))) ** 2)))


def radau(m: bk.Mechanism) -> np.ndarray:
    from scipy.integrate import solve_ivp

    y = np.concatenate([m.neutral(), np.zeros(m.nv)])
    return solve_ivp(lambda t, y: rates(m, y), (0.0, UNTIL), y, method="Radau", rtol=1e-10, atol=1e-13).y[:, -1]


def one_evaluation(m: bk.Mechanism, sim: bk.Simulation) -> float:
    """Processor time of one forward dynamics at the end of a simulation."""
    q, v = sim.q, sim.v
    times = max(5, 20_000 // m.nv)
    start = time.thread_time()
    for _ in range(times):
        bk.forward_dynamics(m, q, v)
    return (time.thread_time() - start) / times


def measure(problem: str, n: int, options: Options) -> list[dict]:
    """All solvers that can afford it on a mechanism of n links."""
    m = PROBLEMS[problem](n)
    reference = state(simulate(m, "implicit", TIGHTER)[0])
    solvers = ["implicit", *(["bdf"] if n <= options.full else []),
               *(["gear"] if options.gear and n <= MOST["gear"] and problem == "rod" else [])]
    best = dict.fromkeys([*solvers, "one"], np.inf)
    sims = {}
    for k in range(options.rounds):
        for solver in solvers:
            if k == 0 or best[solver] < 1.0:
                sims[solver], seconds = simulate(m, solver)
                best[solver] = min(best[solver], seconds)
        best["one"] = min(best["one"], one_evaluation(m, sims["implicit"]))
    rows = []
    for solver in solvers:
        stats = sims[solver].stats
        rows.append({"problem": problem, "links": n, "dof": m.nv, "solver": solver, "steps": stats.steps,
                     "evaluations": stats.evaluations,
                     "ms": 1e3 * best[solver], "us_per_step": 1e6 * best[solver] / stats.steps,
                     "one_evaluation_us": 1e6 * best["one"], "per_step": stats.evaluations / stats.steps,
                     "equivalents": best[solver] / stats.steps / best["one"],
                     "error": distance(m, state(sims[solver]), reference)})
    if n <= MOST["radau"]:
        rows[0]["reference_error"] = distance(m, reference, radau(m))
    return rows


def run(options: Options | None = None, quiet: bool = False) -> dict:
    """The table by number of links, measured orders, and the targets with what was measured."""
    options = options or Options()
    progress = Progress(2 * len(options.links) + 3, quiet)
    rows, orders = [], []
    try:
        for problem in PROBLEMS:
            for n in options.links:
                progress(f"{problem} of {n}")
                rows += measure(problem, n, options)
                progress.done()
        for name, smooth in problems().items():
            progress(f"order: {name}")
            for q in ORDERS:
                errors, order = smooth.measure(q)
                orders.append({"problem": name, "nominal": q, "errors": errors, "order": order,
                               "steps_times_fastest": [h * smooth.fastest for h in STEPS]})
            progress.done()
    finally:
        progress.close()
    return {"bunraku": bk.__version__, "machine": machine.describe(), "rtol": RTOL, "until": UNTIL, "rows": rows,
            "orders": orders, "targets": _judge(rows, orders)}


def _judge(rows, orders) -> list[dict]:
    mine = {(r["problem"], r["links"]): r for r in rows if r["solver"] == "implicit"}
    targets = []
    for problem in PROBLEMS:
        counts = [r["per_step"] for r in mine.values() if r["problem"] == problem]
        targets.append(_at_most(f"{problem}: evaluations a step, most over least", max(counts) / min(counts), 1.3, ""))
    targets += [_at_most(f"{problem} of {n}: evaluation-equivalents a step", r["equivalents"], 4.0, "evaluations")
                for (problem, n), r in mine.items()]
    for r in rows:
        if r["solver"] == "bdf" and r["dof"] >= FROM:
            ratio = r["ms"] / mine[r["problem"], r["links"]]["ms"]
            targets.append({"what": f"{r['problem']} of {r['links']}: faster than BDF with a full matrix",
                            "measured": ratio, "target": 1.0, "unit": "x", "met": ratio >= 1.0})
    targets.append(_at_most("error at the end, worst", max(r["error"] for r in mine.values()), 30.0, "tolerances"))
    targets += [_at_most(f"{r['problem']} of {r['links']}: reference beside Radau", r["reference_error"], 1.0,
                         "tolerances") for r in rows if "reference_error" in r]
    for o in orders:
        targets.append(_at_most(f"order {o['nominal']}, {o['problem']}: short by", max(o["nominal"] - o["order"], 0.0),
                                0.4, ""))
    return targets


def _at_most(what, measured, target, unit) -> dict:
    return {"what": what, "measured": measured, "target": target, "unit": unit, "met": measured <= target}


def text(result: dict, colour: bool = False) -> str:
    """The tables, then every target."""
    paint = painter(colour)
    on = result["machine"]
    lines = [paint("1", f"bunraku {result['bunraku']}: stiff mechanisms of n links, {result['until']:g} s, rtol "
                        f"{result['rtol']:g}"),
             f"{on['processor']}; one evaluation: bk.forward_dynamics from Python", "",
             paint("4", f"  {'':<5}{'links':>6}{'dof':>6} {'solver':<9}{'steps':>8}{'evaluations':>12}{'a step':>8}"
                        f"{'ms':>10}{'us a step':>11}{'one eval. us':>14}{'equivalents':>13}{'error/tol.':>12}")]
    lines += [f"  {r['problem']:<5}{r['links']:>6}{r['dof']:>6} {r['solver']:<9}{r['steps']:>8}{r['evaluations']:>12}"
              f"{r['per_step']:>8.2f}{r['ms']:>10.2f}{r['us_per_step']:>11.1f}{r['one_evaluation_us']:>14.1f}"
              f"{r['equivalents']:>13.2f}{r['error']:>12.2g}" for r in result["rows"]]
    lines += ["", paint("1", "order measured, fixed steps of " + ", ".join(f"1/{1 / h:.0f} s" for h in STEPS)), ""]
    for o in result["orders"]:
        stiff = o["steps_times_fastest"]
        lines.append(f"  {o['problem']:<20} order {o['nominal']}: {o['order']:.2f}   errors "
                     + ", ".join(f"{e:.1e}" for e in o["errors"])
                     + f"   (h times the fastest rate: {stiff[0]:.0f} to {stiff[-1]:.0f})")
    lines += ["", *target_lines(result["targets"], paint)]
    return "\n".join(line.rstrip() for line in lines)
