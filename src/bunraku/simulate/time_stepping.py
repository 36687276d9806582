"""Simulation with contact in fixed steps (`contact/stepping.py`): symplectic Euler with a contact problem in it."""

from __future__ import annotations

import numpy as np

from bunraku.contact.memory import touch_of
from bunraku.contact.stepping import contact_step
from bunraku.entries.signatures import int64
from bunraku.integrate import memory as m
from bunraku.integrate.control import fixed_step
from bunraku.integrate.memory import copy
from bunraku.integrate.record import record_step
from bunraku.jit import entry, hold, inner, outlived
from bunraku.simulate.context import RUN, coordinates, driven_accelerations, has_loops, make_context
from bunraku.simulate.loops import close_loops, note_open, too_far
from bunraku.simulate.symplectic_euler import straight_line
from bunraku.tolerances import LAST_STEP

CONTACT_FULL = 8      # status of a run, beside those of `integrate.memory`


@inner
def steps(context, touch, memory, record):
    clock, tally, y, start, nq = memory.clock, memory.tally, memory.rows[0], memory.rows[1], coordinates(context)
    q, v, a, loops, structure = y[:nq], y[nq:], context.change, has_loops(context), context.structure
    while clock[m.TIME] < clock[m.UNTIL]:
        if tally[m.RECORDED] == record.t.shape[0]:
            return m.RECORD_FULL
        h, last = fixed_step(clock[m.TIME], clock[m.UNTIL], clock[m.STEP], LAST_STEP)
        status = driven_accelerations(context, clock[m.TIME], q, v, a)
        tally[m.EVALUATIONS] += 1
        if status != 0:
            return status
        copy(y, start)
        if not contact_step(touch, structure, structure.dof_f, q, v, a, h, context.work):
            return CONTACT_FULL
        if loops:
            copy(y, context.unclosed)
            gap = close_loops(context, q, v)
            if gap == np.inf or too_far(context, start, y, memory):
                copy(start, y)
                clock[m.TAKEN] = h
                note_open(context, context.unclosed, memory)
                return m.LOOPS_OPEN
            clock[m.GAP] = max(clock[m.GAP], gap)
        clock[m.TIME], clock[m.TAKEN] = clock[m.UNTIL] if last else clock[m.TIME] + h, h
        tally[m.STEPS] += 1
        status = record_step(straight_line, context, 0, memory, record)
        if status != 0:
            return status
    return m.REACHED


@entry("simulation with contact, fixed steps", int64(*RUN), seconds=15)
def run_time_stepping(motion, structure, address, params, external, memory, record):
    owned = make_context(motion, structure, address, params, external, memory)
    touch = touch_of(structure.touch)
    return outlived(owned, steps(hold(owned), hold(touch), memory, record))
