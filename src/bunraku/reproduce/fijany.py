"""The comparison of [F]: operations to form a mass matrix, serially and on processor arrays; published and counted.

The counts are of our own code, run on numbers that count (`bunraku.massmatrix`). The paper prints totals only; `STEPS`
are the operations that make them up, term by term, and how often we do each. [F]: A. Fijany, N91-22320 (1991).
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bunraku as bk
from bunraku.massmatrix import parallel_run
from bunraku.reproduce.page import finish, two_plots

SERIAL = ("oke", "vke", "oneb", "vneb", "ocrb", "vcrb")
NAMES = {"oke": "OKE", "vke": "VKE", "oneb": "ON-EB", "vneb": "VN-EB", "ocrb": "OCR-B", "vcrb": "VCR-B"}
LAYOUTS = {"1": "SA", "n^2": "PA", "n": "PPA"}
N = 6
WIDTH = 110      # columns of the page
GLUE = "\N{NO-BREAK SPACE}"

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
    "The paper's general formula of VCR-B gives 674 multiplications at n = 6, not its own 644; its steps are 221/2 n, "
    "not 231/2 n.",
    "The paper's speed-ups of VCR-B, 2.40 and 2.32, are 2.37 and 2.28 by its own counts.",
)


@dataclass
class Options:
    """Largest sizes to count."""

    sizes: tuple[int, ...] = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)

    @classmethod
    def quick(cls):
        return cls(sizes=(2, 4, 6, 8, 12, 16))


def nothing(what: str) -> None:
    """Progress callback that does nothing."""


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
            "steps": {f"{NAMES[method]} {LAYOUTS[p]}": steps(method, p) for method, p in PAPER},
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


class Term(NamedTuple):
    """Operations of one kind: their cost, and their number in the paper and in our code."""

    what: str
    mul: int
    add: int
    paper: Callable[[int, int], int]     # of n and L = ceil log2 n
    ours: Callable[[int, int], int]


def same(what: str, mul: int, add: int, times: Callable[[int, int], int]) -> Term:
    return Term(what, mul, add, times, times)


def once(n: int, L: int) -> int:
    return 1


def never(n: int, L: int) -> int:
    return 0


def steps(method: str, processors: str, n: int = N) -> list[dict]:
    """Terms of the two totals. Ours must add up to the counted total; the last line is the excess of the paper's totals
    over their terms."""
    L = math.ceil(math.log2(n))
    terms = TERMS[method, processors]
    ours = tuple(sum(getattr(t, part) * t.ours(n, L) for t in terms) for part in ("mul", "add"))
    counted = counts(method, n, processors)
    if ours != tuple(counted):
        raise ArithmeticError(f"{method} on {processors} processors: the steps are {ours}, counted were {counted}")
    lines = [{"what": t.what, "mul": t.mul, "add": t.add, "paper": t.paper(n, L), "ours": t.ours(n, L)} for t in terms]
    left = [PAPER[method, processors]["six"][k] - sum(getattr(t, part) * t.paper(N, math.ceil(math.log2(N)))
                                                      for t in terms) for k, part in enumerate(("mul", "add"))]
    if any(left):
        lines.append({"what": "printed, in no step of the listing", "mul": left[0], "add": left[1],
                      "paper": 1, "ours": 0})
    return lines


TERMS: dict[tuple[str, str], tuple[Term, ...]] = {
    ("vcrb", "1"): (
        Term("R(j, j+1), needed for 5 joints; in the paper's total as on an array, once", 4, 0, once,
             lambda n, L: n - 1),
        same("R(1, j+1) = R(1, j) R(j, j+1)", 27, 18, lambda n, L: n - 2),
        same("P(j+1, j) in the fixed frame", 9, 6, lambda n, L: n - 1),
        same("f(i) and n(i) in the fixed frame", 18, 12, lambda n, L: n - 1),
        same("H(i), K(i) from those of i+1; K symmetric", 21, 33, lambda n, L: n - 1),
        same("H, K from frame i+1 to frame i; R with one zero, K symmetric", 47, 29, lambda n, L: n - 2),
        Term("h(n), k(n) from the last body's frame to frame n, a turn about z; not in the paper's total", 12, 10,
             never, once),
        Term("a_11 = Z . K Z with Z = (0, sin, cos): three times 2 m 1 a, in the paper's total two", 2, 1,
             lambda n, L: 2, lambda n, L: 3),
        same("n(j) = n(j+1) + P x f, a_ji = Z . n", 9, 8, lambda n, L: (n - 1) * (n - 2) // 2),
        same("the same on the first axis, (0, 0, 1)", 2, 2, lambda n, L: n - 1),
    ),
    ("vneb", "1"): (
        Term("R(j+1, j), needed for 6 joints; in the paper's total as on an array, once", 4, 0, once, lambda n, L: n),
        same("R(n+1, j) = R(n+1, j+1) R(j+1, j)", 27, 18, lambda n, L: n - 1),
        same("P(j+1, j) and h(j) in the last frame", 18, 12, lambda n, L: n - 1),
        same("k(j) in the last frame, two products of matrices", 54, 36, lambda n, L: n - 1),
        same("V', F, N of a body beyond joint j, sums, Z . N", 39, 38, lambda n, L: n * (n - 1) // 2),
        same("F, N of body j itself, Z . N", 18, 11, lambda n, L: n),
        Term("V'(j, j) = 0, nothing to add to; the last column has no such sum", 0, -3, lambda n, L: n,
             lambda n, L: n - 1),
    ),
    ("vcrb", "n^2"): (
        same("R(j, j+1)", 4, 0, once),
        same("R(1, j+1) doubled", 27, 18, lambda n, L: L),
        same("P(j+1, j) and h(j) in the first frame", 18, 12, once),
        same("k(j) in the first frame, two products of matrices", 54, 36, once),
        same("H, K, P of composite bodies doubled", 21, 42, lambda n, L: L),
        Term("P(j, i) doubled", 0, 3, lambda n, L: L, lambda n, L: (n - 2).bit_length()),  # n - 1 arms
        same("f(j), n(j)", 15, 9, once),
        same("n + P x f, Z . n", 9, 8, once),
    ),
    ("vneb", "n^2"): (
        same("R(j+1, j)", 4, 0, once),
        same("R(n+1, j) doubled", 27, 18, lambda n, L: L),
        same("P(j+1, j) and h(j) in the last frame", 18, 12, once),
        same("k(j) in the last frame, two products of matrices", 54, 36, once),
        same("P(n+1, j) doubled", 0, 3, lambda n, L: L),
        Term("P(j, i) = P(n+1, i) - P(n+1, j)", 0, 3, never, once),
        same("V, F, N of a body", 30, 21, once),
        same("F, N and P x F doubled", 6, 12, lambda n, L: L),
        same("Z . N", 3, 2, once),
    ),
    ("vcrb", "n"): (
        same("R(j, j+1)", 4, 0, once),
        Term("R(1, j+1) doubled; the paper's constants leave room for one product less", 27, 18, lambda n, L: L - 1,
             lambda n, L: L),
        same("P(j+1, j) and h(j) in the first frame", 18, 12, once),
        same("k(j) in the first frame, two products of matrices", 54, 36, once),
        same("H, K, P of composite bodies doubled", 21, 42, lambda n, L: L),
        same("f(i), n(i), a_ii", 18, 11, once),
        same("n + P x f, Z . n", 9, 8, lambda n, L: n - 1),
    ),
    ("vneb", "n"): (
        same("R(j+1, j)", 4, 0, once),
        Term("R(n+1, j) doubled; the paper's constants leave room for one product less", 27, 18, lambda n, L: L - 1,
             lambda n, L: L),
        same("P(j+1, j) and h(j) in the last frame", 18, 12, once),
        same("k(j) in the last frame, two products of matrices", 54, 36, once),
        same("F, N of body i itself; its axis is (0, 0, 1) for the last", 15, 9, once),
        same("V', F, N of a body beyond joint i", 30, 24, lambda n, L: n - 1),
        same("V'(i, i) = 0, nothing to add to", 0, -3, once),
        same("sums, Z . N", 9, 14, lambda n, L: n - 1),
    ),
}


def _curves(sizes) -> dict:
    cases: list[tuple[str, str]] = [(method, "1") for method in SERIAL] + [key for key in PAPER if key[1] != "1"]
    return {"n": list(sizes), **{f"{method} {processors}": [list(counts(method, n, processors)) for n in sizes]
                                 for method, processors in cases}}


# -- for people ------------------------------------------------------------------------------------------------------


def text(result: dict) -> str:
    """The result as a page."""
    n = result["n"]
    lines = [f"Mass matrix of a chain of n revolute joints: multiplications + additions at n = {n}", "",
             f"  {'':<14}{'paper':>12}{'counted':>14}      speed-up:{'paper':>7}{'counted':>9}"]
    for row in result["table"]:
        speedup = f"{'':15}{row['paper_speedup']:7.2f}{row['speedup']:9.2f}" if "speedup" in row else ""
        lines.append(f"  {_name(row)}{_pair(row['paper']):>12}{_pair(row['counted']):>14}{speedup}")
    lines += [f"  {_name(row)}{'':>12}{_pair(row['counted']):>14}" for row in result["others"]]
    lines += ["", "  SA one processor, PA n (n + 1) / 2, PPA n of them; speed-up over VCR-B on one.",
              "  KE Kane's equation, N-EB Newton-Euler based, CR-B composite rigid bodies; O original, V variant.", "",
              "For any n, L = ceil(log2 n)"]
    for row in [*result["table"], *result["others"]]:
        for who, key in (("counted", "general"), ("paper", "paper_general")):
            if key in row:
                m, a = (_formula(row[key], k) for k in range(2))
                lines.append(f"  {_name(row) if who == 'counted' else '':<14}{who:<9}m {m:<36}a {a}")
    lines += ["", *_wrapped("Naive projection on body frames: " + ", ".join(
                  f"{NAMES[method]} {_pair(pair)}" for method, pair in result["naive_projection"].items())
              + "; O(n^2) rotations, so dearer from n = 8 on."),
              *(line for slip in result["slips"] for line in _wrapped(slip)), "",
              f"Steps of communication at n = {n}",
              f"  {'':<14}{'shuffle-exchange and nearest neighbour':>38}{'nearest neighbour alone':>26}"]
    lines += [f"  {_name(row)}{row['messages']['exchange']:>38}{row['messages']['neighbour']:>26}"
              for row in result["table"] if "messages" in row]
    lines += ["", f"What the totals are made of at n = {n}: what a step costs, how often the paper has it, and how "
              "often we.", "The paper prints totals only; its steps are those that add up to them."]
    for title, terms in result["steps"].items():
        lines += ["", f"  {title:<16} paper ours"]
        for t in terms:
            apart = [(t["ours"] - t["paper"]) * t[part] for part in ("mul", "add")]
            what = t["what"] + (f"  ({apart[0]:+d}{GLUE}m{GLUE}{apart[1]:+d}{GLUE}a)" if any(apart) else "")
            lines += _wrapped(what, f"    {t['mul']:>4} m{t['add']:>4} a  {t['paper']:>4} {t['ours']:>4}   ")
    return "\n".join(lines)


def _name(row) -> str:
    return f"{LAYOUTS[row.get('processors', '1')]:<5}{NAMES[row['method']]:<9}"


def _wrapped(what: str, before: str = "  ") -> list[str]:
    lines = textwrap.wrap(what, WIDTH, initial_indent=before, subsequent_indent=" " * len(before),
                          break_long_words=False, break_on_hyphens=False)
    return [line.replace(GLUE, " ") for line in lines]


def _pair(pair) -> str:
    return f"{pair[0]} + {pair[1]}"


def _formula(general: dict, k: int) -> str:
    """How many multiplications (k = 0) or additions (1), by n: "9/2 n^2 + 88 n - 126"."""
    names = {"n^3": "n^3", "n^2": "n^2", "n": "n", "log": "L", "1": ""}
    words = ""
    for key, pair in general.items():
        value = Fraction(pair[k]).limit_denominator(12)
        factor = "" if abs(value) == 1 and names[key] else str(abs(value))
        words += f"{' - ' if value < 0 else ' + '}{f'{factor} {names[key]}'.strip()}" if value else ""
    return words.removeprefix(" + ")


def picture(result: dict, path: Path, drawing) -> Path:
    """Cost over the number of joints, serial and parallel. `drawing`: Matplotlib's figure and canvas."""
    page, (left, right) = two_plots(drawing, 4.2, sharey=True)
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
    left.set(title="one processor (SA)", xlabel="joints", ylabel="operations, one after the other")
    right.set(title="n (PPA) and n (n + 1) / 2 (PA) processors; stars: paper", xlabel="joints")
    return finish(page, (left, right), [n for n in (2, 4, 8, 16, 32, 64) if n <= max(curves["n"])], path)
