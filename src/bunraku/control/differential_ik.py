"""Differential inverse kinematics: velocities toward targets within limits, in Python, in compiled functions, and as a
controller.

Errors of all targets decay as exp(-gain t) when they are small, as far as speeds and ranges of joints and other targets
allow (`entries/differential_ik_entries.py`). Loops stay closed. The controller accelerates by kd (v* - v), v* the
velocity toward the targets, with computed torques; gain should be a few times less than kd.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numba.extending import register_jitable

from bunraku.checks import as_floats, as_positive, as_size
from bunraku.compiler.handles import by_address, laid_out
from bunraku.control.controller import Controller, chosen, coordinates_of, gains
from bunraku.control.joint_control import OTHER
from bunraku.entries.differential_ik_entries import MOTION, toward, velocity_toward
from bunraku.entries.inverse_kinematics_entries import PROBLEM
from bunraku.entries.signatures import FINE, PLAN
from bunraku.errors import ShapeError, StateError
from bunraku.evaluate.inverse_kinematics import goals_of, setup_of
from bunraku.jit import OPTIONS
from bunraku.mechanism.mechanism import as_mechanism

plan_at, problem_at = by_address(PLAN.fields), by_address(PROBLEM.fields)
WRONG = "differential_ik: goal has 12 numbers for each target, motion 6, posture and q have nq, out at least nv"


class DifferentialIK:
    """Velocities toward targets; made by `bk.control.differential_ik`.

    v = ik(q)              toward the targets; ik(q, {"hand": (R, p)}) toward others of the same links and kinds
    ik.velocity            the same for compiled functions: velocity(q, goal, motion, posture, out)
    ik.goal(targets)       the array `goal` (12 times targets,) of targets; ik.posture, ik.motion: the arrays of these
    ik.controller(kd)      a controller that follows these velocities with computed torques
    """

    def __init__(self, mechanism, targets: Mapping, gain: float, weights, priorities, posture, posture_gain: float,
                 speed, limits: bool, limit_gain: float, damping: float, joints):
        m = self.mechanism = as_mechanism(mechanism)
        rest = as_size("differential_ik: posture_gain [1/s]", posture_gain, ShapeError)
        self.setup = setup = setup_of(m, targets, limits, (), weights, priorities, rest == 0.0, joints)
        self.targets, self.posture = goals_of(setup, targets), coordinates_of(m, "differential_ik: posture", posture)
        self.motion = np.zeros(MOTION * len(setup.keys))
        settings = np.array([as_positive("differential_ik: gain [1/s]", gain, ShapeError), rest,
                             as_positive("differential_ik: limit_gain [1/s]", limit_gain, ShapeError),
                             as_size("differential_ik: damping", damping, ShapeError)])
        most = m.speed if speed is None else np.broadcast_to(as_floats("differential_ik: speed", speed, m.nv)
                                                             if np.ndim(speed) else float(speed), (m.nv,))
        if not (np.asarray(most) > 0.0).all():
            raise ShapeError("differential_ik: speeds must be positive")
        speeds = np.ascontiguousarray(np.asarray(most, float)[setup.problem.column_i[:, 0]])
        self._kept = setup.plan.arrays, setup.problem
        plan_words, problem_words = laid_out(setup.plan.arrays), laid_out(setup.problem)
        exact, address, nq, nv = int(setup.plan.loops is not None), velocity_toward.address, m.nq, m.nv

        def velocity(q, goal, motion, posture, out):
            at, found = np.empty(nq), np.empty(nv)
            if q.shape[0] != nq or out.shape[0] < nv:
                raise ValueError(WRONG)
            at[:] = q
            if toward(address, plan_at(plan_words), problem_at(problem_words), goal.copy(), motion.copy(),
                      posture.copy(), speeds, settings, exact, at, found) != FINE:
                raise ValueError(WRONG)
            out[:nv] = found
        velocity.kept = self._kept  # type: ignore[attr-defined]  # compiled functions have their addresses
        self.velocity = register_jitable(boundscheck=True, **OPTIONS)(velocity)
        self._call = (speeds, settings, exact)

    def goal(self, targets: Mapping) -> np.ndarray:
        """(12 times targets,): rotation by rows and position of each."""
        return goals_of(self.setup, targets)

    def __call__(self, q, targets: Mapping | None = None, motion=None, posture=None) -> np.ndarray:
        """(nv,) velocities at q. motion: (targets, 6) velocities of the targets, linear and angular, in world axes."""
        q = self.setup.coordinates("q", q)
        if q.ndim != 1:
            raise ShapeError("differential_ik: one state at a time; compiled functions take the states of batches")
        goal = self.targets if targets is None else self.goal(targets)
        moving = self.motion if motion is None else as_floats("motion", np.ravel(motion), len(self.motion))
        rest = self.posture if posture is None else coordinates_of(self.mechanism, "posture", posture)
        out = np.empty(self.mechanism.nv)
        answer = velocity_toward.call(*self._kept, goal, np.ascontiguousarray(moving), rest, *self._call,
                                      np.ascontiguousarray(q), out)
        if answer != FINE:
            raise StateError("differential_ik: no finite velocities; check q for huge values")
        return out

    def controller(self, kd, joints: Sequence[str] | None = None) -> Controller:
        """A controller with parameters goal (targets, 12), motion (targets, 6), posture (nq,) and kd (nv,) [1/s]."""
        m, count = self.mechanism, len(self.setup.keys)
        on = chosen(m, joints, "differential_ik")
        velocity, nv, nq = self.velocity, m.nv, m.nq
        first, second, third = 12 * count, 18 * count, 18 * count + nq

        def differential_ik(t, q, v, params, tau, model):
            if model.nv != nv or params.shape[0] != third + nv:
                raise ValueError(OTHER)
            a = np.empty(nv)
            velocity(q, params[:first], params[first:second], params[second:third], a)
            for j in range(nv):
                a[j] = params[third + j] * (a[j] - v[j])
            model.inverse_dynamics(q, v, a, tau)
            for j in range(nv):
                tau[j] *= on[j]
        return Controller(differential_ik, {
            "goal": self.targets.reshape(count, 12), "motion": self.motion.reshape(count, MOTION),
            "posture": self.posture, "kd": gains("differential_ik: kd", kd, on)})


def differential_ik(mechanism, targets: Mapping, gain: float = 5.0, *, weights: Mapping | None = None,
                    priorities: Mapping | None = None, posture=None, posture_gain: float = 0.0, speed=None,
                    limits: bool = True, limit_gain: float | None = None, damping: float = 0.5,
                    joints: Sequence[str] | None = None) -> DifferentialIK:
    """Velocities toward targets: v = ik(q), or ik.velocity in compiled functions, or ik.controller(kd).

    targets     as of `bk.inverse_kinematics`: {link or (link, point): pose, position or orientation}
    gain        [1/s] small errors decay as exp(-gain t)
    weights, priorities     of targets, as of `bk.inverse_kinematics`
    posture     coordinates that the remaining freedom tends to, with posture_gain [1/s]; 0: it is not used
    speed       [rad/s, m/s] largest speed of joints, a number or (nv,), by default that of the joints (`m.speed`);
                where one would exceed it, all are slowed down in proportion
    limits      keep joints within `lower` and `upper`, which they approach as exp(-limit_gain t); by default twice gain
    damping     of the least squares, as a fraction of the sum of squares of the errors: it keeps speeds moderate where
                targets are far or out of reach
    joints      names of the joints that may move; all by default

    Loops stay closed, with priority over all targets. The mechanism is used as it is now: connections made later are
    ignored.
    """
    return DifferentialIK(mechanism, targets, gain, weights, priorities, posture, posture_gain, speed, limits,
                          2.0 * gain if limit_gain is None else limit_gain, damping, joints)
