"""A tucked somersault: a human figure in free flight, moved by muscles that follow a schedule of poses.

Angular momentum about the centre of mass is conserved in flight. A tuck reduces the inertia to a third, so the figure
turns three times faster: muscles do positive work in the tuck, and negative work when the figure opens.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

import bunraku as bk
from bunraku.cli.scenes.muscles import posed, schedule
from bunraku.cli.scenes.scene import Scene, about_energy

# Turn of each joint in a pose, as a rotation vector [rad]: x forward, y left, z up; +y bends forward. Joints that
# are not named stay straight; left and right do the same.
STRETCHED = {"shoulder": (0, -3.0, 0)}
TUCKED = {"waist": (0, 0.7, 0), "neck": (0, 0.5, 0), "shoulder": (0, -0.1, 0), "elbow": (0, -1.4, 0),
          "hip": (0, -2.15, 0), "knee": (0, 2.35, 0), "ankle": (0, 0.5, 0)}
LANDING = {"shoulder": (0, -1.6, 0), "waist": (0, 0.15, 0), "hip": (0, -0.4, 0), "knee": (0, 0.5, 0),
           "ankle": (0, -0.15, 0)}
SCHEDULE = ((0.06, STRETCHED), (0.30, TUCKED), (0.58, TUCKED), (0.88, LANDING))  # poses and when they are reached [s]

SPEED = (0.8, 0.0, 4.6)  # of the pelvis at take-off, forward and up [m/s]
SPIN = {16: 3.2, 34: 2.68, 48: 2.72}  # forward [rad/s], for each figure so that the feet come down first
MUSCLE = 32.0            # stiffness of the muscles, as the frequency at which a limb would swing by them [rad/s]


class Somersault(Scene):
    title = "Tucked somersault"
    seconds = 0.96
    rtol = 1e-7
    frames = 9

    def __init__(self, dof: int = 34):
        m = self.mechanism = bk.models.human(dof=dof)
        self.q, self.v = posed(m, STRETCHED), np.zeros(m.nv)
        self.v[m.v_slice("root")] = (*SPEED, 0.0, SPIN[dof], 0.0)
        self.params = schedule(m, STRETCHED, SCHEDULE, MUSCLE, felt_in=TUCKED)

    def report(self, sim):
        t, q, v = sim.trajectory.t, sim.trajectory.q, sim.trajectory.v
        moving = bk.kinematics(self.mechanism, q, v)
        momentum, spin = moving.momentum, moving.velocities["pelvis"][:, 4]
        fall = momentum[:, :3] - momentum[0, :3] - moving.mass * np.outer(t - t[0], self.mechanism.gravity)
        angular = np.linalg.norm(momentum[0, 3:])
        return super().report(sim) | {
            "turns": float(CubicSpline(t, spin).integrate(t[0], t[-1]) / (2 * np.pi)),
            "height": float(moving.com[:, 2].max()), "spin_open": float(spin[0]), "spin_tucked": float(spin.max()),
            "angular_momentum": float(angular),
            "angular_momentum_drift": float(np.abs(momentum[:, 3:] - momentum[0, 3:]).max() / angular),
            "linear_momentum_drift": float(np.abs(fall).max() / np.abs(momentum[0, :3]).max()),
        }

    def rows(self, r):
        return [
            ("figure", f"{r['links']} links, {r['dof']} degrees of freedom, {r['mass']:.1f} kg"),
            ("flight", f"{r['seconds']:.2f} s, {r['turns']:.2f} turns forward, centre of mass up to "
                       f"{r['height']:.2f} m"),
            ("turning", f"{r['spin_open']:.1f} rad/s stretched, {r['spin_tucked']:.1f} rad/s tucked"),
            *about_energy(r),
            ("momentum", f"angular {r['angular_momentum']:.2f} kg m^2/s, drift {r['angular_momentum_drift']:.1e}; "
                         f"linear drift {r['linear_momentum_drift']:.1e} (relative)"),
        ]

    def subtitle(self, r):
        return (f"human figure with {r['dof']} degrees of freedom  ·  {r['spin_open']:.1f} rad/s stretched, "
                f"{r['spin_tucked']:.1f} rad/s tucked  ·  angular momentum {r['angular_momentum']:.1f} "
                "kg m²/s throughout")
