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
        return 0 if take(torques, 0, torques.shape[0], whole[2], boxes, mail) else ACTUATION_FAILED
    place = whole[f.WHOLE_PLACE]
    at_v = place + whole[f.WHOLE_NQ]
    at_tau = at_v + whole[f.WHOLE_NV]
    spare = at_tau + whole[f.WHOLE_NT]
    for k in range(at_tau, spare):
        work[k] = 0.0
    o, nq, nv = f.WHOLE_START + 3, q.shape[0], v.shape[0]
    spread_out(q, 0, whole, o, nq, work, place)
    spread_out(v, 0, whole, o + nq, nv, work, at_v)
    own = o + nq + nv
    begin = own + torques.shape[0]
    o = begin
    for _ in range(1, whole[f.WHOLE_WORKERS]):
        nq, nv, nt = whole[o + 3], whole[o + 4], whole[o + 5]
        if not (take(work, spare, nq, whole[o], boxes, mail) and take(work, spare + nq, nv, whole[o + 1], boxes, mail)):
            return ACTUATION_FAILED
        spread_out(work, spare, whole, o + 6, nq, work, place)
        spread_out(work, spare + nq, whole, o + 6 + nq, nv, work, at_v)
        o += 6 + nq + nv + nt
    status = 0
    if call_function(address, t, work[place:at_v], work[at_v:at_tau], params, work[at_tau:spare]) != 0:
        status = ACTUATION_FAILED
    for k in range(torques.shape[0]):
        torques[k] = work[at_tau + whole[own + k]]
    o = begin
    for _ in range(1, whole[f.WHOLE_WORKERS]):
        nq, nv, nt = whole[o + 3], whole[o + 4], whole[o + 5]
        for k in range(nt):
            work[spare + k] = work[at_tau + whole[o + 6 + nq + nv + k]]
        post(work, spare, nt, whole[o + 2], boxes, mail)
        o += 6 + nq + nv + nt
    return status
