"""Linear equations of an identification: torques of recorded samples as functions of the unknowns.

    N^T (Y unknowns) = N^T (tau - torques of everything known)

In a tree N is the identity, one equation for each measured joint. Where connections close loops, the columns of N are
the motions that keep them closed [YN99, eq. 3]: constraint forces do no work along them and drop out. Joints without a
measured torque must not move in N, either. Errors of torques e enter as M e, M = N^T at the joints with a drive. Cost:
one regressor, and with loops one singular value decomposition, for each sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bunraku.entries.constraint_entries import demands
from bunraku.entries.inverse_entries import inverse_dynamics
from bunraku.errors import StateError
from bunraku.evaluate import project
from bunraku.evaluate.closed_chain import against_friction
from bunraku.evaluate.constraints import parts
from bunraku.evaluate.dynamics import external_forces
from bunraku.identification.unknowns import Unknowns
from bunraku.mechanism import Mechanism
from bunraku.motion.smoothing import low_pass
from bunraku.plan import fields as f
from bunraku.tolerances import SINGULAR_VALUE

RECORDED_OPEN = 1e-2  # [m, rad] gaps of loops in a recording: more is no measurement error
CLOSED = 1e-10    # [m, rad] gaps that need no correction
SPANS = 1e-6      # of the largest singular value of M: below it, the drives do not move everything


class Filter(NamedTuple):
    """Low-pass filter of both sides of the equations, which they survive, and the samples kept after it."""

    t: np.ndarray
    cutoff: float        # [Hz]
    kept: np.ndarray

    def __call__(self, values: np.ndarray) -> np.ndarray:
        return low_pass(self.t, values, self.cutoff)[self.kept]


@dataclass(frozen=True, eq=False)
class Recording:
    """Samples of motion and torque, checked."""

    q: np.ndarray           # (n, nq)
    v: np.ndarray           # (n, nv)
    a: np.ndarray           # (n, nv)
    tau: np.ndarray         # (n, nv), or (n, nv + nc)
    external: Mapping | None
    measured: np.ndarray    # (nv,) joints whose torque is known
    filter: Filter | None = None


@dataclass(frozen=True, eq=False)
class Equations:
    """A unknowns = y + M errors, for every sample."""

    A: np.ndarray       # (n, g, unknowns)
    y: np.ndarray       # (n, g)
    M: np.ndarray       # (n, g, k)
    noisy: np.ndarray   # (k,) places in tau of the torques with errors


def close_loops(m: Mechanism, recording: Recording) -> Recording:
    """The recording moved onto closed loops: the nearest poses, velocities and accelerations."""
    if not m.constrained:
        return recording
    plan = m.plan()
    names = parts(plan, f.FIRST_ROW, f.ROWS)
    q, v, a = recording.q.copy(), recording.v.copy(), recording.a.copy()
    for k in range(len(q)):
        found = demands(plan, q[k], v[k])
        gap = np.abs(found.gap)
        if gap.max(initial=0.0) > RECORDED_OPEN:
            worst = int(gap.argmax())
            name = next(name for name, rows in names.items() if rows.start <= worst < rows.stop)
            raise StateError(f"identify: in sample {k} the loop of {name!r} is open by {gap[worst]:.3g} (m, rad), more "
                             f"than measurement errors of {RECORDED_OPEN:g}: q and the model do not fit each other; "
                             "check offsets of encoders and lengths of links", states=[k])
        if gap.max(initial=0.0) > CLOSED:
            q[k], v[k] = project(m, q[k], v[k])
            found = demands(plan, q[k], v[k])
        J = found.columns.T
        v[k] -= np.linalg.lstsq(J, J @ v[k], rcond=SINGULAR_VALUE)[0]
        found = demands(plan, q[k], v[k])
        a[k] -= np.linalg.lstsq(J, J @ a[k] + found.bias, rcond=SINGULAR_VALUE)[0]
    return replace(recording, q=q, v=v, a=a)


def equations(unknowns: Unknowns, recording: Recording, regressor: np.ndarray, slow: np.ndarray) -> Equations:
    """The equations of a recording.

    regressor  (n, nv, 10 links) of all links
    slow       (n, nv) joints that move too slowly for the law of Coulomb friction
    """
    m, (q, v, a, tau) = unknowns.mechanism, (recording.q, recording.v, recording.a, recording.tau)
    known = inverse_dynamics(m.plan(), q, v, a, external_forces(m, recording.external), None)
    if m.has_joint_laws():
        known = known + against_friction(m, v, a)
    Y = columns(unknowns, regressor, v, a)
    y = tau[:, :m.nv] - known + Y @ unknowns.own
    if m.constrained:
        A, y, M, moved, noisy = _with_loops(m, recording, Y, y)
    else:
        noisy = np.flatnonzero(recording.measured)
        moved = np.eye(m.nv, dtype=bool)[noisy]
        A, y, M = Y[:, noisy], y[:, noisy], np.broadcast_to(np.eye(len(noisy)), (len(q), len(noisy), len(noisy)))
        moved = np.broadcast_to(moved, (len(q), *moved.shape))
    if recording.filter is not None:
        kept = recording.filter.kept
        A, y, M, moved, slow = recording.filter(A), recording.filter(y), M[kept], moved[kept], slow[kept]
    use = ~(moved & slow[:, None]).any(axis=2)
    return Equations(A * use[:, :, None], y * use, M * use[:, :, None], noisy)


def columns(unknowns: Unknowns, regressor: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Y (n, nv, unknowns) of the tree, from the regressor of all links."""
    Y = np.zeros((len(v), unknowns.mechanism.nv, unknowns.count))
    for i, link in enumerate(unknowns.links):
        Y[:, :, 10 * i:10 * i + 10] = regressor[:, :, 10 * link:10 * link + 10]
    factors = {"damping": v, "friction": np.sign(v), "armature": a}
    for column, (what, k) in enumerate(unknowns.freedoms, start=10 * len(unknowns.links)):
        Y[:, k, column] = factors[what][:, k]
    return Y


def _with_loops(m: Mechanism, recording: Recording, Y, y):
    """(A, y, M, joints that move (n, g, nv), places of torques with errors)."""
    nv = m.nv
    found = [demands(m.plan(), q, v) for q, v in zip(recording.q, recording.v, strict=True)]
    ways = np.array([x.ways for x in found])                      # (n, nv, nc)
    y = y + np.array([x.own for x in found])                      # springs and dampers of connections act by themselves
    drives = recording.tau[:, nv:]
    if drives.shape[1]:
        y = y + np.einsum("nvc,nc->nv", ways, drives)
    held = np.eye(nv)[~recording.measured]
    N = _motions(np.array([np.concatenate([x.columns.T, held]) for x in found]))
    entering = np.concatenate([N, N @ ways], axis=2)
    noisy = _driven(m, recording, drives.shape[1] > 0)
    if not _spans(entering[:, :, noisy]):
        noisy = np.flatnonzero(recording.measured)
    return N @ Y, (N @ y[:, :, None])[:, :, 0], entering[:, :, noisy], np.abs(N) > CLOSED, noisy


def _motions(J) -> np.ndarray:
    """N^T (n, g, nv): orthonormal motions that J (n, rows, nv) allows, turned so that they change little from sample to
    sample."""
    _, values, right = np.linalg.svd(J)
    rank = int((values > SINGULAR_VALUE * values[:, :1]).sum(axis=1).max())
    N = right[:, rank:]
    for k in range(1, len(N)):
        left, _, back = np.linalg.svd(N[k - 1] @ N[k].T)
        N[k] = left @ back @ N[k]
    return N


def _driven(m: Mechanism, recording: Recording, of_connections: bool) -> np.ndarray:
    """Places in tau of the drives: of joints and, if their torques are given, of connections."""
    places = []
    for link in m.links:
        if link.actuated:
            where = m.v_slice(link.joint_name)
            places += [k for k in range(where.start, where.stop) if recording.measured[k]]
    if of_connections:
        for name, where in parts(m.plan(), f.FIRST_FREEDOM, f.FREEDOMS).items():
            if name in m.connections and m.connections[name].actuated:
                places += range(m.nv + where.start, m.nv + where.stop)
    return np.array(places, int)


def _spans(M) -> bool:
    if M.shape[2] < M.shape[1]:
        return False
    values = np.linalg.svd(M, compute_uv=False)
    return bool((values[:, -1] > SPANS * values[:, 0]).all())
