"""A figure swings on a high bar, held by both hands; the right hand slips, and it swings on by the left hand.

    python examples/high_bar.py [DIR]

A condition on a force is monitored during the simulation: the time at which it becomes true is located, and the
structure changes there. Figure, bar and muscles are those of `bunraku demo highbar`.
"""

import sys
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.bar import on_bar
from bunraku.cli.scenes.muscles import ARMS, muscles, schedule
from bunraku.view import filmstrip

STRETCHED = {"root": (0, 2.0, 0), "shoulder": (0, -3.05, 0)}  # joint rotations [rad]; root: feet up, behind
PIKED = {"shoulder": (0, -2.75, 0), "hip": (0, -0.6, 0)}
HOLDS = 1000.0  # strength of the right hand [N]


def main(folder: Path) -> None:
    figure, q, v = on_bar(16, STRETCHED)
    params = schedule(figure, STRETCHED, ((0.6, STRETCHED), (1.0, PIKED)), frequency=16.0, weakest=ARMS)
    sim = bk.Simulation(figure, q, v, solver="tsit5", actuation=muscles, params=params)
    sim.when(bk.force_above("right_grip", HOLDS), lambda sim: sim.cut("right_grip"), name="the right hand slips")

    times, forces = np.arange(0.0, 1.8, 0.02), {"left grip": [], "right grip": []}
    for t in times:  # one run, in pieces; events in between are handled automatically
        sim.run(until=t)
        held = bk.joint_forces(sim.mechanism, sim.q, sim.v, sim.torque(sim.t, sim.q, sim.v))
        for name, values in forces.items():
            values.append(np.linalg.norm(held.get(name.replace(" ", "_"), np.full(6, np.nan))[:3]))

    for event in sim.trajectory.events:
        print(f"{event.t:.3f} s: {event.text}")
    for name, values in forces.items():
        print(f"{name} carried up to {np.nanmax(values):.0f} N")
    print(f"{sim.stats.steps} steps; loops open by no more than {sim.stats.loop_error:.1e} m")

    folder.mkdir(parents=True, exist_ok=True)
    picture = filmstrip(sim.trajectory, folder / "high_bar.png", title="High bar", frames=8,
                        subtitle=f"the right hand slips at {HOLDS:.0f} N",
                        panels={"force [N]": {name: (times, np.array(values)) for name, values in forces.items()}})
    print("wrote", picture)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-high-bar"))
