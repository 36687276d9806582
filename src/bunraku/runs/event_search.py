"""Event location in steps made by several workers: afterwards, on the recorded polynomials.

No worker has the whole state, so none can evaluate a condition during its steps. Steps beyond an event are discarded.
"""

from __future__ import annotations

from bunraku.entries.signatures import float64, int64
from bunraku.integrate import solver_memory as m
from bunraku.integrate.record import RECORD, locate_events, no_event
from bunraku.integrate.solver_memory import MEMORY, copy
from bunraku.jit import entry


@entry("events of shared runs", int64(MEMORY, RECORD, int64, float64), seconds=3)
def replay(memory, record, steps, began):
    """Go through the recorded steps until an event ends the run: its status, or 0. Clock, state and RECORDED are then
    those of the event. `began`: time at which the first step began."""
    clock, tally, before = memory.clock, memory.tally, began
    end, taken = clock[m.TIME], clock[m.TAKEN]
    for k in range(steps):
        clock[m.TIME], clock[m.TAKEN] = record.t[k], record.t[k] - before
        before = record.t[k]
        copy(record.y[k], memory.rows[0])
        for p in range(record.now.shape[0]):
            copy(record.poly[k, p], record.now[p])
        origin, scale, degree = record.poly_t[k, 0], record.poly_t[k, 1], int(record.poly_t[k, 2])
        status = locate_events(no_event, 0, memory, record, origin, scale, degree)
        if status != 0:
            tally[m.STEPS] -= steps - 1 - k
            tally[m.RECORDED] = k + 1
            record.t[k] = clock[m.TIME]
            copy(memory.rows[0], record.y[k])
            return status
    clock[m.TIME], clock[m.TAKEN] = end, taken
    return 0
