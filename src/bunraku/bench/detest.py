"""Problems for initial value solvers, as data: right-hand side, start, end time and the solution there.

The classes and numbers are those of DETEST: A to E not stiff (Hull, Enright, Fellen, Sedgwick, SIAM J. Numer. Anal. 9
(1972)), the others stiff (Enright, Hull, Lindberg, BIT 15 (1975)), together with three well-known ones (van der Pol,
Robertson, HIRES in Hairer, Wanner: Solving ODEs II). Solutions at the end: SciPy's DOP853 and Radau at 1e-13 and
1e-12, which agree with our methods and with CVODE at such tolerances in ten digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Problem(NamedTuple):
    name: str
    what: str
    f: Callable            # (t, y) -> y'
    start: tuple           # at t = 0
    until: float
    end: tuple             # y there


# -- not stiff -----------------------------------------------------------------------------------------------------


def _radioactive_chain(t, y):
    rate = np.empty(10)
    rate[0], rate[9] = -y[0], y[8]
    rate[1:9] = y[:8] - y[1:9]
    return rate


def _diffusion(t, y):
    rate = -2.0 * y
    rate[1:] += y[:-1]
    rate[:-1] += y[1:]
    return rate


def _torus(t, y):
    r = math.hypot(y[0], y[1])
    return [-y[1] - y[0] * y[2] / r, y[0] - y[1] * y[2] / r, y[0] / r]


def _orbit(t, y):
    r3 = (y[0]**2 + y[1]**2) ** 1.5
    return [y[2], y[3], -y[0] / r3, -y[1] / r3]


def _perihelion(e):
    return (1 - e, 0.0, 0.0, math.sqrt((1 + e) / (1 - e)))


NON_STIFF = [
    Problem("A1", "decay",
            lambda t, y: [-y[0]],
            (1.0,), 20.0,
            (2.061153722598e-09,)),
    Problem("A2", "a Riccati equation",
            lambda t, y: [-0.5 * y[0] ** 3],
            (1.0,), 20.0,
            (0.218217890236,)),
    Problem("A3", "an oscillation",
            lambda t, y: [y[0] * math.cos(t)],
            (1.0,), 20.0,
            (2.491650271851,)),
    Problem("A4", "a logistic curve",
            lambda t, y: [0.25 * y[0] * (1 - y[0] / 20)],
            (1.0,), 20.0,
            (17.73016648131,)),
    Problem("A5", "a spiral",
            lambda t, y: [(y[0] - t) / (y[0] + t)],
            (4.0,), 20.0,
            (-0.7887826688962,)),
    Problem("B1", "two populations",
            lambda t, y: [2 * (y[0] - y[0] * y[1]), -(y[1] - y[0] * y[1])],
            (1.0, 3.0), 20.0,
            (0.6761876008577, 0.186081609964)),
    Problem("B2", "a linear reaction",
            lambda t, y: [-y[0] + y[1], y[0] - 2 * y[1] + y[2], y[1] - y[2]],
            (2.0, 0.0, 1.0), 20.0,
            (1.000000001031, 1.0, 0.9999999989694)),
    Problem("B3", "a reaction",
            lambda t, y: [-y[0], y[0] - y[1] ** 2, y[1] ** 2],
            (1.0, 0.0, 0.0), 20.0,
            (2.06115385216e-09, 0.05257228022049, 0.9474277177184)),
    Problem("B4", "a curve on a torus",
            _torus,
            (3.0, 0.0, 0.0), 20.0,
            (0.9826950927997, 2.198447081693, 0.9129452507278)),
    Problem("B5", "a rigid body without forces",
            lambda t, y: [y[1] * y[2], -y[0] * y[2], -0.51 * y[0] * y[1]],
            (0.0, 1.0, 1.0), 20.0,
            (-0.9396570798729, -0.3421177754001, 0.74141265962)),
    Problem("C1", "a radioactive chain",
            _radioactive_chain,
            (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), 20.0,
            (2.061153624403e-09, 4.12230724701e-08, 4.122307245946e-07, 2.748204830235e-06, 1.374102415016e-05,
             5.496409659878e-05, 0.0001832136553271, 0.000523467586648, 0.001308668966623,
             0.9979127409509)),
    Problem("C3", "diffusion",
            _diffusion,
            (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), 20.0,
            (0.002948119211023, 0.005635380154846, 0.007829072515928, 0.009348257908596, 0.01007943610302,
             0.009982674171429, 0.009088693332765, 0.007489115195185, 0.005322964130953,
             0.00276243437903)),
    Problem("D1", "an orbit, eccentricity 0.1",
            _orbit,
            _perihelion(0.1), 20.0,
            (0.2198835352014, 0.9427076846338, -0.9787659841059, 0.3287977990968)),
    Problem("D3", "an orbit, eccentricity 0.5",
            _orbit,
            _perihelion(0.5), 20.0,
            (-0.5780432953037, 0.8633840009192, -0.959508373038, -0.06504915126736)),
    Problem("D5", "an orbit, eccentricity 0.9",
            _orbit,
            _perihelion(0.9), 20.0,
            (-1.295266250984, 0.4003938963797, -0.6775390924734, -0.1270838154271)),
    Problem("E1", "a Bessel function",
            lambda t, y: [y[1], -(y[1] / (t + 1) + (1 - 0.25 / (t + 1) ** 2) * y[0])],
            (0.671396707141803, 0.09540051444747447), 20.0,
            (0.1456723600728, -0.09883500195574)),
    Problem("E2", "van der Pol, 1",
            lambda t, y: [y[1], (1 - y[0] ** 2) * y[1] - y[0]],
            (2.0, 0.0), 20.0,
            (2.008149762175, -0.04250887527321)),
    Problem("E3", "Duffing",
            lambda t, y: [y[1], y[0] ** 3 / 6 - y[0] + 2 * math.sin(2.78535 * t)],
            (0.0, 0.0), 20.0,
            (-0.1004178858646, 0.2411400132096)),
]


# -- stiff ---------------------------------------------------------------------------------------------------------


def _stiff_diffusion(t, y):
    rate = np.empty(9)
    rate[0] = -1800 * y[0] + 900 * y[1]
    rate[1:8] = y[:7] - 2 * y[1:8] + y[2:9]
    rate[8] = 1000 * y[7] - 2000 * y[8] + 1000
    return rate


def _control(t, y):
    g = 100.0
    return [y[1], y[2], y[3],
            (y[0] ** 2 - math.sin(y[0]) - g**4) * y[0] + (y[1] * y[2] / (y[0] ** 2 + 1) - 4 * g**3) * y[1]
            + (1 - 6 * g**2) * y[2] + (10 * math.exp(-y[3] ** 2) - 4 * g) * y[3] + 1]


def _robertson(t, y):
    a, b = -0.04 * y[0] + 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return [a, -a - b, b]


def _hires(t, y):
    fast = 280 * y[5] * y[7]
    return [-1.71 * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007, 1.71 * y[0] - 8.75 * y[1],
            -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4], 8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3],
            -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6],
            -fast + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + 0.69 * y[6], fast - 1.81 * y[6], -fast + 1.81 * y[6]]


STIFF = [
    Problem("A1", "real eigenvalues",
            lambda t, y: [-0.5 * y[0], -y[1], -100 * y[2], -90 * y[3]],
            (1.0, 1.0, 1.0, 1.0), 20.0,
            (4.539992976249e-05, 2.061153622445e-09, 0.0, 0.0)),
    Problem("A2", "diffusion",
            _stiff_diffusion,
            (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), 120.0,
            (0.09999912552938, 0.1999982511574, 0.2999975543185, 0.3999971057521, 0.4999969509942,
             0.5999971057549, 0.6999975543239, 0.7999982511648, 0.899999125538)),
    Problem("B1", "complex eigenvalues",
            lambda t, y: [-y[0] + y[1], -100 * y[0] - y[1], -100 * y[2] + y[3], -10000 * y[2] - 100 * y[3]],
            (1.0, 0.0, 1.0, 0.0), 20.0,
            (1.00416866015e-09, 1.799999750762e-08, 0.0, 0.0)),
    Problem("C1", "nonlinear coupling",
            lambda t, y: [-y[0] + y[1] ** 2 + y[2] ** 2 + y[3] ** 2, -10 * y[1] + 10 * (y[2] ** 2 + y[3] ** 2),
                           -40 * y[2] + 40 * y[3] ** 2, -100 * y[3] + 2],
            (1.0, 1.0, 1.0, 1.0), 20.0,
            (0.0004003223926939, 0.00040016, 0.0004, 0.02)),
    Problem("D1", "nuclear reactor",
            lambda t, y: [0.2 * (y[1] - y[0]), 10 * y[0] - (60 - 0.125 * y[2]) * y[1] + 0.125 * y[2], 1.0],
            (0.0, 0.0, 0.0), 400.0,
            (22.24222010617, 27.11071334484, 400.0)),
    Problem("D2", "a reaction",
            lambda t, y: [-0.04 * y[0] + 0.01 * y[1] * y[2], 400 * y[0] - 100 * y[1] * y[2] - 3000 * y[1] ** 2,
                           30 * y[1] ** 2],
            (1.0, 0.0, 0.0), 40.0,
            (0.7158270687194, 0.09185534764558, 28.41637457458)),
    Problem("D4", "a reaction",
            lambda t, y: [-0.013 * y[0] - 1000 * y[0] * y[2], -2500 * y[1] * y[2],
                           -0.013 * y[0] - 1000 * y[0] * y[2] - 2500 * y[1] * y[2]],
            (1.0, 1.0, 0.0), 50.0,
            (0.5976546980655, 1.402343408548, -1.893386540435e-06)),
    Problem("E1", "control theory",
            _control,
            (0.0, 0.0, 0.0, 0.0), 1.0,
            (1e-08, -5.895017048352e-24, -4.471646005604e-22, 7.521756204467e-20)),
    Problem("E2", "van der Pol, 5",
            lambda t, y: [y[1], 5 * (1 - y[0] ** 2) * y[1] - y[0]],
            (2.0, 0.0), 1.0,
            (1.869438853393, -0.1482358753771)),
    Problem("VDPOL", "van der Pol, 1000",
            lambda t, y: [y[1], 1000 * (1 - y[0] ** 2) * y[1] - y[0]],
            (2.0, 0.0), 2000.0,
            (1.706167732171, -0.0008928097010248)),
    Problem("ROBERTSON", "Robertson's reaction",
            _robertson,
            (1.0, 0.0, 0.0), 10000.0,
            (0.107300428538, 4.80016697258e-07, 0.8926990914453)),
    Problem("HIRES", "HIRES, plant physiology",
            _hires,
            (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057), 321.8,
            (0.0007372353138366, 0.0001442690848992, 5.890666908729e-05, 0.001175845210728, 0.00238948040044,
             0.006248773331736, 0.002852191825462, 0.002847808174538)),
]
