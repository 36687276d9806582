"""Choosing the step: weighted norms, the next step from the last error, the first step, the last step."""

import math

from bunraku.integrate.solver_memory import EPSILON, MAX_STEP, MIN_STEP, TIME, UNTIL, add_scaled
from bunraku.integrate.sums import root_mean_square, span_end, span_start
from bunraku.jit import inline
from bunraku.tolerances import LAST_STAGE

SAFETY = 0.9
SHRINK, GROW = 0.2, 5.0
STATE, SLOPE, BEND = 0, 1, 2    # places of the sums for a first step: of y, of y' and of its change


@inline
def weight(a, b, rtol, atol):
    """Tolerance of one component that moved from a to b."""
    return atol + rtol * max(abs(a), abs(b))


@inline
def add_scaled_squares(y, d, memory, k):
    """Sums k: of the squares of d, component by component in units of its tolerance at y."""
    spans, tolerance = memory.spans, memory.tolerance
    for s in range(spans.shape[0]):
        total = 0.0
        for i in range(span_start(spans, s), span_end(spans, s)):
            x = d[i] / weight(y[i], y[i], tolerance[0, i], tolerance[1, i])
            total += x * x
        memory.sums[s, k] = total


@inline
def next_step(h, error, order):
    """Step that would have just met the tolerance, with a safety margin, within limits."""
    if not error < math.inf:
        return h * SHRINK
    if error == 0.0:
        return h * GROW
    return h * min(GROW, max(SHRINK, SAFETY * error ** (-1.0 / order)))


@inline
def smallest_step(clock):
    """Smallest admissible step: the user's limit, or the rounding limit of the time."""
    return max(clock[MIN_STEP], 4.0 * EPSILON * abs(clock[TIME]))


@inline
def fitted_step(clock, h, even):
    """(step to try, whether it ends at UNTIL), where h is wanted. `even` splits the rest in two rather than leave a
    tiny last step."""
    left = clock[UNTIL] - clock[TIME]
    size = max(min(abs(h), clock[MAX_STEP]), smallest_step(clock))
    if size >= abs(left) * (1.0 - LAST_STAGE):
        return left, True
    if even and 2.0 * size > abs(left):
        return 0.5 * left, False
    return math.copysign(size, left), False


@inline
def first_step(rhs, agree, context, memory, order, y_trial, dy_trial):
    """A first step from one more evaluation (Hairer, Norsett, Wanner: Solving ODEs I, sec. II.4), where the totals
    STATE and SLOPE are agreed."""
    y, dy, t = memory.rows[0], memory.rows[1], memory.clock[TIME]
    span = memory.clock[UNTIL] - t
    d0, d1 = root_mean_square(memory, STATE), root_mean_square(memory, SLOPE)
    h = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
    h, limit = math.copysign(min(h, abs(span)), span), abs(span)
    add_scaled(y, h, dy, y_trial)
    status = rhs(context, t + h, y_trial, dy_trial)
    for i in range(y.shape[0]):
        dy_trial[i] -= dy[i]
    add_scaled_squares(y, dy_trial, memory, BEND)
    if agree(context, memory, status) != 0:
        return 1e-3 * h
    d2 = root_mean_square(memory, BEND) / abs(h)
    if max(d1, d2) <= 1e-15:
        return math.copysign(min(max(1e-6, 1e-3 * abs(h)), limit), span)
    return math.copysign(min(100.0 * abs(h), (0.01 / max(d1, d2)) ** (1.0 / order), limit), span)


@inline
def fixed_step(t, until, step, slack):
    """(length of the next fixed step, whether it ends at `until`); `slack`: by what part the last may be longer."""
    left = until - t
    last = step >= left * (1.0 - slack)
    return (left if last else step), last
