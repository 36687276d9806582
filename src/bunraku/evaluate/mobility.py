"""Motion of a point of a link: singularity measures and operational-space inertia."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bunraku.checks import as_floats, as_vector
from bunraku.entries.constraint_entries import demands
from bunraku.entries.explain import refuse
from bunraku.entries.mass_matrix_entries import mass_matrix
from bunraku.entries.motion_matrix_entries import jacobians
from bunraku.errors import ModelError
from bunraku.mechanism import Mechanism
from bunraku.mechanism.links import GROUND
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.tolerances import SINGULAR_VALUE


@dataclass(frozen=True, eq=False)
class Singularity:
    """Singular values of a Jacobian (6, nv) with lengths divided by `mechanism.length_scale`; arrays with a leading
    axis for a batch. With connections: of the motions that keep the loops closed."""

    values: np.ndarray         # (6,) singular values, the largest first; zeros where there are fewer freedoms
    manipulability: Any        # product of all six [Yoshikawa 1985]
    condition: Any             # the largest over the smallest; infinite at a singular pose
    rank: Any                  # directions in which the point can move
    lost: np.ndarray           # (6,) direction (linear, angular) of the least motion, of unit length when scaled


def singularity(mechanism: Mechanism, q, J) -> Singularity:
    """Measures of Jacobians (6, nv) or (B, 6, nv) at q."""
    scale = np.repeat([1.0 / mechanism.length_scale, 1.0], 3)
    u, s = _decomposed(mechanism, q, scale[:, None] * J)
    largest, smallest = s[..., 0], s[..., -1]
    with np.errstate(divide="ignore", invalid="ignore"):
        condition = np.where(smallest > SINGULAR_VALUE * largest, largest / smallest, np.inf)
    rank, product, lost = np.sum(s > SINGULAR_VALUE * largest[..., None], axis=-1), np.prod(s, axis=-1), u[..., :, -1]
    if s.ndim == 1:
        return Singularity(s, float(product), float(condition), int(rank), lost / scale)
    return Singularity(s, product, condition, rank, lost / scale)


def _decomposed(mechanism, q, J):
    """Left singular vectors (6, 6) and singular values (6,) of J along the motions that keep loops closed."""
    plan = mechanism.plan()
    if plan.loops is None:
        u, s, _ = np.linalg.svd(J)
    elif J.ndim == 3:
        found = [_decomposed(mechanism, state, matrix) for state, matrix in zip(q, J, strict=True)]
        return (np.array([x[k] for x in found]).reshape(len(found), *shape) for k, shape in enumerate(((6, 6), (6,))))
    else:
        u, s, _ = np.linalg.svd(J @ _free_motions(plan, q))
    values = np.zeros((*s.shape[:-1], 6))
    values[..., :s.shape[-1]] = s
    return u, values


def _free_motions(plan, q) -> np.ndarray:
    """Orthonormal velocities (nv, freedoms) that keep the loops closed."""
    _, s, vt = np.linalg.svd(demands(plan, q, None).columns.T)
    return vt[int(np.sum(s > SINGULAR_VALUE * s.max(initial=0.0))):].T


def operational_inertia(mechanism: Mechanism, q, link: str, point=(0.0, 0.0, 0.0)) -> np.ndarray:
    """Lambda = (J M^-1 J^T)^-1 (6, 6), or (B, 6, 6): the inertia felt at a point of a link, in its frame.

    World axes, order (linear, angular): a force and moment F there accelerate the point by Lambda^-1 F. Along
    directions in which the point cannot move it is zero (the pseudoinverse). Loops stay closed.
    """
    plan, k = as_mechanism(mechanism).plan(), mechanism.find_link(link, "operational_inertia")
    if k < 0:
        raise ModelError(f"operational_inertia: {GROUND!r} cannot move; name a link")
    q = as_floats("q", q, plan.nq, least=plan.nv)
    J, _ = jacobians(plan, k, as_vector("operational_inertia: point", point), q)
    M = mass_matrix(plan, q)
    if plan.loops is None:
        return _inverse_mobility(mechanism, plan, q, J, M)
    if q.ndim == 1:
        N = _free_motions(plan, q)
        return _inverse_mobility(mechanism, plan, q, J @ N, N.T @ M @ N)
    free = [_free_motions(plan, state) for state in q]
    return np.array([_inverse_mobility(mechanism, plan, state, j @ N, N.T @ m @ N)
                     for state, j, m, N in zip(q, J, M, free, strict=True)]).reshape(-1, 6, 6)


def _inverse_mobility(mechanism, plan, q, J, M):
    """(J M^-1 J^T)^+, by the singular values of J L^-T, M = L L^T."""
    try:
        root = np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        bad = None if q.ndim == 1 else np.array([np.linalg.eigvalsh(m)[0] <= 0.0 for m in M])
        refuse(plan, q, {}, *(() if bad is None else (bad, M)))
    scale = np.repeat([1.0 / mechanism.length_scale, 1.0], 3)
    u, s, _ = np.linalg.svd(np.swapaxes(np.linalg.solve(root, np.swapaxes(scale[:, None] * J, -1, -2)), -1, -2),
                            full_matrices=False)
    with np.errstate(divide="ignore"):
        inverse = np.where(s > SINGULAR_VALUE * s.max(axis=-1, initial=0.0, keepdims=True), 1.0 / s**2, 0.0)
    half = scale[:, None] * u
    return (half * inverse[..., None, :]) @ np.swapaxes(half, -1, -2)
