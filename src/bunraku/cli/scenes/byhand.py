"""A mobile by hand [J]: its suspension is moved in six directions, one after the other, and everything below swings.

The suspension is a link on a Free joint whose motion is prescribed. The power of the hand is that of the force in
that joint; its integral must equal the energy of the mobile, since there is no damping.
"""

from __future__ import annotations

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.scene import Scene
from bunraku.simulation.watching import prescribed_at

REACH, TURN = 0.1, 0.5  # of each move [m, rad]
STATES = 1200            # at which the power of the hand is computed


def tour(t: float) -> np.ndarray:
    """Up, to the side, away, then turns about the same axes: a second each, there and back."""
    bump = [np.sin(np.pi * (t - k)) ** 4 if k < t < k + 1 else 0.0 for k in range(6)]
    half = 0.5 * TURN * np.array([bump[4], bump[5], bump[3]])
    angle = float(np.linalg.norm(half))
    return np.array([REACH * bump[1], REACH * bump[2], REACH * bump[0], np.cos(angle),
                     *(half * (np.sin(angle) / angle if angle else 1.0))])


class ByHand(Scene):
    title = "A mobile by hand"
    caption = "its suspension goes up, aside, away, and turns about each axis"
    seconds = 6.0
    solver, rtol = "gear", 1e-8
    frames = 7
    elevation = 14.0
    figures = ()

    def __init__(self):
        self.mechanism = bk.models.mobile(0.05, 0.03, 0.05, 0.16, 2, 2, 6, 0.5, 60.0, suspension=True)
        self.q, self.v = self.mechanism.neutral(), np.zeros(self.mechanism.nv)

    def simulation(self, **settings):
        return super().simulation(**{"prescribed": {"suspension": tour}, **settings})

    def live(self, **settings):
        """The user moves and turns the suspension by a gizmo, a gamepad or a 3-D mouse [J, sec. IV]."""
        hand = bk.Guide(self.mechanism.neutral()[self.mechanism.q_slice("suspension")])
        return self.simulation(prescribed={"suspension": hand}, rtol=1e-6, record=60.0, **settings)

    def report(self, sim):
        """With the work of the hand, from the force in the suspension."""
        m = self.mechanism
        report = super().report(sim)
        if not prescribed_at(sim, sim.t, sim.q, sim.v):
            return report
        times = np.linspace(0.0, sim.t, STATES + 1)
        states = sim.trajectory.sample(times)
        q, v = (np.array([state[k] for state in states]) for k in (1, 2))
        given = [prescribed_at(sim, t, *state)["suspension"] for t, *state in zip(times, q, v, strict=True)]
        force = bk.inverse_dynamics(m, q, v, bk.forward_dynamics(m, q, v, prescribed={"suspension": np.array(given)}))
        power = np.einsum("ij,ij->i", force[:, :6], v[:, :6])
        work = float(times[1] * (power[:-1] + power[1:]).sum() / 2.0)
        report["work_of_hand"] = work
        kinetic = sim.trajectory.energy()[1].max()
        report["energy_error"] = float(abs(report["energy_end"] - report["energy_start"] - work) / kinetic)
        return report

    def rows(self, r):
        kept = [row for row in super().rows(r) if row[0] not in ("energy", "conservation")]
        gained = r["energy_end"] - r["energy_start"]
        return [*kept, ("the hand", f"gave {r['work_of_hand']:.3f} J; the mobile has {gained:.3f} J more: off by "
                                    f"{r['energy_error']:.1e} of the largest kinetic energy")]

    def subtitle(self, r):
        return f"{self.caption}  ·  the hand gives {r['work_of_hand']:.2f} J"
