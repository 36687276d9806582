"""A recorded walk: figure and motion from a BVH file, ground forces from a MOT file, joint moments, and a simulation
that tracks the walk.

    python examples/recorded_walk.py [DIR]

The recording is synthetic: src/bunraku/cli/scenes/gait.py writes the two files, with noise. For your own files,
start at `bk.load_motion`.
"""

import sys
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.gait import record
from bunraku.view import filmstrip


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    figure, forces = record(folder)

    motion = bk.load_motion(figure, unit="m", up="z", forward="x", mass=70.0)
    plates = bk.load_motion(forces).plates()
    print(motion, *plates, sep="\n")

    # Choice of the cutoff: too high, and noise dominates the accelerations; too low, and rapid motion is lost
    for cutoff in (15.0, 10.0, 6.0, 3.0):
        moments = motion.smooth(cutoff).inverse_dynamics(plates, feet=("left_ankle", "right_ankle"))
        rms = np.sqrt(np.mean(np.sum(moments.residuals["root"][:, :3] ** 2, axis=1)))
        print(f"smoothed at {cutoff:4.1f} Hz: residual force at the root {rms:5.1f} N (root mean square), "
              f"knee up to {moments.magnitude('left_knee').max():.0f} N m")

    motion = motion.smooth(6.0)
    moments = motion.inverse_dynamics(plates, feet=("left_ankle", "right_ankle"))
    panels = {"left leg: moment [N m]": {name: (moments.t, moments.magnitude(f"left_{name}"))
                                         for name in ("hip", "knee", "ankle")}}
    print("wrote", filmstrip(motion.trajectory(), folder / "walk.png", title="A recorded walk", panels=panels))

    sim = bk.Simulation(motion.mechanism, motion.q[0], motion.v[0], actuation=motion.tracking(), rtol=1e-5)
    followed = sim.run(until=1.0)
    off = np.abs(motion.mechanism.difference(followed.q, motion.curve(followed.t)[0])).max()
    print(f"simulated by PD control: never off by more than {off:.4f} rad or m, {sim.stats.steps} steps")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-walk"))
