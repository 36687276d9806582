"""The mass matrix."""

from __future__ import annotations

import numpy as np

from bunraku.errors import ModelError
from bunraku.mechanism import Mechanism
from bunraku.run import matrix

METHODS = ("auto",)


def mass_matrix(mechanism: Mechanism, q, *, method: str = "auto", workers: int | None = None) -> np.ndarray:
    """M(q), armature included: (nv, nv), or (B, nv, nv) for a batch. "auto": composite rigid bodies."""
    if method not in METHODS:
        raise ModelError(f"mass matrix method {method!r} is not one of {', '.join(METHODS)}")
    return matrix.mass_matrix(mechanism, q, workers)
