"""Compiled passes of iterative LQR: backwards for gains, forwards for the motion that they make."""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.forward_passes import accelerate_tree, scratch_sizes
from bunraku.algorithms.riccati import backward, controls_at, predicted, scratch_of_pass
from bunraku.algorithms.states import coordinate_difference
from bunraku.algorithms.stepping import step_coordinates, symplectic_step, unit_length
from bunraku.entries.signatures import PLAN, counts, float64, floats, int64, table
from bunraku.jit import entry

cube = types.float64[:, :, ::1]


@entry("gains of a motion", int64(cube, cube, table, table, cube, table, floats, table, table, float64, table, cube,
                                  floats), seconds=8)
def backward_pass(A, B, gap, l_x, l_xx, l_u, l_uu, lower, upper, damping, ahead, gain, promise):
    """`lower` and `upper` are of the change of the controls. `promise` takes what `predicted` says. Returns the step at
    which there is no minimum, or -1."""
    n, m = B.shape[1], B.shape[2]
    work, free = np.empty(scratch_of_pass(n, m)), np.empty(m, np.int64)
    failed = backward(A, B, gap, l_x, l_xx, l_u, l_uu, lower, upper, damping, ahead, gain, free, work)
    if failed < 0:
        promise[0], promise[1] = predicted(A, B, gap, l_x, l_xx, l_u, l_uu, ahead, gain, work[:n], work[n:n + m],
                                           work[n + m:2 * n + m])
    return failed


@entry("motion with feedback", int64(PLAN, float64, float64, table, table, table, table, cube, table, table, table,
                                     counts, table, table, table), seconds=8)
def forward_pass(plan, step, length, q, v, u, ahead, gain, gap, lower, upper, places, q_new, v_new, u_new):
    """The motion of a tree from q[0], v[0], by symplectic Euler, with torques u + length ahead + gain (state - old one)
    within limits, at the velocities `places`; (1 - length) of the gaps remain. Returns how many steps have a finite
    result."""
    body_i, nv, m, steps = plan.body_i, plan.dof_f.shape[1], u.shape[1], u.shape[0]
    sizes = scratch_sizes(body_i, plan.dof_f, False)
    work = np.empty(sizes[0] + sizes[1] + sizes[2] + sizes[3])
    x, tau, a, nothing = np.empty(2 * nv), np.zeros(nv), np.empty(nv), np.empty(0)
    back = np.empty(nv)
    q_new[0], v_new[0] = q[0], v[0]
    unit_length(body_i, q_new[0])
    for k in range(steps):
        coordinate_difference(body_i, q[k], q_new[k], x[:nv])
        for j in range(nv):
            x[nv + j] = v_new[k, j] - v[k, j]
        controls_at(ahead[k], gain[k], x, length, u[k], lower[k], upper[k], u_new[k])
        for i in range(m):
            tau[places[i]] = u_new[k, i]
        margin, residue = accelerate_tree(plan, plan.dof_f, q_new[k], v_new[k], tau, nothing, a, work)
        if not (margin > 0.0 and residue == 0.0):
            return k
        q_new[k + 1], v_new[k + 1] = q_new[k], v_new[k]
        symplectic_step(body_i, q_new[k + 1], v_new[k + 1], a, step)
        if length < 1.0:
            for j in range(nv):
                back[j] = (length - 1.0) * gap[k, j]
                v_new[k + 1, j] += (length - 1.0) * gap[k, nv + j]
            step_coordinates(body_i, q_new[k + 1], back, 1.0)
        total = 0.0
        for j in range(nv):
            total += 0.0 * v_new[k + 1, j]
        if total != 0.0:
            return k
    return steps
