"""Identifiable combinations: which sums of inertial parameters, friction and armature a motion determines.

The row space of the regressor has the combinations that affect a torque; its dimension is the number of base
parameters. As basis, parameters are taken from the root to the tips as long as they are independent; each stands for
itself plus multiples of those that depend on it (Gautier and Khalil 1990). Cost: one singular value decomposition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from bunraku.evaluate import inertial_regressor
from bunraku.identification.equations import columns
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
    undetermined: list[str]    # parameters that cannot be separated from others, or have no effect at all
    unexcited: list[str]       # combinations that only another motion would determine; for trees
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
        more = f", {len(self.unexcited)} are not: the motion does not excite them" if self.unexcited else ""
        return (f"{self.rank} combinations of {self.matrix.shape[1]} parameters are determined, condition "
                f"{self.condition:.2g}{more}")


def identifiable(unknowns: Unknowns, fit: Fit, spread: float, measured: np.ndarray) -> Identifiable:
    """The combinations that a fit's data determine; `measured` (nv,) are the joints with a known torque."""
    values, right, rank = _row_space(fit.R)
    basis, B = _combinations(unknowns, right[:rank])
    hidden = right[rank:]                                   # changes that no torque shows
    size = np.sqrt(np.sum(unknowns.T**2, axis=1))
    undetermined = [name for name, change, whole in
                    zip(unknowns.names, np.linalg.norm(hidden @ unknowns.T.T, axis=0), size, strict=True)
                    if change > DEPENDENT * whole]
    unexcited = []
    if not unknowns.mechanism.constrained:
        more, all_rows = _combinations(unknowns, _of_any_motion(unknowns, measured))
        for k, row in zip(more, all_rows, strict=True):
            if np.linalg.norm(hidden @ (row @ unknowns.T)) > DEPENDENT * np.linalg.norm(row @ unknowns.T):
                unexcited.append(_text(row, unknowns.names, k))
    of_rows = B @ unknowns.T @ right[:rank].T / np.sqrt(values[:rank] ** 2 + spread**-2)
    after = np.sqrt(np.maximum(np.diag(fit.covariance), 0.0))
    share = np.clip(1.0 - (after / (spread * size)) ** 2, 0.0, 1.0)
    return Identifiable(rank, [_text(row, unknowns.names, k) for row, k in zip(B, basis, strict=True)], B,
                        B @ fit.values, of_rows @ of_rows.T, undetermined, unexcited,
                        dict(zip(unknowns.names, share.tolist(), strict=True)), values[:rank])


def _row_space(A) -> tuple[np.ndarray, np.ndarray, int]:
    """Singular values and right singular vectors of A, and its rank."""
    _, values, right = np.linalg.svd(A, full_matrices=True)
    largest = values.max(initial=0.0)
    return values, right, int(np.sum(values > RANK * largest)) if largest > 0.0 else 0


def _of_any_motion(unknowns: Unknowns, measured) -> np.ndarray:
    """The row space of the regressor of random states, which shows all that a motion of a tree can show."""
    m, rng = unknowns.mechanism, np.random.default_rng(0)
    n = 10 + 2 * unknowns.count // int(measured.sum())
    q = np.array([m.integrate(m.neutral(), rng.normal(size=m.nv)) for _ in range(n)])
    v, a = rng.normal(size=(2, n, m.nv))
    rows = columns(unknowns, inertial_regressor(m, q, v, a), v, a)[:, measured] @ unknowns.T
    _, right, rank = _row_space(np.asarray(np.linalg.qr(rows.reshape(-1, unknowns.count), mode="r")))
    return right[:rank]


def _combinations(unknowns: Unknowns, seen) -> tuple[list[int], np.ndarray]:
    """Own parameters of the combinations, and their coefficients, for a row space in terms of u."""
    back = np.linalg.inv(unknowns.T)
    seen = seen @ back                                      # for parameters
    basis = _first_independent(unknowns, seen, np.sqrt(np.sum(back**2, axis=0)))
    B = np.linalg.solve(seen[:, basis], seen)
    size = np.sqrt(np.sum(unknowns.T**2, axis=1))
    B[np.abs(B) * size < SHOWN * size[basis][:, None]] = 0.0
    return basis, B


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
