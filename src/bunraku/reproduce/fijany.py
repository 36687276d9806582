"""The comparison of [F]: what it costs to form a mass matrix, serially and on processor arrays; paper beside counted.

The counts are of our own code, run on numbers that count (`bunraku.massmatrix`); the paper prints totals only. Where
they differ, `differences` says line by line which operations, next to the table. [F]: A. Fijany, N91-22320 (1991).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import bunraku as bk
from bunraku.massmatrix import count_lines, parallel_run

SERIAL = ("oke", "vke", "oneb", "vneb", "ocrb", "vcrb")
NAMES = {"oke": "OKE", "vke": "VKE", "oneb": "ON-EB", "vneb": "VN-EB", "ocrb": "OCR-B", "vcrb": "VCR-B"}
LAYOUTS = {"1": "SA", "n^2": "PA", "n": "PPA"}
N = 6

# The paper's last table: (multiplications, additions) at n = 6, and per n^2, n, ceil(log2 n) and 1
PAPER: dict[tuple[str, str], dict] = {
    ("vcrb", "1"): {"six": (644, 535), "general": {"n^2": (4.5, 4), "n": (115.5, 88), "1": (-181, -137)}},
    ("vneb", "1"): {"six": (1192, 948), "general": {"n^2": (19.5, 19), "n": (97.5, 55), "1": (-95, -66)}},
    ("vcrb", "n^2"): {"six": (244, 254), "general": {"log": (48, 63), "1": (100, 65)}, "speedup": 2.40},
    ("vneb", "n^2"): {"six": (208, 188), "general": {"log": (33, 33), "1": (109, 89)}, "speedup": 2.98},
    ("vcrb", "n"): {"six": (256, 261), "general": {"n": (9, 8), "log": (48, 63), "1": (58, 24)}, "speedup": 2.32},
    ("vneb", "n"): {"six": (340, 280), "general": {"n": (39, 38), "log": (27, 18), "1": (25, -2)}, "speedup": 1.90},
}
SLIPS = (
    "The paper's general formula of VCR-B gives 674 multiplications at n = 6, not its own 644; 221/2 for 231/2 would.",
    "The paper's speed-ups of VCR-B, 2.40 and 2.32, are 2.37 and 2.28 by its own counts.",
)


@dataclass
class Options:
    """How far to go."""

    sizes: tuple[int, ...] = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)

    @classmethod
    def quick(cls):
        return cls(sizes=(2, 4, 6, 8, 12, 16))


def nothing(what: str) -> None:
    """Progress that nobody watches."""


def run(options: Options | None = None, progress: Callable[[str], None] = nothing) -> dict:
    """Everything, as plain numbers."""
    options = options or Options()
    progress("counting at n = 6")
    rows = [_row(method, processors) for method, processors in PAPER]
    others = [_row(method, "1") for method in SERIAL if (method, "1") not in PAPER]
    naive = {method: bk.operation_count(method, N, projection="body") for method in ("vneb", "vcrb")}
    progress("cost over n")
    return {"n": N, "table": rows, "others": others, "slips": list(SLIPS),
            "naive_projection": {method: list(counted) for method, counted in naive.items()},
            "lines": {method: [{"file": file, "line": line, "mul": c.mul, "add": c.add}
                               for file, line, c in count_lines(method, N)] for method in ("vcrb", "vneb")},
            "differences": {f"{NAMES[method]} {LAYOUTS[p]}": differences(method, p) for method, p in PAPER},
            "curves": _curves(options.sizes)}


def _row(method: str, processors: str) -> dict:
    counted, formula = counts(method, N, processors), general(method, processors)
    row: dict[str, Any] = {"method": method, "processors": processors, "counted": list(counted),
                           "general": {key: [float(x) for x in pair] for key, pair in formula.items()}}
    if processors != "1":
        array = parallel_run(method, N, processors)
        best = sum(counts("vcrb", N, "1"))
        row |= {"messages": array.messages, "number_of_processors": array.processors,
                "speedup": best / sum(counted), "steps": [step._asdict() for step in array.steps]}
    if (method, processors) in PAPER:
        paper = PAPER[method, processors]
        row |= {"paper": list(paper["six"]), "paper_general": {k: list(v) for k, v in paper["general"].items()}}
        if "speedup" in paper:
            row["paper_speedup"] = paper["speedup"]
    return row


def counts(method: str, n: int, processors: str) -> tuple[int, int]:
    return bk.operation_count(method, n, 1 if processors == "1" else processors)


def general(method: str, processors: str) -> dict[str, tuple]:
    """The counts as a formula in n, found from as many sizes as it has terms and checked on further ones."""
    terms = {"n^3": lambda n: n**3, "n^2": lambda n: n * n, "n": lambda n: n,
             "log": lambda n: math.ceil(math.log2(n)), "1": lambda n: 1}
    names = {"1": ("n^2", "n", "1"), "n^2": ("log", "1"), "n": ("n", "log", "1")}[processors]
    sizes = {"1": (4, 6, 8, 9), "n^2": (6, 12, 24), "n": (6, 8, 12, 24)}[processors]
    if method == "oke":
        names, sizes = ("n^3", *names), (4, 5, 6, 8, 9)
    found = np.array([counts(method, n, processors) for n in sizes], float)
    system = np.array([[terms[name](n) for name in names] for n in sizes], float)
    solution = np.linalg.lstsq(system, found, rcond=None)[0]
    if np.abs(system @ solution - found).max() > 1e-6:
        raise ArithmeticError(f"the count of {method} on {processors} processors is no formula in {', '.join(names)}")
    return {name: tuple(Fraction(x).limit_denominator(12) for x in row)
            for name, row in zip(names, solution, strict=True)}


def differences(method: str, processors: str) -> list[dict]:
    """Where the paper's count at n = 6 and ours part: the operations, and how many of each the paper has more.

    The paper prints no count by line. What is listed is what its way of writing things costs more than ours; the last
    line is what then remains without explanation.
    """
    lines: list[dict] = [{"why": why, "mul": m, "add": a} for why, m, a in _REASONS[method, processors]]
    paper, own = PAPER[method, processors]["six"], counts(method, N, processors)
    left = [paper[k] - own[k] - sum(line[part] for line in lines) for k, part in enumerate(("mul", "add"))]
    return [*lines, {"why": "not explained by the printed totals", "mul": left[0], "add": left[1]}]


# At n = 6: the paper's likely way minus ours. A 3x3 product is 27 m 18 a in the paper's own parallel formulas, so it
# takes rotations as matrices; here a step from frame to frame is two plane turns (24 m 12 a; a symmetric matrix 16 m
# 15 a). R has one zero element: R H 8 m 5 a, R K R^T 39 m 24 a; without use of it 9 m 6 a and 45 m 30 a.
_REASONS: dict[tuple[str, str], list[tuple[str, int, int]]] = {
    ("vcrb", "1"): [
        ("rotations to the fixed frame: 5 of 4 m and 4 products of 27 m 18 a; here plane turns, the first constant",
         46, 32),
        ("P(j+1, j) in the fixed frame: 5 of 9 m 6 a; here the first is a constant", 9, 6),
        ("f(i), n(i) in the fixed frame: 5 of 15 m 9 a; here the first by one turn", 9, 7),
        ("step 2, 15 pairs of 9 m 8 a; here a_1i on the axis (0, 0, 1) of the fixed frame is 2 m 2 a", 35, 30),
        ("H(i), K(i): 5 shifts of 9 m 21 a; here only three elements of the first K", 4, 12),
        ("H(i), K(i) from frame to frame by matrices: 5 of 47 m 29 a; here by plane turns", 129, 61),
    ],
    ("vneb", "1"): [
        ("rotations to the fixed frame: 5 of 4 m, 4 products of 27 m 18 a, one axis; here plane turns", 44, 32),
        ("P(j+1, j) in the fixed frame: 5 of 9 m 6 a; here the last by one turn", 6, 4),
        ("h(j) in the fixed frame: 5 of 9 m 6 a; here the last by one turn", 6, 4),
        ("k(j) in the fixed frame: 5 of 45 m 30 a; here two rows and the trace, 33 m 24 a, the last by one turn",
         85, 48),
        ("sums and products of columns: bodies on their own joint 24 m 23 a; here without F, which no joint feels, and "
         "with the last axis (0, 0, 1)", 69, 66),
    ],
    ("vneb", "n^2"): [
        ("step 2.2c: k(j) turned to the last frame first, 54 m 36 a for k Z; the listing turns Z instead, 27 m 18 a",
         27, 18),
        ("step 3.3: P x F in each of 3 doublings, 6 m 6 a; the listing has it once before them (3.3a)", 18, 18),
    ],
    ("vcrb", "n^2"): [
        ("composite bodies, in each of 3 doublings: 21 m 45 a with P; here 12 m 33 a, products of P and H shared",
         27, 36),
        ("k(j) to the first frame by a product, 45 m 30 a; here two rows and the trace, 33 m 24 a", 12, 6),
    ],
    ("vneb", "n"): [
        ("the paper's 25 m are R (4), P (9), S (9), H (3): none for k(j) in the last frame, here 33 m 24 a", -33, -24),
    ],
    ("vcrb", "n"): [
        ("composite bodies, in each of 3 doublings: 21 m 45 a with P; here 12 m 30 a, products of P and H shared",
         27, 45),
    ],
}


def _curves(sizes) -> dict:
    cases: list[tuple[str, str]] = [(method, "1") for method in SERIAL] + [key for key in PAPER if key[1] != "1"]
    return {"n": list(sizes), **{f"{method} {processors}": [list(counts(method, n, processors)) for n in sizes]
                                 for method, processors in cases}}


# -- for people ------------------------------------------------------------------------------------------------------


def text(result: dict) -> str:
    """The result as a page."""
    lines = [f"Mass matrix of a chain of n revolute joints: multiplications and additions, n = {result['n']}", "",
             f"  {'':<14}{'paper':>12}{'counted':>14}{'paper':>9}{'counted':>9}   "
             f"{'counted, general n (L = ceil log2 n)'}",
             f"  {'':<14}{'m + a':>12}{'m + a':>14}{'speed-up':>18}"]
    for row in result["table"]:
        speedup = (f"{row['paper_speedup']:9.2f}{row['speedup']:9.2f}" if "speedup" in row else " " * 18)
        lines.append(f"  {LAYOUTS[row['processors']]:<5}{NAMES[row['method']]:<9}{_pair(row['paper']):>12}"
                     f"{_pair(row['counted']):>14}{speedup}   {_formula(row['general'])}")
        lines.append(f"  {'':<58}{'paper: ' + _formula(row['paper_general'])}")
    for row in result["others"]:
        lines.append(f"  {'SA':<5}{NAMES[row['method']]:<9}{'':>12}{_pair(row['counted']):>14}{'':>18}   "
                     f"{_formula(row['general'])}")
    lines += ["", "  SA one processor, PA n (n + 1) / 2, PPA n; speed-up over serial VCR-B.",
              "  Naive projection on body frames: " + ", ".join(
                  f"{NAMES[method]} {_pair(pair)}" for method, pair in result["naive_projection"].items()),
              *(f"  {slip}" for slip in result["slips"]), "",
              "Steps of communication at n = 6: shuffle-exchange with nearest neighbour, nearest neighbour alone"]
    lines += [f"  {LAYOUTS[row['processors']]:<5}{NAMES[row['method']]:<9}{row['messages']['exchange']:>6}"
              f"{row['messages']['neighbour']:>6}" for row in result["table"] if "messages" in row]
    lines += ["", "Paper minus counted at n = 6, line by line"]
    for title, reasons in result["differences"].items():
        lines += [f"  {title}"] + [f"    {r['mul']:>5} m{r['add']:>5} a  {r['why']}" for r in reasons]
    lines += ["", "What is counted, by line of source"]
    for method, counted in result["lines"].items():
        lines += [f"  {NAMES[method]}"] + [f"    {c['mul']:>5} m{c['add']:>5} a  {c['line']}" for c in counted]
    return "\n".join(lines)


def _pair(pair) -> str:
    return f"{pair[0]} + {pair[1]}"


def _formula(general: dict) -> str:
    names = {"n^3": " n^3", "n^2": " n^2", "n": " n", "log": " L", "1": ""}
    parts = []
    for k, unit in enumerate("ma"):
        terms = [(Fraction(pair[k]).limit_denominator(12), names[key]) for key, pair in general.items() if pair[k]]
        words = "".join(f"{' - ' if value < 0 else ' + '}{abs(value)}{name}" for value, name in terms)
        parts.append(words.removeprefix(" + ") + f" {unit}")
    return "; ".join(parts)


def picture(result: dict, path: Path, drawing) -> Path:
    """Cost over the number of joints, serial and parallel. `drawing`: Matplotlib's figure and canvas."""
    page_type, canvas = drawing
    page = page_type(figsize=(9.0, 4.2), dpi=160, layout="constrained")
    canvas(page)
    left, right = page.subplots(1, 2, sharey=True)
    curves = result["curves"]
    colours = {"oke": "#39424e", "vke": "#8a94a0", "oneb": "#b58a2f", "vneb": "#d1603d", "ocrb": "#6f9f4f",
               "vcrb": "#2f7f86"}
    for method in SERIAL:
        total = np.sum(curves[f"{method} 1"], axis=1)
        left.loglog(curves["n"], total, "o-", markersize=3, color=colours[method], label=NAMES[method])
    for (method, processors), style in zip(PAPER, ("-", "-", "--", "--", ":", ":"), strict=True):
        total = np.sum(curves[f"{method} {processors}"], axis=1)
        right.loglog(curves["n"], total, style, color=colours[method],
                     label=f"{LAYOUTS[processors]} {NAMES[method]}")
        paper = PAPER[method, processors]["six"]
        right.plot([N], [sum(paper)], "*", color=colours[method])
    left.set(title="one processor", xlabel="joints", ylabel="operations, one after the other")
    right.set(title="processor arrays (stars: paper, n = 6)", xlabel="joints")
    ticks = [n for n in (2, 4, 8, 16, 32, 64) if n <= max(curves["n"])]
    for axes in (left, right):
        axes.set_xticks(ticks, [str(n) for n in ticks])
        axes.tick_params(axis="x", which="minor", labelbottom=False)
        axes.grid(True, which="both", linewidth=0.3)
        axes.legend(fontsize=8)
    page.savefig(path)
    return path
