"""Rates along a motion, by differences."""

import numpy as np

H = 1e-4


def rate_along_the_flow(m, q, v, a, quantity):
    """Time derivative of a quantity of (q, v) by central differences of fourth order."""
    steps = H * np.array([[-2.0], [-1.0], [1.0], [2.0]])
    values = quantity(m.integrate(np.tile(q, (4, 1)), steps * v), v + steps * a)
    return (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * H)
