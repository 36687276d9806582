"""Forward dynamics with all forces of a mechanism: passive joint forces, point springs, external forces, then the
articulated-body algorithm, or assembly and disassembly where there are connections."""

import numpy as np

from bunraku.algorithms.aba import aba
from bunraku.algorithms.ada import ada
from bunraku.algorithms.body_motion import STATE, body_states
from bunraku.algorithms.connection_equations import DYNAMICS
from bunraku.algorithms.passive import body_wrenches, passive_torque
from bunraku.jit import inline
from bunraku.plan import fields as f


@inline
def scratch_sizes(body_i, dof_f, pushed):
    """Scalars needed by `accelerate`: (work, tau, wrench, states)."""
    n = body_i.shape[0] - 1
    passive = body_i[n, f.HEAD_PASSIVE] != 0
    pushed = pushed or body_i[n, f.HEAD_SPRINGS] > 0
    return (np.int64(body_i[n, f.HEAD_WORK]), dof_f.shape[1] if passive else 0,
            6 * n if pushed else 0, STATE * n if pushed else 0)


@inline
def accelerate(body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, q, v, tau, external, a,
               work, total, wrench, states):
    """Joint accelerations with all forces of the mechanism; returns (margin, residue) of `aba`.

    `external` is empty or 6 per link; `work`, `total`, `wrench`, `states` are scratch of `scratch_sizes`.
    """
    if wrench.shape[0] > 0:
        body_states(body_i, body_f, q, v, v, states)  # accelerations are not used here
        body_wrenches(link_i, link_f, spring_i, spring_f, states, external, wrench)
    acting = tau
    if total.shape[0] > 0:
        passive_torque(body_i, dof_f, q, v, tau, total)
        acting = total
    return aba(body_i, body_f, dof_f, q, v, acting, wrench, a, work)


@inline
def accelerate_tree(plan, dof_f, q, v, tau, external, a, work):
    """The same for a plan without connections, in one array of as many scalars as `scratch_sizes` says in all; dof_f in
    the place of the plan's own."""
    first, total, wrench, states = scratch_sizes(plan.body_i, dof_f, external.shape[0] > 0)
    second = first + total
    third = second + wrench
    return accelerate(plan.body_i, plan.body_f, dof_f, plan.link_i, plan.link_f, plan.spring_i, plan.spring_f, q, v,
                      tau, external, a, work[:first], work[first:second], work[second:third],
                      work[third:third + states])


@inline
def scratch_total(body_i, dof_f):
    """Scalars behind the work array that `accelerate_closed` needs at most."""
    return dof_f.shape[1] + (6 + STATE) * (body_i.shape[0] - 1)


@inline
def accelerate_closed(body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, q, v, tau,
                      drives, external, a, work):
    """The same for a structure with connections. `work` holds conn_i[-1, HEAD_TOTAL] scalars and, behind them, as many
    as `scratch_total` says."""
    n, nv, end = body_i.shape[0] - 1, dof_f.shape[1], np.int64(conn_i[-1, f.HEAD_TOTAL])
    acting, wrench = tau, work[end:end]
    if external.shape[0] > 0 or body_i[n, f.HEAD_SPRINGS] > 0:
        wrench = work[end + nv:end + nv + 6 * n]
    if body_i[n, f.HEAD_PASSIVE] != 0:
        acting = work[end:end + nv]
    gather_forces(body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, q, v, tau, external, acting, wrench,
                  work[end + nv + 6 * n:end + nv + (6 + STATE) * n])
    return ada(None, DYNAMICS, 0.0, body_i, body_f, dof_f, conn_i, conn_f, prog, q, v, acting, drives, wrench, a, work)


@inline
def gather_forces(body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, q, v, tau, external, acting, wrench,
                  states):
    """Fill `wrench` with springs and external forces, if it has room, and `acting` with tau and the passive torques, if
    there are any. (It hands no array back: kernels do not count references.)"""
    if wrench.shape[0] > 0:
        body_states(body_i, body_f, q, v, v, states)
        body_wrenches(link_i, link_f, spring_i, spring_f, states, external, wrench)
    if body_i[body_i.shape[0] - 1, f.HEAD_PASSIVE] != 0:
        passive_torque(body_i, dof_f, q, v, tau, acting)
