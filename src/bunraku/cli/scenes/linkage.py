"""A five-bar linkage swings up: two arms with joined tips, whose motors at the shoulders are too weak to lift them.

A closed chain with two freedoms: the plan changes it only in ways that keep the loop closed, and the regulator at its
end is that of the two freedoms.
"""

from __future__ import annotations

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.planned_scene import PlannedScene
from bunraku.optimal_control import PointGoal, StateGoal

STEP, STEPS = 0.01, 160
LIMIT, MOTOR = 4.0, 6.0              # of the plan and of each motor [N m]
UPPER, FORE, APART = 0.4, 0.6, 0.6   # lengths of links, distance of the shoulders [m]
SHOULDERS = 1.3                      # their height [m]
TIP = (0.0, 0.0, -FORE)              # in the frame of a forearm
ITERATIONS = 25
ASIDE = 0.05                         # of the tip at the start of the simulation [rad]


class Linkage(PlannedScene):
    title = "A five-bar linkage swings up"
    caption = "two motors, at the shoulders"
    seconds, pictured = 3.0, 2.4
    step, motor = STEP, MOTOR
    motors = {"left": "left motor", "right": "right motor"}  # noqa: RUF012

    def __init__(self):
        m = self.mechanism = bk.Mechanism(name="five-bar")
        for side, x in (("left", -APART / 2), ("right", APART / 2)):
            m.add_link(side, joint=bk.Revolute((0, 1, 0), damping=0.01), position=(x, 0, SHOULDERS), mass=0.6,
                       com=(0, 0, -UPPER / 2), inertia=(0.008, 0.008, 0.001))
            m.add_link(f"{side}_fore", side, bk.Revolute((0, 1, 0), damping=0.01), actuated=False,
                       position=(0, 0, -UPPER), mass=0.6, com=(0, 0, -FORE / 2), inertia=(0.02, 0.02, 0.001))
        m.connect("right_fore", "left_fore", bk.Revolute((0, 1, 0)), "tip", position_a=TIP, position_b=TIP,
                  actuated=False)
        hangs = bk.project(m, np.array([-0.095, -0.357, 0.095, 0.357]))
        R, p = bk.poses(m, hangs)["left_fore"]
        low = (p + R @ TIP)[2]
        top = np.array([0.0, 0.0, 2 * SHOULDERS - low - 0.02])
        goals = [PointGoal("left_fore", top, point=TIP, weight=500.0), StateGoal(v=0.0, v_weight=5.0),
                 PointGoal("left_fore", top, point=TIP, weight=0.5, when="always")]
        push = 0.5 * LIMIT * np.sin(4.0 * STEP * np.arange(STEPS))
        self.planned = bk.plan_motion(m, goals, steps=STEPS, step=STEP, q=hangs, effort=1e-2, limits=LIMIT,
                                      tau=np.outer(push, [1.0, 0.0, 1.0, 0.0]), iterations=ITERATIONS, tolerance=1e-3)
        self.regulator = bk.lqr(m, bk.project(m, self.planned.q[-1]), R=0.1)
        self.q, self.v = bk.project(m, hangs + np.array([ASIDE, 0.0, ASIDE, 0.0]), np.zeros(m.nv))
