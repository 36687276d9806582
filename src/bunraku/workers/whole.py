"""The whole state, for those who ask for all of it: gathered by worker 0, and torques handed out again.

A function of people's, such as an actuation, sees all coordinates and velocities. Worker 0 collects them, calls it, and
sends every worker its torques. This is the one message whose size grows with the mechanism; without such a function it
is not sent.
"""

from bunraku.integrate.callbacks import call_function
from bunraku.integrate.memory import ACTUATION_FAILED
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.workers.mail import post, take


@inline
def spread_out(source, first, index, start, count, target, place):
    """target[place + index[start + k]] = source[first + k]"""
    for k in range(count):
        target[place + index[start + k]] = source[first + k]


@inner
def drive_together(plan, address, t, q, v, params, torques, work):
    """Torques of this worker by a function of the whole state: its status, at worker 0."""
    whole, boxes, mail = plan.whole, plan.boxes, plan.mail
    if whole.shape[0] == 3:  # not worker 0
        post(q, 0, q.shape[0], whole[0], boxes, mail)
        post(v, 0, v.shape[0], whole[1], boxes, mail)
        return 0 if take(torques, 0, v.shape[0], whole[2], boxes, mail) else ACTUATION_FAILED
    place, nq, nv = whole[f.WHOLE_PLACE], whole[f.WHOLE_NQ], whole[f.WHOLE_NV]
    at_v, at_tau, spare = place + nq, place + nq + nv, place + nq + 2 * nv
    for k in range(nv):
        work[at_tau + k] = 0.0
    o = f.WHOLE_START + 2
    spread_out(q, 0, whole, o, q.shape[0], work, place)
    spread_out(v, 0, whole, o + q.shape[0], v.shape[0], work, at_v)
    o += q.shape[0] + v.shape[0]
    begin, status = o, 0
    for _ in range(1, whole[f.WHOLE_WORKERS]):
        own_q, own_v = whole[o + 3], whole[o + 4]
        if not (take(work, spare, own_q, whole[o], boxes, mail) and
                take(work, spare + own_q, own_v, whole[o + 1], boxes, mail)):
            return ACTUATION_FAILED
        spread_out(work, spare, whole, o + 5, own_q, work, place)
        spread_out(work, spare + own_q, whole, o + 5 + own_q, own_v, work, at_v)
        o += 5 + own_q + own_v
    if call_function(address, t, work[place:at_v], work[at_v:at_tau], params, work[at_tau:spare]) != 0:
        status = ACTUATION_FAILED
    o = f.WHOLE_START + 2 + q.shape[0]
    for k in range(v.shape[0]):
        torques[k] = work[at_tau + whole[o + k]]
    o = begin
    for _ in range(1, whole[f.WHOLE_WORKERS]):
        own_q, own_v = whole[o + 3], whole[o + 4]
        for k in range(own_v):
            work[spare + k] = work[at_tau + whole[o + 5 + own_q + k]]
        post(work, spare, own_v, whole[o + 2], boxes, mail)
        o += 5 + own_q + own_v
    return status
