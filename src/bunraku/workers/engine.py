"""One evaluation of forward dynamics by one worker of a team: its operations, one after the other.

Every worker goes through a list of its own (`ops`, written by `plan/chunk.py`): passes 1, 2 and 3 of its chunks, joins
of nodes and messages, in the order of the schedule. A chunk's arithmetic does not depend on who computes it,
so results are the same to the last bit for any assignment of the same chunks to workers.
"""

from bunraku.algorithms.chunk import (
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
from bunraku.algorithms.tree import ground_acceleration
from bunraku.jit import inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import load3, store3
from bunraku.spatial.scalar import clear
from bunraku.workers.mail import post, take


@inner
def go_through(plan, dof_f, q, v, tau, wrench, acceleration, work):
    """All operations of one evaluation: (margin, residue) as of `aba`; margin is -1 if the team has given up."""
    body_i, body_f, chunk_i, ops, boxes, mail = plan.body_i, plan.body_f, plan.chunk_i, plan.ops, plan.boxes, plan.mail
    margin, residue = 1.0, 0.0
    scratch = body_i[body_i.shape[0] - 1, f.HEAD_SCRATCH]
    clear(work[:f.SLOT_SIZE])  # what tips find beyond them
    for k in range(ops.shape[0]):
        op, a, b, c, d = ops[k, 0], ops[k, 1], ops[k, 2], ops[k, 3], ops[k, 4]
        if op == f.DO_OUTWARD:
            if d != 0:
                node = chunk_i[a, f.CHUNK_NODE] + f.NODE_V
                hang(chunk_i[a, f.CHUNK_HANG], load3(work, node), load3(work, node + 3), work)
            sweep_outward(b, c, body_i, body_f, q, v, tau, wrench, work)
            if c == chunk_i[a, f.CHUNK_PATH] and chunk_i[a, f.CHUNK_FAR] != 0:
                keep_state(chunk_i[a, f.CHUNK_FAR], chunk_i[a, f.CHUNK_STATE], work)
        elif op == f.DO_INWARD:
            margin = min(margin, sweep_inward(a, b, body_i, dof_f, tau, work))
        elif op == f.DO_DOWN:
            if d != 0:
                set_acceleration(chunk_i[a, f.CHUNK_NODE] + f.NODE_A, chunk_i[a, f.CHUNK_HANG], work)
            residue += sweep_down(b, c, body_i, tau, acceleration, work)
        elif op == f.DO_POST:
            post(work, a, b, c, boxes, mail)
        elif op == f.DO_TAKE:
            if not take(work, a, b, c, boxes, mail):
                return -1.0, residue
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
            across(chunk_i[a, f.CHUNK_FIRST], chunk_i[a, f.CHUNK_PATH], chunk_i[a, f.CHUNK_HANG],
                   chunk_i[a, f.CHUNK_NODE] + f.NODE_MOVE, body_i, body_f, q, v, work)
        elif op == f.DO_FAR:
            margin = min(margin, far_sweep(chunk_i[a, f.CHUNK_FIRST], chunk_i[a, f.CHUNK_PATH],
                                           chunk_i[a, f.CHUNK_STATE], chunk_i[a, f.CHUNK_KEPT],
                                           chunk_i[a, f.CHUNK_NODE] + f.NODE_FRONT, body_i, dof_f, tau, work))
        elif op == f.DO_DOWN_FAR:
            node = chunk_i[a, f.CHUNK_NODE]
            set_acceleration(node + f.NODE_A, chunk_i[a, f.CHUNK_HANG], work)
            residue += far_sweep_back(chunk_i[a, f.CHUNK_FIRST], chunk_i[a, f.CHUNK_PATH], chunk_i[a, f.CHUNK_KEPT],
                                      node + f.NODE_F, body_i, tau, acceleration, work)
        elif op == f.DO_JOIN or op == f.DO_JOIN_OPEN:
            join(a, b, c, op == f.DO_JOIN_OPEN, work, scratch)
        elif op == f.DO_STAY_OPEN:
            stay_open(a, work)
        elif op == f.DO_SPLIT or op == f.DO_SPLIT_OPEN:
            split(a, b, c, op == f.DO_SPLIT_OPEN, work, scratch)
        elif op == f.DO_ADD:
            add_nodes(a, b, c, d != 0, work)
        elif op == f.DO_COPY:
            copy(work, a, b, c)
        elif op == f.DO_COMPOSE:
            compose(b + f.NODE_MOVE, c + f.NODE_MOVE, a + f.NODE_MOVE, work)
        elif op == f.DO_ONWARD:
            onward(a + f.NODE_MOVE, a + f.NODE_V, b + f.NODE_V, work)
        elif op == f.DO_GROUND:
            for i in range(6):
                work[a + f.NODE_V + i] = work[a + f.NODE_A + i] = 0.0
            store3(work, a + f.NODE_A + 3, ground_acceleration(body_f, work))
    return margin, residue


@inner
def copy(work, source, count, target):
    for k in range(count):
        work[target + k] = work[source + k]


@inner
def set_acceleration(source, slot, work):
    copy(work, source, 6, slot)
