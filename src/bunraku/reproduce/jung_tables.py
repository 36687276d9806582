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
NEAR_COUNT = 2.0            # a count within this factor of the paper's counts as near
GROWTH = 2.0          # of Gear's counts over the elongations of session C [J, sec. II.D]
NORM = math.sqrt(0.5)  # tolerance in a norm over components that equals one in a norm over joints [J, sec. III.C]

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


def least(values) -> float | None:
    """The smallest of those that are there."""
    return min((x for x in values if x is not None), default=None)


# -- claims ----------------------------------------------------------------------------------------------------------

PAPER_SAYS, YARDSTICK = "paper", "own yardstick"


@dataclass
class Claim:
    """A conclusion: whose it is, in how many rows it holds here, where not, and in how many rows of the paper's own
    tables."""

    what: str
    origin: str
    rows: int
    missed: list[str]
    printed: str = ""

    @property
    def met(self) -> bool:
        return not self.missed


Found = tuple[int, list[str]]  # rows looked at, and those that fail


def claims(tables: dict, own: dict) -> list[Claim]:
    """Expected conclusions: those of the paper [J, sec. II.D] and our own criteria."""
    said: list[tuple[str, Callable[[str], Found]]] = [
        ("undamped: Gear needs the fewest of the six", lambda part: _fewest(tables, part, "gear", _calm)),
        ("tables IV, V: Gear needs less than half of the best Runge-Kutta method", lambda part: _half(tables, part)),
        ("tables IV, V: RKG is the best Runge-Kutta method",
         lambda part: _fewest(tables, part, "rkg", _first_two, RUNGE_KUTTA)),
        ("tables IV, V: the largest mobile needs more than the smallest", lambda part: _larger(tables, part)),
        ("Gear: 11 chains (table V) need no more than 12 links (table IV)",
         lambda part: _wide(_column(tables, "V", part, "gear"), _column(tables, "IV", part, "gear"))),
        (f"table VI: Gear grows by no more than {GROWTH:g} over the elongations",
         lambda part: _grown(_column(tables, "VI", part, "gear"))),
        ("table VII, damped: BDF needs the fewest of the six", lambda part: _fewest(tables, part, "bdf", _damped)),
        ("table V: BDF grows faster with the number of chains than Gear", lambda part: _faster(tables, part)),
    ]
    made = [Claim(what, PAPER_SAYS, *found("ours"), printed="{1} of {0}".format(*_good(found("paper"))))
            for what, found in said]
    made += [Claim(what, YARDSTICK, *found) for what, found in (
        *((f"{where}: {name.upper() if name == 'bdf' else 'Gear'} at most {MOST:g} times the larger of the paper's and "
           "CVODE's", _bounded(tables, name, chosen))
          for name in ("gear", "bdf") for where, chosen in (("undamped", _calm), ("table VII, damped", _damped))),
        *((f"table {table}: counts within a factor of {NEAR_COUNT:g} of the paper's", _near(table, tables[table]))
          for table in tables),
        (f"table VI: Gear* of bk.Simulation grows by no more than {GROWTH:g}", _grown(_starred(own, tables, "VI"))),
        ("Gear* of bk.Simulation: 11 chains need no more than 12 links",
         _wide(_starred(own, tables, "V"), _starred(own, tables, "IV"))))]
    return [claim for claim in made if claim.rows]


def _calm(table, row) -> bool:
    return table != "VII" or row["row"] == 0.0


def _damped(table, row) -> bool:
    return not _calm(table, row)


def _first_two(table, row) -> bool:
    return table in ("IV", "V")


def _good(found: Found) -> tuple[int, int]:
    return found[0], found[0] - len(found[1])


def _column(tables, table, part, name) -> dict[float, float | None]:
    """One solver's counts in a table, by rows."""
    return {row["row"]: row[part][name] for row in tables.get(table, ())}


def _starred(own, tables, table) -> dict[float, float | None]:
    return {row["row"]: x["gear"] for row, x in zip(tables.get(table, ()), own.get(table, ()), strict=True)}


def _check(tables, chosen, value, bound) -> Found:
    """Rows chosen, and those where the value is not within its bound."""
    count, missed = 0, []
    for name, row in _lines(tables):
        if chosen(name, row):
            count += 1
            found, most = value(row), bound(row)
            if found is None or not found <= most:
                missed.append(f"{name} {row['row']:g}: {_number(found)} > {most:.1f}")
    return count, missed


def _fewest(tables, part, name, chosen, among=SOLVERS) -> Found:
    return _check(tables, chosen, lambda row: row[part][name], lambda row: least(row[part][x] for x in among))


def _half(tables, part) -> Found:
    def half(row):  # no bound if no method is stable
        fewest = least(row[part][name] for name in RUNGE_KUTTA)
        return math.inf if fewest is None else math.nextafter(0.5 * fewest, 0.0)

    return _check(tables, _first_two, lambda row: row[part]["gear"], half)


def _larger(tables, part) -> Found:
    """First and last row of tables IV and V, for every solver."""
    count, missed = 0, []
    for table in ("IV", "V"):
        for name in SOLVERS:
            first, last = _ends(_column(tables, table, part, name), table)
            if first is not None and last is not None:
                count += 1
                if not last > first:
                    missed.append(f"{table}, {name}: {first:.1f} to {last:.1f}")
    return count, missed


def _ends(column, table) -> tuple[float | None, float | None]:
    lines = PAPER[table]
    return column.get(lines[0][0]), column.get(lines[-1][0])


def _grown(column) -> Found:
    first, last = _ends(column, "VI")
    return _ratio("0.1 to 1.7 rad", last, first, GROWTH)


def _wide(wide, long) -> Found:
    return _ratio("V 11 / IV 12", wide.get(11), long.get(12), 1.0)


def _faster(tables, part) -> Found:
    ends = (_ends(_column(tables, "V", part, name), "V") for name in ("bdf", "gear"))
    grown = [last / first for first, last in ends if first is not None and last is not None]
    if len(grown) < 2:
        return 0, []
    return 1, [] if grown[0] > grown[1] else [f"BDF {grown[0]:.2f}, Gear {grown[1]:.2f}"]


def _ratio(what, above, below, most) -> Found:
    if above is None or below is None:
        return 0, []
    return 1, [] if above <= most * below else [f"{what}: {above:.1f}/{below:.1f} = {above / below:.2f} > {most:g}"]


def _bounded(tables, name, chosen) -> Found:
    return _check(tables, chosen, lambda row: row["ours"][name],
                  lambda row: MOST * max(row["paper"][name], row["references"]["cvode"] or 0.0))


def _near(table, lines) -> Found:
    """Solvers whose counts are all within a factor of NEAR_COUNT."""
    missed = []
    for name in SOLVERS:
        ratios = [math.nan if row["ours"][name] is None else row["ours"][name] / row["paper"][name] for row in lines]
        if not all(1 / NEAR_COUNT <= x <= NEAR_COUNT for x in ratios):
            missed.append(f"{name}: {min(ratios):.2f} to {max(ratios):.2f} times the paper's")
    return len(SOLVERS), missed


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
                  f"  {'':>5} |{'the paper':^{len(head)}} |{'here':^{len(head)}} |{'today':^16} |{'bk.Simulation':^15}",
                  f"  {'':>5} |{head} |{head} |{'cvode':>8}{'lsoda':>8} |{'RK*':>7}{'Gear*':>8}"]
        for row, own in zip(found, result["own_control"][table], strict=True):
            cells = [f"  {row['row']:>5g} "]
            for part, names in (("paper", SOLVERS), ("ours", SOLVERS), ("references", REFERENCES)):
                cells.append("".join(f"{_number(row[part][name]):>8}" for name in names) + " ")
            lines.append("|".join([*cells, f"{_number(own['rk']):>7}{_number(own['gear']):>8}"]))
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
