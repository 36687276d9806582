"""`bunraku demo`: simulate a scene, print a report, draw it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from bunraku.cli import ListNames, told
from bunraku.errors import ModelError
from bunraku.replay_file import recorded

SCENES = {  # name: where it is, what happens
    "highbar": ("HighBar", "a figure swings on a bar; the right hand slips, the left one holds"),
    "swing": ("Swing", "a swing breaks under its rider, who is left hanging by the hands"),
    "release": ("Release", "a figure lets go of a bar, one hand after the other, and flies"),
    "somersault": ("Somersault", "a gymnast in free flight tucks, turns fast, opens and lands"),
    "breaking": ("Breaking", "a ball swings on a chain until a joint of it breaks"),
    "fourbars": ("FourBars", "a row of four-bar linkages falls through lying flat"),
    "hands": ("Hands", "two figures, hand in hand, weightless, pull together and let go"),
    "byhand": ("ByHand", "a mobile whose suspension is moved in six directions"),
    "swingup": ("SwingUp", "an acrobot swings up and stands: a planned motion, a regulator"),
    "linkage": ("Linkage", "a closed five-bar linkage swings up and stands, with weak motors"),
    "filmed": ("Filmed", "masses and damping of a double pendulum, found from its film"),
    "wheel": ("Wheel", "a rimless wheel rolls down a slope, from spoke to spoke"),
    "fall": ("Fall", "a figure is pushed, falls and lies still"),
    "pickup": ("Pickup", "a hand picks up a box, held by friction alone, and puts it down"),
    "lift": ("Lift", "a hand lifts a stone, a mesh, and puts it down"),
    "wall": ("Wall", "a ball hits a wall of boxes"),
    "capstan": ("Capstan", "a rope wound on a drum holds a load by friction, until it slips"),
    "dismount": ("Dismount", "a figure swings on a bar, lets go, lands and stands"),
    "walk": ("Walk", "a humanoid robot walks six steps and stops"),
    "recorded": ("Recorded", "a walk from motion capture, and its joint moments"),
}
FIRST = next(iter(SCENES))  # its motion comes with the package


def add_parser(subparsers) -> None:
    wide = max(map(len, SCENES))
    scenes = "\n".join(f"  {name:<{wide}}  {what}" for name, (_, what) in SCENES.items())
    parser = subparsers.add_parser(
        "demo", help="simulate a scene, say what happened and draw it",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=f"Figures moved by muscles, linkages and chains, in structures that change:\n\n{scenes}\n\n"
                    "Each scene reports forces, energies and how well the laws of mechanics were\n"
                    "kept, and writes its trajectory (changes of structure included), a picture and\n"
                    "a replay for the browser, which opens where there is a display.",
        epilog="example: bunraku demo swing --out swing")
    parser.add_argument("name", nargs="?", default=FIRST, choices=SCENES, metavar="NAME",
                        help="which scene (default: %(default)s)")
    parser.add_argument("--list", action=ListNames, names=SCENES)
    parser.add_argument("--out", type=Path, default=Path("bunraku-demo"), metavar="DIR",
                        help="where to write (default: ./%(default)s)")
    parser.add_argument("--dof", type=int, default=None, choices=(16, 34, 48),
                        help="degrees of freedom of the figure (default: 16 for highbar and, always, swing; "
                             "always 48 for recorded; else 34)")
    parser.add_argument("--solver", default=None, choices=("tsit5", "rkf", "gear", "implicit", "bdf"),
                        help="how to integrate (default: tsit5); implicit where muscles are stiff, as with 48 degrees "
                             "of freedom")
    parser.add_argument("--seconds", type=_seconds, default=None, metavar="S",
                        help="how long (default: as long as the scene lasts)")
    parser.add_argument("--no-picture", action="store_true", help="do not draw")
    parser.add_argument("--no-browser", action="store_true", help="do not open the replay")
    parser.add_argument("--json", action="store_true", help="report as JSON on standard output")
    parser.set_defaults(run=run)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value <= 60.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time between 0 and 60 seconds")
    return value


def run(args) -> int:
    if not args.no_picture and not _can_draw():
        from bunraku.view.filmstrip import drawing
        drawing()  # complain before the work, not after it
    replay, shown = args.out / f"{args.name}.html", False
    if args.name == FIRST and args.dof is None:
        args.out.mkdir(parents=True, exist_ok=True)
        replay.write_text(recorded(FIRST), "utf-8", newline="\n")
        shown = _show(replay, args)
    from bunraku.simulation.needed_kernels import prepare_scene
    from bunraku.view.replay import replay_html

    kind = getattr(import_module(f"bunraku.cli.scenes.{args.name}"), SCENES[args.name][0])
    if args.dof not in (None, *kind.figures):
        raise ModelError(f"{args.name} is played by a figure with {kind.figures[0]} degrees of freedom, not {args.dof}"
                         if kind.figures else f"{args.name} has no figure: leave --dof out")
    args.out.mkdir(parents=True, exist_ok=True)
    prepare_scene(args.solver or kind.solver, None if args.solver else kind.step)
    scene = kind() if args.dof is None else kind(args.dof)
    if args.solver:
        scene.solver, scene.step = args.solver, None
    scene.folder = args.out
    trajectory, report = scene.run(args.seconds)
    written = [*scene.files, trajectory.save(args.out / f"{args.name}.npz"),
               replay_html(trajectory, replay, title=scene.title)]
    if not args.no_picture:
        written.append(scene.picture(trajectory, report, args.out / f"{args.name}.png"))
    report["files"] = [str(path) for path in written]
    print(json.dumps(report, indent=2) if args.json else _prose(report, scene.rows(report)))
    if not shown:
        _show(replay, args)
    return 0


def _can_draw() -> bool:
    """Whether matplotlib is installed; importing it here would delay the replay."""
    try:
        return find_spec("matplotlib.figure") is not None
    except ImportError:
        return False


def _show(replay: Path, args) -> bool:
    """Open a replay in the browser, or print its path. Does neither if the report is JSON."""
    if args.json:
        return True
    opened = False
    if not args.no_browser and has_display() and sys.stdout.isatty():
        import webbrowser
        opened = webbrowser.open(replay.resolve().as_uri())
    print(f"replay of {args.name}: {replay}" + ("" if opened else " (open it in a browser)"), file=sys.stderr)
    return True


def has_display() -> bool:
    """Whether a window can be opened on the user's screen."""
    if sys.platform in ("win32", "darwin"):
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")) and "SSH_CONNECTION" not in os.environ


def _prose(report: dict, rows: list[tuple[str, str]]) -> str:
    return "\n".join([report["title"], told(rows), "wrote", *(f"  {path}" for path in report["files"])])
