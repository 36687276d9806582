"""All adaptive methods by name."""

from __future__ import annotations

from bunraku.errors import ShapeError
from bunraku.integrate import bdf, gear, iec, rkf, rkg, rki, tsit5
from bunraku.integrate.history import Family
from bunraku.integrate.memory import MAX_ORDER, Memory, make_memory
from bunraku.integrate.runge_kutta import Tableau

METHODS: dict[str, Family | Tableau] = {
    "gear": gear.METHOD, "bdf": bdf.METHOD, "tsit5": tsit5.METHOD, "rkf": rkf.METHOD, "rkg": rkg.METHOD,
    "rki": rki.METHOD, "iec": iec.METHOD}


def method_of(solver: str | Family | Tableau) -> Family | Tableau | None:
    """The coefficients of a method by name, or those given; None for what has none."""
    return METHODS.get(solver) if isinstance(solver, str) else solver


def check_order(name: str | Family | Tableau, order: int | None) -> int:
    """Highest order that a multistep method may use; 0 for others, whose order is fixed."""
    method = method_of(name)
    if not isinstance(method, Family):
        if order is not None:
            label = repr(name) if isinstance(name, str) else "this method"
            raise ShapeError(f"{label} has no max_order: its order is fixed")
        return 0
    highest = bdf.ORDERS if method.newton else gear.ORDERS
    if order is not None and not 1 <= order <= highest:
        raise ShapeError(f"max_order of {name!r} is a number from 1 to {highest}, not {order!r}")
    return order or highest


def memory_for(name: str | Family | Tableau, y, rtol, atol, max_order: int | None = None) -> Memory:
    """Memory for a method (or a fixed-step one, whose name is not among them) that begins at y."""
    method = method_of(name)
    memory = make_memory(y, rtol, atol, 1 if method is None else method.rows,
                         newton=isinstance(method, Family) and method.newton)
    memory.tally[MAX_ORDER] = check_order(name, max_order)
    return memory
