"""The solver comparison of [J, sec. II]: mobiles swinging for 10 s, evaluations of the right-hand side a second.

Sessions A to D are tables IV to VII: longer chains, wider trees, larger elongations, more damping. Every solver runs
at five tolerances, relative and absolute alike; its best count stands in the table, runs that are unstable left out.

Where the paper is silent or contradicts itself we read:

elongation   the root joint alone is turned, the others are at zero.
unstable     the paper accepts large errors and drops only unstable solutions. Nothing drives a mobile, so its energy
             cannot rise: a run is unstable if its solver gives up, or if at any step the energy lies above that of the
             start by more than `RISE` of what the elongation gave. States at the end are not compared: wide trees and
             large elongations are chaotic, two accurate runs end apart.
Jacobians    the evaluations of difference Jacobians are counted, for everybody: the paper's counts of BDF grow with the
             number of joints for that reason.
steps        the Runge-Kutta methods control their steps as textbooks of the paper's time do: embedded pairs keep the
             error per unit of time below the tolerance, step doubling compares the whole with the two half steps as
             they are, both in the worst component. RKI then needs 70, 290, 529, 608, 934, 1155 where table IV has 90,
             301, 499, 680, 904, 1046; with the control of `bk.Simulation` it needs 24 to 81. What the best of the
             four needs with that control is shown too (RK*).
mobiles      the readings of `models/mobile.py`.

References of today: CVODE (the better of its Adams and BDF formulas, both with Newton's iteration and a difference
Jacobian, as scikit-sundae has it) and LSODA (SciPy), with the same tolerances and the same rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bunraku as bk
from bunraku.errors import ModelError, SimulationError
from bunraku.integrate.methods import METHODS
from bunraku.integrate.runge_kutta import Tableau

SECONDS = 10.0
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
RISE = 0.1            # of the energy that the elongation gave: see `unstable` above
ENOUGH = 2.0          # tighter tolerances are not tried once a run needs this many times the best
ELONGATION = 0.8      # [rad]
A, B, C, RHO = 0.2, 0.3, 0.2, 2.0  # of all mobiles
RUNGE_KUTTA = ("iec", "rki", "rkg", "rkf")
SOLVERS = (*RUNGE_KUTTA, "gear", "bdf")
REFERENCES = ("cvode", "lsoda")
MOST = 1.1            # times the larger of the paper's count and CVODE's

# [J, tables IV to VII]: row, then IEC, RKI, RKG, RKF, Gear, BDF
PAPER: dict[str, tuple[tuple[float, ...], ...]] = {
    "IV": ((2, 63.4, 90.0, 85.6, 58.8, 15.4, 27.1), (4, 108.2, 301.2, 109.6, 120.6, 34.1, 79.2),
           (6, 135.0, 498.6, 155.6, 165.0, 46.4, 108.6), (8, 179.8, 680.4, 168.4, 210.0, 64.7, 161.6),
           (10, 215.0, 903.6, 187.6, 252.6, 81.1, 229.2), (12, 234.4, 1046.1, 200.0, 296.4, 91.6, 203.3)),
    "V": ((3, 186.8, 784.8, 197.2, 211.2, 59.6, 395.4), (5, 189.6, 836.7, 195.2, 218.4, 61.3, 460.7),
          (7, 197.2, 820.5, 187.6, 217.2, 54.5, 437.5), (9, 245.6, 1137.6, 202.8, 280.2, 65.0, 1062.0),
          (11, 310.4, 1692.9, 271.2, 388.2, 85.2, 1584.1)),
    "VI": ((0.1, 125.8, 263.4, 108.8, 133.2, 44.5, 62.4), (0.5, 128.6, 438.0, 127.2, 160.8, 46.5, 79.1),
           (0.9, 171.4, 591.6, 174.8, 185.4, 50.6, 156.2), (1.3, 209.4, 963.0, 233.2, 237.0, 71.8, 266.8),
           (1.7, 214.2, 1189.2, 325.6, 298.2, 82.7, 361.7)),
    "VII": ((0.0, 158.0, 505.5, 157.2, 174.6, 48.1, 120.2), (2.5, 310.4, 318.0, 416.4, 380.4, 371.6, 27.3),
            (5.0, 582.2, 640.8, 985.2, 702.6, 766.5, 30.5), (7.5, 954.4, 946.8, 1557.2, 1026.6, 1227.7, 30.4),
            (10.0, 1110.0, 1260.9, 2040.0, 1369.2, 1609.0, 26.5)),
}
TITLES = {"IV": ("session A", "links of a chain"), "V": ("session B", "chains below the plateau"),
          "VI": ("session C", "elongation [rad]"), "VII": ("session D", "damping [N m s/rad]")}


def textbook(name: str) -> Tableau:
    """A Runge-Kutta method with the step control of the paper's time."""
    method = METHODS[name]
    assert isinstance(method, Tableau)
    if name in ("iec", "rkg"):  # the difference of one long and two short steps, as it is
        return method._replace(E=method.E * (2**method.order - 1), largest=True)
    return method._replace(largest=True, per_unit=True)


class Row(NamedTuple):
    """One line of a table: a mobile and its elongation."""

    table: str
    number: float
    paper: dict[str, float]
    mobile: bk.Mechanism
    elongation: float


def rows(tables=None, numbers=None) -> list[Row]:
    """The lines of the tables wanted; a ModelError for those that are not there."""
    unknown = [t for t in tables or () if t not in PAPER]
    if unknown:
        raise ModelError(f"table {unknown[0]} is not one of {', '.join(PAPER)}")
    found = [Row(table, line[0], dict(zip(SOLVERS, line[1:], strict=True)), *_mobile(table, line[0]))
             for table in tables or PAPER for line in PAPER[table] if numbers is None or line[0] in numbers]
    missing = [n for n in numbers or () if n not in {row.number for row in found}]
    if missing:
        there = "; ".join(f"{t}: {', '.join(f'{line[0]:g}' for line in PAPER[t])}" for t in tables or PAPER)
        raise ModelError(f"there is no row {missing[0]:g}; rows are {there}")
    return found


def _mobile(table: str, number: float) -> tuple[bk.Mechanism, float]:
    """The mobile of a row [J, table III] and its elongation."""
    if table == "IV":
        n = int(number)
        return bk.models.mobile(A, B, C, 10.0 / n, 1, n, None, None, RHO), ELONGATION
    if table == "V":
        return bk.models.mobile(A, B, C, 1.0, 2, 3, int(number), 3.0, RHO), ELONGATION
    damping = number if table == "VII" else 0.0
    return (bk.models.mobile(A, B, C, 1.0, 1, 4, None, None, RHO, damping=damping),
            number if table == "VI" else ELONGATION)


# -- runs ------------------------------------------------------------------------------------------------------------


class Swing:
    """A mobile that is let go at its elongation."""

    def __init__(self, row: Row):
        self.m, self.n = row.mobile, row.mobile.nv
        self.q, self.v = self.m.neutral(), np.zeros(self.n)
        rest = sum(self.m.energy(self.q, self.v))
        self.q[0] = row.elongation
        self.start = sum(self.m.energy(self.q, self.v))
        self.limit = self.start + RISE * (self.start - rest)

    def stable(self, q, v) -> bool:
        """Whether the energy never rises."""
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            return False
        kinetic, potential = self.m.energy(np.ascontiguousarray(q), np.ascontiguousarray(v))
        return bool(np.max(kinetic + potential) <= self.limit)

    def ours(self, solver: str | Tableau, tolerance: float) -> tuple[int, bool]:
        """(evaluations, stable)."""
        sim = bk.Simulation(self.m, self.q, self.v, solver, tolerance, tolerance, progress=False)
        try:
            path = sim.run(until=SECONDS)
        except SimulationError:
            return sim.stats.evaluations, False
        return sim.stats.evaluations, self.stable(path.q, path.v)

    def _rates(self):
        n, m, count = self.n, self.m, [0]

        def rates(t, y, out):
            count[0] += 1
            out[:n] = y[n:]
            out[n:] = bk.forward_dynamics(m, y[:n], y[n:])

        return rates, count, np.concatenate([self.q, self.v])

    def cvode(self, formulas: str, tolerance: float) -> tuple[int, bool]:
        from sksundae.cvode import CVODE

        rates, count, y0 = self._rates()
        solver = CVODE(rates, method=formulas, rtol=tolerance, atol=tolerance, max_num_steps=1_000_000)
        end = solver.solve(np.array([0.0, SECONDS]), y0)  # two times: every step is kept
        return count[0], bool(end.success) and self.stable(end.y[:, :self.n], end.y[:, self.n:])

    def lsoda(self, tolerance: float) -> tuple[int, bool]:
        from scipy.integrate import solve_ivp

        rates, count, y0 = self._rates()

        def f(t, y):
            out = np.empty(len(y))
            rates(t, y, out)
            return out

        end = solve_ivp(f, (0.0, SECONDS), y0, method="LSODA", rtol=tolerance, atol=tolerance)
        return count[0], bool(end.success) and self.stable(end.y[:self.n].T, end.y[self.n:].T)


def best(run: Callable[[float], tuple[int, bool]]) -> float | None:
    """Fewest evaluations a second of the stable runs over all tolerances; None if there is none."""
    least = math.inf
    for tolerance in TOLERANCES:
        evaluations, stable = run(tolerance)
        if stable:
            least = min(least, evaluations)
        if evaluations > ENOUGH * least:
            break
    return least / SECONDS if least < math.inf else None


def has_cvode() -> bool:
    try:
        import sksundae  # noqa: F401
    except ImportError:
        return False
    return True


def nothing(what: str) -> None:
    """Progress that nobody watches."""


def run(wanted: list[Row] | None = None, progress: Callable[[str], None] = nothing) -> dict:
    """The tables, what the best Runge-Kutta method needs with our own control, and the claims."""
    tables: dict[str, list[dict]] = {}
    own: dict[str, list[float | None]] = {}
    cvode = has_cvode()
    for row in wanted if wanted is not None else rows():
        progress(f"table {row.table}, {row.number:g}")
        swing = Swing(row)
        ours = {name: best(partial(swing.ours, textbook(name) if name in RUNGE_KUTTA else name)) for name in SOLVERS}
        theirs = [best(partial(swing.cvode, formulas)) for formulas in ("Adams", "BDF") if cvode]
        references = {"cvode": least(theirs), "lsoda": best(swing.lsoda)}
        tables.setdefault(row.table, []).append(
            {"row": row.number, "paper": row.paper, "ours": ours, "references": references})
        own.setdefault(row.table, []).append(least([best(partial(swing.ours, name)) for name in RUNGE_KUTTA]))
    return {"tables": tables, "own_control": own, "cvode": cvode, "claims": [vars(c) for c in claims(tables)]}


def least(values) -> float | None:
    """The smallest of those that are there."""
    return min((x for x in values if x is not None), default=None)


# -- claims ----------------------------------------------------------------------------------------------------------


@dataclass
class Claim:
    """What the tables should show, in how many rows they do, and where not."""

    what: str
    rows: int
    missed: list[str]

    @property
    def met(self) -> bool:
        return not self.missed


def claims(tables: dict) -> list[Claim]:
    """What should come out, checked row by row."""
    made = [
        Claim("tables IV-VI: Gear needs the fewest of the six", *_check(
            tables, lambda row: row["ours"]["gear"], lambda row: least(row["ours"].values()), calm=True)),
        Claim("tables IV-VI: Gear needs less than half of the best Runge-Kutta method", *_check(
            tables, lambda row: row["ours"]["gear"], _half_of_runge_kutta, calm=True)),
        Claim("table VII, damped: BDF needs the fewest of the six", *_check(
            tables, lambda row: row["ours"]["bdf"], lambda row: least(row["ours"].values()), calm=False)),
        Claim(f"tables IV-VI: Gear at most {MOST:g} times the larger of the paper's and CVODE's", *_check(
            tables, lambda row: row["ours"]["gear"], lambda row: _allowed(row, "gear"), calm=True)),
        Claim(f"table VII, damped: BDF at most {MOST:g} times the larger of the paper's and CVODE's", *_check(
            tables, lambda row: row["ours"]["bdf"], lambda row: _allowed(row, "bdf"), calm=False)),
        Claim(f"tables IV-VI: BDF at most {MOST:g} times the larger of the paper's and CVODE's", *_check(
            tables, lambda row: row["ours"]["bdf"], lambda row: _allowed(row, "bdf"), calm=True)),
        Claim(f"table VII, damped: Gear at most {MOST:g} times the larger of the paper's and CVODE's", *_check(
            tables, lambda row: row["ours"]["gear"], lambda row: _allowed(row, "gear"), calm=False)),
    ]
    return [claim for claim in made if claim.rows]


def _half_of_runge_kutta(row) -> float:
    """Just below half of the fewest evaluations; no bound if none of them is stable."""
    fewest = least(row["ours"][name] for name in RUNGE_KUTTA)
    return math.inf if fewest is None else math.nextafter(0.5 * fewest, 0.0)


def _allowed(row, name) -> float:
    return MOST * max(row["paper"][name], row["references"]["cvode"] or 0.0)


def _check(tables, value, bound, calm: bool) -> tuple[int, list[str]]:
    """(rows looked at, those where the value is not within its bound). Calm: not damped."""
    count, missed = 0, []
    for name, row in _lines(tables):
        if calm == (row["row"] == 0.0 or name != "VII"):
            count += 1
            found, most = value(row), bound(row)
            if found is None or not found <= most:
                missed.append(f"{name} {row['row']:g}: {_number(found)} > {most:.1f}")
    return count, missed


def _lines(tables) -> Iterator[tuple[str, dict]]:
    return ((name, row) for name, lines in tables.items() for row in lines)


# -- for people ------------------------------------------------------------------------------------------------------


def _number(x: float | None) -> str:
    return "-" if x is None else f"{x:.1f}"


def text(result: dict) -> str:
    """The tables and claims as a page."""
    lines = [f"Evaluations of the right-hand side per simulated second, mobiles swinging for {SECONDS:g} s;",
             "the best of tolerances 1e-2 to 1e-6, relative and absolute alike, unstable runs left out"]
    head = "".join(f"{name:>8}" for name in SOLVERS)
    for table, found in result["tables"].items():
        session, what = TITLES[table]
        lines += ["", f"Table {table}, {session}: {what}",
                  f"  {'':>5} |{'the paper':^{len(head)}} |{'here':^{len(head)}} |{'today':^16} |{'RK*':>7}",
                  f"  {'':>5} |{head} |{head} |{'cvode':>8}{'lsoda':>8} |"]
        for row, own in zip(found, result["own_control"][table], strict=True):
            cells = [f"  {row['row']:>5g} "]
            for part, names in (("paper", SOLVERS), ("ours", SOLVERS), ("references", REFERENCES)):
                cells.append("".join(f"{_number(row[part][name]):>8}" for name in names) + " ")
            lines.append("|".join([*cells, f"{_number(own):>7}"]))
    lines += ["", "Claims"]
    for claim in result["claims"]:
        good = claim["rows"] - len(claim["missed"])
        verdict = "holds" if not claim["missed"] else "FAILS"
        lines.append(f"  {verdict}  {claim['what']}  ({good} of {claim['rows']} rows)")
        lines += [f"           {where}" for where in claim["missed"]]
    return "\n".join([*lines, "", *READINGS, *(() if result["cvode"] else (WITHOUT_CVODE,))])


READINGS = (
    "Readings. Elongation: of the root joint alone. Unstable: the solver gives up, or the energy at some step lies",
    f"above that of the start by more than {RISE:.0%} of what the elongation gave (nothing drives a mobile; the paper",
    "accepts large errors, so states at the end are not compared). Jacobians by differences are counted. Runge-Kutta:",
    "step control of the paper's time, in the worst component: embedded pairs (rki, rkf) per unit of time, step",
    "doubling (iec, rkg) with the plain difference; RK*: the best of the four with the step control of bk.Simulation.",
    "cvode: the better of its Adams and BDF formulas; it and lsoda are judged by the same rule.",
)
WITHOUT_CVODE = "scikit-sundae is not installed, so CVODE is missing: pip install 'bunraku[bench]'"

COLOURS = {"iec": "#b9a44c", "rki": "#9c6b98", "rkg": "#7d8ca3", "rkf": "#7a9e5f", "gear": "#d1603d", "bdf": "#2f7f86"}
LABELS = {"iec": "IEC", "rki": "RKI", "rkg": "RKG", "rkf": "RKF", "gear": "Gear", "bdf": "BDF"}


def picture(result: dict, path: Path, drawing) -> Path:
    """Evaluations over the rows of every table: ours solid, the paper's dotted. `drawing`: figure and canvas types."""
    page_type, canvas = drawing
    tables = result["tables"]
    page = page_type(figsize=(10.0, 7.6 if len(tables) > 2 else 4.4), dpi=160, layout="constrained")
    canvas(page)
    grid: Any = page.subplots(2 if len(tables) > 2 else 1, 2 if len(tables) > 1 else 1, squeeze=False)
    for axes in list(grid.flat)[len(tables):]:
        axes.axis("off")
    for axes, (table, found) in zip(grid.flat, tables.items(), strict=False):
        x = [row["row"] for row in found]
        for name in SOLVERS:
            strong = name in ("gear", "bdf")
            axes.plot(x, [row["paper"][name] for row in found], "o:", color=COLOURS[name], markerfacecolor="white",
                      markersize=3.5, linewidth=1.0)
            axes.plot(x, _gaps(row["ours"][name] for row in found), "o-", color=COLOURS[name], label=LABELS[name],
                      markersize=4.5 if strong else 3.5, linewidth=2.2 if strong else 1.2, zorder=3 if strong else 2)
        for name, marker in (("cvode", "x"), ("lsoda", "+")):
            axes.plot(x, _gaps(row["references"][name] for row in found), marker, color="#2b2f36",
                      markersize=6, label=name.upper(), zorder=4)
        session, what = TITLES[table]
        axes.set_yscale("log")
        axes.set_xticks(x, [f"{value:g}" for value in x])
        axes.set_title(f"Table {table}, {session}", fontsize=10, loc="left")
        axes.set(xlabel=what)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.grid(True, which="both", linewidth=0.3)
    for line in grid[:, 0]:
        line.set_ylabel("evaluations a second")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    page.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9, frameon=False)
    page.suptitle("Right-hand sides per simulated second: here (solid), [J] (dotted), today's references (crosses)",
                  fontsize=11)
    page.savefig(path)
    return path


def _gaps(values) -> list[float]:
    return [math.nan if x is None else x for x in values]
