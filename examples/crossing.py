"""A figure crosses ten monkey bars, hand over hand: grips are actions, and connections of a copy of `Worlds`.

    python examples/crossing.py [DIR]
"""

import sys
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.envs.climbing import HandOverHand
from bunraku.envs.tasks import task

ARMS = "left", "right"


def stick(m, q):
    """Points (x, z) of hands, elbows and shoulders of both arms, and of the body, hips and feet."""
    poses = bk.poses(m, q)
    place = lambda link, point=(0, 0, 0): (poses[link][1] + poses[link][0] @ point)[[0, 2]]  # noqa: E731
    arms = [[place(fore, (0, 0, 0.3)), place(fore), place("body")] for fore in (f"{arm}_forearm" for arm in ARMS)]
    return [*arms, [place("body"), place("legs"), place("legs", (0, 0, -0.45))]]


def main(folder: Path) -> None:
    own, policy = task("monkey-bars"), HandOverHand()
    w, poses, grips = own.worlds(1), [], []
    own.begin(w)
    bars = own.hands.bars
    while w.params[0, 2] < len(bars) - 1 and not own.ends(w.q, w.v)[0]:
        poses.append(w.q[0].copy())
        grips.append(w.params[0, :2].copy())
        own.move(w, policy(own.seen(w)[0])[None])
    changes = int(np.abs(np.diff(np.array(grips) >= 0, axis=0)).sum())
    print(f"from bar 1 to bar {int(w.params[0, 2])} in {w.t[0]:.1f} s, with {changes} grips and releases")

    from matplotlib.figure import Figure

    page = Figure(figsize=(11, 3.4))
    axes = page.add_subplot()
    for k, q in enumerate(poses[::15]):
        for line, colour in zip(stick(own.mechanism, q), ("tab:blue", "tab:orange", "0.3"), strict=True):
            axes.plot(*np.array(line).T, color=colour, lw=2.0, alpha=0.35 + 0.5 * (k % 2))
    axes.plot(bars[:, 0], bars[:, 2], "o", color="black", ms=7)
    axes.set(aspect="equal", xlabel="x [m]", ylabel="z [m]", title="Ten bars, hand over hand, every 0.3 s")
    folder.mkdir(parents=True, exist_ok=True)
    page.savefig(folder / "crossing.png", dpi=100, bbox_inches="tight")
    print("wrote", folder / "crossing.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-crossing"))
