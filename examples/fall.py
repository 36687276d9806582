"""A figure without muscles is pushed, falls and comes to rest; at the end the floor carries its weight.

    python examples/fall.py [DIR]

Contact is resolved by time-stepping, which is robust for many simultaneous impacts.
"""

import sys
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.view import filmstrip, replay_html


def main(folder: Path) -> None:
    m = bk.models.human(dof=34, limits=True, damping=4.0)  # has contact shapes
    m.add_plane(friction=0.8)                              # the floor
    sim = bk.Simulation(m, solver="symplectic_euler", step=0.00025)
    sim.impulse("chest", (-50.0, 30.0, 0.0), point=(0, 0, 0.2))
    trajectory = sim.run(until=3.0)

    _, kinetic, potential = trajectory.energy()
    energy = kinetic + potential
    print(f"energy {energy[0]:.1f} J, then {energy[-1]:.1f} J; rises of a step: at most {np.diff(energy).max():.0e} J")
    touching = bk.dynamics(m, sim.q, sim.v).contacts
    print(f"{len(touching)} contacts carry {sum(contact.force for contact in touching).round(6)} N; the weight is "
          f"{9.81 * m.mass:.2f} N; speeds are below {np.abs(sim.v).max() + 1e-12:.0e}")
    folder.mkdir(parents=True, exist_ok=True)
    print("wrote", filmstrip(trajectory, folder / "fall.png", title="A fall"))
    print("wrote", replay_html(trajectory, folder / "fall.html", title="A fall"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-fall"))
