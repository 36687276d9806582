"""One contact by itself: a closed form for open, sticking and GIVEN contacts, a scalar equation for sliding ones.

A sliding contact has u_t = -lambda f_t with an unknown lambda > 0. Without f_n, (S + lambda) f_t = -h with
S = W_tt - w w^T / W_nn and h = b_t - w b_n / W_nn. At lambda = 0, where the contact sticks, g = |f_t| - mu f_n is not
negative, for large lambda it is: there is a root between, found by Newton's method and bisection.
"""

import numpy as np

from bunraku.jit import inner

STEPS = 60


@inner
def solve_single(W, stride, b_n, b_1, b_2, mu, work):
    """Force of a DISC contact with the block of Theta at W, rows `stride` apart: f_n, f_1, f_2."""
    if not b_n < 0.0:
        return 0.0, 0.0, 0.0
    nn = work[W]
    w_1, w_2 = work[W + 1], work[W + 2]
    s_11 = work[W + stride + 1] - w_1 * w_1 / nn
    s_12 = work[W + stride + 2] - w_1 * w_2 / nn
    s_22 = work[W + 2 * stride + 2] - w_2 * w_2 / nn
    h_1, h_2 = b_1 - w_1 * b_n / nn, b_2 - w_2 * b_n / nn
    # principal axes
    middle, half = 0.5 * (s_11 + s_22), 0.5 * (s_11 - s_22)
    radius = np.sqrt(half * half + s_12 * s_12)
    c, s = (half + radius, s_12) if half >= 0.0 else (s_12, radius - half)
    length = np.sqrt(c * c + s * s)
    c, s = (c / length, s / length) if length > 0.0 else (1.0, 0.0)
    large, little = middle + radius, max(middle - radius, 0.0)
    p_1, p_2 = c * h_1 + s * h_2, c * h_2 - s * h_1
    v_1, v_2 = c * w_1 + s * w_2, c * w_2 - s * w_1
    floor = 1e-14 * (large + nn)
    if large > floor and little > floor:  # sticking
        x_1, x_2 = -p_1 / large, -p_2 / little
        f_n = -(b_n + v_1 * x_1 + v_2 * x_2) / nn
        if f_n >= 0.0 and x_1 * x_1 + x_2 * x_2 <= mu * mu * f_n * f_n:
            return f_n, c * x_1 - s * x_2, s * x_1 + c * x_2
    low, high = 0.0, large + nn
    for _ in range(STEPS):
        x_1, x_2 = -p_1 / (large + high), -p_2 / (little + high)
        if np.sqrt(x_1 * x_1 + x_2 * x_2) < -mu * (b_n + v_1 * x_1 + v_2 * x_2) / nn:
            break
        low = high
        high *= 4.0
    at = 0.5 * (low + high)
    f_n, x_1, x_2 = 0.0, 0.0, 0.0
    for _ in range(STEPS):
        d_1, d_2 = large + at, little + at
        x_1, x_2 = -p_1 / d_1, -p_2 / d_2
        f_n = -(b_n + v_1 * x_1 + v_2 * x_2) / nn
        length = np.sqrt(x_1 * x_1 + x_2 * x_2)
        g = length - mu * f_n
        if g > 0.0:
            low = at
        else:
            high = at
        slope = (mu * (-v_1 * x_1 / d_1 - v_2 * x_2 / d_2) / nn
                 - ((x_1 * x_1 / d_1 + x_2 * x_2 / d_2) / length if length > 0.0 else 0.0))
        new = at - g / slope if slope < 0.0 else 0.5 * (low + high)
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - at) <= 1e-15 * at or high - low <= 1e-15 * high:
            break
        at = new
    f_n = max(f_n, 0.0)
    length = np.sqrt(x_1 * x_1 + x_2 * x_2)
    ratio = mu * f_n / length if length > 0.0 else 0.0
    return f_n, ratio * (c * x_1 - s * x_2), ratio * (s * x_1 + c * x_2)
