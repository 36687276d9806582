"""Initial value problems of any kind in compiled code: the right-hand side and the events are C functions by address.

Both have the form of an actuation (`actuation.py`): y as q, nothing as v, the derivatives or events as tau.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from bunraku.integrate import nordsieck, runge_kutta
from bunraku.integrate.advance import advance
from bunraku.integrate.events import crosses, evaluate, locate
from bunraku.integrate.history import FAMILY, HIGHEST, Family
from bunraku.integrate.memory import (
    ACTUATION_FAILED,
    EVENT,
    MEMORY,
    RECORDED,
    STATE_FAILED,
    TAKEN,
    TIME,
    copy,
    counts,
    floats,
    table,
)
from bunraku.integrate.runge_kutta import TABLEAU
from bunraku.jit import entry, inline, inner
from bunraku.run.actuation import call_actuation

COEFFICIENTS = HIGHEST + 1    # rows of a polynomial
# Places in `marks` (int64)
NEXT_TIME, EVENTS = range(2)
MARKS = 2

cube = types.float64[:, :, ::1]


class Notes(NamedTuple):
    """What is written down of a solution, and the events that are watched."""

    t: np.ndarray            # (room,) ends of steps
    y: np.ndarray            # (room, n)
    poly: np.ndarray         # (room or 0, COEFFICIENTS, n): every step as a polynomial
    poly_t: np.ndarray       # (room or 0, 3): origin, scale, degree
    times: np.ndarray        # at which the solution is asked for
    at_times: np.ndarray     # (times, n)
    now: np.ndarray          # (COEFFICIENTS, n): the present step
    y_trial: np.ndarray      # (n,)
    g: np.ndarray            # (2, events): before and after
    g_trial: np.ndarray      # (events,)
    direction: np.ndarray    # (events,)
    left: np.ndarray         # (events,) how often an event may still happen until it ends the run; 0: never does
    event_t: np.ndarray      # (room for events,)
    event_y: np.ndarray      # (room for events, n)
    event_kind: np.ndarray   # (room for events,)
    marks: np.ndarray        # (MARKS,)


NOTES = types.NamedTuple([floats, table, cube, table, floats, table, table, floats, table, floats, counts, counts,
                          floats, table, counts, counts], Notes)


@inner
def user_rhs(context, t, y, dy):
    """The user's function; anything that is not a number is a failure."""
    address, guards, nothing = context
    if call_actuation(address, t, y, nothing, nothing, dy) != 0:
        return ACTUATION_FAILED
    total = 0.0
    for i in range(dy.shape[0]):
        total += 0.0 * dy[i]
    return 0 if total == 0.0 else STATE_FAILED


@inner
def user_events(context, t, y, g):
    address, guards, nothing = context
    return ACTUATION_FAILED if call_actuation(guards, t, y, nothing, nothing, g) != 0 else 0


@inline
def flat(context, rows, count, h):
    """A state space that is all of R^n."""
    return 0.0


@inner
def watch(context, memory, notes, origin, scale, degree):
    """Locate the events of the last step in order of time; the clock and the state go back to one that ends the run."""
    clock, marks, g = memory.clock, notes.marks, notes.g
    t, began = clock[TIME], clock[TIME] - clock[TAKEN]
    status = user_events(context, t, memory.rows[0], g[1])
    if status != 0:
        return status
    first = marks[EVENTS]
    for k in range(g.shape[1]):
        if crosses(g[0, k], g[1, k], notes.direction[k]):
            status, when = locate(user_events, context, k, notes.now, origin, scale, degree, began, t, g[0, k], g[1, k],
                                  notes.y_trial, notes.g_trial)
            if status != 0:
                return status
            place = marks[EVENTS]
            while place > first and abs(notes.event_t[place - 1] - began) > abs(when - began):
                notes.event_t[place], notes.event_kind[place] = notes.event_t[place - 1], notes.event_kind[place - 1]
                place -= 1
            notes.event_t[place], notes.event_kind[place] = when, k
            marks[EVENTS] += 1
    for place in range(first, marks[EVENTS]):
        k = notes.event_kind[place]
        evaluate(notes.now, origin, scale, degree, notes.event_t[place], notes.event_y[place])
        if notes.left[k] > 0:
            notes.left[k] -= 1
            if notes.left[k] == 0:
                marks[EVENTS] = place + 1
                clock[TIME] = notes.event_t[place]
                copy(notes.event_y[place], memory.rows[0])
                return EVENT
    for k in range(g.shape[1]):
        g[0, k] = g[1, k]
    return 0


@inline
def write_down(polynomial, context, method, memory, notes):
    """Record the end of a step and, where asked for, its polynomial, its events, and the solution at given times."""
    clock, marks, k, status = memory.clock, notes.marks, memory.tally[RECORDED], 0
    if notes.now.shape[0] > 0:
        origin, scale, degree = polynomial(method, memory, notes.now)
        if notes.g.shape[1] > 0:
            status = watch(context, memory, notes, origin, scale, degree)
            if status != 0 and status != EVENT:
                return status
        if notes.poly.shape[0] > 0:
            notes.poly_t[k, 0], notes.poly_t[k, 1], notes.poly_t[k, 2] = origin, scale, degree
            for p in range(degree + 1):
                copy(notes.now[p], notes.poly[k, p])
        j = marks[NEXT_TIME]
        while j < notes.times.shape[0] and (clock[TIME] - notes.times[j]) * clock[TAKEN] >= 0.0:
            evaluate(notes.now, origin, scale, degree, notes.times[j], notes.at_times[j])
            if notes.times[j] == clock[TIME]:
                copy(memory.rows[0], notes.at_times[j])
            j += 1
        marks[NEXT_TIME] = j
    notes.t[k] = clock[TIME]
    copy(memory.rows[0], notes.y[k])
    memory.tally[RECORDED] = k + 1
    return status


@inline
def room_in(notes):
    """How many more steps can be recorded: none if the next one might have more events than there is room for."""
    full = notes.marks[EVENTS] + notes.g.shape[1] > notes.event_t.shape[0]
    return 0 if full else notes.t.shape[0]


PROBLEM = (types.int64, types.int64, MEMORY, NOTES)


@entry("Runge-Kutta methods", [types.int64(TABLEAU, *PROBLEM)])
def solve_runge_kutta(method, address, guards, memory, notes):
    context = (address, guards, memory.tolerance[0, :0])
    return advance(runge_kutta.prepare, runge_kutta.attempt, runge_kutta.complete, runge_kutta.polynomial,
                   runge_kutta.go_on, user_rhs, flat, write_down, context, method, memory, notes, room_in(notes))


@entry("multistep methods", [types.int64(FAMILY, *PROBLEM)])
def solve_nordsieck(method, address, guards, memory, notes):
    context = (address, guards, memory.tolerance[0, :0])
    return advance(nordsieck.prepare, nordsieck.attempt, nordsieck.complete, nordsieck.polynomial, nordsieck.go_on,
                   user_rhs, flat, write_down, context, method, memory, notes, room_in(notes))


def solver_of(method):
    return solve_nordsieck if isinstance(method, Family) else solve_runge_kutta
