"""A figure swings on a high bar, lets go, lands with bending knees and stands.

    python examples/dismount.py [DIR]

The controller is a plain Python function of (t, q, v): the hips keep the trunk upright, the ankles keep the centre of
mass above the feet. The scene is that of `bunraku demo dismount`, in src/bunraku/cli/scenes/dismount.py.
"""

import sys
from pathlib import Path

from bunraku.cli.scenes.dismount import Dismount
from bunraku.view import replay_html


def main(folder: Path) -> None:
    scene = Dismount()
    trajectory, report = scene.run()

    for what, how in scene.rows(report):
        print(f"{what}: {how}")
    folder.mkdir(parents=True, exist_ok=True)
    print("wrote", scene.picture(trajectory, report, folder / "dismount.png"))
    print("wrote", replay_html(trajectory, folder / "dismount.html", title=scene.title))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-dismount"))
