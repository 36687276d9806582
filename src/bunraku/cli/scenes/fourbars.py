"""N four-bars: a row of windows falls through the position in which all bars lie flat [IFToMM benchmark A02].

It has one degree of freedom but gains one for every window at the instant when all lie flat: there the loop constraints
lose rank, and the solver has to pass without changing to another branch, which the energy would show.
"""

from __future__ import annotations

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.scene import Scene

WINDOWS = 5
RATE = 1.0  # initial angular velocity of the posts, forward [rad/s]


class FourBars(Scene):
    title = f"{WINDOWS} four-bars in a row"
    seconds = 2.6
    solver = "gear"  # multistep methods pass through singular configurations
    frames = 4
    figures = ()

    def __init__(self):
        m = self.mechanism = bk.models.n_four_bar(WINDOWS)
        q, v = m.neutral(), np.full(m.nv, RATE)
        v[:WINDOWS + 1] = -RATE
        self.q, self.v = bk.project(m, q, v)

    def subtitle(self, r):
        return (f"{r['links']} links, one degree of freedom, {WINDOWS + 1} when all lie flat  ·  energy kept to "
                f"{r['energy_error']:.0e} of the largest kinetic energy")
