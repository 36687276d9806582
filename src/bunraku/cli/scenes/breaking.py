"""A chain breaks: a heavy ball swings on it, and the force in one of its joints becomes too large.

The joint is one of the tree: from then on the lower part flies and the upper one whips back. There is no actuation or
damping: energy is conserved, also at the instant of the break.
"""

from __future__ import annotations

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.scene import Scene

LINKS, LENGTH, MASS = 12, 0.15, 0.4  # of the chain, each [m, kg]
BALL, RADIUS = 6.0, 0.11             # [kg, m]
WEAK, BEARS = "link6", 210.0         # the joint that breaks, and the force at which it does [N]
START = 1.5                          # the chain is drawn aside, straight [rad]


class Breaking(Scene):
    title = "A chain breaks"
    caption = f"a joint in the middle bears {BEARS:.0f} N"
    seconds = 1.0
    frames = 7
    figures = ()

    def __init__(self):
        m = self.mechanism = bk.models.chain(LINKS, length=LENGTH, mass=MASS)
        m.add_link("ball", f"link{LINKS - 1}", bk.Fixed(), position=(0, 0, -LENGTH - RADIUS), mass=BALL,
                   inertia=np.full(3, 0.4 * BALL * RADIUS**2))
        self.q, self.v = m.neutral(), np.zeros(m.nv)
        self.q[0] = START

    def watch(self, sim):
        sim.when(bk.force_above(WEAK, BEARS), lambda sim: sim.cut(WEAK), name="the chain breaks")

    def subtitle(self, r):
        return f"{self.caption}, {BEARS / r['weight']:.1f} times the weight of ball and chain"
