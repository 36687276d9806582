"""[J, fig. 9]: time of an evaluation over the number of joints, for the mobiles of fig. 8, with the logarithm.

An evaluation is all four passes, the solver's part included. At the paper's costs (0.4 ms a body, 1.5 ms a remote
edge): [J]'s own estimate for 20 processors, as on MANNA, and for as many as reduce the time; and the chunks of
`bk.schedule`. At the costs of this machine: predicted for as many workers as pay, measured for one and two threads
(Gear evaluations). The values that the paper has measured are in a picture only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.reproduce.mobiles import CMPTM, LARGE, PLENTY, ROITM, SMALL, family
from bunraku.reproduce.page import two_plots
from bunraku.reproduce.speedups import Progress, cell, gear, idle_costs, logarithm, nothing, told, warning
from bunraku.scheduling import paper

MANNA = 20
FITTED = ("jung_plenty_ms", "chunks_plenty_ms", "predicted_plenty_us")


@dataclass(frozen=True)
class Options:
    """How much to measure."""

    rounds: int = 20
    most: int = LARGE.joints

    @classmethod
    def quick(cls):
        return cls(rounds=4, most=SMALL.joints)


def pieces(options: Options) -> int:
    """How often `run` says what begins."""
    return 1 + len(family(options.most))


def run(options: Options | None = None, progress: Progress = nothing) -> dict:
    """A row for each mobile, and logarithms."""
    options = options or Options()
    progress("costs of single operations")
    costs = idle_costs()
    rows = []
    for shape in family(options.most):
        progress(f"mobile of {shape.joints}")
        m, durations = shape.build(), shape.estimates(PLENTY)
        theirs, ours = (bk.schedule(m, 1, costs=x, passes=4).what_if([1, PLENTY])
                        for x in (paper(CMPTM, ROITM), costs))
        times = gear(m, options.rounds)
        rows.append({
            "joints": shape.joints, "depth": shape.depth, "jung_1_ms": durations[0] * 1e3,
            "jung_20_ms": float(durations[min(MANNA, len(durations)) - 1] * 1e3),
            "jung_plenty_ms": float(durations.min() * 1e3), "jung_processors": int(np.argmin(durations)) + 1,
            "chunks_plenty_ms": float(theirs.time[1] * 1e3), "chunks_processors": int(theirs.used[1]),
            "measured_1_us": times["serial"]["us"], "measured_2_us": times["2"]["us"] if "2" in times else None,
            "ceiling": times["copies"]["speedup"], "predicted_1_us": float(ours.time[0] * 1e6),
            "predicted_plenty_us": float(ours.time[1] * 1e6), "predicted_workers": int(ours.used[1])})
    joints = [row["joints"] for row in rows]
    return {"rows": rows, "fits": {key: logarithm(joints, [row[key] for row in rows]) for key in FITTED},
            "costs": costs.to_dict(), "paper_costs": {"cmptm": CMPTM, "roitm": ROITM}}


def text(result: dict) -> str:
    """The times as a page."""
    lines = ["Time of an evaluation with the solver's part, mobiles of fig. 8 [J, fig. 9]",
             "The paper's measured values are in a picture only; its estimates are computed here by its algorithm.", "",
             f"  {'':>6} |{'at the costs of the paper, predicted [ms]':^55} |{'here [us]':^50}",
             f"  {'joints':>6} |{'[J] on 1':>10}{'on 20':>9}{'on any':>9}{'(used)':>8}{'chunks':>9}{'(used)':>8}  |"
             f"{'measured, 1':>12}{'2 threads':>11}{'predicted, 1':>14}{'any':>7}{'(used)':>8}"]
    lines += [f"  {row['joints']:>6} |{row['jung_1_ms']:10.1f}{row['jung_20_ms']:9.2f}{row['jung_plenty_ms']:9.2f}"
              f"{row['jung_processors']:>8}{row['chunks_plenty_ms']:9.2f}{row['chunks_processors']:>8}  |"
              f"{row['measured_1_us']:12.2f}{cell(row['measured_2_us'], 11)}{row['predicted_1_us']:14.2f}"
              f"{row['predicted_plenty_us']:7.2f}{row['predicted_workers']:>8}" for row in result["rows"]]
    names = {"jung_plenty_ms": "[J]'s estimate, any number of processors",
             "chunks_plenty_ms": "chunks at the paper's costs",
             "predicted_plenty_us": "chunks at the costs of this machine"}
    lines += ["", "Predicted times as a + b ln(joints); largest distance, and that of the nearest straight line:"]
    for key, fit in result["fits"].items():
        unit = "ms" if key.endswith("ms") else "us"
        lines.append(f"  {names[key]:<44}{fit['a']:8.2f} {'-' if fit['b'] < 0 else '+'}{abs(fit['b']):6.2f} ln {unit}"
                     f"{fit['off']:9.1%}{fit['off_linear']:9.1%}")
    lines += ["", told(result["costs"]), *warning(min(row["ceiling"] for row in result["rows"]))]
    return "\n".join(line.rstrip() for line in lines)


def picture(result: dict, path: Path, drawing) -> Path:
    """Times over joints. `drawing`: Matplotlib's figure and canvas."""
    page, (left, right) = two_plots(drawing, 4.2)
    rows, fits = result["rows"], result["fits"]
    joints = [row["joints"] for row in rows]
    x = np.geomspace(min(joints), max(joints), 200)

    def draw(axes, key, style, colour, label):
        points = [(row["joints"], row[key]) for row in rows if row[key] is not None]
        if points:
            axes.plot(*zip(*points, strict=True), style, color=colour, label=label,
                      markerfacecolor="white" if "predicted" in label else colour)
        if key in fits:
            axes.plot(x, fits[key]["a"] + fits[key]["b"] * np.log(x), color=colour, linewidth=1.0)

    draw(left, "jung_20_ms", "s:", "#8a94a0", "[J]'s estimate, 20 processors, predicted")
    draw(left, "jung_plenty_ms", "o", "#d1603d", "[J]'s estimate, any number, predicted")
    draw(left, "chunks_plenty_ms", "o", "#2f7f86", "chunks, any number, predicted")
    draw(right, "measured_1_us", "s-", "#39424e", "1 thread, measured")
    draw(right, "measured_2_us", "s-", "#b58a2f", "2 threads, measured")
    draw(right, "predicted_plenty_us", "o", "#2f7f86", "any number of workers, predicted")
    left.set(title="at the costs of MANNA", ylabel="an evaluation [ms]")
    right.set(title="here", ylabel="an evaluation [µs]", yscale="log")
    for axes in (left, right):
        axes.set(xscale="log", xlabel="joints")
        axes.title.set_fontsize("medium")
        axes.grid(True, linewidth=0.3)
        axes.legend(fontsize=7)
    left.set_ylim(0.0, 4.0 * max(row["jung_plenty_ms"] for row in rows))
    page.savefig(path)
    return path
