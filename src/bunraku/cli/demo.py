"""`bunraku demo`: simulate a scene, say what happened, draw it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

SCENES = ("somersault",)


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "demo", help="simulate a scene, say what happened and draw it",
        description="A gymnast in free flight: leaves the ground turning slowly, tucks, turns fast, opens and comes "
                    "down on the feet. No force but gravity acts from outside, so angular momentum about the centre "
                    "of mass stays what it was, and energy changes only by what the muscles do.",
        epilog="example: bunraku demo --dof 48 --out somersault")
    parser.add_argument("name", nargs="?", default=SCENES[0], choices=SCENES, metavar="NAME",
                        help=f"which scene: {', '.join(SCENES)} (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("bunraku-demo"), metavar="DIR",
                        help="where to write (default: ./%(default)s)")
    parser.add_argument("--dof", type=int, default=34, choices=(16, 34, 48),
                        help="degrees of freedom of the figure (default: %(default)s)")
    parser.add_argument("--solver", default="rkf", choices=("rkf", "tsit5", "gear", "implicit", "bdf"),
                        help="how to integrate (default: %(default)s); implicit is fastest where muscles are stiff, as "
                             "with 48 degrees of freedom")
    parser.add_argument("--seconds", type=_seconds, default=None, metavar="S",
                        help="how long (default: to the landing)")
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
    from bunraku.cli.scenes.somersault import Somersault
    from bunraku.view.filmstrip import drawing, filmstrip

    if not args.no_picture:
        drawing()  # complain before the work, not after it
    args.out.mkdir(parents=True, exist_ok=True)
    scene = Somersault(args.dof)
    trajectory, report = scene.run(args.seconds or scene.seconds, solver=args.solver)
    written = [trajectory.save(args.out / f"{args.name}.npz")]
    if not args.no_picture:
        written.append(filmstrip(trajectory, args.out / f"{args.name}.png", title=scene.title,
                                 subtitle=scene.subtitle(report)))
    report["files"] = [str(path) for path in written]
    print(json.dumps(report, indent=2) if args.json else _prose(report))
    return 0


def _prose(r: dict) -> str:
    rows = [
        ("figure", f"{r['links']} links, {r['dof']} degrees of freedom, {r['mass']:.1f} kg"),
        ("flight", f"{r['seconds']:.2f} s, {r['turns']:.2f} turns forward, centre of mass up to {r['height']:.2f} m"),
        ("turning", f"{r['spin_open']:.1f} rad/s stretched, {r['spin_tucked']:.1f} rad/s tucked"),
        ("solver", f"{r['solver']}, {r['steps']} steps ({r['rejected']} repeated), {r['evaluations']} evaluations"),
        ("computed in", f"{1e3 * r['wall_time']:.1f} ms: {r['real_time_factor']:.0f} times real time"),
        ("energy", f"{r['energy_start']:.1f} J at the start, {r['energy_end']:.1f} J at the end"),
        ("muscles", f"{r['work']:+.1f} J in all, {r['work_given']:.1f} J given, {r['work_taken']:.1f} J taken; "
                    f"balance off by {r['energy_error']:.1e} of the energy"),
        ("momentum", f"angular {r['angular_momentum']:.2f} kg m^2/s, drift {r['angular_momentum_drift']:.1e}; "
                     f"linear drift {r['linear_momentum_drift']:.1e} (relative)"),
    ]
    wide = max(len(name) for name, _ in rows)
    lines = [r["title"], *(f"  {name:<{wide}}  {text}" for name, text in rows), "wrote"]
    return "\n".join([*lines, *(f"  {path}" for path in r["files"])])
