"""Identifiable combinations: which sums of inertial parameters, friction and armature a motion determines.

The row space of the regressor has the combinations that affect a torque; its dimension is the number of base
parameters. As basis, parameters are taken from the root to the tips as long as they are independent; each stands for
itself plus multiples of those that depend on it (Gautier and Khalil 1990). Cost: one singular value decomposition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from bunraku.identification.fit import Fit
from bunraku.identification.unknowns import Unknowns

RANK = 1e-9         # singular values of the regressor below this part of the largest are zero
DEPENDENT = 1e-6    # what a column may leave of itself outside the span of others
SHOWN = 1e-7        # coefficients of combinations below this part of the largest are rounding
FIRST = np.array([4, 6, 9, 5, 7, 8, 1, 2, 3, 0])  # order in a link: moments and products of inertia, m c, mass


@dataclass(frozen=True, eq=False)
class Identifiable:
    """Combinations of the named parameters that the data determine; the others keep the given model's values."""

    rank: int                  # number of independent combinations (base parameters) that affect a torque
    combinations: list[str]    # such as "upper.iyy + 0.25 fore.mass"
    matrix: np.ndarray         # (rank, parameters): combinations = matrix @ parameters
    values: np.ndarray         # (rank,)
    covariance: np.ndarray     # (rank, rank)
    undetermined: list[str]    # parameters that cannot be told from others, or have no effect at all
    from_data: dict[str, float]  # of each parameter: part of its variance in the given model that the data removed
    singular_values: np.ndarray  # (rank,) of the regressor, relative to the given model and the noise

    @property
    def deviation(self) -> np.ndarray:
        """(rank,) standard deviations of the combinations."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def condition(self) -> float:
        """Ratio of the singular values: how much better the best combination is determined than the worst."""
        return float(self.singular_values[0] / self.singular_values[-1]) if self.rank else np.inf

    def __repr__(self):
        return (f"{self.rank} identifiable combinations of {self.matrix.shape[1]} parameters, condition "
                f"{self.condition:.2g}")


def identifiable(unknowns: Unknowns, fit: Fit, spread: float) -> Identifiable:
    """The combinations that a fit's data determine."""
    _, values, right = np.linalg.svd(fit.R, full_matrices=True)
    rank = int(np.sum(values > RANK * values.max(initial=0.0))) if values.max(initial=0.0) > 0.0 else 0
    back = np.linalg.inv(unknowns.T)
    seen = right[:rank] @ back                              # the row space, for parameters
    unseen = right[rank:] @ unknowns.T.T                    # how the rest changes parameters
    size = np.sqrt(np.sum(unknowns.T**2, axis=1))
    undetermined = [name for name, change, whole in
                    zip(unknowns.names, np.sqrt(np.sum(unseen**2, axis=0)), size, strict=True)
                    if change > DEPENDENT * whole]
    basis = _first_independent(unknowns, seen, np.sqrt(np.sum(back**2, axis=0)))
    B = np.linalg.solve(seen[:, basis], seen)
    B[np.abs(B) * size < SHOWN * size[basis][:, None]] = 0.0
    of_rows = B @ unknowns.T @ right[:rank].T / np.sqrt(values[:rank]**2 + spread**-2)
    after = np.sqrt(np.maximum(np.diag(fit.covariance), 0.0))
    share = 1.0 - (after / (spread * size)) ** 2
    return Identifiable(rank, [_text(row, unknowns.names, k) for row, k in zip(B, basis, strict=True)], B,
                        B @ fit.values, of_rows @ of_rows.T, undetermined,
                        {name: float(x) for name, x in zip(unknowns.names, np.clip(share, 0.0, 1.0), strict=True)},
                        values[:rank])


def _first_independent(unknowns: Unknowns, seen, sizes) -> list[int]:
    """The first columns, from the root to the tips, that span all; `sizes` bound those of the columns."""
    links, rank = len(unknowns.links), len(seen)
    order = [10 * i + k for i in range(links) for k in FIRST] + list(range(10 * links, unknowns.count))
    span, basis = np.zeros((0, rank)), list[int]()
    for k in order:
        left = seen[:, k] / sizes[k]
        for _ in range(2):
            left = left - span.T @ (span @ left)
        length = np.linalg.norm(left)
        if length > DEPENDENT and len(basis) < rank:
            span = np.concatenate([span, left[None] / length])
            basis.append(k)
    if len(basis) < rank:
        basis = qr(seen / sizes, mode="r", pivoting=True)[-1][:rank].tolist()
    return sorted(basis)


def _text(row, names, own) -> str:
    """A combination in words, its own parameter first."""
    text = names[own]
    for name, factor in zip(names, row, strict=True):
        if factor and name != names[own]:
            size = "" if abs(abs(factor) - 1.0) < 1e-9 else f"{abs(factor):.4g} "
            text += f" {'-' if factor < 0 else '+'} {size}{name}"
    return text
