"""Hand in hand: two figures hold each other by both hands, weightless, and turn about the middle between them.

They pull together and turn faster, stretch their arms again, let go with one hand, then with the other, and part.
No external force acts on them: momentum and angular momentum are conserved through every change of structure.
"""

from __future__ import annotations

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.bar import PALM
from bunraku.cli.scenes.muscles import posed, schedule
from bunraku.cli.scenes.scene import Scene

OTHER = "other_"  # before the names of the second figure's links and joints
PRONE = (0, np.pi / 2, 0), tuple(np.pi / np.sqrt(2) * np.array([-1, 0, 1]))  # roots: heads towards each other
APART = {"shoulder": (0, -2.95, 0), "hip": (0, 0.1, 0), "knee": (0, 0.3, 0)}
CLOSE = {"shoulder": (0, -2.3, 0), "elbow": (0, -1.2, 0), "hip": (0, -1.9, 0), "knee": (0, 2.1, 0),
         "waist": (0, 0.3, 0)}
OPEN = {"shoulder": (0, -1.6, 0), "hip": (0, 0.1, 0), "knee": (0, 0.3, 0)}
SCHEDULE = ((0.3, APART), (0.9, CLOSE), (1.3, CLOSE), (1.8, APART), (2.0, APART), (2.5, OPEN))
SPIN = 2.2              # about the vertical [rad/s]
MUSCLE = 16.0           # [rad/s]
ARMS = {"shoulder": 1.2, "elbow": 1.2}  # they move the other figure too [kg m^2]
RIGHT, LEFT = 2.0, 2.12  # each hand of the first figure lets go at [s]


class Hands(Scene):
    title = "Hand in hand"
    seconds = 2.6
    frames, elevation = 7, 50.0
    grips = ("left_grip", "right_grip")

    def __init__(self, dof: int = 34):
        m = self.mechanism = bk.models.human(dof=dof)
        m.gravity = (0, 0, 0)
        for link in bk.models.human(dof=dof).links:
            parent = "ground" if link.parent < 0 else OTHER + m.links[link.parent].name
            m.add_link(OTHER + link.name, parent, link.joint, OTHER + link.joint_name, position=link.position,
                       rotation=link.rotation, mass=link.mass, com=link.com, inertia=link.inertia)
        for side, their in (("left", "right"), ("right", "left")):
            m.connect(f"{side}_hand", f"{OTHER}{their}_hand", bk.Spherical(), name=f"{side}_grip", position_a=PALM,
                      position_b=PALM)
        q, v = posed(m, APART | {"root": PRONE[0], f"{OTHER}root": PRONE[1]}), np.zeros(m.nv)
        place = bk.poses(m, q)
        reach = [place[link][1] + place[link][0] @ PALM for link in ("left_hand", f"{OTHER}right_hand")]
        q[m.q_slice(f"{OTHER}root")][:3] += reach[0] - reach[1]
        place, turn = bk.poses(m, q), np.array([0.0, 0.0, SPIN])
        middle = 0.5 * (place["pelvis"][1] + place[f"{OTHER}pelvis"][1])
        for root, pelvis in (("root", "pelvis"), (f"{OTHER}root", f"{OTHER}pelvis")):
            rotation, position = place[pelvis]
            v[m.v_slice(root)] = *(rotation.T @ np.cross(turn, position - middle)), *(rotation.T @ turn)
        self.q, self.v = bk.project(m, q, v)
        self.params = schedule(m, APART, SCHEDULE, MUSCLE, weakest=ARMS)

    def watch(self, sim):
        sim.when(lambda t, q, v: t - RIGHT, lambda sim: sim.cut("right_grip"), name="one hand lets go")
        sim.when(lambda t, q, v: t - LEFT, lambda sim: sim.cut("left_grip"), name="the other lets go")

    def report(self, sim):
        momenta, spins = [], []
        for s in sim.trajectory.segments:
            moving = bk.kinematics(s.mechanism, s.q, s.v)
            momenta.append(moving.momentum)
            apart, pace = (x[f"{OTHER}pelvis"] - x["pelvis"] for x in (
                {name: position for name, (_, position) in moving.poses.items()},
                {name: velocity[:, :3] for name, velocity in moving.velocities.items()}))
            spins.append(np.cross(apart, pace)[:, 2] / (apart**2).sum(axis=1))
        momentum, spin = np.concatenate(momenta), np.concatenate(spins)
        size = np.linalg.norm(momentum[0, 3:])
        return super().report(sim) | {
            "spin_start": float(spin[0]), "spin_close": float(spin.max()), "angular_momentum": float(size),
            "angular_momentum_drift": float(np.abs(momentum[:, 3:] - momentum[0, 3:]).max() / size)}

    def rows(self, r):
        return [*super().rows(r),
                ("turning", f"{r['spin_start']:.1f} rad/s at the start, up to {r['spin_close']:.1f} rad/s"),
                ("momentum", f"angular {r['angular_momentum']:.2f} kg m^2/s, drift {r['angular_momentum_drift']:.1e} "
                             "(relative)")]

    def subtitle(self, r):
        return (f"two figures with {r['dof'] // 2} degrees of freedom each, weightless  ·  {r['spin_start']:.1f} rad/s "
                f"at arm's length, {r['spin_close']:.1f} rad/s pulled together")
