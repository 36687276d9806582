"""`bunraku plot`: curves of a recording over time."""

from __future__ import annotations

import argparse
from pathlib import Path

from bunraku.cli import _models
from bunraku.errors import MissingFileError, ModelError

ALL = {  # what there is to see
    "energy": "kinetic, potential and total energy",
    "q": "coordinates",
    "v": "velocities",
    "tau": "torques of the actuators, if they are recorded",
    "forces": "force in every joint and connection",
    "contacts": "normal force and friction of every pair of shapes that touches",
    "pressure": "centre of pressure of every pair of links that touches",
    "loops": "how far the loops are from closed",
    "steps": "step size of the solver, and its order if the simulation was dense",
}
FIRST = "energy,q,v"


def add_parser(subparsers) -> None:
    wide = max(map(len, ALL))
    parser = subparsers.add_parser(
        "plot", help="draw curves of a recording over time",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Draw curves of a recording (.npz or .mcap) over time, below each other:\n\n"
                    + "\n".join(f"  {name:<{wide}}  {what}" for name, what in ALL.items()),
        epilog="example: bunraku plot highbar.mcap --what energy,forces --joints left_grip")
    parser.add_argument("recording", type=Path, metavar="RECORDING", help="a file from `run`, `demo` or tr.save")
    parser.add_argument("--what", default=FIRST, metavar="A,B", help="what to draw (default: %(default)s), or all")
    parser.add_argument("--joints", default=None, metavar="A,B",
                        help="joints and connections to show, or links and shapes that touch (default: the eight "
                             "curves that vary most)")
    parser.add_argument("--title", default=None, help="above the picture (default: the name of the mechanism)")
    parser.add_argument("--out", type=Path, default=None, metavar="FILE",
                        help=".png, .pdf or .svg (default: the name of the recording, with .png)")
    parser.set_defaults(run=run)


def run(args) -> int:
    from bunraku.view.filmstrip import drawing
    from bunraku.view.plots import plot

    drawing()
    out = args.out or args.recording.with_suffix(".png")
    if not out.parent.is_dir():
        raise MissingFileError(f"--out {out}: there is no folder {str(out.parent)!r}; make it first")
    if out.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ModelError(f"--out {out}: a picture ends in .png, .pdf or .svg")
    trajectory = _models.recording(args.recording)
    what = _listed(args.what)
    if what == ["all"]:
        what = [name for name in ALL if _is_there(name, trajectory)]
    for panel in plot(trajectory, out, what, None if args.joints is None else _listed(args.joints), args.title):
        if panel.note:
            print(f"{panel.label.split(' [')[0]}: {panel.note}")
    print(f"wrote\n  {out}")
    return 0


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _is_there(name: str, trajectory) -> bool:
    """Whether a recording has the data of a panel."""
    if name == "tau":
        return all(segment.tau is not None for segment in trajectory.segments)
    if name in ("contacts", "pressure"):
        return any(segment.mechanism.may_touch() for segment in trajectory.segments)
    if name == "loops":
        return any(segment.mechanism.connections for segment in trajectory.segments)
    return True
