"""A fall: a figure without muscles is pushed, falls to the floor and lies still.

Joints have their natural range and some damping. Contact is resolved by time-stepping; it only
dissipates energy, so that the energy decreases with every step, and the floor forces equal the weight in the end.
"""

from __future__ import annotations

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.contact_scene import ContactScene

FRICTION = 0.8
DAMPING = 4.0               # of every joint [N m s/rad]
PUSH = (-50.0, 30.0, 0.0)   # on the chest [N s]


class Fall(ContactScene):
    title = "A fall"
    seconds, pictured = 3.0, 1.4
    step = 2.5e-4           # limits of the ankles are stiff: the feet are light
    frames = 9
    figures = (16, 34)      # toes are too light for such steps

    def __init__(self, dof: int = 34):
        m = self.mechanism = bk.models.human(dof=dof, limits=True, damping=DAMPING)
        m.add_plane(friction=FRICTION)
        self.q, self.v = m.neutral(), np.zeros(m.nv)

    def watch(self, sim):
        """Pushed at once."""
        sim.impulse("chest", PUSH, point=(0, 0, 0.2))

    def subtitle(self, r):
        return (f"human figure with {r['dof']} degrees of freedom, no muscles  ·  {r['energy_lost']:.0f} J lost  ·  in "
                f"the end the floor carries {r['force_end'][2]:.1f} N, the weight is {r['weight']:.1f} N")
