"""Weighted least squares with physical consistency: a convex problem, by Newton's method with barriers.

    minimise  1/2 |R u - z|^2 + |u|^2 / (2 spread^2) + b sum (tr(P_0^-1 P) - log det P) + b sum (x / x_0 - log x)

in changes u relative to the given model (`unknowns.py`); R and z are the equations divided by the standard deviations
of their errors. The barrier keeps pseudo-inertias P positive definite and friction and armature x positive; it is
least at the given model P_0, x_0, and b falls to a value at which it shifts no unknown by more than a small part of its
standard deviation. The problem is convex, so the minimum is unique. Every Newton step is one linear least-squares
problem. References: Wensing, Kim and Slotine (2018); Lee, Wensing and Park (2020) for the metric.

Standard deviations of errors are estimated from the residuals, one for each torque, by the fixed point of restricted
maximum likelihood (Patterson and Thompson 1971): the unknowns that the data determine are subtracted from the count of
equations. Bounds do not use the barrier: where it acts they are conservative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from bunraku.errors import StateError
from bunraku.identification import pseudo_inertia
from bunraku.identification.equations import Equations
from bunraku.identification.unknowns import Unknowns

LAST = 1e-3         # b at the end [nats]
FALL = 0.1          # of b from one stage to the next
NEAR = 0.1          # squared length of a Newton step, of b, that ends a stage;
NEWTON = 1e-8       # of the objective and 1, that ends the last one: 1e-4 standard deviations
STEPS = 100         # of Newton in a stage
WEIGHTINGS = 50     # rounds of the standard deviations, at most,
SETTLED = 1e-3      # until none changes by more than this part
EXACT = 1e-9        # least standard deviation of a torque, of its size: rounding
ARMIJO = 1e-4


class Fit(NamedTuple):
    """The estimate and its covariance."""

    values: np.ndarray      # (p,)
    covariance: np.ndarray  # (p, p)
    R: np.ndarray           # (rows, p) equations of u, divided by standard deviations
    deviation: np.ndarray   # (k,) of the torques with errors
    errors: np.ndarray      # (n, k) most probable errors of these torques
    freedom: float          # equations less the unknowns that they determine


def fit(unknowns: Unknowns, equations: Equations, spread: float, sizes: np.ndarray) -> Fit:
    """The fit; `sizes` (k,) of the torques with errors [N m, N]."""
    A, y = equations.A @ unknowns.T, equations.y - equations.A @ unknowns.given
    deviation = sizes.copy()
    for _ in range(WEIGHTINGS):
        rows = _Whitened(A, y, equations.M, deviation)
        u, root = _gaussian(rows.R, rows.z, spread)
        new = np.maximum(rows.deviations(u, root), EXACT * sizes)
        settled = np.abs(new - deviation).max() <= SETTLED * new.max() and (
            np.abs(np.log(new / deviation)).max() <= SETTLED)
        deviation = new
        if settled:
            break
    rows = _Whitened(A, y, equations.M, deviation)
    _, root = _gaussian(rows.R, rows.z, spread)
    u = _consistent(unknowns, rows.R, rows.z, spread)
    spanned = unknowns.T @ root
    freedom = rows.count - float(np.sum((rows.R @ root) ** 2))
    return Fit(unknowns.given + unknowns.T @ u, spanned @ spanned.T, rows.R, deviation, rows.errors(u),
               freedom)


class _Whitened:
    """Equations divided by the standard deviations of their errors, and compressed to R u = z."""

    def __init__(self, A, y, M, deviation):
        n, g, _ = A.shape
        self.deviation, self.M = deviation, M
        C = np.einsum("ngk,k,nhk->ngh", M, deviation**2, M)
        out = ~M.any(axis=2)                       # equations that are left out
        C[out] = 0.0
        C += np.eye(g) * out[:, :, None]
        self.L = np.linalg.cholesky(C)
        self.A = np.linalg.solve(self.L, A)
        self.y = np.linalg.solve(self.L, y[:, :, None])[:, :, 0]
        self.count = int((~out).sum())
        whole = np.concatenate([self.A.reshape(n * g, -1), self.y.reshape(-1, 1)], axis=1)
        if len(whole) > whole.shape[1]:
            whole = np.asarray(np.linalg.qr(whole, mode="r"))
        self.R, self.z = whole[:, :-1], whole[:, -1]

    def _back(self, x):
        """M^T L^-T x: (n, k, ...) of (n, g, ...)."""
        return self.M.transpose(0, 2, 1) @ np.linalg.solve(self.L.transpose(0, 2, 1), x)

    def errors(self, u) -> np.ndarray:
        """The most probable errors of the torques (n, k), measured less computed."""
        left = (self.y - self.A @ u)[:, :, None]
        return self.deviation**2 * self._back(left)[:, :, 0]

    def deviations(self, u, root) -> np.ndarray:
        """Standard deviations of the torques, from the residuals."""
        left = (self.y - self.A @ u)[:, :, None]
        found = np.sum(self._back(left)[:, :, 0] ** 2, axis=0)
        eye = np.broadcast_to(np.eye(self.L.shape[1]), self.L.shape)
        expected = np.sum(self._back(eye) ** 2, axis=(0, 2)) - np.sum(self._back(self.A @ root) ** 2, axis=(0, 2))
        return self.deviation * np.sqrt(found / np.maximum(expected, 1e-12 * len(left) / self.deviation**2))


def _gaussian(R, z, spread) -> tuple[np.ndarray, np.ndarray]:
    """The minimum without barrier, and a root of its covariance (root root^T)."""
    p = R.shape[1]
    Q, upper, order = qr(np.concatenate([R, np.eye(p) / spread]), mode="economic", pivoting=True)
    u, root = np.empty(p), np.empty((p, p))
    u[order] = solve_triangular(upper, Q[:len(R)].T @ z)
    root[order] = solve_triangular(upper, np.eye(p))
    return u, root


def _consistent(unknowns: Unknowns, R, z, spread) -> np.ndarray:
    """The minimum with barriers."""
    p = unknowns.count
    u = np.zeros(p)
    positive = slice(10 * len(unknowns.links), p)
    scale = np.diag(unknowns.T)[positive]
    u[positive] = np.maximum(unknowns.given[positive], 1e-2 * scale) / scale - unknowns.given[positive] / scale
    b, slope = max(_objective(unknowns, R, z, spread, 0.0, None, u) / p, LAST), _slope(unknowns)
    while True:
        last = b <= LAST
        u = _newton(unknowns, R, z, spread, b, slope, u, last)
        if last:
            return u
        b = max(FALL * b, LAST)


def _slope(unknowns: Unknowns) -> np.ndarray:
    """The linear part of the barrier, which makes the given model its minimum."""
    slope = np.empty(unknowns.count)
    for i, P in enumerate(unknowns.matrices(unknowns.given)):
        inverse = np.linalg.inv(P)
        slope[10 * i:10 * i + 10] = [np.sum(inverse * change) for change in _changes(unknowns, i)]
    rest = slice(10 * len(unknowns.links), None)
    scale, given = np.diag(unknowns.T)[rest], unknowns.given[rest]
    slope[rest] = scale / np.where(given > 0.0, given, scale)
    return slope


def _changes(unknowns: Unknowns, i: int) -> np.ndarray:
    """(10, 4, 4): changes of the pseudo-inertia of link i by its u."""
    own = unknowns.T[10 * i:10 * i + 10, 10 * i:10 * i + 10]
    return np.stack([pseudo_inertia.matrix(column) for column in own.T])


def _newton(unknowns, R, z, spread, b, slope, u, last):
    p, links = unknowns.count, len(unknowns.links)
    changes = [_changes(unknowns, i) for i in range(links)]
    value = _objective(unknowns, R, z, spread, b, slope, u)
    for _ in range(STEPS):
        values = unknowns.given + unknowns.T @ u
        wall = np.zeros((16 * links + p - 10 * links, p))
        ahead = np.ones(len(wall))
        for i, P in enumerate(unknowns.matrices(values)):
            inverse = np.linalg.inv(np.linalg.cholesky(P))
            wall[16 * i:16 * i + 16, 10 * i:10 * i + 10] = (inverse @ changes[i] @ inverse.T).reshape(10, 16).T
            ahead[16 * i:16 * i + 16] = np.eye(4).ravel()
        rest = np.arange(10 * links, p)
        wall[16 * links + rest - 10 * links, rest] = unknowns.T[rest, rest] / values[rest]
        rows = np.concatenate([R, np.eye(p) / spread, np.sqrt(b) * wall])
        Q, upper, order = qr(rows, mode="economic", pivoting=True)
        step = np.empty(p)
        step[order] = solve_triangular(upper, Q.T @ np.concatenate(
            [z - R @ u, -u / spread - b * spread * slope, np.sqrt(b) * ahead]))
        decrement = float(np.sum((rows @ step) ** 2))
        if decrement <= (NEWTON * (1.0 + abs(value)) if last else NEAR * b):
            return u + step if np.isfinite(_objective(unknowns, R, z, spread, b, slope, u + step)) else u
        share = 1.0
        while True:
            new = _objective(unknowns, R, z, spread, b, slope, u + share * step)
            if new <= value - ARMIJO * share * decrement:
                break
            share *= 0.5
            if share < 1e-12:  # rounding
                return u
        u, value = u + share * step, new
    raise StateError("identify: the fit did not converge; are the units of tau, v and a those of the model (SI, "
                     "radians)?")


def _objective(unknowns, R, z, spread, b, slope, u) -> float:
    """The function to minimise; infinite where the barrier is crossed."""
    values = unknowns.given + unknowns.T @ u
    rest = values[10 * len(unknowns.links):]
    if (rest <= 0.0).any():
        return np.inf
    total = float(np.sum(np.log(rest))) - (0.0 if slope is None else float(slope @ u))
    for P in unknowns.matrices(values):
        try:
            total += 2.0 * float(np.sum(np.log(np.diag(np.linalg.cholesky(P)))))
        except np.linalg.LinAlgError:
            return np.inf
    left = R @ u - z
    return 0.5 * float(left @ left + u @ u / spread**2) - b * total
