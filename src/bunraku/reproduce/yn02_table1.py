"""[YN02, table 1]: forward dynamics of chains of 8, 16 and 32 links with ball joints, on 1 to 8 processes.

Links are distributed evenly, as in the paper; in row 4* each of the two middle processes hands a share of its links to
its outer neighbour; in row "4 chosen", `bk.schedule` distributes them by predicted time. Then again with 32
times the links: here a chain of 32 takes less time than ten messages. And the paper's chains at the paper's costs
(`yn02_machine.py`): what its algorithm has to take on its cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.reproduce.page import two_plots
from bunraku.reproduce.speedups import Progress, cell, forward, heading, idle_costs, line, nothing, told, warning
from bunraku.reproduce.yn02_machine import LATENCY, RATE, fitted, weight
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
    return {**tables, "paper_costs": at_paper_costs(), "costs": costs.to_dict()}


def at_paper_costs() -> dict:
    """Table 1 by the model of the paper's cluster, without and with work that every process repeats."""
    one, two = ({n: 1e-3 * ms for n, ms in PAPER[name].items()} for name in ("1", "2"))
    plain, repeating = fitted(one), fitted(one, two)
    rows = []
    for n in LINKS:
        for name, paper in PAPER.items():
            if n in paper:
                split = sizes(n, name)
                ms, ms_repeating = (1e3 * x[n].seconds(split) for x in (plain, repeating))
                rows.append({"links": n, "processes": name, "sizes": split, "paper_ms": paper[n],
                             "paper_speedup": PAPER["1"][n] / paper[n], "ms": ms, "speedup": PAPER["1"][n] / ms,
                             "ms_repeating": ms_repeating, "speedup_repeating": PAPER["1"][n] / ms_repeating})
    return {"rows": rows, "joint_ms": {n: 1e3 * x.joint for n, x in plain.items()},
            "repeated": repeating[LINKS[0]].repeated, "two_handles": weight(2),
            "latency_us": 1e6 * LATENCY, "rate_mb_s": 1e-6 * RATE}


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
             "measured: in compiled loops, best round of each; -: more workers than cores.",
             "Ceiling: two independent serial runs at once.",
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
    lines += ["", *_at_paper_costs(result["paper_costs"])]
    lines += ["", told(result["costs"]),
              *warning(min(row["ceiling"] for row in [*result["table"], *result["longer"]] if row["ceiling"]))]
    return "\n".join(words.rstrip() for words in lines)


def _at_paper_costs(found: dict) -> list[str]:
    """The paper's cluster, predicted."""
    joints = ", ".join(f"{ms:.3f}" for ms in found["joint_ms"].values())
    lines = ["The paper's algorithm at the paper's costs (PentiumIII 1 GHz, Myrinet)",
             f"fitted to row 1: {joints} ms a joint in chains of {', '.join(map(str, found['joint_ms']))} links",
             f"counted: a joint of a middle subchain (two handles) costs {found['two_handles']:.2f} of one at an end",
             f"published by Myricom: {found['latency_us']:.1f} us + 8 byte / {found['rate_mb_s']:.0f} MB/s a float",
             f"fitted to row 2, last columns only: every process repeats {found['repeated']:.0%} of the serial work",
             "Everything else is predicted.",
             f"  {'':>16} |{'the paper':^20} |{'nothing repeated':^27} |{found['repeated']:>11.0%} repeated",
             f"  {'links':>6}{'processes':>10} |{'ms':>9}{'speed-up':>10}  "
             + f"|{'ms':>9}{'speed-up':>10}{'off':>7}  " * 2]
    for row in found["rows"]:
        halves = "".join(f"|{cell(row[ms], 9, 3)}{cell(row[speedup], 10)}{row[ms] / row['paper_ms'] - 1:>+7.0%}  "
                         for ms, speedup in (("ms", "speedup"), ("ms_repeating", "speedup_repeating")))
        lines.append(f"  {row['links']:>6}{row['processes']:>10} |{cell(row['paper_ms'], 9, 3)}"
                     f"{cell(row['paper_speedup'], 10)}  {halves}")
    at = {(row["links"], row["processes"]): row for row in found["rows"]}
    lines += ["Uneven shares beside even ones on 4, time saved:"]
    lines += [f"  {n:>6} links: paper {_saved(at, n, 'paper_ms'):.1%}, predicted {_saved(at, n, 'ms'):.1%}, with work "
              f"repeated {_saved(at, n, 'ms_repeating'):.1%}" for n in LINKS if (n, "4*") in at]
    return lines


def _saved(at: dict, links: int, key: str) -> float:
    """Part of the time of row 4 that row 4* saves."""
    return 1.0 - at[links, "4*"][key] / at[links, "4"][key]


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
            for n in LINKS:
                axes.plot(*zip(*((int(row["processes"]), row["speedup_repeating"])
                                 for row in result["paper_costs"]["rows"]
                                 if row["links"] == n and row["processes"].isdigit()), strict=True),
                          "d:", color=COLOURS[n], markersize=4, label=f"{n}, predicted at the paper's costs")
        axes.plot([], [], "+", color="#8a94a0", label=f"{CHOSEN}, predicted")
        axes.legend(fontsize=6)
        axes.set_title(f"{', '.join(str(n * factor) for n in LINKS)} links", fontsize="medium")
    plots[0].set_ylabel("speed-up over one")
    page.savefig(path)
    return path
