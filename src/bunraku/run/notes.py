"""What a run writes down step by step, and the events it watches for; shared by `ivp.py` and `rollout.py`.

An event is a C function in the form of an actuation (`actuation.py`) that writes one number; it happens where that
number changes its sign, from or to 0 included (`integrate/events.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from bunraku.integrate.events import PARTS, boundary, crosses, evaluate, extreme, leaves, locate, may_touch
from bunraku.integrate.history import HIGHEST
from bunraku.integrate.memory import ACTUATION_FAILED, EVENT, RECORDED, TAKEN, TIME, copy, counts, floats, table
from bunraku.jit import inline, inner
from bunraku.run.actuation import call_actuation

COEFFICIENTS = HIGHEST + 1    # rows of a polynomial
# Places in `marks` (int64)
NEXT_TIME, EVENTS = range(2)
SPLIT = 2                     # how much of y is q; the rest is v
MARKS = 3                     # and for each event, whether the zero that it is at now has been counted

PER_STEP = 2 * PARTS          # how often an event can be found to happen in a step

cube = types.float64[:, :, ::1]


class Notes(NamedTuple):
    """What is written down of a solution, and the events that are watched."""

    t: np.ndarray            # (room,) ends of steps
    y: np.ndarray            # (room, n)
    poly: np.ndarray         # (room or 0, COEFFICIENTS, n): every step as a polynomial
    poly_t: np.ndarray       # (room or 0, 3): origin, scale, degree
    times: np.ndarray        # at which the solution is asked for
    at_times: np.ndarray     # (times, n)
    now: np.ndarray          # (COEFFICIENTS, n): the present step; (0, n) if nothing needs it
    y_trial: np.ndarray      # (n,)
    guards: np.ndarray       # (events,) addresses
    params: np.ndarray       # given to them
    g: np.ndarray            # (PARTS + 1, events): along the step
    g_trial: np.ndarray      # (events,)
    direction: np.ndarray    # (events,)
    left: np.ndarray         # (events,) how often an event may still happen until it ends the run; 0: never does
    event_t: np.ndarray      # (room for events,)
    event_y: np.ndarray      # (room for events, n)
    event_kind: np.ndarray   # (room for events,)
    marks: np.ndarray        # (MARKS + events,)


NOTES = types.NamedTuple([floats, table, cube, table, floats, table, table, floats, counts, floats, table, floats,
                          counts, counts, floats, table, counts, counts], Notes)


def blank_notes(rows: int, n: int) -> Notes:
    """Empty pages for so many steps; nothing is watched and nothing asked for between them."""
    nothing, none = np.empty(0), np.empty(0, np.int64)
    return Notes(np.empty(rows), np.empty((rows, n)), np.empty((0, 0, n)), np.empty((0, 3)), nothing, np.empty((0, n)),
                 np.empty((0, n)), np.empty(n), none, nothing, np.empty((PARTS + 1, 0)), nothing, none, none, nothing,
                 np.empty((0, n)), none, np.zeros(MARKS, np.int64))


@inner
def ask_guards(watched, t, y, g):
    """Every event's number at (t, y) into g."""
    guards, params, split = watched
    for k in range(guards.shape[0]):
        if call_actuation(guards[k], t, y[:split], y[split:], params, g[k:k + 1]) != 0:
            return ACTUATION_FAILED
    return 0


@inner
def find(watched, notes, k, first, origin, scale, degree, a, b, ga, gb, began):
    """If event k happens in (a, b], note when, in order of time among those of this step."""
    status, when, happens = 0, a, crosses(ga, gb, notes.direction[k])
    left = not happens and leaves(ga, gb, notes.direction[k])
    if happens and gb != 0.0:
        status, when = locate(ask_guards, watched, k, notes.now, origin, scale, degree, a, b, ga, gb, notes.y_trial,
                              notes.g_trial)
    elif happens or left:
        status, when, at_once = boundary(ask_guards, watched, k, notes.now, origin, scale, degree, a, b,
                                         gb if left else ga, left, notes.y_trial, notes.g_trial)
        happens = happens or not (at_once and notes.marks[MARKS + k] == 1)
    notes.marks[MARKS + k] = 1 if gb == 0.0 and ga != 0.0 else 0
    if happens:
        place = notes.marks[EVENTS]
        while place > first and abs(notes.event_t[place - 1] - began) > abs(when - began):
            notes.event_t[place], notes.event_kind[place] = notes.event_t[place - 1], notes.event_kind[place - 1]
            place -= 1
        notes.event_t[place], notes.event_kind[place] = when, k
        notes.marks[EVENTS] += 1
    return status


@inner
def watch(memory, notes, origin, scale, degree):
    """Locate the events of the last step in order of time; the clock and the state go back to one that ends the run."""
    clock, marks, g = memory.clock, notes.marks, notes.g
    t, began = clock[TIME], clock[TIME] - clock[TAKEN]
    watched = (notes.guards, notes.params, marks[SPLIT])
    status = ask_guards(watched, t, memory.rows[0], g[PARTS])
    for part in range(1, PARTS):
        if status == 0:
            when = began + clock[TAKEN] * part / PARTS
            evaluate(notes.now, origin, scale, degree, when, notes.y_trial)
            status = ask_guards(watched, when, notes.y_trial, g[part])
    if status != 0:
        return status
    first = marks[EVENTS]
    for k in range(g.shape[1]):
        for part in range(PARTS):
            a = began + clock[TAKEN] * part / PARTS
            b = t if part + 1 == PARTS else began + clock[TAKEN] * (part + 1) / PARTS
            ga, gb = g[part, k], g[part + 1, k]
            side = notes.direction[k] * ga <= 0.0  # it could cross in the wanted direction from where it is
            if ga * gb > 0.0 and side and may_touch(g, k, part):
                status, middle, gm = extreme(ask_guards, watched, k, 1.0 if ga > 0.0 else -1.0, notes.now, origin,
                                             scale, degree, a, b, notes.y_trial, notes.g_trial)
                status = status if status != 0 else find(watched, notes, k, first, origin, scale, degree, a, middle,
                                                         ga, gm, began)
                a, ga = middle, gm
            status = status if status != 0 else find(watched, notes, k, first, origin, scale, degree, a, b, ga, gb,
                                                     began)
            if status != 0:
                return status
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
        g[0, k] = g[PARTS, k]
    return 0


@inline
def write_down(polynomial, context, method, memory, notes):
    """Record the end of a step and, where asked for, its polynomial, its events, and the solution at given times."""
    clock, marks, k, status = memory.clock, notes.marks, memory.tally[RECORDED], 0
    if notes.now.shape[0] > 0:
        origin, scale, degree = polynomial(method, memory, notes.now)
        if notes.g.shape[1] > 0:
            status = watch(memory, notes, origin, scale, degree)
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
    full = notes.marks[EVENTS] + PER_STEP * notes.g.shape[1] > notes.event_t.shape[0]
    return 0 if full else notes.t.shape[0]
