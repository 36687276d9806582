"""Stiff motion at O(N): the step of `integrate/implicit.py` solved by forward dynamics with more on its diagonal.

A mechanism moves by q' = N(q) v, M(q) v' = F(t, q, v). Of the derivatives of F those are kept that the articulated-body
recursion takes as it is: how each joint's own torque falls with its own rate and coordinate, -D and -K, both diagonal.
Newton's iteration for the slopes s of q and a of v, at a state that is gamma times the slopes from the past, is then

    (M + G) a' = F + G a - gamma K (v - N^-1 s),      G = gamma D + gamma^2 K
    s' = N (v + gamma (a' - a))

M a has gone from both sides, so no product with M is left, and a' is forward dynamics with G in the place of rotors
and a torque more: `tree_one` and `closed_one` as they are. D and K are those of the joints' springs, dampers and
limits, and of the actuation by differences: all joints are moved at once, in log N patterns of signs, which agree on
the gains of a drive that looks at its own joint.

Left out of the iteration, not of the motion: how M, gravity and velocity products change with the state, springs
between points and in connections, what one joint's drive does to another. docs/integrators.md
"""

from __future__ import annotations

import math

import numpy as np

from bunraku.algorithms.connections import DYNAMICS
from bunraku.algorithms.passive import joint_slopes
from bunraku.algorithms.states import advance_coordinates, coordinate_rates, tangent_rates
from bunraku.integrate import implicit, nordsieck
from bunraku.integrate.advance import advance
from bunraku.integrate.history import FAMILY
from bunraku.integrate.memory import LOOPS_CLASH, STATE_FAILED, STEPS, TIME, copy
from bunraku.jit import allocating, entry, inline, inner
from bunraku.plan.fields import ARMATURE, HEAD_NQ
from bunraku.run.notes import room_in, write_down
from bunraku.run.rollout import (
    BEGAN,
    MECHANISM,
    OPEN,
    RUN,
    begin_again,
    drive,
    make_context,
    mechanism_rhs,
    settle,
    start_closed,
    wary,
)
from bunraku.run.signatures import CLASHED, FINE, int64

GAINS_AGE = 20        # steps after which the actuation is probed again
PROBE = 1e-6          # [rad, m; per second] how far
AGREEMENT = 0.5       # of a gain: what other joints may do to it


@allocating
def make_diagonal(body_i, dof_f):
    """What the iteration knows of the Jacobian, and scratch: gains of the actuation (4, nv; damping and stiffness are
    the first two rows), the same with the joints' own, dof_f with G on its armature, vectors, coordinates, the step of
    the last probe."""
    nv = dof_f.shape[1]
    return (np.zeros((4, nv)), np.zeros((2, nv)), dof_f.copy(), np.zeros((3, nv)), np.zeros(body_i[-1, HEAD_NQ]),
            np.full(1, -1))


@inner
def probe(whole, t, y, pattern):
    """What one pattern of signs says about the gains of the actuation: its status.

    Pattern 0 moves all joints forward, pattern p those back whose number has bit p - 1 set: no two joints go the same
    way in all patterns.
    """
    context, (gains, slopes, dof_g, scratch, moved, age), passing, states = whole
    body_i, address, params, torques = context[1], context[11], context[12], context[13]
    nv = dof_g.shape[1]
    nq = y.shape[0] - nv
    q, v, base, move, rate = y[:nq], y[nq:], scratch[0], scratch[1], scratch[2]
    for j in range(nv):
        move[j] = -PROBE if pattern > 0 and (j >> (pattern - 1)) & 1 else PROBE
        rate[j] = v[j] + move[j] * max(1.0, abs(v[j]))
    status = drive(address, t, q, rate, params, torques)
    if status != 0:
        return status
    for j in range(nv):
        gain = -(torques[j] - base[j]) / (rate[j] - v[j])
        gains[0, j], gains[1, j] = min(gains[0, j], gain), max(gains[1, j], gain)
    advance_coordinates(body_i, q, move, moved)
    status = drive(address, t, moved, v, params, torques)
    if status != 0:
        return status
    for j in range(nv):
        gain = -(torques[j] - base[j]) / move[j]
        gains[2, j], gains[3, j] = min(gains[2, j], gain), max(gains[3, j], gain)
    return 0


@inner
def find_gains(whole, t, y):
    """Damping and stiffness of the actuation, joint by joint: rows 0 and 1 of the gains.

    A gain on which the patterns do not agree depends on other joints as much as on its own, and is left out, as is
    one that drives instead: a diagonal that is too large stops the iteration where it should go on.
    """
    context, (gains, slopes, dof_g, scratch, moved, age), passing, states = whole
    nv = gains.shape[1]
    nq = y.shape[0] - nv
    status = drive(context[11], t, y[:nq], y[nq:], context[12], context[13])
    for j in range(nv):
        scratch[0, j] = context[13][j]
        gains[0, j] = gains[2, j] = math.inf
        gains[1, j] = gains[3, j] = -math.inf
    pattern = 0
    while status == 0 and (pattern == 0 or (nv - 1) >> (pattern - 1) > 0):
        status = probe(whole, t, y, pattern)
        pattern += 1
    for j in range(nv):
        gains[0, j] = agreed(gains[0, j], gains[1, j])
        gains[1, j] = agreed(gains[2, j], gains[3, j])
    return status


@inline
def agreed(low, high):
    """The gain between two bounds, if they are close and positive; else zero."""
    middle, spread = 0.5 * (high + low), 0.5 * (high - low)
    return middle if spread <= AGREEMENT * middle and middle < math.inf else 0.0


@inner
def improve(whole, t, gamma, y, slope):
    """One iteration: `slope`, the derivatives of y, becomes better. See above and `integrate/implicit.py`."""
    context, (gains, slopes, dof_g, scratch, moved, age), passing, states = whole
    (move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, address, params, torques,
     drives, nothing, zeros, change, work, rates) = context
    nv = dof_f.shape[1]
    nq = y.shape[0] - nv
    q, v, a = y[:nq], y[nq:], slope[nq:]
    rate, better = scratch[0], scratch[1]
    status = drive(address, t, q, v, params, torques)
    if status != 0:
        return status
    joint_slopes(body_i, dof_f, q, gains, slopes)
    tangent_rates(body_i, q, slope[:nq], rate)
    for j in range(nv):
        d, k = slopes[0, j], slopes[1, j]
        G = gamma * (d + gamma * k)
        torques[j] += G * a[j] - gamma * k * (v[j] - rate[j])
        dof_g[ARMATURE, j] = dof_f[ARMATURE, j] + G
    answer = move(DYNAMICS, body_i, body_f, dof_g, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog, q, v,
                  torques, drives, nothing, better, work)
    rates[2] = math.nan  # factors with more on the diagonal than the mass are not for closing loops
    if answer != FINE:
        return LOOPS_CLASH if answer == CLASHED else STATE_FAILED
    for j in range(nv):
        rate[j] = v[j] + gamma * (better[j] - a[j])
        a[j] = better[j]
    coordinate_rates(body_i, q, rate, slope[:nq])
    return 0


# -- as the core wants it ------------------------------------------------------------------------------------------


@inner
def correct(rhs, whole, method, memory, t, h):
    """`implicit.solve`, with the gains of the actuation found again from time to time and after trouble."""
    context, extra, passing, states = whole
    steps, age = memory.tally[STEPS], extra[5]
    if context[11] != 0 and (age[0] < 0 or steps >= age[0] + GAINS_AGE):
        status = find_gains(whole, t, memory.rows[0])
        if status != 0:
            return status, 0.0
        age[0] = steps
    outcome, size = implicit.solve(improve, whole, method, memory, t, h)
    if outcome != 0:
        age[0] = -1
    return outcome, size


@inner
def prepare(rhs, whole, method, memory):
    status = start_closed(whole[0], whole[3][1], memory)
    return status if status != 0 else nordsieck.prepare(rhs, whole, method, memory)


@inline
def attempt(rhs, whole, method, memory):
    context, extra, passing, states = whole
    passing[BEGAN] = memory.clock[TIME]
    copy(memory.rows[0], states[2])
    return nordsieck.step(correct, rhs, whole, method, memory)


@inline
def complete(rhs, whole, method, memory):
    context, extra, passing, states = whole
    return 0 if passing[OPEN] == 0.0 else begin_again(rhs, whole, context, passing, states, memory)


@inner
def whole_rhs(whole, t, y, dy):
    return mechanism_rhs(whole[0], t, y, dy)


@inner
def whole_settle(whole, rows, count, h):
    context, extra, passing, states = whole
    return settle(context, passing, states[1], rows, count, h)


@entry("simulation of stiff mechanisms", [int64(FAMILY, *MECHANISM, *RUN)])
def rollout_implicit(method, move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog,
                     address, params, memory, notes):
    context = make_context(move, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f, conn_i, conn_f, prog,
                           address, params)
    context, passing, states = wary(context, memory.rows.shape[1])
    return advance(prepare, attempt, complete, nordsieck.polynomial, nordsieck.go_on, whole_rhs, whole_settle,
                   write_down, (context, make_diagonal(body_i, dof_f), passing, states), method, memory, notes,
                   room_in(notes))
