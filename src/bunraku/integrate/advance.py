"""The main loop of a method: attempt, settle, note, until the time is reached or the run is stopped.

A method is five compiled functions over `Memory`; `runge_kutta.py` and `nordsieck.py` have them:

    prepare(rhs, agree, context, method, memory) -> status      from the state rows[0] at the time TIME
    attempt(rhs, agree, context, method, memory) -> ACCEPTED, TRY_AGAIN, or why not
    complete(rhs, agree, context, method, memory) -> status     what is still to be evaluated at the new state; one
                                                         that puts TIME and state back takes the step back (TRY_AGAIN,
                                                         or why)
    polynomial(method, memory, out) -> (origin, scale, degree)      the last step, as the method itself sees it
    go_on(method, memory)                                before the next step

`rhs(context, t, y, dy) -> status` evaluates the derivatives; `agree` (`sums.py`) combines the sums and status of all
workers. Every decision depends on the combined values only.

To restart after a discontinuity: put the state into rows[0] and set tally[STARTED] and clock[STEP] to 0.
"""

from bunraku.integrate import solver_memory as m
from bunraku.jit import inline

SPECK = 1e-6  # of the way to a new stop: a past shorter than this says nothing about the steps to take there


@inline
def advance(prepare, attempt, complete, polynomial, go_on, rhs, agree, settle, note, context, method, memory, notes,
            room):
    """From TIME to UNTIL, or until `room` states are recorded, or a failure: returns the status.

    `note(polynomial, context, method, memory, notes) -> status` sees every new state; other than 0 it ends the run.
    """
    clock, tally = memory.clock, memory.tally
    if clock[m.TIME] == clock[m.UNTIL]:
        return m.REACHED
    if clock[m.UNTIL] != clock[m.LAST_UNTIL] and clock[m.MIN_STEP] < clock[m.MAX_STEP]:
        past = abs(clock[m.TIME] - clock[m.BEGAN])
        if 0.0 < past < SPECK * abs(clock[m.UNTIL] - clock[m.TIME]):
            tally[m.STARTED], clock[m.STEP] = 0, 0.0
    clock[m.LAST_UNTIL] = clock[m.UNTIL]
    if tally[m.STARTED] == 0:
        status = prepare(rhs, agree, context, method, memory)
        if status != 0:
            return status
        tally[m.STARTED], clock[m.BEGAN] = 1, clock[m.TIME]
    while clock[m.TIME] != clock[m.UNTIL]:
        if tally[m.RECORDED] >= room:
            return m.RECORD_FULL
        began = clock[m.TIME]
        status = attempt(rhs, agree, context, method, memory)
        if status == m.TRY_AGAIN:
            continue
        if status != m.ACCEPTED:
            return status
        clock[m.GAP] = max(clock[m.GAP], settle(context, memory.rows, tally[m.ORDER] + 1, clock[m.STEP]))
        unfinished = complete(rhs, agree, context, method, memory)
        if clock[m.TIME] == began:  # taken back
            if unfinished == m.TRY_AGAIN:
                continue
            return unfinished
        status = note(polynomial, context, method, memory, notes)
        if status != 0 or unfinished != 0:
            return status if status != 0 else unfinished
        go_on(method, memory)
    return m.REACHED
