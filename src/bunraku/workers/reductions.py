"""Pass 4: global sums after an evaluation [J, sec. III.C].

Sums of the chunks go up the assembly tree, in an order that does not depend on the assignment to workers, and the
totals come back to every worker, together with the maximum of their status.
"""

from bunraku.integrate.solver_memory import LARGEST, PLACES, STATE_FAILED, SUMS
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.workers.mail import post, take

STATUS = PLACES  # place of the status behind the sums


@inline
def combine(a, b, to, work):
    """Add sums; take the maximum of the largest component and of the status."""
    for k in range(SUMS):
        work[to + k] = work[a + k] + work[b + k]
    work[to + LARGEST] = max(work[a + LARGEST], work[b + LARGEST])
    work[to + STATUS] = max(work[a + STATUS], work[b + STATUS])


@inner
def agree_together(plan, sums, totals, status, work):
    """Make `totals` of the sums of all workers: the status that counts for all. `sums` has two rows per chunk."""
    ops, boxes, mail, header = plan.sum_ops, plan.boxes, plan.mail, plan.body_i.shape[0] - 1
    place = plan.body_i[header, f.HEAD_SUMS]
    for c in range(plan.chunk_i.shape[0]):
        for k in range(SUMS):
            work[place + k] = sums[2 * c, k] + sums[2 * c + 1, k]
        work[place + LARGEST] = max(sums[2 * c, LARGEST], sums[2 * c + 1, LARGEST])
        work[place + STATUS] = float(status)
        place += f.EDGE_SUMS
    for k in range(ops.shape[0]):
        op, a, b, c = ops[k, 0], ops[k, 1], ops[k, 2], ops[k, 3]
        if op == f.DO_ADD:
            combine(b, c, a, work)
        elif op == f.DO_POST:
            post(work, a, b, c, boxes, mail)
        elif not take(work, a, b, c, boxes, mail):
            return STATE_FAILED  # the team has given up
    place = plan.body_i[header, f.HEAD_TOTALS]
    for k in range(PLACES):
        totals[k] = work[place + k]
    return int(work[place + STATUS])
