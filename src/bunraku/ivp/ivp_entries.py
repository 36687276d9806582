"""Initial value problems of any kind in compiled code: the right-hand side is a C function by address.

It has the form of an actuation (`actuation.py`): y as q, nothing as v, the derivatives as tau.
"""

from __future__ import annotations

from numba import types

from bunraku.integrate import nordsieck, runge_kutta
from bunraku.integrate.advance import advance
from bunraku.integrate.callbacks import call_function
from bunraku.integrate.history import FAMILY, Family
from bunraku.integrate.record import RECORD, record_step, room_in
from bunraku.integrate.runge_kutta import TABLEAU
from bunraku.integrate.solver_memory import ACTUATION_FAILED, MEMORY, STATE_FAILED
from bunraku.integrate.sums import alone
from bunraku.jit import entry, inline, inner


@inner
def user_rhs(context, t, y, dy):
    """The user's function; NaN and infinity are failures."""
    address, nothing = context
    if call_function(address, t, y, nothing, nothing, dy) != 0:
        return ACTUATION_FAILED
    total = 0.0
    for i in range(dy.shape[0]):
        total += 0.0 * dy[i]
    return 0 if total == 0.0 else STATE_FAILED


@inline
def flat(context, rows, count, h):
    """A state space that is all of R^n."""
    return 0.0


PROBLEM = (types.int64, MEMORY, RECORD)


@entry("Runge-Kutta methods", types.int64(TABLEAU, *PROBLEM), seconds=4)
def solve_runge_kutta(method, address, memory, record):
    context = (address, memory.tolerance[0, :0])
    return advance(runge_kutta.prepare, runge_kutta.attempt, runge_kutta.complete, runge_kutta.polynomial,
                   runge_kutta.go_on, user_rhs, alone, flat, record_step, context, method, memory, record,
                   room_in(record))


@entry("multistep methods", types.int64(FAMILY, *PROBLEM), seconds=6)
def solve_nordsieck(method, address, memory, record):
    context = (address, memory.tolerance[0, :0])
    return advance(nordsieck.prepare, nordsieck.attempt, nordsieck.complete, nordsieck.polynomial, nordsieck.go_on,
                   user_rhs, alone, flat, record_step, context, method, memory, record, room_in(record))


def solver_of(method):
    return solve_nordsieck if isinstance(method, Family) else solve_runge_kutta
