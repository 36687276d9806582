"""Choosing the step: weighted error norms, the next step from the last error, the first step."""

import math

from bunraku.jit import inline

SAFETY = 0.9
SHRINK, GROW = 0.2, 5.0


@inline
def weight(a, b, rtol, atol):
    """Tolerance of one component that moved from a to b."""
    return atol + rtol * max(abs(a), abs(b))


@inline
def error_norm(E, k, h, y, y_new, rtol, atol):
    """Root mean square of h E k, component by component in units of its tolerance."""
    n, total = y.shape[0], 0.0
    for i in range(n):
        error = 0.0
        for j in range(k.shape[0]):
            error += E[j] * k[j, i]
        error *= h / weight(y[i], y_new[i], rtol, atol)
        total += error * error
    return math.sqrt(total / n)


@inline
def next_step(h, error, order):
    """Step that would have just met the tolerance, with a margin, within reason."""
    if not error < math.inf:
        return h * SHRINK
    if error == 0.0:
        return h * GROW
    return h * min(GROW, max(SHRINK, SAFETY * error ** (-1.0 / order)))


@inline
def scaled_norm(y, d, rtol, atol):
    total = 0.0
    for i in range(y.shape[0]):
        x = d[i] / (atol + rtol * abs(y[i]))
        total += x * x
    return math.sqrt(total / y.shape[0])


@inline
def first_step(rhs, context, t, y, dy, span, order, rtol, atol, y_trial, dy_trial):
    """A first step from one more evaluation (Hairer, Norsett, Wanner: Solving ODEs I, sec. II.4)."""
    d0, d1 = scaled_norm(y, y, rtol, atol), scaled_norm(y, dy, rtol, atol)
    h = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
    h = min(h, span)
    for i in range(y.shape[0]):
        y_trial[i] = y[i] + h * dy[i]
    if rhs(context, t + h, y_trial, dy_trial) != 0:
        return 1e-3 * h
    for i in range(y.shape[0]):
        dy_trial[i] -= dy[i]
    d2 = scaled_norm(y, dy_trial, rtol, atol) / h
    if max(d1, d2) <= 1e-15:
        return min(max(1e-6, 1e-3 * h), span)
    return min(100.0 * h, (0.01 / max(d1, d2)) ** (1.0 / order), span)
