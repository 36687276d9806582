"""[YN02, table 2 and fig. 7]: free-flying figures of 34 and 48 degrees of freedom on 1, 2 and 4 processes; sixteen
figures hand in hand; a figure that holds with both hands, lets go with the right one, then with the left, in parallel.

A single figure is small for today's processors: an evaluation lasts a few messages. Sixteen figures are not. The paper
has no numbers for them; it has the range of fig. 7, serial: 3.4 to 5.0 ms, by the number of hands that hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import bunraku as bk
from bunraku.reproduce.page import two_plots
from bunraku.reproduce.speedups import (
    Progress,
    cell,
    forward,
    heading,
    idle_costs,
    line,
    measurable,
    nothing,
    steps,
    told,
    warning,
)
from bunraku.scheduling import Costs

PAPER = {34: {1: 3.66, 2: 2.49, 4: 2.22}, 48: {1: 4.85, 2: 2.93, 4: 2.49}}  # [ms]
PAPER_HOLDING = (3.4, 5.0)                                                  # [ms] fig. 7, serial
FIGURES, DOF = 16, 34
MANY = (1, 2, 4, 8, 16)          # workers for all figures
STEP = 1e-4                      # [s] of rk4, four evaluations each
PALM = (0.0, 0.0, -0.08)         # where hands meet, below the wrist [m]


@dataclass(frozen=True)
class Options:
    """How much to measure."""

    rounds: int = 40
    figures: int = FIGURES
    seconds: float = 0.2         # of every stretch of fig. 7

    @classmethod
    def quick(cls):
        return cls(rounds=4, figures=4, seconds=0.02)


def pieces(options: Options) -> int:
    """How often `run` says what begins."""
    return 4


def run(options: Options | None = None, progress: Progress = nothing) -> dict:
    """All three experiments, as plain numbers."""
    options = options or Options()
    progress("costs of single operations")
    costs = idle_costs()
    progress("free figures")
    table = [row for dof in PAPER for row in _free(dof, costs, options)]
    progress(f"{options.figures} figures hand in hand")
    many = _hand_in_hand(costs, options)
    progress("a figure lets go")
    return {"table": table, "hand_in_hand": many, "letting_go": letting_go(options), "costs": costs.to_dict()}


def _free(dof: int, costs: Costs, options: Options) -> list[dict]:
    m = bk.models.human(dof)
    schedules = {p: bk.schedule(m, p, exactly=True, costs=costs) for p in PAPER[dof]}
    times = forward(m, {str(p): s for p, s in schedules.items()}, options.rounds)
    rows = []
    for p, s in schedules.items():
        own = times.get("serial" if p == 1 else str(p))
        rows.append({"dof": dof, "processes": p, "paper_ms": PAPER[dof][p],
                     "paper_speedup": PAPER[dof][1] / PAPER[dof][p],
                     "measured_us": own and own["us"], "measured_speedup": own and own["speedup"],
                     "ceiling": times["copies"]["speedup"] if p == 2 else None, "predicted_us": s.predicted_time * 1e6,
                     "predicted_speedup": schedules[1].predicted_time / s.predicted_time})
    return rows


# -- sixteen figures -------------------------------------------------------------------------------------------------


def hand_in_hand(figures: int, dof: int = DOF) -> tuple[bk.Mechanism, np.ndarray]:
    """Figures in a row, arms stretched out, each holding the next one's right hand in its left: (mechanism, q)."""
    one = bk.models.human(dof)
    m = bk.Mechanism(gravity=(0.0, 0.0, 0.0), name=f"{figures} figures hand in hand")
    for k in range(figures):
        for link in one.links:
            parent = "ground" if link.parent < 0 else f"{one.links[link.parent].name} {k}"
            m.add_link(f"{link.name} {k}", parent, link.joint, f"{link.joint_name} {k}", position=link.position,
                       rotation=link.rotation, mass=link.mass, com=link.com, inertia=link.inertia)
    turn = np.zeros(m.nv)
    for k in range(figures):
        for side, sign in (("left", 1.0), ("right", -1.0)):
            turn[m.v_slice(f"{side}_shoulder {k}")] = sign * 1.3, 0.0, 0.0
    q = m.integrate(m.neutral(), turn)
    for k in range(figures - 1):
        place = bk.poses(m, q)
        (rotation, left), (other, right) = place[f"left_hand {k}"], place[f"right_hand {k + 1}"]
        q[m.q_slice(f"root {k + 1}")][:3] += left + rotation @ PALM - right - other @ PALM
        m.connect(f"left_hand {k}", f"right_hand {k + 1}", bk.Spherical(), name=f"grip {k}", position_a=PALM,
                  position_b=PALM)
    return m, q


def _hand_in_hand(costs: Costs, options: Options) -> dict:
    m, q = hand_in_hand(options.figures)
    v = 0.3 * np.random.default_rng(0).normal(size=m.nv)
    q, v = bk.project(m, q, v)
    counts = [p for p in MANY if p <= options.figures]
    schedules = {p: bk.schedule(m, p, exactly=measurable(p), costs=costs) for p in counts}
    sims = {p: bk.Simulation(m, q, v, "rk4", step=STEP, workers=s.workers, schedule=s if p > 1 else None, record=None,
                             progress=False) for p, s in schedules.items() if measurable(p)}
    for sim in sims.values():
        sim.advance(STEP)
    apart = max(float(np.abs(sim.q - sims[1].q).max()) for sim in sims.values())
    times = steps(_named(sims), 5 * STEP, options.rounds)
    rows = []
    best = {name: float(t.min() * 1e6) for name, t in times.items()}
    for p, s in schedules.items():
        own = best.get(str(p))
        rows.append({"workers": p, "used": s.workers, "chunks": len(s.chunks), "measured_us": own,
                     "measured_speedup": own and best["1"] / own,
                     "predicted_us": s.predicted_time * 1e6,
                     "predicted_speedup": schedules[1].predicted_time / s.predicted_time})
    return {"figures": options.figures, "dof": m.nv, "links": len(m.links), "connections": len(m.connections),
            "apart": apart, "rows": rows}


def _named(sims: Mapping[int, bk.Simulation]) -> dict[str, bk.Simulation]:
    return {str(p): sim for p, sim in sims.items()}


# -- fig. 7 ----------------------------------------------------------------------------------------------------------


def letting_go(options: Options) -> dict:
    """A figure hangs by both hands, then by the left one, then falls: with one worker and with two, in step."""
    m = bk.models.human(DOF)
    place = bk.poses(m, m.neutral())
    for hand in ("left_hand", "right_hand"):
        rotation, position = place[hand]
        m.connect("ground", hand, bk.Spherical(), f"{hand}_grip", position_a=position + rotation @ PALM,
                  position_b=PALM)
    s = bk.schedule(m, 2, exactly=True)
    common: dict[str, Any] = {"solver": "rk4", "step": STEP, "record": None, "progress": False}
    sims = {"one worker": bk.Simulation(m, workers=1, **common),
            "two chunks on one worker": bk.Simulation(m, workers=1, schedule=s, **common)}
    if measurable(2):
        sims["two workers"] = bk.Simulation(m, workers=2, schedule=s, **common)
    phases, pieces = [], 10
    for hands, cut in ((2, None), (1, "right_hand_grip"), (0, "left_hand_grip")):
        for sim in sims.values():
            if cut is not None:
                sim.cut(cut)
            sim.advance(sim.t + STEP)
        times = steps(sims, options.seconds / pieces, pieces)
        phases.append({"hands": hands, **{name: float(t.min() * 1e6) for name, t in times.items()}})
    states = {name: np.concatenate([sim.q, sim.v]) for name, sim in sims.items()}
    return {"dof": m.nv, "seconds": sims["one worker"].t, "phases": phases,
            "bitwise": bool(np.array_equal(states["two chunks on one worker"],
                                           states.get("two workers", states["two chunks on one worker"]))),
            "apart": float(np.abs(states["two chunks on one worker"] - states["one worker"]).max())}


# -- for people ------------------------------------------------------------------------------------------------------


def text(result: dict) -> str:
    """The result as a page."""
    lines = ["Forward dynamics of free-flying figures [YN02, table 2]",
             "measured: threads, in compiled loops; -: more workers than cores. Ceiling: two serial runs at once.",
             "predicted: on idle cores, with the costs of single operations.", "",
             *heading(f"  {'DOF':>4}{'processes':>10}")]
    lines += [line(f"  {row['dof']:>4}{row['processes']:>10}", row) for row in result["table"]]
    many = result["hand_in_hand"]
    lines += ["", f"{many['figures']} figures hand in hand: {many['links']} links, {many['dof']} degrees of freedom, "
              f"{many['connections']} connections; not in the paper",
              "measured: evaluations of whole rk4 steps, loops kept closed. predicted: forward dynamics alone.", "",
              f"  {'workers':>8}{'used':>6}{'chunks':>8} |{'measured us':>13}{'speed-up':>10} |"
              f"{'predicted us':>14}{'speed-up':>10}"]
    lines += [f"  {row['workers']:>8}{row['used']:>6}{row['chunks']:>8} |{cell(row['measured_us'], 13)}"
              f"{cell(row['measured_speedup'], 10)} |{row['predicted_us']:14.2f}{row['predicted_speedup']:10.2f}"
              for row in many["rows"]]
    go = result["letting_go"]
    names = [name for name in go["phases"][0] if name != "hands"]
    lines += ["", f"A {go['dof']}-DOF figure lets go [YN02, fig. 7]: us per evaluation of rk4 steps, measured; the "
              f"paper, serial: {PAPER_HOLDING[0]:g} to {PAPER_HOLDING[1]:g} ms", "",
              f"  {'hands that hold':<16}" + "".join(f"{name:>26}" for name in names)]
    lines += [f"  {phase['hands']:<16}" + "".join(f"{phase[name]:26.2f}" for name in names) for phase in go["phases"]]
    slow, fast = (max(p["one worker"] for p in go["phases"]), min(p["one worker"] for p in go["phases"]))
    lines += ["", f"  dearest over cheapest phase: the paper {PAPER_HOLDING[1] / PAPER_HOLDING[0]:.2f}, here "
              f"{slow / fast:.2f} (one worker). After {go['seconds']:.2f} s two chunks have the",
              f"  same bits on one and two workers: {'yes' if go['bitwise'] else 'NO'}; one chunk differs by "
              f"{go['apart']:.0e}.", "", told(result["costs"]),
              *warning(min(row["ceiling"] for row in result["table"] if row["ceiling"]))]
    return "\n".join(words.rstrip() for words in lines)


def picture(result: dict, path: Path, drawing) -> Path:
    """Speed-ups of one figure and of many. `drawing`: Matplotlib's figure and canvas."""
    page, (left, right) = two_plots(drawing, 4.0, sharey=True)
    for dof, colour in ((34, "#2f7f86"), (48, "#d1603d")):
        own = [row for row in result["table"] if row["dof"] == dof]
        _curves(left, own, "processes", colour, f"{dof} DOF, ", ("paper", "predicted", "measured"))
    many = result["hand_in_hand"]
    _curves(right, many["rows"], "workers", "#39424e", "", ("predicted", "measured"))
    left.set_title("one free-flying figure", fontsize="medium")
    right.set_title(f"{many['figures']} figures hand in hand", fontsize="medium")
    left.set_ylabel("speed-up over one")
    for axes, ticks in ((left, [1, 2, 4]), (right, [row["workers"] for row in many["rows"]])):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set(xlabel="processes or threads", xticks=ticks, yticks=[0.5, 1, 2, 4, 8, 16])
        axes.set_xticklabels([str(p) for p in ticks])
        axes.set_yticklabels(["0.5", "1", "2", "4", "8", "16"])
        axes.grid(True, linewidth=0.3)
        axes.legend(fontsize=8)
    page.savefig(path)
    return path


def _curves(axes, rows, key, colour, before, kinds):
    for kind, style in (("paper", "*-"), ("predicted", "o--"), ("measured", "s")):
        points = [(row[key], row[f"{kind}_speedup"]) for row in rows
                  if kind in kinds and row[f"{kind}_speedup"] is not None]
        if points:
            axes.plot(*zip(*points, strict=True), style, color=colour, markersize=9 if kind == "measured" else 5,
                      markerfacecolor="white" if kind == "predicted" else colour, label=f"{before}{kind}")
