"""Stiff motion at O(N): the step of `integrate/implicit.py` solved by forward dynamics with an increased diagonal.

A mechanism moves by q' = N(q) v, M(q) v' = F(t, q, v). Of the derivatives of F only those are kept that fit the
articulated-body recursion: the derivatives of each joint's torque by its own rate and coordinate, -D and -K, both
diagonal.
Newton's iteration for the slopes s of q and a of v, at a state that is gamma times the slopes from the past, is then

    (M + G) a' = F + G a - gamma K (v - N^-1 s),      G = gamma D + gamma^2 K
    s' = N (v + gamma (a' - a))

M a cancels on both sides, so no product with M is left, and a' is forward dynamics with G as armature and an
additional torque: `tree_one` and `closed_one` as they are. D and K are those of the joints' springs, dampers and
limits, and of the actuation by differences: all joints are moved at once, in log N patterns of signs, which agree on
the gains of a drive that depends on its own joint alone.

Neglected in the iteration, not in the motion: derivatives of M, gravity and velocity products by the state, springs
between points and in connections, coupling between the drives of different joints. docs/integrators.md
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bunraku.algorithms.connection_equations import DYNAMICS
from bunraku.algorithms.passive import joint_slopes
from bunraku.algorithms.states import advance_coordinates, coordinate_rates, tangent_rates
from bunraku.entries.signatures import int64
from bunraku.integrate import implicit, nordsieck
from bunraku.integrate.advance import advance
from bunraku.integrate.history import FAMILY
from bunraku.integrate.record import record_step, room_in
from bunraku.integrate.solver_memory import STEPS
from bunraku.jit import allocating, as_written, entry, hold, inline, inner, outlived
from bunraku.plan import fields as f
from bunraku.runs.context import (
    RUN,
    STAYS_OPEN,
    Context,
    agree,
    coordinates,
    drive,
    evaluate,
    make_context,
    right_hand_side,
    status_of,
)
from bunraku.runs.loop_closing import settle, start_closed
from bunraku.runs.multistep_run import begin_again, begin_step

GAINS_AGE = 20        # steps after which the actuation is probed again
PROBE = 1e-6          # [rad, m; per second] how far
AGREEMENT = 0.5       # of a gain: what other joints may do to it


class Stiff(NamedTuple):
    """A mechanism for the iteration: its right-hand side, the approximate Jacobian, scratch memory."""

    context: Context
    gains: np.ndarray        # (4, nv) of the actuation: damping, stiffness, and two rows of scratch
    slopes: np.ndarray       # (2, nv) the same with those of the joints themselves
    dof_g: np.ndarray        # dof_f with G on its armature
    base: np.ndarray         # (nv,) torques that probes start from
    step: np.ndarray         # (nv,) of a probe; better accelerations
    rate: np.ndarray         # (nv,) velocities of a probe; of the slope
    moved: np.ndarray        # (nq,) coordinates of a probe
    age: np.ndarray          # (1,) number of the step of the last probe; -1: none yet, or after trouble


@allocating
def make_stiff(context):
    nv, dof_f = context.structure.dof_f.shape[1], context.structure.dof_f
    return Stiff(context, np.zeros((4, nv)), np.zeros((2, nv)), dof_f.copy(), np.zeros(nv), np.zeros(nv), np.zeros(nv),
                 np.zeros(coordinates(context)), np.full(1, -1))


@inner
def probe(stiff, t, y, pattern):
    """Bounds on the gains of the actuation from one pattern of signs. Returns the status of the actuation.

    Pattern 0 moves all joints forward, pattern p those back whose number has bit p - 1 set: no two joints go the same
    way in all patterns.
    """
    context, gains, base, step, rate = stiff.context, stiff.gains, stiff.base, stiff.step, stiff.rate
    nq, nv, torques = coordinates(context), base.shape[0], context.torques
    q, v = y[:nq], y[nq:]
    for j in range(nv):
        step[j] = -PROBE if pattern > 0 and (j >> (pattern - 1)) & 1 else PROBE
        rate[j] = v[j] + step[j] * max(1.0, abs(v[j]))
    status = drive(context, t, q, rate)
    if status != 0:
        return status
    for j in range(nv):
        gain = -(torques[j] - base[j]) / (rate[j] - v[j])
        gains[0, j], gains[1, j] = min(gains[0, j], gain), max(gains[1, j], gain)
    advance_coordinates(context.structure.body_i, q, step, stiff.moved)
    status = drive(context, t, stiff.moved, v)
    if status != 0:
        return status
    for j in range(nv):
        gain = -(torques[j] - base[j]) / step[j]
        gains[2, j], gains[3, j] = min(gains[2, j], gain), max(gains[3, j], gain)
    return 0


@inner
def find_gains(stiff, t, y):
    """Damping and stiffness of the actuation, joint by joint: rows 0 and 1 of the gains.

    A gain on which the patterns disagree depends on other joints as much as on its own, and is neglected, as is
    a destabilising one: too large a diagonal would stall the iteration.
    """
    context, gains = stiff.context, stiff.gains
    nq, nv = coordinates(context), gains.shape[1]
    status = drive(context, t, y[:nq], y[nq:])
    for j in range(nv):
        stiff.base[j] = context.torques[j]
        gains[0, j] = gains[2, j] = math.inf
        gains[1, j] = gains[3, j] = -math.inf
    pattern = 0
    while status == 0 and (pattern == 0 or (nv - 1) >> (pattern - 1) > 0):
        status = probe(stiff, t, y, pattern)
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


@as_written
def add_diagonal(gamma, slopes, v, a, rate, dof_f, dof_g, torques):
    """G as armature, and G a - gamma K (v - N^-1 s) as torque."""
    for j in range(v.shape[0]):
        d, k = slopes[0, j], slopes[1, j]
        G = gamma * (d + gamma * k)
        torques[j] += G * a[j] - gamma * k * (v[j] - rate[j])
        dof_g[f.ARMATURE, j] = dof_f[f.ARMATURE, j] + G


@as_written
def follow_accelerations(gamma, v, better, a, rate):
    """rate = v + gamma (a' - a), and a' in place of a."""
    for j in range(v.shape[0]):
        rate[j] = v[j] + gamma * (better[j] - a[j])
        a[j] = better[j]


@inner
def improve(stiff, t, gamma, y, slope):
    """One iteration: `slope`, the derivatives of y, becomes better. See above and `integrate/implicit.py`."""
    context, rate, better = stiff.context, stiff.rate, stiff.step
    body_i, dof_f, nq = context.structure.body_i, context.structure.dof_f, coordinates(context)
    q, v, a = y[:nq], y[nq:], slope[nq:]
    status = drive(context, t, q, v)
    if status != 0:
        return status
    joint_slopes(body_i, dof_f, q, stiff.gains, stiff.slopes)
    tangent_rates(body_i, q, slope[:nq], rate)
    add_diagonal(gamma, stiff.slopes, v, a, rate, dof_f, stiff.dof_g, context.torques)
    status = status_of(evaluate(DYNAMICS, stiff.dof_g, context.torques, context.drives, context, q, v, better))
    context.factored[0] = math.nan  # factors with more on the diagonal than the mass are not for closing loops
    if status != 0:
        return status
    follow_accelerations(gamma, v, better, a, rate)
    coordinate_rates(body_i, q, rate, slope[:nq])
    return 0


# -- in the form of `advance` --------------------------------------------------------------------------------------


@inner
def correct(rhs, agree, stiff, method, memory, t, h):
    """`implicit.solve`, with the gains of the actuation updated regularly and after failures."""
    steps, age = memory.tally[STEPS], stiff.age
    if stiff.context.address != 0 and (age[0] < 0 or steps >= age[0] + GAINS_AGE):
        status = agree(stiff, memory, find_gains(stiff, t, memory.rows[0]))
        if status != 0:
            return status, 0.0
        age[0] = steps
    outcome, size = implicit.solve(improve, agree, stiff, method, memory, t, h)
    if outcome != 0:
        age[0] = -1
    return outcome, size


@inner
def prepare(rhs, agree, stiff, method, memory):
    status = start_closed(stiff.context, memory)
    return status if status != 0 else nordsieck.prepare(rhs, agree, stiff, method, memory)


@inline
def attempt(rhs, agree, stiff, method, memory):
    begin_step(stiff.context, memory)
    return nordsieck.step(correct, rhs, agree, stiff, method, memory)


@inline
def complete(rhs, agree, stiff, method, memory):
    return 0 if stiff.context.passing[STAYS_OPEN] == 0.0 else begin_again(rhs, agree, stiff, stiff.context, memory)


@inner
def stiff_right_hand_side(stiff, t, y, dy):
    return right_hand_side(stiff.context, t, y, dy)


@inner
def stiff_agree(stiff, memory, status):
    return agree(stiff.context, memory, status)


@inner
def stiff_settle(stiff, rows, count, h):
    return settle(stiff.context, rows, count, h)


@entry("simulation of stiff mechanisms", int64(FAMILY, *RUN), seconds=12)
def run_implicit(method, motion, structure, address, params, external, memory, record):
    context = make_context(motion, structure, address, params, external, memory)
    stiff = make_stiff(hold(context))
    return outlived((context, stiff), advance(prepare, attempt, complete, nordsieck.polynomial, nordsieck.go_on,
                                              stiff_right_hand_side, stiff_agree, stiff_settle, record_step,
                                              hold(stiff), method, memory, record, room_in(record)))
