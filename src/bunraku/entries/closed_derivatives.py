"""Derivatives of the accelerations of closed structures: parts from compiled code, then dense linear algebra.

With torques tau = M a + ..., constraints J a + ... = 0 and multipliers f, small changes obey

    M da - J^T df = dtau - (dtau/dx) dx,     J da = -(dc/dx) dx

so that da = J^+ (second) + N (N^T M N)^-1 N^T (first - M J^+ (second)), where N spans what J lets move. J^+ and N come
from the singular values of J, so rows that depend on others change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bunraku.algorithms.connection_equations import DYNAMICS, IMPULSE
from bunraku.algorithms.inverse_derivatives import ball_slopes
from bunraku.entries import closed_solution as closed
from bunraku.entries.derivative_entries import closed_derivatives_one
from bunraku.entries.explain import refuse
from bunraku.entries.signatures import FINE
from bunraku.errors import ConstraintError, ModelError, StateError
from bunraku.plan import fields as f
from bunraku.tolerances import SINGULAR_VALUE


class ClosedDerivatives(NamedTuple):
    a: np.ndarray
    da_dq: np.ndarray
    da_dv: np.ndarray
    da_dtau: np.ndarray   # columns for the torques of the tree, then for the drives of connections
    jacobian: np.ndarray  # J of the constraints
    rates_dq: np.ndarray  # derivative of J v by coordinates
    parts: Parts


class Parts(NamedTuple):
    """What the derivatives of a state come from."""

    solution: closed.Solution
    ways: list[_Way]
    M: np.ndarray
    dq: np.ndarray     # of the torques that the tree needs besides what its connections do
    dv: np.ndarray
    axes: np.ndarray   # (freedoms, nv): rates of the connections' coordinates per unit of each velocity
    turned: np.ndarray  # derivative of these rates by coordinates


def closed_derivatives(plan, q, v, tau, drives, external) -> ClosedDerivatives:
    """Of one state that closes every loop; arrays in kernel form."""
    solution = closed.solve(plan, DYNAMICS, q, v, tau, drives, external)
    multipliers, _ = closed.forces(solution)
    nv, loops = plan.nv, plan.loops
    ways = [_way(solution, c) for c in range(len(loops.names))]
    wrenches = np.concatenate([multipliers[way.rows] @ way.held + way.drive for way in ways])
    tree, held, free = np.empty((3, nv, nv)), np.empty((4, loops.rows, nv)), np.empty((2, loops.freedoms, nv))
    seen = np.empty(6 * len(ways))
    answer = closed_derivatives_one.call(
        plan.arrays, solution.q, v, solution.a, plan.nothing if external is None else external, wrenches,
        np.concatenate([way.rate.ravel() for way in ways]), solution.work, *tree, *held, *free, seen)
    if answer != FINE:
        refuse(plan, q, {"v": v})
    (dq, dv, M), (J, rates_dq, held_dq, held_dv) = tree, held
    driven = np.zeros((loops.rows, loops.freedoms))
    for c, way in enumerate(ways):
        at = 6 * c, 6 * c + 6
        way.turn(wrenches[slice(*at)], seen[slice(*at)], drives, free[0, way.freedoms], free[1, way.freedoms], dq, dv,
                 rates_dq[way.rows], held_dq[way.rows], held_dv[way.rows])
    axes, turned = free[0].copy(), free[1]
    for way in ways:
        if way.given:
            driven[way.rows, way.freedoms] = way.held @ way.axes.T
            free[0, way.freedoms] = 0.0
    by_q, by_v, by_tau = _solve(plan, M, J, dq, dv, held_dq, held_dv, free[0], driven)
    return ClosedDerivatives(solution.a, by_q, by_v, by_tau, J, rates_dq,
                             Parts(solution, ways, M, dq, dv, axes, turned))


def force_derivatives(plan, found: ClosedDerivatives) -> dict[str, np.ndarray]:
    """{connection: (6, 3 nv + freedoms)}: of the wrenches that `Solution.wrench` gives, in axes fixed to link b, by
    coordinates, velocities and torques.

    From J^T df = M da + (dtau/dx) dx - dtau; constrained directions are constant in b's axes.
    """
    J, nv = found.jacobian, plan.nv
    solution, ways, M, dq, dv, axes, turned = found.parts
    if np.linalg.matrix_rank(J, SINGULAR_VALUE * np.linalg.norm(J, 2)) < len(J):
        raise ConstraintError("connections are redundant, so their forces are indeterminate and have no derivatives; "
                              "bk.derivatives has those of the accelerations")
    needed = np.hstack([M @ found.da_dq + dq, M @ found.da_dv + dv,
                        M @ found.da_dtau - np.hstack([np.eye(nv), axes.T])])
    df, out = np.linalg.lstsq(J.T, needed, rcond=None)[0], {}
    for c, name in enumerate(plan.loops.held):
        way, law = ways[c], plan.loops.conn_i[c, f.LAW]
        if law == f.LAW_COMPOUND or way.given:
            what = "a compound joint" if law == f.LAW_COMPOUND else "of prescribed motion"
            raise ModelError(f"connection {name!r} is {what}: no derivatives of its forces")
        table, n = np.zeros((6, 3 * nv + plan.loops.freedoms)), len(way.rates)
        table += solution.directions(c).T @ df[way.rows]
        push = np.zeros((n, table.shape[1]))  # of springs, dampers and drives, along the free directions
        push[:, :nv] = -way.stiffness @ axes[way.freedoms] - way.damping[:, None] * turned[way.freedoms]
        push[:, nv:2 * nv] = -way.damping[:, None] * axes[way.freedoms]
        push[:, 3 * nv:][:, way.freedoms] = np.eye(n)
        if law == f.LAW_PLANAR and (np.abs(way.drive).max() > 0.0 or way.stiffness.any() or way.damping.any()):
            raise ModelError(f"connection {name!r} is planar and driven: no derivatives of its forces")
        to_frame = plan.loops.frames[c] @ solution.record(c)[f.CONN_TURN:f.CONN_TURN + 9].reshape(3, 3).T
        for k in range(n):
            moment, force = way.rate[k].reshape(2, 3)
            table += np.outer(np.concatenate([to_frame @ force, to_frame @ moment]), push[k])
        out[name] = table
    return out


class ImpactDerivatives(NamedTuple):
    """Of the velocity after an impact of the connections."""

    v: np.ndarray
    by_q: np.ndarray
    by_v: np.ndarray
    by_push: np.ndarray  # by generalised impulses that act at the same time


def impact_derivatives(plan, q, v) -> ImpactDerivatives:
    """Of the velocity v+ after connections have become rigid: M (v+ - v) = J^T p, J v+ = 0.

    These are forward dynamics at rest, of a plan without gravity and springs, with v+ - v in the place of the
    accelerations. Loops are closed at q; changes of q may leave them open, as where a connection takes the place its
    links have at that moment.
    """
    nv, loops, still = plan.nv, plan.loops, np.zeros(plan.nv)
    struck = closed.solve(plan, IMPULSE, q, v)
    multipliers, _ = closed.forces(struck)
    after, count = v + struck.a, len(loops.names)
    ways = [_at_rest(_way(struck, c)) for c in range(count)]
    wrenches = np.concatenate([multipliers[way.rows] @ way.held for way in ways])
    tree, held, free = _parts(plan, struck, still, struck.a, wrenches, ways)
    (dq, dv, M), (J, rates, held_dq, held_dv) = tree, held
    for c, way in enumerate(ways):
        way.turn(wrenches[6 * c:6 * c + 6], np.zeros(6), np.zeros(loops.freedoms), free[0, way.freedoms],
                 free[1, way.freedoms], dq, dv, rates[way.rows], held_dq[way.rows], held_dv[way.rows])
    moving = closed.solve(plan, IMPULSE, q, after)
    ways = [_way(moving, c) for c in range(count)]
    (*_, rates, held_dq, held_dv), free = _parts(plan, moving, after, still, 0.0 * wrenches, ways)[1:]
    for c, way in enumerate(ways):
        way.turn(0.0 * wrenches[6 * c:6 * c + 6], np.zeros(6), np.zeros(loops.freedoms), free[0, way.freedoms],
                 free[1, way.freedoms], 0.0 * dq, 0.0 * dv, rates[way.rows], held_dq[way.rows], held_dv[way.rows])
    nothing = np.zeros((loops.freedoms, nv))
    by_q, by_v, by_push = _solve(plan, M, J, dq, np.zeros((nv, nv)), rates, J, nothing,
                                 np.zeros((loops.rows, loops.freedoms)))
    return ImpactDerivatives(after, by_q, np.eye(nv) + by_v, by_push[:, :nv])


def _parts(plan, solution, v, a, wrenches, ways):
    """The arrays of `closed_derivatives_one`: of the tree, of constraints, of free directions."""
    nv, loops = plan.nv, plan.loops
    tree, held, free = np.empty((3, nv, nv)), np.empty((4, loops.rows, nv)), np.empty((2, loops.freedoms, nv))
    rates = np.concatenate([way.rate.ravel() for way in ways])
    if closed_derivatives_one.call(plan.arrays, solution.q, v, a, plan.nothing, wrenches, rates, solution.work, *tree,
                                   *held, *free, np.empty(6 * len(ways))) != FINE:
        refuse(plan, solution.q, {"v": v})
    return tree, held, free


def _at_rest(way):
    """A connection that does not move, without springs."""
    return replace(way, rates=0.0 * way.rates, stiffness=0.0 * way.stiffness, damping=0.0 * way.damping,
                   drive=0.0 * way.drive, given=False)


@dataclass(frozen=True, eq=False)
class _Way:
    """What the joint of a connection lets move; motions are (angular, linear), wrenches (moment, force), world axes, at
    the origin of b's joint frame."""

    rows: slice
    freedoms: slice
    given: bool         # accelerations of its coordinates, in the place of torques
    held: np.ndarray    # constrained directions (rows, 6)
    axes: np.ndarray    # free directions (n, 6): motion per unit of each coordinate's rate
    rate: np.ndarray    # (n, 6): these give the rates from a motion
    rates: np.ndarray   # (n,)
    carried: np.ndarray  # (n, n, 6): change of axis i per unit of coordinate j
    stiffness: np.ndarray  # (n, n)
    damping: np.ndarray    # (n,)
    drive: np.ndarray   # wrench of springs, dampers and drives (6,)

    def turn(self, wrench, seen, drives, way, way_rates, dq, dv, held_rates, held_dq, held_dv):
        """Add what is due to axes that turn, and to springs and dampers, to what holds for constant axes."""
        changed, rates = self.carried, self.rates
        along = np.einsum("ijk,i->jk", changed, rates)  # of S times the rates, by coordinates
        way_rates -= self.rate @ along.T @ way
        held_rates -= self.held @ along.T @ way
        swept = np.einsum("ijk,i,j->k", changed, rates, rates)  # dS/dt times the rates
        by_rates = np.einsum("ijk,j->ik", changed, rates) + along
        by_coordinates = np.zeros_like(along)
        for i, axis in enumerate(self.axes):
            for j in range(i + 1, len(rates)):
                for m in range(len(rates)):
                    by_coordinates[m] -= rates[i] * rates[j] * (_across(changed[j, m], axis)
                                                                + _across(self.axes[j], changed[i, m]))
        accelerations = drives[self.freedoms] if self.given else self.rate @ (seen - swept)
        by_coordinates += np.einsum("ijk,i->jk", changed, accelerations)
        held_dq -= self.held @ (by_coordinates.T @ way + by_rates.T @ way_rates)
        held_dv -= self.held @ by_rates.T @ way
        if not self.given:
            dq += way.T @ ((changed @ wrench + self.stiffness) @ way + self.damping[:, None] * way_rates)
            dv += way.T @ (self.damping[:, None] * way)


def _across(a, b) -> np.ndarray:
    """a x b of motions."""
    return np.concatenate([np.cross(a[:3], b[:3]), np.cross(a[:3], b[3:]) + np.cross(a[3:], b[:3])])


def _way(solution, c) -> _Way:
    loops = solution.plan.loops
    row, numbers, record, rows = loops.conn_i[c], loops.conn_f[c], solution.record(c), solution.rows(c)
    law, n, L = row[f.LAW], int(row[f.FREEDOMS]), numbers[f.LENGTH]
    held = record[f.CONN_COLUMNS:f.CONN_COLUMNS + 6 * (rows.stop - rows.start)].reshape(-1, 6)
    to_world = np.kron(np.eye(2), record[f.CONN_TURN:f.CONN_TURN + 9].reshape(3, 3))
    first = int(row[f.FIRST_FREEDOM])
    if law in (f.LAW_SPHERICAL, f.LAW_FREE):
        axes = np.eye(6)[:3] if law == f.LAW_SPHERICAL else np.eye(6)[[3, 4, 5, 0, 1, 2]]
        rate, carried = axes, np.zeros((n, n, 6))
    else:
        axes = record[f.CONN_AXES:f.CONN_AXES + 6 * n].reshape(n, 6)
        carried = np.zeros((n, n, 6))
        for i in range(n):
            for j in range(i + 1, n):
                carried[i, j] = -_across(axes[j], axes[i])
        metric = np.array([L * L] * 3 + [1.0] * 3)
        rate = np.linalg.solve((axes * metric) @ axes.T, axes * metric)
    coordinates, rates = (record[k:k + n] for k in (f.CONN_COORDINATES, f.CONN_RATES))
    stiffness, damping = _slopes(law, numbers, n, coordinates)
    return _Way(rows, slice(first, first + n), bool(row[f.GIVEN]), held, axes @ to_world.T, rate @ to_world.T, rates,
                carried @ to_world.T, stiffness, damping, record[f.CONN_DRIVE:f.CONN_DRIVE + 6])


def _slopes(law, numbers, n, coordinates):
    """Minus the derivatives of the torques of springs, dampers and limits by coordinates (n, n) and by rates (n,)."""
    table = numbers[f.CONN_PASSIVE:f.CONN_PASSIVE + n * f.DOF_F].reshape(n, f.DOF_F)
    damping = table[:, f.DAMPING].copy()
    if law == f.LAW_SPHERICAL:
        own = table[0, [f.STIFFNESS, f.UPPER, f.LIMIT_STIFFNESS, f.LIMIT_DAMPING]].tolist()
        slopes, brake = ball_slopes(*own, tuple(coordinates.tolist()), float(np.linalg.norm(coordinates)))
        return np.reshape(slopes, (3, 3)), damping + brake
    beyond = (table[:, f.LIMIT_STIFFNESS] > 0.0) & ((coordinates > table[:, f.UPPER])
                                                    | (coordinates < table[:, f.LOWER]))
    stiffness = table[:, f.STIFFNESS] + np.where(beyond, table[:, f.LIMIT_STIFFNESS], 0.0)
    return np.diag(stiffness), damping + np.where(beyond, table[:, f.LIMIT_DAMPING], 0.0)


def _solve(plan, M, J, dq, dv, held_dq, held_dv, ways, driven):
    """da_dq, da_dv and da_dtau. Joints whose accelerations are given are held like connections."""
    nv, (rows, freedoms) = plan.nv, driven.shape
    given = np.zeros(nv, bool)
    for row in plan.body_i[:-1][plan.body_i[:-1, f.ELIMINATION] == f.LOCKED]:
        given[row[f.V_INDEX]:row[f.V_INDEX] + row[f.DOF]] = True
    unit = np.eye(nv)
    J = np.vstack([J, unit[given]])
    first = np.hstack([-dq, -dv, np.where(given, 0.0, unit), ways.T])
    second = np.zeros((len(J), 3 * nv + freedoms))
    second[:rows, :nv], second[:rows, nv:2 * nv], second[:rows, 3 * nv:] = -held_dq, -held_dv, driven
    second[rows:, 2 * nv:3 * nv] = unit[given]
    left, values, right = np.linalg.svd(J)
    rank = int((values > SINGULAR_VALUE * values.max(initial=0.0)).sum())
    kept, N = right[:rank], right[rank:].T
    moved = kept.T @ ((left[:, :rank].T @ second) / values[:rank, None])
    try:
        root = np.linalg.cholesky(N.T @ M @ N)
    except np.linalg.LinAlgError:
        raise StateError("something can move that has no inertia, so accelerations have no derivatives in this pose; "
                         "give the link inertia, or the joint an armature") from None
    da = moved + N @ np.linalg.solve(root.T, np.linalg.solve(root, N.T @ (first - M @ moved)))
    return da[:, :nv], da[:, nv:2 * nv], da[:, 2 * nv:]
