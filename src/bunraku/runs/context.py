"""Data of a mechanism for runs in compiled code, and its right-hand side.

An entry advances until the time is reached, the record is full, or something fails, and returns a status; Python stores
the results, serves progress bars and Ctrl-C, and calls it again.

The mechanism is a compiled function (`tree_one` or `closed_one`) and its constant arrays. Solvers get the function by
its address, so that each is compiled once for trees and loops alike. ARCHITECTURE.md has what `tree_one` saves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bunraku.algorithms.connection_equations import DYNAMICS
from bunraku.algorithms.forward_passes import scratch_total
from bunraku.algorithms.states import coordinate_rates
from bunraku.entries.forward_entries import tree_one
from bunraku.entries.loop_entries import closed_one
from bunraku.entries.part_entries import lanes_one
from bunraku.entries.signatures import CLASHED, FINE, PLAN, floats, int64, move, signal_of_motion
from bunraku.integrate.callbacks import call_function
from bunraku.integrate.record import RECORD, record_step_and
from bunraku.integrate.solver_memory import ACTUATION_FAILED, LARGEST, LOOPS_CLASH, MEMORY, PLACES, STATE_FAILED, copy
from bunraku.integrate.sums import alone
from bunraku.jit import allocating, inline, inner
from bunraku.plan import fields as f
from bunraku.plan.plan_arrays import Arrays
from bunraku.workers.reductions import agree_together
from bunraku.workers.whole import drive_together


class Context(NamedTuple):
    """A right-hand side: the structure, its actuation, scratch memory, and the state of closing loops."""

    motion: int              # address of a function of type MOTION
    structure: Arrays        # its plan
    address: int             # of the actuation as a C function; 0: none
    params: np.ndarray       # given to it
    torques: np.ndarray      # (nv + nc,) of the joints, then of the connections
    drives: np.ndarray       # (nc,) the latter
    nothing: np.ndarray      # (0,)
    external: np.ndarray     # forces on links and pulls, `plan/fields.py`
    zeros: np.ndarray        # (nv,)
    change: np.ndarray       # (nv,) move or change of velocity that closes loops
    work: np.ndarray         # work memory of `aba` or `ada`
    rates: np.ndarray        # (2, nq) rates of coordinates before and after loops are closed
    factored: np.ndarray     # (nq,) coordinates at which the factors in `work` were made; NaN: there are none
    passing: np.ndarray      # (PASSING,) state of passing singular configurations: `singular.py`
    closed: np.ndarray       # (nq + nv,) nearest state with closed loops
    unclosed: np.ndarray     # (nq + nv,) the end of a step before its loops were closed
    start: np.ndarray        # (nq + nv,) the start of a step
    spans: np.ndarray        # as in `Memory`
    sums: np.ndarray
    totals: np.ndarray
    event_a: np.ndarray      # (nv,) or (0,) as `change` and `work`, for events of the motion itself
    event_work: np.ndarray


# Places in `passing`
RECENT = 0         # smallest pivot of the constraints in recent steps
RATIO = 1          # smallest pivot now, relative to it
COASTED = 2        # steps in a row that have coasted
MAY_COAST = 3      # whether this evaluation may answer that the step should coast
WANTS_CLOSED = 4   # whether a stage asks for closed stages
STAYS_OPEN = 5           # whether the loops do not close after this step
CLOSED_STAGES = 6  # how many more steps have closed stages
BEGAN = 7          # [s] when the step began
PASSING = 8

# Arguments of runs: motion, structure, address of the actuation, params, external forces, memory, record
RUN = (int64, PLAN, int64, floats, floats, MEMORY, RECORD)


def structure_of(plan, hold: float = 0.0, lanes: bool = False) -> tuple[int, Arrays]:
    """A plan for solvers: the address of its motion, and its arrays. Loops are closed after every step, or by
    Baumgarte forces of rate `hold` [1/s]. `lanes`: equal chunks may be computed in lanes, where that is faster."""
    if plan.loops is None:
        if lanes and plan.lanes is not None:
            return lanes_one.address, plan.lanes.arrays
        return tree_one.address, plan.arrays
    arrays = plan.with_rotors
    if hold > 0.0:
        arrays = arrays._replace(conn_f=arrays.conn_f.copy())
        arrays.conn_f[:, f.HOLD] = hold
    return closed_one.address, arrays


@allocating
def make_context(motion, structure, address, params, external, memory):
    body_i, dof_f, conn_i = structure.body_i, structure.dof_f, structure.conn_i
    nq, nv, nc = np.int64(body_i[-1, f.HEAD_NQ]), dof_f.shape[1], np.int64(conn_i[-1, f.HEAD_FREEDOMS])
    size = max(np.int64(body_i[-1, f.HEAD_WORK]), np.int64(conn_i[-1, f.HEAD_TOTAL])) + scratch_total(body_i, dof_f)
    torques, own = np.zeros(nv + nc), min(structure.touch.shape[0], 1)
    return Context(motion, structure, address, params, torques, torques[nv:], torques[:0], external, np.zeros(nv),
                   np.empty(nv), np.empty(size), np.empty((2, nq)), np.full(nq, np.nan), np.zeros(PASSING),
                   np.empty(nq + nv), np.empty(nq + nv), np.empty(nq + nv), memory.spans, memory.sums, memory.totals,
                   np.empty(own * nv), np.empty(own * size))


@inline
def coordinates(context):
    """nq"""
    return context.factored.shape[0]


@inline
def connected(context):
    """Whether the mechanism has connections, in this worker's part or elsewhere."""
    conn_i = context.structure.conn_i
    return conn_i[conn_i.shape[0] - 1, f.HEAD_LOOPS] > 0


@inline
def has_loops(context):
    """Whether there are loops for the solver to close: not those closed by Baumgarte forces."""
    return connected(context) and context.structure.conn_f[0, f.HOLD] == 0.0


@inline
def touches(context):
    """Whether shapes may touch."""
    return context.structure.touch.shape[0] > 0


@inner
def own_event(context, address, t, q, v, out):
    """The event of the motion itself at (t, q, v), by the address of its signal: see `SIGNAL`. Returns the status."""
    status = drive(context, t, q, v)
    if status == 0:
        out[0] = signal_of_motion(address, context.structure, q, v, context.torques, context.drives, context.external,
                                  context.event_a, context.event_work)
        status = 0 if 0.0 * out[0] == 0.0 else STATE_FAILED  # or NaN
    return status


@inline
def record_motion(polynomial, context, method, memory, record):
    """As `record_step`, with the events of the motion itself."""
    return record_step_and(own_event, polynomial, context, method, memory, record)


@inline
def divided(context):
    """Whether several workers share the mechanism, or one computes it chunk by chunk."""
    return context.structure.chunk_i.shape[0] > 0


@inline
def evaluate(mode, dof_f, tau, drives, context, q, v, a):
    """The mechanism in any mode of `ada`, with `dof_f` instead of its own. Returns the status of `closed_one`."""
    return move(context.motion, mode, context.structure, dof_f, q, v, tau, drives, context.external, a, context.work)


@inline
def status_of(answer):
    return 0 if answer == FINE else LOOPS_CLASH if answer == CLASHED else STATE_FAILED


@inline
def drive(context, t, q, v):
    """Torques of the actuation; its status."""
    torques = context.torques
    for j in range(torques.shape[0]):
        torques[j] = 0.0
    if context.address == 0:
        return 0
    if divided(context):
        return drive_together(context.structure, context.address, t, q, v, context.params, torques, context.work)
    if call_function(context.address, t, q, v, context.params, torques) != 0:
        return ACTUATION_FAILED
    return 0


@inline
def accelerations(context, q, v, a):
    """Accelerations under the present torques; a failure status if there is no solution."""
    answer = evaluate(DYNAMICS, context.structure.dof_f, context.torques, context.drives, context, q, v, a)
    copy(q, context.factored)
    return status_of(answer)


@inline
def driven_accelerations(context, t, q, v, a):
    """Accelerations under the torques of the actuation: the status of both."""
    status = drive(context, t, q, v)
    if status == 0 or divided(context):  # other workers wait for this one's part in any case
        answer = accelerations(context, q, v, a)
        status = answer if status == 0 else status
    return status


@inner
def right_hand_side(context, t, y, dy):
    """The derivative of y = (q, v)."""
    nq = coordinates(context)
    q, v = y[:nq], y[nq:]
    status = driven_accelerations(context, t, q, v, dy[nq:])
    coordinate_rates(context.structure.body_i, q, v, dy[:nq])
    if context.address != 0 and connected(context):  # what follows depends on it
        status = np.int64(of_all(context, float(status)))
    return status


@inner
def agree(context, memory, status):
    """Totals of the sums, and a status that counts for all workers: `integrate/sums.py`."""
    if not divided(context):
        return alone(context, memory, status)
    return agree_together(context.structure, memory.sums, memory.totals, status, context.work)


@inner
def of_all(context, x):
    """The maximum of a non-negative number over all workers, the same for all of them."""
    if not divided(context):
        return x
    for s in range(context.sums.shape[0]):
        for k in range(PLACES):
            context.sums[s, k] = 0.0
        context.sums[s, LARGEST] = x
    agree_together(context.structure, context.sums, context.totals, 0, context.work)
    return context.totals[LARGEST]


@inline
def smallest_pivot(context):
    """Smallest pivot of the constraints at the last evaluation."""
    conn_i = context.structure.conn_i
    return context.work[conn_i[conn_i.shape[0] - 1, f.HEAD_JUDGED] + f.JUDGED_WEAKEST]
