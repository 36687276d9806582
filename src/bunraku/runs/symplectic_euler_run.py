"""Simulation with symplectic Euler: one evaluation a step, order 1, energy bounded."""

from __future__ import annotations

import numpy as np

from bunraku.algorithms.stepping import symplectic_step
from bunraku.entries.signatures import int64
from bunraku.integrate import solver_memory as m
from bunraku.integrate.control import fixed_step
from bunraku.integrate.record import record_step
from bunraku.integrate.solver_memory import copy
from bunraku.jit import entry, hold, inline, inner, outlived
from bunraku.runs.context import RUN, agree, coordinates, driven_accelerations, has_loops, make_context
from bunraku.runs.loop_closing import close_anew, note_open, too_far
from bunraku.tolerances import LAST_STEP


@inner
def straight_line(method, memory, out):
    """The last step of a method of order 1, which kept its start in rows[1]: (origin, scale, degree)."""
    rows = memory.rows
    for i in range(rows.shape[1]):
        out[0, i] = rows[1, i]
        out[1, i] = rows[0, i] - rows[1, i]
    return memory.clock[m.TIME] - memory.clock[m.TAKEN], memory.clock[m.TAKEN], 1


@inner
def plain_step(touch, context, q, v, a, h):
    """From (q, v) to the end of a step, in place. Returns success."""
    symplectic_step(context.structure.body_i, q, v, a, h)
    return True


@inline
def at_start(context, memory, q, v, a, h):
    """(status, step): accelerations at the start of a step of h."""
    memory.tally[m.EVALUATIONS] += 1
    return driven_accelerations(context, memory.clock[m.TIME], q, v, a), h


@inner
def steps(accelerations, step, touch, context, memory, record):
    """Fixed steps by `step`, which gets `accelerations` at their start or of their course; `touch` is for it alone."""
    clock, tally, y, start, nq = memory.clock, memory.tally, memory.rows[0], memory.rows[1], coordinates(context)
    q, v, a, loops = y[:nq], y[nq:], context.change, has_loops(context)
    while clock[m.TIME] < clock[m.UNTIL]:
        if tally[m.RECORDED] == record.t.shape[0]:
            return m.RECORD_FULL
        longest, last = fixed_step(clock[m.TIME], clock[m.UNTIL], clock[m.STEP], LAST_STEP)
        status, h = accelerations(context, memory, q, v, a, longest)
        last = last and h == longest
        status = agree(context, memory, status)
        if status != 0:
            return status
        copy(y, start)
        if not step(touch, context, q, v, a, h):
            return m.CONTACTS_FULL
        if loops:
            copy(y, context.unclosed)
            clock[m.TAKEN] = h
            gap = close_anew(context, q, v)  # the factors at hand are those of the start
            if gap == np.inf or too_far(context, start, y, memory):
                copy(start, y)
                note_open(context, context.unclosed, memory)
                return m.LOOPS_OPEN
            clock[m.GAP] = max(clock[m.GAP], gap)
        clock[m.TIME], clock[m.TAKEN] = clock[m.UNTIL] if last else clock[m.TIME] + h, h
        tally[m.STEPS] += 1
        status = record_step(straight_line, context, 0, memory, record)
        if status != 0:
            return status
    return m.REACHED


@entry("simulation with symplectic Euler", int64(*RUN), seconds=5)
def run_symplectic_euler(motion, structure, address, params, external, memory, record):
    owned = make_context(motion, structure, address, params, external, memory)
    return outlived(owned, steps(at_start, plain_step, 0, hold(owned), memory, record))
