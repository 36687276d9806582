"""A figure jumps at a bar, grabs it with both hands, swings, lets go with the right hand, then with the left.

    python examples/monkey_bars.py [DIR]

Structure is state: each grip is a connection, made and cut while the figure moves.
"""

import sys
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.view import filmstrip

HANDS = ("left_hand", "right_hand")


def main(folder: Path) -> None:
    figure = bk.models.human(dof=16, limits=True, damping=2.0)
    q, v = figure.neutral(), np.zeros(figure.nv)
    for side in ("left", "right"):
        q[figure.q_slice(f"{side}_shoulder")] = np.cos(1.4), 0, -np.sin(1.4), 0  # arms up, 160 degrees from hanging
    q[2] += 0.4
    v[:3] = 2.5, 0, 0.5  # initial velocity of the pelvis

    sim = bk.Simulation(figure, q, v, rtol=1e-7)
    for hand in HANDS:  # without frames: held in their present positions; velocities jump
        sim.connect("ground", hand, bk.Spherical(damping=1.0), name=f"{hand} grip")
    sim.run(until=0.5)

    r = bk.dynamics(sim.mechanism, sim.q, sim.v)
    for hand in HANDS:
        force = np.linalg.norm(r.forces[f"{hand} grip"][:3])
        print(f"{hand} carries {force / (9.81 * figure.mass):.2f} of the weight")
    print(f"{r.report.rank} of {r.report.constraints} constraints independent, condition {r.report.condition:.3g}")

    for hand in reversed(HANDS):
        sim.cut(f"{hand} grip")  # every link keeps its pose and velocity
        sim.run(until=sim.t + 0.4)
    for event in sim.trajectory.events:
        print(f"{event.t:.1f} s: {event.text}")
    print(f"loops were never open by more than {sim.stats.loop_error:.1e} m")

    folder.mkdir(parents=True, exist_ok=True)
    picture = filmstrip(sim.trajectory, folder / "monkey_bars.png", title="Two hands, one hand, none",
                        subtitle="a figure with 16 joint degrees of freedom grabs a bar and lets go")
    print("wrote", picture)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-monkey-bars"))
