"""Other interpretations of [J, sec. II] than those of `jung_tables.py`, and their effect.

The paper leaves open how errors are measured, which joints have the elongation, when a run is unstable, and how large
a plateau is; its thesis [J, ref. 26] is not at hand. Every reading here changes one of these. A line has the ratio of
the counts here to the paper's, the geometric mean over the rows of a table, and its spread: the largest ratio over the
smallest, 1 if the counts have the paper's course. `stated` says whether the paper's text asks for the reading, is
silent, or contradicts it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

import bunraku as bk
from bunraku.integrate.methods import METHODS
from bunraku.integrate.runge_kutta import Tableau
from bunraku.reproduce import jung_tables as tables
from bunraku.reproduce.jung_tables import PAPER, RISE, RUNGE_KUTTA, SECONDS, SOLVERS, Row, Swing, best, default

Runs = Callable[[Swing, str], Callable[[float], tuple[int, bool]]]
SHOWN = ("rkg", "gear", "bdf")  # of readings that concern all solvers
ALL, FIFTH = ("IV", "V", "VI", "VII"), ("V",)


class Reading(NamedTuple):
    what: str
    stated: str
    solvers: tuple[str, ...]
    runs: Runs = default
    joints: str = "root"
    rise: float = RISE
    change: Callable[[Row], bk.Mechanism] | None = None
    tables: tuple[str, ...] = ALL


# -- what is changed -------------------------------------------------------------------------------------------------


def _gear(**options) -> Runs:
    return lambda swing, solver: partial(swing.published, **options)


def _simulated(swing: Swing, solver: str):
    return partial(swing.ours, solver)


def _absolute(swing: Swing, solver: str):
    def run(tolerance):
        f, count, y0 = swing.equation()
        end = bk.solve_ivp(f, (0.0, SECONDS), y0, method="gear", rtol=0.0, atol=tables.NORM * tolerance)
        return count[0], end.success and swing.stable(end.y[:swing.n].T, end.y[swing.n:].T)

    return run


def _vode(swing: Swing, solver: str):
    """VODE's Adams formulas with functional iteration: another code of LSODE's family."""
    def run(tolerance):
        from scipy.integrate import ode

        f, count, y0 = swing.equation()
        code = ode(f).set_integrator("vode", method="adams", rtol=tables.NORM * tolerance,
                                     atol=tables.NORM * tolerance, nsteps=10**6)
        code.set_initial_value(y0, 0.0)
        path = [y0]
        while code.successful() and code.t < SECONDS and np.abs(path[-1]).max() < 1e6:
            path.append(code.integrate(SECONDS, step=True).copy())
        states = np.array(path)
        return count[0], code.t >= SECONDS and swing.stable(states[:, :swing.n], states[:, swing.n:])

    return run


def _lsode(swing: Swing, solver: str):
    """BDF, and a Jacobian of 2 n evaluations counted for every iteration matrix, as LSODE makes them."""
    def run(tolerance):
        sim = bk.Simulation(swing.m, swing.q, swing.v, solver, tolerance, tolerance, progress=False)
        try:
            path = sim.run(until=SECONDS)
        except bk.SimulationError:
            return sim.stats.evaluations, False
        more = 2 * swing.n * (sim.stats.factorisations - sim.stats.jacobians)
        return sim.stats.evaluations + more, swing.stable(path.q, path.v)

    return run


def _pairs(largest: bool, per_unit: bool, plain: bool = True) -> Runs:
    def runs(swing: Swing, solver: str):
        method = METHODS[solver]
        assert isinstance(method, Tableau)
        if solver in ("iec", "rkg") and plain:
            method = method._replace(E=method.E * (2**method.order - 1))
        return partial(swing.ours, method._replace(largest=largest, per_unit=per_unit))

    return runs


def _plateau(radius: Callable[[float, int], float]) -> Callable[[Row], bk.Mechanism]:
    """Table V with another radius of the plateau, a function of the arc p and the number of chains."""
    def build(row: Row) -> bk.Mechanism:
        chains, p = int(row.number), 3.0
        arc = radius(p, chains) * 2 * math.pi / chains
        return bk.models.mobile(tables.A, tables.B, tables.C, 1.0, 2, 3, chains, arc, tables.RHO)

    return build


def _printed_mass(row: Row) -> bk.Mechanism:
    """Masses with /2 as printed, first moments and inertias about the top edge as they are."""
    m = row.mobile
    for link in m.links:
        mass, height = 1.5 * link.mass, link.com[2] / 1.5
        shift = link.mass * link.com[2] ** 2 - mass * height**2
        m = m.with_link(link.name, mass=mass, com=(0.0, 0.0, height),
                        inertia=link.inertia + np.diag([shift, shift, 0.0]))
    return m


READINGS = (
    Reading("as in the tables", "", SOLVERS),
    Reading("norm over components, not joints", "contradicted", ("gear",), _gear(norm=1.0)),
    Reading("orders up to 7 (DIFSUB)", "silent", ("gear",), _gear(max_order=7)),
    Reading("first step 0.1 ms", "silent", ("gear",), _gear(first_step=1e-4)),
    Reading("absolute tolerance alone", "contradicted", ("gear",), _absolute),
    Reading("rates from new velocities (Gear*)", "silent", ("gear",), _simulated),
    Reading("VODE's Adams (SciPy)", "", ("gear",), _vode),
    Reading("a Jacobian for every matrix (LSODE)", "stated", ("bdf",), _lsode),
    Reading("error per step, worst component", "silent", RUNGE_KUTTA, _pairs(True, False)),
    Reading("error per step, root mean square", "silent", RUNGE_KUTTA, _pairs(False, False)),
    Reading("per unit of time, worst component", "silent", RUNGE_KUTTA, _pairs(True, True)),
    Reading("per unit of time, root mean square", "silent", RUNGE_KUTTA, _pairs(False, True)),
    Reading("step doubling / (2^p - 1), worst", "silent", ("iec", "rkg"), _pairs(True, False, False)),
    Reading("elongation: tip joint", "silent", SHOWN, joints="tip"),
    Reading("elongation: every joint", "silent", SHOWN, joints="every"),
    Reading("elongation: chains of last stage", "silent", SHOWN, joints="last stage", tables=FIFTH),
    Reading("unstable: energy rises by 1%", "silent", SHOWN, rise=0.01),
    Reading("unstable: energy doubles", "silent", SHOWN, rise=1.0),
    Reading("unstable: the solver gives up", "silent", SHOWN, rise=math.inf),
    Reading("plateau: p o / pi", "printed", SHOWN, change=_plateau(lambda p, o: p * o / math.pi), tables=FIFTH),
    Reading("plateau: p / 2", "silent", SHOWN, change=_plateau(lambda p, o: p / 2), tables=FIFTH),
    Reading("plateau: b + c, for all o", "contradicted", SHOWN,
            change=_plateau(lambda p, o: tables.B + tables.C), tables=FIFTH),
    Reading("mass / 2", "printed", SHOWN, change=_printed_mass),
)


# -- what comes out --------------------------------------------------------------------------------------------------


def counts(reading: Reading, solver: str, table: str) -> list[float | None]:
    """A solver's column of a table in this reading."""
    found = []
    for row in tables.rows([table]):
        if reading.change is not None:
            row = row._replace(mobile=reading.change(row))
        swing = Swing(row, reading.joints, reading.rise)
        found.append(best(reading.runs(swing, solver)).evaluations)
    return found


def run(readings=READINGS, progress: Callable[[str], None] = tables.nothing) -> dict:
    """All readings: counts by tables, and how they compare with the paper's."""
    lines = []
    for reading in readings:
        progress(reading.what)
        for solver in reading.solvers:
            found = {table: counts(reading, solver, table) for table in reading.tables}
            lines.append({"reading": reading.what, "stated": reading.stated, "solver": solver, "counts": found,
                          "compared": {table: _compared(table, solver, x) for table, x in found.items()}})
    return {"readings": lines}


def _compared(table: str, solver: str, found: list[float | None]) -> tuple[float, float] | None:
    """(geometric mean, largest over smallest) of the ratios to the paper; of table VII the damped rows."""
    theirs = [line[1 + SOLVERS.index(solver)] for line in PAPER[table]]
    pairs = list(zip(found, theirs, strict=True))[1 if table == "VII" else 0:]
    if any(x is None for x, _ in pairs):
        return None
    ratios = np.array([x / y for x, y in pairs if x is not None])
    return float(np.exp(np.log(ratios).mean())), float(ratios.max() / ratios.min())


def text(result: dict) -> str:
    """One line per reading and solver."""
    lines = ["Counts here over those of the paper: geometric mean over the rows of a table, and after the slash the "
             "largest", "ratio over the smallest (VII: damped rows). C: Gear from 0.1 to 1.7 rad (paper 1.86); wide: "
             "11 chains over 12", "links (paper 0.93). stated: what the paper's text says of the reading.", "",
             f"  {'reading':<36}{'stated':<13}{'solver':<7}" + "".join(f"{table:>11}" for table in ALL)
             + f"{'C':>7}{'wide':>7}"]
    long = next((line["counts"]["IV"][-1] for line in result["readings"]
                 if line["solver"] == "gear" and "IV" in line["counts"]), None)
    for line in result["readings"]:
        cells = [_cell(line["compared"].get(table)) for table in ALL]
        lines.append((f"  {line['reading']:<36}{line['stated']:<13}{line['solver']:<7}"
                      + "".join(f"{cell:>11}" for cell in cells) + _growths(line, long)).rstrip())
    return "\n".join(lines)


def _cell(compared) -> str:
    return "" if compared is None else f"{compared[0]:.2f}/{compared[1]:.1f}"


def _growths(line: dict, long: float | None) -> str:
    """Gear's growth in session C, and wide trees over long chains (of the first reading, if this one has none)."""
    if line["solver"] != "gear":
        return ""
    elongated, wide = (line["counts"].get(table, (None,)) for table in ("VI", "V"))
    ratios = ((elongated[-1], elongated[0]), (wide[-1], line["counts"].get("IV", (long,))[-1]))
    return "".join(f"{above / below:>7.2f}" if above and below else f"{'':>7}" for above, below in ratios)
