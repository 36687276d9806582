"""A somersault in free flight, first with stretched limbs, then tucked.

Both have the same take-off. The scene (figure, sequence of poses and the compiled muscles that follow it) is that of
`bunraku demo somersault`, in src/bunraku/cli/scenes/.

    python examples/somersault.py [DIR]
"""

import sys
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.muscles import ROW, muscles
from bunraku.cli.scenes.somersault import Somersault
from bunraku.view import filmstrip


def angular_momentum(mechanism: bk.Mechanism, trajectory: bk.Trajectory) -> np.ndarray:
    """About the centre of mass, at every recorded state."""
    return bk.kinematics(mechanism, trajectory.q, trajectory.v).momentum[:, 3:]


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    scene = Somersault(dof=34)

    # Muscles that hold the first pose: the compiled function reads `params`, which can be changed freely
    stiff = scene.params.copy()
    poses = int(stiff[0])
    for row in range(2 + poses, len(stiff), ROW + 3 * poses):
        stiff[row + ROW:row + ROW + 3 * poses] = np.tile(stiff[row + ROW:row + ROW + 3], poses)

    for name, params in (("stretched", stiff), ("tucked", scene.params)):
        sim = bk.Simulation(scene.mechanism, q=scene.q, v=scene.v, rtol=1e-7, atol=1e-9, actuation=muscles,
                            params=params)
        trajectory = sim.run(until=scene.seconds)
        momentum = angular_momentum(scene.mechanism, trajectory)
        spin = bk.kinematics(scene.mechanism, trajectory.q, trajectory.v).velocities["pelvis"][:, 4]
        print(f"{name:>9}: turns at up to {spin.max():4.1f} rad/s; angular momentum {np.linalg.norm(momentum[0]):.3f} "
              f"kg m^2/s, drift {np.abs(momentum - momentum[0]).max():.1e}; {sim.stats.steps} steps")
        print("    wrote", filmstrip(trajectory, folder / f"{name}.png", title=f"Somersault, {name}"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-somersault"))
