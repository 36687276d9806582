"""A figure hangs from a bar by both hands, lets go with the right, then with the left: structure as state.

Run: python examples/monkey_bars.py
"""

import numpy as np

import bunraku as bk

figure = bk.models.human(dof=16)
sim = bk.Simulation(figure, rtol=1e-7)
hands = ("left_hand", "right_hand")

for hand in hands:  # without frames the hands are held where they are now
    sim.connect("ground", hand, bk.Spherical(damping=0.5), name=f"{hand} grip")
sim.run(until=0.4)

r = bk.dynamics(sim.mechanism, sim.q, sim.v)
weight = 9.81 * figure.mass
for hand in hands:
    print(f"{hand}: {np.linalg.norm(r.forces[f'{hand} grip'][:3]) / weight:.2f} of the weight")
print(f"{r.report.rank} of {r.report.constraints} constraints independent, condition {r.report.condition:.0f}")

for hand in reversed(hands):
    sim.cut(f"{hand} grip")  # velocities stay as they are; the rest goes on
    sim.run(until=sim.t + 0.4)
    held = ", ".join(sim.mechanism.connections) or "nothing"
    print(f"t = {sim.t:.1f} s: held by {held}; kinetic energy {sim.mechanism.energy(sim.q, sim.v)[0]:.1f} J")

trajectory = sim.trajectory
print(*trajectory.events, sep="\n")
