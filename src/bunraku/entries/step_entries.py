"""A motion of a tree in fixed steps under given torques, of which some states are kept."""

from __future__ import annotations

import numpy as np

from bunraku.algorithms.forward_passes import accelerate_tree, scratch_sizes
from bunraku.algorithms.stepping import symplectic_step, unit_length
from bunraku.entries.signatures import PLAN, float64, floats, int64, table
from bunraku.jit import entry


@entry("motion under given torques", int64(PLAN, float64, table, floats, floats, int64, table, table), seconds=6)
def torque_steps(plan, step, tau, q, v, every, q_kept, v_kept):
    """Take a step of symplectic Euler for each row of tau, from (q, v) in place; states before steps 0, `every`,
    2 `every`, ... are kept. Returns how many steps have a finite result."""
    sizes = scratch_sizes(plan.body_i, plan.dof_f, False)
    work = np.empty(sizes[0] + sizes[1] + sizes[2] + sizes[3])
    a, nothing = np.empty(v.shape[0]), np.empty(0)
    unit_length(plan.body_i, q)
    for k in range(tau.shape[0]):
        if k % every == 0:
            q_kept[k // every], v_kept[k // every] = q, v
        margin, residue = accelerate_tree(plan, plan.dof_f, q, v, tau[k], nothing, a, work)
        if not (margin > 0.0 and residue == 0.0):
            return k
        symplectic_step(plan.body_i, q, v, a, step)
        total = 0.0
        for j in range(v.shape[0]):
            total += 0.0 * v[j]
        if total != 0.0:
            return k
    return tau.shape[0]
