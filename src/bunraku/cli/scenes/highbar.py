"""High bar [YN99, sec. 6]: a figure swings on a bar, loses the hold of the right hand and swings on by the left."""

from __future__ import annotations

import bunraku as bk
from bunraku.cli.scenes.bar import on_bar
from bunraku.cli.scenes.muscles import ARMS, schedule
from bunraku.cli.scenes.scene import Scene

# Turn of each joint in a pose, as a rotation vector [rad]: x forward, y left, z up; +y bends forward
STRETCHED = {"root": (0, 2.0, 0), "shoulder": (0, -3.05, 0)}
ARCHED = {"shoulder": (0, -3.15, 0), "hip": (0, 0.3, 0), "knee": (0, 0.3, 0)}
HOLLOW = {"shoulder": (0, -2.75, 0), "hip": (0, -0.6, 0)}
ONE_HAND = {**HOLLOW, "right_shoulder": (0.9, -0.6, 0), "hip": (0, -0.3, 0), "knee": (0, 0.4, 0)}
SCHEDULE = ((0.45, ARCHED), (0.62, ARCHED), (0.95, HOLLOW), (1.5, ONE_HAND))
MUSCLE = 16.0         # [rad/s]
HOLDS = 1050.0        # what the right hand can hold [N]


class HighBar(Scene):
    title = "High bar"
    caption = f"the right hand slips when it has to hold {HOLDS:.0f} N"
    seconds = 2.0
    grips = ("left_grip", "right_grip")

    def __init__(self, dof: int = 16):
        self.mechanism, self.q, self.v = on_bar(dof, STRETCHED)
        self.params = schedule(self.mechanism, STRETCHED, SCHEDULE, MUSCLE, weakest=ARMS)

    def watch(self, sim):
        sim.when(bk.force_above("right_grip", HOLDS), lambda sim: sim.cut("right_grip"), name="the right hand slips")
