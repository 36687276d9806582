"""Record of a run step by step, and its events; shared by `ivp.py` and `rollout.py`.

An event is a C function in the form of an actuation (`actuation.py`) that writes one number; it happens where that
number changes its sign, from or to 0 included (`integrate/events.py`). A negative address stands for an event of the
right-hand side itself, which `own(context, address, t, q, v, out)` evaluates (`runs/context.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from bunraku.integrate.callbacks import call_function
from bunraku.integrate.events import PARTS, boundary, crosses, evaluate, extreme, leaves, locate, may_touch
from bunraku.integrate.history import HIGHEST
from bunraku.integrate.solver_memory import ACTUATION_FAILED, EVENT, RECORDED, TAKEN, TIME, copy, counts, floats, table
from bunraku.jit import Held, inline, inner

COEFFICIENTS = HIGHEST + 1    # rows of a polynomial
# Places in `cursor` (int64)
NEXT_TIME, EVENTS = range(2)
SPLIT = 2                     # how much of y is q; the rest is v
CURSOR = 3                     # and for each event, whether the zero that it is at now has been counted

PER_STEP = 2 * PARTS          # how often an event can be found to happen in a step

cube = types.float64[:, :, ::1]


class Record(NamedTuple):
    """Recorded solution, and watched events."""

    t: np.ndarray            # (room,) ends of steps
    y: np.ndarray            # (room, n)
    poly: np.ndarray         # (room or 0, COEFFICIENTS, n): every step as a polynomial
    poly_t: np.ndarray       # (room or 0, 3): origin, scale, degree
    times: np.ndarray        # at which the solution is asked for
    at_times: np.ndarray     # (times, n)
    now: np.ndarray          # (COEFFICIENTS, n): the present step; (0, n) if nothing needs it
    y_trial: np.ndarray      # (n,)
    events: np.ndarray       # (events,) addresses; negative: of an event of the right-hand side
    params: np.ndarray       # given to them
    g: np.ndarray            # (PARTS + 1, events): along the step
    g_trial: np.ndarray      # (events,)
    direction: np.ndarray    # (events,)
    left: np.ndarray         # (events,) occurrences of an event left until it ends the run; 0: it never does
    event_t: np.ndarray      # (room for events,)
    event_y: np.ndarray      # (room for events, n)
    event_kind: np.ndarray   # (room for events,)
    cursor: np.ndarray        # (CURSOR + events,)


RECORD = Held(types.NamedTuple([floats, table, cube, table, floats, table, table, floats, counts, floats, table, floats,
                               counts, counts, floats, table, counts, counts], Record))


def empty_record(rows: int, n: int) -> Record:
    """Empty record for this number of steps; without events and intermediate times."""
    nothing, none = np.empty(0), np.empty(0, np.int64)
    return Record(np.empty(rows), np.empty((rows, n)), np.empty((0, 0, n)), np.empty((0, 3)), nothing, np.empty((0, n)),
                 np.empty((0, n)), np.empty(n), none, nothing, np.empty((PARTS + 1, 0)), nothing, none, none, nothing,
                 np.empty((0, n)), none, np.zeros(CURSOR, np.int64))


@inner
def evaluate_events(watched, t, y, g):
    """Every event's number at (t, y) into g."""
    events, params, split, own, context = watched
    for k in range(events.shape[0]):
        if events[k] < 0:
            status = own(context, -events[k], t, y[:split], y[split:], g[k:k + 1])
            if status != 0:
                return status
        elif call_function(events[k], t, y[:split], y[split:], params, g[k:k + 1]) != 0:
            return ACTUATION_FAILED
    return 0


@inline
def no_event(context, address, t, q, v, out):
    """Of a right-hand side that has no events."""
    return ACTUATION_FAILED


@inner
def locate_event(watched, record, k, first, origin, scale, degree, a, b, ga, gb, began):
    """If event k happens in (a, b], note when, in order of time among those of this step."""
    status, when, happens = 0, a, crosses(ga, gb, record.direction[k])
    left = not happens and leaves(ga, gb, record.direction[k])
    if happens and gb != 0.0:
        status, when = locate(evaluate_events, watched, k, record.now, origin, scale, degree, a, b, ga, gb,
                              record.y_trial, record.g_trial)
    elif happens or left:
        status, when, at_once = boundary(evaluate_events, watched, k, record.now, origin, scale, degree, a, b,
                                         gb if left else ga, left, record.y_trial, record.g_trial)
        happens = happens or not (at_once and record.cursor[CURSOR + k] == 1)
    record.cursor[CURSOR + k] = 1 if gb == 0.0 and ga != 0.0 else 0
    if happens:
        place = record.cursor[EVENTS]
        while place > first and abs(record.event_t[place - 1] - began) > abs(when - began):
            record.event_t[place], record.event_kind[place] = record.event_t[place - 1], record.event_kind[place - 1]
            place -= 1
        record.event_t[place], record.event_kind[place] = when, k
        record.cursor[EVENTS] += 1
    return status


@inner
def locate_events(own, context, memory, record, origin, scale, degree):
    """Locate the events of the last step in order of time; the clock and the state go back to one that ends the run."""
    clock, cursor, g = memory.clock, record.cursor, record.g
    t, began = clock[TIME], clock[TIME] - clock[TAKEN]
    watched = (record.events, record.params, cursor[SPLIT], own, context)
    status = evaluate_events(watched, t, memory.rows[0], g[PARTS])
    for part in range(1, PARTS):
        if status == 0:
            when = began + clock[TAKEN] * part / PARTS
            evaluate(record.now, origin, scale, degree, when, record.y_trial)
            status = evaluate_events(watched, when, record.y_trial, g[part])
    if status != 0:
        return status
    first = cursor[EVENTS]
    for k in range(g.shape[1]):
        for part in range(PARTS):
            a = began + clock[TAKEN] * part / PARTS
            b = t if part + 1 == PARTS else began + clock[TAKEN] * (part + 1) / PARTS
            ga, gb = g[part, k], g[part + 1, k]
            side = record.direction[k] * ga <= 0.0  # it could cross in the wanted direction from where it is
            if ga * gb > 0.0 and side and may_touch(g, k, part):
                status, middle, gm = extreme(evaluate_events, watched, k, 1.0 if ga > 0.0 else -1.0, record.now, origin,
                                             scale, degree, a, b, record.y_trial, record.g_trial)
                status = status if status != 0 else locate_event(watched, record, k, first, origin, scale, degree, a,
                                                                 middle, ga, gm, began)
                a, ga = middle, gm
            status = status if status != 0 else locate_event(watched, record, k, first, origin, scale, degree, a, b,
                                                             ga, gb, began)
            if status != 0:
                return status
    for place in range(first, cursor[EVENTS]):
        k = record.event_kind[place]
        evaluate(record.now, origin, scale, degree, record.event_t[place], record.event_y[place])
        if record.left[k] > 0:
            record.left[k] -= 1
            if record.left[k] == 0:
                cursor[EVENTS] = place + 1
                clock[TIME] = record.event_t[place]
                copy(record.event_y[place], memory.rows[0])
                return EVENT
    for k in range(g.shape[1]):
        g[0, k] = g[PARTS, k]
    return 0


@inline
def record_step(polynomial, context, method, memory, record):
    """As `record_step_and`, of a right-hand side without events of its own."""
    return record_step_and(no_event, polynomial, context, method, memory, record)


@inline
def record_step_and(own, polynomial, context, method, memory, record):
    """Record the end of a step and, where asked for, its polynomial, its events, and the solution at given times."""
    clock, cursor, k, status = memory.clock, record.cursor, memory.tally[RECORDED], 0
    if record.now.shape[0] > 0:
        origin, scale, degree = polynomial(method, memory, record.now)
        if record.g.shape[1] > 0:
            status = locate_events(own, context, memory, record, origin, scale, degree)
            if status != 0 and status != EVENT:
                return status
        if record.poly.shape[0] > 0:
            record.poly_t[k, 0], record.poly_t[k, 1], record.poly_t[k, 2] = origin, scale, degree
            for p in range(degree + 1):
                copy(record.now[p], record.poly[k, p])
        j = cursor[NEXT_TIME]
        while j < record.times.shape[0] and (clock[TIME] - record.times[j]) * clock[TAKEN] >= 0.0:
            evaluate(record.now, origin, scale, degree, record.times[j], record.at_times[j])
            if record.times[j] == clock[TIME]:
                copy(memory.rows[0], record.at_times[j])
            j += 1
        cursor[NEXT_TIME] = j
    record.t[k] = clock[TIME]
    copy(memory.rows[0], record.y[k])
    memory.tally[RECORDED] = k + 1
    return status


@inline
def room_in(record):
    """Number of further steps that can be recorded: zero if the next one might have too many events for the record."""
    full = record.cursor[EVENTS] + PER_STEP * record.g.shape[1] > record.event_t.shape[0]
    return 0 if full else record.t.shape[0]
