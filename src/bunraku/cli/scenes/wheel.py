"""A rimless wheel [McGeer 1990]: spokes without a rim, which rolls down a slope from spoke to spoke.

Between impacts it is an inverted pendulum, and no energy is lost. When the next spoke strikes, the angular momentum
about its foot is conserved: with n spokes of length l, 2 alpha = 2 pi / n between them, mass m and moment of inertia J,

    omega+ = eta omega-,    eta = (J + m l^2 cos 2 alpha) / (J + m l^2),

cos 2 alpha if all mass is in the hub. On a slope gamma every step gains 2 m g l sin(alpha) sin(gamma), so that the
speed before an impact tends to  omega^2 = 4 m g l sin(alpha) sin(gamma) / ((J + m l^2) (1 - eta^2)).

The slope is the plane z = 0, and gravity is tilted. Contact is resolved by events.
"""

from __future__ import annotations

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.contact_scene import ContactScene

SPOKES, LENGTH, WIDTH = 8, 0.5, 0.16          # [m] WIDTH: every spoke stands on two points
HUB, RADIUS, SPOKE = 4.0, 0.1, 0.2            # mass and radius of the hub, mass of a spoke [kg, m]
SLOPE = 0.12                                  # [rad]
START = 1.2                                   # speed at the start, on an upright spoke [rad/s]
FRICTION = 0.9
ALPHA = np.pi / SPOKES


class Wheel(ContactScene):
    title = "A rimless wheel"
    seconds = 6.0
    solver, step, rtol = "gear", None, 1e-12
    frames, elevation = 9, 0.0
    figures = ()

    def __init__(self):
        m = self.mechanism = bk.Mechanism((9.81 * np.sin(SLOPE), 0.0, -9.81 * np.cos(SLOPE)), name="rimless wheel")
        m.add_link("hub", joint=bk.Free(), mass=HUB, inertia=np.full(3, 0.4 * HUB * RADIUS**2))
        across = SPOKE * LENGTH**2 / 12.0
        for k in range(SPOKES):
            c, s = np.cos(2 * ALPHA * k), np.sin(2 * ALPHA * k)
            m.add_link(f"spoke{k}", "hub", bk.Fixed(), rotation=((c, 0, s), (0, 1, 0), (-s, 0, c)), mass=SPOKE,
                       com=(0, 0, -LENGTH / 2), inertia=(across, across, 0.02 * across))
            m.add_shape(f"spoke{k}", bk.Points(np.array([(0, -WIDTH / 2, -LENGTH), (0, WIDTH / 2, -LENGTH)])),
                        friction=FRICTION)
        m.add_plane(friction=FRICTION)
        self.q, self.v = m.neutral(), np.zeros(m.nv)
        self.q[2] = LENGTH
        self.v[:] = START * LENGTH, 0.0, 0.0, 0.0, START, 0.0
        inertia = 0.4 * HUB * RADIUS**2 + SPOKES * SPOKE * LENGTH**2 / 3.0
        about_foot = inertia + m.mass * LENGTH**2
        self.ratio = (inertia + m.mass * LENGTH**2 * np.cos(2 * ALPHA)) / about_foot
        self.gain = 4.0 * m.mass * 9.81 * LENGTH * np.sin(ALPHA) * np.sin(SLOPE) / about_foot  # of omega^2, every step
        self.steady = float(np.sqrt(self.gain / (1.0 - self.ratio**2)))

    def simulation(self, **settings):
        return super().simulation(**{"atol": 1e-14, **settings})

    def report(self, sim):
        segments = sim.trajectory.segments
        before = np.array([s.v[-1, 4] for s in segments[:-1]])
        after = np.array([s.v[0, 4] for s in segments[1:]])
        kept, hits = [sum(s.mechanism.energy(s.q, s.v)) for s in segments], len(before)
        expected = [before[0]] if hits else []
        while len(expected) < hits:
            expected.append(np.sqrt((self.ratio * expected[-1]) ** 2 + self.gain))
        return super().report(sim) | {
            "impacts": [float(s.t[-1]) for s in segments[:-1]], "ratio": self.ratio, "steady": self.steady,
            "ratio_error": float(np.abs(after / before - self.ratio).max(initial=0.0)),
            "speed_error": float(np.abs(before / np.array(expected) - 1.0).max(initial=0.0)),
            "speed_end": float(before[-1]) if hits else float(sim.v[4]),
            "energy_drift": float(max(np.ptp(e) for e in kept)),
        }

    def about_motion(self, r):
        return [
            ("impacts", f"{len(r['impacts'])}; each leaves {r['ratio']:.6f} of the speed, off the closed form by at "
                        f"most {r['ratio_error']:.1e}"),
            ("speed", f"{r['speed_end']:.6f} rad/s before the last impact; it tends to {r['steady']:.6f} rad/s; off "
                      f"the closed form by at most {r['speed_error']:.1e} (relative)"),
            ("between", f"impacts energy is kept to {r['energy_drift']:.1e} J"),
        ]

    def subtitle(self, r):
        return (f"{np.degrees(SLOPE):.1f} degrees of slope, drawn level  ·  every impact leaves {r['ratio']:.3f} of "
                f"the speed, which tends to {r['steady']:.3f} rad/s")

    def panels(self, trajectory, report):
        t = trajectory.t
        return {"speed [rad/s]": {"of the wheel": (t, trajectory.v[:, 4]),
                                  "closed form": (t[[0, -1]], np.full(2, report["steady"]))}}

    def picture(self, trajectory, report, path):
        return super().picture(bk.Trajectory(trajectory.segments), report, path)  # too many events to name each
