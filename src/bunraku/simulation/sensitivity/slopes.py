"""Derivatives of functions that only the user knows: actuations and conditions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bunraku.evaluate.contact_derivatives import slope

STEP = 1e-4  # short: limits of torques and conditions are not smooth everywhere


def slopes(function: Callable[[np.ndarray], np.ndarray], count: int, step: float = STEP) -> np.ndarray:
    """Derivatives along `count` directions, as columns, by differences of order eight."""
    found = [slope(lambda h, d=d: np.asarray(function(h * d), float), step) for d in np.eye(count)]
    return np.stack(found, axis=-1) if found else np.zeros((*np.shape(function(np.zeros(0))), 0))
