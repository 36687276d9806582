"""Linear feedback of the whole state about an equilibrium or along a motion:

    tau = tau_k + gain_k x,   x = (difference of q from q_k, of v from v_k)

with k the step that the time is in, within limits. The gains are those of `bk.lqr` and `bk.plan_motion`, or your own.
Cost: nv (2 nv) products.
"""

from __future__ import annotations

import math

import numpy as np

from bunraku.checks import as_finite, as_positive
from bunraku.control.controller import Controller, coordinates_of
from bunraku.control.held import ROUNDING
from bunraku.control.joint_control import OTHER
from bunraku.errors import ShapeError
from bunraku.mechanism.mechanism import as_mechanism


def state_feedback(mechanism, q, gains, *, v=None, tau=None, step: float | None = None, limits=None) -> Controller:
    """A controller by linear feedback of the state: tau + gain x, with x = (difference of q, of v) from the reference.

    q, v        of an equilibrium, (nq,) and (nv,); or of a motion, (steps, ...), where a further last state is ignored
    gains       (nv, 2 nv), or (steps, nv, 2 nv)
    tau         (nv,) or (steps, nv); zero by default
    step        [s] of a motion, whose last gain and state hold afterwards
    limits      largest torques, a number or (nv,)
    """
    m = as_mechanism(mechanism)
    nq, nv = m.nq, m.nv
    gains = as_finite("state_feedback: gains", gains)
    if gains.shape[-2:] != (nv, 2 * nv) or gains.ndim not in (2, 3) or not len(gains):
        raise ShapeError(f"state_feedback: gains must have shape ({nv}, {2 * nv}), or (steps, {nv}, {2 * nv}) of a "
                         f"motion, not {gains.shape}")
    moving = gains.ndim == 3
    count = len(gains) if moving else 1
    period = as_positive("state_feedback: step [s]", step, ShapeError) if moving else 1.0
    if moving:
        q = _rows("q", q, count, nq)
    else:
        q = coordinates_of(m, "state_feedback: q", q)[None]
    v, tau = (_rows(name, np.zeros(nv) if x is None else x, count, nv) for name, x in (("v", v), ("tau", tau)))
    most = as_finite("state_feedback: limits", np.inf if limits is None else limits, infinite=True)
    if most.shape not in ((), (nv,)) or (most < 0).any():
        raise ShapeError(f"state_feedback: limits must be a number or ({nv},), not negative")
    row = nq + 2 * nv + 2 * nv * nv

    def state_feedback(t, q, v, params, tau, model):
        if model.nv != nv or params.shape[0] != nv + count * row:
            raise ValueError(OTHER)
        k = min(max(math.floor(t / period + ROUNDING), 0), count - 1)
        at = nv + k * row
        x = np.empty(2 * nv)
        model.difference(params[at:at + nq], q, x[:nv])
        for j in range(nv):
            x[nv + j] = v[j] - params[at + nq + j]
        for j in range(nv):
            total, own = params[at + nq + nv + j], at + nq + 2 * nv + 2 * nv * j
            for i in range(2 * nv):
                total += params[own + i] * x[i]
            tau[j] = min(max(total, -params[j]), params[j])
    table = np.hstack([q, v, tau, np.broadcast_to(gains, (count, nv, 2 * nv)).reshape(count, -1)])
    return Controller(state_feedback, {"limits": np.broadcast_to(most, nv), "table": table})


def _rows(name, values, count, width):
    array = as_finite(f"state_feedback: {name}", values)
    if array.ndim == 2 and len(array) == count + 1:
        array = array[:count]
    if array.shape not in ((width,), (count, width)):
        raise ShapeError(f"state_feedback: {name} must have shape ({width},) or ({count}, {width}), not {array.shape}")
    return np.broadcast_to(array, (count, width))
