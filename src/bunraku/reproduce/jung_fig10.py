"""[J, fig. 10]: speed-up over the number of processors for mobiles of 455 and 4100 joints.

At the paper's costs (0.4 ms a body, 1.5 ms a remote edge): [J]'s own estimate, and the chunks of `bk.schedule`; at the
costs of this machine: the chunks, predicted, and measured on two threads (Gear evaluations). The paper's text says of
its figure: at most about 30 and 200 by the depth of the trees, and not above 10 for the small mobile, reached with 81
processors at the latest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.reproduce.mobiles import CMPTM, LARGE, ROITM, SMALL, Shape
from bunraku.reproduce.page import two_plots
from bunraku.reproduce.speedups import Progress, cell, gear, idle_costs, measurable, nothing, told, warning
from bunraku.scheduling import paper

PROCESSORS = (1, 2, 4, 8, 12, 16, 20, 32, 64, 81, 128, 256, 512, 729, 1024)
PAPER = {SMALL: {"bound": 30, "most": 10, "processors": 81}, LARGE: {"bound": 200}}
CURVES = {"jung": "[J]'s estimate, paper's costs", "chunks": "chunks, paper's costs", "here": "chunks, our costs"}


@dataclass(frozen=True)
class Options:
    """How much to measure."""

    rounds: int = 30
    shapes: tuple[Shape, ...] = (SMALL, LARGE)
    processors: tuple[int, ...] = PROCESSORS

    @classmethod
    def quick(cls):
        return cls(rounds=4, shapes=(SMALL,), processors=(1, 2, 20, 81))


def pieces(options: Options) -> int:
    """How often `run` says what begins."""
    return 1 + len(options.shapes)


def run(options: Options | None = None, progress: Progress = nothing) -> dict:
    """Curves for both mobiles."""
    options = options or Options()
    progress("costs of single operations")
    costs = idle_costs()
    mobiles = []
    for shape in options.shapes:
        progress(f"mobile of {shape.joints}")
        m, durations, counts = shape.build(), shape.estimates(max(options.processors)), list(options.processors)
        theirs, ours = (bk.schedule(m, 1, costs=x, passes=4).what_if(counts) for x in (paper(CMPTM, ROITM), costs))
        best = np.minimum.accumulate(durations)
        times = gear(m, options.rounds)
        mobiles.append({
            **shape._asdict(), "joints": shape.joints, "depth": shape.depth, "bound": shape.joints / shape.depth,
            "paper": PAPER[shape], "processors": counts,
            "jung": [float(durations[0] / best[min(p, len(best)) - 1]) for p in counts],
            "jung_used": len(durations), "chunks": theirs.speedup.tolist(), "here": ours.speedup.tolist(),
            "here_used": ours.used.tolist(), "serial_us": times["serial"]["us"], "ceiling": times["copies"]["speedup"],
            "measured": [1.0 if p == 1 else times["2"]["speedup"] if p == 2 and "2" in times else None
                         for p in counts]})
    return {"mobiles": mobiles, "costs": costs.to_dict(), "paper_costs": {"cmptm": CMPTM, "roitm": ROITM},
            "cores": {"two_threads": measurable(2)}}


def text(result: dict) -> str:
    """The curves as tables."""
    own = result["costs"]
    lines = ["Speed-up over the number of processors [J, fig. 10]; an evaluation with the solver's part",
             f"paper's costs: {CMPTM * 1e3:g} ms a body, {ROITM * 1e3:g} ms a remote edge, ratio {ROITM / CMPTM:.2f}; "
             f"ours: {own['cmptm'] * 1e9:.0f} ns and {own['roitm'] * 1e6:.2f} us, ratio "
             f"{own['roitm'] / own['cmptm']:.1f}"]
    for x in result["mobiles"]:
        said = x["paper"]
        words = (f"not above {said['most']}, reached with {said['processors']} processors at the latest"
                 if "most" in said else "in a picture only")
        lines += ["", f"{x['joints']} joints (s={x['s']}, l={x['l']}, o={x['o']}), depth {x['depth']}: joints/depth "
                  f"{x['bound']:.0f} (the paper: about {said['bound']})", f"The paper's speed-up: {words}", "",
                  f"  {'':>10} |{'predicted, paper costs':^24} |{'our costs':^30}",
                  f"  {'processors':>10} |{'[J] estimate':>14}{'chunks':>9}  |{'predicted':>11}{'(used)':>8}"
                  f"{'measured':>10}"]
        lines += [f"  {p:>10} |{jung:14.2f}{chunks:9.2f}  |{here:11.2f}{used:>8}{cell(measured, 10)}"
                  for p, jung, chunks, here, used, measured in zip(
                      x["processors"], x["jung"], x["chunks"], x["here"], x["here_used"], x["measured"], strict=True)]
        lines.append(f"  one thread here: {x['serial_us']:.1f} us an evaluation (measured); two copies at once: "
                     f"{x['ceiling']:.2f}x")
    lines += ["", told(own), *warning(min(x["ceiling"] for x in result["mobiles"]))]
    return "\n".join(line.rstrip() for line in lines)


def picture(result: dict, path: Path, drawing) -> Path:
    """Speed-ups over processors. `drawing`: Matplotlib's figure and canvas."""
    page, plots = two_plots(drawing, 4.2)
    for axes, x in zip(plots, result["mobiles"], strict=False):
        for (key, label), colour in zip(CURVES.items(), ("#d1603d", "#2f7f86", "#39424e"), strict=True):
            axes.plot(x["processors"], x[key], "o--", markersize=4, markerfacecolor="white", color=colour,
                      label=f"{label}, predicted")
        points = [(p, y) for p, y in zip(x["processors"], x["measured"], strict=True) if y is not None]
        axes.plot(*zip(*points, strict=True), "s", color="#39424e", markersize=8, label="threads, measured")
        axes.plot([2], [x["ceiling"]], "_", color="#b58a2f", markersize=16, label="two serial runs at once, measured")
        axes.axhline(x["bound"], color="#8a94a0", linewidth=0.8, label="joints / depth")
        if "most" in x["paper"]:
            axes.plot([x["paper"]["processors"]], [x["paper"]["most"]], "*", color="#d1603d", markersize=13,
                      label="the paper's text: not above")
        axes.set(xscale="log", yscale="log", xlabel="processors", title=f"{x['joints']} joints")
        axes.title.set_fontsize("medium")
        axes.grid(True, which="both", linewidth=0.3)
        axes.legend(fontsize=7)
    plots[0].set_ylabel("speed-up")
    for axes in plots[len(result["mobiles"]):]:
        axes.set_visible(False)
    page.savefig(path)
    return path
