"""Simulation with Runge-Kutta methods: `integrate/runge_kutta.py` under a mechanism."""

from __future__ import annotations

import numpy as np

from bunraku.algorithms.states import normalise_quaternions
from bunraku.entries.signatures import int64
from bunraku.integrate import runge_kutta
from bunraku.integrate import solver_memory as m
from bunraku.integrate.advance import advance
from bunraku.integrate.record import room_in
from bunraku.integrate.runge_kutta import TABLEAU
from bunraku.integrate.solver_memory import copy
from bunraku.jit import entry, hold, inline, inner, outlived
from bunraku.runs.context import (
    BEGAN,
    CLOSED_STAGES,
    RECENT,
    RUN,
    WANTS_CLOSED,
    agree,
    coordinates,
    has_loops,
    make_context,
    record_motion,
    right_hand_side,
    smallest_pivot,
    touches,
)
from bunraku.runs.loop_closing import (
    close_loops,
    keep_contacts,
    note_open,
    right_hand_side_closed,
    start_closed,
    step_back,
    too_far,
)
from bunraku.tolerances import FADING, WEAK

STEPS_WITH_CLOSED_STAGES = 16  # after one that needed them


@inner
def right_hand_side_of_stage(context, t, y, dy):
    """As `right_hand_side`; in steps that need it, of the nearest state that closes all loops.

    Stages lie off the loops by the square of the step. There redundant constraints are inconsistent, and close to a
    singular configuration accelerations grow without bound (see `singular.py`). f(nearest closed state) is an
    equivalent right-hand side: it equals f where loops are closed, and is smooth around them, so that no order is lost
    if all stages of a step use the same.
    """
    passing = context.passing
    if passing[CLOSED_STAGES] > 0.0:
        return right_hand_side_closed(context, t, y, dy)
    status = right_hand_side(context, t, y, dy)
    if has_loops(context) and (status == m.LOOPS_CLASH or (
            status == 0 and smallest_pivot(context) < WEAK * passing[RECENT])):
        passing[WANTS_CLOSED] = 1.0
        return m.LOOPS_CLASH
    return status


@inner
def unit_quaternions(context, rows, count, h):
    normalise_quaternions(context.structure.body_i, rows, count)
    return 0.0


@inner
def prepare(rhs, agree, context, method, memory):
    status = start_closed(context, memory)
    return status if status != 0 else runge_kutta.prepare(rhs, agree, context, method, memory)


@inline
def attempt(rhs, agree, context, method, memory):
    """One step; repeated with closed stages if one of them requires it."""
    clock, passing = memory.clock, context.passing
    passing[WANTS_CLOSED], passing[BEGAN], step = 0.0, clock[m.TIME], clock[m.STEP]
    status = runge_kutta.attempt(rhs, agree, context, method, memory)
    if passing[WANTS_CLOSED] > 0.0:
        passing[CLOSED_STAGES], clock[m.STEP] = STEPS_WITH_CLOSED_STAGES, step
        return m.TRY_AGAIN
    if status == m.LOOPS_OPEN:
        clock[m.TAKEN] = min(step, clock[m.MAX_STEP])
        note_open(context, context.unclosed, memory)
    return status


@inline
def complete(rhs, agree, context, method, memory):
    """The derivative at the end by the method, then loops and contacts closed with the factors of that evaluation.
    A step whose loops do not close is rejected."""
    status, start = runge_kutta.complete(rhs, agree, context, method, memory), memory.rows[method.B.shape[0] + 2]
    if has_loops(context):
        status = close_step(context, start, status, memory)
    if touches(context) and status == 0:
        keep_contacts_of_step(context, start, memory)
    return status


@inner
def keep_contacts_of_step(context, start, memory):
    y = memory.rows[0]
    copy(y, context.unclosed)
    keep_contacts(context, y)
    if too_far(context, start, y, memory):
        copy(context.unclosed, y)


@inner
def close_step(context, start, status, memory):
    clock, y, nq, passing = memory.clock, memory.rows[0], coordinates(context), context.passing
    copy(y, context.unclosed)
    if status == 0 or status == m.ACTUATION_FAILED:
        gap = close_loops(context, y[:nq], y[nq:])
        if gap < np.inf and not too_far(context, start, y, memory):
            clock[m.GAP] = max(clock[m.GAP], gap)
            weakest = smallest_pivot(context)
            near = weakest < WEAK * passing[RECENT]
            passing[CLOSED_STAGES] = STEPS_WITH_CLOSED_STAGES if near else passing[CLOSED_STAGES] - 1.0
            passing[RECENT] = max(weakest, FADING * passing[RECENT])
            return status
    h = clock[m.TAKEN]
    shortest = step_back(context, start, memory)
    if passing[WANTS_CLOSED] > 0.0:
        passing[CLOSED_STAGES], clock[m.STEP] = STEPS_WITH_CLOSED_STAGES, h
        return m.TRY_AGAIN
    clock[m.STEP] = 0.5 * h
    return m.TRY_AGAIN if not shortest else status if status != 0 else m.LOOPS_OPEN


@entry("simulation with Runge-Kutta methods", int64(TABLEAU, *RUN), seconds=6)
def run_runge_kutta(method, motion, structure, address, params, external, memory, record):
    owned = make_context(motion, structure, address, params, external, memory)
    return outlived(owned, advance(prepare, attempt, complete, runge_kutta.polynomial, runge_kutta.go_on,
                                   right_hand_side_of_stage, agree, unit_quaternions, record_motion, hold(owned),
                                   method, memory, record, room_in(record)))
