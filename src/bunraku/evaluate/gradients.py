"""Gradient of a cost of a motion in fixed steps, by the adjoint method with checkpoints.

Idea: the cost changes with the state before a step, x = (move, velocity), by a slope that follows from the slope behind
the step. With v' = v + h a, q' = q moved by h v', and slopes (s, w) behind it,

    w' = w + h mean^T s,    s_before = turn^T s + h (da/dq)^T w',    w_before = w' + h (da/dv)^T w',

and h (da/dtau)^T w' is the gradient by the torques; turn and mean are how a change before a move, and one of it, appear
behind it (`linear_models.after_move`). One pass from the end to the start gives the gradient by all torques, by the
start and by parameters. Not all states that it needs are kept: one at the start of each block is, and a block is
stepped again when its turn comes. Cost: two motions, and derivatives of each step; memory: checkpoints and one block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bunraku.checks import as_count, as_floats, as_positive
from bunraku.entries import derivative_entries
from bunraku.entries.step_entries import torque_steps
from bunraku.errors import ModelError, SettingError, ShapeError, SimulationError
from bunraku.evaluate.linear_models import after_move, short, turning, turning_joints
from bunraku.evaluate.parameter_derivatives import as_parameter, torque_derivatives
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism

CHUNK = 64  # steps whose derivatives are kept at once


@dataclass(frozen=True, eq=False)
class Gradient:
    """A cost, and how it changes with torques, start and parameters."""

    cost: float
    by_tau: np.ndarray         # (steps, nv)
    by_q: np.ndarray           # (nv,): along small moves of the start
    by_v: np.ndarray           # (nv,)
    by_parameters: np.ndarray  # (parameters,)
    names: list[str]           # of the parameters
    q: np.ndarray              # at the end
    v: np.ndarray
    kept: int                  # states that were in memory at once


def gradient(mechanism: Mechanism, q, v, tau, *, step: float, final: Callable | None = None,
             running: Callable | None = None, parameters: Sequence = (), checkpoints: int | None = None,
             workers: int | None = None) -> Gradient:
    """Gradient of a cost of the motion that "symplectic_euler" makes from (q, v) under the torques tau (steps, nv);
    trees, without contact.

    final        (q, v) -> (cost, by_q, by_v) of the state at the end
    running      (k, q, v, tau) -> (costs, by_q, by_v, by_tau) of the states before the steps k (n,) and their torques,
                 with q (n, nq) and v, tau (n, nv): costs are (n,) and their derivatives (n, nv)
    parameters   as in `parameter_derivatives`
    checkpoints  states kept on the way; by default the square root of the number of steps, for the least memory

    The derivative by_q is along small moves, as in `derivatives`.
    """
    m = as_mechanism(mechanism)
    plan, step = m.plan(), as_positive("step", step, SettingError)
    if plan.loops is not None or m.needs_contact():
        raise ModelError(f"gradient is for trees without contact, joint friction and hard limits, and {m.name} has "
                         "connections or one of these; bk.sensitivities is for event-driven simulations with them")
    wanted = [as_parameter(m, parameter) for parameter in parameters]
    tau = np.ascontiguousarray(as_floats("tau", tau, plan.nv))
    if tau.ndim != 2:
        raise ShapeError(f"tau has shape {tau.shape}; it must be (steps, {plan.nv})")
    q, v = as_floats("q", q, plan.nq).copy(), as_floats("v", v, plan.nv).copy()
    if q.ndim > 1 or v.ndim > 1:
        raise ShapeError("gradient is of one motion: q and v must be one state")
    motion = _Motion(m, plan, step, tau)
    steps = len(tau)
    count = math.isqrt(max(steps - 1, 0)) + 1 if checkpoints is None else as_count("checkpoints", checkpoints)
    block = max(1, -(-steps // count))
    kept = motion.run(0, steps, q, v, block)
    cost, by_q, by_v = 0.0, np.zeros(plan.nv), np.zeros(plan.nv)
    if final is not None:
        cost, by_q, by_v = final(q.copy(), v.copy())
        by_q, by_v = (as_floats("derivatives of the final cost", x, plan.nv) for x in (by_q, by_v))
    by_tau, by_parameters = np.empty_like(tau), np.zeros(sum(len(p.names) for p in wanted))
    for start in reversed(range(0, steps, block)):
        end = min(start + block, steps)
        states = motion.run(start, end, kept[0][start // block].copy(), kept[1][start // block].copy(), 1)
        for first in reversed(range(start, end, CHUNK)):
            part = slice(first, min(first + CHUNK, end))
            own = slice(part.start - start, part.stop - start)
            here = states[0][own], states[1][own]
            a, by = derivative_entries.forward_derivatives(plan, *here, tau[part], None, workers)
            turn, mean = _moves(plan, step * (here[1] + step * a))
            more = np.zeros((len(a), 3, plan.nv))
            if running is not None:
                costs, *slopes = running(np.arange(part.start, part.stop), *here, tau[part])
                cost += float(np.sum(costs))
                for j in range(3):
                    more[:, j] = slopes[j]
            through = np.empty((len(a), plan.nv))
            for k in reversed(range(len(a))):
                faster = through[k] = by_v + step * (by_q @ mean[k])
                found = step * (faster @ by[:, k]) + more[k]
                by_q, by_v, by_tau[part.start + k] = by_q @ turn[k] + found[0], faster + found[1], found[2]
            if wanted:
                pushed = step * (through[:, None] @ by[2])[:, 0]
                by_parameters -= np.einsum("kj,kjp->p", pushed, torque_derivatives(m, *here, a, wanted))
    return Gradient(float(cost), by_tau, by_q, by_v, by_parameters,
                    [name for p in wanted for name in p.names], q, v, -(-steps // block) + block)


def _moves(plan, moved) -> tuple[np.ndarray, np.ndarray]:
    """(steps, nv, nv) each: how changes before moves, and of moves, appear behind them."""
    turn = np.tile(np.eye(plan.nv), (len(moved), 1, 1))
    mean = turn.copy()
    for width in (3, 6):  # ball and free joints, all of a kind at once
        joints = [at for at in turning_joints(plan) if at.stop - at.start == width]
        if joints:
            found = after_move(short(turning(np.stack([moved[:, at] for at in joints], axis=1))))
            for j, at in enumerate(joints):
                turn[:, at, at], mean[:, at, at] = found[0][:, j], found[1][:, j]
    return turn, mean


class _Motion:
    def __init__(self, mechanism, plan, step, tau):
        self.mechanism, self.plan, self.step, self.tau = mechanism, plan, step, tau

    def run(self, start: int, end: int, q, v, every: int):
        """Take the steps from `start` to `end` in place; states before every so many of them."""
        count = -(-(end - start) // every)
        kept = np.empty((count, self.plan.nq)), np.empty((count, self.plan.nv))
        done = torque_steps.call(self.plan.arrays, self.step, self.tau[start:end], q, v, every, *kept)
        if done < end - start:
            raise SimulationError(f"gradient: step {start + done} of {self.mechanism.name} has no finite result; take "
                                  "a smaller step")
        return kept
