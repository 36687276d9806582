"""An arm follows a target by planning: 48 futures of a third of a second, every 20 ms.

    python examples/follow.py [DIR]        draws how the hand approaches targets that jump
    python examples/follow.py --view       opens the viewer: drag the target by its gizmo
"""

import sys
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.envs.reaching_arm import following, hand

PLACES = ((0.3, -0.3, -0.4), (0.4, 0.3, -0.3), (0.2, 0.0, -0.7))  # [m] targets, 1.5 s each


def main(folder: Path) -> None:
    from matplotlib.figure import Figure

    guide = bk.Guide([*PLACES[0], 1, 0, 0, 0])
    sim, times, away = following(guide), [], []
    for number, place in enumerate(PLACES):
        guide.to([*place, 1, 0, 0, 0], 0.1)
        while sim.t < 1.5 * (number + 1) - 1e-9:
            sim.run(sim.t + 0.02)
            times.append(sim.t)
            away.append(np.linalg.norm(hand(sim.q[:3]) - sim.q[3:6]))
    print(f"after 1.5 s the hand is {100 * away[-1]:.1f} cm from the last target")
    page = Figure(figsize=(7, 3))
    axes = page.add_subplot()
    axes.plot(times, away)
    axes.set(xlabel="t [s]", ylabel="distance of hand and target [m]", ylim=(0, None))
    folder.mkdir(parents=True, exist_ok=True)
    page.savefig(folder / "follow.png", dpi=100, bbox_inches="tight")
    print("wrote", folder / "follow.png")


if __name__ == "__main__":
    if "--view" in sys.argv:
        bk.view(following())
    else:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-follow"))
