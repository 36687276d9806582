"""A ball swings on a chain until its weakest joint breaks.

    python examples/breaking.py [DIR]

A joint of the tree is cut in the same way as a connection. The time at which its force exceeds the limit is located;
the lower part then flies on with its velocity, and the upper part whips back.
"""

import sys
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.view import filmstrip, replay_html

WEAK, BEARS = "link6", 210.0  # [N]


def main(folder: Path) -> None:
    m = bk.models.chain(12, length=0.15, mass=0.4)
    m.add_link("ball", "link11", bk.Fixed(), position=(0, 0, -0.26), mass=6.0, inertia=np.full(3, 0.029))
    q = m.neutral()
    q[0] = 1.5  # chain straight, displaced to the side [rad]
    sim = bk.Simulation(m, q)
    sim.when(bk.force_above(WEAK, BEARS), lambda sim: sim.cut(WEAK), name="the chain breaks")
    trajectory = sim.run(until=1.0)

    for event in trajectory.events:
        print(f"{event.t:.3f} s: {event.text}")
    _, kinetic, potential = trajectory.energy()
    print(f"energy kept to {np.ptp(kinetic + potential) / kinetic.max():.1e} of the largest kinetic energy")
    folder.mkdir(parents=True, exist_ok=True)
    print("wrote", filmstrip(trajectory, folder / "breaking.png", title="A chain breaks", frames=7))
    print("wrote", replay_html(trajectory, folder / "breaking.html", title="A chain breaks"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-breaking"))
