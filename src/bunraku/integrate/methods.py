"""All methods by name."""

from __future__ import annotations

from numbers import Integral

from bunraku.errors import ShapeError
from bunraku.integrate import bdf, gear, iec, implicit, rk4, rkf, rkg, rki, tsit5
from bunraku.integrate.history import Family
from bunraku.integrate.runge_kutta import Tableau
from bunraku.integrate.solver_memory import MAX_ORDER, Memory, make_memory

METHODS: dict[str, Family | Tableau] = {
    "gear": gear.METHOD, "bdf": bdf.METHOD, "tsit5": tsit5.METHOD, "rkf": rkf.METHOD, "rkg": rkg.METHOD,
    "rki": rki.METHOD, "iec": iec.METHOD}
STRUCTURED: dict[str, Family] = {"implicit": implicit.METHOD}  # for mechanisms only: they need their structure
FIXED_STEP: dict[str, Tableau] = {"rk4": rk4.METHOD}           # without an estimate of the error


def method_of(solver: str | Family | Tableau) -> Family | Tableau | None:
    """The coefficients of a method by name, or those given; None for symplectic Euler, which has none."""
    if not isinstance(solver, str):
        return solver
    return METHODS.get(solver) or STRUCTURED.get(solver) or FIXED_STEP.get(solver)


def check_order(name: str | Family | Tableau, order: int | None) -> int:
    """Highest order that a multistep method may use; 0 for others, whose order is fixed."""
    method = method_of(name)
    if not isinstance(method, Family):
        if order is not None:
            label = repr(name) if isinstance(name, str) else "this method"
            raise ShapeError(f"{label} has no max_order: its order is fixed")
        return 0
    highest = method.orders
    if order is not None and not (isinstance(order, Integral) and 1 <= order <= highest):
        raise ShapeError(f"max_order of {name!r} is a number from 1 to {highest}, not {order!r}")
    return order or highest


def memory_for(name: str | Family | Tableau, y, rtol, atol, max_order: int | None = None) -> Memory:
    """Memory for a method (or symplectic Euler, which is not among them) that begins at y."""
    method = method_of(name)
    structured = isinstance(name, str) and name in STRUCTURED
    rows = 2 if method is None else implicit.ROWS if structured else method.rows
    memory = make_memory(y, rtol, atol, rows,
                         newton=isinstance(method, Family) and method.newton)
    memory.tally[MAX_ORDER] = check_order(name, max_order)
    return memory
