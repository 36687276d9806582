"""Release [YN02, fig. 7]: a figure holds a bar with both hands, lets go with the right, then with the left, and flies.

The figure shows that forward dynamics costs a little more with every hand that holds: so it is measured here too.
"""

from __future__ import annotations

import time

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.bar import on_bar
from bunraku.cli.scenes.muscles import ARMS, schedule
from bunraku.cli.scenes.scene import Scene

STRETCHED = {"root": (0, 1.7, 0), "shoulder": (0, -3.05, 0)}
ARCHED = {"shoulder": (0, -3.1, 0), "hip": (0, 0.25, 0), "knee": (0, 0.3, 0)}
HOLLOW = {"shoulder": (0, -2.6, 0), "hip": (0, -0.7, 0), "waist": (0, 0.2, 0)}
TUCKED = {"shoulder": (0, -0.6, 0), "elbow": (0, -1.3, 0), "hip": (0, -2.0, 0), "knee": (0, 2.2, 0),
          "waist": (0, 0.5, 0), "neck": (0, 0.4, 0)}
OPEN = {"shoulder": (0, -1.4, 0), "hip": (0, -0.4, 0), "knee": (0, 0.5, 0)}
SCHEDULE = ((0.4, ARCHED), (0.6, ARCHED), (0.85, HOLLOW), (1.1, TUCKED), (1.25, TUCKED), (1.5, OPEN))
MUSCLE = 18.0    # [rad/s]
RIGHT, LEFT = 0.3, 0.7  # each hand lets go when the pelvis is so far before the bar [m]


class Release(Scene):
    title = "Two hands, one hand, none"
    seconds = 1.5
    frames = 6
    grips = ("left_grip", "right_grip")

    def __init__(self, dof: int = 34):
        self.mechanism, self.q, self.v = on_bar(dof, STRETCHED)
        self.params = schedule(self.mechanism, STRETCHED, SCHEDULE, MUSCLE, weakest=ARMS)

    def watch(self, sim):
        x = sim.mechanism.q_slice("root").start
        sim.when(lambda t, q, v: q[x] - RIGHT, lambda sim: sim.cut("right_grip"), name="the right hand lets go")
        sim.when(lambda t, q, v: q[x] - LEFT, lambda sim: sim.cut("left_grip"), name="the left hand lets go")

    def report(self, sim):
        cost = {len(s.mechanism.connections): microseconds(s) for s in sim.trajectory.segments}
        return super().report(sim) | {"microseconds_per_evaluation": cost}

    def rows(self, r):
        cost = ", ".join(f"{time:.1f} µs with {hands} hand{'s' * (hands != 1)}"
                         for hands, time in r["microseconds_per_evaluation"].items())
        return [*super().rows(r), ("evaluation", cost)]

    def subtitle(self, r):
        cost = " / ".join(f"{time:.1f}" for time in r["microseconds_per_evaluation"].values())
        return (f"human figure with {r['dof']} degrees of freedom  ·  forward dynamics takes {cost} µs with 2 / 1 / 0 "
                "hands on the bar")


def microseconds(segment, states: int = 40, rounds: int = 7) -> float:
    """Time of one forward dynamics in a segment, called from Python: the best of some rounds over its states."""
    chosen = np.linspace(0, len(segment.t) - 1, states).astype(int)
    best = np.inf
    for _ in range(rounds):
        begin = time.perf_counter()
        for k in chosen:
            bk.forward_dynamics(segment.mechanism, segment.q[k], segment.v[k])
        best = min(best, time.perf_counter() - begin)
    return 1e6 * best / states
