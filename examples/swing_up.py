"""Swing up an acrobot, a double pendulum with a motor at its second joint only, by iterative LQR.

    python examples/swing_up.py [DIR]

Each iteration linearises all steps of the motion in one call (`bk.step_derivatives`), goes back through them for gains
(a Riccati recursion), and tries several lengths of the change at once: one copy of the mechanism each (`bk.Worlds`).
The torque is limited: what is beyond the limit is cut, and gains there are zero.
"""

import sys
import time
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.view import Camera, filmstrip

STEP, STEPS = 0.01, 400
LIMIT, MOTOR = 12.0, 15.0  # [N m] in the plan, and what the motor can do: the rest is for corrections
OFF = 0.01                 # [rad]
LENGTHS = 0.5 ** np.arange(12)


def acrobot():
    m = bk.Mechanism(name="acrobot")
    rod = {"mass": 1.0, "com": (0, 0, -0.5), "inertia": (0.083, 0.083, 0.001)}
    m.add_link("upper", joint=bk.Revolute((0, 1, 0)), actuated=False, position=(0, 0, 2.2), **rod)
    m.add_link("lower", "upper", bk.Revolute((0, 1, 0)), position=(0, 0, -1.0), **rod)
    return m


UPRIGHT = np.array([np.pi, 0.0, 0.0, 0.0])
WEIGHTS, LAST, EFFORT = np.array([0.02, 0.02, 0.01, 0.01]), np.array([500.0, 500.0, 100.0, 100.0]), 1e-3


def cost(x, u):
    """Of motions x (copies, steps + 1, 4) with torques u (copies, steps)."""
    off = x - UPRIGHT
    return (STEP * (off[:, :-1] ** 2 @ WEIGHTS + EFFORT * u**2).sum(axis=1) + off[:, -1] ** 2 @ LAST)


def motions(w, m, x0, about, u0, ahead, gains, lengths):
    """Motions, one a copy, with torques u0 + length ahead + gain (x - about), within the limit."""
    x, u = np.empty((w.n, STEPS + 1, 4)), np.empty((w.n, STEPS))
    w.reset(np.arange(w.n), x0[:2], x0[2:])
    tau = np.zeros((w.n, 2))
    for k in range(STEPS):
        x[:, k] = np.hstack([w.q, w.v])
        u[:, k] = np.clip(u0[k] + lengths * ahead[k] + (x[:, k] - about[k]) @ gains[k], -LIMIT, LIMIT)
        tau[:, 1] = u[:, k]
        w.step(tau)
    x[:, STEPS] = np.hstack([w.q, w.v])
    return x, u


def gains_of(m, x, u, damping, limit=LIMIT):
    """Changes of torques and gains, from the last step to the first."""
    tau = np.column_stack([np.zeros(STEPS), u])
    d = bk.step_derivatives(m, x[:-1, :2], x[:-1, 2:], tau, step=STEP)
    slope, curve = 2 * LAST * (x[-1] - UPRIGHT), np.diag(2 * LAST)
    ahead, gains = np.zeros(STEPS), np.zeros((STEPS, 4))
    for k in reversed(range(STEPS)):
        A, B = d.A[k], d.B[k][:, 1]
        Qx = 2 * STEP * WEIGHTS * (x[k] - UPRIGHT) + A.T @ slope
        Qu = 2 * STEP * EFFORT * u[k] + B @ slope
        Qxx, Qxu = np.diag(2 * STEP * WEIGHTS) + A.T @ curve @ A, A.T @ curve @ B
        Quu = 2 * STEP * EFFORT + B @ curve @ B + damping
        ahead[k], gains[k] = -Qu / Quu, -Qxu / Quu
        if abs(u[k]) >= limit and u[k] * ahead[k] > 0:  # held by the limit
            ahead[k], gains[k] = 0.0, 0.0
        slope = Qx + Qxu * ahead[k] + gains[k] * (Qu + Quu * ahead[k])
        curve = Qxx + np.outer(Qxu, gains[k]) + np.outer(gains[k], Qxu) + Quu * np.outer(gains[k], gains[k])
    return ahead, gains


def plan(m, iterations=200):
    """Torques that end upright, the motion, and gains that bring it back to them."""
    w = bk.Worlds(m, len(LENGTHS), step=STEP, solver="symplectic_euler")
    u, rest = np.random.default_rng(0).normal(size=STEPS), np.zeros(4)
    tried, torques = motions(w, m, rest, np.zeros((STEPS, 4)), u, np.zeros(STEPS), np.zeros((STEPS, 4)), LENGTHS)
    x, u, best, damping = tried[0], torques[0], cost(tried, torques)[0], 1e-3
    for n in range(iterations):
        ahead, gains = gains_of(m, x, u, damping)
        tried, torques = motions(w, m, rest, x, u, ahead, gains, LENGTHS)
        costs = cost(tried, torques)
        k = int(np.nanargmin(costs))
        if costs[k] >= best:
            damping *= 10.0
            if damping > 1e6:
                break
            continue
        gain, best, damping = best - costs[k], costs[k], max(1e-6, damping / 3.0)
        x, u = tried[k], torques[k]
        if n % 20 == 0:
            print(f"iteration {n:3d}: cost {best:10.4f}, off upright by {np.abs(x[-1] - UPRIGHT).max():.4f}")
        if gain < 1e-6 * best:
            break
    print(f"{n + 1} iterations: cost {best:.4f}, largest torque {np.abs(u).max():.2f} N m")
    return x, u, gains_of(m, x, u, 0.0, limit=MOTOR)[1]


def main(folder: Path) -> None:
    m = acrobot()
    start = time.perf_counter()
    x, u, gains = plan(m)
    print(f"planned {STEP * STEPS:g} s in {time.perf_counter() - start:.1f} s")

    def follow(t, q, v):
        k = min(int(t / STEP + 1e-9), STEPS - 1)
        torque = u[k] + gains[k] @ (np.concatenate([q, v]) - x[k])
        return np.array([0.0, np.clip(torque, -MOTOR, MOTOR)])

    sim = bk.Simulation(m, q=[OFF, 0.0], solver="symplectic_euler", step=STEP, actuation=follow)
    trajectory = sim.run(until=STEP * STEPS)
    off = np.abs(np.concatenate([sim.q, sim.v]) - UPRIGHT).max()
    print(f"followed with the gains from {OFF} rad beside the start: off upright by {off:.4f}")
    folder.mkdir(parents=True, exist_ok=True)
    print("wrote", filmstrip(trajectory, folder / "swing_up.png", frames=13, title="An acrobot swings up",
                             subtitle=f"one motor, between the links, of at most {MOTOR:g} N m",
                             camera=Camera(azimuth=0, elevation=4)))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-swing-up"))
