"""A hand picks up a box, moves it and puts it down, by the friction of two fingers and a thumb.

    python examples/pick_up.py [DIR]

Servos, a compiled actuation (src/bunraku/cli/scenes/servo.py), move arm and fingers; the scene is that of
`bunraku demo pickup`, in src/bunraku/cli/scenes/pickup.py.
"""

import sys
from pathlib import Path

from bunraku.cli.scenes.pickup import Pickup
from bunraku.view import replay_html


def main(folder: Path) -> None:
    scene = Pickup()
    trajectory, report = scene.run()

    for what, how in scene.rows(report):
        print(f"{what}: {how}")
    folder.mkdir(parents=True, exist_ok=True)
    print("wrote", scene.picture(trajectory, report, folder / "pick_up.png"))
    print("wrote", replay_html(trajectory, folder / "pick_up.html", title=scene.title))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-pick-up"))
