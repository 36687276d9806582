"""A double pendulum, from links to a picture.

    python examples/pendulum.py [DIR]
"""

import sys
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.view import Camera, filmstrip


def rod(mass: float, length: float) -> dict:
    """A thin rod that hangs from its upper end."""
    across = mass * length**2 / 12
    return {"mass": mass, "com": (0, 0, -length / 2), "inertia": (across, across, 1e-3 * across)}


def double_pendulum(length: float = 0.5) -> bk.Mechanism:
    m = bk.Mechanism(name="double pendulum")
    m.add_link("upper", "ground", bk.Revolute((0, 1, 0)), position=(0, 0, 1.2), **rod(1.0, length))
    m.add_link("lower", "upper", bk.Revolute((0, 1, 0)), position=(0, 0, -length), **rod(1.0, length))
    return m


def main(folder: Path) -> None:
    m = double_pendulum()
    print(m)

    # One evaluation: accelerations, and the force in the upper hinge, when released from the horizontal
    q, v = np.array([np.pi / 2, 0.0]), np.zeros(2)
    print("accelerations", bk.forward_dynamics(m, q, v))
    print("force and moment in the hinge", bk.joint_forces(m, q, v)["upper"])

    # A motion: there is no friction, so energy is conserved
    sim = bk.Simulation(m, q=q, v=v, rtol=1e-8, atol=1e-10)
    trajectory = sim.run(until=2.0)
    t, kinetic, potential = trajectory.energy()
    total = kinetic + potential
    print(f"{sim.stats.steps} steps, energy off by {np.ptp(total) / np.ptp(potential):.1e}")

    folder.mkdir(parents=True, exist_ok=True)
    picture = filmstrip(trajectory, folder / "pendulum.png", frames=11, title="Double pendulum",
                        subtitle="let go from the side", camera=Camera(azimuth=0, elevation=4))
    print("wrote", picture)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-pendulum"))
