"""One evaluation of a mechanism with connections by one worker of a team (`plan/chunk_loops.py`).

Pass 1 is a list of operations as in `engine.py`. Assembly and disassembly are the worker's program, with the operations
of `algorithms/ada.py` and three more: a chunk begins, leaves, arrives. All workers exchange the quantities on which
decisions depend before deciding (`agree`), so that all decide alike.
"""

import numpy as np

from bunraku.algorithms.aba import carry_motion
from bunraku.algorithms.ada import assemble, disassemble, forget_forces, make_ready, substitute
from bunraku.algorithms.chunk_passes import sweep_outward
from bunraku.algorithms.connection_equations import DYNAMICS, group_origin, meet_connections, push
from bunraku.algorithms.passive import pull_force, pull_moment, spring_force
from bunraku.algorithms.proximal import (
    SOLUTIONS,
    add_forces,
    copy_bias,
    demand_rest,
    largest_mobility,
    size_of_demands,
    worth_more,
)
from bunraku.algorithms.tree import (
    COMPUTE,
    ground_acceleration,
    is_anchor,
    row3,
    row9,
    store_state,
    unit9,
    zero3,
    zero6,
)
from bunraku.jit import allocating, inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import add, cross, load3, load9, matmul, matvec, store3, store6, store9
from bunraku.spatial.scalar import clear
from bunraku.tolerances import INCONSISTENT, PROXIMAL
from bunraku.workers.engine import copy
from bunraku.workers.mail import post, take

# -- evaluations -----------------------------------------------------------------------------------------------------


@inner
def closed_part(mode, soft, plan, dof_f, q, v, tau, drives, external, acceleration, work):
    """As `ada`: margin and residue, of all workers; margin is -1 if the team has given up. `external` is empty or 6 per
    link of this worker."""
    body_i, conn_i, prog = plan.body_i, plan.conn_i, plan.prog
    if not outward_part(False, plan, q, v, tau, external, work):
        return -1.0, 0.0
    if mode == DYNAMICS:
        pull_springs(plan, work)
    make_ready(mode, soft, body_i, conn_i, plan.conn_f, q, drives, work)
    margin = 1.0
    for k in range(prog[0]):
        o = f.PROGRAM_START + f.PROGRAM_STEP * k
        if prog[o] < f.OP_BEGIN:
            margin = min(margin, assemble(prog[o], o, soft, body_i, dof_f, conn_i, plan.conn_f, prog, tau, work))
        elif not pass_on(False, prog[o], o, plan, work):
            return -1.0, 0.0
    there, residue = part_back(plan, tau, acceleration, work)
    if not there:
        return -1.0, 0.0
    return agree(margin, residue, plan, work)


@inner
def closed_part_again(mode, plan, q, v, tau, acceleration, work):
    """As `ada_again`: residue of all workers."""
    if not outward_part(True, plan, q, v, tau, work[:0], work):
        return np.nan
    meet_connections(mode, True, plan.body_i, plan.conn_i, plan.conn_f, tau[:0], work)
    residue = answer_demands_part(plan, tau, acceleration, work)
    return agree(1.0, residue, plan, work)[1]


@inner
def answer_demands_part(plan, tau, acceleration, work):
    """As `answer_demands`: residue of this worker; NaN also if the team has given up."""
    body_i, conn_i, prog = plan.body_i, plan.conn_i, plan.prog
    forget_forces(body_i, conn_i, tau, work)
    for k in range(prog[0]):
        o = f.PROGRAM_START + f.PROGRAM_STEP * k
        if prog[o] < f.OP_BEGIN:
            substitute(prog[o], o, body_i, conn_i, prog, work)
        elif not pass_on(True, prog[o], o, plan, work):
            return np.nan
    there, residue = part_back(plan, tau, acceleration, work)
    return residue if there else np.nan


@inner
def part_back(plan, tau, acceleration, work):
    """The disassembly: whether the team is still running, and the residue of this worker."""
    prog = plan.prog
    residue = 0.0
    store6(work, 0, zero6(work))  # the ground does not accelerate
    for back in range(prog[0]):
        o = f.PROGRAM_START + f.PROGRAM_STEP * (prog[0] - 1 - back)
        if prog[o] < f.OP_BEGIN:
            residue += disassemble(prog[o], o, plan.body_i, plan.conn_i, prog, tau, acceleration, work)
        elif not hand_back(prog[o], o, plan, work):
            return False, residue
    return True, residue


# -- second look (`algorithms/proximal.py`) ----------------------------------------------------------------------------


@inline
def look_again_part(mode, plan, dof_f, q, v, tau, drives, external, acceleration, work):
    """As `look_again`."""
    judged = plan.conn_i[-1, f.HEAD_JUDGED]
    pivot, weakest = work[judged + f.JUDGED_PIVOT], work[judged + f.JUDGED_WEAKEST]
    mobility, _ = largest(largest_mobility(plan.conn_i[-1, f.HEAD_ROWS], plan.prog, work), 0.0, plan, work)
    mu = PROXIMAL * (mobility if mobility > 0.0 else 1.0)
    margin, residue = closed_part(mode, mu, plan, dof_f, q, v, tau, drives, external, acceleration, work)
    residue += make_up_part(mu, plan, acceleration, work)
    work[judged + f.JUDGED_PIVOT], work[judged + f.JUDGED_WEAKEST] = pivot, weakest
    return margin, residue


@allocating
def make_up_part(mu, plan, acceleration, work):
    """As `make_up`."""
    conn_i, n = plan.conn_i, acceleration.shape[0]
    rows = np.int64(conn_i[-1, f.HEAD_ROWS])
    judged, forces = conn_i[-1, f.HEAD_JUDGED], conn_i[-1, f.HEAD_FORCES]
    bias, total, change, nothing = np.zeros(rows), np.zeros(rows), np.empty(n), np.zeros(n)
    copy_bias(False, bias, conn_i, work)
    size, _ = largest(size_of_demands(mu, bias, judged, work), 0.0, plan, work)
    left, before, residue = 0.0, np.inf, 0.0
    for _ in range(SOLUTIONS):
        left, residue = largest(mu * add_forces(total, forces, work), residue, plan, work)
        if not worth_more(left, before, size, residue):
            break
        before = left
        demand_rest(mu, conn_i, work)
        residue = answer_demands_part(plan, nothing, change, work)
        for j in range(n):
            acceleration[j] += change[j]
    _, residue = largest(0.0, residue, plan, work)
    for k in range(rows):
        work[forces + k] = total[k]
    copy_bias(True, bias, conn_i, work)
    work[judged + f.JUDGED_CLASH] = left - INCONSISTENT * (size + 1.0)
    return residue


# -- pass 1 ----------------------------------------------------------------------------------------------------------


@inner
def outward_part(again, plan, q, v, tau, external, work):
    """Positions, velocities and forces of the worker's bodies, states of far bodies and of ends of connections;
    `again`: positions and velocities alone. Whether the team is still there."""
    body_i, body_f, ops, boxes, mail = plan.body_i, plan.body_f, plan.ops, plan.boxes, plan.mail
    z = zero3(work)
    store_state(work, f.SLOT_STATE, unit9(work), z, z, z, z, z if again else ground_acceleration(body_f, work))
    store3(work, f.ORIGIN_STATE, z)
    for k in range(ops.shape[0]):
        op, a, b, c = ops[k, 0], ops[k, 1], ops[k, 2], ops[k, 3]
        if op == f.DO_OUTWARD:
            if again:
                follow_over(b, c, body_i, body_f, q, v, work)
            else:
                outward_pushed(a, b, c, plan, q, v, tau, external, work)
        elif op == f.DO_COPY:
            copy(work, a, b, c)
        elif op == f.DO_END:
            origin = add(load3(work, b + f.ORIGIN_STATE), group_origin(a, -1, body_i, work))
            copy(work, body_i[a, f.OWN_SLOT], f.ORIGIN_STATE, c)
            store3(work, c + f.ORIGIN_STATE, origin)
        elif op == f.DO_POST:
            post(work, a, b, c, boxes, mail)
        elif not take(work, a, b, c, boxes, mail):
            return False
    return True


@inner
def outward_pushed(state, first, end, plan, q, v, tau, external, work):
    """Pass 1 of bodies first .. end - 1 of a chunk that hangs at a `state`, with external forces and pulls on their
    links."""
    body_i, body_f, link_i, link_f = plan.body_i, plan.body_f, plan.link_i, plan.link_f
    if external.shape[0] == 0:
        sweep_outward(COMPUTE, first, end, body_i, body_f, q, v, tau, external, work)
        return
    link = 0
    while link < link_i.shape[0] and link_i[link, f.LINK_BODY] < first:
        link += 1
    for i in range(first, end):
        sweep_outward(COMPUTE, i, i + 1, body_i, body_f, q, v, tau, external[:0], work)
        slot = body_i[i, f.OWN_SLOT]
        while link < link_i.shape[0] and link_i[link, f.LINK_BODY] == i:
            arm = add(load3(work, slot + 9), matvec(load9(work, slot), row3(link_f, link, f.LINK_OFFSET)))
            push(i, 1.0, arm, load3(external, 6 * link + 3), load3(external, 6 * link), body_i, work)
            for o in range(6 * link_i.shape[0], external.shape[0], f.PULL):
                if external[o + f.PULL_LINK] == link:
                    pull(i, link, o, state, plan, external, work)
            link += 1


@inner
def pull(i, link, o, state, plan, external, work):
    """The pull at `o` of `external`, on a link of body i."""
    slot, point = plan.body_i[i, f.OWN_SLOT], load3(external, o + f.PULL_POINT)
    point = add(row3(plan.link_f, link, f.LINK_OFFSET), matvec(row9(plan.link_f, link, 0), point))
    arm = add(load3(work, slot + 9), matvec(load9(work, slot), point))
    origin = add(load3(work, state + f.ORIGIN_STATE), group_origin(i, -1, plan.body_i, work))
    v = add(load3(work, slot + 15), cross(load3(work, slot + 12), arm))
    R = matmul(load9(work, slot), row9(plan.link_f, link, f.LINK_ROTATION))
    push(i, 1.0, arm, pull_moment(external, o, R, load3(work, slot + 12)), pull_force(external, o, add(origin, arm), v),
         plan.body_i, work)


@inner
def pull_springs(plan, work):
    """Forces of point springs on the worker's bodies, from the states of both ends."""
    spring_i, spring_f = plan.spring_i, plan.spring_f
    for k in range(spring_i.shape[0]):
        arm_a, x_a, v_a = spring_end(spring_i[k, f.SPRING_STATE_A], row3(spring_f, k, f.POINT_A), work)
        arm_b, x_b, v_b = spring_end(spring_i[k, f.SPRING_STATE_B], row3(spring_f, k, f.POINT_B), work)
        force, _ = spring_force(spring_f, k, x_a, v_a, x_b, v_b)
        push(spring_i[k, f.SPRING_A], 1.0, arm_a, zero3(work), force, plan.body_i, work)
        push(spring_i[k, f.SPRING_B], -1.0, arm_b, zero3(work), force, plan.body_i, work)


@inline
def spring_end(state, point, work):
    """A point of a body: its position in the body's group and in the world, and its velocity."""
    arm = add(load3(work, state + 9), matvec(load9(work, state), point))
    return (arm, add(load3(work, state + f.ORIGIN_STATE), arm),
            add(load3(work, state + 15), cross(load3(work, state + 12), arm)))


@inner
def follow_over(first, end, body_i, body_f, q, v, work):
    """`follow` for bodies first .. end - 1."""
    for i in range(first, end):
        R, x, w, lin, _, _, _ = carry_motion(COMPUTE, body_i[i, f.KIND], body_i[i, f.ELIMINATION], body_i[i, f.DOF],
                                             is_anchor(body_i, i), i, body_i, body_f, q, v, work)
        to = body_i[i, f.OWN_SLOT]
        store9(work, to, R)
        store3(work, to + 9, x)
        store3(work, to + 12, w)
        store3(work, to + 15, lin)


# -- parcels: passes 2 and 3 -------------------------------------------------------------------------------------------


@inner
def pass_on(again, op, o, plan, work):
    """A chunk begins, leaves or arrives, towards the root; `again`: right-hand sides alone."""
    prog, boxes, mail = plan.prog, plan.boxes, plan.mail
    judged = plan.conn_i[-1, f.HEAD_JUDGED]
    slot, parcel, fronts, count, box = prog[o + 1], prog[o + 2], prog[o + 3], prog[o + 4], prog[o + 5]
    if op == f.OP_BEGIN:
        work[judged + f.JUDGED_DRIVE] = 0.0
        if not again:
            work[judged + f.JUDGED_MOBILITY] = 0.0
    elif again:
        if op == f.OP_LEAVE:
            copy(work, slot + f.SLOT_BIAS, 6, parcel)
            work[parcel + 6] = work[judged + f.JUDGED_DRIVE]
            if box >= 0:
                post(work, parcel, copy_demands(True, count, fronts, parcel, prog, work), box, boxes, mail)
        else:
            if box >= 0:
                if not take(work, parcel, f.PARCEL_AGAIN + 2 * all_rows(count, fronts, prog), box, boxes, mail):
                    return False
                copy_demands(False, count, fronts, parcel, prog, work)
            for k in range(6 if slot >= 0 else 0):
                work[slot + f.SLOT_BIAS + k] += work[parcel + k]
            work[judged + f.JUDGED_DRIVE] += work[parcel + 6]
    elif op == f.OP_LEAVE:
        copy(work, slot, f.PARCEL_SLOT, parcel)
        work[parcel + f.PARCEL_SLOT] = work[judged + f.JUDGED_MOBILITY]
        work[parcel + f.PARCEL_SLOT + 1] = work[judged + f.JUDGED_DRIVE]
        work[parcel + f.PARCEL_SLOT + 2] = work[judged + f.JUDGED_GAP]
        if box >= 0:
            post(work, parcel, copy_fronts(True, count, fronts, parcel, prog, work), box, boxes, mail)
    else:
        if box >= 0:
            if not take(work, parcel, parcel_size(count, fronts, prog), box, boxes, mail):
                return False
            copy_fronts(False, count, fronts, parcel, prog, work)
        for k in range(f.PARCEL_SLOT if slot >= 0 else 0):
            work[slot + k] += work[parcel + k]
        work[judged + f.JUDGED_MOBILITY] += work[parcel + f.PARCEL_SLOT]
        work[judged + f.JUDGED_DRIVE] += work[parcel + f.PARCEL_SLOT + 1]
        work[judged + f.JUDGED_GAP] = max(work[judged + f.JUDGED_GAP], work[parcel + f.PARCEL_SLOT + 2])
    return True


@inner
def hand_back(op, o, plan, work):
    """The same towards the tips: accelerations and forces."""
    prog, boxes, mail = plan.prog, plan.boxes, plan.mail
    judged, forces = plan.conn_i[-1, f.HEAD_JUDGED], plan.conn_i[-1, f.HEAD_FORCES]
    slot, parcel, fronts, count, box = prog[o + 1], prog[o + 2], prog[o + 3], prog[o + 4], prog[o + 6]
    size = f.PARCEL_DOWN + all_rows(count, fronts, prog)
    if op == f.OP_ARRIVE:
        copy(work, slot if slot >= 0 else 0, 6, parcel)
        work[parcel + 6], work[parcel + 7] = work[judged + f.JUDGED_DRIVE], work[judged + f.JUDGED_GAP]
        if box >= 0:
            copy_forces(True, count, fronts, parcel, forces, prog, work)
            post(work, parcel, size, box, boxes, mail)
    elif op == f.OP_LEAVE:
        if box >= 0:
            if not take(work, parcel, size, box, boxes, mail):
                return False
            copy_forces(False, count, fronts, parcel, forces, prog, work)
        copy(work, parcel, 6, slot)
        work[judged + f.JUDGED_DRIVE], work[judged + f.JUDGED_GAP] = work[parcel + 6], work[parcel + 7]
    return True


@inner
def all_rows(count, fronts, prog):
    """Rows of the fronts in a parcel."""
    rows, o = 0, fronts
    for _ in range(count):
        rows += prog[o + 1]
        o += 2 + prog[o + 1]
    return rows


@inner
def parcel_size(count, fronts, prog):
    size, o = f.PARCEL_SLOT + f.PARCEL_JUDGED, fronts
    for _ in range(count):
        size += f.row_start(prog[o + 1])
        o += 2 + prog[o + 1]
    return size


@inner
def copy_fronts(into, count, fronts, parcel, prog, work):
    """Fronts into a parcel or out of it; the size of the parcel."""
    size, o = f.PARCEL_SLOT + f.PARCEL_JUDGED, fronts
    for _ in range(count):
        floats = f.row_start(prog[o + 1])
        if into:
            copy(work, prog[o], floats, parcel + size)
        else:
            copy(work, parcel + size, floats, prog[o])
        size += floats
        o += 2 + prog[o + 1]
    return size


@inner
def copy_demands(into, count, fronts, parcel, prog, work):
    """Right-hand sides of fronts into a parcel or out of it; the size of the parcel."""
    size, o = f.PARCEL_AGAIN, fronts
    for _ in range(count):
        for k in range(prog[o + 1]):
            row = prog[o] + f.row_start(k)
            if into:
                work[parcel + size], work[parcel + size + 1] = work[row + f.ROW_BETA], work[row + f.ROW_SIZE]
            else:
                work[row + f.ROW_BETA], work[row + f.ROW_SIZE] = work[parcel + size], work[parcel + size + 1]
            size += 2
        o += 2 + prog[o + 1]
    return size


@inner
def copy_forces(into, count, fronts, parcel, forces, prog, work):
    """Forces of open rows into a parcel or out of it."""
    o, place = fronts, parcel + f.PARCEL_DOWN
    for _ in range(count):
        for k in range(prog[o + 1]):
            if into:
                work[place] = work[forces + prog[o + 2 + k]]
            else:
                work[forces + prog[o + 2 + k]] = work[place]
            place += 1
        o += 2 + prog[o + 1]


# -- pass 4: agreement -------------------------------------------------------------------------------------------------


@inner
def agree(margin, residue, plan, work):
    """Margin, residue and decision quantities of all workers; margin is -1 if the team has given up."""
    if alone(plan.conn_i):
        return margin, residue
    votes, judged = plan.conn_i[-1, f.HEAD_VOTES], plan.conn_i[-1, f.HEAD_JUDGED]
    least, most = votes + f.VOTES_LEAST, votes + f.VOTES_MOST
    work[least], work[least + 1] = margin, work[judged + f.JUDGED_PIVOT]
    work[least + 2] = work[judged + f.JUDGED_WEAKEST]
    work[most], work[most + 1] = work[judged + f.JUDGED_CLASH], work[judged + f.JUDGED_GAP]
    work[most + 2], work[most + 3] = work[judged + f.JUDGED_DROPPED], work[judged + f.JUDGED_MISSED]
    work[votes + f.VOTES_SUM] = residue
    if not vote(plan, work):
        return -1.0, residue
    work[judged + f.JUDGED_PIVOT], work[judged + f.JUDGED_WEAKEST] = work[least + 1], work[least + 2]
    work[judged + f.JUDGED_CLASH], work[judged + f.JUDGED_GAP] = work[most], work[most + 1]
    work[judged + f.JUDGED_DROPPED], work[judged + f.JUDGED_MISSED] = work[most + 2], work[most + 3]
    return work[least], work[votes + f.VOTES_SUM]


@inner
def largest(x, residue, plan, work):
    """The largest x and the residue of all workers; residue is NaN if the team has given up. Of one worker, or a plan
    that is not divided: x and residue."""
    if alone(plan.conn_i):
        return x, residue
    votes = plan.conn_i[-1, f.HEAD_VOTES]
    clear(work[votes:votes + f.VOTES])
    work[votes + f.VOTES_MOST], work[votes + f.VOTES_SUM] = x, residue
    if not vote(plan, work):
        return x, np.nan
    return work[votes + f.VOTES_MOST], work[votes + f.VOTES_SUM]


@inline
def alone(conn_i):
    """Whether this chunk votes with no other."""
    head = conn_i.shape[0] - 1
    return conn_i[head, f.HEAD_BALLOT] + conn_i[head, f.HEAD_BALLOT + 2] == 0


@inner
def vote(plan, work):
    """Votes up a tree of workers, the result back to all. Whether the team is still there."""
    conn_i, boxes, mail = plan.conn_i, plan.boxes, plan.mail
    votes, last = conn_i[-1, f.HEAD_VOTES], conn_i.shape[0] - 1
    other = votes + f.VOTES
    for k in range(2):
        box = conn_i[last, f.HEAD_BALLOT + k] - 1
        if box >= 0:
            if not take(work, other, f.VOTES, box, boxes, mail):
                return False
            for d in range(f.VOTES_LEAST, f.VOTES_MOST):
                work[votes + d] = min(work[votes + d], work[other + d])
            for d in range(f.VOTES_MOST, f.VOTES_SUM):
                work[votes + d] = max(work[votes + d], work[other + d])
            work[votes + f.VOTES_SUM] += work[other + f.VOTES_SUM]
    if conn_i[last, f.HEAD_BALLOT + 2] > 0:
        post(work, votes, f.VOTES, conn_i[last, f.HEAD_BALLOT + 2] - 1, boxes, mail)
        if not take(work, votes, f.VOTES, conn_i[last, f.HEAD_BALLOT + 3] - 1, boxes, mail):
            return False
    for k in range(2):
        box = conn_i[last, f.HEAD_BALLOT + 4 + k] - 1
        if box >= 0:
            post(work, votes, f.VOTES, box, boxes, mail)
    return True
