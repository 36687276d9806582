"""`bunraku view`: a model, a scene or a recording in the interactive viewer."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from bunraku.cli import _models
from bunraku.cli.demo import SCENES

RECORDINGS = (".npz", ".mcap", ".bvh")
REMEMBERED = 60.0  # [s] of a model that is watched for hours


def add_parser(subparsers) -> None:
    wide = max(map(len, SCENES))
    scenes = "\n".join(f"  {name:<{wide}}  {what}" for name, (_, what) in SCENES.items())
    parser = subparsers.add_parser(
        "view", help="show a model, a scene or a recording in a browser, and take it in hand",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Simulate in a browser: watch, stop, pull links with the mouse, move and\n"
                    "turn them by a gizmo, gamepad or 3-D mouse, connect links and cut joints by\n"
                    "clicking.\n"
                    "A model that nothing holds floats without gravity.\n"
                    "Needs: pip install 'bunraku[view]'.",
        epilog=f"{_models.HELP}\n\nscenes:\n{scenes}\n\nrecordings:\n"
               "  FILE              .npz or .mcap, as `bunraku demo` writes them; .bvh\n\n"
               "example: bunraku view highbar")
    parser.add_argument("what", metavar="MODEL|SCENE|RECORDING", help="what to show; see below")
    parser.add_argument("--port", type=int, default=None, metavar="N",
                        help="port of the page; 0: any that is free (default: 8080, or any if that is taken)")
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS",
                        help="listen at this address as well for other machines; the page then needs the token in the "
                             "printed url (default: this machine only)")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser, only say where the page is")
    parser.add_argument("--base", choices=("free", "fixed"), default="free",
                        help="how the root of a file hangs from the ground, if it has no root joint (default: free)")
    parser.add_argument("--solver", default=None, help="as for bk.Simulation (default: that of the scene, or gear)")
    parser.add_argument("--workers", type=int, default=None, metavar="P", help="threads that share a model, at most")
    parser.add_argument("--paused", action="store_true", help="do not move at once")
    parser.set_defaults(run=run)


def run(args) -> int:
    import bunraku.view.viser_adapter  # noqa: F401  (complain before the work, not after it)
    from bunraku.view import view

    what, title = _find(args)
    view(what, host=args.host, port=args.port, browser=False if args.no_browser else None, title=title, block=True,
         playing=not args.paused)
    return 0


def _find(args):
    """The simulation or recording to show, and its name."""
    import bunraku as bk

    if args.what in SCENES:
        kind = getattr(import_module(f"bunraku.cli.scenes.{args.what}"), SCENES[args.what][0])
        scene = kind()
        return scene.live(**({"solver": args.solver} if args.solver else {})), scene.title
    if args.what.lower().endswith(RECORDINGS):
        return _models.recording(Path(args.what)), Path(args.what).stem
    mechanism = _models.find(args.what, args.base, tuple(SCENES))
    settings = {"solver": args.solver or "gear", "workers": args.workers, "record": REMEMBERED}
    if args.what.split(":")[0] == "mobile":
        mechanism = suspended(mechanism)
        return bk.Simulation(mechanism, prescribed={"suspension": bk.Guide(mechanism.neutral()[:7])},
                             **settings), mechanism.name
    if not mechanism.connections and all(link.parent >= 0 or isinstance(link.joint, bk.Free)
                                         for link in mechanism.links):
        mechanism.gravity = (0.0, 0.0, 0.0)  # else it would fall out of sight
    return bk.Simulation(mechanism, **settings), mechanism.name


def suspended(mechanism):
    """A mechanism that hangs from a suspension, which is moved by hand in six directions [J]."""
    import bunraku as bk

    m = bk.Mechanism(mechanism.gravity, name=mechanism.name)
    m.add_link("suspension", joint=bk.Free(), mass=1.0, inertia=(0.01, 0.01, 0.01))
    for link in mechanism.links:
        parent = "suspension" if link.parent < 0 else mechanism.links[link.parent].name
        m.add_link(link.name, parent, link.joint, link.joint_name, link.actuated, position=link.position,
                   rotation=link.rotation, mass=link.mass, com=link.com, inertia=link.inertia, visuals=link.visuals)
    return m
