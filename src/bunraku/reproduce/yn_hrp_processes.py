"""[YN-HRP, table 1 and fig. 3]: figures of 34 and 48 degrees of freedom on 1, 2 and 4 processes; chains of 8 to 32
links.

Measured on the threads at hand, predicted on idle cores of this machine; and predicted at the costs of the paper's
cluster (Alpha 21264, 500 MHz, Myrinet), where an evaluation takes ten thousand times as long and two threads say
nothing. There, as in the paper's algorithm, joining two subchains costs what adding a joint costs, and

    fitted      time of a joint: to the row of one process
    fitted      the loss: to the row of two. Either `message`, seconds for each, as the paper explains it; or
                `repeated`, the share of the work that every process does, with messages that take no time. Six
                numbers do not tell them apart.

The row of four processes is predicted. The paper prints no numbers with fig. 3, only what it shows: with as many
processes as there can be, time grows less with the number of links.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar

import bunraku as bk
from bunraku.reproduce.speedups import cell, forward, heading, idle_costs, line, told, warning
from bunraku.scheduling import Costs

TABLE = {34: {1: 10.8, 2: 8.50, 4: 7.84}, 48: {1: 15.1, 2: 10.9, 4: 9.68}}  # [ms], by degrees of freedom and processes
LINKS = (8, 16, 32)
PROCESSES = (1, 2, 4, 8, 16)   # of fig. 3, with two links each at least
LONGEST, NEARLY = 2e-3, 2e-5  # [s] a message, and how exactly its time is fitted


def run(rounds: int) -> dict:
    """Table 1 and fig. 3, as plain numbers."""
    costs = idle_costs()
    figures, chains = {dof: bk.models.human(dof) for dof in TABLE}, {n: _chain(n) for n in LINKS}
    table = [row for dof, m in figures.items()
             for row in _measured({"dof": dof}, m, _figure_schedules(m, costs), TABLE[dof], rounds)]
    chain = [row for n, m in chains.items()
             for row in _measured({"links": n}, m, _chain_schedules(m, n, costs), {}, rounds)]
    return {"table": table, "chains": chain, "paper_costs": at_paper_costs(), "costs": costs.to_dict()}


def _chain(links: int) -> bk.Mechanism:
    return bk.models.chain(links, joint="spherical")


def _figure_schedules(m: bk.Mechanism, costs: Costs) -> dict[int, bk.Schedule]:
    return {p: bk.schedule(m, p, exactly=True, costs=costs) for p in (1, 2, 4)}


def _chain_schedules(m: bk.Mechanism, links: int, costs: Costs) -> dict[int, bk.Schedule]:
    """Links distributed evenly."""
    found = {1: bk.schedule(m, 1, costs=costs)}
    for p in PROCESSES[1:]:
        if links // p >= 2:
            found[p] = bk.Schedule(m, cuts=[f"link{k}" for k in range(links // p, links, links // p)], costs=costs)
    return found


def _measured(names: dict, m: bk.Mechanism, schedules: dict[int, bk.Schedule], paper: dict, rounds: int) -> list[dict]:
    times = forward(m, {str(p): s for p, s in schedules.items()}, rounds)
    rows = []
    for p, s in schedules.items():
        own = times.get("serial" if p == 1 else str(p))
        rows.append({**names, "processes": p, "paper_ms": paper.get(p),
                     "paper_speedup": paper[1] / paper[p] if paper else None,
                     "measured_us": own and own["us"], "measured_speedup": own and own["speedup"],
                     "ceiling": times["copies"]["speedup"] if p == 2 else None, "predicted_us": s.predicted_time * 1e6,
                     "predicted_speedup": schedules[1].predicted_time / s.predicted_time})
    return rows


# -- the paper's cluster ---------------------------------------------------------------------------------------------


def paper_costs(scale: float, message: float) -> Costs:
    """Costs of the paper's algorithm: joints as dear as here times `scale`, a join as dear as a ball joint, nothing to
    begin a chunk; `message` seconds for every message."""
    here = Costs()
    _, inward, outward, _ = (scale * x for x in here.of("spherical"))
    return replace(here, bodies={kind: tuple(scale * x for x in passes) for kind, passes in here.bodies.items()},
                   join=inward, join_far=here.far * inward, add=0.0, split=outward, chunk=0.0, row=scale * here.row,
                   latency=message, per_float=0.0, source="paper")


def at_paper_costs() -> dict:
    """Table 1 and fig. 3 on the paper's cluster, with the loss as messages and as work that is repeated."""
    figures = {dof: bk.models.human(dof) for dof in TABLE}
    alone = {dof: bk.schedule(m, 1, costs=paper_costs(1.0, 0.0)).predicted_time for dof, m in figures.items()}
    scale = float(np.exp(np.mean([np.log(1e-3 * TABLE[dof][1] / t) for dof, t in alone.items()])))

    def figure(dof, message):
        found = _figure_schedules(figures[dof], paper_costs(scale, message))
        return {p: 1e3 * s.predicted_time for p, s in found.items()}

    def off(message):  # of two processes
        times = {dof: bk.schedule(m, 2, exactly=True, costs=paper_costs(scale, message)).predicted_time
                 for dof, m in figures.items()}
        return max(abs(1e3 * t / TABLE[dof][2] - 1.0) for dof, t in times.items())

    message = float(minimize_scalar(off, bounds=(0.0, LONGEST), method="bounded", options={"xatol": NEARLY}).x)
    plain, slow = ({dof: figure(dof, x) for dof in TABLE} for x in (0.0, message))
    share = float(np.mean([(TABLE[dof][2] - t[2]) / (t[1] - t[2]) for dof, t in plain.items()]))
    rows = [{"dof": dof, "processes": p, "paper_ms": TABLE[dof][p], "ms": slow[dof][p],
             "ms_repeating": share * plain[dof][1] + (1.0 - share) * plain[dof][p]}
            for dof in TABLE for p in TABLE[dof]]
    chains = []
    for n in LINKS:
        m = _chain(n)
        plain_n, slow_n = ({p: 1e3 * float(s.predicted_time) for p, s in
                            _chain_schedules(m, n, paper_costs(scale, x)).items()} for x in (0.0, message))
        chains += [{"links": n, "processes": p, "ms": slow_n[p],
                    "ms_repeating": share * plain_n[1] + (1.0 - share) * plain_n[p]} for p in plain_n]
    return {"joint_ms": 1e3 * scale * sum(Costs().of("spherical")[:3]), "message_ms": 1e3 * message, "repeated": share,
            "rows": rows, "chains": chains}


# -- for people ------------------------------------------------------------------------------------------------------


def text(result: dict) -> list[str]:
    """Lines of the page."""
    lines = ["Figures in free flight on several processes [YN-HRP, table 1]",
             "measured: threads, in compiled loops; -: more workers than cores. Ceiling: two serial runs at once.",
             "predicted: on idle cores, with the costs of single operations.",
             *heading(f"  {'DOF':>4}{'processes':>10}")]
    lines += [line(f"  {row['dof']:>4}{row['processes']:>10}", row) for row in result["table"]]
    lines += ["", "Chains of ball joints, links distributed evenly [YN-HRP, fig. 3; no numbers in print]",
              *heading(f"  {'links':>6}{'processes':>10}")]
    lines += [line(f"  {row['links']:>6}{row['processes']:>10}", row) for row in result["chains"]]
    lines += ["", *_at_paper_costs(result["paper_costs"]), "", told(result["costs"]),
              *warning(min(row["ceiling"] for row in [*result["table"], *result["chains"]] if row["ceiling"]))]
    return lines


def _at_paper_costs(found: dict) -> list[str]:
    losses = (("ms", f"{found['message_ms']:.2f} ms a message"), ("ms_repeating", f"{found['repeated']:.0%} repeated"))
    lines = ["The same at the costs of the paper's cluster (Alpha 21264 500 MHz, Myrinet), predicted",
             f"fitted to one process: {found['joint_ms']:.2f} ms a ball joint. Fitted to two: the loss, as time of "
             "messages or as work repeated by every process.",
             f"  {'':>4}{'processes':>10} |{'the paper, ms':>15} |" + "".join(f"{name:>24} |" for _, name in losses)]
    for row in found["rows"]:
        cells = "".join(f"{row[key]:17.2f}{row[key] / row['paper_ms'] - 1:>+7.0%} |" for key, _ in losses)
        lines.append(f"  {row['dof']:>4}{row['processes']:>10} |{row['paper_ms']:15.2f} |{cells}")
    processes = sorted({row["processes"] for row in found["chains"]})
    for key, name in losses:
        lines += ["", f"  fig. 3, ms; {name}",
                  f"  {'links':>6} |" + "".join(f"{p:>9}" for p in processes) + "  processes"]
        at = {(row["links"], row["processes"]): row[key] for row in found["chains"]}
        lines += [f"  {n:>6} |" + "".join(cell(at.get((n, p)), 9) for p in processes) for n in LINKS]
        serial, most = ([at[n, p] for n, p in ((LINKS[0], few), (LINKS[-1], many))]
                        for few, many in ((1, 1), (LINKS[0] // 2, LINKS[-1] // 2)))
        lines.append(f"  from {LINKS[0]} to {LINKS[-1]} links: {serial[1] / serial[0]:.1f} times the time on one "
                     f"process, {most[1] / most[0]:.1f} times with a process for every two links")
    return lines


def picture(axes, result: dict) -> None:
    """Table 1 and fig. 3 at the paper's costs: time over processes."""
    found = result["paper_costs"]
    for (dof, colour) in ((34, "#2f7f86"), (48, "#d1603d")):
        own = [row for row in found["rows"] if row["dof"] == dof]
        p = [row["processes"] for row in own]
        axes.plot(p, [row["paper_ms"] for row in own], "*-", color=colour, label=f"{dof} DOF, [YN-HRP]")
        axes.plot(p, [row["ms"] for row in own], "o--", color=colour, markerfacecolor="white", label="predicted")
    for n, colour in zip(LINKS, ("#c9d1d9", "#8a94a0", "#39424e"), strict=True):
        own = [row for row in found["chains"] if row["links"] == n]
        axes.plot([row["processes"] for row in own], [row["ms"] for row in own], "s:", color=colour, markersize=4,
                  label=f"{n} links, predicted")
    axes.set(title="several processes, at the paper's costs", xlabel="processes", ylabel="forward dynamics [ms]",
             xscale="log", yscale="log", xticks=PROCESSES, xticklabels=[str(p) for p in PROCESSES])
    axes.tick_params(axis="x", which="minor", labelbottom=False)
    axes.title.set_fontsize("medium")
    axes.grid(True, which="both", linewidth=0.3)
    axes.legend(fontsize=7)
