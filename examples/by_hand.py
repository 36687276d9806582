"""A mobile moved by hand: during the simulation its suspension follows a moving target, and one body is pulled.

    python examples/by_hand.py [DIR]

`bk.Guide` prescribes the motion of a joint that follows a target; `sim.pull` is a spring between a link and a point in
the world. In the viewer (`bk.view(sim)`), both follow the mouse.
"""

import sys
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.view import filmstrip, replay_html


def main(folder: Path) -> None:
    m = bk.models.mobile(0.05, 0.03, 0.05, 0.16, 2, 2, 6, 0.5, 60.0, damping=2e-4, suspension=True)
    guide = bk.Guide(m.neutral()[:7])                        # position, quaternion
    sim = bk.Simulation(m, prescribed={"suspension": guide})
    for frame in range(1, 361):
        t = frame / 60
        guide.to([0.3 * np.sin(2 * t), 0, 0, 1, 0, 0, 0], seconds=0.2)
        if frame == 180:
            sim.pull("0/plateau", (0, 0, -0.16), (0.6, 0.0, -0.5))
        if frame == 240:
            sim.release()
        sim.advance(t)
    trajectory = sim.trajectory
    print(trajectory)
    for event in trajectory.events:
        print(f"{event.t:.3f} s: {event.text}")
    folder.mkdir(parents=True, exist_ok=True)
    print("wrote", filmstrip(trajectory, folder / "by_hand.png", title="A mobile by hand", frames=7))
    print("wrote", replay_html(trajectory, folder / "by_hand.html", title="A mobile by hand"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-by-hand"))
