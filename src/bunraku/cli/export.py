"""`bunraku export`: convert a recording to a table, a film, a web page or another file format."""

from __future__ import annotations

import argparse
from pathlib import Path

from bunraku.cli import _models, positive
from bunraku.errors import MissingFileError, ModelError

ENDINGS = {  # what each becomes, and the options that it knows
    ".csv": ("a table with a column for every coordinate, for NumPy and spreadsheets", ("fps", "contacts")),
    ".gif": ("a film that loops", ("fps", "speed", "width", "title", "camera")),
    ".mp4": ("a film (H.264)", ("fps", "speed", "width", "title", "camera")),
    ".html": ("a page that replays the motion in a browser, in one file", ("fps", "title")),
    ".npz": ("a trajectory file", ()),
    ".mcap": ("a recording that other tools read too", ("single", "contacts")),
}
OPTIONS = ("fps", "speed", "width", "title", "camera", "single", "contacts")


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "export", help="turn a recording into a table, a film or a page",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Turn a recording (.npz or .mcap) into what the ending of the new file says:\n\n"
                    + "\n".join(f"  {ending:<5}  {what}" for ending, (what, _) in ENDINGS.items()),
        epilog="example: bunraku export highbar.mcap --to highbar.mp4 --speed 0.25")
    parser.add_argument("recording", type=Path, metavar="RECORDING", help="a file from `run`, `demo` or tr.save")
    parser.add_argument("--to", type=Path, required=True, metavar="FILE", help="the new file")
    parser.add_argument("--fps", type=positive, default=None, metavar="N",
                        help="frames a second (default: MP4 30, GIF 25); .csv: rows at so many even times a second "
                             "of motion, instead of the solver's steps")
    parser.add_argument("--speed", type=positive, default=None, metavar="X",
                        help="seconds of motion in a second of film (default: 1; 0.1 is slow motion)")
    parser.add_argument("--width", type=int, default=None, metavar="N", help="of a film, in pixels (default: 960)")
    parser.add_argument("--title", default=None, help="above a film or page (default: the name of the mechanism)")
    parser.add_argument("--camera", type=_camera, default=None, metavar="A,E",
                        help="azimuth and elevation in degrees (default: 24,9)")
    parser.add_argument("--single", action="store_true", default=None, help="states in float32 (.mcap only)")
    parser.add_argument("--contacts", action="store_true", default=None,
                        help="also normal force, friction, mode, gap and centre of pressure of every pair of shapes "
                             "(.csv and .mcap)")
    parser.set_defaults(run=run)


def _camera(text: str) -> tuple[float, float]:
    try:
        azimuth, elevation = map(float, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not two angles in degrees, as in 24,9") from None
    return azimuth, elevation


def run(args) -> int:
    given = {name: getattr(args, name) for name in OPTIONS if getattr(args, name) is not None}
    ending = args.to.suffix.lower()
    if ending not in ENDINGS:
        raise ModelError(f"--to {args.to}: unsupported extension; use {', '.join(ENDINGS)}")
    for name in given:
        if name not in ENDINGS[ending][1]:
            knows = [other for other, (_, names) in ENDINGS.items() if name in names]
            raise ModelError(f"--{name} is for {', '.join(knows)}, not for {args.to}")
    if "contacts" in given and "fps" in given:
        raise ModelError("--contacts and --fps: contacts are evaluated at the solver's steps; leave one of them out")
    if not args.to.parent.is_dir():
        raise MissingFileError(f"--to {args.to}: there is no folder {str(args.to.parent)!r}; make it first")
    if args.to.exists() and args.recording.exists() and args.to.samefile(args.recording):
        raise ModelError(f"--to {args.to} is the recording itself; choose another name")
    path = _write(_models.recording(args.recording), args.to, ending, given)
    print(f"wrote\n  {path} ({path.stat().st_size / 1e6:.2g} MB)")
    return 0


def _write(trajectory, path: Path, ending: str, options: dict) -> Path:
    if ending == ".csv":
        from bunraku.simulation.records.data_frame import evenly, write_csv

        return write_csv(evenly(trajectory, options["fps"]) if "fps" in options else trajectory, path,
                         "contacts" in options)
    if ending in (".gif", ".mp4"):
        from bunraku.view.figure import Camera
        from bunraku.view.film import film

        if "camera" in options:
            options["camera"] = Camera(*options["camera"])
        return film(trajectory, path, **options)
    if ending == ".html":
        from bunraku.view.replay import replay_html

        return replay_html(trajectory, path, **options)
    if options:
        from bunraku.simulation.records.trajectory import record

        return record(trajectory, path, **options)
    return trajectory.save(path)
