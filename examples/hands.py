"""Two figures, hand in hand and weightless: they turn about each other, tuck and turn faster, and let go.

    python examples/hands.py [DIR]

Two trees are joined by two connections, which are cut one after the other. Figures and muscles are those of
`bunraku demo hands`; angular momentum is conserved to the last digits, whatever the muscles do.
"""

import sys
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.hands import Hands
from bunraku.cli.scenes.muscles import muscles
from bunraku.view import Camera, filmstrip, replay_html


def main(folder: Path) -> None:
    scene = Hands(dof=16)
    sim = bk.Simulation(scene.mechanism, scene.q, scene.v, solver="tsit5", actuation=muscles, params=scene.params)
    for until, let_go in ((2.0, "right_grip"), (2.12, "left_grip"), (2.5, None)):
        sim.run(until=until)
        moving = bk.kinematics(sim.mechanism, sim.q, sim.v)
        print(f"{sim.t:.2f} s: angular momentum {np.linalg.norm(moving.momentum[3:]):.9f} kg m^2/s")
        if let_go:
            sim.cut(let_go)

    folder.mkdir(parents=True, exist_ok=True)
    print("wrote", filmstrip(sim.trajectory, folder / "hands.png", title="Hand in hand", camera=Camera(elevation=50)))
    print("wrote", replay_html(sim.trajectory, folder / "hands.html", title="Hand in hand"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-hands"))
