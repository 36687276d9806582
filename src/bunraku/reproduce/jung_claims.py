"""Conclusions from the solver comparison of [J, sec. II.D]: those of the paper and our own criteria, row by row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bunraku.reproduce.jung_printed import PAPER, RUNGE_KUTTA, SOLVERS, least, number

MOST = 1.1            # times the larger of the paper's count and CVODE's
NEAR_COUNT = 2.0      # a count within this factor of the paper's counts as near
GROWTH = 2.0          # of Gear's counts over the elongations of session C [J, sec. II.D]
PAPER_SAYS, YARDSTICK = "paper", "own yardstick"
Found = tuple[int, list[str]]  # rows looked at, and those that fail


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
                missed.append(f"{name} {row['row']:g}: {number(found)} > {most:.1f}")
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
