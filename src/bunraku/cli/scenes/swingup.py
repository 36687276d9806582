"""An acrobot, a double pendulum with a motor at its second joint only, swings up and stands.

Iterative LQR finds torques within a limit (`bk.plan_motion`); its gains bring a simulation from another start back to
the plan, and a regulator (`bk.lqr`) holds the unstable end.
"""

from __future__ import annotations

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.planned_scene import PlannedScene
from bunraku.optimal_control import StateGoal

STEP, STEPS = 0.01, 400
LIMIT, MOTOR = 10.0, 12.0  # of the plan and of the motor [N m]
OFF = 0.02                 # [rad]
UPRIGHT = np.array([np.pi, 0.0])


class SwingUp(PlannedScene):
    title = "An acrobot swings up"
    caption = "one motor, between the links"
    seconds, pictured = 7.0, 5.0
    step, motor = STEP, MOTOR
    motors = {"lower": "motor"}  # noqa: RUF012
    frames = 14

    def __init__(self):
        m = self.mechanism = bk.Mechanism(name="acrobot")
        for name, parent, z in (("upper", "ground", 2.2), ("lower", "upper", -1.0)):
            m.add_link(name, parent, bk.Revolute((0, 1, 0)), actuated=name == "lower", position=(0, 0, z), mass=1.0,
                       com=(0, 0, -0.5), inertia=(0.083, 0.083, 0.001))
        goals = [StateGoal(UPRIGHT, 0.0, q_weight=1000.0, v_weight=200.0),
                 StateGoal(UPRIGHT, 0.0, q_weight=0.04, v_weight=0.02, when="always")]
        first = np.outer(3.0 * np.sin(2.0 * STEP * np.arange(STEPS)), [0.0, 1.0])
        self.planned = bk.plan_motion(m, goals, steps=STEPS, step=STEP, q=[0.0, 0.0], effort=2e-2, limits=LIMIT,
                                      tau=first, iterations=150, tolerance=1e-4)
        self.regulator = bk.lqr(m, UPRIGHT, R=0.1)
        self.q, self.v = np.array([OFF, 0.0]), np.zeros(2)
