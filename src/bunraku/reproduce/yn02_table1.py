"""[YN02, table 1]: forward dynamics of chains of 8, 16 and 32 links with ball joints, on 1 to 8 processes.

Links are distributed evenly, as in the paper; in row 4* each of the two middle processes hands a share of its links to
its outer neighbour; in row "4 chosen", `bk.schedule` distributes them by predicted time. Then again with 32
times the links: here a chain of 32 takes less time than ten messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.reproduce.page import two_plots
from bunraku.reproduce.speedups import Progress, forward, heading, idle_costs, line, nothing, told, warning
from bunraku.scheduling import Costs

PAPER: dict[str, dict[int, float]] = {  # [ms], by processes and links
    "1": {8: 1.31, 16: 2.75, 32: 6.08}, "2": {8: 0.984, 16: 1.87, 32: 3.93}, "4": {8: 0.897, 16: 1.70, 32: 3.39},
    "8": {16: 1.57, 32: 2.90}, "4*": {16: 1.58, 32: 3.16}}
LINKS, LONGER = (8, 16, 32), 32
CHOSEN = "4 chosen"
COLOURS = {8: "#b58a2f", 16: "#2f7f86", 32: "#d1603d"}


@dataclass(frozen=True)
class Options:
    """How much to measure."""

    rounds: int = 40

    @classmethod
    def quick(cls):
        return cls(rounds=5)


def pieces(options: Options) -> int:
    """How often `run` says what begins."""
    return 3


def run(options: Options | None = None, progress: Progress = nothing) -> dict:
    """Both tables, as plain numbers."""
    options = options or Options()
    progress("costs of single operations")
    costs = idle_costs()
    tables = {}
    for factor, name in ((1, "table"), (LONGER, "longer")):
        progress(f"chains of {', '.join(str(factor * n) for n in LINKS)} links")
        tables[name] = [row for n in LINKS for row in _chain(n, factor, costs, options)]
    return {**tables, "costs": costs.to_dict()}


def sizes(links: int, row: str, factor: int = 1) -> list[int]:
    """Links of each process in a row of the table."""
    processes = int(row.rstrip("*"))
    even = [links // processes] * processes
    if row.endswith("*"):  # one link of the paper's chains
        even[0] += factor
        even[1] -= factor
        even[2] -= factor
        even[3] += factor
    return even


def _chain(n: int, factor: int, costs: Costs, options: Options) -> list[dict]:
    links = n * factor
    m = bk.models.chain(links, joint="spherical")
    names = [name for name, own in PAPER.items() if n in own]
    schedules = {}
    for name in names[1:]:
        tops = np.cumsum(sizes(links, name, factor))[:-1]
        schedules[name] = bk.Schedule(m, cuts=[f"link{k}" for k in tops], costs=costs)
    if "4*" in names:
        names.append(CHOSEN)
        schedules[CHOSEN] = bk.schedule(m, 4, exactly=True, costs=costs)
    serial = bk.schedule(m, 1, costs=costs)
    times = forward(m, schedules, options.rounds)
    rows = []
    for name in names:
        s = schedules.get(name, serial)
        own = times.get("serial" if name == "1" else name)
        paper = PAPER[name][n] if name in PAPER else None
        rows.append({"links": links, "processes": name, "sizes": [len(chunk) for chunk in s.chunks],
                     "paper_ms": paper, "paper_speedup": paper and PAPER["1"][n] / paper,
                     "measured_us": own and own["us"], "measured_speedup": own and own["speedup"],
                     "ceiling": times["copies"]["speedup"] if name == "2" else None,
                     "predicted_us": s.predicted_time * 1e6,
                     "predicted_speedup": serial.predicted_time / s.predicted_time})
    return rows


# -- for people ------------------------------------------------------------------------------------------------------


def text(result: dict) -> str:
    """Both tables as a page."""
    lines = ["Forward dynamics of chains of ball joints, links distributed evenly over processes [YN02, table 1]",
             "4*: the middle two have fewer links, the outer two more. 4 chosen: by bk.schedule, for equal times.",
             "Here: threads that share memory.",
             "measured: in compiled loops; -: more workers than cores. Ceiling: two independent serial runs at once.",
             "predicted: passes played through on idle cores, with the costs of single operations."]
    for title, rows, whose in (("The paper's chains", result["table"], "the paper"),
                               (f"Chains {LONGER} times as long", result["longer"], f"the paper, 1/{LONGER}")):
        lines += ["", title, *heading(f"  {'links':>6}{'processes':>10}", whose)]
        lines += [line(f"  {row['links']:>6}{row['processes']:>10}", row) for row in rows]
    lines += ["", "Uneven shares beside even ones on 4, time saved:"]
    for rows in (result["table"], result["longer"]):
        found = {(row["links"], row["processes"]): row for row in rows}
        for links in sorted({row["links"] for row in rows}):
            if (links, "4*") in found:
                even, uneven, chosen = (found[links, name] for name in ("4", "4*", CHOSEN))
                said = f"paper {1 - uneven['paper_ms'] / even['paper_ms']:.0%}, " if rows is result["table"] else ""
                lines.append(f"  {links:>6} links: 4* {said}predicted here "
                             f"{1 - uneven['predicted_us'] / even['predicted_us']:.0%}; chosen "
                             f"{'-'.join(map(str, chosen['sizes']))}, predicted "
                             f"{1 - chosen['predicted_us'] / even['predicted_us']:.0%}")
    lines += ["  Here only the last chunk of a chain is cheaper: the first has a far handle as the middle ones have."]
    lines += ["", told(result["costs"]),
              *warning(min(row["ceiling"] for row in [*result["table"], *result["longer"]] if row["ceiling"]))]
    return "\n".join(words.rstrip() for words in lines)


def picture(result: dict, path: Path, drawing) -> Path:
    """Speed-up over processes: the paper's, measured, predicted. `drawing`: Matplotlib's figure and canvas."""
    page, plots = two_plots(drawing, 4.2, sharey=True)
    for axes, rows, factor in zip(plots, (result["table"], result["longer"]), (1, LONGER), strict=True):
        for n in LINKS:
            own = [row for row in rows if row["links"] == n * factor]
            even = [row for row in own if row["processes"].isdigit()]
            axes.plot([2], [row["ceiling"] for row in even if row["ceiling"]], "_", color=COLOURS[n], markersize=16)
            for row in own:
                if row["processes"] == "4*" and factor == 1:
                    axes.plot([4], [row["paper_speedup"]], "x", color=COLOURS[n])
                elif row["processes"] == CHOSEN:
                    axes.plot([4], [row["predicted_speedup"]], "+", color=COLOURS[n])
            for key, style, who in (("paper_speedup", "*-", "paper"), ("predicted_speedup", "o--", "predicted"),
                                    ("measured_speedup", "s", "measured")):
                if key == "paper_speedup" and factor > 1:
                    continue
                points = [(int(row["processes"]), row[key]) for row in even if row[key] is not None]
                axes.plot(*zip(*points, strict=True), style, color=COLOURS[n], markersize=5 + 4 * (who == "measured"),
                          markerfacecolor="white" if who == "predicted" else COLOURS[n], label=f"{n * factor}, {who}")
        axes.axhline(1.0, color="#8a94a0", linewidth=0.8)
        axes.set_xscale("log", base=2)
        axes.set(xlabel="processes or threads", xticks=[1, 2, 4, 8])
        axes.set_xticklabels(["1", "2", "4", "8"])
        axes.grid(True, linewidth=0.3)
        axes.plot([], [], "_", color="#8a94a0", markersize=12, label="two serial runs at once, measured")
        if factor == 1:
            axes.plot([], [], "x", color="#8a94a0", label="4*, paper")
        axes.plot([], [], "+", color="#8a94a0", label=f"{CHOSEN}, predicted")
        axes.legend(fontsize=6)
        axes.set_title(f"{', '.join(str(n * factor) for n in LINKS)} links", fontsize="medium")
    plots[0].set_ylabel("speed-up over one")
    page.savefig(path)
    return path
