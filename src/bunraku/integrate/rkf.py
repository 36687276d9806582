"""RKF: the Runge-Kutta-Fehlberg pair of orders 4 and 5, advanced with order 5 [J, table II].

Reference: Fehlberg, NASA TR R-315 (1969). Six evaluations a step; the difference of the two results estimates the
error. Coefficients are data: `A` by rows, `B` of order 5, `E` = B - (order 4), `C` = times.
"""

import numpy as np

from bunraku.integrate.control import error_norm
from bunraku.jit import inline

STAGES = 6
ORDER = 5
C = np.array([0, 1 / 4, 3 / 8, 12 / 13, 1, 1 / 2])
A = np.array([
    [0, 0, 0, 0, 0],
    [1 / 4, 0, 0, 0, 0],
    [3 / 32, 9 / 32, 0, 0, 0],
    [1932 / 2197, -7200 / 2197, 7296 / 2197, 0, 0],
    [439 / 216, -8, 3680 / 513, -845 / 4104, 0],
    [-8 / 27, 2, -3544 / 2565, 1859 / 4104, -11 / 40],
])
B = np.array([16 / 135, 0, 6656 / 12825, 28561 / 56430, -9 / 50, 2 / 55])
E = B - np.array([25 / 216, 0, 1408 / 2565, 2197 / 4104, -1 / 5, 0])


@inline
def attempt(rhs, context, t, y, h, rtol, atol, k, y_new):
    """One step of size h from y, whose derivative is k[0]: fills k[1:] and y_new.

    Returns (status of the right-hand side, error in units of the tolerance).
    """
    n = y.shape[0]
    for stage in range(1, STAGES):
        for i in range(n):
            total = 0.0
            for j in range(stage):
                total += A[stage, j] * k[j, i]
            y_new[i] = y[i] + h * total
        status = rhs(context, t + C[stage] * h, y_new, k[stage])
        if status != 0:
            return status, 0.0
    for i in range(n):
        total = 0.0
        for j in range(STAGES):
            total += B[j] * k[j, i]
        y_new[i] = y[i] + h * total
    return 0, error_norm(E, k, h, y, y_new, rtol, atol)
