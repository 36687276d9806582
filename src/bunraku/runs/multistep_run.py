"""Simulation with multistep methods (gear, bdf): `integrate/nordsieck.py` under a mechanism."""

from __future__ import annotations

from bunraku.entries.signatures import int64
from bunraku.integrate import nordsieck
from bunraku.integrate import solver_memory as m
from bunraku.integrate.advance import advance
from bunraku.integrate.history import FAMILY
from bunraku.integrate.record import room_in
from bunraku.integrate.solver_memory import copy
from bunraku.jit import entry, hold, inline, inner, outlived
from bunraku.runs.context import BEGAN, COASTED, RUN, STAYS_OPEN, agree, make_context, record_motion
from bunraku.runs.loop_closing import note_open, start_closed, step_back
from bunraku.runs.singular import correct, right_hand_side_near, settle_near


@inner
def prepare(rhs, agree, context, method, memory):
    status = start_closed(context, memory)
    return status if status != 0 else nordsieck.prepare(rhs, agree, context, method, memory)


@inline
def begin_step(context, memory):
    context.passing[BEGAN] = memory.clock[m.TIME]
    copy(memory.rows[0], context.start)


@inline
def attempt(rhs, agree, context, method, memory):
    begin_step(context, memory)
    status = nordsieck.step(correct, rhs, agree, context, method, memory)
    if status == m.LOOPS_OPEN:
        memory.clock[m.TAKEN] = memory.clock[m.STEP]
        note_open(context, context.unclosed, memory)
    return status


@inline
def complete(rhs, agree, context, method, memory):
    """Finish a step; it is rejected if its loops do not close."""
    return 0 if context.passing[STAYS_OPEN] == 0.0 else begin_again(rhs, agree, context, context, memory)


@inner
def begin_again(rhs, agree, problem, context, memory):
    """Restart with a shorter step at the beginning of a rejected step; `problem` is the argument of `rhs` and
    `agree`."""
    clock, tally = memory.clock, memory.tally
    context.passing[COASTED] = 0.0
    if step_back(context, context.start, memory):
        return m.LOOPS_OPEN
    clock[m.PENDING], clock[m.GROWTH], tally[m.FAILURES], tally[m.LAST_REJECTED] = 1.0, 2.0, 0, tally[m.STEPS]
    clock[m.WISH], clock[m.EXTRAPOLATED] = 0.0, 0.0
    status = nordsieck.begin_again(rhs, agree, problem, memory)
    return m.TRY_AGAIN if status == 0 else status


@entry("simulation with multistep methods", int64(FAMILY, *RUN), seconds=9)
def run_multistep(method, motion, structure, address, params, external, memory, record):
    owned = make_context(motion, structure, address, params, external, memory)
    return outlived(owned, advance(prepare, attempt, complete, nordsieck.polynomial, nordsieck.go_on,
                                   right_hand_side_near, agree, settle_near, record_motion, hold(owned), method,
                                   memory, record, room_in(record)))
