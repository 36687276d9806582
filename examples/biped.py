"""A humanoid robot walks six steps and stops.

    python examples/biped.py [DIR]

The walk is planned by inverse dynamics, so that its zero-moment point stays under the feet, and executed by servos. The
scene is that of `bunraku demo walk`, in src/bunraku/cli/scenes/walk.py.
"""

import sys
from pathlib import Path

from bunraku.cli.scenes.walk import Walk
from bunraku.view import replay_html


def main(folder: Path) -> None:
    scene = Walk()
    trajectory, report = scene.run()

    for what, how in scene.rows(report):
        print(f"{what}: {how}")
    folder.mkdir(parents=True, exist_ok=True)
    print("wrote", scene.picture(trajectory, report, folder / "biped.png"))
    print("wrote", replay_html(trajectory, folder / "biped.html", title=scene.title))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-biped"))
