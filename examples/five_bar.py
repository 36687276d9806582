"""Swing up a five-bar linkage, a closed chain, with motors too weak to lift it; then hold it upright.

    python examples/five_bar.py [DIR]

Two arms with joined tips have two freedoms. The plan changes torques only in ways that keep the loop closed; the gains
of the plan bring another start back to it, and a regulator holds the end.
"""

import sys
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.optimal_control import PointGoal, StateGoal
from bunraku.view import Camera, filmstrip

STEP, STEPS, LIMIT = 0.01, 160, 4.0   # [s], [N m]
TIP = (0.0, 0.0, -0.6)                # in the frame of a forearm


def five_bar():
    m = bk.Mechanism(name="five-bar")
    for side, x in (("left", -0.3), ("right", 0.3)):
        m.add_link(side, joint=bk.Revolute((0, 1, 0), damping=0.01), position=(x, 0, 1.3), mass=0.6, com=(0, 0, -0.2),
                   inertia=(0.008, 0.008, 0.001))
        m.add_link(f"{side}_fore", side, bk.Revolute((0, 1, 0), damping=0.01), actuated=False, position=(0, 0, -0.4),
                   mass=0.6, com=(0, 0, -0.3), inertia=(0.02, 0.02, 0.001))
    m.connect("right_fore", "left_fore", bk.Revolute((0, 1, 0)), "tip", position_a=TIP, position_b=TIP, actuated=False)
    return m


def main(folder: Path) -> None:
    m = five_bar()
    hangs = bk.project(m, np.array([-0.095, -0.357, 0.095, 0.357]))
    top = (0.0, 0.0, 2.21)
    goals = [PointGoal("left_fore", top, point=TIP, weight=500.0), StateGoal(v=0.0, v_weight=5.0),
             PointGoal("left_fore", top, point=TIP, weight=0.5, when="always")]
    push = np.outer(0.5 * LIMIT * np.sin(4.0 * STEP * np.arange(STEPS)), [1.0, 0.0, 1.0, 0.0])
    plan = bk.plan_motion(m, goals, steps=STEPS, step=STEP, q=hangs, effort=1e-2, limits=LIMIT, tau=push, iterations=25)
    print(f"{plan}; {plan.seconds:.1f} s")
    sim = bk.Simulation(m, hangs, solver="symplectic_euler", step=STEP, actuation=plan.controller())
    trajectory = sim.run(until=STEP * STEPS)

    upright = bk.project(m, plan.q[-1])
    hold = bk.lqr(m, upright, R=0.1)
    sim = bk.Simulation(m, sim.q, sim.v, actuation=hold.controller(limits=6.0))
    sim.run(until=3.0)
    print(f"held: {np.abs(m.difference(upright, sim.q)).max():.1e} rad off")
    folder.mkdir(parents=True, exist_ok=True)
    print("wrote", filmstrip(trajectory, folder / "five_bar.png", frames=11, title="A five-bar linkage swings up",
                             camera=Camera(azimuth=0, elevation=4)))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-five-bar"))
