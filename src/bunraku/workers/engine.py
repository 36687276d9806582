"""One evaluation of forward dynamics by one worker of a team: its list of operations.

Every worker goes through a list of its own (`ops`, written by `plan/chunk_plan.py`): passes 1, 2 and 3 of its chunks,
joins of nodes and messages, in the order of the schedule. A chunk's arithmetic does not depend on the worker,
so results are identical, bit by bit, for any assignment of the same chunks to workers.
"""

from bunraku.algorithms.chunk_passes import (
    across,
    compose,
    empty_slots,
    far_acceleration,
    far_velocity,
    hang,
    keep_state,
    onward,
    receive,
    sweep_down,
    sweep_inward,
    sweep_outward,
)
from bunraku.algorithms.far import far_sweep, far_sweep_back
from bunraku.algorithms.join import add_nodes, join, split, stay_open
from bunraku.algorithms.tree import COMPUTE, RECALL, ground_acceleration, zero3
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import load3, store3
from bunraku.spatial.scalar import clear, copy
from bunraku.workers.mail import post, take


@inner
def go_through(plan, dof_f, q, v, tau, wrench, acceleration, work):
    """All operations of one evaluation: (margin, residue) as of `aba`; margin is -1 if the team has given up."""
    margin, residue = 1.0, 0.0
    clear(work[:f.SLOT_SIZE])  # what tips find beyond them
    for k in range(plan.ops.shape[0]):
        pivot, unfit = operate(k, plan.ops, plan.body_i, plan.body_f, dof_f, plan.chunk_i, plan.boxes, plan.mail, q, v,
                               tau, wrench, acceleration, work)
        margin, residue = min(margin, pivot), residue + unfit
        if pivot < 0.0 and plan.ops[k, 0] == f.DO_TAKE:
            break
    return margin, residue


@inline
def operate(k, ops, body_i, body_f, dof_f, chunk_i, boxes, mail, q, v, tau, wrench, acceleration, work):
    """One operation: its share of (margin, residue)."""
    op, a, b, c, d = ops[k, 0], ops[k, 1], ops[k, 2], ops[k, 3], ops[k, 4]
    if op == f.DO_OUTWARD:
        if d != 0:
            node = chunk_i[a, f.CHUNK_NODE] + f.NODE_V
            hang(chunk_i[a, f.CHUNK_HANG], load3(work, node), load3(work, node + 3), work)
        on_path = c == chunk_i[a, f.CHUNK_PATH] and chunk_i[a, f.CHUNK_FAR] != 0
        turns = RECALL if on_path and chunk_i[a, f.CHUNK_KEPT] != 0 else COMPUTE
        sweep_outward(turns, b, c, body_i, body_f, q, v, tau, wrench, work)
        if on_path:
            keep_state(chunk_i[a, f.CHUNK_FAR], chunk_i[a, f.CHUNK_STATE], work)
    elif op == f.DO_INWARD:
        return sweep_inward(a, b, body_i, dof_f, tau, work), 0.0
    elif op == f.DO_DOWN:
        if d != 0:
            set_acceleration(chunk_i[a, f.CHUNK_NODE] + f.NODE_A, chunk_i[a, f.CHUNK_HANG], work)
        return 1.0, sweep_down(b, c, body_i, tau, acceleration, work)
    elif op == f.DO_POST:
        post(work, a, b, c, boxes, mail)
    elif op == f.DO_TAKE:
        if not take(work, a, b, c, boxes, mail):
            return -1.0, 0.0
    elif op == f.DO_BEGIN:
        empty_slots(a, chunk_i, work)
    elif op == f.DO_CLOSED:
        copy(work, chunk_i[a, f.CHUNK_HANG], f.FRONT_CLOSED, chunk_i[a, f.CHUNK_NODE] + f.NODE_FRONT)
    elif op == f.DO_RECEIVE:
        receive(chunk_i[a, f.CHUNK_STATE], b + f.NODE_FRONT, chunk_i[a, f.CHUNK_FAR], work)
    elif op == f.DO_FOLLOW:
        far_velocity(chunk_i[a, f.CHUNK_STATE], b + f.NODE_V, work)
    elif op == f.DO_CARRY:
        far_acceleration(chunk_i[a, f.CHUNK_FAR], chunk_i[a, f.CHUNK_STATE], b + f.NODE_A, work)
    elif op == f.DO_ACROSS:
        hang(chunk_i[a, f.CHUNK_HANG], zero3(work), zero3(work), work)
        across(chunk_i[a, f.CHUNK_FIRST], chunk_i[a, f.CHUNK_PATH], chunk_i[a, f.CHUNK_HANG],
               chunk_i[a, f.CHUNK_NODE] + f.NODE_MOVE, body_i, body_f, q, v, work)
    elif op == f.DO_FAR:
        return far_sweep(chunk_i[a, f.CHUNK_FIRST], chunk_i[a, f.CHUNK_PATH], chunk_i[a, f.CHUNK_STATE],
                         chunk_i[a, f.CHUNK_KEPT], chunk_i[a, f.CHUNK_NODE] + f.NODE_FRONT, body_i, dof_f, tau,
                         work, work), 0.0
    elif op == f.DO_DOWN_FAR:
        node = chunk_i[a, f.CHUNK_NODE]
        set_acceleration(node + f.NODE_A, chunk_i[a, f.CHUNK_HANG], work)
        return 1.0, far_sweep_back(chunk_i[a, f.CHUNK_FIRST], chunk_i[a, f.CHUNK_PATH],
                                   chunk_i[a, f.CHUNK_KEPT], node + f.NODE_F, body_i, tau, acceleration, work)
    elif op == f.DO_JOIN or op == f.DO_JOIN_OPEN:
        join(a, b, c, op == f.DO_JOIN_OPEN, work, body_i[body_i.shape[0] - 1, f.HEAD_SCRATCH])
    elif op == f.DO_SPLIT or op == f.DO_SPLIT_OPEN:
        split(a, b, c, op == f.DO_SPLIT_OPEN, work)
    elif op == f.DO_ADD:
        add_nodes(a, b, c, d != 0, work)
    elif op == f.DO_COPY:
        copy(work, a, b, c)
    elif op == f.DO_COMPOSE:
        compose(b + f.NODE_MOVE, c + f.NODE_MOVE, a + f.NODE_MOVE, work)
    elif op == f.DO_ONWARD:
        onward(a + f.NODE_MOVE, a + f.NODE_V, b + f.NODE_V, work)
    elif op == f.DO_STAY:
        stay_open(a + f.NODE_FRONT, work)
    elif op == f.DO_GROUND:
        for i in range(6):
            work[a + f.NODE_V + i] = work[a + f.NODE_A + i] = 0.0
        store3(work, a + f.NODE_A + 3, ground_acceleration(body_f, work))
    return 1.0, 0.0


@inner
def set_acceleration(source, slot, work):
    copy(work, source, 6, slot)
