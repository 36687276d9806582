"""Forward dynamics by the unit-vector method: states one by one, threads over states."""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.body_motion import STATE
from bunraku.algorithms.connection_equations import DYNAMICS
from bunraku.algorithms.forward_passes import gather_forces
from bunraku.algorithms.unit_vector import CONTRADICTION, SOLVED, unit_vector, unit_vector_closed
from bunraku.checks import aligned
from bunraku.entries import closed_solution as closed
from bunraku.entries.explain import refuse
from bunraku.entries.pool import spread
from bunraku.entries.signatures import CLASHED, FAILED, FINE, PLAN, flags, int64, table
from bunraku.jit import allocating, entry
from bunraku.plan import fields as f


@allocating
def scratch(plan, external):
    """Memory for forces on bodies (none if there are no such forces), states and torques."""
    n = plan.body_i.shape[0] - 1
    pushed = external.shape[0] > 0 or plan.body_i[n, f.HEAD_SPRINGS] > 0
    return np.empty(6 * n if pushed else 0), np.empty(STATE * n), np.empty(plan.dof_f.shape[1])


@allocating
def all_forces(plan, k, q, v, tau, external, acting, wrench, states):
    """State k of a batch: forces on the bodies, and torques with the passive ones."""
    acting[:] = tau[k]
    gather_forces(plan.body_i, plan.body_f, plan.dof_f, plan.link_i, plan.link_f, plan.spring_i, plan.spring_f, q[k],
                  v[k], tau[k], external[k] if external.shape[0] > 0 else tau[k, :0], acting, wrench, states)


@entry("the unit-vector method", types.void(PLAN, table, table, table, table, table, flags, int64, int64), seconds=5)
def unit_vector_batch(plan, q, v, tau, external, a, bad, start, stop):
    wrench, states, acting = scratch(plan, external)
    for k in range(start, stop):
        all_forces(plan, k, q, v, tau, external, acting, wrench, states)
        bad[k] = 0 if unit_vector(plan.body_i, plan.body_f, plan.dof_f, q[k], v[k], acting, wrench, a[k]) else 1


@entry("the unit-vector method for loops", types.void(PLAN, table, table, table, table, table, table, table, flags,
                                                      int64, int64), seconds=10)
def unit_vector_loops(plan, q, v, tau, drives, external, a, multipliers, bad, start, stop):
    """`drives` (B, 0 or all freedoms) are torques of the connections."""
    wrench, states, acting = scratch(plan, external)
    for k in range(start, stop):
        all_forces(plan, k, q, v, tau, external, acting, wrench, states)
        answer = unit_vector_closed(plan.body_i, plan.body_f, plan.dof_f, plan.conn_i, plan.conn_f, q[k], v[k], acting,
                                    drives[k], wrench, a[k], multipliers[k])
        bad[k] = FINE if answer == SOLVED else CLASHED if answer == CONTRADICTION else FAILED


def forward_dynamics(plan, q, v, tau, external, workers):
    """Accelerations of one state or a batch, by the O(N^3) method."""
    if plan.loops is not None:
        return closed_forward_dynamics(plan, q, v, tau, external, workers)[0]
    pieces = [("q", q, plan.nq), ("v", v, plan.nv), ("tau", plan.zero_tau if tau is None else tau, plan.nv)]
    if external is not None:
        pieces.append(("external", external, 6 * plan.links))
    batch, arrays = aligned(*pieces)
    single = batch is None
    if single:
        arrays = [array[None] for array in arrays]
    q, v, tau = arrays[:3]
    a, bad = np.empty_like(v), np.zeros(len(v), np.uint8)
    pushed = np.zeros((0, 6 * plan.links)) if external is None else arrays[3]
    unit_vector_batch.load()
    spread(lambda start, stop: unit_vector_batch.call(
        plan.arrays, q, v, tau, pushed, a, bad, start, stop), len(v), 1, workers, 16)
    if bad.any():
        inputs = {"v": v, "tau": tau, **({} if external is None else {"external": pushed})}
        if single:
            refuse(plan, q[0], {name: x[0] for name, x in inputs.items()})
        refuse(plan, q, inputs, bad, a)
    return a[0] if single else a


def closed_forward_dynamics(plan, q, v, tau, external, workers):
    """The same for a structure with connections: (accelerations, multipliers)."""
    loops = plan.loops
    tau, drives = closed.split(plan, tau)
    batch, (q, v, tau, drives, external) = closed.aligned_states(plan, q, v, tau, drives, external)
    single = batch is None
    if single:
        q, v, tau, drives, external = (x if x is None else x[None] for x in (q, v, tau, drives, external))
    count = len(v)
    a, multipliers, bad = np.empty((count, plan.nv)), np.empty((count, loops.rows)), np.zeros(count, np.uint8)
    driven = np.zeros((count, 0)) if drives is None else drives
    pushed = np.zeros((0, 6 * plan.links)) if external is None else external
    unit_vector_loops.load()
    spread(lambda start, stop: unit_vector_loops.call(
        plan.arrays, q, v, tau, driven, pushed, a, multipliers, bad, start, stop), count, 1, workers, 16)
    if bad.any():
        if single:  # the same state by assembly says what is wrong with it
            closed.solve(plan, DYNAMICS, q[0], v[0], tau[0], None if drives is None else drives[0],
                         None if external is None else external[0])
            refuse(plan, q[0], {"v": v[0], "tau": tau[0]})
        closed.refuse_states(plan, DYNAMICS, q, v, tau, drives, external, a, bad)
    return (a[0], multipliers[0]) if single else (a, multipliers)
