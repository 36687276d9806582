"""Our integrators beside CVODE and LSODA on the problems of `detest.py`: evaluations, and errors by tolerance.

Evaluations are counted where they happen, in the right-hand side, so those of difference Jacobians are included for
everybody.
"""

from __future__ import annotations

import numpy as np

import bunraku
from bunraku.bench import machine
from bunraku.bench.detest import NON_STIFF, STIFF, Problem
from bunraku.bench.peers import required
from bunraku.bench.report import painter, target_lines

TOLERANCES = (1e-3, 1e-6, 1e-9)
MOST = 1.3                 # times the evaluations of CVODE, over a set of problems
EXPLICIT = ("tsit5", "rkf", "rkg")
SETS = (("not stiff", NON_STIFF, "gear", "Adams", EXPLICIT), ("stiff", STIFF, "bdf", "BDF", ()))


def absolute(problems, rtol: float) -> float:
    """Absolute tolerance; stiff problems have small components that matter."""
    return rtol if problems is NON_STIFF else 1e-3 * rtol


class Counted:
    """A right-hand side that counts."""

    def __init__(self, f):
        self.f, self.count = f, 0

    def __call__(self, t, y):
        self.count += 1
        return self.f(t, y)


def ours(method: str, problem: Problem, rtol: float, atol: float) -> tuple[int, np.ndarray]:
    """(evaluations, y at the end)."""
    f = Counted(problem.f)
    solution = bunraku.solve_ivp(f, (0.0, problem.until), problem.start, method=method, rtol=rtol, atol=atol)
    return f.count, solution.y[:, -1] if solution.success else np.full(len(problem.start), np.nan)


def cvode(method: str, problem: Problem, rtol: float, atol: float) -> tuple[int, np.ndarray]:
    f = Counted(problem.f)

    def rates(t, y, out):
        out[:] = f(t, y)

    solver = required("sksundae.cvode").CVODE(rates, method=method, rtol=rtol, atol=atol, max_num_steps=1_000_000)
    y = solver.solve(np.array([0.0, problem.until]), np.array(problem.start)).y[-1]
    return f.count, y


def lsoda(problem: Problem, rtol: float, atol: float) -> tuple[int, np.ndarray]:
    from scipy.integrate import solve_ivp

    f = Counted(problem.f)
    y = solve_ivp(f, (0.0, problem.until), problem.start, method="LSODA", rtol=rtol, atol=atol).y[:, -1]
    return f.count, y


def error(problem: Problem, y, rtol: float, atol: float) -> float:
    """Largest error at the end in units of the tolerance."""
    end = np.array(problem.end)
    return float(np.max(np.abs(y - end) / (rtol * np.abs(end) + atol)))


def measure(problems, solve, rtol: float) -> list[dict]:
    """Evaluations and errors of `solve(problem, rtol, atol)` over a set of problems."""
    atol, rows = absolute(problems, rtol), []
    for problem in problems:
        evaluations, y = solve(problem, rtol, atol)
        rows.append({"problem": problem.name, "evaluations": evaluations, "error": error(problem, y, rtol, atol)})
    return rows


def run(tolerances=TOLERANCES) -> dict:
    """All sets, tolerances and solvers; the targets with what was measured."""
    sets, targets = [], []
    for name, problems, method, theirs, others in SETS:
        for rtol in tolerances:
            solvers = {method: _ours(method), "cvode": _cvode(theirs), "lsoda": lsoda,
                       **{other: _ours(other) for other in others}}
            rows = {solver: measure(problems, solve, rtol) for solver, solve in solvers.items()}
            totals = {solver: sum(r["evaluations"] for r in rs) for solver, rs in rows.items()}
            sets.append({"set": name, "rtol": rtol, "solvers": rows, "totals": totals})
            ratio = totals[method] / totals["cvode"]
            targets.append({"what": f"{method} beside CVODE's {theirs}, {name}, {rtol:g}", "measured": ratio,
                            "target": MOST, "unit": "of CVODE's evaluations", "met": ratio <= MOST})
    return {"bunraku": bunraku.__version__, "machine": machine.describe(), "sets": sets, "targets": targets}


def _ours(method):
    return lambda problem, rtol, atol: ours(method, problem, rtol, atol)


def _cvode(method):
    return lambda problem, rtol, atol: cvode(method, problem, rtol, atol)


def text(result: dict, colour: bool = False) -> str:
    """Tables of evaluations (and errors in units of the tolerance), then every target."""
    paint = painter(colour)
    lines = [paint("1", f"bunraku {result['bunraku']}: evaluations of the right-hand side (error / tolerance)")]
    for part in result["sets"]:
        solvers = list(part["solvers"])
        lines += ["", paint("1", f"{part['set']}, rtol {part['rtol']:g}"), "",
                  paint("4", f"  {'problem':<10}" + "".join(f"{s:>19}" for s in solvers))]
        for k, first in enumerate(part["solvers"][solvers[0]]):
            cells = [part["solvers"][s][k] for s in solvers]
            lines.append(f"  {first['problem']:<10}" + "".join(f"{c['evaluations']:>9} {_short(c['error']):>9}"
                                                               for c in cells))
        lines.append(f"  {'all':<10}" + "".join(f"{part['totals'][s]:>9} {'':9}" for s in solvers))
    lines += ["", *target_lines(result["targets"], paint)]
    return "\n".join(line.rstrip() for line in lines)


def _short(x: float) -> str:
    return f"({x:.2g})"
