"""Rows of four-bar linkages fall through the singular flat position and conserve energy.

    python examples/four_bars.py [DIR]

With any number of windows the linkage has one degree of freedom; in the flat position it has one more for each window.
It moves like a single pendulum, which SciPy integrates for comparison.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

import bunraku as bk
from bunraku.view import filmstrip, replay_html

SECONDS = 2.0


def pendulum(n: int) -> float:
    """Angle of the posts at the end, from the equation of one degree of freedom [rad]."""
    pull = 9.81 * ((n + 1) / 2 + n) / ((n + 1) / 3 + n)
    fall = lambda t, x: (x[1], -pull * np.cos(x[0]))  # noqa: E731
    return solve_ivp(fall, (0, SECONDS), (np.pi / 2, -1.0), rtol=1e-11, atol=1e-11).y[0, -1]


def main(folder: Path) -> None:
    for n in (2, 5, 20):
        m = bk.models.n_four_bar(n)
        v = np.concatenate([np.full(n + 1, -1.0), np.ones(n)])  # posts turn, bars stay level
        sim = bk.Simulation(m, m.neutral(), v, rtol=1e-8)
        trajectory = sim.run(until=SECONDS)
        error = np.abs(np.pi / 2 + sim.q[:n + 1] - pendulum(n)).max()
        print(f"{n:3d} windows: {sim.stats.steps} steps, {1e3 * sim.stats.wall_time:.1f} ms, posts within {error:.1e} "
              f"rad of the pendulum, loops open by no more than {sim.stats.loop_error:.1e} m")
        if n == 5:
            folder.mkdir(parents=True, exist_ok=True)
            print("wrote", filmstrip(trajectory, folder / "four_bars.png", title="5 four-bars in a row", frames=4))
            print("wrote", replay_html(trajectory, folder / "four_bars.html", title="5 four-bars in a row"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-four-bars"))
