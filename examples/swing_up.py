"""Swing up an acrobot, a double pendulum with a motor at its second joint only, by iterative LQR.

    python examples/swing_up.py [DIR]

The plan is made for a torque of 12 N m; the motor can do 15, the rest is for corrections: from another start the gains
of the plan bring the motion back to it.
"""

import sys
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.optimal_control import StateGoal
from bunraku.view import Camera, filmstrip

STEP, STEPS = 0.01, 400
LIMIT, MOTOR = 12.0, 15.0  # [N m]
OFF = 0.01                 # [rad]
UPRIGHT = [np.pi, 0.0]


def acrobot():
    m = bk.Mechanism(name="acrobot")
    rod = {"mass": 1.0, "com": (0, 0, -0.5), "inertia": (0.083, 0.083, 0.001)}
    m.add_link("upper", joint=bk.Revolute((0, 1, 0)), actuated=False, position=(0, 0, 2.2), **rod)
    m.add_link("lower", "upper", bk.Revolute((0, 1, 0)), position=(0, 0, -1.0), **rod)
    return m


def main(folder: Path) -> None:
    m = acrobot()
    goals = [StateGoal(UPRIGHT, 0.0, q_weight=1000.0, v_weight=200.0),
             StateGoal(UPRIGHT, 0.0, q_weight=0.04, v_weight=0.02, when="always")]
    first = np.outer(np.random.default_rng(0).normal(size=STEPS), [0.0, 1.0])
    plan = bk.plan_motion(m, goals, steps=STEPS, step=STEP, effort=2e-3, limits=LIMIT, tau=first, iterations=150)
    print(f"{plan}; {plan.seconds:.1f} s, largest torque {np.abs(plan.tau).max():.2f} N m")

    sim = bk.Simulation(m, q=[OFF, 0.0], solver="symplectic_euler", step=STEP, actuation=plan.controller(MOTOR))
    trajectory = sim.run(until=STEP * STEPS)
    off = max(np.abs(m.difference(UPRIGHT, sim.q)).max(), np.abs(sim.v).max())
    print(f"followed with the gains from {OFF} rad beside the start: off upright by {off:.4f}")
    folder.mkdir(parents=True, exist_ok=True)
    print("wrote", filmstrip(trajectory, folder / "swing_up.png", frames=13, title="An acrobot swings up",
                             subtitle=f"one motor, between the links, of at most {MOTOR:g} N m",
                             camera=Camera(azimuth=0, elevation=4)))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-swing-up"))
