"""Contact benchmark: cases with exact solutions, and a standing robot, compared with other libraries in one run.

`contact_cases` has the scenes, their closed forms and the targets, `contact_peers` the other libraries, at defaults
and at recommended settings, `contact_robot` the robot, `contact_trot` the quadruped, `contact_crowds` many balls,
`contact_figures` many figures. All libraries take steps of 2 ms.
Every row has its errors and the wall time of a step, in the best of up to five runs:

    bunraku, event-driven    bk.Simulation(m, q, v): gear, every step kept; with rtol 1e-12 for wheel and block
    bunraku, steps of 2 ms   bk.Simulation(m, q, v, solver="symplectic_euler", step=0.002)

The order of time-stepping is the slope of the errors over the step. An error depends on where in a step an impact
falls, so each is the largest of four steps within 20 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

import bunraku as bk
from bunraku.bench import machine
from bunraku.bench.contact_cases import STEP, Case, cases
from bunraku.bench.contact_crowds import Crowds, crowd_lines, crowd_verdicts, crowds
from bunraku.bench.contact_figures import Figures, figure_lines, figure_verdicts, figures
from bunraku.bench.contact_peers import LINK, Contestant, Run, bunraku, contestants, pinocchio_4
from bunraku.bench.contact_robot import Settings, robot, robot_lines, robot_verdicts
from bunraku.bench.contact_trot import quadruped, trot_lines, trot_verdicts
from bunraku.bench.peers import required
from bunraku.bench.report import painter, target_lines
from bunraku.bench.timing import Progress

EVENT, STEPPING = "bunraku, event-driven", "bunraku, steps of 2 ms"
EULER = "symplectic_euler"
SMALLER = 3.0                          # error at a quarter of the step: 4 is order 1
NEIGHBOURS = (1.0, 0.94, 0.87, 0.81)   # steps of which the worst counts
FLOOR = 1e-9                           # errors below it have no order
WIDE = 34


@dataclass
class Options(Settings):
    """How long to measure."""

    hold: float = 60.0                                # seconds a box rests
    steps: tuple[float, ...] = (STEP, STEP / 4, STEP / 16)
    crowds: Crowds = field(default_factory=Crowds)
    figures: Figures = field(default_factory=Figures)

    @classmethod
    def quick(cls):
        return cls(seconds=1.0, rollout=25, hold=6.0, steps=(STEP, STEP / 4),
                   crowds=Crowds((1, 10, 100), (18,), 100, 4, 8, 0.2), figures=Figures((1, 10), 0.2))


def run(options: Options | None = None, quiet: bool = False) -> dict:
    """All results as plain data; `text` formats them."""
    options = options or Options()
    required("mujoco")
    pinocchio_4()
    found: dict = {}
    table = cases(options.hold)
    progress = Progress(len(table) + 4, quiet)
    try:
        for name, case in table.items():
            progress(case.title)
            found[name] = _case(case, options)
            progress.done()
        progress("Talos on 8 points")
        stands = robot(options)
        progress.done()
        progress("a quadruped trots")
        trots = quadruped(options)
        progress.done()
        progress("many balls")
        many = crowds(options.crowds)
        progress.done()
        progress("many figures")
        fallen = figures(options.figures)
    finally:
        progress.close()
    return {"bunraku": bk.__version__, "machine": machine.describe(), "step": STEP, "cases": found, "robot": stands,
            "trot": trots, "crowds": many, "figures": fallen,
            "targets": [*_verdicts(table, found), *robot_verdicts(stands), *trot_verdicts(trots),
                        *crowd_verdicts(many), *figure_verdicts(fallen)]}


def _case(case: Case, options: Options) -> dict:
    ours = [Contestant(EVENT, lambda scene, seconds: bunraku(scene, seconds, **case.settings)),
            Contestant(STEPPING, lambda scene, seconds: bunraku(scene, seconds, solver=EULER, step=STEP))]
    return {"title": case.title, "exact": case.exact, "seconds": case.seconds, "units": case.units,
            "rows": [_row(case, who.label, who.run(case.scene, case.seconds)) for who in ours + contestants(STEP)],
            "order": order(case, _ours, options.steps) if case.order else None}


def _row(case: Case, label: str, run: Run) -> dict:
    """Errors and times; None, for JSON, where there is no result."""
    found = {name: error if math.isfinite(error) else None for name, error in errors(case, run).items()}
    row = {"label": label, "errors": found, "steps": run.steps, "note": run.note, "us": None, "solver_us": None,
           "real_time": None}
    if run.motion is not None:
        row |= {"us": 1e6 * run.seconds / run.steps, "real_time": case.seconds / run.seconds}
    if run.solving is not None:
        row["solver_us"] = 1e6 * run.solving / run.steps
    return row


def errors(case: Case, run: Run) -> dict[str, float]:
    """Errors by name; infinite if there is no motion, or one that is not finite."""
    if run.motion is None or not all(np.isfinite(x).all() for x in vars(run.motion).values()):
        return dict.fromkeys(case.units, math.inf)
    return {name: float(value) for name, value in case.measure(case.scene, run.motion).items()}


def _ours(scene, seconds, step) -> Run:
    return bunraku(scene, seconds, timed=False, solver=EULER, step=step)


def order(case: Case, simulate, steps) -> dict:
    """Slope of an error over the step, in logarithms; infinite if there is no error."""
    worst = []
    for step in steps:
        counts = sorted({round(case.seconds / (share * step)) for share in NEIGHBOURS})
        worst.append(max(errors(case, simulate(case.scene, case.seconds, case.seconds / n))[case.order]
                         for n in counts))
    if max(worst) < FLOOR:
        slope = math.inf
    elif np.isfinite(worst).all():
        slope = float(np.polyfit(np.log(steps), np.log(np.maximum(worst, 1e-300)), 1)[0])
    else:
        slope = 0.0
    return {"of": case.order, "steps": list(steps), "errors": worst, "order": slope}


def _verdicts(table: dict[str, Case], found: dict) -> list[dict]:
    verdicts = []
    for name, case in table.items():
        rows = {row["label"]: row for row in found[name]["rows"]}
        for label, targets in ((EVENT, case.event), (STEPPING, case.stepping)):
            for error, target in targets.items():
                row = rows[label]
                measured = math.inf if row["errors"][error] is None else row["errors"][error]
                if label == EVENT and case.may_refuse and names_contact(row["note"]):
                    measured = 0.0
                verdicts.append({"what": f"{case.title}: {error}, {label.removeprefix('bunraku, ')}",
                                 "measured": measured, "target": target, "unit": case.units[error],
                                 "met": measured <= target})
        if case.order:
            smaller = 4.0 ** found[name]["order"]["order"]
            verdicts.append({"what": f"{case.title}: {case.order} at a quarter of the step", "measured": smaller,
                             "target": SMALLER, "unit": "x smaller", "met": smaller >= SMALLER})
    return verdicts


def names_contact(note: str) -> bool:
    """Whether an error names the touching link."""
    return LINK in note


# -- in words ----------------------------------------------------------------------------------------------------------


def text(result: dict, colour: bool = False) -> str:
    """A table for each case, the robot, then every target with what was measured."""
    paint = painter(colour)
    on = result["machine"]
    versions = on["versions"]
    peers = f"MuJoCo {versions.get('mujoco', '?')}, Pinocchio {versions.get('pin', '?')}"
    peers += f", Drake {versions['drake']}" if "drake" in versions else "; without Drake, which is not installed"
    lines = [paint("1", f"bunraku {result['bunraku']}: contact, steps of {1e3 * result['step']:g} ms"),
             f"beside {peers}",
             machine.line(on)]
    for case in result["cases"].values():
        lines += ["", *_table(case, paint)]
    lines += ["", "  us/step: wall time; the loop with Pinocchio is Python; solver: its ADMM alone; -: did not happen",
              "", *robot_lines(result["robot"], paint), "", *trot_lines(result["trot"], paint), "",
              *crowd_lines(result["crowds"], paint), "", *figure_lines(result["figures"], paint), "",
              *target_lines(result["targets"], paint)]
    return "\n".join(line.rstrip() for line in lines)


def _table(case: dict, paint) -> list[str]:
    columns = "".join(f"{f'{name} {unit}'.replace('relative', '(rel.)'):>16}" for name, unit in case["units"].items())
    lines = [paint("1", case["title"]) + f"  {case['exact']}",
             paint("4", f"  {'':<{WIDE}}{columns}{'us/step':>10}{'solver':>8}{'x real time':>13}")]
    for row in case["rows"]:
        cells = "".join(f"{_cell(error, case['units'][name]):>16}" for name, error in row["errors"].items())
        times = "".join(f"{'' if row[name] is None else f'{row[name]:.{digits}f}':>{wide}}"
                        for name, wide, digits in (("us", 10, 1), ("solver_us", 8, 1), ("real_time", 13, 0)))
        lines.append(f"  {row['label']:<{WIDE}}{cells}{times}")
        if row["note"]:
            lines.append(f"    {row['note']}")
    if case["order"]:
        found = case["order"]
        lines.append(f"  order of {found['of']}: {found['order']:.2f}  (" + ", ".join(
            f"{error:.1e} at {1e3 * step:g} ms" for step, error in zip(found["steps"], found["errors"], strict=True))
            + ")")
    return lines


def _cell(error: float | None, unit: str) -> str:
    return "-" if error is None else f"{error:.0f}" if error == 0.0 or not unit else f"{error:.1e}"
