"""A human figure that holds a bar with both hands: initial state of the high-bar scenes."""

from __future__ import annotations

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.muscles import posed
from bunraku.models.solid_inertias import box

PALM = (0.0, 0.0, -0.09)   # what holds, in the hand's frame [m]
BAR = box(9.0, (0.028, 1.6, 0.028))  # [kg, m]


def on_bar(dof: int, pose: dict, spin: float = 0.0) -> tuple[bk.Mechanism, np.ndarray, np.ndarray]:
    """A mechanism and its state: a figure in a pose ("root" says how it is turned), both hands on a bar at the origin,
    turning about it at `spin` [rad/s].

    [YN99, sec. 6] has a rotational joint at each hand. Two of them on one bar would constrain the distance between the
    hands twice, so the right hand may also slide along the bar: the mobility is the same, and the forces are unique.
    """
    m = bk.models.human(dof=dof)
    m.add_link("bar", joint=bk.Fixed(), **BAR._asdict())
    y = float(bk.poses(m, m.neutral())["left_upper_arm"][1][1])  # shoulder width
    m.connect("bar", "left_hand", bk.Revolute((0, 1, 0)), name="left_grip", position_a=(0, y, 0), position_b=PALM)
    m.connect("bar", "right_hand", bk.Cylindrical((0, 1, 0)), name="right_grip", position_a=(0, -y, 0),
              position_b=PALM)
    q, v = posed(m, pose), np.zeros(m.nv)
    root = m.q_slice("root").start
    place = bk.poses(m, q)
    rotation, hand = place["left_hand"]
    q[root:root + 3] -= (hand + rotation @ PALM) - (0, y, 0)
    # A turn about the bar as a whole: every link moves as if fixed to it
    rotation, pelvis = bk.poses(m, q)["pelvis"]
    turn = np.array([0.0, spin, 0.0])
    v[m.v_slice("root")] = *(rotation.T @ np.cross(turn, pelvis)), *(rotation.T @ turn)
    return m, *bk.project(m, q, v)
