"""A swing breaks under its rider: the seat plate tips, the thighs slide off, and the rider hangs by the hands.

    python examples/swing.py [DIR]

The swing is a separate mechanism, built in src/bunraku/cli/scenes/swing.py: an axle, two rods, a plate and the stay
that keeps it level. The rider is connected to it by ball joints at the hands and sliding joints at the thighs; an
event cuts each sliding joint. The strength of the stay determines how far the swing gets.
"""

import sys
from pathlib import Path

import bunraku as bk
from bunraku.cli.scenes.muscles import muscles
from bunraku.cli.scenes.swing import Swing, off_the_plate
from bunraku.view import filmstrip


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    scene = Swing()
    for bears in (400.0, 500.0):  # [N]
        sim = bk.Simulation(scene.mechanism, scene.q, scene.v, solver="tsit5", actuation=muscles, params=scene.params)
        sim.when(bk.force_above("stay_end", bears), lambda sim: sim.cut("stay_end"), name="the stay breaks")
        for side in ("left", "right"):
            sim.when(off_the_plate(sim, side), lambda sim, side=side: sim.cut(f"{side}_slide"),
                     name=f"the {side} thigh leaves the plate")
        trajectory = sim.run(until=1.6)
        print(f"a stay that bears {bears:.0f} N:")
        for event in trajectory.events:
            print(f"  {event.t:.3f} s  {event.text}")
        picture = filmstrip(trajectory, folder / f"swing_{bears:.0f}.png", title="The swing breaks", frames=7,
                            subtitle=f"a stay that bears {bears:.0f} N")
        print("  wrote", picture)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-swing"))
