"""Loop closure: velocities after an impact, projection onto the loop constraints, coordinates of connections."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bunraku.algorithms.connection_equations import IMPULSE, POSITION, TWICE
from bunraku.checks import as_floats, hint
from bunraku.entries import closed_solution as closed
from bunraku.entries.constraint_entries import demands
from bunraku.entries.explain import refuse_not_finite
from bunraku.entries.mass_matrix_entries import mass_matrix
from bunraku.errors import ConstraintError, NamingError, ShapeError
from bunraku.mechanism import Free, Mechanism, Spherical
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.tolerances import (
    CLOSED,
    DAMPING,
    EXACT,
    LESS_GAP,
    MASS_ADDED,
    PROJECTED,
    SHORTEST_MOVE,
    START_MATTERS,
)

MOVES = 100
DAMPED_UP_TO = 1000       # velocities up to which damped steps are tried, O(nv^3) each


def impact(mechanism: Mechanism, q, v, *, impulses: bool = False, workers: int | None = None,
           prescribed: Iterable[str] = ()):
    """Velocity just after every connection has become rigid [YN99, sec. 4.3]: impulses act at the connections, and at
    the joints of the tree through them; momentum is conserved for parts not connected to the ground, and energy never
    grows.

    With `impulses` also {connection: (impulse, moment of impulse)}: six numbers on link b at the joint frame's origin,
    in child-side axes; where connections are redundant, those of minimum norm. Joints that are `prescribed` keep their
    velocity.
    """
    plan = as_mechanism(mechanism).plan()
    if prescribed:
        plan = mechanism.driven_plan({mechanism.find_joint(name, "prescribed: ") for name in prescribed})
    q, v = as_floats("q", q, plan.nq, least=plan.nv), as_floats("v", v, plan.nv)
    if plan.loops is None:
        refuse_not_finite(plan, q, {"v": v})
        return (v.copy(), {}) if impulses else v.copy()
    if (q.ndim == 2 or v.ndim == 2) and not impulses:
        return v + closed.velocity_change(plan, q, v, workers)
    if q.ndim == 2 or v.ndim == 2:
        count = q.shape[0] if q.ndim == 2 else v.shape[0]
        parts = [impact(mechanism, q[k] if q.ndim == 2 else q, v[k] if v.ndim == 2 else v, impulses=True,
                        prescribed=prescribed)
                 for k in range(count)]
        return np.array([part[0] for part in parts]), {name: np.array([part[1][name] for part in parts])
                                                       for name in plan.loops.held}
    # J = K_C (J_1 - J_2) in place of the six rows and J_n: B^-1 (1 - C) is K_C^T (K_C B K_C^T)^-1 K_C
    solution = closed.solve(plan, IMPULSE, q, v)  # [YN99, eqs. 11-14, 20]
    if not impulses:
        return v + solution.a                     # [YN99, eqs. 15-19, 21-24]
    multipliers, _ = closed.forces(solution)
    return v + solution.a, {name: solution.wrench(c, multipliers, drive=False)
                            for c, name in enumerate(plan.loops.held)}


def project(mechanism: Mechanism, q, v=None, *, tolerance: float = PROJECTED):
    """The nearest state that closes every loop, in the metric of the mass matrix: (q, v), or q alone without v.

    Positions by Gauss-Newton steps, each of minimum kinetic-energy norm from the given start, and by damped steps
    where those do not converge; velocities as after an impact. Gaps are closed to `tolerance` [m, rad] if
    possible. A ConstraintError names connections that stay open by more than 1e-6 (or `tolerance`).
    """
    plan = as_mechanism(mechanism).plan()
    q = as_floats("q", q, plan.nq, least=plan.nv)
    if v is not None:
        v = as_floats("v", v, plan.nv)
    if q.ndim == 2:
        if v is None:
            return np.array([project(mechanism, row, tolerance=tolerance) for row in q])
        rows = np.broadcast_to(v, (q.shape[0], plan.nv))
        moved = [project(mechanism, row, speed, tolerance=tolerance) for row, speed in zip(q, rows, strict=True)]
        return np.array([x[0] for x in moved]), np.array([x[1] for x in moved])
    refuse_not_finite(plan, q, {})
    if plan.loops is not None:
        q = closed_position(mechanism, plan, q, tolerance)
    if v is None:
        return q
    if v.ndim == 2:
        raise ShapeError("project: v is a batch where q is one state")
    return q, impact(mechanism, q, v)


def closed_position(mechanism, plan, start, tolerance: float = PROJECTED, limit: float = CLOSED) -> np.ndarray:
    """Coordinates near `start` with every gap closed to `tolerance` if possible; a ConstraintError if a gap larger
    than `limit` remains [m, rad]."""
    q, best = _newton(mechanism, plan, start, start, tolerance)
    if best > max(tolerance, EXACT) and plan.nv <= DAMPED_UP_TO:
        nearer = _damped(mechanism, plan, start, tolerance)
        nearer, left = _newton(mechanism, plan, nearer, nearer, tolerance)
        q, best = (nearer, left) if left < best else (q, best)
    if best > max(tolerance, limit):
        gap, _ = closed.gaps(plan, q)
        names = ", ".join(f"{name!r} {x:.3g}" for name, x in zip(plan.loops.names, gap, strict=True) if x > limit)
        check = "the frames of these connections" + (", or ratio and offset of the couplings" if plan.loops.couplings
                                                     else "")
        raise ConstraintError(f"the loops do not close from here; left open [m, rad]: {names}. Start nearer, or check "
                              f"{check}", result=q)
    return q


def _damped(mechanism, plan, q, tolerance):
    """Levenberg-Marquardt in the metric of the mass matrix. If redundant loops are open by g, immobile directions
    appear mobile by terms of order g; damping keeps steps along them small."""
    q = mechanism.integrate(q, plan.zero_tau)
    found = demands(plan, q, None)
    damping, least, most = DAMPING
    gap = found.gap
    for _ in range(MOVES):
        if np.abs(gap).max(initial=0.0) <= tolerance:
            break
        M = mass_matrix(plan, q)
        root = np.linalg.cholesky(M + MASS_ADDED * np.trace(M) / len(M) * np.eye(len(M)))
        left, values, right = np.linalg.svd(np.linalg.solve(root, found.columns).T, full_matrices=False)
        largest = max(values.max(initial=0.0), 1e-300)
        while True:
            shares = values / (values**2 + damping * largest**2)
            trial = mechanism.integrate(q, np.linalg.solve(root.T, -right.T @ (shares * (left.T @ gap))))
            there = demands(plan, trial, None)
            if there.gap @ there.gap < (1.0 - LESS_GAP) * (gap @ gap):
                break
            damping *= 4.0
            if damping > most:
                return q
        q, found, gap = trial, there, there.gap
        damping = max(0.1 * damping, least)
    return q


def _newton(mechanism, plan, q, start, tolerance):
    """(coordinates, largest gap) by Gauss-Newton: among the moves that close the gaps to first order, the one that ends
    nearest to the start."""
    q = mechanism.integrate(q, plan.zero_tau)
    gap, solution = closed.gaps(plan, q)
    best, refined = gap.max(initial=0.0), False
    for _ in range(MOVES):
        if best <= tolerance:
            break
        back = mechanism.difference(q, start)
        if EXACT < best < START_MATTERS and np.abs(back).max(initial=0.0) > 0.0:  # near enough for the start to matter
            weight = mass_matrix(plan, q) @ back
            solution = closed.solve(plan, POSITION, q, plan.zero_tau, weight, judge=False)
        step, share = solution.a, 1.0
        while True:
            trial = mechanism.integrate(q, share * step)
            gap, next_solution = closed.gaps(plan, trial)
            if gap.max(initial=0.0) < best or share < SHORTEST_MOVE:
                break
            share *= 0.5
        if not gap.max(initial=0.0) < best:
            if refined:
                break
            # forces of redundant connections may cancel each other and leave rounding errors
            solution, refined = closed.solve(plan, POSITION + TWICE, q, plan.zero_tau, judge=False), True
            continue
        q, solution, best = trial, next_solution, gap.max(initial=0.0)
    return q, float(best)


def coordinates(mechanism: Mechanism, name: str, q, v=None):
    """Coordinates of a joint or connection; with v also their rates, as (coordinates, rates).

    A connection's follow from the pose of its links: an angle within half a turn, a ball as quaternion w x y z.
    """
    plan = as_mechanism(mechanism).plan()
    q = as_floats("q", q, plan.nq)
    if name not in mechanism.connections:
        try:
            where = mechanism.q_slice(name)
        except NamingError:
            known = [*mechanism.joint_names, *mechanism.connections]
            raise NamingError(f"there is no joint, link or connection {name!r}{hint(name, known)}") from None
        return q[..., where] if v is None else (q[..., where],
                                                as_floats("v", v, plan.nv)[..., mechanism.v_slice(name)])
    speed = plan.zero_tau if v is None else as_floats("v", v, plan.nv)
    if q.ndim == 2:
        parts = [coordinates(mechanism, name, row, speed if speed.ndim == 1 else speed[k]) for k, row in enumerate(q)]
        x, rate = (np.array(part) for part in zip(*parts, strict=True))
        return x if v is None else (x, rate)
    solution = closed.solve(plan, IMPULSE, q, speed, judge=False)
    x, rate = solution.coordinates(plan.loops.names.index(name))
    joint = mechanism.connections[name].joint
    if isinstance(joint, (Spherical, Free)):
        x = np.concatenate([x[:-3], _quaternion(x[-3:])])
    return x if v is None else (x, rate)


def _quaternion(vector):
    angle = np.linalg.norm(vector)
    return np.concatenate([[np.cos(0.5 * angle)], 0.5 * np.sinc(0.5 * angle / np.pi) * vector])
