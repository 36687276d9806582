"""Connections at work: velocities after an impact, the nearest state with every loop closed, coordinates."""

from __future__ import annotations

import numpy as np

from bunraku.algorithms.connections import IMPULSE, POSITION
from bunraku.errors import ConstraintError, NamingError, ShapeError
from bunraku.mechanism import Free, Mechanism, Spherical
from bunraku.mechanism.checks import hint
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.run import closed
from bunraku.run.matrix import mass_matrix
from bunraku.run.states import as_floats

CLOSED = 1e-12     # [m, rad] a gap that is none
ITERATIONS = 100


def impact(mechanism: Mechanism, q, v, *, impulses: bool = False, workers: int | None = None):
    """Velocity just after every connection has become rigid [YN99, eqs. 11-24]: impulses act at the connections, and at
    the joints of the tree through them; momentum is kept where nothing holds on to the ground, and energy never grows.

    With `impulses` also {connection: (impulse, moment of impulse)}: six numbers on link b at the joint frame's origin,
    in child-side axes; where connections are redundant, those of minimum norm.
    """
    plan = as_mechanism(mechanism).plan()
    v = as_floats("v", v, plan.nv)
    if plan.loops is None:
        return (v.copy(), {}) if impulses else v.copy()
    if not impulses:
        return v + closed.velocity_change(mechanism, plan, q, v, workers)
    q = as_floats("q", q, plan.nq)
    if q.ndim == 2 or v.ndim == 2:
        count = q.shape[0] if q.ndim == 2 else v.shape[0]
        parts = [impact(mechanism, q[k] if q.ndim == 2 else q, v[k] if v.ndim == 2 else v, impulses=True)
                 for k in range(count)]
        return np.array([part[0] for part in parts]), {name: np.array([part[1][name] for part in parts])
                                                       for name in plan.loops.names}
    solution = closed.solve(mechanism, plan, IMPULSE, q, v)
    multipliers, _ = closed.forces(solution)
    return v + solution.a, {name: solution.wrench(c, multipliers, drive=False)
                            for c, name in enumerate(plan.loops.names)}


def project(mechanism: Mechanism, q, v=None, *, tolerance: float = CLOSED):
    """The nearest state that closes every loop, in the metric of the mass matrix: (q, v), or q alone without v.

    Positions by Gauss-Newton steps, each the smallest (in kinetic energy) from the given start; velocities are what an
    impact would leave. A ConstraintError names connections that do not close.
    """
    plan = as_mechanism(mechanism).plan()
    q = as_floats("q", q, plan.nq)
    if v is not None:
        v = as_floats("v", v, plan.nv)
    if q.ndim == 2:
        if v is None:
            return np.array([project(mechanism, row, tolerance=tolerance) for row in q])
        rows = np.broadcast_to(v, (q.shape[0], plan.nv))
        moved = [project(mechanism, row, speed, tolerance=tolerance) for row, speed in zip(q, rows, strict=True)]
        return np.array([x[0] for x in moved]), np.array([x[1] for x in moved])
    if plan.loops is not None:
        q = _closed_position(mechanism, plan, q, tolerance)
    if v is None:
        return q
    if v.ndim == 2:
        raise ShapeError("project: v is a batch where q is one state")
    return q, impact(mechanism, q, v)


def _closed_position(mechanism, plan, start, tolerance):
    """Gauss-Newton: among the moves that close the gaps to first order, the one that ends nearest to the start."""
    q = mechanism.integrate(start, plan.zero_tau)
    gap, solution = closed.gaps(mechanism, plan, q)
    best = gap.max(initial=0.0)
    for _ in range(ITERATIONS):
        if best <= tolerance:
            break
        back = mechanism.difference(q, start)
        if best < 0.1 and np.abs(back).max(initial=0.0) > 0.0:  # close enough for the start to matter
            weight = mass_matrix(mechanism, q, None) @ back
            solution = closed.solve(mechanism, plan, POSITION, q, plan.zero_tau, weight, judge=False)
        step, share = solution.a, 1.0
        while True:
            trial = mechanism.integrate(q, share * step)
            gap, next_solution = closed.gaps(mechanism, plan, trial)
            if gap.max(initial=0.0) < best or share < 1e-3:
                break
            share *= 0.5
        if not gap.max(initial=0.0) < best:
            break
        q, solution, best = trial, next_solution, gap.max(initial=0.0)
    if best > max(tolerance, 1e-9):
        gap, _ = closed.gaps(mechanism, plan, q)
        names = ", ".join(f"{name!r} {x:.3g}" for name, x in zip(plan.loops.names, gap, strict=True) if x > 1e-9)
        raise ConstraintError(f"the loops do not close from here; left open [m, rad]: {names}. Start nearer, or check "
                              "the frames of these connections", result=q)
    return q


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
    solution = closed.solve(mechanism, plan, IMPULSE, q, speed, judge=False)
    x, rate = solution.coordinates(plan.loops.names.index(name))
    joint = mechanism.connections[name].joint
    if isinstance(joint, (Spherical, Free)):
        x = np.concatenate([x[:-3], _quaternion(x[-3:])])
    return x if v is None else (x, rate)


def _quaternion(vector):
    angle = np.linalg.norm(vector)
    return np.concatenate([[np.cos(0.5 * angle)], 0.5 * np.sinc(0.5 * angle / np.pi) * vector])
