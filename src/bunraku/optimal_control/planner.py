"""`plan_motion`: iterative LQR for a motion that reaches goals with little torque, within torque limits.

Every iteration takes derivatives of all steps in one call, goes back through them for changes of the torques and gains
(`algorithms/riccati.py`, which keeps torques within their limits), and goes forward again with the whole change, or
with 1/2, 1/4, ... of it until the cost falls as much as it should. Where it does not, or where there is no minimum,
torques are damped more.

A first guess of the states may have jumps between steps [Mastalli et al. 2020, "Crocoddyl", FDDP]: a step of length l
leaves 1 - l of them, and what has to fall is the cost plus `price` times the sum of the jumps, an exact penalty
[Nocedal and Wright, eq. 18.36]. Reference: Tassa, Mansard, Todorov (2014).
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

import numpy as np

from bunraku.checks import as_count, as_finite, as_floats, as_positive, as_size
from bunraku.control.controller import chosen
from bunraku.entries.feedback_entries import backward_pass
from bunraku.errors import ModelError, SettingError, ShapeError, SimulationError, StateError
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.optimal_control.feedback_motion import motion_of
from bunraku.optimal_control.goals import Goal, Knots
from bunraku.optimal_control.planned import PlannedMotion
from bunraku.simulation.closing import neutral_start
from bunraku.terminal import Interrupts

LENGTHS = tuple(0.5 ** k for k in range(12))
ENOUGH = 1e-4                      # part of the expected decrease that is asked for
LEAST_DAMPING, MOST_DAMPING = 1e-6, 1e10
MORE, LESS = 8.0, 0.25             # damping after a failure or a short step, and after a long one
LONG, SHORT = 0.5, 0.2             # parts of the whole change
SHARE = 0.5                        # part of the price of jumps that may pay for a rise of the cost
CLOSED_GAP = 1e-12                 # jumps of rounding


def plan_motion(mechanism: Mechanism, goals: Goal | Sequence[Goal], *, steps: int, step: float, q=None, v=None,
                effort=1e-3, limits=None, joints: Sequence[str] | None = None, tau=None, states=None,
                iterations: int = 200, tolerance: float = 1e-7, workers: int | None = None) -> PlannedMotion:
    """Torques, and feedback gains, of a motion from (q, v) that reaches the goals.

    The cost is that of the goals plus the sum of step/2 effort tau^2. Steps are those of "symplectic_euler"; trees and
    closed chains, without contact.

    q, v        start; by default as of `Simulation`
    goals       `StateGoal`, `PointGoal`, ... of `bunraku.optimal_control`
    effort      a number, or (nv,), or {joint: number}, with 1e-3 for all other joints
    limits      largest torques, likewise; by default, and for joints not named, those of the model, `mechanism.effort`
    joints      that have motors; by default all that are actuated
    tau         first guess of the torques (steps, nv); zero by default
    states      first guess of the states of a tree, (q (steps + 1, nq), v (steps + 1, nv)), which begins at q and v. It
                need not be a motion
    iterations  largest number; they end when the expected decrease of the cost is below `tolerance` times it
    """
    m = as_mechanism(mechanism)
    steps, step = as_count("steps", steps), as_positive("step", step, SettingError)
    iterations, tolerance = as_count("iterations", iterations, least=0), as_size("tolerance", tolerance, SettingError)
    places = motors(m, joints)
    goals = _goals(goals, steps)
    l_uu = step * per_torque(m, "effort", effort, places, 1e-3)
    largest = per_torque(m, "limits", m.effort if limits is None else limits, places, m.effort)
    moves = motion_of(m, step, places, workers)
    problem = _Problem(m, goals, steps, step, l_uu)
    u = _first_torques(tau, steps, m.nv, places, largest)
    found = _first_motion(moves, m, q, v, u, states, largest)
    return _iterate(moves, problem, found, places, largest, iterations, tolerance)


class _Problem:
    """The cost of a motion and its slopes."""

    def __init__(self, mechanism, goals, steps, step, l_uu):
        self.mechanism, self.step, self.steps, self.l_uu = mechanism, step, steps, l_uu
        self.groups: dict[tuple, list[Goal]] = {}
        for goal in goals:
            self.groups.setdefault(tuple(goal.numbers(steps).tolist()), []).append(goal)

    def _knots(self, q, v):
        for numbers, goals in self.groups.items():
            at = np.array(numbers)
            yield Knots(self.mechanism, q[at], v[at], at), goals

    def cost(self, q, v, u) -> float:
        total = 0.5 * float(np.sum(self.l_uu * u * u))
        try:
            for knots, goals in self._knots(q, v):
                total += sum(goal.scale(self.step) * goal.cost(knots) for goal in goals)
        except StateError:  # a motion that runs away, to numbers too large for poses
            return math.inf
        return total if math.isfinite(total) else math.inf

    def slopes(self, q, v, u, basis):
        n = 2 * self.mechanism.nv
        l_x, l_xx = np.zeros((self.steps + 1, n)), np.zeros((self.steps + 1, n, n))
        for knots, goals in self._knots(q, v):
            for goal in goals:
                goal.add_slopes(knots, goal.scale(self.step), l_x, l_xx)
        if basis is not None:
            turned = basis.swapaxes(1, 2)
            l_x = np.ascontiguousarray((turned @ l_x[:, :, None])[:, :, 0])
            l_xx = np.ascontiguousarray(turned @ l_xx @ basis)
        return l_x, l_xx, self.l_uu * u


def _iterate(moves, problem, found, places, largest, iterations, tolerance):
    q, v, u = found
    upper = np.broadcast_to(largest, u.shape).copy()
    lower = -upper
    cost, damping, price = problem.cost(q, v, u), 0.0, 0.0
    costs, began, message, count = [cost], time.perf_counter(), "", 0
    linear, gains = None, np.zeros((len(u), len(places), 2 * problem.mechanism.nv))
    ahead = np.zeros_like(u)
    with Interrupts() as interrupts:
        while not message:
            interrupts.let_in()
            if linear is None:
                linear = moves.linear(q, v, u)
                slopes = problem.slopes(q, v, u, linear[3])
            A, B, gap, basis = linear
            jumps = float(np.abs(gap).sum())
            gain, promise = np.zeros((len(u), len(places), A.shape[1])), np.zeros(2)
            l_x, l_xx, l_u = slopes
            ahead = np.clip(ahead, lower - u, upper - u)
            failed = backward_pass.call(A, B, gap, l_x, l_xx, l_u, problem.l_uu, lower - u, upper - u, damping, ahead,
                                        gain, promise)
            if failed < 0:
                gains = gain if basis is None else gain @ np.linalg.pinv(basis[:-1])
                first, second = promise
                if jumps <= CLOSED_GAP and -(first + 0.5 * second) <= tolerance * max(abs(cost), 1e-300):
                    message = "converged"
                    break
                if count >= iterations:
                    message = f"stopped after {count} iterations"
                    break
                if jumps > CLOSED_GAP:
                    price = max(price, (first + 0.5 * max(second, 0.0)) / ((1.0 - SHARE) * jumps))
                better = _try(moves, problem, (q, v, u), ahead, gains, gap, lower, upper, cost + price * jumps,
                              first - price * jumps, price * jumps)
                if better is not None:
                    (q, v, u), cost, length = better
                    count, linear = count + 1, None
                    costs.append(cost)
                    ahead = (1.0 - length) * ahead
                    if length >= LONG:
                        damping = 0.0 if damping * LESS < LEAST_DAMPING else damping * LESS
                    elif length <= SHORT:
                        damping = max(damping * MORE, LEAST_DAMPING)
                    continue
            damping = max(damping * MORE, LEAST_DAMPING)
            if damping > MOST_DAMPING:
                message = "no step makes the cost smaller: the motion may be at the limit of rounding"
    m, nv = problem.mechanism, problem.mechanism.nv
    whole, limits = np.zeros((len(u), nv, 2 * nv)), np.full(nv, np.inf)
    whole[:, places], limits[places] = gains, largest
    return PlannedMotion(m, problem.step, q, v, moves.torques(u), whole, limits, cost, np.array(costs),
                         float(np.abs(gap).max(initial=0.0)) if jumps > CLOSED_GAP else 0.0, count,
                         time.perf_counter() - began, message == "converged", message)


def _try(moves, problem, motion, ahead, gains, gap, lower, upper, merit, slope, jumps):
    """The first motion whose cost, with what is left of the jumps, falls as it should: (motion, cost, length)."""
    for length in LENGTHS:
        new = moves.follow(length, *motion, ahead, gains, gap, lower, upper)
        if new is None:
            continue
        cost = problem.cost(*new)
        if cost + (1.0 - length) * jumps < merit + ENOUGH * length * min(slope, 0.0):
            return new, cost, length
    return None


# -- what people give ----------------------------------------------------------------------------------------------


def motors(mechanism: Mechanism, joints) -> np.ndarray:
    """Velocities of the joints that have motors."""
    places = np.flatnonzero(chosen(mechanism, joints, "joints"))
    if not len(places):
        raise ModelError(f"{mechanism.name} has no actuated joint; name those with motors in `joints`")
    return places


def per_torque(mechanism: Mechanism, what: str, value, places, default) -> np.ndarray:
    """A number for each motor, from one, (nv,), or {joint: number}."""
    whole = np.full(mechanism.nv, default, float)
    if isinstance(value, Mapping):
        for joint, number in value.items():
            mechanism.find_joint(joint, f"{what}: ")
            whole[mechanism.v_slice(joint)] = as_finite(what, number, infinite=True)
    else:
        array = as_finite(what, value, infinite=True)
        if array.shape not in ((), (mechanism.nv,)):
            raise ShapeError(f"{what} must be a number, ({mechanism.nv},) or {{joint: number}}, not {array.shape}")
        whole[:] = array
    if (whole[places] < 0).any():
        raise ShapeError(f"{what} must not be negative")
    return np.ascontiguousarray(whole[places])


def _goals(goals, steps) -> list[Goal]:
    given = [goals] if isinstance(goals, Goal) else list(goals)
    for goal in given:
        if not isinstance(goal, Goal):
            raise ModelError(f"goals must be those of bunraku.optimal_control, such as StateGoal, not {goal!r:.60}")
        goal.numbers(steps)
    if not given:
        raise ModelError("plan_motion: there are no goals; give at least one")
    return given


def _first_torques(tau, steps, nv, places, largest):
    if tau is None:
        return np.zeros((steps, len(places)))
    tau = as_floats("tau", tau, nv)
    if tau.shape not in ((nv,), (steps, nv)) or not np.isfinite(tau).all():
        raise ShapeError(f"tau must be finite and have shape ({nv},) or ({steps}, {nv}), not {tau.shape}")
    return np.ascontiguousarray(np.clip(np.broadcast_to(tau, (steps, nv))[:, places], -largest, largest))


def _first_motion(moves, m, q, v, u, states, largest):
    steps = len(u)
    q = neutral_start(m) if q is None else as_floats("q", q, m.nq)
    v = np.zeros(m.nv) if v is None else as_floats("v", v, m.nv)
    if q.ndim != 1 or v.ndim != 1:
        raise ShapeError("plan_motion starts from one state, not a batch")
    q, v = moves.start(q, v)
    if states is not None:
        if m.plan().loops is not None:
            raise ModelError(f"{m.name} has connections; a first guess of the states is for trees only, so give tau")
        try:
            all_q, all_v = (as_floats(name, x, width).copy()
                            for name, x, width in zip("qv", states, (m.nq, m.nv), strict=True))
        except ValueError:
            raise ShapeError("states must be (q, v)") from None
        if len(all_q) != steps + 1 or len(all_v) != steps + 1 or all_q.ndim != 2 or all_v.ndim != 2:
            raise ShapeError(f"states must have {steps + 1} rows, one more than steps")
        all_q[0], all_v[0] = q, v
        return m.integrate(all_q, np.zeros(m.nv)), all_v, u
    nothing = np.zeros((steps, u.shape[1], 2 * m.nv))
    still = np.broadcast_to(q, (steps + 1, m.nq)).copy(), np.broadcast_to(v, (steps + 1, m.nv)).copy()
    bounds = np.broadcast_to(largest, u.shape).copy()
    found = moves.follow(1.0, *still, u, np.zeros_like(u), nothing, np.zeros((steps, 2 * m.nv)), -bounds, bounds)
    if found is None:
        raise SimulationError("the motion with the first guess of the torques has no finite end; give a better `tau`, "
                              "a smaller step, or `states`")
    return found
