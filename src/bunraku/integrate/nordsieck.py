"""The core of multistep methods in Nordsieck form: variable step and order, error control.

Predict, correct, compare: the change that the corrector makes is proportional to the local error. Order and step are
reconsidered every q + 1 steps; of the orders q - 1, q and q + 1 the one that allows the largest step is taken.
References: Hindmarsh, LSODE (1983), whose rules these are; Gear (1971), ch. 9.
Cost of a step: what the corrector evaluates, one or two times; the arithmetic is about q^2/2 additions per component.

A step has three parts, so that workers can share it [J, sec. III.C]:

    preparation   vector work before an evaluation: apply order and step as decided before, weigh, predict
    follow_up     vector work after it: the correction and five weighted sums (`gear.py`, `implicit.py`; `bdf.py` has
                  its own)
    control       scalars only: from the totals of the sums, accept or reject, and decide about order and step

Between `follow_up` and `control` the workers agree about sums and status (`sums.py`). The history of an accepted step
is corrected at once, that of a rejected one retracted and rescaled.
"""

from __future__ import annotations

import math

from bunraku.integrate import solver_memory as m
from bunraku.integrate.bdf import newton
from bunraku.integrate.control import fitted_step, smallest_step
from bunraku.integrate.gear import functional, independent
from bunraku.integrate.history import (
    ABOVE,
    BELOW,
    BELOW_IF_REJECTED,
    CHANGE,
    CONVERGED,
    DIVERGED,
    LAST_CHANGE,
    MOVED,
    RATES,
    WEIGHTS,
    correct_history,
    predict,
    rescale,
    retract,
    shift,
)
from bunraku.integrate.solver_memory import copy, multiply
from bunraku.integrate.sums import add_squares, root_mean_square, span_end, span_start
from bunraku.jit import inline, inner

WORTHWHILE = 1.1                  # a smaller gain is not worth a change of step
MARGIN_DOWN, MARGIN_SAME, MARGIN_UP = 1.3, 1.2, 1.4
TINY = 1e-6
LEAST = 1e-300                    # first step
CONTRACTING = 0.5                 # rate of functional iteration up to which steps may grow
NUDGE = 1e-6                      # a step that differs by less is the same step
SHORT = 0.01                      # part of a step within which a stop is reached on the polynomial of the last step
REGROWN = 0.3                     # of the tolerance: error that a step after a stop may inherit from a short one
CALM, CONVINCING = 60, 1.3        # fewer than CALM / q steps after a failure, a higher order must gain so much
BEGIN_AGAIN = -3                  # answer of `control` after repeated failures


@inner
def prepare(rhs, agree, context, method, memory):
    """Begin at order 1: derivative at the start and a first step."""
    clock, tally, z = memory.clock, memory.tally, memory.rows
    status = rhs(context, clock[m.TIME], z[0], z[RATES])
    tally[m.EVALUATIONS] += 1
    weigh(memory)
    add_squares(z[RATES], z[WEIGHTS], memory, MOVED)
    add_largest_tolerance(memory)
    status = agree(context, memory, status)
    if status != 0:
        return status
    if clock[m.STEP] == 0.0:
        clock[m.STEP] = opening_step(memory)
    multiply(clock[m.STEP], z[RATES], z[1])
    tally[m.ORDER], tally[m.NEXT_ORDER], tally[m.WAIT], tally[m.FAILURES] = 1, 1, 2, 0
    tally[m.MATRIX_STEP], tally[m.JACOBIAN_STEP], tally[m.TROUBLE], tally[m.LAST_REJECTED] = -1, -1, 0, -100
    clock[m.PENDING], clock[m.GROWTH], clock[m.RATE], clock[m.STEEPNESS] = 1.0, 1e4, 0.7, 0.0
    clock[m.WISH], clock[m.EXTRAPOLATED] = 0.0, 0.0
    return 0


@inline
def weigh(memory):
    """Weights of all components for the state z_0; the sum of z_q, which a rejected step goes back to."""
    z, tolerance, spans, q = memory.rows, memory.tolerance, memory.spans, memory.tally[m.ORDER]
    for s in range(spans.shape[0]):
        total = 0.0
        for i in range(span_start(spans, s), span_end(spans, s)):
            weight = 1.0 / (tolerance[0, i] * abs(z[0, i]) + tolerance[1, i])
            z[WEIGHTS, i] = weight
            total += z[q, i] * weight * z[q, i] * weight
        memory.sums[s, BELOW_IF_REJECTED] = total


@inner
def add_largest_tolerance(memory):
    spans = memory.spans
    for s in range(spans.shape[0]):
        largest = 0.0
        for i in range(span_start(spans, s), span_end(spans, s)):
            largest = max(largest, memory.tolerance[0, i])
        memory.sums[s, m.LARGEST] = largest


@inner
def opening_step(memory):
    """A first step that order 1 can take, without another evaluation (LSODE's rule)."""
    clock = memory.clock
    span = clock[m.UNTIL] - clock[m.TIME]
    small = min(max(memory.totals[m.LARGEST], 100.0 * m.EPSILON), 1e-3)
    speed, scale = root_mean_square(memory, MOVED), max(abs(clock[m.TIME]), abs(clock[m.UNTIL]))
    h = math.sqrt(small) * scale / math.sqrt(1.0 + (small * scale * speed) ** 2)
    return math.copysign(min(max(h, clock[m.MIN_STEP], LEAST), clock[m.MAX_STEP]), span)


@inner
def change_step(memory, ratio, limit):
    """Change the step by the ratio, within the limits of the step and of growth: by what to scale the history."""
    clock, tally = memory.clock, memory.tally
    size = abs(clock[m.STEP])
    ratio = min(max(ratio, smallest_step(clock) / size), limit)
    ratio = min(ratio, clock[m.MAX_STEP] / size)
    clock[m.STEP] *= ratio
    tally[m.WAIT] = tally[m.ORDER] + 1
    return ratio


@inner
def set_order(method, memory, order):
    """Change the order by one; a new highest derivative comes from the last change."""
    tally, z = memory.tally, memory.rows
    q = tally[m.ORDER]
    if order > q:
        multiply(method.L[q, q] / (q + 1), z[CHANGE], z[q + 1])
    tally[m.ORDER] = order


@inline
def calm(method, tally):
    """Whether no step has failed for a while.

    The higher the order, the shorter the steps at which Adams' methods with functional iteration are stable. Where
    that limits the steps, errors look small between two failures, and a higher order would only fail sooner.
    """
    q = tally[m.ORDER]
    return method.newton or q < 2 or q * (tally[m.STEPS] - tally[m.LAST_REJECTED]) >= CALM


@inline
def converging(method, memory, order):
    """By what the step may grow with this order if functional iteration is to converge well."""
    clock = memory.clock
    rate = clock[m.STEEPNESS] * abs(clock[m.STEP]) * method.L[order, 0]
    return CONTRACTING / rate if rate > 0.0 else math.inf


@inner
def consider(method, memory, error, failed):
    """Choose the order that allows the largest step: NEXT_ORDER, PENDING."""
    clock, tally = memory.clock, memory.tally
    q = tally[m.ORDER]
    same = 1.0 / (MARGIN_SAME * error ** (1.0 / (q + 1)) + MARGIN_SAME * TINY)
    up = down = 0.0
    if not failed and q < tally[m.MAX_ORDER]:
        above = root_mean_square(memory, ABOVE) / method.T[q, 2]
        up = 1.0 / (MARGIN_UP * above ** (1.0 / (q + 2)) + MARGIN_UP * TINY)
    if q > 1:
        below = root_mean_square(memory, BELOW_IF_REJECTED if failed else BELOW) / method.T[q, 0]
        down = 1.0 / (MARGIN_DOWN * below ** (1.0 / q) + MARGIN_DOWN * TINY)
    same = min(same, max(converging(method, memory, q), 1.0))
    if up > 0.0:
        up = min(up, max(converging(method, memory, q + 1), 1.0))
    if down > 0.0:
        down = min(down, max(converging(method, memory, q - 1), 1.0))
    if not calm(method, tally) and up < CONVINCING * same:
        up = 0.0
    order, ratio = q, same
    if up > same and up > down:
        order, ratio = q + 1, up
    elif down > same and down >= up:
        order, ratio = q - 1, (min(down, 1.0) if failed else down)
    tally[m.NEXT_ORDER], clock[m.PENDING] = order, ratio


@inner
def begin_again(rhs, agree, context, memory):
    """Restart at order 1 after repeated failures: the history is discarded."""
    clock, tally, z = memory.clock, memory.tally, memory.rows
    clock[m.STEP] = math.copysign(max(0.1 * abs(clock[m.STEP]), smallest_step(clock)), clock[m.STEP])
    status = rhs(context, clock[m.TIME], z[0], z[RATES])
    tally[m.EVALUATIONS] += 1
    multiply(clock[m.STEP], z[RATES], z[1])
    tally[m.ORDER], tally[m.NEXT_ORDER], tally[m.WAIT], tally[m.TROUBLE] = 1, 1, 5, 1
    return agree(context, memory, status)


@inner
def extrapolate(memory, h):
    """Come to a stop next to the last step without an evaluation: the polynomial of that step holds there, its error
    is SHORT^2 times that of a prediction. The history stays as good as it is for the steps to come."""
    clock, tally = memory.clock, memory.tally
    shift(memory.rows, tally[m.ORDER], h / clock[m.STEP])
    clock[m.TIME], clock[m.TAKEN] = clock[m.UNTIL], h
    clock[m.EXTRAPOLATED] += abs(h)
    tally[m.STEPS] += 1


@inner
def go_back(method, memory, wanted, size):
    """After a step that a stop has cut short: WISH for the step that was wanted. It must not be so long that the last
    correction, of the given size, which grows by (ratio)^q in the highest derivative, spoils the next prediction: this
    is where rounding and jumps of the right-hand side show."""
    clock, tally = memory.clock, memory.tally
    q, h = tally[m.ORDER], clock[m.STEP]
    spoiling = q * method.L[q, q] * size
    reach = (REGROWN * method.T[q, 1] / spoiling) ** (1.0 / q) if spoiling > 0.0 else math.inf
    if reach * abs(h) >= abs(wanted):
        clock[m.WISH] = wanted
    else:
        clock[m.WISH], tally[m.WAIT] = max(reach, 1.0) * h, q + 1


@inline
def attempt(rhs, agree, context, method, memory):
    """One step, corrected by the method's own iteration."""
    return step(correct, rhs, agree, context, method, memory)


@inline
def correct(rhs, agree, context, method, memory, t, h):
    """Newton's or functional iteration: (outcome, size of the change), both agreed, as are the totals of the sums."""
    if method.newton:
        return newton(rhs, agree, context, method, memory, t, h)
    return functional(rhs, agree, independent, context, method, memory, t, h)


@inner
def preparation(method, memory):
    """Vector work before an evaluation [J, sec. III.C]: order and step as decided, and a prediction with its weights.

    (Whether a stop is reached without an evaluation; the time at the end of the step; the step that error control would
    take; ratio of this step to the last.)
    """
    clock, tally, z = memory.clock, memory.tally, memory.rows
    if tally[m.NEXT_ORDER] != tally[m.ORDER]:
        set_order(method, memory, tally[m.NEXT_ORDER])
    if clock[m.PENDING] != 1.0:
        rescale(z, tally[m.ORDER], change_step(memory, clock[m.PENDING], clock[m.GROWTH]))
        clock[m.PENDING], clock[m.GROWTH] = 1.0, 10.0
    wanted = clock[m.STEP] if clock[m.WISH] == 0.0 else clock[m.WISH]
    h, last = fitted_step(clock, wanted, True)
    t, ratio = clock[m.UNTIL] if last else clock[m.TIME] + h, h / clock[m.STEP]
    if last and abs(h) + clock[m.EXTRAPOLATED] <= SHORT * abs(clock[m.STEP]):
        extrapolate(memory, h)
        return True, t, wanted, ratio
    if h != clock[m.STEP]:
        rescale(z, tally[m.ORDER], ratio)
        clock[m.STEP] = h
    weigh(memory)
    predict(z, tally[m.ORDER])
    return False, t, wanted, ratio


@inner
def control(method, memory, t, wanted, ratio, outcome, size):
    """Scalars only [J, sec. III.C]: accept or reject the step to the time t, and decide about the next one.

    (ACCEPTED, TRY_AGAIN, BEGIN_AGAIN or why not; by what to scale the history of a rejected step.)
    """
    clock, tally = memory.clock, memory.tally
    q, h = tally[m.ORDER], clock[m.STEP]
    error = size / method.T[q, 1]  # nabla a_q [J, table IX]
    if outcome == CONVERGED and error <= 1.0:
        clock[m.TIME], clock[m.TAKEN], clock[m.EXTRAPOLATED] = t, h, 0.0
        tally[m.STEPS] += 1
        tally[m.FAILURES] = 0
        if not abs(h) < (1.0 - NUDGE) * abs(wanted):
            clock[m.WISH] = 0.0
        elif abs(ratio - 1.0) > NUDGE:
            go_back(method, memory, wanted, size)
            return m.ACCEPTED, 1.0
        tally[m.WAIT] -= 1
        if tally[m.WAIT] == 0:
            clock[m.WISH] = 0.0
            consider(method, memory, error, False)
            if clock[m.PENDING] < WORTHWHILE:
                tally[m.NEXT_ORDER], clock[m.PENDING], tally[m.WAIT] = q, 1.0, 3
        return m.ACCEPTED, 1.0
    tally[m.REJECTED] += 1
    tally[m.LAST_REJECTED] = tally[m.STEPS]
    clock[m.GROWTH], clock[m.WISH] = 2.0, 0.0
    if abs(h) <= smallest_step(clock) * 1.00001:
        return (m.STEP_TOO_SMALL if outcome == CONVERGED or outcome == DIVERGED else outcome), 1.0
    if outcome != CONVERGED:
        reach = converging(method, memory, q)
        return m.TRY_AGAIN, change_step(memory, min(max(reach, 0.25), 0.5) if reach < math.inf else 0.25, 1.0)
    tally[m.FAILURES] += 1
    if tally[m.FAILURES] >= 3:
        return BEGIN_AGAIN, 1.0
    consider(method, memory, error, True)
    tally[m.ORDER] = tally[m.NEXT_ORDER]  # never a higher one
    change = min(clock[m.PENDING], 0.2) if tally[m.FAILURES] == 2 else clock[m.PENDING]
    clock[m.PENDING] = 1.0
    return m.TRY_AGAIN, change_step(memory, change, 2.0)


@inline
def step(correct, rhs, agree, context, method, memory):
    """One step: z becomes that of the next time, or order and step become smaller."""
    tally, z = memory.tally, memory.rows
    there, t, wanted, ratio = preparation(method, memory)
    if there:
        return m.ACCEPTED
    q = tally[m.ORDER]
    outcome, size = correct(rhs, agree, context, method, memory, t, memory.clock[m.STEP])
    wait = tally[m.WAIT]
    answer, back = control(method, memory, t, wanted, ratio, outcome, size)
    if answer == m.ACCEPTED:
        correct_history(z, z[CHANGE], method.L[q], q)
        if wait == 2 and tally[m.WAIT] == 1 and q < tally[m.MAX_ORDER]:  # the next step will compare orders
            copy(z[CHANGE], z[LAST_CHANGE])
        return m.ACCEPTED
    retract(z, q)
    if answer == BEGIN_AGAIN:
        status = begin_again(rhs, agree, context, memory)
        return m.TRY_AGAIN if status == 0 else status
    if back != 1.0:
        rescale(z, tally[m.ORDER], back)
    return answer


@inline
def complete(rhs, agree, context, method, memory):
    return 0


@inline
def go_on(method, memory):
    pass


@inline
def polynomial(method, memory, out):
    """The last step as a polynomial of (t - origin) / scale, its coefficients by rows: (origin, scale, degree)."""
    z, q = memory.rows, memory.tally[m.ORDER]
    for j in range(q + 1):
        for i in range(z.shape[1]):
            out[j, i] = z[j, i]
    return memory.clock[m.TIME], memory.clock[m.STEP], q
