"""The solver comparison of [J, sec. II]: mobiles swinging for 10 s, evaluations of the right-hand side a second.

Sessions A to D are tables IV to VII: longer chains, wider trees, larger elongations, more damping. Every solver runs
at five tolerances, relative and absolute alike; its best count stands in the table, runs that are unstable left out.

Where the paper is silent or contradicts itself we use (`jung_readings.py` has results of other interpretations):

elongation   the root joint alone is turned, the others are at zero.
unstable     the paper accepts large errors and drops only unstable solutions. Nothing drives a mobile, so its energy
             cannot rise: a run is unstable if its solver gives up, or if at any step the energy lies above that of the
             start by more than `RISE` of what the elongation gave. States at the end are not compared: wide trees and
             large elongations are chaotic, two accurate runs end apart.
Gear         as the paper describes it [J, secs. II.B, III.C]: Adams in Nordsieck form with functional iteration of
             positions and velocities alike, LSODE's control, and norms in which the sum over both is divided by the
             number of joints. `bk.Simulation` iterates otherwise (`integrate/gear.py`) and needs fewer: Gear*.
Jacobians    the evaluations of difference Jacobians are counted, for all solvers: the paper's counts of BDF grow with
             the number of joints for that reason.
steps        the Runge-Kutta methods control their steps as textbooks of the paper's time do: embedded pairs keep the
             error per unit of time below the tolerance, step doubling compares the whole with the two half steps as
             they are, both in the worst component. The count of the best of the four with the control of
             `bk.Simulation` is shown too (RK*).
mobiles      the readings of `models/mobile.py`.

References of today: CVODE (the better of its Adams and BDF formulas, both with Newton's iteration and a difference
Jacobian, as scikit-sundae has it) and LSODA (SciPy), with the same tolerances and the same rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bunraku as bk
from bunraku.errors import ModelError, SimulationError
from bunraku.integrate.methods import METHODS
from bunraku.integrate.runge_kutta import Tableau
from bunraku.reproduce.jung_claims import PAPER_SAYS, YARDSTICK, claims
from bunraku.reproduce.jung_printed import PAPER, REFERENCES, RUNGE_KUTTA, SOLVERS, TITLES, least, number

SECONDS = 10.0
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
RISE = 0.1            # of the energy that the elongation gave: see `unstable` above
ENOUGH = 2.0          # tighter tolerances are not tried once a run needs this many times the best
ELONGATION = 0.8      # [rad]
A, B, C, RHO = 0.2, 0.3, 0.2, 2.0  # of all mobiles
NORM = math.sqrt(0.5)  # tolerance in a norm over components that equals one in a norm over joints [J, sec. III.C]


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


def turned(m: bk.Mechanism, joints: str) -> list[bool]:
    """Which joints have the elongation: the "root" joint, the "tip" of the last chain, "every" joint, or the top
    joints of the chains of the "last stage"."""
    names = [link.name for link in m.links]
    deepest = max(name.count("/") for name in names)
    chosen = {"root": lambda i, name: i == 0, "tip": lambda i, name: i == len(names) - 1, "every": lambda i, name: True,
              "last stage": lambda i, name: name.count("/") == deepest and name.endswith("link0")}[joints]
    return [chosen(i, name) for i, name in enumerate(names)]


class Swing:
    """A mobile that is let go at its elongation."""

    def __init__(self, row: Row, joints: str = "root", rise: float = RISE):
        self.m, self.n = row.mobile, row.mobile.nv
        self.q, self.v = self.m.neutral(), np.zeros(self.n)
        rest = sum(self.m.energy(self.q, self.v))
        self.q[turned(self.m, joints)] = row.elongation
        self.start = sum(self.m.energy(self.q, self.v))
        self.limit = self.start + rise * (self.start - rest)

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

    def published(self, tolerance: float, norm: float = NORM, **options) -> tuple[int, bool]:
        """Gear as the paper describes it: (evaluations, stable)."""
        f, count, y0 = self.equation()
        end = bk.solve_ivp(f, (0.0, SECONDS), y0, method="gear", rtol=norm * tolerance, atol=norm * tolerance,
                           **options)
        return count[0], end.success and self.stable(end.y[:self.n].T, end.y[self.n:].T)

    def equation(self):
        """The right-hand side y' = f(t, y) of y = (q, v), the number of its calls, and y at the start."""
        rates, count, y0 = self._rates()

        def f(t, y):
            out = np.empty(len(y))
            rates(t, y, out)
            return out

        return f, count, y0

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

        f, count, y0 = self.equation()
        end = solve_ivp(f, (0.0, SECONDS), y0, method="LSODA", rtol=tolerance, atol=tolerance)
        return count[0], bool(end.success) and self.stable(end.y[:self.n].T, end.y[self.n:].T)


class Best(NamedTuple):
    """Fewest evaluations a second, and at which tolerance."""

    evaluations: float | None
    tolerance: float | None


def best(run: Callable[[float], tuple[int, bool]]) -> Best:
    """The stable run with the fewest evaluations over all tolerances; None if there is none."""
    least, at = math.inf, None
    for tolerance in TOLERANCES:
        evaluations, stable = run(tolerance)
        if stable and evaluations < least:
            least, at = evaluations, tolerance
        if evaluations > ENOUGH * least:
            break
    return Best(None if at is None else least / SECONDS, at)


def default(swing: Swing, solver: str) -> Callable[[float], tuple[int, bool]]:
    """The runs of a solver as its column has them."""
    if solver == "gear":
        return swing.published
    return partial(swing.ours, textbook(solver) if solver in RUNGE_KUTTA else solver)


def has_cvode() -> bool:
    try:
        import sksundae  # noqa: F401
    except ImportError:
        return False
    return True


def nothing(what: str) -> None:
    """Progress callback that does nothing."""


def run(wanted: list[Row] | None = None, progress: Callable[[str], None] = nothing) -> dict:
    """The tables, what `bk.Simulation` needs with its own control, the best tolerances, and the claims."""
    tables: dict[str, list[dict]] = {}
    own: dict[str, list[dict]] = {}
    tolerances: dict[str, dict[str, int]] = {name: {} for name in SOLVERS}
    cvode = has_cvode()
    for row in wanted if wanted is not None else rows():
        progress(f"table {row.table}, {row.number:g}")
        swing = Swing(row)
        found = {name: best(default(swing, name)) for name in SOLVERS}
        for name, (_, at) in found.items():
            key = "none" if at is None else f"{at:g}"
            tolerances[name][key] = tolerances[name].get(key, 0) + 1
        theirs = [best(partial(swing.cvode, formulas)).evaluations for formulas in ("Adams", "BDF") if cvode]
        references = {"cvode": least(theirs), "lsoda": best(swing.lsoda).evaluations}
        tables.setdefault(row.table, []).append(
            {"row": row.number, "paper": row.paper, "ours": {name: x.evaluations for name, x in found.items()},
             "references": references})
        own.setdefault(row.table, []).append(
            {"gear": best(partial(swing.ours, "gear")).evaluations,
             "rk": least(best(partial(swing.ours, name)).evaluations for name in RUNGE_KUTTA)})
    return {"tables": tables, "own_control": own, "tolerances": tolerances, "cvode": cvode,
            "claims": [vars(c) for c in claims(tables, own)]}


# -- for people ------------------------------------------------------------------------------------------------------


def text(result: dict) -> str:
    """The tables and claims as a page."""
    lines = [f"Evaluations of the right-hand side per simulated second, mobiles swinging for {SECONDS:g} s;",
             "the best of tolerances 1e-2 to 1e-6, relative and absolute alike, unstable runs left out"]
    head = "".join(f"{name:>8}" for name in SOLVERS)
    for table, found in result["tables"].items():
        session, what = TITLES[table]
        lines += ["", f"Table {table}, {session}: {what}",
                  f"  {'':>5} |{'the paper':^{len(head)}} |{'here':^{len(head)}} |{'today':^16} |{'bk.Simulation':^15}",
                  f"  {'':>5} |{head} |{head} |{'cvode':>8}{'lsoda':>8} |{'RK*':>7}{'Gear*':>8}"]
        for row, own in zip(found, result["own_control"][table], strict=True):
            cells = [f"  {row['row']:>5g} "]
            for part, names in (("paper", SOLVERS), ("ours", SOLVERS), ("references", REFERENCES)):
                cells.append("".join(f"{number(row[part][name]):>8}" for name in names) + " ")
            lines.append("|".join([*cells, f"{number(own['rk']):>7}{number(own['gear']):>8}"]))
    lines += ["", "Best tolerances (rows): " + "; ".join(
        f"{name} " + ", ".join(f"{at} ({n})" for at, n in sorted(found.items(), key=lambda x: -x[1]))
        for name, found in result["tolerances"].items())]
    for origin, title in ((PAPER_SAYS, "Conclusions of the paper, here (and by the paper's own tables)"),
                          (YARDSTICK, "Yardsticks of our own; the paper does not claim them")):
        chosen = [claim for claim in result["claims"] if claim["origin"] == origin]
        lines += ["", title] * bool(chosen)
        for claim in chosen:
            good, printed = claim["rows"] - len(claim["missed"]), claim["printed"]
            lines.append(f"  {'FAILS' if claim['missed'] else 'holds'}  [{origin}] {claim['what']}  "
                         f"({good} of {claim['rows']}{f'; paper: {printed}' if printed else ''})")
            lines += [f"           {where}" for where in claim["missed"]]
    return "\n".join([*lines, "", *READINGS, *(() if result["cvode"] else (WITHOUT_CVODE,))])


READINGS = (
    "Readings (others: --readings). Elongation: of the root joint alone. Unstable: the solver gives up, or the energy",
    f"at some step lies above that of the start by more than {RISE:.0%} of what the elongation gave (nothing drives a",
    "mobile; the paper accepts large errors, so states at the end are not compared). Gear: functional iteration of",
    "positions and velocities alike, norms divided by the number of joints, as the paper describes it. Jacobians by",
    "differences are counted. Runge-Kutta: step control of the paper's time, in the worst component: embedded pairs",
    "(rki, rkf) per unit of time, step doubling (iec, rkg) with the plain difference. RK*, Gear*: the best of the",
    "four, and Gear, as bk.Simulation has them. cvode: the better of its Adams and BDF formulas; it and lsoda are",
    "judged by the same rule.",
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
