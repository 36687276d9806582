"""The state that an actuation function reads, gathered by worker 0, and the torques it returns, distributed.

An actuation function sees coordinates and velocities of the whole mechanism: all of them, or those that it declares in
`reads`; the others are NaN. Worker 0 collects them, calls it, and sends every worker its torques. This is
the one message whose size can grow with the mechanism; without such a function it is not sent.
"""

import numpy as np

from bunraku.integrate.callbacks import call_function
from bunraku.integrate.solver_memory import ACTUATION_FAILED
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.workers.mail import post, take


@inline
def pick(source, index, start, count, target, place):
    """target[place + k] = source[index[start + k]]"""
    for k in range(count):
        target[place + k] = source[index[start + k]]


@inline
def spread_out(source, first, index, start, count, target, place):
    """target[place + index[start + k]] = source[first + k]"""
    for k in range(count):
        target[place + index[start + k]] = source[first + k]


@inner
def drive_together(plan, address, t, q, v, params, torques, work):
    """Torques of this worker by a function of the whole state: its status, at worker 0."""
    whole, boxes, mail = plan.whole, plan.boxes, plan.mail
    if whole[0] < 0:  # not worker 0
        return ask_worker_0(whole[1:], q, v, torques, work, boxes, mail)
    place = whole[f.WHOLE_PLACE]
    at_v = place + whole[f.WHOLE_NQ]
    at_tau = at_v + whole[f.WHOLE_NV]
    spare = at_tau + whole[f.WHOLE_NT]
    if whole[f.WHOLE_MASKED] != 0:
        for k in range(place, at_tau):
            work[k] = np.nan
    for k in range(at_tau, spare):
        work[k] = 0.0
    o = f.WHOLE_START
    for worker in range(whole[f.WHOLE_WORKERS]):
        nq, nv, nt = whole[o + f.SHARE_NQ], whole[o + f.SHARE_NV], whole[o + f.SHARE_NT]
        first = o + f.SHARE_NUMBERS
        o = first + nq + nv + nt
        if worker == 0:
            pick(q, whole, o, nq, work, spare)
            pick(v, whole, o + nq, nv, work, spare + nq)
            o += nq + nv
        elif nq + nv > 0 and not take(work, spare, nq + nv, whole[first - f.SHARE_NUMBERS], boxes, mail):
            return ACTUATION_FAILED
        spread_out(work, spare, whole, first, nq, work, place)
        spread_out(work, spare + nq, whole, first + nq, nv, work, at_v)
    status = 0
    if call_function(address, t, work[place:at_v], work[at_v:at_tau], params, work[at_tau:spare]) != 0:
        status = ACTUATION_FAILED
    o = f.WHOLE_START
    for worker in range(whole[f.WHOLE_WORKERS]):
        nq, nv, nt = whole[o + f.SHARE_NQ], whole[o + f.SHARE_NV], whole[o + f.SHARE_NT]
        first = o + f.SHARE_NUMBERS + nq + nv
        if worker == 0:
            pick(work[at_tau:spare], whole, first, nt, torques, 0)
            o = first + nt + nq + nv
        else:
            pick(work[at_tau:spare], whole, first, nt, work, spare)
            post(work, spare, nt, whole[o + f.SHARE_DOWN], boxes, mail)
            o = first + nt
    return status


@inline
def ask_worker_0(own, q, v, torques, work, boxes, mail):
    """Send the requested entries of this worker's state, and receive its torques."""
    place, nq, nv = own[f.OWN_PLACE], own[f.OWN_NQ], own[f.OWN_NV]
    if nq + nv > 0:
        pick(q, own, f.OWN_NUMBERS, nq, work, place)
        pick(v, own, f.OWN_NUMBERS + nq, nv, work, place + nq)
        post(work, place, nq + nv, own[f.OWN_UP], boxes, mail)
    return 0 if take(torques, 0, torques.shape[0], own[f.OWN_DOWN], boxes, mail) else ACTUATION_FAILED
