"""Swing [YN99, sec. 6]: what happens if a swing breaks while you are sitting on it.

The plate hangs on two rods and is kept level by a stay. The stay breaks, the plate tips, the thighs slide off it, and
the figure is left hanging by the hands.
"""

from __future__ import annotations

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.muscles import ARMS, pose_of, posed, schedule
from bunraku.cli.scenes.scene import Scene
from bunraku.models.solid_inertias import box
from bunraku.simulation.closing import capture

ROD, APART = 1.9, 0.30          # the rods: length, and half the distance between them [m]
DEPTH, WIDTH = 0.40, 0.52       # of the plate [m]
STAY = 0.40                     # the stay leaves the rod so far above the plate [m]
SEAT = -0.12                    # where the hips are on the plate [m]
THIGH, MIDDLE = 0.085, 0.21     # of a thigh: above the plate; from the hip to where it is carried [m]
HOLD = 1.30                     # where the hands hold the rods, from the beam [m]
PALM = (0.0, 0.0, -0.09)
FORWARD = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])  # axes of the plate, in a thigh that lies on it

BACK, LEAN = 0.7, -0.5         # how far the swing is drawn back, how far the trunk leans back [rad]
SEATED = {"axle": (0, BACK, 0), "stay": (0, -np.arctan2(DEPTH / 2, STAY), 0), "root": (0, BACK + LEAN, 0),
          "hip": (0, -np.pi / 2 - LEAN, 0), "knee": (0, 1.2, 0), "shoulder": (0, -0.5, 0), "elbow": (0, -1.4, 0)}
STRETCHED = {"left_knee": (0, 0.3, 0), "right_knee": (0, 0.3, 0)}  # legs forward, to gain height
HANGING = {"shoulder": (0, -2.6, 0), "elbow": (0, -0.3, 0), "hip": (0, -0.4, 0), "knee": (0, 0.5, 0)}
MUSCLE = 24.0                   # [rad/s]
BREAKS = 350.0                  # what the stay can bear [N]


class Swing(Scene):
    title = "The swing breaks"
    caption = f"the stay can bear {BREAKS:.0f} N; then the plate tips and the thighs slide off"
    seconds = 1.8
    grips = ("left_grip", "right_grip", "stay_end")
    figures = (16,)  # others would need another grip to begin with

    def __init__(self, dof: int = 16):
        m = self.mechanism = swing(bk.models.human(dof=dof))
        q = posed(m, SEATED)
        carried, (x, z) = (0, 0, -MIDDLE), (SEAT, THIGH - ROD)  # the hips, from the axle
        q[m.q_slice("root")][:3] = np.cos(BACK) * x + np.sin(BACK) * z, 0, np.cos(BACK) * z - np.sin(BACK) * x
        q[m.q_slice("root")][:3] -= m.links[0].position
        for side, joint in (("left", bk.Prismatic((1, 0, 0))),
                            ("right", bk.Compound(bk.Prismatic((1, 0, 0)), bk.Prismatic((0, 1, 0))))):
            # Hips keep the thighs apart already: one may move sideways too, so that nothing is held twice
            (position, rotation), _ = capture(m, q, "plate", f"{side}_thigh", (None, None), (carried, FORWARD))
            m.connect("plate", f"{side}_thigh", joint, name=f"{side}_slide", position_a=position, rotation_a=rotation,
                      position_b=carried, rotation_b=FORWARD)
            m.connect(f"{side}_rod", f"{side}_hand", bk.Spherical(), name=f"{side}_grip", position_a=(0, 0, -HOLD),
                      position_b=PALM)
        self.q, self.v = bk.project(m, q, np.zeros(m.nv))
        seated = pose_of(m, self.q)
        poses = ((0.3, seated), (0.7, seated | STRETCHED), (0.75, seated | STRETCHED), (1.2, HANGING))
        self.params = schedule(m, seated, poses, MUSCLE, weakest=ARMS)

    def watch(self, sim):
        sim.when(bk.force_above("stay_end", BREAKS), lambda sim: sim.cut("stay_end"), name="the stay breaks")
        for side in ("left", "right"):
            sim.when(off_the_plate(sim, side), lambda sim, side=side: sim.cut(f"{side}_slide"),
                     name=f"the {side} thigh leaves the plate")


def off_the_plate(sim: bk.Simulation, side: str):
    """Condition: the middle of a thigh has slid past the front edge of the plate."""
    name, edge = f"{side}_slide", DEPTH / 2 - SEAT - MIDDLE
    return lambda t, q, v: bk.coordinates(sim.mechanism, name, q)[0] - edge


def swing(m: bk.Mechanism) -> bk.Mechanism:
    """A mechanism with a swing added: an axle at the origin, two rods, a plate between their ends, a stay."""
    length = float(np.hypot(DEPTH / 2, STAY))
    hanging = lambda mass, long: box(mass, (0.025, 0.025, long), (0, 0, -long / 2))  # noqa: E731
    m.add_link("axle", joint=bk.Revolute((0, 1, 0)), **box(2.0, (0.03, 2 * APART, 0.03))._asdict())
    for side, y in (("left", APART), ("right", -APART)):
        m.add_link(f"{side}_rod", "axle", bk.Fixed(), position=(0, y, 0), **hanging(3.0, ROD)._asdict())
    m.add_link("plate", "left_rod", bk.Revolute((0, 1, 0)), position=(0, 0, -ROD),
               **box(3.0, (DEPTH, WIDTH, 0.03), (0, -APART, 0))._asdict())
    m.add_link("stay", "right_rod", bk.Spherical(), position=(0, 0, STAY - ROD), **hanging(0.3, length)._asdict())
    m.connect("plate", "stay", bk.Spherical(), name="stay_end", position_a=(DEPTH / 2, -2 * APART, 0),
              position_b=(0, 0, -length))
    return m
