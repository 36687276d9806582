"""RKF: the Runge-Kutta-Fehlberg pair of orders 4 and 5, advanced with order 5 [J, table II]. 6 evaluations a step.

Reference: Fehlberg, NASA TR R-315 (1969). Between steps: the polynomial of order 4 that its stages and the
derivative at the end determine up to one choice, here the part of the sixth stage, (2/55) (3 x^2 - 2 x^3).
"""

import numpy as np

from bunraku.integrate.runge_kutta import Tableau

A = np.array([
    [0, 0, 0, 0, 0, 0],
    [1 / 4, 0, 0, 0, 0, 0],
    [3 / 32, 9 / 32, 0, 0, 0, 0],
    [1932 / 2197, -7200 / 2197, 7296 / 2197, 0, 0, 0],
    [439 / 216, -8, 3680 / 513, -845 / 4104, 0, 0],
    [-8 / 27, 2, -3544 / 2565, 1859 / 4104, -11 / 40, 0],
])
B = np.array([16 / 135, 0, 6656 / 12825, 28561 / 56430, -9 / 50, 2 / 55])
E = B - [25 / 216, 0, 1408 / 2565, 2197 / 4104, -1 / 5, 0]

SIXTH = np.array([0, 6 / 55, -4 / 55, 0])  # free choice
P = np.array([
    [1, -19 / 8, 239 / 108, -13 / 18] + 11 / 144 * SIXTH,
    [0, 0, 0, 0],
    [0, 1024 / 285, -2560 / 513, 1664 / 855] - 704 / 855 * SIXTH,
    [0, -2197 / 456, 24167 / 2052, -2197 / 342] - 2197 / 2736 * SIXTH,
    [0, 21 / 10, -5, 27 / 10] + 11 / 20 * SIXTH,
    SIXTH,
    [0, 0, 0, 0],
])
P[6] = [1, 0, 0, 0] - P.sum(axis=0)  # the parts add up to x

METHOD = Tableau(A, B, E, A.sum(axis=1), P, 5, 5, False)
