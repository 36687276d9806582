"""`bunraku demo`: simulate a scene, say what happened, draw it."""

from __future__ import annotations

import argparse
import json
from importlib import import_module
from pathlib import Path

from bunraku.cli import told
from bunraku.errors import ModelError

SCENES = {  # name: where it is, what happens
    "highbar": ("HighBar", "a figure swings on a bar; the right hand slips, the left one holds"),
    "swing": ("Swing", "a swing breaks under its rider, who is left hanging by the hands"),
    "release": ("Release", "a figure lets go of a bar, one hand after the other, and flies"),
    "somersault": ("Somersault", "a gymnast in free flight tucks, turns fast, opens and lands"),
    "recorded": ("Recorded", "a walk from motion capture, and its joint moments"),
}
FIRST = next(iter(SCENES))


def add_parser(subparsers) -> None:
    wide = max(map(len, SCENES))
    scenes = "\n".join(f"  {name:<{wide}}  {what}" for name, (_, what) in SCENES.items())
    parser = subparsers.add_parser(
        "demo", help="simulate a scene, say what happened and draw it",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=f"Human figures moved by muscles, in structures that change while they move:\n\n{scenes}\n\n"
                    "Each scene reports forces, energies and how well the laws of mechanics were\n"
                    "kept, and writes its trajectory (changes of structure included) and a picture.",
        epilog="example: bunraku demo swing --out swing")
    parser.add_argument("name", nargs="?", default=FIRST, choices=SCENES, metavar="NAME",
                        help="which scene (default: %(default)s)")
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
    from bunraku.simulation.kernels import prepare_scene
    from bunraku.view.filmstrip import drawing

    if not args.no_picture:
        drawing()  # complain before the work, not after it
    kind = getattr(import_module(f"bunraku.cli.scenes.{args.name}"), SCENES[args.name][0])
    if args.dof not in (None, *kind.figures):
        raise ModelError(f"{args.name} is played by a figure with {kind.figures[0]} degrees of freedom, not {args.dof}")
    args.out.mkdir(parents=True, exist_ok=True)
    prepare_scene(args.solver or kind.solver)
    scene = kind() if args.dof is None else kind(args.dof)
    scene.solver = args.solver or scene.solver
    scene.folder = args.out
    trajectory, report = scene.run(args.seconds)
    written = [*scene.files, trajectory.save(args.out / f"{args.name}.npz")]
    if not args.no_picture:
        written.append(scene.picture(trajectory, report, args.out / f"{args.name}.png"))
    report["files"] = [str(path) for path in written]
    print(json.dumps(report, indent=2) if args.json else _prose(report, scene.rows(report)))
    return 0


def _prose(report: dict, rows: list[tuple[str, str]]) -> str:
    return "\n".join([report["title"], told(rows), "wrote", *(f"  {path}" for path in report["files"])])
