"""Motion that joint controllers follow: a goal, or a table of coordinates over time.

A table becomes a cubic spline through its rows (not-a-knot), whose first and second derivatives are velocities and
accelerations; before and after it, the motion rests at its ends. Quaternions keep the values of the goal.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable
from scipy.interpolate import CubicSpline

from bunraku.checks import as_array
from bunraku.control.controller import coordinates_of
from bunraku.errors import ModelError, ShapeError
from bunraku.mechanism import Mechanism


def goal_parameters(mechanism: Mechanism, goal, table, on: np.ndarray, what: str) -> tuple[dict, int]:
    """Parameters of the reference, the goal first, and the number of rows of the table (0: there is none)."""
    if table is None:
        return {"goal": coordinates_of(mechanism, f"{what}: goal", goal)}, 0
    if goal is not None:
        raise ModelError(f"{what}: give a goal or a table, not both")
    try:
        times, rows = table
    except (TypeError, ValueError):
        raise ShapeError(f"{what}: table must be (times, coordinates)") from None
    times, rows = as_array(f"{what}: times of the table", times), as_array(f"{what}: table", rows)
    count = len(times) if times.ndim == 1 else 0
    if count < 2 or rows.shape != (count, mechanism.nq) or not (np.isfinite(times).all() and np.isfinite(rows).all()):
        raise ShapeError(f"{what}: table must be (times, coordinates) of shapes (n,) and (n, {mechanism.nq}), n at "
                         f"least 2, all finite, not {times.shape} and {rows.shape}")
    if (np.diff(times) <= 0).any():
        raise ShapeError(f"{what}: the times of the table must increase")
    for link in mechanism.links:
        joint, name = link.joint, link.joint_name
        if joint.nq != joint.nv and on[mechanism.v_slice(name)].any():
            raise ModelError(f"{what}: a table has no quaternions, which joint {name!r} has; leave it out of `joints`")
    spline = CubicSpline(times, rows, bc_type="not-a-knot" if count > 3 else "natural")
    return {"goal": rows[0], "times": times, "spline": np.ascontiguousarray(spline.c.transpose(1, 0, 2))}, count


@register_jitable
def interval(times, t):
    """The number of the interval of increasing times that t is in; the nearest one if it is in none."""
    low, high = 0, times.shape[0] - 1
    while high - low > 1:
        middle = (low + high) // 2
        if t < times[middle]:
            high = middle
        else:
            low = middle
    return low


@register_jitable
def followed(t, params, rows, vector, q, v, a):
    """Reference (q, v, a) at time t. `vector` has, for every velocity, the coordinate whose rate it is, or -1."""
    nq = q.shape[0]
    q[:] = params[:nq]
    v[:] = 0.0
    a[:] = 0.0
    if rows > 0:
        times, k = params[nq:nq + rows], interval(params[nq:nq + rows], t)
        rests = t < times[0] or t > times[rows - 1]
        x = min(max(t, times[0]), times[rows - 1]) - times[k]
        at = nq + rows + 4 * nq * k
        for j in range(vector.shape[0]):
            i = vector[j]
            if i >= 0:
                c3, c2, c1, c0 = params[at + i], params[at + nq + i], params[at + 2 * nq + i], params[at + 3 * nq + i]
                q[i] = ((c3 * x + c2) * x + c1) * x + c0
                if not rests:
                    v[j] = (3.0 * c3 * x + 2.0 * c2) * x + c1
                    a[j] = 6.0 * c3 * x + 2.0 * c2


def vector_coordinates(mechanism: Mechanism) -> np.ndarray:
    """For every velocity the coordinate whose rate it is; -1 for those of joints with quaternions."""
    out = np.full(mechanism.nv, -1)
    for link in mechanism.links:
        if link.joint.nv and link.joint.nq == link.joint.nv:
            where = mechanism.q_slice(link.joint_name)
            out[mechanism.v_slice(link.joint_name)] = np.arange(where.start, where.stop)
    return out
