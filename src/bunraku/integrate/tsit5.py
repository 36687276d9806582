"""TSIT5: Tsitouras' pair of orders 4 and 5, a good modern one. 6 evaluations a step.

Reference: Tsitouras, Computers and Mathematics with Applications 62 (2011), 770-775, with his polynomial of order 4
between steps.
"""

import numpy as np

from bunraku.integrate.runge_kutta import Tableau

A = np.array([
    [0, 0, 0, 0, 0, 0, 0],
    [0.161, 0, 0, 0, 0, 0, 0],
    [-0.008480655492356989, 0.335480655492357, 0, 0, 0, 0, 0],
    [2.8971530571054935, -6.359448489975075, 4.3622954328695815, 0, 0, 0, 0],
    [5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525, 0, 0, 0],
    [5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383, 0, 0],
    [0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081, 2.324710524099774, 0],
])
B = A[6].copy()
E = np.array([0.00178001105222577714, 0.0008164344596567469, -0.007880878010261995, 0.1447110071732629,
              -0.5823571654525552, 0.45808210592918697, -1 / 66])


def _expand(factor, *roots_or_quadratics):
    """Coefficients, ascending from x, of factor x (polynomials multiplied)."""
    product = np.array([factor])
    for polynomial in roots_or_quadratics:
        product = np.convolve(product, polynomial)
    return product[::-1]


# Each row: the part of a stage over x, highest power first in the factors
P = np.array([
    _expand(-1.0530884977290216, (1, -1.3299890189751412), (1, -1.4364028541716351, 0.7139816917074209)),
    _expand(0.1017, (1, 0), (1, -2.1966568338249754, 1.2949852507374631)),
    _expand(2.490627285651252793, (1, 0), (1, -2.38535645472061657, 1.57803468208092486)),
    _expand(-16.54810288924490272, (1, 0), (1, -1.21712927295533244), (1, -0.61620406037800089)),
    _expand(47.37952196281928122, (1, 0), (1, -1.203071208372362603), (1, -0.658047292653547382)),
    _expand(-34.87065786149660974, (1, 0), (1, -1.2), (1, -0.666666666666666667)),
    _expand(2.5, (1, 0), (1, -1), (1, -0.6)),
    np.zeros(4),
])

METHOD = Tableau(A, B, E, A.sum(axis=1), P, 5, 5, True)
