"""Parcels: results of a chunk on their way to the chunk above, and back (`plan/chunk_loops.py`).

The programs of a team have three operations more than those of one processor: a chunk begins, leaves, arrives. Towards
the root a parcel holds inertia and force of the chunk, its open fronts and the sums they are judged by; towards the
tips the acceleration of the link above and the forces of the open rows. Only parcels between workers are sent; on one
worker the fronts stay where they are.
"""

from typing import Any, NamedTuple

from bunraku.jit import inner
from bunraku.plan import fields as f
from bunraku.spatial.scalar import copy


class Team(NamedTuple):
    """The functions in which a worker of a team differs from one that works alone (None in place of a team)."""

    outward: Any  # (again, plan, q, v, tau, forces, work): pass 1 of its chunks
    post: Any     # (source, place, count, box, boxes, mail): send floats
    take: Any     # (target, place, count, box, boxes, mail): receive floats
    plan: Any     # arrays of the worker, with its boxes and the mail
    # `outward` and `take` return False if the team has given up


@inner
def pass_on(team, again, op, o, conn_i, prog, work):
    """A chunk begins, leaves or arrives, towards the root; `again`: right-hand sides alone. False if the team has given
    up."""
    judged = conn_i[-1, f.HEAD_JUDGED]
    slot, parcel, fronts, count, box = prog[o + 1], prog[o + 2], prog[o + 3], prog[o + 4], prog[o + 5]
    if op == f.OP_BEGIN:
        work[judged + f.JUDGED_DRIVE] = 0.0
        if not again:
            work[judged + f.JUDGED_MOBILITY] = 0.0
    elif again:
        if op == f.OP_LEAVE:
            copy(work, slot + f.SLOT_BIAS, 6, parcel)
            work[parcel + f.PARCEL_DRIVE] = work[judged + f.JUDGED_DRIVE]
            if box >= 0:
                send(team, parcel, copy_demands(True, count, fronts, parcel, prog, work), box, work)
        else:
            if box >= 0:
                if not receive(team, parcel, f.PARCEL_AGAIN + 2 * all_rows(count, fronts, prog), box, work):
                    return False
                copy_demands(False, count, fronts, parcel, prog, work)
            for k in range(6 if slot >= 0 else 0):
                work[slot + f.SLOT_BIAS + k] += work[parcel + k]
            work[judged + f.JUDGED_DRIVE] += work[parcel + f.PARCEL_DRIVE]
    elif op == f.OP_LEAVE:
        copy(work, slot, f.PARCEL_SLOT, parcel)
        work[parcel + f.PARCEL_SLOT] = work[judged + f.JUDGED_MOBILITY]
        work[parcel + f.PARCEL_SLOT + 1] = work[judged + f.JUDGED_DRIVE]
        work[parcel + f.PARCEL_SLOT + 2] = work[judged + f.JUDGED_GAP]
        if box >= 0:
            send(team, parcel, copy_fronts(True, count, fronts, parcel, prog, work), box, work)
    else:
        if box >= 0:
            if not receive(team, parcel, parcel_size(count, fronts, prog), box, work):
                return False
            copy_fronts(False, count, fronts, parcel, prog, work)
        for k in range(f.PARCEL_SLOT if slot >= 0 else 0):
            work[slot + k] += work[parcel + k]
        work[judged + f.JUDGED_MOBILITY] += work[parcel + f.PARCEL_SLOT]
        work[judged + f.JUDGED_DRIVE] += work[parcel + f.PARCEL_SLOT + 1]
        work[judged + f.JUDGED_GAP] = max(work[judged + f.JUDGED_GAP], work[parcel + f.PARCEL_SLOT + 2])
    return True


@inner
def hand_back(team, op, o, conn_i, prog, work):
    """The same towards the tips: accelerations and forces."""
    judged, forces = conn_i[-1, f.HEAD_JUDGED], conn_i[-1, f.HEAD_FORCES]
    slot, parcel, fronts, count, box = prog[o + 1], prog[o + 2], prog[o + 3], prog[o + 4], prog[o + 6]
    size = f.PARCEL_DOWN + all_rows(count, fronts, prog)
    if op == f.OP_ARRIVE:
        copy(work, slot if slot >= 0 else 0, 6, parcel)
        work[parcel + f.PARCEL_DRIVE] = work[judged + f.JUDGED_DRIVE]
        work[parcel + f.PARCEL_GAP] = work[judged + f.JUDGED_GAP]
        if box >= 0:
            copy_forces(True, count, fronts, parcel, forces, prog, work)
            send(team, parcel, size, box, work)
    elif op == f.OP_LEAVE:
        if box >= 0:
            if not receive(team, parcel, size, box, work):
                return False
            copy_forces(False, count, fronts, parcel, forces, prog, work)
        copy(work, parcel, 6, slot)
        work[judged + f.JUDGED_DRIVE] = work[parcel + f.PARCEL_DRIVE]
        work[judged + f.JUDGED_GAP] = work[parcel + f.PARCEL_GAP]
    return True


@inner
def send(team, place, count, box, work):
    team.post(work, place, count, box, team.plan.boxes, team.plan.mail)


@inner
def receive(team, place, count, box, work):
    return team.take(work, place, count, box, team.plan.boxes, team.plan.mail)


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
