"""The loop around a method: attempt, settle, note, until the time is reached or something stops it.

A method is five compiled functions over `Memory`; `runge_kutta.py` and `nordsieck.py` have them:

    prepare(rhs, context, method, memory) -> status      from the state rows[0] at the time TIME
    attempt(rhs, context, method, memory) -> ACCEPTED, TRY_AGAIN, or why not
    complete(rhs, context, method, memory) -> status     what is still to be evaluated at the new state; one that puts
                                                         TIME and state back takes the step back (TRY_AGAIN, or why)
    polynomial(method, memory, out) -> (origin, scale, degree)      the last step, as the method itself sees it
    go_on(method, memory)                                before the next step

To restart after a discontinuity: put the state into rows[0] and set tally[STARTED] and clock[STEP] to 0.
"""

from bunraku.integrate.memory import (
    ACCEPTED,
    AIM,
    BEGAN,
    GAP,
    MAX_STEP,
    MIN_STEP,
    ORDER,
    REACHED,
    RECORD_FULL,
    RECORDED,
    STARTED,
    STEP,
    TIME,
    TRY_AGAIN,
    UNTIL,
)
from bunraku.jit import inline

SPECK = 1e-6  # of the way to a new stop: a past shorter than this says nothing about the steps to take there


@inline
def advance(prepare, attempt, complete, polynomial, go_on, rhs, settle, note, context, method, memory, notes, room):
    """From TIME to UNTIL, or until `room` states are recorded, or something fails: says which.

    `note(polynomial, context, method, memory, notes) -> status` sees every new state; other than 0 it ends the run.
    """
    clock, tally = memory.clock, memory.tally
    if clock[TIME] == clock[UNTIL]:
        return REACHED
    if clock[UNTIL] != clock[AIM] and clock[MIN_STEP] < clock[MAX_STEP]:
        past = abs(clock[TIME] - clock[BEGAN])
        if 0.0 < past < SPECK * abs(clock[UNTIL] - clock[TIME]):
            tally[STARTED], clock[STEP] = 0, 0.0
    clock[AIM] = clock[UNTIL]
    if tally[STARTED] == 0:
        status = prepare(rhs, context, method, memory)
        if status != 0:
            return status
        tally[STARTED], clock[BEGAN] = 1, clock[TIME]
    while clock[TIME] != clock[UNTIL]:
        if tally[RECORDED] >= room:
            return RECORD_FULL
        began = clock[TIME]
        status = attempt(rhs, context, method, memory)
        if status == TRY_AGAIN:
            continue
        if status != ACCEPTED:
            return status
        clock[GAP] = max(clock[GAP], settle(context, memory.rows, tally[ORDER] + 1, clock[STEP]))
        unfinished = complete(rhs, context, method, memory)
        if clock[TIME] == began:  # taken back
            if unfinished == TRY_AGAIN:
                continue
            return unfinished
        status = note(polynomial, context, method, memory, notes)
        if status != 0 or unfinished != 0:
            return status if status != 0 else unfinished
        go_on(method, memory)
    return REACHED
