"""An arm that follows a target by planning, for the viewer: drag the target's gizmo, and the hand goes there.

The simulation has the arm and the target, a link moved by a `bk.Guide`. Every 20 ms `Planner` branches futures of
the arm from its present state, and the first action of the best is held until the next.
"""

from __future__ import annotations

import numpy as np

from bunraku.envs.planning import Planner
from bunraku.envs.tasks import Array, Moved, Task, never, spread
from bunraku.mechanism import Free, Mechanism, Revolute, Sphere
from bunraku.models.solid_inertias import box
from bunraku.simulation import Guide, Simulation, actuation

UPPER, LOWER = 0.4, 0.4                # [m] both parts of the arm
FASTEST = np.array([3.0, 3.0, 4.0])    # [rad/s] at an action of 1
FIRST = np.array([0.3, -0.3, -0.4])    # [m] the target, at first


@actuation
def _servos(t, q, v, params, tau):
    for j in range(3):
        tau[j] = min(max(12.0 * (tau[j] - v[j]), -30.0), 30.0)


def arm() -> Mechanism:
    """An arm that hangs: yaw and pitch of a shoulder, an elbow; balanced by springs, so without gravity."""
    m = Mechanism(gravity=(0, 0, 0), name="arm")
    m.add_link("base", joint=Revolute((0, 0, 1), armature=0.1), **box(1.0, (0.1, 0.1, 0.1))._asdict())
    m.add_link("upper", "base", Revolute((0, -1, 0), armature=0.1),
               **box(1.0, (0.05, 0.05, UPPER), (0.0, 0.0, -0.5 * UPPER))._asdict())
    m.add_link("lower", "upper", Revolute((0, -1, 0), armature=0.05), position=(0, 0, -UPPER),
               **box(0.6, (0.04, 0.04, LOWER), (0.0, 0.0, -0.5 * LOWER))._asdict())
    return m


def hand(q: Array) -> Array:
    """(..., 3) [m] the end of the arm."""
    yaw, first, second = q[..., 0], q[..., 1], q[..., 1] + q[..., 2]
    out = UPPER * np.sin(first) + LOWER * np.sin(second)
    down = UPPER * np.cos(first) + LOWER * np.cos(second)
    return np.stack([out * np.cos(yaw), out * np.sin(yaw), -down], axis=-1)


def reach(goal: Array) -> Task:
    """Bring the hand to `goal`, an array that may be changed. Actions are speeds of the joints."""
    m, middle = arm(), np.array([0.0, 0.2, 0.6])

    def torques(action: Array) -> Array:
        return FASTEST * action

    def reward(x: Moved) -> Array:
        away = np.linalg.norm(hand(x.q) - goal, axis=1)
        return -away - 0.02 * (x.action**2).sum(axis=1) - 0.02 * np.abs(x.v).sum(axis=1)

    return Task("reach", m, 0.004, 5, 500, np.full(3, -1.0), np.full(3, 1.0), torques,
                lambda numbers: spread(middle, 3, np.full(6, 0.1), numbers),
                lambda q, v: np.concatenate([q, v], axis=1), reward, never, motors=_servos)


def following(guide: Guide | None = None, samples: int = 48, horizon: int = 16) -> Simulation:
    """A simulation in which the arm follows "target", whose guide the viewer moves by its gizmo."""
    guide = Guide([*FIRST, 1.0, 0.0, 0.0, 0.0]) if guide is None else guide
    goal = guide.q[:3].copy()
    own = reach(goal)
    planner, w = Planner(own, samples, horizon, knots=4, workers=1), own.worlds(1, workers=1)
    m, middle = arm(), w.q[0].copy()
    m.add_link("target", joint=Free(), mass=0.1, inertia=(1e-4,) * 3)
    m.add_shape("target", Sphere(0.03), group=0, meets=0)
    period, speeds, planned = own.step * own.substeps, np.zeros(m.nv), -np.inf

    def drive(t, q, v):
        nonlocal planned
        if not planned <= t < planned + (1.0 - 1e-9) * period:  # a new plan is due, or time was set back
            goal[:] = q[3:6]
            w.reset(None, q[:3], v[:3])
            speeds[:3], planned = own.torques(planner.plan(w.snapshot())), t
        tau = speeds.copy()
        _servos(t, q, v, np.zeros(0), tau)
        return tau

    return Simulation(m, np.concatenate([middle, guide.q]), solver="symplectic_euler", step=own.step, actuation=drive,
                      prescribed={"target": guide}, record=60.0, progress=False)
